"""Diagrams of chapters 2 to 4: boxes and arrows in the book's visual language."""

from __future__ import annotations

from inferlab.figures import ROLES, figure, text


def _canvas(width: float, height: float, *, inches: float):
    """An empty drawing of `width` by `height` units, y downwards, `inches` high: (fig, ax)."""
    fig, ax = figure(height=inches)
    ax.set(xlim=(-0.1, width), ylim=(height, 0))
    ax.axis("off")
    return fig, ax


def _box(ax, x, y, width, height, words="", role="total", *, filled=True, **kwargs):
    """A rectangle with its upper left corner at (x, y) and `words` in its middle."""
    from matplotlib.patches import FancyBboxPatch

    look = ROLES[role]
    ax.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06", linewidth=1.2,
            edgecolor=look.light, facecolor=look.fill + "40" if filled else "white",
        )
    )  # fmt: skip
    style = {"ha": "center", "va": "center", "fontsize": 9, "color": ROLES["total"].light} | kwargs
    ax.text(x + width / 2, y + height / 2, words, **style)


def _arrow(ax, start, end, role="total", words="", *, bend=0.0, **kwargs):
    """An arrow from `start` to `end`, with `words` at its middle; `bend` curves it."""
    look = ROLES[role]
    ax.annotate(
        "", end, start,
        arrowprops={"arrowstyle": "-|>", "color": look.light, "linewidth": 1.4, "shrinkA": 0,
                    "shrinkB": 0, "connectionstyle": f"arc3,rad={bend}"},
    )  # fmt: skip
    if words:
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        text(ax, *middle, words, role, **{"ha": "center", "va": "center", "fontsize": 9} | kwargs)


def next_token_inputs(tokens=("The", "sun", "rose", "over", "the", "hills"), prompt=3):
    """What each prediction is made from, in training and in inference. Chapter 2.

    tokens: a sentence. prompt: how many of them the user gave; the model continues.
    """
    fig, ax = _canvas(17.2, 8.2, inches=3.7)
    count = len(tokens)

    def row(left, y, known, next_token, own_from, role):
        for i in range(known):
            own = i >= own_from
            _box(ax, left + 1.02 * i, y, 0.96, 0.8, tokens[i], "decode" if own else "muted")
        _arrow(
            ax, (left + 1.02 * known + 0.02, y + 0.4), (left + 1.02 * known + 0.46, y + 0.4), role
        )
        _box(ax, left + 1.02 * known + 0.5, y, 0.96, 0.8, next_token, role, filled=False)

    ax.text(0, 0.3, "Training", fontweight="bold", fontsize=11)
    ax.text(0, 0.95, "every row in one pass, context from the text", fontsize=9)
    for i in range(1, count):
        row(0, 0.45 + 1.1 * i, i, tokens[i], count, "prefill")

    left = 9.6
    ax.text(left, 0.3, "Inference", fontweight="bold", fontsize=11)
    ax.text(left, 0.95, "one row a pass, context partly the model's own", fontsize=9)
    for step, i in enumerate(range(prompt, count)):
        y = 1.55 + 1.75 * step
        row(left, y, i, tokens[i], prompt, "decode")
        if i + 1 < count:
            down = left + 1.02 * i
            _arrow(ax, (down + 0.98, y + 0.84), (down + 0.5, y + 1.71), "decode", bend=-0.15)
    text(ax, left + 3.05, 3.0, "fed back", "decode", ha="right", va="center", fontsize=9)
    ax.text(0, 7.7, "grey: given    blue: the model's own    outlined: predicted", fontsize=9,
            color=ROLES["muted"].light)  # fmt: skip
    return fig


def linear_layer_passes():
    """The three matrix products that training makes of one linear layer. Chapter 3."""
    fig, ax = _canvas(17, 8.4, inches=3.7)
    m, k, n = 2.2, 1.5, 1.1  # sides of the drawn matrices

    def matrix(x, middle, rows, columns, name, role):
        _box(ax, x, middle - rows / 2, columns, rows, name, role)
        return x + columns + 0.35

    def product(y, title, why, left, right, result):
        ax.text(0, y - 0.25, title, fontweight="bold", va="center")
        ax.text(0, y + 0.35, why, va="center", fontsize=9, color=ROLES["muted"].light)
        x = 6.4
        for part, sign in ((left, "\u00d7"), (right, "="), (result, "")):
            x = matrix(x, y, *part)
            ax.text(x, y, sign, ha="center", va="center", fontsize=12)
            x += 0.35
        ax.text(13.9, y, "$2mkn$ FLOP", va="center", color=ROLES["compute"].light)

    x, w, y = (m, k, "X", "activations"), (k, n, "W", "weights"), (m, n, "Y", "activations")
    dy = (m, n, "dY", "activations")
    w_t, dx = (n, k, "Wᵀ", "weights"), (m, k, "dX", "activations")
    x_t, dw = (k, m, "Xᵀ", "activations"), (k, n, "dW", "weights")
    product(1.2, "forward", "results for the next layer", x, w, y)
    product(4.0, "backward, to the inputs", "what the layer before should change", dy, w_t, dx)
    product(6.9, "backward, to the weights", "what this layer should change", x_t, dy, dw)
    return fig


def training_and_inference_loop():
    """How training and inference depend on each other, from design to use and back. Chapter 4."""
    fig, ax = _canvas(17.2, 9.6, inches=4.3)
    _box(ax, 0, 3.6, 3.6, 1.9, "design\nlayers, heads,\nexperts, bits", "muted")
    _box(ax, 5.2, 3.6, 3.4, 1.9, "training\nforward, backward,\nupdate", "compute")
    _box(ax, 5.2, 0.5, 3.4, 1.5, "validation\nheld-out text", "decode")
    _box(ax, 5.2, 7.3, 3.4, 1.6, "post-training\nsampled answers", "decode")
    _box(ax, 12.6, 3.6, 4.4, 1.9, "serving\nprefill and decode,\nmillions of times", "decode")
    _arrow(ax, (3.7, 4.55), (5.1, 4.55), "muted")
    _arrow(ax, (8.7, 4.55), (12.5, 4.55), "weights", "weights, frozen", dy=10)
    for x, up, down in ((6.3, 3.5, 2.1), (6.3, 5.6, 7.3)):
        _arrow(ax, (x, up), (x, down), "weights")
        _arrow(ax, (x + 1.2, down), (x + 1.2, up), "decode")
    text(ax, 7.75, 2.8, "how good?", "decode", va="center", fontsize=9)
    text(ax, 7.75, 6.45, "rewards", "decode", va="center", fontsize=9)
    _arrow(ax, (14.8, 3.5), (8.75, 1.2), "decode", bend=0.25)
    text(ax, 13.6, 1.25, "failures seen in use", "decode", ha="center", fontsize=9)
    _arrow(ax, (14.8, 5.6), (8.75, 8.2), "decode", bend=-0.25)
    text(ax, 13.8, 8.2, "preferences, synthetic data,\nanswers to distil", "decode", ha="center",
         va="center", fontsize=9)  # fmt: skip
    ax.text(0, 9.3, "blue: forward passes only, that is, inference", fontsize=9,
            color=ROLES["decode"].light)  # fmt: skip
    return fig
