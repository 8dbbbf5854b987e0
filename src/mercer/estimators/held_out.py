"""Ridge regression on many subsets of the rows with many λ, from one kernel matrix: what searches are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.approx.pivoted_cholesky import pivoted_cholesky
from mercer.approx.subset_preconditioner import SubsetInverse
from mercer.operators import Dense, Operator
from mercer.select import RidgeSpectrum
from mercer.solvers import Cholesky, LinearSystem, Status, SubsetGradients, SubsetSystems, solve

__all__ = ["Buffers", "Split", "held_out_bytes", "held_out_predictions"]

Floats = NDArray[np.float64]

LARGE = 1500
"""Rows from which on iterations shared by all folds and λ are tried before factorisations."""
RANK = 300
"""Of the preconditioner: at n = 4000 it costs 0.1 s, and one step with 25 columns is a tenth dearer for it."""
NARROW = 5e-5
"""λ/λmax(K) below which products are in float64: those in float32 slow the iteration down from 1e-5 on, or end it."""
STEPS_A_ROW = 1 / 115
"""A factorisation in float32 of four fifths of n rows takes as long as n/115 steps of five columns (n = 4000)."""
MANY = 60
"""Folds × λ from which on one eigendecomposition is quicker than a factorisation for each."""
TOL = 1e-7
"""Relative residual: R² is exact to some 1e-8 (measured: 3e-9), where 1e-6 is promised."""


class Split(NamedTuple):
    """Row numbers to fit, and row numbers to predict."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Buffers:
    """Large arrays by name, made once and used again: the first touch of fresh memory costs as much as a product.

    >>> buffers = Buffers()
    >>> buffers.array("A", (2, 2), np.float64) is buffers.array("A", (2, 2), np.float64)
    True
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
        """An array of this shape, with whatever is in it."""
        known = self._kept.get(name)
        if known is None or known.shape != shape or known.dtype != dtype:
            self._kept.pop(name, None)
            known = self._kept[name] = np.empty(shape, dtype)
        return known


def held_out_bytes(n: int) -> int:
    """What `held_out_predictions` takes at its peak: K, and LAPACK's three for an eigendecomposition."""
    return 8 * n * n + RidgeSpectrum.bytes(n)


def held_out_predictions(
    K: Floats,
    Y: Floats,
    splits: list[Split],
    alphas: Floats,
    *,
    intercept: bool = False,
    buffers: Buffers | None = None,
) -> list[Floats]:
    r"""K[test, train] (K[train, train] + λI)⁻¹ y for each split, of shape (tests, λ, targets), to 1e-6 or better.

    Three roads to the same numbers. Many folds × λ whose training rows are all others: one eigendecomposition, and the
    folds by the block formula (`RidgeSpectrum.leave_out`). Many rows: conjugate gradients on all systems at once, one
    float32 product a step for all folds and λ, preconditioned by one pivoted Cholesky approximation of K, with float64
    residuals; systems that would take longer than a factorisation are factored. Else: Cholesky for each.

    Parameters
    ----------
    K : array of shape (n, n)
        In float64; not changed.
    Y : array of shape (n, targets)
    splits : list of Split
    alphas : array of numbers ≥ 0
    intercept : bool
        With an intercept that is not penalised.
    buffers : Buffers, optional
        Those of the last call, to be used again.

    Returns
    -------
    list of arrays
        NaN where K[train, train] + λI is not positive definite, or K not finite.

    Examples
    --------
    >>> K, y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[3.0], [0.0]])
    >>> held_out_predictions(K, y, [Split(np.array([0]), np.array([1]))], np.array([1.0]))[0].round(12).tolist()
    [[[1.0]]]
    """
    n, buffers = len(K), buffers or Buffers()
    out = [np.full((len(split.test), len(alphas), Y.shape[1]), np.nan) for split in splits]
    if not np.isfinite(np.sum(K)):
        return out
    if len(splits) * len(alphas) >= MANY and _leave_out_what_they_test(splits, n):
        _by_spectrum(K, Y, splits, alphas, intercept, out)
        return out
    todo = np.ones((len(splits), len(alphas)), bool)
    if n > LARGE:
        np.copyto(buffers.array("narrow", K.shape, np.float32), K, casting="same_kind")
    if n > LARGE and np.min(np.diagonal(K)) >= 0 and min(len(split.train) for split in splits) > n // 2:
        todo = _by_gradients(K, Y, splits, alphas, intercept, buffers, out)
    for split, predicted, left in zip(splits, out, todo, strict=True):
        if np.any(left):
            _by_cholesky(K, Y, split, alphas, np.flatnonzero(left), intercept, buffers, predicted)
    return out


def _leave_out_what_they_test(splits: list[Split], n: int) -> bool:
    return all(
        len(s.train) + len(s.test) == n and len(np.union1d(s.train, s.test)) == n and len(s.train) for s in splits
    )


def _sides(Y: Floats, intercept: bool) -> Floats:
    """The right-hand sides: y, and 1 for an intercept."""
    return np.hstack([Y, np.ones((len(Y), 1))]) if intercept else Y


def _predicted(values: Floats, dual: Floats, intercept: bool) -> Floats:
    """K α + b of K times `dual`, with α = v − u b of (K + λ)v = y and (K + λ)u = 1, b = Σv/Σu."""
    if not intercept:
        return values
    b = dual[:, :-1].sum(axis=0) / dual[:, -1:].sum()
    return np.asarray(values[:, :-1] - values[:, -1:] * b + b)


