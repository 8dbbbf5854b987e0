"""The affine subspace that kernel PCA finds, and where rows lie relative to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.estimators.base.indefinite import known_values
from mercer.gram import KernelOperator
from mercer.kernels import Kernel

__all__ = ["Components", "FeatureSubspace"]


class Components(NamedTuple):
    """The components that a fit found: A, c and k̄ as in `FeatureSubspace`, and their eigenvalues Nλⱼ."""

    eigenvalues: np.ndarray
    dual_coef: np.ndarray
    mean_coef: np.ndarray
    column_means: np.ndarray
    n: int
    """N, the rows that they were found from."""
    variance: float
    """N times the whole variance, tr K̃."""
    eigenvectors: np.ndarray | None = None
    """Eigenvectors of K̃, if all training rows are kept."""


@dataclass(frozen=True, eq=False)
class FeatureSubspace:
    r"""m + span(u₁, …, u_k) in feature space, m = Σ cᵢ φ(bᵢ) and uⱼ = Σᵢ Aᵢⱼ φ(bᵢ) orthonormal, over basis rows bᵢ.

    A row x has the scores yⱼ = ⟨φ(x) − m, uⱼ⟩ = Σᵢ Aᵢⱼ k(bᵢ, x) − k̄ᵀAⱼ with k̄ᵢ = ⟨φ(bᵢ), m⟩.
    """

    kernel: Kernel
    basis: Any
    """bᵢ: the training rows, or the landmarks."""
    dual_coef: np.ndarray
    """A, of shape (n, k)."""
    mean_coef: np.ndarray
    """c, of shape (n,)."""
    column_means: np.ndarray
    """k̄, of shape (n,)."""
    known_scores: np.ndarray | None = None
    """The scores of the basis rows, if the fit gave them."""

    def position(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores, and SPE = ‖φ(x) − m‖² − ‖y‖², of validated rows: one product."""
        columns = np.column_stack([self.dual_coef, self.mean_coef])
        # In float64 whatever the rows: SPE is a small difference.
        K = KernelOperator(self.kernel, rows, self.basis, dtype=np.float64)
        products = known_values(np.asarray(K @ columns), K, "KernelPCA")
        scores = products[:, :-1] - self.offset
        own = known_values(np.asarray(KernelOperator(self.kernel, rows, dtype=np.float64).diagonal()), K, "KernelPCA")
        return scores, self._outside(own, products[:, -1], scores)

    @property
    def offset(self) -> np.ndarray:
        """k̄ᵀA, the scores of a row whose kernel values are all 0 are −k̄ᵀA."""
        return np.asarray(self.column_means @ self.dual_coef)

    @property
    def mean_norm(self) -> float:
        """‖m‖²."""
        return float(self.mean_coef @ self.column_means)

    def basis_scores(self) -> np.ndarray:
        """Scores of the basis rows."""
        if self.known_scores is not None:
            return self.known_scores
        return np.asarray(KernelOperator(self.kernel, self.basis, dtype=np.float64) @ self.dual_coef) - self.offset

    def basis_spe(self) -> np.ndarray:
        """SPE of the basis rows, whose ⟨φ(b), m⟩ are known."""
        own = np.asarray(KernelOperator(self.kernel, self.basis, dtype=np.float64).diagonal())
        return self._outside(own, self.column_means, self.basis_scores())

    def _outside(self, own: np.ndarray, mean: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """k(x, x) − 2⟨φ(x), m⟩ + ‖m‖² − ‖y‖², at least 0."""
        centred = own - 2 * mean + self.mean_norm
        return np.asarray(np.maximum(centred - np.einsum("ij,ij->i", scores, scores), 0.0))
