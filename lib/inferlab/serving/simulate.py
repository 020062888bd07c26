"""A trace in, a `Result` out: engines, routing and the followers that a finished request sets off."""

from __future__ import annotations

import simpy

from inferlab.quantities import InputError, number
from inferlab.serving.engine import Engine, Sequence, check_fits
from inferlab.serving.policies import (
    ContinuousBatching,
    PrefillFirst,
    TwoPools,
    check_policy,
)
from inferlab.serving.requests import check_trace
from inferlab.serving.results import GpuUse, Log, RequestRecord, Result

ROUTES = ("least-loaded", "prefix", "least-to-prefill", "round-robin")


def simulate(
    trace,
    model,
    policy=None,
    *,
    prefix_cache=False,
    pin=False,
    max_batch=256,
    replicas=1,
    routing="least-loaded",
) -> Result:
    """Serve a trace of requests and report who waited where. Chapters 5, 10, 11 and 12.

    trace: Requests, as the functions of `inferlab.serving.traces` make or read them.
    model: a `StepModel`: how long each step takes and how many KV tokens fit on one GPU.
    policy: what each engine puts into a step; ContinuousBatching() if None.
    prefix_cache: keep finished prefixes in a radix tree, evicting the least recently used.
    pin: keep the prefix of a request that another one waits for, however long that takes.
    max_batch: most sequences that run at once on one GPU.
    replicas: GPUs, each with an engine of its own; with TwoPools the policy says how many.
    routing: which GPU takes a request: the `least-loaded` (fewest requests), the one that holds
    most of its `prefix` (less loaded on a tie), the one with `least-to-prefill` before its first
    token (what is queued there, and what of its own prompt is not held), or `round-robin`.

    The same arguments give the same result, to the last bit. Raises InputError for a request that
    cannot fit, and for arguments that contradict each other.
    """
    requests = check_trace(trace)
    policy = check_policy(ContinuousBatching() if policy is None else policy)
    number(max_batch, "max_batch", positive=True, whole=True)
    number(replicas, "replicas", positive=True, whole=True)
    if routing not in ROUTES:
        raise InputError(f"routing is {routing!r}: expected one of {', '.join(ROUTES)}")
    if pin and not prefix_cache:
        raise InputError("pin=True keeps prefixes in the prefix cache: set prefix_cache=True too")
    check_fits(requests, model)
    return _Simulation(
        requests, model, policy, prefix_cache, pin, max_batch, replicas, routing
    ).run()


class _Simulation:
    def __init__(self, requests, model, policy, prefix_cache, pin, max_batch, replicas, routing):
        self.requests = requests
        self.model = model
        self.policy = policy
        self.routing = routing
        self.pin = pin
        self.env = simpy.Environment()
        self.records = {}
        self.followers = {}
        for request in requests:
            if request.after is not None:
                self.followers.setdefault(request.after, []).append(request)
        self.log = Log(self.followers.keys(), self._finished)
        options = {"prefix_cache": prefix_cache, "pin": pin, "max_batch": max_batch}
        if isinstance(policy, TwoPools):
            self._make_pools(policy, options)
        else:
            self.engines = [
                Engine(self.env, f"GPU {i}", model, policy, self.log, **options)
                for i in range(replicas)
            ]
            self.decoders = []
        self._turn = 0
        self._read_on = {}  # request whose cache was sent on -> the engine that read its prompt

    def _make_pools(self, policy, options):
        prefill = PrefillFirst(policy.max_prefill_tokens)
        self.engines = [
            Engine(
                self.env,
                f"prefill {i}",
                self.model,
                prefill,
                self.log,
                **options,
                on_prefilled=self._hand_over,
            )
            for i in range(policy.prefill_gpus)
        ]
        options = options | {"prefix_cache": False, "pin": False}
        self.decoders = [
            Engine(self.env, f"decode {i}", self.model, ContinuousBatching(), self.log, **options)
            for i in range(policy.decode_gpus)
        ]
        self.links = {engine: simpy.Resource(self.env) for engine in self.engines}

    def run(self) -> Result:
        first = sorted((r for r in self.requests if r.after is None), key=lambda r: r.arrival)
        self.env.process(self._arrivals(first))
        self.env.run()
        machine = self.model.accelerator
        return Result(
            [self.records[request.id] for request in self.requests],
            self.log.spans,
            self.log.steps,
            {
                engine.name: GpuUse(engine.busy_s, engine.flops, engine.bytes, engine.peak_tokens)
                for engine in self.engines + self.decoders
            },
            machine.peak(self.model.compute),
            machine.bandwidth,
        )

    def _arrivals(self, requests):
        for request in requests:
            if request.arrival > self.env.now:
                yield self.env.timeout(request.arrival - self.env.now)
            self._arrive(request, self._route(request))

    def _arrive(self, request, engine):
        record = RequestRecord(
            request.id, request.task, self.env.now, request.prompt_tokens, request.output_tokens
        )
        self.records[request.id] = record
        engine.submit(Sequence(request, record))

    def _route(self, request):
        if len(self.engines) == 1:
            return self.engines[0]
        if self.routing == "round-robin":
            self._turn += 1
            return self.engines[(self._turn - 1) % len(self.engines)]
        if self.routing == "prefix":
            return min(self.engines, key=lambda e: (-_held(e, request), e.load))
        if self.routing == "least-to-prefill":
            return min(self.engines, key=lambda e: (e.to_prefill - _held(e, request), e.load))
        return min(self.engines, key=lambda engine: engine.load)

    def _finished(self, engine, sequence):
        for request in self.followers.get(sequence.request.id, ()):
            self.env.process(self._follow(request, engine))

    def _follow(self, request, engine):
        start = self.env.now
        yield self.env.timeout(request.delay)
        # What is pinned is of use only where it is: where the prompt was read.
        chosen = self._read_on.get(request.after, engine) if self.pin else self._route(request)
        self.log.span(request.id, "tool", start, self.env.now, chosen.name)
        self._arrive(request, chosen)

    def _hand_over(self, engine, sequence):
        self.env.process(self._transfer(engine, sequence))

    def _transfer(self, engine, sequence):
        """Send the KV cache of a finished prompt over the link, then decode on the other side."""
        start = self.env.now
        moved = sequence.target * self.model.kv_bytes_per_token
        with self.links[engine].request() as link:
            yield link
            yield self.env.timeout(self.policy.link_latency + moved / self.policy.link_bandwidth)
        decoder = min(self.decoders, key=lambda engine: engine.load)
        self.log.span(sequence.request.id, "transfer", start, self.env.now, decoder.name)
        engine.release(sequence, keep=True)
        self._read_on[sequence.request.id] = engine
        sequence.transferred = True
        decoder.submit(sequence)


def _held(engine, request) -> int:
    return engine.tree.peek(request.prompt) if engine.tree is not None else 0
