"""Kernel partial least squares regression."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from mercer.engine.backend import one_blas_thread
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.gram import KernelOperator
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from mercer.operators import Centered, Operator, Weighted
from mercer.operators.arrays import require_finite
from mercer.points.validate import squarable
from mercer.schemas import Array, Rows, Schema
from mercer.solvers import KernelNipals, LatentScores, ScoreProblem, solve
from mercer.ways.report import Report

__all__ = ["KernelPLS"]

WELL_DETERMINED = 1e-8
"""The tolerance on the residual of the fixed point: about the root of rounding, to which eigenvectors are known."""

SCORE_ROUNDING = 1e-6
"""Components are left out if rounding of their dual coefficients changes a score, of norm 1, by more than this."""


class KernelPLS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""t ∝ K̃u, u = YYᵀt, then K̃ ← (I − ttᵀ)K̃(I − ttᵀ), Y ← (I − ttᵀ)Y; f(x) = ȳ + k̃(x)ᵀB, B = U(TᵀK̃U)⁻¹TᵀY.

    Each component has the greatest covariance with what is left of the targets among the functions of norm 1; the
    targets are regressed on the k orthonormal scores T = (t₁ … t_k). With a linear kernel this is partial least squares
    regression.

    Parameters
    ----------
    n_components : int, default 2
        k, by which the fit is regularised: choose it by a search such as ``GridSearchCV``. The default is that of
        scikit-learn's `PLSRegression`, and too few for most functions that are not linear (docs/defaults.md).
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. K is computed anew for each component, unless its
        entries are dear (more than 100 columns, or no formula for the native engine) and it fits in 40 % of the budget.

    Attributes
    ----------
    x_scores_ : array of shape (n, k)
        T: orthonormal (with weights TᵀWT = I), so that ``transform`` of the training rows is T.
    y_scores_ : array of shape (n, k)
        U.
    dual_rotations_ : array of shape (n, k)
        R = U(TᵀK̃U)⁻¹: the scores of a row are k̃(x)ᵀR.
    dual_coef_ : array of shape (n,) or (n, q)
        B = R TᵀY.
    intercept_ : float or array of shape (q,)
        ȳ less the mean of k(x)ᵀB over the training rows, so that f(x) = k(x)ᵀB + intercept.
    score_offset_ : array of shape (k,)
        The mean of k(x)ᵀR over the training rows.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, and the report on method and accuracy.

    Notes
    -----
    The deflated matrix is never formed. The targets left over are orthogonal to all earlier scores, so that a component
    is one product of K with q columns, and TᵀK̃U is triangular.

    Components of which nothing is left (more than the rank of K̃, or targets that are fitted) are not invented: the
    report says how many there are. With constant targets there are none, and the prediction is their mean. Targets of
    different units should be standardised, because their covariances are added.

    References
    ----------
    R. Rosipal, L. J. Trejo (2001). Kernel partial least squares regression in reproducing kernel Hilbert space. JMLR 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPLS
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 80).reshape(-1, 1)
    >>> model = KernelPLS(6, Gaussian(0.5)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999), model.transform(X).shape
    (True, (80, 6))
    """

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("X_fit_"),
        Array("dual_coef_", "n *targets"),
        Array("intercept_", "*targets"),
        Array("dual_rotations_", "n components"),
        Array("score_offset_", "components"),
        Array("x_scores_", "n components"),
        Array("y_scores_", "n components"),
    )

    centres: ClassVar[bool] = True
    tuned: ClassVar[str] = "n_components"

    def __init__(self, n_components: int = 2, kernel: Any = "gaussian", *, memory: float | str | None = None) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the components, and regress the targets on them.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, q)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        k = self._checked_count("n_components")
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        Y, weights = squarable("KernelPLS", y, whole=True).reshape(len(y), -1), self._weights(sample_weight, X)
        X, Y, weights = self._with_weight(X, Y, weights)
        K, report = self._begin(X, weights)
        self.report_ = report
        self._kernel_size(K)
        root = np.ones(len(Y)) if weights is None else np.sqrt(weights)
        # Weights near 1, so that products of them stay in range; powers of 2 change no digit.
        power = 0 if weights is None else int(np.frexp(root.max())[1])
        root = np.ldexp(root, -power)
        mean = np.average(Y, axis=0, weights=weights)
        away = root[:, None] * (Y - mean)
        # Targets that are constant but for the rounding of their mean are constant.
        away[:, np.ptp(Y, axis=0) <= 4 * np.finfo(np.float64).eps * np.abs(mean)] = 0.0
        matrix = self._stored(K, Y.shape[1], k, report)
        A = Centered(matrix, weights)
        require_finite(A.column_means, "KernelPLS")
        with report.stage("components"), one_blas_thread() if matrix is K else nullcontext():
            problem = ScoreProblem(A if weights is None else Weighted(A, root), away, min(k, len(Y)))
            solution = solve(KernelNipals(), problem)
        self._account(report, solution, WELL_DETERMINED)
        T = self._keep(solution.x, problem.A, root, power, A, report)
        # R sums to zero, so that k̃(x)ᵀR = k(x)ᵀR less its mean.
        B = self.dual_rotations_ @ np.ldexp(T.T @ away, power)
        b = mean - A.column_means @ B
        self.dual_coef_: np.ndarray = B[:, 0] if y.ndim == 1 else B
        self.intercept_: Any = b[0] if y.ndim == 1 else b
        return self

    def _keep(
        self, found: LatentScores, matrix: Operator, root: np.ndarray, power: int, A: Centered, report: Report
    ) -> np.ndarray:
        """R = UM⁻¹ with M = TᵀK̃U, triangular because K̃uᵢ lies in the span of t₁ … tᵢ; returns T as it is kept.

        The roots of the weights are `root` times 2 to the `power`.
        """
        T, U = found.T, found.U
        R = U
        if T.shape[1]:
            R = scipy.linalg.solve_triangular(np.triu(T.T @ found.AU), U.T, trans="T").T
            # K̃R is T but for rounding, which grows as M comes near to singular: components lost in it are left out.
            lost = np.abs(np.asarray(matrix @ R) - T).max(axis=0) > SCORE_ROUNDING
            k = int(np.argmax(np.append(lost, True)))
            T, U, R = T[:, :k], U[:, :k], R[:, :k]
        k = T.shape[1]
        R = np.ldexp(root[:, None] * R, -power)
        R -= np.outer(root**2 / np.sum(root**2), R.sum(axis=0))  # 0 but for rounding, which K would amplify
        self.x_scores_, self.y_scores_ = np.ldexp(T / root[:, None], -power), U / root[:, None]
        self.dual_rotations_, self.score_offset_ = R, A.column_means @ R
        report.rank, report.precision = k, "float64"
        if k < int(self.n_components):
            report.notes.append(f"{k} of {self.n_components} components: nothing of the targets or of K̃ is left")
        return T

    def _stored(self, K: KernelOperator, targets: int, k: int, report: Report) -> Operator:
        """K in memory if that is quicker and fits."""
        held, report.method = 8 * K.shape[0] * (8 * targets + 8 * k), "kernel NIPALS"
        if not K.cheap:
            return self._in_memory(K, held, report, ["fewer components", "fewer rows"])
        report.plan(held, f"KernelPLS of {K.shape[0]} rows", ["fewer components", "fewer rows"])
        report.method += ", matrix-free"
        report.reason = f"entries of {report.d} columns are computed as fast as they are read"
        return K

    # ---- new rows ---------------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion | None:
        check_is_fitted(self)
        return expansion_of(self, self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """f(x) for each row, in float64."""
        return np.asarray(self._expanded(X) + self.intercept_)

    def transform(self, X: Any) -> np.ndarray:
        """The scores k̃(x)ᵀR of each row: of shape (m, k), float64."""
        return np.asarray(self._expanded(X, "dual_rotations_") - self.score_offset_)

    @property
    def _n_features_out(self) -> int:
        return self.dual_rotations_.shape[1]
