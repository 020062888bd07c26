"""Made traces have the statistics that they promise; recorded ones are read or refused plainly."""

import itertools
import json
import math

import pytest

from inferlab.quantities import InputError
from inferlab.serving import (
    Lognormal,
    agent_trace,
    chat_trace,
    longest_common_prefix,
    poisson_trace,
    rag_trace,
    read_trace,
)


def test_a_poisson_trace_has_its_rate_and_its_lengths():
    lengths = Lognormal(median=400, sigma=0.5)
    trace = poisson_trace(20_000, 8.0, prompt_tokens=lengths, output_tokens=100, seed=1)
    gaps = [b.arrival - a.arrival for a, b in itertools.pairwise(trace)]
    mean_gap = math.fsum(gaps) / len(gaps)
    assert mean_gap == pytest.approx(1 / 8, rel=0.02)
    # Exponential: the standard deviation equals the mean.
    spread = math.sqrt(math.fsum((gap - mean_gap) ** 2 for gap in gaps) / len(gaps))
    assert spread == pytest.approx(mean_gap, rel=0.03)
    drawn = sorted(request.prompt_tokens for request in trace)
    assert drawn[10_000] == pytest.approx(400, rel=0.02)
    assert sum(drawn) / 20_000 == pytest.approx(400 * math.exp(0.125), rel=0.02)
    assert lengths.mean == pytest.approx(400 * math.exp(0.125))
    assert {request.output_tokens for request in trace} == {100}


def test_a_seed_is_a_trace():
    make = [
        lambda seed: poisson_trace(50, 1.0, prompt_tokens=Lognormal(100, 1), seed=seed),
        lambda seed: chat_trace(5, 1.0, turns=Lognormal(5, 0.5), seed=seed),
        lambda seed: agent_trace(5, 1.0, tool_s=Lognormal(1, 1), seed=seed),
        lambda seed: rag_trace(5, 1.0, chunk_tokens=Lognormal(500, 0.3), seed=seed),
    ]
    for trace in make:
        assert trace(7) == trace(7)
        assert trace(7) != trace(8)


def test_a_conversation_sends_its_history_again():
    trace = chat_trace(1, 1.0, turns=4, system_tokens=500, user_tokens=80, output_tokens=120)
    assert [request.prompt_tokens for request in trace] == [580, 780, 980, 1180]
    assert [request.after for request in trace] == [None, "chat0.1", "chat0.2", "chat0.3"]
    assert trace[1].arrival == 0.0 and trace[1].delay == 20.0
    for before, request in itertools.pairwise(trace):
        assert longest_common_prefix((*before.prompt, before.output), request.prompt) == (
            before.prompt_tokens + 120
        )


def test_agents_in_turn_read_what_the_others_said():
    trace = agent_trace(1, 1.0, calls=4, agents=2, tool_s=1.0, network_s=0.25)
    assert [request.prompt_tokens for request in trace] == [2200, 4100, 6000, 7900]
    assert [request.prompt[0].key for request in trace] == [("system", 0), ("system", 1)] * 2
    assert trace[1].delay == 1.25
    assert longest_common_prefix(trace[0].prompt, trace[1].prompt) == 0
    assert longest_common_prefix(trace[0].prompt, trace[2].prompt) == 2200


def test_where_retrieved_text_goes_decides_what_is_shared():
    shared = {}
    for place in ("before", "after", "kept"):
        trace = rag_trace(1, 1.0, place=place, turns=5)
        shared[place] = [
            longest_common_prefix((*a.prompt, a.output), b.prompt)
            for a, b in itertools.pairwise(trace)
        ]
        assert (
            trace[-1].prompt_tokens
            == {
                "before": 500 + 2000 + 4 * 200 + 100,
                "after": 500 + 4 * 200 + 2000 + 100,
                "kept": 500 + 4 * 2200 + 2000 + 100,
            }[place]
        )
    assert shared["before"] == [500, 500, 500, 500]
    assert shared["after"] == [500, 700, 900, 1100]
    assert shared["kept"] == [2700, 4900, 7100, 9300]


LINES = [
    {"timestamp": 3052, "input_length": 1200, "output_length": 5, "hash_ids": [0, 1, 7]},
    {"timestamp": 52, "input_length": 1100, "output_length": 3, "hash_ids": [0, 1]},
    {"timestamp": 60, "input_length": 10, "output_length": 1},
]


def test_a_recorded_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)) + "\n\n")
    trace = read_trace(path)
    assert [request.id for request in trace] == ["line 2", "line 3", "line 1"]
    assert [request.arrival for request in trace] == pytest.approx([0, 0.008, 3.0])
    assert [request.prompt_tokens for request in trace] == [1100, 10, 1200]
    assert [request.output_tokens for request in trace] == [3, 1, 5]
    # Blocks 0 and 1 are whole in both; the rest of line 2 is its own, block 7 is partial.
    assert longest_common_prefix(trace[0].prompt, trace[2].prompt) == 1024
    assert longest_common_prefix(trace[1].prompt, trace[0].prompt) == 0
    assert read_trace(path.read_text().splitlines(), unit="s")[2].arrival == 3000


def test_other_names_of_the_fields():
    line = '{"arrival": 1.5, "prompt_tokens": 7, "completion_tokens": 2}'
    (request,) = read_trace([line], unit="s")
    assert (request.arrival, request.prompt_tokens, request.output_tokens) == (0.0, 7, 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{nonsense", "line 2 is not JSON"),
        ("[" * 200_000, "line 2 is not JSON"),
        ("[1, 2]", r"line 2 is '\[1, 2\]': expected an object"),
        ('{"timestamp": 1, "input_length": 3}', "line 2 has no 'output_length'"),
        ('{"timestamp": -1, "input_length": 3, "output_length": 1}', "line 2: timestamp is -1"),
        (
            '{"timestamp": 1, "input_length": 2.5, "output_length": 1}',
            "line 2: input_length is 2.5",
        ),
        (
            '{"timestamp": 1, "input_length": "9", "output_length": 1}',
            "line 2: input_length is '9'",
        ),
        ('{"timestamp": 1, "input_length": 3, "output_length": 0}', "line 2: output_length is 0"),
        (
            '{"timestamp": 1, "input_length": 3, "output_length": 1, "hash_ids": [1, 2]}',
            "2 hash_ids for 3 tokens are more than blocks of 512: set block_tokens",
        ),
        (
            '{"timestamp": 1, "input_length": 3, "output_length": 1, "hash_ids": {"a": 1}}',
            "hash_ids is {'a': 1}: expected a list",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, message):
    good = '{"timestamp": 1, "input_length": 3, "output_length": 1}'
    with pytest.raises(InputError, match=message):
        read_trace([good, line])


def test_a_long_line_makes_a_short_message():
    line = {"timestamp": 1, "input_length": 3, "output_length": 1, "hash_ids": {"a": "b" * 9999}}
    with pytest.raises(InputError, match=r"hash_ids is .*\.\.\.: expected a list") as error:
        read_trace([json.dumps(line)])
    assert len(str(error.value)) < 200


def test_no_trace_at_all(tmp_path):
    with pytest.raises(InputError, match="the trace has no line"):
        read_trace([])
    with pytest.raises(InputError, match=r"nowhere\.jsonl cannot be read"):
        read_trace(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="unit is 'h': expected one of ms, s"):
        read_trace([], unit="h")
    with pytest.raises(InputError, match="rate is 0: expected a number above zero"):
        poisson_trace(3, 0)
    with pytest.raises(InputError, match="place is 'middle'"):
        rag_trace(1, 1, place="middle")
