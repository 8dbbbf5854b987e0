"""k-means of features that landmarks span, for many rows: the features, mini-batches, and the error of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.approx.nystroem import row_chunks
from mercer.engine.backend import one_thread_after_fork
from mercer.estimators.base.landmarks import LandmarkSpan, landmark_bytes, landmark_rows
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.points import count, human, sample_rows, take
from mercer.ways.report import Report

__all__ = ["LandmarkFeatureMap", "LandmarkMeans", "by_batches", "plan_batches"]

CHECKED_ROWS = 512
"""Rows on which the approximation is compared with the kernel."""

BATCH = 10_000
"""Rows in a mini-batch if the features of all rows do not fit."""

EPOCHS = 5
"""The number of times that mini-batches use each row."""


@dataclass(frozen=True, eq=False)
class LandmarkFeatureMap:
    """φ̂(x) = K_mm^(−½) k_m(x), the coordinates of φ(x) in the landmarks' span."""

    kernel: Kernel
    span: LandmarkSpan

    def __call__(self, rows: Any) -> np.ndarray:
        """φ̂ of some rows."""
        return np.asarray(self._operator(rows).toarray() @ self.span.root)

    def of_all(self, X: Any) -> np.ndarray:
        """φ̂ of all rows, (n, m), a few at a time."""
        return np.asarray(self._operator(X).features(self.span.root))

    def _operator(self, rows: Any) -> KernelOperator:
        return KernelOperator(self.kernel, rows, self.span.landmarks, dtype=np.float64)


def plan_batches(K: KernelOperator, k: int, m: int, asked: int | None, report: Report) -> int:
    """Rows of a mini-batch, 0 for all features at once, and the memory that it will take."""
    n = K.shape[0]
    some = min(n, CHECKED_ROWS)  # of `LandmarkMeans.largest_error`
    report.memory_rows = max(landmark_rows(K, m), K.x.nbytes * some // n + K.copies_of(some, n))
    features, small = 8 * n * (m + 8 * k), landmark_bytes(n, m) + 8 * n * 4
    batch = min(asked or (0 if small + features <= report.room else max(BATCH, 3 * k)), n)
    need = small + (8 * batch * (m + k) if batch else features)
    report.plan(need, f"KernelKMeans with {m} landmarks", "lower n_landmarks=")
    if batch and asked is None:
        report.notes.append(f"{human(features)} of features do not fit, so mini-batches were taken")
    return batch


@one_thread_after_fork()
def by_batches(
    features: LandmarkFeatureMap,
    X: Any,
    w: np.ndarray,
    k: int,
    schedule: tuple[int, int, int],
    seed: int,
    report: Report,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Clusters by scikit-learn's mini-batches: means of features (k, m), labels, weights of the clusters, and steps.

    `schedule` is the rows of a batch, the starts, and the passes at most. Clusters without rows are left out, and the
    heaviest is the first.
    """
    from sklearn.cluster import MiniBatchKMeans

    batch, starts, passes = schedule
    batch = max(batch, k)
    model = MiniBatchKMeans(k, batch_size=batch, n_init=starts, random_state=seed)
    with report.stage("clusters"):
        for some in _drawn(np.flatnonzero(w), batch, min(EPOCHS, passes), np.random.default_rng([seed, 4])):
            model.partial_fit(features(take(X, some)), sample_weight=w[some])
    with report.stage("labels"):
        width = len(features.span.root)
        labels = np.concatenate([model.predict(features(rows)) for _, rows in row_chunks(X, width)])
    sizes = np.asarray(np.bincount(labels, w, k), np.float64)
    kept = np.flatnonzero(sizes > 0)
    kept = kept[np.argsort(-sizes[kept], kind="stable")]
    means, place = np.asarray(model.cluster_centers_[kept], np.float64), np.full(k, -1, np.intp)
    place[kept] = np.arange(len(kept))
    labels = place[labels]
    left = np.flatnonzero(labels < 0)  # rows of weight 0 in clusters that are left out, perhaps many
    for some in (left[i : i + batch] for i in range(0, len(left), batch)):
        apart = np.sum(means**2, axis=1) - 2 * features(take(X, some)) @ means.T
        labels[some] = np.argmin(apart, axis=1)
    return means, labels, sizes[kept], int(model.n_steps_)


def _drawn(rows: np.ndarray, batch: int, passes: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches of rows in random order, without what is left of a pass. The last one does not hold all of them."""
    for _ in range(passes):
        order = rng.permutation(rows)
        for i in range(0, max(len(order) - batch, 0) + 1, batch):
            yield order[i : i + batch].copy()


@dataclass(frozen=True, eq=False)
class LandmarkMeans:
    r"""m_c = Σⱼ Bⱼ₍c₎ φ(bⱼ) with B = K_mm^(−½) mean φ̂.

    ‖φ(x) − m_c‖² = ‖φ̂(x) − mean φ̂‖² + k(x, x) − ‖φ̂(x)‖², the last two the same for all means.
    """

    kernel: Kernel
    landmarks: Any
    dual_coef: np.ndarray
    """B, of shape (m, k)."""
    norms: np.ndarray
    """‖m_c‖²."""

    def products(self, rows: Any) -> np.ndarray:
        """⟨φ(x), m_c⟩ of each row and mean."""
        return np.asarray(KernelOperator(self.kernel, rows, self.landmarks, dtype=np.float64) @ self.dual_coef)

    def inertia(self, X: Any, labels: np.ndarray, w: np.ndarray, diagonal: np.ndarray) -> float:
        """Σ wᵢ ‖φ(xᵢ) − m_c(i)‖² in the whole feature space, from k(xᵢ, xᵢ)."""
        total = 0.0
        for place, rows in row_chunks(X, len(self.dual_coef)):
            apart = self.norms - 2 * self.products(rows)
            D = diagonal[place] + apart[np.arange(len(apart)), labels[place]]
            total += float(w[place] @ np.maximum(D, 0.0))
        return total

    def largest_error(self, X: Any, labels: np.ndarray, w: np.ndarray, seed: int) -> tuple[float, int]:
        """max |⟨φ(x), m_c⟩ − ⟨φ(x), μ_c⟩| on some rows, μ_c the means of the rows, and how many rows these are."""
        n, sizes = count(X), np.bincount(labels, w)
        some = sample_rows(n, CHECKED_ROWS, [seed, 3])
        rows, columns = take(X, some), self.kernel.space.of(X).anchors().rows
        sums = KernelOperator(self.kernel, rows, columns).group_sums(labels, len(sizes), w)
        return float(np.abs(sums / sizes - self.products(rows)).max()), len(some)
