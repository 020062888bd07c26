"""The real model's two phases, timed: the record that the chapters read, and how it is made.

A row says what was done and in how many seconds. What it should take is computed where it is read,
by `inferlab.step` and `inferlab.roofline`, so that a prediction is never stored.
"""

import json
import time
from dataclasses import asdict, dataclass
from datetime import date
from importlib import resources
from pathlib import Path

from inferlab import presets
from inferlab.machine.hardware import (
    BEST_OF,
    as_accelerator,
    best_seconds,
    describe,
    measure_gemm,
    measure_matvec,
    measure_stream,
    threads,
)
from inferlab.quantities import InputError
from inferlab.roofline import roofline
from inferlab.step import Sequence, decode, prefill, step

FILE = "measurements/machine.json"
PREFILL_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)
DECODE_CACHED = (16, 64, 256, 512, 1024, 2048, 4096)
BATCH_SEQUENCES = (1, 2, 4, 8, 16, 32)
WIDTH_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128)
CACHED = 256  # tokens that each sequence of the batch and width timings has cached
GENERATE_TOKENS = (4, 8, 16, 32, 64)
PROMPT = 16  # tokens of the prompt of the generation timings
KERNEL_ROWS = (1, 4, 16, 64, 256, 512)
QUESTION = "Explain in one sentence why the sky is blue."


@dataclass(frozen=True)
class Record:
    """Timings of one machine at one thread count. Every row holds "seconds", the best of `best_of`.

    machine: what `hardware.describe` tells. date: ISO. threads, best_of: how it was timed. model:
    the model's name.

    stream: kernel, bytes. matvec: inputs, outputs, bytes. gemm: size, flops, bytes.
    kernels: name, rows, flops, bytes: parts of the real model, over all its layers.
    prefill: tokens (N in one step). decode: cached (S). batch: sequences, cached: one decode step.
    width: tokens, cached: one step that feeds so many tokens to a filled cache.
    generate: tokens (T), prompt, cache: greedy generation with the KV cache (true) or without.
    request: one chat request from text to text: prompt_ids, ids, encode_s, prefill_s, step_s (a
    list, one a decode step), text_s.
    """

    machine: dict
    date: str
    threads: int
    best_of: int
    model: str
    stream: list
    matvec: list
    gemm: list
    kernels: list
    prefill: list
    decode: list
    batch: list
    width: list
    generate: list
    request: dict

    @property
    def accelerator(self):
        """The machine as an `Accelerator`, of the fastest stream and the fastest product."""
        machine = as_accelerator(
            f"{self.machine['cpu']}, {self.threads} thread{'s' * (self.threads > 1)}",
            self.stream + self.matvec,
            self.gemm,
            f"NumPy, best of {self.best_of}, {self.date}",
        )
        return machine.but(capacity=self.machine["memory_bytes"])

    def predicted(self, architecture, sequences):
        """The roofline bound of a step on this machine, in seconds: fp32, everything read once.

        The arithmetic is that of the NumPy decoder: full pairs, the head on the last positions.
        """
        from inferlab.accounting import ENGINE

        work = step(
            architecture, sequences, ENGINE.but(pairs="full"),
            weights="fp32", kv="fp32", compute="fp32",
        )  # fmt: skip
        return roofline(work, self.accelerator, "fp32").time_s

    def beside_prediction(self, architecture, phase):
        """Rows of one phase with `predicted`, seconds, and `ratio`, measured over predicted.

        phase: "prefill", "decode", "batch" or "width". Raises InputError for another.
        """
        sequences = {
            "prefill": lambda row: prefill(row["tokens"]),
            "decode": lambda row: decode(row["cached"]),
            "batch": lambda row: decode(row["cached"], row["sequences"]),
            "width": lambda row: [Sequence(row["tokens"], row["cached"])],
        }
        if phase not in sequences:
            raise InputError(f"there is no phase {phase!r}: expected {', '.join(sequences)}")
        rows = []
        for row in getattr(self, phase):
            seconds = self.predicted(architecture, sequences[phase](row))
            rows.append(row | {"predicted": seconds, "ratio": row["seconds"] / seconds})
        return rows


def record(thread_count=1):
    """The `Record` committed with the book, at 1 thread (the default) or 2.

    Raises InputError for a thread count that was not recorded.
    """
    data = json.loads((resources.files("inferlab") / "data" / FILE).read_text("utf-8"))
    runs = data.pop("runs")
    if str(thread_count) not in runs:
        raise InputError(
            f"no timings at {thread_count} threads were recorded: expected {' or '.join(runs)}"
        )
    return Record(**data, threads=thread_count, **runs[str(thread_count)])


