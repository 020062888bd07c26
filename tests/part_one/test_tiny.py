"""The model that chapter 4 trains: its gradients against differences, and that it learns."""

import numpy as np
import pytest

from inferlab.quantities import InputError
from inferlab.quantization import rounded
from inferlab.tiny import ALPHABET, TinyModel, encode, read_text, windows


def bigram_entropy(contexts, targets):
    """Nats a character of the best predictor that knows one character."""
    counts = np.zeros((len(ALPHABET), len(ALPHABET)))
    np.add.at(counts, (contexts[:, -1], targets), 1)
    given = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -(counts * np.log(np.where(counts > 0, counts / given, 1))).sum() / counts.sum()


@pytest.fixture(scope="module")
def examples():
    return windows(encode(read_text("northanger-abbey")[:20_000]), 8)


def test_gradients_are_the_slopes_of_the_loss(examples):
    model = TinyModel(context=8, embedding=4, width=6)
    contexts, targets = examples[0][:50], examples[1][:50]
    gradients = model.gradients(contexts, targets)
    rng = np.random.default_rng(1)
    for name, parameter in model.parameters.items():
        for _ in range(4):
            place = tuple(rng.integers(n) for n in parameter.shape)
            there = parameter[place]
            parameter[place] = there + 1e-5
            above = model.loss(contexts, targets)
            parameter[place] = there - 1e-5
            below = model.loss(contexts, targets)
            parameter[place] = there
            slope = (above - below) / 2e-5
            assert gradients[name][place] == pytest.approx(slope, abs=1e-8), name


def test_straight_through_gradients_are_those_of_the_rounded_model(examples):
    def rounding(matrix):
        return rounded(matrix, 4)

    model = TinyModel(embedding=4, width=6)
    stand_in = model.copy()
    for name in ("hidden_1", "hidden_2", "output"):
        stand_in.parameters[name] = rounding(model.parameters[name])
    contexts, targets = examples[0][:50], examples[1][:50]
    through = model.gradients(contexts, targets, rounding)
    for name, gradient in stand_in.gradients(contexts, targets).items():
        assert through[name] == pytest.approx(gradient, abs=1e-15)


def test_it_learns_more_than_single_characters_tell(examples):
    model = TinyModel(width=32)
    first, *_, last = model.train(*examples, 500, batch=128)
    assert first == pytest.approx(np.log(len(ALPHABET)), abs=0.3)  # knows nothing
    assert last < first
    assert model.loss(*examples) < bigram_entropy(*examples)


def test_training_is_the_same_twice(examples):
    losses = [TinyModel(width=8).train(*examples, 20) for _ in range(2)]
    assert losses[0] == losses[1]


def test_a_copy_is_apart(examples):
    model = TinyModel(width=8)
    copied = model.copy()
    before = model.loss(*examples)
    copied.train(*examples, 5)
    assert model.loss(*examples) == before != copied.loss(*examples)


def test_texts_are_read_as_the_alphabet():
    assert "".join(ALPHABET[i] for i in encode("Two\n\n BATHS & 3 «teas»")) == "two baths teas"


def test_windows_hold_each_context_and_what_follows():
    contexts, targets = windows(np.arange(5), 2)
    assert contexts.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert targets.tolist() == [2, 3, 4]
    with pytest.raises(InputError, match="no example"):
        windows(np.arange(2), 2)
