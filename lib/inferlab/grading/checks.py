"""The trusted side of an exercise: answers, named wrong answers and hints, and what is made of them.

`exercises/NAME/checks.py` builds one `AnswerKey`. From it come the sealed file that learners get,
the list of what the batch grader asks a notebook for, and the verdicts. How to write one:
exercises/FORMAT.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from inferlab.feedback import seal, values
from inferlab.quantities import InputError


@dataclass(frozen=True)
class Wrong:
    """A mistake that learners really make: its name, the answer it leads to, the hint that helps."""

    name: str
    answer: Any
    hint: str


@dataclass
class Question:
    """One question; made by `number`, `expression`, `function`, `choice`, `plot` or `essay`.

    spec: the public part, what to read from an answer (see `feedback.values.read`). hidden: further
    arguments or points that only the batch grader asks for. rubric: (points, what earns them).
    """

    id: str
    points: float
    purpose: str
    spec: dict = field(default_factory=dict)
    answer: Any = None
    rtol: float = 0.01
    hint: str = ""
    wrong: Sequence[Wrong] = ()
    hidden: list = field(default_factory=list)
    by_hand: float | None = None
    rubric: Sequence[tuple[float, str]] = ()

    @property
    def by_person(self) -> bool:
        """Whether a person gives the points."""
        return self.spec["kind"] == "essay"

    @property
    def grading_spec(self) -> dict:
        """What the batch grader reads: the public points or arguments, then the hidden ones."""
        place = {"function": "probes", "expression": "at"}.get(self.spec["kind"])
        if place is None:
            return self.spec
        public = self.spec[place]
        return self.spec | {place: public + self.hidden, "public": len(public)}

    def values(self, answer) -> list:
        """The plain values of an answer to the public part. A plot is drawn first."""
        return values.read(self.spec, answer() if self.spec["kind"] == "plot" else answer)


def number(id, answer, *, by_hand, unit="", rtol=0.01, **common) -> Question:
    """One number. unit: what a bare number is in ("s", "h", "d", "B", "GB", "B/s", "FLOP/B", "")."""
    question = Question(id, **common, answer=answer, rtol=rtol, by_hand=by_hand)
    question.spec = {"kind": "number", "unit": unit}
    return question


def expression(id, answer, *, symbols: str, at=None, **common) -> Question:
    """A formula in the given symbols, compared at points; equivalent forms are the same answer."""
    names = symbols.split()
    draw = random.Random(id)
    at = at or [{name: draw.randint(2, 99) for name in names} for _ in range(4)]
    at = [{name: str(Fraction(str(value))) for name, value in point.items()} for point in at]
    hidden = [{name: _nudged(value, draw) for name, value in point.items()} for point in at]
    question = Question(id, **common, answer=answer, rtol=1e-9, hidden=hidden)
    question.spec = {"kind": "expression", "symbols": names, "at": at}
    return question


def _nudged(value: str, draw) -> str:
    return str(Fraction(value) * Fraction(draw.randint(1001, 1099), 1000))


def function(id, answer, *, probes, hidden=(), unit=None, rtol=1e-6, **common) -> Question:
    """A Python function, compared by what it returns for the probes (and the hidden ones).

    unit: for a function that returns one number, what it is in (see `number`).
    """
    question = Question(id, **common, answer=answer, rtol=rtol, hidden=_plain_calls(id, hidden))
    question.spec = {"kind": "function", "name": id, "probes": _plain_calls(id, probes)}
    if unit is not None:
        question.spec["unit"] = unit
    return question


def _plain_calls(id, calls) -> list:
    try:
        return json.loads(json.dumps([list(call) for call in calls]))
    except TypeError:
        raise InputError(
            f"{id}: the probes {calls!r} are not plain: expected, for each call, a tuple of numbers,"
            " strings, lists or dicts of these"
        ) from None


def choice(id, answer, *, options, **common) -> Question:
    """One of several options, answered as a string."""
    question = Question(id, **common, answer=answer)
    question.spec = {"kind": "choice", "options": list(options)}
    return question


def plot(id, answer, *, at=(), marks=0, rtol=0.03, **common) -> Question:
    """A plot; `answer` draws the right one and returns its Axes.

    at: where the height of the curve is read. marks: how many points have to be marked; where, is
    read off the right plot.
    """
    question = Question(id, **common, answer=answer, rtol=rtol)
    question.spec = {"kind": "plot", "at": list(map(float, at)), "marks": int(marks)}
    return question


def essay(id, *, points, purpose, rubric) -> Question:
    """A question answered in words and graded by a person against a rubric."""
    return Question(id, points, purpose, spec={"kind": "essay"}, rubric=list(rubric))


@dataclass(frozen=True)
class Verdict:
    """What the comparison says of one question.

    status: right, wrong, mistake (a named one), unanswered, invalid (no answer of the kind that is
    asked for), or no receipt. sentence: for the learner; it shows no answer. mistake: its name.
    """

    question: str
    points: float
    status: str
    sentence: str
    mistake: str = ""


_NO_ANSWER = (
    "No answer arrived. Most often its cell is missing, ended in an error or was stopped: see the"
    " notes at the top."
)


class AnswerKey:
    """All questions of one exercise or chapter.

    Raises InputError for a key that could mislead: an answer that differs from its value by hand,
    a wrong answer that would pass, two wrong answers that cannot be told apart, fewer than two
    of them, a rubric that does not add up.
    """

    def __init__(self, name: str, title: str, questions: Sequence[Question]):
        self.name, self.title, self.questions = name, title, list(questions)
        self._by_id = {question.id: question for question in self.questions}
        if len(self._by_id) != len(self.questions):
            raise InputError(f"{name}: two questions have one id; expected each id once")
        self._right: dict[str, list] = {}  # the values of the public part
        self._expected: dict[str, list] = {}  # those and the hidden ones
        self._mistakes: dict[str, dict[str, Wrong]] = {}
        for question in self.questions:
            try:
                self._examine(question)
            except values.AnswerProblem as problem:
                raise InputError(
                    f"{name}, {question.id}: an answer cannot be read: {problem}"
                ) from None
        # Plots are drawn while the key is examined.
        if any(question.spec["kind"] == "plot" for question in self.questions):
            import matplotlib.pyplot as plt

            plt.close("all")

    def __getitem__(self, id: str) -> Question:
        return self._by_id[id]

    @property
    def automatic(self) -> list[Question]:
        """The questions that are graded by machine."""
        return [question for question in self.questions if not question.by_person]

    def _examine(self, question: Question) -> None:
        where = f"{self.name}, {question.id}"
        if not question.id.isidentifier() or question.points <= 0 or not question.purpose:
            raise InputError(f"{where}: expected an id in snake_case, points above 0 and a purpose")
        if question.by_person:
            total = sum(points for points, _ in question.rubric)
            if total != question.points:
                raise InputError(
                    f"{where}: the rubric gives {total}, expected {question.points} points"
                )
            return
        if len(question.wrong) < 2 or not question.hint:
            raise InputError(f"{where}: expected a hint and at least two named wrong answers")
        if question.spec["kind"] == "number":
            want = values.real(question.by_hand)
            got = values.real(question.answer, question.spec["unit"])
            if abs(got - want) > 0.005 * abs(want):
                raise InputError(f"{where}: the answer is {got}, by hand it is {want}; correct one")
        right = self._right[question.id] = question.values(question.answer)
        self._expected[question.id] = (
            values.read(question.grading_spec, question.answer) if question.hidden else right
        )
        mistakes: dict[str, Wrong] = {}
        taken: dict[str, Wrong] = {}
        for wrong in question.wrong:
            got = question.values(wrong.answer)
            wrong_at = _differ(got, right, question.rtol)
            if not wrong_at:
                raise InputError(
                    f"{where}: the wrong answer {wrong.name!r} would pass; choose probes"
                )
            name, *near = values.mistake_of(got, wrong_at, question.rtol)
            for alias in (name, *near):
                if alias in taken:
                    raise InputError(
                        f"{where}: {wrong.name!r} and {taken[alias].name!r} give the same values;"
                        " add a probe that tells them apart"
                    )
            taken |= dict.fromkeys((name, *near), wrong)
            mistakes[name] = wrong
        self._mistakes[question.id] = mistakes

    # --- what learners get -------------------------------------------------------------------

    def sealed(self, *, calm: bool = False) -> dict:
        """The content of the sealed file. calm: a chapter, where `check` never raises."""
        return {
            "exercise": self.name,
            "title": self.title,
            "calm": calm,
            "points_by_hand": sum(q.points for q in self.questions if q.by_person),
            "questions": [self._sealed_question(question) for question in self.automatic],
        }

    def _sealed_question(self, question: Question) -> dict:
        salt = hashlib.sha256(f"{self.name}/{question.id}".encode()).digest()[:16]
        return {
            "id": question.id,
            "points": question.points,
            **question.spec,
            "rtol": question.rtol,
            "hint": question.hint,
            "salt": salt.hex(),
            "right": [
                seal.digest(f"{i}: {values.bucket(value, question.rtol)[0]}", salt)
                for i, value in enumerate(self._right[question.id])
            ],
            "mistakes": sorted(
                seal.seal(wrong.hint, name, salt)
                for name, wrong in self._mistakes[question.id].items()
            ),
        }

    # --- what the batch grader needs ---------------------------------------------------------

    def reading_list(self) -> dict[str, dict]:
        """What to read from a notebook: {question: spec}. Holds no answer."""
        return {question.id: question.grading_spec for question in self.automatic}

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a verdict could."""
        whole = [
            self.sealed(),
            self._expected,
            [(q.id, q.points, q.hidden) for q in self.questions],
        ]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[
            :16
        ]

    def judge(self, id: str, receipt: dict | None) -> Verdict:
        """Compare what a notebook emitted for a question with the answer. No receipt, no points.

        receipt: plain JSON from an untrusted process, {"values": [...]} or {"problem": code}.
        """
        question = self[id]
        if not isinstance(receipt, dict):
            return Verdict(id, 0, "no receipt", _NO_ANSWER)
        problem = receipt.get("problem")
        if problem is not None:
            known = isinstance(problem, str) and problem in values.PROBLEMS
            sentence = values.PROBLEMS[problem] if known else values.PROBLEMS["type"]
            unanswered = known and problem in values.NOT_ANSWERED
            return Verdict(id, 0, "unanswered" if unanswered else "invalid", sentence)
        got, expected = receipt.get("values"), self._expected[id]
        if not _well_formed(got, expected):
            return Verdict(
                id, 0, "no receipt", "What arrived from this question's check is malformed."
            )
        got = [float(x) if isinstance(x, int) and not isinstance(x, bool) else x for x in got]
        wrong_at = _differ(got, expected, question.rtol)
        if not wrong_at:
            return Verdict(id, question.points, "right", "Right.")
        seen = [i for i in wrong_at if i < len(self._right[id])]
        if not seen:
            return Verdict(
                id, 0, "wrong", f"Right for the inputs shown, wrong for others. {question.hint}"
            )
        for name in values.mistake_of(got, seen, question.rtol):
            wrong = self._mistakes[id].get(name)
            if wrong:
                return Verdict(id, 0, "mistake", wrong.hint, wrong.name)
        for value, hint in values.in_other_units(question.spec, got):
            if not _differ([value], expected, question.rtol):
                return Verdict(id, 0, "mistake", hint, "size of the unit")
        fault, by_hint = values.fault(question.spec, got, seen[0])
        return Verdict(id, 0, "wrong", question.hint if by_hint else fault)


def _differ(got: list, expected: list, rtol: float) -> list[int]:
    return [
        i
        for i, (value, right) in enumerate(zip(got, expected, strict=False))
        if not values.same(value, right, rtol)
    ]


def _well_formed(got, expected: list) -> bool:
    """Whether these are as many plain values as expected, none absurdly long and none NaN."""
    if not isinstance(got, list) or len(got) != len(expected):
        return False
    for value in got:
        if isinstance(value, str):
            if len(value) > 20_000:
                return False
        elif isinstance(value, (int, float)):
            if value != value or (
                abs(value) > 1e308 and value not in (float("inf"), -float("inf"))
            ):
                return False
        else:
            return False
    return True


def load(path: Path) -> AnswerKey:
    """The AnswerKey that a checks file builds. The file is the instructor's own and is run."""
    spec = importlib.util.spec_from_file_location(f"checks_{path.stem}_{path.parent.name}", path)
    if spec is None or not path.is_file():
        raise InputError(f"{path} is not there: expected the checks of an exercise")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    key = getattr(module, "key", None)
    if not isinstance(key, AnswerKey):
        raise InputError(f"{path} defines no key: expected `key = AnswerKey(...)`")
    return key