def record_now(model, thread_count=1, *, best_of=BEST_OF, longest=2048, note=lambda text: None):
    """Time a loaded model on this machine now: the same `Record`, in two or three minutes.

    longest: prompts are timed up to this many tokens, caches up to twice as many. note: called with
    what is being timed. Compare only with records of the same thread count.
    """
    decoder, tokenizer = model.decoder, model.tokenizer
    with threads(thread_count):
        note("memory and matrix products")
        hardware = {
            "stream": measure_stream(repeats=best_of),
            "matvec": measure_matvec(repeats=best_of),
            "gemm": measure_gemm(repeats=best_of),
        }
        note("kernels of the model")
        hardware["kernels"] = time_kernels(decoder, best_of=best_of)
        note("prefill")
        tokens = [n for n in PREFILL_TOKENS if n <= longest]
        phases = {"prefill": time_prefill(decoder, tokens, best_of)}
        note("decode")
        cached = [n for n in DECODE_CACHED if n <= 2 * longest]
        phases["decode"] = time_decode(decoder, cached, best_of)
        note("batches and widths")
        phases["batch"] = time_batch(decoder, BATCH_SEQUENCES, best_of=best_of)
        phases["width"] = time_width(decoder, WIDTH_TOKENS, best_of=best_of)
        note("generation with and without a cache")
        phases["generate"] = time_generate(decoder, GENERATE_TOKENS, best_of=min(2, best_of))
        note("one request")
        request = time_request(decoder, tokenizer)
    return Record(
        machine=describe(),
        date=date.today().isoformat(),
        threads=thread_count,
        best_of=best_of,
        model=model.architecture.name,
        **hardware,
        **phases,
        request=request,
    )


def write(one, path):
    """Put a record into the JSON file that `record` reads, beside those of other thread counts.

    What the file holds of another machine or model is dropped. Raises InputError for a file that
    holds anything but such records, and for one that cannot be written.
    """
    fields = asdict(one)
    head = {name: fields.pop(name) for name in ("machine", "model")}
    runs = {str(fields.pop("threads")): fields}
    old = stored(path)
    if all(old.get(name) == head[name] for name in head):
        runs = old["runs"] | runs
    try:
        Path(path).write_text(_json(head | {"runs": dict(sorted(runs.items()))}) + "\n", "utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} cannot be written ({reason}): give another path") from None


def stored(path):
    """What a file holds that `write` wrote, {} where there is none yet.

    Raises InputError for a file that holds anything else, which is not to be overwritten.
    """
    if not Path(path).exists():
        return {}
    old = presets.read_json(path, "a record of timings; give another path")
    if not isinstance(old, dict) or not isinstance(old.get("runs"), dict):
        raise InputError(f"{path} holds no record of timings: give another path")
    return old


