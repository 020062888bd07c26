"""Architecture: the shapes of a decoder-only transformer, and what it holds (chapters 1, 4 and 6).

An `Architecture` is a record of shapes. Its matrices are listed once, here; parameters, FLOPs and
weight traffic are all sums over those lists. Any field may be a SymPy symbol or a NumPy array.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from inferlab import hf_config, presets
from inferlab.quantities import (
    InputError,
    bytes_of,
    bytes_per_element,
    is_array,
    is_symbolic,
    minimum,
    number,
    plain,
    ratio,
)

_SIZES = {"layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"}
"""What a preset may change of the config that it is read from."""


@dataclass(frozen=True, kw_only=True)
class MoE:
    """A mixture of experts in the FFN of some layers (chapters 4 and 9).

    experts: routed experts a layer (E). active: routed experts a token (k). ffn: width of one
    expert. shared_ffn: total width of the shared experts that every token passes (0: none).
    layers: how many layers have experts; the others have the dense FFN. bias: whether the router
    and the experts have biases. shared_gate: whether a d x 1 gate scales the shared experts.
    """

    experts: Any
    active: Any
    ffn: Any
    layers: Any
    shared_ffn: Any = 0
    bias: bool = False
    shared_gate: bool = False

    def __post_init__(self):
        _check(self, "experts", "active", "ffn", "layers", positive=True)
        _check(self, "shared_ffn")
        if _less(self.experts, self.active):
            raise InputError(
                f"{self.active} active experts of {self.experts}: expected at most all of them"
            )


@dataclass(frozen=True, kw_only=True)
class MLA:
    """Multi-head latent attention: keys and values are projected from one cached latent (chapter 4).

    q_rank: rank of the query's down-projection (None: projected directly). kv_rank: rank of the
    latent. nope_dim, rope_dim: the parts of a query/key head without and with rotary position.
    v_dim: width of a value head. bias: whether the down-projections have biases.
    """

    q_rank: Any
    kv_rank: Any
    nope_dim: Any
    rope_dim: Any
    v_dim: Any
    bias: bool = False

    def __post_init__(self):
        _check(self, "kv_rank", "nope_dim", "rope_dim", "v_dim", positive=True)
        if self.q_rank is not None:
            _check(self, "q_rank", positive=True)

    @property
    def qk_dim(self):
        """Width of one query or key head."""
        return self.nope_dim + self.rope_dim

    @property
    def latent(self):
        """Elements cached a token and layer: the latent and the shared rotary key."""
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True)
class Parameters:
    """Parameter counts. `groups` sums to `total`; `lm_head` repeats `embedding` where tied.

    active: the parameters that one token passes through, i.e. the total without the share
    1 - k/E of the routed experts that it skips; lookup tables stay in.
    """

    total: Any
    embedding: Any
    lm_head: Any
    active: Any
    groups: dict


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shapes of a decoder-only transformer.

    name: what to call it. layers (L), hidden (d), ffn (f: width of the dense FFN), heads (h),
    kv_heads (h_kv), head_dim (d_h), vocab (V): sizes. gated: three FFN matrices instead of two.
    tied: the output head is the transposed token table. qkv_bias, out_bias, ffn_bias, head_bias:
    which projections have biases. norms_per_layer, norm_bias, final_norm, embedding_norm, qk_norm:
    the normalisations (embedding_norm: one before the first layer; qk_norm is the number of
    parameters a layer that normalise queries and keys). activation_parameters: those of a learned
    activation in each dense FFN.
    sinks: one attention-sink logit a head. learned_positions: rows of a learned position table
    (0: rotary). position_limit: positions that such a table can serve (None: no hard limit).
    max_positions: nominal context length. window (W): keys a query of a windowed layer sees, its
    own included; windowed_layers: how many layers are windowed. embedding_dim: width of the token
    table where it is not `hidden` (projections then lead in and out). weight_dtype: the dtype
    that the weights are published in, but for the parts of a step named in kept_in_16_bits (see
    `weight_bytes`). moe, mla: see those classes. source: where the shapes come
    from.

    Raises InputError for a size that is not a number above zero or shapes that contradict.
    """

    name: str
    layers: Any
    hidden: Any
    ffn: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    vocab: Any
    gated: bool = True
    tied: bool = False
    qkv_bias: bool = False
    out_bias: bool = False
    ffn_bias: bool = False
    head_bias: bool = False
    norms_per_layer: int = 2
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: Any = 0
    activation_parameters: int = 0
    sinks: bool = False
    learned_positions: int = 0
    position_limit: int | None = None
    max_positions: int | None = None
    window: Any = None
    windowed_layers: Any = 0
    embedding_dim: Any = None
    weight_dtype: str = "bf16"
    kept_in_16_bits: tuple[str, ...] = ()
    moe: MoE | None = None
    mla: MLA | None = None
    source: str = ""

    def __post_init__(self):
        _check(self, "layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", positive=True)
        _check(self, "windowed_layers", "qk_norm", "learned_positions")
        object.__setattr__(self, "ffn", number(self.ffn, "ffn", positive=True))
        bytes_per_element(self.weight_dtype)
        if self.tied and {"lm_head", "token_embedding"} & set(self.kept_in_16_bits):
            # One matrix under two names.
            kept = dict.fromkeys((*self.kept_in_16_bits, "lm_head", "token_embedding"))
            object.__setattr__(self, "kept_in_16_bits", tuple(kept))
        if _less(self.heads, self.kv_heads) or _remainder(self.heads, self.kv_heads):
            raise InputError(
                f"{self.heads} query heads cannot share {self.kv_heads} KV heads: expected heads to"
                " be a multiple of kv_heads"
            )
        if self.window is not None:
            _check(self, "window", positive=True)
        if _less(self.layers, self.windowed_layers):
            raise InputError(
                f"{self.windowed_layers} windowed layers of {self.layers}: expected at most all"
            )
        if self.window is None and _positive(self.windowed_layers):
            raise InputError(f"{self.windowed_layers} windowed layers need a window: set window")
        if self.moe and _less(self.layers, self.moe.layers):
            raise InputError(f"{self.moe.layers} MoE layers of {self.layers}: expected at most all")

    # --- where architectures come from ---

    @classmethod
    def from_hf_config(cls, source) -> Architecture:
        """The architecture that a published `config.json` describes.

        source: a path, or the parsed dict. Raises InputError naming the key that is missing or
        senseless; warns where an unknown model family is read by its llama-like keys.
        """
        fields = dict(hf_config.read(source))
        for key, part in (("moe", MoE), ("mla", MLA)):
            if fields.get(key):
                fields[key] = part(**fields[key])
        return cls(**fields)

    @classmethod
    def preset(cls, name: str) -> Architecture:
        """A model that the library ships or the user's preset file adds, by name (see `names()`).

        Raises InputError that suggests near misses.
        """
        record = presets.find(name, _by_any_name(), "model")
        changes = record.get("but", {})
        if unknown := set(changes) - _SIZES:
            raise InputError(
                f"model {record['name']}: 'but' has {', '.join(sorted(unknown))}: expected only"
                f" {', '.join(sorted(_SIZES))}"
            )
        sizes = {key: hf_config.size(value, key) for key, value in changes.items()}
        described = {"name": record["name"], "source": record.get("source", "")}
        return cls.from_hf_config(record["config"]).but(**described, **sizes)

    @staticmethod
    def names() -> list[str]:
        """Names of all models, the user's own and the shipped ones."""
        return sorted(_records(), key=str.casefold)

    def but(self, **changes) -> Architecture:
        """This architecture with some fields changed: `.but(kv_heads=8)`."""
        return dataclasses.replace(self, **changes)

    # --- matrices, each a (rows, columns) pair that a token's vector is multiplied by ---

    @property
    def attention_matrices(self) -> dict[str, tuple]:
        """The projections of one layer's attention."""
        d, h = self.hidden, self.heads
        if not self.mla:
            return {
                "q": (d, h * self.head_dim),
                "k": (d, self.kv_heads * self.head_dim),
                "v": (d, self.kv_heads * self.head_dim),
                "o": (h * self.head_dim, d),
            }
        mla = self.mla
        query = (
            {"q": (d, h * mla.qk_dim)}
            if mla.q_rank is None
            else {"q_a": (d, mla.q_rank), "q_b": (mla.q_rank, h * mla.qk_dim)}
        )
        return query | {
            "kv_a": (d, mla.latent),
            "kv_b": (mla.kv_rank, h * (mla.nope_dim + mla.v_dim)),
            "o": (h * mla.v_dim, d),
        }

    def ffn_matrices(self, width) -> dict[str, tuple]:
        """The matrices of one FFN of the given width: gate (if gated), up, down."""
        d = self.hidden
        gate = {"gate": (d, width)} if self.gated else {}
        return gate | {"up": (d, width), "down": (width, d)}

    @property
    def embedding_matrices(self) -> dict[str, tuple]:
        """What leads from a token table of another width in, and out again; each token passes both."""
        if self.embedding_dim is None:
            return {}
        d, width = self.hidden, self.embedding_dim
        return {"project_in": (width, d), "project_out": (d, width)}

    @property
    def table_width(self):
        """Width of a row of the token table."""
        return self.hidden if self.embedding_dim is None else self.embedding_dim

    @property
    def qk_width(self):
        """Width of one query or key head."""
        return self.mla.qk_dim if self.mla else self.head_dim

    @property
    def v_width(self):
        """Width of one value head."""
        return self.mla.v_dim if self.mla else self.head_dim

    @property
    def dense_layers(self):
        """Layers with a dense FFN."""
        return self.layers - (self.moe.layers if self.moe else 0)

    @property
    def ffn_width_per_token(self):
        """Inner elements of the FFNs that one token passes, summed over all layers."""
        dense = self.dense_layers * self.ffn
        if not self.moe:
            return dense
        return dense + self.moe.layers * (self.moe.active * self.moe.ffn + self.moe.shared_ffn)

    # --- parameters ---

    @property
    def parameters(self) -> Parameters:
        """Every trainable parameter, counted once, by group."""
        layers, dense = self.layers, self.dense_layers
        table = self.vocab * self.table_width
        routed = router = shared = 0
        if self.moe:
            moe = self.moe
            expert = self._ffn_parameters(moe.ffn, moe.bias)
            routed = moe.layers * moe.experts * expert
            router = moe.layers * (self.hidden * moe.experts + moe.experts * int(moe.bias))
            if _positive(moe.shared_ffn):
                shared = self._ffn_parameters(moe.shared_ffn, self.ffn_bias)
                shared = moe.layers * (shared + self.hidden * int(moe.shared_gate))
        groups = {
            "token_embedding": table,
            "position_embedding": self.learned_positions * self.hidden,
            "embedding_projections": elements(self.embedding_matrices),
            "attention": layers * self._attention_parameters(),
            "dense_ffn_and_shared_experts": (
                dense * (self._ffn_parameters(self.ffn, self.ffn_bias) + self.activation_parameters)
                + shared
            ),
            "routed_experts": routed,
            "router": router,
            "norms": self._norm_parameters(),
            "lm_head": (0 if self.tied else table) + self.vocab * int(self.head_bias),
        }
        total = plain(sum(groups.values()))
        skipped = routed - ratio(routed * self.moe.active, self.moe.experts) if self.moe else 0
        return Parameters(total, table, table, plain(total - skipped), groups)

    def _attention_parameters(self):
        matrices = self.attention_matrices
        count = elements(matrices)
        if self.mla:
            biased = [name for name in ("q_a", "kv_a") if name in matrices and self.mla.bias]
        else:
            biased = ["q", "k", "v"] if self.qkv_bias else []
        if self.out_bias:
            biased.append("o")
        return count + sum(matrices[name][1] for name in biased) + self.heads * int(self.sinks)

    def _ffn_parameters(self, width, bias):
        matrices = self.ffn_matrices(width)
        return elements(matrices) + sum(columns for _, columns in matrices.values()) * int(bias)

    def _norm_parameters(self):
        size = self.hidden * (2 if self.norm_bias else 1)
        inner = self.qk_norm
        if self.mla:
            inner = inner + self.mla.kv_rank + (self.mla.q_rank or 0)
        per_layer = self.norms_per_layer * size + inner
        return self.layers * per_layer + size * (int(self.final_norm) + int(self.embedding_norm))

    def weight_bytes(self, dtype=None):
        """Bytes that hold all parameters, in `dtype` (default: the one they are published in).

        What the model's quantization keeps in 16 bits stays so, and its norms with it.
        """
        dtype = self.weight_dtype if dtype is None else dtype
        if not self.kept_in_16_bits:
            return bytes_of(self.parameters.total, dtype)
        names = {"attention": "attention_projections"}
        kept = {*self.kept_in_16_bits, "norms"}
        return sum(
            bytes_of(count, "bf16" if names.get(group, group) in kept else dtype)
            for group, count in self.parameters.groups.items()
        )

    # --- the KV cache ---

    def kv_elements_per_layer(self, mla: str = "absorbed"):
        """Elements that one token adds to one layer's cache.

        2 h_kv d_h; with MLA the latent and the rotary key, or, when the cache holds `expanded`
        keys and values, all heads of both. Chapter 4.
        """
        if not self.mla:
            return 2 * self.kv_heads * self.head_dim
        if mla == "expanded":
            return self.heads * (self.mla.qk_dim + self.mla.v_dim)
        return self.mla.latent

    @property
    def kv_elements_per_token(self):
        """Elements that one token adds to the cache, over all layers."""
        return self.layers * self.kv_elements_per_layer()

    def kv_elements(self, length, mla: str = "absorbed"):
        """Elements cached for a sequence of `length` tokens.

        A windowed layer keeps the last W - 1 tokens only: with the one that comes next they fill
        the window.
        """
        length = number(length, "length", whole=True)
        tokens = (self.layers - self.windowed_layers) * length
        if self.window is not None:
            tokens = tokens + self.windowed_layers * minimum(length, self.window - 1)
        return tokens * self.kv_elements_per_layer(mla)

    def kv_bytes(self, length, dtype="bf16", mla: str = "absorbed"):
        """Bytes cached for a sequence of `length` tokens, at 2 bytes an element by default."""
        return bytes_of(self.kv_elements(length, mla), dtype)


