"""Published measurements of inference, each set beside its bound (chapter 9).

The rows are as their authors published them; `names.toml` beside them says how a name there is
read. A row is what somebody measured: a time, a throughput, or a share of a peak.
"""

from __future__ import annotations

import csv
import re
import tomllib
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import resources

from inferlab import presets
from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.deployment import (
    BOUND,
    Deployment,
    bound,
    compute_dtype,
    mid_context,
    sequences_that_fit,
    share,
    smaller_kv,
    step_bound,
)
from inferlab.matmul import matmul
from inferlab.quantities import InputError, bytes_per_element, number, short
from inferlab.roofline import bound_time
from inferlab.step import Sequence, attention_pairs, decode, prefill, step
from inferlab.training import training_flops

COLUMNS = ("id", "model", "hardware", "n_gpu", "engine", "weight_dtype", "kv_dtype", "batch",
           "input_len", "output_len", "metric", "value", "unit", "source")  # fmt: skip

# What is measured, and whether a smaller value is the better one.
_TIMES = {"TTFT", "TTFT_loaded", "TTFT_no_prefix_reuse", "TTFT_prefix_reuse", "TPOT", "kernel_time",
          "kernel_time_prefill", "kernel_time_decode", "training_gpu_hours"}  # fmt: skip

_LEAST, _MOST = 1e-12, 1e20
"""A value outside is a slip, in any unit."""

# The units that a metric may be given in, each in the base unit of its kind.
_SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6}
_TOKENS = {"tok/s": 1}
_UNITS = {
    "training_gpu_hours": {"GPU-hour": 1},
    "achieved_bandwidth_per_gpu": {"GB/s": 1e9},
    "achieved_compute": {"TFLOP/s": 1e12},
    "MFU": {"fraction": 1},
    "MFU_causal": {"fraction": 1},
}


@dataclass(frozen=True)
class Case:
    """A measured batch of requests in the library's terms.

    kind: 'ttft', 'tpot', or 'total' (seconds of the whole batch). seconds: what was measured.
    prompt, output: tokens a request; cached: tokens of the prompt that were already cached.
    """

    row: str
    deployment: Deployment
    engine: str
    kind: str
    seconds: float
    prompt: int
    output: int
    batch: int
    cached: int = 0

    @property
    def loaded(self) -> bool:
        """Whether more than one request ran."""
        return self.batch > 1


