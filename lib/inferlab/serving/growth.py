"""What a prompt that grows call by call costs, with and without a prefix cache (chapters 10 and 11).

An agent's k-th call and a conversation's k-th turn send the same thing: a beginning of `start`
tokens and k - 1 additions of `added` tokens each. As everywhere, the formulas take ints, arrays and
symbols, but for the number of guesses in `expected_tokens`.
"""

from __future__ import annotations

from inferlab.quantities import InputError, is_array, is_symbolic, number, ratio, short


def prompt_tokens(call, start, added):
    """Tokens of the prompt of call number `call`, counted from 1."""
    return start + (call - 1) * added


def prefilled_without_cache(calls, start, added):
    """Tokens prefilled in `calls` calls when each computes its whole prompt: a sum that grows as k^2.

    sum over j from 1 to k of start + (j - 1) added.
    """
    return calls * start + ratio(added * calls * (calls - 1), 2)


def prefilled_with_cache(calls, start, computed):
    """Tokens prefilled in `calls` calls when each later one computes `computed` tokens: grows as k.

    What a later call computes is what was added since the last one, except the answer, whose keys
    and values the decode steps have left behind, all but the last token's: `computed` is the
    observation or question, and one.
    """
    return start + (calls - 1) * computed


def expected_tokens(accepted, guesses):
    """Tokens that one check of `guesses` drafted tokens yields on average (chapter 12).

    Each guess is accepted with probability `accepted` (a number, an array or a symbol),
    independently, and counts only if those before it were; the check itself adds one token.
    1 + a + a^2 + ... + a^g (Leviathan et al., 2023): a sum, which unlike its closed form
    (1 - a^(g + 1)) / (1 - a) holds at a = 1 too, so `guesses` is one whole number.

    Raises InputError for a probability outside 0 to 1, or guesses that are not one whole number.
    """
    accepted = number(accepted, "accepted", most=1)
    if is_symbolic(guesses) or is_array(guesses):
        raise InputError(f"guesses is {short(guesses)}: expected one whole number of zero or more")
    guesses = number(guesses, "guesses", whole=True)
    return 1 + sum(accepted**i for i in range(1, guesses + 1))


def time_per_token_together(step_s, prefill_s, batch, output_tokens):
    """Seconds per output token when prompts and decodes take turns on a GPU (chapter 12).

    In a steady stream every sequence stays for `output_tokens` steps, so batch / output_tokens
    prompts arrive for each step, and every sequence waits for their prefills: they have steps of
    their own. Chunks that are mixed into decode steps cost less.
    """
    return step_s + ratio(batch, output_tokens) * prefill_s


def time_per_token_apart(step_s, transfer_s, output_tokens):
    """Seconds per output token when another GPU prefills and the cache is sent once (chapter 12)."""
    return step_s + ratio(transfer_s, output_tokens)


def prefill_gpus_per_decode_gpu(step_s, prefill_s, batch, output_tokens):
    """Prefill GPUs that keep one decode GPU supplied: prefill seconds for each second of steps."""
    return ratio(ratio(batch, output_tokens) * prefill_s, step_s)
