"""Regularised least squares in the span of landmarks: the normal equations, preconditioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.engine.contract import HeldFactors
from mercer.errors import InvalidInput, message
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.factorizations.factor import noise
from mercer.gram import KernelOperator
from mercer.operators import Operator
from mercer.points import sample_rows

__all__ = [
    "OVERSAMPLING", "HeldRoot", "NystroemRidgeSystem", "TriangularRoot", "held_root", "jittered_cholesky",
    "nystroem_ridge_factor",
]  # fmt: skip

Floats = NDArray[np.float64]

OVERSAMPLING = 8
"""Sampled rows per landmark. For independent rows with m equal eigenvalues the spectrum is within (1 ± √⅛)² (Marchenko
and Pastur), so κ ≤ 4.4, and conjugate gradients take 7 steps for four digits. With 4 rows per landmark it would be
κ ≤ 9 and 11 steps. Distant rows outside the sample cost more steps: 86 for 1e-10 on a table of houses."""


PROBES = 4
"""Random vectors by which ‖K_mm‖ is measured, if it is not stored."""


@dataclass(frozen=True, eq=False)
class TriangularRoot:
    """An upper triangular C.

    Parameters
    ----------
    C : array of shape (m, m)
    """

    C: Floats

    def solve(self, V: Floats) -> Floats:
        """C⁻¹ V."""
        return np.asarray(scipy.linalg.solve_triangular(self.C, V, check_finite=False))

    def solve_transposed(self, V: Floats) -> Floats:
        """C⁻ᵀ V."""
        return np.asarray(scipy.linalg.solve_triangular(self.C, V, trans="T", check_finite=False))

    @property
    def norm(self) -> float:
        """‖C‖, the root of the sum of squares."""
        return float(np.linalg.norm(self.C))


@dataclass(frozen=True, eq=False)
class HeldRoot:
    r"""C = √(w/m) U T with TᵀT = K_mm, raised by its rounding, and UᵀU = TTᵀ + μI, in an engine's own memory.

    Parameters
    ----------
    factors : HeldFactors
        T and U, rounded to float32.
    scale : float
        √(w/m).
    norm : float
        ‖C‖, the root of the sum of squares.
    """

    factors: HeldFactors
    scale: float
    norm: float

    def solve(self, V: Floats) -> Floats:
        """C⁻¹ V."""
        return np.asarray(self.factors.solve(V) / self.scale)

    def solve_transposed(self, V: Floats) -> Floats:
        """C⁻ᵀ V."""
        return np.asarray(self.factors.solve_transposed(V) / self.scale)

    def inverse(self, V: Floats) -> Floats:
        """K_mm⁻¹ V, but for the rounding of T."""
        return np.asarray(self.factors.inverse(V))


Root: TypeAlias = TriangularRoot | HeldRoot


class NystroemRidgeSystem(Operator):
    r"""V ↦ C⁻ᵀ (K_nmᵀ W K_nm + λ K_mm) C⁻¹ V for a C with CᵀC ≈ K_nmᵀ W K_nm + λ K_mm.

    The coefficients are β = C⁻¹ z. In the coordinates z the operator is close to the identity. So the relative residual
    equals the relative error in the energy norm ‖f‖²_W + λ‖f‖²_H, up to the square root of the condition number. A
    product is one `Operator.normal_product`, which computes each entry of K_nm once for up to ten targets.

    Parameters
    ----------
    K_nm : Operator of shape (n, m)
        k(rows, landmarks), which is not stored.
    K_mm : array or Operator of shape (m, m), float64
        k(landmarks, landmarks).
    alpha : float
        λ.
    C : array of shape (m, m), TriangularRoot or HeldRoot
        An array is upper triangular.
    weights : array of shape (n,), optional
        The diagonal of W.

    Raises
    ------
    InvalidInput
        If K_mm, or an array C, is not an m × m matrix.

    References
    ----------
    A. Rudi, L. Carratino, L. Rosasco (2017). FALKON: an optimal large scale kernel method. NeurIPS.
    M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp, R. J. Webber (2023). Robust, randomized preconditioning for
    kernel ridge regression. arXiv:2304.12465. (KRILL.)

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> system = NystroemRidgeSystem(Dense([[1.0], [2.0]]), np.eye(1), 4.0, np.array([[3.0]]))
    >>> system @ [1.0]  # C⁻ᵀ (1 + 4 + λ) C⁻¹
    array([1.])
    """

    def __init__(
        self, K_nm: Operator, K_mm: Floats | Operator, alpha: float, C: Floats | Root, weights: Floats | None = None
    ) -> None:
        m = K_nm.shape[1]
        shape = (m, m) if isinstance(C, TriangularRoot | HeldRoot) else C.shape
        if K_mm.shape != (m, m) or shape != (m, m):
            given = f"{m} landmarks, K_mm of shape {K_mm.shape}, C of shape {shape}"
            raise InvalidInput(message("NystroemRidgeSystem", given, f"give two matrices of shape {(m, m)}"))
        self.K_nm, self.K_mm, self.alpha, self.weights = K_nm, K_mm, float(alpha), weights
        self.root = C if isinstance(C, TriangularRoot | HeldRoot) else TriangularRoot(C)
        super().__init__((m, m), K_nm.dtype, symmetric=True)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        beta = self.coefficients(np.asarray(V, np.float64))
        images = self.K_nm.normal_product(beta, self.weights) + self.alpha * (self.K_mm @ beta)
        return self.root.solve_transposed(images).astype(V.dtype, copy=False)

    def coefficients(self, Z: Floats) -> Floats:
        """β = C⁻¹ z."""
        return self.root.solve(Z)

    def right_side(self, Y: Floats) -> Floats:
        """C⁻ᵀ K_nmᵀ W y."""
        return self.root.solve_transposed(self.moments(Y))

    def moments(self, Y: Floats) -> Floats:
        """K_nmᵀ W y."""
        weighted = Y if self.weights is None else self.weights[:, None] * Y
        return np.asarray(self.K_nm.T.matmat(np.ascontiguousarray(weighted)), np.float64)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return NystroemRidgeSystem(self.K_nm.astype(dtype), self.K_mm, self.alpha, self.root, self.weights)


def nystroem_ridge_factor(
    K_nm: KernelOperator, K_mm: Floats, alpha: float, weights: Floats | None = None, seed: int = 0
) -> tuple[Floats, float]:
    r"""C with CᵀC = (n/s) K_smᵀ W_s K_sm + λ K_mm + jitter·I for s random rows, and the jitter.

    With at most eight rows per landmark all rows are used, and CᵀC is the matrix of the normal equations. The jitter is
    of the size of rounding. It changes C only, not the system.

    Parameters
    ----------
    K_nm : KernelOperator of shape (n, m)
    K_mm : array of shape (m, m)
    alpha : float
        λ.
    weights : array of shape (n,), optional
        The diagonal of W.
    seed : int
        Seed for the sample of rows.

    Returns
    -------
    C : array of shape (m, m)
    jitter : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelOperator
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 3, 12).reshape(-1, 1)
    >>> K_nm, k = KernelOperator(Gaussian(1.0), X, X[::4]), Gaussian(1.0)
    >>> C, _ = nystroem_ridge_factor(K_nm, k(X[::4]), 0.1)
    >>> bool(np.allclose(C.T @ C, K_nm.toarray().T @ K_nm.toarray() + 0.1 * k(X[::4])))
    True
    """
    n, m = K_nm.shape
    s = min(n, OVERSAMPLING * m)
    some = sample_rows(n, s, [seed, 4])
    scale = np.full(s, n / s) if weights is None else weights[some] * (n / s)
    return jittered_cholesky(K_nm.add_gram(some, scale, np.asfortranarray(alpha * K_mm)))


def held_root(K_mm: KernelOperator, alpha: float, weight: float, seed: int = 0) -> tuple[HeldRoot, float]:
    r"""C with CᵀC = (w/m) K_mm (K_mm + μI), μ = λm/w, for landmarks that stand for rows of weight w in sum.

    If rows are distributed as the landmarks, K_nmᵀ W K_nm ≈ (w/m) K_mm², and CᵀC is about the matrix of the normal
    equations: FALKON's preconditioner. C alone is rounded to float32; the system is not.

    Parameters
    ----------
    K_mm : KernelOperator of shape (m, m), float64
        Where `cholesky_rows` is at least m.
    alpha : float
        λ.
    weight : float
        w.
    seed : int
        Seed for the vectors by which ‖C‖ is measured.

    Returns
    -------
    C : HeldRoot
    jitter : float
        By how much more than its rounding K_mm was raised, so that it has a factor in float32.

    Raises
    ------
    InvalidInput
        If all entries of the diagonal are 0, or one is not finite, or K_mm has no factor at all.

    References
    ----------
    A. Rudi, L. Carratino, L. Rosasco (2017). FALKON: an optimal large scale kernel method. NeurIPS.
    """
    m, shift = K_mm.shape[0], alpha * K_mm.shape[0] / weight
    diagonal, entries = np.asarray(K_mm.diagonal()), K_mm.in_float32()
    assert isinstance(entries, KernelOperator)
    size = float(np.max(np.abs(diagonal)))
    jitter = rounding = noise(size, m, entries.dtype)
    while 0 < size < np.inf and jitter <= 2 * m * size:
        factors = entries.held_factors(jitter, shift)
        if factors is not None:
            Z = np.random.default_rng([seed, 6]).choice([-1.0, 1.0], (m, PROBES))
            square = float(np.sum((K_mm @ Z) ** 2)) / PROBES + shift * float(np.sum(diagonal))  # E ‖Kz‖² = ‖K‖²
            return HeldRoot(factors, float(np.sqrt(weight / m)), float(np.sqrt(weight / m * square))), jitter - rounding
        jitter *= 10
    given = "landmarks whose rows of K are 0, not finite, or not those of a Mercer kernel"
    raise InvalidInput(message("held_root", given, "choose other landmarks"))


def jittered_cholesky(G: Floats) -> tuple[Floats, float]:
    """C with CᵀC = G + jitter·I for the upper triangle of G, and the jitter.

    The jitter is the first of 0, mε, 100 mε, … times the largest diagonal entry for which the factorisation succeeds.

    >>> import numpy as np
    >>> C, jitter = jittered_cholesky(np.ones((2, 2)))
    >>> bool(np.allclose(C.T @ C, 1.0)), bool(0 < jitter < 1e-13)
    (True, True)
    """
    diagonal, jitter = np.diagonal(G).copy(), 0.0
    size = float(np.max(diagonal, initial=0.0))
    if not np.isfinite(size) or size <= 0:
        raise InvalidInput(
            message("jittered_cholesky", "landmarks whose rows of K are 0 or not finite", "choose other landmarks")
        )
    while True:
        A = np.array(G, order="C")
        A[np.diag_indices_from(A)] = diagonal
        factor = CholeskyFactor.of(A, jitter)
        if factor is not None:
            return np.triu(factor.buffer), jitter
        jitter = max(100 * jitter, len(G) * np.finfo(np.float64).eps * size)
