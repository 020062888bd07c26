"""Growing prompts: the closed forms against sums, by hand and by SymPy."""

import numpy as np
import pytest
import sympy

from inferlab.quantities import InputError
from inferlab.serving.growth import (
    expected_tokens,
    prefilled_with_cache,
    prefilled_without_cache,
    prompt_tokens,
)


def test_sums_by_hand():
    assert [prompt_tokens(j, 2200, 1900) for j in (1, 2, 3)] == [2200, 4100, 6000]
    assert prefilled_without_cache(3, 2200, 1900) == 2200 + 4100 + 6000
    assert prefilled_with_cache(3, 2200, 1801) == 2200 + 1801 + 1801
    assert prefilled_without_cache(1, 7, 1000) == prefilled_with_cache(1, 7, 1000) == 7


def test_the_closed_form_is_the_sum():
    k, j, start, added = sympy.symbols("k j start added", positive=True, integer=True)
    total = sympy.summation(prompt_tokens(j, start, added), (j, 1, k))
    assert sympy.simplify(total - prefilled_without_cache(k, start, added)) == 0
    # Quadratic against linear.
    assert sympy.degree(prefilled_without_cache(k, start, added), k) == 2
    assert sympy.degree(prefilled_with_cache(k, start, added), k) == 1


def test_expected_tokens_of_speculation():
    assert expected_tokens(1, 4) == 5
    assert expected_tokens(0, 4) == 1
    # (1 - 0.8^5) / (1 - 0.8), the closed form of Leviathan et al.
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)


def test_expected_tokens_of_many_rates_and_of_a_symbol():
    rates = expected_tokens(np.array([0, 0.5, 1]), 2)
    assert rates.tolist() == [1, 1.75, 3]
    a = sympy.Symbol("a", positive=True)
    assert sympy.expand(expected_tokens(a, 2) - (1 + a + a**2)) == 0
    assert expected_tokens(a, 0) == 1


@pytest.mark.parametrize("guesses", [np.array([1, 2]), sympy.Symbol("g"), 2.5, -1, True, "four"])
def test_guesses_are_one_whole_number(guesses):
    with pytest.raises(InputError, match="guesses is"):
        expected_tokens(0.8, guesses)


@pytest.mark.parametrize("accepted", [-0.1, 1.1, float("nan"), np.array([0.5, 2])])
def test_a_rate_of_acceptance_is_a_probability(accepted):
    with pytest.raises(InputError, match="accepted"):
        expected_tokens(accepted, 4)
