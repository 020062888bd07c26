"""FLOPs of a prefill against the length of its prompt (chapter 6)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, models


class PrefillFlops(Explorer):
    """Linear layers grow with N, attention with its square; the text's model has them meet at 6d.

    The text's accounting: full square attention, no output head. Real models keep their own FFN
    width and KV heads, so their crossing lies elsewhere.
    """

    title = "Work of a prefill against the length of its prompt"
    columns = {"linear": "Linear layers", "attention": "Attention", "total": "Together"}
    units = {"linear": "FLOP", "attention": "FLOP", "total": "FLOP"}

    @classmethod
    def controls(cls):
        return [
            Slider("N", "Prompt length", 16, 1_048_576, 3000, "tokens", log=True),
            Select(
                "model",
                "Model",
                models(
                    "LLaMA-7B-text",
                    "LLaMA-7B",
                    "LLaMA-65B",
                    "Llama-3.1-8B",
                    "Llama-3.1-70B",
                    "Llama-3.1-405B",
                    "SmolLM2-135M",
                ),
                "LLaMA-7B-text",
            ),
        ]

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accounting import TEXT
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.step import prefill, step

        parts = step(symbolic_architecture(), prefill(s.N), TEXT).components
        attention = parts["attention_scores_values"].flops
        linear = parts["attention_projections"].flops + parts["ffn"].flops
        crossing = sympy.solve(sympy.cancel((linear - attention) / s.N), s.N)
        return {
            "linear": linear,
            "attention": attention,
            "total": linear + attention,
            "share": attention / (linear + attention),
            "crossing": crossing[0],
        }
