"""Deployment: a model on one or several accelerators (chapters 9, 12 and 13).

Does it fit, and how fast can it be at most? Tensor parallelism splits every matrix over the GPUs
and adds two all-reduces a layer. What is computed here is a bound: all efficiencies are 1, and
computing, reading memory and talking to the peers overlap perfectly. What engines reach of it is
`inferlab.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from inferlab.accelerator import Accelerator
from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.quantities import (
    InputError,
    bytes_per_element,
    ceil,
    choose,
    is_array,
    is_symbolic,
    maximum,
    minimum,
    number,
    ratio,
)
from inferlab.step import (
    Component,
    Sequence,
    Work,
    check_positions,
    decode,
    distinct_experts,
    prefill,
    step,
)

BOUND = ENGINE.but(activations="none")
"""What no engine can avoid moving. The residual stream may stay in the cache, so it is left out."""

MEMORY_FRACTION = 0.9
"""The share of a GPU's memory that an engine takes: vLLM's default for years, and at the measurement
below; newer versions take 0.92 (`gpu_memory_utilization` in the signature of `vllm.LLM`)."""

RESERVED = 1.7e9
"""Bytes of it that an engine keeps for workspace and CUDA graphs: what vLLM kept of a 24 GiB card with
Llama-3.1-8B, where 41,408 tokens of KV fitted and not the 54,400 that 0.9 leaves (LLMServingSim #59)."""

# The arithmetic that weights of a dtype can run in, fastest first; 16-bit arithmetic is always open.
# int4 weights are expanded to 16 bits before they are multiplied.
_ARITHMETIC = {
    "fp8": ("fp8",),
    "int8": ("int8",),
    "q8_0": ("int8",),
    "q4_0": ("int8",),
    "q4_1": ("int8",),
    "fp4": ("fp4", "fp8"),
    "nvfp4": ("fp4", "fp8"),
    "mxfp4": ("fp4", "fp8"),
    "tf32": ("tf32",),
    "fp32": ("fp32",),
}


def compute_dtype(weights: str, accelerator: Accelerator) -> str:
    """The arithmetic with the highest peak that weights of this dtype can run in on a machine."""
    for dtype in _ARITHMETIC.get(weights, ()):
        if dtype in accelerator.peaks:
            return dtype
    if weights == "fp16" and "fp16" in accelerator.peaks:
        return "fp16"
    # A machine that was measured in 32 bits alone, as `inferlab measure --save` describes it.
    return "fp32" if set(accelerator.peaks) == {"fp32"} else "bf16"


def smaller_kv(weights: str) -> str:
    """The smaller cache dtype in use beside weights of this dtype: 16 bits, 8 when quantized."""
    return "bf16" if bytes_per_element(weights) >= 2 else "fp8"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A model on `gpus` accelerators of one kind, split by tensor parallelism.

    weights, kv, compute: dtypes. kv None is a cache of unknown dtype: bounds take the smaller that
    is in use (`smaller_kv`), memory the 16 bits that engines default to. compute None is the
    fastest arithmetic that the weights can run in.

    Raises InputError for GPUs that cannot share the heads evenly, or a dtype without a peak.
    """

    architecture: Architecture
    accelerator: Accelerator
    gpus: int = 1
    weights: str = "bf16"
    kv: str | None = None
    compute: str | None = None

    def __post_init__(self):
        number(self.gpus, "gpus", positive=True, whole=True)
        heads = self.architecture.heads
        open_numbers = is_symbolic(heads) or is_symbolic(self.gpus)
        if not open_numbers and heads % self.gpus:
            raise InputError(
                f"{self.gpus} GPUs cannot share the {heads} heads of {self.architecture.name} evenly:"
                " expected a number that divides them"
            )
        if self.gpus != 1 and self.accelerator.link_bandwidth is None:
            raise InputError(
                f"{self.accelerator.name} has no link to a peer: expected 1 GPU, or an accelerator"
                " with link_bandwidth"
            )
        for dtype in (self.weights, self.kv):
            if dtype is not None:
                bytes_per_element(dtype)
        self.accelerator.peak(self.arithmetic)

    @property
    def arithmetic(self) -> str:
        """The dtype that keys the compute peak."""
        return self.compute or compute_dtype(self.weights, self.accelerator)

    @property
    def kv_share(self):
        """The share of the KV cache that each GPU holds.

        KV heads are not split: a GPU holds at least one, and a whole number of them. The latent of
        MLA serves all heads, so every GPU holds all of it.
        """
        if self.architecture.mla:
            return 1
        heads = self.architecture.kv_heads
        return ratio(ceil(ratio(heads, self.gpus)), heads)


# --- memory ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """Bytes on each GPU: weights, kv, reserved (what an engine keeps), free (below zero: too much)."""

    weights: Any
    kv: Any
    reserved: Any
    free: Any

    @property
    def fits(self):
        """Whether everything fits."""
        return self.free >= 0


def memory(
    d: Deployment, length, batch=1, *, fraction=MEMORY_FRACTION, reserved=RESERVED
) -> Memory:
    """Where the memory of each GPU goes, with `batch` sequences of `length` tokens cached.

    All parameters are held, the token table too. fraction: the share of the card that the engine
    takes. reserved: bytes of that share that hold neither weights nor KV. Chapters 4, 7 and 13.

    Raises InputError when the accelerator's capacity is unknown, and for a share that is none.
    """
    fraction = number(fraction, "fraction", positive=True, most=1)
    card = d.accelerator.capacity
    if card is None:
        raise InputError(f"{d.accelerator.name} has no capacity: expected the bytes of its memory")
    weights = ratio(d.architecture.weight_bytes(d.weights), d.gpus)
    kv = number(batch, "batch") * kv_bytes(d, length, d.kv or "bf16")
    kept = card - fraction * card + reserved
    return Memory(weights, kv, kept, card - weights - kv - kept)


def kv_bytes(d: Deployment, length, dtype):
    """Bytes of KV that each GPU holds for one sequence of `length` tokens."""
    return d.architecture.kv_bytes(length, dtype) * d.kv_share


def sequences_that_fit(
    d: Deployment, length, *, kv=None, fraction=MEMORY_FRACTION, reserved=RESERVED
):
    """How many sequences of `length` tokens fit beside the weights (0: none)."""
    room = memory(d, 0, fraction=fraction, reserved=reserved).free
    return how_many_fit(room, kv_bytes(d, length, kv or d.kv or "bf16"))


def how_many_fit(room, each):
    """How many things of `each` bytes fit into `room` bytes, 0 where the room is below zero.

    >>> how_many_fit(40, 12), how_many_fit(-40, 12)
    (3, 0)
    """
    fit = ratio(room, each)
    whole = fit // 1 if is_array(fit) or is_symbolic(fit) else int(fit // 1)
    return maximum(0, whole)


# --- one step on each GPU ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """What one step asks of each GPU.

    work: its share of the Work. messages: all-reduces of the step. message_bytes: what each of
    them moves over a GPU's link. tokens, sequences: how many the step feeds, in all.
    """

    work: Work
    messages: Any
    message_bytes: Any
    tokens: Any
    sequences: Any


def share(d: Deployment, sequences: list[Sequence], *, kv=None) -> Share:
    """Split one step over the GPUs.

    Two all-reduces a layer, after attention and after the FFN, each of the d activations of every
    token; a ring moves 2 (n-1)/n of them over each link. kv: the cache dtype, where the
    deployment leaves it open.
    """
    cache = kv or d.kv or smaller_kv(d.weights)
    whole = step(d.architecture, sequences, BOUND, weights=d.weights, kv=cache)
    parts = {name: _split(part, d) for name, part in whole.components.items()}
    tokens = sum(s.new * s.count for s in sequences)
    return Share(
        work=Work.of(parts),
        messages=choose(d.gpus > 1, 2 * d.architecture.layers, 0),
        message_bytes=ratio(
            tokens * d.architecture.hidden * bytes_per_element("bf16") * 2 * (d.gpus - 1), d.gpus
        ),
        tokens=tokens,
        sequences=sum(s.count for s in sequences),
    )


def _split(part: Component, d: Deployment) -> Component:
    return Component(
        flops=ratio(part.flops, d.gpus),
        weights=ratio(part.weights, d.gpus),
        kv_read=part.kv_read * d.kv_share,
        kv_write=part.kv_write * d.kv_share,
    )


def ceilings(d: Deployment, sequences: list[Sequence], *, kv=None) -> dict[str, Any]:
    """Seconds that one step needs at least for computing, for memory and for the network."""
    part = share(d, sequences, kv=kv)
    network = 0
    if d.gpus != 1:
        link = d.accelerator
        network = part.messages * (
            link.link_latency + ratio(part.message_bytes, link.link_bandwidth)
        )
    return {
        "compute": ratio(part.work.flops, d.accelerator.peak(d.arithmetic)),
        "memory": ratio(part.work.bytes, d.accelerator.bandwidth),
        "network": network,
    }


def step_bound(d: Deployment, sequences: list[Sequence], *, kv=None):
    """The least seconds that one step takes: the highest of its three ceilings."""
    return maximum(*ceilings(d, sequences, kv=kv).values(), compare=False)


# --- a batch of requests -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """Times of a batch of requests: seconds to the first token of the whole batch's prefill, seconds
    a further token, and output tokens a second from start to end."""

    ttft_s: Any
    tpot_s: Any
    tokens_per_s: Any


def answering(d: Deployment, prompt, output, batch=1) -> Deployment:
    """The deployment, once its model has the positions that a batch of requests takes.

    The last token is never fed back, so they are `prompt` + `output` - 1. Checked here for the
    whole answer, they are no longer checked step by step: the step that stands for all of them (see
    `mid_context`) may lie one past the end of a short one. Raises InputError for lengths that are no
    whole numbers above zero, and for positions that a learned table lacks.
    """
    for value, name in ((prompt, "prompt tokens"), (output, "output tokens"), (batch, "batch")):
        number(value, name, positive=True, whole=True)
    if d.architecture.position_limit is None:
        return d
    check_positions(d.architecture, [Sequence(prompt, output - 1)])
    return replace(d, architecture=d.architecture.but(position_limit=None))


def mid_context(prompt, output):
    """Tokens cached at the middle of an answer, where a decode step costs what it costs on average."""
    return prompt + output // 2


def running(
    d: Deployment,
    prompt,
    output,
    batch,
    *,
    kv=None,
    fraction=MEMORY_FRACTION,
    reserved=RESERVED,
):
    """How many of a batch's sequences decode at the same time: as many as memory holds.

    All of them where it cannot hold even one, so that a time can still be asked for.
    """
    if d.accelerator.capacity is None:
        return batch
    kv = kv or d.kv or smaller_kv(d.weights)
    length = mid_context(prompt, output)
    fit = sequences_that_fit(d, length, kv=kv, fraction=fraction, reserved=reserved)
    return choose(fit < 1, batch, minimum(batch, fit))


def bound(d: Deployment, prompt, output, batch=1, *, fraction=MEMORY_FRACTION) -> Estimate:
    """The least that a batch can take, in steps that run one after the other.

    prompt, output: tokens of each of `batch` requests. TPOT is the step at the middle of the
    answer, to within the cache of a token. Of a batch that memory cannot hold, TPOT is of as many
    sequences as an engine runs at a time, and the throughput that of as many as the whole card
    holds. fraction: the share of a GPU's memory that the engine takes.
    """
    d = answering(d, prompt, output, batch)
    first = step_bound(d, prefill(prompt, batch))
    context = mid_context(prompt, output)
    later = step_bound(d, decode(context, running(d, prompt, output, batch, fraction=fraction)))
    most = running(d, prompt, output, batch, fraction=1, reserved=0)
    each_wave = (output - 1) * step_bound(d, decode(context, most))
    total = first + each_wave * ratio(batch, most)
    return Estimate(first, later, ratio(batch * output, total))


def bottleneck(
    d: Deployment, prompt, output, batch=1, *, fraction=MEMORY_FRACTION
) -> dict[str, str]:
    """The highest ceiling of each phase: 'compute', 'memory' or 'network'."""
    d = answering(d, prompt, output, batch)
    together = running(d, prompt, output, batch, fraction=fraction)
    phases = {
        "prefill": ceilings(d, prefill(prompt, batch)),
        "decode": ceilings(d, decode(mid_context(prompt, output), together)),
    }
    return {phase: max(times, key=times.get) for phase, times in phases.items()}


def single_changes(d: Deployment, batch) -> dict[str, tuple[Deployment, int]]:
    """Deployments that differ from this one in one thing, each with its batch. Chapter 13.

    Twice the GPUs, weights of fp8 and of int4, a cache of fp8, half the batch and twice the batch;
    without GPUs that cannot share the heads, and without dtypes that are no smaller.
    """
    size = bytes_per_element(d.weights)
    found = {
        f"{dtype} weights": (replace(d, weights=dtype, compute=None), batch)
        for dtype in ("fp8", "int4")
        if bytes_per_element(dtype) < size
    }
    if d.accelerator.link_bandwidth is not None and d.architecture.heads % (2 * d.gpus) == 0:
        found = {f"{2 * d.gpus} GPUs": (replace(d, gpus=2 * d.gpus), batch)} | found
    if bytes_per_element(d.kv or smaller_kv(d.weights)) > 1:
        found["fp8 KV cache"] = replace(d, kv="fp8"), batch
    if batch > 1:
        found[f"{batch // 2} at a time"] = d, batch // 2
    found[f"{2 * batch} at a time"] = d, 2 * batch
    return found


def experts_read(architecture: Architecture, tokens) -> dict[str, Any] | None:
    """Distinct experts a layer that `tokens` tokens read: expected, and the least and most possible.

    The expectation takes uniform, independent routing, so it is an estimate; the times of a
    mixture of experts rest on it. None for a dense model. Chapter 9.
    """
    moe = architecture.moe
    if not moe:
        return None
    return {
        "expected": distinct_experts(moe.experts, moe.active, tokens),
        "least": moe.active,
        "most": minimum(moe.experts, moe.active * tokens),
    }
