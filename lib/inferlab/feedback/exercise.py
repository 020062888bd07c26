"""`Exercise(name).check(question, answer)`: one line for learner and grader."""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path

from inferlab.feedback import seal, values
from inferlab.quantities import InputError

RECEIPT = "application/vnd.inferlab.receipt+json"

# Set by the batch grader in the learner's process: {question: what to read}. Then `check` compares
# nothing and emits plain values.
reading_only: dict | None = None


class NotYet(Exception):
    """An answer that is missing or wrong. A notebook shows its sentence, without a traceback."""

    def _render_traceback_(self):
        return [str(self)]


class Exercise:
    """The questions of one exercise or chapter.

    name: as in the sealed file `NAME.json`, which lies beside the notebook or in this package.
    Raises InputError when there is none.
    """

    def __init__(self, name: str):
        self.name = name
        self._right: set[str] = set()
        if reading_only is None:
            self._sealed = _sealed(name)
            self._questions = {q["id"]: q for q in self._sealed["questions"]}
            _explain_missing_names()

    def check(self, question: str, answer) -> None:
        """Say whether an answer is right, with one sentence and how far you are.

        question: its id, as given in the notebook. answer: a number (SymPy units are converted), a
        formula, a function, an option in quotes, or the Axes of a plot, whatever the question asks
        for.

        A right answer prints; a missing or wrong one raises `NotYet`, shown as one sentence. In a
        chapter nothing is raised and the sentence is printed.
        """
        if reading_only is not None:
            _emit(question, answer)
            return
        try:
            self._judge(question, answer)
        except NotYet as sentence:
            if not self._sealed["calm"]:
                raise
            print(sentence)

    def _judge(self, question: str, answer) -> None:
        if question not in self._questions:
            known = ", ".join(self._questions)
            raise NotYet(f"There is no question {question!r} here. The questions are: {known}.")
        spec = self._questions[question]
        self._right.discard(question)
        try:
            got = values.read(spec, answer)
        except values.AnswerProblem as problem:
            sign = "…" if problem.code in values.NOT_ANSWERED else "✗"
            raise NotYet(f"{sign} {question}: {problem}") from None
        salt = bytes.fromhex(spec["salt"])
        wrong_at = [i for i, value in enumerate(got) if not _is_right(spec, i, value, salt)]
        if not wrong_at:
            self._right.add(question)
            print(f"✓ {question}: right.{self._progress()}")
            return
        told, by_hint = values.fault(spec, got, wrong_at[0])
        hint = self._hint_for(spec, got, wrong_at, salt) or (spec["hint"] if by_hint else "")
        raise NotYet(f"✗ {question}: {told} {hint}".rstrip())

    def _hint_for(self, spec, got, wrong_at, salt) -> str | None:
        for name in values.mistake_of(got, wrong_at, spec["rtol"]):
            hint = seal.unseal(spec["mistakes"], name, salt)
            if hint:
                return hint
        for value, hint in values.in_other_units(spec, got):
            if _is_right(spec, 0, value, salt):
                return hint
        return None

    def _progress(self) -> str:
        if len(self._questions) == 1:
            return ""
        points = sum(self._questions[q]["points"] for q in self._right)
        total = sum(q["points"] for q in self._questions.values())
        left = len(self._questions) - len(self._right)
        by_hand = self._sealed["points_by_hand"]
        rest = f" ({by_hand:g} more are given by a person)" if by_hand else ""
        return (
            f" Done {len(self._right)} of {len(self._questions)}, {left} left;"
            f" {points:g} of {total:g} points{rest}."
        )


def _is_right(spec: dict, place: int, value, salt: bytes) -> bool:
    return any(
        seal.digest(f"{place}: {name}", salt) == spec["right"][place]
        for name in values.bucket(value, spec["rtol"])
    )


def _sealed(name: str) -> dict:
    beside = Path(f"{name}.json")
    packaged = resources.files("inferlab") / "feedback" / "seals" / f"{name}.json"
    for place in (beside, packaged):
        if place.is_file():
            return json.loads(place.read_text("utf-8"))
    raise InputError(
        f"there is no exercise {name!r}: expected a name such as '3-roofline', as the notebook has it"
        " in its first cell, or a file of that name beside the notebook"
    )


def _emit(question: str, answer) -> None:
    """Show the plain values of an answer to the batch grader, which compares them elsewhere."""
    from IPython.display import display

    if question not in reading_only:
        return
    try:
        receipt = {"question": question, "values": values.read(reading_only[question], answer)}
    except values.AnswerProblem as problem:
        receipt = {"question": question, "problem": problem.code}
    display({RECEIPT: receipt, "text/plain": ""}, raw=True)


def _explain_missing_names() -> None:
    """In a notebook, make `check("q", name)` with an unbound name say so in one sentence."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return

    def explain(shell, kind, error, trace, tb_offset=None):
        in_check = trace.tb_next is not None and trace.tb_next.tb_next is None
        if in_check and "check(" in _last_line(shell):
            sentence = NotYet(
                f"… Not answered yet: there is no {error.name!r}. Give the name a value in the cell"
                " above, run that cell, and run this one again."
            )
            shell._showtraceback(NotYet, sentence, [str(sentence)])
            return [str(sentence)]
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return None

    shell.set_custom_exc((NameError,), explain)


def _last_line(shell) -> str:
    lines = shell.user_ns.get("In", [""])[-1].strip().splitlines()
    return lines[-1] if lines else ""
