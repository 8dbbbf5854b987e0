"""The cluster that the tests of a file share."""

from __future__ import annotations

import pytest

from mercer.gram.sharded import operator as sharded


@pytest.fixture(scope="module")
def cluster():
    from held import two_workers  # skips without Dask

    with two_workers() as one:
        yield one


@pytest.fixture
def elsewhere(cluster, monkeypatch):
    """Workers compute also the products of small matrices."""
    monkeypatch.setattr(sharded, "HERE", 0)
    return cluster
