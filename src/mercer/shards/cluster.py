"""A cluster: runs functions on workers by a client of Dask's, and returns their results in order."""

from __future__ import annotations

import time
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from mercer.engine import backend
from mercer.errors import ClusterLost, message
from mercer.events import TilesDone, emit
from mercer.shards.direct import Direct, Parcel, together

__all__ = ["Cluster", "held", "joined", "one_thread"]

TOGETHER = 16
"""The results that one message fetches: 14 small ones took this process two thirds of the time of as many messages."""
BATCH = 1e9
"""The entries of kernel matrices in a batch of tasks: far more work than its messages (docs/scaling.md)."""
FRESH = 1.0
"""Seconds after which the workers are asked for again, and the scheduler sends the tasks, so that it sees its use."""


class Cluster:
    """The workers that a client of Dask's reaches.

    Parameters
    ----------
    client : distributed.Client
        The cluster does not close it.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._asked, self._known = -FRESH, list[str]()
        self._last: list[Any] = []
        self._direct, self._scheduled = Direct(client), -FRESH

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """The future of ``function(*args)`` on any worker; futures among the arguments stand for their results.

        The scheduler keeps the arguments, so that it can run the function again if the worker dies.
        """
        with _lost():
            return self.client.submit(function, *args, pure=False)

    def submit_all(self, tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The futures of the tasks (function, arguments, …) for equal parts of the rows, in order."""
        threads = self.threads()
        return self._sent(tasks, [threads[one] for one in spread(parts(len(tasks)), len(threads))])

    def results(self, futures: Sequence[Any]) -> Iterator[Any]:
        """The results in the order of the futures, some at a time; a future is released when its result is here."""
        return _told(self._fetched(list(futures)), len(futures))

    def run(self, tasks: Sequence[tuple[Any, ...]], sizes: Any = 1.0, places: Any = None) -> Iterator[Any]:
        """The results of the tasks (function, arguments, …), in this order.

        Each thread gets its share as one task of Dask's for each `BATCH` of entries, since each of these takes time of
        the client and the scheduler, or past the scheduler if its worker holds what it reads. What is computed does not
        depend on it.

        Parameters
        ----------
        tasks : sequence of tuples
        sizes : float or sequence of floats
            The entries of each task. Of a sequence, the next task is for the thread that has the least so far.
        places : array of shape (tasks,), optional
            Where among all rows those of each task are, from 0 to 1; by default the tasks take equal parts, in order.
        """
        batches, parcels, workers, brief = self._shares(tasks, sizes, places)
        return _told(_in_order(self._parcelled(parcels, workers, brief), batches), len(tasks))

    @contextmanager
    def beside(self, tasks: Sequence[tuple[Any, ...]], sizes: Any) -> Iterator[None]:
        """Have the tasks done, by the threads that `run` gives them to, while this process works within.

        Nothing is sent if the shares are not brief, or if workers hold what they read: it is to bring that there.
        """
        _, parcels, workers, brief = self._shares(tasks, sizes, None)
        known = all(map(self._direct.knows, workers, parcels))
        results = self._by_scheduler(parcels, workers) if brief and not known else iter(())
        yield
        for _ in results:
            pass

    def _shares(
        self, tasks: Sequence[tuple[Any, ...]], sizes: Any, places: Any
    ) -> tuple[list[list[int]], list[Parcel], list[str], bool]:
        """Which tasks are in each message, the messages, their workers, and whether each thread gets at most one."""
        count, threads = len(tasks), self.threads()
        places = parts(count) if places is None else places
        own = levelled(sizes, len(threads)) if np.ndim(sizes) else spread(places, len(threads))
        batches = [
            some.tolist()
            for thread in range(len(threads))
            for some in _batches(np.flatnonzero(own == thread), np.broadcast_to(sizes, count))
        ]
        parcels = [Parcel.of([tasks[i] for i in some]) for some in batches]
        return batches, parcels, [threads[own[some[0]]] for some in batches], len(batches) <= len(threads)

    def _parcelled(self, parcels: list[Parcel], workers: list[str], brief: bool) -> Iterator[list[Any]]:
        """The results of each parcel; those of brief work past the scheduler where its worker holds what it reads."""
        known: list[list[Any] | None] = [None] * len(parcels)
        recent = time.monotonic() - self._scheduled < FRESH and self.client.status == "running"
        if brief and recent and all(map(self._direct.knows, workers, parcels)):
            with _lost():
                known = self._direct.results(parcels, workers)
        left = [i for i, results in enumerate(known) if results is None]
        if not left:
            return iter(cast("list[list[Any]]", known))
        found = self._by_scheduler([parcels[i] for i in left], [workers[i] for i in left])
        return (next(found) if results is None else results for results in known)

    def _by_scheduler(self, parcels: list[Parcel], workers: list[str]) -> Iterator[list[Any]]:
        """The results of parcels that the scheduler is sent now."""
        self._scheduled = time.monotonic()
        sent = [(together, *self._direct.message(one), list(one.futures.values())) for one in parcels]
        # The former futures are released after this message, because the client lets the second of two messages wait.
        self._last = futures = self._sent(sent, workers)
        for one, worker in zip(parcels, workers, strict=True):
            self._direct.learn(worker, one)
        return self._fetched(list(futures))

    def threads(self) -> list[str]:
        """The worker's address for each thread, workers in the order in which they came; [""] without a worker."""
        if time.monotonic() - self._asked >= FRESH:
            with _lost():
                found = self.client.nthreads()
                self._direct.meet(found)
            before = [one for one in dict.fromkeys(self._known) if one in found]
            self._known = [one for one in before + sorted(set(found) - set(before)) for _ in range(found[one])]
            self._asked = time.monotonic()
        return self._known or [""]

    def room(self, most: int, beside: int = 0) -> int:
        """Bytes that the workers have for equal shares of something, at most `most` in each; 0 if one has no limit.

        `beside` are the bytes that each thread needs in addition.
        """
        with _lost():
            free = _free(self.client)
        left = [memory - beside * threads for memory, threads in free]
        return len(left) * max(min(most, *left), 0) if left else 0

    def _sent(self, tasks: Sequence[tuple[Any, ...]], workers: list[str]) -> list[Any]:
        """The futures of tasks for these workers, by one message."""
        if not tasks:
            return []
        run = uuid.uuid4().hex
        keys = [(f"{_name(task)}-{run}", i) for i, task in enumerate(tasks)]
        functions, arguments = [task[0] for task in tasks], [list(task[1:]) for task in tasks]
        with _lost(), on_workers(dict(zip(keys, workers, strict=True))):
            return list(self.client.map(_called, functions, arguments, key=keys, pure=False))

    def _fetched(self, waiting: list[Any]) -> Iterator[Any]:
        try:
            while waiting:
                with _lost():
                    results = self.client.gather(waiting[:TOGETHER], direct=self._direct.near(self._known) or None)
                del waiting[:TOGETHER]
                yield from results
        finally:  # after an error, Ctrl-C or an observer's stop, the rest is not computed
            if waiting and self.client.status == "running":
                self.client.cancel(waiting)

    def total(self, tasks: Sequence[tuple[Any, ...]], size: float | None = None) -> Any:
        """The sum of the tasks' results, added in pairs by the workers: for large arrays, of which few come here.

        Parameters
        ----------
        tasks : sequence of tuples
        size : float, optional
            The entries of each task, where each thread holds what its share of them reads and adds it up itself. By
            default Dask's scheduler chooses the worker of each task, by what it holds and has to do.
        """
        count, own = len(tasks), 1
        while size is not None and count % (2 * own * len(self.threads())) == 0:
            own *= 2  # neighbours that one thread adds up, where each thread has as many
        groups = [(summed, [list(task) for task in tasks[i : i + own]]) for i in range(0, count, own)]
        if size is not None and len(groups) <= 2:
            return reduce(add, self.run(groups, size * own))
        futures = self.submit_all(groups)
        while len(futures) > 1:
            pairs = [(add, *two) for two in zip(futures[::2], futures[1::2], strict=False)]
            futures = self.submit_all(pairs) + futures[2 * len(pairs) :]
        return next(self.results(futures))


