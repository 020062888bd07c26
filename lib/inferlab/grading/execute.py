"""Run a normalised submission where learners' code may run, and bring back plain values.

`execute` takes and gives text (JSON), needs nothing but this package, and so runs as well in this
process as on any worker of a Dask cluster.
"""

from __future__ import annotations

import atexit
import json
from typing import TYPE_CHECKING

from inferlab.feedback.exercise import RECEIPT
from inferlab.grading import child
from inferlab.grading.sandbox import Limits
from inferlab.quantities import InputError

if TYPE_CHECKING:  # a worker runs notebooks and needs none of what reads and compares them
    from inferlab.grading.checks import AnswerKey
    from inferlab.grading.normalise import Normalised

# A worker of a Dask cluster closes its kernels when it ends; so does a test or a script.
atexit.register(child.close_all)


def job(submission: Normalised, key: AnswerKey, limits: Limits, *, safe: bool = True) -> str:
    """Everything that running a submission needs. Holds no answer."""
    return json.dumps(
        {
            "cells": [
                {"source": cell.source, "question": cell.question if cell.role == "check" else None}
                for cell in submission.code
            ],
            "reading": key.reading_list(),
            "limits": limits.as_dict(),
            "safe": safe,
        }
    )


def execute(job_text: str) -> str:
    """Run a job in this thread's warm kernel, started at its first use; the result as JSON text.

    Raises InputError where no sandbox can start, RuntimeError where the kernel is lost twice.
    """
    result = child.ask("inferlab.grading.warm", json.loads(job_text))
    if "refused" in result:
        raise InputError(result["refused"])
    return json.dumps(result)


def receipts(result: dict, submission: Normalised) -> dict[str, dict]:
    """What each question's own check cell emitted, by question; the last of several."""
    found = {}
    for place, cell in enumerate(submission.code):
        if cell.role != "check":
            continue
        for output in result["outputs"].get(str(place), ()):
            receipt = output.get("data", {}).get(RECEIPT)
            if receipt and receipt["question"] == cell.question:
                found[cell.question] = receipt
    return found