def elements(matrices: dict[str, tuple]):
    """Number of elements of some matrices."""
    return sum(rows * columns for rows, columns in matrices.values())


@cache
def _shipped() -> dict[str, dict]:
    folder = resources.files("inferlab") / "data" / "models"
    records = (
        json.loads(f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".json")
    )
    return {record["name"]: record for record in records}


def _records() -> dict[str, dict]:
    """The preset records by name; the user's own come before shipped ones of the same name."""
    tables, path = presets.own("models")
    mine = {}
    for name, table in tables.items():
        config = table.get("config")
        allowed = {"config": (dict, str), "source": str, "but": dict, "aliases": list}
        if (
            config is None
            or not all(
                key in allowed and isinstance(value, allowed[key]) for key, value in table.items()
            )
            or not all(isinstance(alias, str) for alias in table.get("aliases", []))
        ):
            raise InputError(
                f"{path}: [models.{name}] needs 'config', a table or the path of a config.json, and"
                " may have 'source' (text), 'but' (a table) and 'aliases' (a list of texts)"
            )
        config = path.parent / config if isinstance(config, str) else config
        mine[name] = table | {"name": name, "config": config}
    return _shipped() | mine


def _by_any_name() -> dict[str, dict]:
    records = _records()
    aliases = {alias: record for record in records.values() for alias in record.get("aliases", ())}
    return aliases | records


def _check(record, *fields, positive=False):
    for field in fields:
        value = number(getattr(record, field), field, positive=positive, whole=True)
        object.__setattr__(record, field, value)


def _is_open(*values) -> bool:
    """True where a relation between the values is not decided: symbols and arrays."""
    return any(is_symbolic(v) or is_array(v) for v in values)


def _less(a, b) -> bool:
    return not _is_open(a, b) and a < b


def _remainder(a, b) -> bool:
    return not _is_open(a, b) and a % b != 0


def _positive(value) -> bool:
    return _is_open(value) or value > 0
