"""Training: what it computes, how long that takes, and what it keeps in memory (chapters 2 to 4).

Two counts of one training run. The short one knows the number of parameters P and of tokens D only:
2 P D forward, 4 P D backward. The long one (`counted_passes`) lists the matrix products of an
`Architecture`, attention and output head included; chapter 3 sets them side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inferlab.accelerator import Accelerator
from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.matmul import matmul_flops
from inferlab.quantities import InputError, bytes_of, bytes_per_element, number, ratio
from inferlab.roofline import roofline
from inferlab.step import decode, prefill, step

# --- FLOPs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passes:
    """FLOPs of training, apart: the results, the gradients of inputs and those of weights."""

    forward: Any
    input_gradient: Any
    weight_gradient: Any

    @property
    def backward(self):
        """FLOPs of the backward pass."""
        return self.input_gradient + self.weight_gradient

    @property
    def total(self):
        """FLOPs of both passes."""
        return self.forward + self.backward


def linear_passes(m, k, n) -> Passes:
    """Training FLOPs of one linear layer Y = X W, with X of m tokens by k and W of k by n.

    Forward X W; backward dX = dY W^T to go on to the layer before, and dW = X^T dY to update W.
    Three products of the same three sides, so three times 2 m k n. Chapter 3.
    """
    return Passes(
        forward=matmul_flops(m, k, n),
        input_gradient=matmul_flops(m, n, k),
        weight_gradient=matmul_flops(k, m, n),
    )


def forward_flops(parameters, tokens):
    """FLOPs to run `tokens` tokens forward through `parameters` parameters: 2 P D.

    Every parameter is multiplied once and added once a token. Attention over the context is left
    out. Raises InputError for a number below zero. Chapter 3.
    """
    return 2 * number(parameters, "parameters", positive=True) * number(tokens, "tokens")


def backward_flops(parameters, tokens):
    """FLOPs of the backward pass: 4 P D, two products for each one forward. Chapter 3."""
    return 2 * forward_flops(parameters, tokens)


def training_flops(parameters, tokens):
    """FLOPs of training on `tokens` tokens: 6 P D, forward and backward (Kaplan et al. 2020).

    >>> training_flops(8 * 10**9, training_tokens(8 * 10**9))
    7680000000000000000000
    """
    return forward_flops(parameters, tokens) + backward_flops(parameters, tokens)


def training_tokens(parameters, tokens_per_parameter=20):
    """Tokens to train on: 20 a parameter spend a fixed compute best (Hoffmann et al. 2022)."""
    each = number(tokens_per_parameter, "tokens per parameter", positive=True)
    return number(parameters, "parameters", positive=True) * each


def counted_passes(architecture: Architecture, length, batch=1) -> Passes:
    """Training FLOPs of `batch` sequences of `length` tokens, matrix product by matrix product.

    The forward pass is a causal prefill with the output head at every position. Each of its
    products A B, those of attention too, has two of the same size backward: one for dA and one for
    dB. For the attention scores both operands are activations, so there `weight_gradient` holds dK
    and dV. Chapter 3.
    """
    forward = step(architecture, prefill(length, batch), ENGINE.but(logits="all")).flops
    return Passes(forward, forward, forward)


# --- time ----------------------------------------------------------------------------------------


def device_seconds(flops, peak, mfu=1):
    """Seconds that one device with `peak` FLOP/s takes at a utilisation `mfu` of 0 to 1.

    n devices take the n-th part each; the product stays.

    Raises InputError for a utilisation above 1.
    """
    mfu = number(mfu, "mfu", positive=True, most=1)
    return ratio(flops, number(peak, "peak", positive=True) * mfu)


def model_flops_utilisation(flops, seconds, peak, devices=1):
    """MFU: the share of `devices` x `peak` x `seconds` that the model's own FLOPs account for.

    FLOPs that are spent twice, such as recomputed activations, count once (Chowdhery et al. 2022).
    """
    return ratio(flops, seconds * number(peak, "peak", positive=True) * devices)


# --- memory --------------------------------------------------------------------------------------

MIXED_PRECISION_ADAM = {
    "weights": "bf16",
    "gradients": "bf16",
    "master weights": "fp32",
    "first moment": "fp32",
    "second moment": "fp32",
}
"""What training with Adam keeps of each parameter, and its dtype (Rajbhandari et al. 2020)."""

INFERENCE = {"weights": "bf16"}
"""What inference keeps for each parameter."""


def bytes_per_parameter(state=MIXED_PRECISION_ADAM):
    """Bytes kept for each parameter: 16 for mixed-precision Adam, 2 for inference. Chapter 2."""
    return sum(bytes_per_element(dtype) for dtype in state.values())


def kept_activation_elements(architecture: Architecture):
    """Elements that the backward pass needs from the forward pass, a token, over all layers.

    A layer keeps what its products and nonlinear functions were given: both norms' inputs and
    results (4 d), queries, keys and values, the mixed values (h d_h), and in the FFN the gate's and
    the up projection's results and their product (3 f, without a gate 2 f). Attention is fused: the
    scores are computed again, not kept. Chapter 2.

    Raises InputError for multi-head latent attention, which keeps other things.
    """
    a = architecture
    if a.mla:
        raise InputError(
            f"{a.name} has multi-head latent attention: expected a model with keys and values of"
            " each head"
        )
    attention = 4 * a.hidden + 2 * a.heads * a.head_dim + 2 * a.kv_heads * a.head_dim
    return a.layers * attention + (3 if a.gated else 2) * a.ffn_width_per_token


def kept_activation_bytes(architecture: Architecture, tokens, dtype="bf16", *, recompute=False):
    """Bytes of activations kept between the passes, for all `tokens` of a device's batch.

    With `recompute` (activation checkpointing, Chen et al. 2016) a layer keeps its input only, d
    elements a token, and runs forward once more when its turn to go backward comes. Chapter 2.
    """
    elements = (
        architecture.layers * architecture.hidden
        if recompute
        else kept_activation_elements(architecture)
    )
    return bytes_of(number(tokens, "tokens", positive=True) * elements, dtype)


# --- reinforcement learning ----------------------------------------------------------------------

GRPO = {"policy update": 3, "reference model": 1}
"""Passes over each answer when learning, in units of a forward pass (Shao et al. 2024)."""

PPO = GRPO | {"critic update": 3, "critic values": 1, "reward model": 1}
"""The same for PPO with a critic and a reward model of the policy's size (Ouyang et al. 2022)."""


