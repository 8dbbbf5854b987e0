"""A cluster: runs functions on workers by a client of Dask's, and returns their results in order."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import add, itemgetter
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from mercer.engine import backend
from mercer.errors import ClusterLost, message
from mercer.events import TilesDone, emit

__all__ = ["Cluster", "held", "joined", "one_thread"]

TOGETHER = 16
"""The results that one message fetches: 14 small ones took this process two thirds of the time of as many messages."""


class Cluster:
    """The workers that a client of Dask's reaches.

    Parameters
    ----------
    client : distributed.Client
        The cluster does not close it.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """The future of ``function(*args)`` on any worker; futures among the arguments stand for their results.

        The scheduler keeps the arguments, so that it can run the function again if the worker dies.
        """
        with _lost():
            return self.client.submit(function, *args, pure=False)

    def submit_all(self, tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The futures of the tasks (function, arguments, …), with one message for each run of the same function."""
        futures: list[Any] = []
        for function, some in groupby(tasks, key=itemgetter(0)):
            arguments = zip(*(arguments for _, *arguments in some), strict=True)
            with _lost():
                futures += self.client.map(function, *map(list, arguments), pure=False)
        return futures

    def results(self, futures: Sequence[Any]) -> Iterator[Any]:
        """The results in the order of the futures, some at a time; a future is released when its result is here."""
        waiting, done = list(futures), 0
        try:
            while waiting:
                with _lost():
                    results = self.client.gather(waiting[:TOGETHER])
                del waiting[:TOGETHER]
                for result in results:
                    yield result
                    done += 1
                    emit(TilesDone("shards", done, len(futures)))
        finally:  # after an error, Ctrl-C or an observer's stop, the rest is not computed
            if waiting and self.client.status == "running":
                self.client.cancel(waiting)

    def run(self, tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of the tasks (function, arguments, …), in this order."""
        return self.results(self.submit_all(tasks))

    def total(self, tasks: Sequence[tuple[Any, ...]]) -> Any:
        """The sum of the tasks' results, added in pairs by the workers: for large arrays, of which one comes here."""
        futures = self.submit_all(tasks)
        while len(futures) > 1:
            pairs = [(add, *two) for two in zip(futures[::2], futures[1::2], strict=False)]
            futures = self.submit_all(pairs) + futures[2 * len(pairs) :]
        return next(self.results(futures))


GONE = ("CancelledError", "ClosedClientError", "CommClosedError", "FutureCancelledError")
"""The names of what Dask raises if the client or its scheduler is gone; not all versions have all of them."""


@contextmanager
def _lost() -> Iterator[None]:
    """Say what became of the cluster if it does not answer any more."""
    try:
        yield
    except (Exception, CancelledError) as error:
        if type(error).__name__ == "KilledWorker":
            given = "the work of the same shard ended several workers"
            do = "give workers more memory, or X smaller chunks, and see the logs of the workers"
            raise ClusterLost(message("Dask", given, do)) from error
        if type(error).__name__ in GONE:
            raise _closed() from error
        raise


def _closed() -> ClusterLost:
    given = "the client was closed, or lost its scheduler, before the work was done"
    return ClusterLost(message("Dask", given, "keep the client open until the fit, or compute(), returns"))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the engine and BLAS within a task: a worker runs as many tasks as it has threads.

    Workers with a nanny start with one thread anyway. That the number is the same everywhere makes sums have the same
    bits, whichever worker computes them.
    """
    if backend.engine().threads() == 1:
        yield
        return
    with backend.one_blas_thread():
        libraries = ThreadpoolController().select(user_api="openmp").lib_controllers
        before = [library.num_threads for library in libraries]
        try:
            for library in libraries:
                library.set_num_threads(1)  # of this thread of Python's only
            yield
        finally:
            for library, number in zip(libraries, before, strict=True):
                library.set_num_threads(number)


def held(value: Any) -> Any:
    """The value: a task, not scattered data, because the scheduler can run it again."""
    return value


def joined(rows: Any) -> Any:
    """The rows of several shards as one array."""
    if isinstance(rows, list):
        return rows[0] if len(rows) == 1 else np.concatenate(rows)
    return rows
