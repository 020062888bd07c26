"""Arguments that several commands share: models, dtypes, whole numbers and steps."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings

from inferlab.architecture import Architecture
from inferlab.quantities import BITS_PER_ELEMENT, InputError
from inferlab.step import Sequence

MOST = 10**12
"""No count on the command line is larger: more is a slip."""

MODEL_HELP = "a model by name (see `inferlab list models`), or the path of its config.json"
DTYPE_HELP = f"one of {', '.join(BITS_PER_ELEMENT)}"


def architecture(text: str) -> tuple[Architecture, list[str]]:
    """The model that a name or a path means, and what was read in the likeliest way.

    A name may have its publisher before it (`meta-llama/Llama-3.1-8B`). Raises InputError for an
    unknown name and for a config that cannot be used.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exists = os.path.exists(text)
        name = text if exists else text.rpartition("/")[2]
        if text.endswith(".json") or (exists and ("/" in text or not _is_preset(text))):
            model = Architecture.from_hf_config(text)
        else:
            model = Architecture.preset(name)
            if exists:
                warnings.warn(
                    f"{text} is taken as the name of {model.name}: for what lies at that path give"
                    f" ./{text}",
                    stacklevel=2,
                )
    return model, [str(each.message) for each in caught]


def _is_preset(name: str) -> bool:
    try:
        Architecture.preset(name)
    except InputError:
        return False
    return True


def say(notes: list[str]):
    """Print notes where they do not disturb the output."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def whole(text: str) -> int:
    """A whole number of zero or more, as argparse's type."""
    if not re.fullmatch(r"[0-9]{1,13}", text) or int(text) > MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 0 to {MOST:,}")
    return int(text)


def above_zero(text: str) -> int:
    """A whole number above zero, as argparse's type."""
    if whole(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return int(text)


def dtype(text: str) -> str:
    """The name of a dtype, as argparse's type."""
    if text not in BITS_PER_ELEMENT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a dtype: expected {DTYPE_HELP}")
    return text


def batch(text: str) -> list[Sequence]:
    """The sequences of a step: `new:cached` pairs joined by commas, as argparse's type."""
    sequences = []
    for pair in text.split(","):
        new, colon, cached = pair.strip().partition(":")
        if not colon:
            raise argparse.ArgumentTypeError(
                f"{pair[:40]!r} is not new:cached, the tokens that a sequence feeds and has cached"
            )
        sequences.append(Sequence(above_zero(new), whole(cached)))
    return sequences
