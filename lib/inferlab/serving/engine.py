"""One engine on one GPU: a queue, a memory of KV tokens, and one step after the other (chapter 5)."""

from __future__ import annotations

from collections import deque

from inferlab.quantities import InputError
from inferlab.serving.radix import RadixTree
from inferlab.serving.requests import first_tokens
from inferlab.serving.results import Step
from inferlab.step import Sequence as Fed
from inferlab.step import check_positions

WATERMARK = 0.01
"""Part of the KV memory that an admission leaves free while others run, as vLLM does: without it a
sequence that has just been preempted would come straight back and be preempted again."""


class Sequence:
    """A request inside an engine: how much of its context is computed, and where it is kept."""

    __slots__ = (
        "base",
        "done",
        "due",
        "generated",
        "joined",
        "matched",
        "node",
        "record",
        "request",
        "reserved",
        "since",
        "target",
        "transferred",
    )

    def __init__(self, request, record):
        self.request = request
        self.record = record
        self.target = request.prompt_tokens  # tokens to compute before the next one comes out
        self.done = 0  # of these, how many are in the cache
        self.generated = 0  # tokens that have come out
        self.matched = 0  # tokens that were found in the prefix tree
        self.node = None  # where the tree keeps them, locked
        self.reserved = 0  # tokens of memory of its own, while the prompt is computed
        self.transferred = False  # the KV cache came from another pool
        self.since = record.arrival  # start of the current span
        # Decoding: tokens cached and step number at its start, and the step of the last token.
        self.base = self.joined = self.due = 0

    @property
    def remaining(self):
        """Tokens of the prompt that are still to be computed."""
        return self.target - self.done

    @property
    def context(self):
        """The tokens of prompt and answer so far, as segments."""
        output = first_tokens((self.request.output,), self.target - self.request.prompt_tokens)
        return self.request.prompt + output


