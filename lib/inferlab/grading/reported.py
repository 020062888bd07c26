"""What a learner's process reports, rebuilt in the only shapes that are read further on.

That process may write anything to its report: lists a thousand deep, a number where a text belongs,
half of a character. Whatever comes of it is a short list of flat dicts of text that can be written
to a file.
"""

from __future__ import annotations

import re

from inferlab.feedback.exercise import RECEIPT
from inferlab.feedback.values import MOST_VALUES

# Shown in the grader's and the learner's browser: no HTML, no scripts, no SVG from a submission.
PICTURES = ("image/png", "image/jpeg")
SAFE_OUTPUTS = ("text/plain", "text/latex", *PICTURES)
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")

MOST_OUTPUTS = 200  # of one cell; an honest one sends half as many at most


def whole_characters(text: str) -> str:
    """The text, with ? for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def outputs(given) -> list[dict]:
    """The outputs of one cell in nbformat's shape, of whatever was sent for them."""
    if not isinstance(given, list):
        return []
    rebuilt = (_output(each) for each in given[:MOST_OUTPUTS] if isinstance(each, dict))
    return [each for each in rebuilt if each]


def reason(given) -> str:
    """One short line of what was sent as the reason for a failure."""
    return "".join(c if c.isprintable() else " " for c in _text(given, 300)) or "no reason given"


def _output(given: dict) -> dict | None:
    kind = given.get("output_type")
    if kind == "stream":
        name = "stderr" if given.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": _text(given.get("text"), 25_000)}
    if kind == "error":
        lines = given.get("traceback")
        return {
            "output_type": "error",
            "ename": _text(given.get("ename"), 100),
            "evalue": _text(given.get("evalue"), 1000),
            "traceback": [_text(x, 2000) for x in (lines if isinstance(lines, list) else [])[:20]],
        }
    data = given.get("data")
    if kind not in ("display_data", "execute_result") or not isinstance(data, dict):
        return None
    kept = {mime: _text(data[mime]) for mime in SAFE_OUTPUTS if isinstance(data.get(mime), str)}
    for mime in PICTURES:
        if mime in kept and not BASE64.fullmatch(kept[mime]):
            del kept[mime]
    if isinstance(data.get(RECEIPT), dict):
        kept[RECEIPT] = _receipt(data[RECEIPT])
    return {"output_type": "display_data", "data": kept, "metadata": {}} if kept else None


def _receipt(given: dict) -> dict:
    receipt: dict = {"question": _text(given.get("question"), 200)}
    if given.get("problem") is not None:
        return receipt | {"problem": _text(given["problem"], 200)}
    values = given.get("values")
    plain = isinstance(values, list) and len(values) <= MOST_VALUES
    if plain and all(isinstance(value, (str, int, float)) for value in values):
        receipt["values"] = [_text(v) if isinstance(v, str) else v for v in values]
    return receipt


def _text(given, most: int | None = None) -> str:
    return whole_characters(given[:most]) if isinstance(given, str) else ""
