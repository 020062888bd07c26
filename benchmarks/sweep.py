"""Sweep a million points (model, accelerator, batch, context) in about a second.

    python benchmarks/sweep.py [--points N]

A decode step's roofline bound is computed at every point twice: through NumPy arrays, which the
library's functions take like numbers, and by a plain loop over numbers, timed on a sample and checked
against the arrays. The functions are the same; only what is put into them differs.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
from inferlab.roofline import roofline
from inferlab.step import decode, step

SAMPLE = 2000
"""Points that the plain loop is timed on."""


def grid(points: int):
    """Models, accelerators, batches and contexts whose product is at least `points` points."""
    models = [Architecture.preset(name) for name in Architecture.names()]
    machines = [Accelerator.preset(name) for name in Accelerator.names()]
    machines = [machine for machine in machines if {"bf16", "fp16"} & set(machine.peaks)]
    side = int(np.ceil((points / len(models) / len(machines)) ** 0.5))
    batches = np.unique(np.geomspace(1, 1024, side).round().astype(int))
    contexts = np.linspace(128, 131_072, -(-points // (len(models) * len(machines) * len(batches))))
    return _unlimited(models), machines, batches, contexts.round().astype(int)


def _unlimited(models):
    # A learned position table ends long before the longest context here: sweep the shapes alone.
    return [model.but(position_limit=None) for model in models]


def sweep(models, machines, batches, contexts) -> np.ndarray:
    """Seconds of a decode step, by model, accelerator, batch and context, through arrays."""
    every = Accelerator(
        name="every accelerator",
        peaks={"bf16": np.array([machine.peak() for machine in machines])[:, None, None]},
        bandwidth=np.array([machine.bandwidth for machine in machines])[:, None, None],
    )
    steps = decode(contexts[None, :], batch=batches[:, None])
    return np.stack([roofline(step(model, steps), every).time_s for model in models])


def loop(points) -> list[float]:
    """The same seconds for (model, accelerator, batch, context) tuples, one by one."""
    return [
        roofline(step(model, decode(context, batch)), machine).time_s
        for model, machine, batch, context in points
    ]


def main():
    """Run both and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    models, machines, batches, contexts = axes = grid(parser.parse_args().points)

    start = time.perf_counter()
    swept = sweep(*axes)
    seconds = time.perf_counter() - start

    # Every k-th point, so that the sample meets all models, machines, batches and contexts.
    every = max(swept.size // SAMPLE, 1)
    chosen = list(range(0, swept.size, every))
    batch_sizes, lengths = (axis.tolist() for axis in (batches, contexts))
    points = list(itertools.product(models, machines, batch_sizes, lengths))
    sample = [points[i] for i in chosen]
    start = time.perf_counter()
    looped = loop(sample)
    each = (time.perf_counter() - start) / len(sample)

    error = np.max(np.abs(swept.ravel()[chosen] / np.array(looped, dtype=float) - 1))
    print(f"points           {swept.size:,} = {' x '.join(map(str, swept.shape))}")
    print(f"NumPy arrays     {seconds:.2f} s, {seconds / swept.size * 1e6:.3f} us a point")
    print(f"plain loop       {each * 1e6:.0f} us a point, {each * swept.size:.0f} s for as many")
    print(f"speed-up         {each * swept.size / seconds:,.0f} x")
    print(f"largest relative difference of {len(sample):,} points: {error:.1e}")


if __name__ == "__main__":
    main()
