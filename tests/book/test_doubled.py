"""One wrong formula is wrong in every reading of it; the literals from outside catch it in each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
READINGS = ("derivation", "prose", "widget", "exercise")

RESULTS = (
    "matmul.flops",
    "matmul.bytes",
    "step.flops",
    "step.bytes",
    "roofline.ridge",
    "roofline.attainable",
    "roofline.time",
)


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
def test_a_doubled_result_fails_in_every_reading(result):
    found = failures(result)
    silent = [reading for reading in READINGS if not found[reading]]
    assert not silent, f"{result} doubled goes unnoticed in {silent}: {found}"
