"""Figures of a result that can be read off its records by hand."""

import pytest

from inferlab.quantities import InputError
from inferlab.serving import Request, percentile, prefill_share, simulate, spans_by_request
from inferlab.serving.results import GpuUse, RequestRecord, Result


def record(id, arrival, admitted, first, finished, output, hit=0):
    return RequestRecord(
        id,
        None,
        arrival,
        100,
        output,
        admitted=admitted,
        first_token=first,
        finished=finished,
        hit_tokens=hit,
    )


RESULT = Result(
    [record("a", 1.0, 1.5, 2.0, 6.0, 5, hit=50), record("b", 2.0, 2.0, 3.0, 3.0, 1)],
    [],
    [],
    {"GPU 0": GpuUse(3.0, 2e9, 1e9, 7), "GPU 1": GpuUse(1.0, 1e9, 0, 3)},
    1e9,
    2e9,
)


def test_times_of_a_request():
    a, b = RESULT.requests
    assert (a.wait, a.ttft, a.tpot, a.latency) == (0.5, 1.0, 1.0, 5.0)
    assert (b.wait, b.ttft, b.tpot, b.latency) == (0.0, 1.0, None, 1.0)


def test_totals():
    assert RESULT.makespan == 5.0
    assert RESULT.output_throughput == 6 / 5
    assert RESULT.request_throughput == 2 / 5
    assert RESULT.hit_rate == 0.25
    assert RESULT.utilisation == 4 / 10
    assert RESULT.compute_utilisation == 3 / 10
    assert RESULT.bandwidth_utilisation == 1 / 20
    assert RESULT.values("tpot") == [1.0]
    assert RESULT.mean("latency") == 3.0
    assert RESULT.percentile("latency", 75) == 4.0
    assert RESULT.summary()["ttft p99"] == 1.0
    with pytest.raises(InputError, match="no request 'c'"):
        RESULT["c"]


def test_the_share_of_prefill_is_the_first_token_over_the_whole_response():
    assert prefill_share(2, 1, 3) * 2 == 1  # 2 s, then two more tokens at 1 s each
    assert prefill_share(2.0, 0.010, 200) == pytest.approx(2 / 3.99)
    assert prefill_share(0.2, 0.010, 1) == 1
    a = RESULT["a"]
    assert prefill_share(a.ttft, a.tpot, a.output_tokens) == pytest.approx(a.ttft / a.latency)


def test_percentiles_are_numpys():
    import numpy as np

    values = [5.0, 1.0, 9.5, 2.0, 7.0, 7.0, 3.25]
    for q in (0, 10, 50, 90, 99, 100):
        assert percentile(values, q) == pytest.approx(np.percentile(values, q))
    with pytest.raises(InputError, match="percentile of no values"):
        percentile([], 50)


def test_the_table_of_events_tells_a_life_in_order(llama):
    result = simulate([Request.of("a", 100, 3), Request.of("b", 100, 1, arrival=0.001)], llama)
    told = [(what, request) for _, what, request, _ in result.events()]
    assert told == [
        ("arrives", "a"),
        ("prefill begins", "a"),
        ("arrives", "b"),
        ("queue begins", "b"),
        ("decode begins", "a"),
        ("first token", "a"),
        ("prefill begins", "b"),
        ("finishes", "b"),
        ("first token", "b"),
        ("finishes", "a"),
    ]
    times = [time for time, *_ in result.events()]
    assert times == sorted(times)
    rows = spans_by_request(result.spans)
    assert [span.phase for span in rows["a"]] == ["prefill", "decode"]
    assert [span.phase for span in rows["b"]] == ["queue", "prefill"]
