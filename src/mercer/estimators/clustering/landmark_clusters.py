"""Clusters of features that landmarks span: many rows, means within the landmarks' span, and what that leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.approx.nystroem import inverse_root, row_chunks
from mercer.errors import InvalidInput, message
from mercer.estimators.clustering.clusterer import Clusterer
from mercer.estimators.pca.landmarks import POOL, choose_landmarks, count_landmarks, landmark_bytes, landmark_rows
from mercer.gram import KernelOperator
from mercer.operators import LowRank
from mercer.points import count, human, take
from mercer.solvers import Clustering
from mercer.ways.report import Report

__all__ = ["LandmarkClusters"]

CHECKED_ROWS = 512
"""Rows on which the approximation is compared with the kernel."""

BATCH = 10_000
"""Rows in a mini-batch, where the features of all do not fit."""

EPOCHS = 5
"""How often mini-batches see each row."""


class LandmarkClusters(Clusterer):
    r"""k-means of φ̂(x) = K_mm^(−½) k_m(x): means m_c = Σⱼ Bⱼ₍c₎ φ(bⱼ) with B = K_mm^(−½) mean φ̂.

    ‖φ(x) − m_c‖² = ‖φ̂(x) − mean φ̂‖² + k(x, x) − ‖φ̂(x)‖², the last two the same for all means.
    """

    init: Any
    landmarks: Any
    n_landmarks: int | None
    batch_size: int | None
    tol: float

    def _by_landmarks(self, K: KernelOperator, X: Any, weights: np.ndarray | None, k: int, report: Report) -> None:
        """The approximate method of a fit, and how far it is from the exact one."""
        if not isinstance(self.init, str):
            given = 'init as an array with solver="nystroem"'
            raise InvalidInput(message(type(self).__name__, given, 'set init="k-means++", or another solver'))
        seed = self._seed()
        m, batch = self._planned(K, k, report)
        with report.stage("landmarks"):
            _, self.X_fit_ = choose_landmarks("KernelKMeans", self.landmarks, K, X, m, seed, POOL * m)
            precomputed = self.kernel_.space.numbered
            small = K.block(self.X_fit_, self.X_fit_) if precomputed else self.kernel_(self.X_fit_)
            small = np.asarray(small, np.float64)
            root, rank = inverse_root(small, float(np.finfo(np.float64).eps))
        report.method = f"Nyström, {len(small)} landmarks of rank {rank}; " + (
            f"mini-batches of {batch} rows" if batch else "Lloyd on the features"
        )
        report.precision = "float64 features" if not batch else "float64 features, a few at a time"
        if batch:
            centers = self._by_batches(X, root, weights, k, batch, seed, report)
        else:
            centers = self._by_lloyd(X, root, weights, k, report)
        self.dual_coef_, self.sample_weight_ = root @ centers.T, None  # no training rows are kept, nor their weights
        self.center_norms_ = np.einsum("jc,jc->c", self.dual_coef_, small @ self.dual_coef_)
        self._measure_clusters(K, X, weights, seed, report)

    def _planned(self, K: KernelOperator, k: int, report: Report) -> tuple[int, int]:
        """Landmarks, and rows of a mini-batch (0: all features at once)."""
        n = K.shape[0]
        if self.n_landmarks is not None:
            self._positive("n_landmarks")
        if self.batch_size is not None:
            self._positive("batch_size")
        m = min(n, count_landmarks(n, k) if self.n_landmarks is None else int(self.n_landmarks))
        m = m if isinstance(self.landmarks, str) else (np.shape(self.landmarks) or (1,))[0]
        some = min(n, CHECKED_ROWS)  # of `_measure_clusters`
        report.memory_rows = max(landmark_rows(K, m), K.x.nbytes * some // n + K.copies_of(some, n))
        features, budget = 8 * n * (m + 8 * k), report.room
        small = landmark_bytes(n, m) + 8 * n * 4
        batch = self.batch_size or (0 if small + features <= budget else max(BATCH, 3 * k))
        batch = min(int(batch), n)
        need = small + (8 * batch * (m + k) if batch else features)
        report.plan(need, f"KernelKMeans with {m} landmarks", "lower n_landmarks=")
        if batch and self.batch_size is None:
            report.notes.append(f"{human(features)} of features do not fit, so mini-batches were taken")
        return m, batch

    def _features(self, rows: Any, root: np.ndarray) -> np.ndarray:
        """φ̂ of some rows."""
        return np.asarray(KernelOperator(self.kernel_, rows, self.X_fit_, dtype=np.float64).toarray() @ root)

    def _by_lloyd(self, X: Any, root: np.ndarray, weights: np.ndarray | None, k: int, report: Report) -> np.ndarray:
        """The means of the features, (k, m), by the iteration that the exact method takes, on Φ Φᵀ."""
        n = count(X)
        with report.stage("features"):
            Phi = np.empty((n, len(root)))
            for place, rows in row_chunks(X, len(root)):
                Phi[place] = self._features(rows, root)
        problem = Clustering(LowRank(Phi), np.zeros(n, np.intp), k, weights)
        with report.stage("clusters"):
            best = self._best(problem, None, self.tol)
        self._account(report, best, self.tol)
        self._number(best.x, problem, report)
        W = np.eye(self.n_clusters_)[self.labels_] * problem.w[:, None]
        return np.asarray((W.T @ Phi) / self.cluster_weights_[:, None])

    def _by_batches(
        self, X: Any, root: np.ndarray, weights: np.ndarray | None, k: int, batch: int, seed: int, report: Report
    ) -> np.ndarray:
        """The means of the features by scikit-learn's mini-batches, and the labels by one more pass over the rows."""
        from sklearn.cluster import MiniBatchKMeans

        n = count(X)
        w = np.ones(n) if weights is None else weights
        present, rng = np.flatnonzero(w), np.random.default_rng([seed, 4])
        batch = max(batch, k)
        model = MiniBatchKMeans(k, batch_size=batch, n_init=self.n_init, random_state=seed)
        with report.stage("clusters"):
            for _ in range(min(EPOCHS, self.max_iter)):
                order = rng.permutation(present)
                for i in range(0, max(len(order) - batch, 0) + 1, batch):
                    some = order[i : i + batch]
                    model.partial_fit(self._features(take(X, some), root), sample_weight=w[some])
        with report.stage("labels"):
            labels = np.concatenate([model.predict(self._features(rows, root)) for _, rows in row_chunks(X, len(root))])
        sizes = np.asarray(np.bincount(labels, w, k), np.float64)
        kept = np.flatnonzero(sizes > 0)
        kept = kept[np.argsort(-sizes[kept], kind="stable")]
        place = np.zeros(k, np.intp)
        place[kept] = np.arange(len(kept))
        self.labels_, self.cluster_weights_, self.n_clusters_ = place[labels], sizes[kept], len(kept)
        self.n_iter_ = report.steps = int(model.n_steps_)
        return np.asarray(model.cluster_centers_[kept], np.float64)

    def _measure_clusters(
        self, K: KernelOperator, X: Any, weights: np.ndarray | None, seed: int, report: Report
    ) -> None:
        """The inertia of these means, exactly; and on some rows the largest error of ⟨φ(x), m_c⟩ over max k(x, x)."""
        n, diagonal = K.shape[0], np.asarray(K.diagonal(), np.float64)
        w = np.ones(n) if weights is None else weights
        with report.stage("measure"):
            self.inertia_ = 0.0
            for place, rows in row_chunks(X, len(self.dual_coef_)):
                products = KernelOperator(self.kernel_, rows, self.X_fit_, dtype=np.float64) @ self.dual_coef_
                D = diagonal[place] + (self.center_norms_ - 2 * products)[np.arange(len(products)), self.labels_[place]]
                self.inertia_ += float(w[place] @ np.maximum(D, 0.0))
            some = np.sort(np.random.default_rng([seed, 3]).choice(n, min(n, CHECKED_ROWS), replace=False))
            rows, columns = take(X, some), self.kernel_.space.of(X).anchors().rows
            sums = KernelOperator(self.kernel_, rows, columns).group_sums(self.labels_, self.n_clusters_, weights)
            ours = KernelOperator(self.kernel_, rows, self.X_fit_, dtype=np.float64) @ self.dual_coef_
            off = float(np.abs(sums / self.cluster_weights_ - ours).max())
        report.residual, report.tolerance = off / max(float(np.abs(diagonal).max()), np.finfo(float).tiny), float("nan")
        report.status = f"the largest error of ⟨φ(x), m_c⟩ over max k(x, x), on {len(some)} rows"
        report.notes.append("inertia_ is that of the landmarks' means, in the whole feature space")
