"""Laplace's approximation of a Gaussian process with a logistic likelihood: its mode, and its marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.special import expit

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput
from mercer.factorizations.cholesky import CholeskyFactor, upper_block
from mercer.factorizations.pivoted_cholesky import pivoted_cholesky
from mercer.operators import Dense
from mercer.points import sample_rows
from mercer.select.covariance import COARSE, NOISE, Covariance
from mercer.solvers import Logistic, NewtonLogistic, solve

__all__ = ["LaplaceLikelihood", "modes"]

Floats = NDArray[np.float64]
RANK = 200
"""Pivots that precondition Newton's steps, as for `KernelLogisticRegression`."""
TOLERANCE = 1e-13
"""Of the duality gap relative to the objective: the mode is then exact to about seven digits, and log q to ten."""

FEW = 500
"""Rows up to which a step of Newton's method factors its matrix: with 200 it is five times as fast."""
STEPS, SHORT, ROUNDING = 50, 1e-6, 1e-14
"""Most of these steps, the shortest share of one, and the rise of the objective that rounding explains."""


def modes(K: Floats, Y: Floats) -> tuple[Floats, Floats, float]:
    """α = Y − π(f) and f = Kα for each column of indicators, which has both 0 and 1, and the largest duality gap.

    f is the mode of p(f | y) ∝ N(f; 0, K) Πᵢ p(yᵢ | fᵢ): kernel logistic regression with the penalty 1 and no
    intercept.

    >>> alpha, f, gap = modes(np.eye(2), np.array([[1.0], [0.0]]))
    >>> f.round(4).T, bool(np.allclose(alpha, [[1.0], [0.0]] - expit(f))), gap < 1e-12
    (array([[ 0.4011, -0.4011]]), True, True)
    """
    if len(K) <= FEW:
        with one_blas_thread(len(K) ** 3 / 3):
            few = [one for one in (_by_factors(K, y) for y in Y.T) if one is not None]
        if len(few) == Y.shape[1]:
            alphas, scores, gaps = zip(*few, strict=True)
            return np.stack(alphas, axis=1), np.stack(scores, axis=1), max(gaps)
    operator, n = Dense(K, symmetric=True), len(K)
    F = pivoted_cholesky(operator, min(RANK, n), tol=1.0).F
    alpha, f, worst = np.empty(Y.shape), np.empty(Y.shape), 0.0
    for column in range(Y.shape[1]):
        one = Logistic(operator, Y[:, column].astype(np.intp), 1.0, intercept=False, factor=F)
        found = solve(NewtonLogistic(TOLERANCE), one)
        alpha[:, [column]], f[:, [column]] = found.x.coef, found.state.F
        worst = max(worst, found.residual)
    return alpha, f, worst


def _by_factors(K: Floats, y: Floats) -> tuple[Floats, Floats, float] | None:
    """α, f and the gap for one column, by Newton's method with a factor of B in each step; None if it does not settle.

    With r = α − y + π a step is α ← α − t(I + WK)⁻¹r, where (I + WK)⁻¹ = I − W^½ B⁻¹ W^½ K, and the gap is ½ rᵀKr.
    """
    a, f, signs, objective = np.zeros(len(y)), np.zeros(len(y)), 1 - 2 * y, len(y) * np.log(2)
    for _ in range(STEPS):
        p = expit(f)
        r = a - y + p
        image = K @ r
        gap = 0.5 * float(r @ image) / objective
        if abs(gap) <= TOLERANCE:
            return a, f, abs(gap)
        root = np.sqrt(p * (1 - p))
        B = _scaled(K, root)
        np.einsum("ii->i", B)[...] += 1.0
        _, half, failed = lapack.dposv(B.T, root * image, lower=1, overwrite_a=1)  # nobody else needs the factor
        if failed:
            return None
        step, t = root * half.ravel() - r, 1.0
        while t > SHORT:
            coef = a + t * step
            score = K @ coef
            new = float(np.sum(np.logaddexp(0.0, signs * score))) + 0.5 * float(coef @ score)
            if new <= objective * (1 + ROUNDING):
                break
            t /= 2
        else:
            return None
        a, f, objective = coef, score, new
    return None


def _scaled(K: Floats, root: Floats) -> Floats:
    """W^½ K W^½, with one matrix of room.

    >>> _scaled(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0]))
    array([[ 2.,  3.],
           [ 3., 18.]])
    """
    B = root[:, None] * K
    B *= root
    return B


