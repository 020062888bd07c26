"""Answers to exercise 2, prefill and decode. Never released."""

import math

from inferlab.accelerator import Accelerator
from inferlab.accounting import TEXT
from inferlab.architecture import Architecture
from inferlab.derive import symbolic_architecture, text_architecture
from inferlab.derive import symbols as s
from inferlab.grading.checks import (
    AnswerKey,
    Wrong,
    choice,
    essay,
    expression,
    function,
    number,
    plot,
)
from inferlab.step import decode, prefill, step

llama = Architecture.preset("LLaMA-7B")
ideal = Architecture.preset("LLaMA-7B-text")
a100 = Accelerator.preset("A100-SXM-40GB")

packed = step(ideal, prefill(2000, 2), TEXT).flops
as_one = step(ideal, prefill(4000), TEXT).flops

weights = 2 * llama.parameters.total
cached = llama.kv_bytes(4000)
step_bytes = weights + cached
fit = int((a100.capacity - weights) // llama.kv_bytes(3000))

general = step(text_architecture(), decode(s.S), TEXT).flops


def attend(keys, values, key, value, query):
    """Append the new token's key and value to the cache and attend to all of it."""
    keys, values = [*keys, key], [*values, value]
    return _attention(query, keys, values, math.sqrt(len(query)))


def _attention(query, keys, values, scale):
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) / scale for key in keys]
    exponentials = [math.exp(score - max(scores)) for score in scores]
    shares = [e / sum(exponentials) for e in exponentials]
    return [
        sum(share * value[i] for share, value in zip(shares, values, strict=True))
        for i in range(len(values[0]))
    ]


def forgets_itself(keys, values, key, value, query):
    """Attends before it appends, and to nothing in an empty cache."""
    if not keys:
        return [0.0] * len(value)
    return _attention(query, keys, values, math.sqrt(len(query)))


def unscaled(keys, values, key, value, query):
    """Leaves out the square root of the head's width."""
    return _attention(query, [*keys, key], [*values, value], 1.0)


def mixes_keys(keys, values, key, value, query):
    """Adds up keys where it should add up values."""
    return _attention(query, [*keys, key], [*keys, key], math.sqrt(len(query)))


cache = ([[1.0, 0.0], [0.5, 2.0]], [[3.0, 1.0], [-1.0, 4.0]])
other = ([[0.2, -1.0, 0.4]], [[1.0, 2.0, 3.0]])


def draw_rate(read=lambda cached: weights + llama.kv_bytes(cached)):
    """Tokens a second of decode at batch 1 against the cached length."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    lengths = list(range(0, 32001, 100))
    axes.plot(lengths, [a100.bandwidth / read(n) for n in lengths])
    axes.set(xlabel="cached tokens", ylabel="tokens/s")
    return axes


def draw_figure():
    """The figure of question 9: prefill 0.8 s after a wait of 0.4 s, then a token each 50 ms."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.2), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([0], [0.4], left=0, color="#c3c9d1", label="waiting")
    axes.barh([0], [0.8], left=0.4, color="#e69f00", label="prefill")
    axes.barh([0] * 12, [0.045] * 12, left=[1.2 + 0.05 * i for i in range(12)], color="#56b4e9")
    axes.text(0.2, 0, "waiting", ha="center", va="center")
    axes.text(0.8, 0, "prefill", ha="center", va="center")
    axes.text(1.5, 0.55, "12 decode steps", ha="center", va="center")
    axes.set(xlabel="seconds since the request arrived", yticks=[], ylim=(-0.5, 0.8), xlim=(0, 2))
    axes.set_xticks([i / 5 for i in range(11)])
    return figure


