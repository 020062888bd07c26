"""The fitted parameters of each accelerator and engine: read, written, looked up, and applied."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from inferlab import presets
from inferlab.calibration.model import NAMES, SHARES, Efficiency, cache_dtype, loads, times
from inferlab.deployment import MEMORY_FRACTION, Deployment, Estimate, answering
from inferlab.measurements import Case, engines, published
from inferlab.quantities import InputError, bytes_per_element, number, ratio, short


@dataclass(frozen=True)
class Group:
    """The fitted parameters of an accelerator and engine (engine None: all engines there).

    kv: the cache dtype that explains rows which leave it open. served: see `times`. rows: for each
    row it was fitted on, what the others predict for it, as predicted / measured - 1.
    prefill_fitted: whether any of the rows depends on how fast a prefill is.
    """

    accelerator: str
    engine: str | None
    efficiency: Efficiency
    kv: str
    served: bool
    prefill_fitted: bool
    rows: dict[str, float]

    def error(self, quantile=0.5, rows=None) -> float | None:
        """A quantile of the leave-one-out errors' sizes, of all rows or of some; None of none."""
        chosen = [abs(e) for row, e in self.rows.items() if rows is None or row in rows]
        return quantile_of(chosen, quantile)

    def estimate(
        self, d: Deployment, prompt, output, batch=1, *, fraction=MEMORY_FRACTION
    ) -> Estimate:
        """The calibrated times of a batch; a time that no row informs is None.

        fraction: the share of a GPU's memory that the engine takes.
        """
        d = answering(d, prompt, output, batch)
        x = loads(d, prompt, output, batch, cache_dtype(d, self.kv), fraction=fraction)
        first, later, whole = times(x, self.efficiency, self.served)
        if not self.prefill_fitted:
            return Estimate(None, later, None)
        return Estimate(first, later, ratio(batch * output, whole))


def quantile_of(values, quantile) -> float | None:
    """A quantile of some numbers by linear interpolation, as NumPy's; None of no numbers."""
    ordered = sorted(values)
    if not ordered:
        return None
    place = quantile * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


Groups = dict[tuple[str, str | None], Group]


@cache
def groups() -> Groups:
    """The fitted groups that the library ships, by accelerator and engine."""
    path = resources.files("inferlab") / "data" / "published" / "calibration.json"
    return _groups(json.loads(path.read_text("utf-8")), path.name)


def read(path) -> Groups:
    """The groups of a file that `inferlab fit` wrote. InputError for a file that is none."""
    return _groups(presets.read_json(path, "a file that `inferlab fit` wrote"), path)


def _groups(report, where) -> Groups:
    """The groups of a report that `write` wrote."""
    records = report.get("groups") if isinstance(report, dict) else None
    try:
        if not isinstance(records, list) or not records:
            raise InputError(f"groups is {short(records)}: expected a list of fitted groups")
        found = [_group(record) for record in records]
    except InputError as error:
        raise InputError(
            f"{where} is not a calibration that `inferlab fit` wrote: {error}"
        ) from None
    return {(group.accelerator, group.engine): group for group in found}


_KINDS = {
    "accelerator": (str, "a name"),
    "engine": ((str, type(None)), "a name or null"),
    "efficiency": (dict, "an object"),
    "kv": (str, "a dtype"),
    "served": (bool, "true or false"),
    "prefill_fitted": (bool, "true or false"),
    "rows": (dict, "an object"),
}
"""What each field of a group is in JSON."""

_LARGEST = 1e6
"""No fitted parameter or error comes near it."""


def _group(record) -> Group:
    """One fitted group. InputError for a field that no fit would have written."""
    _check_keys(record, _KINDS, "a group")
    for key, (kind, expected) in _KINDS.items():
        if not isinstance(record[key], kind):
            raise InputError(f"{key} is {short(record[key])}: expected {expected}")
    bytes_per_element(record["kv"])
    _check_keys(record["efficiency"], NAMES, "efficiency")
    for name, value in record["efficiency"].items():
        # A share of nothing would take forever, and one above 1 would beat the bound.
        least = 1e-3 if name in ("memory", "compute") else 0
        number(value, name, least=least, most=1 if name in SHARES else _LARGEST)
    if not record["rows"]:
        raise InputError("rows is {}: expected the error of each fitted row")
    for row, error in record["rows"].items():
        if (
            isinstance(error, bool)
            or not isinstance(error, (int, float))
            or not -1 <= error < _LARGEST
        ):
            raise InputError(f"the error of row {row[:40]!r} is {short(error)}: expected a number")
    return Group(**(record | {"efficiency": Efficiency(**record["efficiency"])}))


def _check_keys(record, keys, what):
    if not isinstance(record, dict) or set(record) != set(keys):
        raise InputError(f"{what} is {short(record)}: expected the keys {', '.join(keys)}")


def write(found: list[Group], path):
    """Write groups to a file that `read` takes."""
    text = json.dumps({"groups": [asdict(group) for group in found]}, indent=1)
    try:
        Path(path).write_text(text + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error}): give another path") from None


def find(accelerator: str, engine: str | None = None, known: Groups | None = None) -> Group | None:
    """The group for an accelerator and engine: its own, or that of all engines there; else None.

    known: the groups to look in (default: the shipped ones). Raises InputError for an engine that
    the library does not know.
    """
    known = groups() if known is None else known
    for each in engines(engine) if engine is not None else ():
        if (accelerator, each) in known:
            return known[accelerator, each]
    return known.get((accelerator, None))


def left_out() -> dict[str, float]:
    """Each fitted row's leave-one-out error, in the group that answers for its engine."""
    errors = {}
    # An engine's own group comes after that of all engines, and replaces it.
    for group in sorted(groups().values(), key=lambda group: group.engine is not None):
        errors |= group.rows
    return errors


@dataclass(frozen=True)
class Checked:
    """A fitted row: the case, its bound / measured - 1, and its leave-one-out error."""

    case: Case
    bound_error: float
    error: float


def checked() -> list[Checked]:
    """Every fitted row of the published ones with the error of its bound and of its calibration."""
    errors = left_out()
    return [
        Checked(row.case, row.attained - 1, errors[row.id])
        for row in published()
        if row.id in errors
    ]


def summary(rows: list[Checked]) -> tuple:
    """How many rows, the median size of the bound's error, and of the calibrated one the median and
    the 90th percentile."""
    bounds = [abs(row.bound_error) for row in rows]
    errors = [abs(row.error) for row in rows]
    return (
        len(rows),
        quantile_of(bounds, 0.5),
        quantile_of(errors, 0.5),
        quantile_of(errors, 0.9),
    )