def _json(value, indent=0):
    """JSON with one row a line, so that a new record shows in review as changed rows."""
    pad = " " * (indent + 1)
    if isinstance(value, dict) and any(isinstance(v, (dict, list)) for v in value.values()):
        lines = [f"{pad}{json.dumps(k)}: {_json(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [pad + json.dumps(_rounded(row)) for row in value]
        return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"
    return json.dumps(_rounded(value))


def _rounded(value):
    """Seconds to four significant digits: more would only be noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return value


# --- the timings, each a list of rows -------------------------------------------------------------


def _tokens(decoder, count, seed=0):
    """Token ids that no cache could have seen: timing does not depend on which they are."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, decoder.architecture.vocab, count)


def _filled_cache(decoder, cached, room):
    """A cache that holds `cached` tokens. Zeros: how long a step takes does not depend on them."""
    cache = decoder.new_cache(cached + room)
    cache.k[:, :, :cached] = 0
    cache.v[:, :, :cached] = 0
    cache.length = cached
    return cache


def _time_step(decoder, sequences, best_of):
    """Seconds of a step that leaves its caches as they were."""
    lengths = [cache.length for _, cache in sequences]

    def run():
        for (_, cache), length in zip(sequences, lengths, strict=True):
            cache.length = length
        decoder.step(sequences)

    return best_seconds(run, best_of)


def time_prefill(decoder, tokens=PREFILL_TOKENS, best_of=BEST_OF):
    """One step over a whole prompt, for each N."""
    rows = []
    for count in tokens:
        sequence = (_tokens(decoder, count), _filled_cache(decoder, 0, count))
        rows.append({"tokens": count, "seconds": _time_step(decoder, [sequence], best_of)})
    return rows


def time_decode(decoder, cached=DECODE_CACHED, best_of=BEST_OF):
    """One decode step of one sequence, for each S."""
    return [
        {"cached": row["cached"], "seconds": row["seconds"]}
        for count in cached
        for row in time_batch(decoder, (1,), count, best_of)
    ]


def time_batch(decoder, sequences=BATCH_SEQUENCES, cached=CACHED, best_of=BEST_OF):
    """One decode step of B sequences with `cached` tokens each, for each B."""
    rows = []
    for count in sequences:
        batch = [
            (_tokens(decoder, 1, seed), _filled_cache(decoder, cached, 1)) for seed in range(count)
        ]
        seconds = _time_step(decoder, batch, best_of)
        rows.append({"sequences": count, "cached": cached, "seconds": seconds})
    return rows


def time_width(decoder, tokens=WIDTH_TOKENS, cached=CACHED, best_of=BEST_OF):
    """One step that feeds n tokens of one sequence to `cached` ones, for each n."""
    rows = []
    for count in tokens:
        sequence = (_tokens(decoder, count), _filled_cache(decoder, cached, count))
        seconds = _time_step(decoder, [sequence], best_of)
        rows.append({"tokens": count, "cached": cached, "seconds": seconds})
    return rows


def time_generate(decoder, tokens=GENERATE_TOKENS, prompt=PROMPT, best_of=2):
    """Greedy generation of T tokens, with the cache and by feeding the whole text each time."""
    ids = _tokens(decoder, prompt).tolist()

    def with_cache(count):
        cache = decoder.new_cache(prompt + count)
        logits = decoder.logits(ids, cache)
        for _ in range(count - 1):
            logits = decoder.logits([int(logits.argmax())], cache)

    def without_cache(count):
        text = list(ids)
        for _ in range(count):
            text.append(int(decoder.logits(text).argmax()))

    return [
        {
            "tokens": count,
            "prompt": prompt,
            "cache": cache,
            "seconds": best_seconds(lambda run=run, count=count: run(count), best_of),
        }
        for count in tokens
        for cache, run in ((True, with_cache), (False, without_cache))
    ]


def time_kernels(decoder, rows=KERNEL_ROWS, best_of=BEST_OF):
    """Parts of the model by themselves, over all layers, so that no cache holds their weights.

    flops: of the matrix products. bytes: weights, inputs and outputs, each moved once.
    """
    import numpy as np

    from inferlab.matmul import matmul

    def timed(name, count, matrices):
        inputs = {
            width: np.ones((count, width), np.float32) for width in {m.shape[0] for m in matrices}
        }
        products = [matmul(count, *m.shape, a="fp32", b="fp32", c="fp32") for m in matrices]

        def run():
            for matrix in matrices:
                inputs[matrix.shape[0]] @ matrix

        return {
            "name": name,
            "rows": count,
            "flops": sum(p.flops for p in products),
            "bytes": sum(p.bytes for p in products),
            "seconds": best_seconds(run, best_of),
        }

    layers = decoder.layers
    parts = {
        "attention projections": [m for x in layers for m in (x.q, x.k, x.v, x.output)],
        "ffn": [m for x in layers for m in (x.gate, x.up, x.down)],
    }
    timings = [timed(name, count, parts[name]) for name in parts for count in rows]
    return [*timings, timed("lm_head", 1, [decoder.head])]


def time_request(decoder, tokenizer, question=QUESTION, max_tokens=48):
    """One chat request from text to text, with the seconds of each stage. Not a best of k."""
    from inferlab.runtime.generation import generate

    began = time.perf_counter()
    ids = tokenizer.chat(question)
    encoded = time.perf_counter()
    (answer,) = generate(decoder, [ids], max_tokens=max_tokens, stop=tokenizer.stop)
    generated = time.perf_counter()
    tokenizer.decode(answer.ids)
    return {
        "question": question,
        "prompt_ids": answer.prompt_ids,
        "ids": answer.ids,
        "stopped_by": answer.stopped_by,
        "encode_s": encoded - began,
        "prefill_s": answer.prefill_s,
        "step_s": answer.step_s,
        "text_s": time.perf_counter() - generated,
    }
