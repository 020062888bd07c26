"""How close the NumPy decoder comes to the bare matrix products that it is made of.

    python benchmarks/decode_prefill.py

Two gates, at one thread, best of 5: a decode step runs at 60 % or more of the rate (weight bytes a
second) of its own matrix-vector products, and a prefill of 512 tokens at 60 % or more of the rate
(FLOP a second) of its own matrix products. The same shapes, layout and weights in the same order, so
what is left is the cost of everything that is not a product: softmax, norms, rotary positions,
Python. Exits 1 when a gate is missed. Two threads are shown without a gate: they swing on shared machines. Where
`transformers` is installed, the same weights run there too.
"""

import sys

import numpy as np

from inferlab.accounting import ENGINE
from inferlab.machine import threads
from inferlab.machine.hardware import best_seconds, cpu_name
from inferlab.quantities import format_duration, format_si
from inferlab.runtime import load
from inferlab.step import decode, prefill, step

GATE = 0.60
CACHED, PROMPT = 64, 512


def products(decoder, rows, length):
    """Run every matrix product of a step and nothing else: `rows` new tokens, `length` keys.

    Each weight matrix once, with one row of input in the head; in each layer the scores and the
    mix of the values.
    """
    a = decoder.architecture
    group = a.heads // a.kv_heads
    inputs = {
        width: np.ones((rows, width), np.float32)
        for width in {a.hidden, a.ffn, a.heads * a.head_dim}
    }
    last = np.ones((1, a.hidden), np.float32)
    queries = np.ones((a.kv_heads, group * rows, a.head_dim), np.float32)
    weights = np.ones((a.kv_heads, group * rows, length), np.float32)
    cache = decoder.new_cache(length)

    def run():
        for index, layer in enumerate(decoder.layers):
            for matrix in (layer.q, layer.k, layer.v):
                inputs[matrix.shape[0]] @ matrix
            queries @ cache.k[index].swapaxes(1, 2)
            weights @ cache.v[index]
            for matrix in (layer.output, layer.gate, layer.up, layer.down):
                inputs[matrix.shape[0]] @ matrix
        last @ decoder.head

    return run


def steps(decoder):
    """A decode step with `CACHED` tokens cached, and a prefill of `PROMPT` tokens."""
    ids = np.random.default_rng(0).integers(0, decoder.architecture.vocab, PROMPT)
    cache = decoder.new_cache(CACHED + 1)
    decoder.logits(ids[:CACHED], cache)
    fresh = decoder.new_cache(PROMPT)

    def decode_step():
        cache.length = CACHED
        decoder.logits(ids[:1], cache)

    def prefill_step():
        fresh.length = 0
        decoder.logits(ids, fresh)

    return decode_step, prefill_step


def report(model):
    """Print both comparisons at the thread count in force; return the two shares."""
    decoder, a = model.decoder, model.architecture
    decode_step, prefill_step = steps(decoder)
    count = dict(weights="fp32", kv="fp32", compute="fp32")
    accounting = ENGINE.but(pairs="full")
    decode_work = step(a, decode(CACHED), accounting, **count)
    prefill_work = step(a, prefill(PROMPT), accounting, **count)

    bare = best_seconds(products(decoder, 1, CACHED + 1))
    taken = best_seconds(decode_step)
    decode_share = bare / taken
    print(
        f"  decode, {CACHED} cached: {format_duration(taken)} a token"
        f" ({format_si(decode_work.weights / taken, 'B/s', 3)} of weights);"
        f" its matrix-vector products alone {format_duration(bare)}"
        f" ({format_si(decode_work.weights / bare, 'B/s', 3)}): {decode_share:.0%}"
    )

    bare = best_seconds(products(decoder, PROMPT, PROMPT))
    taken = best_seconds(prefill_step)
    prefill_share = bare / taken
    print(
        f"  prefill, {PROMPT} tokens: {format_duration(taken)}"
        f" ({format_si(prefill_work.flops / taken, 'FLOP/s', 3)});"
        f" its matrix products alone {format_duration(bare)}"
        f" ({format_si(prefill_work.flops / bare, 'FLOP/s', 3)}): {prefill_share:.0%}"
    )
    return decode_share, prefill_share


def report_transformers(model, thread_count):
    """The same weights in `transformers`, where it is installed."""
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ImportError:
        print("  transformers: not installed, so not compared")
        return
    torch.set_num_threads(thread_count)
    path = model.checkpoint.path
    other = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    ids = torch.arange(1000, 1000 + PROMPT)[None]
    with torch.inference_mode():
        past = other(ids[:, :CACHED]).past_key_values

        def decode_step():
            other(ids[:, :1], past_key_values=past, use_cache=True)
            past.crop(-1)

        print(f"  transformers decode {format_duration(best_seconds(decode_step))}", end="")
        taken = best_seconds(lambda: other(ids, logits_to_keep=1))
        print(f", prefill {format_duration(taken)}")


def main():
    """Print the report; 1 where a gate is missed."""
    model = load()
    print(f"{model.architecture.name} in fp32 on {cpu_name()}, NumPy {np.__version__}, best of 5")
    missed = False
    for count in (1, 2):
        print(f"{count} thread{'s' * (count > 1)}")
        with threads(count):
            shares = report(model)
            report_transformers(model, count)
        if count == 1:
            missed = min(shares) < GATE
    print(f"gate of {GATE:.0%} at one thread: {'missed' if missed else 'passed'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
