"""A room of the library imports only from rooms above it, and the core is light to load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import inferlab

LIBRARY = Path(inferlab.__file__).parent

# From top to bottom. A new room takes its place here.
CORE = (
    "quantities", "accounting", "presets", "hf_config", "architecture", "accelerator", "matmul",
    "step", "roofline", "training", "cost", "deployment", "measurements", "calibration",
    "generating",
)  # fmt: skip
ROOMS = (
    *CORE, "numbers", "tables", "quantization", "tiny", "serving", "claims", "runtime", "machine",
    "derive", "javascript", "figures", "gantt", "diagrams", "widgets", "feedback", "grading", "cli",
)  # fmt: skip


def room_of(path):
    """The room that a file of the library belongs to: a module or a package."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imported_rooms(path):
    """The rooms that a file imports from, inside its functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            package, _, rest = module.partition(".")
            if package == "inferlab" and rest.split(".")[0] in ROOMS:
                yield rest.split(".")[0]


def test_every_room_has_its_place():
    rooms = {room_of(path) for path in LIBRARY.rglob("*.py")} - {"__init__"}
    assert rooms == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rooms_above_it(room):
    above = ROOMS[: ROOMS.index(room) + 1]
    for path in (p for p in LIBRARY.rglob("*.py") if room_of(p) == room):
        below = set(imported_rooms(path)) - set(above)
        assert not below, f"{path.relative_to(LIBRARY)} imports {', '.join(sorted(below))}"


def test_the_core_loads_no_large_package():
    code = (
        f"import sys, importlib; [importlib.import_module('inferlab.' + r) for r in {CORE}];"
        "print([p for p in ('numpy', 'sympy', 'matplotlib', 'simpy') if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
