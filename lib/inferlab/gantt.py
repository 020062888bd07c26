"""Gantt charts of a simulated engine: who did what, when (chapters 5, 10 and 12).

    from inferlab.gantt import gantt, stacked

    fig, ax = figure(height=2.6)
    gantt(ax, result.spans)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferlab.figures import colour
from inferlab.quantities import InputError, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASE_ROLES = {
    "queue": "total",
    "prefill": "prefill",
    "transfer": "network",
    "decode": "decode",
    "tool": "muted",
}
"""The colour of each phase: waiting is dark, waiting for something outside the engine is pale."""

PHASE_NAMES = {
    "queue": "waits in the queue",
    "prefill": "prefill",
    "transfer": "KV transfer",
    "decode": "decode",
    "tool": "tool or network",
}


def gantt(ax: Axes, spans, rows=None) -> None:
    """One bar a span, one row a request, in order of arrival or in the order of `rows`.

    Above the first row stand the names of the phases that occur, in their colours.
    """
    spans = list(spans)
    if not spans:
        raise InputError("there are no spans to draw: give the `spans` of a result")
    rows = list(dict.fromkeys(span.request for span in spans)) if rows is None else list(rows)
    for span in spans:
        if span.request in rows:
            ax.barh(
                rows.index(span.request), span.end - span.start, left=span.start, height=0.56,
                color=colour(PHASE_ROLES[span.phase], fill=True), edgecolor="white", linewidth=0.6,
            )  # fmt: skip
    ax.set_yticks(range(len(rows)), [str(row) for row in rows])
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("seconds")
    _names(ax, [phase for phase in PHASE_ROLES if any(span.phase == phase for span in spans)])


def stacked(ax: Axes, bars) -> None:
    """Seconds by phase as one horizontal bar a case: `bars` maps a name to `seconds_by_phase()`.

    The total stands at the end of each bar.
    """
    shown = [phase for phase in PHASE_ROLES if any(times.get(phase, 0) > 0 for times in bars.values())]
    for row, times in enumerate(bars.values()):
        left = 0.0
        for phase in shown:
            ax.barh(
                row, times.get(phase, 0), left=left, height=0.56,
                color=colour(PHASE_ROLES[phase], fill=True), edgecolor="white", linewidth=0.6,
            )  # fmt: skip
            left += times.get(phase, 0)
        ax.annotate(format_duration(left), (left, row), xytext=(4, 0), textcoords="offset points",
                    va="center", annotation_clip=False)  # fmt: skip
    ax.set_yticks(range(len(bars)), list(bars))
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("seconds")
    _names(ax, shown)


def _names(ax: Axes, phases) -> None:
    """The phases' names in a row above the chart, each after a square in its colour."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour(PHASE_ROLES[phase], fill=True), label=PHASE_NAMES[phase])
        for phase in phases
    ]
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles),
        handlelength=1, handleheight=1, columnspacing=1.4, borderaxespad=0.2,
    )  # fmt: skip
