"""The classifier of discriminant analysis: Gaussian classes, on scores that are like those of new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.approx import pivoted_cholesky
from mercer.engine.backend import one_blas_thread
from mercer.estimators.discriminant.fisher import ClassScatter, Directions, leave_one_out_scores, leverages
from mercer.gram import KernelOperator
from mercer.ways.report import Report

__all__ = ["GaussianClasses", "left_out_classes"]

LEVERAGE_RANK = 500
"""Pivots of the approximation of K for leverages, which are exact up to this many rows."""


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """log π_c − ½ (z − m_c)ᵀΣ⁻¹(z − m_c) on scores z, with Σ shared by the classes."""

    means: np.ndarray
    """m_c, of shape (c, k)."""
    covariance: np.ndarray
    """Σ, of shape (k, k)."""

    def decisions(self, Z: np.ndarray, priors: np.ndarray) -> np.ndarray:
        """Up to a constant that all classes share, of shape (m, c); for two classes the second less the first, (m,)."""
        slopes, offsets = self.affine(priors)
        scores = Z @ slopes + offsets
        return scores[:, 1] - scores[:, 0] if len(priors) == 2 else scores

    def affine(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A of shape (k, c) and b of shape (c,), so that the decisions of all classes are z A + b."""
        slopes = np.linalg.solve(self.covariance, self.means.T)
        return slopes, np.log(priors) - np.sum(self.means * slopes.T, axis=1) / 2


def left_out_classes(
    K: KernelOperator,
    features: np.ndarray | None,
    found: Directions,
    eigenvalues: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    delta: float,
    report: Report,
) -> GaussianClasses:
    """The Gaussians of leave-one-out scores. Their scatter has δI too.

    This keeps the covariance from being singular, and shrinks it if there are few rows to learn it from: without it,
    the log loss on 600 noisy digits was 0.84, 0.66 and 0.62 for δ = 0.01, 0.3 and 1, with it 0.77, 0.58 and 0.59.
    """
    n = len(labels)
    with report.stage("leave one out"), one_blas_thread(2.0 * n * LEVERAGE_RANK**2):
        F, diagonal_correction = features, np.zeros(n)
        if F is None:
            room = max((report.memory_budget - K.copies_of(0, n)) // (4 * 8 * n), 1)
            rank = int(min(n, LEVERAGE_RANK, room))
            K.release()
            # Fewer pivots than rows leave out far more than the rounding of float32.
            approximation = pivoted_cholesky(K if rank == n else K.in_float32(), rank)
            F, diagonal_correction = approximation.F, approximation.left
            report.memory_planned = max(report.memory_planned, K.copies_of(0, n) + 4 * F.nbytes)
        h = leverages(F, diagonal_correction, weights, delta)
        out = leave_one_out_scores(found.scores, labels, weights, eigenvalues, h)
    scatter, total = ClassScatter.of(out, labels, weights), float(weights.sum())
    within, c = scatter.within + delta * found.gram, len(scatter.means)
    report.notes.append(f"the classifier is fitted to leave-one-out scores, mean leverage {h.mean():.2g}")
    return GaussianClasses(scatter.means, (within + within.T) / (2 * (total - c if total > c else total)))
