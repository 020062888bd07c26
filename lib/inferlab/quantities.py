"""Quantities: bytes per dtype, helpers that read numbers, arrays and symbols, and printing.

Inside the library everything is plain bytes, seconds and FLOP. Units are chosen when a number is
printed, and only here: decimal (SI) by default, binary (IEC) on request and named as such.

A formula of this library is one plain function that is read four ways: with ints it is exact, with
NumPy arrays it sweeps, with SymPy symbols it is the derivation, and printed it is the JavaScript of
a widget. `minimum`, `maximum`, `ceil`, `ratio` and `choose` are the few operations for which the
readings differ in Python; all other formulas use only `+ - * /`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Rational, Real

BITS_PER_ELEMENT = {
    "fp32": 32,
    "tf32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "int8": 8,
    "fp4": 4,
    "int4": 4,
    # Block formats: the scales that each block of elements carries are part of the cost.
    "mxfp4": Fraction(17, 4),  # 32 elements of 4 bits share one 8-bit exponent
    "nvfp4": Fraction(9, 2),  # 16 elements of 4 bits share one fp8 scale
    "q8_0": Fraction(17, 2),  # GGUF: 32 elements of 8 bits and one fp16 scale
    "q4_0": Fraction(9, 2),  # GGUF: 32 elements of 4 bits and one fp16 scale
    "q4_1": 5,  # GGUF: 32 elements of 4 bits, an fp16 scale and an fp16 minimum
}


class InputError(ValueError):
    """A value the library cannot use: what it was, what was expected, what to do."""


def bytes_per_element(dtype):
    """Bytes of one element of `dtype`: an int, or a Fraction for sub-byte and block formats.

    >>> bytes_per_element("bf16"), bytes_per_element("int4")
    (2, Fraction(1, 2))

    A number or symbol is taken as the byte count itself, so that derivations can keep it open.
    Raises InputError for a name that is not in `BITS_PER_ELEMENT`.
    """
    if not isinstance(dtype, str):
        return number(dtype, "bytes per element", positive=True)
    if dtype not in BITS_PER_ELEMENT:
        raise InputError(f"unknown dtype {dtype!r}: expected one of {', '.join(BITS_PER_ELEMENT)}")
    return plain(Fraction(BITS_PER_ELEMENT[dtype]) / 8)


def bytes_of(elements, dtype):
    """Bytes of `elements` elements of `dtype`, exact counts rounded to a byte (halves up).

    >>> bytes_of(3, "int4")
    2
    """
    size = bytes_per_element(dtype)
    if is_array(elements):
        return elements * (float(size) if isinstance(size, Fraction) else size)
    total = elements * size
    return math.floor(total + Fraction(1, 2)) if isinstance(total, Fraction) else total


# --- reading numbers, arrays and symbols alike -------------------------------------------------


def is_symbolic(value) -> bool:
    """True for a SymPy expression. Asks the type, so that SymPy need not be loaded."""
    return hasattr(value, "free_symbols")


def is_array(value) -> bool:
    """True for a NumPy array. Asks the type, so that NumPy need not be loaded."""
    return hasattr(value, "__array_namespace__") or hasattr(value, "dtype")


def plain(value):
    """A Fraction that is whole becomes an int; anything else passes through."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


def short(value) -> str:
    """A value as a message shows it: never longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of thousands of digits does not print
        text = "a huge value"
    return text if len(text) <= 60 else f"{text[:57]}..."


def number(value, name, *, positive=False, whole=False, least=None, most=None):
    """`value` as the library computes with it, refused in one sentence if it cannot.

    Ints and Fractions stay exact; NumPy integer arrays become float64, since int64 wraps silently
    (6 x 8e9 x 1.6e11 would be 6.15e18); symbols pass through. `positive` asks for more than zero
    instead of zero or more, `whole` for an integer, `least` and `most` for a range.

    Raises InputError for booleans, text, NaN, infinities and values out of range.
    """
    if is_symbolic(value):
        return value
    limits = (positive, whole, least, most)
    if is_array(value):
        return _numbers(value, name, limits)
    known = _exact(value)
    if known is None or not _allowed(known, *limits):
        raise InputError(f"{name} is {short(value)}: expected {_expected(*limits)}")
    return int(known) if whole else known


def _exact(value):
    """A finite real number as an int, a Fraction or a float; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return plain(Fraction(value))
    return value if math.isfinite(value) else None


def _numbers(value, name, limits):
    """An array as float64, refused for the first number in it that is not allowed."""
    import numpy as np

    array = np.asarray(value)
    expected = f"expected {_expected(*limits)} in each place"
    if array.dtype.kind not in "uif":
        raise InputError(f"{name} is an array of {array.dtype}: {expected}")
    array = array.astype(np.float64)
    with np.errstate(invalid="ignore"):  # NaN and infinities are refused all the same
        bad = ~(np.isfinite(array) & _allowed(array, *limits))
    if bad.any():
        raise InputError(f"{name} holds {array[bad].flat[0]}: {expected}")
    return array


def _allowed(x, positive, whole, least, most):
    """Whether a number is within its limits; of an array, which ones are."""
    allowed = x > 0 if positive else x >= 0
    if whole:
        allowed = allowed & (x % 1 == 0)
    if least is not None:
        allowed = allowed & (x >= least)
    if most is not None:
        allowed = allowed & (x <= most)
    return allowed


