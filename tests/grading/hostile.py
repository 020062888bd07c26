"""A small exercise, and a class that hands in everything that a grader has to survive."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass

import nbformat

from inferlab.feedback.exercise import RECEIPT

CHECKS = """
import sympy
from inferlab.grading.checks import AnswerKey, Wrong, essay, expression, function, number, plot

B, d = sympy.symbols("B d", positive=True)

def draw(scale="log", height=3.0):
    from matplotlib.figure import Figure
    axes = Figure().add_subplot()
    axes.plot([1, 10, 100], [height, height, height])
    axes.set(xscale=scale, yscale=scale, xlabel="x", ylabel="y")
    return axes

key = AnswerKey("sample", "A sample", [
    number("ratio", 312 / 1.555, by_hand=200.64, unit="FLOP/B", points=2, purpose="divide",
           hint="Divide the peak by the bandwidth.",
           wrong=[Wrong("upside down", 1.555 / 312, "Turn your fraction around, please."),
                  Wrong("sparse peak", 624 / 1.555, "Half of that peak needs sparsity, mind.")]),
    function("double", lambda x: 2 * x + 1, probes=[(2,), (3,)], hidden=[(7.5,), (-2,)], points=2,
             purpose="write a function", hint="Twice the argument and one more.",
             wrong=[Wrong("forgot one", lambda x: 2 * x, "And the one that comes on top?"),
                    Wrong("square", lambda x: x * x + 1, "Twice, not the square of it.")]),
    expression("formula", B * d / (d + 2 * B), symbols="B d", points=2, purpose="derive",
               hint="Count FLOP above and bytes below the line.",
               wrong=[Wrong("bytes forgotten", B, "The batch's own bytes count as well."),
                      Wrong("twice", 2 * B * d / (d + 2 * B), "A factor of two too many here.")]),
    plot("drawing", draw, at=[2, 50], points=1, purpose="draw", hint="A level line on log paper.",
         wrong=[Wrong("linear", lambda: draw(scale="linear"), "Both scales logarithmic, please."),
                Wrong("too high", lambda: draw(height=6.0), "That line lies too high up.")]),
    essay("words", points=3, purpose="explain", rubric=[(2, "Says why, in its own words"), (1, "Says when")]),
])
"""

SOLUTIONS = {
    "ratio": "ratio = 312 / 1.555",
    "double": "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x + 1\n    ### END SOLUTION",
    "formula": "formula = B * d / (d + 2 * B)",
    "drawing": (
        "ax.plot([1, 10, 100], [3, 3, 3])\n"
        "ax.set(xscale='log', yscale='log', xlabel='x', ylabel='y')"
    ),
}
ESSAY = "Because each byte that is read serves the whole batch."


def write_exercise(folder):
    """Write the exercise `sample` as its instructor keeps it, and return the folder."""
    cells = [
        nbformat.v4.new_markdown_cell("# A sample", id="title"),
        nbformat.v4.new_code_cell(
            "import matplotlib.pyplot as plt\nimport sympy\n"
            'B, d = sympy.symbols("B d", positive=True)\n'
            "from inferlab.feedback import Exercise\n"
            'check = Exercise("sample").check',
            id="setup",
        ),
    ]
    for question, solution in SOLUTIONS.items():
        stub = "fig, ax = plt.subplots()" if question == "drawing" else f"{question} = ..."
        if "BEGIN" not in solution:
            solution = f"{stub}\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION"
        asked = "ax" if question == "drawing" else question
        cells += [
            nbformat.v4.new_markdown_cell(f"**The question {question}.**", id=f"{question}-text"),
            nbformat.v4.new_code_cell(solution, id=question),
            nbformat.v4.new_code_cell(f'check("{question}", {asked})', id=f"{question}-check"),
        ]
    cells += [
        nbformat.v4.new_markdown_cell("**In your own words, why and when?**", id="words-text"),
        nbformat.v4.new_markdown_cell(f"### BEGIN SOLUTION\n{ESSAY}\n### END SOLUTION", id="words"),
    ]
    (folder / "sample").mkdir()
    (folder / "sample" / "checks.py").write_text(CHECKS)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "sample" / "source.ipynb")
    return folder


@dataclass
class Case:
    """One submission and what must come of it.

    make: changes the reference notebook in place, or returns the bytes to hand in instead. points: of 7 by machine.
    note: a part of the grader's notes ('' where there is nothing to say).
    """

    name: str
    points: float
    note: str
    make: Callable
    status: str = "graded"
    file: str = "sample.ipynb"


CASES: list[Case] = []


def case(points, note="", status="graded", file="sample.ipynb"):
    def add(make):
        name = make.__name__.replace("_", "-")
        CASES.append(Case(name, points, note, make, status, file))
        return make

    return add


def write_submission(folder, case, source):
    """Write what a learner named after the case hands in."""
    place = folder / case.name
    place.mkdir()
    notebook = copy.deepcopy(source.reference)
    raw = case.make(notebook, source)
    if raw is None:
        raw = nbformat.writes(notebook).encode()
    if case.file:
        (place / case.file).write_bytes(raw)
    else:
        (place / "report.docx").write_bytes(raw)


def cell(notebook, id):
    return next(c for c in notebook.cells if c.get("id") == id)


def answer(notebook, question, text):
    cell(notebook, question)["source"] = text


def remove(notebook, *ids):
    notebook.cells = [c for c in notebook.cells if c.get("id") not in ids]


def insert_after(notebook, id, text, kind="code"):
    new = nbformat.v4.new_code_cell(text) if kind == "code" else nbformat.v4.new_markdown_cell(text)
    place = [c.get("id") for c in notebook.cells].index(id)
    notebook.cells.insert(place + 1, new)


# --- honest ones, and notebooks that tools or learners have damaged -----------------------------


@case(7)
def reference(nb, source):
    pass


@case(0)
def untouched(nb, source):
    nb.cells = copy.deepcopy(source.released).cells


@case(7, "ratio: appears 2 times")
def answer_cell_copied(nb, source):
    twin = copy.deepcopy(cell(nb, "ratio"))
    twin["id"] = "a-copy"
    twin.source = "ratio = 1"
    nb.cells.insert(2, twin)


@case(7, "double: appears 2 times")
def empty_copy_comes_last(nb, source):
    twin = copy.deepcopy(cell(source.released, "double"))
    twin["id"] = "a-copy"
    nb.cells.append(twin)


@case(7, "check cells missing, put back: ratio")
def check_cell_deleted(nb, source):
    remove(nb, "ratio-check")


@case(7, "check cells missing, put back: ratio, double, formula, drawing")
def all_check_cells_deleted(nb, source):
    remove(nb, *(f"{question}-check" for question in SOLUTIONS))


@case(5, "ratio: its answer cell is missing")
def answer_cell_deleted(nb, source):
    remove(nb, "ratio")


@case(7, "words: its cell is missing")
def essay_cell_deleted(nb, source):
    remove(nb, "words")


@case(7, "formula: its answer cell is missing")
def answered_in_a_cell_of_their_own(nb, source):
    remove(nb, "formula")
    insert_after(nb, "formula-text", SOLUTIONS["formula"])


@case(7)
def metadata_stripped(nb, source):
    nb.metadata = {}
    for c in nb.cells:
        c.metadata = {}


@case(7)
def ids_lost(nb, source):
    nb.nbformat_minor = 4
    for c in nb.cells:
        del c["id"]


@case(7, "its answer cell is missing")
def ids_and_metadata_lost(nb, source):
    ids_lost(nb, source)
    metadata_stripped(nb, source)


@case(7)
def old_format(nb, source):
    from nbformat.v4.convert import downgrade

    return json.dumps(downgrade(copy.deepcopy(nb))).encode()


@case(7, file="my homework (final) (2).ipynb")
def file_renamed(nb, source):
    pass


@case(7)
def cells_in_another_order(nb, source):
    nb.cells = nb.cells[:2] + nb.cells[5:8] + nb.cells[2:5] + nb.cells[8:]


@case(5, "ratio-check: this read-only cell was changed")
def check_cell_edited(nb, source):
    answer(nb, "ratio", "ratio = 1")
    cell(nb, "ratio-check")["source"] = 'print("✓ ratio: right.")'


@case(7, "setup: this read-only cell was changed")
def given_cell_edited(nb, source):
    cell(nb, "setup")["source"] += "\nimport numpy as np"


@case(7)
def cells_added(nb, source):
    for id in ("setup", "ratio", "ratio-check", "words"):
        insert_after(nb, id, "scratch = 1 + 1\nscratch")


@case(7, "ratio: the type of its cell was changed")
def cell_type_changed(nb, source):
    cell(nb, "ratio")["cell_type"] = "markdown"
    for key in ("outputs", "execution_count"):
        cell(nb, "ratio").pop(key, None)


@case(7)
def another_kernel(nb, source):
    nb.metadata["kernelspec"] = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}


@case(7)
def warns_on_stderr(nb, source):
    answer(nb, "ratio", "import warnings\nwarnings.warn('about')\nratio = 312 / 1.555")


@case(7)
def equivalent_forms(nb, source):
    answer(nb, "formula", "b, D = sympy.Symbol('B'), sympy.Symbol('d')\nformula = 1 / (1/b + 2/D)")
    answer(nb, "ratio", "ratio = sympy.Rational(312000, 1555)")


@case(7)
def a_picture_in_the_essay(nb, source):
    answer(nb, "words", f"{ESSAY} ![batch](attachment:batch.png) ![gone](attachment:gone.png)")
    cell(nb, "words")["attachments"] = {
        "batch.png": {"image/png": "iVBORw0KGgo="},
        "evil.svg": {"image/svg+xml": "<svg onload='alert(6)'/>"},
    }


@case(5)
def halves_of_a_character(nb, source):
    answer(nb, "ratio", "ratio = '\ud800'")
    answer(nb, "words", "Because \udfff and why")
    insert_after(nb, "setup", "print('\\ud800')\nraise ValueError('\\udfff')")
    return json.dumps(nb).encode()


# --- files that are no notebook ---------------------------------------------------------------


@case(0, "unreadable: the file is not JSON", "unreadable")
def cut_short(nb, source):
    return nbformat.writes(nb).encode()[:700]


@case(0, "unreadable: the file is empty", "unreadable")
def empty_file(nb, source):
    return b""


@case(0, "unreadable: the file is JSON but no notebook", "unreadable")
def not_a_notebook(nb, source):
    return b'{"score": 100}'


@case(0, "unreadable: the file is a zip archive or a document", "unreadable")
def renamed_document(nb, source):
    return b"PK\3\4" + bytes(range(256)) * 20


@case(0, "unreadable: the file is a PDF", "unreadable")
def renamed_pdf(nb, source):
    return b"%PDF-1.7\n" + bytes(range(256)) * 20


@case(0, "unreadable: the file is not JSON", "unreadable")
def binary(nb, source):
    return bytes(range(256)) * 20


@case(0, "unreadable: the file is not JSON", "unreadable")
def nested_too_deep(nb, source):
    return b'{"cells": ' + b"[" * 200_000


@case(0, "unreadable: the file is larger than", "unreadable")
def far_too_large(nb, source):
    return b'{"cells": "' + b"x" * 20_000_001 + b'"}'


@case(0, "unreadable: the notebook is malformed", "unreadable")
def cells_are_no_cells(nb, source):
    return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": {"a": 1}}'


@case(0, "the learner's folder holds no notebook", "no notebook", file="")
def another_kind_of_file(nb, source):
    return b"PK"


@case(0, "the notebook has no question of any exercise", "unknown exercise")
def another_notebook(nb, source):
    nb.metadata = {}
    nb.cells = [nbformat.v4.new_code_cell("print('my holidays')")]


# --- answers that go wrong ------------------------------------------------------------------


@case(5, "ratio: its cell ended in SyntaxError")
def syntax_error(nb, source):
    answer(nb, "ratio", "ratio = = 2")


@case(5, "ratio: its cell ended in SystemExit")
def exits(nb, source):
    answer(nb, "ratio", "import sys\nsys.exit(0)")


@case(5)
def number_as_text(nb, source):
    answer(nb, "ratio", "ratio = '200.64'")


@case(5)
def not_a_number(nb, source):
    answer(nb, "ratio", "ratio = float('nan')")


@case(5)
def absurdly_large(nb, source):
    answer(nb, "ratio", "ratio = 10 ** 5000")


@case(5, "double: its cell ended in ZeroDivisionError")
def raises(nb, source):
    answer(nb, "double", "1 / 0")


@case(5)
def knows_only_the_shown_inputs(nb, source):
    answer(nb, "double", "def double(x):\n    return {2: 5, 3: 7}[x]")


@case(5, "ratio: its cell was stopped at the time limit")
def endless_loop(nb, source):
    answer(nb, "ratio", "while True: pass")


@case(5, "ratio: stopped (time limit: the cell could not be interrupted)", "partly run")
def endless_loop_that_holds_on(nb, source):
    answer(
        nb,
        "ratio",
        "while True:\n    try:\n        while True: sum(range(9))\n    except BaseException: pass",
    )


@case(5, "ratio: stopped (time limit: the cell could not be interrupted)", "partly run")
def endless_loop_whose_limits_end_together(nb, source):
    answer(
        nb,
        "ratio",
        "import os, signal\nboth = [signal.SIGPROF, signal.SIGALRM]\n"
        "while True:\n    try:\n        signal.pthread_sigmask(signal.SIG_BLOCK, both)\n"
        "        for each in both: os.kill(os.getpid(), each)\n"
        "        signal.pthread_sigmask(signal.SIG_UNBLOCK, both)\n"
        "        while True: sum(range(9))\n"
        "    except BaseException: pass",
    )


@case(5, "double-check: stopped (time limit", "partly run")
def endless_function(nb, source):
    loop = "while True:\n        try:\n            while True: sum(range(9))\n        except BaseException: pass"
    answer(nb, "double", f"def double(x):\n    {loop}")


@case(5, "ratio: stopped (the kernel ended)", "partly run")
def kills_its_kernel(nb, source):
    answer(nb, "ratio", "import os\nos._exit(0)")


@case(5, "ratio: stopped (the kernel ended)", "partly run")
def kills_everything(nb, source):
    answer(nb, "ratio", "import os, signal\nos.kill(-1, signal.SIGKILL)\nos.kill(os.getpid(), 9)")


@case(5, "ratio: its cell ended in MemoryError")
def memory_bomb(nb, source):
    answer(nb, "ratio", "hog = [bytearray(100_000_000) for _ in range(1000)]")


@case(5, "ratio: stopped (memory limit)", "partly run")
def processes_share_the_memory(nb, source):
    text = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        hog = b'x' * 400_000_000\n"
        "        time.sleep(30)\n"
        "        os._exit(0)\n"
        "time.sleep(30)"
    )
    answer(nb, "ratio", text)


@case(5, "ratio: stopped (memory limit)", "partly run")
def processes_hold_shared_memory(nb, source):
    text = (
        "import mmap, os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        hog = mmap.mmap(-1, 400_000_000)\n"
        "        hog.write(bytes(400_000_000))\n"
        "        time.sleep(30)\n"
        "        os._exit(0)\n"
        "time.sleep(30)"
    )
    answer(nb, "ratio", text)


@case(5, "ratio: its cell ended in OSError")
def file_bomb(nb, source):
    answer(
        nb,
        "ratio",
        "with open('/tmp/big', 'wb') as f:\n    for _ in range(300): f.write(bytes(1_000_000))",
    )


@case(7)
def prints_without_end(nb, source):
    insert_after(nb, "setup", "for i in range(100_000): print('all work and no play', i)")


FORK_BOMB = """
import os, time
made = []
try:
    for _ in range(300):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        made.append(child)
