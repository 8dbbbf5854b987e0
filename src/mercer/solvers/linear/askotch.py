"""Accelerated sketch-and-project: a linear system solved a block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.linear.system import Floats, LinearSystem, column_dots, column_norms

__all__ = ["ASkotch", "ASkotchState", "block_size"]

MOST_BLOCK = 4000
"""Rows of a block: 128 MB in float64, and a factorisation of 5 operations for each of its entries at n = 10⁶."""

ROUND = 1e-4
"""What one round of float32 products leaves of a residual before the true one is computed."""

POWERS = 10
"""Power iterations for the largest eigenvalue of a preconditioned block, as in the paper."""

_STALLS_ALLOWED = 3
_GROWTH = 1e3  # of a residual, that asks for a look at the true one
_ROUNDING = 1e-8  # of ‖w‖‖Aw‖: a ⟨w, Aw⟩ below minus this is no rounding error
_LEAST = 1e-12  # of μν: beyond it the momentum is that of rounding errors


def block_size(n: int) -> int:
    """Rows of a block unless told: the larger of n/100 and 4√n, at most 4000.

    >>> block_size(10), block_size(10_000), block_size(1_000_000)
    (10, 400, 4000)
    """
    return min(n, max(n // 100, int(4 * np.sqrt(n))), MOST_BLOCK)


@dataclass(frozen=True)
class ASkotchState(State):
    """The answer so far X with its true residual R, and the offsets from it, W, V, Z, of the three sequences.

    X and R are in units of the norm of each right-hand side. `squares` sums the squared residuals that the blocks of
    this pass have met, and `checked` is the step of the last true residual.
    """

    X: Floats
    R: Floats
    W: Floats
    V: Floats
    Z: Floats
    squares: Floats
    residuals: Floats
    mu: float
    precision: str
    checked: int
    stalls: int
    failure: str | None = None

    @property
    def residual(self) -> float:
        return float(np.max(self.residuals, initial=0.0))


@dataclass(frozen=True)
class ASkotch(Solver[LinearSystem, ASkotchState]):
    r"""w ← z − d, v ← βv + (1 − β)z − γd, z ← αv + (1 − α)w; d = M_B⁻¹((A + D)z − b)_B in a block B, 0 elsewhere.

    A step reads the rows B of A alone, n·\|B\| entries, and keeps nothing of size n beyond a few vectors for each
    right-hand side: the memory is O(nr + \|B\|²). β = 1 − √(μ/ν), γ = 1/√(μν) and α = 1/(1 + γν) are Nesterov's, with
    ν = n/\|B\| and μ = λmin(S)/(ν mean diag S), S the Schur complement of one random block in another.

    Every pass visits each row once, in blocks drawn anew. The residuals that the blocks meet tell when a true residual
    is worth its product; each true residual moves the origin of the three sequences to the answer so far (iterative
    refinement that keeps the momentum), so that the passes may use the system's `narrow` operator. Where the energy
    norm of the error has grown instead, the origin stays and the momentum is lowered, in the end to none.

    Parameters
    ----------
    tol : float
        On the true relative residual of each right-hand side.
    block : int, optional
        Rows of a block; the larger of n/100 and 4√n, at most 4000, unless given.
    rank : int, optional
        None: M_B = A_BB + D_B by Cholesky. A number, 100 in the paper: M_B = L (Â + D_B + λ̂_r I) with a randomised
        Nyström approximation of A_BB of that rank, λ̂_r its least eigenvalue, and L the largest eigenvalue of the
        preconditioned block by power iteration.
    accelerate : bool
        False is plain randomised block Gauss–Seidel (Skotch).
    max_steps : int, optional
        In all; 1000 passes unless given.
    check_every : int
        Passes after which a true residual is computed in any case.
    seed : int
        Of the blocks and sketches.

    Notes
    -----
    The paper draws blocks independently, takes μ = λ, and sketches every block with rank 100. Measured with a Gaussian
    kernel (n = 3000, d = 10, λ = 0.01, blocks of 219 rows), blocks without replacement and μ as above come to 10⁻⁶ in
    47 passes with factorised blocks, and in 80 without acceleration; sketched ones are at 4·10⁻⁶ after 200, and each of
    these took longer: at n = 10 000 a factorisation took half the time of the block's entries.

    Against conjugate gradients preconditioned by r pivots, in kernel entries (n = 10 000, d = 10, Gaussian; a pass
    takes n² of them, a symmetric product n²/2):

    ==============  ========  ======  =======  =======  =======  =======  ========
    λ, tolerance    ASkotch   r = 10  r = 40   r = 100  r = 200  r = 400  r = 1000
    ==============  ========  ======  =======  =======  =======  =======  ========
    1, 10⁻⁶         13 n²     30 n²   19 n²    11 n²    8 n²     5 n²     3 n²
    0.01, 10⁻⁴      29 n²     > 50    > 50     > 50     > 50     34 n²    16 n²
    0.001, 10⁻³     48 n²     > 50    > 50     > 50     > 50     > 50     47 n²
    ==============  ========  ======  =======  =======  =======  =======  ========

    An entry took two and a half times as long as in a symmetric product (one core), so that in time 100 to 200 pivots
    were as good on the hard systems, and 10 on the easy one. Hence: where the memory is for fewer pivots than that.

    References
    ----------
    P. Rathore, Z. Frangella, J. Yang, M. Dereziński, M. Udell (2025). Have ASkotch: a neat solution for large-scale
    kernel ridge regression. arXiv:2407.10070. Algorithm 3.
    R. M. Gower, F. Hanzely, P. Richtárik, S. U. Stich (2018). Accelerated stochastic matrix inversion: general theory
    and speeding up BFGS rules for faster second-order optimization. NeurIPS.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import LinearSystem, solve
    >>> A = Dense([[2.0, 1.0], [1.0, 3.0]])
    >>> solution = solve(ASkotch(block=1), LinearSystem(A, [3.0, 4.0]))
    >>> solution.x.round(6), solution.status.name
    (array([1., 1.]), 'CONVERGED')
    """

    tol: float = 1e-8
    block: int | None = None
    rank: int | None = None
    accelerate: bool = True
    max_steps: int | None = None
    check_every: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        counts = [self.block, self.rank, self.check_every]
        if not self.tol >= 0 or any(c is not None and c < 1 for c in counts) or (self.max_steps or 0) < 0:
            do = "give tol ≥ 0, block ≥ 1, rank ≥ 1, check_every ≥ 1, max_steps ≥ 0"
            raise InvalidInput(message("ASkotch", repr(self), do))

    @property
    def tolerance(self) -> float:
        return self.tol

    def start(self, problem: LinearSystem) -> ASkotchState:
        R = problem.columns / problem.scales
        finite = bool(np.all(np.isfinite(R)))
        zero, r = np.zeros_like(R), R.shape[1]
        residuals = column_norms(R)
        plain = 1 / self._blocks(problem)
        return ASkotchState(
            steps=0,
            X=zero,
            R=R,
            W=zero,
            V=zero,
            Z=zero,
            squares=np.zeros(r),
            residuals=np.where(np.isfinite(residuals), residuals, np.inf),
            mu=self._mu(problem) if self.accelerate and finite and r else plain,
            precision="float64" if problem.narrow is None else "float32",
            checked=0,
            stalls=0,
            failure=None if finite else "NOT_FINITE",
        )

    def step(self, problem: LinearSystem, state: ASkotchState) -> ASkotchState:
        A = problem.A if state.precision == "float64" or problem.narrow is None else problem.narrow
        nu = self._blocks(problem)
        block = self._rows(problem, state.steps // nu, state.steps % nu)
        G = A.rows_times(block, state.Z) + problem.shift_of(block) * state.Z[block] - state.R[block]
        try:
            D = self._solve_block(problem, block, G, state.steps)
        except np.linalg.LinAlgError:
            failure = "BREAKDOWN" if np.all(np.isfinite(G)) else "NOT_FINITE"
            return replace(state, steps=state.steps + 1, failure=failure)
        W = state.Z.copy()
        W[block] -= D
        beta, gamma = 1 - np.sqrt(state.mu / nu), 1 / np.sqrt(state.mu * nu)
        alpha = 1 / (1 + gamma * nu)
        V = beta * state.V + (1 - beta) * state.Z
        V[block] -= gamma * D
        squares = state.squares + column_dots(G, G)
        now = replace(state, steps=state.steps + 1, W=W, V=V, Z=alpha * V + (1 - alpha) * W, squares=squares)
        return now if now.steps % nu else self._surveyed(problem, now, nu)

    def _surveyed(self, problem: LinearSystem, state: ASkotchState, nu: int) -> ASkotchState:
        """The state after a whole pass: what its blocks met stands for the residual until a true one is due."""
        met = np.sqrt(state.squares)
        met = np.where(np.isfinite(met), met, np.inf)
        now = replace(state, squares=np.zeros_like(met), residuals=met)
        late = now.steps - now.checked >= self.check_every * nu
        base = column_norms(state.R)
        goal = np.maximum(self.tol, ROUND * base) if state.precision == "float32" else np.full_like(base, self.tol)
        claimed = (met <= goal) | (base <= self.tol)
        due = late or np.all(claimed) or np.any(met > _GROWTH * base)
        return self._checked(problem, now, base) if due else now

    def _checked(self, problem: LinearSystem, state: ASkotchState, base: Floats) -> ASkotchState:
        """The origin moved to where the true residual says that the error is smaller."""
        X, R, closer = _seen(problem, state)
        residuals, running = column_norms(R), base > self.tol
        finite, moved = np.isfinite(residuals), running & closer
        # ⟨w, R₀ − R⟩ = ⟨w, (A + D) w⟩.
        flat = _ROUNDING * column_norms(state.W) * column_norms(state.R - R)
        broken = bool(np.any(running & finite & (column_dots(state.W, state.R - R) < -flat)))
        now = replace(
            state,
            X=np.where(moved, X, state.X),
            R=np.where(moved, R, state.R),
            W=np.zeros_like(X),
            V=np.where(moved, state.V - state.W, 0.0),
            Z=np.where(moved, state.Z - state.W, 0.0),
            residuals=np.where(moved, residuals, base),
            checked=state.steps,
            failure="BREAKDOWN" if broken else None,
        )
        worse = bool(np.any(running & ~moved))
        idle = bool(np.any(moved & (state.residuals <= 0.1 * base) & (residuals > 0.5 * base)))
        return self._cautioned(problem, now, worse, bool(np.all(finite | ~running))) if worse or idle else now

    def _cautioned(self, problem: LinearSystem, state: ASkotchState, worse: bool, finite: bool) -> ASkotchState:
        """Less momentum where the error grew; if there is none, or a residual is not what was claimed, float64."""
        plain = 1 / self._blocks(problem)
        if worse and state.mu < plain:
            return replace(state, mu=min(4 * state.mu, plain) if finite else plain)
        if state.precision == "float32":
            return replace(state, precision="float64")
        failure = None if state.stalls + 1 < _STALLS_ALLOWED else "STALLED" if finite else "NOT_FINITE"
        return replace(state, stalls=state.stalls + 1, failure=state.failure or failure)

    def verdict(self, problem: LinearSystem, state: ASkotchState) -> Status | None:
        if state.failure is not None:
            return Status[state.failure]
        if state.residual <= self.tol:
            return Status.CONVERGED
        limit = 1000 * self._blocks(problem) if self.max_steps is None else self.max_steps
        return Status.MAX_STEPS if state.steps >= limit else None

    def finish(self, problem: LinearSystem, state: ASkotchState) -> tuple[Floats, float]:
        X, R, closer = _seen(problem, state) if np.any(state.W) else (state.X, state.R, np.ones(state.R.shape[1], bool))
        residuals = np.where(closer, column_norms(R), column_norms(state.R))
        answer = np.where(closer, X, state.X) * problem.scales
        return problem.shaped(answer), float(np.max(residuals, initial=0.0))

    def predicted_passes(self, problem: LinearSystem) -> float:
        """ln(2/tol)/√(μν), from two blocks: 0.4 to 1.2 of what was measured (d = 3 and 10, shifts from 1 to 10⁻³)."""
        return float(np.log(2 / max(self.tol, 1e-16)) / np.sqrt(self._mu(problem) * self._blocks(problem)))

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def _blocks(self, problem: LinearSystem) -> int:
        """Blocks in a pass over all rows."""
        block = block_size(problem.n) if self.block is None else min(self.block, problem.n)
        return -(-problem.n // max(block, 1))

    def _rows(self, problem: LinearSystem, epoch: int, place: int) -> NDArray[np.intp]:
        """The rows of one block of one pass, in ascending order."""
        order = np.random.default_rng([self.seed, epoch]).permutation(problem.n)
        return np.sort(np.array_split(order, self._blocks(problem))[place])

    def _solve_block(self, problem: LinearSystem, block: NDArray[np.intp], G: Floats, step: int) -> Floats:
        """M_B⁻¹ G."""
        M, shift = np.asarray(problem.A.block(block, block), np.float64), problem.shift_of(block)
        if self.rank is None or self.rank >= len(block):
            return _solved(M, shift, G)
        return _sketched(M, shift, G, self.rank, np.random.default_rng([self.seed, step, 1]))

    def _mu(self, problem: LinearSystem) -> float:
        """λmin(S)/(ν mean diag S): a bound on how little a random block takes off an error, by two random blocks."""
        nu = self._blocks(problem)
        if nu == 1:
            return 1.0
        known, other = (self._rows(problem, 0, place) for place in (0, 1))
        cross = np.asarray(problem.A.block(known, other), np.float64)
        S = np.asarray(problem.A.block(other, other), np.float64)
        S[np.diag_indices_from(S)] += np.ravel(problem.shift_of(other))
        M = np.asarray(problem.A.block(known, known), np.float64)
        try:
            S -= cross.T @ _solved(M, problem.shift_of(known), cross)
            least = float(np.linalg.eigvalsh(S)[0])
        except (np.linalg.LinAlgError, ValueError):
            return 1 / nu
        mean = float(np.mean(np.diagonal(S)))
        return max(min(least / mean, 1.0), _LEAST) / nu if mean > 0 else 1 / nu


def _seen(problem: LinearSystem, state: ASkotchState) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """x = x₀ + w, its true residual, and whether ⟨w, r₀ + r⟩ = ‖e₀‖² − ‖e‖² > 0, of errors in the norm of A + D."""
    X = state.X + state.W
    R = (problem.columns - problem.apply(X * problem.scales)) / problem.scales
    return X, R, (column_dots(state.W, state.R + R) > 0) & np.all(np.isfinite(R), axis=0)


def _solved(M: Floats, shift: Any, G: Floats) -> Floats:
    """(M + D)⁻¹ G by Cholesky, M overwritten and raised by a rounding of its trace: it is a preconditioner."""
    M[np.diag_indices_from(M)] += np.ravel(shift) + np.finfo(np.float64).eps * np.trace(M)
    if not np.all(np.isfinite(M)):
        raise np.linalg.LinAlgError("not finite")
    factor = scipy.linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, G, check_finite=False))


def _sketched(M: Floats, shift: Any, G: Floats, rank: int, rng: np.random.Generator) -> Floats:
    """(M̂ + D + λ̂_r I)⁻¹ G / L, M̂ = F Fᵀ a randomised Nyström approximation of M."""
    F = _nystroem(M, rank, rng)
    rho = shift + max(float(np.linalg.eigvalsh(F.T @ F)[0]), np.finfo(np.float64).eps * float(np.trace(M)))
    rho = np.broadcast_to(rho, (len(M), 1))
    H = F / rho
    core = scipy.linalg.cho_factor(np.eye(rank) + F.T @ H, lower=True)

    def inverse(Y: Floats) -> Floats:
        return np.asarray(Y / rho - H @ scipy.linalg.cho_solve(core, H.T @ Y))

    x, largest = rng.standard_normal((len(M), 1)), 1.0
    for _ in range(POWERS):
        image = M @ x + shift * x
        y = inverse(image)
        largest = float(np.sum(image * y) / np.sum(image * x))  # Rayleigh's quotient in the norm of M + D
        x = y / np.linalg.norm(y)
    return inverse(G) / max(largest, 1.0)


def _nystroem(M: Floats, rank: int, rng: np.random.Generator) -> Floats:
    """F with F Fᵀ = MΩ (ΩᵀMΩ)⁺ ΩᵀM for a random orthonormal Ω."""
    Omega = np.linalg.qr(rng.standard_normal((len(M), rank)))[0]
    raised = np.finfo(np.float64).eps * float(np.trace(M))
    Y = M @ Omega + raised * Omega
    C = np.linalg.cholesky(Omega.T @ Y)
    return np.asarray(scipy.linalg.solve_triangular(C, Y.T, lower=True).T)
