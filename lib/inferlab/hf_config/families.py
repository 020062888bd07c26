"""What each model family's code fixes: the keys a config may leave out, biases, norms, windows.

Follows the configuration and model classes of transformers 5.24.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from inferlab.hf_config.keys import Config, Family, warn
from inferlab.quantities import InputError, short


def common(c: Config) -> dict[str, Any]:
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


def head_dim(c: Config, fields) -> int:
    """The explicit head_dim, else hidden / heads."""
    if c.has("head_dim"):
        return c.size("head_dim")
    if fields["hidden"] % fields["heads"]:
        raise InputError(
            f"{c.where}: hidden_size {fields['hidden']} is not a multiple of num_attention_heads"
            f" {fields['heads']}: give head_dim"
        )
    return fields["hidden"] // fields["heads"]


def _kv_heads(c: Config, fields) -> int:
    kv_heads = c.size_or("num_key_value_heads", fields["heads"])
    if fields["heads"] % kv_heads:
        raise InputError(
            f"{c.where}: num_key_value_heads {kv_heads} does not divide num_attention_heads"
            f" {fields['heads']}: expected a divisor of it"
        )
    return kv_heads


def set_windows(
    c: Config,
    fields,
    windowed: Callable[[int], bool],
    window: int | None,
    kind: str = "sliding_attention",
    key: str = "sliding_window",
):
    """Set the window: `layer_types` decides layer by layer, else `windowed(index)`.

    kind, key: what the windowed layers are called there, and the key that gives the window.
    """
    layers = fields["layers"]
    if c.has("layer_types"):
        types = c.items("layer_types")
        if len(types) != layers:
            raise InputError(
                f"{c.where}: layer_types lists {len(types)} layers and num_hidden_layers is"
                f" {layers}: expected one type a layer"
            )
        for each in types:
            if each not in ("full_attention", "attention", kind):
                raise InputError(
                    f"{c.where}: layer_types holds {short(each)}: expected full_attention or {kind}"
                )
        count = types.count(kind)
        if count and window is None:
            raise InputError(f"{c.where}: layer_types has {kind} but {key} is off")
    else:
        count = 0 if window is None else sum(1 for index in range(layers) if windowed(index))
    if count:
        fields |= {"window": window, "windowed_layers": count}


def window_of(c: Config) -> int | None:
    """The window that the config gives, in tokens; None where it is off."""
    return c.size_or("sliding_window", None)


def every_layer(index: int) -> bool:
    """For `set_windows`: all layers are windowed."""
    return True


def attention_bias(c: Config, fields):
    """Biases of all four projections of attention, or of none."""
    fields["qkv_bias"] = fields["out_bias"] = c.flag("attention_bias")


# --- families ------------------------------------------------------------------------------------


def plain_decoder(c: Config, fields):
    """Grouped-query attention and one feed-forward network a layer, without biases."""
    fields |= {
        "ffn": c.size("intermediate_size"),
        "head_dim": head_dim(c, fields),
        "kv_heads": _kv_heads(c, fields),
    }


def llama(c: Config, fields):
    """A plain decoder whose config may switch biases on."""
    plain_decoder(c, fields)
    fields["ffn_bias"] = c.flag("mlp_bias")
    attention_bias(c, fields)


def _internlm(c: Config, fields):
    plain_decoder(c, fields)
    fields["qkv_bias"] = fields["out_bias"] = c.flag("bias")


def _qwen(c: Config, fields):
    # Its intermediate_size counts the gate's width and the up projection's together.
    fields |= {
        "ffn": c.size("intermediate_size", least=2) // 2,
        "head_dim": c.size("kv_channels"),
        "kv_heads": fields["heads"],
    }
    fields["out_bias"] = fields["ffn_bias"] = not c.flag("no_bias")


def mistral(c: Config, fields):
    """A plain decoder with the window, if any, on all layers."""
    plain_decoder(c, fields)
    set_windows(c, fields, every_layer, window_of(c))


def experts_of(c: Config, least: int = 1) -> int:
    """How many routed experts a layer has: the key has two names."""
    return c.size("num_local_experts" if "num_local_experts" in c.values else "num_experts", least)


def mixtral(c: Config, fields):
    """Mistral's attention, and experts in place of the feed-forward network on all layers."""
    mistral(c, fields)
    fields["moe"] = {
        "experts": experts_of(c),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
    }


def switched_window(c: Config) -> int | None:
    """The window where use_sliding_window switches it on, else None."""
    return window_of(c) if c.flag("use_sliding_window") else None


def _qwen2(c: Config, fields):
    plain_decoder(c, fields)
    first = c.size("max_window_layers", least=0)
    set_windows(c, fields, lambda index: index >= first, switched_window(c))


def _qwen3(c: Config, fields):
    _qwen2(c, fields)
    attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]