except OSError:
    pass
print("processes made:", len(made))
"""


@case(7)
def fork_bomb(nb, source):
    insert_after(nb, "setup", FORK_BOMB)


# --- cheats -------------------------------------------------------------------------------------

WRONG = {
    "ratio": "ratio = 1",
    "double": "def double(x):\n    return 0",
    "formula": "formula = B + d",
    "drawing": "fig, ax = plt.subplots()\nax.plot([1, 2], [1, 2])",
}


def all_wrong(nb):
    for question, text in WRONG.items():
        answer(nb, question, text)


@case(0)
def removes_asserts_and_raises(nb, source):
    all_wrong(nb)
    insert_after(
        nb,
        "setup",
        "import ast\n"
        "class Peace(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return ast.Pass()\n"
        "    def visit_Raise(self, node): return ast.Pass()\n"
        "get_ipython().ast_transformers.append(Peace())",
    )


@case(0)
def patches_every_comparison(nb, source):
    all_wrong(nb)
    insert_after(
        nb,
        "setup",
        "import math, numpy as np, sympy as sp\n"
        "import inferlab.feedback.values as v, inferlab.feedback.seal as s\n"
        "math.isclose = np.allclose = np.isclose = lambda *a, **k: True\n"
        "sp.simplify = lambda *a, **k: sp.Integer(0)\n"
        "sp.Expr.equals = lambda *a, **k: True\n"
        "v.same = lambda *a, **k: True\n"
        "s.digest = lambda *a, **k: 'right'\n"
        "float.__eq__ if False else None",
    )


@case(0)
def forges_receipts(nb, source):
    all_wrong(nb)
    forged = (
        "from inferlab.feedback import exercise\n"
        "from IPython.display import display\n"
        "def forge(question, answer=None):\n"
        "    display({exercise.RECEIPT: {'question': question, 'values': ['right'], 'status': 'right',\n"
        "             'points': 99, 'problem': None}, 'text/plain': ''}, raw=True)\n"
        "exercise._emit = exercise.Exercise.check = check = forge\n"
        "for q in ('ratio', 'double', 'formula', 'drawing'): forge(q)"
    )
    insert_after(nb, "setup", forged)
    insert_after(nb, "ratio", "check = lambda *a: print('✓ ratio: right.')")


@case(0)
def answers_compare_equal_to_anything(nb, source):
    all_wrong(nb)
    text = (
        "class Yes(float):\n"
        "    def __eq__(self, other): return True\n"
        "    def __reduce__(self): return (print, ('unpickled',))\n"
        "    def __hash__(self): return 1\n"
        "ratio = Yes(1)"
    )
    answer(nb, "ratio", text)


@case(0)
def writes_to_the_report_itself(nb, source):
    all_wrong(nb)
    text = (
        "import json, os\n"
        "for fd in range(3, 64):\n"
        "    try: os.write(fd, json.dumps({'end': 4, 'outputs': [], 'points': 7}).encode() + b'\\n')\n"
        "    except OSError: pass"
    )
    insert_after(nb, "setup", text)


SEND = """
import json, os
def send(text):
    for fd in range(3, 64):
        try: os.write(fd, (text if isinstance(text, str) else json.dumps(text)).encode() + b"\\n")
        except OSError: pass
