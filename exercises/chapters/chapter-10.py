"""The graded question of chapter 10, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.serving.growth import prefilled_with_cache, prefilled_without_cache

key = AnswerKey(
    "chapter-10",
    "Agents",
    [
        number(
            "prefilled_tokens",
            prefilled_with_cache(30, 3000, 951),
            by_hand=30579,
            points=1,
            unit="",
            rtol=0.0002,
            purpose="Add up the prefill of an agent with a prefix cache",
            hint="The first call computes its prompt. What does a later one compute that nobody has?",
            wrong=[
                Wrong(
                    "the last token of the answer is forgotten",
                    3000 + 29 * 950,
                    "Nearly: the last token of an answer was picked, but never fed back, so its keys"
                    " and values are not in the cache.",
                ),
                Wrong(
                    "answers are prefilled again",
                    3000 + 29 * 1000,
                    "Decoding has left keys and values of the answers behind: they are found too.",
                ),
                Wrong(
                    "no cache",
                    prefilled_without_cache(30, 3000, 1000),
                    "That is without a cache: every call computes its whole prompt.",
                ),
            ],
        )
    ],
)
