"""What comes out of grading: notebooks for graders, feedback for learners, tables and a summary."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat

from inferlab.feedback.exercise import RECEIPT
from inferlab.grading.checks import AnswerKey, Verdict
from inferlab.grading.normalise import Normalised
from inferlab.grading.record import Graded, Result
from inferlab.grading.release import Source


def autograded(
    source: Source, submission: Normalised, ran: dict, result: Result
) -> nbformat.NotebookNode:
    """The notebook that formgrader shows: answers, sanitised outputs, verdicts, rubrics."""
    by_id = {cell.id: cell for cell in source.released.cells}
    verdicts = {verdict.question: verdict for verdict in result.verdicts}
    notebook = nbformat.v4.new_notebook(metadata=source.released.metadata)
    if result.notes:
        notebook.cells.append(
            _text("grader-notes", "**Notes of the grader**\n\n" + _list(result.notes))
        )
    place = -1
    for number, cell in enumerate(submission.cells):
        if cell.cell_type == "code":
            place += 1
        if cell.role == "essay":
            rubric = [f"({points:g}) {text}" for points, text in source.key[cell.question].rubric]
            made = _text(f"rubric-{number}", "**Rubric, for graders**\n\n" + _list(rubric))
            made.metadata["inferlab"] = {"rubric": True}
            notebook.cells.append(made)
        model = by_id.get(cell.id)
        if cell.cell_type == "markdown":
            text = _without_tags(cell.source) if cell.role == "essay" else cell.source
            made = _cell("markdown", text)
            if cell.pictures:
                made.attachments = nbformat.from_dict(cell.pictures)
        else:
            made = _cell("code", cell.source)
            outputs = ran["outputs"].get(str(place), [])
            if str(place) in ran["stopped"]:
                outputs = [*outputs, _stream(f"Stopped: {ran['stopped'][str(place)]}.\n")]
            if cell.role == "check":
                outputs = [_stream(_verdict_line(source.key, verdicts[cell.question]))]
            made.outputs = [o for o in outputs if RECEIPT not in o.get("data", ())]
            made.execution_count = place + 1
        made.id = cell.id or f"extra-{number}"
        if model is not None:
            made.metadata = model.metadata
            if "attachments" in model:
                made.attachments = model.attachments
        notebook.cells.append(made)
    return notebook


def unreadable_notebook(source: Source, result: Result) -> nbformat.NotebookNode:
    """What formgrader shows for a file that cannot be read: the empty exercise and the reason."""
    notebook = source.released
    notebook.cells.insert(
        0, _text("grader-notes", "**Notes of the grader**\n\n" + _list(result.notes))
    )
    return notebook


def _text(id: str, text: str):
    cell = _cell("markdown", text)
    cell.id = id
    return cell


def _cell(cell_type: str, source: str) -> nbformat.NotebookNode:
    # nbformat's own makers compare every cell with the schema, which takes most of their time.
    return nbformat.from_dict({"cell_type": cell_type, "metadata": {}, "source": source})


def _list(items) -> str:
    return "\n".join(f"- {_without_tags(item)}" for item in items)


def _stream(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _verdict_line(key: AnswerKey, verdict: Verdict) -> str:
    sign = "✓" if verdict.status == "right" else "✗"
    points = key[verdict.question].points
    return f"{sign} {verdict.points:g} of {points:g} points. {verdict.sentence}\n"


def _without_tags(text: str) -> str:
    """Markdown without raw HTML, which would run in the grader's browser."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


# --- files -----------------------------------------------------------------------------------


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a killed run, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, "utf-8")
    os.replace(beside, path)


