"""Calibration: what engines reach of the bound, fitted to published measurements (chapter 9).

A step is taken apart as in the roofline, with an efficiency on each ceiling and the overheads that a
roofline leaves out. Each (accelerator, engine) has its own few parameters, fitted to the rows
that were measured there, and stored with those rows and the error of predicting each from the
others. The parameters trade off against each other: read the prediction, not the physics.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from inferlab import presets
from inferlab.deployment import (
    Deployment,
    Estimate,
    answering,
    estimate,
    mid_context,
    running,
    share,
    smaller_kv,
)
from inferlab.measurements import Case, Measurement, engines, is_count, names, published
from inferlab.quantities import InputError, bytes_per_element, maximum, number, short
from inferlab.step import Sequence

MIN_ROWS = 5
"""Fewer rows are not fitted on their own: they join the other engines of their accelerator."""

_NATIVE = {"fp8": ("fp8",), "fp4": ("fp4", "nvfp4", "mxfp4")}


@dataclass(frozen=True)
class Efficiency:
    """The parameters of one (accelerator, engine).

    memory, compute: the shares of the datasheet's bandwidth and dense peak that are reached.
    layer_s: seconds a layer and step that neither explains (launches, norms, softmax).
    allreduce_s: seconds an all-reduce takes beside its bytes.
    sequence_s: seconds a step, a sequence and a GPU (scheduling, sampling).
    prompt_tokens: tokens of compute that a prefill costs beside its own (padding, launches).
    dequantize_bytes: bytes of traffic that a weight of a format without arithmetic of its own costs
        beside its own. quantized_compute: the same for compute, as a share on top.
    kv_reread: the share of the KV cache that is read once more for each further query head of
        its group (0: each byte once).
    interleaved: the share of the other requests' prefills that falls between a request's tokens.
    """

    memory: float
    compute: float
    layer_s: float
    allreduce_s: float
    sequence_s: float
    prompt_tokens: float
    dequantize_bytes: float
    quantized_compute: float
    kv_reread: float
    interleaved: float


_NAMES = tuple(f.name for f in fields(Efficiency))

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
SHARES = ("memory", "compute", "interleaved")
"""Parameters that lie between 0 and 1; the others are above 0."""

ROW_SPREAD = 0.05
"""The relative spread of one measured row about a good model."""

_LEAST_ATTAINED = 1e-3
"""The least share of its bound that a row may reach: below, its unit is a slip."""


# --- one step --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What one step asks of one GPU, and the machine it asks it of: numbers, or arrays over rows.

    linear_flops: of the matrices that every token passes; head_flops: of the output head, which
    only the last position of each sequence does. converted_weights: weights of a format that the
    machine has no arithmetic for; their products run in 16 bits. prefills: 1 for a step of prompts, 0
    for a decode step.
    """

    weight_bytes: Any
    linear_flops: Any
    head_flops: Any
    attention_flops: Any
    kv_bytes: Any
    converted_weights: Any
    messages: Any
    message_bytes: Any
    tokens: Any
    sequences: Any
    prefills: Any
    layers: Any
    gpus: Any
    query_heads_a_kv_head: Any
    bandwidth: Any
    peak: Any
    link: Any


def load(d: Deployment, sequences: list[Sequence], kv: str, *, prefills=1) -> Load:
    """The load of one step of a deployment, with a cache of dtype `kv` where it leaves that open."""
    part = share(d, sequences, kv=kv)
    attention = part.work.components["attention_scores_values"]
    head = part.work.components["lm_head"]
    size = bytes_per_element(d.weights)
    native = any(d.arithmetic == a and d.weights in formats for a, formats in _NATIVE.items())
    converted = part.work.weights / size if size < 2 and not native else 0
    a = d.architecture
    return Load(
        weight_bytes=float(part.work.weights),
        linear_flops=float(part.work.flops - attention.flops - head.flops),
        head_flops=float(head.flops),
        attention_flops=float(attention.flops),
        kv_bytes=float(attention.bytes),
        converted_weights=float(converted),
        messages=part.messages,
        message_bytes=float(part.message_bytes),
        tokens=part.tokens,
        sequences=part.sequences,
        prefills=prefills,
        layers=a.layers,
        gpus=d.gpus,
        query_heads_a_kv_head=1 if a.mla else a.heads / a.kv_heads,
        bandwidth=d.accelerator.bandwidth,
        peak=d.accelerator.peak("bf16" if converted else d.arithmetic),
        link=d.accelerator.link_bandwidth or math.inf,
    )


