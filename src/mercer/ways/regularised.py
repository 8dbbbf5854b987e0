"""(K + diag(shift)) X = B by the faster method: Cholesky, or preconditioned conjugate gradients.

The first row whose condition holds decides.

======================================================================  =====================================
condition                                                               method
======================================================================  =====================================
K = FFᵀ with few columns (the linear kernel's rows, features counted)   conjugate gradients, preconditioned by
                                                                        (FFᵀ + diag(shift))⁻¹ itself
K = FFᵀ with few numbers in many columns (the linear kernel's sparse    conjugate gradients; with pivots, if they
rows)                                                                   take many steps; then Cholesky
the kernel is not proved positive semi-definite, or a shift is 0, and   Cholesky
a float32 copy of K fits in 40 % of the budget
a float32 copy fits, and neither the engine computes the entries, nor   Cholesky
has the kernel fast products: they would take as long as all entries
a float32 copy fits, and Cholesky is predicted to be faster, or to      Cholesky
take less than three times as long as the probe that would decide
otherwise                                                               preconditioned conjugate gradients
======================================================================  =====================================

Cholesky's residuals are products with stored float64 entries where entries are dear. There conjugate gradients without
a preconditioner come first: they end after a few steps unless these show that they will take at most half of a
factor's time.

Conjugate gradients store the entries in 16 bits if these n² bytes fit in 40 % of the budget, or of the memory of the
workers that hold the rows, are exact enough for the shift, and reading them is predicted to be faster than recomputing
them. Otherwise products are matrix-free.

`mercer.planning.costs` predicts the seconds. The number of steps of conjugate gradients is predicted from the residual
traces of a randomly pivoted Cholesky approximation of small rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from mercer.engine.backend import device_in_use, engine, one_blas_thread
from mercer.factorizations.factor import Factor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky
from mercer.factorizations.preconditioner import preconditioner, rest
from mercer.gram import KernelOperator, rates
from mercer.numerals import counted
from mercer.operators import Dense, Operator, Packed, Quantised
from mercer.planning import costs
from mercer.planning.costs import conjugate_gradients, refined_cholesky
from mercer.planning.machine import Machine
from mercer.points import human
from mercer.solvers import (
    Cholesky,
    ConjugateGradients,
    LinearSystem,
    RefinedConjugateGradients,
    Solution,
    Status,
    solve,
)
from mercer.solvers.choose import STORED_SHARE, choose_linear
from mercer.ways.report import Report

__all__ = ["Plan", "RegularisedSolve", "plan"]

SMALL = 500
"""Up to this many rows only float64 is used: entries are computed once, and refinement takes one step."""
PROBE = 240
"""Pivots of the approximation that predicts the number of steps."""
LARGEST, SMALLEST = 2.0, 0.5
"""λᵣ and λₙ over the means near r and n by the law of the traces. In 81 systems (n = 4000; Gaussian and Laplacian; 5 to
100 columns; λ = 1 to 1e-4) the steps that follow were within a factor of two in 95 %, with t/2r and 0 in 59 %."""
TIE = 1.1
"""Predicted times within this factor of the least are as good, and the way with less memory is taken. For 20 000 rows
on one thread 1920 pivots were predicted to save 1 % of the time with 960, and took a fifth more. For 10 000 rows in 20
columns float64 entries beside a factor were predicted to save 2 % of its time, and took a fifth more in a first fit,
where memory that no fit had before was touched at a tenth of the measured rate."""
PROBE_SHARE = 0.25
"""Share of Cholesky's time that the probe may take, so that a probe in vain costs at most a quarter."""
MOST_RANK = 3500
"""Largest rank of a preconditioner: its memory of n r entries is 1.6 GB at n = 100 000."""
MOST_NOISE = 0.25
"""Beyond this ε‖K‖√κ/μ, float32 products delay convergence by more than they save."""
PIVOTS_ROUNDING, PIVOTS_LEFT = 0.03, 16.0
"""Pivots are chosen again in float64 if ε‖K‖/μ is above the first and they leave less than 16 ε of the mean of k(x, x),
which float32 does not tell from 0. For 10 000 rows in 6 columns and a Gaussian kernel with γ = 0.0113, 480 such pivots
took steps from 10 to 4 at ε‖K‖/μ = 0.1, from 37 to 5 at 1, and from over 200 to 7 at 10."""
MOST_ROUNDING = 0.1
"""Beyond this ‖K̃ − K‖/μ, entries K̃ in 16 bits are not used; a round reduces the residual to that share."""
DRIFT = 4.0
"""A round with 16-bit entries has the tolerance ‖K̃ − K‖/(4μ) (see `RefinedConjugateGradients`). At n = 20 000 and
‖K̃ − K‖/μ = 0.07 it took 111 steps and four checks; with 8μ it took 122 steps, three checks, and the same time."""

