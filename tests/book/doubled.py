"""Double one result of the library and report which readings of it notice.

    python tests/book/doubled.py step.flops

prints a JSON object: for each of derivation, prose, widget and exercise what failed there, and
which cells broke in another way. Without an argument nothing is doubled, and nothing may fail. It
runs in a process of its own, since the library stays doubled in it; what is doubled is doubled
before any other room imports it.
"""

import contextlib
import io
import json
import os
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

os.environ["MPLBACKEND"] = "agg"
os.environ.pop("INFERLAB_NUMBERS", None)

import inferlab.matmul
import inferlab.roofline
import inferlab.step
from independent import load_independent, load_rows

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ("06-prefill", "07-decode", "08-roofline", "09-where-phases-sit")


def wrap(module, name, change):
    """Let a function of a module return `change` of what it returned."""
    original = getattr(module, name)
    setattr(module, name, lambda *args, **kwargs: change(original(*args, **kwargs)))


def double(*names):
    return lambda result: replace(result, **{name: 2 * getattr(result, name) for name in names})


def double_parts(*names):
    """Double a kind of work in every component of a step, and so in its total."""

    def change(work):
        parts = {name: double(*names)(part) for name, part in work.components.items()}
        return inferlab.step.Work.of(parts)

    return change


def twice(value):
    return 2 * value


BYTES = [field.name for field in fields(inferlab.step.Component) if field.name != "flops"]

MUTATIONS = {
    "matmul.flops": [(inferlab.matmul, "matmul_flops", twice)],
    "matmul.bytes": [(inferlab.matmul, "matmul", double("bytes"))],
    "step.flops": [(inferlab.step, "step", double_parts("flops"))],
    "step.bytes": [(inferlab.step, "step", double_parts(*BYTES))],
    "roofline.ridge": [
        (inferlab.roofline, "ridge_point", twice),
        (inferlab.roofline, "roofline", double("ridge")),
    ],
    "roofline.attainable": [
        (inferlab.roofline, "attainable", twice),
    ],
    "roofline.time": [(inferlab.roofline, "bound_time", twice)],
}


def mutate(name):
    """Double the result called `name`, everywhere.

    step imported matmul_flops when it was loaded: a doubled function replaces it there too.
    """
    for module, function, change in MUTATIONS[name]:
        original = getattr(module, function)
        wrap(module, function, change)
        for other in (inferlab.matmul, inferlab.step, inferlab.roofline):
            for attribute, value in list(vars(other).items()):
                if value is original:
                    setattr(other, attribute, getattr(module, function))


def failed_derivations():
    """Run the chapters; name the symbolic cells whose assertion failed, and cells that broke."""
    failed, broken = [], []
    for chapter in CHAPTERS:
        notebook = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
        namespace = {"__name__": "__main__"}
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec("".join(cell["source"]), namespace)
            except AssertionError:
                kind = failed if "symbolic" in cell["metadata"]["tags"] else broken
                kind.append(f"{chapter}: {cell['id']}")
            except Exception as error:  # a cell that builds on a failed one cannot run either
                broken.append(f"{chapter}: {cell['id']}: {error!r}")
    return failed, broken


def failed_prose():
    """Compare what the chapters print with the literals; name the numbers that differ."""
    from inferlab.numbers import number

    failed = []
    for row in load_rows():
        try:
            row.check_printed(number[row.number] if row.number else "")
        except AssertionError:
            failed.append(row.number)
        except ValueError:
            continue  # not a number of these chapters
    return failed


def failed_widgets():
    """Name the literals that a widget's first values differ from."""
    import inferlab.widgets

    independent, failed = load_independent(), []
    for widget_class in (getattr(inferlab.widgets, name) for name in inferlab.widgets.__all__):
        words = re.findall(r"[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z]+", widget_class.__name__)
        stem = "-".join(["widget", *words]).lower() + "-"
        for row in load_rows():
            if row.id.startswith(stem):
                value = widget_class().compute(row.id.removeprefix(stem).replace("-", "_"))
                if not independent(row.id).agrees(value):
                    failed.append(row.id)
    return failed


def failed_exercises():
    """Name the answer keys that refuse to load, since an answer differs from its sum by hand."""
    from inferlab.grading.checks import load
    from inferlab.quantities import InputError

    failed = []
    for path in sorted(
        [*ROOT.glob("exercises/*/checks.py"), *ROOT.glob("exercises/chapters/*.py")]
    ):
        try:
            load(path)
        except InputError as error:
            failed.append(f"{path.relative_to(ROOT / 'exercises')}: {error}")
    return failed


def main():
    if len(sys.argv) > 1:
        mutate(sys.argv[1])
    derivations, broken = failed_derivations()
    readings = {
        "derivation": derivations,
        "prose": failed_prose(),
        "widget": failed_widgets(),
        "exercise": failed_exercises(),
        "broken": broken,
    }
    print(json.dumps(readings, indent=2))


if __name__ == "__main__":
    main()
