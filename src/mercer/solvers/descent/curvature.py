"""The curvature of the logistic loss in coefficients of a kernel matrix, and linear systems with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.operators import Operator
from mercer.solvers.linear.system import Floats

__all__ = [
    "Curvature",
    "FeatureInverse",
    "Preconditioner",
    "Reduced",
    "feature_curvature",
    "pseudo_inverse",
    "summed_curvature",
]

CHUNK = 1 << 21
"""Entries of weighted features that are in memory at a time."""

Preconditioner = Callable[[Floats], Floats]


class Curvature:
    """T with Tᵢ Tᵢᵀ = wᵢ(diag pᵢ − pᵢpᵢᵀ) for each row: √(wp(1 − p)) for one column, √w(diag √p − p√pᵀ) for many."""

    def __init__(self, P: Floats, w: Floats, intercept: bool) -> None:
        self.P, self.w, self.intercept, self.single = P, w, intercept, P.shape[1] == 1
        self.roots = np.sqrt(w * P * (1 - P)) if self.single else np.sqrt(w * P)
        self.inverse = pseudo_inverse(summed_curvature(P, w)) if intercept else None

    def forward(self, V: Floats) -> Floats:
        """T V, row by row."""
        if self.single:
            return self.roots * V
        return self.roots * V - self.P * np.sum(self.roots * V, axis=1, keepdims=True)

    def adjoint(self, V: Floats) -> Floats:
        """Tᵀ V."""
        if self.single:
            return self.roots * V
        return self.roots * (V - np.sum(self.P * V, axis=1, keepdims=True))

    def matrix(self) -> Floats:
        """S of shape (t, n t), with Tᵢ in the columns i t to (i + 1) t; Q is I − Sᵀ(SSᵀ)⁺S."""
        if self.single:
            return self.roots.T
        n, t = self.P.shape
        blocks = np.einsum("ij,cj->icj", self.roots, np.eye(t)) - self.P[:, :, None] * self.roots[:, None, :]
        return np.ascontiguousarray(blocks.transpose(1, 0, 2).reshape(t, n * t))

    def projected(self, V: Floats) -> Floats:
        """Q V = V − Tᵀ1(1ᵀTTᵀ1)⁺1ᵀT V; V itself without an intercept."""
        if self.inverse is None:
            return V
        return V - self.adjoint(np.broadcast_to(self.inverse @ self.forward(V).sum(axis=0), V.shape))


class Reduced:
    """V ↦ (λI + QTᵀKTQ) V."""

    def __init__(self, K: Operator, penalty: float, T: Curvature) -> None:
        self.K, self.penalty, self.T = K, penalty, T

    def __call__(self, V: Floats) -> Floats:
        image = np.asarray(self.K.matmat(self.T.forward(self.T.projected(V))))
        return self.penalty * V + self.T.projected(self.T.adjoint(image))

    def inverse(self) -> Preconditioner | None:
        """V ↦ (λI + QTᵀKTQ)⁻¹ V by a dense factor of all n t rows; None if the matrix is not positive definite."""
        S, t = self.T.matrix(), self.T.P.shape[1]
        A = (S.T @ S) * np.repeat(np.repeat(np.asarray(self.K.toarray(), np.float64), t, axis=0), t, axis=1)
        if self.T.inverse is not None:
            for _ in range(2):  # Q from the left, then from the right, because A is symmetric
                A -= S.T @ (self.T.inverse @ (S @ A))
                A = np.ascontiguousarray(A.T)
        if not np.all(np.isfinite(A)):
            return None
        factor = CholeskyFactor.of((A + A.T) / 2, self.penalty)
        return None if factor is None else lambda V: factor.solve(V.ravel()).reshape(V.shape)


class FeatureInverse:
    """V ↦ λ(λI + QTᵀFFᵀTQ)⁻¹ V, the inverse of `Reduced` up to K ≈ FFᵀ; V itself without a factor F.

    With N = QTᵀF, class by class, and NᵀN + λI = LLᵀ it is V − NL⁻ᵀL⁻¹NᵀV. V stays in the range of QTᵀ. Outside of it
    `Reduced` is λI, and conjugate gradients that are led there take many steps for nothing.
    """

    def __init__(self, F: NDArray[Any] | None, penalty: float, T: Curvature) -> None:
        self.F, self.T, self.inner = F, T, None
        if F is not None and F.shape[1]:
            with one_blas_thread(float(F.size) * F.shape[1] * T.P.shape[1] ** 2):
                self.inner = CholeskyFactor.of(feature_curvature(F, T.P, T.w, T.intercept), penalty)

    def __call__(self, V: Floats) -> Floats:
        if self.F is None or self.inner is None:
            return V
        C = self.F.T @ self.T.forward(self.T.projected(V))
        C = self.inner.solve(C.T.ravel()).reshape(C.T.shape).T
        return V - self.T.projected(self.T.adjoint(self.F @ C))


def feature_curvature(Phi: NDArray[Any], P: Floats, w: Floats, intercept: bool) -> Floats:
    """The second derivatives Σᵢ Hᵢ ⊗ φᵢφᵢᵀ, Hᵢ = wᵢ(diag pᵢ − pᵢpᵢᵀ), of shape (t m, t m), class after class, if b
    follows where there is an intercept: one pass over Φ of shape (n, m).
    """
    (n, m), t = Phi.shape, P.shape[1]
    found, between = np.zeros((t * m, t * m)), np.zeros((t * m, t))
    own, sums = np.zeros((t, m, m)), np.zeros((t, m))
    step = max(1, CHUNK // max(t * m, 1))
    for first in range(0, n, step):
        part, chances, weight = Phi[first : first + step], P[first : first + step], w[first : first + step]
        for c, s in enumerate((weight * chances * (1 - chances)).T):  # p − p² would lose the digits of a small 1 − p
            scaled = s[:, None] * part
            own[c] += part.T @ scaled
            sums[c] += scaled.sum(axis=0)
        if t > 1:
            roots = np.sqrt(weight) * chances
            scaled = (roots[:, :, None] * part[:, None, :]).reshape(len(part), t * m)
            found -= scaled.T @ scaled
            between -= scaled.T @ roots
    for c in range(t):
        found.reshape(t, m, t, m)[c, :, c], between.reshape(t, m, t)[c, :, c] = own[c], sums[c]
    if intercept:
        found -= between @ pseudo_inverse(summed_curvature(P, w)) @ between.T
    return found


def summed_curvature(P: Floats, w: Floats) -> Floats:
    """Σᵢ wᵢ(diag pᵢ − pᵢpᵢᵀ), of shape (t, t)."""
    if P.shape[1] == 1:
        return np.asarray(np.sum(w * P * (1 - P), axis=0, keepdims=True))
    return np.asarray(np.diag(np.sum(w * P, axis=0)) - P.T @ (w * P))


def pseudo_inverse(H: Floats) -> Floats:
    """H⁺. For many columns it is computed on the complement of 1, because H1 = 0 exactly but not after rounding."""
    t = len(H)
    mean, size = (0.0, 0.0) if t == 1 else (1.0 / t, float(np.trace(H)) / t)
    Q = np.eye(t) - mean
    return np.asarray(Q @ np.linalg.pinv(Q @ H @ Q + size * mean, hermitian=True) @ Q)
