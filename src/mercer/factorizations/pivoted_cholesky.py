"""Randomly pivoted Cholesky: a low-rank approximation from a few rows of a positive semi-definite operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.events import TilesDone, emit
from mercer.factorizations.factor import Factor, squared_correlations, squares
from mercer.operators import Operator, estimate_norm
from mercer.operators.arrays import require_finite, row_blocks

__all__ = ["PivotedCholesky", "pivoted_cholesky"]

BLOCK = 120
"""The number of pivots that are proposed at once; the rows of accepted pivots are computed together."""

POWERS = 4
"""Steps of power iteration for a norm, which is needed to its order of magnitude."""

ROWS = 64
"""The number of rows from which correlations are estimated."""

BLOCK_ENTRIES = 1 << 21
"""Entries of these rows that are in memory together, with as many of the factor and their differences in float64."""

NOISE = 8.0
"""Diagonal entries of the remainder below this many roundings of A's count as 0, and cannot be pivots."""


@dataclass(frozen=True)
class PivotedCholesky:
    """A ≈ F Fᵀ, equal to A in the rows and columns of the pivots.

    Attributes
    ----------
    F : array or Factor of shape (n, r)
        The factor; an array is column-major.
    pivots : array of shape (r,)
        The pivots, in the order of their choice.
    left : array of shape (n,)
        The diagonal of A − F Fᵀ, ≥ 0.
    trace : float
        tr A.
    proposed : int
        The number of proposed pivots, of which r were accepted.
    power, bend : float
        Of the law tr(A − FⱼFⱼᵀ) = t 2^(−px − qx²/2) with x = log₂(j/r), through the first r/4 and r/2 pivots and all.
    """

    F: Any
    pivots: NDArray[np.intp]
    left: NDArray[np.float64]
    trace: float
    proposed: int
    power: float = 0.5
    bend: float = 0.0

    @property
    def rank(self) -> int:
        """The number of pivots r."""
        return len(self.pivots)

    @property
    def residual_trace(self) -> float:
        """tr(A − F Fᵀ) = ‖A − F Fᵀ‖₁, the sum of its eigenvalues, all ≥ 0."""
        return float(self.left.sum())

    def eigenvalue(self, rank: float) -> float:
        """The mean eigenvalue near this rank, by the law of the traces: −d tr(A − FⱼFⱼᵀ)/dj at j = `rank` ≥ r."""
        x = float(np.log2(rank / max(self.rank, 1)))
        trace = self.residual_trace * 2.0 ** -(self.power * x + self.bend * x * x / 2)
        return (self.power + self.bend * x) * trace / rank

    def correlation(self, A: Operator, seed: int = 0) -> float:
        """The median of Σ_{j ≠ i} ρᵢⱼ² over some rows i, drawn like pivots, with the correlations ρ of A − FFᵀ.

        It is 0 if A − FFᵀ is diagonal, and n/p − 1 for n rows that are evenly spread in p dimensions.
        """
        F, left = self.F, self.left
        if not np.any(left):
            return 0.0
        some = np.unique(_proposals(left, ROWS, np.random.default_rng(seed)))
        if isinstance(F, Factor):
            sums = F.squared_correlations(A, some, left)
        else:
            sums = np.zeros(len(some))
            for J in row_blocks(len(left), len(some), BLOCK_ENTRIES):
                rows = A.block(some, J) if len(left) > J.stop - J.start else A.rows(some)
                sums += squared_correlations(rows, (F[J] @ F[some].T).T, left[J]) / left[some]
        return float(np.median(sums - 1.0))

    def norm(self, s: ArrayLike = 1.0) -> float:
        """‖diag(s) F Fᵀ diag(s)‖ to its order of magnitude, by a few power iterations."""
        s = np.broadcast_to(np.asarray(s, np.float64), self.F.shape[:1])
        start = s * np.sqrt(squares(self.F))
        if isinstance(self.F, Factor):  # FᵀS²F has the same norm, and takes one message instead of two
            first = self.F.T @ (s * start).astype(self.F.dtype)
            return estimate_norm(lambda v: self.F.normal_product(v.astype(self.F.dtype), s**2), first, POWERS)
        return estimate_norm(lambda v: s * (self.F @ (self.F.T @ (s * v).astype(self.F.dtype))), start, POWERS)


