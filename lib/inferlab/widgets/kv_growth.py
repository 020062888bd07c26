"""How a KV cache grows, and how many sequences fit beside the weights (chapter 7)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, dtypes, models


class KVGrowth(Explorer):
    """The cache of a batch against its context, beside what the weights leave of the memory.

    Only weights and cache are counted: an engine also keeps activations and a reserve, so a few
    sequences fewer fit in practice.
    """

    title = "How a KV cache fills the memory"
    sweep = "S"
    columns = {
        "sequence": "KV of one sequence",
        "kv": "KV of the batch",
        "fit": "Sequences that fit",
    }
    units = {"sequence": "B", "kv": "B"}

    @classmethod
    def controls(cls):
        return [
            Slider("S", "Context", 16, 131_072, 3000, "tokens", log=True),
            Slider("B", "Batch", 1, 1024, 1, "", log=True),
            Select(
                "model",
                "Model",
                models(
                    "LLaMA-7B", "Llama-3.1-8B", "Llama-3.1-70B", "Mistral-7B-v0.3", "Qwen3-8B",
                    "Qwen3-32B", "SmolLM2-135M",
                ),
                "LLaMA-7B",
            ),
            Select(
                "machine",
                "Machine",
                accelerators(
                    "A100-SXM-40GB", "A100-SXM-80GB", "H100-SXM", "H200", "B200", "L4", "RTX-4090"
                ),
                "A100-SXM-40GB",
            ),
            Select("kv", "KV cache", dtypes("b"), "bf16"),
            Select("weights", "Weights", dtypes("w"), "bf16"),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.deployment import how_many_fit
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.quantities import maximum

        b, w, capacity = sympy.symbols("b w capacity", positive=True)
        sequence = symbolic_architecture().kv_bytes(s.S, b)
        free = maximum(0, capacity - s.P * w)
        return {
            "sequence": sequence,
            "kv": s.B * sequence,
            "weight_bytes": s.P * w,
            "free": free,
            "used": s.P * w + s.B * sequence,
            "fit": how_many_fit(free, sequence),
            "longest": how_many_fit(free, s.B * sequence / s.S),
        }
