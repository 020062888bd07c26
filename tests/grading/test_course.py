"""A course over time: resuming, handing in again, grading by hand, lateness, several workers."""

import contextlib
import copy
import csv
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import nbformat
import pytest

from grading import hostile
from inferlab.cli import main
from inferlab.grading import page
from inferlab.grading.record import Gradebook
from inferlab.quantities import InputError

pytestmark = pytest.mark.needs("bubblewrap")
SOME = ["reference", "untouched", "number-as-text", "kills-its-kernel", "forges-receipts"]


def hand_in(folder, student, notebook, timestamp=None):
    place = folder / student
    place.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place / "sample.ipynb")
    if timestamp:
        (place / "timestamp.txt").write_text(timestamp)


def rows(course, table="submissions"):
    with open(course / "results" / f"{table}.csv", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def some_of(hostile_class):
    return [hostile_class / name for name in SOME]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "class"


def grade_by_hand(url, student, points):
    """What formgrader does when a person enters points for the essay."""
    book = Gradebook(url)
    grade = book._book.find_grade("words", "sample", "sample", student)
    grade.manual_score, grade.needs_manual_grade = points, False
    book.session.commit()
    book.close()


def test_a_course_over_time(grade_class, source, folder, tmp_path):
    course = tmp_path / "course"
    hand_in(folder, "ada", source.reference)
    hand_in(folder, "ben", source.released)
    first = grade_class([folder], course)
    assert (first.summary.graded, first.summary.unchanged) == (2, 0)
    assert first.scores == {"ada": 7, "ben": 0}
    assert rows(course)["ada"]["waiting_for_person"] == "1"

    # Run again, nothing is graded twice.
    again = grade_class([folder], course)
    assert (again.summary.graded, again.summary.unchanged) == (0, 2)
    assert again.scores == first.scores

    # A person grades the essay; the next run keeps that and shows it everywhere.
    grade_by_hand(first.url, "ada", 2.5)
    third = grade_class([folder], course)
    assert third.scores == {"ada": 9.5, "ben": 0}
    assert rows(course)["ada"]["by_person"] == "2.5"
    assert rows(course)["ada"]["waiting_for_person"] == "0"
    assert "9.5" in third.feedback("ada")

    # Handed in again with another answer: machine points change, the hand grade stays.
    changed = copy.deepcopy(source.reference)
    hostile.answer(changed, "ratio", "ratio = 1")
    hand_in(folder, "ada", changed)
    fourth = grade_class([folder], course)
    assert (fourth.summary.graded, fourth.summary.unchanged) == (1, 1)
    assert fourth.scores["ada"] == 7.5
    assert rows(course)["ada"]["waiting_for_person"] == "0"

    # With another essay the hand grade stays too, and a person is asked to look again.
    hostile.answer(changed, "words", "I have changed my mind.")
    hand_in(folder, "ada", changed)
    fifth = grade_class([folder], course)
    assert fifth.scores["ada"] == 7.5
    assert rows(course)["ada"]["waiting_for_person"] == "1"

    # Graded again on request, nothing doubles.
    sixth = grade_class([folder], course, regrade=True)
    assert sixth.summary.graded == 2
    assert sixth.scores == fifth.scores
    assert len(rows(course)) == 2


def test_late_policy(grade_class, source, folder, tmp_path):
    hand_in(folder, "early", source.reference, "2026-11-30 10:00:00 UTC")
    hand_in(folder, "late", source.reference, "2026-12-02 10:00:01 UTC")
    hand_in(folder, "never", source.reference)
    course = tmp_path / "course"
    grade_class([folder], course, due=datetime(2026, 12, 1, 10), late_percent=10)
    table = rows(course)
    assert {s: float(r["score"]) for s, r in table.items()} == {"early": 7, "late": 5.6, "never": 7}
    assert table["late"]["seconds_late"] == "86401"
    assert float(table["late"]["late_penalty"]) == pytest.approx(1.4)


def test_the_newest_of_several_is_graded(grade_class, source, folder, tmp_path):
    hand_in(folder / "first", "ada", source.released, "2026-11-30 10:00:00 UTC")
    hand_in(folder / "second", "ada", source.reference, "2026-11-30 11:00:00 UTC")
    (folder / "second" / "ada" / "broken.ipynb").write_text("{")
    graded = grade_class([folder], tmp_path / "course")
    assert graded.scores == {"ada": 7}
    notes = "; ".join(graded.results["ada"].notes)
    assert "2 notebooks were handed in; the newest is graded" in notes
    assert "broken.ipynb, unreadable" in notes


def test_of_several_files_that_cannot_be_read_one_counts(grade_class, source, folder, tmp_path):
    for place, name, timestamp in (
        ("first", "z.ipynb", "2026-11-30 10:00:00 UTC"),
        ("second", "a.ipynb", "2026-11-30 11:00:00 UTC"),
    ):
        (folder / place / "ada").mkdir(parents=True)
        (folder / place / "ada" / name).write_text("{")
        (folder / place / "ada" / "timestamp.txt").write_text(timestamp)
    hand_in(folder / "first", "ben", source.reference)
    first = grade_class([folder], tmp_path / "course").summary
    assert (first.graded, first.unreadable, first.set_aside) == (2, 1, 1)
    again = grade_class([folder], tmp_path / "course")
    assert (again.summary.graded, again.summary.unchanged) == (0, 2)
    assert len(rows(tmp_path / "course")) == 2
    assert again.results["ada"].file == "second/ada/a.ipynb"
    notes = again.results["ada"].notes
    assert notes[0].startswith("unreadable: ")
    assert notes[1].startswith("another file of this learner: first/ada/z.ipynb, unreadable: ")


def test_times_mean_the_same_wherever_it_is_graded(exercises, source, folder, tmp_path):
    """A file's time without a zone is UTC, as nbgrader's is; the command line has to name one."""
    hand_in(folder, "ada", source.reference, "2026-12-01 15:00:01")
    command = [sys.executable, "-m", "inferlab.cli", "grade", str(folder), "--quiet"]
    command += ["--course", str(tmp_path / "course"), "--exercises", str(exercises)]
    for due, code in (("2026-12-01T10:00-05:00", 0), ("2026-12-01T10:00", 2)):
        done = subprocess.run(
            [*command, "--due", due],
            env=os.environ | {"TZ": "America/New_York"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert rows(tmp_path / "course")["ada"]["seconds_late"] == "1"
    assert "'2026-12-01T10:00' does not say its zone" in done.stderr


def test_a_run_that_is_killed_loses_and_doubles_nothing(exercises, source, folder, tmp_path):
    """The command is killed with two thirds of its work undone, and then run again."""
    for number in range(9):
        hand_in(folder, f"learner-{number}", source.reference)
    course = tmp_path / "course"
    command = [sys.executable, "-m", "inferlab.cli", "grade", str(folder), "--course", str(course)]
    command += ["--exercises", str(exercises), "--workers", "1"]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    url = f"sqlite:///{course / 'gradebook.db'}"
    deadline = time.monotonic() + 120
    while len(recorded(course, url)) < 3 and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = recorded(course, url)
    assert 3 <= len(before) < 9
    second = subprocess.run(command, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert (
        f"9 files: {9 - len(before)} graded, {len(before)} unchanged, 0 not graded" in second.stdout
    )
    assert {row["score"] for row in rows(course).values()} == {"7.0"}
    assert len(rows(course)) == 9


def left_behind(mark):
    """Processes that have this in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
    return found


def test_killed_while_it_draws_feedback(exercises, source, folder, tmp_path):
    """No process outlives the command, however it ends; the next run draws what is missing."""
    notebook = source.reference
    hostile.answer(notebook, "words", r"Why? $\frac{a}{b}$ " * 1000)  # takes a while to draw
    for number in range(12):
        hand_in(folder, f"learner-{number}", notebook)
    course = tmp_path / "course"
    command = [sys.executable, "-m", "inferlab.cli", "grade", str(folder), "--course", str(course)]
    command += ["--exercises", str(exercises), "--workers", "2"]
    mark = f"TEST_MARK={tmp_path}"
    environment = os.environ | dict([mark.split("=", 1)])
    first = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 300
    while not list(course.glob("feedback/*/*/*.html")) and time.monotonic() < deadline:
        assert first.poll() is None
        time.sleep(0.002)
    assert first.pid in left_behind(mark)  # so the search does find them
    first.kill()
    first.wait()
    drawn = {page: page.stat().st_mtime_ns for page in course.glob("feedback/*/*/*.html")}
    assert 1 <= len(drawn) < 12
    deadline = time.monotonic() + 30
    while left_behind(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_behind(mark) == []

    second = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert "12 files, nothing new: 12 unchanged\n" in second.stdout
    assert left_behind(mark) == []
    pages = {page: page.stat().st_mtime_ns for page in course.glob("feedback/*/*/*.html")}
    assert len(pages) == 12
    assert {page: pages[page] for page in drawn} == drawn
    assert all("2 of 2 points" in page.read_text("utf-8") for page in pages)


def test_kernels_end_with_the_grading(grade_class, source, folder, tmp_path, monkeypatch):
    hand_in(folder, "ada", source.reference)
    hand_in(folder, "ben", source.released)
    monkeypatch.setenv("TEST_MARK", str(tmp_path))
    grade_class([folder], tmp_path / "course", workers=2)
    assert left_behind(f"TEST_MARK={tmp_path}") == []


def swallows_exceptions_for_a_minute(*_):
    """As the libraries that draw a page do in places."""
    start = time.process_time()
    while time.process_time() - start < 60:
        with contextlib.suppress(Exception):
            sum(range(10_000))


def test_a_page_that_cannot_be_drawn_stops_nothing_else(
    grade_class, source, folder, tmp_path, monkeypatch
):
    hand_in(folder, "ada", source.reference)
    hand_in(folder, "ben", source.released)
    course = tmp_path / "course"
    with monkeypatch.context() as hurried:
        hurried.setattr(page, "LONGEST_S", 0.1)
        hurried.setattr(page, "for_learner", swallows_exceptions_for_a_minute)
        told = grade_class([folder], course).summary
    assert (told.graded, len(told.failed)) == (2, 2)
    reason = "no feedback page can be drawn (it took more than 0.1 s)"
    assert all(reason in line for line in told.failed)
    assert {student: row["score"] for student, row in rows(course).items()} == {
        "ada": "7.0",
        "ben": "0.0",
    }
    again = grade_class([folder], course)
    assert (again.summary.graded, again.summary.failed) == (0, [])
    assert "2 of 2 points" in again.feedback("ada")


def test_a_text_that_keeps_the_converter_busy_is_shown_as_typed(
    grade_class, source, folder, tmp_path, monkeypatch
):
    notebook = source.reference
    hostile.answer(notebook, "words", "*Why* & when? <script>alert(1)</script>")
    hand_in(folder, "ada", notebook)
    with monkeypatch.context() as hurried:
        hurried.setattr(page, "LONGEST_S", 2)
        hurried.setattr(page, "markdown", swallows_exceptions_for_a_minute)
        graded = grade_class([folder], tmp_path / "course")
    assert graded.summary.failed == []
    drawn = graded.feedback("ada")
    assert "<pre>*Why* &amp; when? &lt;script&gt;alert(1)&lt;/script&gt;</pre>" in drawn
    assert "2 of 2 points" in drawn


def recorded(course, url):
    if not (course / "nbgrader_config.py").is_file():
        return {}
    book = Gradebook(url)
    try:
        return book.recorded()
    finally:
        book.close()


def test_one_worker_gives_what_two_give(graded, grade_class, hostile_class, tmp_path):
    alone = grade_class(some_of(hostile_class), tmp_path / "course", workers=1)
    assert alone.comparable(SOME) == graded.comparable(SOME)


def test_what_it_says_of_the_files_adds_up(exercises, source, folder, tmp_path, capsys):
    hand_in(folder, "ada", source.reference)
    (folder / "ada" / "broken.ipynb").write_text("{")
    (folder / "ben").mkdir()
    (folder / "ben" / "sample.ipynb").write_text("{")
    command = ["grade", str(folder), "--course", str(tmp_path / "course")]
    command += ["--exercises", str(exercises), "--exercise", "sample"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert told.out.startswith(
        "3 files: 2 graded (1 run, 1 could not be read), 0 unchanged, 0 not graded,"
        " 1 set aside for another by the same learner\n"
    )
    assert told.err.startswith("Reading the submissions ...\n3 files; reading the answers ...\n")
    assert "1/1" in told.err

    # Nothing new: no bar.
    assert main(command) == 0
    told = capsys.readouterr()
    assert told.out.startswith("3 files, nothing new: 2 unchanged, 1 set aside")
    assert len(told.err.splitlines()) == 2
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""

    # Nobody is late without a time, and who sets a date is told so.
    assert "late " not in told.out
    assert main([*command, "--due", "2026-12-01T10:00Z"]) == 0
    assert "late       3 of 3 do not say when they were handed in" in capsys.readouterr().out
    (folder / "ada" / "timestamp.txt").write_text("2026-12-02 10:00:01 UTC")
    assert main([*command, "--due", "2026-12-01T10:00Z"]) == 0
    assert "late       1 of 3 do not say" in capsys.readouterr().out


# --- refusals -------------------------------------------------------------------------------


def test_without_a_sandbox_it_refuses(grade_class, source, folder, tmp_path, monkeypatch):
    hand_in(folder, "ada", source.reference)
    nothing = tmp_path / "bin"
    nothing.mkdir()
    monkeypatch.setenv("PATH", str(nothing))
    with pytest.raises(InputError, match="--unsafe-no-sandbox"):
        grade_class([folder], tmp_path / "course")
    assert not (tmp_path / "course" / "results").exists()
    # Told to, it grades all the same.
    assert grade_class([folder], tmp_path / "course", safe=False).scores == {"ada": 7}


def test_a_plain_scheduler_is_refused(grade_class, source, folder, tmp_path):
    hand_in(folder, "ada", source.reference)
    with pytest.raises(InputError, match="tls://"):
        grade_class([folder], tmp_path / "course", scheduler="tcp://127.0.0.1:8786")


def test_two_runs_at_once_are_refused(grade_class, source, folder, tmp_path):
    import fcntl

    hand_in(folder, "ada", source.reference)
    course = tmp_path / "course"
    course.mkdir()
    with open(course / ".writing", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another run"):
            grade_class([folder], course)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere"], "is not there"),
        ([".", "--exercise", "9-nothing"], "there is no exercise"),
        ([".", "--match", "("], "no regular expression"),
        ([".", "--match", "a"], "no group"),
        ([".", "--workers", "0"], "expected 1 to 256"),
        ([".", "--workers", "100000"], "expected 1 to 256"),
        ([".", "--late", "200"], "expected a percentage"),
        ([".", "--due", "tomorrow"], "is no time"),
        ([".", "--due", "9999-12-31T23:59-14:00"], "is no time"),
        ([".", "--due", "2026-12-01"], "does not say its zone"),
        ([".", "--tls-ca", "ca.pem"], "are for --scheduler: give it too"),
        ([".", "--cell-seconds", "nan"], "a time limit is not above zero"),
        ([".", "--notebook-seconds", "inf"], "a time limit is not above zero"),
        ([".", "--gradebook", "postgresql://nobody@127.0.0.1:1/none"], "cannot be opened"),
    ],
)
def test_input_that_cannot_be_used_is_one_sentence(
    arguments, reason, exercises, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ada.ipynb").write_text("{}")
    try:
        code = main(["grade", *arguments, "--exercises", str(exercises)])
    except SystemExit as left:
        code = left.code
    *progress, told = capsys.readouterr().err.strip().splitlines()
    assert code == 2
    assert reason in told
    assert all(line.endswith(" ...") for line in progress)
