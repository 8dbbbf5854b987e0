"""The rates of this machine: their choice for a plan, and their measurement."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.engine import backend, processors
from mercer.events.dispatch import unobserved
from mercer.gram.operator import KernelOperator
from mercer.kernels import Gaussian
from mercer.kernels.sequences import comparing, counts
from mercer.kernels.sequences.corpus import Corpus
from mercer.operators import Dense
from mercer.planning.machine import MANY, NARROW, WIDE, Machine, given, keep, kept

__all__ = ["WORTH_MEASURING", "machine", "measure"]

WORTH_MEASURING = 1.0
"""Seconds of work, by documented rates, above which rates are measured; a measurement takes less time."""

WORTH_USING = 0.005
"""Seconds of work, by documented rates, above which rates are used that were measured earlier."""

LONG, LONGEST = 0.002, 0.02
"""Seconds of a call that is long enough to be timed, and of all its repetitions."""

READ = 1 << 26
"""Bytes that are written and read in a measurement: more than most caches hold."""

TOUCHES = 3
"""Fresh arrays of which the fastest counts. The host of a virtual machine may have taken free memory back: the first
touch then took 0.5 GB a second, and later ones, of memory just freed, 6. Rates are kept, so one such slow touch made
Cholesky look twice as slow as it was (n = 7000, d = 784), from then on."""

_lock = threading.Lock()


def _after_fork() -> None:
    """In the child: the thread that held the lock, if there was one, is not there any more."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def machine(cost: Callable[[Machine], float]) -> Machine:
    """The rates for planning work whose seconds are `cost(machine)`.

    If ``MERCER_MACHINE`` is set, it names them. Otherwise the rates are measured once, for more than a second of work
    on an idle machine, and kept in the user's cache folder. Before that, and for little work, documented ones are used.
    """
    at = backend.engine().threads(), backend.instruction_set()
    wanted = given()
    if wanted is not None:
        return wanted
    documented = Machine.documented(*at, backend.blas_threads())
    seconds = cost(documented)
    if not seconds >= WORTH_USING:
        return documented
    with _lock:
        found = kept(*at)
        # On a busy machine the threads of BLAS wait for each other, so that documented rates are better.
        if found is None and seconds >= WORTH_MEASURING and _quiet():
            found = measure()
            if not _quiet():
                return documented
            keep(found, at[1])
    return found or documented


def _quiet() -> bool:
    """Whether other processes leave all processors free."""
    return processors.free() == processors.allowed()


def measure() -> Machine:
    """The rates of this machine with the present number of threads, measured in less than a second.

    Without the compiled engine only BLAS, memory and Python are measured. Observers get no events of it, so that it is
    not cancelled halfway.
    """
    found: dict[str, Any] = {
        **vars(Machine.documented(backend.engine().threads(), backend.instruction_set())),
        "source": "measured",
    }
    with unobserved():
        if backend.engine().capabilities.compiled:
            found |= _pairs() | _sequences()  # first, because threads of BLAS spin after a call
        found |= _products() | _memory() | _calls()
    return Machine(**found)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return max(time.perf_counter() - start, 1e-9)


def _rate(make: Callable[[int], tuple[float, Callable[[], object]]], *sizes: int) -> float:
    """Work a second, for the first size whose call is long enough; `make(size)` returns the work and the call.

    The fastest call counts, because others were slowed down by other work.
    """
    for size in sizes:
        work, call = make(size)
        call()  # the first call also builds plans and caches
        least = _seconds(call)
        if least >= LONG:
            break
    end = time.perf_counter() + LONGEST
    while time.perf_counter() < end:
        least = min(least, _seconds(call))
    return work / least


