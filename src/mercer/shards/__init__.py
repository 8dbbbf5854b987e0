"""Shards: the rows of Dask's arrays and data frames, held and computed with by the workers of a cluster."""

from mercer.shards.cluster import Cluster
from mercer.shards.lazy import lazily
from mercer.shards.points import ShardedPoints, Shards
from mercer.shards.reading import current_client, is_dask, local, sharded, together

__all__ = ["Cluster", "ShardedPoints", "Shards", "current_client", "is_dask", "lazily", "local", "sharded", "together"]


def __dir__() -> list[str]:
    return sorted(__all__)
