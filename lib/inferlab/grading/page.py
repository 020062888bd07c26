"""Draws a learner's feedback page from the graded notebook, its scores and its comments alone."""

from __future__ import annotations

import re
import signal
from functools import cache
from pathlib import Path

import nbformat

LONGEST_S = 60  # CPU time for one page; a learner's text could keep a converter busy for ever

_CDN = re.compile(r"<script[^>]*src=\"https?:[^>]*>\s*</script>")


def draw(job: dict) -> str:
    """The page of a job: its notebook (text), grades, comments and scores, in HTML.

    For a process that draws pages and does nothing else: it sets that process's timer.
    """
    from nbconvert.exporters import TemplateExporter

    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S, 1)  # and again, should it be swallowed
    try:
        notebook = for_learner(job["notebook"], job["grades"], job["comments"])
        resources = {"nbgrader": job["scores"], "metadata": {"name": job["scores"]["notebook"]}}
        exporter = _exporter()
        # HTMLExporter's own method would also parse the finished page, styles and all, to add
        # alternative texts; ours have them, and it takes as long as all the rest.
        body, _ = TemplateExporter.from_notebook_node(
            exporter, notebook, exporter._init_resources(resources)
        )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return _CDN.sub("", body)


def _give_up(signum, frame):
    raise TimeoutError(f"it took more than {LONGEST_S} s")


def for_learner(text: str, grades: dict, comments: dict) -> nbformat.NotebookNode:
    """The graded notebook as its learner sees it: without rubrics, with scores and comments.

    grades: {cell: (score, points)}. comments: {cell: text or None}.
    """
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("inferlab", {}).get("rubric")]
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            # A page that is read without a network shows formulas as text.
            output.get("data", {}).pop("text/latex", None)
            for kind in ("image/png", "image/jpeg"):
                if kind in output.get("data", {}):
                    output.metadata[kind] = {"alt": "The figure that the code above draws"}
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            about["score"], about["points"] = grades[about["grade_id"]]
        if about.get("solution"):
            about["comment"] = comments[about["grade_id"]]
    return notebook


@cache
def _exporter():
    """nbconvert with nbgrader's template, made once in each process."""
    import nbgrader
    from nbconvert.exporters import HTMLExporter
    from nbconvert.filters import Highlight2HTML
    from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
    from traitlets.config import Config

    forms = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
    config = Config()
    config.HTMLExporter.template_name = "feedback"
    config.HTMLExporter.extra_template_basedirs = [str(forms / "templates")]
    styles = forms / "static" / "node_modules" / "bootstrap" / "dist" / "css"
    config.HTMLExporter.extra_template_paths = [str(styles)]
    config.HTMLExporter.optimistic_validation = True  # once, not after each of a dozen steps
    exporter = HTMLExporter(config=config)
    exporter.register_filter(
        "highlight_code", Highlight2HTML(pygments_lexer="python", parent=exporter)
    )
    exporter.register_filter(
        "filter_data_type", WidgetsDataTypeFilter(notebook_metadata={}, parent=exporter)
    )
    return exporter
