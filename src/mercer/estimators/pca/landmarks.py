"""Kernel PCA on landmarks: PCA of Nyström's features by their moments, and the error of that approximation."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.approx.nystroem import FeatureMoments, row_chunks
from mercer.estimators.base import landmarks
from mercer.estimators.base.landmarks import LandmarkSpan, count_landmarks, fewest_landmarks, given_count
from mercer.estimators.pca.exact import rounding_of
from mercer.estimators.pca.subspace import Components, FeatureSubspace
from mercer.gram import KernelOperator
from mercer.numerals import counted
from mercer.points import count, human, sample_rows, take
from mercer.solvers import leading_pairs
from mercer.ways.report import Report

__all__ = ["LEFT_OUT", "landmark_components", "largest_residual", "left_out", "plan_landmarks", "report_span"]

LEFT_OUT = "outside the landmarks' span:"
"""The beginning of a note that is replaced after each chunk of rows."""


def plan_landmarks(how: Any, given: int | None, K: KernelOperator, k: int | None, report: Report) -> int:
    """How many landmarks, `given` or by default, and the memory they will take; the budget may lower the default."""
    n = K.shape[0]
    m = given_count("KernelPCA", how, given)
    by_default = m is None
    if m is None:
        m = count_landmarks(n, k)
        while m > fewest_landmarks(n, k) and _bytes(K, m) > report.memory_budget:
            m = max(int(0.8 * m), fewest_landmarks(n, k))
    m = min(m, n) if isinstance(how, str) else m
    report.memory_rows = landmarks.landmark_rows(K, m)
    report.plan(landmarks.landmark_bytes(n, m), f"KernelPCA with {m} landmarks", "lower n_landmarks=")
    if by_default and m < count_landmarks(n, k):
        report.notes.append(f"{human(report.memory_budget)} hold {m} landmarks")
    return m


def _bytes(K: KernelOperator, m: int) -> int:
    return landmarks.landmark_bytes(K.shape[0], m) + landmarks.landmark_rows(K, m)


def report_span(span: LandmarkSpan, how: Any, asked: int, report: Report) -> None:
    """Say in the report which landmarks there are, and which add nothing."""
    found, how = len(span.matrix), how if isinstance(how, str) else "given"
    report.method, report.precision = f"Nyström, {counted(found, 'landmark')} ({how})", "float64"
    if found < asked and how == "pivoted":
        report.notes.append(f"{asked} landmarks were requested; {found} leave nothing of the diagonal to choose from")
    if span.rank < found:
        report.notes.append(f"the kernel matrix of {found} landmarks has rank {span.rank}; the rest is rounding")


def landmark_components(
    matrix: np.ndarray, root: np.ndarray, moments: FeatureMoments, k: int | None, dtype: str
) -> Components:
    """Σ_φ W = W Λ for the covariance of the features: A = K_mm^(−½) W, and their mean m = Σ cᵢ φ(bᵢ)."""
    m = len(root)
    values, W = leading_pairs(moments.scatter, m if k is None else min(int(k), m))
    cut = rounding_of(m, dtype) * max(float(values[0]), 0.0)
    kept = values > max(cut, 4 * np.finfo(np.float64).eps * moments.trace)
    A, mean_coef = root @ W[:, kept], root @ moments.mean
    column_means = matrix @ mean_coef
    scores = matrix @ A - column_means @ A
    top = scores[np.abs(scores).argmax(axis=0), np.arange(A.shape[1])]
    # Features whose mean is long have lost the root's condition of ‖φ‖², which their scatter about the mean has not.
    outside = moments.trace - moments.explained
    lost = 4 * np.finfo(np.float64).eps * np.sqrt(np.linalg.norm(matrix, 2)) * np.linalg.norm(root, 2) * moments.trace
    variance = float(np.trace(moments.scatter)) + outside * bool(outside > lost)
    A = A * np.where(top < 0, -1.0, 1.0)
    return Components(np.ascontiguousarray(values[kept]), A, mean_coef, column_means, moments.rows, variance)


def left_out(moments: FeatureMoments) -> str:
    """A note on tr(K − ΦΦᵀ), which bounds the error of each eigenvalue for a Mercer kernel."""
    left = max(moments.trace - moments.explained, 0.0)
    share = left / moments.trace if moments.trace > 0 else 0.0
    return f"{LEFT_OUT} {share:.2g} of tr K, so no eigenvalue is too small by more than {left:.2g}"


def largest_residual(subspace: FeatureSubspace, values: np.ndarray, X: Any, seed: int) -> tuple[float, str]:
    """max ‖K̃v − Nλv‖/(Nλ₁), v the scores over √(Nλ), and whether all rows were read or it is an estimate."""
    n, status = count(X), "measured on all rows"
    some = np.arange(n)
    if n > landmarks.CHECKED_WHOLE:
        some = sample_rows(n, landmarks.CHECKED_ROWS, [seed, 3])
        status = f"estimated from {landmarks.CHECKED_ROWS} rows"
    off = _residuals_on(subspace, values, X, some) * np.sqrt(n / len(some))
    return float(off.max() / values[0]), status


def _residuals_on(subspace: FeatureSubspace, values: np.ndarray, X: Any, some: np.ndarray) -> np.ndarray:
    """‖(K̃V − VΛ)[some]‖ of each component, from all columns, a few at a time."""
    kernel, A, scale = subspace.kernel, subspace.dual_coef, np.sqrt(values)
    anchors = kernel.space.of(X).anchors()
    rows = X if len(some) == count(X) else take(X, some)
    images, own = np.zeros((len(some), len(scale))), np.empty((len(some), len(scale)))
    for place, part in row_chunks(X, max(len(A), len(some)), landmarks.CHUNK):
        V = (KernelOperator(kernel, part, subspace.basis, dtype=np.float64) @ A - subspace.offset) / scale
        columns = anchors.run(place.start, place.stop).rows
        images += KernelOperator(kernel, rows, columns, dtype=np.float64) @ V
        inside = (some >= place.start) & (some < place.stop)
        own[inside] = V[some[inside] - place.start]
    # The mean of KV over all rows is that of KV − VΛ, which varies less among some of them.
    off = images - own * values
    return np.asarray(np.linalg.norm(off - off.mean(axis=0), axis=0))
