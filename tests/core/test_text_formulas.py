"""The followed text's formulas come out of the library's functions, symbol by symbol."""

import pytest
import sympy

from inferlab.accounting import ENGINE, TEXT, Accounting
from inferlab.derive import (
    Derivation,
    Substitution,
    equal,
    symbolic_architecture,
    text_architecture,
)
from inferlab.derive import symbols as s
from inferlab.matmul import matmul
from inferlab.quantities import InputError
from inferlab.step import Sequence, decode, prefill, step

MODEL = text_architecture()


def test_prefill_flops_and_bytes():
    work = step(MODEL, prefill(s.N), TEXT)
    assert equal(work.flops, s.L * (24 * s.N * s.d**2 + 4 * s.N**2 * s.d))
    assert equal(work.bytes, s.L * (12 * s.d**2 + 2 * s.N * s.d) * 2)
    assert equal(work.intensity, s.N)


def test_decode_flops_and_bytes():
    work = step(MODEL, decode(s.S), TEXT)
    assert equal(work.flops, s.L * (24 * s.d**2 + 4 * s.S * s.d))
    assert equal(work.bytes, s.L * (12 * s.d**2 + 2 * s.d + 2 * s.S * s.d) * 2)
    assert equal(work.intensity, 1 - 1 / (s.S + 6 * s.d + 1))


def test_a_decode_step_that_attends_to_itself_has_intensity_one():
    assert equal(step(MODEL, decode(s.S), TEXT.but(pairs="causal")).intensity, 1)


def test_batched_intensities():
    decoded = step(MODEL, decode(s.S, s.B), TEXT).intensity
    assert equal(decoded, s.B * (6 * s.d + s.S) / (6 * s.d + s.B * (1 + s.S)))
    assert sympy.limit(decoded, s.B, sympy.oo).equals((6 * s.d + s.S) / (1 + s.S))
    prefilled = step(MODEL, prefill(s.N, s.B), TEXT).intensity
    assert equal(prefilled, s.B * s.N * (6 * s.d + s.N) / (6 * s.d + s.B * s.N))


def test_with_the_kv_write_the_intensity_of_prefill_tends_to_half_the_prompt():
    intensity = step(MODEL, prefill(s.N), TEXT.but(kv_write=True)).intensity
    assert equal(intensity, s.N * (6 * s.d + s.N) / (6 * s.d + 2 * s.N))
    assert sympy.limit(intensity / s.N, s.N, sympy.oo) == sympy.Rational(1, 2)


def test_unfused_scores_hold_attention_at_half_a_head():
    accounting = ENGINE.but(pairs="full", activations="unfused-scores")
    work = step(symbolic_architecture(kv_heads=s.h), prefill(s.N), accounting)
    scores = work.components["attention_scores_values"]
    assert sympy.limit(scores.intensity, s.N, sympy.oo) == s.d_h / 2


def test_causal_attention_is_half_the_square_and_half_a_diagonal():
    n = 3000
    pairs = step(MODEL, prefill(n)).components["attention_scores_values"].flops
    square = step(MODEL, prefill(n), TEXT).components["attention_scores_values"].flops
    assert equal(pairs / square, sympy.Rational(n + 1, 2 * n))


def test_matmul():
    product = matmul(s.m, s.k, s.n)
    assert product.flops == 2 * s.m * s.k * s.n
    assert equal(product.intensity, s.m * s.k * s.n / (s.m * s.k + s.k * s.n + s.m * s.n))
    assert matmul(1, 4096, 4096).bytes == 2 * (4096 + 4096 * 4096 + 4096)
    with pytest.raises(InputError, match="k is 0: expected a number above zero"):
        matmul(1, 0, 1)


def test_an_accounting_refuses_a_choice_it_does_not_know():
    with pytest.raises(InputError, match="pairs is 'half': expected one of causal, full, text"):
        Accounting(pairs="half")


def test_an_empty_batch_and_a_sequence_without_tokens_are_refused():
    with pytest.raises(InputError, match="the batch is empty"):
        step(MODEL, [])
    with pytest.raises(InputError, match="is one sequence: expected a list"):
        step(MODEL, Sequence(1600, cached=38500))
    with pytest.raises(InputError, match="new tokens is 0: expected a whole number above zero"):
        Sequence(0, 10)


def test_a_derivation_refuses_a_step_that_does_not_follow():
    chain = Derivation("I", s.N * s.d / s.d, "definition").then(s.N, "d cancels")
    assert chain.result == s.N
    with pytest.raises(InputError, match="does not follow"):
        chain.then(2 * s.N)
    assert r"\begin{aligned}" in chain._repr_latex_()


def test_a_substitution_names_what_is_missing():
    assert Substitution("F", 24 * s.d**2, {s.d: 4096}, "FLOP").value == 402653184
    with pytest.raises(InputError, match="F has no value for d"):
        Substitution("F", 24 * s.d**2, {}, "FLOP")