def layer_numbers(c: Config, key: str) -> list[int]:
    """A list of layers by their number."""
    for index in c.items(key):
        if isinstance(index, bool) or not isinstance(index, int):
            raise InputError(f"{c.where}: {key} holds {short(index)}: expected layer numbers")
    return c.items(key)


def _sparse_layers(c: Config, fields) -> int:
    """How many layers have experts, by decoder_sparse_step and mlp_only_layers."""
    step = c.size("decoder_sparse_step")
    dense = layer_numbers(c, "mlp_only_layers")
    return sum((i + 1) % step == 0 and i not in dense for i in range(fields["layers"]))


def _qwen_experts(c: Config, fields, **shared):
    layers = _sparse_layers(c, fields)
    experts = experts_of(c, least=0)
    if layers and experts:
        fields["moe"] = {
            "experts": experts,
            "active": c.size("num_experts_per_tok"),
            "ffn": c.size("moe_intermediate_size"),
            "layers": layers,
        } | shared


def _qwen2_moe(c: Config, fields):
    plain_decoder(c, fields)
    fields["qkv_bias"] = c.flag("qkv_bias")
    last = c.size("max_window_layers", least=0)
    set_windows(c, fields, lambda index: index % 2 == 0 and index < last, switched_window(c))
    _qwen_experts(c, fields, shared_ffn=c.size("shared_expert_intermediate_size"), shared_gate=True)


