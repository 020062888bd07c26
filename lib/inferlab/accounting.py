"""Accounting: what is counted, and how (chapter 6).

A chapter reads `ENGINE` unless it says otherwise.

Two people who count one forward pass differ because they count different things. `TEXT` reproduces
the formulas of the text that the book follows (its section 5.2), `ENGINE` counts what a serving
engine does. Any other choice is one of these with a term changed: `TEXT.but(kv_write=True)`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from inferlab.quantities import InputError

PAIRS = ("causal", "full", "text")
LOGITS = ("last", "all", "none")
ACTIVATIONS = ("layer", "unfused", "unfused-scores", "none")
MLA_WAYS = ("absorbed", "expanded", "reexpand")


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """What a step's count includes.

    pairs: which (query, key) pairs attention computes. `causal`: each query and the keys up to
        its own. `full`: the rectangle that an unmasked kernel computes. `text`: the square of a
        prefill, and S keys for a decode step, whose own token the text counts into S.
    logits: the positions that the output head runs on: the `last` of each sequence, `all`, `none`.
    activations: traffic of intermediate results. `layer`: each layer reads its input and writes
        its output once (2 d elements a token). `unfused`: every operator of a layer reads and
        writes memory (12 d + 6 f elements a token) but the fused attention. `unfused-scores`: the
        score matrix too (4 h elements a query-key pair).
    kv_read, kv_write: whether the KV cache's traffic is counted.
    mla: how multi-head latent attention decodes: `absorbed` (the latent is cached and attended
        to), `expanded` (K and V of all heads are cached), `reexpand` (the latent is cached, and
        K and V of all S+1 positions are rebuilt at each step).
    """

    pairs: str = "causal"
    logits: str = "last"
    activations: str = "layer"
    kv_read: bool = True
    kv_write: bool = True
    mla: str = "absorbed"

    def __post_init__(self):
        for field, allowed in (
            ("pairs", PAIRS),
            ("logits", LOGITS),
            ("activations", ACTIVATIONS),
            ("mla", MLA_WAYS),
        ):
            value = getattr(self, field)
            if value not in allowed:
                raise InputError(f"{field} is {value!r}: expected one of {', '.join(allowed)}")

    def but(self, **changes) -> Accounting:
        """This accounting with some fields changed: `ENGINE.but(logits="all")`."""
        return dataclasses.replace(self, **changes)


TEXT = Accounting(pairs="text", logits="none", activations="layer", kv_write=False)
"""The text's section 5.2. Its section 4.2 is `TEXT.but(kv_write=True, activations="none")`."""

ENGINE = Accounting()
"""What a serving engine does, and the default everywhere."""
