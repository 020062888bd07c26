"""Rounding to a few bits: sums by hand, error bounds, and what a group costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferlab.quantities import InputError
from inferlab.quantization import quantize, rounded


def matrix(seed, inputs=64, outputs=24):
    return np.random.default_rng(seed).normal(size=(inputs, outputs))


def test_symmetric_int4_by_hand():
    column = np.array([[0.32], [-1.4], [0.76], [0.08]])
    q = quantize(column, 4)
    assert q.scale.item() == pytest.approx(0.2)  # 1.4 / 7
    assert q.codes.ravel().tolist() == [2, -7, 4, 0]
    assert q.dequantized().ravel() == pytest.approx([0.4, -1.4, 0.8, 0.0])


def test_asymmetric_int2_by_hand():
    q = quantize(np.array([[1.0], [2.0], [2.9], [4.0]]), 2, symmetric=False)
    assert q.codes.ravel().tolist() == [0, 1, 2, 3]
    assert q.dequantized().ravel() == pytest.approx([1, 2, 3, 4])


@given(
    st.integers(0, 99),
    st.integers(2, 8),
    st.sampled_from(["tensor", "channel", 32, 16]),
    st.booleans(),
)
def test_no_weight_moves_by_more_than_half_a_step(seed, bits, group, symmetric):
    weights = matrix(seed)
    q = quantize(weights, bits, group, symmetric=symmetric)
    off = np.abs(q.dequantized() - weights)
    step = np.broadcast_to(q.scale, q.codes.shape).reshape(weights.shape)
    assert (off <= step / 2 * (1 + 1e-9)).all()


@given(st.integers(0, 99), st.integers(3, 8))
def test_smaller_groups_and_more_bits_err_less(seed, bits):
    weights = matrix(seed)

    def error(bits, group):
        return np.mean((rounded(weights, bits, group) - weights) ** 2)

    assert error(bits, "tensor") > error(bits, "channel") > error(bits, 16)
    assert error(bits - 1, "channel") > error(bits, "channel")


def test_rounding_twice_changes_nothing():
    once = rounded(matrix(0), 4, 16)
    assert rounded(once, 4, 16) == pytest.approx(once, abs=1e-12)


def test_bits_per_weight_count_the_scales():
    weights = matrix(0)
    assert quantize(weights, 4, 32).bits_per_weight == 4 + 16 / 32  # Q4_0 of GGUF: 4.5
    assert quantize(weights, 4, 32, symmetric=False).bits_per_weight == 5  # Q4_1 of GGUF
    assert quantize(weights, 8, "channel").bits_per_weight == 8 + 16 / 64
    assert quantize(weights, 8).bits_per_weight == 8 + 16 / weights.size


def test_a_group_of_zeros_stays_zero():
    assert not rounded(np.zeros((4, 2)), 4).any()
    assert (rounded(np.full((4, 2), 3.5), 4, symmetric=False) == 3.5).all()


@pytest.mark.parametrize("bits", [1, 9, 4.0, True, "4"])
def test_senseless_bits_are_refused(bits):
    with pytest.raises(InputError, match="bits"):
        quantize(matrix(0), bits)


@pytest.mark.parametrize("group", [0, 7, -16, 128, "row", 16.0, True])
def test_a_group_that_does_not_fit_is_refused(group):
    with pytest.raises(InputError, match="group"):
        quantize(matrix(0), 4, group)


def test_a_vector_is_no_matrix():
    with pytest.raises(InputError, match="matrix"):
        quantize(np.ones(8), 4)
