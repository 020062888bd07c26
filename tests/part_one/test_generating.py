"""Closed forms of generation, against the steps one by one."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from inferlab.accounting import ENGINE, TEXT
from inferlab.architecture import Architecture
from inferlab.derive import equal, symbolic_architecture
from inferlab.derive import symbols as s
from inferlab.generating import generation_flops
from inferlab.quantities import InputError
from inferlab.step import decode, prefill, step

SMALL = Architecture(
    name="small", layers=2, hidden=8, ffn=12, heads=4, kv_heads=2, head_dim=2, vocab=16
)


@given(prompt=st.integers(1, 50), generated=st.integers(1, 40), text=st.booleans())
def test_the_closed_forms_are_the_steps_added_up(prompt, generated, text):
    counting = TEXT if text else ENGINE

    def flops(sequences):
        return step(SMALL, sequences, counting).flops

    steps = sum(flops(decode(prompt + i)) for i in range(generated - 1))
    with_cache = generation_flops(SMALL, prompt, generated, accounting=counting)
    assert with_cache == flops(prefill(prompt)) + steps
    without = generation_flops(SMALL, prompt, generated, cache=False, accounting=counting)
    assert without == sum(flops(prefill(prompt + i)) for i in range(generated))


def test_arrays_agree_with_ints():
    lengths = np.array([1, 7, 40])
    for cache in (True, False):
        swept = generation_flops(SMALL, 5, lengths, cache=cache)
        assert swept.tolist() == [generation_flops(SMALL, 5, n, cache=cache) for n in (1, 7, 40)]


def test_with_a_cache_generating_costs_one_pass_over_the_text_and_its_heads():
    model = symbolic_architecture()
    generated = generation_flops(model, s.N, s.T)
    one_pass = step(model, prefill(s.N + s.T - 1)).flops
    assert equal(generated, one_pass + (s.T - 1) * 2 * s.V * s.d)


def test_without_a_cache_it_grows_with_the_cube_of_the_answer():
    formula = sympy.Poly(generation_flops(symbolic_architecture(), s.N, s.T, cache=False), s.T)
    assert formula.degree() == 3
    assert equal(formula.LC(), sympy.Rational(2, 3) * s.L * s.h * s.d_h)


def test_one_token_costs_the_same_either_way():
    assert generation_flops(SMALL, 9, 1) == generation_flops(SMALL, 9, 1, cache=False)


def test_a_window_is_refused():
    with pytest.raises(InputError, match="window"):
        generation_flops(SMALL.but(window=4, windowed_layers=1), 5, 5)


@pytest.mark.parametrize(("prompt", "generated"), [(0, 5), (5, 0), (2.5, 5), (5, -1)])
def test_senseless_lengths_are_refused(prompt, generated):
    with pytest.raises(InputError):
        generation_flops(SMALL, prompt, generated)
