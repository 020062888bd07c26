"""A prompt that grows call by call, on the real model: the record that chapters 10 and 11 read.

    python -m inferlab.machine.growing

times every call both ways on this machine, with the whole prompt computed anew and with the cache
of the call before, and writes the committed record anew.
"""

import json
from dataclasses import asdict, dataclass
from datetime import date
from importlib import resources

from inferlab.machine.hardware import cpu_name, seconds_of, threads

FILE = "measurements/growing.json"
START, ADDED, CALLS = 64, 64, 8


@dataclass(frozen=True)
class GrowingPrompt:
    """Seconds to the first token of each call, best of several.

    prompts: tokens of the prompt of each call. anew_s: all of them computed. reused_s: only those
    that the cache did not hold. model, where: what ran, on which processor, when.
    """

    prompts: list
    anew_s: list
    reused_s: list
    model: str
    where: str


def prompts(vocabulary, calls=CALLS):
    """Token ids of a growing prompt: each call's is the beginning of the next one's."""
    ids = [(7 * i * i + 13 * i) % vocabulary for i in range(START + (calls - 1) * ADDED)]
    return [ids[: START + call * ADDED] for call in range(calls)]


def first_tokens(decoder, growing):
    """Logits after each prompt, once computed anew and once from the cache of the call before."""
    cache = decoder.new_cache(len(growing[-1]))
    anew, reused = [], []
    for prompt in growing:
        anew.append(decoder.logits(prompt))
        reused.append(decoder.logits(prompt[cache.length :], cache))
    return anew, reused


def time_growing(model, best_of=6) -> GrowingPrompt:
    """Time the calls on this machine, one thread: the least of `best_of` rounds over all of them.

    Rounds, rather than each call by itself: what disturbs a shared machine for a minute then
    disturbs one round of every call, and not all rounds of one.
    """
    decoder = model.decoder
    growing = prompts(decoder.architecture.vocab)
    rounds = []
    with threads(1):
        for _ in range(best_of):
            rounds.append([_both_ways(decoder, growing, call) for call in range(CALLS)])
    anew, reused = (
        [float(f"{min(run[call][way] for run in rounds):.4g}") for call in range(CALLS)]
        for way in (0, 1)
    )
    return GrowingPrompt(
        prompts=[len(prompt) for prompt in growing],
        anew_s=anew,
        reused_s=reused,
        model=model.architecture.name,
        where=f"{cpu_name()}, 1 thread, best of {best_of}, {date.today().isoformat()}",
    )


def _both_ways(decoder, growing, call):
    """Seconds to the first token of one call: anew, and from the cache of the call before."""
    prompt, held = growing[call], len(growing[call - 1]) if call else 0
    cache = decoder.new_cache(len(prompt))
    if held:
        decoder.logits(prompt[:held], cache)
    return (
        seconds_of(lambda: decoder.logits(prompt)),
        seconds_of(lambda: decoder.logits(prompt[held:], cache)),
    )


def recorded_growth() -> GrowingPrompt:
    """The times committed with the book."""
    return GrowingPrompt(**json.loads(_record().read_text("utf-8")))


def _record():
    return resources.files("inferlab") / "data" / FILE


if __name__ == "__main__":
    from inferlab.runtime import load

    times = time_growing(load())
    with open(_record(), "w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(times), indent=1) + "\n")
    print(times)