def _expected(positive, whole, least, most) -> str:
    """What `number` asks for, in words."""
    kind = "a whole number" if whole else "a number"
    words = [f"{kind} {'above zero' if positive else 'of zero or more'}"]
    if least is not None:
        words.append(f"at least {least:,}")
    if most is not None:
        words.append(f"at most {most:,}")
    return ", ".join(words)


def minimum(first, *others):
    """The least of its arguments: numbers, arrays (elementwise) or symbols."""
    return _fold(first, others, min, "minimum", "Min")


def maximum(first, *others, compare=True):
    """The greatest of its arguments: numbers, arrays (elementwise) or symbols.

    compare: whether to drop symbolic arguments that are never the greatest. That search takes
    seconds for long expressions, and finds nothing in those that trade places.
    """
    return _fold(first, others, max, "maximum", "Max", compare)


def _fold(first, others, of_numbers, numpy_name, sympy_name, compare=True):
    values = (first, *others)
    if any(map(is_symbolic, values)):
        import sympy

        return getattr(sympy, sympy_name)(*map(to_sympy, values), evaluate=compare)
    if any(map(is_array, values)):
        import numpy as np

        result = first
        for value in others:
            result = getattr(np, numpy_name)(result, value)
        return result
    return of_numbers(values)


def ceil(value):
    """The least integer not below `value`: a number, an array (elementwise) or a symbol."""
    if is_symbolic(value):
        import sympy

        return sympy.ceiling(value)
    if is_array(value):
        import numpy as np

        return np.ceil(value)
    return math.ceil(value)


def ratio(numerator, denominator):
    """`numerator / denominator`, exact where both are exact (whole results become ints).

    >>> ratio(8, 3)
    Fraction(8, 3)

    Raises InputError when a number is divided by zero.
    """
    if is_symbolic(numerator) or is_symbolic(denominator):
        return to_sympy(numerator) / to_sympy(denominator)
    if is_array(numerator) or is_array(denominator):
        return numerator / denominator
    if denominator == 0:
        raise InputError(f"{numerator} cannot be divided by zero")
    if isinstance(numerator, Rational) and isinstance(denominator, Rational):
        return plain(Fraction(numerator) / Fraction(denominator))
    return numerator / denominator


def choose(condition, if_true, if_false):
    """`if_true` where `condition` holds, else `if_false`, for numbers, arrays and symbols.

    `condition` is a bool, a boolean array, or a SymPy relation.
    """
    if is_symbolic(condition):
        import sympy

        return sympy.Piecewise((to_sympy(if_true), condition), (to_sympy(if_false), True))
    if is_array(condition):
        import numpy as np

        return np.where(condition, if_true, if_false)
    return if_true if condition else if_false


def to_sympy(value):
    """`value` as a SymPy expression; a Fraction becomes a Rational and stays exact."""
    import sympy

    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.sympify(value)


# --- printing ----------------------------------------------------------------------------------

SI_PREFIXES = {
    -12: "p",
    -9: "n",
    -6: "µ",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
    21: "Z",
    24: "Y",
}
"""Decimal prefixes by their power of ten."""

_IEC = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"]


def significant(value, digits=4) -> str:
    """`value` with `digits` significant digits, never in exponent form.

    >>> significant(14.457765888)
    '14.46'
    """
    value = float(value)
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    # 9.9996 rounds to 10.000: one decimal less keeps the number of digits.
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        decimals -= 1
    return f"{rounded:.{max(decimals, 0)}f}"


def format_si(value, unit="", digits=4) -> str:
    """`value` with a decimal prefix: `format_si(14457765888, "FLOP")` is '14.46 GFLOP'."""
    value = float(value)
    power = 0
    if value:
        power = 3 * math.floor(math.log10(abs(value)) / 3)
        # 999,999 prints as 1.000 M, not as 1000 k.
        if abs(float(significant(value / 10.0**power, digits))) >= 1000:
            power += 3
        power = min(max(power, min(SI_PREFIXES)), max(SI_PREFIXES))
    return f"{significant(value / 10.0**power, digits)} {SI_PREFIXES[power]}{unit}".rstrip()


def format_rate(value, unit="tokens/s") -> str:
    """A rate with three significant digits below a hundred, whole above.

    >>> format_rate(0.74), format_rate(12345.6)
    ('0.740 tokens/s', '12,346 tokens/s')
    """
    return f"{value:,.0f} {unit}" if value >= 99.95 else f"{significant(value, 3)} {unit}"


def format_iec(value, unit="B", digits=4) -> str:
    """`value` with a binary prefix: `format_iec(2**30)` is '1.000 GiB'."""
    value = float(value)
    power = 0
    while power < len(_IEC) - 1 and abs(float(significant(value / 1024**power, digits))) >= 1024:
        power += 1
    return f"{significant(value / 1024**power, digits)} {_IEC[power]}{unit}".rstrip()


def format_duration(seconds, digits=3) -> str:
    """A duration in the unit that people use: ns to s below a minute, then min, h, days.

    >>> format_duration(0.0097), format_duration(7757583)
    ('9.70 ms', '89.8 days')
    """
    seconds = float(seconds)
    if abs(seconds) < 60:
        return format_si(seconds, "s", digits)
    longer = ((3600, 60, "min"), (86400, 3600, "h"), (math.inf, 86400, "days"))
    size, unit = next((size, unit) for limit, size, unit in longer if abs(seconds) < limit)
    return f"{significant(seconds / size, digits)} {unit}"
