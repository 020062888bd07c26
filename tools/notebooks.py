"""Keep the notebooks of the book in one shape, and turn them into text and back.

    python tools/notebooks.py [NOTEBOOK ...]           normalise in place, then check
    python tools/notebooks.py --check [NOTEBOOK ...]   only check; exit 1 if anything is wrong
    python tools/notebooks.py from-md FILE.md OUT.ipynb
    python tools/notebooks.py to-md NOTEBOOK OUT.md

Without a path: every notebook under book/. Outputs, execution counts and the editors' metadata are
not kept, so that a change shows in review as the change it is. What a machine cannot choose well
(a cell's name, a tag, a figure's alternative text) is never made up by normalising: it is refused,
with the cell and the remedy. Only from-md derives a missing cell id, from the cell's own words.
"""

import argparse
import copy
import difflib
import re
import sys
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"

LAYERS = {"symbolic", "numeric", "local"}
PRESENTATION = {
    "hide-input",
    "hide-output",
    "hide-cell",
    "remove-input",
    "remove-output",
    "remove-cell",
    "full-width",
    "margin",
    "raises-exception",
}
KEPT_CELL_METADATA = ("mystnb", "nbgrader", "tags")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_ID = re.compile(r"(?=.*[a-z]{3})[a-z0-9]+(-[a-z0-9]+)*")
RANDOM_ID = re.compile(r"(?=.*[0-9])[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
GLUE = re.compile(r"\{glue:text\}`([a-z0-9-]+)`")
MARKDOWN_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(")


def normalised(notebook):
    """Return the notebook as it is committed: no outputs, no counts, minimal metadata."""
    cells = []
    for cell in notebook.cells:
        metadata = {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        source = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
        if cell.cell_type == "markdown":
            source = GLUE.sub(r'{eval}`number["\1"]`', source)
        new = {"cell_type": cell.cell_type, "id": cell.get("id", ""), "metadata": metadata}
        if cell.cell_type == "code":
            new |= {"execution_count": None, "outputs": []}
        cells.append(new | {"source": source})
    return nbformat.from_dict(
        {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    )


def as_text(notebook):
    """The bytes of the committed file."""
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def problems(notebook):
    """Yield one sentence for each thing that the author has to mend."""
    seen = set()
    for position, cell in enumerate(notebook.cells, start=1):
        name = cell.get("id", "")
        where = f"cell {position} ({name or 'no id'})"
        if not CELL_ID.fullmatch(name) or RANDOM_ID.fullmatch(name) or len(name) > 64:
            yield (
                f"{where}: the cell id {name!r} cannot be read; give it words joined by hyphens "
                "that say what the cell is for, like 'derive-attention'."
            )
        if name in seen:
            yield f"{where}: the cell id {name!r} occurs twice; rename one of the cells."
        seen.add(name)
        if not cell.source.strip():
            yield f"{where}: the cell is empty; remove it."
        if cell.cell_type == "code":
            yield from (f"{where}: {problem}" for problem in _code_problems(cell))
        elif cell.cell_type == "markdown":
            yield from (f"{where}: {problem}" for problem in _markdown_problems(cell.source))
        else:
            yield f"{where}: a {cell.cell_type} cell shows nowhere; use markdown or code."


def _code_problems(cell):
    tags = cell.metadata.get("tags", [])
    layers = LAYERS.intersection(tags)
    if len(layers) != 1:
        found = " and ".join(sorted(layers)) if layers else "none"
        yield f"it must carry exactly one of the tags symbolic, numeric, local; it carries {found}."
    unknown = sorted(set(tags) - LAYERS - PRESENTATION)
    if unknown:
        known = ", ".join(sorted(LAYERS | PRESENTATION))
        yield f"unknown tag {', '.join(unknown)}; known: {known}."
    render = cell.metadata.get("mystnb", {})
    if "figure" in render or "image" in render:
        figure, image = render.get("figure", {}), render.get("image", {})
        if not str(figure.get("name", "")).startswith("fig-"):
            yield "the figure needs mystnb.figure.name, beginning with 'fig-'."
        if not _is_sentence(figure.get("caption", "")):
            yield "the figure needs mystnb.figure.caption, a sentence that says its point."
        if not _is_sentence(image.get("alt", "")):
            yield "the figure needs mystnb.image.alt, a sentence that says what it shows."


def _markdown_problems(source):
    for match in MARKDOWN_IMAGE.finditer(source):
        if not _is_sentence(match["alt"]):
            yield f"the image needs a sentence as alternative text, not {match['alt']!r}."


def _is_sentence(text):
    return len(str(text).split()) >= 4 and str(text).rstrip().endswith((".", "?", "!", ".)"))


def from_markdown(text, existing=None):
    """Turn MyST text (jupytext's md:myst) into a notebook.

    A cell's id comes from its metadata (``+++ {"id": "..."}`` or ``id:`` in a code cell's header),
    else from the cell of `existing` that it continues, else from its own words.
    """
    notebook = jupytext.reads(text, fmt="md:myst")
    kept = _continued_ids(notebook, existing) if existing else {}
    used = {cell.metadata["id"] for cell in notebook.cells if "id" in cell.metadata}
    for position, cell in enumerate(notebook.cells):
        if "id" in cell.metadata:
            cell.id = cell.metadata["id"]
            continue
        wanted = kept.get(position) or derived_id(cell)
        cell.id = wanted
        count = 2
        while cell.id in used:
            cell.id = f"{wanted}-{count}"
            count += 1
        used.add(cell.id)
    return normalised(notebook)


def _continued_ids(notebook, existing):
    """Match cells to those of an older version: equal sources first, then same place and kind."""
    ids = {}
    old = [(cell.cell_type, cell.source.strip()) for cell in existing.cells]
    new = [(cell.cell_type, cell.source.strip()) for cell in normalised(notebook).cells]
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for i, j in zip(range(old_start, old_end), range(new_start, new_end), strict=False):
                if old[i][0] == new[j][0]:
                    ids[j] = existing.cells[i].id
    return ids


def derived_id(cell):
    """Make a readable id from a figure's name, a heading, or the first words of the cell."""
    figure = cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")
    if figure:
        return f"draw-{figure.removeprefix('fig-')}"
    heading = re.search(r"^#+\s+(.+)$", cell.source, re.MULTILINE)
    text = heading.group(1) if heading and cell.cell_type == "markdown" else cell.source
    words = re.findall(r"[a-z][a-z0-9]+", re.sub(r"[`$\\{}_']", " ", text.lower()))
    return "-".join(words[:5]) or "cell"


def to_markdown(notebook):
    """Turn a notebook into MyST text that keeps the cell ids."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata = {"id": cell.id, **cell.metadata}
    return jupytext.writes(notebook, fmt="md:myst")


def read(path):
    """Read as it is: nbformat.read would quietly mend repeated ids."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def book_notebooks():
    """The paths of the book's notebooks, in order."""
    return sorted(BOOK.rglob("*.ipynb"))


def report(path, check_only):
    """Normalise one notebook (unless only checking); print what is wrong; return how many."""
    before = path.read_text(encoding="utf-8")
    notebook = normalised(read(path))
    after = as_text(notebook)
    found = list(problems(notebook))
    if check_only and before != after:
        found.append(
            "it is not normalised (outputs, counts or stray metadata); "
            f"run: python tools/notebooks.py {path}"
        )
    if not check_only and before != after:
        path.write_text(after, encoding="utf-8")
        print(f"{path}: normalised")
    for problem in found:
        print(f"{path}: {problem}", file=sys.stderr)
    return len(found)


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["from-md"] or arguments[:1] == ["to-md"]:
        parser = argparse.ArgumentParser(prog=f"notebooks.py {arguments[0]}")
        parser.add_argument("source", type=Path)
        parser.add_argument("target", type=Path)
        paths = parser.parse_args(arguments[1:])
        if arguments[0] == "to-md":
            paths.target.write_text(to_markdown(read(paths.source)), encoding="utf-8")
            return 0
        existing = read(paths.target) if paths.target.exists() else None
        notebook = from_markdown(paths.source.read_text(encoding="utf-8"), existing)
        paths.target.write_text(as_text(notebook), encoding="utf-8")
        return 1 if report(paths.target, check_only=True) else 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if wrong")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    paths = options.notebooks or book_notebooks()
    wrong = sum(report(path, options.check) for path in paths)
    if not wrong:
        print(f"{len(paths)} notebooks in order.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
