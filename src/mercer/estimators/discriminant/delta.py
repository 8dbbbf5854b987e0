"""The penalty δ of discriminant analysis, chosen by the leave-one-out error."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.discriminant.fisher import class_targets, in_proportion, leave_one_out_errors
from mercer.gram import KernelOperator
from mercer.operators import Centered, Operator, Submatrix, Weighted
from mercer.operators.arrays import require_finite
from mercer.ways.report import Report

__all__ = ["Candidates", "choose_delta"]

DELTA_SHARE = 0.01
"""The default δ is this share of the mean of k(xᵢ, xᵢ)."""

DELTA_GRID = np.logspace(-6, 2, 25)
"""The candidates for δ, as shares of the mean of k(xᵢ, xᵢ)."""

LEFT_OUT_BYTES = 4 * 8
"""Bytes for each pair of rows when leaving one out: K, its eigenvectors, their squares, and LAPACK's work."""

NEAR_BEST = 1.005
"""Errors up to this multiple of the smallest are as good, and "auto" takes the largest δ that has one: if the error is
flat, as for many pixels, a δ near 0 gains nothing and makes K + δI singular to rounding."""

EQUAL = 1e-8
"""Errors that differ by less are equal to rounding: flat kernels give the same error for all small δ."""

DELTA_ROWS = 500
"""Rows on which "auto" leaves one out. On spam, Satellite, phonemes, USPS and Adult the δ of 500 rows was as good for
2000 as their own, to half a point, on letters to 0.8. A fit takes 1.3 to 1.7 times as long as with a given δ; with 1000
rows it would be 2.5 to 4.4 times."""


class Candidates(NamedTuple):
    """The δ that were tried and their leave-one-out errors, mean squares of the regression on class targets."""

    deltas: np.ndarray
    errors: np.ndarray

    def largest_within(self, near: float) -> int:
        """The place of the largest δ whose error is at most `near` times the smallest."""
        return int(np.flatnonzero(self.errors <= near * (1 + EQUAL) * self.errors.min()).max())


def choose_delta(
    delta: Any, K: KernelOperator, labels: np.ndarray, weights: np.ndarray, seed: int, report: Report
) -> tuple[float, Candidates | None]:
    """δ as given, a share of tr(K)/n, or the one of nearly the smallest leave-one-out error."""
    who = report.estimator
    if isinstance(delta, Real) and not isinstance(delta, bool) and 0 < float(delta) < np.inf:
        return float(delta), None
    if not (delta is None or (isinstance(delta, str) and delta in ("auto", "loo"))):
        do = 'S_W is singular, so give a number > 0, "auto", "loo", or None (0.01·tr(K)/n)'
        raise InvalidInput(message(who, f"delta={delta!r}", do))
    size = float(weights @ np.asarray(K.diagonal(), np.float64)) / weights.sum()
    if not size > 0:
        raise InvalidInput(message(who, "k(x, x) = 0 for all rows", "choose another kernel, or check the rows"))
    if delta is None:
        return DELTA_SHARE * size, None
    if delta == "loo":
        return _by_leaving_out(K, labels, weights, size, report)
    room = max(int(np.sqrt(report.room / LEFT_OUT_BYTES)), 2)
    rows = in_proportion(labels, min(DELTA_ROWS, room), seed)
    found, some = np.unique(labels[rows], return_inverse=True)
    if len(found) < 2:
        report.notes.append(f"δ is {DELTA_SHARE:g}·tr(K)/n: {len(rows)} rows drawn to choose it are of one class")
        return DELTA_SHARE * size, None
    if len(rows) == len(labels):
        return _by_leaving_out(K, some, weights, size, report, near=NEAR_BEST)
    copies, report.memory_rows = report.memory_rows, K.copies_of(len(rows), len(rows))
    chosen = _by_leaving_out(Submatrix(K, rows), some, weights[rows], size, report, near=NEAR_BEST)
    report.memory_rows = copies
    return chosen


def _by_leaving_out(
    K: Operator, labels: np.ndarray, weights: np.ndarray, size: float, report: Report, near: float = 1.0
) -> tuple[float, Candidates]:
    """The largest δ whose leave-one-out error is at most `near` times the smallest."""
    m = K.shape[0]
    what = f"{report.estimator} on {report.n} rows"
    report.plan(LEFT_OUT_BYTES * m * m, what, ["delta=None", "fewer rows"])
    with report.stage("leave one out"), one_blas_thread(4.0 * m**3):
        tried = _errors(K, labels, weights, size, report.n / m)
    best = tried.largest_within(near)
    chosen, on = float(tried.deltas[best]), "" if m == report.n else f" on {m} rows"
    near_best = f"a leave-one-out error within {near - 1:.1%} of the best"
    error = "the smallest leave-one-out error" if near == 1 else near_best
    report.notes.append(f"δ = {chosen:.3g} has {error}{on}")
    if best in (0, len(tried.errors) - 1):
        report.notes.append("δ is at the end of the range that was tried")
    return chosen, tried


def _errors(K: Operator, labels: np.ndarray, weights: np.ndarray, size: float, share: float) -> Candidates:
    """The errors of all δ by one eigendecomposition; `share` is n over the rows of K."""
    Y = class_targets(np.bincount(labels, weights=weights))[labels]
    centered = Centered(K, weights)
    require_finite(centered.column_means, "KernelDiscriminantAnalysis")
    matrix = Weighted(centered, np.sqrt(weights)).fill(np.empty(K.shape, np.float64))
    values, vectors = np.linalg.eigh(matrix)
    deltas = DELTA_GRID * size
    enough = deltas > -2 * values[0] * share  # else K + δI of an indefinite kernel is not positive
    deltas = deltas[enough] if np.any(enough) else deltas
    return Candidates(deltas, leave_one_out_errors(values, vectors, Y, weights, deltas))
