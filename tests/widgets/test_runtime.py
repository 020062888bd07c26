"""The script that runs widgets without a kernel, held to what anywidget promises a module."""

import base64
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "book" / "_static" / "anywidget-static.js"
KIND = "application/vnd.jupyter.widget-"
pytestmark = pytest.mark.needs("chromium")


def page_with(models, views):
    """A page as myst-nb writes it: {id: (module, state)} and the ids shown, in order."""
    state = {
        name: {"model_module": "anywidget", "state": {"_esm": module, **values}}
        for name, (module, values) in models.items()
    }
    shown = "".join(
        f'<script type="{KIND}view+json">{{"model_id": "{name}"}}</script>'
        f'<div class="widget-fallback">table of {name}</div>'
        for name in views
    )
    content = json.dumps({"state": state}).replace("<", "\\u003c")
    return (
        f'<!doctype html><script src="{RUNTIME.as_uri()}" defer></script><body>{shown}'
        f'<script type="{KIND}state+json">{content}</script>'
    )


COUNTER = """
globalThis.loads = (globalThis.loads ?? 0) + 1;
export default {
  initialize({ model }) { model.set("starts", (model.get("starts") ?? 0) + 1); },
  render({ model, el }) {
    const button = document.createElement("button");
    const write = () => { button.textContent = `n=${model.get("n")} starts=${model.get("starts")}`; };
    model.on("change:n", write);
    button.onclick = () => { model.set("n", model.get("n") + 1); model.save_changes(); };
    write();
    el.append(button);
  },
};
"""


def test_views_of_one_model_share_it_and_instances_do_not(visit):
    opened = visit(page_with({"a": (COUNTER, {"n": 1}), "b": (COUNTER, {"n": 5})}, "aab"))
    buttons = opened.page.locator("button")
    buttons.first.click()
    assert buttons.all_inner_texts() == ["n=2 starts=1", "n=2 starts=1", "n=5 starts=1"]
    assert opened.page.evaluate("loads") == 1, "one module text is evaluated once"
    assert opened.page.locator(".widget-fallback").count() == 0
    assert opened.page.locator(".anywidget-static[data-ready=true]").count() == 3
    assert opened.errors == []


def test_events_can_be_left_and_several_values_set_at_once(visit):
    module = """export default { render({ model, el }) {
        const log = [], note = () => log.push("a");
        model.on("change:a change:b", note);
        model.on("change", () => log.push("any"));
        model.set({ a: 1, b: 2 });
        model.set("a", 1);
        model.off("change:a", note);
        model.set("a", 3);
        model.off();
        model.set("b", 9);
        el.textContent = log.join(" ");
    } };"""
    opened = visit(page_with({"w": (module, {"a": 0, "b": 0})}, "w"))
    assert opened.page.locator(".anywidget-static").inner_text() == "a a any any"
    assert opened.errors == []


def test_styles_factories_and_bytes(visit):
    module = """export default async () => ({ async render({ model, el }) {
        el.className = "mine";
        el.textContent = [...new Uint8Array(model.get("data").points.buffer)].join(",");
    } });"""
    html = page_with({"w": (module, {"_css": ".mine { color: rgb(1, 2, 3) }", "data": {}})}, "w")
    data = base64.b64encode(bytes([7, 8, 255])).decode()
    buffers = json.dumps([{"path": ["data", "points"], "encoding": "base64", "data": data}])
    html = html.replace('"model_module": "anywidget"', f'"model_module": "anywidget", "buffers": {buffers}')  # fmt: skip
    opened = visit(html)
    mine = opened.page.locator(".mine")
    assert mine.inner_text() == "7,8,255"
    assert mine.evaluate("el => getComputedStyle(el).color") == "rgb(1, 2, 3)"
    assert opened.errors == []


def test_a_widget_that_fails_leaves_its_table_and_the_others(visit):
    broken = "export default { render() { throw new Error('broken on purpose'); } };"
    opened = visit(page_with({"x": (broken, {}), "y": (COUNTER, {"n": 1})}, "xy"))
    assert opened.page.locator(".widget-fallback").all_inner_texts() == ["table of x"]
    assert opened.page.locator(".anywidget-static[data-ready=true]").count() == 1
    assert [e for e in opened.errors if "broken on purpose" in e] == opened.errors != []


def test_a_widget_that_needs_python_says_so(visit):
    html = page_with({"w": (COUNTER, {"n": 1})}, "w")
    html = html.replace('"anywidget", "state"', '"@jupyter-widgets/controls", "state"')
    html = html.replace('<div class="widget-fallback">table of w</div>', "")
    opened = visit(html)
    assert "needs a running kernel" in opened.page.locator(".anywidget-static").inner_text()
