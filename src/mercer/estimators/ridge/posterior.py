"""The covariance of the Gaussian process of which kernel ridge regression is the posterior mean."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.ridge.least_squares import RidgeEstimator
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.gram import KernelOperator
from mercer.mixins import RegressorMixin
from mercer.points import human, parse_memory, require
from mercer.solvers import Status
from mercer.solvers.choose import STORED_SHARE
from mercer.ways.report import Report

__all__ = ["LeastSquaresRegressor", "Posterior"]


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""cov(f(x), f(z)) = k(x, z) − kₓᵀ G k_z, G = (K + λ diag(1/w))⁻¹; with intercept + (1 − 1ᵀGkₓ)(1 − 1ᵀGk_z)/1ᵀG1.

    f is a Gaussian process with covariance k, seen at the training rows with noise of variance λ/wᵢ; the intercept has
    a flat prior. The variance is that of f, to which a new observation adds its noise.

    If the matrix in float64 fits in 40 % of the memory budget its Cholesky factor is kept, and a row costs O(n²).
    Otherwise the systems G kₓ are solved by conjugate gradients, as many at a time as the budget allows.

    Attributes
    ----------
    model : RidgeEstimator
        The fitted model, as it was when the posterior was made.
    shift : float or array of shape (n,)
        λ/w.
    factor : CholeskyFactor or None
    mass : float
        1ᵀG1; infinite without an intercept.
    method : str
        The method taken.
    unit : float or array of shape (targets,)
        The unit of the targets, by which deviations are multiplied, and covariances by its square.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Equations 2.26, 2.42.

    Examples
    --------
    >>> from mercer import KernelRidge
    >>> posterior = KernelRidge("gaussian(gamma=1.0)", alpha=0.25).fit([[0.0]], [1.0]).posterior()
    >>> posterior.std([[0.0]]).round(4), posterior.method  # k(x, x) − 1/(1 + λ) = 0.2
    (array([0.4472]), 'Cholesky factor in float64 (8 B)')
    """

    model: RidgeEstimator
    shift: Any
    factor: CholeskyFactor | None
    mass: float
    method: str
    unit: Any = 1.0

    @classmethod
    def of(cls, model: RidgeEstimator, alpha: float, unit: Any = 1.0) -> Posterior:
        """The posterior of a fitted model, for the given λ."""
        model = copy(model)
        if model.restricted_:
            given = "the variance of a model restricted to landmarks, which does not know what they leave out"
            raise InvalidInput(message(type(model).__name__, given, 'choose solver="cholesky" or "cg"'))
        if model.kernel_.space.numbered:
            given = "the variance for a precomputed kernel, whose k(x, x) of new rows is not known"
            raise InvalidInput(message(type(model).__name__, given, "give the kernel and the rows themselves"))
        K = _training(model)
        n, budget = K.shape[0], parse_memory(model.memory)
        shift = alpha if model.sample_weight_ is None else alpha / model.sample_weight_
        factor, method = None, "conjugate gradients, matrix-free"
        if 8 * n * n <= STORED_SHARE * budget:
            method = f"Cholesky factor in float64 ({human(8 * n * n)})"
            factor = CholeskyFactor.of(K.fill(np.empty(K.shape)), shift)
            if factor is None:
                given = f"K + λI with λ = {alpha:.3g}, which is not positive definite in float64"
                raise InvalidInput(message(type(model).__name__, given, model._advice(Status.NOT_POSITIVE_DEFINITE)))
        found = cls(model, shift, factor, np.inf, method, unit)
        if not model.fit_intercept:
            return found
        mass = float(np.sum(found._solve(np.ones((n, 1)))))
        return cls(model, shift, factor, mass, method, unit)

    def std(self, X: Any, noise: float = 0.0) -> np.ndarray:
        """√var(f(x)) of each row, 0 if rounding leaves less; with `noise`, √(var(f(x)) + noise)."""
        rows, own = self._new(X)
        variance = known_values(np.asarray(own.diagonal(), np.float64), own, type(self.model).__name__)
        for block, C, S in self._solved(rows):
            variance[block] -= np.einsum("ij,ji->i", C, S)
            variance[block] += (1 - S.sum(axis=0)) ** 2 / self.mass
        return self._in_units(np.sqrt(np.maximum(variance, 0.0) + noise), self.unit)

    def covariance(self, X: Any, noise: float = 0.0) -> np.ndarray:
        """cov(f(x), f(z)) of all pairs of rows, of shape (m, m); with `noise`, of which each row has its own."""
        rows, own = self._new(X)
        m, n = own.shape[0], self._cross(rows).shape[1]
        need, budget = 8 * (2 * m * m + 2 * m * n), parse_memory(self.model.memory)
        require(need, budget, f"the covariance of {m} rows", ["ask for fewer rows", "return_std=True"])
        C = self._cross(rows).toarray()
        covariance, missed = own.toarray(), np.empty(m)
        for block, _, S in self._solved(rows):
            covariance[:, block] -= C @ S
            missed[block] = 1 - S.sum(axis=0)
        covariance += np.outer(missed, missed) / self.mass
        covariance = (covariance + covariance.T) / 2
        np.einsum("ii->i", covariance)[...] = np.maximum(np.diagonal(covariance), 0.0) + noise
        return self._in_units(covariance, np.square(self.unit))

    @staticmethod
    def _in_units(values: np.ndarray, unit: Any) -> np.ndarray:
        """Values for each target, of shape (…, targets), or for the only one."""
        return np.asarray(values * unit if np.ndim(unit) == 0 else np.multiply.outer(values, unit))

    def _new(self, X: Any) -> tuple[Any, KernelOperator]:
        """New rows, and their own kernel matrix."""
        rows = self.model._validate_new(X)
        return rows, KernelOperator(self.model.kernel_, rows, dtype=np.float64)

    def _cross(self, rows: Any) -> KernelOperator:
        return KernelOperator(self.model.kernel_, rows, self.model.X_fit_, dtype=np.float64)

    def _solved(self, rows: Any) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Blocks of the new rows, their kernel values C (rows, n), and G Cᵀ."""
        cross = self._cross(rows)
        m, n = cross.shape
        room = (1 - STORED_SHARE) * parse_memory(self.model.memory)
        width = int(np.clip(room // (8 * n * (4 if self.factor else 20)), 1, m))
        for start in range(0, m, width):
            block = slice(start, min(start + width, m))
            C = cross.rows(block)
            known_values(C, cross, type(self.model).__name__, start)
            yield block, C, self._solve(np.ascontiguousarray(C.T))

    def _solve(self, B: np.ndarray) -> np.ndarray:
        """G B."""
        if self.factor is not None:
            return self.factor.solve(B)
        report = Report(memory_budget=parse_memory(self.model.memory), d=getattr(self.model, "n_features_in_", 0))
        return np.asarray(self.model._solve(_training(self.model), B, self.shift, report).x)


def _training(model: RidgeEstimator) -> KernelOperator:
    return KernelOperator(model.kernel_, model.X_fit_, dtype=np.float64)


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, RidgeEstimator):
    """Least squares that predicts, and knows how sure it is: the posterior of a Gaussian process."""

    alpha_: Any

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        r"""f(x) + b for each row, in float64; on request with the Gaussian process's standard deviation or covariance.

        Ridge regression is the posterior mean of f ~ GP(0, k) seen with noise of variance λ/wᵢ, and cov(f(x), f(z)) =
        k(x, z) − kₓᵀ (K + λ diag(1/w))⁻¹ k_z then. It is that of f, without the noise of a new observation: add λ for
        it. A kernel that is the prior covariance but for a factor σ² gives the covariance but for σ²: multiply std by
        the root of `prior_variance()`, which estimates σ² from the targets. An intercept is a b with a flat prior,
        whose uncertainty is counted.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)
        return_std, return_cov : bool
            At most one of the two. Each such call factors the matrix anew: ask for all rows at once, or keep
            `posterior()`.

        Returns
        -------
        f : array of shape (m,) or (m, targets)
        std : array of the same shape, with `return_std`
        cov : array of shape (m, m) or (m, m, targets), with `return_cov`

        Examples
        --------
        >>> from mercer import KernelRidge
        >>> model = KernelRidge("gaussian(gamma=1.0)", alpha=0.01).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.predict([[0.0], [50.0]], return_std=True)[1].round(3)
        array([0.099, 1.   ])
        """
        if return_std and return_cov:
            given = "return_std and return_cov"
            raise InvalidInput(message(type(self).__name__, given, "ask for one: the variances are cov's diagonal"))
        mean = self._decide(X)
        if not (return_std or return_cov):
            return mean
        alphas = np.broadcast_to(self.alpha_, mean.shape[1:] or 1)
        values, which = np.unique(alphas, return_inverse=True)
        ask = Posterior.covariance if return_cov else Posterior.std
        found = [ask(Posterior.of(self, float(value)), X) for value in values]  # one factor at a time
        return mean, found[0] if mean.ndim == 1 else np.stack([found[i] for i in which], axis=-1)

    def prior_variance(self) -> Any:
        r"""σ̂² = (y − b)ᵀα/n, the maximum likelihood estimate of σ² for f ~ GP(0, σ²k) and noise of variance σ²λ/wᵢ.

        It has the squared units of the targets, while `k` has none.

        Returns
        -------
        float, or array of shape (targets,)

        Raises
        ------
        InvalidInput
            If the model is restricted to landmarks: it does not know its targets then.

        Examples
        --------
        >>> from mercer import KernelRidge
        >>> model = KernelRidge("gaussian(gamma=1.0)", alpha=0.01).fit([[0.0], [1.0]], [0.0, 100.0])
        >>> round(model.prior_variance())
        5708
        """
        check_is_fitted(self)
        if self.restricted_:
            given = "the prior variance of a model restricted to landmarks, which does not know its targets"
            raise InvalidInput(message(type(self).__name__, given, 'choose solver="cholesky" or "cg"'))
        weights = 1.0 if self.sample_weight_ is None else self.sample_weight_
        alpha = np.asarray(self.dual_coef_)
        noise = self.alpha_ * (alpha.T / weights).T
        y = self._decide(self.X_fit_) - self.intercept_ + noise  # the targets, less the intercept
        return np.einsum("i...,i...->...", y, alpha) / len(alpha)

    def posterior(self) -> Posterior:
        """The Gaussian process's covariance given the training rows, with its factor, for as many calls as wanted.

        Raises
        ------
        InvalidInput
            If the targets have several λ, and so several posteriors.
        """
        check_is_fitted(self)
        values = np.unique(self.alpha_)
        if len(values) > 1:
            given = f"{len(values)} different α of the targets"
            raise InvalidInput(message(type(self).__name__, given, "fit one model for each"))
        return Posterior.of(self, float(values[0]))
