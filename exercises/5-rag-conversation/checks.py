"""Answers to exercise 5, RAG with a long conversation. Never released."""

import sympy

from inferlab.accelerator import Accelerator
from inferlab.architecture import Architecture
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
from inferlab.roofline import roofline
from inferlab.step import Sequence, prefill, step

llama = Architecture.preset("Llama-3.1-8B")
h100 = Accelerator.preset("H100-SXM")

SYSTEM, QUESTION, CHUNKS, ANSWER = 500, 100, 1500, 400

p, q, c, a, t = sympy.symbols("p q c a t", positive=True)
kept = p + t * (q + c) + (t - 1) * a


def prompt_tokens(turn, system, question, chunks, answer, keep_chunks):
    """Tokens of the prompt in a turn, counted from 1."""
    history = (turn - 1) * (question + answer + (chunks if keep_chunks else 0))
    return system + history + question + chunks


def forgets_answers(turn, system, question, chunks, answer, keep_chunks):
    """Leaves the model's own answers out of the history."""
    return prompt_tokens(turn, system, question, chunks, 0, keep_chunks)


def counts_from_zero(turn, system, question, chunks, answer, keep_chunks):
    """Has one turn of history too many."""
    return prompt_tokens(turn + 1, system, question, chunks, answer, keep_chunks)


def always_keeps(turn, system, question, chunks, answer, keep_chunks):
    """Keeps the retrieved chunks whatever it is told."""
    return prompt_tokens(turn, system, question, chunks, answer, True)


def prompt(turn):
    """Tokens of the prompt in a turn, when the chunks stay in the history."""
    return prompt_tokens(turn, SYSTEM, QUESTION, CHUNKS, ANSWER, True)


all_prefilled = sum(prompt(turn) for turn in range(1, 21))
# With a prefix cache only what is new passes the model. The answer's last token was never fed.
new_tokens = prompt(1) + 19 * (QUESTION + CHUNKS + 1)
cache_bytes = llama.kv_bytes(prompt(20))
free = h100.capacity - 2 * llama.parameters.total

cold = roofline(step(llama, prefill(prompt(20))), h100, compute_efficiency=0.5)
warm = roofline(
    step(llama, [Sequence(QUESTION + CHUNKS, cached=prompt(20) - QUESTION - CHUNKS)]),
    h100,
    compute_efficiency=0.5,
)

weights = 2 * (llama.parameters.total - llama.parameters.embedding)
kv_per_token = llama.kv_bytes(1)
crossing = weights / (32 * kv_per_token)


def draw_growth(per_token=kv_per_token, tokens=prompt, scale=1e9):
    """KV memory of one conversation by turn, in GB."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    turns = list(range(1, 31))
    axes.plot(turns, [per_token * tokens(turn) / scale for turn in turns])
    axes.set(xlabel="turn", ylabel="KV cache (GB)")
    return axes


def draw_figure():
    """The figure of question 10: time to first token by turn, cached prefix up to turn 12."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    turns = list(range(1, 21))
    without = [0.09 * turn for turn in turns]
    with_cache = [0.1 if turn < 13 else 0.09 * turn for turn in turns]
    axes.plot(turns, without, "o-", color="#9a6a00")
    axes.plot(turns, with_cache, "s-", color="#0068a5")
    axes.text(6.2, 0.75, "no prefix cache", color="#9a6a00", ha="right")
    axes.text(6.5, 0.17, "prefix cache", color="#0068a5")
    axes.set(xlabel="turn", ylabel="time to first token (s)", xticks=turns[1::2], ylim=(0, 2))
    axes.grid(color="#e3e6ea")
    return figure