@dataclass(frozen=True)
class Measurement:
    """One published row; the fields are the columns of the file, the value in base units."""

    id: str
    model: str
    hardware: str
    n_gpu: int
    engine: str
    weight_dtype: str
    kv_dtype: str
    batch: str
    input_len: str
    output_len: str
    metric: str
    value: float
    source: str

    @property
    def accelerator(self) -> Accelerator:
        """The machine, by the library's name for it."""
        return accelerator(self.hardware)

    @property
    def weights(self) -> str:
        """The dtype of the weights."""
        return dtype(self.weight_dtype) if self.weight_dtype else "bf16"

    @property
    def deployment(self) -> Deployment:
        """The model on its GPUs."""
        return Deployment(
            architecture=architecture(self.model),
            accelerator=self.accelerator,
            gpus=self.n_gpu,
            weights=self.weights,
            kv=None if self.kv_dtype in ("", "unstated") else dtype(self.kv_dtype),
        )

    # --- the bound ---

    @property
    def attained(self) -> float:
        """The share of the bound that was reached: 1 would be perfect, above 1 is impossible.

        For a time: bound / measured. For a throughput or a rate: measured / bound.
        """
        limit = self.bound
        return limit / self.value if self.metric in _TIMES else self.value / limit

    @property
    def bound(self) -> float:
        """The least time, or the highest rate, that the datasheet allows, in the row's own terms."""
        if self.metric in ("MFU", "MFU_causal"):
            return 1.0
        if self.metric == "achieved_compute":
            return self.accelerator.peak(self.weights)
        if self.metric == "achieved_bandwidth_per_gpu":
            return self.accelerator.bandwidth
        if self.metric.startswith("kernel_time"):
            return self._kernel_bound()
        if self.metric == "training_gpu_hours":
            tokens = names()["training_tokens"].get(self.model)
            if tokens is None:
                raise InputError(f"the training tokens of {self.model!r} are not known")
            parameters = architecture(self.model).parameters.total
            return training_flops(parameters, tokens) / self.accelerator.peak("bf16") / 3600
        if self.batch == "max":
            return self._best_throughput()
        if self.batch == "":
            return self._throughput_ceiling()
        return self._batch_bound()

    def _batch_bound(self) -> float:
        case = self.case
        d = case.deployment
        if self.metric == "TTFT_loaded":
            # Of a request among others, only its own prefill is certain.
            return step_bound(d, prefill(case.prompt))
        if case.kind == "ttft":
            seconds = step_bound(d, [Sequence(case.prompt, case.cached, case.batch)])
        else:
            estimate = bound(d, case.prompt, case.output, case.batch)
            if case.kind == "tpot":
                seconds = estimate.tpot_s
            else:
                seconds = case.batch * case.output / estimate.tokens_per_s
        return self.value * seconds / case.seconds if self.metric in _TIMES else (
            self.value * case.seconds / seconds
        )  # fmt: skip

    def _best_throughput(self) -> float:
        """Output tokens a second of the fullest batch that memory holds, whatever it overlaps."""
        d, prompt, output = self.deployment, _tokens(self.input_len), _tokens(self.output_len)
        kv = d.kv or smaller_kv(d.weights)
        batch = sequences_that_fit(d, mid_context(prompt, output), kv=kv, fraction=1, reserved=0)
        if not batch:
            raise InputError(
                f"{d.architecture.name} does not fit on {d.gpus} x {d.accelerator.name}: a row of"
                " the largest batch needs a model that does"
            )
        first = share(d, prefill(prompt, batch)).work
        later = share(d, decode(mid_context(prompt, output), batch)).work
        flops = first.flops + (output - 1) * later.flops
        moved = first.bytes + (output - 1) * later.bytes
        machine = d.accelerator
        whole = bound_time(flops, moved, machine.peak(d.arithmetic), machine.bandwidth)
        return batch * output / whole

    def _throughput_ceiling(self) -> float:
        """Tokens a second of one GPU (or node) at any batch and length: compute of the weights alone."""
        d = self.deployment
        parts = step(d.architecture, decode(0), BOUND).components
        per_token = sum(part.flops for name, part in parts.items() if name != "lm_head")
        gpus = d.gpus if self.metric.endswith("_per_node") else 1
        return gpus * d.accelerator.peak(d.arithmetic) / per_token

    def _kernel_bound(self) -> float:
        shape = names()["kernels"].get(self.model)
        if shape is None:
            raise InputError(
                f"the kernel {self.model!r} is not known: expected one of"
                f" {', '.join(names()['kernels'])}"
            )
        machine = self.accelerator
        if "k" in shape:
            arithmetic = compute_dtype(self.weights, machine)
            product = matmul(
                _tokens(self.batch), shape["k"], shape["n"], a=self.weights, b=self.weights
            )
            return bound_time(
                product.flops, product.bytes, machine.peak(arithmetic), machine.bandwidth
            )
        heads, width, length = shape["heads"], shape["head_dim"], _tokens(self.input_len)
        new, cached = (length, 0) if self.metric == "kernel_time_prefill" else (1, length - 1)
        flops = 4 * heads * width * attention_pairs(new, cached)
        kv = 2 * shape["kv_heads"] * width * (new + cached)
        moved = bytes_per_element(self.kv_dtype) * (kv + 2 * new * heads * width)
        return bound_time(flops, moved, machine.peak("bf16"), machine.bandwidth)

    # --- the case that a calibration can be fitted on ---

    @property
    def case(self) -> Case:
        """The row as a batch of requests. InputError for a row that is not one.

        Lengths that a row leaves open are taken as small as its kind allows.
        """
        kind, seconds = self._seconds()
        cached, prompt = 0, self.input_len
        if " cached + " in prompt:
            before, prompt = prompt.split(" cached + ")
            cached = _tokens(before)
        return Case(
            row=self.id,
            deployment=self.deployment,
            engine=engine(self.engine),
            kind=kind,
            seconds=seconds,
            prompt=max(_tokens(prompt, 1), 1),
            output=self._output(kind),
            batch=_tokens(self.batch, 1),
            cached=cached,
        )

    def _output(self, kind) -> int:
        tokens = _tokens(self.output_len, 1)
        if not tokens and kind != "ttft":
            raise InputError(
                f"{self.id} measures {self.metric} of 0 output tokens: expected 1 or more"
            )
        return max(tokens, 1)

    def _seconds(self) -> tuple[str, float]:
        batch = _tokens(self.batch, 1)
        if not batch:
            raise InputError(f"{self.id} has a batch of 0: expected 1 request or more")
        if self.metric == "TPOT":
            return "tpot", self.value
        if self.metric.startswith("TTFT"):
            return "ttft", self.value
        if self.metric == "decode_throughput":
            return "tpot", batch / self.value
        if self.metric == "prefill_throughput":
            return "ttft", batch * _tokens(self.input_len) / self.value
        if self.metric in ("output_throughput", "output_throughput_per_gpu"):
            gpus = self.n_gpu if self.metric.endswith("_per_gpu") else 1
            return "total", batch * _tokens(self.output_len) / (self.value * gpus)
        raise InputError(f"{self.id} measures {self.metric}: expected a time or rate of requests")


