"""The graded question of chapter 5, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number

prompt, answer = 900, 300

key = AnswerKey(
    "chapter-05",
    "A token's life cycle",
    [
        number(
            "cached_tokens",
            prompt + answer - 1,
            by_hand=1199,  # 900 + 300 - 1
            rtol=0.0001,
            points=1,
            purpose="Say which tokens are cached when a request ends",
            hint="Follow the cache: what is in it after the prefill, and what does each decode step "
            "add? How many decode steps are there?",
            wrong=[
                Wrong(
                    "the last token too",
                    prompt + answer,
                    "You counted all tokens. The last one is chosen and sent, but never fed back, so "
                    "its key and value are never computed.",
                ),
                Wrong(
                    "the prompt only",
                    prompt,
                    "That is the cache after the prefill. Each decode step adds one token.",
                ),
                Wrong(
                    "the answer only",
                    answer - 1,
                    "That is what the decode steps add. The prompt's tokens are cached too.",
                ),
                Wrong(
                    "two tokens missing",
                    prompt + answer - 2,
                    "You took one decode step too few: prefill gives the first of the 300 tokens, and "
                    "299 steps follow.",
                ),
            ],
        )
    ],
)
