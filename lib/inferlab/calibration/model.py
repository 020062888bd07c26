"""The model that is fitted: seconds of a step, and of a batch of requests, from ten parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from inferlab.deployment import (
    MEMORY_FRACTION,
    Deployment,
    mid_context,
    running,
    share,
    smaller_kv,
)
from inferlab.quantities import bytes_per_element, maximum
from inferlab.step import Sequence

_NATIVE = {"fp8": ("fp8",), "fp4": ("fp4", "nvfp4", "mxfp4")}


@dataclass(frozen=True)
class Efficiency:
    """The parameters of one (accelerator, engine).

    memory, compute: the shares of the datasheet's bandwidth and dense peak that are reached. The
        links to the other GPUs take `memory` as their share too: their bytes weigh in prefills on
        several GPUs, and too few rows time one of those to tell a share of their own.
    layer_s: seconds per layer of a step that neither explains (launches, norms, softmax).
    allreduce_s: seconds that an all-reduce takes beside its bytes.
    sequence_s: seconds per step, sequence and GPU. The rows measured on H100s ask for it; why, the
        fit does not say.
    prompt_tokens: tokens of compute that a step of prompts costs beside its own (padding, launches).
    dequantize_bytes: bytes of traffic that each weight costs beside its own, in a format that the
        machine has no arithmetic for. quantized_compute: the same for compute, as a share on top.
    kv_reread: the share of the KV cache that is read once more for each further query head of
        its group (0: each byte once).
    interleaved: the share of the other requests' prefills that falls between a request's tokens.
    """

    memory: float
    compute: float
    layer_s: float
    allreduce_s: float
    sequence_s: float
    prompt_tokens: float
    dequantize_bytes: float
    quantized_compute: float
    kv_reread: float
    interleaved: float


NAMES = tuple(f.name for f in fields(Efficiency))
SHARES = ("memory", "compute", "interleaved")
"""Parameters that lie between 0 and 1; the others are above 0."""


@dataclass(frozen=True)
class Load:
    """What one step asks of one GPU, and the machine it asks it of: numbers, or arrays over rows.

    linear_flops: of the matrices that every token passes; head_flops: of the output head, which
    only the last position of each sequence does. converted_weights: weights of a format that the
    machine has no arithmetic for; their products run in 16 bits. prefills: 1 for a step of prompts, 0
    for a decode step.
    """

    weight_bytes: Any
    linear_flops: Any
    head_flops: Any
    attention_flops: Any
    kv_bytes: Any
    converted_weights: Any
    messages: Any
    message_bytes: Any
    tokens: Any
    sequences: Any
    prefills: Any
    layers: Any
    gpus: Any
    query_heads_a_kv_head: Any
    bandwidth: Any
    peak: Any
    link: Any


def load(d: Deployment, sequences: list[Sequence], kv: str, *, prefills=1) -> Load:
    """The load of one step of a deployment, with a cache of dtype `kv` where it leaves that open."""
    part = share(d, sequences, kv=kv)
    attention = part.work.components["attention_scores_values"]
    head = part.work.components["lm_head"]
    size = bytes_per_element(d.weights)
    native = any(d.arithmetic == a and d.weights in formats for a, formats in _NATIVE.items())
    converted = part.work.weights / size if size < 2 and not native else 0
    a = d.architecture
    return Load(
        weight_bytes=float(part.work.weights),
        linear_flops=float(part.work.flops - attention.flops - head.flops),
        head_flops=float(head.flops),
        attention_flops=float(attention.flops),
        kv_bytes=float(attention.bytes),
        converted_weights=float(converted),
        messages=part.messages,
        message_bytes=float(part.message_bytes),
        tokens=part.tokens,
        sequences=part.sequences,
        prefills=prefills,
        layers=a.layers,
        gpus=d.gpus,
        query_heads_a_kv_head=1 if a.mla else a.heads / a.kv_heads,
        bandwidth=d.accelerator.bandwidth,
        peak=d.accelerator.peak("bf16" if converted else d.arithmetic),
        link=d.accelerator.link_bandwidth or math.inf,
    )


def step_seconds(x: Load, e: Efficiency):
    """Seconds of one step: the roofline of its matrices and of its attention, and the overheads."""
    bandwidth, link, peak = e.memory * x.bandwidth, e.memory * x.link, e.compute * x.peak
    converts = x.converted_weights > 0
    slower = 1 + e.quantized_compute * converts
    flops = x.linear_flops * (1 + e.prompt_tokens * x.prefills / x.tokens) + x.head_flops
    reread = 1 + e.kv_reread * (x.query_heads_a_kv_head - 1)
    return (
        maximum(
            (x.weight_bytes + e.dequantize_bytes * x.converted_weights) / bandwidth,
            flops * slower / peak,
        )
        + maximum(x.kv_bytes * reread / bandwidth, x.attention_flops / peak)
        + x.layers * e.layer_s
        + x.messages * (e.allreduce_s + x.message_bytes / link)
        + x.sequences * x.gpus * e.sequence_s
    )


@dataclass(frozen=True)
class Loads:
    """The steps of a batch of requests: its whole prefill, one request's own, and a decode step.

    waves: how many times over the batch is larger than what memory lets decode together.
    """

    prefill: Load
    one_prefill: Load
    decode: Load
    output: Any
    batch: Any
    waves: Any


def cache_dtype(d: Deployment, kv: str) -> str:
    """The cache dtype of a deployment; where it leaves it open, `kv` beside quantized weights."""
    return d.kv or ("bf16" if smaller_kv(d.weights) == "bf16" else kv)


def loads(
    d: Deployment, prompt, output, batch, kv: str, cached=0, *, fraction=MEMORY_FRACTION
) -> Loads:
    """The loads of a batch, of which as many sequences decode together as an engine's memory holds."""
    together = running(d, prompt, output, batch, kv=kv, fraction=fraction)
    return Loads(
        prefill=load(d, [Sequence(prompt, cached, batch)], kv),
        one_prefill=load(d, [Sequence(prompt, cached)], kv),
        decode=load(d, [Sequence(1, mid_context(prompt, output), together)], kv, prefills=0),
        output=output,
        batch=batch,
        waves=batch / together,
    )


def times(x: Loads, e: Efficiency, served):
    """TTFT of the whole batch, TPOT, and seconds of the whole batch.

    served: requests come and go, so the prefills of the others fall between a request's tokens.
    """
    first = step_seconds(x.prefill, e)
    step = step_seconds(x.decode, e)
    others = x.decode.sequences - 1
    between = served * e.interleaved * others * step_seconds(x.one_prefill, e) / x.output
    # The whole batch pays each prefill once, before its tokens or between them.
    return first, step + between, first + (x.output - 1) * step * x.waves
