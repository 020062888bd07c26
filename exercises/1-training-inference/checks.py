"""Answers to exercise 1, training and inference. Never released."""

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
from inferlab.training import (
    MIXED_PRECISION_ADAM,
    bytes_per_parameter,
    device_seconds,
    forward_flops,
    training_flops,
)

llama = Architecture.preset("Llama-3.1-8B")
h100 = Accelerator.preset("H100-SXM")

training = training_flops(3e9, 60e9)
days = device_seconds(training, h100.peak("bf16"), 0.4) / 86400
held_training = bytes_per_parameter(MIXED_PRECISION_ADAM) * 8_000_000_000
held_inference = 2 * llama.parameters.total + 10 * llama.kv_bytes(4000)
request = forward_flops(8_000_000_000, 1000 + 200)


def fed_without_cache(prompt, answer):
    """Tokens fed in all passes when each step reads everything again."""
    return sum(prompt + made for made in range(answer))


def one_step_too_many(prompt, answer):
    """Feeds the last token too."""
    return sum(prompt + made for made in range(1, answer + 1))


def with_cache(prompt, answer):
    """Feeds each token once."""
    return prompt + answer - 1


def prompt_each_time(prompt, answer):
    """Forgets that the answer so far is read again as well."""
    return prompt * answer


def draw_fed(fed=fed_without_cache):
    """Tokens fed for a prompt of 500 against the length of the answer."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    answers = list(range(1, 1001))
    axes.plot(answers, [fed(500, n) for n in answers])
    axes.set(xlabel="tokens generated", ylabel="tokens fed")
    return axes


def draw_figure():
    """The figure of question 9: a training bill of 30,000 USD met by 600 USD a day on day 50."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 120], [30000, 30000], color="#c04a00")
    axes.plot([0, 120], [0, 72000], color="#00779b")
    axes.text(85, 32000, "training, paid once", color="#c04a00")
    axes.text(62, 55000, "serving, added up", color="#00779b", ha="right")
    axes.set(xlabel="days of service", ylabel="USD", xlim=(0, 120), ylim=(0, 75000))
    axes.set_xticks(range(0, 121, 10))
    axes.grid(color="#e3e6ea")
    return figure


