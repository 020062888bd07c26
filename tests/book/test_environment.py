"""Making the environment: what is missing is said in one sentence, with the remedy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(tmp_path):
    """environment(**variables) runs the script in a bare copy where the PATH has no Python."""
    (tmp_path / "tools").mkdir()
    for name in ("requirements.lock", "pyproject.toml", "tools/environment.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "cat", "cksum", "dirname"):
        (commands / name).symlink_to(shutil.which(name))

    def run(**variables):
        return subprocess.run(
            ["sh", "tools/environment.sh"],
            cwd=tmp_path,
            env={"PATH": str(commands), **variables},
            capture_output=True,
            text=True,
        )

    run.commands = commands
    return run


def write_python(path, refused):
    """A Python that fails on code which contains `refused`."""
    path.write_text(
        f'#!/bin/sh\ncase "$2" in *"{refused}"*) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    os.chmod(path, 0o755)


def test_without_python(environment):
    done = environment()
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("No Python 3.11, 3.12 or 3.13 was found: install one")


def test_with_an_unsupported_python(environment):
    write_python(environment.commands / "python3", refused="version_info")
    assert "No Python 3.11, 3.12 or 3.13 was found" in environment().stderr


def test_with_a_named_python_that_is_not_there(environment):
    done = environment(PYTHON="/nowhere/python")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("PYTHON=/nowhere/python is no Python 3.11, 3.12 or 3.13: ")


def test_without_the_venv_module(environment):
    write_python(environment.commands / "python3", refused="ensurepip")
    done = environment()
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "has no venv module: install it" in done.stderr
    assert not (environment.commands.parent / ".venv").exists()


RECORDING = """#!/bin/sh
case "$*" in
    *"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo venv >> calls ;;
    *"-m pip"*) echo pip >> calls ;;
    *"-m jupyterlab.labextensions disable"*) echo news >> calls ;;
esac
"""


def test_a_second_run_installs_nothing_until_the_lock_changes(environment):
    """With a Python that only notes what it is asked for."""
    folder = environment.commands.parent
    for name in ("mkdir", "cp"):
        (environment.commands / name).symlink_to(shutil.which(name))
    (environment.commands / "python3").write_text(RECORDING)
    os.chmod(environment.commands / "python3", 0o755)
    calls = folder / "calls"

    assert environment().returncode == 0
    assert calls.read_text().split() == ["venv", "pip", "pip", "news"]
    assert environment().returncode == 0
    assert calls.read_text().split() == ["venv", "pip", "pip", "news"]
    with open(folder / "requirements.lock", "a") as lock:
        lock.write("# changed\n")
    assert environment().returncode == 0
    assert calls.read_text().split() == ["venv", *["pip", "pip", "news"] * 2]
