"""The benchmarks: what the GPU plan records, without a GPU, and the CPU gates' own arithmetic."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load_benchmark(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu_roofline = load_benchmark("gpu_roofline")
decode_prefill = load_benchmark("decode_prefill")


class TooLarge(Exception):
    pass


class OnPaper:
    """A device that needs one second a GFLOP and has room for 8 cached tokens in all."""

    def __init__(self):
        self.asked = []

    def describe(self):
        return {"device": "paper"}

    def gemm(self, size):
        return ("gemm", size)

    def copy(self, count):
        return ("copy", count)

    def prefill(self, tokens):
        return ("prefill", tokens)

    def decode(self, cached, batch):
        if cached * batch > 8:
            raise TooLarge
        return ("decode", cached, batch)

    def seconds(self, run, repeats):
        self.asked.append(run)
        return 0.5

    def is_out_of_memory(self, error):
        return isinstance(error, TooLarge)


@pytest.fixture
def record():
    device = OnPaper()
    found = gpu_roofline.measure(device, gpu_roofline.TOY_LAYER, gpu_roofline.TOY, repeats=3)
    assert device.asked[0] == ("copy", 2**16)
    return found


def test_the_plan_covers_what_the_chapters_plot():
    plan = gpu_roofline.PLAN
    assert min(plan["prefill"]) == 64 and max(plan["prefill"]) == 8192
    assert {cached for cached, _ in plan["decode"]} >= {128, 32768}
    assert {batch for _, batch in plan["decode"]} >= {1, 64}
    a = gpu_roofline.LAYER
    assert (a.layers, a.hidden, a.ffn, a.heads, a.kv_heads, a.head_dim) == (
        1, 4096, 14336, 32, 8, 128,
    )  # fmt: skip


def test_rows_hold_hand_counted_work(record):
    assert record["copy"] == [{"bytes": 2 * 2**16, "seconds": 0.5}]
    assert record["gemm"][0] == {
        "size": 16, "flops": 2 * 16**3, "bytes": 3 * 16 * 16 * 2, "seconds": 0.5,
    }  # fmt: skip
    # One layer of d 64, f 96, 4 heads and 2 KV heads of 16: 30,720 matrix entries.
    entries = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96
    assert entries == 30_720
    # Causal prefill of 4 tokens: 10 pairs in 4 heads of 16, 2 x 2 FLOP an element.
    assert record["prefill"][0]["flops"] == 4 * 2 * entries + 10 * 4 * 4 * 16
    # Decode at 4 cached: weights, 4 cached and 1 new token of 2 x 2 x 16, 2 d activations; 2 B.
    assert record["decode"][0]["bytes"] == 2 * (entries + 5 * 64 + 2 * 64)


def test_what_does_not_fit_is_named(record):
    assert record["left_out"] == [{"kind": "decode", "cached": 8, "batch": 2}]
    assert len(record["decode"]) == 1


def test_the_record_says_where_it_comes_from(record):
    assert record["device"] == "paper"
    assert record["best_of"] == 3
    assert record["date"] > "2020"
    assert record["layer"]["name"] == "toy"
    json.dumps(record)


def test_other_errors_are_not_swallowed(monkeypatch):
    def broken(self, tokens):
        raise RuntimeError("the kernel failed")

    monkeypatch.setattr(OnPaper, "prefill", broken)
    with pytest.raises(RuntimeError, match="the kernel failed"):
        gpu_roofline.measure(OnPaper(), gpu_roofline.TOY_LAYER, gpu_roofline.TOY)


def test_without_pytorch_it_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert gpu_roofline.main(["--toy", "--device", "cpu"]) == 2
    assert "pip install torch" in capsys.readouterr().err


def test_the_bare_products_are_those_of_a_step(tiny, monkeypatch):
    """The gates compare a step with its own products: the same FLOPs, counted as they run."""
    from inferlab.step import prefill, step

    counted = []

    class Counting(np.ndarray):
        def __matmul__(self, other):
            counted.append(2 * self.size * other.shape[-1])
            return np.asarray(self) @ np.asarray(other)

    ones = np.ones
    monkeypatch.setattr(decode_prefill.np, "ones", lambda *args: ones(*args).view(Counting))
    decode_prefill.products(tiny.decoder, 6, 6)()
    accounting = decode_prefill.ENGINE.but(pairs="full")
    assert sum(counted) == step(tiny.architecture, prefill(6), accounting).flops
