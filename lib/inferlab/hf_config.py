"""A published `config.json` as the arguments of an `Architecture` (chapters 4 and 13).

A config says what its family's code does not fix: which keys it may leave out and what it then means,
which biases and norms exist and which layers are windowed differ from family to family. What is
written here follows the configuration and model classes of transformers 5.24, and is held against
them: tests/data/oracle.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from inferlab import presets
from inferlab.quantities import InputError, plain


class ConfigWarning(UserWarning):
    """Something that a config leaves open and that was read in the likeliest way."""


def read(source) -> dict[str, Any]:
    """Keyword arguments of `Architecture` for a config; `moe` and `mla` as dicts of theirs.

    source: the path of a `config.json` (or of the folder that holds it), or the parsed dict. Of a
    multimodal model the language model is read. Raises InputError naming the key that is missing or
    senseless; issues a ConfigWarning for an unknown family that is read by its llama-like keys.
    """
    values, where = _load(source)
    values, outer = _language_model(values, where)
    model_type = values.get("model_type")
    if model_type is None and "model_type" not in outer:
        model_type = _family_of_class(values.get("architectures") or outer.get("architectures"))
    if not isinstance(model_type, str):
        raise InputError(
            f"{where} has model_type {model_type!r}: expected the name of a model family, as in a"
            " published config.json"
        )
    family = FAMILIES.get(ALIASES.get(model_type, model_type)) or _unknown(model_type, values, where)
    config = _Config(values, where, family)
    if values.get("is_encoder_decoder"):
        raise InputError(f"{where}: is_encoder_decoder is true: expected a decoder-only model")
    fields = _common(config)
    family.shape(config, fields)
    config.warn_of_defaults()
    if "tie_word_embeddings" in outer and "tie_word_embeddings" not in values:
        fields["tied"] = _Config(outer, where, family).flag("tie_word_embeddings")
    fields["name"] = _name(values, outer, source, model_type)
    quantization = values.get("quantization_config") or outer.get("quantization_config")
    if quantization is not None:
        fields["weight_dtype"] = _quantized_dtype(quantization, where)
    return fields


def size(value):
    """A size as a preset may write it: a number, or text such as "32768/3" for an exact ratio."""
    if not isinstance(value, str):
        return value
    try:
        return plain(Fraction(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{value!r} is not a size: expected a number or a ratio like '32768/3'") from None


# --- loading -------------------------------------------------------------------------------------


def _load(source) -> tuple[dict, str]:
    if isinstance(source, dict):
        return source, "the config"
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    try:
        values = json.loads(presets.read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0] or "nested too deeply"
        raise InputError(f"{path} is not JSON ({reason}): expected a model's config.json") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} holds {_short(values)}: expected a JSON object with model_type")
    return values, str(path)


def _language_model(values: dict, where: str) -> tuple[dict, dict]:
    """The config of the language model inside a multimodal one, and the outer config."""
    for key in ("text_config", "llm_config", "language_config"):
        inner = values.get(key)
        if inner is None:
            continue
        if not isinstance(inner, dict):
            raise InputError(f"{where}: {key} is {_short(inner)}: expected a JSON object")
        nested = TEXT_MODELS.get(values.get("model_type"))
        if nested and "model_type" not in inner:
            inner = inner | {"model_type": nested}
        _warn(f"{where}: only the language model ({key}) is counted, not the encoders beside it")
        return inner, values
    if isinstance(values.get("vision_config"), dict):
        _warn(f"{where}: only the language model is counted, not the vision encoder beside it")
    return values, {}


def _family_of_class(architectures) -> str | None:
    """The family that a class name such as LlamaForCausalLM means, where model_type is absent."""
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        plain_class = architectures[0].removesuffix("ForCausalLM").removesuffix("LMHeadModel").casefold()
        for family in FAMILIES:
            if family.replace("_", "") == plain_class:
                return family
    return None


def _name(values, outer, source, model_type) -> str:
    for config in (outer, values):
        name = config.get("_name_or_path")
        if isinstance(name, str) and name:
            return name[:80]
    if isinstance(source, dict):
        return model_type
    path = Path(source)
    return path.resolve().parent.name if path.name == "config.json" else path.stem


# --- reading keys --------------------------------------------------------------------------------

# No model comes near these: a larger value is a slip, and its counts would mislead.
_LIMITS = {"num_hidden_layers": 10_000, "vocab_size": 100_000_000, "max_position_embeddings": 10**12,
           "sliding_window": 10**12}
_LIMIT = 10_000_000

_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


@dataclass(frozen=True)
class Family:
    """What a model family's code fixes.

    defaults: what its class assumes for keys that a config leaves out. names: what it calls a key
    (`n_embd` for hidden_size). traits: fields of Architecture that hold for the whole family. shape:
    reads the rest from a config into those fields.
    """

    defaults: dict[str, Any]
    shape: Callable
    names: dict[str, str] = field(default_factory=dict)
    traits: dict[str, Any] = field(default_factory=dict)


class _Config:
    """The keys of one config, read with its family's names and defaults."""

    def __init__(self, values: dict, where: str, family: Family):
        self.values, self.where, self.family = values, where, family
        self.assumed: list[str] = []

    def get(self, key: str):
        """The value of a key under either name, else the family's default; InputError if neither."""
        for name in (key, self.family.names.get(key, key)):
            if name in self.values:
                return self.values[name]
        if key not in self.family.defaults:
            raise InputError(f"{self.where} has no {self.family.names.get(key, key)}: it is needed")
        if key in _SIZES:
            self.assumed.append(key)
        return self.family.defaults[key]

    def has(self, key: str) -> bool:
        """Whether the config, or its family, gives the key a value other than null."""
        known = key in self.values or self.family.names.get(key, key) in self.values
        return (known or key in self.family.defaults) and self.get(key) is not None

    def size(self, key: str, least: int = 1) -> int:
        """A whole number of at least `least`."""
        value = self.get(key)
        limit = _LIMITS.get(key, _LIMIT)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= limit:
            raise InputError(
                f"{self.where}: {self.family.names.get(key, key)} is {_short(value)}: expected a whole"
                f" number from {least} to {limit:,}"
            )
        return value

    def size_or(self, key: str, otherwise):
        """A whole number above zero, or `otherwise` where the key is absent or null."""
        return self.size(key) if self.has(key) else otherwise

    def flag(self, key: str) -> bool:
        """True or false; null counts as false."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{self.where}: {key} is {_short(value)}: expected true or false")
        return bool(value)

    def items(self, key: str) -> list:
        """A list; null counts as empty."""
        value = self.get(key)
        if value is not None and not isinstance(value, list):
            raise InputError(f"{self.where}: {key} is {_short(value)}: expected a list")
        return value or []

    def warn_of_defaults(self):
        """Say once which sizes the config left to its family."""
        if self.assumed:
            said = ", ".join(f"{key} {self.family.defaults[key]}" for key in dict.fromkeys(self.assumed))
            _warn(f"{self.where} leaves out {said}: the family's default is taken")


def _common(c: _Config) -> dict[str, Any]:
    """The fields that every family has."""
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")
    fields = {
        "layers": c.size("num_hidden_layers"),
        "hidden": hidden,
        "heads": heads,
        "vocab": c.size("vocab_size"),
        "tied": c.flag("tie_word_embeddings"),
        "max_positions": c.size_or("max_position_embeddings", None),
    }
    return fields | c.family.traits


def _head_dim(c: _Config, fields) -> int:
    """The explicit head_dim, else hidden / heads."""
    if c.has("head_dim"):
        return c.size("head_dim")
    if fields["hidden"] % fields["heads"]:
        raise InputError(
            f"{c.where}: hidden_size {fields['hidden']} is not a multiple of num_attention_heads"
            f" {fields['heads']}: give head_dim"
        )
    return fields["hidden"] // fields["heads"]


def _kv_heads(c: _Config, fields) -> int:
    kv_heads = c.size_or("num_key_value_heads", fields["heads"])
    if fields["heads"] % kv_heads:
        raise InputError(
            f"{c.where}: num_key_value_heads {kv_heads} does not divide num_attention_heads"
            f" {fields['heads']}: expected a divisor of it"
        )
    return kv_heads


def _windows(c: _Config, fields, windowed: Callable[[int], bool], window: int | None):
    """Set the sliding window: `layer_types` decides layer by layer, else `windowed(index)`."""
    layers = fields["layers"]
    if c.has("layer_types"):
        types = c.items("layer_types")
        if len(types) != layers:
            raise InputError(
                f"{c.where}: layer_types lists {len(types)} layers and num_hidden_layers is {layers}:"
                " expected one type a layer"
            )
        for each in types:
            if each not in ("full_attention", "attention", "sliding_attention"):
                raise InputError(
                    f"{c.where}: layer_types holds {_short(each)}: expected full_attention or"
                    " sliding_attention"
                )
        count = types.count("sliding_attention")
        if count and window is None:
            raise InputError(f"{c.where}: layer_types has sliding layers but sliding_window is off")
    else:
        count = 0 if window is None else sum(1 for index in range(layers) if windowed(index))
    if count:
        fields |= {"window": window, "windowed_layers": count}


def _window(c: _Config) -> int | None:
    return c.size_or("sliding_window", None)


def _every_layer(index: int) -> bool:
    return True


def _attention_bias(c: _Config, fields):
    fields["qkv_bias"] = fields["out_bias"] = c.flag("attention_bias")


# --- families ------------------------------------------------------------------------------------


def _llama(c: _Config, fields):
    fields |= {
        "ffn": c.size("intermediate_size"),
        "head_dim": _head_dim(c, fields),
        "kv_heads": _kv_heads(c, fields),
    }
    fields["ffn_bias"] = c.flag("mlp_bias")
    _attention_bias(c, fields)


def _internlm(c: _Config, fields):
    _plain_decoder(c, fields)
    fields["qkv_bias"] = fields["out_bias"] = c.flag("bias")


def _plain_decoder(c: _Config, fields):
    fields |= {
        "ffn": c.size("intermediate_size"),
        "head_dim": _head_dim(c, fields),
        "kv_heads": _kv_heads(c, fields),
    }


def _mistral(c: _Config, fields):
    _plain_decoder(c, fields)
    _windows(c, fields, _every_layer, _window(c))


def _mixtral(c: _Config, fields):
    _mistral(c, fields)
    fields["moe"] = {
        "experts": c.size("num_local_experts" if "num_local_experts" in c.values else "num_experts"),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
    }


def _qwen_window(c: _Config) -> int | None:
    return _window(c) if c.flag("use_sliding_window") else None


def _qwen2(c: _Config, fields):
    _plain_decoder(c, fields)
    first = c.size("max_window_layers", least=0)
    _windows(c, fields, lambda index: index >= first, _qwen_window(c))


def _qwen3(c: _Config, fields):
    _qwen2(c, fields)
    _attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]


def _sparse_layers(c: _Config, fields) -> int:
    """How many layers have experts, by decoder_sparse_step and mlp_only_layers."""
    step = c.size("decoder_sparse_step")
    dense = c.items("mlp_only_layers")
    for index in dense:
        if isinstance(index, bool) or not isinstance(index, int):
            raise InputError(f"{c.where}: mlp_only_layers holds {_short(index)}: expected layer numbers")
    sparse = [i for i in range(fields["layers"]) if (i + 1) % step == 0 and i not in set(dense)]
    return len(sparse)


def _qwen_experts(c: _Config, fields, **shared):
    layers = _sparse_layers(c, fields)
    experts = c.size("num_local_experts" if "num_local_experts" in c.values else "num_experts", least=0)
    if layers and experts:
        fields["moe"] = {
            "experts": experts,
            "active": c.size("num_experts_per_tok"),
            "ffn": c.size("moe_intermediate_size"),
            "layers": layers,
        } | shared


def _qwen2_moe(c: _Config, fields):
    _plain_decoder(c, fields)
    fields["qkv_bias"] = c.flag("qkv_bias")
    last = c.size("max_window_layers", least=0)
    _windows(c, fields, lambda index: index % 2 == 0 and index < last, _qwen_window(c))
    _qwen_experts(
        c, fields, shared_ffn=c.size("shared_expert_intermediate_size"), shared_gate=True
    )


def _qwen3_moe(c: _Config, fields):
    _plain_decoder(c, fields)
    _attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    _windows(c, fields, _every_layer, _qwen_window(c))
    _qwen_experts(c, fields)


def _gemma(c: _Config, fields):
    _plain_decoder(c, fields)
    _attention_bias(c, fields)
    if c.flag("use_bidirectional_attention"):
        raise InputError(f"{c.where}: use_bidirectional_attention is true: expected a causal decoder")


def _gemma2(c: _Config, fields):
    _gemma(c, fields)
    _windows(c, fields, lambda index: index % 2 == 0, _window(c))


def _gemma3(c: _Config, fields):
    _gemma(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    pattern = c.size("sliding_window_pattern")
    _windows(c, fields, lambda index: (index + 1) % pattern != 0, _window(c))


def _gpt2(c: _Config, fields):
    if c.flag("add_cross_attention"):
        raise InputError(f"{c.where}: add_cross_attention is true: expected a decoder-only model")
    _gptj(c, fields)
    fields |= {"learned_positions": fields["max_positions"], "position_limit": fields["max_positions"]}


def _gptj(c: _Config, fields):
    fields |= {
        "ffn": c.size_or("n_inner", 4 * fields["hidden"]),
        "head_dim": _head_dim(c, fields),
        "kv_heads": fields["heads"],
    }


def _falcon(c: _Config, fields):
    new = c.flag("new_decoder_architecture")
    grouped = c.size_or("num_kv_heads", fields["heads"])
    kv_heads = grouped if new else 1 if c.flag("multi_query") else fields["heads"]
    if fields["heads"] % kv_heads:
        raise InputError(
            f"{c.where}: num_kv_heads {kv_heads} does not divide num_attention_heads"
            f" {fields['heads']}: expected a divisor of it"
        )
    norms = c.size_or("num_ln_in_parallel_attn", 2 if new else 1)
    fields |= {
        "ffn": c.size_or("ffn_hidden_size", 4 * fields["hidden"]),
        "head_dim": _head_dim(c, fields),
        "kv_heads": kv_heads,
        "norms_per_layer": 2 if not c.flag("parallel_attn") or norms == 2 else 1,
    }
    fields["qkv_bias"] = fields["out_bias"] = fields["ffn_bias"] = c.flag("bias")


def _opt(c: _Config, fields):
    bias, affine = c.flag("enable_bias"), c.flag("layer_norm_elementwise_affine")
    width = c.size_or("word_embed_proj_dim", fields["hidden"])
    final = c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm")
    fields |= {
        "ffn": c.size("ffn_dim"),
        "head_dim": _head_dim(c, fields),
        "kv_heads": fields["heads"],
        "qkv_bias": bias,
        "out_bias": bias,
        "ffn_bias": bias,
        "norms_per_layer": 2 if affine else 0,
        "final_norm": final and affine,
        "embedding_dim": None if width == fields["hidden"] else width,
        # The table has two rows more than positions: OPT numbers them from 2.
        "learned_positions": fields["max_positions"] + 2,
        "position_limit": fields["max_positions"],
    }


def _gpt_oss(c: _Config, fields):
    _plain_decoder(c, fields)
    _attention_bias(c, fields)
    _windows(c, fields, lambda index: index % 2 == 0, _window(c))
    fields["moe"] = {
        "experts": c.size("num_local_experts" if "num_local_experts" in c.values else "num_experts"),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
        "bias": True,
    }


def _deepseek_v2(c: _Config, fields):
    _deepseek(c, fields)
    fields["ffn_bias"] = c.flag("mlp_bias")


def _deepseek(c: _Config, fields):
    bias = c.flag("attention_bias")
    fields["mla"] = mla = {
        "q_rank": c.size_or("q_lora_rank", None),
        "kv_rank": c.size("kv_lora_rank"),
        "nope_dim": c.size("qk_nope_head_dim"),
        "rope_dim": c.size("qk_rope_head_dim"),
        "v_dim": c.size("v_head_dim"),
        "bias": bias,
    }
    fields |= {
        "ffn": c.size("intermediate_size"),
        "out_bias": bias,
        "head_dim": mla["nope_dim"] + mla["rope_dim"],
        "kv_heads": fields["heads"],
    }
    if c.get("moe_layer_freq") != 1:
        raise InputError(f"{c.where}: moe_layer_freq is {_short(c.get('moe_layer_freq'))}: expected 1")
    dense = c.size_or("first_k_dense_replace", 0) if c.get("first_k_dense_replace") else 0
    if dense > fields["layers"]:
        raise InputError(
            f"{c.where}: first_k_dense_replace is {dense} of {fields['layers']} layers: expected at most"
            " all of them"
        )
    if dense < fields["layers"] and c.has("n_routed_experts"):
        width = c.size("moe_intermediate_size")
        shared = c.size("n_shared_experts", least=0) if c.has("n_shared_experts") else 0
        fields["moe"] = {
            "experts": c.size("n_routed_experts"),
            "active": c.size("num_experts_per_tok"),
            "ffn": width,
            "layers": fields["layers"] - dense,
            "shared_ffn": shared * width,
        }


_LLAMA_DEFAULTS = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}
_MISTRAL_DEFAULTS = _LLAMA_DEFAULTS | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "layer_types": None,
}
_QWEN_DEFAULTS = _LLAMA_DEFAULTS | {
    "vocab_size": 151936,
    "intermediate_size": 22016,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}
_QWEN_MOE_DEFAULTS = _QWEN_DEFAULTS | {
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
}
_GEMMA_DEFAULTS = _LLAMA_DEFAULTS | {
    "vocab_size": 256000,
    "head_dim": 256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "use_bidirectional_attention": None,
}
_GEMMA2_DEFAULTS = _GEMMA_DEFAULTS | {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "sliding_window": 4096,
    "layer_types": None,
}
_DEEPSEEK_DEFAULTS = _LLAMA_DEFAULTS | {
    "vocab_size": 102400,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 0,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "moe_intermediate_size": 1407,
    "moe_layer_freq": 1,
}
_GPT_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}

FAMILIES = {
    "llama": Family(_LLAMA_DEFAULTS, _llama),
    "internlm": Family(_LLAMA_DEFAULTS | {"vocab_size": 103168, "bias": True}, _internlm),
    "mistral": Family(_MISTRAL_DEFAULTS, _mistral),
    "mixtral": Family(
        _MISTRAL_DEFAULTS
        | {"sliding_window": None, "num_local_experts": 8, "num_experts": 8, "num_experts_per_tok": 2},
        _mixtral,
    ),
    "qwen2": Family(_QWEN_DEFAULTS, _qwen2, traits={"qkv_bias": True}),
    "qwen2_moe": Family(
        _QWEN_MOE_DEFAULTS
        | {
            "intermediate_size": 5632,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts_per_tok": 4,
            "num_experts": 60,
            "qkv_bias": True,
        },
        _qwen2_moe,
    ),
    "qwen3": Family(_QWEN_DEFAULTS | {"head_dim": 128}, _qwen3),
    "qwen3_moe": Family(
        _QWEN_MOE_DEFAULTS
        | {
            "intermediate_size": 6144,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 768,
            "num_experts_per_tok": 8,
            "num_experts": 128,
        },
        _qwen3_moe,
    ),
    "gemma": Family(
        _GEMMA_DEFAULTS
        | {
            "hidden_size": 3072,
            "intermediate_size": 24576,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
        },
        _gemma,
    ),
    "gemma2": Family(_GEMMA2_DEFAULTS, _gemma2, traits={"norms_per_layer": 4}),
    "gemma3_text": Family(
        _GEMMA2_DEFAULTS
        | {"vocab_size": 262208, "max_position_embeddings": 131072, "sliding_window_pattern": 6},
        _gemma3,
        traits={"norms_per_layer": 4},
    ),
    "phi3": Family(
        _LLAMA_DEFAULTS
        | {
            "vocab_size": 32064,
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "max_position_embeddings": 4096,
            "sliding_window": None,
            "layer_types": None,
        },
        _mistral,
    ),
    "gpt2": Family(
        {
            "vocab_size": 50257,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 1024,
            "n_inner": None,
            "tie_word_embeddings": True,
            "add_cross_attention": False,
        },
        _gpt2,
        names=_GPT_NAMES,
        traits={
            "gated": False,
            "norm_bias": True,
            "qkv_bias": True,
            "out_bias": True,
            "ffn_bias": True,
        },
    ),
    "gptj": Family(
        {
            "vocab_size": 50400,
            "hidden_size": 4096,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "max_position_embeddings": 2048,
            "n_inner": None,
            "tie_word_embeddings": False,
        },
        _gptj,
        names=_GPT_NAMES,
        # Attention and FFN run in parallel behind one norm.
        traits={
            "gated": False,
            "norm_bias": True,
            "norms_per_layer": 1,
            "ffn_bias": True,
            "head_bias": True,
        },
    ),
    "falcon": Family(
        {
            "vocab_size": 65024,
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "num_kv_heads": None,
            "num_ln_in_parallel_attn": None,
            "new_decoder_architecture": False,
            "multi_query": True,
            "parallel_attn": True,
            "bias": False,
            "ffn_hidden_size": None,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": True,
        },
        _falcon,
        names={"hidden_size": "n_embed"},
        traits={"gated": False, "norm_bias": True},
    ),
    "opt": Family(
        {
            "vocab_size": 50272,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": None,
            "do_layer_norm_before": True,
            "_remove_final_layer_norm": False,
            "enable_bias": True,
            "layer_norm_elementwise_affine": True,
            "tie_word_embeddings": True,
        },
        _opt,
        traits={"gated": False, "norm_bias": True},
    ),
    "gpt_oss": Family(
        _LLAMA_DEFAULTS
        | {
            "vocab_size": 201088,
            "hidden_size": 2880,
            "intermediate_size": 2880,
            "num_hidden_layers": 36,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "max_position_embeddings": 131072,
            "attention_bias": True,
            "sliding_window": 128,
            "layer_types": None,
            "num_local_experts": 128,
            "num_experts": 128,
            "num_experts_per_tok": 4,
        },
        _gpt_oss,
        traits={"sinks": True},
    ),
    "deepseek_v2": Family(_DEEPSEEK_DEFAULTS, _deepseek_v2),
    "deepseek_v3": Family(
        _DEEPSEEK_DEFAULTS
        | {
            "vocab_size": 129280,
            "hidden_size": 7168,
            "intermediate_size": 18432,
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "max_position_embeddings": 4096,
            "first_k_dense_replace": 3,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "moe_intermediate_size": 2048,
            "num_experts_per_tok": 8,
        },
        _deepseek,
    ),
}

ALIASES = {
    "kimi_k2": "deepseek_v3",
    "gemma3": "gemma3_text",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
"""Families whose language model is another family's."""

