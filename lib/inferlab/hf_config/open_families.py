"""More families: those whose makers publish all, and those of smaller makers.

Read like the ones in `families`, after the same classes of transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inferlab.hf_config.families import (
    FAMILIES,
    GPT_NAMES,
    LLAMA_DEFAULTS,
    MISTRAL_DEFAULTS,
    attention_bias,
    experts_after,
    experts_of,
    gpt2,
    head_dim,
    layer_numbers,
    llama,
    mistral,
    mixtral,
    plain_decoder,
    set_windows,
    switched_window,
    window_of,
)
from inferlab.hf_config.keys import Config, Family, warn
from inferlab.quantities import InputError, short


def _all_heads(fields) -> int:
    """Parameters that normalise queries and keys over their whole width, or each head its own."""
    return (fields["heads"] + fields["kv_heads"]) * fields["head_dim"]


def _biases(fields, value: bool):
    fields["qkv_bias"] = fields["out_bias"] = fields["ffn_bias"] = value


# --- EleutherAI, BigCode, BigScience, MosaicML ---


def _gpt_neox(c: Config, fields):
    fields |= {
        "ffn": c.size("intermediate_size"),
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
    }
    attention_bias(c, fields)


def _gpt_neo(c: Config, fields):
    positions = c.size("max_position_embeddings")
    fields |= {
        "ffn": c.size_or("intermediate_size", 4 * fields["hidden"]),
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
        "learned_positions": positions,
        "position_limit": positions,
    }
    layers = local = 0
    for part in c.items("attention_types"):
        match part:
            case [list(kinds), int(repeats)] if all(kind in ("global", "local") for kind in kinds):
                layers += len(kinds) * repeats
                local += kinds.count("local") * repeats
            case _:
                raise InputError(
                    f"{c.where}: attention_types holds {short(part)}: expected global and local, and"
                    " how often they repeat, as in [['global', 'local'], 12]"
                )
    if layers != fields["layers"]:
        raise InputError(
            f"{c.where}: attention_types gives {layers} layers and num_layers is"
            f" {fields['layers']}: expected as many"
        )
    if local:
        fields |= {"window": c.size("window_size"), "windowed_layers": local}


def _gpt_bigcode(c: Config, fields):
    gpt2(c, fields)
    if c.flag("multi_query"):
        fields["kv_heads"] = 1


def _starcoder2(c: Config, fields):
    mistral(c, fields)
    _biases(fields, c.flag("use_bias"))


def _bloom(c: Config, fields):
    fields |= {
        "ffn": 4 * fields["hidden"],
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
    }


def _mpt(c: Config, fields):
    attention = c.get("attn_config") or {}
    if not isinstance(attention, dict) or attention.get("attn_type") == "multiquery_attention":
        raise InputError(f"{c.where}: attn_config is not of multi-head attention: expected that")
    if attention.get("alibi") is False or not c.flag("no_bias"):
        raise InputError(
            f"{c.where}: attn_config.alibi or no_bias is false: expected an MPT as its makers trained"
        )
    fields |= {
        "ffn": c.size("expansion_ratio") * fields["hidden"],
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
    }


def _nested(c: Config, key: str, defaults: dict[str, Any]) -> Config:
    """The part of a config under a key of its own."""
    values = c.get(key) or {}
    if not isinstance(values, dict):
        raise InputError(f"{c.where}: {key} is {short(values)}: expected a JSON object")
    return Config(values, f"{c.where}: {key}", replace(c.family, defaults=defaults))


def _dbrx(c: Config, fields):
    attention = _nested(c, "attn_config", {"kv_n_heads": 1})
    experts = _nested(
        c, "ffn_config", {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}
    )
    width = experts.size("ffn_hidden_size")
    fields |= {
        "ffn": width,
        "head_dim": head_dim(c, fields),
        "kv_heads": attention.size("kv_n_heads"),
    }
    fields["moe"] = {
        "experts": experts.size("moe_num_experts"),
        "active": experts.size("moe_top_k"),
        "ffn": width,
        "layers": fields["layers"],
    }


# --- Ai2 ---


def _olmo(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)


def _olmo2(c: Config, fields):
    _olmo(c, fields)
    fields["qk_norm"] = _all_heads(fields)


def _olmo3(c: Config, fields):
    _olmo2(c, fields)
    set_windows(c, fields, lambda index: (index + 1) % 4 != 0, window_of(c))


def _olmoe(c: Config, fields):
    _olmo2(c, fields)
    fields["moe"] = {
        "experts": experts_of(c),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
    }


# --- Microsoft, NVIDIA, IBM, Stability, Cohere ---


def _phi(c: Config, fields):
    plain_decoder(c, fields)
    _biases(fields, True)
    if c.flag("qk_layernorm"):
        fields["qk_norm"] = 4 * fields["head_dim"]


def _phimoe(c: Config, fields):
    mixtral(c, fields)
    attention_bias(c, fields)
    fields["head_bias"] = c.flag("lm_head_bias")


def _granitemoe(c: Config, fields):
    mixtral(c, fields)
    attention_bias(c, fields)


def _stablelm(c: Config, fields):
    plain_decoder(c, fields)
    fields["qkv_bias"] = c.flag("use_qkv_bias")
    fields["norms_per_layer"] = 1 if c.flag("use_parallel_residual") else 2
    if c.flag("qk_layernorm"):
        fields["qk_norm"] = _all_heads(fields)


def _cohere(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    if c.flag("use_qk_norm"):
        fields["qk_norm"] = _all_heads(fields)


def _cohere2(c: Config, fields):
    _cohere(c, fields)
    _windows_but_every(c, fields)


def _windows_but_every(c: Config, fields):
    """Windows on all layers but each sliding_window_pattern-th, where layer_types does not say."""
    pattern = (
        1 if c.has("layer_types") or window_of(c) is None else c.size("sliding_window_pattern")
    )
    set_windows(c, fields, lambda index: (index + 1) % pattern != 0, window_of(c))


# --- Z.ai, ByteDance, Baidu, Tencent, MiniMax, LG, Hugging Face ---


def _glm(c: Config, fields):
    plain_decoder(c, fields)
    fields["qkv_bias"] = c.flag("attention_bias")


def _glm4_moe(c: Config, fields):
    _glm(c, fields)
    if c.flag("use_qk_norm"):
        fields["qk_norm"] = 2 * fields["head_dim"]
    dense, shared = (c.size(k, least=0) for k in ("first_k_dense_replace", "n_shared_experts"))
    experts_after(c, fields, dense, shared)


def _seed_oss(c: Config, fields):
    llama(c, fields)
    fields["out_bias"] = c.flag("attention_out_bias")


def _ernie(c: Config, fields):
    plain_decoder(c, fields)
    _biases(fields, c.flag("use_bias"))


def _ernie_moe(c: Config, fields):
    _ernie(c, fields)
    fields["head_bias"] = c.flag("use_bias")
    interval, first = c.size("moe_layer_interval"), c.size("moe_layer_start_index", least=0)
    last = c.size("moe_layer_end_index", least=-1)
    last = fields["layers"] - 1 if last == -1 else last
    layers = sum(
        (index + 1) % interval == 0 and first <= index <= last for index in range(fields["layers"])
    )
    if layers:
        width = c.size("moe_intermediate_size")
        fields["moe"] = {
            "experts": c.size("num_experts"),
            "active": c.size("num_experts_per_tok"),
            "ffn": width,
            "layers": layers,
            "shared_ffn": c.size("moe_num_shared_experts", least=0) * width,
        }


def _hunyuan(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]


def _hunyuan_moe(c: Config, fields):
    _hunyuan(c, fields)
    active = c.get("num_experts_per_tok")
    if isinstance(active, list):
        # Each layer's own; only an equal number on all layers is one architecture here.
        if len(active) < fields["layers"] or any(each != active[0] for each in active):
            raise InputError(
                f"{c.where}: moe_topk is {short(active)}: expected one number, the same on each layer"
            )
        c = Config(c.values | {"num_experts_per_tok": active[0]}, c.where, c.family)
    fields["moe"] = {
        "experts": experts_of(c),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
        "shared_ffn": fields["ffn"],
    }


def _minimax_m2(c: Config, fields):
    mixtral(c, fields)
    fields["qk_norm"] = _all_heads(fields)


def _exaone4(c: Config, fields):
    plain_decoder(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    _windows_but_every(c, fields)


def _rotary(c: Config) -> Callable[[int], bool]:
    """Which layers have rotary positions."""
    listed = c.items("no_rope_layers")
    interval = c.size("no_rope_layer_interval")

    def rotary(index):
        return bool(listed[index]) if index < len(listed) else (index + 1) % interval != 0

    return rotary


def _smollm3(c: Config, fields):
    llama(c, fields)
    rotary = _rotary(c)
    # The layers without rotary positions are the windowed ones, if any.
    set_windows(c, fields, lambda index: not rotary(index), switched_window(c))


# --- Meta, Arcee, the Swiss AI initiative, Kyutai ---


def _apertus(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    if c.get("hidden_act") == "xielu":
        fields["activation_parameters"] = 2


def _helium(c: Config, fields):
    llama(c, fields)
    fields["out_bias"] = False


def _llama4(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    width, fields["ffn"] = fields["ffn"], c.size("intermediate_size_mlp")
    step = c.size("interleave_moe_layer_step")
    sparse = range(step - 1, fields["layers"], step)
    if c.has("moe_layers"):
        sparse = set(layer_numbers(c, "moe_layers")) & set(range(fields["layers"]))
    if sparse:
        fields["moe"] = {
            "experts": experts_of(c),
            "active": c.size("num_experts_per_tok"),
            "ffn": width,
            "layers": len(sparse),
            "shared_ffn": width,
        }
    chunk = c.size_or("attention_chunk_size", None)
    set_windows(c, fields, _rotary(c), chunk, "chunked_attention", "attention_chunk_size")
    if "window" in fields:
        # A token sees its chunk's earlier tokens; the last one of a chunk sees as many as a window.
        warn(
            f"{c.where}: attention in chunks of {chunk} tokens is counted exactly up to {chunk}"
            f" tokens, and beyond as a window of {chunk} keys, which is the most that a token of a"
            " chunk attends to"
        )


_MOE = {"sliding_window": None, "num_experts": 8, "num_experts_per_tok": 2}
_UNGATED = {"gated": False, "norm_bias": True}
_BIASED = _UNGATED | {"qkv_bias": True, "out_bias": True, "ffn_bias": True}
_TIED = {"tie_word_embeddings": True}

_OLMO: dict[str, Any] = LLAMA_DEFAULTS | {"vocab_size": 50304}
_COHERE = LLAMA_DEFAULTS | _TIED | {
    "vocab_size": 256000,
    "hidden_size": 8192,
    "intermediate_size": 22528,
    "num_hidden_layers": 40,
    "num_attention_heads": 64,
    "max_position_embeddings": 8192,
    "use_qk_norm": False,
}  # fmt: skip
_GLM = LLAMA_DEFAULTS | {
    "vocab_size": 151552,
    "intermediate_size": 13696,
    "num_hidden_layers": 40,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "attention_bias": True,
}

OPEN_FAMILIES = {
    "gpt_neox": Family(
        {
            "vocab_size": 50432,
            "hidden_size": 6144,
            "intermediate_size": 24576,
            "num_hidden_layers": 44,
            "num_attention_heads": 64,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            "attention_bias": True,
        },
        _gpt_neox,
        traits=_UNGATED | {"ffn_bias": True},
    ),
    "gpt_neo": Family(
        {
            "vocab_size": 50257,
            "hidden_size": 2048,
            "intermediate_size": None,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "max_position_embeddings": 2048,
            "attention_types": [[["global", "local"], 12]],
            "window_size": 256,
            "tie_word_embeddings": True,
        },
        _gpt_neo,
        names={"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
        traits=_UNGATED | {"out_bias": True, "ffn_bias": True},
    ),
    "codegen": FAMILIES["gptj"],
    "gpt_bigcode": Family(
        FAMILIES["gpt2"].defaults | {"multi_query": True},
        _gpt_bigcode,
        names=GPT_NAMES,
        traits=_BIASED,
    ),
    "starcoder2": Family(
        LLAMA_DEFAULTS | _TIED
        | {
            "vocab_size": 49152,
            "hidden_size": 3072,
            "intermediate_size": 12288,
            "num_hidden_layers": 30,
            "num_attention_heads": 24,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "sliding_window": None,
            "use_bias": True,
        },
        _starcoder2,
        traits=_UNGATED,
    ),
    "bloom": Family(
        {
            "vocab_size": 250880,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "max_position_embeddings": None,
            "tie_word_embeddings": True,
        },
        _bloom,
        names={
            "hidden_size": "n_embed",
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
        },
        traits=_BIASED | {"embedding_norm": True},
    ),
    "mpt": Family(
        {
            "vocab_size": 50368,
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "max_position_embeddings": 2048,
            "expansion_ratio": 4,
            "attn_config": None,
            "no_bias": True,
            "tie_word_embeddings": True,
        },
        _mpt,
        names={
            "hidden_size": "d_model",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "max_position_embeddings": "max_seq_len",
        },
        traits={"gated": False},
    ),
    "dbrx": Family(
        {
            "vocab_size": 32000,
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "max_position_embeddings": 2048,
            "attn_config": None,
            "ffn_config": None,
            "tie_word_embeddings": False,
        },
        _dbrx,
        names={
            "hidden_size": "d_model",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "max_position_embeddings": "max_seq_len",
        },
    ),
    "olmo": Family(_OLMO, _olmo, traits={"norms_per_layer": 0, "final_norm": False}),
    "olmo2": Family(_OLMO, _olmo2),
    "olmo3": Family(_OLMO | {"sliding_window": 4096, "layer_types": None}, _olmo3),
    "olmoe": Family(
        _OLMO
        | {
            "hidden_size": 2048,
            "intermediate_size": 2048,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "max_position_embeddings": 4096,
            "num_experts": 64,
            "num_experts_per_tok": 8,
        },
        _olmoe,
    ),
    "phi": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 51200,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 24,
            "qk_layernorm": False,
        },
        _phi,
        traits=_UNGATED | {"norms_per_layer": 1, "head_bias": True},
    ),
    "phimoe": Family(
        MISTRAL_DEFAULTS
        | _MOE
        | {
            "vocab_size": 32064,
            "intermediate_size": 6400,
            "num_experts": 16,
            "lm_head_bias": False,
        },
        _phimoe,
        traits={"norm_bias": True},
    ),
    "nemotron": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 256000,
            "hidden_size": 6144,
            "intermediate_size": 24576,
            "num_attention_heads": 48,
            "max_position_embeddings": 4096,
        },
        llama,
        traits=_UNGATED,
    ),
    "granite": Family(LLAMA_DEFAULTS, llama),
    "granitemoe": Family(
        LLAMA_DEFAULTS | _MOE | {"layer_types": None},
        _granitemoe,
    ),
    "stablelm": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 50304,
            "hidden_size": 2560,
            "intermediate_size": 6912,
            "num_key_value_heads": 32,
            "max_position_embeddings": 4096,
            "use_qkv_bias": False,
            "qk_layernorm": False,
            "use_parallel_residual": False,
        },
        _stablelm,
        traits={"norm_bias": True},
    ),
    "cohere": Family(_COHERE, _cohere, traits={"norms_per_layer": 1}),
    "cohere2": Family(
        _COHERE | {"sliding_window": 4096, "sliding_window_pattern": 4, "layer_types": None},
        _cohere2,
        traits={"norms_per_layer": 1},
    ),
    "glm": Family(_GLM, _glm),
    "glm4": Family(_GLM, _glm, traits={"norms_per_layer": 4}),
    "glm4_moe": Family(
        _GLM
        | {
            "intermediate_size": 10944,
            "num_hidden_layers": 46,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "head_dim": None,
            "attention_bias": False,
            "use_qk_norm": False,
            "first_k_dense_replace": 1,
            "n_routed_experts": 128,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 1408,
        },
        _glm4_moe,
    ),
    "seed_oss": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 155136,
            "intermediate_size": 27648,
            "num_hidden_layers": 64,
            "num_attention_heads": 80,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 524288,
            "attention_bias": True,
            "attention_out_bias": False,
        },
        _seed_oss,
    ),
    "ernie4_5": Family(
        LLAMA_DEFAULTS | _TIED
        | {
            "vocab_size": 103424,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 18,
            "num_attention_heads": 16,
            "num_key_value_heads": 2,
            "head_dim": 128,
            "max_position_embeddings": 131072,
            "use_bias": False,
        },
        _ernie,
    ),
    "ernie4_5_moe": Family(
        LLAMA_DEFAULTS | _TIED
        | {
            "vocab_size": 103424,
            "hidden_size": 2560,
            "intermediate_size": 12288,
            "num_hidden_layers": 28,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "max_position_embeddings": 131072,
            "use_bias": False,
            "moe_intermediate_size": 1536,
            "num_experts": 64,
            "num_experts_per_tok": 6,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": -1,
            "moe_layer_interval": 1,
        },
        _ernie_moe,
        names={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"},
    ),
    "hunyuan_v1_dense": Family(LLAMA_DEFAULTS | {"vocab_size": 290943}, _hunyuan),
    "hunyuan_v1_moe": Family(
        LLAMA_DEFAULTS | {"vocab_size": 290943, "num_experts": 1, "num_experts_per_tok": 1},
        _hunyuan_moe,
        names={"num_experts_per_tok": "moe_topk"},
    ),
    "minimax_m2": Family(
        LLAMA_DEFAULTS
        | _MOE
        | {
            "vocab_size": 200064,
            "hidden_size": 3072,
            "intermediate_size": 1536,
            "num_hidden_layers": 62,
            "num_attention_heads": 48,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 196608,
            "layer_types": None,
            "num_experts": 256,
            "num_experts_per_tok": 8,
        },
        _minimax_m2,
    ),
    "exaone4": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 102400,
            "intermediate_size": 16384,
            "num_key_value_heads": 32,
            "sliding_window": 4096,
            "sliding_window_pattern": 4,
            "layer_types": None,
        },
        _exaone4,
    ),
    "smollm3": Family(
        LLAMA_DEFAULTS | _TIED
        | {
            "vocab_size": 128256,
            "hidden_size": 2048,
            "num_hidden_layers": 36,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "max_position_embeddings": 32768,
            "use_sliding_window": False,
            "sliding_window": None,
            "layer_types": None,
            "no_rope_layers": None,
            "no_rope_layer_interval": 4,
        },
        _smollm3,
    ),
    "ministral": Family(MISTRAL_DEFAULTS, mistral),
    "ministral3": Family(
        MISTRAL_DEFAULTS
        | {
            "vocab_size": 131072,
            "num_hidden_layers": 34,
            "head_dim": 128,
            "max_position_embeddings": 262144,
            "sliding_window": None,
        },
        mistral,
    ),
    "llama4_text": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 202048,
            "hidden_size": 5120,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "num_hidden_layers": 48,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 131072,
            "num_experts": 16,
            "num_experts_per_tok": 1,
            "moe_layers": None,
            "interleave_moe_layer_step": 1,
            "no_rope_layers": None,
            "no_rope_layer_interval": 4,
            "attention_chunk_size": 8192,
            "layer_types": None,
        },
        _llama4,
    ),
    "arcee": Family(
        LLAMA_DEFAULTS
        | {"hidden_size": 2560, "intermediate_size": 18432, "max_position_embeddings": 4096},
        llama,
        traits={"gated": False},
    ),
    "apertus": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 131072,
            "intermediate_size": 14336,
            "max_position_embeddings": 65536,
            "hidden_act": "xielu",
        },
        _apertus,
        traits={"gated": False},
    ),
    "helium": Family(
        LLAMA_DEFAULTS
        | {
            "vocab_size": 48000,
            "hidden_size": 2560,
            "intermediate_size": 7040,
            "num_hidden_layers": 24,
            "num_attention_heads": 20,
            "num_key_value_heads": 20,
            "head_dim": 128,
            "max_position_embeddings": 4096,
        },
        _helium,
    ),
}  # fmt: skip
