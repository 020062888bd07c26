"""What a simulation leaves behind: who waited where, and how fast it was (chapter 5)."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from inferlab.quantities import InputError, ratio

PHASES = ("queue", "prefill", "transfer", "decode", "tool")
"""What a request can be doing; `tool` is the wait before it, for a tool, a network or a person."""


class Span(NamedTuple):
    """One bar of a Gantt chart: what a request did from `start` to `end` (seconds), and where."""

    request: Hashable
    phase: str
    start: float
    end: float
    gpu: str


class Step(NamedTuple):
    """One step of an engine.

    chunks: what it computed of prompts, as (request, new tokens, tokens cached before).
    decode_tokens: how many sequences decoded, a token each, and decode_cached: how many tokens they
    had cached in all. kv_tokens: KV tokens in memory during the step. waiting: requests in the
    queue at its end.
    """

    start: float
    end: float
    gpu: str
    chunks: tuple[tuple[Hashable, int, int], ...]
    decode_tokens: int
    decode_cached: int
    kv_tokens: int
    waiting: int

    @property
    def prefill_tokens(self) -> int:
        """New tokens of prompts."""
        return sum(new for _, new, _ in self.chunks)


@dataclass(slots=True)
class RequestRecord:
    """The life of one request: times in seconds from the start of the trace.

    hit_tokens: prompt tokens found in the prefix cache at first admission. prefilled_tokens: tokens
    computed by prefills, those computed again after a preemption included. decoded_tokens: tokens
    computed by decode steps. resumed: when a prefill after a preemption gave the next token.
    """

    id: Hashable
    task: Hashable | None
    arrival: float
    prompt_tokens: int
    output_tokens: int
    gpu: str = ""
    admitted: float | None = None
    first_token: float | None = None
    finished: float | None = None
    hit_tokens: int = 0
    prefilled_tokens: int = 0
    decoded_tokens: int = 0
    preemptions: int = 0
    resumed: tuple[float, ...] = ()

    @property
    def wait(self) -> float:
        """Seconds in the queue before the first admission."""
        return self.admitted - self.arrival

    @property
    def ttft(self) -> float:
        """Time to first token."""
        return self.first_token - self.arrival

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first; None for an answer of one token."""
        if self.output_tokens == 1:
            return None
        return (self.finished - self.first_token) / (self.output_tokens - 1)

    @property
    def latency(self) -> float:
        """Arrival to last token."""
        return self.finished - self.arrival


class Log:
    """Collects spans and steps while a simulation runs."""

    def __init__(self, followed, on_finished):
        self.spans = []
        self.steps = []
        self.followed = followed  # ids of requests that others wait for
        self.finished = on_finished  # called with the engine and the sequence

    def span(self, request, phase, start, end, gpu):
        """Note what a request did from `start` to `end`, unless that took no time."""
        if end > start:
            self.spans.append(Span(request, phase, start, end, gpu))


def percentile(values, q) -> float:
    """The q-th percentile (0 to 100) of some numbers, linear between neighbours as in NumPy.

    >>> percentile([1, 2, 3, 4], 50)
    2.5
    """
    ordered = sorted(values)
    if not ordered:
        raise InputError("percentile of no values: the trace has none of what was asked for")
    position = (len(ordered) - 1) * q / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def prefill_share(ttft, tpot, output_tokens):
    """The part of a response that passes before its first token (chapter 11).

    ttft: seconds to the first token, all of it prefill where nobody waits in a queue. tpot: seconds
    for each of the other output_tokens - 1. Numbers, arrays or symbols.

    >>> prefill_share(2, 1, 3)
    Fraction(1, 2)
    """
    return ratio(ttft, ttft + (output_tokens - 1) * tpot)


def mean(values) -> float:
    """The arithmetic mean."""
    values = list(values)
    if not values:
        raise InputError("mean of no values: the trace has none of what was asked for")
    return math.fsum(values) / len(values)


@dataclass(frozen=True)
class GpuUse:
    """One GPU over the whole run: seconds busy, FLOPs done, bytes moved, most KV tokens held."""

    busy_s: float
    flops: float
    bytes: float
    peak_kv_tokens: int


