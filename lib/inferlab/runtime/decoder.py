"""A Llama-family decoder in plain NumPy, short enough to read in one sitting.

Everything a large decoder does is here in small: RMSNorm, rotary positions, grouped-query
attention over a preallocated KV cache, the gated feed-forward network, the output head, and steps
that pack sequences of any length. Arithmetic is fp32. Chapters 1 and 2 read this file; the counts
of `inferlab.step` are checked against what it really multiplies.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from inferlab.quantities import InputError, short
from inferlab.step import Component, Work

COMPONENTS = ("attention_projections", "attention_scores_values", "ffn", "router", "lm_head")


@dataclass(frozen=True)
class Layer:
    """The parameters of one layer. A matrix has shape (inputs, outputs) and is used as `x @ W`."""

    attention_norm: np.ndarray  # (d,)
    q: np.ndarray  # (d, h d_h)
    k: np.ndarray  # (d, h_kv d_h)
    v: np.ndarray  # (d, h_kv d_h)
    output: np.ndarray  # (h d_h, d)
    ffn_norm: np.ndarray  # (d,)
    gate: np.ndarray  # (d, f)
    up: np.ndarray  # (d, f)
    down: np.ndarray  # (f, d)


class KVCache:
    """Keys and values of the tokens seen so far, for one sequence, with room for `capacity`.

    `k` and `v` have shape (layers, kv_heads, capacity, head_dim); the first `length` are filled.
    """

    def __init__(self, architecture, capacity):
        a = architecture
        shape = (a.layers, a.kv_heads, capacity, a.head_dim)
        self.k = np.zeros(shape, np.float32)
        self.v = np.zeros(shape, np.float32)
        self.capacity = capacity
        self.length = 0


class Tally:
    """What the decoder really did: FLOPs of its matrix products and the bytes they touch."""

    def __init__(self):
        self._amounts = {name: defaultdict(int) for name in COMPONENTS}

    def add(self, component, **amounts):
        """Add FLOPs or bytes to a component: `add("ffn", flops=..., weights=...)`."""
        for name, amount in amounts.items():
            self._amounts[component][name] += amount

    def matmul(self, component, x, weight):
        """`x @ weight`, counted: 2 m k n FLOPs, and the weight's bytes read once."""
        (m, k), n = x.shape, weight.shape[1]
        self.add(component, flops=2 * m * k * n, weights=weight.nbytes)
        return x @ weight

    def work(self):
        """The tally in the form that `inferlab.step.step` predicts it: a `Work`."""
        return Work.of({name: Component(**a) for name, a in self._amounts.items()})


