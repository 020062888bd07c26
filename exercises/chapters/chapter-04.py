"""The graded question of chapter 4, never released."""

from inferlab.grading.checks import AnswerKey, Wrong, number

gigabytes = 2 * 48 * 8 * 128 * 2 * 32_768 / 1e9

key = AnswerKey(
    "chapter-04",
    "How training decides what inference costs",
    [
        number(
            "kv_gigabytes",
            gigabytes,
            by_hand=6.442450944,
            points=1,
            unit="GB",
            purpose="Compute a KV cache from a model's shapes",
            hint="What does one token leave behind in one layer: how many vectors, of what width? Then "
            "layers, tokens and bytes.",
            wrong=[
                Wrong(
                    "query heads",
                    5 * gigabytes,
                    "You cached all 40 heads. Keys and values are kept for the KV heads only.",
                ),
                Wrong(
                    "key or value",
                    gigabytes / 2,
                    "You kept one vector a head. A key and a value are both cached.",
                ),
                Wrong(
                    "one layer",
                    gigabytes / 48,
                    "That is one layer. Every layer has keys and values of its own.",
                ),
                Wrong(
                    "GiB",
                    gigabytes * 1e9 / 2**30,
                    "That is in GiB, of 2^30 bytes. Decimal GB have 10^9.",
                ),
                Wrong(
                    "elements",
                    gigabytes / 4,
                    "Check the bytes of a 16-bit number, and that both keys and values are counted.",
                ),
            ],
        )
    ],
)
