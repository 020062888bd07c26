"""Answers to exercise 4, diagnosing a bottleneck. Never released."""

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
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
from inferlab.roofline import ridge_point, roofline
from inferlab.step import decode, step

llama = Architecture.preset("Llama-3.1-8B")
l4 = Accelerator.preset("L4")
peak, bandwidth = l4.peak("bf16"), l4.bandwidth
batch = step(llama, decode(2000, 8))
query_heads = step(llama.but(kv_heads=llama.heads), decode(2000, 8))
int4 = step(llama, decode(2000, 8), weights="int4")


def diagnose(flops, bytes, peak, bandwidth):
    """The verdict, and the share of the peak that is within reach."""
    ridge = peak / bandwidth
    intensity = flops / bytes
    return [
        "memory-bound" if intensity < ridge else "compute-bound",
        min(1, intensity / ridge),
    ]


def swapped(flops, bytes, peak, bandwidth):
    """Names the sides the wrong way around."""
    _, share = diagnose(flops, bytes, peak, bandwidth)
    return ["compute-bound" if share < 1 else "memory-bound", share]


def beyond_the_roof(flops, bytes, peak, bandwidth):
    """Lets the share pass one."""
    verdict, _ = diagnose(flops, bytes, peak, bandwidth)
    return [verdict, flops / bytes * bandwidth / peak]


def memory_bound_at_the_ridge(flops, bytes, peak, bandwidth):
    """Takes a tie for memory-bound."""
    verdict, share = diagnose(flops, bytes, peak, bandwidth)
    return ["memory-bound" if flops / bytes == peak / bandwidth else verdict, share]


def in_percent(flops, bytes, peak, bandwidth):
    """Gives the share from 0 to 100."""
    verdict, share = diagnose(flops, bytes, peak, bandwidth)
    return [verdict, 100 * share]


def speedup(flops, bytes, peak, bandwidth, bytes_factor, peak_factor):
    """How many times faster the least time gets when bytes and peak change."""
    before = max(flops / peak, bytes / bandwidth)
    return before / max(flops / (peak * peak_factor), bytes * bytes_factor / bandwidth)


def each_alone(flops, bytes, peak, bandwidth, bytes_factor, peak_factor):
    """Multiplies both gains, whichever side the work is on."""
    return peak_factor / bytes_factor


def bytes_only(flops, bytes, peak, bandwidth, bytes_factor, peak_factor):
    """Looks at the memory alone."""
    return 1 / bytes_factor


def before_alone(flops, bytes, peak, bandwidth, bytes_factor, peak_factor):
    """Goes by the side that the work was on, though the remedy may change it."""
    return 1 / bytes_factor if flops / bytes < peak / bandwidth else peak_factor


def upside_down(*arguments):
    """Divides the time after by the time before."""
    return 1 / speedup(*arguments)


def draw_batches(cached=2000, scale="log", peak=peak, unit=1):
    """The roofline of the L4 with decode at batches 1, 8 and 64 marked."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    xs = [10 ** (i / 25 - 1) for i in range(101)]
    axes.plot(xs, [min(peak, x * bandwidth) / unit for x in xs])
    axes.set(xscale=scale, yscale=scale, xlabel="intensity (FLOP/byte)", ylabel="FLOP/s")
    for size in (1, 8, 64):
        at = roofline(step(llama, decode(cached, size)), l4)
        axes.plot([float(at.intensity)], [float(at.attainable) / unit], "o")
    return axes


def draw_figure():
    """The figure of question 9: four kernels under a roof of 100 TFLOP/s and 1 TB/s."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([1, 100, 10000], [1e12, 1e14, 1e14], color="#4b5563")
    for name, x, y in (("A", 2, 1.8e12), ("B", 20, 2e12), ("C", 500, 8e13), ("D", 3000, 9e13)):
        axes.plot([x], [y], "o", color="#0068a5")
        axes.annotate(name, (x, y), xytext=(8, -10), textcoords="offset points", fontsize=12)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity (FLOP/byte)")
    axes.set(ylabel="performance (FLOP/s)", ylim=(5e11, 3e14))
    axes.grid(color="#e3e6ea", which="both")
    return figure


