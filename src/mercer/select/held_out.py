"""Ridge regression on many subsets of the rows and for many λ from one kernel matrix, as searches need it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mercer.factorizations import RidgeBand, RidgeInverse, RidgeSpectrum
from mercer.factorizations.deflated import Deflated
from mercer.factorizations.pivoted_cholesky import pivoted_cholesky
from mercer.factorizations.subset_preconditioner import InverseWithout, SubsetInverse
from mercer.gram import rates
from mercer.operators import Dense, Operator
from mercer.planning.costs import held_out_ways
from mercer.solvers import (
    Cholesky,
    CholeskyFactor,
    LinearSystem,
    Status,
    SubsetGradients,
    SubsetPreconditioner,
    SubsetSystems,
    solve,
)

__all__ = ["Buffers", "Split", "held_out_bytes", "held_out_predictions", "systems_are_solved_together"]

Floats = NDArray[np.float64]

LARGE = 1500
"""Above this many rows, iterations shared by all folds and λ are tried before factorisations."""
FIRST, SPREAD = 120, 0.8
"""Pivots of a first approximation of K. If they leave more than this share of the trace, no more are computed."""
DEFLATED = 64
"""Number of these pivots subtracted from K before it is rounded to float32: costs five products (n = 4000)."""
ENOUGH, MOST = 0.005, 4
"""A preconditioner may leave this share of n λ of the trace of K, but has at most n/`MOST` columns. In the benchmark's
search with γ = 0.05 and λ = 0.01, 1000 columns took 20 steps, 600 took 34, and 300 did not converge in 35.
"""
NARROW = 1e-6
"""From this λ/λmax(K) on the preconditioner is in float32; at 2.5e-6 it takes as many steps as one in float64."""
STEPS_A_ROW = 1 / 115
"""An inverse of n rows, for five folds, takes as long as n/115 steps of five columns (n = 4000)."""
SHARING = 4
"""From this many folds on, one inverse of all rows is tried before a factorisation for each fold. With its steps it
takes 0.6 of the time of five factorisations, and should break even at four.
"""
REFINEMENTS = 10
"""Most steps with an inverse in float32, which usually needs three. If ten are not enough, float32 is too imprecise."""
TOGETHER = 10 * (1 + 1e-9)
"""Up to this λ₂/λ₁ one inverse, that of K + √(λ₁λ₂) I, serves both. The condition number is at most √10, and smaller if
the smallest eigenvalue of K is not small relative to λ. Ten steps of both take half as long as another inverse
(n = 4000).
"""
SAFE_POWER = 40
"""K is rescaled if its largest entry is beyond 2^±40: float32 goes to 2^±126, but sums and products need a margin."""
MANY = 0.15
"""Above `LARGE` rows, one decomposition serves this many right-hand sides a row or more, of all folds, λ and targets:
with 10 targets it breaks even at 30 to 60 folds × λ of 2000 and 3000 rows, and with one not below 130.
"""
TOL, CLOSER = 1e-7, 1e-8
"""Tolerance on the relative residual: it makes R² exact to about 1e-8 (measured: 3e-9), and 1e-6 is promised. `CLOSER`
is for an intercept with an inverse, and costs a step or two: for an almost constant kernel (γ = 0.001, 200 rows) 1e-7
left an error of 4e-7.
"""


class Split(NamedTuple):
    """Indices of the rows to fit, and of the rows to predict; those of a bootstrap repeat."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Buffers:
    """Large arrays by name, allocated once and reused, because touching new memory costs as much as a product.

    >>> buffers = Buffers()
    >>> buffers.array("A", (2, 2), np.float64) is buffers.array("A", (2, 2), np.float64)
    True
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
        """An array of this shape and dtype, with arbitrary contents."""
        known = self._kept.get(name)
        if known is None or known.shape != shape or known.dtype != dtype:
            self._kept.pop(name, None)
            known = self._kept[name] = np.empty(shape, dtype)
        return known


def held_out_bytes(n: int) -> int:
    """Peak bytes of `held_out_predictions`: K, and three matrices for LAPACK's eigendecomposition."""
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

    Four ways give the same numbers.

    * One decomposition, and the block formula for the folds (`RidgeInverse.leave_out`): if each split trains on
      all rows that it does not test, and this is predicted to be faster than a factor for each fold and λ (above 1500
      rows: if there are many of these and of the targets).
    * Above 1500 rows, if no split trains on a row twice: conjugate gradients on all systems at once. A step is one
      float32 product for all folds and λ. One pivoted Cholesky approximation of K is the preconditioner, and residuals
      are in float64.
    * If these would converge slowly (a small λ, and a K without a good approximation of small rank): the same iteration
      with the float32 inverse of K + λI as preconditioner, for the remaining folds.
    * Otherwise, and if the inverse fails in float32: Cholesky for each fold and λ.

    Parameters
    ----------
    K : array of shape (n, n)
        In float64; not changed.
    Y : array of shape (n, targets)
    splits : list of Split
    alphas : array of numbers ≥ 0
    intercept : bool
        Whether to fit an intercept, which is not penalised.
    buffers : Buffers, optional
        Those of an earlier call, to reuse their memory.

    Returns
    -------
    list of arrays
        NaN if K[train, train] + λI is not positive definite, or K is not finite.

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
    if _leave_out_what_they_test(splits, n) and _one_decomposition_pays(n, splits, len(alphas), Y.shape[1] + intercept):
        _by_decomposition(K, Y, splits, alphas, intercept, out)
        return out
    if n > LARGE:
        K, alphas = _within_float32(K, alphas, buffers)
    todo = np.ones((len(splits), len(alphas)), bool)
    if n > LARGE and np.min(np.diagonal(K)) >= 0 and all(_shares_most_rows(split, n) for split in splits):
        together = _Together(K, Y, splits, alphas, intercept, buffers)
        together.by_approximation(out)
        together.by_inverses(out)
        todo = together.todo
    for split, predicted, left in zip(splits, out, todo, strict=True):
        if np.any(left):
            _by_cholesky(K, Y, split, alphas, np.flatnonzero(left), intercept, buffers, predicted)
    return out


