"""What the shared controls do, on a widget of our own: dragging, gliding, playing, presets."""

import json

import pytest
import sympy

from inferlab.quantities import InputError
from inferlab.widgets.explorer import Explorer, Paste, Select, Slider, Toggle, sweep_stops

pytestmark = pytest.mark.needs("chromium")
x, y, doubled = sympy.symbols("x y doubled", positive=True)


class Sample(Explorer):
    """z = x y, doubled on request; presets move both sliders."""

    title = "A sample"

    @classmethod
    def controls(cls):
        return [
            Slider("x", "Across", 1, 1000, 10, "m", log=True),
            Slider("y", "Up", 0, 5, 2, play=0.05),
            Select("preset", "Preset", {"small": {"x": 10, "y": 2}, "large": {"x": 800, "y": 5}}, "small"),
            Toggle("doubled", "Doubled", False, help="Twice as much."),
        ]  # fmt: skip

    @classmethod
    def formulas(cls):
        return {"z": x * y * (1 + doubled)}

    @classmethod
    def view(cls):
        return """export const view = ({ v, f, along, format: { number } }) => ({
            sentence: `z is **${number(f.z(), 6)}**`,
            chart: {
                x: { label: "x", log: true, domain: [1, 1000], control: "x" },
                y: { label: "z", domain: [0, 10000] },
                lines: [{ role: "compute", name: "z", y: along("z", "x") }],
                points: [{ x: v.x, y: f.z(), role: "compute", text: "here" }],
            },
        });"""


@pytest.fixture
def sample(show):
    page = show(Sample()).page
    page.values = lambda: json.loads(page.locator(".il").get_attribute("data-values"))
    page.sentence = lambda: page.locator(".il-sentence").inner_text()
    return page


def test_a_preset_moves_its_sliders_and_a_moved_slider_is_custom(sample):
    sample.get_by_label("Preset").select_option("large")
    assert sample.values() == {"x": 800, "y": 5, "preset": "large", "doubled": False}
    assert sample.sentence() == "z is 4,000"
    sample.get_by_label("Across").press("ArrowLeft")
    assert sample.get_by_label("Preset").input_value() == "custom"
    sample.get_by_label("Preset").select_option("small")
    assert sample.values()["x"] == 10


def test_a_preset_chosen_in_python_moves_its_sliders_too():
    assert Sample(preset="large").values["x"] == 800
    assert Sample(preset="large", x=20).compute("z") == 100
    assert Sample(preset="large").compute("z") == 4000


def test_a_toggle_is_one_or_zero(sample):
    sample.get_by_label("Doubled").press("Space")
    assert sample.sentence() == "z is 40"
    assert sample.get_by_role("switch").get_attribute("aria-describedby")


def test_dragging_in_the_chart_moves_the_slider(sample):
    chart = sample.locator(".il-chart > svg")
    box = chart.bounding_box()
    sample.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.5)
    sample.mouse.down()
    low = sample.values()["x"]
    sample.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.5)
    sample.mouse.up()
    high = sample.values()["x"]
    sample.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + box["height"] * 0.5)
    assert 1 < low < 20 < 100 < high < 1000
    assert sample.values()["x"] == high, "a pointer that is not pressed moves nothing"


def test_the_player_walks_to_the_end_and_can_be_paused(sample):
    sample.get_by_role("button", name="Next").click()
    assert sample.values()["y"] == 3
    sample.get_by_role("button", name="back").click()
    assert sample.values()["y"] == 2
    sample.get_by_role("button", name="Play").click()
    sample.wait_for_function("JSON.parse(document.querySelector('.il').dataset.values).y === 5")
    assert sample.get_by_role("button", name="Play").count() == 1, "it stopped at the end"
    sample.get_by_role("button", name="Play").click()
    sample.get_by_role("button", name="Pause").click()
    stopped = sample.values()["y"]
    sample.wait_for_timeout(200)
    assert sample.values()["y"] == stopped


def test_a_change_glides_and_ends_exactly(chromium, tmp_path):
    from show_widget import page as page_text

    file = tmp_path / "glide.html"
    file.write_text(page_text([Sample()]), "utf-8")
    page = chromium.new_page(reduced_motion="no-preference")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-widgets=ready]")
    path = page.evaluate(
        """async () => {
            const seen = [], select = document.querySelector(".il select");
            const at = () => Number(document.querySelector(".il-point").getAttribute("cx"));
            select.value = "large";
            select.dispatchEvent(new Event("change"));
            for (let i = 0; i < 60; i += 1) {
                await new Promise(requestAnimationFrame);
                seen.push(at());
            }
            return seen;
        }"""
    )
    assert path == sorted(path)
    assert len(set(path)) > 4, "it moved there, and did not jump"
    assert page.locator(".il-sentence").inner_text() == "z is 4,000"
    page.close()


