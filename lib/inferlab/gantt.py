"""Gantt charts of a simulated engine: who did what, when (chapters 5, 10 and 12).

    from inferlab.figures import figure
    from inferlab.gantt import gantt

    fig, ax = figure(height=2.6)
    gantt(ax, simulate(trace, model))

draws each request as a row of bars, one a phase.
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


def gantt(ax: Axes, result, rows=None, *, tokens: bool = True) -> None:
    """The life of each request of a `Result` as a row of bars, in order of arrival.

    `rows` picks requests by id. `tokens` marks each token that came out with a small stroke, so
    that a stall shows as a gap. Above the chart stand the names of the phases that occur.
    """
    if rows is None:
        rows = [record.id for record in sorted(result.requests, key=lambda record: record.arrival)]
    place = {row: i for i, row in enumerate(rows)}
    spans = [span for span in result.spans if span.request in place]
    if not spans:
        raise InputError(f"there is nothing to draw for {rows}: give ids of requests")
    for span in spans:
        ax.barh(
            place[span.request], span.end - span.start, left=span.start, height=0.56,
            color=colour(PHASE_ROLES[span.phase], fill=True), edgecolor="white", linewidth=0.6,
        )  # fmt: skip
    if tokens:
        for row, i in place.items():
            ax.vlines(
                result.token_times(row), i - 0.28, i + 0.28, color=colour("total"), linewidth=0.7
            )
    ax.set_yticks(range(len(rows)), [str(row) for row in rows])
    _bare(ax)
    _names(ax, [phase for phase in PHASE_ROLES if any(span.phase == phase for span in spans)])


def stacked(ax: Axes, bars) -> None:
    """Seconds by phase as one horizontal bar a case: `bars` maps a name to `seconds_by_phase()`.

    The total stands at the end of each bar.
    """
    shown = [
        phase for phase in PHASE_ROLES if any(times.get(phase, 0) > 0 for times in bars.values())
    ]
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
    _bare(ax)
    _names(ax, shown)


def _bare(ax: Axes) -> None:
    """First row on top, seconds below, no lines that mean nothing."""
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("seconds")


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
