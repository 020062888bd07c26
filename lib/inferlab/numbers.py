"""Numbers that the prose quotes: computed in a cell, formatted once, recorded for review.

    from inferlab.numbers import number
    number("prefill-total", work.flops / 1e12, ".1f", "TFLOP")

The sentence then says ``{eval}`number["prefill-total"]` ``. On the website that role shows the
formatted text; in JupyterLab it asks the kernel for the same text, so a changed input changes the
sentence.

When the environment names a folder in INFERLAB_NUMBERS, every text is appended to ``numbers.jsonl``
there: that is how the build writes down every number of the book, to be compared with the
committed ``numbers.json``.
"""

import json
import math
import os
import re
from pathlib import Path

from inferlab.quantities import InputError

RECORD = "numbers.jsonl"

_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")


class Numbers:
    """The numbers of one chapter by key. Call it to set one, index it to read its text."""

    def __init__(self):
        self._texts = {}

    def __call__(self, key, value, spec="", unit=""):
        """Format `value` by `spec` (as in ``format``), add `unit`, keep it under `key`.

        Returns the text, for instance "43.4 TFLOP".
        The key begins with a word for its chapter: "prefill-total".

        Raises InputError for a key that is not words joined by hyphens, for a value that is not
        finite or does not fit the spec, and, while a build records, for a second text under a key.
        """
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise InputError(
                f"the key of a number is {key!r}: expected two or more lower-case words joined by "
                'hyphens, the first one for its chapter, like "prefill-total"'
            )
        text = _format(key, value, spec) + (f" {unit}" if unit else "")
        folder = os.environ.get("INFERLAB_NUMBERS")
        if folder:
            if self._texts.get(key, text) != text:
                raise InputError(
                    f'the number "{key}" already reads "{self._texts[key]}" and cannot also read '
                    f'"{text}": give the second one its own key'
                )
            _record(folder, key, text)
        self._texts[key] = text
        _glue(key, text)
        return text

    def __getitem__(self, key):
        """Return the text kept under `key`."""
        if key not in self._texts:
            known = ", ".join(sorted(self._texts)) or "none yet"
            raise InputError(
                f'there is no number "{key}" (known: {known}): run the cell that computes it'
            )
        return self._texts[key]


def _format(key, value, spec):
    """Format ints, floats and strings as they are, exact and symbolic numbers through float."""
    if not isinstance(value, (int, float, str)):
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f'the number "{key}" is {value!r}: expected a number, so substitute the symbols that '
                "are left"
            ) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f'the number "{key}" is {value}: expected a finite number')
    try:
        return format(value, spec)
    except ValueError:
        raise InputError(
            f'the number "{key}" ({value!r}) cannot be formatted as {spec!r}: '
            'use a format like ".1f" or ",d"'
        ) from None


def _record(folder, key, text):
    """Append one line; lines this short are written whole even when processes share the file."""
    line = json.dumps({"key": key, "text": text}, ensure_ascii=False) + "\n"
    with open(Path(folder) / RECORD, "a", encoding="utf-8") as file:
        file.write(line)


def _glue(key, text):
    """Attach the text to the running cell in the form that the book's build reads (myst-nb glue).

    The output has a private type, so that a notebook shows nothing for it. Outside a notebook
    there is nothing to attach it to.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return
    if not hasattr(get_ipython(), "kernel"):
        return
    from IPython.display import display

    prefix = "application/papermill.record/"
    display(
        {prefix + "text/plain": repr(text)},
        raw=True,
        metadata={"scrapbook": {"name": key, "mime_prefix": prefix}},
    )


number = Numbers()


def read_record(folder):
    """Return {key: text} of a recorded build, sorted by key.

    Raises InputError where two chapters gave one key different texts.
    """
    path = Path(folder) / RECORD
    texts = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for entry in map(json.loads, lines):
        key, text = entry["key"], entry["text"]
        if texts.setdefault(key, text) != text:
            raise InputError(
                f'the number "{key}" reads "{texts[key]}" in one chapter and "{text}" in another: '
                "give each its own key"
            )
    return dict(sorted(texts.items()))
