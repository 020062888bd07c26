"""The literals from outside the library are well formed, all in use, and the prose agrees."""

import json
import re
from pathlib import Path

import pytest

from independent import Row, load_rows, parse_printed

ROOT = Path(__file__).resolve().parents[2]


def printed_rows():
    return [row for row in load_rows() if row.number]


def test_every_row_names_its_quantity_unit_and_source():
    for row in load_rows():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", row.id), row
        assert row.what and row.unit and row.source, row
        assert 0 <= row.tolerance <= 0.05, row


def test_every_row_is_held_against_something():
    """By name in a test, by the number that prints it, or by the widget that starts at it."""
    readers = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("exercises/**/*.py")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in readers)
    unused = [
        row.id
        for row in load_rows()
        if not row.number and not row.id.startswith("widget-") and f'"{row.id}"' not in sources
    ]
    assert not unused, f"no test, number or widget reads {unused}"


@pytest.mark.parametrize("row", printed_rows(), ids=lambda row: row.id)
def test_the_prose_prints_the_independent_value(row):
    numbers = json.loads((ROOT / "numbers.json").read_text(encoding="utf-8"))
    row.check_printed(numbers[row.number])


@pytest.mark.parametrize(
    "text, unit, value, half_digit",
    [
        ("43.4 TFLOP", "FLOP", 43.4e12, 0.05e12),
        ("14,457,765,888 FLOP", "FLOP", 14457765888, 0.5),
        ("9.70 ms", "s", 9.70e-3, 0.005e-3),
        ("1.000 GiB", "B", 2**30, 0.0005 * 2**30),
        ("200.6 FLOP/byte", "FLOP/B", 200.6, 0.05),
        ("24,576", "token", 24576, 0.5),
        ("41 %", "1", 0.41, 0.005),
        ("7.68e21 FLOP", "FLOP", 7.68e21, 0.005e21),
    ],
)
def test_a_printed_number_is_read_with_its_unit_and_its_last_digit(text, unit, value, half_digit):
    assert parse_printed(text, unit) == pytest.approx((value, half_digit))


def test_a_printed_number_in_another_unit_is_refused():
    with pytest.raises(ValueError, match="multiple of it"):
        parse_printed("43.4 TFLOP", "B")


def test_twice_the_value_does_not_agree():
    row = Row("prefill-flop", "prefill", 4.337e13, "FLOP", 1e-3, "a sum by hand", "")
    row.check(4.3373e13)
    row.check_printed("43.4 TFLOP")
    with pytest.raises(AssertionError, match="a sum by hand"):
        row.check(2 * 4.3373e13)
    with pytest.raises(AssertionError, match="the prose says"):
        row.check_printed("86.7 TFLOP")
