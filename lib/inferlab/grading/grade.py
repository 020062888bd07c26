"""Grade a class: collect, normalise, execute, record, and write the results.

Only `execute` runs learners' code, in a sandbox and perhaps on other machines; everything else
is done by this one process, which alone writes to the gradebook.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path

from nbformat import NotebookNode

from inferlab.grading import execute, page, results, sandbox, workers
from inferlab.grading.collect import Submission, collect
from inferlab.grading.normalise import (
    Normalised,
    Unreadable,
    exercise_of,
    normalise,
    read_notebook,
)
from inferlab.grading.record import Gradebook, Result
from inferlab.grading.release import Source, Sources, as_text, exercise_names
from inferlab.grading.sandbox import Limits
from inferlab.quantities import InputError

UNKNOWN = "unknown"


@dataclass
class Options:
    """How to grade. late_percent: of the score, for each day that is begun after `due`."""

    submissions: list[Path]
    exercises: Path
    course: Path
    exercise: str | None = None
    gradebook: str | None = None
    match: str | None = None
    workers: int = 1
    scheduler: str | None = None
    certificates: tuple[str, str, str] | None = None
    due: datetime | None = None
    late_percent: float = 0
    limits: Limits = field(default_factory=Limits)
    safe: bool = True
    regrade: bool = False
    quiet: bool = False


@dataclass
class Task:
    """A submission that waits to be run."""

    submission: Submission
    source: Source
    notebook: NotebookNode
    fingerprint: str
    notes: list[str]


@dataclass
class Summary:
    """What a run did.

    graded: recorded, the unreadable ones among them. set_aside: files whose learner handed in another
    one for the same exercise, which counts. untimed: files that do not say when they were handed in,
    and so cannot be late. cpu_s: CPU seconds that learners' notebooks took, which their sandboxes keep
    out of what the operating system adds up for this process.
    """

    found: int = 0
    graded: int = 0
    unreadable: int = 0
    unchanged: int = 0
    set_aside: int = 0
    untimed: int = 0
    cpu_s: float = 0
    failed: list[str] = field(default_factory=list)


def grade(options: Options) -> Summary:
    """Grade what is new or changed among the submissions, and renew all results.

    Raises InputError for input that cannot be used, and where no sandbox can start.
    """
    names = exercise_names(options.exercises)
    if options.exercise and options.exercise not in names:
        raise InputError(
            f"there is no exercise {options.exercise!r}: expected one of {', '.join(names)}"
        )
    if options.safe and options.scheduler is None:
        sandbox.require()
    sources = Sources(options.exercises)
    found = collect(options.submissions, names, options.match)
    if not found:
        raise InputError("no notebook is found in what was given: expected .ipynb files")
    if not options.quiet:
        number = f"{len(found)} file{'s' if len(found) > 1 else ''}"
        print(f"{number}; reading the answers ...", file=sys.stderr, flush=True)
    options.course.mkdir(parents=True, exist_ok=True)
    with _only_writer(options.course):
        url = options.gradebook or f"sqlite:///{(options.course / 'gradebook.db').resolve()}"
        book = Gradebook(url)
        try:
            return _grade(options, sources, found, book)
        finally:
            book.close()


def _grade(options, sources, found, book: Gradebook) -> Summary:
    untimed = sum(submission.timestamp is None for submission in found)
    summary = Summary(found=len(found), untimed=untimed)
    recorded = book.recorded()
    tasks, unreadable = _prepare(options, sources, found)
    summary.set_aside = len(found) - len(tasks) - len(unreadable)
    used = {task.source.name for task in tasks} | {name for _, name in unreadable}
    for name in sorted(used & set(sources)):
        book.set_up(sources[name], options.due)
    _write_course_files(options.course, book.url, [sources[name] for name in used & set(sources)])
    for (student, name), result in unreadable.items():
        before = recorded.get((student, name))
        if before and before.fingerprint == result.fingerprint and not options.regrade:
            summary.unchanged += 1
            continue
        source = sources.get(name)
        if source:
            notebook = results.unreadable_notebook(source, result)
            _write_autograded(options.course, student, source, notebook)
        book.record(result, source)
        summary.graded += 1
        summary.unreadable += 1
    waiting = []
    for task in tasks:
        before = recorded.get((task.submission.student, task.source.name))
        if before and before.fingerprint == task.fingerprint and not options.regrade:
            summary.unchanged += 1
        else:
            waiting.append(task)
    for task, normalised, ran in _run(options, waiting):
        if isinstance(ran, str):
            summary.failed.append(f"{task.submission.student} ({task.submission.path}): {ran}")
            continue
        summary.cpu_s += ran["cpu_s"]
        result = _judge(task, normalised, ran)
        notebook = results.autograded(task.source, normalised, ran, result)
        _write_autograded(options.course, task.submission.student, task.source, notebook)
        book.record(result, task.source)
        summary.graded += 1
    summary.failed += _renew(options, sources, book)
    return summary


def _renew(options, sources, book: Gradebook) -> list[str]:
    """The late policy, tables, summary and feedback, from what the gradebook says now.

    Returns a sentence for each feedback page that cannot be drawn.
    """
    everything = book.recorded()
    kept = {name: sources[name] for name in sources if any(n == name for _, n in everything)}
    graded = {name: book.settle(name, options.late_percent) for name in kept}
    rows = results.write_tables(options.course, kept, graded, everything)
    results.write_summary(options.course, kept, everything, rows)
    pages = (
        drawn
        for name, source in kept.items()
        for drawn in results.pages_to_draw(options.course, source, graded[name], everything)
    )
    return _draw(options, pages)


def _prepare(options, sources, found):
    """What each learner handed in for each exercise: the tasks to run, and the results of what cannot
    be run, by learner and exercise."""
    guesses = {submission.guess for submission in found if submission.guess}
    only = guesses.pop() if len(guesses) == 1 else ""
    readable, others = defaultdict(list), defaultdict(list)
    for submission in found:
        name = options.exercise or submission.guess or only or UNKNOWN
        try:
            notebook = _notebook(submission)
        except Unreadable as reason:
            status = "no notebook" if submission.raw is None else "unreadable"
            note = f"{'' if submission.raw is None else 'unreadable: '}{reason}"
            others[submission.student, name].append((submission, status, note))
            continue
        known = exercise_of(notebook, sources)
        if known is None:
            note = "the notebook has no question of any exercise"
            others[submission.student, name].append((submission, "unknown exercise", note))
        else:
            readable[submission.student, known].append((submission, notebook))
    tasks = []
    for (student, name), handed_in in sorted(readable.items()):
        submission, notebook = max(handed_in, key=_newest)
        notes = list(submission.notes)
        if len(handed_in) > 1:
            notes.append(f"{len(handed_in)} notebooks were handed in; the newest is graded")
        # Something readable from the same learner makes an unreadable copy a note, not a result.
        notes += map(_noted, others.pop((student, name), ()))
        source = sources[name]
        tasks.append(
            Task(
                submission,
                source,
                notebook,
                _fingerprint(submission.raw, source.key.fingerprint, str(submission.timestamp)),
                notes,
            )
        )
    return tasks, {key: _cannot(key[1], handed_in) for key, handed_in in others.items()}


def _notebook(submission: Submission) -> NotebookNode:
    if submission.fault:
        raise Unreadable(submission.fault)
    if submission.raw is None:
        raise Unreadable("the learner's folder holds no notebook")
    return read_notebook(submission.raw)


def _newest(handed_in: tuple):
    """The order of what one learner handed in: by time, where there is one, and then by name."""
    return str(handed_in[0].timestamp or ""), handed_in[0].path


def _noted(other: tuple[Submission, str, str]) -> str:
    submission, _, note = other
    return f"another file of this learner: {submission.path}, {note}"


def _cannot(name: str, handed_in: list[tuple[Submission, str, str]]) -> Result:
    """The result where nothing that a learner handed in for an exercise can be run."""
    chosen = max(handed_in, key=_newest)
    submission, status, note = chosen
    notes = [note, *submission.notes, *(_noted(o) for o in handed_in if o is not chosen)]
    return Result(
        submission.student, name, _fingerprint(submission.raw or b"", status), status,
        submission.path, notes, timestamp=submission.timestamp,
    )  # fmt: skip


def _fingerprint(raw: bytes, *more: str) -> str:
    return hashlib.sha256(raw + b"".join(text.encode() for text in more)).hexdigest()[:32]


def _judge(task: Task, normalised: Normalised, ran: dict) -> Result:
    """Compare what was emitted with the answers. This is the trusted side."""
    key = task.source.key
    emitted = execute.receipts(ran, normalised)
    notes = [*task.notes, *normalised.notes]
    code = normalised.code
    for place, reason in sorted(ran["stopped"].items()):
        cell = code[int(place)] if 0 <= int(place) < len(code) else None
        name = (cell.id or "a cell that the learner added") if cell else "the whole notebook"
        notes.append(f"{name}: stopped ({reason})")
    notes += _accidents(ran, normalised)
    verdicts = [key.judge(question.id, emitted.get(question.id)) for question in key.automatic]
    texts = {cell.question: cell.source for cell in normalised.cells if cell.role == "essay"}
    essays = {
        id: hashlib.sha256(text.encode()).hexdigest()[:16]
        for id, text in texts.items()
        if id not in normalised.unanswered
    }
    status = "partly run" if ran["stopped"] else "graded"
    return Result(
        task.submission.student, task.source.name, task.fingerprint, status, task.submission.path,
        notes, verdicts, essays, task.submission.timestamp,
    )  # fmt: skip


def _accidents(ran: dict, normalised: Normalised) -> list[str]:
    """A note for each answer cell that ended in an error, as far as the learner's process says."""
    notes = []
    for place, cell in enumerate(normalised.code):
        for output in ran["outputs"].get(str(place), ()):
            name = output.get("ename")
            if cell.role == "answer" and name is not None:
                known = re.fullmatch(r"[A-Za-z_]{1,40}", name)
                if name == "TookTooLong":
                    notes.append(f"{cell.question}: its cell was stopped at the time limit")
                else:
                    notes.append(
                        f"{cell.question}: its cell ended in {known[0] if known else 'an error'}"
                    )
                break
    return notes


