"""The spectrum of a kernel matrix in its own precision: both ends, with its symmetry and diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.operators import Dense, Identity, Operator, Scaled, Sum
from mercer.planning import costs
from mercer.solvers import BlockKrylov, Eigenproblem, leading_pairs, solve

__all__ = ["DENSE_UP_TO", "Spectrum", "spectrum_of"]

DENSE_UP_TO = 1000
"""Up to this many rows LAPACK computes all eigenvalues; for more rows block Krylov computes the two ends."""

KRYLOV_STEPS = 30
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Spectrum:
    """The ends of the spectrum of a kernel matrix, and derived quantities.

    Attributes
    ----------
    n : int
        Size of the matrix.
    dtype : str
        The dtype of the entries, which determines the rounding.
    smallest, largest : float
        The extreme eigenvalues. Block Krylov gives Rayleigh quotients, so that `smallest` is never below λmin.
    resolution : float
        The error of each eigenvalue relative to the largest.
    threshold : float
        eps·n: rounding of the entries can cause |λ|/λmax up to this (‖E‖₂ ≤ n max|Eᵢⱼ| ≤ n·eps·max|Kᵢⱼ|).
    condition : float
        λmax/λmin; inf if the matrix is singular to rounding.
    effective_rank : float
        (Σλ)²/Σλ²; it is r for r equal eigenvalues.
    rank : int or None
        Number of eigenvalues above the threshold, if all were computed.
    asymmetry : float
        max|K − Kᵀ|/max|K|.
    smallest_diagonal, largest_cosine : float
        min k(x, x), and max|k(x, z)|/√(k(x, x)k(z, z)), which is at most 1 for a kernel.
    conditional : float or None
        λmin/λmax of the centred matrix HKH.
    leading : array of int
        The rows of the largest entries of the eigenvector of λmin.
    """

    n: int
    dtype: str
    smallest: float
    largest: float
    resolution: float
    threshold: float
    condition: float
    effective_rank: float
    rank: int | None
    asymmetry: float
    smallest_diagonal: float
    largest_cosine: float
    conditional: float | None
    leading: NDArray[np.intp]

    @property
    def ratio(self) -> float:
        """λmin/max|λ|."""
        size = max(abs(self.smallest), abs(self.largest))
        return self.smallest / size if size > 0 else 0.0

    @property
    def is_indefinite(self) -> bool:
        """Whether λmin is negative beyond rounding."""
        return self.ratio < -self.threshold


def spectrum_of(K: Operator, most: int = 60, eps: float | None = None, dense: int = DENSE_UP_TO) -> Spectrum:
    """The spectrum of a kernel matrix, or only its ends if it is large, relative to the rounding of its entries.

    Parameters
    ----------
    K : Operator of shape (n, n)
    most : int
        Length of `leading`.
    eps : float, optional
        The rounding of the entries; by default that of their dtype.
    dense : int
        Up to this many rows all eigenvalues are computed; for more rows block Krylov computes the two ends.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> found = spectrum_of(Dense([[1.0, 2.0], [2.0, 1.0]]))
    >>> found.smallest, found.largest, found.is_indefinite
    (-1.0, 3.0, True)
    """
    n, unit = K.shape[0], float(np.finfo(K.dtype).eps) if eps is None else eps
    diagonal = np.asarray(K.diagonal(), np.float64)
    few = np.sort(np.random.default_rng(n).permutation(n)[:DENSE_UP_TO])
    block = np.asarray(K.toarray() if n <= dense else K.block(few, few), np.float64)
    size = float(np.max(np.abs(block), initial=0.0))
    asymmetry = float(np.max(np.abs(block - block.T), initial=0.0)) / size if size > 0 else 0.0
    rank, conditional = None, None
    if n <= dense:
        symmetric = (block + block.T) / 2
        values = _eigenvalues(symmetric)
        v = leading_pairs(-symmetric, 1, overwrite=True)[1][:, 0]
        ends, resolution = (float(values[0]), float(values[-1])), unit
        squares = float(np.sum(values**2))
        rank = int(np.count_nonzero(np.abs(values) > unit * n * np.max(np.abs(values))))
        conditional = _conditional(block) if n <= DENSE_UP_TO else None
    else:
        # Expensive entries are stored, because dozens of products follow.
        K = K if getattr(K, "cheap", True) else Dense(K.toarray(), symmetric=True)
        ends, v, resolution = _lanczos(K, unit * n)
        probe = np.sign(np.random.default_rng(1).standard_normal((n, 32)))
        squares = float(np.mean(np.sum(np.asarray(K @ probe) ** 2, axis=0)))
    top = max(abs(ends[0]), abs(ends[1]))
    return Spectrum(
        n=n,
        dtype=str(K.dtype),
        smallest=ends[0],
        largest=ends[1],
        resolution=resolution,
        threshold=unit * n,
        condition=ends[1] / ends[0] if ends[0] > unit * n * top else float("inf"),
        effective_rank=float(diagonal.sum()) ** 2 / squares if squares > 0 else 0.0,
        rank=rank,
        asymmetry=asymmetry,
        smallest_diagonal=float(diagonal.min()),
        largest_cosine=_largest_cosine(block),
        conditional=conditional,
        leading=np.sort(np.argsort(-np.abs(v))[:most]),
    )


def _lanczos(K: Operator, threshold: float) -> tuple[tuple[float, float], NDArray[Any], float]:
    """(λmin, λmax), the vector of λmin, and the error. λmin is computed as the top of a shift·I − K."""
    tolerance = max(threshold / 8, TOLERANCE)
    solver = BlockKrylov(tol=tolerance, max_steps=KRYLOV_STEPS)
    top = solve(solver, Eigenproblem(K, 1)).x
    assert top is not None
    largest = float(top.values[0])
    # An upper bound of |λ|, so that the top eigenvalue of the difference is also its largest in magnitude.
    shift = 1.01 * max(abs(largest), float(np.max(np.abs(K.diagonal()))))
    low = BlockKrylov(tol=tolerance, max_steps=KRYLOV_STEPS, start_from="random")
    mirrored = Sum(Scaled(Identity(K.shape[0], K.dtype), shift), Scaled(K, -1.0))
    bottom = solve(low, Eigenproblem(mirrored, 1)).x
    assert bottom is not None
    v = np.asarray(bottom.vectors[:, 0], np.float64)
    smallest = float(v @ (K @ v)) / float(v @ v)
    return (smallest, largest), v, float(max(bottom.residuals[0], top.residuals[0])) / max(shift, 1e-300)


def _eigenvalues(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    with one_blas_thread(costs.eigen_operations(len(matrix))):
        return np.asarray(np.linalg.eigvalsh(matrix))


def _conditional(block: NDArray[np.float64]) -> float:
    """λmin/λmax of HKH."""
    centred = block - block.mean(axis=0)
    values = _eigenvalues(centred - centred.mean(axis=1, keepdims=True))
    size = float(np.max(np.abs(values)))
    return float(values[0]) / size if size > 0 else 0.0


def _largest_cosine(block: NDArray[np.float64]) -> float:
    d = np.diagonal(block)
    sound = np.flatnonzero(d > 0)
    if not len(sound):
        return 0.0
    lengths = np.sqrt(d[sound])
    return float(np.max(np.abs(block[np.ix_(sound, sound)]) / np.outer(lengths, lengths)))
