"""From scores to text: pick a token, feed it back, stop (chapter 1)."""

import time
from dataclasses import dataclass, field

import numpy as np

from inferlab.quantities import InputError
from inferlab.runtime.decoder import KVCache

PREFILL_CHUNK = 1024  # tokens; a longer prompt is fed in pieces, since its scores grow as N^2


def probabilities(logits, temperature=1.0, top_p=1.0):
    """The distribution that the next token is drawn from, (V,), summing to one.

    logits: (V,). temperature: divides the logits; 0 puts all on the largest (greedy). top_p: keep
    the fewest tokens, most likely first, whose probabilities reach this sum. Raises InputError
    for a temperature below 0 or a top_p outside (0, 1].
    """
    _check_sampling(temperature, top_p)
    if temperature == 0:
        return np.eye(1, len(logits), int(np.argmax(logits)))[0]
    with np.errstate(over="ignore"):  # near 0, all but the largest go to minus infinity
        scores = (np.asarray(logits, np.float64) - np.max(logits)) / temperature
    p = np.exp(scores)
    p /= p.sum()
    if top_p < 1:
        order = np.argsort(-p, kind="stable")
        dropped = order[np.searchsorted(np.cumsum(p[order]), top_p) + 1 :]
        p[dropped] = 0
        p /= p.sum()
    return p


def _check_sampling(temperature, top_p):
    if not 0 <= temperature < np.inf:
        raise InputError(f"temperature is {temperature}: expected a number of zero or more")
    if not 0 < top_p <= 1:
        raise InputError(f"top_p is {top_p}: expected a number above 0, up to 1")


def top(logits, count=10):
    """The `count` largest logits as [(token id, logit)], largest first; ties by id."""
    order = np.argsort(-logits, kind="stable")[:count]
    return [(int(i), float(logits[i])) for i in order]


def losses(decoder, token_ids):
    """The loss at every position of a text, in nats: -log P(token | tokens before it), (n - 1,).

    One causal pass scores all positions, in pieces that keep the logits small.
    """
    cache = decoder.new_cache(len(token_ids)) if len(token_ids) else None
    pieces = []
    for start in range(0, len(token_ids), 256):
        piece = token_ids[start : start + 256]
        following = token_ids[start + 1 : start + 257]
        logits = decoder.logits(piece, cache, positions="all")[: len(following)]
        logits = logits.astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        chosen = logits[np.arange(len(following)), following]
        pieces.append(np.log(np.exp(logits).sum(axis=-1)) - chosen)
    return np.concatenate(pieces) if pieces else np.empty(0)


@dataclass
class Generation:
    """One answer. `ids` ends with the stop token where there was one.

    stopped_by: "eos" (a stop token), "length" (max_tokens) or "context" (the model's limit).
    prompt_logits: (V,) after the prompt's last token. prefill_s: seconds until the first token
    was picked. step_s: seconds of each decode step after it; with several prompts, of the step
    that they shared.
    """

    prompt_ids: list
    cache: KVCache
    ids: list = field(default_factory=list)
    stopped_by: str | None = None
    prompt_logits: np.ndarray | None = None
    prefill_s: float = 0.0
    step_s: list = field(default_factory=list)

    @property
    def decode_s(self):
        """Seconds of all decode steps: T tokens take T - 1 of them."""
        return sum(self.step_s)


def generate(
    decoder, prompts, *,
    max_tokens=128, temperature=0.0, top_p=1.0, seed=None, stop=frozenset(), on_token=None,
):  # fmt: skip
    """Answer prompts: prefill each, then decode them together, one token each a step.

    prompts: list of token id lists. Greedy at temperature 0 (the default); `seed` makes sampling
    repeatable. stop: ids that end an answer. on_token: called with (index of the prompt, token
    id) as each token is picked. Returns a list of `Generation`.
    Raises InputError for a prompt that is empty or longer than the model's context.
    """
    limit = decoder.context_length
    _check_prompts(prompts, limit)
    _check_sampling(temperature, top_p)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise InputError(f"max_tokens is {max_tokens}: expected a whole number from 1 on")
    if seed is not None and seed < 0:
        raise InputError(f"seed is {seed}: expected a whole number of zero or more")
    random = np.random.default_rng(seed)
    # The last token that is picked is never fed back, so it needs no room in the cache.
    runs = [
        Generation(list(ids), decoder.new_cache(min(len(ids) + max_tokens - 1, limit)))
        for ids in prompts
    ]

    def accept(index, logits):
        run, token = runs[index], _pick(logits, temperature, top_p, random)
        run.ids.append(token)
        if token in stop:
            run.stopped_by = "eos"
        elif len(run.ids) == max_tokens:
            run.stopped_by = "length"
        elif run.cache.length == limit:
            run.stopped_by = "context"
        if on_token:
            on_token(index, token)

    for index, run in enumerate(runs):
        began = time.perf_counter()
        run.prompt_logits = prefill(decoder, run.prompt_ids, run.cache)
        accept(index, run.prompt_logits)
        run.prefill_s = time.perf_counter() - began

    while active := [i for i, run in enumerate(runs) if run.stopped_by is None]:
        began = time.perf_counter()
        logits = decoder.step([([runs[i].ids[-1]], runs[i].cache) for i in active])
        for i, row in zip(active, logits, strict=True):
            accept(i, row)
        for i in active:
            runs[i].step_s.append(time.perf_counter() - began)
    return runs


def _check_prompts(prompts, limit):
    for ids in prompts:
        if not len(ids):
            raise InputError("the prompt is empty: give at least one token to continue from")
        if len(ids) > limit:
            raise InputError(
                f"the prompt has {len(ids)} tokens: this model takes at most {limit}; shorten it"
            )


def _pick(logits, temperature, top_p, random) -> int:
    """The next token's id: the likeliest one at temperature 0, else one drawn."""
    if not np.isfinite(logits).all():
        raise InputError(
            "the model's logits are no numbers: its weights are damaged; fetch it again"
        )
    p = probabilities(logits, temperature, top_p)
    return int(np.argmax(p) if temperature == 0 else random.choice(len(p), p=p))


def prefill(decoder, token_ids, cache):
    """Feed a prompt into an empty or filled cache; return the logits after its last token, (V,)."""
    for start in range(0, len(token_ids), PREFILL_CHUNK):
        logits = decoder.logits(token_ids[start : start + PREFILL_CHUNK], cache)
    return logits