def pivoted_cholesky(
    A: Operator, max_rank: int, *, tol: float = 0.0, seed: int = 0, block: int = BLOCK, dtype: DTypeLike | None = None
) -> PivotedCholesky:
    r"""Repeat F ← [F, (A − FFᵀ)[:, s] / √(A − FFᵀ)ₛₛ], with pivots s drawn in proportion to diag(A − FFᵀ).

    The expected trace of A − FFᵀ is at most 1 + ε times that of the best approximation A_k of rank k if the number r of
    pivots is at least k/ε + k log(1/(εη)), η = tr(A − A_k)/tr A. Blocks of pivots are proposed from the current
    diagonal, and each pivot is accepted with the probability (present diagonal)/(diagonal at the proposal). So pivots
    have the same distribution as if they were drawn one by one, but rows are computed by matrix products.

    Parameters
    ----------
    A : Operator of shape (n, n)
        Symmetric and positive semi-definite; only its methods `diagonal` and `block` are called.
    max_rank : int
        The most pivots, at most n.
    tol : float
        Stop if tr(A − FFᵀ) is at most this.
    seed : int
        The same seed gives the same bits.
    block : int
        The number of pivots that are proposed at once; 1 is the plain algorithm.
    dtype : float32 or float64, optional
        The dtype of F, by default that of A. The diagonal and the blocks of pivots are always in float64.

    Raises
    ------
    InvalidInput
        For an operator that is not symmetric, has a negative diagonal, or entries that are not finite.

    Notes
    -----
    O(n r²) operations, n r entries of A, and one n × r array.

    References
    ----------
    Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber (2025). Randomly pivoted Cholesky: practical approximation of a
    kernel matrix with few entry evaluations. Communications on Pure and Applied Mathematics 78.
    E. N. Epperly, J. A. Tropp, R. J. Webber (2024). Embrace rejection: kernel matrix approximation by accelerated
    randomly pivoted Cholesky. arXiv:2410.03969. Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Dense
    >>> A = np.diag([4.0, 1.0, 0.0]) + 1.0
    >>> found = pivoted_cholesky(Dense(A), 3)
    >>> found.rank, bool(np.allclose(found.F @ found.F.T, A)), round(found.residual_trace, 12)
    (3, True, 0.0)
    """
    n, kind = _checked(A, max_rank, tol, block), np.dtype(A.dtype if dtype is None else dtype)
    start = np.asarray(A.diagonal(), np.float64)
    if not np.all(np.isfinite(start)) or float(np.min(start, initial=0.0)) < 0:
        given = "a diagonal with a negative or infinite entry"
        raise InvalidInput(message("pivoted_cholesky", given, "give a positive semi-definite operator"))
    cap = min(int(max_rank), n)
    with one_blas_thread(2.0 * min(block, cap) * cap * n):
        return _pivots(A, start, cap, tol, seed, block, kind)


def _pivots(
    A: Operator, start: NDArray[np.float64], cap: int, tol: float, seed: int, block: int, kind: np.dtype[Any]
) -> PivotedCholesky:
    """At most `cap` pivots; `start` is the diagonal of A."""
    n = len(start)
    Ft, pivots = np.empty((cap, n), kind), np.empty(cap, np.intp)  # Fᵀ, so that the column of a pivot is contiguous
    rng, left, r, proposed = np.random.default_rng(seed), start.copy(), 0, 0
    while r < cap:
        noise = NOISE * float(np.finfo(kind).eps) * np.sqrt(r + 1.0) * start
        left[left <= noise] = 0.0
        total = float(left.sum())
        if total <= tol or total == 0.0:
            break
        S = _proposals(left, min(block, 2 * (cap - r)), rng)
        G = _residual_block(A, Ft[:r], S)
        require_finite(G, "pivoted_cholesky")  # a pivot that is NaN is never accepted, and there would be no end
        # Entries of `left` that are only rounding errors of A's diagonal would be proposed but never accepted.
        left[S[np.diagonal(G) <= noise[S]]] = 0.0
        chosen, L = _accepted(G, noise[S], rng.random(len(S)))
        chosen, L = chosen[: cap - r], L[: cap - r, : cap - r]
        proposed += len(S)
        T = S[chosen]
        Ft[r : r + len(T)] = _new_rows(A, Ft[:r], T, L, kind)
        explained = np.einsum("ij,ij->j", Ft[r : r + len(T)], Ft[r : r + len(T)], dtype=np.float64)
        require_finite(explained, "pivoted_cholesky")
        left -= explained
        np.maximum(left, 0.0, out=left)
        left[T] = 0.0
        pivots[r : r + len(T)] = T
        r += len(T)
        emit(TilesDone("pivots", r, cap))
    return PivotedCholesky(Ft[:r].T, pivots[:r], left, float(start.sum()), proposed, *_law(Ft[:r], float(left.sum())))


