"""Put a learner's answers into the instructor's notebook, whatever state the submission is in.

The instructor's notebook gives the order, the text, the given code and the check cells; the
submission gives what is in its answer cells and whatever cells the learner added. So it does not
matter that cells were copied, deleted, edited, moved or renamed, that ids or metadata are lost, or
that the file is in an old format. What was found is said in notes; nothing of the submission is run
here.
"""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import nbformat

from inferlab.grading.release import ESSAY_STUB, Source, checked_question
from inferlab.grading.reported import BASE64, PICTURES, whole_characters

LARGEST_FILE = 20_000_000  # bytes
_OTHER_FILES = {
    b"PK\3\4": "a zip archive or a document of an office program",
    b"%PDF": "a PDF",
}
LONGEST_CELL = 200_000  # characters of one answer
MOST_CELLS = 1000


class Unreadable(Exception):
    """A file that is no notebook; its text says why."""


@dataclass
class Cell:
    """A cell of the notebook to be run. role: given, answer, essay, check, text or extra."""

    role: str
    cell_type: str
    source: str
    id: str = ""
    question: str = ""
    pictures: dict = field(default_factory=dict)  # pasted into an essay, as nbformat's attachments


@dataclass
class Normalised:
    """A submission in the shape that is run and recorded, and what was noticed on the way."""

    cells: list[Cell]
    notes: list[str] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)

    @property
    def code(self) -> list[Cell]:
        """The cells to run, in order."""
        return [cell for cell in self.cells if cell.cell_type == "code"]


def read_notebook(raw: bytes) -> nbformat.NotebookNode:
    """The notebook in a file, in the newest format; Unreadable with the reason."""
    if not raw.strip():
        raise Unreadable("the file is empty")
    if len(raw) > LARGEST_FILE:
        raise Unreadable(f"the file is larger than {LARGEST_FILE / 1e6:.0f} MB")
    for start, kind in _OTHER_FILES.items():
        if raw.startswith(start):
            raise Unreadable(f"the file is {kind}, under the name of a notebook")
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)  # and logs it
    try:
        text = raw.decode("utf-8-sig")
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("the file is not JSON, perhaps cut short") from None
    if not isinstance(data, dict) or not ("cells" in data or "worksheets" in data):
        raise Unreadable("the file is JSON but no notebook: it has no cells")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbformat warns of what it mends
            notebook = nbformat.reads(text, as_version=4)
        cells = [cell for cell in notebook.cells if isinstance(cell, dict)]
        for cell in cells:
            cell["source"] = _joined(cell.get("source", ""))
            cell.setdefault("metadata", nbformat.from_dict({}))
            if cell.get("cell_type") not in ("code", "markdown"):
                cell["cell_type"] = "markdown"
    except Exception as error:  # whatever a malformed notebook makes nbformat raise
        raise Unreadable(f"the notebook is malformed ({type(error).__name__})") from None
    if len(cells) > MOST_CELLS:
        raise Unreadable(f"the notebook has more than {MOST_CELLS} cells")
    notebook.cells = cells
    return notebook


def _joined(source) -> str:
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    return whole_characters(source) if isinstance(source, str) else ""


def _pictures(attachments) -> dict:
    """Those attachments of a cell that are pictures, and nothing else that they may hold."""
    kept = {}
    for name, data in attachments.items() if isinstance(attachments, dict) else ():
        for mime, text in data.items() if isinstance(data, dict) else ():
            if mime in PICTURES and isinstance(text, str) and BASE64.fullmatch(text):
                kept[whole_characters(name)] = {mime: text}
    return kept


def exercise_of(notebook, sources: Mapping[str, Source]) -> str | None:
    """Which exercise a notebook answers: by its metadata, else by the questions that it checks."""
    metadata = notebook.metadata if isinstance(notebook.get("metadata"), dict) else {}
    named = metadata.get("inferlab")
    name = named.get("exercise") if isinstance(named, dict) else None
    if isinstance(name, str) and name in sources:
        return name
    asked = {checked_question(cell) for cell in notebook.cells} - {None}
    if not asked:
        return None
    common = {name: len(asked & {q.id for q in sources[name].key.automatic}) for name in sources}
    best = max(common, key=common.get, default=None)
    return best if best and common[best] else None


