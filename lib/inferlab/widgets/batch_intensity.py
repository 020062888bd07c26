"""Arithmetic intensity of decode against the batch, and the ridge it may miss (chapter 9)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, dtypes, models


class BatchIntensity(Explorer):
    """Batching shares the weights among sequences, never the KV cache, so intensity has a ceiling.

    The text's accounting: a decode step attends to S keys, the KV write and the head are left out.
    Where the ceiling lies below the ridge, no batch makes decode compute-bound.
    """

    title = "What a larger batch can do for decode"
    sweep = "B"
    columns = {"intensity": "Intensity", "ceiling": "Ceiling", "rate": "Tokens a second, at most"}
    units = {"intensity": "FLOP/byte", "ceiling": "FLOP/byte"}

    @classmethod
    def controls(cls):
        return [
            Slider("B", "Batch", 1, 4096, 1, "", log=True),
            Slider("S", "Context", 1, 131_072, 3000, "tokens", log=True),
            Select(
                "machine",
                "Machine",
                accelerators(
                    "A100-SXM-40GB", "A100-SXM-80GB", "A100-text", "H100-SXM", "H200", "B200", "L4",
                    "RTX-4090",
                ),
                "A100-SXM-40GB",
            ),
            Select(
                "model",
                "Model",
                models(
                    "LLaMA-7B-text", "LLaMA-7B", "Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-8B",
                    "SmolLM2-135M",
                ),
                "LLaMA-7B-text",
            ),
            Select("weights", "Weights", dtypes("w"), "bf16"),
            Select("kv", "KV cache", dtypes("b"), "bf16"),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accounting import TEXT
        from inferlab.deployment import how_many_fit
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.quantities import choose
        from inferlab.roofline import bound_time
        from inferlab.step import decode, step

        b, w, capacity = sympy.symbols("b w capacity", positive=True)
        model = symbolic_architecture()
        work = step(model, decode(s.S, s.B), TEXT, weights=w, kv=b)
        ridge = s.pi / s.beta
        ceiling = sympy.limit(work.intensity, s.B, sympy.oo)
        (crossing,) = sympy.solve(sympy.Eq(work.flops, ridge * work.bytes), s.B)
        return {
            "intensity": work.intensity,
            "ceiling": ceiling,
            "ridge": ridge,
            "reaches": choose(ceiling > ridge, crossing, sympy.oo),
            "time_s": bound_time(work.flops, work.bytes, s.pi, s.beta),
            "rate": s.B / bound_time(work.flops, work.bytes, s.pi, s.beta),
            "fit": how_many_fit(capacity - s.P * w, model.kv_bytes(s.S, b)),
        }
