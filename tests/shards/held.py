"""Some rows, with two workers to hold them: what the tests of this folder share."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from mercer.kernels import Gaussian

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
N = 1500
X, V = RNG.standard_normal((N, 4)), RNG.standard_normal((N, 3))
Z, W = RNG.standard_normal((70, 4)), RNG.standard_normal((70, 2))
Y = np.sin(X).sum(axis=1)
KERNEL = Gaussian(0.3)


@contextmanager
def two_workers():
    """Workers of one thread each, in this process, which send each other messages as if they were not."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, processes=False, protocol="tcp://") as one, distributed.Client(one):
        yield one


def dask(rows, chunks=500):
    return da.from_array(rows, chunks=(chunks, *rows.shape[1:]))
