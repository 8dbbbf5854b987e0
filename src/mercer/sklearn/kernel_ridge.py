"""Kernel ridge regression with scikit-learn's words."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import kernel_ridge
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mercer import estimators
from mercer.kernels import Precomputed
from mercer.sklearn.faces import REFUSALS, Face, quietly

__all__ = ["KernelRidge"]


class KernelRidge(Face, kernel_ridge.KernelRidge):
    """`sklearn.kernel_ridge.KernelRidge` by `mercer.KernelRidge`.

    Parameters
    ----------
    alpha, kernel, gamma, degree, coef0, kernel_params
        As in scikit-learn. A singular matrix is left to it, for least squares and its warning.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.kernel_ridge import KernelRidge
    >>> KernelRidge(alpha=0.01, kernel="rbf").fit([[0.0], [1.0], [2.0]], [0, 1, 0]).predict([[1.0]]).round(2)
    array([0.99])
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α; rows of weight 0 get 0."""
        theirs = X, y, sample_weight
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        kernel = self._named_kernel(X.shape[1])
        used = slice(None) if weights is None else np.flatnonzero(weights)
        rows = X[used] if kernel is not None else self._get_kernel(X)[used][:, used]
        alpha = self.alpha if np.ndim(self.alpha) == 0 else np.ravel(self.alpha)
        ridge = estimators.KernelRidge(Precomputed() if kernel is None else kernel, alpha)
        try:
            quietly(ridge.fit, rows, y[used], None if weights is None else weights[used])
        except REFUSALS as error:
            self._delegated(str(error))
            return super().fit(*theirs)
        self.dual_coef_ = np.zeros_like(ridge.dual_coef_, shape=y.shape)
        self.dual_coef_[used] = ridge.dual_coef_
        self.X_fit_, self.report_ = X, ridge.report_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(x)."""
        check_is_fitted(self)
        kernel = self._named_kernel(self.X_fit_.shape[1])
        if kernel is None:  # one product with the user's values
            return super().predict(X)
        rows = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        K = self._gram(kernel, rows, self.X_fit_)
        return super().predict(X) if K is None else np.asarray(K @ self.dual_coef_)
