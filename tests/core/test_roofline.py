"""Ridge points, bounds and verdicts, against literals of the datasheets and the text."""

import math

import numpy as np
import pytest

from inferlab.accelerator import Accelerator
from inferlab.accounting import ENGINE, TEXT
from inferlab.architecture import Architecture
from inferlab.quantities import InputError
from inferlab.roofline import attainable, component_times, ridge_point, roofline
from inferlab.step import Component, decode, prefill, step

A100 = Accelerator(name="A100", peaks={"bf16": 312e12}, bandwidth=1.555e12)


def test_ridge_points():
    assert ridge_point(A100) == pytest.approx(200.643, rel=1e-5)
    assert ridge_point(A100.but(bandwidth=1.6e12)) == 195


def test_attainable_is_the_lower_ceiling():
    assert attainable(10, 312e12, 1.555e12) == 15.55e12
    assert attainable(1000, 312e12, 1.555e12) == 312e12
    assert list(attainable(np.array([1.0, 1e6]), 4.0, 2.0)) == [2.0, 4.0]


def test_the_bound_of_a_whole_is_never_above_the_sum_of_its_parts():
    work = step(Architecture.preset("LLaMA-7B"), prefill(3000))
    whole = roofline(work, A100)
    parts = component_times(work, A100)
    assert sum(p.time_s for p in parts.values()) > whole.time_s
    assert whole.time_s == max(whole.compute_s, whole.memory_s)


def test_a_part_that_moves_nothing_still_computes():
    """The scores of a prompt whose caches nobody writes: without them the sum would be too small."""
    accounting = ENGINE.but(kv_write=False, activations="none")
    work = step(Architecture.preset("LLaMA-7B"), prefill(3000), accounting)
    scores = component_times(work, A100)["attention_scores_values"]
    # 3000 x 3001 / 2 pairs, 4 x 4096 FLOPs each, in 32 layers
    assert scores.time_s == pytest.approx(4_501_500 * 4 * 4096 * 32 / 312e12)
    assert (scores.intensity, scores.attainable) == (math.inf, 312e12)
    assert scores.verdict == "compute-bound"


def test_verdicts_on_either_side_of_the_ridge():
    assert roofline(Component(flops=200, weights=1), A100).verdict == "memory-bound"
    assert roofline(Component(flops=201, weights=1), A100).verdict == "compute-bound"
    sweep = roofline(Component(flops=np.array([1.0, 1e3]), weights=1), A100)
    assert list(sweep.verdict) == ["memory-bound", "compute-bound"]


def test_efficiencies_scale_each_ceiling():
    work = step(Architecture.preset("LLaMA-7B"), decode(3000), TEXT)
    bound = roofline(work, A100)
    slower = roofline(work, A100, compute_efficiency=0.5, memory_efficiency=0.8)
    assert slower.compute_s == pytest.approx(2 * bound.compute_s)
    assert slower.memory_s == pytest.approx(bound.memory_s / 0.8)
    with pytest.raises(InputError, match="memory_efficiency is 0: expected a number above zero"):
        roofline(work, A100, memory_efficiency=0)


def test_half_precisions_share_a_peak_and_others_are_refused():
    assert A100.peak("fp16") == 312e12
    with pytest.raises(InputError, match="A100 has no 'fp8' peak: expected one of bf16"):
        A100.peak("fp8")


def test_impossible_machines_are_refused():
    with pytest.raises(InputError, match="A: bandwidth is 0: expected a number above zero"):
        Accelerator(name="A", peaks={"bf16": 1}, bandwidth=0)
    with pytest.raises(InputError, match="expected a table of FLOP/s by dtype"):
        Accelerator(name="A", peaks={}, bandwidth=1)


def test_a_preset_file_says_what_is_wrong(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[accelerators.X]\npeaks = {bf16 = 1e12}\nbandwith = 1e12\n")
    with pytest.raises(InputError, match=r"\[accelerators.X\] has the unknown key 'bandwith'"):
        Accelerator.from_toml(path)
    path.write_text("[accelerators.X\n")
    with pytest.raises(InputError, match="is not TOML"):
        Accelerator.from_toml(path)
    path.write_text("[accelerators.X]\npeaks = {bf16 = 2e12}\nbandwidth = 1e12\n")
    assert ridge_point(Accelerator.from_toml(path)["X"]) == 2
