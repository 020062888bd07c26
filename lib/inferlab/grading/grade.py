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
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from inferlab.grading import execute, results, sandbox
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
    normalised: Normalised
    fingerprint: str
    notes: list[str]


@dataclass
class Summary:
    """What a run did."""

    found: int = 0
    graded: int = 0
    unchanged: int = 0
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
    options.course.mkdir(parents=True, exist_ok=True)
    with _only_writer(options.course):
        url = options.gradebook or f"sqlite:///{(options.course / 'gradebook.db').resolve()}"
        book = Gradebook(url)
        try:
            return _grade(options, sources, found, book)
        finally:
            book.close()


def _grade(options, sources, found, book: Gradebook) -> Summary:
    summary = Summary(found=len(found))
    recorded = book.recorded()
    tasks, unreadable = _prepare(options, sources, found)
    used = {task.source.name for task in tasks} | {name for _, name in unreadable}
    for name in sorted(used & set(sources)):
        book.set_up(sources[name], options.due)
    _write_course_files(options.course, book.url, [sources[name] for name in used & set(sources)])
    for (submission, name), result in unreadable.items():
        before = recorded.get((result.student, name))
        if before and before.fingerprint == result.fingerprint and not options.regrade:
            summary.unchanged += 1
            continue
        source = sources.get(name)
        if source:
            notebook = results.unreadable_notebook(source, result)
            _write_autograded(options.course, submission.student, source, notebook)
        book.record(result, source)
        summary.graded += 1
    waiting = []
    for task in tasks:
        before = recorded.get((task.submission.student, task.source.name))
        if before and before.fingerprint == task.fingerprint and not options.regrade:
            summary.unchanged += 1
        else:
            waiting.append(task)
    for task, ran in _run(options, waiting):
        if isinstance(ran, str):
            summary.failed.append(f"{task.submission.student} ({task.submission.path}): {ran}")
            continue
        result = _judge(task, ran)
        notebook = results.autograded(task.source, task.normalised, ran, result)
        _write_autograded(options.course, task.submission.student, task.source, notebook)
        book.record(result, task.source)
        summary.graded += 1
    _renew(options, sources, book)
    return summary


def _renew(options, sources, book: Gradebook) -> None:
    """The late policy, feedback, tables and summary, from what the gradebook says now."""
    everything = book.recorded()
    kept = {name: sources[name] for name in sources if any(n == name for _, n in everything)}
    book.apply_late_policy(options.late_percent)
    for source in kept.values():
        results.write_feedback(options.course, book, source, everything)
    rows = results.write_tables(options.course, book, kept, everything)
    results.write_summary(options.course, kept, everything, rows)


def _prepare(options, sources, found):
    """The submissions to run, one a learner and exercise, and the results of those that cannot be."""
    readable, unreadable = {}, {}
    guesses = {s.guess for s in found if s.guess}
    for submission in found:
        name = options.exercise or submission.guess or (guesses.pop() if len(guesses) == 1 else "")
        guesses = guesses or ({name} if name else set())
        try:
            if submission.raw is None:
                raise Unreadable("the learner's folder holds no notebook")
            notebook = read_notebook(submission.raw)
        except Unreadable as reason:
            status = "no notebook" if submission.raw is None else "unreadable"
            notes = [f"{'' if submission.raw is None else 'unreadable: '}{reason}"]
            unreadable[submission, name or UNKNOWN] = _cannot(
                submission, name or UNKNOWN, status, notes
            )
            continue
        known = exercise_of(notebook, sources)
        if known is None:
            notes = ["the notebook has no question of any exercise"]
            unreadable[submission, name or UNKNOWN] = _cannot(
                submission, name or UNKNOWN, "unknown exercise", notes
            )
            continue
        readable.setdefault((submission.student, known), []).append((submission, notebook))
    tasks = []
    for (_, name), handed_in in sorted(readable.items()):
        submission, notebook = max(handed_in, key=lambda s: (str(s[0].timestamp or ""), s[0].path))
        notes = []
        if len(handed_in) > 1:
            notes.append(f"{len(handed_in)} notebooks were handed in; the newest is graded")
        source = sources[name]
        tasks.append(
            Task(
                submission,
                source,
                normalise(source, notebook),
                _fingerprint(submission.raw, source.key.fingerprint(), str(submission.timestamp)),
                notes,
            )
        )
    # Something readable from the same learner makes an unreadable copy a note, not a result.
    for (submission, name), result in list(unreadable.items()):
        for task in tasks:
            if (task.submission.student, task.source.name) == (submission.student, name):
                task.notes.append(
                    f"another file of this learner: {submission.path}, {result.notes[0]}"
                )
                unreadable.pop((submission, name), None)
    return tasks, unreadable