key = AnswerKey(
    "4-diagnose",
    "Diagnose a bottleneck",
    [
        number(
            "ridge",
            ridge_point(l4),
            by_hand=403.3,
            unit="FLOP/B",
            points=1,
            purpose="Find the ridge point of a card whose datasheet prints sparse figures",
            hint="At how many FLOP for each byte does a dense product compute as long as it moves data?",
            wrong=[
                Wrong(
                    "sparse peak",
                    242e12 / 300e9,
                    "The datasheet's 242 TFLOP/s are with sparsity. A dense product gets half of it.",
                ),
                Wrong("fp8 peak", 2 * 242e12 / 300e9, "That is the sparse peak of fp8."),
                Wrong("upside down", 300e9 / 121e12, "That is bytes per FLOP: turn it over."),
            ],
        ),
        function(
            "diagnose",
            diagnose,
            probes=[
                (14e9, 15e9, 121e12, 300e9),
                (43e12, 16e9, 121e12, 300e9),
                (500, 1, 800, 4),
                (12, 6, 8, 4),
            ],
            hidden=[(8e12, 1e9, 990e12, 3.35e12), (1e9, 8e9, 990e12, 3.35e12), (20, 10, 2, 1)],
            points=2,
            purpose="Turn counts into a verdict and the share of the peak within reach",
            hint="Compare FLOP per byte with the ridge point. The share is what the roof allows, over the "
            "peak, and never more than one.",
            wrong=[
                Wrong(
                    "sides swapped",
                    swapped,
                    "Left of the ridge point the machine waits for its memory.",
                ),
                Wrong(
                    "above the roof",
                    beyond_the_roof,
                    "Nothing reaches more than the peak: the share is at most 1.",
                ),
                Wrong(
                    "memory-bound at the ridge",
                    memory_bound_at_the_ridge,
                    "Here the intensity is the ridge point itself: the question says what that counts as.",
                ),
                Wrong("percent", in_percent, "The share runs from 0 to 1, not to 100."),
                Wrong(
                    "verdict alone",
                    lambda *arguments: diagnose(*arguments)[0],
                    "The verdict is the first of two values: return [verdict, share].",
                ),
                Wrong(
                    "share first",
                    lambda *arguments: diagnose(*arguments)[::-1],
                    "The verdict comes first, then the share.",
                ),
            ],
        ),
        number(
            "intensity",
            batch.intensity,
            by_hand=7.508,
            unit="FLOP/B",
            rtol=0.02,
            points=2,
            purpose="Count the intensity of a decode batch",
            hint="`step` takes the batch as its second argument of `decode`; the result has `.intensity`.",
            wrong=[
                Wrong(
                    "batch of one",
                    step(llama, decode(2000)).intensity,
                    "That is one sequence. There are eight.",
                ),
                Wrong(
                    "query heads for KV heads",
                    query_heads.intensity,
                    "The cache of this model has 8 KV heads, not 32.",
                ),
                Wrong(
                    "batch alone",
                    8,
                    "Eight tokens share the weights, but each brings a cache of its own.",
                ),
            ],
        ),
        choice(
            "verdict",
            "memory-bound",
            options=["memory-bound", "compute-bound", "exactly balanced"],
            points=1,
            purpose="Compare with the ridge point",
            hint="Is your intensity left or right of your ridge point?",
            wrong=[
                Wrong(
                    "compute-bound",
                    "compute-bound",
                    "Right of the ridge point it would be. Compare your two numbers again.",
                ),
                Wrong(
                    "balanced",
                    "exactly balanced",
                    "It would be, if the intensity were the ridge point.",
                ),
            ],
        ),
        number(
            "step_time",
            roofline(batch, l4).time_s,
            by_hand=57.04e-3,
            unit="s",
            rtol=0.02,
            points=1,
            purpose="Bound the time of a step",
            hint="The slower of computing and moving; `roofline(work, l4)` has `.time_s`.",
            wrong=[
                Wrong(
                    "compute time",
                    roofline(batch, l4).compute_s,
                    "That is the arithmetic alone, which is not what this step waits for.",
                ),
                Wrong(
                    "milliseconds",
                    1e3 * roofline(batch, l4).time_s,
                    "The number is in milliseconds, seconds are asked for.",
                ),
                Wrong(
                    "time a sequence",
                    roofline(batch, l4).time_s / 8,
                    "All eight sequences go through one step: do not divide by them.",
                ),
            ],
        ),
        number(
            "int4_time",
            roofline(int4, l4).time_s,
            by_hand=19.52e-3,
            unit="s",
            rtol=0.02,
            points=2,
            purpose="See which bytes a remedy touches",
            hint="Four bits a weight change the bytes of the weights. What do they leave as it was?",
            wrong=[
                Wrong(
                    "cache quantized too",
                    roofline(batch, l4).time_s / 4,
                    "The weights shrink to a quarter, the KV cache stays at two bytes an element.",
                ),
                Wrong(
                    "no change",
                    roofline(batch, l4).time_s,
                    "The step waits for memory, and there is less to read now.",
                ),
                Wrong(
                    "eight bits",
                    roofline(step(llama, decode(2000, 8), weights="int8"), l4).time_s,
                    "That is 8 bits a weight: 4 bits are half a byte.",
                ),
            ],
        ),
        expression(
            "batch_at_ridge",
            6 * s.d * s.R / (6 * s.d + s.S - s.R * (1 + s.S)),
            symbols="d S R",
            at=[
                {"d": 4096, "S": 20, "R": 195},
                {"d": 4096, "S": 100, "R": 100},
                {"d": 512, "S": 3, "R": 50},
                {"d": 8192, "S": 9, "R": 300},
            ],
            points=2,
            purpose="Solve for the batch that reaches the ridge",
            hint="How does the intensity depend on B, and for which B is it R?",
            wrong=[
                Wrong(
                    "cache ignored",
                    s.R,
                    "That holds if only weights moved. Each sequence also reads its own cache.",
                ),
                Wrong(
                    "sign lost",
                    6 * s.d * s.R / (6 * s.d + s.S + s.R * (1 + s.S)),
                    "Bring the term with B to the other side: its sign changes.",
                ),
            ],
        ),
        number(
            "no_batch_beyond",
            (6 * 4096 - 195) / (195 - 1),
            by_hand=125.68,
            rtol=0.001,
            points=2,
            purpose="Find where batching stops being a remedy",
            hint="Which intensity does an endless batch reach, and at which context is that the ridge point?",
            wrong=[
                Wrong(
                    "whole",
                    126,
                    "That is close: give one decimal. Whoever has 6d over R leaves out two small terms.",
                ),
                Wrong(
                    "rounded down", 125, "That is close: it is no whole number, give one decimal."
                ),
                Wrong(
                    "operations for bytes",
                    (12 * 4096 - 195) / (195 - 1),
                    "The weights of a layer are 12 d^2 numbers of 2 bytes, but each sequence's cache "
                    "counts 2 S d numbers of 2 bytes too: the ratio is 6 d to S.",
                ),
                Wrong(
                    "width alone",
                    4096 / 195,
                    "The weights count with 6d, since a layer holds 12 d^2 of them.",
                ),
            ],
        ),
        choice(
            "most_to_gain",
            "B",
            options=["A", "B", "C", "D"],
            points=1,
            purpose="Read a roofline: which kernel is furthest below its roof",
            hint="Compare each point with the roof straight above it, not with the peak.",
            wrong=[
                Wrong(
                    "lowest point",
                    "A",
                    "A is slow, but the roof is right above it. A better kernel cannot help it much.",
                ),
                Wrong(
                    "in the flat part", "C", "C is at 80 % of its roof. Another one is further off."
                ),
                Wrong("furthest right", "D", "D runs at 90 % of the peak: there is little left."),
            ],
        ),
        function(
            "speedup",
            speedup,
            probes=[
                (14e9, 15e9, 121e12, 300e9, 0.5, 1),
                (43e12, 16e9, 121e12, 300e9, 0.5, 2),
                (100, 10, 10, 2, 0.25, 3),
                (43e12, 80e9, 121e12, 300e9, 1, 2),
                (100, 60, 10, 5, 0.5, 1),
            ],
            hidden=[
                (100, 10, 10, 2, 0.5, 1),
                (7, 9, 2, 5, 1, 4),
                (1e12, 1e10, 3e14, 2e12, 0.1, 1.5),
            ],
            unit="",
            points=2,
            purpose="Predict what a remedy gains before paying for it",
            hint="Compute the least time before and after, each as the slower of two, and divide.",
            wrong=[
                Wrong(
                    "gains multiplied",
                    each_alone,
                    "Both changes do not count in full: only the slower of computing and moving does.",
                ),
                Wrong(
                    "memory alone",
                    bytes_only,
                    "Fewer bytes help until the arithmetic is the slower of the two.",
                ),
                Wrong(
                    "side before alone",
                    before_alone,
                    "The remedy can carry the work over the ridge: then the other of the two is the slower.",
                ),
                Wrong(
                    "upside down",
                    upside_down,
                    "A remedy that helps gives more than one: the time before, over the time after.",
                ),
            ],
        ),
        plot(
            "draw_batches",
            draw_batches,
            at=[0.11, 1, 30, 950],
            marks=3,
            rtol=0.01,
            points=2,
            purpose="Place a remedy under the roof",
            hint="How high is the lower of the two ceilings at this intensity, in FLOP/s? Roof and points "
            "lie there.",
            wrong=[
                Wrong(
                    "linear axes",
                    lambda: draw_batches(scale="linear"),
                    "Set both scales to 'log'; on linear axes the batches cannot be told apart.",
                ),
                Wrong(
                    "cache left out",
                    lambda: draw_batches(cached=0),
                    "The marked points have no cache to read: each sequence has 2000 tokens cached.",
                ),
                Wrong(
                    "TFLOP/s",
                    lambda: draw_batches(unit=1e12),
                    "The vertical axis is in TFLOP/s, and FLOP/s are asked for.",
                ),
                Wrong(
                    "sparse peak",
                    lambda: draw_batches(peak=242e12),
                    "The flat part is too high: 242 TFLOP/s are with sparsity.",
                ),
            ],
        ),
        essay(
            "scenario",
            points=6,
            purpose="Diagnose a scenario of your own choice, from hardware to remedy",
            rubric=[
                (1, "Names a concrete model, machine, dtype, batch and context length."),
                (
                    1,
                    "States the machine's dense peak and bandwidth with a source, and its ridge point.",
                ),
                (
                    2,
                    "Counts FLOP and bytes of the step and shows what is included and what is not.",
                ),
                (1, "Compares intensity with the ridge point and gives the least time."),
                (1, "Chooses a remedy on the right side of the ridge and says what it gains."),
            ],
        ),
    ],
)
