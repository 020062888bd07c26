"""How temperature and top-p turn the model's scores into a choice (chapter 1)."""

from __future__ import annotations

from inferlab.widgets.explorer import Explorer, Select, Slider


class NextToken(Explorer):
    """The chances of the ten likeliest next tokens, from logits that the real model gave.

    The ten are exact. The rest of the vocabulary is a histogram of its logits, which moves the
    shown chances by less than a fiftieth of themselves (at temperature 1 not at all).
    """

    title = "From scores to a choice"
    sweep = "tau"
    columns = {"share": "Chance of the likeliest token", "rest": "Chance of all but the ten"}

    @classmethod
    def controls(cls):
        from inferlab.runtime.recorded import next_tokens

        prompts = {name: cls._numbers(entry) for name, entry in next_tokens().items()}
        return [
            Select("prompt", "The text so far", prompts, next(iter(prompts))),
            Slider(
                "tau", "Temperature", 0.1, 2, 1, step=0.05, integer=False, format="number",
                help="Below 1 the likely tokens gain, above 1 the unlikely ones.",
            ),
            Slider(
                "top_p", "Top-p", 0.05, 1, 1, step=0.05, integer=False, format="number",
                help="Choose among the fewest tokens whose chances reach this sum.",
            ),
        ]  # fmt: skip

    @staticmethod
    def _numbers(entry):
        """Every logit as its distance from the largest: z_1 .. of the ten, c and n of the tail."""
        largest = entry["tokens"][0][1]
        numbers = {f"z_{i}": z - largest for i, (_, z) in enumerate(entry["tokens"], 1)}
        for i, (logit, count) in enumerate(entry["tail"], 1):
            numbers |= {f"c_{i}": logit - largest, f"n_{i}": count}
        return numbers | {"z": 0}

    @classmethod
    def formulas(cls):
        import sympy

        from inferlab.runtime.recorded import BINS, KEPT

        tau = sympy.Symbol("tau", positive=True)

        def weight(name):
            return sympy.exp(sympy.Symbol(name, real=True) / tau)

        ten = sum(weight(f"z_{i}") for i in range(1, KEPT + 1))
        tail = sum(
            sympy.Symbol(f"n_{i}", nonnegative=True) * weight(f"c_{i}") for i in range(1, BINS + 1)
        )
        total = ten + tail
        return {"total": total, "share": weight("z") / total, "rest": tail / total}

    @classmethod
    def data(cls):
        from inferlab.runtime.recorded import next_tokens

        return {
            name: {
                "prompt": entry["prompt"],
                "tokens": [[text, z - entry["tokens"][0][1]] for text, z in entry["tokens"]],
            }
            for name, entry in next_tokens().items()
        }
