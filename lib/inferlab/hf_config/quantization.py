"""What a `quantization_config` says: the dtype of the weights, and which it leaves as they are."""

from __future__ import annotations

import re
from collections.abc import Callable

from inferlab.hf_config.keys import warn
from inferlab.quantities import InputError, short

_BY_BITS = {4: "int4", 8: "int8"}
_MODELOPT = {
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "INT8_SQ": "int8",
}


def weight_dtype(quantization, where: str) -> str:
    """The dtype of the weights that a `quantization_config` describes."""
    if not isinstance(quantization, dict):
        raise InputError(
            f"{where}: quantization_config is {short(quantization)}: expected a JSON object"
        )
    method = quantization.get("quant_method")
    if method is None and quantization.get("bits") is not None:
        method = "gptq"
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(
            f"{where}: quantization_config.quant_method is {short(method)}: expected one of"
            f" {', '.join(_METHODS)}; take the key out and give --weights"
        )
    found = _METHODS[method]
    return found if isinstance(found, str) else found(quantization, where)


def _modelopt(quantization: dict, where: str) -> str:
    return _known(_MODELOPT, quantization.get("quant_algo"), "quant_algo", where)


def _by_bits(quantization: dict, where: str) -> str:
    bits = quantization.get("bits", quantization.get("w_bit", quantization.get("nbits")))
    return _known(_BY_BITS, bits, "bits", where)


def _bitsandbytes(quantization: dict, where: str) -> str:
    for bits, dtype in _BY_BITS.items():
        if quantization.get(f"load_in_{bits}bit"):
            return dtype
    raise InputError(
        f"{where}: quantization_config has neither load_in_4bit nor load_in_8bit: expected one of"
        " them to be true"
    )


def _compressed_tensors(quantization: dict, where: str) -> str:
    groups = quantization.get("config_groups")
    groups = list(groups.values()) if isinstance(groups, dict) else []
    weights = groups[0].get("weights") if groups and isinstance(groups[0], dict) else None
    if not isinstance(weights, dict):
        raise InputError(
            f"{where}: quantization_config.config_groups has no weights: they are needed"
        )
    if weights.get("type") == "float":
        small = "mxfp4" if weights.get("group_size") == 32 else "nvfp4"
        return _known({4: small, 8: "fp8"}, weights.get("num_bits"), "num_bits", where)
    return _known(_BY_BITS, weights.get("num_bits"), "num_bits", where)


def _known(table: dict, value, key: str, where: str) -> str:
    if isinstance(value, (str, int)) and value in table:
        return table[value]
    raise InputError(
        f"{where}: quantization_config.{key} is {short(value)}: expected one of"
        f" {', '.join(map(str, table))}"
    )


_METHODS: dict[str, str | Callable[[dict, str], str]] = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "finegrained_fp8": "fp8",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "modelopt": _modelopt,
    "awq": _by_bits,
    "gptq": _by_bits,
    "auto-round": _by_bits,
    "hqq": _by_bits,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
}
"""The dtype of each method, or how it is read from the rest of the config."""


# --- what is left in 16 bits ---

_LISTS = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude_modules",
    "llm_int8_skip_modules",
)

# Lookups, norms and encoders beside the language model: no matrix of ours is meant.
_BESIDE = re.compile(r"norm|vision|visual|audio|multi_modal|mtp|sinks")
_PARTS = (
    ("lm_head", re.compile(r"lm_head|embed_out")),
    ("token_embedding", re.compile(r"embed_tokens|word_embeddings|wte")),
    ("router", re.compile(r"(router|(?<!_)gate)\W*$")),
    ("attention_projections", re.compile(r"attn\W*$|attention\W*$")),
)


def kept_in_16_bits(quantization: dict, layers: int, where: str) -> tuple[str, ...]:
    """The components of a step whose matrices the quantization leaves in 16 bits.

    A component counts when its modules are listed for all layers; a list that keeps some layers or
    some matrices of one only is said in a ConfigWarning, and counted as quantized. Without a list
    everything is counted as quantized, which a ConfigWarning says too.
    """
    entries = next((quantization[key] for key in _LISTS if quantization.get(key) is not None), None)
    if entries is None:
        warn(
            f"{where}: quantization_config does not list what it leaves in 16 bits: all weights are"
            " counted in its dtype"
        )
        return ()
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise InputError(
            f"{where}: quantization_config lists {short(entries)}: expected module names"
        )
    everywhere = set(map(str, range(layers)))
    indices: dict[str, set] = {}
    for entry in entries:
        index = re.search(r"layers\.(\d+)\.", entry)
        module = entry[index.end() :] if index else entry
        indices.setdefault(module, set()).update({index[1]} if index else everywhere)
    kept, partly = set(), []
    for module, found in indices.items():
        part = next((name for name, pattern in _PARTS if pattern.search(module)), None)
        if part and found >= everywhere:
            kept.add(part)
        elif not _BESIDE.search(module):
            partly.append(module)
    if partly:
        warn(
            f"{where}: quantization_config leaves part of {', '.join(partly)[:120]} in 16 bits:"
            " counted as quantized"
        )
    return tuple(name for name, _ in _PARTS if name in kept)
