"""One matrix product under a roof: its FLOPs, its bytes, their quotient (chapter 9)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, dtypes

_SIDES = tuple(2**power for power in range(7, 16))


class MatrixProduct(Explorer):
    """m tokens against a k x n weight: the weight moves once, whoever shares it.

    Tokens and results are bf16; the weight may be kept in fewer bits, and is then multiplied in
    bf16 all the same, at that peak.
    """

    title = "One matrix product: tokens times a weight"
    columns = {"flops": "Work", "bytes": "Traffic", "intensity": "Intensity", "time_s": "At least"}
    units = {"flops": "FLOP", "bytes": "B", "intensity": "FLOP/byte", "time_s": "s"}

    @classmethod
    def controls(cls):
        return [
            Slider("m", "Tokens m", 1, 65_536, 64, log=True),
            Slider("k", "Width in k", 128, 32_768, 4096, stops=_SIDES),
            Slider("n", "Width out n", 128, 32_768, 4096, stops=_SIDES),
            Select("weights", "Weight", dtypes("w"), "bf16"),
            Select(
                "machine",
                "Machine",
                accelerators(
                    "A100-SXM-40GB", "A100-SXM-80GB", "H100-SXM", "H200", "B200", "L4", "RTX-4090"
                ),
                "A100-SXM-40GB",
            ),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.derive import symbols as s
        from inferlab.matmul import matmul
        from inferlab.quantities import bytes_of, choose
        from inferlab.roofline import bound_time

        w = sympy.Symbol("w", positive=True)
        product = matmul(s.m, s.k, s.n, b=w)
        ridge = s.pi / s.beta
        ceiling = sympy.limit(product.intensity, s.m, sympy.oo)
        (crossing,) = sympy.solve(sympy.Eq(product.flops, ridge * product.bytes), s.m)
        return {
            "flops": product.flops,
            "bytes": product.bytes,
            "tokens_in": bytes_of(s.m * s.k, "bf16"),
            "weight": bytes_of(s.k * s.n, w),
            "tokens_out": bytes_of(s.m * s.n, "bf16"),
            "intensity": product.intensity,
            "ceiling": ceiling,
            "ridge": ridge,
            "reaches": choose(ceiling > ridge, crossing, sympy.oo),
            "time_s": bound_time(product.flops, product.bytes, s.pi, s.beta),
        }
