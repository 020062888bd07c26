"""The code is formatted and linted, and the third-party files are those of their packages."""

import subprocess
import sys
from pathlib import Path

import pytest

import vendor

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")])
def test_the_code_passes_ruff(arguments):
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run([ruff, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_vendored_files_are_those_of_their_packages():
    assert list(vendor.problems()) == []


def test_a_changed_vendored_file_is_noticed(tmp_path, monkeypatch):
    target = "tests/site/vendor/axe-core/axe.min.js"
    monkeypatch.setattr(vendor, "ROOT", tmp_path)
    (tmp_path / target).parent.mkdir(parents=True)
    (tmp_path / target).write_text("changed")
    found = list(vendor.problems())
    assert any(problem.startswith(f"{target} differs") for problem in found)
    assert any("mathjax" in problem and "is missing" in problem for problem in found)
