"""What holds for every trace, policy and memory: nothing lost, nothing invented, nothing overfull."""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlab.quantities import InputError
from inferlab.roofline import roofline
from inferlab.serving import (
    ChunkedPrefill,
    ContinuousBatching,
    PrefillFirst,
    Request,
    Segment,
    StaticBatching,
    StepModel,
    TwoPools,
    simulate,
)
from inferlab.step import Sequence as Batch
from inferlab.step import step
from serving.machines import SHAPES, TINY_GPU

POLICIES = [
    StaticBatching(3),
    ContinuousBatching(),
    PrefillFirst(20),
    ChunkedPrefill(8),
    TwoPools(prefill_gpus=1, decode_gpus=2, link_bandwidth=1e6),
]
SMALL = StepModel(architecture=SHAPES["full attention"], accelerator=TINY_GPU, kv_tokens=64)
WINDOWED = StepModel(architecture=SHAPES["sliding window"], accelerator=TINY_GPU, kv_tokens=64)


@st.composite
def traces(draw):
    """Up to 14 requests of at most 40 + 24 tokens, some after others, with shared beginnings."""
    trace = []
    for i in range(draw(st.integers(1, 14))):
        shared = draw(st.lists(st.sampled_from([("a", 9), ("b", 4), ("a", 5)]), max_size=2))
        prompt = [Segment(*part) for part in shared]
        own = draw(st.sampled_from([(i, "own"), "everybody's"]))
        prompt.append(Segment(own, draw(st.integers(1, 20))))
        after = draw(st.sampled_from([None, *trace])) if trace else None
        if (
            after is not None
            and draw(st.booleans())
            and after.prompt_tokens + after.output_tokens < 30
        ):
            prompt = [*after.prompt, after.output, prompt[-1]]
        prompt = prompt if sum(length for _, length in prompt) <= 40 else prompt[-1:]
        trace.append(
            Request(
                i,
                tuple(prompt),
                draw(st.integers(1, 24)),
                arrival=0.0 if after else draw(st.floats(0, 0.02)),
                after=after.id if after else None,
                delay=draw(st.floats(0, 0.01)) if after else 0.0,
            )
        )
    return trace


@given(
    traces(),
    st.sampled_from(POLICIES),
    st.booleans(),
    st.booleans(),
    st.integers(1, 8),
    st.integers(1, 3),
    st.sampled_from(["least-loaded", "prefix", "least-to-prefill", "round-robin"]),
    st.sampled_from([SMALL, WINDOWED]),
)
@settings(max_examples=500, deadline=None)
def test_any_trace(trace, policy, prefix_cache, pin, max_batch, replicas, routing, model):
    options = {
        "prefix_cache": prefix_cache,
        "pin": pin and prefix_cache,
        "max_batch": max_batch,
        "replicas": replicas,
        "routing": routing,
    }
    result = simulate(trace, model, policy, **options)

    # No request is lost, and each one's times are in order.
    assert [record.id for record in result.requests] == [request.id for request in trace]
    for request, record in zip(trace, result.requests, strict=True):
        assert record.arrival <= record.admitted < record.first_token <= record.finished
        if request.after is not None:
            earliest = result[request.after].finished + request.delay
            assert record.arrival == pytest.approx(earliest, abs=1e-12)

    # Memory is never exceeded, and steps of one GPU never overlap.
    assert all(gpu.peak_kv_tokens <= model.kv_tokens for gpu in result.gpus.values())
    assert all(step.kv_tokens <= model.kv_tokens for step in result.steps)
    for name in result.gpus:
        steps = [step for step in result.steps if step.gpu == name]
        assert all(a.end <= b.start for a, b in itertools.pairwise(steps))

    # Every token in is accounted for: found in the cache, prefilled, or decoded.
    for record in result.requests:
        if record.preemptions == 0:
            assert record.hit_tokens + record.prefilled_tokens == record.prompt_tokens
            assert record.decoded_tokens == record.output_tokens - 1
        assert record.hit_tokens < record.prompt_tokens
        assert record.decoded_tokens < record.output_tokens
    computed = sum(record.prefilled_tokens + record.decoded_tokens for record in result.requests)
    assert computed == sum(step.prefill_tokens + step.decode_tokens for step in result.steps)
    if not prefix_cache:
        assert result.hit_rate == 0

    # The phases of a request fill its life without a gap, and its tokens come out in it.
    for request, record in zip(trace, result.requests, strict=True):
        spans = [s for s in result.spans if s.request == request.id and s.phase != "tool"]
        total = sum(span.end - span.start for span in spans)
        assert total == pytest.approx(record.latency, abs=1e-9)
        times = result.token_times(request.id)
        assert len(times) == request.output_tokens
        assert times[0] == record.first_token and times[-1] == record.finished

    # The same arguments give the same result.
    assert simulate(trace, model, policy, **options).requests == result.requests


