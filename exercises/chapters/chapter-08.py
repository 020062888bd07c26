"""The graded question of chapter 8, never released."""

from inferlab.accelerator import Accelerator
from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.roofline import ridge_point

key = AnswerKey(
    "chapter-08",
    "The Roofline model",
    [
        number(
            "h100_ridge",
            ridge_point(Accelerator.preset("H100-SXM")),
            by_hand=295.3,
            points=1,
            unit="FLOP/B",
            purpose="Compute a ridge point from a datasheet",
            hint="At how many FLOP for each byte does this card compute as long as it moves data?",
            wrong=[
                Wrong(
                    "sparse peak, or fp8",
                    1979e12 / 3.35e12,
                    "1,979 TFLOP/s is the bf16 peak with 2:4 sparsity, and the dense peak of fp8. A "
                    "dense product in bf16 gets half of it.",
                ),
                Wrong(
                    "fp8 peak with sparsity",
                    3958e12 / 3.35e12,
                    "That is the sparse fp8 peak: use the dense figure, and the one for bf16.",
                ),
                Wrong(
                    "another part",
                    756e12 / 2.0e12,
                    "Those are the numbers of the PCIe card: the SXM part has more of both.",
                ),
                Wrong(
                    "upside down",
                    3.35e12 / 989.4e12,
                    "That is bytes for each operation: turn the fraction over.",
                ),
            ],
        )
    ],
)
