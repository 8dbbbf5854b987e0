"""The workers of ``mercer fit --dask`` and ``--workers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.shards.reading import current_client

__all__ = ["on_workers", "workers"]

CHUNK = 10_000
"""Rows of a chunk that is sent to a worker."""

_MALLOC = "distributed.nanny.pre-spawn-environ.MALLOC_"
LOCAL = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
    f"{_MALLOC}TRIM_THRESHOLD_": 1 << 28,
    f"{_MALLOC}MMAP_THRESHOLD_": 1 << 25,
}
"""Settings of Dask's for workers on this machine, whose processors are for the work: by default a scheduler and two
workers without any work take three times as much of them, and a worker gives memory back after each task, only to ask
for it again, which took a tenth of a product with 32 vectors, and a fifth where two threads did so."""


@contextmanager
def workers(address: str | None, number: int | None) -> Iterator[None]:
    """A client for the work within: of the scheduler at an address, or of workers on this machine, or none."""
    if address is None and number is None:
        yield
        return
    if address is not None and number is not None:
        raise InvalidInput(message("mercer fit", "both --dask and --workers", "choose one"))
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError as error:
        given = "Dask's distributed is not installed"
        raise InvalidInput(message("mercer fit", given, 'pip install "mercer[dask]"')) from error
    if address is None:
        options = {"n_workers": number, "threads_per_worker": 1, "dashboard_address": ":0"}
        with config.set(LOCAL), LocalCluster(**options) as local, Client(local):
            yield
        return
    try:
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        do = "give the address that dask scheduler printed, such as tcp://host:8786"
        raise InvalidInput(message("--dask", f"no scheduler answers at {address}", do)) from error
    with client:
        yield


def on_workers(X: Any) -> Any:
    """An array as an array of Dask's if there is a client; anything else unchanged."""
    if current_client() is None or not isinstance(X, np.ndarray):
        return X
    import dask.array

    return dask.array.from_array(X, chunks=(CHUNK, -1))
