"""The mathematics of kernel canonical correlation: one view in its own basis, and the pairs of two views."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from mercer.approx.landmarks import landmark_features
from mercer.engine.backend import one_blas_thread
from mercer.estimators.pca.exact import noise_of
from mercer.gram import KernelOperator
from mercer.operators import Centered, LowRank, Operator
from mercer.operators.arrays import require_finite
from mercer.planning import costs
from mercer.solvers import leading_pairs

__all__ = ["CanonicalView", "Pairs", "canonical_pairs", "landmark_view", "spectral_view"]

LEAST_CORRELATION = 1e-7
"""A correlation comes from its square, so that below this it is rounding."""


class CanonicalView(NamedTuple):
    """K̃ ≈ U diag(s) Uᵀ over the eigenvalues s above rounding, and how to write a direction as Σⱼ aⱼ φ(anchor j).

    Attributes
    ----------
    matrix : Operator
        K̃, or its approximation.
    U, s : arrays of shapes (n, r) and (r,)
    lift : array of shape (m, r)
        a of the r orthonormal directions.
    origin : array of shape (r,)
        The mean of the training rows along them.
    anchors : rows, or their indices for a precomputed kernel
    lost : float
        The share of tr K that an approximation leaves out.
    """

    matrix: Operator
    U: np.ndarray
    s: np.ndarray
    lift: np.ndarray
    origin: np.ndarray
    anchors: Any
    lost: float

    def kept(self, shift: float) -> np.ndarray:
        """√(s/(s + shift)): what the penalty leaves of each direction; the sum of squares counts them."""
        return np.asarray(np.sqrt(self.s / (self.s + shift)))

    def stationarity(self, own: np.ndarray, other: np.ndarray, rho: np.ndarray, alpha: np.ndarray) -> float:
        """max ‖K̃(z' − ρ(z + shift·α))‖/‖K̃z'‖ for the scores z of this view and z' of the other; α times the shift."""
        wanted = np.asarray(self.matrix @ other)
        off = wanted - np.asarray(self.matrix @ (rho * (own + alpha)))
        return float(np.max(np.linalg.norm(off, axis=0) / np.linalg.norm(wanted, axis=0), initial=0.0))


def spectral_view(K: KernelOperator, anchors: Any, eps: float) -> CanonicalView:
    """K̃ = HKH by one eigendecomposition in float64; eigenvalues ≤ eps·n·s₁ are rounding and are left out."""
    matrix, n = Centered(K), K.shape[0]
    require_finite(matrix.column_means, "KernelCCA")
    whole = matrix.fill(np.empty(K.shape))
    with one_blas_thread(costs.eigen_operations(n)):
        s, U = scipy.linalg.eigh(whole.T, overwrite_a=True, check_finite=False, driver="evd")
    # If all rows are the same, even the largest is rounding: that of K before it was centred.
    noise = noise_of(float(np.sum(K.diagonal())), n, matrix.grand_mean, np.float64)
    keep = s > max(eps * n * float(s[-1]), noise)
    s, U = s[keep], U[:, keep]
    U -= U.mean(axis=0)
    lift = U / np.sqrt(s)
    return CanonicalView(matrix, U, s, lift, matrix.column_means @ lift, anchors, 0.0)


def landmark_view(K: KernelOperator, count: int, seed: int, eps: float) -> CanonicalView:
    """The same of Φ̃Φ̃ᵀ ≈ K̃, Φ̃ the centred features of the landmarks."""
    Phi, root, _, anchors, lost = landmark_features(K, count, seed)
    mean = Phi.mean(axis=0)
    noise = noise_of(float(np.einsum("ij,ij->", Phi, Phi)), len(Phi), float(mean @ mean), np.float64)
    Phi -= mean
    gram = Phi.T @ Phi
    with one_blas_thread(costs.eigen_operations(len(gram))):
        s, V = np.linalg.eigh(gram)
    keep = s > max(eps * len(Phi) * float(s[-1]), noise)
    s, V = s[keep], V[:, keep]
    return CanonicalView(LowRank(Phi), (Phi @ V) / np.sqrt(s), s, root @ V, mean @ V, anchors, lost)


class Pairs(NamedTuple):
    """ρ, and the coefficients of the directions of both views in their bases."""

    rho: np.ndarray
    x: np.ndarray
    y: np.ndarray


def canonical_pairs(x: CanonicalView, y: CanonicalView, shifts: tuple[float, float], k: int) -> Pairs:
    r"""The k largest singular values ρ of DₓUₓᵀUᵧDᵧ, D² = s/(s + shift), and √n (s + shift)^(−½) times the vectors.

    The scores of the rows are then √n U D p, so that their variance plus shift/n times ‖w‖² is 1.

    The vectors are those of the smaller of CᵀC and CCᵀ, so that only k of them are computed; that squares ρ, and what
    is below 1e-7 is dropped.
    """
    Dx, Dy = x.kept(shifts[0]), y.kept(shifts[1])
    C = Dx[:, None] * (x.U.T @ y.U) * Dy
    wide = C.shape[0] < C.shape[1]
    A = C.T if wide else C
    small = A.T @ A
    squares, Q = leading_pairs(small, min(k, len(small)), overwrite=True)
    rho = np.sqrt(np.clip(squares, 0.0, 1.0))
    keep = rho > LEAST_CORRELATION
    Q, rho = Q[:, keep], rho[keep]
    P = (A @ Q) / rho
    p, q = (Q, P) if wide else (P, Q)
    root = np.sqrt(len(x.U))
    return Pairs(rho, root * p / np.sqrt(x.s + shifts[0])[:, None], root * q / np.sqrt(y.s + shifts[1])[:, None])
