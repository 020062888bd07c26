"""What some tests need of the system beside Python packages, and how to tell whether it is there.

A test says `@pytest.mark.needs("chromium")`. Where that is missing the test does not run, the end
of the test report names what was missing with its remedy, and with CI=true it is a failure: on the
machine that decides, nothing is left out.
"""

import functools
import shutil
import subprocess
from pathlib import Path

import playwright

from browser import find_chromium


def _has_bubblewrap():
    """Whether bubblewrap is there and may make a sandbox (some containers forbid it)."""
    if not shutil.which("bwrap"):
        return False
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


def _has_postgresql():
    return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))


_DRIVER = Path(playwright.__file__).parent / "driver" / "node"
"""The Node.js that Playwright brings and drives the browser with."""


def _has_browser():
    """Whether Chromium is there and the program that drives it starts."""
    starts = subprocess.run([_DRIVER, "--version"], capture_output=True).returncode == 0
    return starts and find_chromium()


def find_node():
    """The path of Node.js: the system's, else the one that Playwright brings."""
    return shutil.which("node") or (str(_DRIVER) if _DRIVER.exists() else None)


NEEDS = {
    "chromium": (
        _has_browser,
        "run .venv/bin/playwright install chromium; if .venv/bin/playwright --version fails, install"
        " libatomic1",
    ),
    "bubblewrap": (_has_bubblewrap, "install bubblewrap, on a Linux that allows user namespaces"),
    "postgresql": (_has_postgresql, "install the PostgreSQL server"),
    "node": (find_node, "install Node.js"),
    "npm": (lambda: shutil.which("npm"), "install npm"),
}


@functools.cache
def has(name):
    """Whether the system has what is called `name` in NEEDS."""
    found, _ = NEEDS[name]
    return bool(found())


def remedy(name):
    """What to do where it is missing."""
    return NEEDS[name][1]
