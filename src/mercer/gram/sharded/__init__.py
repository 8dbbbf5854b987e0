"""Kernel matrices of points in shards: their products, factors and stored entries, by the workers of a cluster."""

from mercer.gram.sharded.operator import ShardedOperator

__all__ = ["ShardedOperator"]