def _products() -> dict[str, float]:
    """Operations a second of BLAS, by one thread and by all."""
    found: dict[str, float] = {}
    for bits, dtype in ((32, np.float32), (64, np.float64)):

        def product(n: int, dtype: Any = dtype) -> tuple[float, Callable[[], object]]:
            A = np.ones((n, n), dtype)
            out = np.empty_like(A)
            return 2.0 * n**3, lambda: np.matmul(A, A, out=out)

        with backend.one_blas_thread():
            alone = found[f"product{bits}_alone"] = _rate(product, 160, 320, 640)
        found[f"product{bits}"] = max(alone, _rate(product, 160, 320, 640))
    return found


def _memory() -> dict[str, float]:
    """Bytes a second that are written for the first time, and that are read."""
    A, v = np.ones((READ // (4 * 4096), 4096), np.float32), np.ones(4096, np.float32)
    found = {"touch": READ / min(_touched() for _ in range(TOUCHES))}
    found["bandwidth"] = _rate(lambda _: (READ, lambda: A @ v), 0)
    with backend.one_blas_thread():
        return found | {"bandwidth_alone": _rate(lambda _: (READ, lambda: A @ v), 0)}


def _touched() -> float:
    """Seconds of the first touch of a fresh array, which is freed then."""
    A = np.empty(READ, np.uint8)
    return _seconds(lambda: A.fill(1))


def _calls() -> dict[str, float]:
    """Calls a second of NumPy functions on a few numbers."""

    def several(number: int) -> tuple[float, Callable[[], object]]:
        few = np.ones(8)
        return number, lambda: [np.add(few, few) for _ in range(number)]

    return {"calls": _rate(several, 1000)}


def _pairs() -> dict[str, float]:
    """Pairs of rows a second in products of a Gaussian kernel matrix; a pair stands for two entries."""
    found: dict[str, float] = {}
    sizes = (512, 1024, 2048, 4096)
    for bits, dtype in ((32, np.float32), (64, np.float64)):

        def product(n: int, d: int, columns: int, dtype: Any = dtype) -> tuple[float, Callable[[], object]]:
            X = np.random.default_rng(0).standard_normal((n, d))
            K, V = KernelOperator(Gaussian(1 / d), X, dtype=dtype), np.ones((n, columns), dtype)
            return n**2 / 2, lambda: K @ V

        narrow = _rate(lambda n: product(n, NARROW, 1), *sizes)
        size = next((n for n in sizes if n**2 / 2 >= LONG * narrow), sizes[-1])  # as many threads for many vectors
        many = _rate(lambda n: product(n, NARROW, MANY), size)
        found[f"narrow{bits}"], found[f"block{bits}"] = narrow, 1 / max(1 / many - 1 / narrow, 0.01 / narrow)
        found[f"wide{bits}"] = _rate(lambda n: product(n, WIDE, 1), *sizes)
    return found | {"sums": _rate(_group_sums, 512, 1024, 2048)}


def _group_sums(n: int) -> tuple[float, Callable[[], object]]:
    """The sums of a stored matrix over eight groups of its columns."""
    A, labels = Dense(np.ones((n, n), np.float32), symmetric=True), np.arange(n) % 8
    return n**2, lambda: A.group_sums(labels, 8)


def _sequences() -> dict[str, float]:
    """Windows of random sequences a second that are compared, and that are sorted for counting."""
    length, span = 1024, 8
    worth, pattern = np.arange(span + 1, dtype=np.int64), counts.Pattern(tuple(range(span)))

    def corpus(number: int) -> Corpus:
        symbols = np.random.default_rng(0).integers(0, 4, number * length).astype(np.int32)
        return Corpus(symbols, np.arange(0, len(symbols) + 1, length), list("ACGT"))

    def compared(number: int) -> tuple[float, Callable[[], object]]:
        x = corpus(number)
        return comparing.comparisons(x, None, span), lambda: comparing.gram(x, x, worth, True)

    def sorted_(number: int) -> tuple[float, Callable[[], object]]:
        x = corpus(number)
        return number * (length - span + 1), lambda: counts.count(x, pattern, span)

    return {"compare": _rate(compared, 8, 32), "sort": _rate(sorted_, 8, 32, 128)}