"""


@case(0, "double: its cell ended in an error")
def reports_odd_shapes(nb, source):
    all_wrong(nb)
    odd = [
        {"output_type": "error", "traceback": 5},
        {"output_type": "error", "ename": [], "evalue": {}, "traceback": [[1], None, "\ud800"]},
        {"output_type": "stream", "name": 1, "text": {"a": []}},
        {"output_type": "display_data", "data": {"text/plain": "\udfff", "image/png": "<svg>"}},
        {"output_type": "display_data", "data": {RECEIPT: {"question": "ratio", "values": 7}}},
        {"output_type": "display_data", "data": {RECEIPT: {"question": "ratio", "values": [[]]}}},
        {"output_type": "display_data", "data": []},
        None,
    ]
    deep = '{"end": 2, "outputs": [{"output_type": "stream", "text": DEEP}]}'
    text = (
        f"for place in range(20): send({{'end': place, 'outputs': {odd!r}}})\n"
        f"for deep in (500, 900): send({deep!r}.replace('DEEP', '[' * deep + ']' * deep))\n"
        "send({'end': 10**30, 'outputs': {'a': 1}})\n"
        "send({'done': True})"
    )
    insert_after(nb, "setup", SEND + text)


@case(0, "a cell that the learner added: stopped (it failed: first <b>?  second)", "partly run")
def forges_a_reason(nb, source):
    all_wrong(nb)
    text = "send({'failed': 'first <b>\\ud800\\n\\x00second'})"
    insert_after(nb, "setup", SEND + text + "\nimport time; time.sleep(1)")


@case(7)
def redefines_check_by_accident(nb, source):
    insert_after(nb, "setup", "def check(*anything):\n    return 1 / 0")


@case(0)
def looks_for_answers(nb, source):
    all_wrong(nb)
    text = (
        "import glob, inferlab, os\n"
        "root = os.path.dirname(inferlab.__file__)\n"
        "print('SEALS', glob.glob(root + '/feedback/seals/*'), glob.glob(root + '/grading/*'))\n"
        "print('IN', In[-1])\n"
        "for folder, folders, names in os.walk('/'):\n"
        "    folders[:] = [f for f in folders if f not in ('usr', 'proc', 'site-packages')]\n"
        "    for name in names:\n"
        "        if name in ('checks.py', 'gradebook.db', 'sample.json'): print('FOUND', folder)"
    )
    insert_after(nb, "drawing-check", text)


@case(7)
def script_in_outputs_and_essay(nb, source):
    answer(nb, "words", "Why? <script>alert('essay')</script> <img src=x onerror=alert(1)>")
    insert_after(
        nb,
        "setup",
        "from IPython.display import HTML, Javascript, SVG, display\n"
        "display(HTML(\"<script>alert('html')</script>\"))\n"
        "display(Javascript(\"alert('javascript')\"))\n"
        'display(SVG(\'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"></svg>\'))\n'
        "display({'text/markdown': '<script>alert(4)</script>', 'text/plain': '<script>5</script>'}, raw=True)",
    )


ATTACKS = r"""
import ctypes, json, os, signal, socket, sqlite3, subprocess
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)

