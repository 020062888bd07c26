"""Prefill and decode on one GPU or on two, and the link between them (chapter 12)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, models


class SplitPhases(Explorer):
    """A steady stream of equal requests that keeps B sequences decoding.

    Together, B / T prompts come with each step on average and have steps of their own, so a token
    waits for their prefills; apart, it waits for its own step only, and each prompt's cache crosses
    the link once. Roofline bounds in the engine's accounting, bf16; a step is taken at the middle
    of an answer.
    """

    title = "Prefill and decode, together or apart"
    sweep = "N"
    columns = {
        "prefill_s": "Prefill",
        "kv": "KV to send",
        "transfer_s": "Transfer",
        "together_s": "Time per token together",
        "total": "Apart",
    }
    units = {
        "prefill_s": "s",
        "kv": "B",
        "transfer_s": "s",
        "together_s": "s",
        "total": "s",
        "break_even": "B/s",
    }

    @classmethod
    def controls(cls):
        return [
            Slider("N", "Prompt", 64, 131_072, 3000, "tokens", log=True),
            Slider("T", "Answer", 2, 8192, 200, "tokens", log=True),
            Slider("B", "Sequences decoding", 1, 512, 8, "", log=True),
            Slider("link", "Link between the pools", 1e9, 1e12, 5e10, "B/s", log=True, integer=False, format="si"),
            Select(
                "model", "Model",
                models("LLaMA-7B", "Llama-3.1-8B", "Qwen3-32B", "Llama-3.1-70B"),
                "LLaMA-7B",
            ),
            Select(
                "machine", "Machine",
                accelerators("A100-SXM-40GB", "A100-SXM-80GB", "H100-SXM", "H200", "B200"),
                "A100-SXM-40GB",
            ),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.roofline import bound_time
        from inferlab.serving.growth import (
            prefill_gpus_per_decode_gpu,
            time_per_token_apart,
            time_per_token_together,
        )
        from inferlab.step import decode, prefill, step

        link = sympy.Symbol("link", positive=True)
        model = symbolic_architecture()
        prompt, token = step(model, prefill(s.N)), step(model, decode(s.N + s.T / 2, s.B))
        prefill_s = bound_time(prompt.flops, prompt.bytes, s.pi, s.beta)
        step_s = bound_time(token.flops, token.bytes, s.pi, s.beta)
        kv = model.kv_bytes(s.N)
        return {
            "prefill_s": prefill_s,
            "step_s": step_s,
            "kv": kv,
            "transfer_s": kv / link,
            "break_even": kv / prefill_s,
            "together_s": time_per_token_together(step_s, prefill_s, s.B, s.T),
            "total": time_per_token_apart(step_s, kv / link, s.T),
            "pools": prefill_gpus_per_decode_gpu(step_s, prefill_s, s.B, s.T),
        }
