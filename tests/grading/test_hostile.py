"""A class that hands in everything that a grader has to survive, graded once, without losing one."""

import csv
import json
import os
import platform
import re
import socket
from pathlib import Path

import nbformat
import pytest

from grading import hostile
from inferlab.feedback.exercise import RECEIPT

pytestmark = pytest.mark.needs("bubblewrap")
ROOT = Path(__file__).resolve().parents[2]


def test_the_class_is_large_and_every_file_is_recorded(graded):
    assert len(hostile.CASES) >= 30
    assert graded.summary.found == len(hostile.CASES)
    assert graded.summary.failed == []
    assert set(graded.results) == {case.name for case in hostile.CASES}


@pytest.mark.parametrize("case", hostile.CASES, ids=lambda case: case.name)
def test_the_score_and_the_note_are_right(graded, case):
    result = graded.results[case.name]
    assert (graded.scores[case.name], result.status) == (case.points, case.status)
    notes = "; ".join(result.notes)
    assert case.note in notes
    if not case.note:
        assert notes == ""


def test_a_table_says_what_happened_to_each(graded):
    with open(graded.course / "results" / "submissions.csv", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert set(rows) == {case.name for case in hostile.CASES}
    for case in hostile.CASES:
        assert rows[case.name]["status"] == case.status
        assert float(rows[case.name]["score"]) == case.points
    # A file that cannot be read is not an honest zero: a person is asked to look.
    assert int(rows["cut-short"]["waiting_for_person"]) > 0
    assert int(rows["untouched"]["waiting_for_person"]) == 0
    with open(graded.course / "results" / "questions.csv", newline="") as file:
        questions = {(row["student"], row["question"]): row for row in csv.DictReader(file)}
    assert questions["untouched", "ratio"]["status"] == "unanswered"
    assert questions["number-as-text", "ratio"]["status"] == "invalid"
    assert questions["kills-its-kernel", "ratio"]["status"] == "no receipt"
    assert questions["cut-short", "ratio"]["status"] == "unreadable"
    assert questions["reference", "words"]["status"] == "waiting for person"


def test_a_function_that_knows_only_the_shown_inputs_is_told_so(graded):
    verdicts = {v.question: v for v in graded.results["knows-only-the-shown-inputs"].verdicts}
    assert "wrong for others" in verdicts["double"].sentence


def test_feedback_shows_no_hidden_value(graded):
    for name in ("reference", "looks-for-answers", "forges-receipts", "raises"):
        page = graded.feedback(name).split("</style>")[-1]
        assert "hidden" not in page
        assert RECEIPT not in page and RECEIPT not in graded.autograded(name)
        # The right value of the first question, and what only the grader asks the second for.
        assert "200.64" not in page.replace("312 / 1.555", "") and "7.5" not in page
        assert "Says why, in its own words" not in page  # the rubric is for graders


def test_the_grader_sees_the_rubric_and_the_learner_the_verdict(graded):
    assert "Says why, in its own words" in graded.autograded("reference")
    page = graded.feedback("reference")
    assert "2 of 2 points" in page
    assert '<a href="#ratio_check">ratio</a> (Score: ' in page and "Test cell" not in page
    assert "Divide the peak by the bandwidth." in graded.feedback("check-cell-edited")


def test_nothing_runs_in_the_browser_of_grader_or_learner(graded):
    notebook = json.loads(graded.autograded("script-in-outputs-and-essay"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
    mimes = {mime for output in outputs for mime in output.get("data", {})}
    assert mimes <= {"text/plain", "text/latex", "image/png", "image/jpeg"}
    (essay,) = [cell["source"] for cell in notebook["cells"] if cell["id"] == "words"]
    assert "alert" in essay and "<script" not in essay and "<img" not in essay
    page = graded.feedback("script-in-outputs-and-essay")
    assert "alert" in page
    assert "<script>alert" not in page and "<img src=x" not in page and "<svg" not in page
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?:', page)


def test_a_picture_of_an_essay_is_shown_to_grader_and_learner(graded):
    notebook = json.loads(graded.autograded("a-picture-in-the-essay"))
    (essay,) = [cell for cell in notebook["cells"] if cell["id"] == "words"]
    assert essay["attachments"] == {"batch.png": {"image/png": "iVBORw0KGgo="}}
    page = graded.feedback("a-picture-in-the-essay")
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in page
    assert "(the picture gone is not in the notebook)" in page


def test_what_a_grader_opens_is_a_valid_notebook(graded):
    for case in hostile.CASES:
        notebook = nbformat.reads(graded.autograded(case.name), as_version=4)
        nbformat.validate(notebook)
        assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_looking_for_answers_finds_none(graded):
    printed = graded.autograded("looks-for-answers")
    assert "SEALS [] []" in printed
    assert "FOUND" not in printed.replace("print('FOUND'", "")


def test_processes_are_limited(graded):
    (made,) = re.findall(r"processes made: (\d+)", graded.autograded("fork-bomb"))
    assert int(made) < 64


def test_endless_printing_is_cut(graded):
    assert len(graded.autograded("prints-without-end")) < 60_000


def test_attacks_on_the_machine_fail(
    graded, source, exercises, hostile_class, grade_class, tmp_path
):
    """One submission tries them all and reports; the same report from outside shows that each works."""
    package = Path(hostile.__file__).parents[2] / "lib" / "inferlab"
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = hostile.ATTACKS
        for name, value in {
            "EXERCISES": exercises,
            "COURSE": graded.course,
            "CLASS": hostile_class,
            "REPOSITORY": ROOT,
            "PACKAGE": package,
            "PORT": server.getsockname()[1],
            "PARENT": os.getpid(),
            "CLONE": {"x86_64": 56, "aarch64": 220}[platform.machine()],
            "ADD_KEY": {"x86_64": 248, "aarch64": 217}[platform.machine()],
        }.items():
            text = text.replace(name, str(value))
        folder = tmp_path / "class"
        folder.mkdir()

        def attack(notebook, source):
            hostile.insert_after(notebook, "setup", text)

        case = hostile.Case("attacker", 7, "", attack)
        hostile.write_submission(folder, case, source)
        os.environ["A_SECRET"] = "token"
        try:
            attacked = grade_class([folder], tmp_path / "course")
        finally:
            del os.environ["A_SECRET"]
    notebook = json.loads(attacked.autograded("attacker"))
    printed = "".join(
        "".join(output["text"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    )
    report = json.loads(re.search("FINDINGS(.*)", printed)[1])
    assert {k: v for k, v in report["found"].items() if not v.startswith("blocked: ")} == {}
    assert (report["environment"], report["first environment"]) == ({}, [])
    assert report["parent"] in (0, 1) and len(report["processes"]) <= 5
    assert report["user"] != 0
    assert [line.split()[1] for line in report["capabilities"]] == ["0" * 16, "0" * 16, "1"]
    assert len(report["descriptors"]) <= 5
    assert attacked.scores["attacker"] == 7
    # The targets are there, so that their absence inside says something.
    assert (exercises / "sample" / "checks.py").is_file()
    assert (graded.course / "gradebook.db").is_file()
    assert (package / "feedback" / "values.py").is_file()