key = AnswerKey(
    "5-rag-conversation",
    "RAG with a long conversation",
    [
        function(
            "prompt_tokens",
            prompt_tokens,
            probes=[
                (1, 500, 100, 1500, 400, True),
                (20, 500, 100, 1500, 400, True),
                (20, 500, 100, 1500, 400, False),
            ],
            hidden=[
                (7, 80, 30, 900, 210, True),
                (7, 80, 30, 900, 210, False),
                (2, 1, 2, 3, 4, True),
            ],
            unit="",
            points=2,
            purpose="Count what a turn's prompt holds",
            hint="The system prompt, what each earlier turn left behind, and this turn's question and chunks.",
            wrong=[
                Wrong(
                    "answers forgotten",
                    forgets_answers,
                    "The model's own answers are part of the history too.",
                ),
                Wrong(
                    "one turn too many",
                    counts_from_zero,
                    "In turn 1 there is no history: turn - 1 turns lie behind.",
                ),
                Wrong(
                    "chunks always kept",
                    always_keeps,
                    "When keep_chunks is False, earlier turns leave no chunks behind.",
                ),
            ],
        ),
        expression(
            "prompt_length",
            kept,
            symbols="p q c a t",
            points=1,
            purpose="Write the growth of a prompt as a formula",
            hint="Which parts come once, which once a turn, and which once for each earlier turn?",
            wrong=[
                Wrong(
                    "answer of this turn",
                    p + t * (q + c + a),
                    "The answer of this turn is not written yet when its prompt is read.",
                ),
                Wrong(
                    "system prompt each turn",
                    t * (p + q + c) + (t - 1) * a,
                    "The system prompt stands at the front once, not once a turn.",
                ),
                Wrong(
                    "answers forgotten",
                    p + t * (q + c),
                    "The earlier answers are in the history too.",
                ),
            ],
        ),
        number(
            "prefilled",
            all_prefilled,
            by_hand=422000,
            points=1,
            purpose="Add up the prefill of a whole conversation",
            hint="Sum the prompt's length over the turns 1 to 20.",
            wrong=[
                Wrong(
                    "last prompt only",
                    prompt(20),
                    "That is the prompt of turn 20. Without a cache each turn reads its whole prompt.",
                ),
                Wrong(
                    "last prompt times 20",
                    20 * prompt(20),
                    "The early prompts were shorter than the last.",
                ),
                Wrong(
                    "turns from 0",
                    sum(prompt(turn) for turn in range(20)),
                    "Count turns from 1 to 20: range(1, 21).",
                ),
            ],
        ),
        number(
            "prefilled_cached",
            new_tokens,
            by_hand=32519,
            rtol=1e-6,
            points=2,
            purpose="Add up the prefill when the prefix is cached",
            hint="Which tokens of a later turn's prompt has the model never been fed? Look closely where the "
            "last answer ends.",
            wrong=[
                Wrong(
                    "answers prefilled again",
                    prompt(20),
                    "The cache holds the answers as well: decode wrote their keys and values.",
                ),
                Wrong(
                    "chunks cached",
                    prompt(1) + 19 * (QUESTION + 1),
                    "Each turn retrieves other chunks, which no cache has seen.",
                ),
                Wrong(
                    "leftover token left out",
                    new_tokens - 19,
                    "Nearly: the last token of each answer was never fed, and is read in the next turn.",
                ),
                Wrong(
                    "leftover in turn 1",
                    new_tokens + 1,
                    "Nearly: before the first turn there is no answer that could leave a token over.",
                ),
            ],
        ),
        choice(
            "chunk_place",
            "after the history",
            options=["before the history", "after the history", "it makes no difference"],
            points=1,
            purpose="Know what breaks a cached prefix",
            hint="A cached prefix ends at the first token that differs from last time.",
            wrong=[
                Wrong(
                    "before",
                    "before the history",
                    "New chunks at the front change every position after them.",
                ),
                Wrong(
                    "no difference",
                    "it makes no difference",
                    "For the model's answer perhaps; for the cache the order decides everything.",
                ),
            ],
        ),
        number(
            "kv_memory",
            cache_bytes,
            by_hand=5.25599e9,
            unit="B",
            points=2,
            purpose="Size the cache of a long conversation",
            hint="How many tokens are cached, and what does each leave behind in every layer?",
            wrong=[
                Wrong(
                    "query heads for KV heads",
                    4 * cache_bytes,
                    "This model has 8 KV heads for its 32 query heads.",
                ),
                Wrong("keys alone", cache_bytes / 2, "A cache holds keys and values."),
                Wrong("bits for bytes", 8 * cache_bytes, "You answered in bits."),
                Wrong(
                    "one layer",
                    cache_bytes / 32,
                    "Every layer has a cache of its own.",
                ),
            ],
        ),
        number(
            "users",
            int(free // cache_bytes),
            by_hand=12,
            rtol=0.002,
            points=1,
            purpose="Find how many conversations a GPU holds",
            hint="What the weights leave of the memory, divided by one conversation, in whole ones.",
            wrong=[
                Wrong(
                    "weights left out",
                    int(h100.capacity // cache_bytes),
                    "The weights need room too.",
                ),
                Wrong(
                    "rounded up", int(free // cache_bytes) + 1, "The last of these does not fit."
                ),
                Wrong(
                    "not whole",
                    free / cache_bytes,
                    "A part of a conversation is of no use: how many whole ones fit?",
                ),
                Wrong(
                    "query heads",
                    int(free // (4 * cache_bytes)),
                    "That is with 32 KV heads: this model has 8.",
                ),
            ],
        ),
        number(
            "ttft_cold",
            cold.time_s,
            by_hand=1.9836,
            unit="s",
            rtol=0.02,
            points=2,
            purpose="Predict the time to first token of a long prompt",
            hint="Count the prefill with `step`, put it under the roofline with an efficiency of a half for "
            "arithmetic.",
            wrong=[
                Wrong(
                    "at the datasheet's peak",
                    roofline(step(llama, prefill(prompt(20))), h100).time_s,
                    "No engine reaches the peak: take half of it, as the question says.",
                ),
                Wrong(
                    "milliseconds",
                    1e3 * cold.time_s,
                    "The number is in milliseconds, seconds are asked for.",
                ),
                Wrong(
                    "new tokens alone",
                    warm.time_s,
                    "That is with a cached prefix. Here the whole prompt has to be read.",
                ),
            ],
        ),
        number(
            "ttft_warm",
            warm.time_s,
            by_hand=0.1118,
            unit="s",
            rtol=0.02,
            points=2,
            purpose="See what a prefix cache leaves to do",
            hint="Sequence(new, cached=...): 1600 tokens are new, and each of them still looks at all before it.",
            wrong=[
                Wrong(
                    "cached tokens ignored",
                    roofline(
                        step(llama, prefill(QUESTION + CHUNKS)), h100, compute_efficiency=0.5
                    ).time_s,
                    "The new tokens attend to the cached ones too, and that is no small part here.",
                ),
                Wrong("no cache", cold.time_s, "That is without a cache."),
            ],
        ),
        number(
            "last_cached_turn",
            12,
            by_hand=12,
            points=1,
            purpose="Read an eviction off a figure",
            hint="Where does the lower line jump up to the other one?",
            wrong=[
                Wrong(
                    "first turn without",
                    13,
                    "In turn 13 the cached prefix was gone already. Which was the last turn that had it?",
                ),
                Wrong("end of the figure", 20, "Look at where the two lines meet."),
            ],
        ),
        plot(
            "draw_growth",
            draw_growth,
            at=[2, 10, 30],
            points=2,
            purpose="Draw how the cache of a conversation grows",
            hint="How many tokens has the prompt of this turn, and how many GB are their keys and values?",
            wrong=[
                Wrong(
                    "query heads for KV heads",
                    lambda: draw_growth(per_token=4 * llama.kv_bytes(1)),
                    "Your line is four times too high: the cache has 8 KV heads, not 32.",
                ),
                Wrong(
                    "chunks dropped",
                    lambda: draw_growth(
                        tokens=lambda turn: prompt_tokens(
                            turn, SYSTEM, QUESTION, CHUNKS, ANSWER, False
                        )
                    ),
                    "In this conversation the chunks stay in the history.",
                ),
                Wrong(
                    "bytes",
                    lambda: draw_growth(scale=1),
                    "The axis is in bytes, and GB are asked for.",
                ),
            ],
        ),
        number(
            "crossing",
            crossing,
            by_hand=3578,
            points=1,
            purpose="Find where the caches outweigh the weights",
            hint="How many bytes of weights does a step read, and at which length do all caches together reach "
            "that?",
            wrong=[
                Wrong(
                    "one sequence",
                    32 * crossing,
                    "Each of the 32 sequences reads a cache of its own in every step.",
                ),
                Wrong("query heads", crossing / 4, "The cache has 8 KV heads, not 32."),
            ],
        ),
        essay(
            "advise",
            points=5,
            purpose="Name the bottlenecks of a RAG conversation and what to change",
            rubric=[
                (
                    1,
                    "Explains the growth of the context from retrieval and from history, with a number.",
                ),
                (
                    1,
                    "Explains how prefill and time to first token grow, with and without a prefix cache.",
                ),
                (1, "Explains what the KV cache does to memory, concurrent users and decode."),
                (
                    2,
                    "Proposes two changes that fit these bottlenecks and says what each gains and costs.",
                ),
            ],
        ),
    ],
)
