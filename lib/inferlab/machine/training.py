"""Forward against forward and backward, timed: the record that chapters 2 and 3 read.

    python -m inferlab.machine.training

times a step of `inferlab.tiny` on this machine and writes the committed record anew.
"""

import json
from dataclasses import asdict, dataclass
from datetime import date
from importlib import resources

from inferlab.machine.hardware import cpu_name, seconds_of, threads

FILE = "measurements/training.json"
CONTEXT, EMBEDDING, WIDTH = 16, 64, 1024
EXAMPLES = 1024  # tokens whose next one is predicted, a step


@dataclass(frozen=True)
class PassTimes:
    """Seconds of a forward pass and of forward and backward, best of several.

    parameters: of the three matrices. examples: a step. where: processor, thread, date.
    """

    parameters: int
    examples: int
    forward_s: float
    step_s: float
    where: str


def time_training(best_of=7) -> PassTimes:
    """Time one training step of a network of 2.1 million parameters on this machine, one thread.

    Forward and step take turns: what disturbs a shared machine for a while then disturbs both, and
    their ratio less. The least of each counts, after a first round that is not timed.
    """
    import numpy as np

    from inferlab.tiny import ALPHABET, MATRICES, TinyModel

    model = TinyModel(CONTEXT, EMBEDDING, WIDTH)
    rng = np.random.default_rng(0)
    contexts = rng.integers(len(ALPHABET), size=(EXAMPLES, CONTEXT))
    targets = rng.integers(len(ALPHABET), size=EXAMPLES)

    def one_round():
        return (
            seconds_of(lambda: model.loss(contexts, targets)),
            seconds_of(lambda: model.gradients(contexts, targets)),
        )

    with threads(1):
        one_round()
        rounds = [one_round() for _ in range(best_of)]
    forward, step = map(min, zip(*rounds, strict=True))
    return PassTimes(
        parameters=sum(model.parameters[name].size for name in MATRICES),
        examples=EXAMPLES,
        forward_s=float(f"{forward:.4g}"),
        step_s=float(f"{step:.4g}"),
        where=f"{cpu_name()}, 1 thread, best of {best_of}, {date.today().isoformat()}",
    )


def recorded_passes() -> PassTimes:
    """The times committed with the book."""
    return PassTimes(**json.loads(_record().read_text("utf-8")))


def _record():
    return resources.files("inferlab") / "data" / FILE


if __name__ == "__main__":
    times = time_training(best_of=15)
    with open(_record(), "w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(times), indent=1) + "\n")
    print(times)
