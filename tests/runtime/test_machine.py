"""Measuring a machine, and the committed record of timings."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
import sympy

from inferlab import machine
from inferlab.accelerator import Accelerator
from inferlab.machine import hardware, timings
from inferlab.quantities import InputError

PHASES = ("prefill", "decode", "batch", "width")


def test_the_fastest_rows_make_the_machine():
    stream = [
        {"kernel": "read", "bytes": 10, "seconds": 2.0},
        {"kernel": "copy", "bytes": 30, "seconds": 3.0},
    ]
    gemm = [
        {"size": 2, "flops": 16, "seconds": 1.0},
        {"size": 4, "flops": 128, "seconds": 4.0},
    ]
    made = hardware.as_accelerator("mine", stream, gemm, "by hand")
    assert (made.bandwidth, made.peak("fp32")) == (10.0, 32.0)
    assert "copy" in made.sources["bandwidth"]
    assert "size 4" in made.sources["peaks"]


def test_measure_returns_an_accelerator_like_any_other(tmp_path):
    measured = machine.measure(1, repeats=2, stream_bytes=2**20, sizes=(32, 64))
    assert isinstance(measured, Accelerator)
    # Any computer that runs this does 10 MFLOP/s and 10 MB/s, and none a PFLOP/s or PB/s.
    assert 1e7 < measured.peak("fp32") < 1e15
    assert 1e7 < measured.bandwidth < 1e15
    machine.save(measured, tmp_path / "mine.toml")
    assert machine.load(tmp_path / "mine.toml") == measured


def test_a_machine_of_any_name_and_number_is_saved(tmp_path):
    machine.save(
        Accelerator(
            name='"my" \\ \x7f \n GPU \U0001f680',
            peaks={"fp32": Fraction(10**12, 3)},
            bandwidth=np.float32(2**30),
            capacity=2**34,
            price=Fraction(5, 2),
            sources={"peaks": "\U0001f680"},
        ),
        tmp_path / "any.toml",
    )
    read = machine.load(tmp_path / "any.toml")
    assert (read.name, read.sources) == ('"my" \\ \x7f \n GPU \U0001f680', {"peaks": "\U0001f680"})
    assert read.peaks == {"fp32": pytest.approx(10**12 / 3)}
    assert (read.bandwidth, read.capacity, read.price) == (2**30, 2**34, 2.5)


@pytest.mark.parametrize(
    "changes", [{"name": "half \ud83d"}, {"bandwidth": sympy.Symbol("beta", positive=True)}]
)
def test_what_a_file_cannot_hold_is_not_saved(tmp_path, changes):
    one = Accelerator(name="mine", peaks={"fp32": 1e9}, bandwidth=1e9).but(**changes)
    with pytest.raises(InputError, match="cannot be saved: expected a number or a text"):
        machine.save(one, tmp_path / "mine.toml")
    assert not (tmp_path / "mine.toml").exists()


def test_load_refuses_a_file_of_several(tmp_path):
    path = tmp_path / "two.toml"
    one = "[accelerators.{0}]\npeaks = {{fp32 = 1e9}}\nbandwidth = 1e9\n"
    path.write_text(one.format("a") + one.format("b"))
    with pytest.raises(InputError, match="describes 2 machines: expected one"):
        machine.load(path)


def test_stream_rows_count_what_is_moved():
    read, copy, scale = hardware.measure_stream(4096, repeats=1)
    assert (read["bytes"], copy["bytes"], scale["bytes"]) == (4096, 8192, 8192)


def test_gemm_rows_count_two_m_k_n():
    (row,) = hardware.measure_gemm((16,), repeats=1)
    assert (row["flops"], row["bytes"]) == (2 * 16**3, 3 * 16 * 16 * 4)


def test_best_seconds_is_the_least_after_a_warm_up(monkeypatch):
    now, waits = 0.0, iter([1.0, 8.0, 2.0, 4.0])

    def work():
        nonlocal now
        now += next(waits)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert hardware.best_seconds(work, 3) == 2.0
    assert next(waits, None) is None


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_thread_counts_that_make_no_sense(count):
    with pytest.raises(InputError, match="threads is"), machine.threads(count):
        pass


def test_a_new_record_of_a_tiny_model_is_written_and_read(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(timings, "measure_stream", lambda repeats: hardware.measure_stream(4096, 1))
    monkeypatch.setattr(timings, "measure_matvec", lambda repeats: hardware.measure_matvec(64, 1))
    monkeypatch.setattr(timings, "measure_gemm", lambda repeats: hardware.measure_gemm((8, 16), 1))
    for name, small in {
        "PREFILL_TOKENS": (2, 4), "DECODE_CACHED": (2, 4), "CACHED": 4,
        "BATCH_SEQUENCES": (1, 2), "WIDTH_TOKENS": (1, 2), "GENERATE_TOKENS": (2,),
    }.items():  # fmt: skip
        monkeypatch.setattr(timings, name, small)
    monkeypatch.setattr(timings.time_batch, "__defaults__", ((1, 2), 4, 1))
    monkeypatch.setattr(timings.time_width, "__defaults__", ((1, 2), 4, 1))
    monkeypatch.setattr(timings.time_kernels, "__defaults__", ((1, 2), 1))
    monkeypatch.setattr(timings.time_request, "__defaults__", ("hi", 4))
    one = machine.record_now(tiny, 1, best_of=1)
    path = tmp_path / "record.json"
    timings.write(one, path)
    timings.write(one, path)
    for text, said in (("[]", "holds no record"), ("{}", "holds no record"), ("a", "is not JSON")):
        (tmp_path / "other").write_text(text)
        with pytest.raises(InputError, match=said):
            timings.write(one, tmp_path / "other")
        assert (tmp_path / "other").read_text() == text
    with pytest.raises(InputError, match="cannot be written"):
        timings.write(one, tmp_path / "no" / "where.json")

    monkeypatch.setattr(timings.resources, "files", lambda package: tmp_path)
    (tmp_path / "data" / "measurements").mkdir(parents=True)
    path.rename(tmp_path / "data" / timings.FILE)
    read = machine.record(1)
    assert [row["tokens"] for row in read.prefill] == [2, 4]
    assert [row["cache"] for row in read.generate] == [True, False]
    assert read.request["prompt_ids"] == one.request["prompt_ids"]
    for phase in PHASES:
        for row, original in zip(getattr(read, phase), getattr(one, phase), strict=True):
            assert row["seconds"] == pytest.approx(original["seconds"], rel=1e-3)
    with pytest.raises(InputError, match="no timings at 2 threads"):
        machine.record(2)


def test_timing_a_step_leaves_the_cache_as_long_as_it_was(tiny):
    cache = timings._filled_cache(tiny.decoder, 3, 2)
    timings._time_step(tiny.decoder, [([5], cache)], best_of=2)
    assert cache.length in (3, 4)


# --- the record that the book shows ---------------------------------------------------------------


@pytest.fixture(scope="module")
def committed():
    return machine.record(1)


def test_the_record_says_where_it_comes_from(committed):
    assert committed.machine["cpu"]
    assert committed.date > "2020"
    assert committed.best_of >= 5
    assert committed.accelerator.capacity == committed.machine["memory_bytes"]


@pytest.mark.parametrize("phase", PHASES)
def test_each_phase_is_recorded_at_five_lengths_beside_its_prediction(committed, smollm2, phase):
    rows = committed.beside_prediction(smollm2.architecture, phase)
    assert len(rows) >= 5
    for row in rows:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["seconds"] / row["predicted"])
        # A bound from this machine's own best bandwidth and product: no step may beat it.
        assert row["ratio"] > 1
        assert math.isfinite(row["ratio"])


def test_the_prediction_of_a_decode_step_is_its_bytes_over_the_bandwidth(committed, smollm2):
    # Hand sum for S = 256: weights 30 (576 x 576 x 2 + 576 x 192 x 2 + 3 x 576 x 1536) + 49152 x 576
    # elements, cache 256 + 1 tokens x 30 x 2 x 3 x 64, residual stream 30 x 2 x 576; 4 bytes each.
    weights = 30 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536) + 49152 * 576
    elements = weights + 257 * 30 * 2 * 3 * 64 + 30 * 2 * 576
    row = next(
        row
        for row in committed.beside_prediction(smollm2.architecture, "decode")
        if row["cached"] == 256
    )
    assert row["predicted"] == pytest.approx(4 * elements / committed.accelerator.bandwidth)


def test_an_unknown_phase(committed, smollm2):
    with pytest.raises(InputError, match="no phase 'training'"):
        committed.beside_prediction(smollm2.architecture, "training")


def test_the_recorded_request_is_what_the_model_says(committed, smollm2):
    request = committed.request
    assert smollm2.tokenizer.chat(request["question"]) == request["prompt_ids"]
    assert len(request["step_s"]) == len(request["ids"]) - 1
    assert request["ids"][-1] in smollm2.tokenizer.stop