def pages_to_draw(
    course: Path, source: Source, graded: list[Graded], results: dict
) -> Iterator[tuple[Path, str, dict]]:
    """The feedback pages of an exercise that are missing or old: file, its last line, its job.

    The last line says what a page was made of, so an unchanged one is not drawn again.
    """
    for one in graded:
        path = course / "autograded" / one.student / source.name / f"{source.name}.ipynb"
        if (one.student, source.name) not in results or not path.is_file():
            continue
        scores = {
            "score": one.score - one.late_penalty,
            "max_score": one.max_score,
            "late_penalty": one.late_penalty,
            "student": one.student,
            "assignment": source.name,
            "notebook": source.name,
        }
        job = {
            "notebook": path.read_text("utf-8"),
            "grades": {grade.name: (grade.score, grade.max_score) for grade in one.grades},
            "comments": one.comments,
            "scores": scores,
        }
        stamp = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
        mark = f"<!-- feedback {stamp} -->"
        page = course / "feedback" / one.student / source.name / f"{source.name}.html"
        if not _ends_with(page, mark):
            yield page, mark, job


def _ends_with(path: Path, text: str) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(text)))
        return file.read() == text.encode()


def write_tables(
    course: Path, sources: dict[str, Source], graded: dict[str, list[Graded]], results: dict
) -> list[dict]:
    """submissions.csv and questions.csv; returns the rows of the first. graded: by exercise."""
    submissions, questions = [], []
    for name, source in sources.items():
        for one in graded[name]:
            result = results.get((one.student, name))
            if result is not None:
                submissions.append(_submission_row(one, result))
                questions += _question_rows(one, result, source)
    listed = {(row["student"], row["exercise"]) for row in submissions}
    for (student, exercise), result in sorted(results.items()):
        if (student, exercise) not in listed:
            submissions.append(
                {
                    "student": student,
                    "exercise": exercise,
                    "status": result.status,
                    "file": result.file,
                }
                | {"notes": "; ".join(result.notes)}
            )
    for name, rows, columns in (
        ("submissions.csv", submissions, SUBMISSION_COLUMNS),
        ("questions.csv", questions, QUESTION_COLUMNS),
    ):
        text = io.StringIO()
        table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows({key: _no_formula(value) for key, value in row.items()} for row in rows)
        write_atomically(course / "results" / name, text.getvalue())
    return submissions


SUBMISSION_COLUMNS = [
    "student", "exercise", "status", "score", "max_score", "by_machine", "by_person",
    "waiting_for_person", "seconds_late", "late_penalty", "file", "notes",
]  # fmt: skip
QUESTION_COLUMNS = [
    "student", "exercise", "question", "status", "points", "max_points", "mistake", "by",
]  # fmt: skip


