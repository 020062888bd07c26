"""Whether a model fits on some GPUs, how fast it can be, what it costs, what to change (chapter 13)."""

from __future__ import annotations

from typing import Any

from inferlab.widgets.explorer import Explorer, Paste, Select, Slider, dtypes

MODELS = (
    "LLaMA-7B", "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Llama-3.2-1B", "Llama-3.2-3B",
    "Mistral-7B-v0.3", "Mistral-Small-24B", "Qwen2.5-7B", "Qwen2.5-72B", "Qwen3-4B", "Qwen3-8B",
    "Qwen3-32B", "SmolLM2-135M",
)  # fmt: skip

ACCELERATORS = (
    "A100-SXM-40GB", "A100-SXM-80GB", "H100-SXM", "H100-PCIe", "H200", "B200", "L4", "L40S",
    "RTX-4090",
)  # fmt: skip

FLAGS = ("tied", "qkv_bias", "out_bias", "ffn_bias")
"""What a plain dense model has or has not: 1 or 0 in the formulas."""


class DeploymentSizer(Explorer):
    """`inferlab.deployment` for a dense model: what no engine can beat, as a bound.

    A model is picked by name or read from its pasted config.json; the view's `read` takes the
    configs whose every parameter these formulas count, and refuses the others.
    """

    title = "Size a deployment: the bound that no engine beats"
    sweep = "B"
    columns = {
        "ttft": "First token of all",
        "tpot": "A further token",
        "tokens_per_s": "Tokens a second",
        "usd": "A million tokens",
        "fit": "Requests that fit",
    }
    units = {"ttft": "s", "tpot": "s", "usd": "USD"}

    @classmethod
    def controls(cls):
        weights = dtypes("w")
        return [
            Select("model", "Model", _models(), "LLaMA-7B"),
            Select("machine", "GPU", _machines(), "A100-SXM-40GB"),
            Slider("gpus", "Number of GPUs", 1, 16, 1, stops=(1, 2, 4, 8, 16)),
            Select(
                "weights",
                "Weights",
                {
                    "bf16": weights["bf16"] | {"eight": 0},
                    "fp8": weights["8 bits"] | {"eight": 1},
                    "int4": weights["4 bits"] | {"eight": 0},
                },
                "bf16",
                help="Fewer bits change the answers.",
            ),
            Select("cache", "KV cache", {"bf16": {"q": 2}, "fp8": {"q": 1}}, "bf16"),
            Select(
                "goal",
                "What matters most",
                {goal: {} for goal in ("cost", "time per token", "time to first token")},
                "cost",
            ),
            Slider("N", "Prompt", 16, 131_072, 3000, "tokens", log=True),
            Slider("T", "Answer", 2, 16_384, 200, "tokens", log=True),
            Slider("B", "Requests at a time", 1, 1024, 8, log=True),
            Slider("price", "Price of a GPU, an hour", 0.1, 20, 2.5, log=True, integer=False,
                   format="money"),
            Paste(
                "config",
                "Use a model of your own: paste its config.json",
                over="model",
                help="It is read in your browser and goes nowhere.",
            ),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.accelerator import Accelerator
        from inferlab.cost import price_per_million_tokens
        from inferlab.deployment import (
            Deployment,
            bound,
            ceilings,
            memory,
            mid_context,
            running,
            sequences_that_fit,
            step_bound,
        )
        from inferlab.derive import symbols as s
        from inferlab.quantities import choose
        from inferlab.step import decode, prefill

        gpus, w, q, eight, price = sympy.symbols("gpus w q eight price", positive=True)
        peak, capacity, link = sympy.symbols("pi_8 capacity link", positive=True)
        machine = Accelerator(
            name="any",
            # 8-bit weights run on the 8-bit peak where there is one.
            peaks={"bf16": choose(eight > sympy.Rational(1, 2), peak, s.pi)},
            bandwidth=s.beta,
            capacity=capacity,
            link_bandwidth=link,
        )
        model = _dense()
        d = Deployment(
            architecture=model, accelerator=machine, gpus=gpus, weights=w, kv=q, compute="bf16"
        )
        whole = s.N + s.T - 1
        held = memory(d, whole, s.B)
        times = bound(d, s.N, s.T, s.B)
        first = ceilings(d, prefill(s.N, s.B))
        together = running(d, s.N, s.T, s.B)
        later = ceilings(d, decode(mid_context(s.N, s.T), together))
        return {
            "parameters": _parameters(),
            "weights": held.weights,
            "kv": held.kv,
            "reserved": held.reserved,
            "free": held.free,
            "fit": sequences_that_fit(d, whole),
            "running": together,
            "ttft": times.ttft_s,
            "ttft_alone": step_bound(d, prefill(s.N, 1)),
            "tpot": times.tpot_s,
            "tokens_per_s": times.tokens_per_s,
            "usd": price_per_million_tokens(price, times.tokens_per_s, gpus),
            **{f"prefill_{name}": seconds for name, seconds in first.items()},
            **{f"decode_{name}": seconds for name, seconds in later.items()},
        }


def _models() -> dict[str, dict[str, Any]]:
    from inferlab.architecture import Architecture

    return {name: shape(Architecture.preset(name)) for name in MODELS}


def shape(a) -> dict[str, Any]:
    """A plain dense model under the names that the formulas use."""
    return {
        "L": a.layers, "d": a.hidden, "f": a.ffn, "h": a.heads, "h_kv": a.kv_heads,
        "d_h": a.head_dim, "V": a.vocab, "P": a.parameters.total, "qk_norm": a.qk_norm, "context": a.max_positions or 0,
    } | {flag: int(getattr(a, flag)) for flag in FLAGS}  # fmt: skip


def _machines() -> dict[str, dict[str, Any]]:
    from inferlab.accelerator import Accelerator
    from inferlab.deployment import compute_dtype

    chips = {name: Accelerator.preset(name) for name in ACCELERATORS}
    return {
        name: {
            "pi": chip.peak("bf16"), "pi_8": chip.peak(compute_dtype("fp8", chip)),
            "beta": chip.bandwidth, "capacity": chip.capacity, "link": chip.link_bandwidth,
        }
        for name, chip in chips.items()
    }  # fmt: skip


def _dense():
    """A dense decoder in symbols that holds P parameters."""
    from dataclasses import replace

    from inferlab.architecture import Architecture
    from inferlab.derive import symbolic_architecture
    from inferlab.derive import symbols as s

    class Dense(Architecture):
        """Its parameters are a number of their own, since ties and biases are not sizes."""

        @property
        def parameters(self):
            return replace(super().parameters, total=s.P)

    return Dense(**vars(symbolic_architecture()))


def _parameters():
    """P of a dense decoder, with a symbol that is 1 or 0 for each of FLAGS."""
    import sympy

    from inferlab.derive import symbolic_architecture

    plain = symbolic_architecture(qk_norm=sympy.Symbol("qk_norm", positive=True))
    bare = plain.parameters.total
    return bare + sum(
        sympy.Symbol(flag, positive=True) * (plain.but(**{flag: True}).parameters.total - bare)
        for flag in FLAGS
    )
