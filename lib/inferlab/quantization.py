"""Round-to-nearest quantization: weights on a few bits, with shared scales (chapter 4).

A matrix has shape (inputs, outputs) and is used as `x @ W`. Weights that share a scale form a
group: the whole tensor, one output channel (a column), or a run of `group_size` inputs of one
channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferlab.quantities import InputError

SCALE_BITS = 16
"""Bits of one stored scale or offset: fp16, as GGUF and most engines keep them."""


@dataclass(frozen=True)
class Quantized:
    """A matrix as integer codes with the scales and offsets that bring them back.

    A weight is code x scale + offset. codes: (groups, group size, outputs); scale and offset are
    of shapes that broadcast to it. shape: the matrix's own.
    """

    codes: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    bits: int
    symmetric: bool
    shape: tuple[int, int]

    def dequantized(self) -> np.ndarray:
        """The matrix that the codes stand for, in the scale's dtype."""
        return (self.codes * self.scale + self.offset).reshape(self.shape)

    @property
    def bits_per_weight(self) -> float:
        """Bits stored for each weight, its part of the scales (and offsets) included."""
        kept = self.scale.size * (1 if self.symmetric else 2)
        return self.bits + SCALE_BITS * kept / self.codes.size


def quantize(weights, bits: int, group="tensor", *, symmetric: bool = True) -> Quantized:
    """`weights` rounded to the nearest of the levels that `bits` bits give each group.

    weights: array (inputs, outputs). group: "tensor", "channel", or the number of inputs that share
    a scale, which must divide them. Symmetric levels are -m s .. m s with m = 2^(bits-1) - 1 and
    the scale s from the largest magnitude; otherwise 2^bits levels from the least to the greatest
    weight. Each weight is off by half a step at most.

    Raises InputError for bits outside 2 to 8 and for a group that does not fit.

    >>> quantize(np.array([[0.0], [3.0], [-7.0]]), 4).dequantized().ravel().tolist()
    [0.0, 3.0, -7.0]
    """
    weights = np.asarray(weights)
    if type(bits) is not int or bits not in range(2, 9):
        raise InputError(f"bits is {bits!r}: expected a whole number from 2 to 8")
    if weights.ndim != 2 or not weights.size:
        raise InputError(
            f"an array of shape {weights.shape} is no matrix: expected (inputs, outputs)"
        )
    grouped, axes = _grouped(weights, group)
    low = grouped.min(axis=axes, keepdims=True)
    high = grouped.max(axis=axes, keepdims=True)
    if symmetric:
        top = 2 ** (bits - 1) - 1
        scale, offset = np.maximum(-low, high) / top, np.zeros_like(low)
        bottom = -top
    else:
        bottom, top = 0, 2**bits - 1
        scale, offset = (high - low) / top, low
    scale = np.where(scale == 0, 1, scale)  # a group of equal weights has no step
    codes = np.clip(np.rint((grouped - offset) / scale), bottom, top)
    kind = np.int8 if symmetric else np.uint8
    return Quantized(codes.astype(kind), scale, offset, bits, symmetric, weights.shape)


def rounded(weights, bits: int, group="tensor", *, symmetric: bool = True) -> np.ndarray:
    """The matrix after a round trip through `quantize`: what the quantized model computes with."""
    return quantize(weights, bits, group, symmetric=symmetric).dequantized()


def _grouped(weights, group):
    """The matrix as (groups, group size, outputs), and the axes that a group spans."""
    inputs, outputs = weights.shape
    if group == "tensor":
        return weights[None], (1, 2)
    size = inputs if group == "channel" else group
    if isinstance(size, bool) or not isinstance(size, int) or size < 1 or inputs % size:
        raise InputError(
            f"group is {group!r}: expected 'tensor', 'channel', or a number that divides"
            f" {inputs} inputs"
        )
    return weights.reshape(inputs // size, size, outputs), (1,)