@dataclass(frozen=True, eq=False)
class LaplaceLikelihood:
    r"""θ ↦ Σ log q(y), and its gradient in log θ, over columns y of indicators that share the kernel.

    log q(y) = log p(y | f) − ½ fᵀK⁻¹f − ½ log det B, B = I + W^½ K W^½, at the mode f with W = π(1 − π), π = σ(f).
    The mode moves with θ. With R = W^½ B⁻¹ W^½, Σ = (K⁻¹ + W)⁻¹, s = −½ diag Σ ∘ W(1 − 2π) and q = (I − RK)s,

        ∂ log q = ½ αᵀ∂K α − ½ tr(R ∂K) + qᵀ ∂K α.

    Parameters
    ----------
    covariance : Covariance
    Y : array of shape (n, columns)
        Of 0 and 1.
    noise : bool, default False
        Whether f has noise of its own in each row, whose variance is the last of θ: K is K(θ) + σ²I.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Algorithms 3.1, 5.1.
    """

    covariance: Covariance
    Y: Floats
    noise: bool = False

    how: ClassVar[str] = "by Laplace's approximation, in float64"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters θ."""
        return (*self.covariance.names, NOISE) if self.noise else self.covariance.names

    def error(self, theta: Floats) -> float:
        """The standard error of log q: 0."""
        return 0.0

    def coarse(self, seed: int) -> list[LaplaceLikelihood]:
        """The likelihoods of a quarter and of half of the rows, drawn at random; none if there are too few to save."""
        n = len(self.Y)
        if n < COARSE or self.covariance.kernel.space.numbered:
            return []
        draws = [sample_rows(n, n // share, seed) for share in (4, 2)]
        if not all(np.all((self.Y[some].min(axis=0) == 0) & (self.Y[some].max(axis=0) == 1)) for some in draws):
            return []
        return [LaplaceLikelihood(self.covariance.taken(some), self.Y[some], self.noise) for some in draws]

    def __call__(self, theta: Floats, gradient: bool = True) -> tuple[float, Floats] | None:
        """Σ log q and its gradient, empty unless asked for; None if K has no values, or is not positive definite."""
        try:
            K = self.covariance.matrix(theta[: len(self.covariance.names)])
        except InvalidInput:
            return None
        if self.noise:
            np.einsum("ii->i", K)[...] += theta[-1]
        alpha, f, _ = modes(K, self.Y)
        value, slopes = 0.0, np.zeros(len(self.names) if gradient else 0)
        for column in range(self.Y.shape[1]):
            found = self._of_column(theta, K, self.Y[:, column], alpha[:, column], f[:, column], gradient)
            if found is None:
                return None
            value += found[0]
            slopes += found[1]
        return value, slopes

    def _of_column(
        self, theta: Floats, K: Floats, y: Floats, a: Floats, f: Floats, gradient: bool
    ) -> tuple[float, Floats] | None:
        """log q(y) and its gradient, or 0: with one factor, whose memory the next column's takes."""
        p = expit(f)
        root = np.sqrt(p * (1 - p))
        factor = CholeskyFactor.of(_scaled(K, root), 1.0)
        if factor is None or not np.all(np.isfinite(f)):
            return None
        loss = float(np.sum(np.logaddexp(0.0, (1 - 2 * y) * f)))
        value = -loss - 0.5 * float(a @ f) - 0.5 * factor.log_determinant
        return value, self._slopes(theta, K, a, p, root, factor) if gradient else np.zeros(0)

    def _slopes(self, theta: Floats, K: Floats, a: Floats, p: Floats, root: Floats, factor: CholeskyFactor) -> Floats:
        with one_blas_thread(2 * len(a) ** 3 / 3):
            inverse = factor.inverted()
        # Σ = W^(−½)(I − B⁻¹)W^(−½), so that s needs no division by W.
        s = -0.5 * (1 - np.diagonal(inverse)) * (1 - 2 * p)
        q = s - root * blas.dsymv(1.0, inverse.T, root * (K @ s), lower=1)  # LAPACK has one triangle only

        def weights(rows: slice, columns: slice) -> Floats:
            pulls = np.outer(a[rows], a[columns] + q[columns]) + np.outer(q[rows], a[columns])
            return 0.5 * (pulls - root[rows, None] * upper_block(inverse, rows, columns) * root[columns])

        with one_blas_thread():
            slopes = self.covariance.contracted(theta[: len(self.covariance.names)], weights)
        if not self.noise:
            return slopes
        return np.append(slopes, theta[-1] * (a @ (0.5 * a + q) - 0.5 * root**2 @ np.diagonal(inverse)))
