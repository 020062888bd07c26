"""Drop the theme's Thebe scripts: they are loaded twice on every page and nothing here uses them.

Left in, each page logs a console error ("THEBE_JS_URL has already been declared").
"""


def _is_thebe(script):
    body = str(getattr(script, "attributes", {}).get("body", ""))
    return "THEBE_JS_URL" in body or "sphinx-thebe" in str(getattr(script, "filename", script))


def _drop(app, pagename, templatename, context, doctree):
    context["script_files"] = [s for s in context.get("script_files", []) if not _is_thebe(s)]


def setup(app):
    app.connect("html-page-context", _drop, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
