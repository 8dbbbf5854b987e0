"""Explicit features of kernels with scikit-learn's words."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn import kernel_approximation
from sklearn.base import _fit_context
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.planning import costs
from mercer.sklearn.faces import Face, precision

__all__ = ["AdditiveChi2Sampler", "Nystroem", "PolynomialCountSketch", "RBFSampler", "SkewedChi2Sampler"]

AdditiveChi2Sampler = kernel_approximation.AdditiveChi2Sampler
PolynomialCountSketch = kernel_approximation.PolynomialCountSketch
RBFSampler = kernel_approximation.RBFSampler
SkewedChi2Sampler = kernel_approximation.SkewedChi2Sampler
"""These are scikit-learn's own: a feature costs one product and one function, which NumPy computes as fast."""

FEWER_ROWS = (
    "n_components > n_samples. This is not possible.\n"
    "n_components was set to n_samples, which results in inefficient evaluation of the full kernel."
)


class Nystroem(Face, kernel_approximation.Nystroem):
    """`sklearn.kernel_approximation.Nystroem` on mercer's engine, with the rows that scikit-learn draws.

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params, n_components, random_state, n_jobs
        As in scikit-learn. kernel="precomputed" is left to it.

    Examples
    --------
    >>> from mercer.sklearn.kernel_approximation import Nystroem
    >>> Nystroem(n_components=2, random_state=0).fit_transform([[0.0], [1.0], [2.0]]).shape
    (3, 2)
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the rows, and take the root of their kernel matrix."""
        if self.kernel == "precomputed":
            self._delegated("kernel='precomputed' leaves a factorisation")
            return super().fit(X)
        X = validate_data(self, X, accept_sparse="csr")
        n = X.shape[0]
        if self.n_components > n:
            warnings.warn(FEWER_ROWS, stacklevel=2)
        self._n_features_out = min(n, self.n_components)
        self.component_indices_ = check_random_state(self.random_state).permutation(n)[: self._n_features_out]
        self.components_ = X[self.component_indices_]
        K = self._values(self.components_)
        self.normalization_ = _root(K.toarray() if hasattr(K, "kernel") else K)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        K = self._values(X, self.components_)
        if isinstance(K, np.ndarray):
            return K @ self.normalization_.T
        return K.features(self.normalization_, precision(X, self.components_))

    def _values(self, X: Any, Z: Any = None) -> Any:
        """The operator of a kernel that has a name; the matrix of others."""
        parameters = self._get_kernel_params()
        kernel = self._named_kernel(X.shape[1])
        K = None if kernel is None else self._gram(kernel, X, Z)
        if K is not None:
            return K
        return pairwise_kernels(X, Z, metric=self.kernel, filter_params=True, n_jobs=self.n_jobs, **parameters)


def _root(K: np.ndarray) -> np.ndarray:
    """V sign(λ) |λ|^(−½) Vᵀ over the eigenvalues that are more than rounding: scikit-learn's root by singular values.

    It is K^(−½) of a Mercer kernel. The features of the drawn rows have the inner products |K|.

    >>> _root(np.diag([4.0, -4.0, 0.0]))
    array([[ 0.5,  0. ,  0. ],
           [ 0. , -0.5,  0. ],
           [ 0. ,  0. ,  0. ]])
    """
    if not np.all(np.isfinite(K)):
        given, do = "kernel values that are not finite on the drawn rows", "give other parameters, or scale the columns"
        raise InvalidInput(message("Nystroem", given, do))
    with one_blas_thread(costs.eigen_operations(len(K))):
        values, V = np.linalg.eigh(np.asarray(K + K.T, np.float64) / 2.0)
        sizes = np.abs(values)
        kept = (sizes >= np.finfo(np.float64).eps * len(K) * sizes.max()) & (sizes > 0)
        root = (V[:, kept] * (np.sign(values[kept]) / np.sqrt(sizes[kept]))) @ V[:, kept].T
    return root.astype(K.dtype)
