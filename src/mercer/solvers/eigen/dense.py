"""The symmetric eigenproblem, and its solution by LAPACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.operators import Operator
from mercer.planning import costs
from mercer.solvers.base import Solver, State, Status, require_symmetric

__all__ = [
    "DenseEigen",
    "DenseEigenState",
    "Eigenpairs",
    "Eigenproblem",
    "leading_pairs",
    "pair_residuals",
    "rayleigh_ritz",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Eigenproblem:
    """A v = λ v for the k largest (algebraic) eigenvalues of a symmetric A.

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
    k : int
        Number of eigenpairs, from 1 to n.
    seed : int
        Seed for the random start of an iterative solver.
    rounding : float
        Eigenvalues below this are rounding of the entries of A. An iterative solver stops if the largest eigenvalue is
        one of them, because no tolerance relative to it would be met.

    Raises
    ------
    InvalidInput
        If k is not from 1 to n, or if `rounding` is negative.
    """

    A: Operator
    k: int
    seed: int = 0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        require_symmetric("Eigenproblem", self.A)
        if not self.rounding >= 0:
            raise InvalidInput(message("Eigenproblem", f"rounding={self.rounding}", "give a number of at least 0"))
        if not 1 <= self.k <= self.n:
            given = f"k={self.k} of {self.n} eigenpairs"
            raise InvalidInput(message("Eigenproblem", given, f"give k from 1 to {self.n}"))

    @property
    def n(self) -> int:
        """The size of A."""
        return int(self.A.shape[0])

    def residual(self, pairs: Eigenpairs) -> float:
        """max ‖Av − λv‖/max|λ|, from one product in float64; 0 for a zero operator."""
        return _relative(pair_residuals(self.A, pairs.values, pairs.vectors), pairs.values)


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenvalues in descending order, their eigenvectors in columns (of either sign), and ‖Av − λv‖ of each pair.

    `images` are A v for each pair, if the solver has computed them.

    Attributes
    ----------
    values, residuals : arrays of shape (k,)
    vectors : array of shape (n, k)
    images : array of shape (n, k), optional
    """

    values: Floats
    vectors: NDArray[Any]
    residuals: Floats
    images: NDArray[Any] | None = None

    def powered(self) -> NDArray[Any]:
        """An orthonormal basis of the images A v: one step of subspace iteration beyond the vectors, without a product.

        If the residual of a pair is not small relative to its value, v itself is used, because A v would be rounding.
        """
        if self.images is None:
            return self.vectors
        ahead = 10 * self.residuals < np.abs(self.values)
        P = np.where(ahead, self.images / np.where(ahead, self.values, 1.0), self.vectors)
        e, S = np.linalg.eigh(P.T @ P)
        # P is usually almost orthonormal, and then this is ten times faster than Householder reflections.
        return P @ (S / np.sqrt(e)) if e[0] > 1e-2 * e[-1] else np.linalg.qr(P)[0]


@dataclass(frozen=True)
class DenseEigenState(State):
    """Empty before the step; the eigenpairs after it.

    Attributes
    ----------
    steps : int
    values, residuals : arrays of shape (k,), optional
    vectors : array of shape (n, k), optional
    finite : bool
        Whether all entries of the matrix are finite.
    """

    values: Floats | None = None
    vectors: Floats | None = None
    residuals: Floats | None = None
    finite: bool = True

    @property
    def residual(self) -> float:
        if self.values is None or self.residuals is None:
            return float("inf")
        return _relative(self.residuals, self.values)