def systems_are_solved_together(n: int, splits: list[Split], shifts: int, sides: int) -> bool:
    """Whether `held_out_predictions` solves the systems of all folds and λ together, with so many right-hand sides."""
    return n > LARGE and not _one_decomposition_pays(n, splits, shifts, sides)


def _one_decomposition_pays(n: int, splits: list[Split], shifts: int, sides: int) -> bool:
    """Whether one decomposition for all folds and λ is predicted to be faster than a factor for each."""
    systems, train = len(splits) * shifts, min((len(split.train) for split in splits), default=0)
    if n > LARGE:
        return systems * sides >= MANY * n
    machine = rates.machine(lambda machine: min(held_out_ways(machine, n, train, systems).values()))
    found = held_out_ways(machine, n, train, systems)
    return found["eigenvectors"] < found["cholesky"]


def _leave_out_what_they_test(splits: list[Split], n: int) -> bool:
    return all(
        len(s.train) + len(s.test) == n and len(np.union1d(s.train, s.test)) == n and len(s.train) for s in splits
    )


def _shares_most_rows(split: Split, n: int) -> bool:
    """Whether it trains on more than half of the rows, each once: one that is repeated has no place in a mask."""
    return len(split.train) > n // 2 and len(np.unique(split.train)) == len(split.train)


def _within_float32(K: Floats, alphas: Floats, buffers: Buffers) -> tuple[Floats, Floats]:
    """K and λ, divided by a power of two if entries are near the limits of float32. No prediction changes by that."""
    most = max(float(K.max()), -float(K.min()))
    power = int(np.frexp(most)[1])
    if abs(power) <= SAFE_POWER:
        return K, alphas
    return np.ldexp(K, -power, out=buffers.array("scaled", K.shape, np.float64)), np.ldexp(alphas, -power)


def _sides(Y: Floats, intercept: bool) -> Floats:
    """The right-hand sides: y, and a column of ones for an intercept."""
    return np.hstack([Y, np.ones((len(Y), 1))]) if intercept else Y


def _predicted(values: Floats, dual: Floats, intercept: bool) -> Floats:
    """K α + b from K `dual` with `dual` = [v, u]: (K + λ)v = y, (K + λ)u = 1, α = v − u b and b = Σv/Σu."""
    if not intercept:
        return values
    b = dual[:, :-1].sum(axis=0) / dual[:, -1:].sum()
    return np.asarray(values[:, :-1] - values[:, -1:] * b + b)