def is_count(text: str) -> bool:
    """Whether a column holds a number of tokens or requests, in digits."""
    return re.fullmatch("[0-9]{1,12}", text) is not None


def _tokens(text: str, unstated: int | None = None) -> int:
    if is_count(text):
        return int(text)
    if unstated is not None and text in ("", "unstated", "large"):
        return unstated
    raise InputError(f"{text[:40]!r} is not a number of tokens or requests")


def _units(metric: str) -> dict | None:
    """The units that a metric may be given in; None for a metric that is not known."""
    if metric.endswith("throughput") or "throughput_per_" in metric:
        return _TOKENS
    return _UNITS.get(metric, _SECONDS if metric in _TIMES else None)


# --- the published rows, and the names in them ---------------------------------------------------------


@cache
def names() -> dict:
    """How names in the published rows are read: the tables of names.toml."""
    return tomllib.loads(_file("names.toml").read_text("utf-8"))


def _file(name):
    return resources.files("inferlab") / "data" / "published" / name


def published() -> list[Measurement]:
    """All published rows that come with the library."""
    return list(_parse(_file("measured.csv").read_text("utf-8").splitlines(), "measured.csv"))


def read(path) -> list[Measurement]:
    """Rows of a file with the columns of the published one. InputError names the first bad line."""
    return list(_parse(presets.read_text(path).splitlines(), str(path)))


def _parse(lines, where):
    reader = csv.DictReader(lines, restkey="more", restval="")
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: {error}: expected a CSV file") from None
    columns = reader.fieldnames or ()
    if missing := set(COLUMNS) - set(columns):
        raise InputError(f"{where} lacks the columns {', '.join(sorted(missing))}")
    if unread := [name for name in columns if name not in COLUMNS]:
        warnings.warn(
            f"{where}: columns that are not read: {', '.join(unread)[:120]}", stacklevel=3
        )
    seen = {}
    for line, row in rows:
        try:
            measurement = _measurement(row)
        except InputError as error:
            raise InputError(f"{where}, line {line}: {error}") from None
        if measurement.id in seen:
            raise InputError(
                f"{where}, line {line}: the id {measurement.id[:40]!r} is that of line"
                f" {seen[measurement.id]} too: expected one of its own for each row"
            )
        seen[measurement.id] = line
        yield measurement


def _measurement(row: dict) -> Measurement:
    """A row of the file, its value in base units."""
    if "more" in row:
        raise InputError(
            f"{short(row['more'][0])} is beyond the last column: quote fields with commas"
        )
    units = _units(row["metric"])
    if units is not None and row["unit"] not in units:
        raise InputError(
            f"the unit of {row['metric']} is {row['unit'][:40]!r}: expected {' or '.join(units)}"
        )
    try:
        value = float(row["value"])
    except ValueError:
        raise InputError(f"the value is {row['value'][:40]!r}: expected a number") from None
    value = number(value, "the value", positive=True, least=_LEAST, most=_MOST)
    gpus = number(_tokens(row["n_gpu"], 1), "n_gpu", positive=True)
    fields = {key: row[key] for key in COLUMNS if key not in ("value", "n_gpu", "unit")}
    return Measurement(**fields, value=value * (units or {}).get(row["unit"], 1), n_gpu=gpus)


def architecture(name: str) -> Architecture:
    """The model that a published name means."""
    shapes = names()["shapes"]
    if name in shapes:
        return Architecture(name=name, **shapes[name])
    return Architecture.preset(names()["models"].get(name, name))


def accelerator(name: str) -> Accelerator:
    """The accelerator that a published name means."""
    return Accelerator.preset(names()["accelerators"].get(name, name))


def dtype(name: str) -> str:
    """The dtype that a published name means, in whatever case."""
    return names()["dtypes"].get(name, name.casefold())


def engine(label: str) -> str:
    """The engine that a published label means; InputError for a label that is not listed.

    A label may add a version to the name of an engine: 'vllm 0.10.2' is vLLM.
    """
    for known, entry in names()["engines"].items():
        if label.casefold() in map(str.casefold, entry["labels"]):
            return known
    for known in names()["engines"]:
        if label.casefold().startswith(f"{known.casefold()} "):
            return known
    raise InputError(f"unknown engine {label!r}: expected one of {', '.join(names()['engines'])}")


def engines(name: str) -> list[str]:
    """The engines that a name or a published label may mean, likeliest first.

    That of this name, that of this label, then other versions of either: vLLM and vLLM 0.12 for
    'vllm'. InputError names those known.
    """
    known = names()["engines"]
    named = [each for each in known if each.casefold() == name.casefold()]
    found = named or [engine(name)]
    product = found[0].split()[0]
    return found + [each for each in known if each not in found and each.split()[0] == product]
