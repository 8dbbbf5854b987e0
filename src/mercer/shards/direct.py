"""Tasks for workers that hold all that they read: sent past the scheduler, which takes most of a brief call."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["Direct", "Parcel", "together"]

PATIENCE = 1.0
"""Seconds after which a worker that does not answer is looked for: a connection to one that is gone is tried longer."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What stands for a future's result in a message."""

    key: Any


@dataclass(frozen=True)
class Parcel:
    """Tasks [function, arguments, …] with keys in the place of futures, and these futures, each once.

    They are lists, because a tuple that begins with a function is a task for some versions of Dask.
    """

    tasks: list[list[Any]]
    futures: dict[Any, Any]

    @classmethod
    def of(cls, tasks: Sequence[tuple[Any, ...]]) -> Parcel:
        """The tasks, with futures among their arguments or in lists of them."""
        from distributed import Future

        futures: dict[Any, Any] = {}

        def keyed(argument: Any) -> Any:
            if isinstance(argument, list):
                return [keyed(one) for one in argument]
            if isinstance(argument, Future):
                futures[argument.key] = argument
                return _Key(argument.key)
            return argument

        return cls([[keyed(one) for one in task] for task in tasks], futures)


class Direct:
    """Parcels to workers that are known to hold what these read.

    They go by a connection from the client to the worker. Where there is none, as to a network of its own, they go by
    `Client.run`, for which the scheduler passes on both messages; large ones then take half as long again. Each works
    on a thread for tasks, as if the scheduler had sent it. Who gets no answer has the scheduler send the parcel, so
    that all that goes wrong, the end of a worker included, is dealt with there.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client, self.name = client, uuid.uuid4().hex
        self._held: dict[tuple[str, Any], bool] = {}  # False for good once a worker did not have it
        self._near: dict[str, bool] = {}

    def meet(self, workers: Iterable[str]) -> None:
        """Try, once for each worker, whether it answers the client without the scheduler."""
        if strangers := [worker for worker in workers if worker not in self._near]:
            self._client.sync(self._tried, strangers)

    def near(self, workers: Sequence[str]) -> bool:
        """Whether there are workers, and all of them answered without the scheduler."""
        return bool(workers) and all(self._near.get(worker) for worker in workers)

    def knows(self, worker: str, parcel: Parcel) -> bool:
        """Whether the worker holds what the parcel reads, as far as is known."""
        return bool(worker) and all(self._held.get((worker, key)) for key in parcel.futures)

    def learn(self, worker: str, parcel: Parcel) -> None:
        """Note that the worker got the parcel from the scheduler, and so all that it reads."""
        for key in parcel.futures:
            self._held.setdefault((worker, key), True)

    def message(self, parcel: Parcel) -> tuple[Any, ...]:
        """What both the scheduler and a worker are told: the tasks, and the names of what they read."""
        return parcel.tasks, [(self.name, key) for key in parcel.futures]

    def results(self, parcels: Sequence[Parcel], workers: Sequence[str]) -> list[list[Any] | None]:
        """The results of each parcel's tasks; None for a parcel that did not work."""
        found: list[list[Any] | None] = self._client.sync(self._answers, parcels, workers)
        for parcel, worker, results in zip(parcels, workers, found, strict=True):
            if results is None:
                self._held.update(((worker, key), False) for key in parcel.futures)
        return found

    async def _tried(self, workers: Sequence[str]) -> None:
        greetings = [asyncio.wait_for(self._called(worker, str), PATIENCE) for worker in workers]
        answers = await asyncio.gather(*greetings, return_exceptions=True)
        self._near.update((worker, isinstance(answer, str)) for worker, answer in zip(workers, answers, strict=True))

    async def _called(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function gives in the worker's event loop, by a connection to it."""
        from distributed.protocol.pickle import dumps

        given = {"function": dumps(function), "args": dumps(arguments), "kwargs": dumps({})}
        return (await self._client.rpc(worker).run(**given, wait=True))["result"]

    async def _asked(self, parcel: Parcel, worker: str) -> list[Any] | None:
        if self._near.get(worker):
            found: list[Any] | None = await self._called(worker, _answer, *self.message(parcel))
            return found
        by_worker = await self._client.run(_answer, *self.message(parcel), workers=[worker], on_error="ignore")
        return dict(by_worker).get(worker)

    async def _answers(self, parcels: Sequence[Parcel], workers: Sequence[str]) -> list[list[Any] | None]:
        asked = [asyncio.ensure_future(self._asked(*one)) for one in zip(parcels, workers, strict=True)]
        try:
            while waiting := [one for one in asked if not one.done()]:
                done, _ = await asyncio.wait(waiting, timeout=PATIENCE)
                there = workers if len(done) == len(waiting) else await self._client.nthreads()
                for one, worker in zip(asked, workers, strict=True):
                    if worker not in there:
                        one.cancel()
            answers = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            for one in asked:
                one.cancel()
        return [answer if isinstance(answer, list) else None for answer in answers]


# ---- what workers do -------------------------------------------------------------------------------------------------

_seen: WeakValueDictionary[Any, Any] = WeakValueDictionary()
"""What tasks of this process read, as long as anybody keeps it: Dask drops the rows of other workers soon."""


def together(tasks: list[list[Any]], names: list[Any], values: list[Any]) -> list[Any]:
    """The results of the tasks, with the values in the place of their keys."""
    known = {name[1]: _kept(name, value) for name, value in zip(names, values, strict=True)}
    return [function(*(_valued(one, known) for one in arguments)) for function, *arguments in tasks]


def _kept(name: Any, value: Any) -> Any:
    """The value, or the same one that came before: blocks are known by their arrays."""
    try:
        return _seen.setdefault(name, value)
    except TypeError:  # such as a list, which has no weak references
        return value


async def _answer(tasks: list[list[Any]], names: list[Any], dask_worker: Any) -> list[Any] | None:
    """The results of the tasks on a thread of this worker, if it holds what they read."""
    try:
        values = [_seen[name] if name in _seen else dask_worker.data[name[1]] for name in names]
    except KeyError:
        return None
    threads = dask_worker.executors["default"]
    return await asyncio.get_running_loop().run_in_executor(threads, together, tasks, names, values)


def _valued(argument: Any, known: dict[Any, Any]) -> Any:
    if isinstance(argument, _Key):
        return known[argument.key]
    return [_valued(one, known) for one in argument] if isinstance(argument, list) else argument
