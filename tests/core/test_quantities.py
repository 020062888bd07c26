"""Printing, dtypes and the helpers that read numbers, arrays and symbols."""

from fractions import Fraction

import numpy as np
import pytest
import sympy

from inferlab.quantities import (
    InputError,
    bytes_of,
    bytes_per_element,
    ceil,
    choose,
    format_duration,
    format_iec,
    format_si,
    maximum,
    minimum,
    number,
    ratio,
    significant,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (14_457_765_888, "14.46 GFLOP"),
        (0, "0 FLOP"),
        (999.4, "999.4 FLOP"),
        (999_999, "1.000 MFLOP"),
        (999_940, "999.9 kFLOP"),
        (7.68e21, "7.680 ZFLOP"),
        (-2.5e6, "-2.500 MFLOP"),
        (3e-13, "0.3000 pFLOP"),
    ],
)
def test_format_si(value, text):
    assert format_si(value, "FLOP") == text


def test_binary_units_are_named_as_such():
    assert format_iec(524288) == "512.0 KiB"
    assert format_iec(2**30) == "1.000 GiB"
    assert format_iec(1023.96 * 2**20) == "1.000 GiB"
    assert format_si(524288, "B") == "524.3 kB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0097, "9.70 ms"), (59, "59.0 s"), (90, "1.50 min"), (7757583, "89.8 days")],
)
def test_format_duration(seconds, text):
    assert format_duration(seconds) == text


def test_rounding_up_a_digit_keeps_the_number_of_digits():
    assert significant(9.9996) == "10.00"
    assert significant(0.00099999, 3) == "0.00100"


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("fp32", 4), ("bf16", 2), ("fp8", 1), ("int4", Fraction(1, 2)), ("q4_1", Fraction(20, 32)),
     ("q8_0", Fraction(34, 32)), ("q4_0", Fraction(18, 32)), ("mxfp4", Fraction(17, 32))],
)  # fmt: skip
def test_bytes_per_element(dtype, size):
    assert bytes_per_element(dtype) == size


def test_unknown_dtype_names_the_known_ones():
    with pytest.raises(InputError, match=r"unknown dtype 'bits': expected one of fp32.*int4"):
        bytes_per_element("bits")


def test_bytes_are_whole():
    assert bytes_of(3, "int4") == 2
    assert bytes_of(4, "int4") == 2
    assert isinstance(bytes_of(4, "int4"), int)
    assert bytes_of(np.array([4.0]), "int4").dtype == np.float64


@pytest.mark.parametrize("bad", [True, "7", None, float("nan"), float("inf"), -1, 1j])
def test_number_refuses(bad):
    with pytest.raises(InputError, match=r"tokens is .*: expected a number of zero or more"):
        number(bad, "tokens")


def test_number_refuses_part_of_a_token_and_zero_where_it_must_be_more():
    with pytest.raises(InputError, match=r"tokens is 1\.5: expected a whole number"):
        number(1.5, "tokens", whole=True)
    with pytest.raises(InputError, match="above zero"):
        number(0, "tokens", positive=True)
    with pytest.raises(InputError, match=r"tokens holds -1\.0"):
        number(np.array([1, -1]), "tokens")


def test_arrays_become_float64_since_int64_wraps():
    parameters, tokens = np.array([8_000_000_000]), np.array([160_000_000_000])
    assert int((6 * parameters * tokens)[0]) != 6 * 8_000_000_000 * 160_000_000_000
    safe = 6 * number(parameters, "P") * number(tokens, "D")
    assert safe[0] == 7.68e21


def test_readings_agree():
    x = sympy.Symbol("x", positive=True)
    for value in (2, 5, 7):
        assert minimum(x, 5).subs(x, value) == min(value, 5) == minimum(np.array([value]), 5)[0]
        assert maximum(x, 5).subs(x, value) == max(value, 5) == maximum(np.array([value]), 5)[0]
        assert maximum(x, 5, compare=False).subs(x, value) == max(value, 5)
        assert choose(sympy.Gt(x, 5), 1, 2).subs(x, value) == choose(value > 5, 1, 2)
        assert ceil(x / 2).subs(x, value) == ceil(value / 2) == ceil(np.array([value]) / 2)[0]
        assert ratio(x, 3).subs(x, value) == ratio(value, 3)


def test_ratio_is_exact_and_refuses_zero():
    assert ratio(8, 3) == Fraction(8, 3)
    assert isinstance(ratio(8, 2), int)
    with pytest.raises(InputError, match="8 cannot be divided by zero"):
        ratio(8, 0)