# ---- one eigendecomposition -----------------------------------------------------------------------------------------


def _by_spectrum(K: Floats, Y: Floats, splits: list[Split], alphas: Floats, intercept: bool, out: list[Floats]) -> None:
    spectrum = RidgeSpectrum.of(np.array(K, order="C"), intercept=intercept)
    usable = np.flatnonzero(spectrum.solvable(alphas))
    if not len(usable):
        return
    solved = spectrum.solve(Y, alphas[usable])
    for split, predicted in zip(splits, out, strict=True):
        predicted[:, usable] = spectrum.leave_out(split.test, Y, alphas[usable], solved)


# ---- all systems at once --------------------------------------------------------------------------------------------


def _by_gradients(
    K: Floats,
    Y: Floats,
    splits: list[Split],
    alphas: Floats,
    intercept: bool,
    buffers: Buffers,
    out: list[Floats],
) -> NDArray[np.bool_]:
    """Fill `out` where the iteration converged; the (split, λ) where it did not."""
    n, sides = len(K), _sides(Y, intercept)
    todo = np.ones((len(splits), len(alphas)), bool)
    tried = [(s, a) for s in range(len(splits)) for a in range(len(alphas)) if alphas[a] > 0]
    if not tried:
        return todo
    subset = np.repeat([s for s, _ in tried], sides.shape[1])
    shifts = np.repeat([alphas[a] for _, a in tried], sides.shape[1])
    systems = _systems(K, splits, subset, shifts, np.tile(sides, len(tried)), buffers)
    found = solve(SubsetGradients(TOL, max(10, round(n * STEPS_A_ROW))), systems)
    values = K @ found.x
    good = np.all(found.state.converged.reshape(len(tried), -1), axis=1).tolist()
    for j, (s, a) in enumerate(tried):
        if good[j]:
            own = slice(j * sides.shape[1], (j + 1) * sides.shape[1])
            out[s][:, a] = _predicted(values[splits[s].test, own], found.x[:, own], intercept)
            todo[s, a] = False
    return todo


def _systems(
    K: Floats, splits: list[Split], subset: NDArray[np.intp], shifts: Floats, B: Floats, buffers: Buffers
) -> SubsetSystems:
    """With their preconditioner; B is overwritten."""
    n, A = len(K), Dense(K, symmetric=True)
    approximation = pivoted_cholesky(A, min(RANK, n // 4), dtype=np.float64)
    F = buffers.array("F", approximation.F.shape, np.float64)
    np.copyto(F, approximation.F)
    within = np.zeros((len(splits), n), bool)
    for own, split in zip(within, splits, strict=True):
        own[split.train] = True
    present = np.ascontiguousarray(within[subset].T)
    B[~present] = 0.0
    # Where the rest of K is spread over many directions its mean is a part of the shift; half of it, to be safe.
    rest = 0.5 * approximation.residual_trace / n
    M = SubsetInverse(F, [np.flatnonzero(~own) for own in within], subset, shifts + rest)
    small = buffers.array("narrow", K.shape, np.float32)
    precise = shifts < NARROW * M.largest
    return SubsetSystems(A, B, present, shifts, M, Dense(small, symmetric=True), precise)


# ---- a factorisation for each ---------------------------------------------------------------------------------------


def _by_cholesky(
    K: Floats,
    Y: Floats,
    split: Split,
    alphas: Floats,
    which: NDArray[np.intp],
    intercept: bool,
    buffers: Buffers,
    out: Floats,
) -> None:
    large = len(K) > LARGE
    dtype = np.float32 if large else np.float64
    source = buffers.array("narrow", K.shape, dtype) if large else K
    factor = buffers.array("factor", (len(split.train), len(split.train)), dtype)
    sides = _sides(Y[split.train], intercept)
    solver = Cholesky(tol=TOL, precision="mixed" if large else "float64")
    for a in which:
        for i, row in enumerate(split.train):
            np.take(source[row], split.train, out=factor[i], mode="clip")  # with mode="raise" NumPy buffers its output
        system = LinearSystem(_Restricted(K, split.train), sides, float(alphas[a]), matrix=factor)
        found = solve(solver, system)
        # STALLED is a system that is nearly singular: as exact as float64 makes it, and what a fit would return.
        if found.status in (Status.CONVERGED, Status.STALLED, Status.MAX_STEPS):
            dual = np.zeros((len(K), sides.shape[1]))
            dual[split.train] = found.x
            out[:, a] = _predicted((K @ dual)[split.test], dual, intercept)


class _Restricted(Operator):
    """A[rows, rows] of a symmetric array, of which no copy is made."""

    def __init__(self, array: Floats, rows: NDArray[np.intp]) -> None:
        self.array, self.index = array, rows
        super().__init__((len(rows), len(rows)), array.dtype, symmetric=True)

    def rows(self, I: Any) -> NDArray[Any]:
        """The entries of some rows."""
        return self.array[np.ix_(self.index[I], self.index)]

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        wide = np.zeros((len(self.array), V.shape[1]))
        wide[self.index] = V
        return np.asarray((self.array @ wide)[self.index], V.dtype)