def _no_formula(value):
    """Text that a spreadsheet would run as a formula is shown as text instead."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _submission_row(one: Graded, result: Result) -> dict:
    by_person = sum(g.score for g in one.grades if g.by_person)
    return {
        "student": one.student,
        "exercise": result.exercise,
        "status": result.status,
        "score": round(one.score - one.late_penalty, 4),
        "max_score": one.max_score,
        "by_machine": round(one.score - by_person, 4),
        "by_person": round(by_person, 4),
        "waiting_for_person": sum(g.needs_person for g in one.grades),
        "seconds_late": round(one.seconds_late),
        "late_penalty": round(one.late_penalty, 4),
        "file": result.file,
        "notes": "; ".join(result.notes),
    }


def _question_rows(one: Graded, result: Result, source: Source) -> list[dict]:
    verdicts = {verdict.question: verdict for verdict in result.verdicts}
    grades = {grade.name: grade for grade in one.grades}
    rows = []
    for question in source.key.questions:
        grade = grades.get(question.id if question.by_person else f"{question.id}_check")
        if grade is None:  # a question that is newer than what was graded
            continue
        verdict = verdicts.get(question.id)
        if verdict is not None:
            status = verdict.status
        elif not result.verdicts:
            status = result.status
        elif grade.needs_person:
            status = "waiting for person"
        else:
            status = "graded by person" if grade.by_person else "unanswered"
        rows.append(
            {
                "student": result.student,
                "exercise": result.exercise,
                "question": question.id,
                "status": status,
                "points": grade.score,
                "max_points": grade.max_score,
                "mistake": verdict.mistake if verdict else "",
                "by": "person" if grade.by_person else "machine",
            }
        )
    return rows


# --- the summary -----------------------------------------------------------------------------


def write_summary(
    course: Path, sources: dict[str, Source], results: dict, rows: list[dict]
) -> None:
    """results/summary.html: scores, how hard each question is, the commonest named mistakes."""
    parts = [_totals(rows)]
    for name, source in sources.items():
        graded = [r for r in results.values() if r.exercise == name and r.verdicts]
        if graded:
            # A file that could not be read is no score of 0.
            students = {result.student for result in graded}
            scores = [
                row["score"]
                for row in rows
                if row["exercise"] == name and row["student"] in students
            ]
            parts.append(_exercise_summary(source, graded, scores))
    attention = [row for row in rows if row["status"] != "graded" or row["notes"]]
    parts.append('<a id="attention"></a>')
    parts.append(_table("Look at these", ["student", "exercise", "status", "notes"], attention))
    if not attention:
        parts.append("<p>No file needs a look.</p>")
    body = "\n".join(parts)
    write_atomically(course / "results" / "summary.html", _PAGE.replace("BODY", body))


def _totals(rows: list[dict]) -> str:
    count = Counter(row["status"] for row in rows)
    # Of a file that cannot be read every question waits: it is counted as one file instead.
    read = [row for row in rows if row["status"] in ("graded", "partly run")]
    waiting = sum(int(row["waiting_for_person"]) for row in read)
    states = ", ".join(f"{number} {status}" for status, number in count.most_common())
    return (
        f"<p>{len(rows)} submissions: {html.escape(states)}."
        f" {waiting} answers in words wait for a person. Files that need a look are listed"
        ' <a href="#attention">below</a>.</p>'
    )


def _exercise_summary(source: Source, graded: list[Result], scores: list[float]) -> str:
    questions = source.key.automatic
    total = sum(question.points for question in source.key.questions)
    right = Counter(v.question for r in graded for v in r.verdicts if v.status == "right")
    shares = [right[question.id] / len(graded) for question in questions]
    mistakes = Counter(
        (v.question, v.mistake) for r in graded for v in r.verdicts if v.status == "mistake"
    )
    status = Counter((v.question, v.status) for r in graded for v in r.verdicts)
    rows = [
        {
            "question": question.id,
            "right": f"{share:.0%}",
            "named mistake": status[question.id, "mistake"],
            "wrong": status[question.id, "wrong"] + status[question.id, "invalid"],
            "not answered": status[question.id, "unanswered"],
            "no receipt": status[question.id, "no receipt"],
        }
        for question, share in zip(questions, shares, strict=True)
    ]
    common = [
        {"question": question, "mistake": mistake, "learners": number}
        for (question, mistake), number in mistakes.most_common(10)
    ]
    title = html.escape(f"{source.name}: {source.key.title}")
    return (
        f"<h2>{title}</h2>"
        + _plots(scores, total, questions, shares)
        + _table("How each question went", list(rows[0]), rows)
        + _table("Commonest named mistakes", ["question", "mistake", "learners"], common)
    )


def _plots(scores, total, questions, shares) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.28 * len(questions) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    bins = [total * i / 10 for i in range(11)]
    left.hist(scores, bins=bins, color="#4477aa", edgecolor="white")
    left.yaxis.get_major_locator().set_params(integer=True)
    left.set(xlabel="points", ylabel="learners", title="Scores")
    names = [question.id for question in questions]
    right.barh(names[::-1], shares[::-1], color="#228833")
    right.set(xlabel="share of learners that are right", xlim=(0, 1), title="Questions")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    data = base64.b64encode(picture.getvalue()).decode()
    mean = sum(scores) / len(scores) if scores else 0
    hardest = min(zip(shares, names, strict=True))[1]
    alt = f"{len(scores)} scores with mean {mean:.1f} of {total:g}; fewest are right in {hardest}."
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'


def _table(title: str, columns: list[str], rows: list[dict]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(row.get(c, '')))}</td>" for c in columns) + "</tr>"
        for row in rows
    )
    return f"<h3>{html.escape(title)}</h3><table><tr>{head}</tr>{body}</table>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Results</title>
<meta name="viewport" content="width=device-width">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
img { max-width: 100% } table { border-collapse: collapse; margin-bottom: 1.5rem }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #ccc }
</style></head><body><h1>Results</h1>
BODY
</body></html>
"""
