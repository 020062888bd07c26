"""What all tests share: the built site, the literals from outside, and what a system may lack."""

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import system
from browser import FLAGS, find_chromium
from independent import load_independent

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
CANNOT_RUN = "this system cannot run it: "

# Notebooks that are wrong on purpose are read by the tests of the checkers, not run as chapters.
collect_ignore_glob = ["*/fixtures/*"]


def pytest_addoption(parser):
    parser.addoption(
        "--built",
        action="store_true",
        help="test the site that is in _build/html instead of building it first",
    )


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if not system.has(name):
                reason = f"{CANNOT_RUN}no {name}; {system.remedy(name)}"
                if os.environ.get("CI") == "true":
                    pytest.fail(reason, pytrace=False)
                pytest.skip(reason)


def pytest_terminal_summary(terminalreporter):
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if CANNOT_RUN in text:
            reason = text.split(CANNOT_RUN)[1]
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        terminalreporter.section("not run on this system")
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count} tests: {reason}")


@contextmanager
def locked(path):
    """Hold a lock on a file, so that parallel workers do one thing once."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def site(request, tmp_path_factory):
    """The folder of the site, built once per test run, from nothing and strictly."""
    if request.config.getoption("--built"):
        if not (SITE / "index.html").exists():
            pytest.fail("--built needs a built site: run make book first.", pytrace=False)
        return SITE
    run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        run = run.parent
    status, log = run / "build-status", run / "build-log"
    with locked(run / "build-lock"):
        if not status.exists():
            command = [sys.executable, str(ROOT / "tools" / "build.py"), "--clean"]
            with open(log, "w") as file:
                done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
            status.write_text(str(done.returncode))
    if status.read_text() != "0":
        tail = "\n".join(log.read_text().splitlines()[-80:])
        pytest.fail(f"The strict build of the book failed:\n{tail}", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def independent():
    """The literals of tests/independent.csv: independent("id").agrees(value)."""
    return load_independent()


@pytest.fixture(scope="session")
def chromium():
    """The browser, started once for all tests that look at pages."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()
