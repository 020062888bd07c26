"""A sample class for a first try of the grader.

    python -m inferlab.grading.sample FOLDER [--learners 12] [--exercise 3-roofline]

Some learners are right, some make the exercise's named mistakes, some stop half-way, and a few hand
in what every class hands in: a renamed file, a copied cell, a file cut short.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from pathlib import Path

from inferlab.grading.release import Source, as_text, exercises_folder, read_source
from inferlab.quantities import InputError

NAMES = ["ada", "ben", "cyn", "dov", "eli", "fay", "gus", "hal", "ivy", "jon", "kim", "lea"]


def write_class(folder: Path, source: Source, learners: int) -> None:
    """Write the submissions of a class, one folder a learner; the same for the same arguments."""
    draw = random.Random(learners)
    for number in range(learners):
        name = NAMES[number % len(NAMES)] + (
            str(number // len(NAMES)) if number >= len(NAMES) else ""
        )
        notebook = submission(source, skill=draw.uniform(0.3, 1.1), draw=draw)
        file = f"{source.name}.ipynb"
        if number % 12 == 5:
            file = f"{source.name} (final).ipynb"
        if number % 12 == 7:
            place = next(i for i, cell in enumerate(notebook.cells) if _solution(cell))
            notebook.cells.insert(place, copy.deepcopy(notebook.cells[place]))
        text = as_text(notebook)
        if number % 12 == 9:
            text = text[: len(text) // 2]
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text, "utf-8")


def submission(source: Source, skill: float, draw: random.Random):
    """A notebook by a learner who is right in about `skill` of the questions."""
    notebook, released = source.reference, {cell.id: cell for cell in source.released.cells}
    for cell in notebook.cells:
        if not _solution(cell) or draw.random() < skill:
            continue
        question = source.key[cell.metadata["nbgrader"]["grade_id"]]
        plain = [w for w in question.wrong if isinstance(w.answer, (int, float, str))]
        if plain and draw.random() < 0.7:
            cell.source = f"{question.id} = {draw.choice(plain).answer!r}"
        else:
            cell.source = released[cell.id].source
    return notebook


def _solution(cell) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def main(arguments: list[str] | None = None) -> int:
    """Write a sample class; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m inferlab.grading.sample", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learners", type=int, default=12)
    parser.add_argument("--exercise", default="3-roofline")
    options = parser.parse_args(arguments)
    try:
        source = read_source(exercises_folder(), options.exercise)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    write_class(options.folder, source, options.learners)
    print(f"{options.learners} submissions of {options.exercise} in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
