"""One matrix multiplication: the axiom under every count of this book (chapters 6 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inferlab.quantities import bytes_of, number, ratio


def matmul_flops(m, k, n):
    """FLOPs of an (m x k) by (k x n) product: 2 m k n, a multiplication and an addition per term.

    Each of the m n results sums k products: k multiplications and k - 1 additions, counted as 2k.
    The count does not depend on the dtype. Chapter 9.
    """
    return 2 * m * k * n


@dataclass(frozen=True)
class MatMul:
    """FLOPs and DRAM traffic in bytes of one matrix product."""

    flops: Any
    bytes: Any

    @property
    def intensity(self):
        """Arithmetic intensity in FLOP/byte."""
        return ratio(self.flops, self.bytes)


def matmul(m, k, n, *, a="bf16", b="bf16", c="bf16") -> MatMul:
    """The product C = A B of an (m x k) and a (k x n) matrix, each element moved once.

    m, k, n: sides, as ints, arrays or symbols. a, b, c: the dtypes of the two inputs and the
    result. Raises InputError for a side that is not a number above zero. Chapter 9.

    >>> matmul(4096, 4096, 4096).intensity
    Fraction(4096, 3)
    """
    m, k, n = (number(x, name, positive=True) for x, name in ((m, "m"), (k, "k"), (n, "n")))
    moved = bytes_of(m * k, a) + bytes_of(k * n, b) + bytes_of(m * n, c)
    return MatMul(matmul_flops(m, k, n), moved)
