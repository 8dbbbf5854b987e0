"""(K + diag(shift)) X = B by the faster method: Cholesky, or preconditioned conjugate gradients.

======================================================================  =====================================
first row that holds                                                    taken
======================================================================  =====================================
n < 5000, or the kernel is not proved positive semi-definite,
or a shift is 0, and a float32 copy of K fits in 40 % of the budget     Cholesky
a float32 copy fits, and Cholesky costs fewer products than predicted   Cholesky
otherwise                                                               preconditioned conjugate gradients
======================================================================  =====================================

Conjugate gradients keep the entries in 16 bits where these n² bytes fit in 40 % of the budget, are exact enough for the
shift, and are predicted to be read more quickly than made anew so many times; where not, products are matrix-free.

Costs are counted in products K v with float64 entries (see `plan`); those of conjugate gradients are predicted from the
residual trace of a randomly pivoted Cholesky approximation of small rank, and may be half of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer.engine.backend import one_blas_thread
from mercer.factorizations.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from mercer.factorizations.preconditioner import preconditioner, rest
from mercer.gram import KernelOperator
from mercer.operators import Dense, Operator, Quantised
from mercer.points import human
from mercer.solvers import Cholesky, LinearSystem, RefinedConjugateGradients, Solution, solve
from mercer.solvers.choose import STORED_SHARE, choose_linear
from mercer.ways.report import Report

__all__ = ["Plan", "RegularisedSolve", "plan"]

DIRECT_BELOW = 5000
"""Rows below which Cholesky takes a fraction of a second."""
SMALL = 500
"""Rows up to which float64 alone is the quickest: one step of refinement, on entries that are made once."""
PROBE = 240
"""Pivots of the approximation from which the steps are predicted."""
MOST_RANK = 3500
"""Beyond it the memory n r is the limit, 1.6 GB in all at n = 100 000. There (d = 20, λ = 1e-6 n) 2000 pivots took 23 s
with their eigenvectors and 74 steps of 3.9 s, 3000 without 48 steps (and 32 s beside another job)."""
MOST_NOISE = 0.25
"""ε‖K‖√κ/μ beyond which float32 products delay convergence by more than they save."""
MOST_ROUNDING = 0.1
"""‖K̃ − K‖/μ beyond which entries in 16 bits, K̃, are not used: what a round may leave of a residual."""
DRIFT = 4.0
"""A round in 16 bits asks for ‖K̃ − K‖/(4μ), see `RefinedConjugateGradients`: at n = 20 000 and ‖K̃ − K‖/μ = 0.07 111
steps and four checks, where 1/8 takes 122 and three, and as long."""
READING = 0.34
"""Float64 products at d = 0 that a product of stored entries costs: 42 ms of 125 at n = 20 000 on one core."""
EXTRA = 1.25
"""More steps by rounds in 16 bits than in float32: 150 against 119 at n = 10 000 and ‖K̃ − K‖/μ = 0.07."""

NARROW_SHARE = 0.98
"""Of the budget that copies of the rows for float32 entries and for float64 ones may take, with the vectors."""


class Plan(NamedTuple):
    """The rank of a preconditioner, the steps expected with it, and the cost of all that in products."""

    rank: int
    steps: float
    products: float


def plan(
    n: int, d: int, trace: float, shift: float, tol: float, most: int, stored: bool = False, columns: int = 1
) -> Plan:
    r"""The rank r with the least (r²/20 + 80 r)/p + `iterations`, for s = ½ √(1 + t/(2rμ)) ln(2/tol) steps.

    t is the residual trace of a smaller approximation, μ the shift. The largest eigenvalue that r pivots leave is taken
    as t/(2r): within a factor of two of what was measured for r from 100 to 1000 at n = 10 000 (d = 20, Gaussian). The
    first term is the building of the preconditioner, p = n(1 + d/20); measured on two cores. `stored` says whether
    entries may be kept in 16 bits, `columns` is the number of right-hand sides.

    Examples
    --------
    >>> easy, hard = plan(10_000, 20, 4427.0, 1.0, 1e-10, 1000), plan(10_000, 20, 4427.0, 0.01, 1e-10, 1000)
    >>> easy.rank, round(easy.steps), hard.products > 100
    (480, 28, True)
    """
    plans = []
    rank = min(PROBE, most)
    while True:
        steps = predicted_steps(trace, rank, shift, tol)
        cost = min(iterations(n, d, rank, steps, kept, columns) for kept in {False, stored})
        plans.append(Plan(rank, steps, (rank**2 / 20 + 80 * rank) / (n * (1 + d / 20)) + cost))
        if rank >= most:
            return min(plans, key=lambda p: p.products)
        rank = min(2 * rank, most)


def predicted_steps(trace: float, rank: int, shift: float, tol: float) -> float:
    """½ √(1 + t/(2rμ)) ln(2/tol) steps of conjugate gradients with r pivots that leave a trace t."""
    kappa = 1 + trace / (2 * max(rank, 1) * shift)
    return float(max(0.5 * np.sqrt(kappa) * np.log(2 / max(tol, 1e-16)), 1.0))


def iterations(n: int, d: int, rank: int, steps: float, stored: bool, columns: int = 1) -> float:
    """What steps cost in float64 products: half of one each with float32 entries, or the reading of stored ones.

    To that come two readings of the preconditioner, the checks in float64, and the filling of what is stored, which
    is a product and the first touch of its memory.

    Examples
    --------
    >>> [round(iterations(20_000, d, 960, 80, stored)) for d in (3, 20, 100) for stored in (False, True)]
    [58, 55, 52, 34, 47, 15]
    >>> [round(iterations(20_000, d, 960, 80, False, columns=26)) for d in (3, 20, 100)]
    [202, 116, 64]
    """
    wide, read = width(d, columns), 4.2 * rank / (n * (1 + d / 20)) * max(1.0, columns / 16)
    if not stored:
        return (0.5 * wide + read) * steps + 4 * wide
    return (READING / (1 + d / 20) * wide + read) * EXTRA * steps + 5.5 * wide + 2.4 / (1 + d / 20)


def width(d: int, columns: int) -> float:
    """What a product with so many columns costs, in products with one: the entries are computed once.

    Measured with float32 entries at n = 8192: 10 to 26 columns 4.0, 2.8 and 1.6 at d = 3, 16 and 100; 64 columns 8.0,
    5.1 and 1.9; two 1.2 at most.

    >>> [round(width(d, columns), 1) for d in (3, 16, 100) for columns in (2, 10, 64)]
    [1.0, 4.1, 8.6, 1.0, 2.5, 4.8, 1.0, 1.4, 1.9]
    """
    return 1.0 if columns <= 2 else 1 + 40 / (d + 10) * max(1.0, columns / 26)


def direct_products(n: int, d: int) -> float:
    """Cholesky's cost in float64 products, n/(100 (1 + d/20)): 1.6 s against 32 ms at n = 10 000, d = 20."""
    return n / (100 * (1 + d / 20))


