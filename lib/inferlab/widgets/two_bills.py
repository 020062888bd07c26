"""The bill of training, the bill of serving, and the day on which they are equal (chapter 3)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider, accelerators


class TwoBills(Explorer):
    """Training is paid once, serving every day; both by the busy second of a machine.

    Decode runs at the memory's full bandwidth and no machine idles, so the serving bill is a floor;
    training and prefill reach a share of the peak. Weights have 16 bits.
    """

    title = "Two bills: training once, serving every day"
    sweep = "B"
    columns = {
        "training_usd": "Training",
        "month_usd": "Serving, a month",
        "even": "Equal after, days",
    }
    units = {"training_usd": "USD", "month_usd": "USD"}

    @classmethod
    def controls(cls):
        return [
            Slider("B", "Batch", 1, 512, 64, "", log=True, help="Requests in a decode step."),
            Slider("requests", "Requests a day", 1e3, 1e9, 1e6, "", log=True, format="si"),
            Slider("N", "Prompt", 1, 131_072, 512, "tokens", log=True),
            Slider("T", "Answer", 1, 16_384, 128, "tokens", log=True),
            Slider("serving_price", "Rent for serving, an hour", 0.1, 20, 2.5, "", log=True,
                   integer=False, format="money"),
            Select("model", "Model", _sizes(), "8B, with its cache"),
            Slider("P", "Parameters", 1e8, 2e12, 8e9, "", log=True),
            Slider("ratio", "Training tokens a parameter", 1, 10_000, 20, "", log=True),
            Slider("mfu", "Share of the peak reached", 5, 100, 40, "%", format="percent",
                   help="In training and in prefill."),
            Slider("training_price", "Rent for training, an hour", 0.1, 20, 3, "", log=True,
                   integer=False, format="money"),
            Select(
                "machine",
                "Machine",
                accelerators("H100-text", "H100-SXM", "H200", "B200", "A100-SXM-80GB", "L4"),
                "H100-text",
            ),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.cost import break_even_days, request_time, serving_bill, training_bill
        from inferlab.derive import symbols as s

        requests, kv_bytes = sympy.symbols("requests kv_bytes", positive=True)
        tokens_each, mfu, day = sympy.symbols("ratio mfu day", positive=True)
        training_price, serving_price = sympy.symbols("training_price serving_price", positive=True)
        share = mfu / 100
        training = training_bill(
            s.P, s.pi, training_price, tokens_per_parameter=tokens_each, mfu=share
        )
        request = request_time(s.P, s.N, s.T, s.pi, s.beta, batch=s.B, kv_bytes=kv_bytes, mfu=share)
        serving = serving_bill(request, requests, serving_price)
        return {
            "training_usd": training.usd,
            "training_s": training.device_s,
            "tokens": training.tokens,
            "day_usd": serving.usd_a_day,
            "month_usd": serving.usd_a_month,
            "year_usd": serving.usd_a_year,
            "served_usd": serving.usd_a_day * day,
            "even": break_even_days(training, serving),
            "busy": serving.busy_devices,
            "request_usd": serving.usd_a_day / requests,
            "decode_share": request.decode_s / request.total_s,
        }


def _sizes():
    """Nominal parameters, and the KV bytes a token of the Llama model of that size."""
    from inferlab.architecture import Architecture

    kv_bytes = {
        size: Architecture.preset(f"Llama-3.1-{size}").kv_bytes(1) for size in ("8B", "70B")
    }
    return {
        "8B, with its cache": {"P": 8e9, "kv_bytes": kv_bytes["8B"]},
        "70B, with its cache": {"P": 70e9, "kv_bytes": kv_bytes["70B"]},
        "8B, no cache": {"P": 8e9, "kv_bytes": 0},
    }
