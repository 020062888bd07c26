"""The numbers of the prose: how one is formatted and kept, and that the record is true."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import sympy

from inferlab.numbers import Numbers, read_record
from inferlab.quantities import InputError

ROOT = Path(__file__).resolve().parents[2]


def test_a_number_is_formatted_with_its_unit_and_kept():
    number = Numbers()
    assert number("prefill-total", 43.3733, ".1f", "TFLOP") == "43.4 TFLOP"
    assert number["prefill-total"] == "43.4 TFLOP"


@pytest.mark.parametrize("value", [Fraction(8, 3), sympy.Rational(8, 3), 8 / 3])
def test_exact_and_symbolic_numbers_print_like_floats(value):
    assert Numbers()("test-ratio", value, ".3f") == "2.667"


def test_large_integers_stay_exact():
    assert Numbers()("test-flop", 14457765888, ",d", "FLOP") == "14,457,765,888 FLOP"


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (("Prefill", 1), "lower-case words"),
        (("prefill", 1), "lower-case words"),
        (("prefill-total", float("nan"), ".1f"), "finite"),
        (("prefill-total", sympy.Symbol("N"), ".1f"), "substitute the symbols"),
        (("prefill-total", 1.5, "d"), "cannot be formatted"),
    ],
)
def test_an_unusable_number_is_refused_in_a_sentence(arguments, reason):
    with pytest.raises(InputError, match=reason):
        Numbers()(*arguments)


def test_an_unknown_key_says_what_to_do():
    with pytest.raises(InputError, match="run the cell that computes it"):
        Numbers()["prefill-total"]


def test_interactively_a_changed_number_replaces_the_old_one(monkeypatch):
    monkeypatch.delenv("INFERLAB_NUMBERS", raising=False)
    number = Numbers()
    number("prefill-total", 1, "d")
    number("prefill-total", 2, "d")
    assert number["prefill-total"] == "2"


def test_a_build_records_each_number_once(monkeypatch, tmp_path):
    monkeypatch.setenv("INFERLAB_NUMBERS", str(tmp_path))
    Numbers()("prefill-total", 43.4, ".1f", "TFLOP")
    Numbers()("decode-time", 9.7, ".1f", "ms")
    assert read_record(tmp_path) == {"decode-time": "9.7 ms", "prefill-total": "43.4 TFLOP"}


def test_a_build_refuses_two_texts_under_one_key(monkeypatch, tmp_path):
    monkeypatch.setenv("INFERLAB_NUMBERS", str(tmp_path))
    number = Numbers()
    number("prefill-total", 1, "d")
    with pytest.raises(InputError, match="already reads"):
        number("prefill-total", 2, "d")
    Numbers()("prefill-total", 3, "d")  # another chapter is another process
    with pytest.raises(InputError, match="in one chapter"):
        read_record(tmp_path)


def test_importing_the_numbers_loads_no_notebook_machinery():
    code = "import sys, inferlab.numbers; print('IPython' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "False"


def test_the_committed_numbers_are_those_of_the_build(site):
    built = json.loads((ROOT / "_build" / "numbers.json").read_text(encoding="utf-8"))
    committed = json.loads((ROOT / "numbers.json").read_text(encoding="utf-8"))
    changed = {
        key: (committed.get(key), built.get(key))
        for key in sorted(built.keys() | committed.keys())
        if built.get(key) != committed.get(key)
    }
    assert not changed, f"(committed, built) differ; if that is meant, run make numbers: {changed}"
