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
            rtol=0.001,
            purpose="Count the requests that fit beside the weights on several GPUs",
            hint="What is left of one card after its share of the weights, over its share of one request's cache.",
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
