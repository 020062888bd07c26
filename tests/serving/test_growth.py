"""Growing prompts: the closed forms against sums, by hand and by SymPy."""

import pytest
import sympy

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
