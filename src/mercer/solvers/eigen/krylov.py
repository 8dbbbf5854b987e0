"""Block Krylov for the largest eigenpairs, started from sampled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.points import sample_rows
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.eigen.dense import Eigenpairs, Eigenproblem, Floats

__all__ = ["BlockKrylov", "KrylovState"]

_JITTER = 0.01  # norm of the random part of each direction from sampled rows; 0.1 cost a third of a step
_SAMPLES = 3  # sampled rows per column of the block
_LANES = 32  # columns per pass of a product: 42 to 48 columns take half as long again as 32, 64 twice as long
_MORE = 16  # at least this many Ritz pairs beyond the k requested ones contribute residuals to the next block
_DECAY = 0.9  # the start is random if the leading directions hold less of the sampled rows' squared norm
_PATIENCE = 8  # the run has stalled after this many steps with neither a smaller residual nor larger values
_BLOCKS_KEPT = 8  # blocks in the basis before it is restarted from its best half


@dataclass(frozen=True)
class KrylovState(State):
    """Basis V and its images W = AV by rows, T = VᵀAV, the next block Q, the Ritz values and their coordinates.

    If the run is `done`, Q is still the last block of V. The next block is computed if the run is resumed.

    Attributes
    ----------
    steps : int
    V, W : arrays of shape (m, n)
    T : array of shape (m, m)
    Q : array of shape (b, n)
    values, residuals : arrays of shape (k,)
    coordinates : array of shape (m, k)
    best, total : float
        The smallest residual and the largest sum of the Ritz values so far.
    idle : int
        Steps since one of the two became better.
    finite, done : bool
    """

    V: NDArray[Any]
    W: NDArray[Any]
    T: Floats
    Q: NDArray[Any]
    values: Floats
    coordinates: Floats
    residuals: Floats
    best: float
    total: float
    idle: int
    finite: bool = True
    done: bool = False

    @property
    def residual(self) -> float:
        if len(self.values) == 0:
            return float("inf")
        largest = float(np.max(self.residuals))
        scale = self.scale
        return largest / scale if scale > 0 else largest

    @property
    def scale(self) -> float:
        """The largest |Ritz value|."""
        return float(np.max(np.abs(self.values), initial=0.0))


@dataclass(frozen=True)
class BlockKrylov(Solver[Eigenproblem, KrylovState]):
    r"""The best pairs in span[Q, AQ, A²Q, …]: V ← orth[V, AV], T = VᵀAV = S diag(θ) Sᵀ, λ ≈ θ and v ≈ VS.

    The first block Q holds the leading directions of randomly sampled rows of A (the range of a Nyström approximation)
    with a little noise. This is as good as one product of A with a random block, and costs only a few rows. If the
    sampled rows have no leading directions, Q is random. Every step is one product of A with a block. The next block
    holds the residuals of the best k + 16 pairs, or some more, up to a multiple of 32: with V they span the same space
    as the images. The basis and its images are in float32 if the entries of A are and ``tol`` is at least 1e-6, which
    halves their memory. T, the Gram matrices of the orthogonalisation and the residuals are in float64. When the basis
    has eight blocks, it is restarted from its best half.

    When the solver stops, it has the images A v of the Ritz vectors. ``x.powered()`` makes a basis of them, one step
    of subspace iteration beyond the vectors. The residual of that basis would need one more product.

    A residual ‖Av − λv‖ ≤ ε bounds the error of λ by ε, and by ε²/gap for a separated eigenvalue. On a kernel matrix of
    handwritten digits residuals of 1e-3·λ₁, 1e-4·λ₁ and 3e-5·λ₁ left relative errors of 5e-2, 1e-4 and 8e-6 in the
    64th eigenvalue.

    Parameters
    ----------
    tol : float
        Tolerance on max ‖Av − λv‖ relative to the largest |λ|, from the products that were computed.
    block : int, optional
        Columns of the first block; by default the multiple of 32 nearest to 3k + 16. For k = 10 (Gaussian kernel,
        n = 10 000, d = 20, float32), 24, 32, 40, 46 and 64 columns all took three steps, and 32 the least time.
    max_steps : int
        Most products with a block.
    start_from : {"rows", "random"}
        Use "random" for an operator whose rows cost as much as the whole matrix.

    Raises
    ------
    InvalidInput
        If tol or max_steps is negative, block is below 1, or `start_from` is another word.

    Notes
    -----
    Measured on the USPS digits (polynomial kernel of degree 2, n = 7291, float32, k = 64, two threads): the time of a
    product with b columns grows as 67 + b, where the constant is for reading and packing the matrix. With 208
    directions from 624 sampled rows, two products were enough: the powered basis had a residual of 2.4e-5 if the second
    block held the residuals of k + 32 pairs, and of 1.4e-5 with k + 144 pairs, in a sixth more total time. With 192
    directions, or with only 416 rows, k + 32 pairs needed a third product. A narrow first block needs fewer columns in
    total but reads the matrix more often.

    References
    ----------
    C. Musco, C. Musco (2015). Randomized block Krylov methods for stronger and faster approximate singular value
    decomposition. K. Wu, H. Simon (2000). Thick-restart Lanczos method for large symmetric eigenvalue problems.

    Examples
    --------
    >>> from mercer.operators import Diagonal
    >>> from mercer.solvers import Eigenproblem, solve
    >>> pairs = solve(BlockKrylov(tol=1e-9), Eigenproblem(Diagonal(np.arange(200.0)), k=2)).x
    >>> pairs.values.round(6)
    array([199., 198.])
    """

    tol: float = 1e-3
    block: int | None = None
    max_steps: int = 300
    start_from: Literal["rows", "random"] = "rows"

    def __post_init__(self) -> None:
        sizes = self.max_steps >= 0 and (self.block is None or self.block >= 1)
        if not self.tol >= 0 or not sizes or self.start_from not in ("rows", "random"):
            do = 'give tol ≥ 0, block ≥ 1, max_steps ≥ 0, start_from "rows" or "random"'
            raise InvalidInput(message("BlockKrylov", repr(self), do))

    def columns(self, n: int, k: int) -> int:
        """The columns of a block for k of n eigenpairs."""
        return min(n, (3 * k + 16 + _LANES // 2) // _LANES * _LANES if self.block is None else self.block)

    def memory(self, n: int, k: int, itemsize: int) -> int:
        """The most bytes of the basis and its images, new ones beside the former, and of blocks of residuals."""
        block = self.columns(n, k)
        return 4 * itemsize * n * (min(_BLOCKS_KEPT * block, n) + block)

    def start(self, problem: Eigenproblem) -> KrylovState:
        n, block = problem.n, self.columns(problem.n, problem.k)
        rng = np.random.default_rng([problem.seed, 0])
        dtype = self._dtype(problem)
        nothing, none = np.empty((0, n), dtype), np.empty(0)
        Q = _leading_rows(problem, block, rng) if self.start_from == "rows" else nothing
        # Sampled rows can span an invariant subspace (block-diagonal A). The noise adds components outside of it.
        jitter = rng.random(Q.shape, np.float32 if dtype == np.float32 else np.float64) - dtype.type(0.5)
        Q = _orthonormal(Q.astype(dtype) + dtype.type(_JITTER * np.sqrt(12 / n)) * jitter, nothing)
        if len(Q) < block:
            Q = np.vstack([Q, _orthonormal(_normal(rng, (block - len(Q), n), dtype), Q)])
        return KrylovState(
            0,
            nothing,
            nothing,
            np.empty((0, 0)),
            Q,
            none,
            np.empty((0, 0)),
            none,
            float("inf"),
            -float("inf"),
            0,
            _finite(Q),
        )

    def step(self, problem: Eigenproblem, state: KrylovState) -> KrylovState:
        if state.done:
            theta, S = np.linalg.eigh(state.T)
            state = self._prepared(
                problem, replace(state, done=False), self._ritz(problem, state, theta, S)[1], theta, S
            )
        images = self._multiply(problem, state.Q)
        steps = state.steps + 1
        if not _finite(images):
            return replace(state, steps=steps, finite=False)
        V, W = _stacked(state.V, state.Q), _stacked(state.W, images)
        T = _extended(state.T, V, images)
        theta, S = np.linalg.eigh(T)
        k = min(problem.k, len(theta))
        now = replace(state, steps=steps, V=V, W=W, T=T, values=theta[::-1][:k].copy())
        coordinates, R = self._ritz(problem, now, theta, S)
        residuals = np.sqrt(np.einsum("ij,ij->i", R[:k], R[:k], dtype=np.float64))
        now = replace(now, coordinates=np.ascontiguousarray(coordinates[:, :k]), residuals=residuals)
        if len(now.values) == problem.k:
            now = self._compared(problem, state, now)
        if self.verdict(problem, now) is not None:
            return replace(now, done=True)
        return self._prepared(problem, now, R, theta, S)

    def _ritz(self, problem: Eigenproblem, state: KrylovState, theta: Floats, S: Floats) -> tuple[Floats, NDArray[Any]]:
        """Coordinates of the best Ritz vectors, more than the k requested ones, and their Av − θv by rows."""
        followed = min(-(-(problem.k + _MORE) // _LANES) * _LANES, len(theta))
        coordinates, dtype = S[:, ::-1][:, :followed], state.V.dtype
        R = coordinates.T.astype(dtype) @ state.W
        R -= (theta[::-1][:followed, None] * coordinates.T).astype(dtype) @ state.V
        return coordinates, R

    def _compared(self, problem: Eigenproblem, before: KrylovState, now: KrylovState) -> KrylovState:
        """The state with its best residual and sum of values, and the number of steps that improved neither.

        Ritz values only grow and residuals fall in the end, until rounding stops both.
        """
        total = float(np.sum(now.values))
        noise = max(10 * float(np.finfo(now.V.dtype).eps) * len(now.values), 1e-3 * now.residual) * now.scale
        better = not now.residual > 0.9 * before.best or total > before.total + noise
        best, total = min(before.best, now.residual), max(before.total, total)
        return replace(now, best=best, total=total, idle=0 if better else before.idle + 1)

    def _prepared(
        self, problem: Eigenproblem, now: KrylovState, R: NDArray[Any], theta: Floats, S: Floats
    ) -> KrylovState:
        """The state with the next block: the new directions of the residuals, or random ones if there are none."""
        noise = float(np.finfo(R.dtype).eps) * float(np.max(np.abs(theta), initial=0.0))
        Q = _orthonormal(R, now.V, floor=noise)
        if len(Q) == 0 and len(now.V) < problem.n:
            rng = np.random.default_rng([problem.seed, now.steps])
            count = min(len(R), problem.n - len(now.V))
            Q = _orthonormal(_normal(rng, (count, problem.n), R.dtype), now.V)
        now = replace(now, Q=Q)
        if len(now.V) + len(Q) <= max(_BLOCKS_KEPT * self.columns(problem.n, problem.k), 2 * problem.k):
            return now
        # The residuals of the best Ritz vectors lie in span Q, so the kept vectors and Q still span a Krylov space.
        kept = np.ascontiguousarray(S[:, ::-1][:, : max(len(theta) // 2, problem.k)])
        ritz = theta[::-1][: kept.shape[1]]
        turn = kept.T.astype(now.V.dtype)
        return replace(
            now, V=turn @ now.V, W=turn @ now.W, T=np.diag(ritz), coordinates=np.eye(len(ritz), len(now.values))
        )

    def verdict(self, problem: Eigenproblem, state: KrylovState) -> Status | None:
        if not state.finite:
            return Status.NOT_FINITE
        if len(state.values) == problem.k and state.residual <= self.tol:
            cut = float(np.finfo(problem.A.dtype).eps) * problem.n * state.scale
            return Status.CONVERGED if float(np.min(np.abs(state.values))) > cut else Status.RANK_DEFICIENT
        seen = state.steps > 1 and len(state.values) == problem.k
        if seen and max(abs(state.values[0]), state.residuals[0]) < problem.rounding:
            return Status.RANK_DEFICIENT
        if state.steps and (len(state.V) == problem.n or state.idle >= _PATIENCE):
            return Status.STALLED
        return Status.MAX_STEPS if state.steps >= self.max_steps else None

    def finish(self, problem: Eigenproblem, state: KrylovState) -> tuple[Eigenpairs | None, float]:
        if len(state.values) == 0:
            return None, state.residual
        turn = state.coordinates.T.astype(state.V.dtype)
        vectors, images = (np.asarray((turn @ basis).T, np.float64) for basis in (state.V, state.W))
        return Eigenpairs(state.values, vectors, state.residuals, images), state.residual

    def _dtype(self, problem: Eigenproblem) -> np.dtype[np.floating]:
        """The dtype of the basis of a new run. A resumed run keeps the dtype of its state, whatever the tolerance."""
        return np.dtype(np.float32 if problem.A.dtype == np.float32 and self.tol >= 1e-6 else np.float64)

    def _multiply(self, problem: Eigenproblem, Q: NDArray[Any]) -> NDArray[Any]:
        """A times the block, by rows."""
        return np.ascontiguousarray(problem.A.matmat(Q.T).T)


def _leading_rows(problem: Eigenproblem, block: int, rng: np.random.Generator) -> NDArray[Any]:
    """The ``block`` leading right singular vectors of a random sample of rows of A; none if they hold too little."""
    count = min(problem.n, max(_SAMPLES * block, 64))
    C = problem.A.row_space(sample_rows(problem.n, count, rng))
    G = np.asarray(C @ C.T, np.float64)
    if not _finite(G):
        return np.full((1, problem.n), np.nan)
    # NumPy's LAPACK, not SciPy's: SciPy has its own BLAS threads, and the two pools compete on few cores.
    e, U = np.linalg.eigh(G)
    e, U = e[-block:], U[:, -block:]
    if float(np.sum(e)) <= _DECAY * float(np.trace(G)):
        return np.empty((0, problem.n))
    sound = e > float(np.finfo(C.dtype).eps) * float(e[-1])
    return np.asarray((U[:, sound] / np.sqrt(e[sound])).T.astype(C.dtype) @ C)


def _normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> NDArray[Any]:
    return rng.standard_normal(shape, np.float32 if dtype == np.float32 else np.float64)


def _orthonormal(Y: NDArray[Any], V: NDArray[Any], floor: float = 0.0) -> NDArray[Any]:
    """Orthonormal rows that span the part of Y orthogonal to V, without directions below rounding or ``floor``.

    The Gram matrix is always in float64: in float32 it would lose directions below 3e-4 of the largest one.
    """
    wanted = Y.shape[1] * floor**2
    for _ in range(2):  # twice is enough (Kahan): the second pass removes the rounding of the first one
        if len(V):
            Y = Y - (Y @ V.T) @ V
        wide = np.asarray(Y, np.float64)
        G = wide @ wide.T
        e, U = np.linalg.eigh(G) if _finite(G) else (np.empty(0), np.empty((len(Y), 0)))
        top = float(np.max(e, initial=0.0))
        # Directions below the rounding of the largest one would consist of that rounding.
        least = max(len(Y) * np.finfo(np.float64).eps, (16 * np.finfo(Y.dtype).eps) ** 2)
        sound = e > max(least * top, wanted)
        Y = (U[:, sound] / np.sqrt(e[sound])).T.astype(Y.dtype) @ Y
        if len(V) == 0 and np.all(e > 1e-3 * top):  # without a subtraction or a small divisor, one pass is enough
            break
        wanted = 0.1  # a row that the second pass shortens to less was in span V, up to rounding
    return np.ascontiguousarray(Y)


def _stacked(above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    return np.vstack([above, below]) if len(above) else below


def _extended(T: Floats, V: NDArray[Any], images: NDArray[Any]) -> Floats:
    """VᵀAV with the rows and columns that the images of the last rows of V add."""
    m, old = len(V), len(T)
    out = np.empty((m, m))
    cross = np.asarray(images @ V.T, np.float64)
    out[:old, :old], out[old:], out[:old, old:] = T, cross, cross[:, :old].T
    out[old:, old:] = (cross[:, old:] + cross[:, old:].T) / 2
    return out


def _finite(array: NDArray[np.floating]) -> bool:
    return bool(np.all(np.isfinite(array)))
