"""Kernel principal component analysis with scikit-learn's words."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer import estimators
from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.kernels import Precomputed
from mercer.sklearn.faces import REFUSALS, Face, precision, quietly

__all__ = ["KernelPCA"]

TOLERANCE = 1e-6
"""scikit-learn's tol=0 is ARPACK's, all digits; this leaves eigenvalues twice as many."""
FEW, OVERSAMPLES = 200, 10
"""Rows up to which scikit-learn's "auto" is "dense", and columns that its randomised solver draws beyond k."""
NEGATIVE = 1e-9
"""The share by which the sum of the positive eigenvalues may exceed the trace, as rounding."""


class KernelPCA(Face, decomposition.KernelPCA):
    """`sklearn.decomposition.KernelPCA` by `mercer.KernelPCA`.

    Columns of `eigenvectors_` beyond the rank of the centred matrix are 0. Their scores are 0 in both libraries.

    Parameters
    ----------
    n_components, kernel, gamma, degree, coef0, kernel_params, alpha, fit_inverse_transform, eigen_solver, tol
    remove_zero_eig, copy_X, n_jobs, max_iter, iterated_power, random_state
        As in scikit-learn. The last three have no effect on the answer; a generator is left as scikit-learn leaves it.
        "arpack" and "randomized" are "auto": the best exact method by size.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.decomposition import KernelPCA
    >>> KernelPCA(2, kernel="rbf").fit_transform([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).shape
    (3, 2)
    """

    def _get_kernel(self, X: Any, Y: Any = None) -> Any:
        """The operator of a kernel that has a name; the matrix of others."""
        kernel = self._named_kernel(X.shape[1], self.gamma_)
        K = None if kernel is None else self._gram(kernel, X, Y)
        return super()._get_kernel(X, Y) if K is None else K

    def _fit_transform_in_place(self, K: Any) -> None:
        stored = isinstance(K, np.ndarray)
        if not (stored or isinstance(K, KernelOperator)):  # a sparse matrix, which is refused
            return super()._fit_transform_in_place(K)
        kernel, rows = (Precomputed(), K) if stored else (K.kernel, K.X)
        if stored and not np.allclose(K, K.T):  # the lower triangle is what LAPACK reads there
            lower = np.tril(self._centerer.fit(K).transform(K))
            rows = lower + np.tril(lower, -1).T
        solver: Any = "dense" if self.eigen_solver == "dense" else "auto"
        tol = max(self.tol, TOLERANCE)
        pca = estimators.KernelPCA(self.n_components, kernel, solver=solver, tol=tol)
        n = K.shape[0]
        k = n if self.n_components is None else min(n, self.n_components)
        try:
            if n == 1:
                raise InvalidInput(message("KernelPCA", "one row, whose components are all 0", "give two rows or more"))
            quietly(pca.fit, rows)
            short = len(pca.eigenvalues_) < k and _negative(pca, rows if stored else K)
            why = "the centred matrix has negative eigenvalues" if short else ""
        except REFUSALS as error:
            why = str(error)
        if why:
            self._delegated(why)
            super()._fit_transform_in_place(K if stored else K.toarray().astype(precision(rows), copy=False))
        else:
            self._draw_as_theirs(n, k)
            k = len(pca.eigenvalues_) if self.remove_zero_eig or self.n_components is None else k
            self._take(pca, n, k, precision(rows))

    def _draw_as_theirs(self, n: int, k: int) -> None:
        """Draw what scikit-learn's solvers draw, and forget it: others may go on with the same generator."""
        auto = "arpack" if n > FEW and k < 10 else "dense"
        solver, generator = self.eigen_solver, check_random_state(self.random_state)
        if (auto if solver == "auto" else solver) == "arpack":
            generator.uniform(-1, 1, size=n)
        elif solver == "randomized":
            generator.normal(size=(n, k + OVERSAMPLES))

    def _take(self, pca: estimators.KernelPCA, n: int, k: int, dtype: Any) -> None:
        """scikit-learn's attributes, for k components."""
        rank = len(pca.eigenvalues_)
        self.eigenvalues_, self.eigenvectors_ = np.zeros(k, dtype), np.zeros((n, k), dtype)
        self.eigenvalues_[:rank], self.eigenvectors_[:, :rank] = pca.eigenvalues_, pca.eigenvectors_
        if not hasattr(self._centerer, "K_fit_rows_"):
            self._centerer.K_fit_rows_, self._centerer.K_fit_all_ = pca.column_means_, pca.column_means_.mean()
            self._centerer.n_features_in_ = n
        self.report_ = pca.report_

    def _fit_inverse_transform(self, X_transformed: np.ndarray, X: Any) -> None:
        kernel = self._named_kernel(X_transformed.shape[1], self.gamma_)
        if kernel is None or hasattr(X, "tocsr"):
            return super()._fit_inverse_transform(X_transformed, X)
        decoder = estimators.KernelRidge(kernel, self.alpha)
        try:
            quietly(decoder.fit, X_transformed, X)
        except REFUSALS as error:
            self._delegated(str(error))
            theirs = decomposition.KernelPCA()  # which takes its own matrix, and not our operator
            theirs.__dict__ = self.__dict__
            return theirs._fit_inverse_transform(X_transformed, X)
        self.dual_coef_, self.X_transformed_fit_ = decoder.dual_coef_, X_transformed

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> np.ndarray:
        """The scores of the training rows."""
        self.fit(X, **params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def transform(self, X: Any) -> np.ndarray:
        """The scores of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        K = self._get_kernel(X, self.X_fit_)
        K = check_array(K) if isinstance(K, np.ndarray) else K
        scales = np.sqrt(self.eigenvalues_)
        alphas = np.divide(self.eigenvectors_, scales, out=np.zeros_like(self.eigenvectors_), where=scales > 0)
        return np.asarray(K @ alphas - self._centerer.K_fit_rows_ @ alphas, precision(X, alphas))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows with these scores, by ridge regression."""
        if not self.fit_inverse_transform:
            return super().inverse_transform(X)  # an error
        X, known = check_array(X, accept_sparse="csr"), self.X_transformed_fit_
        return np.asarray(self._get_kernel(X, known) @ self.dual_coef_, precision(X, known))


def _negative(pca: estimators.KernelPCA, K: Any) -> bool:
    """Whether K̃ has negative eigenvalues besides all of its positive ones, which have been found."""
    trace, found = float(np.sum(K.diagonal() - pca.column_means_)), float(pca.eigenvalues_.sum())
    return found > trace + NEGATIVE * found
