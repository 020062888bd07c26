"""Make what learners get from what instructors write.

    python -m inferlab.grading.release [NAME ...]

writes `exercises/released/NAME.ipynb` and the sealed answers of exercises and chapters. The format
of the sources is in exercises/FORMAT.md; malformed ones are refused with the cell and the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import nbformat
from nbgrader.utils import compute_checksum

from inferlab.grading.checks import AnswerKey, load
from inferlab.quantities import InputError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
ESSAY_STUB = "*Write your answer here.*"
SCHEMA_VERSION = 3


@dataclass(frozen=True)
class Source:
    """One exercise as its instructor keeps it."""

    name: str
    key: AnswerKey
    notebook: nbformat.NotebookNode

    @property
    def reference(self) -> nbformat.NotebookNode:
        """The notebook with solutions and grading metadata: what earns full marks."""
        return _prepared(self, keep_solutions=True)

    @property
    def released(self) -> nbformat.NotebookNode:
        """The notebook that learners get; a copy, to be changed at will."""
        return copy.deepcopy(self._released)

    @cached_property
    def _released(self) -> nbformat.NotebookNode:
        # Made and checked once, though every submission of a class is compared with it.
        return _prepared(self, keep_solutions=False)


def exercises_folder() -> Path:
    """The `exercises` folder of this checkout, found from the working folder or the package.

    Raises InputError when there is none.
    """
    package = Path(str(resources.files("inferlab")))
    for folder in (Path.cwd(), *Path.cwd().parents, *package.parents):
        if (folder / "exercises" / "FORMAT.md").is_file():
            return folder / "exercises"
    raise InputError("no exercises folder is found here: run this in a checkout of the course")


def exercise_names(folder: Path) -> list[str]:
    """Names of the exercises that have a source notebook."""
    return sorted(path.parent.name for path in folder.glob("*/source.ipynb"))


def read_source(folder: Path, name: str) -> Source:
    """The source of one exercise; InputError when it is missing or malformed."""
    path = folder / name / "source.ipynb"
    if not path.is_file():
        known = ", ".join(exercise_names(folder))
        raise InputError(f"there is no exercise {name!r} in {folder}: expected one of {known}")
    source = Source(name, load(path.with_name("checks.py")), nbformat.read(path, as_version=4))
    if source.key.name != name:
        raise InputError(f"{name}: checks.py names its key {source.key.name!r}; expected {name!r}")
    return source


class Sources(Mapping):
    """The exercises of a folder by name, each read when it is first asked for."""

    def __init__(self, folder: Path):
        self._folder, self._names, self._read = folder, exercise_names(folder), {}

    def __getitem__(self, name: str) -> Source:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = read_source(self._folder, name)
        return self._read[name]

    def __contains__(self, name) -> bool:
        return name in self._names

    def __iter__(self):
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def checked_question(cell) -> str | None:
    """The question of a check cell, or None for any other cell."""
    if cell.cell_type != "code" or not cell.source.lstrip().startswith("check("):
        return None
    try:
        body = ast.parse(cell.source).body
    except SyntaxError:
        return None
    if (
        len(body) != 1
        or not isinstance(body[0], ast.Expr)
        or not isinstance(body[0].value, ast.Call)
    ):
        return None
    call = body[0].value
    first = call.args[0] if call.args else None
    named = isinstance(call.func, ast.Name) and call.func.id == "check"
    return first.value if named and isinstance(first, ast.Constant) else None


def without_solutions(source: str, where: str, stub: str = "...") -> str:
    """A cell's text with each solution region taken out.

    An indented region leaves `stub` at its indentation, one at the margin nothing. Raises
    InputError for a region that is opened twice, never closed or never opened, or a marker that
    shares its line.
    """
    kept, inside = [], False
    for line in source.split("\n"):
        marker = line.strip()
        if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            if marker not in (BEGIN, END):
                raise InputError(
                    f"{where}: {marker!r} is no marker; expected {BEGIN} or {END} alone"
                )
            if (marker == BEGIN) == inside:
                missing = END if inside else BEGIN
                raise InputError(f"{where}: {marker} where {missing} is expected")
            inside = not inside
            if inside and line != line.lstrip():
                kept.append(line[: len(line) - len(line.lstrip())] + stub)
        elif not inside:
            kept.append(line)
    if inside:
        raise InputError(f"{where}: a solution region is never closed; expected {END}")
    return "\n".join(kept).strip("\n")


def without_markers(source: str) -> str:
    """A cell's text with the solutions left in and the marker lines taken out."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def _prepared(source: Source, *, keep_solutions: bool) -> nbformat.NotebookNode:
    key, name = source.key, source.name
    notebook = nbformat.v4.new_notebook()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "inferlab": {"exercise": name},
    }
    answers: list[str] = []
    checks: list[str] = []
    for cell in source.notebook.cells:
        made = nbformat.from_dict(
            {"cell_type": cell.cell_type, "source": cell.source, "metadata": {}}
        )
        made.id = cell.id
        if "attachments" in cell:
            made.attachments = cell.attachments
        if cell.cell_type == "code":
            made.outputs, made.execution_count = [], None
        where = f"{name}, cell {cell.id}"
        question = checked_question(cell)
        if BEGIN in cell.source or END in cell.source:
            id = cell.id.replace("-", "_")
            if id not in [q.id for q in key.questions]:
                raise InputError(f"{where}: a solution without a question {id!r} in checks.py")
            if key[id].by_person != (cell.cell_type == "markdown"):
                raise InputError(f"{where}: expected Markdown for an essay and code for all else")
            stub = without_solutions(cell.source, where)
            if key[id].by_person:
                stub = stub or ESSAY_STUB
            made.source = without_markers(cell.source) if keep_solutions else stub
            answers.append(id)
            made.metadata["nbgrader"] = _grading(
                id, solution=True, points=key[id].points if key[id].by_person else None
            )
            made.metadata["nbgrader"]["cell_type"] = cell.cell_type
            # The checksum is that of the stub: nbgrader tells an untouched answer by it.
            untouched = nbformat.from_dict(made | {"source": stub})
            made.metadata["nbgrader"]["checksum"] = compute_checksum(untouched)
        elif question is not None:
            if question not in [q.id for q in key.automatic]:
                raise InputError(f"{where}: checks {question!r}, which checks.py does not have")
            checks.append(question)
            made.id = f"{question.replace('_', '-')}-check"
            made.metadata["nbgrader"] = _grading(
                f"{question}_check", points=key[question].points, locked=True
            )
            # Run All goes on after a wrong answer.
            made.metadata["tags"] = ["raises-exception"]
        elif cell.cell_type == "code":
            made.metadata["nbgrader"] = _grading(cell.id, locked=True)
        if made.metadata.get("nbgrader", {}).get("locked"):
            made.metadata["nbgrader"]["cell_type"] = cell.cell_type
            made.metadata["nbgrader"]["checksum"] = compute_checksum(made)
            made.metadata |= {"deletable": False, "editable": False}
        notebook.cells.append(made)
    _complete(name, "answer cell", answers, [q.id for q in key.questions])
    _complete(name, "check cell", checks, [q.id for q in key.automatic])
    nbformat.validate(notebook)
    return notebook


