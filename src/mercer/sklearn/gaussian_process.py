"""Gaussian processes with scikit-learn's words."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn import gaussian_process
from sklearn.base import _fit_context
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace as TheirLaplace
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils.validation import validate_data

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput
from mercer.select.laplace import LaplaceLikelihood
from mercer.select.marginal import ExactLikelihood
from mercer.sklearn.covariances import Translated, translated
from mercer.sklearn.faces import REFUSALS, Face, left

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]

BEYOND = (*REFUSALS, ArithmeticError)
"""The errors of parameters, or of values, that float64 does not hold as we compute them."""


def _of(kernel: Any, X: Any) -> Translated | None:
    """Our kernel for scikit-learn's on these rows, or None."""
    try:
        return translated(kernel, _columns(X))
    except InvalidInput:
        return None


def _columns(X: Any) -> int:
    shape = np.shape(X)
    return shape[1] if len(shape) > 1 else 1


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, REFUSALS) else "a parameter of the kernel, or its square, is beyond float64"


def _at(kernel: Any, theta: Any, clone_kernel: bool) -> Any:
    """The kernel with these parameters: a copy, or itself."""
    if clone_kernel:
        return kernel.clone_with_theta(theta)
    kernel.theta = theta
    return kernel


class Covered(Face):
    """A class of scikit-learn that takes its kernels."""

    kernel: Any

    def _covered(self, X: Any) -> bool:
        """Whether the kernel is one of ours; says why if it is not."""
        try:
            return self.kernel is None or bool(translated(self.kernel, _columns(X)))
        except InvalidInput as error:
            self._delegated(str(error))
            return False


class Process:
    """A Gaussian process of scikit-learn's, with our likelihood."""

    kernel_: Any
    X_train_: Any
    _kept: Any
    _left: str
    """Why an evaluation of the likelihood was scikit-learn's, in a fit that had one."""

    def fit(self, X: Any, y: Any) -> Self:
        """scikit-learn's fit, for all evaluations of which one likelihood serves: only θ changes between them."""
        self._kept, self._left = None, ""
        rows = next(iter(np.shape(y)), 0)  # scikit-learn refuses what has none
        try:
            with one_blas_thread(rows**3):
                return super().fit(X, y)  # type: ignore[misc, no-any-return]
        finally:
            del self._kept

    def _likelihood(self, found: Translated) -> Any:
        """Our likelihood of the training rows."""
        raise NotImplementedError

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """log p(y), and on request its gradient in θ."""
        kept = getattr(self, "_kept", None)
        if kept is None:
            found = None if theta is None else _of(_at(self.kernel_, theta, clone_kernel), self.X_train_)
            if found is None:
                return super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)  # type: ignore[misc]
            kept = found, self._likelihood(found), np.array(theta)
            if hasattr(self, "_kept"):
                self._kept = kept
        found, likelihood, start = kept
        at, why = None, ""
        try:
            values, powers = found.moved(likelihood.names, theta - start)
            at = likelihood(values, eval_gradient)
            if at is None:  # where K has no Cholesky factor, or the kernel has no values
                found.at(likelihood.names, values).operator(self.X_train_)
        except BEYOND as error:
            why = _reason(error)
        if at is None:
            return self._without_value(why, theta, eval_gradient, clone_kernel)
        value, gradient = at
        if not eval_gradient:
            return np.float64(value)
        slopes = dict(zip(likelihood.names, gradient.tolist(), strict=True))
        return np.float64(value), np.array([power * slopes[name] for name, power in powers])

    def _without_value(self, why: str, theta: Any, eval_gradient: bool, clone_kernel: bool) -> Any:
        """scikit-learn's likelihood where our kernel has no values, and why it has none; else −∞."""
        nothing: Any = (-np.inf, np.zeros(len(theta))) if eval_gradient else np.float64(-np.inf)
        if not why:
            return nothing
        try:
            with np.errstate(all="ignore"):
                found = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)  # type: ignore[misc]
        except ValueError:  # their matrix is not finite, or has no factor
            return nothing
        if not np.isfinite(found[0] if eval_gradient else found):
            return nothing
        if hasattr(self, "_kept"):
            self._left = why  # which the fit says once
        return found