key = AnswerKey(
    "1-training-inference",
    "Training and inference",
    [
        choice(
            "changes",
            "the KV cache",
            options=["the KV cache", "the weights", "the optimizer states", "the gradients"],
            points=1,
            purpose="Say what changes while a model answers",
            hint="Which of these does a forward pass alone write?",
            wrong=[
                Wrong(
                    "weights",
                    "the weights",
                    "If answering changed the weights, two users would change each other's model.",
                ),
                Wrong(
                    "optimizer states",
                    "the optimizer states",
                    "They belong to the update of the weights, and inference makes none.",
                ),
                Wrong(
                    "gradients",
                    "the gradients",
                    "Gradients come from a backward pass. Inference only goes forward.",
                ),
            ],
        ),
        number(
            "predictions",
            511,
            by_hand=511,
            rtol=0.0005,
            points=1,
            purpose="Count the predictions of one training pass",
            hint="A prediction is scored when the next token is known. Where is it not?",
            wrong=[
                Wrong(
                    "every position",
                    512,
                    "Behind the last token nothing follows that its prediction could be compared with.",
                ),
                Wrong("one", 1, "That is inference. In training every position is scored at once."),
            ],
        ),
        expression(
            "training_flop",
            training_flops(s.P, s.D),
            symbols="P D",
            points=1,
            purpose="Write the cost of training as a formula",
            hint="How many FLOP does a parameter cost each token on the way forward, and how many times that on "
            "the way back?",
            wrong=[
                Wrong("forward only", 2 * s.P * s.D, "That is the forward pass alone."),
                Wrong("backward only", 4 * s.P * s.D, "That is the backward pass alone."),
                Wrong(
                    "MAC for FLOP",
                    3 * s.P * s.D,
                    "A multiply-add is two floating-point operations.",
                ),
            ],
        ),
        number(
            "training_days",
            days,
            by_hand=31.584,
            unit="d",
            points=2,
            purpose="Turn a training run into GPU-days",
            hint="How many FLOP does the run take, and how many does one GPU really do in a second, and in a day?",
            wrong=[
                Wrong(
                    "at the peak",
                    days * 0.4,
                    "No run reaches the peak: take 40 % of it.",
                ),
                Wrong(
                    "sparse or fp8 peak, or 3 P D",
                    days / 2,
                    "That is half of it. Either your peak is 1,979 TFLOP/s, which is bf16 with sparsity or "
                    "dense fp8, or your 3 P D counts multiply-adds.",
                ),
                Wrong(
                    "forward only, or 20 billion tokens",
                    days / 3,
                    "That is a third of it. Either your 2 P D is the forward pass alone, or you took 20 "
                    "billion tokens: 20 for each of 3 billion parameters are more.",
                ),
                Wrong("hours", days * 24, "That is GPU-hours; days are asked for."),
                Wrong("seconds", days * 86400, "Those are seconds; days are asked for."),
            ],
        ),
        number(
            "training_bytes",
            held_training,
            by_hand=128e9,
            unit="B",
            points=1,
            purpose="Size the state that training keeps",
            hint="What does training keep for each parameter besides the weight that inference reads, and in how "
            "many bytes each?",
            wrong=[
                Wrong(
                    "weights alone",
                    2 * 8e9,
                    "That is what inference keeps. Gradients and the optimizer's states come on top.",
                ),
                Wrong(
                    "no fp32 copy",
                    12 * 8e9,
                    "Mixed precision also keeps the weights themselves in fp32.",
                ),
                Wrong(
                    "gradients in fp32",
                    18 * 8e9,
                    "The gradients are in bf16 here, two bytes each.",
                ),
                Wrong("in GB", 128, "The number is in GB, and bytes are asked for."),
                Wrong("in GiB", 128e9 / 2**30, "The number is in GiB, and bytes are asked for."),
            ],
        ),
        number(
            "inference_bytes",
            held_inference,
            by_hand=21.3034e9,
            unit="B",
            rtol=0.001,
            points=2,
            purpose="Size what inference keeps",
            hint="What is kept once for everybody, and what for each token of each user, in each layer?",
            wrong=[
                Wrong(
                    "query heads for KV heads",
                    2 * llama.parameters.total + 40 * llama.kv_bytes(4000),
                    "This model has 8 KV heads for its 32 query heads.",
                ),
                Wrong(
                    "one sequence",
                    2 * llama.parameters.total + llama.kv_bytes(4000),
                    "Ten users are served at once, each with a cache of its own.",
                ),
                Wrong(
                    "keys alone",
                    2 * llama.parameters.total + 5 * llama.kv_bytes(4000),
                    "A cache holds keys and values.",
                ),
                Wrong(
                    "weights alone",
                    2 * llama.parameters.total,
                    "The caches of the ten users are missing.",
                ),
                Wrong(
                    "one layer",
                    2 * llama.parameters.total + 10 * llama.kv_bytes(4000) / llama.layers,
                    "Your caches are far too small: does every layer have its own?",
                ),
                Wrong(
                    "fp32 parameters",
                    4 * llama.parameters.total + 10 * llama.kv_bytes(4000),
                    "You took four bytes a parameter; bf16 takes two.",
                ),
                Wrong(
                    "8 billion parameters",
                    16e9 + 10 * llama.kv_bytes(4000),
                    "Close: take the number of parameters that the cell prints, not the 8 billion of the name.",
                ),
            ],
        ),
        function(
            "fed_without_cache",
            fed_without_cache,
            probes=[(3, 4), (1, 1), (500, 1), (500, 4), (10, 100)],
            unit="",
            hidden=[(1, 2), (37, 21), (2000, 300)],
            points=2,
            purpose="Count the work that a KV cache saves",
            hint="Step after step: what is in front of the model when it makes the first token, the second, "
            "the last?",
            wrong=[
                Wrong(
                    "one step too many",
                    one_step_too_many,
                    "The first token comes out of the prompt alone, and the last one is never fed.",
                ),
                Wrong(
                    "with a cache",
                    with_cache,
                    "That feeds each token once, which is what a cache makes possible.",
                ),
                Wrong(
                    "prompt and answer once",
                    lambda prompt, answer: prompt + answer,
                    "That is prompt and answer, each read once. How often is the prompt read here?",
                ),
                Wrong(
                    "answer not read again",
                    prompt_each_time,
                    "Without a cache the answer so far is read again as well, not just the prompt.",
                ),
            ],
        ),
        expression(
            "fed_with_cache",
            s.N + s.T - 1,
            symbols="N T",
            points=1,
            purpose="Count the same with a cache",
            hint="Every token is fed once. Is there one that is not fed at all?",
            wrong=[
                Wrong(
                    "last token fed",
                    s.N + s.T,
                    "The last token is handed to the user; nothing asks the model to read it.",
                ),
                Wrong(
                    "prompt fed each step", s.N * s.T, "The prompt is read once, then it is cached."
                ),
            ],
        ),
        plot(
            "draw_fed",
            draw_fed,
            at=[100, 500, 900],
            points=2,
            purpose="Draw what generation costs without a cache",
            hint="What does your function of question 7 give for a prompt of 500 and an answer of this length?",
            wrong=[
                Wrong(
                    "with a cache",
                    lambda: draw_fed(with_cache),
                    "That is with a cache: without one the curve bends upwards.",
                ),
                Wrong(
                    "straight line",
                    lambda: draw_fed(prompt_each_time),
                    "Your line is straight. The answer so far is read again in every step, so it bends.",
                ),
            ],
        ),
        number(
            "break_even",
            50,
            by_hand=50,
            unit="d",
            rtol=0.04,
            points=1,
            purpose="Read a break-even day off a figure",
            hint="On which day are both lines at the same height?",
            wrong=[
                Wrong(
                    "height for day",
                    30000,
                    "That is the height where they meet; the day is on the other axis.",
                ),
                Wrong("end of the figure", 120, "Look at where the two lines cross."),
            ],
        ),
        number(
            "request_flop",
            request,
            by_hand=1.92e13,
            unit="FLOP",
            points=1,
            purpose="Count the forward FLOP of one request",
            hint="How many tokens pass through the model in all, and what does each of them cost?",
            wrong=[
                Wrong("training", 3 * request, "6 P D is training. A request goes forward only."),
                Wrong(
                    "MAC for FLOP", request / 2, "A multiply-add is two floating-point operations."
                ),
                Wrong("answer alone", request / 6, "The prompt passes through the model too."),
            ],
        ),
        choice(
            "frozen",
            "the number of KV heads",
            options=[
                "the number of KV heads",
                "the batch size",
                "the KV cache's dtype",
                "the scheduling policy",
            ],
            points=1,
            purpose="Know what training decides for inference",
            hint="Which of these is built into the weights?",
            wrong=[
                Wrong("batch size", "the batch size", "The engine chooses it anew in every step."),
                Wrong(
                    "cache dtype",
                    "the KV cache's dtype",
                    "It can be set when the engine starts, at some risk to quality.",
                ),
                Wrong(
                    "scheduling", "the scheduling policy", "That is the engine's, not the model's."
                ),
            ],
        ),
        essay(
            "compare",
            points=4,
            purpose="Explain differences and connections in words",
            rubric=[
                (1, "Says what is updated and what is not, and what each keeps in memory."),
                (1, "Says where the context comes from and what is parallel in each."),
                (1, "Compares the costs: once and large against small and without end."),
                (1, "Describes the loop: how each feeds the other, with an example."),
            ],
        ),
    ],
)