FEW_STEPS = 50
"""Steps after which an exact preconditioner has done what rounding allows. It takes one or two up to ‖K‖/μ = 10¹⁴."""

EASY_STEPS, MANY_STEPS = 120, 300
"""Steps by products of sparse factors before pivots are chosen, and with them, at least, before Cholesky is tried.
Frequencies of words, weighted by how rare they are, took 30 to 105 steps without pivots for λ = 1 and 0.01, and half
the time that they took with some; counts of words took 400 to 900 steps, and up to twice the time."""

WORTH_A_TRY, TRIED_SHARE = 24, 0.5
"""Steps with stored entries that take as long as a factor, for which steps are tried first; and how many of them may be
taken. If the first show that these will not do, as in most systems with small λ, a fit of 7000 rows took 4 % longer."""

LOW_PRECISION_SHARE = 0.98
"""Share of the budget for copies of the rows in both float32 and float64, together with the vectors."""


class Plan(NamedTuple):
    """The rank of a preconditioner, the steps predicted with it, and the seconds predicted for both."""

    rank: int
    steps: float
    seconds: float


def plan(
    machine: Machine,
    n: int,
    d: int,
    found: PivotedCholesky,
    shift: float,
    tol: float,
    most: int,
    stored: bool = False,
    columns: int = 1,
    made: int = 0,
    rounding: float = 0.0,
) -> Plan:
    """The smallest rank with nearly the least predicted time for the preconditioner and the steps.

    Parameters
    ----------
    machine : Machine
    n, d : int
        Rows and columns of the data.
    found : PivotedCholesky
        An approximation of small rank, whose residual traces predict those of larger ranks.
    shift, tol : float
        μ, and the relative residual to reach.
    most : int
        The largest rank allowed.
    stored : bool
        Whether entries may be stored in 16 bits.
    columns : int
        Number of right-hand sides.
    made : int
        Rank of the approximation that is already computed.
    rounding : float
        ε‖K‖/μ of float32 sums, which decides whether products can have float32 entries.

    Examples
    --------
    >>> machine, left = Machine.documented(), np.full(10_000, 0.44)
    >>> found = PivotedCholesky(np.empty((10_000, 240)), np.arange(240), left, 10_000.0, 300)
    >>> easy, hard = (plan(machine, 10_000, 20, found, shift, 1e-10, 1000) for shift in (30.0, 0.01))
    >>> round(easy.steps) < 40, hard.rank > easy.rank, hard.seconds > 3 * easy.seconds
    (True, True, True)
    """
    plans = []
    rank = min(PROBE, most)
    while True:
        steps = predicted_steps(found, rank, shift, tol)
        size = _itemsize(rounding, found, rank, shift)
        ways = (
            conjugate_gradients(machine, n, d, rank, steps, columns, stored=kept, itemsize=size)
            for kept in {False, stored}
        )
        there = costs.pivots(machine, n, d, rank) if rank == made else 0.0
        plans.append(Plan(rank, steps, costs.preconditioner(machine, n, d, rank) - there + min(ways)))
        if rank >= most:
            least = min(p.seconds for p in plans)
            return next(p for p in plans if p.seconds <= TIE * least)
        rank = min(2 * rank, most)


def predicted_steps(found: PivotedCholesky, rank: int, shift: float, tol: float) -> float:
    """½ √κ ln(2/tol): the steps of conjugate gradients predicted for a preconditioner of r pivots."""
    return float(max(0.5 * np.sqrt(_condition(found, rank, shift)) * np.log(2 / max(tol, 1e-16)), 1.0))