def _free(client: Any) -> list[tuple[int, int]]:
    """The memory that each worker may still use, and its threads."""
    known = client.scheduler_info(n_workers=-1)["workers"].values()
    return [(int(one["memory_limit"] or 0) - int(one["metrics"].get("memory", 0)), one["nthreads"]) for one in known]


def parts(count: int) -> NDArray[np.float64]:
    """Where among all rows each of some equal parts begins, from 0 to 1."""
    return np.arange(count) / max(count, 1)


def spread(places: NDArray[np.float64], threads: int) -> NDArray[np.intp]:
    """The thread for each place: each has neighbouring rows.

    >>> spread(parts(5), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    return (np.asarray(places) * threads).astype(np.intp)


def levelled(sizes: Sequence[float], threads: int) -> NDArray[np.intp]:
    """The thread for each task: the one with the least so far.

    >>> levelled([2, 2, 2, 1, 1], 2).tolist()
    [0, 1, 0, 1, 1]
    """
    own, load = np.empty(len(sizes), np.intp), np.zeros(threads)
    for i, size in enumerate(sizes):
        own[i] = np.argmin(load)
        load[own[i]] += size
    return own


def _batches(some: NDArray[np.intp], sizes: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """Runs of a thread's tasks, of about `BATCH` entries each."""
    if not len(some):
        return []
    return np.array_split(some, min(max(1, round(float(sizes[some].sum()) / BATCH)), len(some)))


