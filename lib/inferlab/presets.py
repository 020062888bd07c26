"""Presets: the models and machines that the library ships, and those that a user adds.

A user's own file is TOML with the tables `[accelerators.NAME]` and `[models.NAME]`, written like the
shipped ones. It is named by the environment variable INFERLAB_PRESETS or by `--presets FILE` on the
command line, and its entries come before shipped ones of the same name.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from pathlib import Path

from inferlab.quantities import InputError, short

VARIABLE = "INFERLAB_PRESETS"
"""The environment variable that names a user's own preset file."""

KINDS = ("accelerators", "models")

MAX_BYTES = 16 * 2**20
"""No preset file or config is larger: a longer one is not one."""


def find(name: str, known: dict, kind: str):
    """The entry of `known` called `name`, whatever its case, spaces and dashes.

    kind: what is looked for, in the singular ("model"). Raises InputError that names near misses.
    """
    if not isinstance(name, str):
        raise InputError(f"the {kind} is {short(name)}: expected a name, as text")
    if name in known:
        return known[name]
    spelled = {_plain(each): each for each in known}
    if _plain(name) in spelled:
        return known[spelled[_plain(name)]]
    near = [key for key in spelled if _plain(name) and key.startswith(_plain(name))]
    near.sort(key=len)
    near += difflib.get_close_matches(_plain(name), spelled, n=3, cutoff=0.5)
    hint = " or ".join(dict.fromkeys(spelled[key] for key in near[:4]))
    hint = f"did you mean {hint}?" if hint else f"see `inferlab list {kind}s`"
    raise InputError(f"unknown {kind} {name[:80]!r}: {hint}")


def own(kind: str) -> tuple[dict, Path | None]:
    """The tables of one kind ("models") in the user's preset file, and that file; ({}, None) if none."""
    path = os.environ.get(VARIABLE)
    if not path:
        return {}, None
    return read(path)[kind], Path(path)


def read(path) -> dict[str, dict]:
    """The tables of a preset file by kind. Raises InputError for what is not such a file."""
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not TOML ({reason}): expected a preset file") from None
    for kind, entries in tables.items():
        if kind not in KINDS:
            raise InputError(
                f"{path}: [{kind}] is not known: expected [accelerators.NAME] or [models.NAME]"
            )
        if not isinstance(entries, dict):
            raise InputError(f"{path}: {kind} is {short(entries)}: expected tables [{kind}.NAME]")
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                raise InputError(f"{path}: {kind}.{name} is {short(entry)}: expected a table")
    return {kind: tables.get(kind, {}) for kind in KINDS}


def read_text(path) -> str:
    """A small text file, refused in one sentence if it is none."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be read ({reason}): give the path of a text file"
        ) from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"{path} is larger than {MAX_BYTES} bytes: expected a small text file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: expected a text file") from None


def read_json(path, expected: str):
    """The JSON of a small text file. InputError for what is none, or has a key twice in one object.

    expected: what the file should have been, for the message.
    """

    def once(pairs):
        found = {}
        for key, value in pairs:
            if key in found:
                raise InputError(f"{path} has the key {short(key)} twice: take one of them out")
            found[key] = value
        return found

    text = read_text(path)
    try:
        return json.loads(text, object_pairs_hook=once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] or "nested too deeply"
        raise InputError(f"{path} is not JSON ({reason}): expected {expected}") from None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.casefold())