key = AnswerKey(
    "2-prefill-decode",
    "Prefill and decode",
    [
        choice(
            "order",
            "prefill: all at once, decode: one a step",
            options=[
                "prefill: all at once, decode: one a step",
                "prefill: one a step, decode: all at once",
                "prefill: all at once, decode: all at once",
                "prefill: one a step, decode: one a step",
            ],
            points=1,
            purpose="Say how each phase treats the tokens of one request",
            hint="Which tokens are known before the phase begins?",
            wrong=[
                Wrong(
                    "phases swapped",
                    "prefill: one a step, decode: all at once",
                    "The prompt is known in full; the answer is not known until it is made.",
                ),
                Wrong(
                    "decode in parallel",
                    "prefill: all at once, decode: all at once",
                    "The second token of the answer depends on which one came first.",
                ),
                Wrong(
                    "prefill in sequence",
                    "prefill: one a step, decode: one a step",
                    "The prompt could be fed one token at a time, but nothing forces it: it is known.",
                ),
            ],
        ),
        number(
            "prefill_flop",
            packed,
            by_hand=5.5834e13,
            unit="FLOP",
            points=2,
            purpose="Count the work of a packed prefill",
            hint="What does each token cost whatever the others are, and which tokens look at which?",
            wrong=[
                Wrong(
                    "square of the packed sum",
                    as_one,
                    "You let the two requests look at each other: square each length, then add.",
                ),
                Wrong(
                    "MAC for FLOP",
                    packed / 2,
                    "A multiply-add is two floating-point operations.",
                ),
                Wrong("one layer", packed / 32, "That is one layer. The model has 32."),
                Wrong(
                    "attention left out",
                    32 * 24 * 4000 * 4096**2,
                    "That is the linear layers alone: the scores and the values are missing.",
                ),
            ],
        ),
        expression(
            "decode_flop",
            general,
            symbols="L S d",
            points=1,
            purpose="Write the work of one decode step",
            hint="One token passes every weight; its query meets S keys and S values.",
            wrong=[
                Wrong(
                    "quadratic in S",
                    s.L * (24 * s.d**2 + 4 * s.S**2 * s.d),
                    "One query meets S keys: how many pairs are that?",
                ),
                Wrong(
                    "MAC for FLOP",
                    s.L * (12 * s.d**2 + 2 * s.S * s.d),
                    "A multiply-add is two floating-point operations.",
                ),
                Wrong(
                    "whole context again",
                    s.L * (24 * s.S * s.d**2 + 4 * s.S**2 * s.d),
                    "That is a prefill of S tokens. With a cache only the new token passes the weights.",
                ),
            ],
        ),
        function(
            "attend",
            attend,
            probes=[
                (*cache, [1.0, 1.0], [0.0, 2.0], [0.7, -0.3]),
                (*other, [1.0, 0.5, -0.2], [0.0, -2.0, 5.0], [0.3, 0.1, 2.0]),
                ([], [], [1.0, 2.0], [3.0, 4.0], [0.5, 0.5]),
            ],
            hidden=[
                (*cache, [-2.0, 0.1], [5.0, 5.0], [0.1, 0.9]),
                ([], [], [0.5, -1.0], [2.0, 7.0], [1.5, 0.5]),
            ],
            points=3,
            purpose="Complete a KV cache: append, then attend to everything",
            hint="Append first. Scores are dot products divided by the square root of the width; softmax "
            "turns them into shares; the result is the sum of the values, weighted by them.",
            wrong=[
                Wrong(
                    "does not see itself",
                    forgets_itself,
                    "A token attends to itself too: append its key and value before you attend.",
                ),
                Wrong(
                    "no scaling",
                    unscaled,
                    "Divide each score by the square root of the width of a head.",
                ),
                Wrong(
                    "keys for values",
                    mixes_keys,
                    "The shares come from the keys, but what they weigh is the values.",
                ),
            ],
        ),
        number(
            "decode_bytes",
            step_bytes,
            by_hand=15.574e9,
            unit="B",
            points=2,
            purpose="Add up what one decode step reads",
            hint="What lies in memory that one step has to read, and how many bytes is each part?",
            wrong=[
                Wrong("cache left out", weights, "The step reads the KV cache as well."),
                Wrong(
                    "keys alone",
                    weights + cached / 2,
                    "A cache holds a key and a value for each token and layer.",
                ),
                Wrong(
                    "bits for bytes", 8 * step_bytes, "You answered in bits: bf16 takes 2 bytes."
                ),
                Wrong("one byte each", step_bytes / 2, "bf16 takes two bytes an element."),
            ],
        ),
        number(
            "decode_time",
            step_bytes / a100.bandwidth,
            by_hand=10.015e-3,
            unit="s",
            points=1,
            purpose="Turn traffic into a least time",
            hint="How many bytes does the memory deliver in a second, and how many does the step need?",
            wrong=[
                Wrong(
                    "milliseconds",
                    1e3 * step_bytes / a100.bandwidth,
                    "The number is in milliseconds, and seconds are asked for.",
                ),
                Wrong(
                    "compute time",
                    step(ideal, decode(4000), TEXT).flops / a100.peak("bf16"),
                    "That is the time of the arithmetic, which is over long before the data arrives.",
                ),
                Wrong(
                    "bandwidth of the 80 GB part",
                    step_bytes / 2.039e12,
                    "2,039 GB/s belong to the 80 GB part. This one has 40 GB.",
                ),
            ],
        ),
        expression(
            "kv_bytes",
            symbolic_architecture().kv_bytes(1),
            symbols="L h h_kv d_h",
            points=1,
            purpose="Write the cache of one token in bytes",
            hint="Which vectors does a token leave behind in a layer, how many numbers has each, and of how many "
            "bytes?",
            wrong=[
                Wrong(
                    "query heads",
                    4 * s.L * s.h * s.d_h,
                    "Queries are not cached. Which heads have keys and values?",
                ),
                Wrong(
                    "elements",
                    2 * s.L * s.h_kv * s.d_h,
                    "That counts elements, or forgets one of key and value.",
                ),
                Wrong("bits", 32 * s.L * s.h_kv * s.d_h, "That is in bits."),
            ],
        ),
        number(
            "sequences",
            fit,
            by_hand=16,
            points=2,
            purpose="Work out how many sequences a memory holds",
            hint="How much of the memory do the weights leave, and how much does one sequence take of it?",
            wrong=[
                Wrong(
                    "rounded up",
                    fit + 1,
                    "The last of these does not fit: a part of a sequence is of no use.",
                ),
                Wrong(
                    "weights left out",
                    a100.capacity // llama.kv_bytes(3000),
                    "The weights have to be in the same memory.",
                ),
                Wrong(
                    "keys alone",
                    2 * (a100.capacity - weights) // llama.kv_bytes(3000),
                    "Half of each sequence's cache is missing: keys and values.",
                ),
            ],
        ),
        number(
            "read_ttft",
            1.2,
            by_hand=1.2,
            unit="s",
            rtol=0.03,
            points=1,
            purpose="Read the time to first token off a time line",
            hint="It starts when the request arrives, and ends when the first token is there.",
            wrong=[
                Wrong(
                    "prefill alone",
                    0.8,
                    "The user has been waiting since the request arrived, in the queue too.",
                ),
                Wrong("wait alone", 0.4, "No token exists before prefill is over."),
                Wrong(
                    "end of the answer",
                    1.8,
                    "That is when the last token is there. The first one comes out of prefill.",
                ),
                Wrong(
                    "milliseconds", 1200, "The number is in milliseconds, seconds are asked for."
                ),
            ],
        ),
        plot(
            "draw_rate",
            draw_rate,
            at=[500, 8000, 30000],
            points=2,
            purpose="Draw how decode slows down as the context grows",
            hint="How many bytes does a step move when so many tokens are cached, and how many such steps fit in a "
            "second?",
            wrong=[
                Wrong(
                    "cache left out",
                    lambda: draw_rate(lambda cached: weights),
                    "Your line is flat: it reads the weights only.",
                ),
                Wrong(
                    "seconds for a rate",
                    lambda: draw_rate(
                        lambda cached: a100.bandwidth**2 / (weights + llama.kv_bytes(cached))
                    ),
                    "That grows with the context: it is seconds a token. Draw tokens a second.",
                ),
            ],
        ),
        choice(
            "bottleneck",
            "prefill: arithmetic, decode: memory bandwidth",
            options=[
                "prefill: arithmetic, decode: memory bandwidth",
                "prefill: memory bandwidth, decode: arithmetic",
                "prefill: arithmetic, decode: arithmetic",
                "prefill: memory bandwidth, decode: memory bandwidth",
            ],
            points=1,
            purpose="Name what limits each phase, for a long prompt and batch 1",
            hint="Compare FLOP per byte of each phase with the ridge point, about 200 on this A100.",
            wrong=[
                Wrong(
                    "swapped",
                    "prefill: memory bandwidth, decode: arithmetic",
                    "Which phase uses each weight that it has read for thousands of tokens?",
                ),
                Wrong(
                    "both compute",
                    "prefill: arithmetic, decode: arithmetic",
                    "A decode step takes 10 ms to read and 0.05 ms to compute.",
                ),
                Wrong(
                    "both memory",
                    "prefill: memory bandwidth, decode: memory bandwidth",
                    "A long prefill does thousands of operations for each byte.",
                ),
            ],
        ),
        essay(
            "compare",
            points=4,
            purpose="Compare the phases in words",
            rubric=[
                (1, "Says how tokens are processed and what is parallel in each phase."),
                (
                    1,
                    "Relates arithmetic intensity to how many tokens share one reading of the weights.",
                ),
                (1, "Names the bottleneck of each phase, with a number or a comparison."),
                (1, "Gives one remedy for each phase, and why it would not help the other."),
            ],
        ),
    ],
)
