"""The drawn diagrams say what the chapters say of them."""

import pytest

from inferlab import diagrams


def words(fig):
    fig.canvas.draw()
    return [t.get_text() for t in fig.axes[0].texts]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_training_predicts_every_token_and_inference_only_its_own():
    shown = words(diagrams.next_token_inputs(("a", "b", "c", "d"), prompt=2))
    assert shown.count("a") == 3 + 2  # 3 rows of training, 2 of inference
    assert shown.count("d") == 1 + 1  # predicted once in each


def test_a_linear_layer_is_three_products_of_one_size():
    shown = words(diagrams.linear_layer_passes())
    assert shown.count("$2mkn$ FLOP") == 3
    assert {"X", "W", "Y", "dX", "dY", "dW"} <= set(shown)


@pytest.mark.parametrize(
    "draw",
    [
        diagrams.next_token_inputs,
        diagrams.linear_layer_passes,
        diagrams.training_and_inference_loop,
    ],
)
def test_words_stay_inside_the_drawing(draw):
    fig = draw()
    fig.canvas.draw()
    frame = fig.bbox
    for text in fig.axes[0].texts:
        extent = text.get_window_extent()
        assert frame.x0 - 1 <= extent.x0 and extent.x1 <= frame.x1 + 1, text.get_text()
        assert frame.y0 - 1 <= extent.y0 and extent.y1 <= frame.y1 + 1, text.get_text()
