"""One visual language for the whole book: what each colour means, and how a figure looks.

A quantity has one colour and one dash everywhere, in figures and in widgets:

    from inferlab.figures import figure, line, rule, si_axis

    fig, ax = figure()
    si_axis(ax, "x", "tokens", log=True, label="Prompt length")
    si_axis(ax, "y", "FLOP", log=True, label="Work of one prefill")
    line(ax, n, linear, "weights", "linear layers")       # labelled at its end, no legend
    line(ax, n, attention, "kv", "attention")
    rule(ax, x=6 * 4096, text="N = 6d")

The palette starts from Okabe and Ito's, which readers with any common colour vision can tell
apart, darkened until thin lines and small text keep a contrast of 4.5 to 1 on white. Warm means
arithmetic (compute, and prefill that it limits), cool means traffic (memory, and decode).

Figures are SVG on a white card, byte for byte the same at every build. In the book's dark mode the
page inverts their lightness and keeps their hues. matplotlib is loaded on first use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from inferlab.quantities import SI_PREFIXES, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2  # inches: the text column of the book


@dataclass(frozen=True)
class Role:
    """How one quantity looks: lines and words on light and dark ground, areas, dash in points."""

    light: str
    dark: str
    fill: str
    dash: tuple[float, ...] = ()


ROLES = {
    "compute": Role("#c04a00", "#ff8f50", "#d55e00"),
    "memory": Role("#0068a5", "#5bb3f0", "#0072b2"),
    "prefill": Role("#9a6a00", "#f0b43c", "#e69f00", (6, 2)),
    "decode": Role("#00779b", "#6ccdf5", "#56b4e9", (2, 1.6)),
    "weights": Role("#00795a", "#35c79c", "#009e73"),
    "kv": Role("#a8407f", "#ea94c6", "#cc79a7", (5, 1.6)),
    "activations": Role("#6f6a00", "#ded54a", "#d9cf3f", (1, 1.4)),
    "network": Role("#5a55b8", "#aca7f8", "#8580d6", (7, 2, 1.5, 2)),
    "total": Role("#1f2328", "#e9ecef", "#4b5563"),
    "muted": Role("#6b7280", "#9aa3ad", "#c3c9d1", (3, 3)),
}
"""Every quantity that the book draws. ``total`` is the ink of sums; ``muted`` is for guides."""


def colour(role: str, *, fill: bool = False) -> str:
    """The colour of a quantity on white, ``#rrggbb``: of lines and words, or of areas (`fill`)."""
    look = _role(role)
    return look.fill if fill else look.light


def _role(role: str) -> Role:
    if role not in ROLES:
        raise InputError(f"unknown role {role!r}: use one of {', '.join(ROLES)}")
    return ROLES[role]


def style() -> None:
    """Set matplotlib up for the book. `figure` does it for you."""
    import matplotlib

    _add_typeface()
    ink, muted = ROLES["total"].light, ROLES["muted"].light
    matplotlib.rcParams.update(
        {
            "figure.figsize": (WIDTH, 4.0),
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "svg.hashsalt": "inferlab",  # without it, ids differ at every build
            "svg.fonttype": "path",  # the same letters on every machine
            "font.family": ["Inter", "DejaVu Sans"],  # the second has Greek and the rarer signs
            "font.size": 10,
            "mathtext.fontset": "custom",
            "mathtext.rm": "Inter",
            "mathtext.it": "Inter:italic",
            "mathtext.bf": "Inter:bold",
            "mathtext.bfit": "Inter:bold",
            "mathtext.sf": "Inter",
            "mathtext.cal": "DejaVu Sans",
            "mathtext.tt": "DejaVu Sans Mono",
            "mathtext.fallback": "stixsans",
            "text.color": ink,
            "axes.edgecolor": muted,
            "axes.labelcolor": ink,
            "axes.labelsize": 10,
            "axes.linewidth": 0.8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.titlepad": 24,  # room for the name of the y axis
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": matplotlib.cycler(
                color=[r.light for name, r in ROLES.items() if name != "muted"]
            ),
            "grid.color": "#e3e6ea",
            "grid.linewidth": 0.7,
            "xtick.color": muted,
            "ytick.color": muted,
            "xtick.labelcolor": ink,
            "ytick.labelcolor": ink,
            "xtick.major.size": 3.5,
            "ytick.major.size": 0,
            "xtick.minor.size": 0,
            "ytick.minor.size": 0,
            "lines.linewidth": 2.0,
            "lines.solid_capstyle": "round",
            "lines.markersize": 7,
            "legend.frameon": False,
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside a notebook there is nothing to set
        return
    from IPython import get_ipython

    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


@cache
def _add_typeface() -> None:
    """Make Inter, which comes with the library, known to matplotlib."""
    from matplotlib import font_manager

    for file in sorted((Path(__file__).parent / "data" / "fonts").glob("*.ttf")):
        font_manager.fontManager.addfont(file)


def figure(rows: int = 1, columns: int = 1, *, height: float = 4.0, width: float = WIDTH, **kwargs):
    """A figure in the house style: ``(fig, ax)``, or ``(fig, array of axes)`` for several panels.

    `height` and `width` are in inches; further arguments go to ``matplotlib.pyplot.subplots``.
    """
    style()
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **kwargs)