@given(traces(), st.sampled_from(POLICIES), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_step_takes_what_the_roofline_of_its_batch_says(trace, policy, prefix_cache):
    for done in simulate(trace, SMALL, policy, prefix_cache=prefix_cache).steps:
        batch = [Batch(new, cached) for _, new, cached in done.chunks]
        if done.decode_tokens:
            # Full attention: only the sum of the cached tokens matters, so give them all to one.
            batch += [Batch(1, 0, done.decode_tokens - 1)] if done.decode_tokens > 1 else []
            batch += [Batch(1, done.decode_cached)]
        time = roofline(step(SMALL.architecture, batch), TINY_GPU).time_s
        assert done.end - done.start == pytest.approx(float(time), rel=1e-9)


@given(traces())
@settings(max_examples=100, deadline=None)
def test_an_empty_engine_keeps_no_memory_and_no_locks(trace):
    from inferlab.serving.simulate import _Simulation

    run = _Simulation(trace, SMALL, ContinuousBatching(), True, False, 8, 1, "least-loaded")
    run.run()
    engine = run.engines[0]
    assert engine.private == engine.decode_count == engine.decode_cached == 0
    assert not engine.running and not engine.waiting and not engine.calendar
    assert engine.tree.evictable == engine.tree.tokens


def test_a_long_answer_preempts_the_youngest_and_it_is_computed_again(small):
    trace = [Request.of("old", 20, 30), Request.of("young", 20, 30)]
    result = simulate(trace, small)
    assert (result["old"].preemptions, result["young"].preemptions) == (0, 1)
    assert result["old"].finished < result["young"].finished
    # 20 + 20 tokens leave 24: after 12 decode steps the memory is full. "young" then has 13
    # tokens out and is prefilled again with all 33 of them.
    assert result["young"].prefilled_tokens == 20 + 33
    assert result["young"].decoded_tokens == 12 + 16
    assert result.preemptions == 1
    assert len(result.token_times("young")) == 30


def test_static_batching_never_preempts_and_makes_short_answers_wait(small):
    trace = [Request.of("long", 20, 12), Request.of("short", 20, 2), Request.of("next", 5, 1)]
    static = simulate(trace, small, StaticBatching(2))
    assert static.preemptions == 0
    assert static["next"].admitted == static["long"].finished
    assert simulate(trace, small)["next"].admitted < static["next"].admitted


def test_prefill_first_stalls_running_requests_and_chunks_do_not(llama):
    trace = [Request.of("chat", 100, 60)]
    trace += [Request.of(f"paper{i}", 8000, 1, arrival=0.1 * (i + 1)) for i in range(3)]
    stalls = {
        policy: simulate(trace, llama, policy).longest_stall("chat")
        for policy in (PrefillFirst(), ContinuousBatching(), ChunkedPrefill(512))
    }
    first, mixed, chunked = stalls.values()
    prompt = llama.cost([(8000, 0)]).seconds
    assert first > prompt and mixed > prompt
    assert chunked < 0.1 * prompt


def test_a_prompt_that_is_all_known_still_computes_its_last_token(small):
    trace = [Request(name, (Segment("same", 20),), 3, arrival=i) for i, name in enumerate("ab")]
    result = simulate(trace, small, prefix_cache=True)
    assert [record.hit_tokens for record in result.requests] == [0, 19]
    assert [record.prefilled_tokens for record in result.requests] == [20, 1]


def test_pinning_keeps_the_prefix_that_eviction_would_take(small):
    first = Request.of("call", 20, 10)
    then = dataclasses.replace(
        Request.of("next", 5, 5),
        prompt=(*first.prompt, first.output, Segment("tool", 5)),
        after="call",
        delay=1.0,
    )
    others = [Request.of(f"other{i}", 30, 2, arrival=0.2 + 0.1 * i) for i in range(3)]
    trace = [first, then, *others]
    assert simulate(trace, small, prefix_cache=True)["next"].hit_tokens == 0
    assert simulate(trace, small, prefix_cache=True, pin=True)["next"].hit_tokens == 29


def test_a_pinned_prefix_is_looked_for_where_its_prompt_was_read(small):
    """In two pools another engine decodes; the next call goes back to the one with the prefix."""
    first = [Request.of(name, 20, 3, arrival=i / 10) for i, name in enumerate("abcd")]
    then = [
        dataclasses.replace(
            Request.of(f"{call.id}2", 5, 2),
            prompt=(*call.prompt, call.output, Segment(f"tool {call.id}", 5)),
            after=call.id,
            delay=1.0 - 0.2 * i,
        )
        for i, call in enumerate(first)
    ]
    pools = TwoPools(prefill_gpus=2, decode_gpus=1, link_bandwidth=1e9)
    result = simulate(
        [*first, *then], small, pools, prefix_cache=True, pin=True, routing="round-robin"
    )
    assert [result[call.id].hit_tokens for call in then] == [20] * 4


def test_learned_positions_end_a_request_as_they_end_a_step(small):
    few = dataclasses.replace(small, architecture=small.architecture.but(position_limit=30))
    simulate([Request.of("short", 20, 11)], few)
    with pytest.raises(InputError, match="31 positions do not fit"):
        simulate([Request.of("long", 20, 12)], few)


def test_pins_give_way_when_nothing_else_could_ever_run(small):
    first = Request.of("call", 40, 10)
    then = dataclasses.replace(Request.of("next", 5, 5), after="call", delay=5.0)
    big = Request.of("big", 50, 2, arrival=0.5)
    result = simulate([first, then, big], small, prefix_cache=True, pin=True)
    assert result["big"].finished < result["next"].arrival


def test_routing_by_prefix_finds_the_gpu_that_holds_it(llama):
    system = {name: Segment(name, 4000) for name in "ab"}
    trace = [
        Request(
            f"{name}{i}", (system[name], Segment((name, i), 10)), 5, arrival=i + 0.3 * (name == "b")
        )
        for i in range(4)
        for name in "ab"
    ]
    hits = {
        routing: simulate(trace, llama, prefix_cache=True, replicas=2, routing=routing).hit_rate
        for routing in ("prefix", "least-loaded")
    }
    # Six of the eight requests repeat 4000 of their 4010 tokens.
    assert hits["prefix"] == pytest.approx(6 * 4000 / (8 * 4010))
    # With every GPU idle, the first one is always taken: it holds both prefixes.
    assert hits["least-loaded"] == hits["prefix"]
    spread = simulate(trace, llama, prefix_cache=True, replicas=3, routing="round-robin")
    assert spread.hit_rate < hits["prefix"]


def test_routing_by_prefix_alone_crowds_one_gpu_and_by_what_is_left_does_not(llama):
    # Everybody shares 1000 tokens, and eight arrive at once after the first.
    trace = [Request("first", (Segment("system", 1000), Segment("f", 10)), 1)]
    trace += [
        Request(i, (Segment("system", 1000), Segment(i, 1000)), 1, arrival=1.0) for i in range(8)
    ]
    used = {
        routing: {
            record.gpu
            for record in simulate(
                trace, llama, prefix_cache=True, replicas=2, routing=routing
            ).requests[1:]
        }
        for routing in ("prefix", "least-to-prefill")
    }
    assert used == {"prefix": {"GPU 0"}, "least-to-prefill": {"GPU 0", "GPU 1"}}


def test_what_is_refused(small):
    one = [Request.of("a", 10, 5)]
    with pytest.raises(InputError, match="needs 65 tokens of KV cache, but only 64 fit"):
        simulate([Request.of("a", 60, 6)], small)
    assert simulate([Request.of("a", 60, 5)], small)["a"].finished > 0
    with pytest.raises(InputError, match=r"expected one of StaticBatching\(\)"):
        simulate(one, small, "continuous")
    with pytest.raises(InputError, match="expected one of least-loaded"):
        simulate(one, small, routing="random")
    with pytest.raises(InputError, match="set prefix_cache=True too"):
        simulate(one, small, pin=True)
    with pytest.raises(InputError, match="the trace is empty"):
        simulate([], small)
    with pytest.raises(InputError, match="two requests have the id 'a'"):
        simulate(one * 2, small)
    follower = dataclasses.replace(one[0], id="b", after="z")
    with pytest.raises(InputError, match="'b' waits for 'z', which is not in the trace"):
        simulate([*one, follower], small)
    circle = [dataclasses.replace(one[0], after="b"), dataclasses.replace(follower, after="a")]
    with pytest.raises(InputError, match="wait for each other in a circle"):
        simulate(circle, small)
    with pytest.raises(InputError, match="batch_size is 0"):
        StaticBatching(0)
    with pytest.raises(InputError, match="output_tokens of request 'a' is 0"):
        Request.of("a", 5, 0)
    with pytest.raises(InputError, match="'a' has an empty prompt"):
        Request("a", (), 1)
