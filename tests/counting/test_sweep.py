"""A million points are swept through arrays in about a second, and equal the plain loop."""

import importlib.util
import itertools
import time
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "sweep.py"
SPEC = importlib.util.spec_from_file_location("sweep", BENCHMARK)
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)


def test_arrays_equal_the_plain_loop():
    models, machines, batches, contexts = axes = benchmark.grid(10_000)
    swept = benchmark.sweep(*axes).ravel()
    points = list(itertools.product(models, machines, batches.tolist(), contexts.tolist()))
    assert len(points) == swept.size >= 10_000
    some = range(0, swept.size, 97)
    assert [
        float(seconds) for seconds in benchmark.loop([points[i] for i in some])
    ] == pytest.approx([swept[i] for i in some], rel=1e-9)


def test_a_million_points_take_about_a_second():
    axes = benchmark.grid(1_000_000)
    start = time.process_time()
    assert benchmark.sweep(*axes).size >= 1_000_000
    # Half a second on the machine that this was written on; other work on it may slow it.
    assert time.process_time() - start < 3
