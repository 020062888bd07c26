"""What the reader's own machine can do at most, measured in a few seconds (chapter 8)."""

import json
import os
import platform
import time
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from inferlab.accelerator import Accelerator
from inferlab.quantities import InputError, format_si, short

BEST_OF = 5
STREAM_BYTES = 512 * 2**20  # an array as large as the model's weights: caches help both alike
GEMM_SIZES = (64, 128, 256, 512, 1024, 2048)
MATVEC_SIZE = 8192


def best_seconds(work, repeats=BEST_OF):
    """The least of `repeats` timings of `work()`, in seconds, after one run that is not timed.

    The least, since other programs only ever add time.
    """
    work()
    return min(seconds_of(work) for _ in range(repeats))


def seconds_of(work):
    """Seconds that one call of `work()` takes, by the wall clock."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def threads(count):
    """Let NumPy's matrix products use `count` threads inside a `with` block (None: as they are)."""
    if count is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"threads is {count}: expected a whole number from 1 on")
    with threadpool_limits(count, user_api="blas"):
        yield


def threads_in_force():
    """How many threads NumPy's matrix products use now."""
    from threadpoolctl import threadpool_info

    counts = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    return max(counts, default=1)


def measure_stream(size=STREAM_BYTES, repeats=BEST_OF):
    """Bytes a second of three plain passes over arrays of `size` bytes of fp32.

    read: a dot product with itself. copy: read one, write another. scale: read, multiply, write.
    Returns rows {kernel, bytes, seconds}, bytes being those that the program asks for.
    """
    import numpy as np

    a = np.ones(size // 4, np.float32)
    b = np.ones_like(a)
    kernels = {
        "read": (a.nbytes, lambda: a @ a),
        "copy": (2 * a.nbytes, lambda: np.copyto(b, a)),
        "scale": (2 * a.nbytes, lambda: np.multiply(a, np.float32(3), out=b)),
    }
    return [
        {"kernel": name, "bytes": moved, "seconds": best_seconds(run, repeats)}
        for name, (moved, run) in kernels.items()
    ]


def measure_matvec(size=MATVEC_SIZE, repeats=BEST_OF):
    """A vector times a `size` x `size` fp32 matrix: one row {inputs, outputs, bytes, seconds}."""
    import numpy as np

    matrix = np.ones((size, size), np.float32)
    x = np.ones((1, size), np.float32)
    seconds = best_seconds(lambda: x @ matrix, repeats)
    return [{"inputs": size, "outputs": size, "bytes": matrix.nbytes, "seconds": seconds}]


def measure_gemm(sizes=GEMM_SIZES, repeats=BEST_OF):
    """Square fp32 matrix products by size: rows {size, flops, bytes, seconds}.

    A product that takes less than 10 ms is repeated within one timing.
    """
    import numpy as np

    from inferlab.matmul import matmul

    rows = []
    for size in sizes:
        a = np.ones((size, size), np.float32)
        b, out = a.copy(), a.copy()
        once = seconds_of(lambda a=a, b=b, out=out: np.matmul(a, b, out=out))
        loops = max(1, round(0.01 / max(once, 1e-7)))

        def run(a=a, b=b, out=out, loops=loops):
            for _ in range(loops):
                np.matmul(a, b, out=out)

        product = matmul(size, size, size, a="fp32", b="fp32", c="fp32")
        rows.append(
            {
                "size": size,
                "flops": product.flops,
                "bytes": product.bytes,
                "seconds": best_seconds(run, repeats) / loops,
            }
        )
    return rows


def measure(thread_count=None, *, repeats=BEST_OF, stream_bytes=STREAM_BYTES, sizes=GEMM_SIZES):
    """This machine as an `Accelerator`: its fp32 peak and its bandwidth, measured now.

    thread_count: threads of the matrix products (None: as in force). repeats: best of k. Takes a
    few seconds and 1.1 GB of memory. The bandwidth is that of the best pass that streams memory,
    the peak that of the best square product; `sources` says which, on what, and when.
    """
    with threads(thread_count):
        count = threads_in_force()
        stream = measure_stream(stream_bytes, repeats)
        stream += measure_matvec(repeats=repeats)
        gemm = measure_gemm(sizes, repeats)
    return as_accelerator(
        f"{cpu_name()}, {count} thread{'s' * (count > 1)}",
        stream,
        gemm,
        f"NumPy, best of {repeats}, {date.today().isoformat()}",
    )


def as_accelerator(name, stream, gemm, how):
    """An `Accelerator` of measured rows: the fastest stream and the fastest product.

    stream: rows {bytes, seconds}. gemm: rows {size, flops, seconds}. how: where they come from.
    """
    fast = max(stream, key=lambda row: row["bytes"] / row["seconds"])
    product = max(gemm, key=lambda row: row["flops"] / row["seconds"])
    return Accelerator(
        name=name,
        peaks={"fp32": product["flops"] / product["seconds"]},
        bandwidth=fast["bytes"] / fast["seconds"],
        capacity=memory_bytes(),
        sources={
            "peaks": f"measured: fp32 matrix product of size {product['size']}; {how}",
            "bandwidth": f"measured: {fast.get('kernel', 'matrix-vector product')} "
            f"of {format_si(fast['bytes'], 'B', 3)}; {how}",
        },
    )


def save(accelerator, path):
    """Write a machine to a TOML file that `Accelerator.from_toml` and `load` read.

    Raises InputError for a number or a text that such a file cannot hold, and where it cannot be
    written.
    """
    table = f"accelerators.{_toml(accelerator.name)}"
    lines = [f"[{table}]"]
    for field in ("bandwidth", "capacity", "link_bandwidth", "link_latency", "price"):
        if getattr(accelerator, field) is not None:
            lines.append(f"{field} = {_toml(getattr(accelerator, field))}")
    for field in ("peaks", "sources"):
        lines.append(f"[{table}.{field}]")
        entries = getattr(accelerator, field).items()
        lines += [f"{_toml(key)} = {_toml(value)}" for key, value in entries]
    try:
        Path(path).write_text("\n".join(lines) + "\n", "utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error}): give another path") from None


def _toml(value):
    """A text or a number as TOML writes it."""
    try:
        if isinstance(value, str):
            value.encode()
            # As in JSON, but for one character, and for those that JSON would write in two halves.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return str(value) if isinstance(value, int) else repr(float(value))
    except (UnicodeEncodeError, TypeError):
        raise InputError(f"{short(value)} cannot be saved: expected a number or a text") from None


def load(path):
    """The machine that `save` wrote. Raises InputError for a file that does not hold just one."""
    machines = list(Accelerator.from_toml(path).values())
    if len(machines) != 1:
        raise InputError(f"{path} describes {len(machines)} machines: expected one")
    return machines[0]


def cpu_name():
    """The processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_bytes():
    """Bytes of main memory, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def describe():
    """What a reader must know to judge a timing: processor, cores, memory, versions, system."""
    import numpy as np
    from threadpoolctl import threadpool_info

    blas = next((lib for lib in threadpool_info() if lib["user_api"] == "blas"), {})
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('internal_api', 'unknown')} {blas.get('version') or ''}".strip(),
    }
