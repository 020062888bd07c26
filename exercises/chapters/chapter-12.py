"""The graded question of chapter 12, never released."""

from inferlab.architecture import Architecture
from inferlab.grading.checks import AnswerKey, Wrong, number

sent = Architecture.preset("Llama-3.1-8B").kv_bytes(4000)

key = AnswerKey(
    "chapter-12",
    "Systems that take the phases apart",
    [
        number(
            "transfer_seconds",
            sent / 50e9,
            by_hand=0.010486,
            points=1,
            unit="s",
            purpose="Turn a KV cache and a link into a time",
            hint="How many bytes of keys and values have these tokens left behind, and how many does the link carry in a second?",
            wrong=[
                Wrong(
                    "query heads",
                    4 * sent / 50e9,
                    "This model has 8 KV heads for its 32 query heads: only the former are cached.",
                ),
                Wrong("keys only", sent / 2 / 50e9, "Keys and values are both sent."),
                Wrong(
                    "one layer",
                    sent / 32 / 50e9,
                    "That is the cache of one layer. All 32 of them are sent.",
                ),
                Wrong(
                    "bits",
                    8 * sent / 50e9,
                    "The link's 50 GB/s are bytes already: no factor of eight.",
                ),
                Wrong(
                    "milliseconds",
                    sent / 50e9 * 1e3,
                    "That is the number of milliseconds: the answer is asked in seconds.",
                ),
            ],
        )
    ],
)
