"""How fast the serving simulator is: 100,000 requests of 500 tokens in and 100 out.

    python benchmarks/serving_speed.py [requests]

Prints seconds of this machine, steps and tokens simulated, for a busy GPU under three policies.
"""

import resource
import sys
import time

from inferlab.serving import (
    ChunkedPrefill,
    ContinuousBatching,
    PrefillFirst,
    StepModel,
    poisson_trace,
    simulate,
)


def main(requests):
    model = StepModel.preset("Llama-3.1-8B", "H100-SXM")
    trace = poisson_trace(requests, 30.0, prompt_tokens=500, output_tokens=100, seed=1)
    print(f"{requests:,} requests at 30 a second, Llama-3.1-8B on an H100")
    print(
        "policy                 prefix cache   seconds   steps      steps/s   TTFT p99   TPOT p99"
    )
    for policy, cache in (
        (ContinuousBatching(), False),
        (PrefillFirst(), False),
        (ChunkedPrefill(512), False),
        (ChunkedPrefill(512), True),
    ):
        start = time.perf_counter()
        result = simulate(trace, model, policy, prefix_cache=cache)
        seconds = time.perf_counter() - start
        print(
            f"{type(policy).__name__:22} {cache!s:12} {seconds:9.1f} {len(result.steps):9,d}"
            f" {len(result.steps) / seconds:10,.0f} {result.percentile('ttft', 99) * 1e3:7.1f} ms"
            f" {result.percentile('tpot', 99) * 1e3:7.2f} ms"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
