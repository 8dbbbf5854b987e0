"""The penalty δ of discriminant analysis, chosen by the leave-one-out error."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message, warn
from mercer.estimators.discriminant.fisher import class_targets, in_proportion, leave_one_out_errors
from mercer.gram import KernelOperator
from mercer.gram.remainder import TO_KEEP_DIGITS
from mercer.operators import Centered, Operator, Submatrix, Weighted
from mercer.operators.arrays import require_finite
from mercer.ways.report import Report

__all__ = ["Candidates", "choose_delta"]

DELTA_SHARE = 0.01
"""δ=None is this share of the mean ‖φ(xᵢ) − μ‖²."""

DELTA_GRID = np.logspace(-6, 2, 25)
"""The candidates for δ, as shares of the mean ‖φ(xᵢ) − μ‖²."""

DIGITS = 1e6
"""δ is at least this multiple of the rounding of K, which is ε·tr(K): six digits of δ's effect then stay."""

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
    """δ as given, a share of tr(K̃)/n, or the one of nearly the smallest leave-one-out error."""
    who = report.estimator
    if isinstance(delta, Real) and not isinstance(delta, bool) and 0 < float(delta) < np.inf:
        return float(delta), None
    if not (delta is None or (isinstance(delta, str) and delta in ("auto", "loo"))):
        do = 'S_W is singular, so give a number > 0, "auto", "loo", or None (0.01·tr(K̃)/n)'
        raise InvalidInput(message(who, f"delta={delta!r}", do))
    if not float(weights @ np.asarray(K.diagonal(), np.float64)) > 0:
        raise InvalidInput(message(who, "k(x, x) = 0 for all rows", "choose another kernel, or check the rows"))
    room = max(int(np.sqrt(report.room / LEFT_OUT_BYTES)), 2)
    rows = in_proportion(labels, len(labels) if delta == "loo" else min(DELTA_ROWS, room), seed)
    if len(rows) == len(labels):
        return _on_rows(delta, K, labels, weights, report)
    copies, report.memory_rows = report.memory_rows, K.copies_of(len(rows), len(rows))
    chosen = _on_rows(delta, Submatrix(K, rows), labels[rows], weights[rows], report)
    report.memory_rows = copies
    return chosen


def _on_rows(
    delta: Any, K: Operator, labels: np.ndarray, weights: np.ndarray, report: Report
) -> tuple[float, Candidates | None]:
    """`choose_delta` on these rows."""
    found, some = np.unique(labels, return_inverse=True)
    if delta is not None and len(found) > 1:
        return _by_leaving_out(K, some, weights, report, 1.0 if delta == "loo" else NEAR_BEST)
    if delta is not None:
        report.notes.append(f"δ is {DELTA_SHARE:g}·tr(K̃)/n: {len(labels)} rows drawn to choose it are of one class")
    spread, least = _sizes(K, Centered(K, weights).diagonal(), weights, report.n)
    _warn_of_rounding(least, spread, report)
    return max(DELTA_SHARE * spread, least), None


def _sizes(K: Operator, centred: np.ndarray, weights: np.ndarray, n: int) -> tuple[float, float]:
    """tr(K̃)/n, which unlike tr(K)/n does not depend on where the rows lie, and the least δ beside the rounding of K.

    tr(K̃)/n is the mean ‖φ(x) − μ‖², of an indefinite kernel the mean size, and comes from the diagonal of K̃.
    """
    spread = float(weights @ np.abs(np.asarray(centred, np.float64))) / float(weights.sum())
    trace = float(weights @ np.abs(np.asarray(K.diagonal(), np.float64))) * n / K.shape[0]
    return spread, DIGITS * np.finfo(np.float64).eps * trace


def _warn_of_rounding(least: float, spread: float, report: Report) -> None:
    """Warn if rounding does not allow a δ as small as the default without a choice: more may be far too much."""
    if DELTA_SHARE * spread < least:
        given = f"k(x, x) is so far above ‖φ(x) − μ‖² of {spread:.2g} that rounding allows no δ below {least:.2g}"
        report.warnings.append(message(report.estimator, given, f"{TO_KEEP_DIGITS}, or give delta"))
        warn(report.warnings[-1])


def _by_leaving_out(
    K: Operator, labels: np.ndarray, weights: np.ndarray, report: Report, near: float
) -> tuple[float, Candidates]:
    """The largest δ whose leave-one-out error is at most `near` times the smallest."""
    m = K.shape[0]
    what = f"{report.estimator} on {report.n} rows"
    report.plan(LEFT_OUT_BYTES * m * m, what, ["delta=None", "fewer rows"])
    with report.stage("leave one out"), one_blas_thread(4.0 * m**3):
        tried = _errors(K, labels, weights, report)
    best = tried.largest_within(near)
    chosen, on = float(tried.deltas[best]), "" if m == report.n else f" on {m} rows"
    near_best = f"a leave-one-out error within {near - 1:.1%} of the best"
    error = "the smallest leave-one-out error" if near == 1 else near_best
    report.notes.append(f"δ = {chosen:.3g} has {error}{on}")
    if best in (0, len(tried.errors) - 1):
        report.notes.append("δ is at the end of the range that was tried")
    return chosen, tried


def _errors(K: Operator, labels: np.ndarray, weights: np.ndarray, report: Report) -> Candidates:
    """The errors of all δ by one eigendecomposition."""
    Y = class_targets(np.bincount(labels, weights=weights))[labels]
    centered = Centered(K, weights)
    require_finite(centered.column_means, "KernelDiscriminantAnalysis")
    matrix = Weighted(centered, np.sqrt(weights)).fill(np.empty(K.shape, np.float64))
    spread, least = _sizes(K, np.diag(matrix) / weights, weights, report.n)
    _warn_of_rounding(least, spread, report)
    values, vectors = np.linalg.eigh(matrix)
    least = max(least, -2 * values[0] * report.n / K.shape[0])  # else K + δI of an indefinite kernel is not positive
    deltas = DELTA_GRID * spread
    deltas = deltas[deltas > least] if deltas[-1] > least else np.array([least])
    return Candidates(deltas, leave_one_out_errors(values, vectors, Y, weights, deltas))