class Decoder:
    """A decoder-only transformer with its parameters.

    architecture: an `inferlab.architecture.Architecture`; its sizes name every shape below.
    embedding: (V, d). layers: list of `Layer`. final_norm: (d,). head: (d, V), for a tied model
    the transposed embedding. frequencies: (d_h / 2,), radians a position that each pair turns by.
    `tally` counts all steps since it was last replaced by a new `Tally()`.
    """

    def __init__(
        self, architecture, embedding, layers, final_norm, head, *,
        frequencies, norm_epsilon, context_length,
    ):  # fmt: skip
        self.architecture = architecture
        self.embedding = embedding
        self.layers = layers
        self.final_norm = final_norm
        self.head = head
        self.frequencies = frequencies
        self.norm_epsilon = norm_epsilon
        self.context_length = context_length
        self.tally = Tally()

    def new_cache(self, capacity=None):
        """An empty KV cache for one sequence of up to `capacity` tokens (default: all that the
        model was trained for). Raises InputError for a capacity beyond that."""
        capacity = self.context_length if capacity is None else capacity
        if not 1 <= capacity <= self.context_length:
            raise InputError(
                f"a cache of {capacity} tokens was asked for: this model takes 1 to "
                f"{self.context_length}"
            )
        return KVCache(self.architecture, capacity)

    def logits(self, token_ids, cache=None, positions="last"):
        """Feed one sequence's new tokens; return the scores of what may come next.

        token_ids: n ids, the continuation of what `cache` holds (no cache: a whole sequence).
        Returns shape (V,) after the last token, or (n, V) after each with `positions="all"`.
        """
        scores = self.step([(token_ids, cache)], positions)
        return scores[0] if positions == "last" else scores

    def step(self, sequences, positions="last"):
        """One forward pass over a packed batch: the step that `inferlab.step` counts.

        sequences: list of (token_ids, cache). A prompt with an empty cache is prefill, one token
        with a filled cache is decode; both may share a step. `cache` may be None.
        Returns logits of shape (sequences, V), or (all new tokens, V) with `positions="all"`.
        Raises InputError for an empty or too long sequence and for ids outside the vocabulary.
        """
        x = self.hidden(sequences)
        if positions == "last":
            x = x[np.cumsum([len(ids) for ids, _ in sequences]) - 1]
        return self.tally.matmul("lm_head", x, self.head)

    def hidden(self, sequences):
        """The step without its output head: (all new tokens, d), normalized for the head."""
        sequences = [self._checked(ids, cache) for ids, cache in sequences]
        if len({id(cache) for _, cache in sequences}) < len(sequences):
            raise InputError("two sequences of a step share one cache: expected one for each")
        x = self.embedding[np.concatenate([ids for ids, _ in sequences])]
        positions = np.concatenate(
            [np.arange(cache.length, cache.length + len(ids)) for ids, cache in sequences]
        )
        turns = np.exp(1j * np.outer(positions, self.frequencies)).astype(np.complex64)

        for index, layer in enumerate(self.layers):
            normed = self._norm(x, layer.attention_norm)
            x = x + self._attention(index, layer, normed, turns, sequences)
            x = x + self._ffn(layer, self._norm(x, layer.ffn_norm))
            # Each layer reads its input and writes its output once.
            self.tally.add("attention_projections", activations=x.nbytes)
            self.tally.add("ffn", activations=x.nbytes)

        for ids, cache in sequences:
            cache.length += len(ids)
        return self._norm(x, self.final_norm)

    def _norm(self, x, weight):
        """RMSNorm: scale each row to a root mean square of one, then by a learned weight."""
        mean_square = np.vecdot(x, x)[:, None] / np.float32(x.shape[1])
        return x * (weight / np.sqrt(mean_square + np.float32(self.norm_epsilon)))

    def _attention(self, index, layer, x, turns, sequences):
        """Grouped-query attention. Projections run on the packed rows, scores per sequence."""
        n, a = len(x), self.architecture

        def project(x, weight):
            return self.tally.matmul("attention_projections", x, weight)

        q = rotate(project(x, layer.q).reshape(n, a.heads, a.head_dim), turns)
        k = rotate(project(x, layer.k).reshape(n, a.kv_heads, a.head_dim), turns)
        v = project(x, layer.v).reshape(n, a.kv_heads, a.head_dim)

        mixed = np.empty((n, a.heads * a.head_dim), np.float32)
        first = 0
        for ids, cache in sequences:
            rows = slice(first, first + len(ids))
            keys, values = self._remember(index, cache, k[rows], v[rows])
            mixed[rows] = self._attend(q[rows], keys, values)
            first = rows.stop
        return project(mixed, layer.output)

    def _remember(self, index, cache, k, v):
        """Append the new keys and values, (n, kv_heads, d_h) each, to the cache of this layer.

        Returns all of them so far, (kv_heads, cached + n, d_h) each.
        """
        old, new = cache.length, cache.length + len(k)
        keys, values = cache.k[index, :, :new], cache.v[index, :, :new]
        keys[:, old:] = k.swapaxes(0, 1)
        values[:, old:] = v.swapaxes(0, 1)
        self.tally.add(
            "attention_scores_values",
            kv_read=keys[:, :old].nbytes + values[:, :old].nbytes,
            kv_write=k.nbytes + v.nbytes,
        )
        return keys, values

    def _attend(self, q, keys, values):
        """softmax(q k^T / sqrt(d_h)) v for one sequence.

        q: (n, heads, d_h). The heads that share a key-value head are stacked into one matrix of
        group x n rows, so that a key is read once for all of them. The whole rectangle of n x
        (cached + n) scores is computed; a new token's own future is then masked out.
        """
        n, heads, head_dim = q.shape
        kv_heads, length, _ = keys.shape
        group = heads // kv_heads
        q = q.reshape(n, kv_heads, group, head_dim).transpose(1, 2, 0, 3)
        q = q.reshape(kv_heads, group * n, head_dim) * np.float32(head_dim**-0.5)

        scores = q @ keys.swapaxes(1, 2)
        if n > 1:
            future = np.triu(np.full((n, length), -np.inf, np.float32), k=length - n + 1)
            scores.reshape(kv_heads, group, n, length)[...] += future
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores, out=scores)
        # The softmax divides by the sum; after the product there are fewer numbers to divide.
        mixed = weights @ values / weights.sum(axis=-1, keepdims=True)
        self.tally.add("attention_scores_values", flops=2 * (2 * weights.size * head_dim))

        mixed = mixed.reshape(kv_heads, group, n, head_dim).transpose(2, 0, 1, 3)
        return mixed.reshape(n, heads * head_dim)

    def _ffn(self, layer, x):
        """The gated feed-forward network (SwiGLU): down(silu(gate x) * up x)."""
        gate = self.tally.matmul("ffn", x, layer.gate)
        up = self.tally.matmul("ffn", x, layer.up)
        return self.tally.matmul("ffn", gate / (1 + np.exp(-gate)) * up, layer.down)

    def _checked(self, token_ids, cache):
        ids = np.asarray(token_ids)
        vocab = len(self.embedding)
        if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
            raise InputError(f"a step was given {short(token_ids)}: expected one or more token ids")
        if ids.min() < 0 or ids.max() >= vocab:
            wrong = ids[(ids < 0) | (ids >= vocab)][0]
            raise InputError(f"token id {wrong} is outside the vocabulary of 0 to {vocab - 1}")
        known = 0 if cache is None else cache.length
        limit = self.context_length if cache is None else cache.capacity
        if known + len(ids) > limit:
            raise InputError(
                f"{len(ids)} tokens after {known} cached ones make {known + len(ids)}: "
                f"there is room for {limit}; shorten the prompt or make a larger cache"
            )
        return ids, self.new_cache(len(ids)) if cache is None else cache


def rotate(x, turns):
    """Rotary positions: each neighbouring pair of x, read as a complex number, turned by its angle.

    x: (n, heads, d_h); turns: (n, d_h / 2), complex of length one. A product of a turned query and
    a turned key depends on their distance alone.
    """
    return (x.view(np.complex64) * turns[:, None, :]).view(np.float32)
