"""What the tests of the batch grader share: a small exercise, and one run of a hostile class."""

import pytest

from grading import hostile
from inferlab.grading.grade import Options, grade
from inferlab.grading.record import Gradebook
from inferlab.grading.release import read_source
from inferlab.grading.sandbox import Limits

LIMITS = Limits(cell_s=2, total_s=40, memory=3 * 2**29)


@pytest.fixture(scope="session")
def exercises(tmp_path_factory):
    """A folder with one small exercise, `sample`."""
    return hostile.write_exercise(tmp_path_factory.mktemp("exercises"))


@pytest.fixture(scope="session")
def source(exercises):
    return read_source(exercises, "sample")


@pytest.fixture(scope="session")
def hostile_class(source, tmp_path_factory):
    """A folder with a submission of each kind in `hostile.CASES`."""
    folder = tmp_path_factory.mktemp("class")
    for case in hostile.CASES:
        hostile.write_submission(folder, case, source)
    return folder


class Graded:
    """A course after grading."""

    def __init__(self, course, summary, url):
        self.course, self.summary, self.url = course, summary, url
        book = Gradebook(url)
        self.results = {student: result for (student, _), result in book.recorded().items()}
        self.scores = {one.student: one.score for one in book.graded("sample")}
        book.close()

    def comparable(self, students):
        """All that must not depend on where a submission was run."""
        return {
            student: (self.scores[student], r.status, r.verdicts, r.notes, r.essays)
            for student in students
            for r in [self.results[student]]
        }

    def autograded(self, student):
        path = self.course / "autograded" / student / "sample" / "sample.ipynb"
        return path.read_text("utf-8")

    def feedback(self, student):
        path = self.course / "feedback" / student / "sample" / "sample.html"
        return path.read_text("utf-8")


@pytest.fixture(scope="session")
def grade_class(exercises):
    """grade_class(submissions, course, ...) grades and returns what the course then holds."""

    def run(submissions, course, **options):
        options = {"limits": LIMITS, "quiet": True, "workers": 1, "exercise": "sample"} | options
        summary = grade(Options(submissions, exercises, course, **options))
        url = options.get("gradebook") or f"sqlite:///{course / 'gradebook.db'}"
        return Graded(course, summary, url)

    return run


@pytest.fixture(scope="session")
def graded(grade_class, hostile_class, tmp_path_factory):
    """The hostile class, graded once by two workers."""
    course = tmp_path_factory.mktemp("course")
    return grade_class([hostile_class], course, workers=2)