class Engine:
    """Runs steps of a `StepModel` under a policy, as one SimPy process.

    A decode step moves every running sequence by one token, so the engine keeps sums and a
    calendar of last tokens instead of touching each sequence: a step costs the same for a batch of
    one and a batch of two hundred.
    """

    def __init__(
        self, env, name, model, policy, log, *, prefix_cache, pin, max_batch, on_prefilled=None
    ):
        self.env = env
        self.name = name
        self.model = model
        self.policy = policy
        self.log = log
        self.tree = RadixTree() if prefix_cache else None
        self.pin = pin
        self.max_batch = max_batch
        self.on_prefilled = on_prefilled  # takes a sequence over after its prefill, or None
        self.waiting = deque()
        self.running = {}  # admitted sequences, oldest first
        self.prefilling = []
        self.pins = {}  # finished request -> node kept for the request that follows it
        self.private = 0  # KV tokens that are not in the tree
        self.decode_steps = 0
        self.decode_count = 0
        self.decode_cached = 0
        self.calendar = {}  # decode step number -> sequences whose last token it emits
        self.busy_s = self.flops = self.bytes = 0.0
        self.peak_tokens = 0
        self._full = False  # the head of the queue did not fit, and no memory has come free since
        self._idle = None
        self.process = env.process(self._run())

    @property
    def used(self) -> int:
        """KV tokens in memory: the tree's and the running sequences' own."""
        return self.private + (self.tree.tokens if self.tree else 0)

    @property
    def load(self) -> int:
        """Requests here, running or waiting."""
        return len(self.running) + len(self.waiting)

    @property
    def to_prefill(self) -> int:
        """Prompt tokens that are admitted or waiting here and not computed yet."""
        return sum(sequence.remaining for sequence in (*self.prefilling, *self.waiting))

    def submit(self, sequence):
        """Put a sequence at the end of the queue."""
        sequence.since = self.env.now
        self.waiting.append(sequence)
        self.wake()

    def wake(self):
        """Look at the queue again, if there was nothing to do."""
        if self._idle is not None:
            self._idle.succeed()
            self._idle = None

    # --- what a policy calls ---------------------------------------------------------------------

    def admit(self) -> Sequence | None:
        """Let the head of the queue in if its prompt fits; None if nobody waits or it does not."""
        if not self.waiting or self._full or len(self.running) >= self.max_batch:
            return None
        sequence = self.waiting[0]
        while not self._take_memory(sequence):
            # With nobody running, only prefixes pinned for later can be in the way.
            if self.running or not self._unpin_oldest():
                self._full = True
                return None
        self.waiting.popleft()
        self.running[sequence] = None
        self._span(sequence, "queue")
        if sequence.transferred:
            self._join(sequence)
            return sequence
        record = sequence.record
        if record.admitted is None:
            record.admitted = self.env.now
            record.gpu = self.name
            record.hit_tokens = sequence.matched
        self.prefilling.append(sequence)
        return sequence

    def grow(self) -> bool:
        """Take one token of memory for each decoding sequence, preempting the youngest if need be.

        False if someone was preempted: then nobody should be admitted in the same step.
        """
        preempted = False
        while not self._make_room(self.decode_count):
            if not self._unpin_oldest():
                self._preempt(next(reversed(self.running)))
                preempted = True
        self._use(self.decode_count)
        return not preempted

    # --- memory ----------------------------------------------------------------------------------

    def _take_memory(self, sequence) -> bool:
        request = sequence.request
        if self.tree is not None:
            # The last token is always computed: it is the one whose logits are sampled.
            known = first_tokens(sequence.context, sequence.target - 1)
            node, matched = self.tree.match(known)
            self.tree.lock(node)
        else:
            node, matched = None, 0
        need = sequence.target - matched
        if self.policy.reserves_output:
            need += request.output_tokens - 1
        margin = int(WATERMARK * self.model.kv_tokens) if self.running else 0
        if not self._make_room(need + margin):
            if node is not None:
                self.tree.unlock(node)
            return False
        sequence.node, sequence.matched, sequence.reserved = node, matched, need
        sequence.done = sequence.target if sequence.transferred else matched
        self._use(need)
        if request.after in self.pins:
            self.tree.unlock(self.pins.pop(request.after))
        return True

    def _make_room(self, tokens) -> bool:
        missing = tokens - (self.model.kv_tokens - self.used)
        if missing <= 0:
            return True
        if self.tree is None or self.tree.evictable < missing:
            return False
        self.tree.evict(missing)
        return True

    def _use(self, tokens):
        self.private += tokens
        self.peak_tokens = max(self.peak_tokens, self.used)

    def _store(self, sequence, tokens):
        """Hand the first `tokens` of the context to the tree, which keeps what it has not yet."""
        node, _ = self.tree.insert(first_tokens(sequence.context, tokens))
        self.tree.lock(node)
        self.tree.unlock(sequence.node)
        sequence.node = node

    def _unpin_oldest(self) -> bool:
        if not self.pins:
            return False
        self.tree.unlock(self.pins.pop(next(iter(self.pins))))
        self._full = False
        return True

    # --- steps -----------------------------------------------------------------------------------

    def _run(self):
        while True:
            plan = self.policy.plan(self)
            if not plan:
                self._idle = self.env.event()
                yield self._idle
                continue
            start = self.env.now
            chunks = tuple((q.request.id, new, q.done) for q, new in plan.chunks)
            decodes, cached = (self.decode_count, self.decode_cached) if plan.decode else (0, 0)
            cost = self.model.cost(
                [chunk[1:] for chunk in chunks], decodes, cached, self._cached_lengths
            )
            yield self.env.timeout(cost.seconds)
            self.busy_s += cost.seconds
            self.flops += cost.flops
            self.bytes += cost.bytes
            self.log.steps.append(
                Step(
                    start,
                    self.env.now,
                    self.name,
                    chunks,
                    decodes,
                    cached,
                    self.used,
                    len(self.waiting),
                )
            )
            if decodes:
                self._decoded()
            for sequence, new in plan.chunks:
                sequence.done += new
                sequence.record.prefilled_tokens += new
                if sequence.remaining == 0:
                    self._prefilled(sequence)

    def _cached_lengths(self):
        return [
            sequence.base + self.decode_steps - sequence.joined
            for sequence in self.running
            if sequence.due
        ]

    def _prefilled(self, sequence):
        """The prompt is in the cache and the next token is out."""
        self.prefilling.remove(sequence)
        self._span(sequence, "prefill")
        if self.tree is not None:
            # What is computed is the tree's from now on; a twin that another request has stored
            # in the meantime is given back.
            self.private -= sequence.target - sequence.matched
            sequence.reserved -= sequence.target - sequence.matched
            self._store(sequence, sequence.target)
            self._full = False
        sequence.generated += 1
        record = sequence.record
        if record.first_token is None:
            record.first_token = self.env.now
        else:
            record.resumed += (self.env.now,)
        if sequence.generated == sequence.request.output_tokens:
            self._finish(sequence)
        elif self.on_prefilled is not None:
            self.on_prefilled(self, sequence)
        else:
            self._join(sequence)

    def _join(self, sequence):
        """Start decoding: one token in every decode step until the answer is complete."""
        sequence.base = sequence.target
        sequence.joined = self.decode_steps
        sequence.due = self.decode_steps + sequence.request.output_tokens - sequence.generated
        self.calendar.setdefault(sequence.due, []).append(sequence)
        self.decode_count += 1
        self.decode_cached += sequence.base

    def _decoded(self):
        self.decode_steps += 1
        self.decode_cached += self.decode_count
        for sequence in self.calendar.pop(self.decode_steps, ()):
            self._leave(sequence)
            self._span(sequence, "decode")
            self._finish(sequence)

    def _leave(self, sequence):
        """Stop decoding, complete or not; the context then is what the cache holds and one more."""
        decoded = self.decode_steps - sequence.joined
        self.decode_count -= 1
        self.decode_cached -= sequence.base + decoded
        sequence.generated += decoded
        sequence.record.decoded_tokens += decoded
        sequence.target = sequence.request.prompt_tokens + sequence.generated
        sequence.due = 0
        if not self.policy.reserves_output:
            sequence.reserved += decoded

    def _finish(self, sequence):
        """All tokens are out. The cache holds all of them but the last, which was never fed."""
        sequence.record.finished = self.env.now
        sequence.target = sequence.request.prompt_tokens + sequence.generated - 1
        self.release(sequence, keep=True)
        self.log.finished(self, sequence)

    def release(self, sequence, *, keep):
        """Take a sequence out and give its memory back; the tree may `keep` what it computed."""
        del self.running[sequence]
        if self.tree is not None:
            if keep:
                self._store(sequence, sequence.target)
            if keep and self.pin and sequence.request.id in self.log.followed:
                self.pins[sequence.request.id] = sequence.node
            else:
                self.tree.unlock(sequence.node)
        self.private -= sequence.reserved
        sequence.node, sequence.reserved, sequence.matched = None, 0, 0
        self._full = False
        self.wake()

    def _preempt(self, sequence):
        """Drop the youngest sequence's cache and queue it first: it will be computed again."""
        if sequence.due:
            self.calendar[sequence.due].remove(sequence)
            self._leave(sequence)
            self._span(sequence, "decode")
        else:
            self.prefilling.remove(sequence)
            self._span(sequence, "prefill")
        self.release(sequence, keep=False)
        sequence.done = 0
        sequence.transferred = False
        sequence.record.preemptions += 1
        self.waiting.appendleft(sequence)

    def _span(self, sequence, phase):
        self.log.span(sequence.request.id, phase, sequence.since, self.env.now, self.name)
        sequence.since = self.env.now


def check_fits(requests, model):
    """Refuse a request that alone is more than the memory holds or the model has positions for."""
    for request in requests:
        needed = request.prompt_tokens + request.output_tokens - 1
        check_positions(model.architecture, [Fed(needed)])
        if needed > model.kv_tokens:
            raise InputError(
                f"request {request.id!r} needs {needed:,} tokens of KV cache, but only"
                f" {model.kv_tokens:,} fit: shorten it, or take more memory"
            )
