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
from pathlib import Path

import nbformat

from inferlab.feedback.exercise import RECEIPT
from inferlab.grading.checks import AnswerKey, Verdict
from inferlab.grading.normalise import Normalised
from inferlab.grading.record import Gradebook, Result
from inferlab.grading.release import Source

_CDN = re.compile(r"<script[^>]*src=\"https?:[^>]*>\s*</script>")

# Shown in the grader's and the learner's browser: no HTML, no scripts, no SVG from a submission.
SAFE_OUTPUTS = ("text/plain", "text/latex", "image/png", "image/jpeg")


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
            made = nbformat.v4.new_markdown_cell(
                _without_tags(cell.source) if cell.role == "essay" else cell.source
            )
        else:
            made = nbformat.v4.new_code_cell(cell.source)
            outputs = ran["outputs"].get(str(place), [])
            if str(place) in ran["stopped"]:
                outputs = [*outputs, _stream(f"Stopped: {ran['stopped'][str(place)]}.\n")]
            if cell.role == "check":
                outputs = [_stream(_verdict_line(source.key, verdicts[cell.question]))]
            made.outputs = [safe for output in outputs for safe in _safe_output(output)]
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
    cell = nbformat.v4.new_markdown_cell(text)
    cell.id = id
    return cell


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


def _safe_output(output) -> list:
    """An output that came from the learner's process, rebuilt from the parts that are harmless."""
    if not isinstance(output, dict):
        return []
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        text = str(output.get("text", ""))[:25_000]
        return [nbformat.v4.new_output("stream", name=name, text=text)]
    if kind == "error":
        lines = [str(line)[:2000] for line in list(output.get("traceback") or [])[:20]]
        name, value = str(output.get("ename", ""))[:100], str(output.get("evalue", ""))[:1000]
        return [nbformat.v4.new_output("error", ename=name, evalue=value, traceback=lines)]
    data = output.get("data")
    if kind not in ("display_data", "execute_result") or not isinstance(data, dict):
        return []
    if RECEIPT in data:
        return []
    kept = {mime: data[mime] for mime in SAFE_OUTPUTS if isinstance(data.get(mime), str)}
    for mime in ("image/png", "image/jpeg"):
        if mime in kept and not re.fullmatch(r"[A-Za-z0-9+/=\s]+", kept[mime]):
            del kept[mime]
    return [nbformat.v4.new_output("display_data", data=kept)] if kept else []


# --- files -----------------------------------------------------------------------------------


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a killed run, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, "utf-8")
    os.replace(beside, path)


def write_feedback(course: Path, book: Gradebook, source: Source, results: dict) -> int:
    """The feedback pages of an exercise; writes only those that changed, and returns how many."""
    import nbgrader
    from nbconvert.exporters import HTMLExporter
    from traitlets.config import Config

    forms = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
    config = Config()
    config.HTMLExporter.template_name = "feedback"
    config.HTMLExporter.extra_template_basedirs = [str(forms / "templates")]
    styles = forms / "static" / "node_modules" / "bootstrap" / "dist" / "css"
    config.HTMLExporter.extra_template_paths = [str(styles)]
    exporter = HTMLExporter(config=config)
    written = 0
    for submitted in book.submitted_notebooks(source.name):
        student = submitted.student.id
        path = course / "autograded" / student / source.name / f"{source.name}.ipynb"
        if (student, source.name) not in results or not path.is_file():
            continue
        text = path.read_text("utf-8")
        grades = {g.cell.name: (g.score, g.max_score) for g in submitted.grades}
        comments = {c.cell.name: c.comment for c in submitted.comments}
        penalty = submitted.late_submission_penalty or 0
        state = json.dumps([text, grades, comments, penalty], sort_keys=True, default=str)
        stamp = hashlib.sha256(state.encode()).hexdigest()
        page = course / "feedback" / student / source.name / f"{source.name}.html"
        mark = f"<!-- feedback {stamp} -->"
        if page.is_file() and page.read_text("utf-8").endswith(mark):
            continue
        notebook = nbformat.reads(text, as_version=4)
        notebook.cells = [
            c for c in notebook.cells if not c.metadata.get("inferlab", {}).get("rubric")
        ]
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                # A page that is read without a network shows formulas as text.
                output.get("data", {}).pop("text/latex", None)
            about = cell.metadata.get("nbgrader", {})
            if about.get("grade"):
                about["score"], about["points"] = grades[about["grade_id"]]
            if about.get("solution"):
                about["comment"] = comments[about["grade_id"]]
        scores = {
            "score": submitted.score - penalty,
            "max_score": submitted.max_score,
            "late_penalty": penalty,
            "student": student,
            "assignment": source.name,
            "notebook": source.name,
        }
        body, _ = exporter.from_notebook_node(
            notebook, {"nbgrader": scores, "metadata": {"name": source.name}}
        )
        write_atomically(page, _CDN.sub("", body) + mark)
        written += 1
    return written


def write_tables(
    course: Path, book: Gradebook, sources: dict[str, Source], results: dict
) -> list[dict]:
    """submissions.csv and questions.csv; returns the rows of the first."""
    submissions, questions = [], []
    for name, source in sources.items():
        for submitted in book.submitted_notebooks(name):
            result = results.get((submitted.student.id, name))
            if result is not None:
                submissions.append(_submission_row(submitted, result))
                questions += _question_rows(submitted, result, source)
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


def _submission_row(submitted, result: Result) -> dict:
    penalty = submitted.late_submission_penalty or 0
    by_person = sum(g.score for g in submitted.grades if g.manual_score is not None)
    return {
        "student": submitted.student.id,
        "exercise": submitted.name,
        "status": result.status,
        "score": round(submitted.score - penalty, 4),
        "max_score": submitted.max_score,
        "by_machine": round(submitted.score - by_person, 4),
        "by_person": round(by_person, 4),
        "waiting_for_person": sum(g.needs_manual_grade for g in submitted.grades),
        "seconds_late": round(submitted.assignment.total_seconds_late),
        "late_penalty": round(penalty, 4),
        "file": result.file,
        "notes": "; ".join(result.notes),
    }


def _question_rows(submitted, result: Result, source: Source) -> list[dict]:
    verdicts = {verdict.question: verdict for verdict in result.verdicts}
    grades = {grade.cell.name: grade for grade in submitted.grades}
    rows = []
    for question in source.key.questions:
        grade = grades[question.id if question.by_person else f"{question.id}_check"]
        verdict = verdicts.get(question.id)
        if verdict is not None:
            status = verdict.status
        elif not result.verdicts:
            status = result.status
        elif grade.needs_manual_grade:
            status = "waiting for person"
        else:
            status = "graded by person" if grade.manual_score is not None else "unanswered"
        rows.append(
            {
                "student": result.student,
                "exercise": result.exercise,
                "question": question.id,
                "status": status,
                "points": grade.score,
                "max_points": grade.max_score,
                "mistake": verdict.mistake if verdict else "",
                "by": "person" if grade.manual_score is not None else "machine",
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
    parts.append(_table("Look at these", ["student", "exercise", "status", "notes"], attention))
    body = "\n".join(parts)
    write_atomically(course / "results" / "summary.html", _PAGE.replace("BODY", body))


def _totals(rows: list[dict]) -> str:
    count = Counter(row["status"] for row in rows)
    waiting = sum(int(row.get("waiting_for_person") or 0) for row in rows)
    states = ", ".join(f"{number} {status}" for status, number in count.most_common())
    return (
        f"<p>{len(rows)} submissions: {html.escape(states)}."
        f" {waiting} answers wait for a person.</p>"
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
