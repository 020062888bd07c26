"""What holds for every architecture, batch and way to count."""

import json
import math
import subprocess
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.cli.explanation import with_symbols
from inferlab.javascript import to_javascript
from inferlab.quantities import bytes_of
from inferlab.step import (
    Sequence,
    attention_pairs,
    decode,
    distinct_experts,
    ffn_elements,
    prefill,
    step,
)
from strategies import accountings, architectures, batches, sequences
from system import find_node

KINDS = ("flops", "weights", "kv_read", "kv_write", "activations")


# --- a prompt in chunks, a batch in parts ---


@given(architectures(), st.lists(st.integers(1, 40), min_size=1, max_size=6), st.data())
def test_a_prefill_equals_its_chunks(model, chunks, data):
    # MLA decodes in ways that differ in cost; only expanded keys and values are the same everywhere.
    accounting = ENGINE.but(mla="expanded")
    whole = step(model, prefill(sum(chunks)), accounting)
    starts = [sum(chunks[:i]) for i in range(len(chunks))]
    parts = [
        step(model, [Sequence(new, start)], accounting)
        for new, start in zip(chunks, starts, strict=True)
    ]
    for name in ("attention_scores_values", "attention_projections", "ffn", "router"):
        assert whole.components[name].flops == sum(part.components[name].flops for part in parts)
    assert whole.kv_write == sum(part.kv_write for part in parts)


@given(st.integers(1, 200), st.integers(0, 200), st.none() | st.integers(1, 80))
def test_causal_pairs_are_the_keys_that_each_query_sees(new, cached, window):
    seen = [min(cached + j + 1, window or math.inf) for j in range(new)]
    assert attention_pairs(new, cached, window) == sum(seen)
    kept = cached if window is None else min(cached, window - 1)
    assert attention_pairs(new, cached, window, "full") == new * (kept + new)


@given(architectures(), batches(), accountings)
def test_a_packed_batch_equals_its_sequences(model, batch, accounting):
    packed = step(model, batch, accounting)
    alone = [
        step(model, [Sequence(s.new, s.cached)], accounting) for s in batch for _ in range(s.count)
    ]
    for kind in ("flops", "kv_read", "kv_write", "activations"):
        assert getattr(packed, kind) == sum(getattr(work, kind) for work in alone)


@given(architectures(kinds=("dense", "mla")), batches(), accountings)
def test_a_packed_batch_streams_the_weights_once(model, batch, accounting):
    alone = step(model, [Sequence(batch[0].new, batch[0].cached)], accounting)
    assert step(model, batch, accounting).weights == alone.weights


@given(architectures(kinds=("moe",)), batches())
def test_a_batch_reaches_between_k_and_all_experts(model, batch):
    moe = model.moe
    tokens = sum(s.new * s.count for s in batch)
    expected = distinct_experts(moe.experts, moe.active, tokens)
    assert moe.active <= expected <= min(moe.experts, moe.active * tokens)
    streamed = step(model, batch).components["ffn"].weights
    assert bytes_of(ffn_elements(model, moe.active), "bf16") <= streamed
    assert streamed <= bytes_of(ffn_elements(model, moe.experts), "bf16")


@given(st.integers(1, 300), st.data())
def test_distinct_experts_grow_with_tokens_and_are_exact(experts, data):
    active = data.draw(st.integers(1, experts))
    tokens = data.draw(st.integers(1, 400))
    expected = experts * (1 - (1 - Fraction(active, experts)) ** tokens)
    assert distinct_experts(experts, active, 1) == active
    assert abs(distinct_experts(experts, active, tokens) - expected) < Fraction(1, 10**30)
    assert distinct_experts(experts, active, tokens) <= distinct_experts(
        experts, active, tokens + 1
    )


def test_distinct_experts_of_very_many_tokens_are_counted_in_no_time():
    # Exactly this is a fraction of millions of digits.
    experts, tokens = 10**7, 10**8
    expected = -experts * math.expm1(tokens * math.log1p(-1 / experts))
    assert float(distinct_experts(experts, 1, tokens)) == pytest.approx(expected, rel=1e-12)
    assert distinct_experts(experts, 1, 10**12) == experts
    # Both ways meet where one takes over from the other.
    exact, long = (distinct_experts(384, 1, tokens) for tokens in (10_000, 10_001))
    assert abs(long - exact - (384 - exact) / 384) < Fraction(1, 10**90)


@given(architectures())
def test_parameters_are_the_sum_of_their_groups(model):
    parameters = model.parameters
    assert parameters.total == sum(parameters.groups.values())
    assert 0 < parameters.active <= parameters.total
    streamed = step(model, decode(0)).weights
    # One token passes each matrix that it meets once; lookups, norms and biases are no matrices.
    assert streamed <= 2 * (parameters.active + (0 if model.tied else parameters.embedding))


