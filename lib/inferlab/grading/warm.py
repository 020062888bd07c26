"""The process that has everything imported and forks once for each run of a submission.

It never runs a learner's code itself.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import time
from functools import partial

from inferlab.grading import child, reported
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


def run_job(shell, job: dict) -> dict:
    """Run a notebook until no cell kills it, or too many have.

    Returns {"outputs": {cell: [...]}, "stopped": {cell: reason}, "cpu_s": ...}; outputs, and a
    reason that begins with "it failed", are the learner's, cpu_s is what running them took.
    """
    limits = Limits(**job["limits"])
    stopped: dict[int, str] = {}
    cpu_s = 0.0
    for _ in range(RESTARTS + 1):
        outputs, place, reason, used = _attempt(shell, job, limits, sorted(stopped))
        cpu_s += used
        if reason is None:
            break
        stopped[place] = reason
        if place < 0:
            break
    return {
        "outputs": {str(key): value for key, value in outputs.items()},
        "stopped": {str(key): value for key, value in stopped.items()},
        "cpu_s": cpu_s,
    }


def _attempt(shell, job, limits: Limits, skip: list[int]):
    """One run in a fresh sandbox: outputs by cell, the cell where it stopped, why, CPU seconds."""
    box = Sandbox(limits) if job["safe"] else None
    receive, send = os.pipe()
    fork = os.fork()
    if fork == 0:
        _become_runner(shell, job, limits, skip, box, send)
    os.close(send)
    watch = box.usage if box is not None else partial(usage_of, fork)
    try:
        ended = _listen(receive, limits, watch)
        with contextlib.suppress(OSError, ValueError):  # nothing may be left to look at
            return *ended, watch()[1]
        return *ended, 0.0
    finally:
        os.close(receive)
        if box is not None:
            box.close()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(fork, signal.SIGKILL)
        os.waitpid(fork, 0)


def _become_runner(shell, job, limits, skip, box, report: int):
    """Never returns: this fork enters the sandbox and runs the notebook there."""
    from inferlab.grading import runner

    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
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


def _listen(receive: int, limits: Limits, watch):
    outputs: dict[int, list] = {}
    place, begun, used_before = -1, time.monotonic(), 0.0
    start, looked, used = begun, 0.0, 0.0
    buffer, total = b"", 0
    while True:
        now = time.monotonic()
        if now - looked > 0.25:
            looked = now
            with contextlib.suppress(OSError):  # they may just have ended
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
                    outputs[int(message["end"])] = reported.outputs(message["outputs"])
                elif "failed" in message:
                    return outputs, place, f"it failed: {reported.reason(message['failed'])}"
                elif "done" in message:
                    return outputs, place, None
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                return outputs, place, "the kernel's report cannot be read"


def prepare():
    """Import what notebooks import; the function that runs a job."""
    from inferlab.grading import runner

    for module in (
        "sympy",
        "sympy.physics.units",  # `check` reads units with it
        "numpy",
        "inferlab.derive",
        "inferlab.roofline",
        "inferlab.serving",
    ):
        with contextlib.suppress(ImportError):
            __import__(module)
    shell = runner.make_shell()
    # Forks never collect what was made before them: its files are closed to them.
    gc.collect()
    gc.freeze()

    def result_of(job: dict) -> dict:
        try:
            return run_job(shell, job)
        except InputError as error:  # no sandbox can start
            return {"refused": str(error)}

    return result_of


if __name__ == "__main__":
    child.answer(prepare)
