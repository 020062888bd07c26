"""The graded question of chapter 13, never released."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.deployment import Deployment, sequences_that_fit
from inferlab.grading.checks import AnswerKey, Wrong, number

four = Deployment(
    architecture=Architecture.preset("Llama-3.1-70B"),
    accelerator=Accelerator.preset("H100-SXM"),
    gpus=4,
    kv="bf16",
)
fit = sequences_that_fit(four, 4000)
one = four.architecture.kv_bytes(4000)
room = 4 * (0.9 * four.accelerator.capacity - 1.7e9)

key = AnswerKey(
    "chapter-13",
    "Size your own deployment",
    [
        number(
            "requests",
            fit,
            by_hand=106,
            points=1,
            unit="",
            rtol=0.0002,
            purpose="Count the requests that fit beside the weights on several GPUs",
            hint="What does one card have left beside its share of the weights, and what does one request take of it?",
            wrong=[
                Wrong(
                    "the whole cache on each GPU",
                    26,
                    "Each GPU holds 2 of the 8 KV heads: its share of the cache is a quarter.",
                ),
                Wrong(
                    "the whole card",
                    136,
                    "The engine takes 0.9 of the card, and keeps 1.7 GB of that for itself.",
                ),
                Wrong(
                    "nothing reserved",
                    112,
                    "Of its 0.9 the engine keeps 1.7 GB for workspace.",
                ),
                Wrong(
                    "not rounded down",
                    (room - 2 * four.architecture.parameters.total) / one,
                    "Nearly: a part of a request does not fit. Give whole requests.",
                ),
                Wrong(
                    "rounded up, or 70 billion parameters",
                    107,
                    "Nearly: the last of these does not fit. Round down, and count all 70.55 billion "
                    "parameters.",
                ),
                Wrong(
                    "70 billion parameters, not rounded down",
                    (room - 2 * 70e9) / one,
                    "Nearly: count all 70.55 billion parameters, and give whole requests.",
                ),
                Wrong(
                    "query heads",
                    13,
                    "Keys and values exist for the 8 KV heads, not for the 64 query heads.",
                ),
                Wrong(
                    "summed over the GPUs",
                    427,
                    "Every GPU works for every request: the four shares hold the same requests.",
                ),
            ],
        )
    ],
)
