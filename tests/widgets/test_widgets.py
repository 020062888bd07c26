"""Every widget: the same numbers as Python, and a page that works for everyone."""

import csv
import json
import math
import random
import re
from pathlib import Path

import pytest

from inferlab import widgets
from inferlab.quantities import InputError
from inferlab.widgets.explorer import Explorer

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "tests" / "site" / "vendor" / "axe-core" / "axe.min.js"
NAMES = list(widgets.__all__)
pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(params=NAMES)
def widget(request) -> Explorer:
    return getattr(widgets, request.param)()


def written(widget):
    """The class as its author wrote it."""
    return type(widget).explorer()


def random_settings(widget, count=60):
    """Settings anywhere in the controls' ranges, ends included, the same at every run."""
    rng = random.Random(written(widget).__name__)
    controls = written(widget)._controls()

    def pick(control):
        if control.kind == "select":
            return rng.choice(list(control.options))
        if control.kind == "toggle":
            return rng.random() < 0.5
        if control.kind == "paste":
            numbers = rng.choice(list(controls[control.over].options.values()))
            return rng.choice([None, {"name": "a model of mine", **numbers}])
        if control.stops:
            return rng.choice(control.stops)
        if rng.random() < 0.2:
            return rng.choice([control.low, control.high])
        if control.log:
            value = control.low * (control.high / control.low) ** rng.random()
        else:
            value = rng.uniform(control.low, control.high)
        return round(value) if control.integer else value

    return [{name: pick(control) for name, control in controls.items()} for _ in range(count)]


def running_variables(widget):
    """Names that a formula uses and no control gives: the x of a curve."""
    names = {name for f in written(widget)._formulas() for name in written(widget)._compiled(f)[0]}
    return sorted(names - widget.environment().keys())


def test_formulas_agree_with_python_at_random_settings(widget, javascript):
    settings = random_settings(widget)
    rng = random.Random(0)
    extra = [{name: rng.uniform(1, 1000) for name in running_variables(widget)} for _ in settings]
    controls = json.loads(json.dumps(widget.spec["controls"]))
    theirs = javascript(
        f"""([controls, settings, extra]) => {{
            const formulas = {written(widget).functions()};
            return settings.map((values, i) => {{
                const v = {{ ...inferlab.environment(controls, values), ...extra[i] }};
                return Object.fromEntries(Object.entries(formulas).map(([k, f]) => [k, String(f(v))]));
            }});
        }}""",
        [controls, settings, extra],
    )
    for values, more, results in zip(settings, extra, theirs, strict=True):
        widget.values = values
        ours = {name: float(widget.compute(name, **more)) for name in written(widget)._formulas()}
        results = {name: float(result) for name, result in results.items()}
        assert results == pytest.approx(ours, rel=1e-9, nan_ok=True), values


def test_views_say_something_at_random_settings(widget, javascript):
    scenes = javascript(
        """async ([controls, settings, data, module]) => {
            const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
            const { default: made } = await import(url);
            return settings.map((values) => {
                const seen = inferlab.scene(made, inferlab.environment(controls, values), data);
                return JSON.stringify(seen);
            });
        }""",
        [widget.spec["controls"], random_settings(widget), widget.spec["data"], widget._esm],
    )
    for scene in scenes:
        assert json.loads(scene)["sentence"]
        assert not re.search(r"NaN|undefined|\[object|–", scene), scene


def start_rows():
    """Rows of independent.csv that say what a widget shows at its start."""
    with open(ROOT / "tests" / "independent.csv", encoding="utf-8", newline="") as lines:
        return {row["id"] for row in csv.DictReader(lines) if row["id"].startswith("widget-")}


def test_starts_at_values_from_outside(widget, independent):
    stem = "widget-" + re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", written(widget).__name__).lower() + "-"  # fmt: skip
    checked = [i for i in start_rows() if i.startswith(stem)]
    assert checked, f"no row {stem}... in tests/independent.csv holds this widget to anything"
    for identifier in checked:
        independent(identifier).check(
            widget.compute(identifier.removeprefix(stem).replace("-", "_"))
        )


def test_a_key_moves_each_slider_and_the_result_follows(widget, show):
    visit = show(widget)
    page = visit.page
    for slider in page.locator(".il input[type=range]").all():
        name = slider.get_attribute("data-name")
        before = page.locator(".il").get_attribute("data-values")
        at_end = slider.evaluate("input => input.value === input.max")
        slider.focus()
        page.keyboard.press("PageDown" if at_end else "PageUp")
        after = json.loads(page.locator(".il").get_attribute("data-values"))
        assert after[name] != json.loads(before)[name]
        output = page.locator(f"output[for={slider.get_attribute('id')}]").inner_text()
        assert output == slider.get_attribute("aria-valuetext") != ""
    assert visit.errors == []


def test_reset_returns_to_the_start(widget, show):
    page = show(widget).page
    start = page.locator(".il").get_attribute("data-values")
    sentence = page.locator(".il-sentence").inner_text()
    for select in page.locator(".il select").all():
        options = select.locator("option:not([disabled])").all()
        select.select_option(options[-1].get_attribute("value"))
    for slider in page.locator(".il input[type=range]").all():
        slider.press("Home")
        slider.press("End")
    page.locator(".il-reset").click()
    assert json.loads(page.locator(".il").get_attribute("data-values")) == json.loads(start)
    assert page.locator(".il-sentence").inner_text() == sentence


def test_fits_a_phone(widget, show):
    # At its start and anywhere else, all on one page.
    others = [written(widget)(**setting) for setting in random_settings(widget, 6)]
    visit = show(widget, *others, width=360)
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".il-chart > svg")].flatMap((svg) => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].filter((text) => {
                const own = text.getBoundingClientRect();
                return own.width && (own.left < box.left - 8 || own.right > box.right + 8 || own.top < box.top - 4 || own.bottom > box.bottom + 4);
            }).map((text) => text.textContent);
        })"""
    )  # fmt: skip
    assert outside == []
    assert visit.errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible(widget, show, theme):
    visit = show(widget, theme=theme)
    page = visit.page
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("() => axe.run('.il').then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")  # fmt: skip
    assert found == []
    for chart in page.locator(".il-chart > svg:visible").all():
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 20
    assert page.locator(".il-sentence").get_attribute("aria-live") == "polite"
    assert visit.errors == []


def test_a_table_stands_in_without_scripts(widget, visit):
    from show_widget import page as page_text

    page = visit(page_text([widget]), java_script_enabled=False, ready=False).page
    assert page.locator(".widget-fallback table").count() == 1
    caption = page.locator(".widget-fallback caption").inner_text()
    assert caption.startswith(written(widget).title)
    assert page.locator(".widget-fallback tbody tr").count() >= 1
    assert not re.search("nan|undefined", page.locator(".widget-fallback").inner_text(), re.I)


def test_the_module_is_the_same_for_every_instance(widget):
    assert type(widget)._esm is not None
    assert written(widget)()._esm == widget._esm
    assert "scaleLog" not in widget._esm, "d3 is on the page, not in the widget"


def test_refuses_what_a_control_cannot_take(widget):
    with pytest.raises(InputError, match="has no control"):
        written(widget)(no_such_control=1)
    for name, control in written(widget)._controls().items():
        wrong = {"slider": math.inf, "select": "no such option", "toggle": 2, "paste": 2}[control.kind]  # fmt: skip
        with pytest.raises(InputError, match=name):
            written(widget)(**{name: wrong})
