"""The graded question of chapter 14, never released."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.roofline import roofline
from inferlab.step import decode, step

llama = Architecture.preset("Llama-3.1-8B")
h100 = Accelerator.preset("H100-SXM")
work = step(llama, decode(4000, 16))
at = roofline(work, h100)

key = AnswerKey(
    "chapter-14",
    "Summary, glossary and ledger",
    [
        number(
            "step_seconds",
            at.time_s,
            by_hand=6.9876e-3,  # (15.009 GB weights + 16 x 4001 x 131,072 B + 8.39 MB) / 3.35 TB/s
            rtol=0.002,
            points=1,
            unit="s",
            purpose="Bound a decode step of a real model on a real machine",
            hint="What does the step move, once for all and for each sequence, and is moving it or computing "
            "the slower of the two?",
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
                    (work.bytes + 3 * work.kv_read) / h100.bandwidth,
                    "This model has 8 KV heads for its 32 query heads.",
                ),
                Wrong(
                    "keys alone",
                    (work.bytes - work.kv_read / 2) / h100.bandwidth,
                    "A cache holds a key and a value for each token and KV head: both are read.",
                ),
                Wrong(
                    "embedding table",
                    (work.bytes + 2 * llama.parameters.embedding) / h100.bandwidth,
                    "A step looks up one row of the embedding table for each sequence; it does not read "
                    "the table.",
                ),
                Wrong(
                    "sum of both times",
                    at.memory_s + at.compute_s,
                    "You added computing and moving. At the least, the two overlap.",
                ),
                Wrong(
                    "another machine",
                    roofline(work, Accelerator.preset("A100-SXM-40GB")).time_s,
                    "That is the step on an A100 with 40 GB. The question asks for an H100.",
                ),
            ],
        )
    ],
)
