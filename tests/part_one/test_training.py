"""The counts of training: by parameters, by matrix products, in seconds and in bytes."""

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.cost import request_time
from inferlab.derive import equal, symbolic_architecture, text_architecture
from inferlab.derive import symbols as s
from inferlab.quantities import InputError
from inferlab.training import (
    GRPO,
    INFERENCE,
    MIXED_PRECISION_ADAM,
    PPO,
    backward_flops,
    bytes_per_parameter,
    counted_passes,
    device_seconds,
    forward_flops,
    kept_activation_bytes,
    kept_activation_elements,
    linear_passes,
    model_flops_utilisation,
    reinforcement_step,
    training_flops,
    training_tokens,
)

LLAMA_8B = Architecture(
    name="8B", layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, head_dim=128, vocab=128256
)
H100 = Accelerator(name="H100", peaks={"bf16": 989.4e12}, bandwidth=3.35e12)
sizes = st.integers(1, 10**6)


def test_a_linear_layer_costs_twice_as_much_backward():
    passes = linear_passes(s.m, s.k, s.n)
    assert passes.forward == 2 * s.m * s.k * s.n
    assert equal(passes.backward, 2 * passes.forward)
    assert equal(passes.total, 6 * s.m * s.k * s.n)


def test_six_p_d():
    assert training_flops(s.P, s.D) == 6 * s.P * s.D
    assert forward_flops(s.P, s.D) == 2 * s.P * s.D
    assert backward_flops(s.P, s.D) == 4 * s.P * s.D
    assert training_tokens(8 * 10**9) == 160 * 10**9


@given(sizes, sizes)
def test_readings_agree(parameters, tokens):
    exact = training_flops(parameters, tokens)
    assert exact == 6 * parameters * tokens
    assert training_flops(np.array([parameters]), np.array([tokens]))[0] == pytest.approx(exact)
    symbolic = training_flops(s.P, s.D).subs({s.P: parameters, s.D: tokens})
    assert symbolic == exact


def test_large_arrays_do_not_wrap():
    assert training_flops(np.array([8 * 10**9]), np.array([160 * 10**9]))[0] == 7.68e21


def test_counted_passes_are_six_p_d_and_attention_and_head():
    counted = counted_passes(text_architecture(), s.N).total
    matrices = 12 * s.L * s.d**2
    attention = 6 * s.L * s.N * (s.N + 1) * s.d
    assert equal(counted, training_flops(matrices + s.V * s.d, s.N) + attention)


def test_counted_passes_grow_with_the_batch():
    assert counted_passes(LLAMA_8B, 2048, 3).total == 3 * counted_passes(LLAMA_8B, 2048).total


def test_device_seconds_and_utilisation_undo_each_other():
    seconds = device_seconds(7.68e21, 990e12, 0.4)
    assert model_flops_utilisation(7.68e21, seconds, 990e12) == pytest.approx(0.4)
    assert model_flops_utilisation(7.68e21, seconds / 1000, 990e12, devices=1000) == pytest.approx(
        0.4
    )


@pytest.mark.parametrize("mfu", [0, -0.4, 1.01, 40, True, float("nan")])
def test_a_senseless_utilisation_is_refused(mfu):
    with pytest.raises(InputError, match="mfu"):
        device_seconds(1e21, 990e12, mfu)
    with pytest.raises(InputError, match="mfu"):
        request_time(8e9, 100, 10, 990e12, 3.35e12, mfu=mfu)


@pytest.mark.parametrize("parameters", [0, -1, "8B", True])
def test_senseless_parameters_are_refused(parameters):
    with pytest.raises(InputError, match="parameters"):
        training_flops(parameters, 1)


def test_sixteen_bytes_against_two():
    assert bytes_per_parameter(MIXED_PRECISION_ADAM) == 16  # Rajbhandari et al. 2020, section 3.1
    assert bytes_per_parameter(INFERENCE) == 2


