"""The graded question of chapter 2, never released."""

from fractions import Fraction

from inferlab.grading.checks import AnswerKey, Wrong, number

N, T = 100, 400
without = sum(N + i for i in range(T))
with_cache = N + T - 1

key = AnswerKey(
    "chapter-02",
    "Training and inference",
    [
        number(
            "token_ratio",
            Fraction(without, with_cache),
            by_hand=240.08,  # (100 + 101 + ... + 499) / (100 + 399) = 119,800 / 499
            rtol=0.0005,
            points=1,
            unit="",
            purpose="Count what a KV cache saves",
            hint="Write down how many tokens the first, the second and the last pass carry, each way, "
            "and add them up. The first token of the answer comes from the pass over the prompt.",
            wrong=[
                Wrong(
                    "upside down",
                    Fraction(with_cache, without),
                    "That is with over without: the question asks how many times as many pass "
                    "without the cache.",
                ),
                Wrong(
                    "every pass as long as the last",
                    Fraction(T * (N + T - 1), with_cache),
                    "You let every pass read the whole finished text. The first reads the prompt "
                    "only, and each reads one token more than the one before.",
                ),
                Wrong(
                    "answer only",
                    Fraction(sum(range(1, T + 1)), T),
                    "You left the prompt out: it has to pass too, once with a cache and every time "
                    "without.",
                ),
                Wrong(
                    "last token fed",
                    Fraction(without, N + T),
                    "Nearly: with the cache you fed the last token too. It is handed out, and no pass "
                    "reads it.",
                ),
                Wrong(
                    "first pass forgotten",
                    Fraction(without + T, with_cache),
                    "Nearly: without the cache the first pass reads the prompt alone, and the last one "
                    "does not read the token that it makes.",
                ),
                Wrong(
                    "one token too many each way",
                    Fraction(without + T, N + T),
                    "Nearly: each way you fed one token too many. The pass over the prompt makes the "
                    "first token, and the last token is not fed.",
                ),
                Wrong(
                    "prompt every time",
                    Fraction(without, T),
                    "You counted the answer's tokens only for the way with a cache. The prompt passes "
                    "once there.",
                ),
            ],
        )
    ],
)