# ---- one decomposition ----------------------------------------------------------------------------------------------


def _by_decomposition(
    K: Floats, Y: Floats, splits: list[Split], alphas: Floats, intercept: bool, out: list[Floats]
) -> None:
    inverse: RidgeInverse
    if RidgeBand.pays(len(K)):
        inverse = RidgeBand.of(Dense(K, symmetric=True), intercept=intercept)
    else:
        inverse = RidgeSpectrum.of(np.array(K, order="C"), intercept=intercept)
    usable = np.flatnonzero(inverse.solvable(alphas))
    if not len(usable):
        return
    solved = inverse.solve(Y, alphas[usable])
    for split, predicted in zip(splits, out, strict=True):
        predicted[:, usable] = inverse.leave_out(split.test, Y, alphas[usable], solved)


# ---- all systems at once --------------------------------------------------------------------------------------------


class _Together:
    """The systems of all folds and λ > 0, and their solutions; `todo` marks the (split, λ) without one."""

    def __init__(
        self, K: Floats, Y: Floats, splits: list[Split], alphas: Floats, intercept: bool, buffers: Buffers
    ) -> None:
        self.splits, self.alphas, self.intercept, self.buffers = splits, alphas, intercept, buffers
        self.A = Dense(K, symmetric=True, beside_lapack=True)
        self.low_precision: Operator | None = None
        self.sides = _sides(Y, intercept)
        self.present = np.zeros((len(K), len(splits)), bool)
        for own, split in zip(self.present.T, splits, strict=True):
            own[split.train] = True
        self.absent = [np.flatnonzero(~own) for own in self.present.T]
        self.todo = np.ones((len(splits), len(alphas)), bool)

    def by_approximation(self, out: list[Floats]) -> None:
        """Solve all systems, preconditioned by a low-rank approximation of K, except those that converge slowly."""
        n, tried = len(self.sides), np.argwhere(self.alphas[None, :] * self.todo > 0)
        if not len(tried):
            return
        shifts = self._each(self.alphas[tried[:, 1]])
        F, left = self._approximation(float(shifts.min()))
        if not F.size:
            return
        # The number of columns of F that each shift needs. Half of the mean eigenvalue that they leave is added to the
        # shift, because eigenvalues spread over many directions act like a shift.
        ranks = np.searchsorted(-left, -ENOUGH * n * shifts).clip(min(FIRST, F.shape[1]), F.shape[1])
        subset, mu = self._each(tried[:, 0]), shifts + 0.5 * left[ranks - 1] / n
        M = SubsetInverse.of(F, self.absent, subset, mu, ranks)
        if M is None:
            return
        self._solve(tried, M, max(10, round(n * STEPS_A_ROW)), out)

    def by_inverses(self, out: list[Floats]) -> None:
        """Solve the remaining systems, preconditioned by (K + λ₀I)⁻¹ in float32, if enough folds share an inverse.

        First one inverse serves all λ of a decade, with λ₀ between them; then one inverse each remaining λ.
        """
        shared = np.sum(self.todo, axis=0) >= SHARING
        for group in [*_decades(self.alphas, shared), *np.argsort(self.alphas, kind="stable")[:, None]]:
            tried = np.argwhere(self.todo & np.isin(np.arange(len(self.alphas)), group))
            if len(tried) < SHARING:
                continue
            buffer = self.buffers.array("factor", self.A.shape, np.float32)
            np.copyto(buffer, self.A.array, casting="same_kind")
            factor = CholeskyFactor.of(buffer, float(np.sqrt(self.alphas[group[0]]) * np.sqrt(self.alphas[group[-1]])))
            M = None if factor is None else InverseWithout.of(factor, self.absent, self._each(tried[:, 0]))
            if M is not None:
                self._solve(tried, M, REFINEMENTS, out, CLOSER if self.intercept else TOL)

    def _each(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the systems, repeated for each right-hand side."""
        return np.repeat(values, self.sides.shape[1])

    def _solve(
        self,
        tried: NDArray[np.intp],
        M: SubsetPreconditioner,
        max_steps: int,
        out: list[Floats],
        tol: float = TOL,
    ) -> None:
        present, width = self.present[:, self._each(tried[:, 0])], self.sides.shape[1]
        B = np.where(present, np.tile(self.sides, len(tried)), 0.0)
        shifts = self._each(self.alphas[tried[:, 1]])
        systems = SubsetSystems(self.A, B, present, shifts, M, self.low_precision)
        found = solve(SubsetGradients(tol, max_steps), systems)
        good = np.all(found.state.converged.reshape(len(tried), -1), axis=1)
        for j in np.flatnonzero(good).tolist():
            (s, a), own = tried[j], slice(j * width, (j + 1) * width)
            values = found.state.images[self.splits[s].test, own]
            out[s][:, a] = _predicted(values, found.x[:, own], self.intercept)
            self.todo[s, a] = False

    def _approximation(self, shift: float) -> tuple[NDArray[Any], Floats]:
        """F with FFᵀ ≈ A, and tr(A − FFᵀ) after each column of F. Also sets `low_precision`, A for the products.

        F has as many columns as `ENOUGH` requires at the smallest shift, at most n/`MOST`, and only `FIRST` if these
        leave so much of the trace that more columns would explain little.
        """
        n = len(self.sides)
        kind: type[np.floating[Any]] = np.float32
        found = pivoted_cholesky(self.A, min(FIRST, n // MOST), dtype=np.float64)
        first, rounded = found.F, self.buffers.array("low_precision", self.A.shape, np.float32)
        if found.residual_trace > SPREAD * found.trace:
            self.low_precision = Deflated(self.A.array, first[:, :0], rounded)
        else:
            self.low_precision = Deflated(self.A.array, first[:, :DEFLATED], rounded)
            largest = float(np.linalg.eigvalsh(first.T @ first)[-1]) if found.rank else 0.0
            kind = np.float32 if shift >= NARROW * largest else np.float64
            found = pivoted_cholesky(self.A, n // MOST, tol=ENOUGH * n * shift, dtype=kind)
        explained = np.einsum("ij,ij->j", found.F, found.F, dtype=np.float64)
        return found.F.astype(kind, copy=False), np.maximum(found.trace - np.cumsum(explained), 0.0)


def _decades(alphas: Floats, shared: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Groups of two or more indices of `shared` λ > 0 within a decade, each in ascending order of λ.

    >>> [group.tolist() for group in _decades(np.array([1.0, 0.0, 0.1, 5.0]), np.ones(4, bool))]
    [[2, 0]]
    """
    groups: list[list[int]] = []
    for a in np.argsort(alphas, kind="stable").tolist():
        if shared[a] and alphas[a] > 0:
            if groups and alphas[a] <= TOGETHER * alphas[groups[-1][0]]:
                groups[-1].append(a)
            else:
                groups.append([a])
    return [np.array(group) for group in groups if len(group) > 1]


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
    factor = buffers.array("factor", (len(split.train), len(split.train)), dtype)
    sides = _sides(Y[split.train], intercept)
    solver = Cholesky(tol=TOL, precision="mixed" if large else "float64")
    for a in which:
        for i, row in enumerate(split.train):
            factor[i] = K[row][split.train]
        system = LinearSystem(_TrainingRows(K, split.train), sides, float(alphas[a]), matrix=factor)
        found = solve(solver, system)
        # A nearly singular system ends STALLED: its solution is as exact as float64 allows, and a fit would return it.
        if found.status in (Status.CONVERGED, Status.STALLED, Status.MAX_STEPS):
            dual = np.zeros((len(K), sides.shape[1]))
            np.add.at(dual, split.train, found.x)
            out[:, a] = _predicted((K @ dual)[split.test], dual, intercept)


class _TrainingRows(Operator):
    """A[rows, rows] of a symmetric array, without a copy; rows may repeat."""

    def __init__(self, array: Floats, rows: NDArray[np.intp]) -> None:
        self.array, self.index = array, rows
        super().__init__((len(rows), len(rows)), array.dtype, symmetric=True)

    def rows(self, I: Any) -> NDArray[Any]:
        """The entries of some rows."""
        return self.array[np.ix_(self.index[I], self.index)]

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        wide = np.zeros((len(self.array), V.shape[1]))
        np.add.at(wide, self.index, V)
        return np.asarray((self.array @ wide)[self.index], V.dtype)
