"""The graded question of chapter 7, never released."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.roofline import roofline
from inferlab.step import decode, step

model = Architecture.preset("Llama-3.1-8B")
h100 = Accelerator.preset("H100-SXM")
work = step(model, decode(8000, 8))

key = AnswerKey(
    "chapter-07",
    "Decode",
    [
        number(
            "step_seconds",
            roofline(work, h100).time_s,
            by_hand=6.98602e-3,  # (15.009 GB weights + 8 x 8001 x 131,072 B + 4.19 MB) / 3.35 TB/s
            rtol=0.002,
            points=1,
            unit="s",
            purpose="Bound a decode step of a batch by its bytes",
            hint="What does one step move: what once for all eight conversations, what for each of "
            "them? How long does that take?",
            wrong=[
                Wrong(
                    "cache of the query heads",
                    (work.bytes + 3 * work.kv_read) / h100.bandwidth,
                    "Your cache is four times too large: this model caches 8 KV heads, not 32 query "
                    "heads.",
                ),
                Wrong(
                    "embedding table",
                    (work.bytes + 2 * model.parameters.embedding) / h100.bandwidth,
                    "A step looks up one row of the embedding table for each sequence; it does not "
                    "read the table.",
                ),
                Wrong(
                    "sum of both times",
                    roofline(work, h100).memory_s + roofline(work, h100).compute_s,
                    "You added computing and moving. At the least, the two overlap.",
                ),
                Wrong(
                    "weights for each sequence",
                    (work.bytes + 7 * work.weights) / h100.bandwidth,
                    "The eight sequences share one reading of the weights.",
                ),
                Wrong(
                    "cache of one sequence",
                    (work.bytes - work.kv_read * 7 / 8) / h100.bandwidth,
                    "Each of the eight conversations has a cache of its own, and all are read.",
                ),
                Wrong(
                    "arithmetic only",
                    work.flops / h100.peak("bf16"),
                    "That is the time to compute. Compare it with the time to move the bytes: the "
                    "slower of the two decides.",
                ),
            ],
        )
    ],
)
