"""The simulator against sums that can be done without it."""

import math

import pytest

from inferlab.roofline import roofline
from inferlab.serving import (
    ChunkedPrefill,
    ContinuousBatching,
    PrefillFirst,
    Request,
    StaticBatching,
    StepModel,
    TwoPools,
    agent_trace,
    chat_trace,
    poisson_trace,
    simulate,
)
from inferlab.step import decode, prefill, step
from serving.machines import A100, LLAMA_7B


def time(batch):
    return roofline(step(LLAMA_7B, batch), A100).time_s


ALONE = [ContinuousBatching(), PrefillFirst(), ChunkedPrefill(4096), StaticBatching(4)]


@pytest.mark.parametrize("policy", ALONE, ids=lambda policy: type(policy).__name__)
def test_one_request_alone(llama, policy):
    # The prefill emits token 1; step j of the other 199 attends to 3000 + j - 1 cached tokens.
    record = simulate([Request.of("a", 3000, 200)], llama, policy)["a"]
    steps = [time(decode(3000 + j)) for j in range(199)]
    assert record.ttft == pytest.approx(time(prefill(3000)), rel=1e-12)
    assert record.latency == pytest.approx(time(prefill(3000)) + math.fsum(steps), rel=1e-12)
    assert record.tpot == pytest.approx(math.fsum(steps) / 199, rel=1e-12)
    # Counted by hand: 40.03 TFLOP at 312 TFLOP/s, then 13.2 GB of weights and 1.6 GB of KV a step.
    assert record.ttft == pytest.approx(0.132, abs=0.001)
    assert record.tpot == pytest.approx((13.2147e9 + 3099 * 524288) / 1.555e12, rel=1e-3)


def test_a_prompt_in_chunks_is_the_sum_of_its_chunks(llama):
    record = simulate([Request.of("a", 3000, 1)], llama, ChunkedPrefill(1024))["a"]
    chunks = [
        time([type(prefill(1)[0])(new, cached)])
        for new, cached in ((1024, 0), (1024, 1024), (952, 2048))
    ]
    assert record.latency == pytest.approx(math.fsum(chunks), rel=1e-12)


def test_two_pools_add_one_transfer(llama):
    pools = TwoPools(link_bandwidth=50e9, link_latency=1e-3)
    result = simulate([Request.of("a", 3000, 200)], llama, pools)
    alone = simulate([Request.of("a", 3000, 200)], llama)
    transfer = 1e-3 + 3000 * 524288 / 50e9
    assert result["a"].ttft == alone["a"].ttft
    assert result["a"].latency == pytest.approx(alone["a"].latency + transfer, rel=1e-12)
    assert result.seconds_by_phase()["transfer"] == pytest.approx(transfer, rel=1e-12)


def test_equal_requests_in_one_batch_share_every_step(llama):
    trace = [Request.of(name, 500, 50) for name in "abcd"]
    result = simulate(trace, llama)
    latency = time(prefill(500, 4)) + math.fsum(time(decode(500 + j, 4)) for j in range(49))
    for record in result.requests:
        assert record.latency == pytest.approx(latency, rel=1e-12)


@pytest.mark.parametrize(("load", "requests"), [(0.5, 4_000), (0.8, 10_000)])
def test_mean_wait_of_a_queue_with_constant_service(llama, load, requests):
    """M/D/1: Poisson arrivals, one server, constant service s: W = rho s / (2 (1 - rho))."""
    service = time(prefill(500))
    waits = []
    for seed in range(20):
        trace = poisson_trace(
            requests, load / service, prompt_tokens=500, output_tokens=1, seed=seed
        )
        waits.append(simulate(trace, llama, max_batch=1).mean("wait"))
    expected = load * service / (2 * (1 - load))
    assert math.fsum(waits) / 20 == pytest.approx(expected, rel=0.03)


def test_prefill_tokens_of_an_agent_grow_with_k_squared_or_with_k():
    model = StepModel(architecture=LLAMA_7B, accelerator=A100, kv_tokens=10**6)
    system, task, output, observation = 2000, 200, 100, 1800
    for k in (1, 2, 5, 20):
        trace = agent_trace(1, 1.0, calls=k, seed=3)
        without = simulate(trace, model)
        # sum over j < k of (2200 + 1900 j)
        assert without.prefilled_tokens == 2200 * k + 1900 * k * (k - 1) // 2
        cached = simulate(trace, model, prefix_cache=True)
        # Each later call computes the observation and the one token whose KV nobody has written.
        assert cached.prefilled_tokens == system + task + (k - 1) * (observation + 1)
        assert without.hit_rate == 0
        assert [record.hit_tokens for record in cached.requests] == [0] + [
            system + task + j * (output + observation) - observation - 1 for j in range(1, k)
        ]


def test_prefill_tokens_of_a_conversation():
    model = StepModel(architecture=LLAMA_7B, accelerator=A100, kv_tokens=10**6)
    trace = chat_trace(1, 1.0, turns=10, system_tokens=500)
    assert simulate(trace, model).prefilled_tokens == sum(500 + 100 + 200 * j for j in range(10))
    assert simulate(trace, model, prefix_cache=True).prefilled_tokens == 600 + 9 * 101


def test_agents_that_start_alike_share_the_system_prompt():
    model = StepModel(architecture=LLAMA_7B, accelerator=A100, kv_tokens=10**6)
    # One call each, far apart: the second and third find the 2000 tokens of the system prompt.
    result = simulate(agent_trace(3, 0.001, calls=1), model, prefix_cache=True)
    assert [record.hit_tokens for record in result.requests] == [0, 2000, 2000]
