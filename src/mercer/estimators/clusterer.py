"""What the estimators of clusters share: their parameters' checks, several starts, and the numbering of clusters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from mercer.errors import ConvergenceWarning, InvalidInput, message
from mercer.estimators.base import KernelEstimator
from mercer.estimators.report import Report
from mercer.solvers import Clustering, Lloyd, Partition, Solution, plus_plus, solve

__all__ = ["Clusterer"]


class Clusterer(ClusterMixin, KernelEstimator):
    """A kernel, a number of clusters, and Lloyd's iteration from several starts."""

    n_clusters: int
    n_init: int
    max_iter: int
    random_state: Any
    sample_weight_: np.ndarray | None

    def _positive(self, *names: str) -> None:
        """Refuse counts that are none."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InvalidInput(message(type(self).__name__, f"{name}={value!r}", "give a positive integer"))

    def _count(self, n: int, weights: np.ndarray | None) -> int:
        """The clusters asked for, no more than there are rows that count."""
        self._positive("n_clusters", "n_init", "max_iter")
        present = n if weights is None else int(np.count_nonzero(weights))
        if self.n_clusters > present:
            given = f"n_clusters={self.n_clusters} for n_samples={present} of positive weight"
            raise InvalidInput(message(type(self).__name__, given, "lower n_clusters, or give more rows"))
        return int(self.n_clusters)

    def _seed(self) -> int:
        """An integer of its own, or one drawn from the generator that was given."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    @staticmethod
    def _from_mean(problem: Clustering) -> np.ndarray:
        """‖φ(xᵢ) − m‖² less ‖m‖², with m the mean of all: what orders rows and clusters whatever order they are in."""
        w = problem.w
        return np.asarray(problem.diagonal - 2 * (problem.reference @ w) / w.sum())

    def _starts(self, problem: Clustering, from_mean: np.ndarray) -> Iterable[np.ndarray]:
        """Labels by k-means++, `n_init` times.

        The rows are drawn in the order of their distance from the mean of all, so that the draw follows from the data
        alone: rows in another order, or twice instead of with weight 2, give the same clusters.
        """
        order, seed = np.argsort(from_mean, kind="stable"), self._seed()
        return (plus_plus(problem, order, np.random.default_rng([seed, i])).labels for i in range(self.n_init))

    def _best(self, problem: Clustering, starts: Iterable[np.ndarray], tol: float = 0.0) -> Solution[Any]:
        """The solution of least inertia, the first one of equals."""
        solver, best = Lloyd(tol=tol, max_steps=self.max_iter), None
        for labels in starts:
            found = solve(solver, replace(problem, labels=labels))
            if best is None or found.x.inertia < best.x.inertia - problem.rounding * problem.w.sum():
                best = found
        assert best is not None
        if not np.isfinite(best.x.inertia):
            given = "kernel values that are not finite"
            raise InvalidInput(message(type(self).__name__, given, "check the kernel and the rows"))
        self.n_iter_ = best.steps
        return best

    def _number(self, found: Partition, w: np.ndarray, from_mean: np.ndarray | None, report: Report) -> np.ndarray:
        """The clusters that have rows, the heaviest first, of equal weight the nearest to the mean of all.

        Without `from_mean` they keep their order.
        """
        filled = np.flatnonzero(found.sizes > 0)
        if from_mean is not None:
            W = found.sizes[filled]
            distance = np.bincount(found.labels, w * from_mean, len(found.sizes))[filled] / W
            filled = filled[np.lexsort((distance, -np.round(W / W.sum(), 12)))]
        place = np.zeros(len(found.sizes), np.intp)
        place[filled] = np.arange(len(filled))
        self.labels_ = place[found.labels]
        self.cluster_weights_, self.n_clusters_ = found.sizes[filled], len(filled)
        if len(filled) < len(found.sizes):
            given = f"n_clusters={len(found.sizes)}, but the rows have {len(filled)} distinct images"
            report.warnings.append(message(type(self).__name__, given, "lower n_clusters"))
            warnings.warn(report.warnings[-1], ConvergenceWarning, stacklevel=3)
        return filled
