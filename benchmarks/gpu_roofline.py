"""One GPU's own roofline: matrix products, copies, and a decoder layer in both phases.

    python benchmarks/gpu_roofline.py --output gpu.json          on a CUDA machine, under 5 minutes
    python benchmarks/gpu_roofline.py --device cpu --toy         the same plan in miniature

Needs PyTorch, which the book itself does without. One layer of the shape of Llama-3.1-8B, random
bf16 weights, causal fused attention, is run at prefill lengths and at decode contexts and batches.
Every row holds its seconds (best of several) and what `inferlab.step` counts for it, so that the
result can be set beside the roofline of the same machine.
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path

from inferlab.accounting import ENGINE
from inferlab.architecture import Architecture
from inferlab.matmul import matmul
from inferlab.step import decode, prefill, step

LAYER = Architecture.preset("Llama-3.1-8B").but(layers=1)
PLAN = {
    "gemm": (256, 512, 1024, 2048, 4096, 8192, 16384),
    "copy_bytes": 2**32,
    "prefill": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
    "decode": [
        (cached, batch) for batch in (1, 4, 16, 64) for cached in (128, 512, 2048, 8192, 32768)
    ],
}
TOY_LAYER = LAYER.but(name="toy", hidden=64, ffn=96, heads=4, kv_heads=2, head_dim=16)
TOY = {"gemm": (16, 32), "copy_bytes": 2**16, "prefill": (4, 8), "decode": [(4, 1), (8, 2)]}


class Torch:
    """What is measured, in PyTorch on one device. Each method returns a function to be timed."""

    def __init__(self, device, layer):
        import torch

        self.torch, self.device, self.layer = torch, device, layer
        self.dtype = torch.bfloat16
        self.weights = {
            name: self._random(rows, columns) / rows**0.5
            for name, (rows, columns) in (
                layer.attention_matrices | layer.ffn_matrices(layer.ffn)
            ).items()
        }

    def _random(self, *shape):
        return self.torch.randn(*shape, device=self.device, dtype=self.dtype)

    def describe(self):
        """What a reader must know to judge the timings."""
        torch = self.torch
        described = {"torch": torch.__version__, "device": str(self.device)}
        if self.device == "cuda":
            properties = torch.cuda.get_device_properties(0)
            described |= {
                "gpu": properties.name,
                "memory_bytes": properties.total_memory,
                "cuda": torch.version.cuda,
            }
        return described

    def gemm(self, size):
        a, b = self._random(size, size), self._random(size, size)
        out = self.torch.empty_like(a)
        return lambda: self.torch.matmul(a, b, out=out)

    def copy(self, count):
        source = self.torch.zeros(count, dtype=self.torch.uint8, device=self.device)
        target = self.torch.zeros_like(source)
        return lambda: target.copy_(source)

    def prefill(self, tokens):
        x = self._random(tokens, self.layer.hidden)
        keys, values = self._cache(1, tokens), self._cache(1, tokens)
        return lambda: self._run(x, 1, keys, values, causal=True)

    def decode(self, cached, batch):
        x = self._random(batch, self.layer.hidden)
        keys, values = self._cache(batch, cached + 1), self._cache(batch, cached + 1)
        return lambda: self._run(x, batch, keys, values, causal=False)

    def _cache(self, batch, length):
        return self._random(batch, self.layer.kv_heads, length, self.layer.head_dim)

    def _run(self, x, batch, keys, values, causal):
        """One decoder layer. The new keys and values are written to the end of the cache."""
        nn, w, a = self.torch.nn.functional, self.weights, self.layer
        new = len(x) // batch

        def heads(y, count):
            return y.view(batch, new, count, a.head_dim).transpose(1, 2)

        normed = nn.rms_norm(x, (a.hidden,))
        keys[:, :, -new:] = heads(normed @ w["k"], a.kv_heads)
        values[:, :, -new:] = heads(normed @ w["v"], a.kv_heads)
        mixed = nn.scaled_dot_product_attention(
            heads(normed @ w["q"], a.heads), keys, values, is_causal=causal, enable_gqa=True
        )
        x = x + mixed.transpose(1, 2).reshape(len(x), -1) @ w["o"]
        normed = nn.rms_norm(x, (a.hidden,))
        return x + (nn.silu(normed @ w["gate"]) * (normed @ w["up"])) @ w["down"]

    def seconds(self, run, repeats):
        """Best of `repeats` timings; each enqueues enough runs to last some milliseconds."""
        with self.torch.inference_mode():
            run()
            once = self._timed(run, 1)
            loops = max(1, min(200, round(0.01 / max(once, 1e-6))))
            return min(self._timed(run, loops) for _ in range(repeats)) / loops

    def _timed(self, run, loops):
        self._wait()
        began = time.perf_counter()
        for _ in range(loops):
            run()
        self._wait()
        return time.perf_counter() - began

    def _wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def is_out_of_memory(self, error):
        return isinstance(error, self.torch.OutOfMemoryError)


def measure(backend, layer, plan, repeats=5, note=lambda text: None):
    """Run a plan and return the record: provenance, and rows for each kind of work.

    A case that does not fit the device's memory is listed under `left_out`, not dropped silently.
    """
    accounting = ENGINE.but(logits="none")
    cases = [("gemm", {"size": n}, matmul(n, n, n), backend.gemm, (n,)) for n in plan["gemm"]]
    for tokens in plan["prefill"]:
        work = step(layer, prefill(tokens), accounting)
        cases.append(("prefill", {"tokens": tokens}, work, backend.prefill, (tokens,)))
    for cached, batch in plan["decode"]:
        work = step(layer, decode(cached, batch), accounting)
        what = {"cached": cached, "batch": batch}
        cases.append(("decode", what, work, backend.decode, (cached, batch)))

    record = {"gemm": [], "prefill": [], "decode": [], "left_out": []}
    began = time.perf_counter()
    moved = plan["copy_bytes"]
    seconds = backend.seconds(backend.copy(moved), repeats)
    record["copy"] = [{"bytes": 2 * moved, "seconds": seconds}]
    for kind, what, work, prepare, arguments in cases:
        note(f"{kind} {what}")
        try:
            seconds = backend.seconds(prepare(*arguments), repeats)
        except Exception as error:
            if not backend.is_out_of_memory(error):
                raise
            record["left_out"].append({"kind": kind} | what)
            continue
        counted = {"flops": work.flops, "bytes": work.bytes}
        record[kind].append(what | counted | {"seconds": seconds})
    return {
        "about": "bf16, one decoder layer, causal fused attention; counts by inferlab.step, "
        "accounting ENGINE without the output head",
        "date": date.today().isoformat(),
        "best_of": repeats,
        "wall_s": round(time.perf_counter() - began, 1),
        "layer": {
            name: getattr(layer, name)
            for name in ("name", "hidden", "ffn", "heads", "kv_heads", "head_dim")
        },
        **backend.describe(),
        **record,
    }


def main(arguments=None):
    """Measure, print the best rates, write the JSON. Returns an exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--toy", action="store_true", help="tiny sizes, to try the plan anywhere")
    parser.add_argument("--repeats", type=int, default=5, help="best of k (default: 5)")
    parser.add_argument("--output", type=Path, help="where the JSON goes (default: printed)")
    args = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("This benchmark needs PyTorch: pip install torch", file=sys.stderr)
        return 2
    if args.device == "cuda" and not torch.cuda.is_available():
        print("There is no CUDA device: run it on one, or with --device cpu --toy", file=sys.stderr)
        return 2
    layer, plan = (TOY_LAYER, TOY) if args.toy else (LAYER, PLAN)
    backend = Torch(args.device, layer)
    record = measure(
        backend, layer, plan, args.repeats, note=lambda text: print(text, file=sys.stderr)
    )
    text = json.dumps(record, indent=1) + "\n"
    if args.output:
        args.output.write_text(text, "utf-8")
        print(f"written to {args.output} after {record['wall_s']} s")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
