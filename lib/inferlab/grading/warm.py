"""The process that has everything imported and forks once for each run of a submission.

It reads jobs as lines of JSON from its standard input and writes results as lines of JSON to its
standard output. It never runs a learner's code itself.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
from functools import partial

from inferlab.grading.sandbox import (
    WAITING,
    Limits,
    Sandbox,
    give_up_privileges,
    limit_only,
    usage_of,
)
from inferlab.quantities import InputError

RESTARTS = 3  # a cell that kills the kernel is left out and the notebook run again, this often
MOST_REPORTED = 40_000_000  # bytes that one run may report
GRACE_S = 2.0  # after its time limit a cell has this long to notice


class Kernel:
    """The warm process, as its user sees it."""

    def __init__(self):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inferlab.grading.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def run(self, job: dict) -> dict:
        """The result of a job; InputError where no sandbox can start."""
        line = json.dumps(job).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise RuntimeError(f"the grader's kernel ended with code {self._process.wait()}")
        result = json.loads(answer)
        if "refused" in result:
            raise InputError(result["refused"])
        return result

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)


def run_job(shell, job: dict) -> dict:
    """Run a notebook until no cell kills it, or too many have.

    Returns {"outputs": {cell: [...]}, "stopped": {cell: reason}, "seconds": ...}; the reason is one
    of ours, the outputs are the learner's.
    """
    limits = Limits(**job["limits"])
    stopped: dict[int, str] = {}
    started = time.monotonic()
    for _ in range(RESTARTS + 1):
        outputs, place, reason = _attempt(shell, job, limits, sorted(stopped))
        if reason is None:
            break
        stopped[place] = reason
        if place < 0:
            break
    return {
        "outputs": {str(key): value for key, value in outputs.items()},
        "stopped": {str(key): value for key, value in stopped.items()},
        "seconds": time.monotonic() - started,
    }


def _attempt(shell, job, limits: Limits, skip: list[int]):
    """One run in a fresh sandbox: outputs by cell, and the cell where it stopped and why."""
    box = Sandbox(limits) if job["safe"] else None
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        _become_runner(shell, job, limits, skip, box, send)
    os.close(send)
    try:
        return _listen(receive, child, limits, box)
    finally:
        os.close(receive)
        if box is not None:
            box.close()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _become_runner(shell, job, limits, skip, box, report: int):
    """Never returns: this fork enters the sandbox and runs the notebook there."""
    from inferlab.grading import runner

    try:
        os.setpgid(0, 0)
        if box is not None:
            box.enter()
            if os.fork() != 0:  # only a child is in the new process namespace
                os._exit(0)
            give_up_privileges(limits, keep=report)
        else:
            limit_only(limits, keep=report)
        del box
        times = {"cell_s": limits.cell_s, "waiting_s": WAITING * limits.cell_s}
        runner.run(shell, job | times | {"skip": skip}, report)
    except BaseException as error:
        message = json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]})
        with contextlib.suppress(OSError):
            os.write(report, message.encode() + b"\n")
    finally:
        os._exit(0)


def _listen(receive: int, child: int, limits: Limits, box):
    outputs: dict[int, list] = {}
    place, begun, used_before = -1, time.monotonic(), 0.0
    start, looked, used = begun, 0.0, 0.0
    buffer, total = b"", 0
    while True:
        now = time.monotonic()
        if now - looked > 0.25:
            looked = now
            with contextlib.suppress(OSError):  # they may just have ended
                watch = box.usage if box is not None else partial(usage_of, child)
                memory, used = watch()
                if memory > limits.memory:
                    memory, used = watch(exact=True)
                if memory > limits.memory:
                    return outputs, place, "memory limit"
        if used > limits.total_s or now - start > WAITING * limits.total_s:
            return outputs, place, "time limit of the whole notebook"
        late = used - used_before > limits.cell_s + GRACE_S
        if place >= 0 and (late or now - begun > WAITING * limits.cell_s + GRACE_S):
            return outputs, place, "time limit: the cell could not be interrupted"
        ready, _, _ = select.select([receive], [], [], 0.25)
        if not ready:
            continue
        data = os.read(receive, 1 << 16)
        if not data:
            return outputs, place, "the kernel ended"
        total += len(data)
        if total > MOST_REPORTED:
            return outputs, place, "far too much output"
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
                if "begin" in message:
                    place, begun, used_before = int(message["begin"]), time.monotonic(), used
                elif "end" in message:
                    outputs[int(message["end"])] = list(message["outputs"])
                elif "failed" in message:
                    return outputs, -1, str(message["failed"])
                elif "done" in message:
                    return outputs, place, None
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                return outputs, place, "the kernel's report cannot be read"


def main() -> None:
    # Results go to a copy of standard output, so that nothing that prints by mistake can be
    # mistaken for one.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from inferlab.grading import runner

    for module in ("sympy", "numpy", "inferlab.derive", "inferlab.roofline", "inferlab.serving"):
        with contextlib.suppress(ImportError):
            __import__(module)
    shell = runner.make_shell()
    # Forks never collect what was made before them: its files are closed to them.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        try:
            result = run_job(shell, json.loads(line))
        except InputError as error:
            result = {"refused": str(error)}
        results.write(json.dumps(result) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