def _in_order(batches: Iterator[list[Any]], places: list[list[int]]) -> Iterator[Any]:
    """The results of the batches in the order of the tasks."""
    found, following = dict[int, Any](), 0
    for some, results in zip(places, batches, strict=True):
        found.update(zip(some, results, strict=True))
        while following in found:
            yield found.pop(following)
            following += 1


def _told(results: Iterator[Any], count: int) -> Iterator[Any]:
    for done, result in enumerate(results, 1):
        yield result
        emit(TilesDone("shards", done, count))


@contextmanager
def on_workers(places: dict[Any, str]) -> Iterator[None]:
    """What is sent within goes to these workers, by key, or to others if these are gone."""
    import dask

    if not any(places.values()):
        yield
        return
    with dask.annotate(workers=partial(_place, places), allow_other_workers=True):
        yield


def _place(places: dict[Any, str], key: Any) -> list[str]:
    return [places[key]] if key in places else []


def _called(function: Callable[..., Any], arguments: list[Any]) -> Any:
    return function(*arguments)


def _name(task: tuple[Any, ...]) -> str:
    """The name of what the task does, for Dask's pages and its estimates of seconds."""
    function = task[1][0][0] if task[0] is together else task[0]
    return str(function.__name__)


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


def summed(tasks: list[list[Any]]) -> Any:
    """The sum of what tasks [function, arguments, …] give, each added to its neighbour, and so on.

    >>> summed([[float, 1], [float, 2], [float, 3]])
    6.0
    """
    if len(tasks) == 1:
        function, *arguments = tasks[0]
        return function(*arguments)
    half = 1 << (len(tasks) - 1).bit_length() - 1
    return summed(tasks[:half]) + summed(tasks[half:])


def held(value: Any) -> Any:
    """The value: a task, not scattered data, because the scheduler can run it again."""
    return value


def joined(rows: Any) -> Any:
    """The rows of several shards as one array."""
    if isinstance(rows, list):
        return rows[0] if len(rows) == 1 else np.concatenate(rows)
    return rows
