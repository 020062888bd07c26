"""The ledger: every claim of the followed text beside its live value and a verdict (chapter 14).

data/claims.csv says what the text states, in which section, and how it holds. The value beside it
is computed here each time that it is asked for, by the functions that the chapters use.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from inferlab import cost, training
from inferlab.accelerator import Accelerator
from inferlab.accounting import TEXT
from inferlab.architecture import Architecture
from inferlab.quantities import InputError, bytes_of, ratio, significant
from inferlab.roofline import ridge_point, roofline
from inferlab.step import decode, prefill, step
from inferlab.tables import Table

UNITS = {
    "token": 1, "FLOP": 1, "GPU-day": cost.DAY, "USD": 1, "GB": 1e9, "MB": 1e6, "TFLOP": 1e12,
    "GFLOP": 1e9, "s": 1, "ms": 1e-3, "FLOP/B": 1, "x": 1, "": 1,
}  # fmt: skip
"""The units of the ledger in bytes, seconds, FLOP, USD and plain numbers."""


@dataclass(frozen=True)
class Claim:
    """One statement of the text.

    section: where the text makes it. quantity, formula: what it is about. stated: what the text
    says. unit: of `value`. verdict: whether it holds. note: under which condition, or what is right.
    """

    id: str
    section: str
    quantity: str
    formula: str
    stated: str
    unit: str
    verdict: str
    note: str

    @property
    def value(self) -> float | None:
        """The live value in `unit`; None for a statement that no formula settles."""
        compute = _LIVE.get(self.id)
        return float(compute()) / UNITS[self.unit] if compute else None


def claims() -> list[Claim]:
    """All statements, in the order of the text's sections as the file lists them."""
    path = resources.files("inferlab") / "data" / "claims.csv"
    rows = csv.DictReader(path.read_text("utf-8").splitlines())
    fields = Claim.__dataclass_fields__
    return [Claim(**{name: row[name] for name in fields}) for row in rows]


def claim(id: str) -> Claim:
    """One statement by its id; InputError for an unknown one."""
    for each in claims():
        if each.id == id:
            return each
    raise InputError(f"unknown claim {id!r}: expected an id of data/claims.csv")


def table(rows: list[Claim] | None = None) -> Table:
    """The ledger as a table: section, quantity, what the text states, live value, verdict."""
    columns = dict.fromkeys(("section", "quantity", "the text", "computed", "verdict", "note"), "")
    cells = [
        (c.section, c.quantity, c.stated, _shown(c), c.verdict, c.note)
        for c in (claims() if rows is None else rows)
    ]
    return Table(columns, cells, "Every number of the text, computed.")


def _shown(c: Claim) -> str:
    if c.value is None:
        return ""
    if float(c.value).is_integer() and abs(c.value) < 1e6:
        return f"{c.value:,.0f} {c.unit}".strip()
    if 1e-3 <= abs(c.value) < 1e6:
        return f"{significant(c.value, 5)} {c.unit}".strip()
    return f"{c.value:.4g} {c.unit}".strip()


# --- live values, in base units ------------------------------------------------------------------

# The text's example of section 3.1: a model, its training and its service.
_PARAMETERS = 8 * 10**9
_REQUEST = (512, 128)
_REQUESTS_A_DAY = 10**6
_TRAINING_PRICE, _SERVING_PRICE = 3, 2.5
_MFU = 0.4

# Its example of sections 4 and 5: 3000 tokens of LLaMA-7B, whose weights it rounds to 14 GB.
_PROMPT = 3000
_ROUNDED_WEIGHTS = bytes_of(7 * 10**9, "bf16")

# Its conversation of section 6.2.
_TOKENS_A_TURN, _TOKENS_A_SECOND, _ANSWER, _SECONDS_A_TOKEN = 200, 1000, 200, 0.010


def _model() -> Architecture:
    return Architecture.preset("LLaMA-7B-text")


def _gpu() -> Accelerator:
    return Accelerator.preset("A100-text")


def _prefill(layers=None, prompts=(_PROMPT, 1), accounting=TEXT):
    model = _model() if layers is None else _model().but(layers=layers)
    return step(model, prefill(*prompts), accounting)


def _decode(layers=None, cached=_PROMPT, accounting=TEXT):
    model = _model() if layers is None else _model().but(layers=layers)
    return step(model, decode(cached), accounting)


def _linear(work):
    return work.components["attention_projections"].flops + work.components["ffn"].flops


def _attention(work):
    return work.components["attention_scores_values"].flops


def _training_bill(mfu=1):
    peak = Accelerator.preset("H100-text").peak()
    return cost.training_bill(_PARAMETERS, peak, _TRAINING_PRICE, mfu=mfu)


def _serving_bill():
    gpu = Accelerator.preset("H100-text")
    request = cost.request_time(_PARAMETERS, *_REQUEST, gpu.peak(), gpu.bandwidth)
    return cost.serving_bill(request, _REQUESTS_A_DAY, _SERVING_PRICE)


def _compute_floor():
    month = cost.DAYS_A_MONTH * _REQUESTS_A_DAY * cost.request_flops(_PARAMETERS, *_REQUEST)
    seconds = training.device_seconds(month, Accelerator.preset("H100-text").peak())
    return cost.rent(seconds, _SERVING_PRICE)


