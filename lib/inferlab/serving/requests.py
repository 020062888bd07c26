"""Requests: what arrives at a serving engine, and which of its tokens others have sent before."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from inferlab.quantities import InputError, number


class Segment(NamedTuple):
    """A run of tokens named by `key`: a system prompt, a tool's answer, a retrieved document.

    Two segments of one key hold the same tokens from the start, as far as the shorter one goes;
    segments of different keys have no token in common. So a prompt of 20,000 tokens is a handful
    of segments, and two prompts still share exactly the prefix that their token lists would.
    """

    key: Hashable
    length: int


def token_count(segments) -> int:
    """Tokens in a sequence of segments."""
    return sum(segment.length for segment in segments)


def first_tokens(segments, count) -> tuple[Segment, ...]:
    """The segments that hold the first `count` tokens, the last one cut to fit."""
    kept = []
    for key, length in segments:
        if count <= 0:
            break
        kept.append(Segment(key, min(length, count)))
        count -= length
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the model.

    id: unique name. prompt: its segments, in order. output_tokens: how many tokens it generates,
    one or more; where a real engine would stop at an end-of-sequence token, a trace says how many
    there were. arrival: seconds from the start of the trace. after, delay: a request that waits
    for another (the next turn of a conversation, the next step of an agent) arrives `delay`
    seconds after request `after` has finished, and has no `arrival` of its own. task: the
    conversation or agent task that it belongs to. Chapter 5.

    Raises InputError for a count that is not a whole number above zero, or a time below zero.
    """

    id: Hashable
    prompt: tuple[Segment, ...]
    output_tokens: int
    arrival: float = 0.0
    after: Hashable | None = None
    delay: float = 0.0
    task: Hashable | None = None

    def __post_init__(self):
        for key, length in self.prompt:
            number(length, f"the length of segment {key!r}", positive=True, whole=True)
        if not self.prompt:
            raise InputError(f"request {self.id!r} has an empty prompt: give it a token or more")
        number(
            self.output_tokens, f"output_tokens of request {self.id!r}", positive=True, whole=True
        )
        number(self.arrival, f"arrival of request {self.id!r}")
        number(self.delay, f"delay of request {self.id!r}")

    @classmethod
    def of(cls, id, prompt_tokens, output_tokens, arrival=0.0) -> Request:
        """A request that shares nothing with any other: `Request.of("a", 3000, 200)`."""
        return cls(id, (Segment((id, "prompt"), prompt_tokens),), output_tokens, arrival)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return token_count(self.prompt)

    @property
    def output(self) -> Segment:
        """What the model answers, as a segment that a later prompt can contain."""
        return Segment((self.id, "output"), self.output_tokens)


def check_trace(trace) -> list[Request]:
    """`trace` as a list, refused in one sentence if ids repeat or a follower waits for nobody."""
    requests = list(trace)
    if not requests:
        raise InputError("the trace is empty: it needs at least one request")
    ids = set()
    for request in requests:
        if request.id in ids:
            raise InputError(f"two requests have the id {request.id!r}: give each its own")
        ids.add(request.id)
    followed = {}
    for request in requests:
        if request.after is None:
            continue
        if request.after not in ids:
            raise InputError(
                f"request {request.id!r} waits for {request.after!r}, which is not in the trace"
            )
        followed.setdefault(request.after, []).append(request)
    _refuse_cycles(requests, followed)
    return requests


def _refuse_cycles(requests, followed):
    reached = [request for request in requests if request.after is None]
    seen = len(reached)
    while reached:
        following = followed.get(reached.pop().id, ())
        seen += len(following)
        reached.extend(following)
    if seen < len(requests):
        raise InputError("some requests wait for each other in a circle: none of them can start")
