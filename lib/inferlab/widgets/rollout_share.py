"""How a step of reinforcement learning divides between generating and learning (chapter 4)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators, models


class RolloutShare(Explorer):
    """Seconds of one device for each sampled answer, generating against learning.

    Generation is the roofline bound of its steps, learning is counted FLOP at a share of the peak;
    so the generating share is a lower bound. ENGINE accounting, 16-bit weights and cache.
    """

    title = "One step of reinforcement learning"
    sweep = "B"
    columns = {
        "share": "Generating, share",
        "generate_s": "Generating an answer",
        "learn_s": "Learning from it",
    }
    units = {"generate_s": "s", "learn_s": "s"}

    @classmethod
    def controls(cls):
        from inferlab.training import GRPO, PPO

        passes = {name: {"passes": sum(p.values())} for name, p in (("GRPO", GRPO), ("PPO", PPO))}
        return [
            Slider("B", "Answers sampled together", 1, 1024, 64, "", log=True),
            Slider("T", "Answer", 2, 32_768, 4096, "tokens", log=True),
            Slider("N", "Prompt", 1, 32_768, 512, "tokens", log=True),
            Select("algorithm", "Algorithm", passes, "GRPO"),
            Slider("mfu", "Share of the peak in learning", 5, 100, 40, "%", format="percent"),
            Select(
                "model",
                "Model",
                models("Llama-3.1-8B", "LLaMA-7B", "Llama-3.1-70B", "Llama-3.2-1B"),
                "Llama-3.1-8B",
            ),
            Select(
                "machine",
                "Machine",
                accelerators("H100-SXM", "H200", "B200", "A100-SXM-80GB"),
                "H100-SXM",
            ),
        ]

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accelerator import Accelerator
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.training import reinforcement_step

        passes, mfu = sympy.symbols("passes mfu", positive=True)
        model = symbolic_architecture()
        answer = reinforcement_step(
            model,
            Accelerator(name="any", peaks={"bf16": s.pi}, bandwidth=s.beta),
            prompt=s.N,
            answer=s.T,
            batch=s.B,
            passes={"all": passes},
            mfu=mfu / 100,
        )
        return {
            "share": answer.generating_share,
            "generate_s": answer.generate_s,
            "learn_s": answer.learn_s,
            "kv_bytes": s.B * model.kv_bytes(s.N + s.T - 1),
            "weight_bytes": 2 * s.P,
        }
