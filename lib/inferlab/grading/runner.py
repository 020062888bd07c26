"""Runs one notebook's cells, inside the sandbox, and reports each as a line of JSON.

Everything here runs in the learner's process and may be changed by the learner's code: nothing
that it reports is believed, it is only compared.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from inferlab.feedback import exercise

MOST_TEXT = 20_000  # characters of printed text kept of a cell
MOST_DATA = 2_000_000  # characters of one picture or text shown
SHOWN = ("text/plain", "text/latex", "image/png", "image/jpeg", exercise.RECEIPT)


class TookTooLong(KeyboardInterrupt):
    """The time limit of a cell is over."""


class _Outputs:
    """The outputs of the cell that is running, in nbformat's shape."""

    def __init__(self):
        self.cells: list[dict] = []
        self._room = MOST_TEXT

    def text(self, name: str, text: str) -> None:
        kept, self._room = text[: self._room], self._room - len(text)
        if not kept:
            return
        if self.cells and self.cells[-1].get("name") == name:
            self.cells[-1]["text"] += kept
        else:
            self.cells.append({"output_type": "stream", "name": name, "text": kept})
        if self._room <= 0:
            self.cells[-1]["text"] += "\n(the rest is cut)"

    def shown(self, data, kind: str = "display_data") -> None:
        kept = {}
        for mime in SHOWN:
            item = data.get(mime)
            if item is not None and (not isinstance(item, str) or len(item) < MOST_DATA):
                kept[mime] = item
        if kept and len(self.cells) < 100:
            self.cells.append({"output_type": kind, "data": kept, "metadata": {}})


class _Stream:
    def __init__(self, shell, name: str):
        self._shell, self._name = shell, name
        self.encoding = "utf-8"

    def write(self, text) -> int:
        self._shell.outputs.text(self._name, str(text))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


class _Publisher(DisplayPublisher):
    def publish(self, data, *args, **kwargs):
        self.shell.outputs.shown(data)

    def clear_output(self, wait=False):
        self.shell.outputs.cells.clear()


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.outputs.shown(format_dict, "execute_result")

    def finish_displayhook(self):
        pass


class Shell(InteractiveShell):
    """IPython whose outputs are kept instead of printed."""

    def __init__(self, **kwargs):
        self.outputs = _Outputs()
        super().__init__(**kwargs)
        self.display_pub = _Publisher(parent=self, shell=self)
        self.display_pub.shell = self

    displayhook_class = _Hook

    def init_history(self):
        self.config.HistoryManager.enabled = False
        super().init_history()

    def _showtraceback(self, etype, evalue, stb):
        self.outputs.cells.append(
            {
                "output_type": "error",
                "ename": etype.__name__[:100],
                "evalue": str(evalue)[:1000],
                "traceback": [str(line)[:2000] for line in stb[-20:]],
            }
        )

    def enable_gui(self, gui=None):
        pass


def make_shell() -> Shell:
    """The shell in which a fork will run a notebook; made once, before any learner's code."""
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = Shell.instance(config=config)
    import matplotlib

    matplotlib.use("module://matplotlib_inline.backend_inline")
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import configure_inline_support

    configure_inline_support(shell, "module://matplotlib_inline.backend_inline")
    # Fonts are looked up, and the labels of powers of ten made, once, by drawing once.
    figure, axes = plt.subplots()
    axes.loglog([1e-3, 1e6], [1e6, 1e15], label="1")
    axes.legend()
    figure.savefig("/dev/null", format="png", bbox_inches="tight")
    plt.close("all")
    # The inline backend shows and closes a cell's figures at its end. Pyplot's own hook would come
    # first and draw each of them once more, for nobody.
    plt.uninstall_repl_displayhook()
    return shell


def run(shell: Shell, job: dict, report: int) -> None:
    """Run the cells of a job and write one line of JSON for each start and end to `report`.

    job: cells (each with source, question and expression or None), reading (what `check` reads),
    skip (cells not to run again), cell_s and waiting_s (CPU and clock time of a cell).
    """
    exercise.reading_only = job["reading"]
    sys.stdout, sys.stderr = _Stream(shell, "stdout"), _Stream(shell, "stderr")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place, cell in enumerate(job["cells"]):
        if place in job["skip"]:
            continue
        _send(report, {"begin": place})
        shell.outputs = _Outputs()
        if cell["question"]:
            # Whatever the notebook made of this name, a check cell calls the checker.
            shell.user_ns["check"] = exercise._emit
        signal.signal(signal.SIGPROF, _too_long)
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_PROF, job["cell_s"])
        signal.setitimer(signal.ITIMER_REAL, job["waiting_s"])
        try:
            result = shell.run_cell(cell["source"], store_history=True)
            error = result.error_before_exec or result.error_in_exec
            # Without memory left, IPython may fail to show what went wrong.
            if error and not any(o["output_type"] == "error" for o in shell.outputs.cells):
                shell._showtraceback(type(error), error, [type(error).__name__])
        except BaseException as error:  # whatever leaks out of IPython belongs to the cell
            shell._showtraceback(type(error), error, [f"{type(error).__name__}: {error}"])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        _send(report, {"end": place, "outputs": shell.outputs.cells})
    _send(report, {"done": True})


def _too_long(signum, frame):
    # Once a cell: on a busy machine both timers can be over at the same time, and the second would
    # strike while the first is being handled. A cell that goes on is stopped from outside.
    for other in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(other, _told_already)
    raise TookTooLong("the time limit of this cell is over")


def _told_already(signum, frame):
    pass


def _send(report: int, message: dict) -> None:
    try:
        text = json.dumps(message)
    except (TypeError, ValueError):
        text = json.dumps(
            {key: message[key] for key in ("begin", "end") if key in message} | {"outputs": []}
        )
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(report, data) :]
