"""Time to first token, turn by turn (chapter 11)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, Toggle, accelerators, models


class TurnTTFT(Explorer):
    """One conversation alone on one machine; every turn sends the whole history.

    `constant` is the text's simple model: so many tokens a second, whatever the length. The others
    are roofline bounds in the engine's accounting, bf16: the prompt computed anew, and with a
    prefix cache that holds everything but the answer's last token and the new question.
    """

    title = "Time to first token, turn by turn"
    sweep = "turn"
    columns = {
        "prompt": "Prompt",
        "constant": "Constant speed",
        "anew": "Computed anew",
        "reused": "Prefix cache",
        "kv": "KV cache",
    }
    units = {"prompt": "tokens", "constant": "s", "anew": "s", "reused": "s", "kv": "B"}

    @classmethod
    def controls(cls):
        return [
            Slider("turn", "Turn", 1, 200, 10, "", log=True),
            Slider("system", "System prompt", 10, 20_000, 100, "tokens", log=True),
            Slider("question", "A question", 10, 20_000, 100, "tokens", log=True),
            Slider("answer", "An answer", 10, 5000, 100, "tokens", log=True),
            Slider("speed", "The text's constant speed", 100, 50_000, 1000, "tokens/s", log=True),
            Select(
                "model", "Model",
                models("LLaMA-7B", "Llama-3.1-8B", "Qwen3-8B", "Llama-3.1-70B", "SmolLM2-135M"),
                "LLaMA-7B",
            ),
            Select(
                "machine", "Machine",
                accelerators("M2-Max", "RTX-4090", "A100-SXM-40GB", "A100-SXM-80GB", "H100-SXM", "H200", "B200"),
                "M2-Max",
            ),
            Toggle("cache", "Prefix cache", False),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.deployment import how_many_fit
        from inferlab.derive import symbolic_architecture
        from inferlab.derive import symbols as s
        from inferlab.quantities import choose
        from inferlab.roofline import bound_time
        from inferlab.serving.growth import prompt_tokens
        from inferlab.step import Sequence, prefill, step

        turn, system, question, answer, speed, capacity = sympy.symbols(
            "turn system question answer speed capacity", positive=True
        )
        model = symbolic_architecture()
        prompt = prompt_tokens(turn, system + question, question + answer)
        whole = step(model, prefill(prompt))
        fresh = question + 1
        tail = step(model, [Sequence(fresh, prompt - fresh)])
        anew = bound_time(whole.flops, whole.bytes, s.pi, s.beta)
        conversation = model.kv_bytes(prompt + answer - 1)
        return {
            "prompt": prompt,
            "constant": prompt / speed,
            "anew": anew,
            "reused": choose(turn <= 1, anew, bound_time(tail.flops, tail.bytes, s.pi, s.beta)),
            "kv": conversation,
            "users": how_many_fit(capacity - 2 * s.P, conversation),
        }