TEXT_MODELS = {
    "gemma3": "gemma3_text",
    "mistral3": "mistral",
    "llava": "llama",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
}
"""The family of a multimodal model's language model, where its nested config does not say."""

# Keys of models whose layers are not those of a llama: their counts would be wrong, not approximate.
_FOREIGN = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size", "kv_lora_rank",
    "attention_chunk_size", "attn_layer_period", "layers_block_type", "block_types", "full_attention_interval",
    "hybrid_override_pattern", "mamba_d_state", "mamba_expand", "ssm_cfg", "ssm_state_size", "state_size",
    "time_mix_extra_dim", "conv_L_cache", "conv_kernel", "linear_num_key_heads", "index_topk", "attn_config",
    "num_kv_shared_layers", "altup_num_inputs", "laurel_rank", "cross_attention_layers", "position_embedding_type",
)


def _unknown(model_type: str, values: dict, where: str) -> Family:
    """A family that we do not know, read by its llama-like keys, or refused if it is no llama."""
    for key in _FOREIGN:
        if values.get(key):
            raise InputError(
                f"{where}: the family {model_type[:60]!r} is not known and its {key} says that it is no"
                f" plain decoder: expected one of {', '.join(FAMILIES)}"
            )
    required = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    for key in required:
        if key not in values:
            raise InputError(
                f"{where}: the family {model_type[:60]!r} is not known and the config has no {key}:"
                f" expected one of {', '.join(FAMILIES)}, or a llama-like config"
            )
    windowed = "" if values.get("sliding_window") is None else ", with its sliding_window on every layer"
    _warn(
        f"{where}: the family {model_type[:60]!r} is not known: read as a llama by its llama-like keys{windowed};"
        " norms, biases and a tied head that its code fixes would be missed"
    )
    optional = {
        "num_key_value_heads": None,
        "head_dim": None,
        "max_position_embeddings": None,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "sliding_window": None,
        "layer_types": None,
        "use_sliding_window": True,
    }
    return Family(optional, _llama_like)


