"""Kernel ridge regression in the span of landmarks, f = Σⱼ βⱼ k(·, bⱼ), for more rows than exact methods allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from mercer.approx.landmarks import choose_landmarks
from mercer.approx.nystroem import inverse_root
from mercer.approx.nystroem_ridge import (
    OVERSAMPLING,
    HeldRoot,
    NystroemRidgeSystem,
    Root,
    TriangularRoot,
    held_root,
    jittered_cholesky,
    nystroem_ridge_factor,
)
from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.factorizations.spectrum import ENTRIES
from mercer.gram import KernelOperator
from mercer.gram.operator import GRAM
from mercer.kernels import Kernel
from mercer.numerals import counted
from mercer.points import human, sample_rows
from mercer.select import RidgeSpectrum
from mercer.solvers import LinearSystem, RefinedConjugateGradients, Solution, solve
from mercer.ways.report import Report

__all__ = ["EVALUATION", "NystroemRidge", "NystroemRidgeFit", "default_landmarks", "too_dear"]

POOL = 4
"""Rows per landmark among which pivoted Cholesky chooses; among all rows it would take n m² operations."""

TINY = float(np.finfo(np.float64).tiny)

LEAST_HELD, LEAST_TOL = 2048, 1e-4
"""From so many landmarks and this tolerance on K_mm is factored in the memory of an engine that has its own. The
processor factors fewer in less than a second. Its factor of the normal equations costs 8 times the operations, but
conjugate gradients take 2 to 20 steps. By the held ones they take 8 to 27 at d = 28 and 400 at d = 8 for 1e-3, twice
and four times as many for 1e-6."""

CHECKED, CHECKED_WHERE_HELD = 512, 32
"""Rows on which the share of k(x, x) outside the landmarks' span is measured, each a product with K_mm where that is
not stored."""

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""ROUNDING ‖C‖‖β‖/‖B‖ is the smallest residual in the coordinates z = Cβ that rounding of β and of the products allows.
Systems of 2000 to 4000 rows, with γ and λ over three decades, stalled at 0.2 ε to 9 ε times that ratio."""


class NystroemRidgeFit(NamedTuple):
    """The landmarks, β and b of each target, the solution with the largest residual, and the residual from rounding."""

    landmarks: Any
    coefficients: np.ndarray
    intercept: np.ndarray
    solution: Any
    rounding: float = 0.0


EVALUATION = 20
"""Multiply-adds that the function of an entry takes, beside those of its columns."""
DEAREST = 4e12
"""Beyond this work of a product "auto" takes landmarks: an exact solution needs a hundred of them.
Because landmarks are an approximation, this does not depend on the rates of the machine."""


def default_landmarks(n: int) -> int:
    """5 √n, at most n: of the order √n log n, which keeps the learning rate of the exact method (Rudi et al. 2015).

    >>> default_landmarks(1_000_000), default_landmarks(16)
    (5000, 16)
    """
    return int(max(1, min(n, 5 * np.sqrt(n))))


def too_dear(work: float, kernel: Kernel) -> str:
    """The reason why a method with products of this work is too expensive, or an empty string if it is not."""
    if work <= DEAREST or not kernel.properties.definiteness.is_mercer or kernel.space.numbered:
        return ""
    return f"an exact solution would need {100 * work:.0e} multiply-adds"