def step_seconds(x: Load, e: Efficiency):
    """Seconds of one step: the roofline of its matrices and of its attention, and the overheads."""
    bandwidth, peak = e.memory * x.bandwidth, e.compute * x.peak
    converts = x.converted_weights > 0
    slower = 1 + e.quantized_compute * converts
    flops = x.linear_flops * (1 + e.prompt_tokens * x.prefills / x.tokens) + x.head_flops
    reread = 1 + e.kv_reread * (x.query_heads_a_kv_head - 1)
    return (
        maximum(
            (x.weight_bytes + e.dequantize_bytes * x.converted_weights) / bandwidth,
            flops * slower / peak,
        )
        + maximum(x.kv_bytes * reread / bandwidth, x.attention_flops / peak)
        + x.layers * e.layer_s
        + x.messages * (e.allreduce_s + x.message_bytes / (e.memory * x.link))
        + x.sequences * x.gpus * e.sequence_s
    )


# --- a batch of requests -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Loads:
    """The steps of a batch of requests: its whole prefill, one request's own, and a decode step.

    waves: how many times over the batch is larger than what memory lets decode together.
    """

    prefill: Load
    one_prefill: Load
    decode: Load
    output: Any
    batch: Any
    waves: Any


def cache_dtype(d: Deployment, kv: str) -> str:
    """The cache dtype of a deployment; where it leaves it open, `kv` beside quantized weights."""
    return d.kv or ("bf16" if smaller_kv(d.weights) == "bf16" else kv)


def loads(d: Deployment, prompt, output, batch, kv: str, cached=0) -> Loads:
    """The loads of a batch, of which as many sequences decode together as an engine's memory holds."""
    together = running(d, prompt, output, batch, kv=kv)
    return Loads(
        prefill=load(d, [Sequence(prompt, cached, batch)], kv),
        one_prefill=load(d, [Sequence(prompt, cached)], kv),
        decode=load(d, [Sequence(1, mid_context(prompt, output), together)], kv, prefills=0),
        output=output,
        batch=batch,
        waves=batch / together,
    )


def times(x: Loads, e: Efficiency, served):
    """TTFT of the whole batch, TPOT, and seconds of the whole batch.

    served: requests come and go, so the prefills of the others fall between a request's tokens.
    """
    first = step_seconds(x.prefill, e)
    step = step_seconds(x.decode, e)
    others = x.decode.sequences - 1
    between = served * e.interleaved * others * step_seconds(x.one_prefill, e) / x.output
    # The whole batch pays each prefill once, before its tokens or between them.
    return first, step + between, first + (x.output - 1) * step * x.waves


# --- fitted groups -----------------------------------------------------------------------------------


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

    def estimate(self, d: Deployment, prompt, output, batch=1) -> Estimate:
        """The calibrated times of a batch; a time that no row informs is None."""
        d = answering(d, prompt, output, batch)
        x = loads(d, prompt, output, batch, cache_dtype(d, self.kv))
        first, later, _ = times(x, self.efficiency, self.served)
        if not self.prefill_fitted:
            return Estimate(None, later, None)
        return estimate(first, later, output, batch, x.waves)


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
    _check_keys(record["efficiency"], _NAMES, "efficiency")
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
    for each in engines(engine) if engine else ():
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


# --- fitting -----------------------------------------------------------------------------------------


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

    centre = np.array([_open(name, PRIOR[name][0]) for name in _NAMES])
    spread = np.array([PRIOR[name][1] for name in _NAMES])
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
    values = zip(_NAMES, map(float, z), strict=True)
    return Efficiency(
        **{n: 1 / (1 + math.exp(-v)) if n in SHARES else math.exp(v) for n, v in values}
    )
