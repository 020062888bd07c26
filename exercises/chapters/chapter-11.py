"""The graded question of chapter 11, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number

key = AnswerKey(
    "chapter-11",
    "Conversations and retrieval",
    [
        number(
            "turn_9_tokens",
            300 + 1500 + 60,
            by_hand=1860,
            points=1,
            unit="",
            rtol=0.0001,
            purpose="Say what a prefix cache cannot find in a prompt with retrieved documents",
            hint="Find the first token of this prompt that differs from the last one: count from there.",
            wrong=[
                Wrong(
                    "only what is new",
                    1500 + 60,
                    "The last question and answer stood behind documents that are gone now: they"
                    " are computed again too.",
                ),
                Wrong(
                    "documents before the history",
                    1500 + 8 * 300 + 60,
                    "That is with the documents in front of the history.",
                ),
                Wrong(
                    "documents kept",
                    1500 + 61,
                    "That is if earlier documents stay in the history; here they are dropped.",
                ),
                Wrong(
                    "no cache",
                    800 + 8 * 300 + 1500 + 60,
                    "That is the whole prompt: what of it has been sent before, in the same order?",
                ),
            ],
        )
    ],
)