def si_axis(ax: Axes, which: str, unit: str = "", *, log: bool = False, label: str = "") -> None:
    """Give axis `which` ("x" or "y") SI ticks (1k, 10M, ...), a label with its unit, log spacing.

    Call it before `line`, so that labels find their place.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis = _axis(ax, which)
    if log:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
        axis.set_major_locator(LogLocator(base=10, numticks=7))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: si_tick(value)))
    text = f"{label} ({unit})" if label and unit else label or unit
    if which == "x":
        ax.set_xlabel(text)
    else:  # read without turning the head: above the axis, not along it
        ax.annotate(text, (0, 1), xycoords="axes fraction", xytext=(0, 7),
                    textcoords="offset points", ha="left", va="bottom")  # fmt: skip


def log2_axis(ax: Axes, which: str, unit: str = "", *, label: str = "") -> None:
    """A log axis whose ticks are powers of two: batch sizes, numbers of GPUs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    si_axis(ax, which, unit, label=label)
    (ax.set_xscale if which == "x" else ax.set_yscale)("log", base=2)
    axis = _axis(ax, which)
    axis.set_major_locator(LogLocator(base=2, numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))


def _axis(ax: Axes, which: str):
    if which not in ("x", "y"):
        raise InputError(f"an axis is 'x' or 'y', not {which!r}")
    return ax.xaxis if which == "x" else ax.yaxis


def si_tick(value: float) -> str:
    """A tick in SI: 1500 -> "1.5k", 2e13 -> "20T", 0.001 -> "1m"."""
    if value == 0:
        return "0"
    power = 3 * math.floor(math.log10(abs(value) * (1 + 1e-12)) / 3)
    if power == -3 and abs(value) >= 0.01:  # 0.01 and 0.1 read better than 10m and 100m
        power = 0
    power = min(max(power, min(SI_PREFIXES)), max(SI_PREFIXES))
    return f"{value / 10.0**power:.4g}{SI_PREFIXES[power]}"


def line(
    ax: Axes,
    x,
    y,
    role: str,
    label: str = "",
    *,
    at: float | None = None,
    above: bool = True,
    **kwargs,
):
    """Draw a curve in the colour and dash of `role`, with its name written on it.

    The name stands at the right end, or above (below: ``above=False``) the point nearest x = `at`.
    Further arguments go to ``ax.plot``. Returns the ``Line2D``.
    """
    look = _role(role)
    kwargs.setdefault("color", look.light)
    if look.dash and "linestyle" not in kwargs and "ls" not in kwargs:
        kwargs["linestyle"] = (0, look.dash)
    (drawn,) = ax.plot(x, y, **kwargs)
    if label:
        xs, ys = list(drawn.get_xdata()), list(drawn.get_ydata())
        if at is None:
            text(ax, xs[-1], ys[-1], label, role, dx=6, ha="left", va="center")
        else:
            i = min(range(len(xs)), key=lambda i: abs(xs[i] - at))
            rise = float(ys[min(i + 1, len(ys) - 1)]) - float(ys[max(i - 1, 0)])
            # Off a slope, not across it.
            side = 0 if rise == 0 else 1 if (rise > 0) != above else -1
            ha = {0: "center", 1: "left", -1: "right"}[side]
            dy, va = (5, "bottom") if above else (-5, "top")
            text(ax, xs[i], ys[i], label, role, dx=5 * side, dy=dy, ha=ha, va=va)
    return drawn


