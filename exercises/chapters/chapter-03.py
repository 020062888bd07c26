"""The graded question of chapter 3, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.training import device_seconds, training_flops

PARAMETERS, TOKENS, PEAK = 70 * 10**9, 15 * 10**12, 990e12
flops = training_flops(PARAMETERS, TOKENS)
hours = device_seconds(flops, PEAK, 0.4) / 3600

key = AnswerKey(
    "chapter-03",
    "What does it cost?",
    [
        number(
            "gpu_hours",
            hours,
            by_hand=4_419_191.9,
            points=1,
            unit="h",
            purpose="Turn parameters and tokens into GPU-hours",
            hint="Three steps: the FLOP of the run, the FLOP that one GPU really does in a second, and "
            "seconds in an hour.",
            wrong=[
                Wrong(
                    "forward only",
                    hours / 3,
                    "You counted 2 FLOP a parameter and token. That is the forward pass; backward "
                    "costs twice as much on top.",
                ),
                Wrong(
                    "at the peak",
                    hours * 0.4,
                    "That is the time at the peak. The GPUs reach 40 % of it, so they take longer.",
                ),
                Wrong(
                    "twenty tokens a parameter",
                    hours * (20 * PARAMETERS) / TOKENS,
                    "You trained on 20 tokens a parameter. This run saw 15 trillion tokens.",
                ),
                Wrong(
                    "sparse peak, or 3 P D",
                    hours / 2,
                    "That is half of it. Either your peak is twice 990 TFLOP/s, as with sparsity or in "
                    "fp8, or your 3 P D counts multiply-adds.",
                ),
                Wrong(
                    "GPU-seconds",
                    hours * 3600,
                    "Those are seconds, and hours are asked for.",
                ),
                Wrong(
                    "GPU-days",
                    hours / 24,
                    "Those are days. The question asks for hours.",
                ),
            ],
        )
    ],
)
