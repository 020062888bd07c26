"""Work of generating an answer with and without a KV cache (chapter 2)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, models


class GenerationWork(Explorer):
    """With the cache each token passes the model once; without it the whole text does, each time.

    Causal attention, the output head on the positions that are sampled.
    """

    title = "What the KV cache saves"
    sweep = "T"
    columns = {
        "cached": "With cache",
        "uncached": "Without",
        "saved": "Times as much",
    }
    units = {"cached": "FLOP", "uncached": "FLOP"}

    @classmethod
    def controls(cls):
        return [
            Slider("T", "Answer", 1, 16_384, 500, "tokens", log=True),
            Slider("N", "Prompt", 1, 131_072, 3000, "tokens", log=True),
            Select(
                "model",
                "Model",
                models("LLaMA-7B", "Llama-3.1-8B", "Llama-3.1-70B", "SmolLM2-135M"),
                "LLaMA-7B",
            ),
        ]

    @classmethod
    def formulas(cls):
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.generating import generation_flops

        model = symbolic_architecture()
        cached = generation_flops(model, s.N, s.T)
        uncached = generation_flops(model, s.N, s.T, cache=False)
        return {
            "cached": cached,
            "uncached": uncached,
            "saved": uncached / cached,
            "kv_bytes": model.kv_bytes(s.N + s.T - 1),
        }
