"""Scheduling policies: what an engine puts into its next step (chapter 5).

A policy looks at the engine and answers with a `Plan`. The four of one engine differ in two choices
only: when a new request may join, and whether a step may mix prompts with decoding sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inferlab.quantities import InputError, number


@dataclass(slots=True)
class Plan:
    """The next step: `chunks` of prompts as (sequence, new tokens), and whether to decode."""

    chunks: list = field(default_factory=list)
    decode: bool = False

    def __bool__(self):
        return bool(self.chunks) or self.decode


class Policy:
    """What all policies share. `reserves_output`: memory for the answer is taken at admission."""

    reserves_output = False

    def plan(self, engine) -> Plan:
        """Admit whom it wants to, and say what the engine's next step does."""
        raise NotImplementedError


@dataclass(frozen=True)
class StaticBatching(Policy):
    """Take up to `batch_size` requests, serve them to the end, then take the next ones.

    Nobody joins a running batch, so a short answer waits for the longest one: its slot does no
    work any more, and nobody else gets it. Memory for whole answers is taken at the start.
    """

    batch_size: int = 8
    reserves_output = True

    def __post_init__(self):
        number(self.batch_size, "batch_size", positive=True, whole=True)

    def plan(self, engine):
        if not engine.running:
            while len(engine.running) < self.batch_size and engine.admit():
                pass
        if engine.prefilling:
            return Plan(whole_prompts(engine))
        return Plan(decode=bool(engine.decode_count))


@dataclass(frozen=True)
class ContinuousBatching(Policy):
    """Admit whoever fits before every step; prompts run whole, in one step with the decodes.

    Iteration-level scheduling as in Orca (Yu et al., 2022). A long prompt makes everybody's next
    token wait for it.
    """

    def plan(self, engine):
        room_left = engine.grow()
        while room_left and engine.admit():
            pass
        return Plan(whole_prompts(engine), decode=bool(engine.decode_count))


@dataclass(frozen=True)
class PrefillFirst(Policy):
    """Steps are either prompts or decodes, and prompts go first.

    `max_prefill_tokens` bounds the prompts of one step; the first one always goes. New requests
    get their first token early, running ones stall meanwhile.
    """

    max_prefill_tokens: int = 16384

    def __post_init__(self):
        number(self.max_prefill_tokens, "max_prefill_tokens", positive=True, whole=True)

    def plan(self, engine):
        budget = self.max_prefill_tokens
        while budget > 0 and (sequence := engine.admit()):
            budget -= sequence.remaining
        if engine.prefilling:
            return Plan(whole_prompts(engine))
        engine.grow()
        return Plan([], decode=bool(engine.decode_count))


@dataclass(frozen=True)
class ChunkedPrefill(Policy):
    """Every step decodes, and what is left of `token_budget` goes to pieces of prompts.

    As in Sarathi-Serve (Agrawal et al., 2024): no step is much longer than the budget allows, so
    running requests keep their pace, and prompts take a few steps more.
    """

    token_budget: int = 512

    def __post_init__(self):
        number(self.token_budget, "token_budget", positive=True, whole=True)

    def plan(self, engine):
        room_left = engine.grow()
        budget = self.token_budget - engine.decode_count
        chunks = []
        for sequence in engine.prefilling:
            if budget <= 0:
                break
            chunks.append((sequence, min(budget, sequence.remaining)))
            budget -= chunks[-1][1]
        while room_left and budget > 0 and (sequence := engine.admit()):
            chunks.append((sequence, min(budget, sequence.remaining)))
            budget -= chunks[-1][1]
        return Plan(chunks, decode=bool(engine.decode_count))


def whole_prompts(engine):
    """All that is left of every admitted prompt."""
    return [(sequence, sequence.remaining) for sequence in engine.prefilling]


@dataclass(frozen=True)
class TwoPools:
    """Prefill and decode on GPUs of their own; the KV cache travels between them (chapter 12).

    prefill_gpus, decode_gpus: sizes of the pools. link_bandwidth: bytes/s out of each prefill GPU,
    and link_latency: seconds a transfer; transfers of one GPU queue. Prompts keep their memory on
    the prefill side until they have arrived. A sequence that a decode GPU has to preempt is computed
    again on that GPU; answers are not sent back, so only prompts are found in a prefix cache.
    """

    prefill_gpus: int = 1
    decode_gpus: int = 1
    link_bandwidth: float = 50e9
    link_latency: float = 10e-6
    max_prefill_tokens: int = 16384

    def __post_init__(self):
        for name in ("prefill_gpus", "decode_gpus", "max_prefill_tokens"):
            number(getattr(self, name), name, positive=True, whole=True)
        number(self.link_bandwidth, "link_bandwidth", positive=True)
        number(self.link_latency, "link_latency")


POLICIES = (StaticBatching, ContinuousBatching, PrefillFirst, ChunkedPrefill, TwoPools)


def check_policy(policy):
    """`policy`, refused in one sentence if it is none of the five."""
    if not isinstance(policy, (Policy, TwoPools)):
        names = ", ".join(f"{known.__name__}()" for known in POLICIES)
        raise InputError(f"policy is {policy!r}: expected one of {names}")
    return policy