@dataclass(frozen=True)
class DenseEigen(Solver[Eigenproblem, DenseEigenState]):
    """The k largest pairs of A = V diag(λ) Vᵀ by LAPACK in float64, from a tridiagonal form.

    It needs one n × n array of float64 and 4n³/3 operations, half of them limited by the memory bandwidth.

    References
    ----------
    I. S. Dhillon, B. N. Parlett (2004). Multiple representations to compute orthogonal eigenvectors. (LAPACK's syevr.)

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> from mercer.solvers import Eigenproblem, solve
    >>> solve(DenseEigen(), Eigenproblem(Dense([[2.0, 0.0], [0.0, 5.0]]), k=1)).x.values
    array([5.])
    """

    def start(self, problem: Eigenproblem) -> DenseEigenState:
        return DenseEigenState(0)

    def step(self, problem: Eigenproblem, state: DenseEigenState) -> DenseEigenState:
        n, k = problem.n, problem.k
        A = problem.A.fill(np.empty((n, n), np.float64))
        if not np.all(np.isfinite(A)):
            nothing = np.full(k, np.nan)
            return DenseEigenState(state.steps + 1, nothing, np.full((n, k), np.nan), nothing, finite=False)
        # LAPACK works in place on column-major arrays; the transpose of a row-major array is one, without a copy.
        values, vectors = leading_pairs(A.T, k, overwrite=True)
        return DenseEigenState(state.steps + 1, values, vectors, pair_residuals(problem.A, values, vectors))

    def verdict(self, problem: Eigenproblem, state: DenseEigenState) -> Status | None:
        if state.values is None:
            return None
        return Status.CONVERGED if state.finite else Status.NOT_FINITE

    def finish(self, problem: Eigenproblem, state: DenseEigenState) -> tuple[Eigenpairs | None, float]:
        if state.values is None or state.vectors is None or state.residuals is None:
            return None, state.residual
        return Eigenpairs(state.values, state.vectors, state.residuals), state.residual


def leading_pairs(
    A: NDArray[Any], k: int, B: NDArray[Any] | None = None, *, overwrite: bool = False
) -> tuple[Floats, Floats]:
    """The k largest λ, descending, and their v with A v = λ v, or A v = λ B v, by LAPACK.

    All entries of A and B must be finite. LAPACK's search by index can miss eigenvalues if hundreds of them are equal,
    as for the centred matrix of a kernel that is too narrow. In that case all eigenvalues are computed. BLAS has one
    thread for few rows.

    Parameters
    ----------
    A : array of shape (n, n), symmetric
    k : int
    B : array of shape (n, n), symmetric positive definite, optional
    overwrite : bool
        Whether A and B may be overwritten.

    Examples
    --------
    >>> leading_pairs(np.eye(300) - 1 / 300, 2)[0]
    array([1., 1.])
    """
    n, diagonal = len(A), A.diagonal().copy()
    within, options = (n - k, n - 1), {"overwrite_a": overwrite, "check_finite": False}
    with one_blas_thread(costs.eigen_operations(n)):
        values, vectors = scipy.linalg.eigh(A, B, subset_by_index=within, **options)
        if len(values) < k:
            # LAPACK overwrote the lower triangle only. The driver "ev" works within the upper one, without more memory.
            np.fill_diagonal(A, diagonal)
            values, vectors = scipy.linalg.eigh(A, B, lower=False, driver="ev" if B is None else "gv", **options)
            values, vectors = values[n - k :], vectors[:, n - k :]
    return np.ascontiguousarray(values[::-1]), np.ascontiguousarray(vectors[:, ::-1])


def pair_residuals(A: Operator, values: Floats, vectors: NDArray[Any]) -> Floats:
    """‖Av − λv‖ of each pair, from a product in float64."""
    V = np.asarray(vectors, np.float64)
    return np.asarray(np.linalg.norm(A.matmat(V) - V * values, axis=0))


def rayleigh_ritz(V: NDArray[Any], images: NDArray[Any]) -> Eigenpairs:
    """The best pairs in span V from orthonormal columns V and their images AV: VᵀAV = S diag(θ) Sᵀ, vectors VS.

    The residuals are computed from the given images, and are true if these are.

    Parameters
    ----------
    V : array of shape (n, m)
    images : array of shape (n, m)

    Examples
    --------
    >>> A = np.array([[2.0, 1e-9], [1e-9, 1.0]])
    >>> rayleigh_ritz(np.eye(2), A).values
    array([2., 1.])
    """
    V, W = np.asarray(V, np.float64), np.asarray(images, np.float64)
    T = V.T @ W
    theta, S = np.linalg.eigh((T + T.T) / 2)
    theta, S = theta[::-1].copy(), np.ascontiguousarray(S[:, ::-1])
    vectors = V @ S
    return Eigenpairs(theta, vectors, np.asarray(np.linalg.norm(W @ S - vectors * theta, axis=0)))


def _relative(residuals: Floats, values: Floats) -> float:
    scale = float(np.max(np.abs(values), initial=0.0))
    largest = float(np.max(residuals, initial=0.0))
    return largest / scale if scale > 0 else largest
