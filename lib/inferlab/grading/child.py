"""A process of ours that is asked and answers in lines of JSON.

Each thread that asks has its own, started at its first question. A child ends when it is told to,
or, should its parent be killed, when its standard input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

# What a child gets of this process's environment. A learner's process can read what its ancestor
# was started with, and there may be passwords among the rest.
_PASSED_ON = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHON\w+|XDG_CACHE_HOME"
    r"|MPLCONFIGDIR|IPYTHONDIR|INFERLAB_MODEL_DIR"
)

_mine = threading.local()
_open: set[Child] = set()


class Child:
    """A process that runs `module`, as the one who asks sees it."""

    def __init__(self, module: str):
        self.module, self.closed = module, False
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # On several children one BLAS thread each is fastest.
            env={name: text for name, text in os.environ.items() if _PASSED_ON.fullmatch(name)}
            | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            # Ctrl-C in a terminal reaches the parent alone, which then closes its children.
            start_new_session=True,
        )

    def ask(self, question: dict) -> dict:
        """The answer to a question; RuntimeError when the process has ended."""
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # ended, or closed by another thread
            answer = b""
        if not answer.endswith(b"\n"):
            raise RuntimeError(f"{self.module} ended with code {self._process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.closed = True
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()


def ask(module: str, question: dict) -> dict:
    """The answer of this thread's process of a module. One that was lost is replaced once."""
    children = vars(_mine)
    lost = 0
    while True:
        child = children.get(module)
        if child is None:
            child = children[module] = Child(module)
            _open.add(child)
        try:
            return child.ask(question)
        except RuntimeError:
            del children[module]
            if child.closed:
                raise
            _open.discard(child)
            child.close()
            lost += 1
            if lost == 2:
                raise


def close_all() -> None:
    """End the processes of all threads."""
    while _open:
        _open.pop().close()


def answer(prepare: Callable[[], Callable[[dict], dict]]) -> None:
    """Answer questions from standard input until it ends; what a child's module does.

    prepare: imports what is needed and returns the function that answers.
    """
    # Answers go to a copy of standard output, so that nothing that prints by mistake can be
    # mistaken for one.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Told to end, it leaves in good order: what it was doing can clean up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    function = prepare()
    for line in sys.stdin:
        answers.write(json.dumps(function(json.loads(line))) + "\n")
        answers.flush()
