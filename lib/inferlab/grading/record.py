"""The gradebook: nbgrader's own tables, and one of ours that says what was graded and how.

One writer records one submission in one transaction, so a run that is killed anywhere leaves each
submission either recorded whole or not at all. Scores that a person gave are never touched.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import sqlalchemy as sql
from nbgrader import api
from sqlalchemy import orm

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

# nbgrader looks grades and comments up by notebook and has no index for it: without one, all of
# them are read for each learner.
_INDEXES = [
    sql.Index(f"inferlab_{table.name}_of_notebook", table.c.notebook_id)
    for table in (api.Grade.__table__, api.Comment.__table__)
]


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


@dataclass(frozen=True)
class Grade:
    """The points of one cell as they stand. by_person: a person gave them."""

    name: str
    score: float
    max_score: float
    by_person: bool
    needs_person: bool


@dataclass(frozen=True)
class Graded:
    """What one learner has for one exercise. comments: {cell: text or None}."""

    student: str
    grades: list[Grade]
    max_score: float
    comments: dict[str, str | None]
    seconds_late: float
    late_penalty: float

    @property
    def score(self) -> float:
        """Before the penalty."""
        return sum(grade.score for grade in self.grades)


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
            for index in _INDEXES:
                index.create(self._book.engine, checkfirst=True)
        except (sql.exc.SQLAlchemyError, ModuleNotFoundError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"the gradebook {url} cannot be opened ({reason}): expected sqlite:///FILE or a"
                " PostgreSQL server that runs and lets you in"
            ) from None
        self.session = self._book.db

    def close(self) -> None:
        """Let go of the database; the gradebook cannot be used after it."""
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
        notebook = self._submitted(result, source.name)
        before = self.session.execute(
            sql.select(RESULTS.c.essays).where(
                (RESULTS.c.student == result.student) & (RESULTS.c.exercise == result.exercise)
            )
        ).scalar()
        essays_before = json.loads(before) if before else {}
        verdicts = {f"{verdict.question}_check": verdict for verdict in result.verdicts}
        failed = not result.verdicts
        by_hand = self._present(api.Grade, notebook, api.Grade.manual_score)
        grades = {}
        for cell, name in self._cells(source.name, api.GradeCell):
            verdict = verdicts.get(name)
            if verdict is not None:
                points, waits = verdict.points, False
            elif failed:
                # A person has to look: the file could not be read, which is not an answer worth 0.
                points, waits = 0.0, by_hand.get(cell) is None
            else:
                written = result.essays.get(name)
                unchanged = written == essays_before.get(name)
                graded_by_person = by_hand.get(cell) is not None and unchanged
                points = None if written else 0.0
                waits = bool(written) and not graded_by_person
            grades[cell] = {"auto_score": points, "needs_manual_grade": waits}
        self._put(api.Grade, notebook, grades, by_hand)
        answered = {v.question for v in result.verdicts if v.status != "unanswered"}
        answered |= set(result.essays)
        comments = {
            cell: {"auto_comment": None if name in answered else "No response."}
            for cell, name in self._cells(source.name, api.SolutionCell)
        }
        self._put(api.Comment, notebook, comments, self._present(api.Comment, notebook))

    def _submitted(self, result: Result, exercise: str) -> str:
        """The id of nbgrader's submitted notebook, made where there is none, with its timestamp."""
        assignment = self._id_of(api.Assignment, name=exercise)
        master = self._id_of(api.Notebook, assignment_id=assignment)
        if self._id_of(api.Student, id=result.student) is None:
            self._insert(api.Student, id=result.student)
        submission = self._id_of(
            api.SubmittedAssignment, assignment_id=assignment, student_id=result.student
        )
        if submission is None:
            submission = self._insert(
                api.SubmittedAssignment, assignment_id=assignment, student_id=result.student
            )
        rows = api.SubmittedAssignment.__table__
        self.session.execute(
            sql.update(rows).where(rows.c.id == submission).values(timestamp=result.timestamp)
        )
        notebook = self._id_of(api.SubmittedNotebook, assignment_id=submission, notebook_id=master)
        return notebook or self._insert(
            api.SubmittedNotebook, assignment_id=submission, notebook_id=master
        )

    def _cells(self, exercise: str, kind) -> list[tuple[str, str]]:
        """Id and name of an exercise's cells of a kind, GradeCell or SolutionCell."""
        return self.session.execute(
            sql.select(kind.id, kind.name)
            .join(api.Notebook, kind.notebook_id == api.Notebook.id)
            .join(api.Assignment)
            .where(api.Assignment.name == exercise)
        ).all()

    def _present(self, table, notebook: str, value=None) -> dict:
        """By the cells for which a submitted notebook has a grade or a comment: that value of it."""
        value = table.id if value is None else value
        rows = self.session.execute(
            sql.select(table.cell_id, value).where(table.notebook_id == notebook)
        )
        return {cell: value for cell, value in rows}

    def _put(self, table, notebook: str, values: dict[str, dict], present: dict) -> None:
        """Insert or update the grades or comments of a submitted notebook, by cell.

        Statements on whole tables: as objects of the ORM each row would be read and written alone.
        """
        rows = table.__table__
        new = [{"cell_id": cell} | put for cell, put in values.items() if cell not in present]
        old = [{"its_cell": cell} | put for cell, put in values.items() if cell in present]
        if new:
            self.session.execute(sql.insert(rows), [{"notebook_id": notebook} | row for row in new])
        if old:
            its = (rows.c.notebook_id == notebook) & (rows.c.cell_id == sql.bindparam("its_cell"))
            self.session.execute(sql.update(rows).where(its), old)

    def _id_of(self, table, **where) -> str | None:
        return self.session.execute(sql.select(table.id).filter_by(**where)).scalar()

    def _insert(self, table, **values) -> str:
        return self.session.execute(sql.insert(table.__table__), values).inserted_primary_key[0]

    # --- scores ------------------------------------------------------------------------------

    def graded(self, exercise: str) -> list[Graded]:
        """What every learner has for an exercise now, by machine and by person, in their order."""
        return [_graded(notebook) for notebook in self._submitted_notebooks(exercise)]

    def settle(self, exercise: str, late_percent: float) -> list[Graded]:
        """What `graded` gives, after the late policy: so much of a score for each day begun."""
        notebooks = self._submitted_notebooks(exercise)
        for notebook in notebooks:
            days = -(-notebook.assignment.total_seconds_late // 86_400)
            score = sum(grade.score for grade in notebook.grades)
            penalty = score * min(1, late_percent / 100 * days)
            if notebook.late_submission_penalty != penalty:
                notebook.late_submission_penalty = penalty
        graded = [_graded(notebook) for notebook in notebooks]
        self.session.commit()
        return graded

    def _submitted_notebooks(self, exercise: str) -> list:
        # With everything that belongs to them, in a few queries for the whole class.
        notebook = api.SubmittedNotebook
        return self.session.scalars(
            sql.select(notebook)
            .join(notebook.assignment)
            .join(api.SubmittedAssignment.assignment)
            .where(api.Assignment.name == exercise)
            .order_by(api.SubmittedAssignment.student_id)
            .options(
                orm.contains_eager(notebook.assignment).contains_eager(
                    api.SubmittedAssignment.assignment
                ),
                orm.selectinload(notebook.grades).joinedload(api.Grade.cell.of_type(api.GradeCell)),
                orm.selectinload(notebook.comments).joinedload(api.Comment.cell),
            )
        ).all()

    def _one(self, table, **where):
        return self.session.scalars(sql.select(table).filter_by(**where)).first()


def with_driver(url: str) -> str:
    """A database URL that names the PostgreSQL driver that the grading extra installs."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _graded(notebook) -> Graded:
    grades = [
        Grade(
            grade.cell.name,
            grade.score,
            grade.cell.max_score,
            grade.manual_score is not None,
            grade.needs_manual_grade,
        )
        for grade in notebook.grades
    ]
    return Graded(
        notebook.assignment.student_id,
        grades,
        notebook.notebook.max_score,
        {comment.cell.name: comment.comment for comment in notebook.comments},
        notebook.assignment.total_seconds_late,
        notebook.late_submission_penalty or 0,
    )


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
