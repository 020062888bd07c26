"""What an agent's calls cost, with and without a prefix cache (chapter 10)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, models


class AgentPrefill(Explorer):
    """One agent alone on one GPU: k calls, a tool between each two.

    The engine's accounting, bf16. Times are bounds: all FLOPs of a phase over the peak, or all its
    bytes over the bandwidth, whichever is more. The cache never evicts: where the machine cannot hold
    it with the weights, `left` is below zero, and times are those of a machine with room.
    """

    title = "The calls of one agent"
    sweep = "calls"
    columns = {
        "total": "Prefilled without a cache",
        "cached": "Prefilled with a cache",
        "prefill_s": "Prefill without",
        "prefill_cached_s": "Prefill with",
        "decode_s": "Decode",
    }
    units = {
        "total": "tokens",
        "cached": "tokens",
        "prefill_s": "s",
        "prefill_cached_s": "s",
        "decode_s": "s",
        "tool_s": "s",
    }

    @classmethod
    def controls(cls):
        return [
            Slider("calls", "Calls", 1, 100, 20, ""),
            Slider("system", "System prompt, tools and task", 100, 20_000, 2200, "tokens", log=True),
            Slider("observation", "A tool returns", 10, 20_000, 1800, "tokens", log=True),
            Slider("answer", "The model writes", 2, 2000, 100, "tokens a call", log=True),
            Slider("tool", "A tool takes", 0, 10, 1, "s", step=0.5, integer=False, format="number"),
            Select(
                "model", "Model",
                models("LLaMA-7B", "Llama-3.1-8B", "Qwen3-8B", "Qwen3-32B", "Llama-3.1-70B"),
                "Llama-3.1-8B",
            ),
            Select(
                "machine", "Machine",
                accelerators("A100-SXM-40GB", "H100-SXM", "H200", "B200", "RTX-4090", "RX-9070-XT", "M3-Max"),
                "H100-SXM",
            ),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accelerator import Accelerator
        from inferlab.deployment import Deployment, memory
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.roofline import bound_time
        from inferlab.serving.growth import (
            prefilled_with_cache,
            prefilled_without_cache,
            prompt_tokens,
        )
        from inferlab.step import Sequence, decode, prefill, step

        calls, system, observation, answer, tool, capacity, j, i = sympy.symbols(
            "calls system observation answer tool capacity j i", positive=True
        )
        model = symbolic_architecture()
        machine = Accelerator(name="any", peaks={"bf16": s.pi}, bandwidth=s.beta, capacity=capacity)
        prompt = prompt_tokens(j, system, observation + answer)

        def summed(works):
            """FLOPs and bytes of some kinds of work, each with how often it comes."""
            return [
                sum(
                    sympy.summation(sympy.expand(getattr(work, what)), *ranges)
                    for work, *ranges in works
                )
                for what in ("flops", "bytes")
            ]

        whole = summed([(step(model, prefill(prompt)), (j, 1, calls))])
        fresh = observation + 1
        first = step(model, prefill(system))
        later = step(model, [Sequence(fresh, prompt - fresh)])
        reused = [
            a + b
            for a, b in zip(
                (first.flops, first.bytes), summed([(later, (j, 2, calls))]), strict=True
            )
        ]
        written = summed([(step(model, decode(prompt + i)), (i, 0, answer - 2), (j, 1, calls))])
        kept = prompt_tokens(calls, system, observation + answer) + answer - 1
        return {
            "total": prefilled_without_cache(calls, system, observation + answer),
            "cached": prefilled_with_cache(calls, system, fresh),
            "prefill_s": bound_time(*whole, s.pi, s.beta),
            "prefill_cached_s": bound_time(*reused, s.pi, s.beta),
            "decode_s": bound_time(*written, s.pi, s.beta),
            "tool_s": tool * (calls - 1),
            "kv": model.kv_bytes(kept),
            "left": memory(Deployment(architecture=model, accelerator=machine), kept).free,
            "read_per_written": observation / answer,
        }
