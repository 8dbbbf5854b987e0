"""The penalty δ of discriminant analysis, by leaving one out."""

from __future__ import annotations

from numbers import Real

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.discriminant.fisher import class_targets, in_proportion, leave_one_out_errors
from mercer.estimators.discriminant.gaussian_classes import GaussianClasses
from mercer.gram import KernelOperator
from mercer.operators import Centered, Operator, Submatrix, Weighted
from mercer.ways.report import Report

__all__ = ["ChosenDelta"]

DELTA_SHARE = 0.01
"""The default δ is this share of the mean of k(xᵢ, xᵢ)."""

DELTA_GRID = np.logspace(-6, 2, 25)
"""The shares of the mean of k(xᵢ, xᵢ) that leaving one out chooses from."""

LEFT_OUT_BYTES = 4 * 8
"""Of leaving one out, for each pair of rows: K, its eigenvectors, their squares, and LAPACK's work."""

NEAR_BEST = 1.005
"""Errors up to this multiple of the smallest are as good, and "auto" takes the largest δ that has one: if the error is
flat, as for many pixels, a δ near 0 gains nothing and makes K + δI singular to rounding."""

EQUAL = 1e-8
"""Errors that differ by less are equal to rounding, as where they are the same for all small δ."""

DELTA_ROWS = 500
"""Rows on which "auto" leaves one out. On spam, Satellite, phonemes, USPS and Adult the δ of 500 rows was as good for
2000 as their own, to half a point, on letters to 0.8. A fit takes 1.3 to 1.7 times as long as with a given δ; with 1000
rows it would be 2.5 to 4.4 times."""


class ChosenDelta(GaussianClasses):
    """δ as given, a share of tr(K)/n, or the one of nearly the smallest leave-one-out error."""

    delta: float | str | None

    def _chosen_delta(
        self, K: KernelOperator, labels: np.ndarray, weights: np.ndarray, size: float, report: Report
    ) -> float:
        self._kernel_size(K)  # refuses values that are not finite
        if isinstance(self.delta, Real) and not isinstance(self.delta, bool) and 0 < self.delta < np.inf:
            return float(self.delta)
        if not (self.delta is None or (isinstance(self.delta, str) and self.delta in ("auto", "loo"))):
            do = 'S_W is singular, so give a number > 0, "auto", "loo", or None (0.01·tr(K)/n)'
            raise InvalidInput(message(type(self).__name__, f"delta={self.delta!r}", do))
        if not size > 0:
            given = "k(x, x) = 0 for all rows"
            raise InvalidInput(message(type(self).__name__, given, "choose another kernel, or check the rows"))
        if self.delta is None:
            return DELTA_SHARE * size
        if self.delta == "loo":
            return self._left_one_out(K, labels, weights, size, report)
        room = max(int(np.sqrt(report.room / LEFT_OUT_BYTES)), 2)
        rows = in_proportion(labels, min(DELTA_ROWS, room), self._seed())
        found, some = np.unique(labels[rows], return_inverse=True)
        if len(found) < 2:
            report.notes.append(f"δ is {DELTA_SHARE:g}·tr(K)/n: {len(rows)} rows drawn to choose it are of one class")
            return DELTA_SHARE * size
        part = K if len(rows) == len(labels) else Submatrix(K, rows)
        return self._left_one_out(part, some, weights[rows], size, report, near=NEAR_BEST)

    def _left_one_out(
        self, K: Operator, labels: np.ndarray, weights: np.ndarray, size: float, report: Report, near: float = 1.0
    ) -> float:
        """The largest δ whose leave-one-out error is at most `near` times the smallest, by one eigendecomposition."""
        m = K.shape[0]
        self._require(LEFT_OUT_BYTES * m * m, "delta=None", report)
        with report.stage("leave one out"), one_blas_thread(4.0 * m**3):
            Y = class_targets(np.bincount(labels, weights=weights))[labels]
            matrix = Weighted(Centered(K, weights), np.sqrt(weights)).fill(np.empty(K.shape, np.float64))
            values, vectors = np.linalg.eigh(matrix)
            deltas = DELTA_GRID * size
            enough = deltas > -2 * values[0] * report.n / m  # else K + δI of an indefinite kernel is not positive
            self.leave_one_out_deltas_ = deltas[enough] if np.any(enough) else deltas
            errors = leave_one_out_errors(values, vectors, Y, weights, self.leave_one_out_deltas_)
        self.leave_one_out_errors_ = errors
        best = int(np.flatnonzero(errors <= near * (1 + EQUAL) * errors.min()).max())
        delta, on = float(self.leave_one_out_deltas_[best]), "" if m == report.n else f" on {m} rows"
        error = (
            "the smallest leave-one-out error"
            if near == 1
            else f"a leave-one-out error within {near - 1:.1%} of the best"
        )
        report.notes.append(f"δ = {delta:.3g} has {error}{on}")
        if best in (0, len(errors) - 1):
            report.notes.append("δ stands at the end of the range that was tried")
        return delta
