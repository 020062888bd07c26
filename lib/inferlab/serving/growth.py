"""What a prompt that grows call by call costs, with and without a prefix cache (chapters 10 and 11).

An agent's k-th call and a conversation's k-th turn send the same thing: a beginning of `start`
tokens and k - 1 additions of `added` tokens each. As everywhere, the formulas take ints, arrays and
symbols.
"""

from __future__ import annotations

from inferlab.quantities import ratio


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

    Each guess is right with probability `accepted`, independently, and counts only if those before
    it were right; the check itself adds one token. 1 + a + a^2 + ... + a^g (Leviathan et al., 2023).
    """
    return 1 + sum(accepted**i for i in range(1, guesses + 1))
