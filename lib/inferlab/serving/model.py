"""How long one step of a batch takes, fast enough to simulate a million of them (chapter 5).

The time of a step is the roofline bound of `step(...)` on that very batch, and nothing else. A
simulation asks for it at every step, so `StepModel` reads the library's own `step` once with
symbols for one sequence and keeps the polynomials: the work of a batch is the sum over its
sequences, and the weights once. No formula is written here; the tests hold the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from inferlab.accelerator import Accelerator
from inferlab.accounting import ENGINE, Accounting
from inferlab.architecture import Architecture
from inferlab.deployment import MEMORY_FRACTION, Deployment, memory
from inferlab.quantities import InputError, bytes_of, number, to_sympy
from inferlab.roofline import bound_time
from inferlab.step import Sequence, step


class Cost(NamedTuple):
    """What one step costs: seconds, FLOPs, and bytes of memory traffic."""

    seconds: float
    flops: float
    bytes: float


@dataclass(frozen=True, kw_only=True)
class StepModel:
    """A model on a machine, as a serving engine sees it: seconds a step, tokens of KV that fit.

    architecture, accelerator: who runs where. accounting, weights, kv, compute: as in `step`.
    compute_efficiency, memory_efficiency: as in `roofline`; at 1 all times are lower bounds.
    overhead_s: seconds added to each step (kernel launches, the scheduler). kv_tokens: tokens
    whose keys and values fit in memory; if None, what `deployment.memory` leaves of the capacity, of
    which an engine takes `memory_fraction`.

    Raises InputError where the weights alone do not fit.
    """

    architecture: Architecture
    accelerator: Accelerator
    accounting: Accounting = ENGINE
    weights: str = "bf16"
    kv: str = "bf16"
    compute: str = "bf16"
    compute_efficiency: float = 1
    memory_efficiency: float = 1
    overhead_s: float = 0.0
    memory_fraction: float = MEMORY_FRACTION
    kv_tokens: int | None = None

    @classmethod
    def preset(cls, architecture: str, accelerator: str, **options) -> StepModel:
        """A shipped model on a shipped machine, by name: `StepModel.preset("LLaMA-7B", "H100-SXM")`."""
        return cls(
            architecture=Architecture.preset(architecture),
            accelerator=Accelerator.preset(accelerator),
            **options,
        )

    def __post_init__(self):
        number(self.overhead_s, "overhead_s")
        number(self.memory_fraction, "memory_fraction", positive=True, most=1)
        if self.kv_tokens is not None:
            number(self.kv_tokens, "kv_tokens", positive=True, whole=True)
        else:
            object.__setattr__(self, "kv_tokens", self._tokens_that_fit())
        peak = self.accelerator.peak(self.compute)
        compute = number(self.compute_efficiency, "compute_efficiency", positive=True, most=1)
        memory = number(self.memory_efficiency, "memory_efficiency", positive=True, most=1)
        object.__setattr__(self, "_peak", float(peak * compute))
        object.__setattr__(self, "_bandwidth", float(self.accelerator.bandwidth * memory))
        object.__setattr__(self, "_weight_bytes", {})

    def _tokens_that_fit(self):
        a, machine = self.architecture, self.accelerator
        if machine.capacity is None:
            raise InputError(f"the capacity of {machine.name} is not known: give kv_tokens")
        d = Deployment(architecture=a, accelerator=machine, weights=self.weights, kv=self.kv)
        held = memory(d, 0, fraction=self.memory_fraction)
        tokens = int(held.free // self.kv_bytes_per_token)
        if tokens < 1:
            raise InputError(
                f"{a.name} does not fit on {machine.name}: its weights are"
                f" {held.weights / 1e9:.1f} GB of {(held.weights + held.free) / 1e9:.1f} GB usable;"
                " take a smaller dtype or a larger machine"
            )
        return tokens

    @property
    def kv_bytes_per_token(self) -> int:
        """KV bytes of one token on all layers; a windowed layer is taken to keep every token."""
        per_layer = self.architecture.kv_elements_per_layer(self.accounting.mla)
        return bytes_of(self.architecture.layers * per_layer, self.kv)

    def cost(self, chunks=(), decodes=0, decode_cached=0, cached_lengths=None) -> Cost:
        """Cost of a step that feeds some chunks of prompts and one token to each decode sequence.

        chunks: (new, cached) pairs. decodes: how many sequences decode, and decode_cached: how
        many tokens they have cached in all. cached_lengths: those lengths one by one, or a
        function that returns them, needed only where `sums_suffice` is False. Equals
        `roofline(step(...))` of the same batch, plus the overhead; whether a learned position
        table is long enough is not asked here but once a trace.
        """
        flops = moved = 0
        tokens = decodes
        for new, cached in chunks:
            tokens += new
            sequence = self._later if cached else self._first
            flops += sequence[0](new, cached)
            moved += sequence[1](new, cached)
        if decodes and self.sums_suffice:
            for_one, for_each_cached = self._decode
            flops += decodes * for_one[0] + decode_cached * for_each_cached[0]
            moved += decodes * for_one[1] + decode_cached * for_each_cached[1]
        elif decodes:
            lengths = cached_lengths() if callable(cached_lengths) else cached_lengths
            flops += sum(self._later[0](1, cached) for cached in lengths)
            moved += sum(self._later[1](1, cached) for cached in lengths)
        moved += self._weights_streamed(tokens)
        seconds = self._bound(flops, moved, self._peak, self._bandwidth)
        return Cost(seconds + self.overhead_s, flops, moved)

    @cached_property
    def sums_suffice(self) -> bool:
        """True where a decode step's cost depends on the total of cached tokens alone.

        So it is for full attention, whose work grows by the same amount with every cached token;
        a sliding window ends that growth at a length of each sequence's own.
        """
        return self._decode is not None

    def _weights_streamed(self, tokens):
        """Bytes of weights that a step over `tokens` new tokens streams (MoE: it depends)."""
        if not self.architecture.moe:
            tokens = 1
        if tokens not in self._weight_bytes:
            self._weight_bytes[tokens] = self._work(tokens, 0).weights
        return self._weight_bytes[tokens]

    def _work(self, new, cached):
        dtypes = {"weights": self.weights, "kv": self.kv, "compute": self.compute}
        return step(self.architecture, [Sequence(new, cached)], self.accounting, **dtypes)

    @cached_property
    def _bound(self):
        """The library's `bound_time` as a function of plain numbers."""
        import sympy

        symbols = sympy.symbols("flops bytes peak bandwidth", positive=True)
        return sympy.lambdify(symbols, bound_time(*symbols), modules="math")

    @cached_property
    def _first(self):
        """FLOPs and bytes, weights apart, of a sequence with nothing cached, as functions."""
        n, s = _symbols()
        work = self._work(n, 0)
        return _whole(work.flops, n, s), _whole(work.bytes - work.weights, n, s)

    @cached_property
    def _later(self):
        """The same against cached tokens."""
        n, s = _symbols()
        work = self._work(n, s)
        return _whole(work.flops, n, s), _whole(work.bytes - work.weights, n, s)

    @cached_property
    def _decode(self):
        """Cost of a decode sequence as (constant, per cached token), or None if not affine."""
        n, s = _symbols()
        work = self._work(n, s)
        parts = [to_sympy(part).subs(n, 1) for part in (work.flops, work.bytes - work.weights)]
        if any(not part.is_polynomial(s) or part.as_poly(s).degree() > 1 for part in parts):
            return None
        constants = tuple(_exact(part.subs(s, 0)) for part in parts)
        return constants, tuple(_exact(part.diff(s)) for part in parts)


def _symbols():
    import sympy

    return sympy.symbols("n s", positive=True, integer=True)


def _exact(value):
    return int(value) if value.is_integer else float(value)


def _whole(expression, *symbols):
    """A function of ints that stays exact: numerator // denominator, n (n + 1) / 2 for one."""
    import sympy

    numerator, denominator = sympy.fraction(sympy.together(sympy.sympify(expression)))
    if not denominator.is_Integer:
        raise InputError(f"{expression} cannot be computed in whole numbers: report this")
    function = sympy.lambdify(symbols, numerator, modules="math")
    if denominator == 1:
        return function
    divisor = int(denominator)
    return lambda *values: function(*values) // divisor
