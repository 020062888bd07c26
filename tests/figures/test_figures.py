"""The house style: reproducible, legible, and one look for each quantity."""

import re
import subprocess
import sys

import matplotlib
import pytest

matplotlib.use("agg")
import matplotlib.pyplot as plt

from inferlab import figures
from inferlab.quantities import InputError


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("role", figures.ROLES)
def test_words_and_lines_can_be_read_on_both_grounds(role):
    look = figures.ROLES[role]
    assert contrast(look.light, "#ffffff") >= 4.5
    assert contrast(look.dark, "#14181e") >= 4.5


# Protanopia, deuteranopia and tritanopia at full strength: Machado, Oliveira and Fernandes (2009).
DEFICIENCIES = {
    "protan": (
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ),
    "deutan": (
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ),
    "tritan": (
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ),
}  # fmt: skip
SIDE_BY_SIDE = [
    ("compute", "memory"),
    ("prefill", "decode"),
    ("weights", "kv"),
    ("compute", "weights"),
]


@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("pair", SIDE_BY_SIDE, ids="-".join)
@pytest.mark.parametrize("kind", DEFICIENCIES)
def test_quantities_drawn_side_by_side_differ_for_every_eye(kind, pair, ground):
    def seen(role):
        colour = getattr(figures.ROLES[role], ground)
        rgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        return [sum(m * c for m, c in zip(row, rgb, strict=True)) for row in DEFICIENCIES[kind]]

    a, b = map(seen, pair)
    distance = sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5
    assert distance > 0.12 or figures.ROLES[pair[0]].dash != figures.ROLES[pair[1]].dash


def test_two_drawings_are_byte_for_byte_equal():
    def draw():
        fig, ax = figures.figure()
        figures.si_axis(ax, "x", "tokens", log=True, label="Prompt")
        figures.si_axis(ax, "y", "FLOP", log=True, label="Work")
        figures.line(ax, [1, 10, 100], [1e9, 1e10, 1e12], "weights", "linear layers")
        figures.point(ax, 10, 1e10, "prefill", "here")
        figures.rule(ax, x=20, text="N = 6d")
        return figures.svg(fig)

    first, second = draw(), draw()
    assert first == second
    assert "<dc:date>" not in first


def test_letters_are_the_same_on_every_machine():
    from matplotlib import font_manager

    figures.style()
    for weight in ("normal", "bold"):
        wanted = font_manager.FontProperties(family=["Inter"], weight=weight)
        found = font_manager.findfont(wanted, fallback_to_default=False)
        assert "inferlab/data/fonts/Inter-" in found.replace("\\", "/")
        assert ("Bold" in found) == (weight == "bold")


@pytest.mark.needs("npm")
def test_the_typeface_is_what_its_package_makes():
    import fonts

    for name, data in fonts.make().items():
        assert (fonts.FOLDER / name).read_bytes() == data


def test_ticks_are_si():
    assert [figures.si_tick(v) for v in (0, 1, 0.01, 0.001, 1500, 1e6, 2e13, 1e-6, -3e9)] == [
        "0", "1", "0.01", "1m", "1.5k", "1M", "20T", "1µ", "-3G",
    ]  # fmt: skip


def test_a_line_is_named_in_its_own_colour_and_dash():
    _, ax = figures.figure()
    drawn = figures.line(ax, [1, 2], [3, 4], "kv", "KV cache")
    assert drawn.get_color() == figures.colour("kv")
    assert drawn.is_dashed()
    (label,) = ax.texts
    assert (label.get_text(), label.get_color()) == ("KV cache", figures.colour("kv"))


def test_bars_carry_their_values():
    _, ax = figures.figure()
    figures.bars(ax, ["a", "b"], [1.5, 2], "memory", fmt="{:.1f} s")
    assert [t.get_text() for t in ax.texts] == ["1.5 s", "2.0 s"]


def test_powers_of_two():
    fig, ax = figures.figure()
    figures.log2_axis(ax, "x", label="Batch")
    ax.set_xlim(1, 256)
    fig.canvas.draw()
    shown = [t.get_text() for t in ax.get_xticklabels()]
    assert {"1", "16", "256"} <= set(shown)


def test_drawings_of_boxes_and_arrows():
    fig, ax = figures.canvas(2)
    figures.box(ax, 0.2, 0.5, "compare", "memory")
    figures.arrow(ax, (0.3, 0.5), (0.7, 0.5), words="yes")
    assert ax.get_xlim() == (0, 1)
    assert [t.get_text() for t in ax.texts] == ["compare", "", "yes"]
    assert ax.texts[0].get_color() == figures.colour("memory")
    assert figures.svg(fig) == figures.svg(fig)


def test_what_does_not_exist_is_refused():
    _, ax = figures.figure()
    with pytest.raises(InputError, match="unknown role 'weight'"):
        figures.line(ax, [1], [1], "weight")
    with pytest.raises(InputError, match="an axis is"):
        figures.si_axis(ax, "z")
    with pytest.raises(InputError, match="exactly one"):
        figures.rule(ax)


def test_the_palette_costs_no_matplotlib():
    code = (
        "import sys, inferlab.figures as f; f.colour('kv'); assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_colour_is_a_colour():
    for look in figures.ROLES.values():
        assert all(re.fullmatch("#[0-9a-f]{6}", c) for c in (look.light, look.dark, look.fill))
