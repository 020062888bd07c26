"""One step of a model over a batch: the heart of the library (chapters 6, 7 and 9).

A step feeds each sequence of a batch `new` tokens against `cached` ones. A prefill is (N, 0), a
decode step (1, S); a prefix hit, a chunk of a long prompt, a packed batch and a speculative check
are other points of the same function. What is counted is said by an `Accounting`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from inferlab.accounting import ENGINE, Accounting
from inferlab.architecture import Architecture, elements
from inferlab.matmul import matmul_flops
from inferlab.quantities import (
    InputError,
    bytes_of,
    choose,
    is_array,
    is_symbolic,
    maximum,
    minimum,
    number,
    plain,
    ratio,
    to_sympy,
)


@dataclass(frozen=True)
class Sequence:
    """`count` sequences of a batch, each with `new` tokens to feed against `cached` ones."""

    new: Any
    cached: Any = 0
    count: Any = 1

    def __post_init__(self):
        for field, name, positive in (
            ("new", "new tokens", True),
            ("cached", "cached tokens", False),
            ("count", "count of sequences", True),
        ):
            value = number(getattr(self, field), name, positive=positive, whole=True)
            object.__setattr__(self, field, value)


def prefill(prompt, batch=1) -> list[Sequence]:
    """A batch of prompts of `prompt` tokens each, nothing cached."""
    return [Sequence(prompt, 0, batch)]


def decode(cached, batch=1) -> list[Sequence]:
    """A batch of sequences with `cached` tokens each, one new token each."""
    return [Sequence(1, cached, batch)]


@dataclass(frozen=True)
class Component:
    """Work of one part of the model: FLOPs, and bytes of DRAM traffic by kind."""

    flops: Any = 0
    weights: Any = 0
    kv_read: Any = 0
    kv_write: Any = 0
    activations: Any = 0

    @property
    def bytes(self):
        """All DRAM traffic, in bytes."""
        return self.weights + self.kv_read + self.kv_write + self.activations

    @property
    def intensity(self):
        """Arithmetic intensity in FLOP/byte; infinite for work that moves nothing."""
        if not is_symbolic(self.bytes) and not is_array(self.bytes) and self.bytes == 0:
            return math.inf
        return ratio(self.flops, self.bytes)

    def __add__(self, other: Component) -> Component:
        return Component(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(Component))
        )


@dataclass(frozen=True)
class Work(Component):
    """Work of a whole step: the sum of `components`, by name.

    Components: attention_projections, attention_scores_values, ffn (dense, shared and routed
    experts), router, lm_head; and embedding_projections where the token table has a width of its
    own. The KV cache is read and written by attention_scores_values.
    """

    components: dict[str, Component] | None = None

    @classmethod
    def of(cls, components: dict[str, Component]) -> Work:
        """The sum of some components."""
        total = sum(components.values(), Component())
        return cls(*(getattr(total, f.name) for f in fields(Component)), components)


def step(
    architecture: Architecture,
    sequences: list[Sequence],
    accounting: Accounting = ENGINE,
    *,
    weights="bf16",
    kv="bf16",
    compute="bf16",
) -> Work:
    """FLOPs and DRAM bytes of one forward pass of `architecture` over a batch.

    sequences: what `prefill` and `decode` return, or any list of Sequence (a packed batch).
    accounting: what to count. weights, kv, compute: dtypes of the weights (but for what the model
    keeps in 16 bits), of the cache and of the activations. Numbers give exact ints, arrays float64
    arrays, symbols expressions. Chapters 6, 7 and 9.

    Raises InputError for an empty batch, one Sequence without its list, or positions beyond a
    learned position table.

    >>> from inferlab.architecture import Architecture
    >>> step(Architecture.preset("LLaMA-7B"), decode(3000)).kv_read
    1572864000
    """
    if isinstance(sequences, Sequence):
        raise InputError(f"{sequences} is one sequence: expected a list, put it between [ and ]")
    if not sequences:
        raise InputError("the batch is empty: expected at least one sequence")
    check_positions(architecture, sequences)
    a = architecture
    tokens = sum(s.new * s.count for s in sequences)
    counted = (_count_sequence(a, s, accounting) for s in sequences)
    total = sum(counted, _Counts())
    traffic = _activation_elements(a, accounting.activations, tokens, total.pairs)

    def matrices(component, count):
        return bytes_of(count, "bf16" if component in a.kept_in_16_bits else weights)

    components = {
        "attention_projections": Component(
            flops=total.projection_flops,
            weights=matrices("attention_projections", a.layers * elements(a.attention_matrices)),
            activations=bytes_of(traffic["attention_projections"], compute),
        ),
        "attention_scores_values": Component(
            flops=total.score_flops,
            kv_read=bytes_of(total.kv_read, kv),
            kv_write=bytes_of(total.kv_write, kv),
            activations=bytes_of(traffic["attention_scores_values"], compute),
        ),
        "ffn": Component(
            flops=plain(tokens * _ffn_flops_per_token(a)),
            weights=matrices("ffn", _ffn_elements_streamed(a, tokens)),
            activations=bytes_of(traffic["ffn"], compute),
        ),
        "router": Component(
            flops=tokens * 2 * _router_elements(a),
            weights=matrices("router", _router_elements(a)),
        ),
        "lm_head": _head(a, sequences, accounting.logits, matrices),
    }
    if a.embedding_dim is not None:
        components["embedding_projections"] = Component(
            flops=tokens * 2 * elements(a.embedding_matrices),
            weights=matrices("embedding_projections", elements(a.embedding_matrices)),
        )
    return Work.of(components)


# --- attention -----------------------------------------------------------------------------------


def attention_pairs(new, cached, window=None, pairs: str = "causal"):
    """(query, key) pairs that attention computes for one sequence and one layer. Chapter 6.

    causal: query j sees the cached tokens, the new ones before it and itself, n s + n(n+1)/2 in
    all; full: the n (s + n) rectangle; text: n^2 for a prefill, n s after it. A window W clips
    what a query sees to W keys; of the two rectangles it clips the cached tokens alone.
    """
    if pairs == "text":
        keys = cached if window is None else minimum(cached, window)
        return new * choose(cached == 0, new, keys)
    if pairs == "full":
        return new * ((cached if window is None else minimum(cached, window - 1)) + new)
    if window is None:
        return new * cached + ratio(new * (new + 1), 2)
    # The first queries see fewer than W keys, the rest exactly W.
    growing = minimum(maximum(window - cached, 0), new)
    return growing * cached + ratio(growing * (growing + 1), 2) + (new - growing) * window


@dataclass(frozen=True)
class _Counts:
    """What attention computes and moves, in FLOPs and elements, summed over sequences."""

    pairs: Any = 0
    projection_flops: Any = 0
    score_flops: Any = 0
    kv_read: Any = 0
    kv_write: Any = 0

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(_Counts)))


def _count_sequence(a: Architecture, s: Sequence, accounting: Accounting) -> _Counts:
    mla = accounting.mla
    full_layers = a.layers - a.windowed_layers
    pairs = full_layers * attention_pairs(s.new, s.cached, None, accounting.pairs)
    if a.window is not None:
        windowed = attention_pairs(s.new, s.cached, a.window, accounting.pairs)
        pairs = pairs + a.windowed_layers * windowed
    width = a.qk_width + a.v_width
    projections = s.new * sum(matmul_flops(1, *shape) for shape in a.attention_matrices.values())
    if a.mla:
        # A prefill always expands the latent. The absorbed way multiplies queries and outputs by
        # the two halves of kv_b instead, at the same cost, and attends to the latent itself.
        if mla == "absorbed":
            width = choose(s.cached == 0, width, a.mla.latent + a.mla.kv_rank)
        elif mla == "reexpand":
            rebuilt = matmul_flops(s.cached, *a.attention_matrices["kv_b"])
            projections = projections + rebuilt
    written = s.new * a.layers * a.kv_elements_per_layer(mla)
    return _Counts(
        pairs=s.count * pairs,
        projection_flops=s.count * a.layers * projections,
        score_flops=s.count * matmul_flops(pairs, width, a.heads),
        kv_read=s.count * a.kv_elements(s.cached, mla) if accounting.kv_read else 0,
        kv_write=s.count * written if accounting.kv_write else 0,
    )


# --- feed-forward network ------------------------------------------------------------------------


def _ffn_flops_per_token(a: Architecture):
    return 2 * ffn_elements(a, a.moe.active if a.moe else 0)


def _shared_elements(a: Architecture):
    shared = elements(a.ffn_matrices(a.moe.shared_ffn))
    return shared + (a.hidden if a.moe.shared_gate else 0)


def _router_elements(a: Architecture):
    return a.moe.layers * a.hidden * a.moe.experts if a.moe else 0


def distinct_experts(experts, active, tokens):
    """Expected number of distinct experts that `tokens` tokens reach: E (1 - (1 - k/E)^T).

    Each token picks k of E experts, uniformly and independently: an expectation, not a bound;
    the bounds are k and min(E, k T). For ints the Fraction is exact up to ten thousand tokens, and
    of a hundred digits beyond. Chapter 9.
    """
    if not (is_symbolic(tokens) or is_array(tokens)) and tokens * active > 200 * experts:
        # The chance to miss an expert is below e^-200: far less than a byte of any model.
        return experts
    missed = 1 - ratio(active, experts)
    if isinstance(missed, Fraction) and isinstance(tokens, int) and tokens > 10_000:
        with localcontext(prec=100):
            power = (Decimal(missed.numerator) / missed.denominator) ** tokens
        return experts * (1 - Fraction(power))
    if isinstance(missed, Fraction) and is_array(tokens):
        missed = float(missed)
    if isinstance(missed, Fraction) and is_symbolic(tokens):
        missed = to_sympy(missed)
    return experts * (1 - missed**tokens)


def _ffn_elements_streamed(a: Architecture, tokens):
    if not a.moe:
        return ffn_elements(a)
    return ffn_elements(a, distinct_experts(a.moe.experts, a.moe.active, tokens))


def ffn_elements(a: Architecture, experts=0):
    """Elements of the FFN matrices of all layers, with `experts` routed experts a layer."""
    dense = a.dense_layers * elements(a.ffn_matrices(a.ffn))
    if not a.moe:
        return dense
    routed = experts * elements(a.ffn_matrices(a.moe.ffn))
    return dense + a.moe.layers * (routed + _shared_elements(a))


# --- head, activations ---------------------------------------------------------------------------


def _head(a: Architecture, sequences, logits, matrices) -> Component:
    if logits == "none":
        return Component()
    positions = sum(s.count * (s.new if logits == "all" else 1) for s in sequences)
    return Component(
        flops=matmul_flops(positions, a.table_width, a.vocab),
        weights=matrices("lm_head", a.table_width * a.vocab),
    )


def _activation_elements(a: Architecture, activations, tokens, pairs) -> dict[str, Any]:
    """Elements of intermediate results moved, by component.

    unfused, a token and layer: 6 d for the projections (three reads of the input, the query, the
    attention output and its projection), 4 d around the score product, 2 d + 6 f for the FFN.
    """
    zero = {"attention_projections": 0, "attention_scores_values": 0, "ffn": 0}
    if activations == "none":
        return zero
    stream = tokens * a.layers * a.hidden
    if activations == "layer":
        return zero | {"attention_projections": stream, "ffn": stream}
    scores = 4 * a.heads * pairs if activations == "unfused-scores" else 0
    return {
        "attention_projections": 6 * stream,
        "attention_scores_values": 4 * stream + scores,
        "ffn": 2 * stream + 6 * tokens * a.ffn_width_per_token,
    }


def check_positions(a: Architecture, sequences):
    """Raise InputError for sequences that a learned position table is too short for."""
    if a.position_limit is None:
        return
    for s in sequences:
        length = s.new + s.cached
        if not is_symbolic(length) and not is_array(length) and length > a.position_limit:
            raise InputError(
                f"{length} positions do not fit {a.name}: its learned position table holds"
                f" {a.position_limit}, so use at most that many"
            )
