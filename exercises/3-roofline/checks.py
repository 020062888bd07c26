"""Answers to exercise 3, the Roofline. Never released."""

import sympy

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
from inferlab.matmul import matmul
from inferlab.roofline import attainable, bound_time, ridge_point
from inferlab.step import decode, step

a100 = Accelerator.preset("A100-SXM-40GB")
peak, bandwidth = a100.peak("bf16"), a100.bandwidth
ridge = float(ridge_point(a100))

# The intensity of x (m, 4096) times W (4096, 4096) reaches the ridge at m / (1 + m / 2048) = R.
smallest_batch = ridge / (1 - ridge / 2048)
smallest_batch_mac = 2 * ridge / (1 - 2 * ridge / 2048)


def draw(peak=peak, scale="log", mark=True, bandwidth=bandwidth):
    """A roofline with decode of LLaMA-7B marked."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    xs = [10 ** (i / 20 - 1) for i in range(101)]
    axes.plot(xs, [min(peak, x * bandwidth) for x in xs])
    axes.set(xscale=scale, yscale=scale, xlabel="intensity (FLOP/byte)", ylabel="FLOP/s")
    if mark:
        work = step(Architecture.preset("LLaMA-7B"), decode(3000))
        axes.plot([work.intensity], [min(peak, work.intensity * bandwidth)], "o")
    return axes


key = AnswerKey(
    "3-roofline",
    "The Roofline",
    [
        choice(
            "axes",
            "FLOP per byte moved, FLOP per second",
            options=[
                "FLOP per byte moved, FLOP per second",
                "bytes moved per FLOP, FLOP per second",
                "bytes moved per second, FLOP per second",
                "tokens in the batch, tokens per second",
            ],
            points=1,
            purpose="Name both axes of a roofline",
            hint="One axis describes the program alone, the other what the machine makes of it.",
            wrong=[
                Wrong(
                    "upside-down intensity",
                    "bytes moved per FLOP, FLOP per second",
                    "Turn the first one around: a program that reuses its data more should lie further to"
                    " the right.",
                ),
                Wrong(
                    "machine on both axes",
                    "bytes moved per second, FLOP per second",
                    "Bytes per second is what the machine does. It is in the plot, but as a slope.",
                ),
            ],
        ),
        number(
            "ridge",
            ridge,
            by_hand=200.64,
            unit="FLOP/B",
            points=1,
            purpose="Compute a ridge point from a datasheet",
            hint="At the ridge point the time to compute equals the time to move, for any amount of work.",
            wrong=[
                Wrong(
                    "sparse peak",
                    624e12 / bandwidth,
                    "That uses the peak with structured sparsity, which is twice the dense one.",
                ),
                Wrong(
                    "rounded bandwidth",
                    peak / 1.6e12,
                    "That is for a rounded 1.6 TB/s: take the bandwidth that the cell above prints.",
                ),
                Wrong(
                    "upside down",
                    bandwidth / peak,
                    "That is bytes per FLOP; the ridge point is in FLOP per byte.",
                ),
                Wrong(
                    "peak of another dtype",
                    19.5e12 / bandwidth,
                    "That is the peak of FP32 without Tensor Cores; the weights here are in bf16.",
                ),
            ],
        ),
        number(
            "ceiling",
            attainable(40, peak, bandwidth),
            by_hand=62.2e12,
            unit="FLOP/s",
            points=1,
            purpose="Read the lower of the two ceilings",
            hint="There are two ceilings over this kernel, and it can pass neither of them.",
            wrong=[
                Wrong(
                    "peak",
                    peak,
                    "That is the flat ceiling. Does this kernel lie right of the ridge?",
                ),
                Wrong(
                    "sparse peak",
                    624e12,
                    "That is the peak with sparsity; this kernel does not even reach the dense one.",
                ),
                Wrong(
                    "in TFLOP/s",
                    attainable(40, peak, bandwidth) / 1e12,
                    "The number is in TFLOP/s, and FLOP/s are asked for.",
                ),
                Wrong(
                    "divided",
                    bandwidth / 40,
                    "Check the units: byte/s and FLOP/byte make FLOP/s when you multiply them.",
                ),
            ],
        ),
        expression(
            "attainable",
            sympy.Min(s.pi, s.I * s.beta),
            symbols="I pi beta",
            at=[
                {"I": 3, "pi": 500, "beta": 7},
                {"I": 90, "pi": 500, "beta": 11},
                {"I": 40, "pi": 1300, "beta": 13},
                {"I": 250, "pi": 700, "beta": 3},
            ],
            points=1,
            purpose="Write the roofline as one formula",
            hint="Which of the two ceilings is the lower one here, and does your formula give that one?",
            wrong=[
                Wrong(
                    "larger ceiling",
                    sympy.Max(s.pi, s.I * s.beta),
                    "A kernel has to stay under both ceilings, so the higher one is not what limits it.",
                ),
                Wrong(
                    "no flat part",
                    s.I * s.beta,
                    "That is right for low intensity, but it grows without end.",
                ),
                Wrong(
                    "slope upside down",
                    sympy.Min(s.pi, s.I / s.beta),
                    "A machine with more bandwidth should have the higher slanted ceiling.",
                ),
            ],
        ),
        function(
            "bound_time",
            bound_time,
            probes=[(14e9, 15e9, 312e12, 1555e9), (43e12, 16e9, 312e12, 1555e9), (6, 6, 3, 2)],
            hidden=[(8e12, 1e9, 990e12, 3.35e12), (1e9, 8e9, 990e12, 3.35e12), (100, 7, 5, 11)],
            unit="s",
            points=2,
            purpose="Turn counts of work into the least possible time",
            hint="Work out how long computing takes and how long moving takes; a perfect machine overlaps them.",
            wrong=[
                Wrong(
                    "no overlap",
                    lambda flops, bytes, peak, bandwidth: flops / peak + bytes / bandwidth,
                    "Adding them assumes that nothing overlaps; a bound allows a perfect overlap.",
                ),
                Wrong(
                    "faster of the two",
                    lambda flops, bytes, peak, bandwidth: min(flops / peak, bytes / bandwidth),
                    "The step is over only when the slower of the two is.",
                ),
                Wrong(
                    "compute alone",
                    lambda flops, bytes, peak, bandwidth: flops / peak,
                    "Your function never looks at the bytes: half of the model is missing.",
                ),
                Wrong(
                    "memory alone",
                    lambda flops, bytes, peak, bandwidth: bytes / bandwidth,
                    "Your function never looks at the FLOP: what if there are many for each byte?",
                ),
                Wrong(
                    "milliseconds",
                    lambda *arguments: 1e3 * bound_time(*arguments),
                    "The times are in milliseconds, and seconds are asked for.",
                ),
            ],
        ),
        expression(
            "matmul_intensity",
            matmul(s.m, s.k, s.n).intensity,
            symbols="m k n",
            points=2,
            purpose="Derive the intensity of a matrix product",
            hint="How many operations make one element of the result, and how many bytes have all three matrices "
            "together?",
            wrong=[
                Wrong(
                    "MAC for FLOP",
                    s.m * s.k * s.n / (2 * (s.m * s.k + s.k * s.n + s.m * s.n)),
                    "That is half of it: a multiply-add is two operations, not one, and an element in bf16 "
                    "takes 2 bytes, not 4.",
                ),
                Wrong(
                    "elements for bytes",
                    2 * s.m * s.k * s.n / (s.m * s.k + s.k * s.n + s.m * s.n),
                    "You divided by elements; each of them takes 2 bytes in bf16.",
                ),
                Wrong(
                    "output not written",
                    s.m * s.k * s.n / (s.m * s.k + s.k * s.n),
                    "The result has to be written to memory as well.",
                ),
            ],
        ),
        number(
            "smallest_batch",
            smallest_batch,
            by_hand=222.43,
            rtol=0.004,
            points=2,
            purpose="Solve for the batch that reaches the ridge",
            hint="With k = n = 4096, how does the intensity of the product depend on m, and where is it as high as "
            "the ridge point?",
            wrong=[
                Wrong(
                    "weights alone",
                    ridge,
                    "That leaves out the activations: with m rows they are moved too.",
                ),
                Wrong(
                    "MAC for FLOP",
                    smallest_batch_mac,
                    "Either your intensity is half of what it should be (a multiply-add is two operations), or "
                    "your ridge point is twice as high (the sparse peak).",
                ),
            ],
        ),
        plot(
            "draw_roofline",
            draw,
            at=[0.11, 1, 30, 1000, 9000],
            marks=1,
            rtol=0.01,
            points=3,
            purpose="Draw a roofline with a workload on it",
            hint="How high is the lower of the two ceilings at this intensity, in FLOP/s? Roof and point lie there.",
            wrong=[
                Wrong(
                    "linear axes",
                    lambda: draw(scale="linear"),
                    "On linear axes decode cannot be told from zero; set both scales to 'log'.",
                ),
                Wrong(
                    "sparse peak",
                    lambda: draw(peak=2 * peak),
                    "Your flat roof is at the peak with sparsity, twice too high.",
                ),
                Wrong(
                    "decode not marked",
                    lambda: draw(mark=False),
                    "The roof is right. Now mark decode on it: a single point, drawn with a marker.",
                ),
            ],
        ),
        number(
            "read_bandwidth",
            900e9,
            by_hand=900e9,
            unit="B/s",
            rtol=0.07294,  # the answer is the middle of its bucket: a tenth more or less passes
            points=1,
            purpose="Read a bandwidth off a roofline",
            hint="On the slanted part performance divided by intensity is the same everywhere.",
            wrong=[
                Wrong(
                    "height at 10",
                    9e12,
                    "That is a height. Divide it by the intensity where you read it.",
                ),
                Wrong("in TB/s", 0.9, "The number is in TB/s, and bytes per second are asked for."),
                Wrong(
                    "flat roof", 180e12, "That is the height of the flat roof, which is the peak."
                ),
            ],
        ),
        number(
            "read_ridge",
            200,
            by_hand=200.0,
            unit="FLOP/B",
            rtol=0.0732,  # as above: 180 to 220 pass
            points=1,
            purpose="Read a ridge point off a roofline",
            hint="It is read on the horizontal axis, below the corner.",
            wrong=[
                Wrong(
                    "height of the corner",
                    180e12,
                    "That is the height of the corner; read its place on the other axis.",
                ),
                Wrong(
                    "log axis read as linear",
                    550,
                    "The axis is logarithmic: the middle between 100 and 1000 is about 316, not 550.",
                ),
            ],
        ),
        choice(
            "remedy",
            "read fewer bytes for each token",
            options=[
                "read fewer bytes for each token",
                "a GPU with twice the peak and the same bandwidth",
                "the peak with structured sparsity",
                "a larger model",
            ],
            points=1,
            purpose="Choose a remedy from the side of the ridge",
            hint="Left of the ridge point, which of the two times is the longer one?",
            wrong=[
                Wrong(
                    "more peak",
                    "a GPU with twice the peak and the same bandwidth",
                    "That lifts the flat roof. The point lies under the slanted one, which stays where it is.",
                ),
                Wrong(
                    "sparsity",
                    "the peak with structured sparsity",
                    "Sparse Tensor Cores raise a ceiling that this step does not reach.",
                ),
            ],
        ),
        essay(
            "explain",
            points=4,
            purpose="Explain in words what the model says and what it leaves out",
            rubric=[
                (
                    1,
                    "Says that decode reads all weights for a few tokens: little work for each byte.",
                ),
                (
                    1,
                    "Names two changes that move it right or make it faster (batching, fewer bytes a weight, fewer KV bytes, speculative decoding) and why.",
                ),
                (
                    1,
                    "Says which of them a long context undoes: KV bytes grow with each sequence, so batching does not pay for them.",
                ),
                (
                    1,
                    "Names a limit of the model: caches, imperfect overlap, launch overhead, achieved against datasheet.",
                ),
            ],
        ),
    ],
)
