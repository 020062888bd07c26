"""The record of a training step, and how it is made."""

import pytest

from inferlab.machine.training import PassTimes, recorded_passes, time_training


def test_the_record_is_read_as_times():
    times = recorded_passes()
    assert isinstance(times, PassTimes)
    assert times.parameters == 1024 * 1024 + 1024 * 1024 + 1024 * 35
    assert "thread" in times.where


def test_backward_costs_about_twice_forward():
    times = recorded_passes()
    assert times.step_s / times.forward_s == pytest.approx(3, rel=0.25)


def test_timing_yields_what_the_record_holds():
    times = time_training(best_of=1)
    assert times.parameters == recorded_passes().parameters
    assert times.step_s > times.forward_s > 0
