"""Process monitoring by kernel PCA: Hotelling's T² within the components, SPE (Q) outside of them, and their limits."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.stats
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import KernelEstimator
from mercer.gram import KernelOperator
from mercer.schemas import POSITIVE, Array, Count, Rows, Schema

__all__ = ["ControlLimits", "ProcessMonitoring", "spe_limit", "t2_limit"]


class ControlLimits(NamedTuple):
    """Values of T² and of SPE that a row in control exceeds with probability 1 − level each.

    >>> ControlLimits(hotelling_t2=7.4, spe=0.2, level=0.95).level
    0.95
    """

    hotelling_t2: float
    spe: float
    level: float


def t2_limit(k: int, n: int, level: float) -> float:
    """k(n + 1)/(n − k) F(level; k, n − k), for a new row's Σ yⱼ²/λⱼ with λⱼ = Σ yᵢⱼ²/n of n training rows.

    The textbook's k(n² − 1)/(n(n − k)) F is for variances over n − 1.

    >>> round(t2_limit(2, 10**6, 0.95), 2)  # χ² of 2 degrees of freedom
    5.99
    """
    if n <= k:
        given = f"{k} components of {n} rows"
        raise InvalidInput(message("control_limits", given, "keep fewer components than there are rows"))
    return float(k * (n + 1) / (n - k) * scipy.stats.f.ppf(level, k, n - k)) if k else 0.0


def spe_limit(spe: np.ndarray, level: float) -> float:
    """g χ²(level; h) with g = s²/2m and h = 2m²/s², m and s² the mean and the variance of SPE in control.

    >>> round(spe_limit(np.random.default_rng(0).chisquare(3, 10**5), 0.95), 1)
    7.8
    """
    mean, variance = float(np.mean(spe)), float(np.var(spe))
    if mean <= 0 or variance <= (4 * np.finfo(float).eps * mean) ** 2:
        return mean
    return float(variance / (2 * mean) * scipy.stats.chi2.ppf(level, 2 * mean**2 / variance))


class ProcessMonitoring(KernelEstimator):
    r"""The two distances of a row from the model m + span(u₁, …, u_k): along it, and from it."""

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("X_fit_"),
        Count("n_samples_seen_"),
        Array("eigenvalues_", "components", rules=(POSITIVE,)),
        Array("explained_variance_", "components", rules=(POSITIVE,)),
        Array("explained_variance_ratio_", "components"),
        Array("dual_coef_", "n components"),
        Array("column_means_", "n"),
        Array("mean_coef_", "n"),
    )

    eigenvalues_: np.ndarray
    explained_variance_: np.ndarray

    def _scores(self, X: Any) -> np.ndarray:
        """yⱼ = Σᵢ Aᵢⱼ k(bᵢ, x) − k̄ᵀAⱼ of new rows."""
        return np.asarray(self._expanded(X) - self.column_means_ @ self.dual_coef_)

    def _position(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores, and SPE = ‖φ(x) − m‖² − ‖y‖² with m = Σ cᵢ φ(bᵢ), of validated rows: one product."""
        A, c = self.dual_coef_, self.mean_coef_
        # In float64 whatever the rows: SPE is a small difference.
        products = KernelOperator(self.kernel_, rows, self.X_fit_, dtype=np.float64) @ np.column_stack([A, c])
        scores = products[:, :-1] - self.column_means_ @ A
        own = np.asarray(KernelOperator(self.kernel_, rows, dtype=np.float64).diagonal())
        return scores, self._outside(own, products[:, -1], scores)

    def _outside(self, own: np.ndarray, mean: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """k(x, x) − 2⟨φ(x), m⟩ + ‖m‖² − ‖y‖², 0 at least."""
        centred = own - 2 * mean + float(self.mean_coef_ @ self.column_means_)
        return np.asarray(np.maximum(centred - np.einsum("ij,ij->i", scores, scores), 0.0))

    def _basis_scores(self) -> np.ndarray:
        """Of the rows in X_fit_: the training rows or the landmarks."""
        if hasattr(self, "eigenvectors_"):
            return np.asarray(self.eigenvectors_ * np.sqrt(self.eigenvalues_))
        K = KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64)
        return np.asarray(K @ self.dual_coef_) - self.column_means_ @ self.dual_coef_

    def _basis_spe(self, scores: np.ndarray) -> np.ndarray:
        """SPE of the rows in X_fit_, whose ⟨φ(b), m⟩ are the column means."""
        own = np.asarray(KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64).diagonal())
        return self._outside(own, self.column_means_, scores)

    def hotelling_t2(self, X: Any) -> np.ndarray:
        """T² = Σⱼ yⱼ²/λⱼ of each row: its squared distance from the mean within the components, in their variances.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,)

        Notes
        -----
        λⱼ is `explained_variance_`, whose divisor is N; with the divisor N − 1 T² is this times (N − 1)/N.

        References
        ----------
        J.-M. Lee, C. Yoo, S. W. Choi, P. A. Vanrolleghem, I.-B. Lee (2004). Nonlinear process monitoring using kernel
        principal component analysis. Chemical Engineering Science 59.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((200, 5))
        >>> model = KernelPCA(3, "linear").fit(X)
        >>> bool(np.isclose(model.hotelling_t2(X).mean(), 3))
        True
        """
        return np.asarray(np.sum(self._scores(X) ** 2 / self.explained_variance_, axis=1))

    def spe(self, X: Any) -> np.ndarray:
        """SPE = k̃(x, x) − Σⱼ yⱼ² of each row: its squared distance in feature space from the components (also Q).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,), at least 0

        Raises
        ------
        InvalidInput
            For a precomputed kernel: k(x, x) of new rows is not among the values it is given.

        Notes
        -----
        Its size depends on the kernel: SPE of two kernels cannot be compared, `reconstruction_error` can. On the
        Nyström method the mean is the one within the landmarks' span.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> bool(KernelPCA(kernel="linear").fit(X).spe(X).max() < 1e-12)  # all components: nothing is left
        True
        """
        rows = self._validate_new(X)
        self._refuse_precomputed("spe")
        return self._position(rows)[1]

    def control_limits(self, level: float = 0.99, X: Any = None) -> ControlLimits:
        """Limits of T² and SPE: k(N + 1)/(N − k) F for T² and g χ²_h for SPE, moments matched to rows in control.

        Parameters
        ----------
        level : float in (0, 1), default 0.99
        X : array-like of shape (m, d), optional
            Rows in control for SPE's mean and variance, best ones that the model has not seen: SPE of its training rows
            is too small where there are few of them. Unless given the training rows, which exact fits keep.

        Returns
        -------
        ControlLimits

        Raises
        ------
        InvalidInput
            For a level outside (0, 1), no fewer components than rows, and a Nyström model without `X`.

        Notes
        -----
        The F limit holds for Gaussian scores, as those of a linear kernel on Gaussian rows are. Scores of other kernels
        are only near it; compare with the share of held-out rows in control that exceed it.

        References
        ----------
        P. Nomikos, J. F. MacGregor (1995). Multivariate SPC charts for monitoring batch processes. Technometrics 37.
        N. D. Tracy, J. C. Young, R. L. Mason (1992). Multivariate control charts for individual observations.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> rng = np.random.default_rng(0)
        >>> model = KernelPCA(2, "linear").fit(rng.standard_normal((500, 4)))
        >>> limits = model.control_limits(level=0.95)
        >>> bool(0.02 < (model.spe(rng.standard_normal((2000, 4))) > limits.spe).mean() < 0.08)
        True
        """
        if not (isinstance(level, (float, np.floating)) and 0 < level < 1):
            raise InvalidInput(message("control_limits", f"level={level!r}", "give a number between 0 and 1"))
        if X is not None:
            spe = self.spe(X)
        else:
            self._validate_fitted("control_limits")
            spe = self._basis_spe(self._basis_scores())
        k = len(self.eigenvalues_)
        return ControlLimits(t2_limit(k, self.n_samples_seen_, level), spe_limit(spe, level), float(level))

    def _validate_fitted(self, what: str) -> None:
        check_is_fitted(self)
        self._refuse_precomputed(what)
        if not hasattr(self, "eigenvectors_"):
            given = f"{what} of a Nyström model, which keeps landmarks and not its training rows"
            raise InvalidInput(message(type(self).__name__, given, "give X, rows in control"))

    def _refuse_precomputed(self, what: str) -> None:
        if self._space().numbered:
            given = f"{what} with a precomputed kernel, which has no k(x, x) of a new row"
            raise InvalidInput(message(type(self).__name__, given, "give the kernel itself and the rows"))