def _law(Ft: NDArray[Any], trace: float) -> tuple[float, float]:
    """p and q ≥ 0 of the traces' law, from the trace that all rows of Fᵀ leave; ½ and 0 if they are too few."""
    r = len(Ft)
    if r < 8 or trace <= 0:
        return 0.5, 0.0
    fall = np.cumsum([float(np.vdot(row, row)) for row in Ft[: r // 4 - 1 : -1]])[::-1]
    quarter, half = trace + fall[0], trace + fall[r // 2 - r // 4]
    first, last = np.log2(quarter / half), np.log2(half / trace)
    bend = max(last - first, 0.0)
    return float(last + bend / 2), float(bend)


def _checked(A: Operator, max_rank: int, tol: float, block: int) -> int:
    """The size of A; raise InvalidInput for arguments out of range."""
    if A.shape[0] != A.shape[1] or not A.symmetric:
        given = f"an operator of shape {A.shape}, symmetric={A.symmetric}"
        raise InvalidInput(message("pivoted_cholesky", given, "give a symmetric operator"))
    if max_rank < 0 or block < 1 or not tol >= 0:
        given = f"max_rank={max_rank}, block={block}, tol={tol}"
        raise InvalidInput(message("pivoted_cholesky", given, "give max_rank ≥ 0, block ≥ 1, tol ≥ 0"))
    return int(A.shape[0])


def _proposals(left: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices drawn independently with probabilities in proportion to `left`; never one with `left` = 0."""
    heights = np.cumsum(left)
    index = np.searchsorted(heights, rng.random(count) * heights[-1], side="right")
    return np.minimum(index, int(np.flatnonzero(left)[-1]))


def _residual_block(A: Operator, Ft: NDArray[Any], S: NDArray[np.intp]) -> NDArray[np.float64]:
    """(A − FFᵀ)[S, S] in float64."""
    known = Ft[:, S].astype(np.float64)
    return np.asarray(A.block(S, S), np.float64) - known.T @ known


def _accepted(
    G: NDArray[np.float64], noise: NDArray[np.float64], uniform: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The accepted proposals, and the Cholesky factor of G on them.

    Proposal i is accepted with the probability rᵢ/Gᵢᵢ, where rᵢ is the remainder of Gᵢᵢ after the accepted ones.
    """
    proposed = np.diagonal(G).copy()
    left, L = proposed.copy(), np.zeros_like(G)
    chosen: list[int] = []
    for i in range(len(G)):
        if left[i] > noise[i] and uniform[i] * proposed[i] < left[i]:
            k = len(chosen)
            L[i:, k] = (G[i:, i] - L[i:, :k] @ L[i, :k]) / np.sqrt(left[i])
            left[i:] -= L[i:, k] ** 2
            chosen.append(i)
    index = np.asarray(chosen, np.intp)
    return index, L[index, : len(index)]


def _new_rows(
    A: Operator, Ft: NDArray[Any], T: NDArray[np.intp], L: NDArray[np.float64], kind: np.dtype[Any]
) -> NDArray[Any]:
    """L⁻¹ (A − FFᵀ)[T, :], with L Lᵀ = (A − FFᵀ)[T, T]."""
    # By `block`, because `rows` of a kernel matrix computes scattered rows a few at a time.
    rows = np.array(A.block(T, np.arange(A.shape[1])), kind)
    rows -= np.ascontiguousarray(Ft[:, T].T) @ Ft
    return np.asarray(np.linalg.inv(L).astype(kind) @ rows)
