"""Traces: made ones with known statistics, and recorded ones from JSON lines (chapters 5, 10, 11).

Made traces are Poisson in time: gaps between new requests, conversations or tasks are exponential
with mean 1 / rate. A length or a time is a number, or a `Lognormal` to draw it from; every draw
comes from one `random.Random(seed)`, so a seed is a trace.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from inferlab.quantities import InputError, number, short
from inferlab.serving.requests import Request, Segment


@dataclass(frozen=True)
class Lognormal:
    """Lengths or times whose logarithm is normal: many small, few large, as users produce them.

    median: half of the draws lie below it. sigma: spread of the natural logarithm; 1 puts one draw
    in six above 2.7 times the median. The mean is median exp(sigma^2 / 2).
    """

    median: float
    sigma: float

    def __post_init__(self):
        number(self.median, "median", positive=True)
        number(self.sigma, "sigma")

    @property
    def mean(self) -> float:
        """The expected value of a draw."""
        return self.median * math.exp(self.sigma**2 / 2)

    def draw(self, source: random.Random) -> float:
        """One value, from a source of random numbers."""
        return self.median * math.exp(self.sigma * source.gauss(0, 1))


class _Dice:
    """Draws of one trace, all from one seed."""

    def __init__(self, seed):
        self.source = random.Random(seed)

    def gaps(self, rate, name):
        number(rate, name, positive=True)
        now = 0.0
        while True:
            now += self.source.expovariate(rate)
            yield now

    def tokens(self, size, name) -> int:
        if isinstance(size, Lognormal):
            return max(1, round(size.draw(self.source)))
        return number(size, name, positive=True, whole=True)

    def seconds(self, time, name) -> float:
        if isinstance(time, Lognormal):
            return time.draw(self.source)
        return number(time, name)


def poisson_trace(requests, rate, *, prompt_tokens=500, output_tokens=100, seed=0) -> list[Request]:
    """Unrelated requests at `rate` per second: the load of a queueing formula."""
    dice = _Dice(seed)
    times = dice.gaps(rate, "rate")
    return [
        Request.of(
            f"r{i}",
            dice.tokens(prompt_tokens, "prompt_tokens"),
            dice.tokens(output_tokens, "output_tokens"),
            next(times),
        )
        for i in range(number(requests, "requests", positive=True, whole=True))
    ]


def chat_trace(
    conversations,
    rate,
    *,
    turns=8,
    system_tokens=500,
    user_tokens=100,
    output_tokens=100,
    think_s=20.0,
    seed=0,
) -> list[Request]:
    """Conversations that begin at `rate` per second; each turn sends the whole history again.

    Prompt of turn j: the system prompt that all share, j user messages and j - 1 answers. The
    next turn comes `think_s` seconds after an answer is complete. With the default sizes every
    turn adds 200 tokens, as in the text's example. `turns` may be a Lognormal.
    """
    dice = _Dice(seed)
    times = dice.gaps(rate, "rate")
    trace = []
    for c in range(number(conversations, "conversations", positive=True, whole=True)):
        history = (Segment("system", dice.tokens(system_tokens, "system_tokens")),)
        arrival, before = next(times), None
        for turn in range(1, dice.tokens(turns, "turns") + 1):
            task = f"chat{c}"
            question = Segment((task, turn, "user"), dice.tokens(user_tokens, "user_tokens"))
            before = Request(
                f"{task}.{turn}",
                (*history, question),
                dice.tokens(output_tokens, "output_tokens"),
                **_when(arrival, before, dice.seconds(think_s, "think_s")),
                task=task,
            )
            trace.append(before)
            history = (*before.prompt, before.output)
    return trace


def agent_trace(
    tasks,
    rate,
    *,
    calls=10,
    agents=1,
    system_tokens=2000,
    task_tokens=200,
    output_tokens=100,
    observation_tokens=1800,
    tool_s=1.0,
    network_s=0.0,
    seed=0,
) -> list[Request]:
    """Agent tasks that begin at `rate` per second, each a chain of model calls and tools.

    Prompt of call j: a system prompt with the tool definitions, shared by all tasks, the task, and
    j - 1 pairs of an answer and what the tool then returned. The next call comes `tool_s +
    network_s` seconds after an answer. With several `agents` a task goes round among them: each
    has a system prompt of its own and reads everything said so far. The default sizes read 18
    tokens of observations for each token written, the ratio that a published trace of a local
    coding agent reports in its title (chapter 12). `calls` may be a Lognormal.
    """
    dice = _Dice(seed)
    times = dice.gaps(rate, "rate")
    number(agents, "agents", positive=True, whole=True)
    systems = [
        Segment(("system", agent), dice.tokens(system_tokens, "system_tokens"))
        for agent in range(agents)
    ]
    trace = []
    for t in range(number(tasks, "tasks", positive=True, whole=True)):
        task = f"task{t}"
        said = (Segment((task, "task"), dice.tokens(task_tokens, "task_tokens")),)
        arrival, before = next(times), None
        for call in range(1, dice.tokens(calls, "calls") + 1):
            delay = dice.seconds(tool_s, "tool_s") + dice.seconds(network_s, "network_s")
            before = Request(
                f"{task}.{call}",
                (systems[(call - 1) % agents], *said),
                dice.tokens(output_tokens, "output_tokens"),
                **_when(arrival, before, delay),
                task=task,
            )
            trace.append(before)
            observation = dice.tokens(observation_tokens, "observation_tokens")
            said = (*said, before.output, Segment((task, call, "observation"), observation))
    return trace


PLACES = ("before", "after", "kept")


def rag_trace(
    conversations,
    rate,
    *,
    place="after",
    turns=8,
    system_tokens=500,
    chunk_tokens=2000,
    user_tokens=100,
    output_tokens=100,
    think_s=20.0,
    seed=0,
) -> list[Request]:
    """Conversations over a knowledge base: every turn retrieves `chunk_tokens` of new documents.

    place: where the retrieved text of a turn goes. `before` the history, right after the system
    prompt; `after` the history, before the new question, and dropped from the next turn's history;
    `kept`: the same, but it stays in the history, which then grows by it.
    """
    if place not in PLACES:
        raise InputError(f"place is {short(place)}: expected one of {', '.join(PLACES)}")
    dice = _Dice(seed)
    times = dice.gaps(rate, "rate")
    trace = []
    for c in range(number(conversations, "conversations", positive=True, whole=True)):
        system = Segment("system", dice.tokens(system_tokens, "system_tokens"))
        history = ()
        arrival, before = next(times), None
        for turn in range(1, dice.tokens(turns, "turns") + 1):
            task = f"rag{c}"
            chunks = Segment((task, turn, "chunks"), dice.tokens(chunk_tokens, "chunk_tokens"))
            question = Segment((task, turn, "user"), dice.tokens(user_tokens, "user_tokens"))
            asked = (chunks, question) if place == "kept" else (question,)
            if place == "before":
                prompt = (system, chunks, *history, question)
            else:
                prompt = (system, *history, chunks, question)
            before = Request(
                f"{task}.{turn}",
                prompt,
                dice.tokens(output_tokens, "output_tokens"),
                **_when(arrival, before, dice.seconds(think_s, "think_s")),
                task=task,
            )
            trace.append(before)
            history = (*history, *asked, before.output)
    return trace


def _when(arrival, before, delay) -> dict:
    """The first request of a task arrives by itself, each other one after the one `before` it."""
    return {"arrival": arrival} if before is None else {"after": before.id, "delay": delay}


# --- recorded traces -----------------------------------------------------------------------------

_UNITS = {"ms": 1e-3, "s": 1.0}
_NAMES = {
    "timestamp": ("timestamp", "arrival", "created_time"),
    "input_length": ("input_length", "input_tokens", "prompt_tokens"),
    "output_length": ("output_length", "output_tokens", "completion_tokens"),
}


def read_trace(source, *, unit="ms", block_tokens=512) -> list[Request]:
    """A recorded trace: one JSON object a line, in the format of the Mooncake traces.

    source: a path, or the lines themselves. Each line has `timestamp` (in `unit`, "ms" or "s"),
    `input_length`, `output_length` (tokens), and optionally `hash_ids`: one name for each block of
    `block_tokens` prompt tokens, the last of which may be partial. Requests whose lists begin
    alike begin with the same tokens. The names `arrival`, `input_tokens`, `prompt_tokens`,
    `output_tokens` and `completion_tokens` are understood too. Times are shifted so that the first
    request arrives at 0; the requests come back in order of arrival.

    Raises InputError naming the line and the field.
    """
    if unit not in _UNITS:
        raise InputError(f"unit is {short(unit)}: expected one of {', '.join(_UNITS)}")
    number(block_tokens, "block_tokens", positive=True, whole=True)
    rows = [
        _row(line, i, block_tokens)
        for i, line in enumerate(_lines(source), start=1)
        if line.strip()
    ]
    if not rows:
        raise InputError("the trace has no line: expected one JSON object a line")
    start = min(timestamp for timestamp, *_ in rows)
    return sorted(
        (
            Request(name, prompt, output_tokens, arrival=(timestamp - start) * _UNITS[unit])
            for timestamp, name, prompt, output_tokens in rows
        ),
        key=lambda request: request.arrival,
    )


def _lines(source) -> Iterable[str]:
    if not isinstance(source, (str, Path)):
        return source
    try:
        return Path(source).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source} cannot be read ({error}): expected a file of JSON lines"
        ) from None


def _row(line, i, block_tokens):
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {i} is not JSON ({error}): expected one object a line") from None
    if not isinstance(entry, dict):
        raise InputError(f"line {i} is {line.strip()[:40]!r}: expected an object in braces")
    name = f"line {i}"
    timestamp = number(_field(entry, "timestamp", i), f"{name}: timestamp")
    tokens = number(
        _field(entry, "input_length", i), f"{name}: input_length", positive=True, whole=True
    )
    output = number(
        _field(entry, "output_length", i), f"{name}: output_length", positive=True, whole=True
    )
    return timestamp, name, _blocks(entry.get("hash_ids") or [], tokens, block_tokens, i), output


def _field(entry, field, i):
    for name in _NAMES[field]:
        if name in entry:
            return entry[name]
    raise InputError(f"line {i} has no {field!r}: expected one of {', '.join(_NAMES[field])}")


def _blocks(hashes, tokens, block_tokens, i) -> tuple[Segment, ...]:
    """The prompt as named blocks, and a rest that nobody shares where the names do not reach."""
    if not isinstance(hashes, list) or any(isinstance(h, (list, dict)) for h in hashes):
        raise InputError(
            f"line {i}: hash_ids is {short(hashes)}: expected a list of numbers or names"
        )
    if len(hashes) > math.ceil(tokens / block_tokens):
        raise InputError(
            f"line {i}: {len(hashes)} hash_ids for {tokens} tokens are more than blocks of"
            f" {block_tokens}: set block_tokens to the size that the trace was recorded with"
        )
    prompt = []
    for block in hashes:
        prompt.append(Segment(("block", block), min(block_tokens, tokens)))
        tokens -= prompt[-1].length
    if tokens:
        prompt.append(Segment((f"line {i}", "prompt"), tokens))
    return tuple(prompt)
