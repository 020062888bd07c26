"""One wrong formula is wrong in every reading of it; the literals from outside catch it in each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
READINGS = ("derivation", "prose", "widget", "exercise")

# Where each result is read. No sentence and no widget speaks of the bytes of a single product.
RESULTS = {
    "matmul.flops": READINGS,
    "matmul.bytes": ("derivation", "exercise"),
    "step.flops": READINGS,
    "step.bytes": READINGS,
    "roofline.ridge": READINGS,
    "roofline.attainable": READINGS,
    "roofline.time": READINGS,
}


def failures(*doubled):
    """What fails in each reading with some result doubled, in a process of its own."""
    command = [sys.executable, str(FOLDER / "doubled.py"), *doubled]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_fails_undoubled():
    assert failures() == {key: [] for key in (*READINGS, "broken")}


@pytest.mark.parametrize("result", RESULTS)
def test_a_doubled_result_fails_wherever_it_is_read(result):
    found = failures(result)
    silent = [reading for reading in RESULTS[result] if not found[reading]]
    assert not silent, f"{result} doubled goes unnoticed in {silent}: {found}"
