"""Exact kernel PCA: eigenpairs of the centred kernel matrix by LAPACK or block Krylov, checked by one product."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import KernelSize
from mercer.estimators.pca.subspace import Components
from mercer.gram import KernelOperator
from mercer.operators import Centered, Dense, Operator
from mercer.operators.arrays import require_finite
from mercer.planning import costs
from mercer.points import human, sample_rows
from mercer.solvers import BlockKrylov, DenseEigen, Eigenpairs, Eigenproblem, Solution, Status, rayleigh_ritz, solve
from mercer.solvers.choose import DENSE_BELOW
from mercer.ways.report import Report

__all__ = ["CentredEigenproblem", "CentredPairs", "checked", "exact_components", "krylov_method"]

WITNESSES = 128
"""Rows on which a check in float32 is compared with float64: a fiftieth of its operations at n = 7291."""

AHEAD = 8.0
"""The factor by which the last step of subspace iteration is assumed to lower the residual of the Krylov method. It was
4 to 10 (handwritten digits, 64 components, blocks of 112 to 256). If the check finds more, the iteration goes on.
"""

ROUNDINGS = 32.0
"""The largest eigenvalue that is rounding, over ε tr K: λ₁ of rows that are all equal was up to 10 ε tr K."""

HARMLESS = 0.1
"""The share of the tolerance that rounding may take in the check."""
OF_ENTRIES = 0.1
"""The share of the tolerance that rounding of the entries may take."""

TIGHT = 1e-12
"""The residual, over λ₁, with which small eigenvalues beside a large one are found."""

SQUARED = 1e-130, 1e150
"""The range of kernel values of which residuals of `TIGHT` have squares that float64 holds."""

ALTERNATIVES = ["fewer components", 'solver="krylov" (matrix-free) or "nystroem" (landmarks)', "fewer rows"]


class CentredPairs(NamedTuple):
    """The eigenpairs of the centred kernel matrix, the column means of the kernel matrix, and the norm of what float32
    changed in their images (0 if only float64 was used).
    """

    pairs: Eigenpairs
    column_means: np.ndarray
    rounding: float = 0.0

    @property
    def scale(self) -> float:
        """The largest |eigenvalue|."""
        return max(float(np.abs(self.pairs.values).max()), np.finfo(np.float64).tiny)

    @property
    def unresolved(self) -> bool:
        """Whether an eigenvalue's residual is a quarter of it or more, so that it says little, not even the sign."""
        return bool(np.any(4 * self.pairs.residuals >= np.abs(self.pairs.values)))


def checked(K: Operator, V: np.ndarray, exact: Operator | None = None, seed: int = 0) -> CentredPairs:
    """The best pairs of the centred matrix in the span of V by one product, which gives the column means too.

    Without `exact` the product is K V in float64. With it the vectors are rounded to float32 first, and on m random
    rows the product is compared with that of `exact` and the vectors before rounding: √(n/m) times the norm of the
    difference, the largest over the vectors, estimates by how much a residual may be off.
    """
    V = V - V.mean(axis=0)
    n, B = len(V), np.column_stack([V, np.full(len(V), 1 / len(V))])
    images, rounding = np.asarray(K @ (B if exact is None else B.astype(np.float32)), np.float64), 0.0
    if exact is not None:
        rows = some_rows(n, seed)
        change = images[rows] - np.asarray(exact.rows(rows), np.float64) @ B
        rounding = float(np.sqrt(n / len(rows)) * np.linalg.norm(change[:, :-1], axis=0).max())
    pairs = rayleigh_ritz(V, images[:, :-1] - images[:, :-1].mean(axis=0))
    return CentredPairs(pairs, images[:, -1], rounding)


def some_rows(n: int, seed: int) -> np.ndarray:
    """`WITNESSES` of n rows at random."""
    return sample_rows(n, WITNESSES, seed)