def normalise(source: Source, notebook) -> Normalised:
    """The instructor's notebook with this notebook's answers and additional cells put in."""
    released = source.released
    places = _Places(released)
    result = Normalised([])
    answers: dict[str, list] = {}
    pictures: dict[str, dict] = {}
    essays = {question.id for question in source.key.questions if question.by_person}
    extras: dict[int, list] = {}
    anchor = -1
    previous_text = None
    for cell in notebook.cells:
        place = places.find(cell, previous_text, answers)
        previous_text = None
        if place is None:
            if cell.cell_type == "code" and cell.source.strip():
                extras.setdefault(anchor, []).append(cell)
            continue
        anchor = place
        model = released.cells[place]
        question = places.answers.get(place)
        if question:
            if cell.cell_type != model.cell_type:
                result.notes.append(f"{question}: the type of its cell was changed")
            answers.setdefault(question, []).append(cell.source[:LONGEST_CELL])
            pictures.setdefault(question, {}).update(_pictures(cell.get("attachments")))
        elif model.cell_type == "code" and cell.source.strip() != model.source.strip():
            result.notes.append(
                f"{model.id}: this read-only cell was changed; the original is used"
            )
        elif model.cell_type == "markdown":
            previous_text = place
    for place, model in enumerate(released.cells):
        question = places.answers.get(place)
        if question:
            _put_answer(result, source, question, model, answers.get(question, []), essays)
            if question in essays:
                result.cells[-1].pictures = pictures.get(question, {})
        else:
            checked = checked_question(model) or ""
            role = "check" if checked else "given" if model.cell_type == "code" else "text"
            result.cells.append(Cell(role, model.cell_type, model.source, model.id, checked))
        for extra in extras.get(place, ()):
            result.cells.append(Cell("extra", "code", extra.source))
    for extra in reversed(extras.get(-1, ())):
        result.cells.insert(0, Cell("extra", "code", extra.source))
    lost = [q.id for q in source.key.automatic if places.checks[q.id] not in places.found]
    if lost:
        result.notes.append(f"check cells missing, put back: {', '.join(lost)}")
    return result


def _put_answer(result, source, question, model, given, essays) -> None:
    written = [text for text in given if text.strip() and text.strip() != model.source.strip()]
    if len(given) > 1:
        result.notes.append(
            f"{question}: appears {len(given)} times, the last one filled in is graded"
        )
    if question in essays:
        text = written[-1] if written else model.source
        if not given:
            result.notes.append(f"{question}: its cell is missing")
        if not written or text.strip() == ESSAY_STUB:
            result.unanswered.add(question)
        result.cells.append(Cell("essay", "markdown", text, model.id, question))
        return
    if not given:
        # Nothing is put in its place: the learner may have defined the name in a cell of their own.
        result.notes.append(f"{question}: its answer cell is missing")
        return
    if not written:
        result.unanswered.add(question)
    text = written[-1] if written else given[-1]
    result.cells.append(Cell("answer", "code", text, model.id, question))


class _Places:
    """Finds the place in the released notebook that a submitted cell belongs to."""

    def __init__(self, released):
        self.found: set[int] = set()
        self.answers: dict[int, str] = {}
        self.checks: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        self._by_text: dict[str, int] = {}
        self._released = released
        for place, cell in enumerate(released.cells):
            metadata = cell.metadata.get("nbgrader", {})
            for name in (metadata.get("grade_id"), cell.id):
                if name:
                    self._by_name[name] = place
            if metadata.get("solution"):
                self.answers[place] = metadata["grade_id"]
            else:
                self._by_text.setdefault(_key(cell.source), place)
            question = checked_question(cell)
            if question:
                self.checks[question] = place

    def find(self, cell, previous_text: int | None, answers: dict) -> int | None:
        place = self._named(cell)
        if place is None:
            place = self._by_text.get(_key(cell.source))
        if place is None:
            question = checked_question(cell)
            place = self.checks.get(question) if question else None
        if place is None and cell.cell_type == "markdown" and previous_text is not None:
            # An essay whose cell lost its name follows the text of its question.
            after = previous_text + 1
            essay = self.answers.get(after)
            if (
                essay
                and self._released.cells[after].cell_type == "markdown"
                and essay not in answers
            ):
                place = after
        if place is not None:
            self.found.add(place)
        return place

    def _named(self, cell) -> int | None:
        metadata = cell.metadata.get("nbgrader") if isinstance(cell.metadata, dict) else None
        names = [metadata.get("grade_id") if isinstance(metadata, dict) else None, cell.get("id")]
        for name in names:
            if isinstance(name, str) and name in self._by_name:
                place = self._by_name[name]
                # A check cell's text under an answer's name is a check cell.
                if place in self.answers and checked_question(cell):
                    continue
                return place
        return None


def _key(source: str) -> str:
    return re.sub(r"\s+", " ", source).strip()
