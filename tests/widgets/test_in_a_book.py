"""Widgets on a page that jupyter-book built: no kernel, no network, shared scripts once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from inferlab.quantities import format_si

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("chromium")

CELLS = [
    "from inferlab.widgets import KVGrowth, PrefillFlops\n\nPrefillFlops()",
    "PrefillFlops(N=1500)",
    "KVGrowth()",
]


@pytest.fixture(scope="module")
def book_page(tmp_path_factory):
    """One page with three widgets, two of them of one class."""
    source = tmp_path_factory.mktemp("book")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Widgets")]
        + [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    )
    nbformat.write(notebook, source / "page.ipynb")
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    extensions = config["sphinx"]["local_extensions"]
    config["sphinx"]["local_extensions"] = {name: str(ROOT / at) for name, at in extensions.items()}
    config["sphinx"]["config"]["html_static_path"] = [str(ROOT / "book" / "_static")]
    config["html"]["favicon"] = str(ROOT / config["html"]["favicon"])
    del config["bibtex_bibfiles"], config["sphinx"]["config"]["bibtex_reference_style"]
    (source / "_config.yml").write_text(yaml.safe_dump(config), "utf-8")
    (source / "_toc.yml").write_text("format: jb-book\nroot: page\n", "utf-8")
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        source,
        "-W",
        "--keep-going",
    ]
    environment = {k: v for k, v in os.environ.items() if k != "INFERLAB_WIDGETS"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return source / "_build" / "html" / "page.html"


def opened(chromium, path, **options):
    context = chromium.new_context(reduced_motion="reduce", **options)
    context.set_offline(True)
    page = context.new_page()
    page.problems = []
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("requestfailed", lambda request: page.problems.append(request.url))
    page.goto(path.as_uri())
    return page


def test_the_page_carries_what_widgets_share_once(book_page):
    html = book_page.read_text("utf-8")
    for script in ("d3.js", "explorer.js", "anywidget-static.js"):
        assert len(re.findall(rf'src="[^"]*_static/{script}', html)) == 1
    assert "https://cdn" not in html and "unpkg" not in html
    state = re.search(r'widget-state\+json"[^>]*>(.*?)</script>', html, re.DOTALL)[1]
    modules = [
        w["state"]["_esm"] for w in json.loads(state)["state"].values() if "_esm" in w["state"]
    ]
    assert len(modules) == 3
    assert len(set(modules)) == 2
    assert max(map(len, modules)) < 8000
    assert '"fallback"' not in state


def test_a_key_gives_the_number_that_python_gives(book_page, chromium):
    from inferlab.widgets import KVGrowth, PrefillFlops

    page = opened(chromium, book_page)
    page.wait_for_selector("html[data-widgets=ready]")
    first, second, third = page.locator(".il").all()
    for widget, python in ((first, PrefillFlops()), (second, PrefillFlops(N=1500))):
        assert (
            format_si(python.compute("total"), "FLOP")
            in widget.locator(".il-sentence").inner_text()
        )
        slider = widget.locator("input[type=range]").first
        slider.focus()
        page.keyboard.press("PageUp")
        moved = json.loads(widget.get_attribute("data-values"))["N"]
        assert moved > python.values["N"]
        after = format_si(python.compute("total", N=moved), "FLOP")
        assert after in widget.locator(".il-sentence").inner_text()
        assert after in widget.locator(".il-chart > svg").first.get_attribute("aria-label")
    third.locator("select").nth(1).select_option("H100-SXM")
    fit = KVGrowth(machine="H100-SXM").compute("fit")
    assert f"{fit} sequences" in third.locator(".il-sentence").inner_text()
    assert page.locator(".widget-fallback").count() == 0
    assert page.problems == []
    page.context.close()


def test_tables_stand_in_without_scripts(book_page, chromium):
    page = opened(chromium, book_page, java_script_enabled=False)
    tables = page.locator(".widget-fallback table")
    assert tables.count() == 3
    assert "43.37 TFLOP" in tables.first.inner_text()
    page.context.close()
