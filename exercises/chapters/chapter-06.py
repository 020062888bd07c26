"""The graded question of chapter 6, never released."""

from inferlab.architecture import Architecture
from inferlab.grading.checks import AnswerKey, Wrong, number
from inferlab.step import Sequence, step

model = Architecture.preset("LLaMA-7B")
attention = step(model, [Sequence(1000, cached=2000)]).components["attention_scores_values"].flops
per_pair = 4 * 32 * 4096  # scores and values, all layers and heads

key = AnswerKey(
    "chapter-06",
    "Prefill",
    [
        number(
            "attention_flop",
            attention,
            by_hand=1_310_982_144_000,
            points=1,
            unit="FLOP",
            purpose="Count causal pairs when part of the prompt is cached",
            hint="Count the (query, key) pairs first: what does each of the 1000 new tokens see? "
            "A pair costs 4 d FLOP a layer.",
            wrong=[
                Wrong(
                    "square of the sum",
                    per_pair * 3000**2,
                    "You counted 3000 queries. Only the 1000 new tokens ask; the cached ones are keys.",
                ),
                Wrong(
                    "prefix forgotten",
                    per_pair * 1000 * 1001 // 2,
                    "You counted the new tokens among themselves. They also look at the 2000 cached "
                    "ones.",
                ),
                Wrong(
                    "full rectangle",
                    per_pair * 1000 * 3000,
                    "That is the whole rectangle of 1000 queries and 3000 keys. A causal kernel skips "
                    "the keys that come after a query.",
                ),
                Wrong(
                    "one layer",
                    attention // 32,
                    "That is one layer. The question asks for all of them.",
                ),
                Wrong(
                    "MAC for FLOP",
                    attention // 2,
                    "A multiply-add counts as two FLOP: your answer counts multiply-adds.",
                ),
            ],
        )
    ],
)