@dataclass
class NystroemRidge:
    r"""min over β, b of Σᵢ wᵢ (yᵢ − (K_nm β)ᵢ − b)² + λ βᵀ K_mm β.

    Conjugate gradients solve (K_nmᵀ W K_nm + λ K_mm) β = K_nmᵀ W (y − b), preconditioned by a factor of the normal
    equations of sampled rows. b follows from the Schur complement of the system.
    """

    who: str
    K: KernelOperator
    X: Any
    Y: np.ndarray
    alphas: np.ndarray
    weights: np.ndarray | None
    fit_intercept: bool
    landmarks: Any
    n_landmarks: int | None
    tol: float
    low_precision: bool
    seed: int
    report: Report

    def run(self) -> NystroemRidgeFit:
        """Choose the landmarks, solve the system, and report the share of k(x, x) outside the landmarks' span."""
        report = self.report
        landmarks, K_nm = self._span(self._planned())
        report.method += ", matrix-free conjugate gradients"
        m, targets = K_nm.shape[1], self.Y.shape[1]
        K_mm = self._operator(landmarks) if self._holds(m) else self._between(landmarks)
        found = NystroemRidgeFit(landmarks, np.empty((m, targets)), np.zeros(targets), None)
        for value in np.unique(self.alphas):
            own = np.flatnonzero(self.alphas == value)
            with report.stage("preconditioner"):
                root, jitter = self._root(K_nm, K_mm, float(value))
            if jitter:
                report.notes.append(f"the preconditioner's factor was jittered by {jitter:.0e}; the system was not")
            system = NystroemRidgeSystem(K_nm, K_mm, float(value), root, self.weights)
            with report.stage("solve"), one_blas_thread():
                solution, coefficients, intercept, rounding = self._solved(system, self.Y[:, own])
            found.coefficients[:, own], found.intercept[own] = coefficients, intercept
            if found.solution is None or solution.residual > found.solution.residual:
                found = found._replace(solution=solution, rounding=rounding)
        report.precision = f"{getattr(found.solution.state, 'precision', 'float64')}, residual in float64"
        self._measure_rest(K_nm, K_mm, root)
        return found

    def _root(self, K_nm: KernelOperator, K_mm: np.ndarray | KernelOperator, alpha: float) -> tuple[Root, float]:
        """C for a λ, and its jitter."""
        if isinstance(K_mm, KernelOperator):
            weight = len(self.Y) if self.weights is None else float(self.weights.sum())
            return held_root(K_mm, alpha, weight, self.seed)
        C, jitter = nystroem_ridge_factor(K_nm, K_mm, alpha, self.weights, self.seed)
        return TriangularRoot(C), jitter

    def spectrum(self, answers: int) -> RidgeSpectrum:
        """(K̃ + λI)⁻¹ for every λ, K̃ = K_nm K_mm⁻¹ K_mn: this regression is that of all rows with K̃ for K.

        `answers` are the bytes of what will be asked of it.
        """
        n, report = len(self.Y), self.report
        m = self._planned()
        features, blocks = 0 if self.K.x.window else 8 * n * m, 3 * 8 * min(n * m, ENTRIES)
        do = "lower n_landmarks=, or try fewer α"
        report.plan(self._bytes(m) + features + blocks + answers, f"{self.who} on {n} rows with {m} landmarks", do)
        landmarks, K_nm = self._span(m)
        K_mm = self._between(landmarks)
        with report.stage("features"):
            root, _ = inverse_root(K_mm, float(np.finfo(np.float64).eps))
            Phi = self.K.x.scratch((n, root.shape[1]), np.float64)
            K_nm.features(root, out=Phi)
        with report.stage("eigenvalues"), one_blas_thread():
            report.method += ", singular values of the features of all rows"
            return RidgeSpectrum.of_factor(Phi, self.weights, intercept=self.fit_intercept)

    def _holds(self, m: int) -> bool:
        """Whether K_mm is factored in the memory of the engine, and not stored in this process."""
        able = self.low_precision and LEAST_HELD <= m <= self.K.cholesky_rows
        return able and (self.tol >= LEAST_TOL or self._bytes_here(m) > self.report.room)

    def _span(self, m: int) -> tuple[Any, KernelOperator]:
        """The landmarks and K_nm; says in the report what they are."""
        report, kernel = self.report, self.K.kernel
        with report.stage("landmarks"):
            entries = self.K.astype(np.float32) if self.low_precision else self.K
            _, landmarks = choose_landmarks(self.who, self.landmarks, entries, self.X, m, self.seed, POOL * m)
            K_nm = KernelOperator(kernel, self.X, landmarks, dtype=np.float64)
        how, m = self.landmarks if isinstance(self.landmarks, str) else "given", K_nm.shape[1]
        report.method, report.rank = f"restricted to {counted(m, 'landmark')} ({how})", m
        return landmarks, K_nm

    def _solved(
        self, system: NystroemRidgeSystem, Y: np.ndarray
    ) -> tuple[Solution[Any], np.ndarray, np.ndarray, float]:
        """The solution for some targets, β, b, and the residual that rounding leaves."""
        targets = Y.shape[1]
        ones = np.ones((len(Y), 1 if self.fit_intercept else 0))
        B = system.right_side(np.hstack([Y, ones]))
        low_precision = {"low_precision": system.astype(np.float32)} if self.low_precision else {}
        solution = solve(RefinedConjugateGradients(tol=self.tol), LinearSystem(system, B, **low_precision))
        Z = np.asarray(solution.x)
        sizes = np.linalg.norm(system.coefficients(Z), axis=0) / np.maximum(np.linalg.norm(B, axis=0), TINY)
        rounding = ROUNDING * system.root.norm * float(sizes.max())
        intercept = np.zeros(targets)
        if self.fit_intercept:
            # 1ᵀW(y − K_nm β − b) = 0 with z = v − u b and 1ᵀW K_nm β = ⟨B₁, z⟩.
            w = np.ones(len(Y)) if self.weights is None else self.weights
            v, u, b1 = Z[:, :targets], Z[:, targets], B[:, targets]
            intercept = (w @ Y - b1 @ v) / (w.sum() - b1 @ u)
            Z = v - np.outer(u, intercept)
        return solution, system.coefficients(Z), intercept, rounding

    # ---- memory plan and measured error -----------------------------------------------------------------------------

    def _planned(self) -> int:
        """The number of landmarks. Plans their memory before anything is allocated."""
        n, report, m = len(self.Y), self.report, self.n_landmarks
        given = m is not None or not isinstance(self.landmarks, str)
        if not isinstance(self.landmarks, str):
            m = (np.shape(self.landmarks) or (1,))[0]
        if m is None:
            m = default_landmarks(n)
            while m > 100 and self._bytes(m) > report.room:
                m = int(0.8 * m)
            if m < default_landmarks(n):
                report.notes.append(f"the memory budget of {human(report.memory_budget)} allows {m} landmarks")
        if isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
            raise InvalidInput(message(self.who, f"n_landmarks={m!r}", "give a positive integer, or None"))
        m = int(m) if not isinstance(self.landmarks, str) else min(int(m), n)
        report.memory_rows = self.K.copies + self.K.x.nbytes * m // n
        do = "lower n_landmarks=" if given else "fewer rows or targets"
        report.plan(self._bytes(m), f"{self.who} on {n} rows with {m} landmarks", do)
        return m

    def _bytes(self, m: int) -> int:
        """Bytes of the landmarks' matrices that are in this process, or of vectors if those are held by the engine."""
        if not self._holds(m):
            return self._bytes_here(m)
        r, pivoted = self.Y.shape[1], isinstance(self.landmarks, str) and self.landmarks == "pivoted"
        vectors = 8 * m * (4 * CHECKED_WHERE_HELD + 12 * (r + 1))
        return max(vectors, self._pool_bytes(m) if pivoted else 0) + self._rows_bytes

    def _bytes_here(self, m: int) -> int:
        """Bytes of K_mm, C and its workspace, the factor of the pivots, one chunk of entries, and the vectors."""
        chunk = 8 * min(min(len(self.Y), OVERSAMPLING * m) * m, GRAM) * 2
        return max(8 * m * m * 4 + chunk, self._pool_bytes(m) + 8 * m * m) + self._rows_bytes

    def _pool_bytes(self, m: int) -> int:
        return (4 if self.low_precision else 8) * min(len(self.Y), POOL * m) * m

    @property
    def _rows_bytes(self) -> int:
        return 8 * len(self.Y) * (self.Y.shape[1] + 1) * 2

    def _between(self, landmarks: Any) -> np.ndarray:
        """K_mm in float64."""
        if self.K.kernel.space.numbered:
            return np.asarray(self.K.block(landmarks, landmarks), np.float64)
        return np.asarray(self._operator(landmarks).toarray())

    def _operator(self, landmarks: Any) -> KernelOperator:
        return KernelOperator(self.K.kernel, landmarks, dtype=np.float64)

    def _measure_rest(self, K_nm: KernelOperator, K_mm: np.ndarray | KernelOperator, root: Root) -> None:
        """Report Σ (k(x, x) − k_m(x)ᵀ K_mm⁻¹ k_m(x)) of some rows: squared distances from the landmarks' span.

        By held factors, which are rounded, b ≈ K_mm⁻¹ k_m gives 2 k_mᵀb − bᵀK_mm b, at most k_mᵀ K_mm⁻¹ k_m for any b.
        """
        n = len(self.Y)
        some = sample_rows(n, CHECKED_WHERE_HELD if isinstance(root, HeldRoot) else CHECKED, [self.seed, 5])
        rows = np.asarray(K_nm.block(some, np.arange(K_nm.shape[1])), np.float64)
        if isinstance(root, HeldRoot):
            b = root.inverse(np.ascontiguousarray(rows.T))
            inside = np.sum((2 * rows.T - np.asarray(K_mm @ b)) * b, axis=0)
        else:
            C, _ = jittered_cholesky(np.asarray(K_mm))
            inside = np.sum(scipy.linalg.solve_triangular(C, rows.T, trans="T", check_finite=False) ** 2, axis=0)
        whole = np.asarray(self.K.principal(some).diagonal(), np.float64)
        share = float(np.sum(np.maximum(whole - inside, 0.0))) / max(float(np.sum(whole)), np.finfo(float).tiny)
        measured = ("at most " if isinstance(root, HeldRoot) else "") + f"{share:.1e}"
        self.report.notes.append(f"the landmarks leave out {measured} of k(x, x), measured on {len(some)} rows")
