"""Fit the model to measured rows, each row predicted by a fit to the others. Needs NumPy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from inferlab.calibration.groups import Group
from inferlab.calibration.model import NAMES, SHARES, Efficiency, Loads, cache_dtype, loads, times
from inferlab.deployment import smaller_kv
from inferlab.measurements import Case, Measurement, is_count, names, published
from inferlab.quantities import InputError

MIN_ROWS = 5
"""Fewer rows are not fitted on their own: they join the other engines of their accelerator."""

# Where a fit starts and how far rows can pull it: the usual value, and a spread on the scale of the
# logarithm (of the odds, for shares). Few rows leave a parameter here; many override it.
PRIOR = {
    "memory": (0.80, 0.6),
    "compute": (0.65, 0.7),
    "layer_s": (10e-6, 1.0),
    "allreduce_s": (15e-6, 1.0),
    "sequence_s": (5e-6, 0.5),
    "prompt_tokens": (40, 1.0),
    "dequantize_bytes": (0.15, 1.0),
    "quantized_compute": (0.15, 1.0),
    "kv_reread": (0.02, 1.5),
    "interleaved": (0.82, 1.0),
}

ROW_SPREAD = 0.05
"""The relative spread of one measured row about a good model."""

_LEAST_ATTAINED = 1e-3
"""The least share of its bound that a row may reach: below, its unit is a slip."""


def left_out_because(row: Measurement) -> str | None:
    """Why a row is not fitted on, in a few words; None for a row that is."""
    if row.metric == "TTFT_loaded":
        return "the first token under load waits in a queue"
    if not is_count(row.batch):
        return f"its batch is {row.batch[:40] or 'unstated'!r}"
    try:
        row.case  # noqa: B018
        attained = row.attained
    except InputError as error:
        return str(error).removeprefix(f"{row.id} ")
    if not _LEAST_ATTAINED <= attained <= 1:
        how = "beats its bound" if attained > 1 else "reaches next to nothing of its bound"
        return f"it {how}: check its value and unit"
    return None


def usable(row: Measurement) -> Case | None:
    """The row as a case to fit on, or None where `left_out_because` says why not."""
    return None if left_out_because(row) else row.case


def fit(rows: list[Measurement]) -> list[Group]:
    """Fit every accelerator and engine that has enough rows, and every accelerator as a whole.

    Leave-one-out errors are of fits that never saw the row. Needs NumPy.
    """
    machines: dict[str, list[Case]] = {}
    for case in filter(None, map(usable, rows)):
        machines.setdefault(case.deployment.accelerator.name, []).append(case)
    found = []
    for machine, cases in machines.items():
        names_there = dict.fromkeys(case.engine for case in cases)
        found.append((machine, None, cases))
        if len(names_there) > 1:
            found += [(machine, e, [c for c in cases if c.engine == e]) for e in names_there]
    return [_fit_group(*group) for group in found if len(group[2]) >= MIN_ROWS]


def _fit_group(accelerator, engine, cases) -> Group:
    open_dtypes = {smaller_kv(c.deployment.weights) for c in cases if c.deployment.kv is None}
    tried = {kv: Rows.of(cases, kv) for kv in ("bf16", *(open_dtypes - {"bf16"}))}
    fitted = {kv: _minimise(rows) for kv, rows in tried.items()}
    kv = min(tried, key=lambda each: fitted[each][1])
    rows = tried[kv]
    errors = {}
    for i, case in enumerate(cases):
        others, _ = _minimise(rows.take([j for j in range(len(cases)) if j != i]), fitted[kv][0])
        predicted = rows.take([i]).predict(others)[0]
        errors[case.row] = round(float(predicted / case.seconds - 1), 4)
    efficiency = asdict(fitted[kv][0])
    return Group(
        accelerator=accelerator,
        engine=engine,
        efficiency=Efficiency(**{name: float(f"{v:.4g}") for name, v in efficiency.items()}),
        kv=kv,
        served=bool(rows.served.any()),
        prefill_fitted=bool(((rows.kind != "tpot") | rows.served).any()),
        rows=errors,
    )


@dataclass(frozen=True)
class Rows:
    """Cases as arrays, so that one call predicts them all."""

    loads: Loads
    kind: Any
    served: Any
    seconds: Any

    @classmethod
    def of(cls, cases: list[Case], kv: str) -> Rows:
        """The arrays of some cases; kv: the cache dtype where quantized weights leave it open."""
        served = {name: entry["served"] for name, entry in names()["engines"].items()}
        rows = [
            cls(
                loads(
                    c.deployment,
                    c.prompt,
                    c.output,
                    c.batch,
                    cache_dtype(c.deployment, kv),
                    c.cached,
                ),
                c.kind,
                served.get(c.engine, False) and c.loaded,
                c.seconds,
            )
            for c in cases
        ]
        return _stack(rows)

    def take(self, indices) -> Rows:
        """Some of the rows."""
        return _take(self, indices)

    def predict(self, e: Efficiency):
        """Seconds of each row."""
        import numpy as np

        first, later, whole = times(self.loads, e, self.served)
        return np.where(self.kind == "ttft", first, np.where(self.kind == "tpot", later, whole))


def _stack(records):
    """One record whose fields are arrays over those of many."""
    import numpy as np

    if not hasattr(records[0], "__dataclass_fields__"):
        return np.array(records)
    columns = {f.name: [getattr(r, f.name) for r in records] for f in fields(records[0])}
    return type(records[0])(**{name: _stack(values) for name, values in columns.items()})


def _take(record, indices):
    """The record of arrays at some indices."""
    if not hasattr(record, "__dataclass_fields__"):
        return record[indices]
    return type(record)(**{f.name: _take(getattr(record, f.name), indices) for f in fields(record)})


def _minimise(rows: Rows, start: Efficiency | None = None) -> tuple[Efficiency, float]:
    """The parameters that explain some rows best, and the cost: Levenberg and Marquardt's method.

    Each row costs the square of its relative error over ROW_SPREAD, less than that beyond 1.5 of
    them (Huber), and each parameter the square of its distance from PRIOR over its spread.
    """
    import numpy as np

    centre = np.array([_open(name, PRIOR[name][0]) for name in NAMES])
    spread = np.array([PRIOR[name][1] for name in NAMES])
    measured = np.log(rows.seconds)

    def residuals(z):
        return (np.log(rows.predict(_close(z))) - measured) / ROW_SPREAD

    def cost(z):
        size = np.abs(residuals(z))
        return (
            np.where(size < 1.5, size**2, 3 * size - 2.25).sum()
            + (((z - centre) / spread) ** 2).sum()
        )

    z, damping = centre.copy(), 1e-2
    if start:
        z = np.array([_open(name, value) for name, value in asdict(start).items()])
    best = cost(z)
    for _ in range(60):
        r = residuals(z)
        nudges = 1e-4 * np.eye(len(z))
        slopes = np.stack([(residuals(z + n) - residuals(z - n)) / 2e-4 for n in nudges], axis=1)
        weight = np.minimum(1, 1.5 / np.maximum(np.abs(r), 1e-9))
        normal = slopes.T @ (weight[:, None] * slopes) + np.diag(spread**-2)
        descent = -(slopes.T @ (weight * r) + (z - centre) / spread**2)
        for _ in range(10):
            ahead = z + np.linalg.solve(normal + damping * np.diag(np.diag(normal)), descent)
            if cost(ahead) < best:
                break
            damping *= 4
        else:
            break
        gained, z, best = best - cost(ahead), ahead, cost(ahead)
        damping = max(damping / 5, 1e-8)
        if gained < 1e-7 * best:
            break
    return _close(z), float(best)


def _open(name, value):
    """A parameter on the open scale that the fit moves on: log odds of shares, log of the others."""
    return math.log(value / (1 - value)) if name in SHARES else math.log(value)


def _close(z) -> Efficiency:
    values = zip(NAMES, map(float, z), strict=True)
    return Efficiency(
        **{n: 1 / (1 + math.exp(-v)) if n in SHARES else math.exp(v) for n, v in values}
    )


def unseen_models(group: Group) -> dict[str, list[float]]:
    """What to expect of a model that nobody measured on a group's accelerator.

    Model -> the relative errors of its rows (published ones), predicted by a fit to the rows of the
    other models alone. Leaving out one row at a time (`Group.rows`) keeps its neighbours, of the same
    model, in the fit. Chapter 13. Needs NumPy, and some seconds.
    """
    cases = [row.case for row in published() if row.id in group.rows]
    rows = Rows.of(cases, group.kv)
    owners = [case.deployment.architecture.name for case in cases]
    errors = {}
    for name in dict.fromkeys(owners):
        own = [i for i, owner in enumerate(owners) if owner == name]
        others = rows.take([i for i in range(len(cases)) if i not in own])
        efficiency, _ = _minimise(others, group.efficiency)
        predicted = rows.take(own).predict(efficiency)
        errors[name] = [
            float(t / cases[i].seconds - 1) for i, t in zip(own, predicted, strict=True)
        ]
    return errors
