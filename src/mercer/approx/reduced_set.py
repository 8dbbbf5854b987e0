"""Reduced sets: f = Σᵢ αᵢ φ(xᵢ) from fewer vectors, selected from the xᵢ and then moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from mercer.approx.nystroem_ridge import jittered_cholesky
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.derivatives import leaf_adjoints
from mercer.kernels.symbolic.expression import Expression, leaves_of
from mercer.kernels.symbolic.pairing import ArrayPair
from mercer.kernels.symbolic.values import evaluate
from mercer.operators import Operator

__all__ = ["Selection", "moved_vectors", "pairing_slopes", "projection", "select_vectors"]

Floats = NDArray[np.float64]

NOISE = 1e-12
"""A vector with less than this share of ‖φ(x)‖² outside the span of the others is in that span, up to rounding."""


class Selection(NamedTuple):
    """Indices of the selected vectors, their coefficients (m, t), and Σⱼ‖fⱼ − f̃ⱼ‖²/Σⱼ‖fⱼ‖² after each selection."""

    places: NDArray[np.intp]
    coefficients: Floats
    losses: Floats


def select_vectors(K: Operator, A: Floats, count: int, tolerance: float = 0.0) -> Selection:
    r"""Select vectors one after the other, each to lower Σⱼ‖fⱼ − Pfⱼ‖² most; P projects on the span of the selected.

    With R = f − Pf at all vectors and d the squared distances of the vectors from the span, the next vector has the
    largest Σⱼ R²ⱼ/d: orthogonal matching pursuit in feature space. A pivoted Cholesky factorisation updates d and R.
    The coefficients are those of the projections. It takes O(n m (m + t)) operations and m columns of K.

    Parameters
    ----------
    K : Operator of shape (n, n)
        The kernel matrix of the vectors.
    A : array of shape (n, t)
        Their coefficients in each fⱼ.
    count : int
        Most vectors to select; fewer are selected if they span all.
    tolerance : float
        Stop if √(Σ‖fⱼ − Pfⱼ‖²/Σ‖fⱼ‖²) is at most this.

    Returns
    -------
    Selection

    References
    ----------
    B. Schölkopf, S. Mika, C. J. C. Burges et al. (1999). Input space versus feature space in kernel-based methods. IEEE
    Transactions on Neural Networks 10.
    P. Vincent, Y. Bengio (2002). Kernel matching pursuit. Machine Learning 48.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> select_vectors(Dense([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [2.0]]), 1)
    Selection(places=array([1]), coefficients=array([[2.]]), losses=array([0.2]))
    """
    n, cap = K.shape[0], min(int(count), K.shape[0])
    R = np.array(K @ np.ascontiguousarray(A, np.float64))
    whole = float(np.vdot(A, R))
    d = np.array(K.diagonal(), np.float64)
    noise = NOISE * d
    L, C = np.empty((cap, n)), np.empty((cap, A.shape[1]))
    places, losses, left = np.empty(cap, np.intp), np.empty(cap), whole
    m = 0
    while m < cap and left > max(tolerance**2, np.finfo(float).eps) * whole:
        gains = np.where(d > noise, np.einsum("ij,ij->i", R, R) / np.maximum(d, np.finfo(float).tiny), -1.0)
        p = int(gains.argmax())
        if gains[p] <= 0:
            break
        root = np.sqrt(d[p])
        column = (np.asarray(K.rows([p])[0], np.float64) - L[:m, p] @ L[:m]) / root
        L[m], C[m], places[m] = column, R[p] / root, p
        R -= np.outer(column, C[m])
        d -= column**2
        d[p] = 0.0
        left -= float(C[m] @ C[m])
        losses[m] = max(left, 0.0) / whole
        m += 1
    B = scipy.linalg.solve_triangular(L[:m, places[:m]].T, C[:m], lower=True, trans="T") if m else C[:0]
    return Selection(places[:m], np.asarray(B), losses[:m])


def moved_vectors(kernel: Kernel, X: Floats, A: Floats, Z: Floats, steps: int) -> Floats | None:
    r"""Z moved by L-BFGS to lower Σⱼ‖fⱼ − f̃ⱼ‖² with f̃ in the span of its rows; None without `pairing_slopes`.

    For each Z the coefficients are the best ones, B = K_zz⁻¹K_zxA. So the gradient is that of
    −2 tr BᵀK_zxA + tr BᵀK_zzB for a fixed B.

    References
    ----------
    C. J. C. Burges (1996). Simplified support vector decision rules. ICML.
    G. Golub, V. Pereyra (1973). The differentiation of pseudo-inverses and nonlinear least squares problems. SIAM J.
    Numerical Analysis 10.
    """
    slopes = pairing_slopes(kernel)
    if slopes is None:
        return None

    def loss(z: Floats) -> tuple[float, Floats]:
        now = z.reshape(Z.shape)
        B, V, _ = _projected(kernel, X, A, now)
        pull = slopes(now, X, -2 * B @ A.T) + slopes(now, now, 2 * B @ B.T)
        return -float(np.vdot(B, V)) / size, pull.ravel() / size

    B, V, _ = _projected(kernel, X, A, Z)
    size = float(np.vdot(B, V)) or 1.0
    found = scipy.optimize.minimize(loss, Z.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": int(steps)})
    return np.asarray(found.x).reshape(Z.shape)


def projection(kernel: Kernel, X: Any, A: Floats, Z: Any) -> tuple[Floats, Floats]:
    """The coefficients of the projections f̃ on the rows Z, and an array (2, t) of ‖fⱼ − f̃ⱼ‖² and ‖fⱼ‖²."""
    B, V, K = _projected(kernel, X, A, Z)
    whole = np.einsum("ij,ij->j", A, KernelOperator(kernel, X, dtype=np.float64) @ A)
    left = whole + np.einsum("ij,ij->j", B, K @ B - 2 * V)
    return B, np.stack([np.maximum(left, 0.0), whole])


def _projected(kernel: Kernel, X: Any, A: Floats, Z: Any) -> tuple[Floats, Floats, Floats]:
    """B = K_zz⁻¹V, V = K_zxA, and K_zz."""
    K = np.asarray(KernelOperator(kernel, Z, dtype=np.float64).toarray())
    V = np.asarray(KernelOperator(kernel, Z, X, dtype=np.float64) @ A)
    C, _ = jittered_cholesky(K)
    return np.asarray(scipy.linalg.cho_solve((C, False), V)), V, K


def pairing_slopes(kernel: Kernel) -> Callable[[Floats, Floats, Floats], Floats] | None:
    r"""(Z, X, W) ↦ Σⱼ Wᵢⱼ ∂k(zᵢ, xⱼ)/∂zᵢ in the shape of Z; None unless k is a formula in ⟨z, x⟩, ‖z − x‖² and ⟨z, z⟩.

    >>> from mercer.kernels import Gaussian
    >>> pairing_slopes(Gaussian(0.5))(np.array([[1.0]]), np.array([[0.0]]), np.array([[1.0]])).round(4)
    array([[-0.6065]])
    """
    expression = trace_or_none(kernel)
    if expression is None:
        return None
    leaves = [leaf for leaf in leaves_of(expression) if leaf.op != "const"]
    if not {leaf.value for leaf in leaves} <= {("dot", ()), ("sqdist", ())}:
        return None

    def slopes(Z: Floats, X: Floats, W: Floats) -> Floats:
        pair, out, values = ArrayPair(Z, X), np.zeros_like(Z), dict[Expression, Any]()
        with np.errstate(all="ignore"):
            evaluate(expression, lambda leaf: _pairing(pair, leaf), values)
            found = leaf_adjoints(expression, values, W)
        for leaf, D in found.items():
            if leaf.op == "self_x":
                out += 2 * np.sum(D, axis=1)[:, None] * Z
            elif leaf.op == "pairing" and leaf.value[0] == "dot":
                out += D @ X
            elif leaf.op == "pairing":
                D = np.where(np.isfinite(D), D, 0.0)  # if z = x the slope may be infinite, but its factor z − x is 0
                out += 2 * (D.sum(axis=1)[:, None] * Z - D @ X)
        return out

    return slopes


def _pairing(pair: ArrayPair, leaf: Expression) -> Any:
    if leaf.op == "pairing":
        return pair.dot if leaf.value[0] == "dot" else pair.sqdist
    return pair.xx if leaf.op == "self_x" else pair.zz