class GaussianProcessRegressor(Covered, Process, gaussian_process.GaussianProcessRegressor):
    """`sklearn.gaussian_process.GaussianProcessRegressor` by the likelihood of `mercer.GaussianProcessRegressor`.

    Parameters
    ----------
    kernel, alpha, optimizer, n_restarts_optimizer, normalize_y, copy_X_train, n_targets, random_state
        As in scikit-learn. Kernels that `mercer` does not have are left to it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from mercer.sklearn.gaussian_process import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = GaussianProcessRegressor(RBF() + WhiteKernel()).fit(X, np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - 1) < 0.1), model.kernel_.theta.shape
    (True, (2,))
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Maximise the likelihood, by scikit-learn's search."""
        self._covered(X)
        super().fit(X, y)
        if why := self.__dict__.pop("_left"):
            self._delegated(why)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean, and on request the deviation or the covariance; those of the prior before a fit."""
        found = _of(self.kernel_, self.X_train_) if hasattr(self, "X_train_") else None
        if found is None:
            return super().predict(X, return_std, return_cov)
        twin = gaussian_process.GaussianProcessRegressor()
        twin.__dict__ = self.__dict__ | {"kernel_": found if return_std or return_cov else found.operator}
        try:
            return twin.predict(X, return_std, return_cov)
        except BEYOND as error:
            self._delegated(_reason(error))
            return super().predict(X, return_std, return_cov)

    def _likelihood(self, found: Translated) -> ExactLikelihood:
        Y = np.asarray(self.y_train_, np.float64).reshape(len(self.y_train_), -1)
        return ExactLikelihood(found.covariance(self.X_train_), Y, self.alpha, found.noise > 0)


class Laplace(Process, TheirLaplace):
    """scikit-learn's binary machine while it computes."""

    def latent_mean_and_variance(self, X: Any) -> Any:
        """K*ᵀ(y − π) and k(x, x) − ‖L⁻¹W^½ K*‖², as there, but L is a triangle for us, and any matrix for it."""
        found = _of(self.kernel_, self.X_train_)
        if found is None:
            return super().latent_mean_and_variance(X)
        try:
            K, prior = found(X, self.X_train_), found.diag(X)
        except BEYOND as error:
            left("GaussianProcessClassifier", _reason(error))
            return super().latent_mean_and_variance(X)
        mean = K @ (self.y_train_ - self.pi_)
        K *= self.W_sr_
        v = solve_triangular(self.L_, K.T, lower=True, overwrite_b=True, check_finite=False)
        return mean, prior - np.einsum("ij,ij->j", v, v)

    def _likelihood(self, found: Translated) -> LaplaceLikelihood:
        Y = np.asarray(self.y_train_, np.float64)[:, None]
        return LaplaceLikelihood(found.covariance(self.X_train_), Y, found.noise > 0)


class GaussianProcessClassifier(Covered, gaussian_process.GaussianProcessClassifier):
    """`sklearn.gaussian_process.GaussianProcessClassifier` by the likelihood of `mercer.GaussianProcessClassifier`.

    Parameters
    ----------
    kernel, optimizer, n_restarts_optimizer, max_iter_predict, warm_start, copy_X_train, random_state, multi_class
    n_jobs
        As in scikit-learn. Kernels that `mercer` does not have are left to it.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from mercer.sklearn.gaussian_process import GaussianProcessClassifier
    >>> model = GaussianProcessClassifier(RBF()).fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [5.5]])
    array([0, 1])
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Maximise the likelihoods, by scikit-learn's search."""
        if not self._covered(X) or len(np.unique(y)) == 1:
            return super().fit(X, y)
        X, y = validate_data(self, X, y, multi_output=False, ensure_2d=True, dtype="numeric")
        self.classes_ = np.unique(y)
        self.n_classes_ = len(self.classes_)
        own = machine = Laplace(**{name: getattr(self, name) for name in Laplace._get_param_names()})
        if self.n_classes_ > 2:
            pairs = self.multi_class == "one_vs_one"
            machine = (OneVsOneClassifier if pairs else OneVsRestClassifier)(own, n_jobs=self.n_jobs)
        self.base_estimator_ = machine.fit(X, y)
        machines = getattr(machine, "estimators_", [machine])
        reasons = [vars(one).pop("_left", "") for one in (own, *machines)]
        for one in (own, *machines):  # what is kept, copied and pickled is scikit-learn's
            one.__class__ = TheirLaplace
        if why := next(filter(None, reasons), ""):
            self._delegated(why)
        self.log_marginal_likelihood_value_ = np.mean([one.log_marginal_likelihood_value_ for one in machines])
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, by scikit-learn's integral over our latent function."""
        return self._computing().predict_proba(X)

    def latent_mean_and_variance(self, X: Any) -> Any:
        """The mean and the variance of the latent function of two classes."""
        return self._computing().latent_mean_and_variance(X)

    def _computing(self) -> TheirClassifier:
        """scikit-learn's model with our machines for its own."""
        twin = TheirClassifier()
        twin.__dict__ = dict(vars(self))
        if hasattr(self, "base_estimator_"):
            twin.base_estimator_ = _ours(self.base_estimator_)
        return twin


def _ours(machine: Any) -> Any:
    """A copy of a fitted machine, or of one of several, that computes here."""
    made = copy(machine)
    if hasattr(machine, "estimators_"):
        made.estimators_ = [_ours(one) for one in machine.estimators_]
    elif type(machine) is TheirLaplace:
        made.__class__ = Laplace
    return made