@dataclass(frozen=True, eq=False)
class CentredEigenproblem:
    """K̃v = Nλv for the k largest Nλ."""

    K: KernelOperator
    k: int
    tol: float
    """Largest residual, over Nλ₁."""
    trace: float
    """tr K."""
    seed: int
    report: Report
    account: Callable[[Report, Solution[Any], float], None]
    """Writes the solver's outcome into the report."""

    @cached_property
    def mean(self) -> float:
        """The mean of some rows of K: it only tells the size of the entries, and all rows would cost a product."""
        return float(np.mean(self.K.rows(some_rows(self.K.shape[0], self.seed)), dtype=np.float64))

    def by_lapack(self) -> CentredPairs:
        """On the whole matrix in float64."""
        K, n = self.K, self.K.shape[0]
        # For few rows one stored matrix serves LAPACK, the means and the residuals: making entries again costs more.
        few = n <= DENSE_BELOW
        centered = Centered(Dense(K.fill(np.empty(K.shape)), symmetric=True) if few else K)
        require_finite(centered.column_means, "KernelPCA")
        with self.report.stage("eigenvalues"), one_blas_thread(costs.eigen_operations(n)):
            solution = solve(DenseEigen(), Eigenproblem(centered, self.k))
        self.report.precision = "float64"
        self.account(self.report, solution, self.tol)
        return CentredPairs(solution.x, centered.column_means)

    def by_krylov(self, size: KernelSize, low_precision: bool) -> CentredPairs:
        """With float32 entries if their rounding stays below the tolerance, else with float64 ones.

        If an eigenvalue is within its residual, all are found again in float64 to a residual of `TIGHT`.
        """
        self._require_squares()
        solution, found = self._by_entries(size) if low_precision else self._krylov(np.float64)
        again = solution.converged and (low_precision or self.tol > TIGHT)
        if again and found.unresolved and found.pairs.values[0] > self._noise(found):
            said = f"an eigenvalue is small beside {found.scale:.1e}, the largest one"
            if self._wide_bytes <= self.report.memory_budget - self.K.copies:
                self.report.notes.append(f"{said}: residuals are {TIGHT:.0e} of that")
                del solution, found  # their memory is for those of float64
                solution, found = replace(self, tol=min(self.tol, TIGHT))._in_float64()
            else:
                self.report.notes.append(f"{said}, and may be far from the right one: memory= is too small for float64")
        self.account(self.report, solution, self.tol)
        return found

    def _by_entries(self, size: KernelSize) -> tuple[Solution[Any], CentredPairs]:
        """The pairs by float32 entries, or by float64 ones if rounding would take a part of the tolerance."""
        # Rounding moves the eigenvalues by the norm of a random matrix of this size.
        error = float(np.finfo(np.float32).eps) * np.sqrt(self.report.n) * size.largest_entry
        with self.K.astype(np.float32).ahead_of_products():
            whole = abs(self.trace - self.report.n * self.mean)
        if error <= OF_ENTRIES * self.tol * whole:  # λ₁ is a part of that
            solution, found = self._krylov(np.float32)
            noise = self._noise(found)
            error = max(error, noise if found.pairs.values[0] <= noise else 0.0)
            if error <= OF_ENTRIES * self.tol * found.scale:
                return solution, found
            del solution, found  # their memory is for those of float64
        self.report.notes.append(f"float32 entries would shift eigenvalues by {error:.0e}, so float64 ones were used")
        return self._in_float64()

    def _noise(self, found: CentredPairs) -> float:
        """The largest eigenvalue that is rounding of float32 entries."""
        return noise_of(self.trace, self.report.n, float(found.column_means.mean()), np.float32)

    def _require_squares(self) -> None:
        """Refuse kernel values whose squares, which the method sums, are out of float64's range."""
        mean = abs(self.trace) / self.report.n
        if mean and not SQUARED[0] < mean < SQUARED[1]:
            given = f"k(x, x) of {mean:.1e} on average, whose squares float64 does not hold"
            raise InvalidInput(message("KernelPCA", given, 'standardise the columns, or set solver="dense"'))

    @property
    def _wide_bytes(self) -> int:
        """Bytes of the vectors in float64."""
        return BlockKrylov().memory(self.report.n, self.k, 8)

    def _in_float64(self) -> tuple[Solution[Any], CentredPairs]:
        """The pairs by float64 entries after those of float32, which are stored if the others were and they fit."""
        report = self.report
        report.memory_rows = self.K.copies
        vectors, whole = self._wide_bytes, 8 * report.n**2
        stored = "stored" in report.method and vectors + whole <= report.room
        report.method = krylov_method(report.n, 8, stored)
        report.plan(vectors + stored * whole, "KernelPCA", ALTERNATIVES)
        return self._krylov(np.float64)

    def _krylov(self, dtype: Any) -> tuple[Solution[Any], CentredPairs]:
        """The pairs by entries of this precision."""
        K, report = self.K, self.report
        operator: Operator = K.astype(dtype)
        if "stored" in report.method:
            with report.stage("kernel matrix"):
                operator = Dense(operator.fill(np.empty(K.shape, dtype)), symmetric=True)
        with one_blas_thread() if isinstance(operator, KernelOperator) else nullcontext():
            solution, found = self._iterated(operator)
        report.precision = self._precision(np.dtype(dtype).name, found)
        return solution, found

    def _iterated(self, operator: Operator) -> tuple[Solution[Any], CentredPairs]:
        """Block Krylov, stopped when its images are expected to meet the tolerance, and on if the check finds more."""
        n = operator.shape[0]
        noise = noise_of(self.trace, n, self.mean, operator.dtype)
        problem, state = Eigenproblem(Centered(operator), self.k, self.seed, noise), None
        for ahead in (AHEAD, 1.0, 1 / AHEAD):
            with self.report.stage("eigenvalues"):
                solution = solve(BlockKrylov(tol=ahead * self.tol), problem, state=state)
            if solution.x is None:
                raise InvalidInput(message("KernelPCA", "no eigenvalues were found", solution.status.advice))
            with self.report.stage("check"):
                found = self._check(operator, solution.x.powered())
            solution = replace(solution, residual=float(found.pairs.residuals.max()) / found.scale)
            if found.pairs.values[0] <= noise and solution.converged:
                return replace(solution, residual=0.0), found
            if solution.residual <= self.tol or not solution.converged:
                return solution, found
            state = solution.state
        return replace(solution, status=Status.STALLED), found

    def _check(self, operator: Operator, V: np.ndarray) -> CentredPairs:
        """In float32 if that changes little, else in float64, with float64 entries if these are cheap."""
        exact = self.K if self.K.cheap else operator
        if operator.dtype == np.float32:
            found = checked(operator, V, exact, self.seed)
            if found.rounding <= HARMLESS * self.tol * found.scale:
                return found
        return checked(exact, V)

    def _precision(self, dtype: str, found: CentredPairs) -> str:
        """The precision of the iterations and of the check, for the report; the check recomputes cheap entries."""
        cheap = self.K.cheap
        if not found.rounding:
            return f"{dtype} {'products' if cheap else 'entries'}, float64 eigenvalues and residual"
        share, rows = found.rounding / found.scale, min(WITNESSES, len(found.column_means))
        products = f"{dtype} products," if cheap else f"{dtype} entries, products"
        return f"{products} {share:.0e} λ₁ from those in float64 (seen on {rows} rows)"