def _grading(grade_id: str, *, points=None, solution=False, locked=False) -> dict:
    metadata = {
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": SCHEMA_VERSION,
        "solution": solution,
        "task": False,
    }
    return metadata if points is None else metadata | {"points": points}


def _complete(name: str, what: str, found: list[str], wanted: list[str]) -> None:
    twice = sorted({id for id in found if found.count(id) > 1})
    missing = [id for id in wanted if id not in found]
    if twice or missing:
        problem = f"two of {', '.join(twice)}" if twice else f"none of {', '.join(missing)}"
        raise InputError(f"{name}: {problem}; expected one {what} for each question")


def as_text(notebook) -> str:
    """A notebook as it is committed."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def chapter_keys(folder: Path) -> dict[str, AnswerKey]:
    """The keys of the chapters' questions, by name."""
    keys = {}
    for path in sorted((folder / "chapters").glob("*.py")):
        key = load(path)
        if key.name != path.stem:
            raise InputError(f"{path.name} names its key {key.name!r}; expected {path.stem!r}")
        keys[key.name] = key
    return keys


def release(folder: Path, names: list[str] | None = None) -> dict[Path, str]:
    """What to write where, for the named exercises and chapters or for all of them."""
    seals = Path(str(resources.files("inferlab"))) / "feedback" / "seals"
    chapters = chapter_keys(folder)
    unknown = set(names or ()) - set(chapters) - set(exercise_names(folder))
    if unknown:
        known = ", ".join([*exercise_names(folder), *chapters])
        raise InputError(f"there is no {', '.join(sorted(unknown))}: expected one of {known}")
    files = {}
    for name in exercise_names(folder):
        if not names or name in names:
            source = read_source(folder, name)
            files[folder / "released" / f"{name}.ipynb"] = as_text(source.released)
            files[seals / f"{name}.json"] = _sealed_text(source.key.sealed())
    for name, key in chapters.items():
        if not names or name in names:
            files[seals / f"{name}.json"] = _sealed_text(key.sealed(calm=True))
    return files


def _sealed_text(sealed: dict) -> str:
    # Keys in a fixed order, one question's lists on few lines: a change shows in review.
    text = json.dumps(sealed, indent=1, ensure_ascii=False)
    return re.sub(r"\n\s+(?=\"[0-9a-f]{32,}\")", " ", text) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the released notebooks and the sealed answers anew; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m inferlab.grading.release", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="exercises or chapters (all)")
    options = parser.parse_args(arguments)
    try:
        files = release(exercises_folder(), options.names)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
