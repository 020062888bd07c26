"""Gantt charts say what the spans say."""

import pytest

from inferlab.figures import figure
from inferlab.gantt import gantt, stacked
from inferlab.quantities import InputError
from inferlab.serving import Request, simulate

TRACE = [Request.of("b", 100, 3, arrival=0.001), Request.of("a", 100, 3)]


def test_one_row_a_request_in_order_of_arrival_and_one_bar_a_span(llama):
    result = simulate(TRACE, llama)
    _, ax = figure()
    gantt(ax, result)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    drawn = {
        (round(bar.get_y() + bar.get_height() / 2), bar.get_x(), bar.get_width())
        for bar in ax.patches
    }
    assert drawn == {("ab".index(s.request), s.start, s.end - s.start) for s in result.spans}
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["waits in the queue", "prefill", "decode"]
    # One stroke a token.
    assert sum(len(lines.get_segments()) for lines in ax.collections) == 6


def test_picked_rows(llama):
    result = simulate(TRACE, llama)
    _, ax = figure()
    gantt(ax, result, rows=["a"], tokens=False)
    assert len(ax.patches) == 2 and not ax.collections
    with pytest.raises(InputError, match=r"nothing to draw for \['z'\]"):
        gantt(ax, result, rows=["z"])


def test_stacked_bars_end_at_the_total(llama):
    seconds = simulate(TRACE, llama).seconds_by_phase()
    _, ax = figure()
    stacked(ax, {"one": seconds, "two": {"prefill": 60.0, "tool": 60.0}})
    assert [text.get_text() for text in ax.texts][1] == "2.00 min"
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(sum(seconds.values()) + 120)