# --- running ---------------------------------------------------------------------------------


def _run(options, tasks: list[Task]) -> Iterator[tuple[Task, Normalised, dict | str]]:
    """Run the tasks, in any order: each with its result, or why there is none."""
    if not tasks:
        return
    # Made one by one: while the first run, the next are put in order.
    jobs = (_job(options, task) for task in tasks)
    where = (
        workers.cluster(options.scheduler, options.certificates)
        if options.scheduler
        else workers.local(min(options.workers, len(tasks)))
    )
    with where as executor:
        done = workers.finished(executor, execute.execute, jobs)
        for (task, normalised), future in _shown(options, done, len(tasks), " notebooks"):
            error = future.exception()
            if isinstance(error, InputError):
                raise error
            if error is not None:
                yield task, normalised, f"not graded, run again ({_reason(error)})"
            else:
                yield task, normalised, json.loads(future.result())


def _job(options, task: Task):
    normalised = normalise(task.source, task.notebook)
    job = execute.job(normalised, task.source.key, options.limits, safe=options.safe)
    return (task, normalised), job


def _draw(options, pages: Iterable[tuple[Path, str, dict]]) -> list[str]:
    """Draw and write feedback pages; a sentence for each that cannot be drawn."""
    failed = []
    pages = iter(pages)
    first = next(pages, None)
    if first is None:
        return failed
    jobs = (((path, mark), job) for path, mark, job in chain([first], pages))
    with workers.forks(options.workers) as executor:
        done = workers.finished(executor, page.draw, jobs)
        for (path, mark), future in _shown(options, done, None, " feedback pages"):
            error = future.exception()
            if error is None:
                results.write_atomically(path, future.result() + mark)
            else:
                failed.append(f"{path}: no feedback page can be drawn ({_reason(error)})")
    return failed


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _shown(options, iterator, total: int | None, unit: str):
    """With a progress bar."""
    from tqdm import tqdm

    return tqdm(iterator, total=total, unit=unit, file=sys.stderr, disable=options.quiet)


# --- the course's folder ---------------------------------------------------------------------


@contextlib.contextmanager
def _only_writer(course: Path):
    with open(course / ".writing", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is grading into {course}: wait for its end") from None
        yield


def _write_autograded(course: Path, student: str, source: Source, notebook) -> None:
    path = course / "autograded" / student / source.name / f"{source.name}.ipynb"
    results.write_atomically(path, as_text(notebook))


def _write_course_files(course: Path, url: str, sources: list[Source]) -> None:
    """What nbgrader's formgrader looks for: its configuration, and the released notebooks."""
    settings = {
        "c.CourseDirectory.root": str(course.resolve()),
        "c.CourseDirectory.db_url": url,
        "c.CourseDirectory.course_id": "inference",
        "c.Exchange.root": str((course / "exchange").resolve()),
    }
    (course / "exchange").mkdir(exist_ok=True)
    lines = ["c = get_config()", *(f"{name} = {value!r}" for name, value in settings.items())]
    results.write_atomically(course / "nbgrader_config.py", "\n".join(lines) + "\n")
    for source in sources:
        for stage in ("source", "release"):
            path = course / stage / source.name / f"{source.name}.ipynb"
            results.write_atomically(path, as_text(source.released))