def krylov_method(n: int, itemsize: int, stored: bool) -> str:
    """Block Krylov's name in reports, with the bytes of a matrix that is stored."""
    how = f"stored in float{8 * itemsize} ({human(itemsize * n * n)})" if stored else "matrix-free"
    return f"block Krylov, {how}"


def noise_of(trace: float, n: int, mean: float, dtype: Any) -> float:
    """The largest eigenvalue of the centred matrix that rounding can make of n² entries of this dtype and mean."""
    size = max(abs(trace), abs(trace - n * mean))
    return ROUNDINGS * float(np.finfo(dtype).eps) * size


def rounding_of(n: int, dtype: str) -> float:
    """The largest share of λ₁ that rounding makes of an eigenvalue: in LAPACK, which grows with n, or of the rows.

    Entries of float32 rows are in float64, or checked by it, so that the rows' own rounding is as of single entries.
    """
    return max(float(np.finfo(np.float64).eps) * n, float(np.finfo(dtype).eps) * min(n, ROUNDINGS))


def exact_components(found: CentredPairs, trace: float, dtype: str) -> Components:
    """The pairs above rounding noise, the entry of largest magnitude of each vector positive; `trace` is tr K."""
    values, vectors = found.pairs.values, np.asarray(found.pairs.vectors, np.float64)
    n, largest, mean = len(vectors), max(float(found.pairs.values[0]), 0.0), float(found.column_means.mean())
    variance = trace - n * mean
    # If all rows are the same, or no eigenvalue is positive, even λ₁ is rounding: that of K before it was centred.
    noise = noise_of(trace, n, mean, np.float64)
    kept = values > max(rounding_of(n, dtype) * largest, noise)
    values, vectors = values[kept], vectors[:, kept]
    vectors = vectors - vectors.mean(axis=0)
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    vectors = vectors * np.where(top < 0, -1.0, 1.0)
    means = found.column_means
    return Components(values, vectors / np.sqrt(values), np.full(n, 1 / n), means, n, variance, vectors)
