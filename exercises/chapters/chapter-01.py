"""The graded question of chapter 1, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number

first, gap, tokens = 0.4, 0.05, 20

key = AnswerKey(
    "chapter-01",
    "What is inference?",
    [
        number(
            "answer_seconds",
            first + (tokens - 1) * gap,
            by_hand=1.35,  # 0.4 + 19 x 0.05
            points=1,
            unit="s",
            purpose="Put TTFT and TPOT together to the time of a whole answer",
            hint="One token is there after the first wait. How many are still to come, and how long "
            "is the gap before each?",
            wrong=[
                Wrong(
                    "a gap for every token",
                    first + tokens * gap,
                    "You waited for twenty gaps. The first token comes at the end of the first wait, "
                    "so only nineteen gaps follow.",
                ),
                Wrong(
                    "without the first wait",
                    (tokens - 1) * gap,
                    "You left out the wait before the first token.",
                ),
                Wrong(
                    "first wait for every token",
                    tokens * first,
                    "Only the first token waits that long; the others follow at the shorter gap.",
                ),
            ],
        )
    ],
)