def test_two_copies_of_the_scripts_give_different_ids(visit):
    from inferlab.widgets.explorer import shared_scripts
    from show_widget import page as page_text

    first, second = Sample(), Sample()
    for i, widget in enumerate((first, second)):
        widget._esm = f"{shared_scripts()}{widget._esm}\n// {i}"  # as in JupyterLab
    page = visit(page_text([first, second])).page
    ids = page.evaluate("[...document.querySelectorAll('.il [id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids)) > 8


def test_sweeps_hold_both_ends_and_the_present_value():
    stops = sweep_stops(Slider("n", "n", 1, 4096, 37, log=True), 37)
    assert stops[0] == 1 and stops[-1] == 4096 and 37 in stops
    assert sweep_stops(Slider("n", "n", 0, 1, 0.5, integer=False, step=0.1), 0.5)[:2] == [0, 0.2]
    assert sweep_stops(Slider("n", "n", 1, 9, 3, stops=(1, 3, 9)), 3) == [1, 3, 9]


def test_a_class_that_contradicts_itself_is_refused():
    class Twice(Sample):
        @classmethod
        def controls(cls):
            return [Slider("x", "a", 1, 2, 1), Slider("x", "b", 1, 2, 1)]

        @classmethod
        def formulas(cls):
            return {}

    with pytest.raises(InputError, match="two controls of one name"):
        Twice()

    class Outside(Sample):
        @classmethod
        def controls(cls):
            return [Slider("x", "a", 1, 2, 3)]

        @classmethod
        def formulas(cls):
            return {}

    with pytest.raises(InputError, match="expected a number from 1 to 2"):
        Outside()


def test_a_formula_without_its_value_is_named():
    class Missing(Sample):
        @classmethod
        def formulas(cls):
            return {"z": x * sympy.Symbol("q")}

    with pytest.raises(InputError, match="z needs q"):
        Missing()


class Pasted(Explorer):
    """z = x y, where a text such as "3 4" stands in for the choice."""

    title = "A sample with a box"

    @classmethod
    def controls(cls):
        return [
            Select("size", "Size", {"small": {"x": 1, "y": 2}, "large": {"x": 8, "y": 9}}, "small"),
            Paste("own", "Paste two numbers", over="size", help="Such as 3 4."),
        ]

    @classmethod
    def formulas(cls):
        return {"z": x * y}

    @classmethod
    def view(cls):
        return """export const read = (text) => {
            const [x, y] = text.split(" ").map(Number);
            if (!(x > 0 && y > 0)) throw new Error(`${text} are not two numbers.`);
            return { name: `my ${text}`, x, y };
        };
        export const view = ({ v, f }) => ({ sentence: `${v.size}: z is **${f.z()}**` });"""


@pytest.fixture
def pasted(show):
    page = show(Pasted()).page
    page.values = lambda: json.loads(page.locator(".il").get_attribute("data-values"))
    page.sentence = lambda: page.locator(".il-sentence").inner_text()
    page.said = lambda: page.get_by_role("status").inner_text()
    page.get_by_text("Paste two numbers").click()
    page.box = page.get_by_role("textbox", name="Paste two numbers")
    return page


def test_a_pasted_text_stands_in_for_the_choice_until_one_is_chosen(pasted):
    pasted.box.fill("3 4")
    assert pasted.sentence() == "my 3 4: z is 12"
    assert pasted.said() == "Read: my 3 4."
    assert pasted.locator("select option:checked").inner_text() == "my 3 4"
    assert pasted.values() == {"size": "small", "own": {"name": "my 3 4", "x": 3, "y": 4}}
    pasted.get_by_label("Size").select_option("small")
    assert pasted.sentence() == "small: z is 2"
    assert pasted.values() == {"size": "small", "own": None}
    assert pasted.box.input_value() == ""


def test_a_text_that_cannot_be_read_says_why_and_changes_nothing(pasted):
    pasted.box.fill("3 x")
    assert pasted.said() == "3 x are not two numbers."
    assert pasted.box.get_attribute("aria-invalid") is not None
    assert pasted.sentence() == "small: z is 2"
    pasted.box.fill("3 5")
    assert pasted.box.get_attribute("aria-invalid") is None
    assert pasted.sentence() == "my 3 5: z is 15"
    pasted.box.fill("")
    assert (pasted.said(), pasted.sentence()) == ("", "small: z is 2")


def test_reset_empties_the_box(pasted):
    pasted.box.fill("x")
    pasted.get_by_role("button", name="Reset").click()
    assert (pasted.said(), pasted.box.input_value()) == ("", "")


def test_a_pasted_value_is_checked_in_python_too():
    mine = {"name": "mine", "x": 3, "y": 4}
    widget = Pasted(own=mine)
    assert widget.compute("z") == 12
    assert "Size mine" in widget.fallback
    with pytest.raises(InputError, match="own has x None: expected a number"):
        Pasted(own=mine | {"x": None})
    with pytest.raises(InputError, match="expected None, or a name with numbers"):
        Pasted(own={"x": 3})