@dataclass(frozen=True)
class Result:
    """The outcome of `simulate`: requests in the order of the trace, spans, steps, and totals."""

    requests: list[RequestRecord]
    spans: list[Span]
    steps: list[Step]
    gpus: dict[str, GpuUse]
    peak_flops: float
    bandwidth: float
    _by_id: dict = field(default_factory=dict, repr=False)
    _decode_times: dict = field(default_factory=dict, repr=False)

    def __post_init__(self):
        self._by_id.update((record.id, record) for record in self.requests)

    def __getitem__(self, id) -> RequestRecord:
        """The record of one request."""
        if id not in self._by_id:
            raise InputError(f"there is no request {id!r} in this result")
        return self._by_id[id]

    @property
    def makespan(self) -> float:
        """Seconds from the first arrival to the last token."""
        first = min(record.arrival for record in self.requests)
        return max(record.finished for record in self.requests) - first

    def values(self, name) -> list[float]:
        """`ttft`, `tpot`, `latency` or `wait` of every request that has it."""
        found = (getattr(record, name) for record in self.requests)
        return [value for value in found if value is not None]

    def percentile(self, name, q) -> float:
        """The q-th percentile of `ttft`, `tpot`, `latency` or `wait` over all requests."""
        return percentile(self.values(name), q)

    def mean(self, name) -> float:
        """The mean of `ttft`, `tpot`, `latency` or `wait` over all requests."""
        return mean(self.values(name))

    @property
    def output_throughput(self) -> float:
        """Generated tokens per second."""
        return sum(record.output_tokens for record in self.requests) / self.makespan

    @property
    def request_throughput(self) -> float:
        """Requests per second."""
        return len(self.requests) / self.makespan

    @property
    def hit_rate(self) -> float:
        """Part of all prompt tokens that the prefix cache had, at first admission."""
        prompts = sum(record.prompt_tokens for record in self.requests)
        return sum(record.hit_tokens for record in self.requests) / prompts

    @property
    def prefilled_tokens(self) -> int:
        """Tokens that prefills computed, repetitions included."""
        return sum(record.prefilled_tokens for record in self.requests)

    @property
    def preemptions(self) -> int:
        """How often a sequence lost its cache to older ones, over all requests."""
        return sum(record.preemptions for record in self.requests)

    @property
    def utilisation(self) -> float:
        """Part of the time that a GPU was running a step, averaged over GPUs."""
        busy = sum(gpu.busy_s for gpu in self.gpus.values())
        return busy / (self.makespan * len(self.gpus))

    @property
    def compute_utilisation(self) -> float:
        """FLOPs done, as a part of what the peaks allow in the time (MFU)."""
        done = sum(gpu.flops for gpu in self.gpus.values())
        return done / (self.peak_flops * self.makespan * len(self.gpus))

    @property
    def bandwidth_utilisation(self) -> float:
        """Bytes moved, as a part of what the bandwidths allow in the time."""
        moved = sum(gpu.bytes for gpu in self.gpus.values())
        return moved / (self.bandwidth * self.makespan * len(self.gpus))

    def seconds_by_phase(self, requests=None) -> dict[str, float]:
        """Total seconds of each phase, over all requests or over the ids in `requests`."""
        wanted = None if requests is None else set(requests)
        seconds = dict.fromkeys(PHASES, 0.0)
        for span in self.spans:
            if wanted is None or span.request in wanted:
                seconds[span.phase] += span.end - span.start
        return seconds

    def token_times(self, id) -> list[float]:
        """When each token of one request came out, from the steps of its GPU.

        A request takes part in every decode step of its engine while it decodes.
        """
        record = self[id]
        times = [record.first_token, *record.resumed]
        for span in self.spans:
            if span.request == id and span.phase == "decode":
                ends, starts = self._decode_steps(span.gpu)
                first = bisect_left(starts, span.start)
                times.extend(ends[first : bisect_right(ends, span.end)])
        return sorted(times)

    def longest_stall(self, id) -> float | None:
        """The longest wait between two tokens of one request; None for an answer of one token."""
        times = self.token_times(id)
        if len(times) < 2:
            return None
        return max(later - sooner for sooner, later in itertools.pairwise(times))

    def _decode_steps(self, gpu):
        if gpu not in self._decode_times:
            steps = [step for step in self.steps if step.gpu == gpu and step.decode_tokens]
            ends, starts = [step.end for step in steps], [step.start for step in steps]
            self._decode_times[gpu] = ends, starts
        return self._decode_times[gpu]

    def events(self) -> list[tuple[float, str, Hashable, str]]:
        """Every change of phase in time order: (seconds, what, request, gpu)."""
        rows = []
        for span in self.spans:
            rows.append((span.start, f"{span.phase} begins", span.request, span.gpu))
        for record in self.requests:
            rows.append((record.arrival, "arrives", record.id, record.gpu))
            rows.append((record.first_token, "first token", record.id, record.gpu))
            rows.append((record.finished, "finishes", record.id, record.gpu))
        return sorted(rows, key=lambda row: (row[0], str(row[2]), row[1]))

    def summary(self) -> dict[str, float]:
        """The figures that a serving benchmark reports, in seconds and tokens per second."""
        figures = {}
        for name in ("ttft", "tpot", "latency"):
            if values := self.values(name):
                figures[f"{name} mean"] = mean(values)
                for q in (50, 90, 99):
                    figures[f"{name} p{q}"] = percentile(values, q)
        figures["requests/s"] = self.request_throughput
        figures["output tokens/s"] = self.output_throughput
        figures["hit rate"] = self.hit_rate
        figures["utilisation"] = self.utilisation
        figures["preemptions"] = self.preemptions
        return figures


def spans_by_request(spans) -> dict[Hashable, list[Span]]:
    """Spans grouped by request, each in time order: the rows of a Gantt chart."""
    rows = defaultdict(list)
    for span in sorted(spans, key=lambda span: span.start):
        rows[span.request].append(span)
    return dict(rows)