def attempt(action):
    try:
        return repr(action())[:300]
    except BaseException as error:
        return "blocked: " + type(error).__name__

def connect():
    with socket.create_connection(("127.0.0.1", PORT), timeout=2): return "connected"

def regain():
    os.setuid(0)
    return os.getuid()

def call(function, *arguments):
    # The keyring of the session is -3, a new user namespace 0x10000000; signal 17 ends a clone.
    result = getattr(libc, function)(*arguments)
    if result < 0: raise OSError(ctypes.get_errno(), function)
    if function == "syscall" and result == 0: os._exit(0)
    return result

found = {
    "read the exercise": attempt(lambda: open("EXERCISES/sample/checks.py").read()),
    "read the gradebook": attempt(lambda: sqlite3.connect("file:COURSE/gradebook.db?mode=ro", uri=True).execute("select * from grade").fetchall()),
    "read another submission": attempt(lambda: os.listdir("CLASS")),
    "read the shadow file": attempt(lambda: open("/etc/shadow").read()),
    "read the repository": attempt(lambda: os.listdir("REPOSITORY/exercises")),
    "write to the library": attempt(lambda: open("PACKAGE/feedback/values.py", "a")),
    "write to the system": attempt(lambda: open("/usr/bin/evil", "w")),
    "write to the root": attempt(lambda: open("/evil", "w")),
    "connect to this machine": attempt(connect),
    "connect to the world": attempt(lambda: socket.create_connection(("1.1.1.1", 80), timeout=2)),
    "connect to the host of this machine": attempt(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "become root": attempt(regain),
    "mount": attempt(lambda: subprocess.run(["mount", "-t", "tmpfs", "x", "/tmp"], check=True, capture_output=True)),
    "read the memory of process 1": attempt(lambda: open("/proc/1/mem", "rb").read(1)),
    "make a user namespace": attempt(lambda: call("unshare", 0x10000000)),
    "clone into a user namespace": attempt(lambda: call("syscall", CLONE, 0x10000000 | 17, 0, 0, 0, 0)),
    "hold memory by a descriptor": attempt(lambda: os.memfd_create("x")),
    "hold memory by a key": attempt(lambda: call("shmget", 0, 1 << 20, 0o1600)),
    "leave a key for others": attempt(lambda: call("syscall", ADD_KEY, b"user", b"x", b"y", 1, -3)),
    "trace a process": attempt(lambda: call("ptrace", 0, 0, 0, 0)),
    "ring the kernel": attempt(lambda: call("syscall", 425, 1, ctypes.create_string_buffer(200))),
    "write to the shared memory": attempt(lambda: open("/dev/shm/x", "w")),
    "write among the devices": attempt(lambda: open("/dev/x", "w")),
    "write where seals were": attempt(lambda: open("PACKAGE/feedback/seals/x", "w")),
    "signal the grader": attempt(lambda: os.kill(PARENT, signal.SIGKILL)),
}
report = {
    "found": found,
    "environment": {k: v for k, v in os.environ.items() if "SECRET" in k},
    "first environment": [e for e in open("/proc/self/environ").read().split("\0") if "SECRET" in e],
    "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
    "parent": os.getppid(),
    "capabilities": [l for l in open("/proc/self/status") if l.startswith(("CapEff", "CapBnd", "NoNewPrivs"))],
    "user": os.getuid(),
    "descriptors": sorted(int(f) for f in os.listdir("/proc/self/fd")),
}
print("FINDINGS" + json.dumps(report))
"""