def test_kept_activations_by_hand():
    # 32 layers of 4 d + 2 d + 2 (1024) + 3 (14336) elements, d = 4096
    assert kept_activation_elements(LLAMA_8B) == 32 * (24576 + 2048 + 43008)
    assert kept_activation_bytes(LLAMA_8B, 8192) == 36_507_222_016
    assert kept_activation_bytes(LLAMA_8B, 8192, recompute=True) == 8192 * 32 * 4096 * 2


def test_kept_activations_without_a_gate_keep_two_widths():
    plain = kept_activation_elements(symbolic_architecture(gated=False))
    gated = kept_activation_elements(symbolic_architecture())
    assert equal(gated - plain, s.L * s.f)


def test_one_answer_of_reinforcement_learning_by_hand():
    """Batch 1, memory-bound: weights and cache over bandwidth, learning at peak x mfu."""
    a = LLAMA_8B
    layers = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    streamed = 2 * (layers + 4096 * 128256)
    kv = 2 * 8 * 128 * 32 * 2
    work = reinforcement_step(a, H100, prompt=1, answer=3, batch=1)
    per_step = streamed + kv + 2 * 32 * 4096 * 2  # weights, KV written, two passes of activations
    by_hand = (per_step + (per_step + kv) + (per_step + 2 * kv)) / 3.35e12
    assert work.generate_s == pytest.approx(by_hand, rel=1e-12)
    tokens = 4
    forward = 2 * tokens * (layers + 4096 * 128256) + 4 * 32 * 4096 * (tokens * (tokens + 1) // 2)
    assert work.learn_s == pytest.approx(4 * forward / (0.4 * 989.4e12), rel=1e-12)


def test_generation_by_its_two_ends_is_the_sum_over_its_steps():
    """The shortcut against 256 steps one by one."""
    from inferlab.roofline import roofline
    from inferlab.step import decode, prefill, step

    answer, prompt, batch = 257, 100, 8
    work = reinforcement_step(LLAMA_8B, H100, prompt=prompt, answer=answer, batch=batch, mfu=1)
    one_by_one = [roofline(step(LLAMA_8B, prefill(prompt, batch)), H100).time_s] + [
        roofline(step(LLAMA_8B, decode(prompt + i, batch)), H100).time_s for i in range(answer - 1)
    ]
    assert work.generate_s == pytest.approx(sum(one_by_one) / batch, rel=1e-12)


def test_a_larger_batch_and_more_learning_lower_the_generating_share():
    def share(batch, passes=GRPO):
        work = reinforcement_step(
            LLAMA_8B, H100, prompt=512, answer=2048, batch=batch, passes=passes
        )
        return work.generating_share

    assert 1 > share(1) > share(16) > share(256) > 0
    assert share(64, PPO) < share(64, GRPO)


def test_reinforcement_step_is_a_formula():
    machine = Accelerator(name="symbolic", peaks={"bf16": s.pi}, bandwidth=s.beta)
    formula = reinforcement_step(
        symbolic_architecture(),
        machine,
        prompt=s.N,
        answer=s.T,
        batch=s.B,
        mfu=sympy.Rational(2, 5),
    )
    numbers = reinforcement_step(LLAMA_8B, H100, prompt=512, answer=2048, batch=64)
    values = {s.L: 32, s.d: 4096, s.f: 14336, s.h: 32, s.h_kv: 8, s.d_h: 128, s.V: 128256,
              s.N: 512, s.T: 2048, s.B: 64, s.pi: 989.4e12, s.beta: 3.35e12}  # fmt: skip
    assert float(formula.generate_s.subs(values)) == pytest.approx(numbers.generate_s)
    assert float(formula.learn_s.subs(values)) == pytest.approx(numbers.learn_s)


@pytest.mark.parametrize("changes", [{"answer": 0}, {"answer": 1.5}, {"batch": 0}, {"prompt": -1}])
def test_senseless_answers_are_refused(changes):
    settings = {"prompt": 512, "answer": 2048, "batch": 64} | changes
    with pytest.raises(InputError):
        reinforcement_step(LLAMA_8B, H100, **settings)
