"""Widgets in a browser that reaches nothing: pages are files, and no request leaves the machine."""

from dataclasses import dataclass, field

import pytest

from show_widget import page as page_text


@pytest.fixture(autouse=True)
def as_on_a_page(monkeypatch):
    """Modules without the shared scripts, as in a build of the book."""
    monkeypatch.setenv("INFERLAB_WIDGETS", "page")


@dataclass
class Visit:
    """A page, and everything that went wrong on it."""

    page: object
    errors: list = field(default_factory=list)


@pytest.fixture
def visit(chromium, tmp_path):
    """visit(html, width=..., scripts=...) opens a page of its own; visit.errors must stay empty."""
    contexts = []

    def open_page(html, width=800, ready=True, **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 700}, reduced_motion="reduce", **options
        )
        contexts.append(context)
        context.set_offline(True)
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, "utf-8")
        visit = Visit(context.new_page())
        visit.page.on(
            "console", lambda m: visit.errors.append(m.text) if m.type == "error" else None
        )
        visit.page.on("pageerror", lambda error: visit.errors.append(str(error)))
        visit.page.on("requestfailed", lambda request: visit.errors.append(request.url))
        visit.page.goto(file.as_uri())
        if ready:
            visit.page.wait_for_selector("html[data-widgets=ready]")
        return visit

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def show(visit):
    """show(widget, ..., theme="dark", width=360) opens a page with these widgets."""

    def show(*widgets, theme="light", **options):
        return visit(page_text(widgets, theme), **options)

    return show


@pytest.fixture(scope="session")
def javascript(chromium):
    """javascript(source, argument): what a page with the shared scripts makes of a function."""
    from inferlab.widgets.explorer import shared_scripts

    page = chromium.new_page()
    page.add_script_tag(content=shared_scripts())
    yield page.evaluate
    page.close()