@given(architectures(), st.integers(0, 500), st.sampled_from(["absorbed", "expanded"]))
def test_what_a_decode_step_reads_is_what_is_cached(model, cached, mla):
    work = step(model, decode(cached), ENGINE.but(mla=mla))
    assert work.kv_read == model.kv_bytes(cached, "bf16", mla)
    grown = model.kv_elements(cached + 1, mla) - model.kv_elements(cached, mla)
    assert 0 <= 2 * grown <= work.kv_write


# --- one formula, four readings ---


@given(architectures(), sequences(), accountings)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_symbols_agree_with_ints(model, sequence, accounting):
    shapes, values = with_symbols(model)
    new, cached, count = sympy.symbols("n s c", positive=True)
    # Whether anything is cached decides how MLA runs, so it is not left open.
    opened = Sequence(new, cached if sequence.cached else 0, count)
    values = values | {new: sequence.new, cached: sequence.cached, count: sequence.count}
    symbolic = step(shapes, [opened], accounting)
    exact = step(model, [sequence], accounting)
    for kind in ("flops", "kv_read", "kv_write", "activations"):
        assert sympy.sympify(getattr(symbolic, kind)).subs(values) == getattr(exact, kind), kind
    weights = sympy.sympify(symbolic.weights).subs(values)
    assert abs(weights - exact.weights) <= sympy.Rational(1, 2)  # rounded to a byte
    for group, formula in shapes.parameters.groups.items():
        assert sympy.sympify(formula).subs(values) == model.parameters.groups[group], group


@given(architectures(largest=4096), st.lists(sequences(10**6), min_size=1, max_size=4), accountings)
def test_arrays_agree_with_ints(model, points, accounting):
    new, cached, count = (
        np.array([getattr(point, name) for point in points]) for name in ("new", "cached", "count")
    )
    swept = step(model, [Sequence(new, cached, count)], accounting)
    for i, point in enumerate(points):
        exact = step(model, [point], accounting)
        for kind in KINDS:
            values = np.broadcast_to(getattr(swept, kind), new.shape)
            assert values[i] == pytest.approx(getattr(exact, kind), rel=1e-12, abs=0.5), kind


@given(st.integers(10**6, 10**9), st.integers(10**4, 10**6))
def test_arrays_do_not_wrap_where_int64_would(new, hidden):
    model = Architecture(
        name="wide", layers=1000, hidden=hidden, ffn=4 * hidden, heads=64, kv_heads=64,
        head_dim=128, vocab=10**5,
    )  # fmt: skip
    exact = step(model, prefill(new)).flops
    assume(exact > 2**63)
    swept = step(model, prefill(np.array([new, 1], dtype=np.int64))).flops
    assert swept.dtype == np.float64
    assert swept[0] == pytest.approx(exact, rel=1e-12)
    wide = model.but(hidden=np.array([hidden], dtype=np.int64))
    assert step(wide, prefill(new)).flops[0] == pytest.approx(exact, rel=1e-12)


NODE = """
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {source, name, args} = JSON.parse(line);
  console.log(JSON.stringify(new Function(source + "; return " + name)()(...args)));
});
"""


@pytest.fixture(scope="module")
def javascript():
    """Calls a JavaScript function in one running Node: javascript(source, name, args)."""
    process = subprocess.Popen(
        [find_node(), "-e", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def call(source, name, args):
        process.stdin.write(json.dumps({"source": source, "name": name, "args": args}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield call
    process.stdin.close()
    process.wait(timeout=10)


@pytest.mark.needs("node")
@given(architectures(largest=5000), sequences(10**5), accountings)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_javascript_agrees_with_python(javascript, model, sequence, accounting):
    shapes, values = with_symbols(model)
    new, cached, count = sympy.symbols("n s c", positive=True)
    values = values | {new: sequence.new, cached: sequence.cached, count: sequence.count}
    symbolic = step(shapes, [Sequence(new, cached if sequence.cached else 0, count)], accounting)
    exact = step(model, [sequence], accounting)
    source = to_javascript("work", {kind: getattr(symbolic, kind) for kind in KINDS}, list(values))
    found = javascript(source, "work", [int(value) for value in values.values()])
    for kind in KINDS:
        expected = getattr(exact, kind)
        if kind != "weights" and expected < 2**52:
            assert found[kind] == expected, kind
        else:
            assert found[kind] == pytest.approx(expected, rel=1e-12, abs=0.5), kind
