"""A published `config.json` as the arguments of an `Architecture` (chapters 4 and 13).

A config says what its family's code does not fix. Which keys it may leave out and what that means,
which biases and norms exist and which layers are windowed, differs from family to family. What is
written here follows the configuration and model classes of transformers 5.24, and is held against
them: tests/data/oracle and tests/data/further.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from inferlab import presets
from inferlab.hf_config import families
from inferlab.hf_config.families import ALIASES, TEXT_MODELS, common, unknown
from inferlab.hf_config.keys import Config, ConfigWarning, limit, warn
from inferlab.hf_config.open_families import OPEN_FAMILIES
from inferlab.hf_config.quantization import kept_in_16_bits, weight_dtype
from inferlab.quantities import InputError, number, plain, short

__all__ = ["FAMILIES", "ConfigWarning", "read", "size"]

FAMILIES = families.FAMILIES | OPEN_FAMILIES
"""The families that are counted as their code builds them, by model_type."""


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
            f"{where} has model_type {short(model_type)}: expected the name of a model family, as in a"
            " published config.json"
        )
    family = FAMILIES.get(ALIASES.get(model_type, model_type)) or unknown(model_type, values, where)
    config = Config(values, where, family)
    if values.get("is_encoder_decoder"):
        raise InputError(f"{where}: is_encoder_decoder is true: expected a decoder-only model")
    fields = common(config)
    family.shape(config, fields)
    config.warn_of_defaults()
    if "tie_word_embeddings" in outer and "tie_word_embeddings" not in values:
        fields["tied"] = Config(outer, where, family).flag("tie_word_embeddings")
    fields["name"] = _name(values, outer, source, model_type)
    quantization = values.get("quantization_config") or outer.get("quantization_config")
    if quantization is not None:
        fields["weight_dtype"] = weight_dtype(quantization, where)
        fields["kept_in_16_bits"] = kept_in_16_bits(quantization, fields["layers"], where)
    return fields


def size(value, name: str):
    """A size as a preset may write it: a number, or text such as "32768/3" for an exact ratio.

    name: what the size is of, for the message. Raises InputError for what no model comes near.
    """
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]{1,12}(/[1-9][0-9]{0,11})?", value):
            raise InputError(
                f"{short(value)} is not a size: expected a number or a ratio like '32768/3'"
            )
        value = plain(Fraction(value))
    return number(value, name, positive=True, most=limit(name))


# --- loading -------------------------------------------------------------------------------------


def _load(source) -> tuple[dict, str]:
    if isinstance(source, dict):
        return source, "the config"
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(
            f"the config is {short(source)}: expected the path of a config.json, or its keys in a dict"
        )
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    values = presets.read_json(path, "a model's config.json")
    if not isinstance(values, dict):
        raise InputError(f"{path} holds {short(values)}: expected a JSON object with model_type")
    return values, str(path)


def _language_model(values: dict, where: str) -> tuple[dict, dict]:
    """The config of the language model inside a multimodal one, and the outer config."""
    for key in ("text_config", "llm_config", "language_config"):
        inner = values.get(key)
        if inner is None:
            continue
        if not isinstance(inner, dict):
            raise InputError(f"{where}: {key} is {short(inner)}: expected a JSON object")
        model_type = values.get("model_type")
        nested = TEXT_MODELS.get(model_type) if isinstance(model_type, str) else None
        if nested and "model_type" not in inner:
            inner = inner | {"model_type": nested}
        warn(f"{where}: only the language model ({key}) is counted, not the encoders beside it")
        return inner, values
    if isinstance(values.get("vision_config"), dict):
        warn(f"{where}: only the language model is counted, not the vision encoder beside it")
    return values, {}


def _family_of_class(architectures) -> str | None:
    """The family that a class name such as LlamaForCausalLM means, where model_type is absent."""
    if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
        plain_class = (
            architectures[0].removesuffix("ForCausalLM").removesuffix("LMHeadModel").casefold()
        )
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
