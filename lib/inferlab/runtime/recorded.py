"""Next-token scores of the real model for a few prompts, recorded for the page without a kernel.

    python -m inferlab.runtime.recorded

makes the record anew. The largest logits are kept as they are. The other forty-nine thousand are
kept as a histogram: they matter only together, as the tail that temperature lifts.
"""

import json
import sys
from functools import cache
from importlib import resources

FILE = "recorded/next_tokens.json"
PROMPTS = {
    "a proverb": "The quick brown fox jumps over the lazy",
    "a fact": "The capital of France is",
    "a story": "Once upon a time, there was a little",
    "code": "def add(a, b):\n    return",
}
KEPT = 10  # logits kept one by one
BINS = 24  # of the histogram of the others


@cache
def next_tokens():
    """{name: {"prompt", "tokens" [[text, logit], ...], "tail" [[mean logit, count], ...]}}."""
    return json.loads((resources.files("inferlab") / "data" / FILE).read_text("utf-8"))


def summary(logits, pieces):
    """The record of one position: logits (V,), and a function from an id to the token's text."""
    import numpy as np

    order = np.argsort(-logits, kind="stable")
    kept, rest = order[:KEPT], logits[order[KEPT:]].astype(np.float64)
    edges = np.linspace(rest.min(), rest.max(), BINS + 1)
    which = np.clip(np.searchsorted(edges, rest, "right") - 1, 0, BINS - 1)
    tail = []
    for index in range(BINS):
        inside = rest[which == index]
        # The logit that stands for a bin keeps its share at temperature 1 exact.
        mean = float(np.log(np.mean(np.exp(inside)))) if inside.size else float(edges[index])
        tail.append([round(mean, 4), int(inside.size)])
    return {
        "tokens": [[pieces(int(i)), round(float(logits[i]), 4)] for i in kept],
        "tail": tail,
    }


def record(model):
    """What `next_tokens` returns, computed now."""
    found = {}
    for name, prompt in PROMPTS.items():
        logits = model.decoder.logits(model.tokenizer.encode(prompt))
        found[name] = {"prompt": prompt} | summary(logits, lambda i: model.tokenizer.decode([i]))
    return found


def main():
    """Write the record beside the package's data."""
    from inferlab.runtime import load

    path = resources.files("inferlab") / "data" / FILE
    path.write_text(json.dumps(record(load()), ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