def _written() -> int:
    return _prefill(accounting=TEXT.but(kv_write=True)).kv_write


def _decode_traffic():
    work = _decode(accounting=TEXT.but(kv_write=True))
    return _ROUNDED_WEIGHTS + work.kv_read + work.kv_write


def _rounded_traffic() -> float:
    """The traffic of a decode step as the text rounds it before it divides."""
    stated = claim("decode-traffic").stated
    return float(re.match(r"[\d.]+", stated)[0]) * UNITS["GB"]


def _ttft(turn):
    return ratio(_TOKENS_A_TURN * turn, _TOKENS_A_SECOND)


def _kv_after(generated):
    return _model().kv_bytes(_PROMPT + generated - 1)


def _prefill_share(turn):
    from inferlab.serving import prefill_share

    return prefill_share(_ttft(turn), _SECONDS_A_TOKEN, _ANSWER)


@cache
def _wait_for_delay() -> float:
    """Mean wait in the queue with 8 s of network delay between an agent's calls, over that without.

    The experiment of chapter 10 without a prefix cache: a task every five seconds, five minutes of
    them, of which the second half counts. Times vary, since equal ones would march in step.
    """
    from inferlab.serving import ChunkedPrefill, Lognormal, StepModel, agent_trace, simulate

    gpu = StepModel.preset("Llama-3.1-8B", "H100-SXM")

    def wait(network_s):
        trace = agent_trace(
            60, 0.2, calls=12, tool_s=Lognormal(1.0, 0.5), network_s=network_s, seed=1
        )
        served = simulate(trace, gpu, ChunkedPrefill(2048)).requests
        steady = [record.wait for record in served if 150 <= record.arrival < 300]
        return sum(steady) / len(steady)

    return wait(Lognormal(8, 0.5)) / wait(0)


_LIVE: dict[str, Callable[[], Any]] = {
    "train-tokens": lambda: training.training_tokens(_PARAMETERS),
    "train-flops": lambda: _training_bill().flops,
    "train-gpu-days": lambda: _training_bill().device_s,
    "train-cost-peak": lambda: _training_bill().usd,
    "train-cost-40mfu": lambda: _training_bill(_MFU).usd,
    "request-flops": lambda: cost.request_flops(_PARAMETERS, *_REQUEST),
    "serve-month-compute-floor": _compute_floor,
    "serve-month-batch-1": lambda: _serving_bill().usd_a_month,
    "serve-year-vs-train": lambda: _serving_bill().usd_a_year / _training_bill(_MFU).usd,
    "weights-70b": lambda: bytes_of(70 * 10**9, "fp16"),
    "ffn-width": lambda: _model().ffn,
    "prefill-linear-layer": lambda: _linear(_prefill(layers=1)),
    "prefill-attention-layer": lambda: _attention(_prefill(layers=1)),
    "prefill-total": lambda: _prefill().flops,
    "prefill-total-two": lambda: _prefill(prompts=(_PROMPT // 2, 2)).flops,
    "prefill-time-a100": lambda: roofline(_prefill(), _gpu()).compute_s,
    # One token's linear work is 24 d^2, one pair's attention 4 d: they are equal at their ratio.
    "attention-equals-linear": lambda: ratio(
        _linear(_prefill(prompts=(1, 1))), _attention(_prefill(prompts=(1, 1)))
    ),
    "weights-7b": lambda: bytes_of(Architecture.preset("LLaMA-7B").parameters.total, "fp16"),
    "kv-per-token": lambda: _model().kv_bytes(1),
    "kv-3000": lambda: _model().kv_bytes(_PROMPT),
    "prefill-traffic": lambda: _ROUNDED_WEIGHTS + _written(),
    "prefill-flop-per-byte": lambda: ratio(_prefill().flops, _ROUNDED_WEIGHTS + _written()),
    "activations-ignored": lambda: (
        step(
            Architecture.preset("LLaMA-7B"), prefill(_PROMPT), TEXT.but(activations="unfused")
        ).activations
    ),
    "context-limit": lambda: Architecture.preset("LLaMA-7B").max_positions,
    "decode-linear-layer": lambda: _linear(_decode(layers=1)),
    "decode-attention-layer": lambda: _attention(_decode(layers=1)),
    "decode-total": lambda: _decode().flops,
    "decode-compute-time": lambda: roofline(_decode(), _gpu()).compute_s,
    "decode-traffic": _decode_traffic,
    "decode-memory-time": lambda: _rounded_traffic() / _gpu().bandwidth,
    "kv-after-1": lambda: _kv_after(1),
    "kv-after-100": lambda: _kv_after(100),
    "kv-after-2000": lambda: _kv_after(2000),
    "ridge-a100": lambda: ridge_point(_gpu()),
    "ai-prefill-100": lambda: _prefill(prompts=(100, 1)).intensity,
    "ai-decode-100": lambda: _decode(cached=100).intensity,
    "decode-weights-read": lambda: _decode(cached=100).weights,
    "ttft-turn-1": lambda: _ttft(1),
    "ttft-turn-10": lambda: _ttft(10),
    "prefill-majority-10-turns": lambda: _prefill_share(10),
    "network-amplifies-queueing": _wait_for_delay,
    "kv-100k": lambda: _model().kv_bytes(100_000),
    "gpu-name": lambda: Accelerator.preset("A100-SXM-40GB").capacity,
}
