"""A formula printed to JavaScript computes what Python computes, or is refused."""

import random
from fractions import Fraction

import pytest
import sympy
from sympy import (
    Abs,
    And,
    Max,
    Min,
    Not,
    Or,
    Piecewise,
    Rational,
    exp,
    floor,
    log,
    sqrt,
    symbols,
)

from inferlab.javascript import EXACT, to_javascript
from inferlab.quantities import InputError, ceil, choose, maximum, minimum, ratio

x, y, z = symbols("x y z", positive=True)
n = symbols("n", integer=True, positive=True)

FORMULAS = [
    24 * x * y**2 + 4 * x**2 * y,
    -x / y,
    x / (y * (x + 1)),
    x / y / z,
    x / y**2,
    x / (y + z) ** 3,
    Rational(8, 3) * x - Rational(3, 7) * y * z,
    -(x + y) / 3,
    1.5 * x,
    (x + y) ** 2 - 2 ** (x / 300),
    x**7,
    sqrt(x) / sqrt(y + z),
    x ** Rational(3, 2),
    x ** (-y / 300),
    1 / (x * y) + 1 / x,
    minimum(x, 3 * y, z),
    2 * maximum(0, x - y),
    ceil(x / 7) + floor(y / 3),
    ratio(x, 3 * y),
    choose(x < y, x * z, y - z),
    Piecewise((1, x < 100), (x / 2, And(x > 400, y < 300)), (y, Or(x > 500, Not(y > 20))), (z, True)),
    Piecewise((0, sympy.Eq(x, y)), (1, sympy.Ne(x, z)), (2, True)),
    Abs(x - y) * exp(-z / 100) + log(x) / log(2),
    Max(Min(x, y) / Max(y, z), Rational(1, 3)),
    sympy.pi * x + sympy.E * y,
    choose(x > y, x, sympy.oo),
]  # fmt: skip


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_agrees_with_python_at_random_values(javascript, formula):
    rng = random.Random(str(formula))
    settings = [[rng.uniform(1, 600), rng.uniform(1, 600), rng.uniform(1, 600)] for _ in range(100)]
    settings += [[rng.randint(1, 9)] * 2 + [rng.randint(1, 9)] for _ in range(20)]
    source = to_javascript("formula", formula, [x, y, z])
    results = javascript(f"settings => {{ {source}; return settings.map((s) => formula(...s)); }}", settings)  # fmt: skip
    expected = [float(sympy.lambdify((x, y, z), formula, "math")(*s)) for s in settings]
    assert results == pytest.approx(expected, rel=1e-13, abs=1e-12)


@pytest.mark.needs("chromium")
def test_whole_results_of_whole_numbers_stay_whole(javascript):
    source = to_javascript(
        "tiles", {"exact": n / 49, "floor": floor(n / 49), "up": ceil(n / 49)}, [n]
    )
    results = javascript(f"() => {{ {source}; return [49, 98, 343, 49e9].map(tiles); }}", None)
    assert results == [{"exact": k, "floor": k, "up": k} for k in (1, 2, 7, 10**9)], (
        "7/49 rounds, and ceil would show it"
    )


@pytest.mark.needs("chromium")
def test_exact_up_to_two_to_the_53(javascript):
    source = to_javascript("f", 3 * n + 1, [n])
    inputs = [(EXACT - 2) // 3, (EXACT - 5) // 3, 123456789012345]
    results = javascript(f"(inputs) => {{ {source}; return inputs.map(f).map(String); }}", inputs)
    assert results == [str(3 * i + 1) for i in inputs]
    beyond = javascript("() => String(2 ** 53 + 1)", None)
    assert beyond == str(EXACT), "past it, JavaScript rounds: formulas must not need more"


def test_the_largest_literal_is_printed_and_the_next_refused():
    assert str(EXACT) in to_javascript("f", n + EXACT, [n])
    with pytest.raises(InputError, match="2\\*\\*53"):
        to_javascript("f", n + EXACT + 1, [n])


def test_fractions_and_dicts():
    assert to_javascript("f", Fraction(8, 3), []) == "function f() { return 8/3; }"
    assert to_javascript("f", {"a": x, "b": 2 * y}, [x, y]) == "function f(x, y) { return {a: x, b: 2*y}; }"  # fmt: skip
    assert to_javascript("f", x * y, named=True) == "function f({x, y}) { return x*y; }"


@pytest.mark.parametrize(
    "formula, word",
    [
        (sympy.Sum(n, (n, 1, x)), "Sum"),
        (sympy.Product(n, (n, 1, x)), "Product"),
        (sympy.Integral(x, x), "Integral"),
        (sympy.Derivative(sympy.Function("g")(x), x), "Derivative"),
        (sympy.Mod(n, 3), "Mod"),
        (sympy.factorial(n), "factorial"),
        (sympy.gamma(x), "gamma"),
        (sympy.erf(x), "erf"),
        (sympy.Function("g")(x), "g"),
        (sympy.I * x, "ImaginaryUnit"),
        (sympy.zoo, "ComplexInfinity"),
        (sympy.nan, "NaN"),
    ],
)
def test_what_it_is_not_sure_of_is_refused(formula, word):
    with pytest.raises(InputError, match=word):
        to_javascript("f", formula, sorted(formula.free_symbols | {x, n}, key=str))


def test_a_piecewise_with_a_gap_is_refused():
    with pytest.raises(InputError, match="True"):
        to_javascript("f", Piecewise((x, x > 1)), [x])


@pytest.mark.parametrize("name", ["x_{1}", r"\beta", "2x", "a b", "class", "await", "Math", ""])
def test_names_that_javascript_has_no_room_for_are_refused(name):
    symbol = sympy.Symbol(name)
    with pytest.raises(InputError, match="cannot be a name"):
        to_javascript("f", symbol + 1, [symbol])
    with pytest.raises(InputError, match="cannot be a name"):
        to_javascript(name, x, [x])


def test_a_symbol_that_nobody_passes_is_refused():
    with pytest.raises(InputError, match="f uses z"):
        to_javascript("f", x * z, [x, y])


def test_two_symbols_of_one_name_are_refused():
    with pytest.raises(InputError, match="two parameters"):
        to_javascript("f", x + sympy.Symbol("x"))


def test_infinity_prints():
    assert to_javascript("f", choose(x > 1, x, sympy.oo), [x]).endswith("Infinity); }")
