"""Who does the work that many can do at once, as executors of `concurrent.futures`.

Notebooks are run by threads here, each of which only waits for a kernel of its own (see `child`), or
by a Dask cluster. What is trusted, but long, is done by forks of this process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from itertools import islice
from typing import Any

from inferlab.grading import child, sandbox
from inferlab.quantities import InputError

# So many jobs are prepared before the first is finished: enough to keep a large cluster busy, few
# enough to keep in memory.
AHEAD = 256


@contextlib.contextmanager
def local(count: int) -> Iterator[Executor]:
    """An executor of so many threads. When it is left, also by an error, their processes end."""
    executor = ThreadPoolExecutor(count)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        child.close_all()
        executor.shutdown()
        child.close_all()  # one that was being started


@contextlib.contextmanager
def forks(count: int) -> Iterator[Executor]:
    """An executor of so many forks of this process, which end with it even if it is killed.

    A fork has everything imported already, which else takes as long as drawing thirty pages. To be
    used where no other thread of this process holds a lock.
    """
    executor = ProcessPoolExecutor(
        count,
        multiprocessing.get_context("fork"),
        initializer=_belong_to,
        initargs=(os.getpid(),),
    )
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _belong_to(parent: int) -> None:
    sandbox.end_with_parent()
    if os.getppid() != parent:  # it ended before
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop


@contextlib.contextmanager
def cluster(scheduler: str, certificates: tuple[str, str, str] | None) -> Iterator[Executor]:
    """An executor on a Dask cluster. certificates: files of the authority, certificate and key.

    Raises InputError for a scheduler that is not reached over TLS, or not at all.
    """
    import distributed

    if not scheduler.startswith("tls://"):
        raise InputError(
            f"{scheduler!r} is not a tls:// address: work is given out over TLS only, so start"
            " the scheduler with certificates (exercises/README.md says how)"
        )
    if certificates is None:
        raise InputError("a tls:// scheduler needs --tls-ca, --tls-cert and --tls-key")
    authority, certificate, private_key = certificates
    security = distributed.Security(
        tls_ca_file=authority,
        tls_client_cert=certificate,
        tls_client_key=private_key,
        require_encryption=True,
    )
    try:
        client = distributed.Client(scheduler, security=security, timeout=20)
    except (OSError, TimeoutError) as error:
        raise InputError(f"no scheduler answers at {scheduler} ({error})") from None
    with client:
        # A worker that dies takes nothing with it: its job is given to another.
        yield client.get_executor(pure=False, retries=2)


def finished(
    executor: Executor, function: Callable, jobs: Iterable[tuple[Any, Any]]
) -> Iterator[tuple[Any, Future]]:
    """Do jobs, each a name of any kind and an argument: (name, future) as they are finished."""
    jobs = iter(jobs)
    waiting: dict[Future, Any] = {}
    while True:
        for name, argument in islice(jobs, AHEAD - len(waiting)):
            waiting[executor.submit(function, argument)] = name
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future