@dataclass(frozen=True)
class ReinforcementStep:
    """Device seconds a sampled answer: generating it, and learning from it."""

    generate_s: Any
    learn_s: Any

    @property
    def generating_share(self):
        """The share of the step spent generating."""
        return ratio(self.generate_s, self.generate_s + self.learn_s)


def reinforcement_step(
    architecture: Architecture,
    accelerator: Accelerator,
    *,
    prompt,
    answer,
    batch,
    passes=GRPO,
    mfu=0.4,
    memory_efficiency=1,
    dtype="bf16",
) -> ReinforcementStep:
    """What one answer of a reinforcement-learning step costs, in seconds of one device. Chapter 4.

    `batch` answers of `answer` tokens are sampled side by side, each from a prompt of `prompt`
    tokens. The prefill yields the first token, answer - 1 decode steps the others; their time is
    the mean of the first and the last step's, exact while all are bound by the same resource.
    Learning runs `passes` forward passes' worth of FLOPs over prompt and answer at a utilisation of
    `mfu`.

    Raises InputError for an answer of no token or a batch below one.
    """
    number(answer, "answer", positive=True, whole=True)
    efficiencies = {"compute_efficiency": mfu, "memory_efficiency": memory_efficiency}

    def seconds(sequences, accounting=ENGINE):
        return roofline(
            step(architecture, sequences, accounting), accelerator, dtype, **efficiencies
        )

    last = prompt + answer - 2
    generate = seconds(prefill(prompt, batch)).time_s
    if answer != 1:
        ends = (seconds(decode(s, batch)).time_s for s in (prompt, last))
        generate = generate + ratio((answer - 1) * sum(ends), 2)
    learn = seconds(prefill(prompt + answer), ENGINE.but(logits="all")).compute_s
    return ReinforcementStep(ratio(generate, batch), sum(passes.values()) * learn)
