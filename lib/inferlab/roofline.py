"""The Roofline model: two ceilings and one corner (chapter 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inferlab.accelerator import Accelerator
from inferlab.quantities import (
    InputError,
    is_array,
    is_symbolic,
    maximum,
    minimum,
    number,
    ratio,
)
from inferlab.step import Component


def ridge_point(accelerator: Accelerator, dtype: str = "bf16"):
    """The intensity at which both ceilings meet, in FLOP/byte: peak / bandwidth. Chapter 8."""
    return ratio(accelerator.peak(dtype), accelerator.bandwidth)


def attainable(intensity, peak, bandwidth):
    """The most FLOP/s that a workload of this intensity can reach: min(pi, I beta). Chapter 8."""
    return minimum(peak, intensity * bandwidth)


def bound_time(flops, bytes, peak, bandwidth):
    """The least seconds that some work takes: the slower of computing and moving. Chapter 8."""
    return maximum(ratio(flops, peak), ratio(bytes, bandwidth))


@dataclass(frozen=True)
class Roofline:
    """Where some work sits under a machine's roofline.

    compute_s, memory_s: seconds to compute and to move it. time_s: the larger. intensity, ridge:
    FLOP/byte. attainable: FLOP/s.
    """

    compute_s: Any
    memory_s: Any
    time_s: Any
    intensity: Any
    ridge: Any
    attainable: Any

    @property
    def verdict(self):
        """'memory-bound' left of the ridge point, 'compute-bound' from it on (array: of each).

        Raises InputError for symbols, which have no verdict.
        """
        if is_symbolic(self.intensity) or is_symbolic(self.ridge):
            raise InputError("a symbolic intensity has no verdict: compare intensity with ridge")
        if is_array(self.intensity) or is_array(self.ridge):
            import numpy as np

            return np.where(self.intensity < self.ridge, "memory-bound", "compute-bound")
        return "memory-bound" if self.intensity < self.ridge else "compute-bound"


def roofline(
    work: Component,
    accelerator: Accelerator,
    dtype: str = "bf16",
    *,
    compute_efficiency=1,
    memory_efficiency=1,
) -> Roofline:
    """The roofline bound of some work on a machine.

    work: what `step` returns, or one of its components. dtype: the compute dtype that keys the
    peak. The efficiencies scale the two ceilings; at their default of 1 the time is a bound: no
    machine with these datasheet numbers is faster, when compute and movement overlap perfectly.
    Chapter 8.

    Raises InputError for an efficiency that is no share above zero, or a dtype without a peak.
    """
    compute = number(compute_efficiency, "compute_efficiency", positive=True, most=1)
    memory = number(memory_efficiency, "memory_efficiency", positive=True, most=1)
    peak, bandwidth = accelerator.peak(dtype) * compute, accelerator.bandwidth * memory
    return Roofline(
        compute_s=ratio(work.flops, peak),
        memory_s=ratio(work.bytes, bandwidth),
        time_s=bound_time(work.flops, work.bytes, peak, bandwidth),
        intensity=work.intensity,
        ridge=ratio(peak, bandwidth),
        attainable=attainable(work.intensity, peak, bandwidth),
    )


def component_times(
    work, accelerator: Accelerator, dtype: str = "bf16", **efficiencies
) -> dict[str, Roofline]:
    """The roofline of each component that does some work.

    Their times sum to an estimate of a step that does not overlap components: never less than
    the bound of the whole, and not a bound itself. Chapters 8 and 9.
    """
    return {
        name: roofline(part, accelerator, dtype, **efficiencies)
        for name, part in work.components.items()
        if any(is_symbolic(x) or is_array(x) or x > 0 for x in (part.flops, part.bytes))
    }