@dataclass
class RegularisedSolve:
    """One solve: who asks, what for, by which solver, how exactly, and the report to fill.

    `solver` is "auto", "cholesky" or "cg".
    `narrow` says whether float32 can hold the entries and rows; `mercer` whether the kernel is proved to be one.
    """

    who: str
    K: KernelOperator
    B: np.ndarray
    shift: Any
    solver: str
    tol: float
    narrow: bool
    mercer: bool
    report: Report

    def run(self) -> Solution[Any]:
        """The solution by the road that the table names; by Cholesky where the other one failed and K fits."""
        fits = self._fits()
        if self.solver == "cholesky" or (self.solver == "auto" and fits and not self._may_iterate()):
            return self._direct("asked for" if self.solver == "cholesky" else self._choice.reason)
        if self.solver == "cg" or not fits:
            reason = "asked for" if self.solver == "cg" else self._choice.reason
            return self._iterative(reason, None)
        return self._contest()

    def _contest(self) -> Solution[Any]:
        """Both roads are open: the one that is predicted to cost less."""
        n, d = len(self.B), max(self.report.d, 1)
        most, columns = self._most_rank(), self.B.size // n
        direct, least = direct_products(n, d), iterations(n, d, rank=0, steps=1, stored=False, columns=columns)
        if direct <= least:
            figures = f"{least:.1f} products' time at least, against {direct:.1f} for it"
            return self._direct(f"{self._choice.reason}, and conjugate gradients would take {figures}")
        with self.report.stage("probe"):
            trace = pivoted_cholesky(self._entries(), PROBE).residual_trace
        found = plan(n, d, trace, self._mean_shift(), self.tol, most, self._may_store(0), columns)
        figures = f"{found.products:.0f} products' time predicted, {found.steps:.0f} steps, against {direct:.0f} for "
        if found.products >= direct:
            return self._direct(f"{self._choice.reason}, and conjugate gradients would take {figures}it")
        # As long as Cholesky would take, or twice as long as was predicted: then the prediction was wrong.
        most_steps = int(found.steps * max(2.0, direct / found.products))
        solution = self._iterative(f"{figures}Cholesky", found.rank, max_steps=most_steps)
        if solution.converged:
            return solution
        self.report.notes.append(f"conjugate gradients ended {solution.status.name.lower()}, so Cholesky was taken")
        return self._direct("conjugate gradients did not converge")

    # ---- the roads ---------------------------------------------------------------------------------------------------

    def _direct(self, reason: str) -> Solution[Any]:
        n, report = len(self.B), self.report
        kept = self._keeps_entries()
        narrow = self.narrow and not (kept and n <= SMALL)
        need = (4 if narrow else 8) * n * n
        self._account(f"Cholesky of the stored matrix ({human(need)})", reason, need + 8 * n * n * kept)
        K: Operator = self.K
        with report.stage("kernel matrix"):
            if kept:
                K = Dense(K.fill(np.empty(K.shape)), symmetric=True, beside_lapack=True)
                report.method += f", refined by its entries in float64 ({human(8 * n * n)})"
            else:
                self.K.release()  # fewer copies of the rows at a time
            matrix = K.fill(np.empty(K.shape, np.float32 if narrow else np.float64))
        solver = Cholesky(tol=self.tol, precision="mixed" if narrow else "float64")
        with report.stage("solve"):
            return solve(solver, LinearSystem(K, self.B, self.shift, matrix=matrix))

    def _iterative(self, reason: str, rank: int | None, max_steps: int | None = None) -> Solution[Any]:
        report, most = self.report, self._most_rank()
        rank = most if rank is None else rank
        held = 4 * len(self.B) * rank * (1 if self._mixed else 2) + 4 * 8 * rank**2
        self._account("conjugate gradients, matrix-free", reason, held)
        helpers: dict[str, Operator] = {}
        solver = RefinedConjugateGradients(tol=self.tol, max_steps=max_steps)
        if rank:
            with report.stage("preconditioner"), one_blas_thread(2.0 * len(self.B) * rank**2):
                found = pivoted_cholesky(self._entries(), rank, tol=float(np.min(self.shift)))
                rounding = float(np.finfo(np.float32).eps) * found.norm(1 / np.sqrt(self.shift))
                shift = self.shift + rest(self._entries(), found)
                helpers["preconditioner"] = preconditioner(found.F, shift, overwrite=True)
            report.method += f", preconditioned by {found.rank} pivots"
            if self._mixed:
                solver = self._narrowed(helpers, solver, found, rounding, held)
        # What BLAS does here is bound by memory anyway.
        with report.stage("solve"), one_blas_thread():
            return solve(solver, LinearSystem(self.K, self.B, self.shift, **helpers))

    def _narrowed(
        self,
        helpers: dict[str, Operator],
        solver: RefinedConjugateGradients,
        found: PivotedCholesky,
        rounding: float,
        held: int,
    ) -> RefinedConjugateGradients:
        """Add what multiplies with little precision: entries in 16 bits, or products with float32 ones, or neither.

        The `rounding` of float32 sums, ε‖K‖/μ, must be small, and without a known error to refine against also where it
        has grown by the steps that κ asks for.
        """
        n, d, rank, shift = len(self.B), max(self.report.d, 1), found.rank, self._mean_shift()
        trace = found.residual_trace
        steps = predicted_steps(trace, rank, shift, self.tol)
        stored, made = (iterations(n, d, rank, steps, kept, self.B.size // n) for kept in (True, False))
        if rounding <= MOST_ROUNDING and self._may_store(held) and stored < made:
            least, size = float(np.min(self.shift)), Quantised.bytes(n)
            with self.report.stage("kernel matrix"):
                kept = Quantised(self._entries(), MOST_ROUNDING * least)
            if kept.noise <= MOST_ROUNDING * least:
                helpers["narrow"] = kept
                self.report.method = self.report.method.replace("matrix-free", f"entries in 16 bits ({human(size)})")
                # What was copied for float32 entries is gone before the products in float64.
                self.report.memory_planned += size - self._entries().copies
                return replace(solver, inner=max(solver.inner, kept.noise / (DRIFT * least)))
        if rounding * np.sqrt(1 + trace / (2 * max(rank, 1) * shift)) < MOST_NOISE:
            helpers["narrow"] = self._entries()
        return solver

    # ---- what decides ------------------------------------------------------------------------------------------------

    @property
    def _choice(self) -> Any:
        return choose_linear(len(self.B), 4, self.report.room, self.tol)

    def _fits(self) -> bool:
        return bool(self._choice.stored)

    def _may_iterate(self) -> bool:
        return len(self.B) >= DIRECT_BELOW and self._most_rank() > 0

    def _may_store(self, held: int) -> bool:
        """Whether entries in 16 bits fit beside what is `held`, and are of use."""
        budget, size = self._room, Quantised.bytes(len(self.B))
        fits = size <= STORED_SHARE * budget and held + size + self._vectors(direct=False) <= budget
        return fits and self._mixed and self.mercer and not self.K.folds and self.K.kernel.domain != "precomputed"

    def _keeps_entries(self) -> bool:
        """Whether Cholesky's residuals are products with stored float64 entries.

        There are three or four. Where entries are dear, all of them take the time of one that makes the entries, and of
        a few readings of 8 n² bytes: at n = 7000, d = 784 a quarter. Small problems need no float32 beside them.
        """
        n, budget = len(self.B), self.report.room
        fits = 8 * n * n <= STORED_SHARE * budget and 16 * n * n + self._vectors(direct=True) <= budget
        return fits and (n <= SMALL or not (self.K.cheap or self.K.folds))

    def _entries(self) -> KernelOperator:
        return self.K.astype(np.float32) if self._mixed else self.K

    def _mean_shift(self) -> float:
        """The harmonic mean: with D = diag(shift) the trace that counts is that of D⁻¹(K − FFᵀ)."""
        return float(1 / np.mean(1 / np.asarray(self.shift, np.float64)))

    def _most_rank(self) -> int:
        """Pivots that n and the memory allow; none without a shift, or where K may be no Mercer matrix."""
        n = len(self.B)
        if not self.mercer or not np.min(self.shift) > 0:
            return 0
        room = (self._room - self._vectors(direct=False)) // (2 * n * (4 if self._mixed else 8))
        return int(max(min(max(n // 10, 1), MOST_RANK, room), 0))

    @cached_property
    def _mixed(self) -> bool:
        """Whether iterations have products with float32 entries too: if the rows fit in both precisions."""
        both = self.K.copies + self.K.astype(np.float32).copies if self.narrow else 0
        return self.narrow and both + self._vectors(direct=False) <= NARROW_SHARE * self.report.memory_budget

    @cached_property
    def _rows(self) -> int:
        """Bytes of the copies of the rows of iterations."""
        return self.K.copies + (self.K.astype(np.float32).copies if self._mixed else 0)

    @property
    def _room(self) -> int:
        """What these leave of the budget."""
        return max(self.report.memory_budget - self._rows, 0)

    def _vectors(self, direct: bool) -> int:
        """Bytes of the solver's vectors."""
        n, r = self.B.shape
        return 8 * n * r * (6 if direct else 12)

    def _account(self, method: str, reason: str, held: int) -> None:
        """The method, and the memory that it will take, before anything is allocated."""
        if not method.startswith("Cholesky"):
            self.report.memory_rows = self._rows
        n, report, direct = len(self.B), self.report, method.startswith("Cholesky")
        report.method, report.reason = method, reason
        alternatives = ['solver="cg" (matrix-free)', "fewer rows"] if direct else ["fewer rows or targets"]
        report.plan(held + self._vectors(direct), f"{self.who} by {method} on {n} rows", alternatives)