def _llama_like(c: _Config, fields):
    _llama(c, fields)
    _windows(c, fields, _every_layer, _qwen_window(c))


# --- quantization --------------------------------------------------------------------------------

_BY_METHOD = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "finegrained_fp8": "fp8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
}
_BY_BITS = {4: "int4", 8: "int8"}
_MODELOPT = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4", "W4A8_AWQ": "int4", "INT8_SQ": "int8"}


def _quantized_dtype(quantization, where: str) -> str:
    """The dtype of the weights that a `quantization_config` describes."""
    if not isinstance(quantization, dict):
        raise InputError(
            f"{where}: quantization_config is {_short(quantization)}: expected a JSON object"
        )
    method = quantization.get("quant_method")
    if method is None and quantization.get("bits") is not None:
        method = "gptq"
    if method in _BY_METHOD:
        return _BY_METHOD[method]
    if method == "modelopt":
        return _known(_MODELOPT, quantization.get("quant_algo"), "quant_algo", where)
    if method in ("awq", "gptq", "auto-round", "hqq"):
        bits = quantization.get("bits", quantization.get("w_bit", quantization.get("nbits")))
        return _known(_BY_BITS, bits, "bits", where)
    if method == "bitsandbytes":
        return "int4" if quantization.get("load_in_4bit") else "int8"
    if method == "compressed-tensors":
        return _compressed_tensors(quantization, where)
    raise InputError(
        f"{where}: quantization_config.quant_method is {_short(method)}: expected one of"
        f" {', '.join(_BY_METHOD)}, modelopt, awq, gptq, bitsandbytes, compressed-tensors; take the key"
        " out and give --weights"
    )


def _compressed_tensors(quantization: dict, where: str) -> str:
    groups = quantization.get("config_groups")
    groups = list(groups.values()) if isinstance(groups, dict) else []
    weights = groups[0].get("weights") if groups and isinstance(groups[0], dict) else None
    if not isinstance(weights, dict):
        raise InputError(f"{where}: quantization_config.config_groups has no weights: they are needed")
    if weights.get("type") == "float":
        small = "mxfp4" if weights.get("group_size") == 32 else "nvfp4"
        return _known({4: small, 8: "fp8"}, weights.get("num_bits"), "num_bits", where)
    return _known(_BY_BITS, weights.get("num_bits"), "num_bits", where)


def _known(table: dict, value, key: str, where: str) -> str:
    if isinstance(value, (str, int)) and value in table:
        return table[value]
    raise InputError(
        f"{where}: quantization_config.{key} is {_short(value)}: expected one of"
        f" {', '.join(map(str, table))}"
    )


def _warn(message: str):
    warnings.warn(message, ConfigWarning, stacklevel=2)


def _short(value) -> str:
    """A value as a message shows it: never longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of thousands of digits does not print
        text = "a huge value"
    return text if len(text) <= 60 else f"{text[:57]}..."
