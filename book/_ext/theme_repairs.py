"""Small repairs of what the theme and Sphinx write into every page.

- The theme's Thebe scripts are loaded twice and used by nothing here; left in, every page logs a
  console error ("THEBE_JS_URL has already been declared").
- A folded cell says "Show code cell output" and is announced as "Toggle hidden content": without
  the label it is announced as what it says.
- The list of references is given the role of a list although its items have none.
"""

REPLACEMENTS = (
    ('<summary aria-label="Toggle hidden content">', "<summary>"),
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
)


def _is_thebe(script):
    body = str(getattr(script, "attributes", {}).get("body", ""))
    return "THEBE_JS_URL" in body or "sphinx-thebe" in str(getattr(script, "filename", script))


def _repair(app, pagename, templatename, context, doctree):
    context["script_files"] = [s for s in context.get("script_files", []) if not _is_thebe(s)]
    for wrong, right in REPLACEMENTS:
        if "body" in context:
            context["body"] = context["body"].replace(wrong, right)


def setup(app):
    app.connect("html-page-context", _repair, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
