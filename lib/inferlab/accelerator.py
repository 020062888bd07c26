"""Accelerator: what a machine can do at most, each number with its source (chapters 8 and 12)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from inferlab import presets
from inferlab.quantities import InputError, bytes_per_element, number, short

# Compute dtypes that run on the peak of another one where a datasheet names only that.
_SAME_PEAK = {"fp16": "bf16", "bf16": "fp16"}

_LEAST, _MOST = 1e-9, 1e30
"""No machine comes near these, and times between them stay finite."""


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """A machine that runs a model.

    name: what to call it. peaks: dense FLOP/s by compute dtype (never the figure with sparsity).
    bandwidth: bytes/s of its main memory. capacity: bytes of it. link_bandwidth: bytes/s to its
    peers, one direction, and link_latency: seconds a message (0: unknown). price: USD an hour
    (None: unknown). sources: for each field, where its number comes from.

    Raises InputError for a number that is not above zero, or far from what any machine does.
    """

    name: str
    peaks: dict[str, Any]
    bandwidth: Any
    capacity: Any = None
    link_bandwidth: Any = None
    link_latency: Any = 0
    price: Any = None
    sources: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.peaks, dict) or not self.peaks:
            raise InputError(
                f"{self.name}: peaks is {short(self.peaks)}: expected a table of FLOP/s by dtype"
            )
        for dtype, peak in self.peaks.items():
            bytes_per_element(dtype)
            self._check(peak, f"peak of {dtype}")
        self._check(self.bandwidth, "bandwidth")
        number(self.link_latency, f"{self.name}: link_latency", most=_MOST)
        if not isinstance(self.sources, dict) or not all(
            isinstance(source, str) for source in self.sources.values()
        ):
            raise InputError(
                f"{self.name}: sources is {short(self.sources)}: expected a table of texts by key"
            )
        for name in ("capacity", "link_bandwidth", "price"):
            if getattr(self, name) is not None:
                self._check(getattr(self, name), name)

    def _check(self, value, name):
        number(value, f"{self.name}: {name}", positive=True, least=_LEAST, most=_MOST)

    def peak(self, dtype: str = "bf16"):
        """Dense peak in FLOP/s at a compute dtype; InputError names the dtypes it is known for.

        bf16 and fp16 stand in for each other. Weights stored at fewer bits than the arithmetic
        runs in (int4 with 16-bit activations) use the peak of the arithmetic.
        """
        for name in (dtype, _SAME_PEAK.get(dtype)):
            if name in self.peaks:
                return self.peaks[name]
        raise InputError(
            f"{self.name} has no {dtype!r} peak: expected one of {', '.join(self.peaks)}"
        )

    @property
    def usual_dtype(self) -> str:
        """The compute dtype that the machine is shown at where none is named: bf16, else fp16, else
        the first that it is known for."""
        return next(
            (each for each in ("bf16", "fp16") if each in self.peaks), next(iter(self.peaks))
        )

    @classmethod
    def preset(cls, name: str) -> Accelerator:
        """A machine that ships with the library or is in the user's preset file (see `names()`)."""
        return presets.find(name, _all(), "accelerator")

    @staticmethod
    def names() -> list[str]:
        """Names of all machines: the user's own, then the shipped ones in their file's order."""
        return list(_all())

    @classmethod
    def from_toml(cls, path) -> dict[str, Accelerator]:
        """The machines of a preset file, by name: a table [accelerators.NAME] each.

        Raises InputError for a file that cannot be read and for a table or key that is wrong.
        """
        return _read(presets.read(path)["accelerators"], str(path))

    def but(self, **changes) -> Accelerator:
        """This machine with some fields changed: `.but(bandwidth=1.6e12)`."""
        return replace(self, **changes)


@cache
def _shipped() -> dict[str, Accelerator]:
    path = resources.files("inferlab") / "data" / "accelerators.toml"
    return _read(presets.read(path)["accelerators"], "accelerators.toml")


def _all() -> dict[str, Accelerator]:
    tables, path = presets.own("accelerators")
    mine = _read(tables, str(path))
    return mine | {name: machine for name, machine in _shipped().items() if name not in mine}


def _read(tables: dict, where: str) -> dict[str, Accelerator]:
    needed = ("peaks", "bandwidth")
    optional = tuple(f.name for f in fields(Accelerator) if f.name not in ("name", *needed))
    machines = {}
    for name, table in tables.items():
        unknown = [key for key in table if key not in needed + optional]
        missing = [key for key in needed if key not in table]
        if unknown or missing:
            fault = (
                f"has the unknown key {short(unknown[0])}" if unknown else f"has no {missing[0]}"
            )
            raise InputError(
                f"{where}: [accelerators.{name}] {fault}: expected the keys {', '.join(needed)}, and"
                f" optionally {', '.join(optional)}"
            )
        machines[name] = Accelerator(name=name, **table)
    return machines
