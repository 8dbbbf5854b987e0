"""The base of clustering estimators: checks of parameters, several starts, and the numbering of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.estimator import KernelEstimator
from mercer.mixins import ClusterMixin
from mercer.operators.arrays import require_finite
from mercer.schemas import NON_NEGATIVE, Array, Count, Indices, Rows, Schema
from mercer.solvers import Clustering, Lloyd, Partition, Solution, best_of_starts, drawn_starts
from mercer.ways.report import Report

__all__ = ["Clusterer"]


class Clusterer(ClusterMixin, KernelEstimator):
    """A kernel, a number of clusters, and Lloyd's iteration from several starts."""

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("X_fit_"),
        Array("sample_weight_", "n", nullable=True, rules=(NON_NEGATIVE,)),
        Count("n_clusters_", "clusters"),
        Indices("labels_", "labelled", of="clusters"),
        Array("cluster_weights_", "clusters", rules=(NON_NEGATIVE,)),
        Array("inertia_"),
        Count("n_iter_"),
    )

    n_clusters: int
    n_init: int
    max_iter: int
    random_state: Any
    sample_weight_: np.ndarray | None

    def _count(self, n: int, weights: np.ndarray | None) -> int:
        """`n_clusters`; refused if fewer rows have a weight."""
        for name in ("n_clusters", "n_init", "max_iter"):
            self._checked_count(name)
        present = n if weights is None else int(np.count_nonzero(weights))
        if self.n_clusters > present:
            given = f"n_clusters={self.n_clusters} for n_samples={present} of positive weight"
            raise InvalidInput(message(type(self).__name__, given, "lower n_clusters, or give more rows"))
        return int(self.n_clusters)

    def _best(
        self,
        problem: Clustering,
        starts: Iterable[np.ndarray] | None,
        tol: float = 0.0,
        path: list[np.ndarray] | None = None,
    ) -> Solution[Any]:
        """The solution of least inertia from the starts that are given, or `n_init` by k-means++."""
        starts = drawn_starts(problem, self.n_init, self._seed()) if starts is None else starts
        best = best_of_starts(Lloyd(tol=tol, max_steps=self.max_iter), problem, starts, path)
        require_finite(best.x.inertia, type(self).__name__)
        self.n_iter_ = best.steps
        return best

    def _number(self, found: Partition, problem: Clustering, report: Report, by_weight: bool = True) -> np.ndarray:
        """The clusters that have rows, the heaviest first; of equal weight, the nearest to the overall mean first.

        Unless `by_weight` they keep their order.
        """
        filled = np.flatnonzero(found.sizes > 0)
        if by_weight:
            W = found.sizes[filled]
            distance = np.bincount(found.labels, problem.w * problem.from_mean, len(found.sizes))[filled] / W
            filled = filled[np.lexsort((distance, -np.round(W / W.sum(), 12)))]
        place = np.zeros(len(found.sizes), np.intp)
        place[filled] = np.arange(len(filled))
        self.labels_ = place[found.labels]
        self.cluster_weights_, self.n_clusters_ = found.sizes[filled], len(filled)
        if len(filled) < len(found.sizes):
            given = f"n_clusters={len(found.sizes)}, but the rows have {len(filled)} distinct images"
            report.warnings.append(message(type(self).__name__, given, "lower n_clusters"))
            warn(report.warnings[-1], ConvergenceWarning)
        return filled
