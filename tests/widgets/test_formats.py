"""Widgets print numbers as the book does."""

import random

import pytest

from inferlab.quantities import format_duration, format_iec, format_si

pytestmark = pytest.mark.needs("chromium")

rng = random.Random(4)
VALUES = [
    0, 1, 9.9995, 999.95, 999.949, 999_950, 999_949, 1000, 1024, 1023.96, 1555e9, 14457765888, 2**30,
    0.0097, 59.96, 60, 3599, 3600, 86400, 7757583, 1e-9, 1e-15, 43373297664000,
    *(10 ** rng.uniform(-12, 24) for _ in range(300)),
]  # fmt: skip


@pytest.mark.parametrize(
    "call, python",
    [
        ("si(x, 'FLOP')", lambda x: format_si(x, "FLOP")),
        ("si(x, 'B', 3)", lambda x: format_si(x, "B", 3)),
        ("iec(x, 'B')", lambda x: format_iec(x, "B")),
        ("duration(x)", format_duration),
    ],
)
def test_as_in_python(javascript, call, python):
    shown = javascript(f"values => values.map((x) => inferlab.format.{call})", VALUES)
    wrong = [
        (x, ours, python(x)) for x, ours in zip(VALUES, shown, strict=True) if ours != python(x)
    ]
    assert wrong == []


def test_counts_shares_and_money(javascript):
    shown = javascript(
        """() => { const f = inferlab.format; return [f.count(3000), f.count(2.5), f.percent(0.1088), f.money(12345.6),
            f.money(0.0123), f.plural(1, "request"), f.plural(2000, "request"), f.number(200.6431), f.si(NaN), f.si(Infinity)]; }""",
        None,
    )
    assert shown == [
        "3,000", "2.5", "10.9\u00a0%", "$12,300", "$0.0123", "1 request", "2,000 requests", "200.6", "–", "∞",
    ]  # fmt: skip


def test_stops_of_sliders_are_distinct_and_hold_the_start(javascript):
    slider = {"kind": "slider", "stops": [], "low": 1, "high": 1024, "start": 37, "log": True, "integer": True, "step": 1}  # fmt: skip
    stops = javascript("c => inferlab.stopsOf(c)", slider)
    assert stops[:6] == [1, 2, 3, 4, 5, 6]
    assert stops[-1] == 1024
    assert 37 in stops
    assert stops == sorted(set(stops))