def _condition(found: PivotedCholesky, rank: int, shift: float) -> float:
    """κ = (λᵣ + μ)/(λₙ + μ) for λᵣ, the largest eigenvalue that r pivots leave, and λₙ, the smallest."""
    largest, smallest = found.eigenvalue(max(rank, 1)), found.eigenvalue(len(found.left))
    return (LARGEST * largest + shift) / (SMALLEST * smallest + shift)


def _itemsize(rounding: float, found: PivotedCholesky, rank: int, shift: float) -> int:
    """Bytes of the entries in products: ε‖K‖/μ, which grows by √κ over the steps, decides if float32 is enough."""
    return 4 if rounding * np.sqrt(_condition(found, rank, shift)) < MOST_NOISE else 8


@dataclass
class RegularisedSolve:
    """One solve of (K + diag(shift)) X = B for the estimator `who`, and the report to fill.

    `solver` is "auto", "cholesky" or "cg". `low_precision` tells whether float32 can hold the entries and rows, and
    `mercer` whether the kernel is proved to be a Mercer kernel.
    """

    who: str
    K: KernelOperator
    B: np.ndarray
    shift: Any
    solver: str
    tol: float
    low_precision: bool
    mercer: bool
    report: Report

    def run(self) -> Solution[Any]:
        """The solution by the method of the table, or by Cholesky if conjugate gradients should be faster and fail."""
        if self.solver == "cholesky":
            return self._direct("as requested")
        K = self.K
        if self.solver == "auto" and len(self.B) <= SMALL and not K.has_factors and self._fits():
            return self._direct(self._choice.reason)
        fast = self._keep_factors() or K.runs_as_program or (K.has_fast_matmul and not K.kernel.counts_features)
        fits = self._fits()
        if self.solver == "auto" and 0 < K.factor_columns <= self._most_rank():
            return self._by_factors()
        if K.has_factors and K.x.sparse and self._most_rank() > 0:
            return self._by_numbers(fits)
        if self.solver == "auto" and fits and not (fast and self._most_rank() > 0):
            return self._direct(self._choice.reason)
        if self.solver == "cg" or not fits:
            reason = "as requested" if self.solver == "cg" else self._choice.reason
            return self._iterative(reason, *(self._planned() if self._most_rank() > PROBE and self.K.native else ()))
        return self._contest()

    def _keep_factors(self) -> bool:
        """Whether products are by factors from now on."""
        kept = self.mercer and len(self.B) > SMALL and self.K.keep_factors(self.report.room)
        if kept:
            self.report.memory_rows += self.K.copies
        return kept

    def _contest(self) -> Solution[Any]:
        """The solution by the method that is predicted to be faster, if both are possible."""
        (n, columns), d, most, machine = self.B.shape, self._d_of_products, self._most_rank(), self._machine
        direct = refined_cholesky(machine, n, self._d, columns, kept=self._keeps_entries())
        look = costs.pivots(machine, n, d, min(PROBE, most))
        least = look + conjugate_gradients(machine, n, d, 0, 1, columns)
        if direct <= least or look > PROBE_SHARE * direct:
            figures = f"at least {least:.2g} s, Cholesky {direct:.2g} s"
            return self._direct(f"{self._choice.reason}; conjugate gradients would take {figures}")
        found, probe = self._planned()
        figures = f"{found.seconds:.2g} s ({found.steps:.0f} steps), Cholesky {direct:.2g} s"
        if found.seconds >= direct:
            return self._direct(f"{self._choice.reason}; conjugate gradients would take {figures}")
        # If they take as long as Cholesky, or twice as long as predicted, the prediction was wrong.
        most_steps = int(found.steps * max(2.0, direct / found.seconds))
        return self._or_direct(self._iterative(f"predicted to take {figures}", found, probe, max_steps=most_steps))

    def _or_direct(self, solution: Solution[Any]) -> Solution[Any]:
        """The solution by conjugate gradients if they converged, and that by Cholesky if not."""
        if solution.converged:
            return solution
        ended = solution.status.name.lower()
        self.report.notes.append(f'conjugate gradients ended with status "{ended}", so Cholesky was used')
        return self._direct("conjugate gradients did not converge")

    def _planned(self) -> tuple[Plan, PivotedCholesky]:
        """The rank of the preconditioner, predicted from an approximation of small rank."""
        (n, columns), most = self.B.shape, self._most_rank()
        with self.report.stage("probe"):
            probe = self._entries().low_rank(min(PROBE, most))
        rounding = self._rounding(probe) if self._mixed else np.inf
        stored = self._may_store(0) and rounding <= MOST_ROUNDING and self._store_is_exact()
        own = self._machine, n, self._d_of_products, probe, self._mean_shift(), self.tol
        return plan(*own, most, stored, columns, probe.rank, rounding), probe

    @cached_property
    def _machine(self) -> Machine:
        """The machine, with rates measured if a system of this size takes long enough."""
        return rates.machine(lambda machine: refined_cholesky(machine, len(self.B), self._d, self.B.shape[1]))

    @property
    def _d(self) -> int:
        return max(self.K.pair_columns, 1)

    @property
    def _d_of_products(self) -> int:
        return max(self.K.product_columns, 1)

    # ---- the methods -------------------------------------------------------------------------------------------------

    def _direct(self, reason: str) -> Solution[Any]:
        n, report = len(self.B), self.report
        kept = self._keeps_entries()
        self._predict(refined_cholesky(self._machine, n, self._d, self.B.shape[1], kept=kept), "kernel matrix", "solve")
        quick = self._in_few_steps() if kept and n > SMALL and self.solver == "auto" else None
        if quick is not None:
            return quick
        low_precision = self.low_precision and not (kept and n <= SMALL)
        need = (4 if low_precision else 8) * n * n
        self._account(f"Cholesky of the stored matrix ({human(need)})", reason, need + self._entry_bytes * kept)
        dtype = np.float32 if low_precision else np.float64
        K: Operator = self.K
        with report.stage("kernel matrix"):
            if kept:
                report.method += f", refined by its entries in float64 ({human(self._entry_bytes)})"
                K, matrix = self._kept_entries(dtype)
            else:
                self.K.release()  # frees copies of the rows before the matrix is filled
                matrix = K.fill(np.empty(K.shape, dtype))
        solver = Cholesky(tol=self.tol, precision="mixed" if low_precision else "float64")
        with report.stage("solve"):
            return solve(solver, LinearSystem(K, self.B, self.shift, matrix=matrix))

    def _in_few_steps(self) -> Solution[Any] | None:
        """The solution by products with the entries that are stored for residuals, if they make a factor needless."""
        (n, columns), report, machine = self.B.shape, self.report, self._machine
        step = costs.stored_product(machine, n, columns) + costs.CALLS_A_STEP / machine.calls
        steps = int(costs.cholesky(machine, n, 4) / step)
        if steps < WORTH_A_TRY:
            return None
        method = f"conjugate gradients, entries in float64 ({human(self._entry_bytes)})"
        self._account(method, "a factor may be needless", self._entry_bytes, rows=report.memory_rows)
        with report.stage("kernel matrix"):
            system = LinearSystem(self._packed, self.B, self.shift)
        solver = ConjugateGradients(tol=self.tol, max_steps=int(TRIED_SHARE * steps), on_course=True)
        with report.stage("solve"), one_blas_thread(2.0 * n * n * columns):
            found = solve(solver, system)
        if not found.converged:
            return None
        report.reason = f"{found.steps} steps, where a factor was predicted to take as long as {steps}"
        return found

    def _kept_entries(self, dtype: DTypeLike) -> tuple[Operator, np.ndarray[Any, Any]]:
        """K with its entries stored in float64, and the matrix for Cholesky, which reads its upper triangle only."""
        if len(self.B) <= SMALL:
            dense = self.K.fill(np.empty(self.K.shape))
            return Dense(dense, symmetric=True, beside_lapack=True), dense.astype(dtype)
        return self._packed, self._packed.fill_upper(np.zeros(self.K.shape, dtype), engine().threads())

    @cached_property
    def _packed(self) -> Packed:
        """The entries in float64, each pair once."""
        packed = self.K.packed()
        self.K.release()  # the next matrix can reuse the memory of these copies, which is already mapped
        return packed

    @property
    def _entry_bytes(self) -> int:
        """Bytes that `_kept_entries` stores in addition to the matrix that is factored."""
        n = len(self.B)
        return 8 * n * n if n <= SMALL else self.K.packed_bytes

    def _iterative(
        self,
        reason: str,
        found: Plan | None = None,
        probe: PivotedCholesky | None = None,
        max_steps: int | None = None,
        rank: int | None = None,
    ) -> Solution[Any]:
        report = self.report
        if rank is None:
            rank = self._most_rank() if found is None else found.rank
        if found is not None:
            self._predict(found.seconds, "preconditioner", "kernel matrix", "solve")
        products = f"by factors of K ({human(self.K.copies)})" if self.K.has_factors else "matrix-free"
        self._account(f"conjugate gradients, {products}", reason, self._held(self._entries(), rank))
        helpers: dict[str, Operator] = {}
        solver = RefinedConjugateGradients(tol=self.tol, max_steps=max_steps)
        if rank:
            with report.stage("preconditioner"), one_blas_thread(2.0 * len(self.B) * rank**2):
                low_rank, held = self._pivots(rank, probe)
                with one_blas_thread(0.0 if isinstance(F := low_rank.F, Factor) and F.beside_workers else np.inf):
                    rounding = self._rounding(low_rank)
                    shift = self.shift + rest(self._entries(), low_rank)
                    helpers["preconditioner"] = preconditioner(low_rank.F, shift, overwrite=True)
            report.method += f", preconditioned by {low_rank.rank} pivots"
            if found is None:
                self._predict_steps(low_rank)
            if self._mixed and not self.K.has_factors:  # their products are in float64
                solver = self._in_low_precision(helpers, solver, low_rank, rounding, held)
        # One thread is enough here, because the BLAS calls are limited by the memory bandwidth.
        with report.stage("solve"), one_blas_thread():
            return solve(solver, LinearSystem(self.K, self.B, self.shift, **helpers))

    def _by_factors(self) -> Solution[Any]:
        """The solution by (FFᵀ + D)⁻¹ with the factor F of K, which conjugate gradients correct for its rounding."""
        report, n, r = self.report, len(self.B), self.K.factor_columns
        method = f"conjugate gradients, preconditioned and multiplied by factors of K ({human(self.K.copies)})"
        reason = f"K is a product of matrices with {counted(r, 'column')}"
        self._account(method, reason, 8 * n * r + 4 * 8 * r**2, rows=self.K.copies)
        with report.stage("preconditioner"), one_blas_thread(2.0 * n * r**2):
            inverse = preconditioner(self.K.factor(), self.shift, overwrite=True)
        with report.stage("solve"), one_blas_thread():
            system = LinearSystem(self.K, self.B, self.shift, preconditioner=inverse)
            solution = solve(RefinedConjugateGradients(tol=self.tol, max_steps=FEW_STEPS), system)
        # K + D is positive definite, so that only its rounding, which no method avoids, can break the steps down.
        broken = solution.status is Status.BREAKDOWN
        return replace(solution, status=Status.STALLED) if broken else solution

    def _by_numbers(self, fits: bool) -> Solution[Any]:
        """The solution by products of sparse factors: in few steps, or with pivots, which cost more than a product.

        If it takes longer than Cholesky would, that follows, or more pivots if no matrix fits.
        """
        (n, columns), numbers = self.B.shape, self.K.product_work(1)
        reason = f"K is a product of sparse matrices with {numbers:.3g} numbers"
        rank = min(max(int(2 * numbers // n), PROBE), self._most_rank())
        step = costs.preconditioning(self._machine, n, rank, columns)
        most = int(max(MANY_STEPS, refined_cholesky(self._machine, n, self._d, columns) / step))
        for pivots, steps in ((0, EASY_STEPS), (rank, most)):
            solution = self._iterative(reason, max_steps=steps, rank=pivots)
            if solution.converged:
                return solution
        return self._or_direct(solution) if fits and self.solver == "auto" else self._iterative(reason)

    def _pivots(self, rank: int, probe: PivotedCholesky | None) -> tuple[PivotedCholesky, int]:
        """The approximation of this rank and its bytes, in float64 if float32 left but rounding, and that matters."""
        report, n, least = self.report, len(self.B), float(np.min(self.shift))
        found = probe
        if found is None or found.rank != rank:
            found = self._entries().low_rank(rank, tol=least)
        noise = PIVOTS_LEFT * float(np.finfo(np.float32).eps) * float(np.mean(self.K.diagonal(), dtype=np.float64))
        most = min(rank, self._room_of_factor // (8 * n))
        exact = not self._mixed or self._rounding(found) <= PIVOTS_ROUNDING or float(np.mean(found.left)) > noise
        if exact or most < found.rank:
            return found, self._held(self._entries(), rank)
        del found  # its memory is for the other
        held = self._held(self.K, most)
        self._account(report.method, report.reason, held)
        report.notes.append("float32 has no pivots left above its rounding, so they were chosen in float64")
        return self.K.low_rank(most, tol=least), held

    def _held(self, entries: KernelOperator, rank: int) -> int:
        """Bytes of a factor of this rank in this process, in the precision of the entries, and of what inverts it."""
        return max(len(self.B) * rank * entries.dtype.itemsize - entries.factor_room, 0) + 4 * 8 * rank**2

    def _in_low_precision(
        self,
        helpers: dict[str, Operator],
        solver: RefinedConjugateGradients,
        found: PivotedCholesky,
        rounding: float,
        held: int,
    ) -> RefinedConjugateGradients:
        """Add a low-precision operator to the `helpers`: 16-bit entries, products with float32 entries, or none.

        The `rounding` of float32 sums, ε‖K‖/μ, must be small. For float32 products, whose error is not known, it must
        also be small after it has grown by √κ over the steps.
        """
        (n, columns), rank, shift = self.B.shape, found.rank, self._mean_shift()
        steps, itemsize = predicted_steps(found, rank, shift, self.tol), _itemsize(rounding, found, rank, shift)
        stored, made = (
            conjugate_gradients(
                self._machine, n, self._d_of_products, rank, steps, columns, stored=kept, itemsize=itemsize
            )
            for kept in (True, False)
        )
        if rounding <= MOST_ROUNDING and self._may_store(held) and stored < made:
            least, size = float(np.min(self.shift)), Quantised.bytes(n)
            with self.report.stage("kernel matrix"):
                kept = self._entries().quantised(MOST_ROUNDING * least)
            if kept.noise <= MOST_ROUNDING * least:
                helpers["low_precision"] = kept
                where = f"{human(size)} on the workers" if self._room_elsewhere else human(size)
                self.report.method = self.report.method.replace("matrix-free", f"entries in 16 bits ({where})")
                if not self._room_elsewhere:
                    # The copies of the rows for float32 entries are freed before the products in float64.
                    self.report.memory_planned += size - self._entries().copies
                return replace(solver, inner=max(solver.inner, kept.noise / (DRIFT * least)))
        if itemsize == 4:
            helpers["low_precision"] = self._entries()
        return solver

    # ---- conditions and memory ---------------------------------------------------------------------------------------

    @property
    def _choice(self) -> Any:
        return choose_linear(len(self.B), 4, self.report.room, self.tol)

    def _fits(self) -> bool:
        return bool(self._choice.stored)

    def _predict(self, seconds: float, *stages: str) -> None:
        """Put the predicted seconds of these stages into the report, if the costs of entries are known."""
        if self.K.native:
            self.report.predict(seconds, *stages)

    def _predict_steps(self, low_rank: PivotedCholesky) -> None:
        """Predict the steps by the traces of the preconditioner, if no plan did it before."""
        if self.K.has_factors:  # rates are those of entries
            return
        (n, columns), rank = self.B.shape, low_rank.rank
        steps = predicted_steps(low_rank, rank, self._mean_shift(), self.tol)
        ways = (
            conjugate_gradients(self._machine, n, self._d_of_products, rank, steps, columns, stored=kept)
            for kept in {False, self._may_store(0)}
        )
        self._predict(min(ways), "kernel matrix", "solve")

    def _may_store(self, held: int) -> bool:
        """Whether entries in 16 bits are useful, and fit in memory in addition to the `held` bytes.

        A device computes entries faster than the processor reads them.
        """
        if device_in_use():
            return False
        there, size = self._room_elsewhere, Quantised.bytes(len(self.B))
        here = 0 if there else held + size + self._vectors(direct=False)
        fits = size <= STORED_SHARE * (there or self._room) and here <= self._room
        slow = bool(there) or not self._multiplies_fast
        return fits and self._mixed and self.mercer and slow and not self.K.kernel.space.numbered

    @cached_property
    def _room_elsewhere(self) -> int:
        """Bytes that workers have for entries in 16 bits, in each at most the budget of this process."""
        return self.K.room_elsewhere(self.report.memory_budget)

    @property
    def _multiplies_fast(self) -> bool:
        return self.K.has_fast_matmul or self.K.has_factors

    def _store_is_exact(self) -> bool:
        """Whether entries in 16 bits can be exact enough, judged by the mean of the diagonal."""
        noise = Quantised.expected_noise(len(self.B), float(np.mean(self.K.diagonal(), dtype=np.float64)))
        return noise <= MOST_ROUNDING * float(np.min(self.shift))

    def _rounding(self, found: PivotedCholesky) -> float:
        """ε‖K‖/μ, the rounding of float32 sums."""
        return float(np.finfo(np.float32).eps) * found.norm(1 / np.sqrt(self.shift))

    def _keeps_entries(self) -> bool:
        """Whether Cholesky's residuals are products with stored float64 entries.

        There are three or four such products. If entries are expensive, storing them computes each entry only once; the
        products then only read 4 n² bytes each. Small problems always store float64 entries, and need no float32 ones.
        """
        (n, columns), budget = self.B.shape, self.report.room
        size, most = self._entry_bytes, self._entry_bytes + 8 * n * n  # the factor is in float64 if float32 fails
        if not (size <= STORED_SHARE * budget and most + self._vectors(direct=True) <= budget):
            return False
        if n <= SMALL or not self.K.native:
            return n <= SMALL or not self.K.has_fast_matmul
        kept, made = (refined_cholesky(self._machine, n, self._d, columns, kept=kept) for kept in (True, False))
        return TIE * kept < made

    def _entries(self) -> KernelOperator:
        return self.K.astype(np.float32) if self._mixed else self.K

    def _mean_shift(self) -> float:
        """The harmonic mean of the shifts, because with D = diag(shift) the trace of D⁻¹(K − FFᵀ) determines κ."""
        return float(1 / np.mean(1 / np.asarray(self.shift, np.float64)))

    def _most_rank(self) -> int:
        """The most pivots that n and the memory allow; 0 if a shift is 0 or K may be indefinite."""
        n = len(self.B)
        if not self.mercer or not np.min(self.shift) > 0:
            return 0
        return int(max(min(max(n // 10, 1), MOST_RANK, self._room_of_factor // self._factor_bytes(1)), 0))

    @property
    def _room_of_factor(self) -> int:
        """Bytes for the factor of a preconditioner."""
        return (self._room - self._vectors(direct=False)) // 2 + self._entries().factor_room

    def _factor_bytes(self, rank: int) -> int:
        """Bytes of the factor of a preconditioner."""
        return len(self.B) * rank * (4 if self._mixed else 8)

    @cached_property
    def _mixed(self) -> bool:
        """Whether iterations also use float32 entries, which needs room for the rows in both precisions."""
        both = self.K.copies + self._narrow if self.low_precision else 0
        return (
            self.low_precision and both + self._vectors(direct=False) <= LOW_PRECISION_SHARE * self.report.memory_budget
        )

    @cached_property
    def _rows(self) -> int:
        """Bytes of the copies of the rows that iterations use."""
        return self.K.copies + (self._narrow if self._mixed else 0)

    @cached_property
    def _narrow(self) -> int:
        """Bytes of the copies of the rows for float32 entries; finding it takes a pass over the rows."""
        return self.K.astype(np.float32).copies

    @property
    def _room(self) -> int:
        """Bytes of the budget without these copies."""
        return max(self.report.memory_budget - self._rows, 0)

    def _vectors(self, direct: bool) -> int:
        """Bytes of the solver's vectors."""
        n, r = self.B.shape
        return 8 * n * r * (6 if direct else 12)

    def _account(self, method: str, reason: str, held: int, rows: int | None = None) -> None:
        """Report the method and plan its memory, with copies of the `rows`, before anything is allocated."""
        if not method.startswith("Cholesky"):
            self.report.memory_rows = self._rows if rows is None else rows
        n, report, direct = len(self.B), self.report, method.startswith("Cholesky")
        report.method, report.reason = method, reason
        alternatives = ['solver="cg" (matrix-free)', "fewer rows"] if direct else ["fewer rows or targets"]
        report.plan(held + self._vectors(direct), f"{self.who} by {method} on {n} rows", alternatives)
