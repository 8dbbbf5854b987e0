"""The mathematics of kernel discriminant analysis: class targets, scatter, the dense method, leaving one out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from mercer.engine.backend import one_blas_thread
from mercer.operators import row_blocks
from mercer.planning import costs
from mercer.solvers import DensePencil, Pencil, Solution, solve

__all__ = [
    "RUN",
    "ClassScatter",
    "Directions",
    "class_targets",
    "dense_directions",
    "in_proportion",
    "landmark_directions",
    "leave_one_out_errors",
    "leave_one_out_scores",
    "leverages",
]


RUN = 1 << 19
"""Entries of F that are worked on at once."""


class Directions(NamedTuple):
    """w = Σⱼ aⱼ φ(anchor j): a in columns, the scores wᵀφ(xᵢ) of the rows, and the inner products of the w."""

    dual: np.ndarray
    scores: np.ndarray
    gram: np.ndarray

    def take(self, columns: Any) -> Directions:
        """Some of the directions."""
        return Directions(self.dual[:, columns], self.scores[:, columns], self.gram[np.ix_(columns, columns)])

    def times(self, factors: np.ndarray) -> Directions:
        """Each direction times a number."""
        return Directions(self.dual * factors, self.scores * factors, self.gram * np.outer(factors, factors))


def class_targets(mass: np.ndarray) -> np.ndarray:
    """U of shape (c, c − 1) with Uᵀ diag(m) U = I and Uᵀ m = 0: what each class is to be mapped to.

    Given to the rows of the classes, its columns are an orthonormal basis of the centred class indicators.

    Examples
    --------
    >>> import numpy as np
    >>> U = class_targets(np.array([3.0, 1.0, 2.0]))
    >>> bool(np.allclose(U.T @ np.diag([3.0, 1.0, 2.0]) @ U, np.eye(2))), bool(np.allclose(U.T @ [3.0, 1.0, 2.0], 0))
    (True, True)
    """
    root = np.sqrt(mass)
    Q = np.linalg.qr(np.column_stack([root, np.eye(len(root), len(root) - 1)]))[0]
    return np.asarray(Q[:, 1:] / root[:, None])


class ClassScatter(NamedTuple):
    """The classes in scores F: their means, S_B = Σ mᵢ(μᵢ − μ)(μᵢ − μ)ᵀ and S_W = S₁ + … + S_c."""

    means: np.ndarray
    between: np.ndarray
    within: np.ndarray

    @classmethod
    def of(cls, F: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> ClassScatter:
        """From the scores of the rows (n, k), their classes 0 … c − 1 and their weights."""
        indicators = (labels[:, None] == np.arange(labels.max() + 1)) * weights[:, None]
        mass = indicators.sum(axis=0)
        means = indicators.T @ F / mass[:, None]
        away = means - mass @ means / mass.sum()
        inner = F - means[labels]
        return cls(means, (away.T * mass) @ away, (inner.T * weights) @ inner)


def dense_directions(
    K: np.ndarray, targets: np.ndarray, weights: np.ndarray, delta: float, eps: float
) -> tuple[Solution[Any], np.ndarray, float]:
    r"""S_B w = λ (S_W + δI) w in an orthonormal basis of span φ(xᵢ).

    Returns the solution, a with w = Σ aᵢ φ(xᵢ) in columns, and the smallest eigenvalue of K (weighted).

    With D = diag(weights) and D^½ K D^½ = Q diag(s) Qᵀ the rows of Q s^½ are the coordinates of √wᵢ φ(xᵢ), and
    a = D^½ Q s^(−½) t for w with coordinates t. Eigenvalues s ≤ eps·n·s₁ are rounding and are left out, so that K may
    be singular. K is overwritten.
    """
    root = np.sqrt(weights)
    K *= root[:, None] * root
    with one_blas_thread(costs.eigen_operations(len(K))):
        s, Q = np.linalg.eigh(K)
    least, kept = float(s[0]), s > eps * len(s) * max(float(s[-1]), 0.0)
    s, Q = s[kept], Q[:, kept]
    coordinates = Q * np.sqrt(s)
    apart = (root[:, None] * targets).T @ coordinates
    mean = root @ coordinates / np.linalg.norm(root)
    between = apart.T @ apart
    within = np.diag(s + delta) - between - np.outer(mean, mean)
    solution = solve(DensePencil(), Pencil(between, within, min(targets.shape[1], len(s))))
    T = np.empty((len(s), 0)) if solution.x is None else np.asarray(solution.x.vectors)
    return solution, root[:, None] * (Q @ (T / np.sqrt(s)[:, None])), least


def in_proportion(labels: np.ndarray, most: int, seed: int) -> np.ndarray:
    """At most so many rows, ascending, drawn from each class in its proportion; very rare classes may be missing.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.repeat([0, 1, 2], [90, 9, 3])
    >>> np.bincount(labels[in_proportion(labels, 34, seed=0)])
    array([30,  3,  1])
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    by_class = order[np.argsort(labels[order], kind="stable")]
    return np.sort(by_class[np.arange(most) * n // most])


def leave_one_out_errors(
    values: np.ndarray, vectors: np.ndarray, targets: np.ndarray, weights: np.ndarray, deltas: np.ndarray
) -> np.ndarray:
    r"""Σᵢ wᵢ ‖yᵢ − f₍ᵢ₎(xᵢ)‖² / Σ wᵢ for each δ, f₍ᵢ₎ the ridge regression with intercept fitted without row i.

    yᵢ − f₍ᵢ₎(xᵢ) = (yᵢ − f(xᵢ)) / (1 − hᵢ mᵢ/wᵢ) with hᵢ the diagonal of the hat matrix and mᵢ = min(1, wᵢ) what is
    left out: of a row of weight 2 one of its two copies.

    Parameters
    ----------
    values, vectors : arrays of shapes (n,) and (n, n)
        Eigenpairs of the centred D^½ K D^½.
    targets : array of shape (n, r)
        yᵢ, with Σ wᵢ yᵢ = 0.
    weights, deltas : arrays of shapes (n,) and (m,)
    """
    root, total = np.sqrt(weights), weights.sum()
    coordinates = vectors.T @ (root[:, None] * targets)
    # By what is shrunk away: 1 − h may be as small as δ/λ, and eigenvalues that are rounding, over δ, would exceed it.
    rounding = np.finfo(np.float64).eps * len(values) * float(np.max(values, initial=0.0))
    left = deltas / (np.where(values > rounding, values, 0.0)[:, None] + deltas)
    share = np.minimum(1.0, 1.0 / weights)[:, None]
    free = vectors**2 @ left - (weights / total)[:, None]  # of all δ in one product
    free = np.maximum(1.0 - share + share * free, np.finfo(np.float64).eps)
    errors = np.zeros(len(deltas))
    for c in coordinates.T:
        errors += np.sum((vectors @ (left * c[:, None]) / free) ** 2, axis=0)
    return errors / total


def landmark_directions(
    Phi: np.ndarray, root: np.ndarray, targets: np.ndarray, weights: np.ndarray, delta: float
) -> tuple[Directions, float]:
    r"""S_B w = λ (S_W + δI) w in the features Φ of landmarks, by the same regression: b = (Φ̃ᵀDΦ̃ + δI)⁻¹Φ̃ᵀDU.

    w = b v with UᵀDΦb v = ν v, descending in ν, those with ν above rounding; a = root w on the landmarks. Returned with
    the residual of Φ̃ᵀD(UUᵀDz/ν − z̃) = δw for the scores z = Φw, relative to the first term.
    """
    mean = weights @ Phi / weights.sum()
    S = delta * np.eye(Phi.shape[1])
    for some in row_blocks(len(Phi), Phi.shape[1], RUN):
        B = np.sqrt(weights[some])[:, None] * (Phi[some] - mean)
        S += B.T @ B
    D = weights[:, None] * targets
    b = scipy.linalg.cho_solve(scipy.linalg.cho_factor(S, overwrite_a=True), Phi.T @ D)
    G = D.T @ (Phi @ b)
    nu, v = np.linalg.eigh((G + G.T) / 2)
    keep = np.argsort(-nu)[: int(np.sum(nu > 1e3 * np.finfo(np.float64).eps * max(float(nu[-1]), 1e-3)))]
    W = b @ v[:, keep]
    F = Phi @ W
    between = Phi.T @ (D @ (D.T @ F) / nu[keep])
    off = between - Phi.T @ (weights[:, None] * (F - weights @ F / weights.sum())) - delta * W
    scale = np.maximum(np.linalg.norm(between, axis=0), np.finfo(np.float64).tiny)
    residual = float(np.max(np.linalg.norm(off, axis=0) / scale, initial=0.0))
    return Directions(root @ W, F, W.T @ W), residual


def leverages(F: np.ndarray, diagonal_correction: np.ndarray, weights: np.ndarray, delta: float) -> np.ndarray:
    r"""hᵢ = ∂f(xᵢ)/∂yᵢ of ridge regression with intercept for K ≈ FFᵀ + diag(diagonal_correction), in O(n r²).

    1 − hᵢ = (δ/wᵢ)(A⁻¹ᵢᵢ − (A⁻¹1)ᵢ²/1ᵀA⁻¹1) with A = FFᵀ + diag(diagonal_correction + δ/w), inverted by Woodbury's
    formula, with F in the precision that it has.

    >>> h = leverages(np.zeros((4, 1)), np.zeros(4), np.ones(4), 1.0)  # the mean alone
    >>> bool(np.allclose(h, 0.25))
    True
    """
    e = diagonal_correction + delta / weights
    root = np.sqrt(e)
    S, share = np.eye(F.shape[1]), np.zeros(F.shape[1])
    for some, G in _over(F, root):
        S += G.T @ G
        share += G.T @ (1 / root[some]).astype(F.dtype)
    # Multiply by the small inverse: substitution is no more exact here, and takes LAPACK twice as long.
    with one_blas_thread():  # SciPy's threads would take the cores from NumPy's
        inverse = scipy.linalg.lapack.dtrtri(np.linalg.cholesky(S), lower=1)[0]
    explained, image = np.empty(len(F)), np.empty(len(F))
    right, share = inverse.astype(F.dtype).T, (inverse.T @ (inverse @ share)).astype(F.dtype)
    for some, G in _over(F, root):
        V = G @ right
        explained[some], image[some] = np.einsum("ij,ij->i", V, V, dtype=np.float64), G @ share
    diagonal, ones = np.maximum(1.0 - explained, 0.0) / e, (1 / root - image) / root
    free = delta / weights * (diagonal - ones**2 / ones.sum())
    return np.asarray(1.0 - np.clip(free, np.finfo(np.float64).eps, 1.0))


def _over(F: np.ndarray, root: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """diag(root)⁻¹F, some rows at a time, so that there is no second F."""
    for some in row_blocks(len(F), F.shape[1], RUN):
        yield some, F[some] / root[some, None].astype(F.dtype)


def leave_one_out_scores(
    F: np.ndarray, labels: np.ndarray, weights: np.ndarray, eigenvalues: np.ndarray, h: np.ndarray
) -> np.ndarray:
    r"""zᵢ − (gᵢ − zᵢ) ℓᵢ/(1 − ℓᵢ) with ℓᵢ = hᵢ min(1, 1/wᵢ): the score of a row on the directions found without it.

    The scores are those of a ridge regression with intercept whose target in class c is g = m + (m_c − m)/ν with
    ν = λ/(1 + λ), m_c the mean score of the class and m of all. What is left out of a row of weight 2 is one of its two
    copies. The targets are those of all rows. The only member of a class keeps its score: without it there is no class.
    """
    means = ClassScatter.of(F, labels, weights).means
    mean = weights @ F / weights.sum()
    residuals = (mean + (means - mean) * (1 + 1 / eigenvalues))[labels] - F
    left = h * np.minimum(1.0, 1.0 / weights)
    alone = np.bincount(labels, weights=weights)[labels] <= np.minimum(1.0, weights)
    odds = np.where(alone, 0.0, left / np.maximum(1.0 - left, np.finfo(np.float64).eps))
    return np.asarray(F - odds[:, None] * residuals)
