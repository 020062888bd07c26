"""Draws a learner's feedback page from the graded notebook, its scores and its comments alone."""

from __future__ import annotations

import html
import re
import signal
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import pass_context

LONGEST_S = 20  # CPU time for one page; a learner's text could keep a converter busy for ever

LONGEST_FORMULA = 2000  # characters; a longer one stays as it is typed

_CDN = re.compile(r"<script[^>]*src=\"https?:[^>]*>\s*</script>")
# nbgrader's template lists every question by the same name.
_LISTED = re.compile(
    r'<a href="#(\w+?)(_check)?">(?:Test cell|Written response|Coding free-response)</a>'
)
_COMMENT = re.compile(r'<a href="#comment-(\w+)">Comment</a>')
# Of digits after these, TeX takes one at a time: \frac83 is 8/3. The converter takes them all.
_DIGITS = re.compile(r"(\\[dt]?frac\s*(?:\{[^{}]*\}\s*)?|\\sqrt\s*|[\^_]\s*)(\d{2,})")


class _TooLong(BaseException):
    """Not an Exception, which the converters swallow here and there and then go on."""


def draw(job: dict) -> str:
    """The page of a job: its notebook (text), grades, comments and scores, in HTML.

    A text that keeps the converter busy for LONGEST_S is shown as it was typed. For a process that
    draws pages and does nothing else: it sets that process's timer. Raises TimeoutError for a page
    that takes more than LONGEST_S even so.
    """
    try:
        page = _drawn(job, _exporter(as_typed=False))
    except TimeoutError:
        page = _drawn(job, _exporter(as_typed=True))
    page = _LISTED.sub(r'<a href="#\1\2">\1</a>', _CDN.sub("", page))
    return _COMMENT.sub(r'<a href="#comment-\1">comment on \1</a>', page)


def _drawn(job: dict, exporter) -> str:
    from nbconvert.exporters import TemplateExporter

    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S, 1)  # and again, should a bare except swallow it
    try:
        notebook = for_learner(job["notebook"], job["grades"], job["comments"])
        resources = {"nbgrader": job["scores"], "metadata": {"name": job["scores"]["notebook"]}}
        # HTMLExporter's own method would also parse the finished page, styles and all, to add
        # alternative texts; ours have them, and it takes as long as all the rest.
        body, _ = TemplateExporter.from_notebook_node(
            exporter, notebook, exporter._init_resources(resources)
        )
        return body
    except _TooLong:
        raise TimeoutError(f"it took more than {LONGEST_S} s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _give_up(signum, frame):
    raise _TooLong


def for_learner(text: str, grades: dict, comments: dict) -> nbformat.NotebookNode:
    """The graded notebook as its learner sees it: without rubrics, with scores and comments.

    grades: {cell: (score, points)}. comments: {cell: text or None}.
    """
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("inferlab", {}).get("rubric")]
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            # MathML is made of what is written in cells; an output's formula stays as text.
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


def mathml(formula: str, *, block: bool = False) -> str | None:
    """MathML, which browsers draw without a script, of a TeX formula; None for one beyond us.

    All text of the formula is escaped, so whatever it holds, no other element comes out.
    """
    from docutils.utils.math.latex2mathml import tex2mathml

    if len(formula) > LONGEST_FORMULA:
        return None
    formula = re.sub(r"(?<=\d)\{,\}(?=\d)", ",", formula)
    formula = _DIGITS.sub(lambda found: found[1] + re.sub(r"(\d)", r"{\1}", found[2]), formula)
    try:
        drawn = tex2mathml(formula, as_block=block)
    except Exception:  # it gives up in many ways, MathError and RecursionError among them
        return None
    # A namespace is for XML; spaces between elements would come into the names of headings.
    return re.sub(r">\s+<", "><", drawn.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))


def markdown(text: str, attachments: dict | None = None) -> str:
    """HTML of a cell's text, with its formulas in MathML."""
    from nbconvert.filters.markdown_mistune import MarkdownWithMath

    return MarkdownWithMath(renderer=_renderer()(attachments)).render(text)


@cache
def _renderer():
    from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer

    class Renderer(IPythonRenderer):
        # In what a learner wrote, < arrives as &lt;.

        def __init__(self, attachments):
            super().__init__(escape=False, allow_harmful_protocols=False, attachments=attachments)

        def image(self, text, url, title=None):
            try:
                return super().image(text, url, title)
            except InvalidNotebook:  # the text names a picture that was not handed in with it
                return f"(the picture {html.escape(text or url)} is not in the notebook)"

        def inline_math(self, body):
            body = html.unescape(body)
            prices = body[:1].isspace() or body[-1:].isspace()  # "$5 and $6" is no formula
            return (None if prices else mathml(body)) or super().inline_math(body)

        def block_math(self, body):
            body = html.unescape(body)
            return mathml(body, block=True) or super().block_math(body)

        def latex_environment(self, name, body):
            body = html.unescape(body)
            whole = rf"\begin{{{name}}}{body}\end{{{name}}}"
            outer = name.rstrip("*") in ("align", "equation", "gather")
            drawn = mathml(body if outer else whole, block=True)
            return drawn or super().latex_environment(name, body)

    return Renderer


@pass_context
def _markdown_of_cell(context, text: str) -> str:
    return markdown(text, context.get("cell", {}).get("attachments"))


def _as_typed(text: str) -> str:
    return f"<pre>{html.escape(html.unescape(text))}</pre>"  # < arrives as &lt;


@cache
def _exporter(*, as_typed: bool):
    """nbconvert with nbgrader's template, made once in each process.

    as_typed: texts are shown as they were typed, not converted.
    """
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
    exporter.register_filter("markdown2html", _as_typed if as_typed else _markdown_of_cell)
    exporter.register_filter(
        "filter_data_type", WidgetsDataTypeFilter(notebook_metadata={}, parent=exporter)
    )
    return exporter
