"""Reading the keys of one config: under a family's names, with its defaults, and refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inferlab.quantities import InputError, short


class ConfigWarning(UserWarning):
    """Something that a config leaves open and that was read in the likeliest way."""


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


# No model comes near these: a larger value is a slip, and its counts would mislead.
_LIMITS = {
    "num_hidden_layers": 10_000,
    "layers": 10_000,
    "vocab_size": 100_000_000,
    "vocab": 100_000_000,
    "max_position_embeddings": 10**12,
    "sliding_window": 10**12,
}
_LIMIT = 10_000_000

_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def limit(name: str) -> int:
    """The largest size that is taken for a key of a config, or a field of an architecture."""
    return _LIMITS.get(name, _LIMIT)


class Config:
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
        most = limit(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(
                f"{self.where}: {self.family.names.get(key, key)} is {short(value)}: expected a whole"
                f" number from {least} to {most:,}"
            )
        return value

    def size_or(self, key: str, otherwise):
        """A whole number above zero, or `otherwise` where the key is absent or null."""
        return self.size(key) if self.has(key) else otherwise

    def flag(self, key: str) -> bool:
        """True or false; null counts as false."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"{self.where}: {key} is {short(value)}: expected true or false")
        return bool(value)

    def items(self, key: str) -> list:
        """A list; null counts as empty."""
        value = self.get(key)
        if value is not None and not isinstance(value, list):
            raise InputError(f"{self.where}: {key} is {short(value)}: expected a list")
        return value or []

    def warn_of_defaults(self):
        """Say once which sizes the config left to its family."""
        if self.assumed:
            said = ", ".join(
                f"{key} {self.family.defaults[key]}" for key in dict.fromkeys(self.assumed)
            )
            warn(f"{self.where} leaves out {said}: the family's default is taken")


def warn(message: str):
    """Issue a ConfigWarning."""
    warnings.warn(message, ConfigWarning, stacklevel=2)