def text(
    ax: Axes,
    x: float,
    y: float,
    words: str,
    role: str = "total",
    *,
    dx: float = 0,
    dy: float = 0,
    **kwargs,
):
    """Write `words` at a data point, moved by (dx, dy) points, in the colour of `role`."""
    import matplotlib.patheffects as effects

    halo = [effects.withStroke(linewidth=3, foreground="white")]
    return ax.annotate(
        words, (x, y), xytext=(dx, dy), textcoords="offset points", color=_role(role).light,
        path_effects=halo, annotation_clip=False, **{"fontsize": 10, **kwargs},
    )  # fmt: skip


def point(
    ax: Axes,
    x: float,
    y: float,
    role: str = "total",
    label: str = "",
    *,
    dx: float = 7,
    dy: float = 7,
    **kwargs,
):
    """Mark one point, ringed in white, with its name beside it."""
    (drawn,) = ax.plot(
        [x], [y], marker="o", color=_role(role).light, markeredgecolor="white",
        markeredgewidth=1.5, linestyle="none", zorder=5, clip_on=False,
    )  # fmt: skip
    if label:
        text(ax, x, y, label, role, dx=dx, dy=dy, **kwargs)
    return drawn


def rule(
    ax: Axes, *, x: float | None = None, y: float | None = None, text: str = "", role: str = "muted"
) -> None:
    """A thin guide across the axes at one x or one y, named at its top or right end."""
    if (x is None) == (y is None):
        raise InputError("a rule stands at one x or at one y: give exactly one of the two")
    look = _role(role)
    dash = (0, look.dash) if look.dash else "-"
    if x is not None:
        ax.axvline(x, color=look.light, linewidth=1, linestyle=dash, zorder=1)
        place = {"xy": (x, 1), "xycoords": ("data", "axes fraction"), "xytext": (4, -2)}
        align = {"ha": "left", "va": "top"}
    else:
        ax.axhline(y, color=look.light, linewidth=1, linestyle=dash, zorder=1)
        place = {"xy": (1, y), "xycoords": ("axes fraction", "data"), "xytext": (-2, 3)}
        align = {"ha": "right", "va": "bottom"}
    ax.annotate(text, textcoords="offset points", color=look.light, fontsize=9.5, **place, **align)


def bars(ax: Axes, names, values, roles, *, fmt="{:,.3g}") -> None:
    """Horizontal bars from top to bottom, each with its value written at its end.

    `roles` is one role or one for each bar; `fmt` a format string or a function of the value.
    """
    names, values = list(names), list(values)
    if isinstance(roles, str):
        roles = [roles] * len(names)
    show = fmt if callable(fmt) else fmt.format
    ax.barh(names, values, color=[_role(r).fill for r in roles], height=0.62)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    for i, value in enumerate(values):
        ax.annotate(show(value), (value, i), xytext=(4, 0), textcoords="offset points",
                    va="center", ha="left", annotation_clip=False)  # fmt: skip


def canvas(height: float = 3.0, width: float = WIDTH):
    """A figure without axes for drawings of boxes and arrows: coordinates run from 0 to 1."""
    fig, ax = figure(height=height, width=width)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    return fig, ax


def box(ax: Axes, x: float, y: float, words: str, role: str = "total", **kwargs):
    """Words in a rounded box around (x, y), framed in the colour of `role`."""
    frame = {"boxstyle": "round,pad=0.6", "facecolor": "white", "edgecolor": _role(role).light}
    look = {"ha": "center", "va": "center", "linespacing": 1.5, "color": _role(role).light}
    return ax.text(x, y, words, bbox=frame, **{**look, **kwargs})


def arrow(ax: Axes, start, end, role: str = "muted", words: str = "") -> None:
    """An arrow from one point to another, with words at its middle."""
    look = {"arrowstyle": "-|>", "color": _role(role).light, "shrinkA": 2, "shrinkB": 2}
    ax.annotate("", end, start, arrowprops=look)
    if words:
        middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
        text(ax, *middle, words, role, dy=4, ha="center", va="bottom")


def svg(fig: Figure) -> str:
    """The figure as SVG text, the same at every call; for tests and files outside notebooks."""
    import io

    out = io.StringIO()
    fig.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    return out.getvalue()
