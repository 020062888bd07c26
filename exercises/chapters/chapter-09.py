"""The graded question of chapter 9, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number

d, S, R = 4096, 50, 195
batch = 6 * d * R / (6 * d + S - R * (1 + S))

key = AnswerKey(
    "chapter-09",
    "Where prefill and decode sit",
    [
        number(
            "ridge_batch",
            batch,
            by_hand=326.43,  # 24,576 x 195 / (24,626 - 9,945)
            rtol=0.0005,
            points=1,
            unit="",
            purpose="Find the batch that carries a decode step to the ridge",
            hint="How do FLOP and bytes of a step grow with the batch, and at which batch is their "
            "ratio as high as the ridge?",
            wrong=[
                Wrong(
                    "no cache",
                    R,
                    "That holds for the weights alone. The caches of the batch move too, and a "
                    "larger batch is needed to make up for them.",
                ),
                Wrong(
                    "the ceiling",
                    (6 * d + S) / (1 + S),
                    "That is the intensity of an endless batch. It is above the ridge, so some "
                    "finite batch reaches it: which?",
                ),
                Wrong(
                    "upside down",
                    (6 * d + S - R * (1 + S)) / (6 * d),
                    "Your fraction is upside down, up to a factor: the weights stand above, what is "
                    "left of the work below.",
                ),
                Wrong(
                    "rounded up",
                    327,
                    "Close: that is the first whole batch past the ridge. Give the real number.",
                ),
                Wrong(
                    "rounded down",
                    326,
                    "Close: that is the last whole batch before the ridge. Give the real number.",
                ),
                Wrong(
                    "the other machine",
                    6 * d * 295.3 / (6 * d + S - 295.3 * (1 + S)),
                    "That is the batch for an H100. The ridge here is 195.",
                ),
            ],
        )
    ],
)
