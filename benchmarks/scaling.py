"""What a second worker of Dask gains: ``python -m benchmarks.scaling`` times four kinds of work on one and on two.

The workers have one thread each and share the machine with client and scheduler. A cluster of one and one of two are
opened in turn, each for two fits, of which the second is timed. Rows are on the workers before a fit begins. Every
estimator has its own default tolerance.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

DIMENSION, KERNEL = 20, "gaussian(gamma=0.02)"
Timed = Callable[[Any, Any], float]


def ridge(X: Any, y: Any) -> float:
    """Conjugate gradients on all rows."""
    from mercer import KernelRidge

    return _seconds(lambda: KernelRidge(kernel=KERNEL, solver="cg").fit(X, y))


def landmark_ridge(X: Any, y: Any) -> float:
    """The coefficients of 1000 landmarks."""
    from mercer import KernelRidge

    return _seconds(lambda: KernelRidge(kernel=KERNEL, solver="nystroem", n_landmarks=1000).fit(X, y))


def components(X: Any, _y: Any) -> float:
    """Five components of all rows."""
    from mercer import KernelPCA

    return _seconds(lambda: KernelPCA(5, kernel=KERNEL, solver="krylov").fit(X))


def features(X: Any, _y: Any) -> float:
    """300 features of each row, which stay on the workers."""
    from distributed import wait

    from mercer import Nystroem

    model = Nystroem(kernel=KERNEL, n_components=300, random_state=0).fit(X[:5000].compute())
    return _seconds(lambda: wait(model.transform(X).persist()))


WORK: dict[str, tuple[Timed, int]] = {
    "ridge": (ridge, 50_000),
    "landmarks": (landmark_ridge, 1_000_000),
    "components": (components, 50_000),
    "features": (features, 400_000),
}
"""Each kind of work, and its number of rows."""


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """The client of so many workers, with mercer's settings for workers on this machine."""
    from dask import config
    from distributed import Client, LocalCluster

    from mercer.shards.workers import LOCAL

    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with config.set(LOCAL), LocalCluster(n_workers=workers, **options) as opened, Client(opened) as client:
        yield client


def rows(n: int) -> tuple[Any, Any]:
    """Rows and targets on the workers of the current client."""
    import dask.array as da
    from distributed import wait

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, DIMENSION))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)
    chunk = n // 20
    held = da.from_array(X, chunks=(chunk, DIMENSION)).persist(), da.from_array(y, chunks=chunk).persist()
    wait(held)
    return held


def second_fit(timed: Timed, n: int, workers: int) -> float:
    """The seconds of the second of two fits on a cluster of its own.

    A cluster that waits takes some of the processors, and the system takes its memory back.
    """
    with cluster(workers):
        held = rows(n)
        return [timed(*held) for _ in range(2)][-1]


def main(arguments: list[str] | None = None) -> None:
    """Print seconds on each cluster and their ratio, for each pair of neighbours and for the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(WORK), help="one kind of work (all)")
    parser.add_argument("--rounds", type=int, default=7, help="how often the clusters take turns (7)")
    options = parser.parse_args(arguments)
    for name in [options.only] if options.only else WORK:
        timed, n = WORK[name]
        times: list[tuple[float, float]] = []
        for _ in range(options.rounds):
            one, two = second_fit(timed, n, 1), second_fit(timed, n, 2)
            times.append((one, two))
            print(f"{name}: {one:.2f} s, {two:.2f} s, {one / two:.2f}", flush=True)
        one, two = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name}, n = {n}: one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times", flush=True)


if __name__ == "__main__":
    main()
