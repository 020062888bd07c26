"""The Roofline model with any machine and any pass of a model under it (chapter 8)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, dtypes, models


class RooflineExplorer(Explorer):
    """Where a prefill or a decode step sits under a machine's roofline, and what limits it.

    The text's accounting, in which a decode step attends to `tokens` keys; 16-bit arithmetic and KV
    cache, so that four-bit weights show in the bytes and not in the peak.
    """

    title = "Any workload under any roofline"
    sweep = "tokens"
    columns = {
        "intensity": "Intensity",
        "attainable": "At most",
        "compute_s": "Computing",
        "memory_s": "Moving",
        "time_s": "At least",
    }
    units = {
        "intensity": "FLOP/byte",
        "attainable": "FLOP/s",
        "compute_s": "s",
        "memory_s": "s",
        "time_s": "s",
    }

    @classmethod
    def controls(cls):
        machines = accelerators(
            "A100-SXM-40GB", "A100-SXM-80GB", "A100-text", "H100-SXM", "H200", "B200", "MI300X",
            "L4", "RTX-4090", "M3-Pro",
        )  # fmt: skip
        start = machines["A100-SXM-40GB"]
        return [
            Select("machine", "Machine", machines, "A100-SXM-40GB"),
            Slider("pi", "Peak", 1e12, 5e15, start["pi"], "FLOP/s", log=True, integer=False, format="si"),
            Slider("beta", "Bandwidth", 5e10, 2e13, start["beta"], "B/s", log=True, integer=False, format="si"),
            Select(
                "workload", "Workload",
                {"one decode step": {"prompt": 0}, "prefill": {"prompt": 1}},
                "one decode step",
            ),
            Slider("tokens", "Context", 16, 131_072, 3000, "tokens", log=True),
            Slider("B", "Batch", 1, 1024, 1, "", log=True),
            Select(
                "model", "Model",
                models("LLaMA-7B-text", "LLaMA-7B", "Llama-3.1-8B", "Llama-3.1-70B", "SmolLM2-135M"),
                "LLaMA-7B-text",
            ),
            Select("weights", "Weights", dtypes("w"), "bf16"),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accelerator import Accelerator
        from inferlab.accounting import TEXT
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.quantities import choose
        from inferlab.roofline import attainable, roofline
        from inferlab.step import Component, decode, prefill, step

        tokens, prompt, w = sympy.symbols("tokens prompt w", positive=True)
        model = symbolic_architecture()
        first = step(model, prefill(tokens, s.B), TEXT, weights=w)
        later = step(model, decode(tokens, s.B), TEXT, weights=w)
        is_prefill = prompt > sympy.Rational(1, 2)
        work = Component(
            flops=choose(is_prefill, first.flops, later.flops),
            weights=choose(is_prefill, first.bytes, later.bytes),
        )
        machine = Accelerator(name="any", peaks={"bf16": s.pi}, bandwidth=s.beta)
        bound = roofline(work, machine)
        return {
            "flops": work.flops,
            "bytes": work.bytes,
            "intensity": bound.intensity,
            "ridge": bound.ridge,
            "attainable": bound.attainable,
            "compute_s": bound.compute_s,
            "memory_s": bound.memory_s,
            "time_s": bound.time_s,
            "roof": attainable(s.I, s.pi, s.beta),
        }
