"""Put widgets on published pages: shared scripts once a page, a table where scripts are off.

The notebooks of a build run with INFERLAB_WIDGETS=page, so each widget's module leaves out what all
widgets share. Here the page gets those scripts, before the runtime that starts the widgets; and the
table that each widget carries (its trait `fallback`) is written into the page, where the runtime
takes it away once the widget stands. The models' random ids become numbers in the order of the page,
so that two builds of one commit are equal.
"""

import json
import os
import re

from inferlab.widgets.explorer import PAGE, SHARED, STATIC

RUNTIME = "anywidget-static.js"

_STATE_TYPE = "application/vnd.jupyter.widget-state+json"
_VIEW = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-view\+json">(.*?)</script>', re.DOTALL
)


def _configure(app, config):
    config.html_static_path.append(str(STATIC))
    deferred = {"defer": "defer"}
    config.nb_ipywidgets_js = {name: deferred for name in (*SHARED, RUNTIME)}


def _rename(text, names):
    """Replace each random id by its name."""
    return re.sub("|".join(names), lambda match: names[match[0]], text)


def _take_tables(content):
    """Take each widget's table out of the state that myst-nb embeds: {model id: table}."""
    return {
        name: widget["state"].pop("fallback")
        for name, widget in content["state"].items()
        if widget.get("state", {}).get("fallback")
    }


def _prepare_widgets(app, pagename, templatename, context, doctree):
    for script in context.get("script_files", []):
        if getattr(script, "attributes", {}).get("type") == _STATE_TYPE:
            break
    else:
        return
    content = json.loads(script.attributes["body"])
    tables = _take_tables(content)

    def with_table(match):
        table = tables.get(json.loads(match[1]).get("model_id"))
        return match[0] + (f'<div class="widget-fallback">{table}</div>' if table else "")

    names = {name: f"widget-{i}" for i, name in enumerate(content["state"], start=1)}
    # "<" inside the JSON must not end the script element early.
    state = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    script.attributes["body"] = _rename(state, names)
    context["body"] = _rename(_VIEW.sub(with_table, context["body"]), names)


def setup(app):
    os.environ["INFERLAB_WIDGETS"] = PAGE  # the kernels that run the notebooks inherit it
    app.add_css_file("figures.css")
    app.connect("config-inited", _configure, priority=100)  # before myst-nb reads its settings
    app.connect("html-page-context", _prepare_widgets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
