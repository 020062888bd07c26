"""Cost: from seconds of a device to dollars, and from two bills to a break-even day (chapter 3).

Prices are inputs: a rent is true in one place on one day. The model of a request is the shortest
one that prices it: P parameters, 2 P FLOPs a token, weights streamed once a step, the KV cache of
each sequence read at each step. `inferlab.deployment` does the same for a real architecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inferlab.quantities import number, ratio
from inferlab.roofline import bound_time
from inferlab.training import device_seconds, forward_flops, training_flops, training_tokens

HOUR = 3600
DAY = 24 * HOUR
DAYS_A_MONTH = 30
DAYS_A_YEAR = 365


def rent(seconds, price, devices=1):
    """USD for `devices` devices held for `seconds`, at `price` USD an hour each.

    >>> rent(2 * 3600, 3, devices=8)
    48
    """
    return ratio(seconds * number(price, "price", positive=True) * devices, HOUR)


def price_per_million_tokens(price, tokens_per_second, devices=1):
    """USD per million tokens of a service that makes `tokens_per_second` on `devices` devices."""
    rate = number(tokens_per_second, "tokens per second", positive=True)
    return rent(ratio(10**6, rate), price, devices)


def request_flops(parameters, prompt, generated):
    """Forward FLOPs of one request: 2 P (N + T). Attention over the context is left out."""
    return forward_flops(parameters, prompt + generated)


@dataclass(frozen=True)
class RequestTime:
    """Device seconds of one request: its prefill, and its share of the decode steps."""

    prefill_s: Any
    decode_s: Any

    @property
    def total_s(self):
        """Seconds of both phases."""
        return self.prefill_s + self.decode_s


def request_time(
    parameters,
    prompt,
    generated,
    peak,
    bandwidth,
    *,
    batch=1,
    weight_bytes=2,
    kv_bytes=0,
    mfu=1,
    memory_efficiency=1,
) -> RequestTime:
    """Device seconds of one request when `batch` requests share each decode step. Chapter 3.

    peak: FLOP/s; bandwidth: bytes/s; weight_bytes: bytes a parameter; kv_bytes: bytes of KV cache a
    token of context (0: left out). mfu and memory_efficiency scale the two; at 1 the time is a
    floor. A prompt is prefilled alone. Each of the `generated` tokens takes one decode step, whose
    context is the prompt and half the answer on average; a step costs the slower of computing and
    moving.

    Raises InputError for a number that is not above zero, and for a share above one.
    """
    context = prompt + ratio(generated - 1, 2)
    weights = number(weight_bytes, "weight bytes", positive=True) * parameters
    batch = number(batch, "batch", positive=True)
    reached = bandwidth * number(memory_efficiency, "memory_efficiency", positive=True, most=1)
    speeds = (peak * number(mfu, "mfu", positive=True, most=1), reached)
    prefill = bound_time(forward_flops(parameters, prompt), weights, *speeds)
    moved = weights + batch * number(kv_bytes, "kv bytes") * context
    decode_step = bound_time(forward_flops(parameters, batch), moved, *speeds)
    return RequestTime(prefill, ratio(generated * decode_step, batch))


@dataclass(frozen=True)
class TrainingBill:
    """One training run: tokens, FLOPs, device seconds and USD."""

    tokens: Any
    flops: Any
    device_s: Any
    usd: Any


def training_bill(parameters, peak, price, *, tokens_per_parameter=20, mfu=1) -> TrainingBill:
    """The bill of training `parameters` parameters once. Chapter 3.

    peak: FLOP/s of a device; price: USD an hour of it; mfu: the share of the peak that is reached.
    """
    tokens = training_tokens(parameters, tokens_per_parameter)
    flops = training_flops(parameters, tokens)
    seconds = device_seconds(flops, peak, mfu)
    return TrainingBill(tokens, flops, seconds, rent(seconds, price))


@dataclass(frozen=True)
class ServingBill:
    """A service that takes the same requests every day: device seconds and USD a day."""

    request: RequestTime
    device_s_a_day: Any
    usd_a_day: Any

    @property
    def busy_devices(self):
        """Devices that are busy all day: the fewest that serve a load spread evenly."""
        return ratio(self.device_s_a_day, DAY)

    @property
    def usd_a_month(self):
        """USD for 30 days."""
        return DAYS_A_MONTH * self.usd_a_day

    @property
    def usd_a_year(self):
        """USD for 365 days."""
        return DAYS_A_YEAR * self.usd_a_day


def serving_bill(request: RequestTime, requests_a_day, price) -> ServingBill:
    """The bill of `requests_a_day` requests, each of `request` device seconds. Chapter 3.

    It charges busy seconds only: a service that keeps devices for its peak hours pays for idle ones
    too, by the ratio of peak to mean load.
    """
    seconds = number(requests_a_day, "requests a day", positive=True) * request.total_s
    return ServingBill(request, seconds, rent(seconds, price))


def break_even_days(training: TrainingBill, serving: ServingBill):
    """Days of serving after which it has cost as much as the training run did."""
    return ratio(training.usd, serving.usd_a_day)
