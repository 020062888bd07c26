"""The gradebook: nbgrader's own tables, and one of ours that says what was graded and how.

One writer records one submission in one transaction, so a run that is killed anywhere leaves each
submission either recorded whole or not at all. Scores that a person gave are never touched.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import sqlalchemy as sql
from nbgrader import api

from inferlab.grading.checks import Verdict
from inferlab.grading.release import Source
from inferlab.quantities import InputError

COURSE = "inference"

_TABLES = sql.MetaData()
RESULTS = sql.Table(
    "inferlab_result",
    _TABLES,
    sql.Column("student", sql.String(128), primary_key=True),
    sql.Column("exercise", sql.String(128), primary_key=True),
    sql.Column("fingerprint", sql.String(64), nullable=False),
    sql.Column("status", sql.String(32), nullable=False),
    sql.Column("file", sql.Text, nullable=False),
    sql.Column("notes", sql.Text, nullable=False),
    sql.Column("verdicts", sql.Text, nullable=False),
    sql.Column("essays", sql.Text, nullable=False),
)


@dataclass
class Result:
    """What is known of one submission after grading.

    status: graded, partly run (a cell was stopped), unreadable, no notebook, unknown exercise.
    essays: {question: a digest of its text}, to see whether it changed since a person graded it.
    """

    student: str
    exercise: str
    fingerprint: str
    status: str
    file: str
    notes: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    essays: dict[str, str] = field(default_factory=dict)
    timestamp: datetime | None = None


class Gradebook:
    """The gradebook of a course, opened for writing.

    url: as SQLAlchemy takes it, such as sqlite:////home/me/course/gradebook.db or
    postgresql://user@host/course. Raises InputError when it cannot be opened.
    """

    def __init__(self, url: str):
        # A new gradebook asks the program `alembic`, which lies beside this Python, for its
        # version.
        folder = str(Path(sys.executable).parent)
        if folder not in os.environ.get("PATH", "").split(os.pathsep):
            os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", "")
        self.url = with_driver(url)
        try:
            self._book = api.Gradebook(self.url, course_id=COURSE)
            _TABLES.create_all(self._book.engine)
        except (sql.exc.SQLAlchemyError, ModuleNotFoundError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"the gradebook {url} cannot be opened ({reason}): expected sqlite:///FILE or a"
                " PostgreSQL server that runs and lets you in"
            ) from None
        self.session = self._book.db

    def close(self) -> None:
        self._book.close()
        self._book.engine.dispose()

    # --- the course --------------------------------------------------------------------------

    def set_up(self, source: Source, due: datetime | None) -> None:
        """Make or renew an exercise with its questions, in one transaction."""
        name = source.name
        assignment = self._one(api.Assignment, name=name)
        if assignment is None:
            assignment = api.Assignment(name=name, course_id=COURSE)
            self.session.add(assignment)
        if due is not None:
            assignment.duedate = due
        notebook = next(iter(assignment.notebooks), None)
        if notebook is None:
            notebook = api.Notebook(name=name, assignment=assignment)
            self.session.add(notebook)
            self.session.flush()
        for cell in source.released.cells:
            about = cell.metadata.get("nbgrader")
            if about:
                self._set_up_cell(notebook, cell, about)
        self.session.commit()

    def _set_up_cell(self, notebook, cell, about) -> None:
        id = about["grade_id"]
        if about["grade"]:
            grade = next((c for c in notebook.grade_cells if c.name == id), None)
            if grade is None:
                grade = api.GradeCell(name=id, notebook=notebook)
                self.session.add(grade)
            grade.max_score, grade.cell_type = about["points"], cell.cell_type
        if about["solution"] and not any(c.name == id for c in notebook.solution_cells):
            self.session.add(api.SolutionCell(name=id, notebook=notebook))
        kept = next((c for c in notebook.source_cells if c.name == id), None)
        if kept is None:
            kept = api.SourceCell(name=id, notebook=notebook)
            self.session.add(kept)
        kept.source, kept.cell_type, kept.locked = cell.source, cell.cell_type, about["locked"]
        kept.checksum = about.get("checksum")

    # --- submissions -------------------------------------------------------------------------

    def recorded(self) -> dict[tuple[str, str], Result]:
        """What is recorded, by learner and exercise."""
        rows = self.session.execute(sql.select(RESULTS)).mappings()
        return {(row["student"], row["exercise"]): _from_row(row) for row in rows}

    def record(self, result: Result, source: Source | None) -> None:
        """Record one submission, whole or not at all.

        source: None for a file whose exercise is unknown, which has no place in nbgrader's tables.
        """
        try:
            if source is not None:
                self._grade(result, source)
            key = (RESULTS.c.student == result.student) & (RESULTS.c.exercise == result.exercise)
            self.session.execute(sql.delete(RESULTS).where(key))
            self.session.execute(sql.insert(RESULTS).values(_to_row(result)))
            self.session.commit()
        except BaseException:
            self.session.rollback()
            raise

    def _grade(self, result: Result, source: Source) -> None:
        notebook = self._submitted(result, source)
        before = self.session.execute(
            sql.select(RESULTS.c.essays).where(
                (RESULTS.c.student == result.student) & (RESULTS.c.exercise == result.exercise)
            )
        ).scalar()
        essays_before = json.loads(before) if before else {}
        verdicts = {f"{verdict.question}_check": verdict for verdict in result.verdicts}
        failed = not result.verdicts
        for grade in notebook.grades:
            verdict = verdicts.get(grade.cell.name)
            if verdict is not None:
                grade.auto_score = verdict.points
                grade.needs_manual_grade = False
            elif failed:
                # A person has to look: the file could not be read, which is not an answer worth 0.
                grade.auto_score, grade.needs_manual_grade = 0.0, grade.manual_score is None
            else:
                written = result.essays.get(grade.cell.name)
                unchanged = written == essays_before.get(grade.cell.name)
                grade.auto_score = None if written else 0.0
                graded_by_person = grade.manual_score is not None and unchanged
                grade.needs_manual_grade = bool(written) and not graded_by_person
        for comment in notebook.comments:
            answered = comment.cell.name in result.essays or comment.cell.name in {
                v.question for v in result.verdicts if v.status != "unanswered"
            }
            comment.auto_comment = None if answered else "No response."

    def _submitted(self, result: Result, source: Source):
        assignment = self._one(api.Assignment, name=source.name)
        if self._one(api.Student, id=result.student) is None:
            self.session.add(api.Student(id=result.student))
            self.session.flush()
        submission = self._one(
            api.SubmittedAssignment, assignment_id=assignment.id, student_id=result.student
        )
        if submission is None:
            submission = api.SubmittedAssignment(
                assignment_id=assignment.id, student_id=result.student
            )
            self.session.add(submission)
            self.session.flush()
        submission.timestamp = result.timestamp
        (master,) = assignment.notebooks
        notebook = next(iter(submission.notebooks), None)
        if notebook is None:
            notebook = api.SubmittedNotebook(notebook=master, assignment=submission)
            self.session.add(notebook)
            self.session.flush()
        has_grade = {grade.cell_id for grade in notebook.grades}
        for cell in master.grade_cells:
            if cell.id not in has_grade:
                self.session.add(api.Grade(cell_id=cell.id, notebook=notebook))
        has_comment = {comment.cell_id for comment in notebook.comments}
        for cell in master.solution_cells:
            if cell.id not in has_comment:
                self.session.add(api.Comment(cell_id=cell.id, notebook=notebook))
        self.session.flush()
        self.session.refresh(notebook)
        return notebook

    # --- scores ------------------------------------------------------------------------------

    def submitted_notebooks(self, exercise: str) -> Iterable:
        """nbgrader's submitted notebooks of an exercise, ordered by learner."""
        return self.session.scalars(
            sql.select(api.SubmittedNotebook)
            .join(api.SubmittedAssignment)
            .join(api.Assignment)
            .where(api.Assignment.name == exercise)
            .order_by(api.SubmittedAssignment.student_id)
        ).all()

    def apply_late_policy(self, percent_a_day: float) -> None:
        """Set the penalty of every late notebook: so much of its score for each day begun."""
        for notebook in self.session.scalars(sql.select(api.SubmittedNotebook)).all():
            late = notebook.assignment.total_seconds_late
            days = -(-late // 86_400)
            notebook.late_submission_penalty = notebook.score * min(1, percent_a_day / 100 * days)
        self.session.commit()

    def _one(self, table, **where):
        return self.session.scalars(sql.select(table).filter_by(**where)).first()


def with_driver(url: str) -> str:
    """A database URL that names the PostgreSQL driver that the grading extra installs."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _to_row(result: Result) -> dict:
    return {
        "student": result.student,
        "exercise": result.exercise,
        "fingerprint": result.fingerprint,
        "status": result.status,
        "file": result.file,
        "notes": json.dumps(result.notes),
        "verdicts": json.dumps([asdict(verdict) for verdict in result.verdicts]),
        "essays": json.dumps(result.essays),
    }


def _from_row(row) -> Result:
    return Result(
        row["student"],
        row["exercise"],
        row["fingerprint"],
        row["status"],
        row["file"],
        json.loads(row["notes"]),
        [Verdict(**verdict) for verdict in json.loads(row["verdicts"])],
        json.loads(row["essays"]),
    )
