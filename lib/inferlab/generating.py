"""What it takes to generate a whole answer, with a KV cache and without one (chapter 2)."""

from __future__ import annotations

from inferlab.accounting import ENGINE, Accounting
from inferlab.architecture import Architecture
from inferlab.quantities import InputError, number, ratio
from inferlab.step import decode, prefill, step


def generation_flops(
    architecture: Architecture,
    prompt,
    generated,
    *,
    cache: bool = True,
    accounting: Accounting = ENGINE,
):
    """FLOPs to generate `generated` tokens (T) after a prompt of `prompt` tokens (N).

    With the cache: one prefill, which yields the first token, and T - 1 decode steps of one token.
    Without: T passes over the whole text so far, of N, N + 1, ... N + T - 1 tokens. Both are
    summed in closed form, exactly, for numbers, arrays and symbols.

    Raises InputError for a windowed model, whose steps do not grow as a polynomial.
    """
    if architecture.window is not None:
        raise InputError(
            f"{architecture.name} has an attention window: expected a model that attends to all"
        )
    prompt = number(prompt, "prompt", positive=True, whole=True)
    generated = number(generated, "generated", positive=True, whole=True)

    def flops(sequences):
        return step(architecture, sequences, accounting).flops

    if cache:
        # A decode step grows linearly with what is cached: two steps tell all.
        first, second = (flops(decode(prompt + i)) for i in (0, 1))
        return flops(prefill(prompt)) + _sum([first, second - first], generated - 1)
    # A pass over n tokens grows with n squared: three passes tell all.
    one, two, three = (flops(prefill(prompt + i)) for i in (0, 1, 2))
    return _sum([one, two - one, three - 2 * two + one], generated)


def _sum(differences, count):
    """The sum of `count` values of a polynomial, by its first value and its differences there."""
    total, ways = 0, 1
    for order, difference in enumerate(differences):
        ways = ratio(ways * (count - order), order + 1)  # count choose order + 1
        total = total + ways * difference
    return total
