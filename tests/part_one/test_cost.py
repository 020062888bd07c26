"""Dollars: against sums by hand, against limits, and as formulas."""

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from inferlab.cost import (
    break_even_days,
    price_per_million_tokens,
    rent,
    request_flops,
    request_time,
    serving_bill,
    training_bill,
)
from inferlab.derive import equal
from inferlab.derive import symbols as s
from inferlab.quantities import InputError

P = 8 * 10**9
PEAK, BANDWIDTH = 990e12, 3.35e12


def test_rent_by_hand():
    assert rent(7200, 3, devices=8) == 48
    assert price_per_million_tokens(3.6, 1000) == pytest.approx(1.0)
    assert price_per_million_tokens(3.6, 1000, devices=4) == pytest.approx(4.0)


def test_a_request_by_hand():
    time = request_time(P, 512, 128, PEAK, BANDWIDTH)
    assert time.prefill_s == pytest.approx(2 * 8e9 * 512 / 990e12)
    assert time.decode_s == pytest.approx(128 * 16e9 / 3.35e12)
    assert request_flops(P, 512, 128) == 10_240_000_000_000


def test_a_batch_shares_weights_but_not_caches():
    alone = request_time(P, 512, 128, PEAK, BANDWIDTH, kv_bytes=131072)
    many = request_time(P, 512, 128, PEAK, BANDWIDTH, kv_bytes=131072, batch=64)
    cache = 128 * 131072 * (512 + 63.5) / 3.35e12
    assert alone.decode_s == pytest.approx(128 * 16e9 / 3.35e12 + cache)
    assert many.decode_s == pytest.approx(128 * 16e9 / 3.35e12 / 64 + cache)


@given(
    prompt=st.integers(1, 10**5),
    generated=st.integers(1, 10**4),
    batch=st.integers(1, 4096),
    kv_bytes=st.integers(0, 10**6),
)
def test_no_request_beats_its_own_arithmetic(prompt, generated, batch, kv_bytes):
    time = request_time(P, prompt, generated, PEAK, BANDWIDTH, batch=batch, kv_bytes=kv_bytes)
    assert time.total_s >= request_flops(P, prompt, generated) / PEAK * (1 - 1e-12)
    more = request_time(P, prompt, generated, PEAK, BANDWIDTH, batch=batch + 1, kv_bytes=kv_bytes)
    assert more.total_s <= time.total_s * (1 + 1e-12)


def test_a_short_prompt_waits_for_the_weights():
    assert request_time(P, 1, 1, PEAK, BANDWIDTH).prefill_s == pytest.approx(16e9 / 3.35e12)


def test_bills_and_break_even_by_hand():
    training = training_bill(P, PEAK, 3, mfu=0.4)
    assert training.usd == pytest.approx(7.68e21 / 990e12 / 0.4 / 3600 * 3)
    serving = serving_bill(request_time(P, 512, 128, PEAK, BANDWIDTH), 10**6, 2.5)
    assert serving.usd_a_month == pytest.approx(30 * serving.usd_a_day)
    assert serving.usd_a_year == pytest.approx(365 * serving.usd_a_day)
    assert serving.busy_devices == pytest.approx(1e6 * serving.request.total_s / 86400)
    days = break_even_days(training, serving)
    assert days * serving.usd_a_day == pytest.approx(training.usd)


def test_break_even_in_flops_is_three_times_the_training_tokens():
    """2 P a served token against 6 P a trained one: 3 D served tokens cost what D trained did."""
    served = sympy.Symbol("served", positive=True)
    tokens = sympy.solve(
        sympy.Eq(training_bill(s.P, s.pi, 1).flops, request_flops(s.P, 0, served)), served
    )
    assert tokens == [60 * s.P]
    assert equal(training_bill(s.P, s.pi, 1).tokens * 3, 60 * s.P)


def test_bills_are_formulas():
    price, mfu = sympy.symbols("price mfu", positive=True)
    formula = training_bill(s.P, s.pi, price, mfu=mfu).usd
    assert equal(formula, 120 * s.P**2 * price / (3600 * s.pi * mfu))
    request = request_time(s.P, s.N, s.T, s.pi, s.beta, batch=s.B, kv_bytes=7)
    values = {s.P: P, s.N: 512, s.T: 128, s.B: 16, s.pi: PEAK, s.beta: BANDWIDTH}
    numbers = request_time(P, 512, 128, PEAK, BANDWIDTH, batch=16, kv_bytes=7)
    assert float(request.total_s.subs(values)) == pytest.approx(numbers.total_s)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rent(60, 0),
        lambda: rent(60, -1),
        lambda: price_per_million_tokens(3, 0),
        lambda: request_time(P, 512, 128, PEAK, BANDWIDTH, batch=0),
        lambda: request_time(P, 512, 128, PEAK, BANDWIDTH, mfu=0),
        lambda: request_time(0, 512, 128, PEAK, BANDWIDTH),
        lambda: training_bill(P, PEAK, 3, tokens_per_parameter=0),
        lambda: serving_bill(request_time(P, 1, 1, PEAK, BANDWIDTH), 0, 3),
    ],
)
def test_senseless_inputs_are_refused(call):
    with pytest.raises(InputError, match="expected"):
        call()
