"""A next-character model small enough to train inside a chapter, gradients written out by hand.

It sees the last few characters and scores the next one, through an embedding and two hidden layers
(Bengio et al. 2003). It is there to be rounded: chapter 4 quantizes it, and trains it to bear that.
Arithmetic is float64, so that training ends at the same printed digits on every machine.
"""

from __future__ import annotations

from importlib import resources

import numpy as np

from inferlab.quantities import InputError

ALPHABET = " abcdefghijklmnopqrstuvwxyz.,;'-?!\""
"""The characters that the model knows; every other one is read as a space."""

MATRICES = ("hidden_1", "hidden_2", "output")
"""The parameters that are multiplied as matrices, and so worth quantizing."""


def read_text(name: str) -> str:
    """A text that the library ships, by its file's name without the ending."""
    return (resources.files("inferlab") / "data" / "text" / f"{name}.txt").read_text("utf-8")


def encode(text: str) -> np.ndarray:
    """Indices into `ALPHABET` of a text in lower case, runs of spaces made one."""
    known = "".join(c if c in ALPHABET else " " for c in text.lower())
    position = {c: i for i, c in enumerate(ALPHABET)}
    return np.array([position[c] for c in " ".join(known.split())])


def windows(ids: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    """Every run of `context` characters, shape (n, context), and the character after each, (n,).

    Raises InputError for a text that is too short to hold one.
    """
    if len(ids) <= context:
        raise InputError(f"{len(ids)} characters hold no example: expected more than {context}")
    return np.lib.stride_tricks.sliding_window_view(ids[:-1], context), ids[context:]


class TinyModel:
    """Parameters of the model: `parameters` maps names to arrays.

    embedding (V, e); hidden_1 (context x e, width) and bias_1 (width,); hidden_2 (width, width) and
    bias_2; output (width, V) and bias_3 (V,).
    """

    def __init__(self, context=8, embedding=12, width=96, seed=0):
        rng = np.random.default_rng(seed)
        size = len(ALPHABET)
        shapes = {
            "embedding": (size, embedding),
            "hidden_1": (context * embedding, width),
            "hidden_2": (width, width),
            "output": (width, size),
        }
        self.context = context
        self.parameters = {
            name: rng.normal(0, 1 if name == "embedding" else shape[0] ** -0.5, shape)
            for name, shape in shapes.items()
        }
        for name, length in (("bias_1", width), ("bias_2", width), ("bias_3", size)):
            self.parameters[name] = np.zeros(length)

    def loss(self, contexts, targets, weights=lambda matrix: matrix) -> float:
        """Mean cross-entropy in nats of the true next character.

        weights: what to do to each matrix first; chapter 4 passes the rounding.
        """
        p = self._seen(weights)
        *_, scores = _forward(p, contexts)
        return float(-_log_softmax(scores)[np.arange(len(targets)), targets].mean())

    def gradients(self, contexts, targets, weights=lambda matrix: matrix) -> dict[str, np.ndarray]:
        """Gradient of the loss by parameter name.

        Where `weights` changes the matrices, the gradient is taken at what they became and handed
        to the parameters unchanged: the straight-through estimator of quantization-aware training,
        since the true derivative of rounding is zero almost everywhere.
        """
        p = self._seen(weights)
        x, a1, a2, scores = _forward(p, contexts)
        d_scores = np.exp(_log_softmax(scores))
        d_scores[np.arange(len(targets)), targets] -= 1
        d_scores /= len(targets)
        d2 = (d_scores @ p["output"].T) * (1 - a2**2)
        d1 = (d2 @ p["hidden_2"].T) * (1 - a1**2)
        d_x = d1 @ p["hidden_1"].T
        d_embedding = np.zeros_like(p["embedding"])
        np.add.at(d_embedding, contexts, d_x.reshape(*contexts.shape, -1))
        return {
            "embedding": d_embedding,
            "hidden_1": x.T @ d1,
            "hidden_2": a1.T @ d2,
            "output": a2.T @ d_scores,
            "bias_1": d1.sum(axis=0),
            "bias_2": d2.sum(axis=0),
            "bias_3": d_scores.sum(axis=0),
        }

    def train(self, contexts, targets, steps, *, rate=3e-3, batch=256, seed=0,
              weights=lambda matrix: matrix) -> list[float]:  # fmt: skip
        """Adam on random batches, the rate falling to zero; returns ten batch losses on the way.

        weights: what to do to each matrix at every step, as in `gradients`.
        """
        rng = np.random.default_rng(seed)
        first = {name: np.zeros_like(p) for name, p in self.parameters.items()}
        second = {name: np.zeros_like(p) for name, p in self.parameters.items()}
        losses = []
        for t in range(1, steps + 1):
            rows = rng.integers(len(targets), size=batch)
            if (t - 1) % max(1, steps // 10) == 0:
                losses.append(self.loss(contexts[rows], targets[rows], weights))
            falling = rate * (1 - t / (steps + 1))
            for name, g in self.gradients(contexts[rows], targets[rows], weights).items():
                first[name] += 0.1 * (g - first[name])
                second[name] += 0.01 * (g * g - second[name])
                step = (first[name] / (1 - 0.9**t)) / (np.sqrt(second[name] / (1 - 0.99**t)) + 1e-8)
                self.parameters[name] -= falling * step
        return losses

    def copy(self) -> TinyModel:
        """A model of its own with the same parameters."""
        other = object.__new__(TinyModel)
        other.context = self.context
        other.parameters = {name: p.copy() for name, p in self.parameters.items()}
        return other

    def _seen(self, weights):
        return {n: weights(p) if n in MATRICES else p for n, p in self.parameters.items()}


def _forward(p, contexts):
    """Inputs, both hidden layers and the scores, for contexts of shape (n, context)."""
    x = p["embedding"][contexts].reshape(len(contexts), -1)
    a1 = np.tanh(x @ p["hidden_1"] + p["bias_1"])
    a2 = np.tanh(a1 @ p["hidden_2"] + p["bias_2"])
    return x, a1, a2, a2 @ p["output"] + p["bias_3"]


def _log_softmax(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
