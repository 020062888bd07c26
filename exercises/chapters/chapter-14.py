"""The graded question of chapter 14, never released."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.roofline import roofline
from inferlab.step import decode, step

llama = Architecture.preset("Llama-3.1-8B")
h100 = Accelerator.preset("H100-SXM")
at = roofline(step(llama, decode(4000, 16)), h100)

key = AnswerKey(
    "chapter-14",
    "Summary, glossary and ledger",
    [
        number(
            "step_seconds",
            at.time_s,
            by_hand=6.9876e-3,
            points=1,
            unit="s",
            purpose="Bound a decode step of a real model on a real machine",
            hint="Count with step(model, decode(4000, 16)), then ask roofline(...) for the time.",
            wrong=[
                Wrong(
                    "milliseconds",
                    1e3 * at.time_s,
                    "The number is in milliseconds, and seconds are asked for.",
                ),
                Wrong(
                    "one sequence",
                    roofline(step(llama, decode(4000)), h100).time_s,
                    "That is a batch of one. Each of the sixteen sequences reads a cache of its own.",
                ),
                Wrong(
                    "compute time",
                    at.compute_s,
                    "That is the arithmetic alone, which is over long before the data has arrived.",
                ),
                Wrong(
                    "query heads for KV heads",
                    roofline(step(llama.but(kv_heads=llama.heads), decode(4000, 16)), h100).time_s,
                    "This model has 8 KV heads for its 32 query heads.",
                ),
            ],
        )
    ],
)