def _cannot(submission: Submission, name: str, status: str, notes: list[str]) -> Result:
    fingerprint = _fingerprint(submission.raw or b"", status)
    return Result(
        submission.student, name, fingerprint, status, submission.path, notes,
        timestamp=submission.timestamp,
    )  # fmt: skip


def _fingerprint(raw: bytes, *more: str) -> str:
    return hashlib.sha256(raw + b"".join(text.encode() for text in more)).hexdigest()[:32]


def _judge(task: Task, ran: dict) -> Result:
    """Compare what was emitted with the answers. This is the trusted side."""
    key, normalised = task.source.key, task.normalised
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
            name = output.get("ename") if isinstance(output, dict) else None
            if cell.role == "answer" and isinstance(name, str):
                known = re.fullmatch(r"[A-Za-z_]{1,40}", name)
                if name == "TookTooLong":
                    notes.append(f"{cell.question}: its cell was stopped at the time limit")
                else:
                    notes.append(
                        f"{cell.question}: its cell ended in {known[0] if known else 'an error'}"
                    )
    return notes


# --- running ---------------------------------------------------------------------------------


def _run(options, tasks: list[Task]) -> Iterator[tuple[Task, dict | str]]:
    """Run the tasks, in any order: each with its result, or why there is none.

    With one worker in this process's own kernel, otherwise on a Dask cluster.
    """
    from tqdm import tqdm

    jobs = (
        (task, execute.job(task.normalised, task.source.key, options.limits, safe=options.safe))
        for task in tasks
    )
    ran = _run_here(jobs) if options.workers == 1 and not options.scheduler else None
    with contextlib.ExitStack() as stack:
        if ran is None and tasks:
            client = stack.enter_context(_client(options, len(tasks)))
            ran = _run_on_cluster(client, jobs)
        yield from tqdm(
            ran or (), total=len(tasks), unit="notebook", file=sys.stderr, disable=options.quiet
        )


def _run_here(jobs) -> Iterator[tuple[Task, dict | str]]:
    for task, text in jobs:
        try:
            yield task, json.loads(execute.execute(text))
        except RuntimeError as error:
            yield task, f"not graded, run again ({error})"


def _run_on_cluster(client, jobs) -> Iterator[tuple[Task, dict | str]]:
    from distributed import as_completed

    waiting = {
        client.submit(execute.execute, text, pure=False, retries=2): task for task, text in jobs
    }
    for future in as_completed(list(waiting)):
        task = waiting.pop(future)
        error = future.exception()
        if isinstance(error, InputError):
            raise error
        if error is not None:
            yield task, f"not graded, run again ({type(error).__name__})"
        else:
            yield task, json.loads(future.result())
        future.release()


@contextlib.contextmanager
def _client(options, count: int):
    import distributed
    from distributed import Client, LocalCluster

    if options.scheduler is None:
        workers = max(1, min(options.workers, count))
        # security=True: only this user can give work to the workers, on a shared machine too.
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                security=True,
                silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    if not options.scheduler.startswith("tls://"):
        raise InputError(
            f"{options.scheduler!r} is not a tls:// address: work is given out over TLS only, so start"
            " the scheduler with certificates (exercises/README.md says how)"
        )
    if options.certificates is None:
        raise InputError("a tls:// scheduler needs --tls-ca, --tls-cert and --tls-key")
    authority, certificate, private_key = options.certificates
    security = distributed.Security(
        tls_ca_file=authority,
        tls_client_cert=certificate,
        tls_client_key=private_key,
        require_encryption=True,
    )
    try:
        client = Client(options.scheduler, security=security, timeout=20)
    except (OSError, TimeoutError) as error:
        raise InputError(f"no scheduler answers at {options.scheduler} ({error})") from None
    with client:
        yield client


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