def _qwen3_moe(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    set_windows(c, fields, every_layer, switched_window(c))
    _qwen_experts(c, fields)


def _gemma(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    if c.flag("use_bidirectional_attention"):
        raise InputError(
            f"{c.where}: use_bidirectional_attention is true: expected a causal decoder"
        )


def _gemma2(c: Config, fields):
    _gemma(c, fields)
    set_windows(c, fields, lambda index: index % 2 == 0, window_of(c))


def _gemma3(c: Config, fields):
    _gemma(c, fields)
    fields["qk_norm"] = 2 * fields["head_dim"]
    pattern = c.size("sliding_window_pattern")
    set_windows(c, fields, lambda index: (index + 1) % pattern != 0, window_of(c))


def gpt2(c: Config, fields):
    """Multi-head attention and a table of learned positions."""
    if c.flag("add_cross_attention"):
        raise InputError(f"{c.where}: add_cross_attention is true: expected a decoder-only model")
    _gptj(c, fields)
    positions = c.size("max_position_embeddings")
    fields |= {"learned_positions": positions, "position_limit": positions}


def _gptj(c: Config, fields):
    fields |= {
        "ffn": c.size_or("n_inner", 4 * fields["hidden"]),
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
    }


def _falcon(c: Config, fields):
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
        "head_dim": head_dim(c, fields),
        "kv_heads": kv_heads,
        "norms_per_layer": 2 if not c.flag("parallel_attn") or norms == 2 else 1,
    }
    fields["qkv_bias"] = fields["out_bias"] = fields["ffn_bias"] = c.flag("bias")


def _opt(c: Config, fields):
    bias, affine = c.flag("enable_bias"), c.flag("layer_norm_elementwise_affine")
    width = c.size_or("word_embed_proj_dim", fields["hidden"])
    positions = c.size("max_position_embeddings")
    final = c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm")
    fields |= {
        "ffn": c.size("ffn_dim"),
        "head_dim": head_dim(c, fields),
        "kv_heads": fields["heads"],
        "qkv_bias": bias,
        "out_bias": bias,
        "ffn_bias": bias,
        "norms_per_layer": 2 if affine else 0,
        "final_norm": final and affine,
        "embedding_dim": None if width == fields["hidden"] else width,
        # The table has two rows more than positions: OPT numbers them from 2.
        "learned_positions": positions + 2,
        "position_limit": positions,
    }


def _gpt_oss(c: Config, fields):
    plain_decoder(c, fields)
    attention_bias(c, fields)
    set_windows(c, fields, lambda index: index % 2 == 0, window_of(c))
    fields["moe"] = {
        "experts": experts_of(c),
        "active": c.size("num_experts_per_tok"),
        "ffn": fields["ffn"],
        "layers": fields["layers"],
        "bias": True,
    }


def experts_after(c: Config, fields, dense: int, shared: int):
    """Routed experts on all layers but the first `dense`, beside `shared` ones for every token."""
    if dense > fields["layers"]:
        raise InputError(
            f"{c.where}: first_k_dense_replace is {dense} of {fields['layers']} layers: expected at"
            " most all of them"
        )
    if dense < fields["layers"]:
        width = c.size("moe_intermediate_size")
        fields["moe"] = {
            "experts": c.size("n_routed_experts"),
            "active": c.size("num_experts_per_tok"),
            "ffn": width,
            "layers": fields["layers"] - dense,
            "shared_ffn": shared * width,
        }


def _deepseek_v2(c: Config, fields):
    _deepseek(c, fields)
    fields["ffn_bias"] = c.flag("mlp_bias")


def _deepseek(c: Config, fields):
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
        raise InputError(
            f"{c.where}: moe_layer_freq is {short(c.get('moe_layer_freq'))}: expected 1"
        )
    if c.has("n_routed_experts"):
        dense = c.size("first_k_dense_replace", least=0) if c.has("first_k_dense_replace") else 0
        shared = c.size("n_shared_experts", least=0) if c.has("n_shared_experts") else 0
        experts_after(c, fields, dense, shared)


LLAMA_DEFAULTS = {
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
MISTRAL_DEFAULTS = LLAMA_DEFAULTS | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "layer_types": None,
}
_QWEN_DEFAULTS = LLAMA_DEFAULTS | {
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
_GEMMA_DEFAULTS = LLAMA_DEFAULTS | {
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
_DEEPSEEK_DEFAULTS = LLAMA_DEFAULTS | {
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
GPT_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}

FAMILIES = {
    "llama": Family(LLAMA_DEFAULTS, llama),
    "internlm": Family(LLAMA_DEFAULTS | {"vocab_size": 103168, "bias": True}, _internlm),
    "mistral": Family(MISTRAL_DEFAULTS, mistral),
    "mixtral": Family(
        MISTRAL_DEFAULTS
        | {
            "sliding_window": None,
            "num_experts": 8,
            "num_experts_per_tok": 2,
        },
        mixtral,
    ),
    "qwen": Family(  # not of transformers: its code comes with the published models
        {
            "vocab_size": 151936,
            "hidden_size": 4096,
            "intermediate_size": 22016,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "max_position_embeddings": 8192,
            "no_bias": True,
            "tie_word_embeddings": False,
        },
        _qwen,
        traits={"qkv_bias": True},
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
        LLAMA_DEFAULTS
        | {
            "vocab_size": 32064,
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "max_position_embeddings": 4096,
            "sliding_window": None,
            "layer_types": None,
        },
        mistral,
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
        gpt2,
        names=GPT_NAMES,
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
        names=GPT_NAMES,
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
        LLAMA_DEFAULTS
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
    "llama4": "llama4_text",
    "mistral3": "mistral",
    "llava": "llama",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
}
"""The family of a multimodal model's language model, where the nested config does not say."""

# Keys of models whose layers are not those of a llama: their counts would be wrong, not approximate.
_FOREIGN = re.compile(
    r"expert|moe_|lora_rank|mamba|ssm|state_size|rwkv|time_mix|^conv_|^linear_|_block_types?$"
    r"|block_type|hybrid|attention_chunk|attn_layer|full_attention_interval|index_topk|attn_config"
    r"|kv_shared|altup|laurel|cross_attention|position_embedding_type"
)
# Families that keep a state of fixed size in some layers, where others keep keys and values.
_RECURRENT = re.compile(
    r"mamba|jamba|bamba|zamba|rwkv|xlstm|qwen3_next|qwen3_5|falcon_h1|nemotron_h|granitemoehybrid"
    r"|olmo_hybrid|kimi_linear|recurrent_gemma|lfm2|^minimax$"
)
_KNOWN = "one of those that `inferlab list --help` names"
_NEEDED = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
)


def unknown(model_type: str, values: dict, where: str) -> Family:
    """A family that we do not know, read by its llama-like keys, or refused if it is no llama."""
    if _RECURRENT.search(model_type):
        raise InputError(
            f"{where}: layers of the family {model_type[:60]!r} keep a state of fixed size instead of"
            f" keys and values, which is not counted: expected {_KNOWN}"
        )
    family = f"{where}: the family {model_type[:60]!r} is not known"
    for key, value in values.items():
        if value and _FOREIGN.search(key):
            raise InputError(
                f"{family} and its {key[:60]} says that it is no plain decoder: expected {_KNOWN}"
            )
    for key in _NEEDED:
        if key not in values:
            raise InputError(
                f"{family} and the config has no {key}: expected a llama-like config, or {_KNOWN}"
            )
    activation = values.get("hidden_act")
    if activation not in (None, "silu", "swish"):
        raise InputError(
            f"{family} and its hidden_act {short(activation)} leaves open whether its FFN has two"
            f" matrices or three: expected silu, or {_KNOWN}"
        )
    windows = values.get("sliding_window") is not None and values.get("layer_types") is None
    windowed = ", its sliding_window on every layer" if windows else ""
    warn(
        f"{family}: read as a llama by its llama-like keys{windowed}; norms, biases and a tied head"
        " that its code fixes would be missed"
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


def _llama_like(c: Config, fields):
    llama(c, fields)
    set_windows(c, fields, every_layer, switched_window(c))
