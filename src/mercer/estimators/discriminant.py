"""Kernel discriminant analysis: chapter 000 (21.2)."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput, message
from mercer.estimators.fisher import ClassScatter, class_targets, dense_directions, leave_one_out_errors
from mercer.estimators.least_squares import LeastSquares
from mercer.estimators.report import Report
from mercer.gram import KernelOperator
from mercer.operators import Centered, Weighted
from mercer.solvers import Status

__all__ = ["KernelDiscriminantAnalysis"]

DELTA_SHARE = 0.01
"""The default δ is this share of the mean of k(xᵢ, xᵢ)."""

DELTA_GRID = np.logspace(-6, 2, 25)
"""The shares of the mean of k(xᵢ, xᵢ) that leaving one out chooses from."""


class KernelDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, LeastSquares):
    r"""max over w = Σᵢ aᵢ φ(xᵢ) of J = wᵀS_B w / wᵀ(S_W + δI) w = aᵀMa / aᵀ(N + δK)a, scaled to wᵀw = aᵀKa = 1.

    S_B = Σ_c n_c (μ_c − μ)(μ_c − μ)ᵀ and S_W = Σ_c Σ_{x in c} (φ(x) − μ_c)(φ(x) − μ_c)ᵀ. With c classes there are c − 1
    directions, (21.61) projects a row on them, and rows are classified by the nearest class mean.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name means its bandwidth by scikit-learn's rule "scale".
    n_components : int or None, default None
        How many directions, at most c − 1 (None: all that separate anything). The classifier sees only these.
    delta : float, None or "loo", default None
        δ > 0. None is 0.01 · tr(K)/n; "loo" the one of 25 values from 1e-6 to 1e2 times tr(K)/n with the smallest
        leave-one-out error of the regression below, by one eigendecomposition.
    solver : {"auto", "regression", "eigen"}, default "auto"
        Two roads to the same answer. "regression" is one solve with c right-hand sides; "eigen" the dense generalised
        eigenproblem, some hundred times the work. "auto" takes the first, and the second where K + δI is so near
        singular that rounding spoils the first.
    priors : array-like of shape (c,) or None
        Of the classes, in the order of ``classes_``, for the classifier; None takes them from the (weighted) rows. They
        do not change the directions.
    tol : float, default 1e-10
        Relative residual of the linear system in float64.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    classes_, priors_ : arrays of shape (c,)
    dual_coef_ : array of shape (n, k)
        a, one column for each direction; Σᵢ aᵢ = 0 and aᵀKa = 1.
    eigenvalues_ : array of shape (k,)
        λ = J, descending. (With two classes (21.56) has S_B = (μ₁ − μ₂)(μ₁ − μ₂)ᵀ, and λ₁ is n/(n₁n₂) times this one.)
    means_ : array of shape (c, k)
        Projected class means, m_c of (21.47).
    covariance_ : array of shape (k, k)
        Projected (S_W + δI)/n, shared by the classes.
    delta_ : float
    leave_one_out_deltas_, leave_one_out_errors_ : arrays
        With ``delta="loo"``: what was tried, and the mean squared errors.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, what was chosen and how exact it is.

    Notes
    -----
    **Regularisation.** N has no inverse, because K(I − P)K with P = Σ_c 1_c1_cᵀ/n_c has none. Here S_W + δI stands for
    S_W in feature space, so N + δK for N: for two classes a = (N + δK)⁻¹(m₁ − m₂), scaled. The alternative N + δI would
    penalise ‖a‖² and not ‖w‖², and a row that stands twice would then count otherwise than a row of weight 2.

    **Why a regression finds the directions.** Let U be an orthonormal basis of the centred class indicators, so that
    M = KUUᵀK, and K̃ = HKH. Adding λM to both sides, Ma = λ(N + δK)a says KUUᵀKa = ν(KHK + δK)a with ν = λ/(1 + λ).
    Cancel K: UUᵀKa = ν(HK + δI)a. The sum of the rows is 0 = νδ 1ᵀa, so a = Ha, and a = (K̃ + δI)⁻¹Ub with the small
    symmetric problem UᵀK̃(K̃ + δI)⁻¹U b = ν b. And (K̃ + δI)⁻¹U is ridge regression with intercept on U, one
    factorisation of K + δI for all columns: nothing is approximated, and where K is singular the w are the same.

    **Rank.** Directions with ν below rounding are dropped: coinciding class means, or fewer dimensions than classes.

    **Weights.** 2 is a row that stands twice, 0 one that is not there; n and n_c are then sums of weights. Classes are
    weighed by the weights of their rows, or in the decision alone by ``priors``. A class of one member has no scatter
    of its own, and its mean is that member.

    **Probabilities** are those of Gaussian classes of the shared covariance (S_W + δI)/n, and always agree with
    ``predict``. It is measured on the training rows: with a small δ they are over-confident.

    References
    ----------
    S. Mika, G. Rätsch, J. Weston, B. Schölkopf, K.-R. Müller (1999). Fisher discriminant analysis with kernels.
    D. Cai, X. He, J. Han (2011). Speed up kernel discriminant analysis. VLDB Journal 20.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelDiscriminantAnalysis().fit(X, y)
    >>> model.transform(X).shape, bool(model.score(X, y) > 0.95)
    ((150, 2), True)
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = None,
        *,
        delta: float | str | None = None,
        solver: Literal["auto", "regression", "eigen"] = "auto",
        priors: Any = None,
        tol: float = 1e-10,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.delta = delta
        self.solver = solver
        self.priors = priors
        self.tol = tol
        self.memory = memory

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: 2 is a row that stands twice, 0 one that is not there.
        """
        X, y = self._validate_both(X, y)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None and np.any(weights == 0):
            X, y, weights = self._without(weights == 0, X, np.asarray(y), weights)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._check()
        K, report = self._begin(X, weights)
        self.report_ = report
        for name in ("leave_one_out_deltas_", "leave_one_out_errors_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        w = np.ones(len(labels)) if weights is None else weights
        mass = np.bincount(labels, weights=w)
        self.priors_ = self._checked_priors(mass)
        Y = class_targets(mass)[labels]
        size = float(w @ np.asarray(K.diagonal(), np.float64)) / w.sum()
        self.delta_ = self._chosen_delta(K, Y, w, size, report)
        found = None if self.solver == "eigen" else self._by_regression(K, Y, w, report)
        self._keep(*(self._by_pencil(K, Y, w, report) if found is None else found), labels, w, report)
        return self

    def _by_regression(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, report: Report
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """a = (K̃ + δI)⁻¹Ub with the b of UᵀK̃(K̃ + δI)⁻¹U b = ν b, and the scores of the rows; None if rounding won."""
        solution = self._solve(K, np.column_stack([Y, np.ones(len(Y))]), self.delta_ / weights, report)
        x = np.asarray(solution.x)
        A = x[:, :-1] - np.outer(x[:, -1], x[:, :-1].sum(axis=0) / x[:, -1].sum())
        with report.stage("directions"):
            F = np.asarray(K @ A)
            G = (weights[:, None] * Y).T @ F
            nu, b = np.linalg.eigh((G + G.T) / 2)
            order = np.argsort(-nu)
            trace = float(np.sum(weights * K.diagonal()))
            rounding = np.finfo(np.float64).eps * trace / np.sqrt(len(Y))  # of a row of K a, over ‖a‖, times √n
            noise = solution.residual * trace / (trace + self.delta_) + rounding * np.linalg.norm(A, axis=0).max()
            keep = order[nu[order] > 10 * max(noise, np.finfo(report.dtype).eps * float(nu.max()))]
        A, F = A @ b[:, keep], F @ b[:, keep]
        # Where K has no full rank, a has a part of size 1/δ that w does not see; its rounding must not drown aᵀKa.
        if np.all(np.sum(A * F, axis=0) > 100 * rounding * np.sum(A**2, axis=0)):
            return A, F
        given = f"K + δI with δ={self.delta_:.3g} is too near singular for a regression"
        if self.solver == "regression":
            raise InvalidInput(message(type(self).__name__, given, 'raise delta, or choose solver="eigen"'))
        report.notes.append(f"{given}, so the dense eigenproblem was solved")
        return None

    def _by_pencil(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, report: Report
    ) -> tuple[np.ndarray, np.ndarray]:
        """The generalised eigenproblem of the dense scatter matrices, and the scores of the rows."""
        n = len(Y)
        report.method, report.reason = "LAPACK, generalised eigenproblem in float64", "asked for"
        if self.solver == "auto":
            report.reason = "the regression was lost in rounding"
        self._require(6 * 8 * n * n, 'solver="regression"', report)
        with report.stage("kernel matrix"):
            matrix = K.fill(np.empty(K.shape, np.float64))
        with report.stage("eigenvalues"):
            eps = float(np.finfo(np.float64).eps)
            solution, A, least = dense_directions(matrix, Y, weights, self.delta_, eps)
        report.precision = "float64"
        if solution.x is None or least <= -self.delta_:
            given = f"K + δI with δ={self.delta_:.3g} and a smallest eigenvalue of K of {least:.3g}"
            raise InvalidInput(message(type(self).__name__, given, Status.NOT_POSITIVE_DEFINITE.advice))
        self._account(report, solution, self.tol, rounding=1e-8)
        keep = solution.x.values > 10 * np.finfo(report.dtype).eps * max(float(solution.x.values[0]), 1.0)
        return A[:, keep], np.asarray(K @ A[:, keep])

    def _keep(self, dual: np.ndarray, F: np.ndarray, labels: np.ndarray, weights: np.ndarray, report: Report) -> None:
        """Scale to aᵀKa = 1, fix the signs, and name the results as the chapter does."""
        if dual.shape[1] == 0:
            given = "the class means coincide in feature space, so no direction separates the classes"
            raise InvalidInput(message(type(self).__name__, given, "choose another kernel, or check the labels"))
        k = dual.shape[1] if self.n_components is None else min(int(self.n_components), dual.shape[1])
        dual, F = dual[:, :k], F[:, :k]
        norms = np.sqrt(np.sum(dual * F, axis=0))
        # Two classes: the second has the higher mean. More: the one that is farthest from the mean has.
        away = ClassScatter.of(F, labels, weights).means - np.average(F, axis=0, weights=weights)
        far = np.full(k, 1) if len(self.classes_) == 2 else np.abs(away).argmax(axis=0)
        signs = np.where(away[far, np.arange(k)] < 0, -1.0, 1.0)
        dual, F = dual * (signs / norms), F * (signs / norms)
        scatter = ClassScatter.of(F, labels, weights)
        within = scatter.within + self.delta_ * dual.T @ F
        self.dual_coef_, self.means_ = dual, scatter.means
        self.covariance_ = (within + within.T) / (2 * weights.sum())
        self.eigenvalues_ = np.diag(scatter.between) / np.diag(within)
        report.rank = k
        asked = len(self.classes_) - 1 if self.n_components is None else self.n_components
        if k < asked:
            report.notes.append(f"{k} of {asked} directions separate the classes by more than rounding")

    # ---- parameters -------------------------------------------------------------------------------------------------

    @property
    def _road(self) -> str:
        return "auto"

    def _check(self) -> None:
        who, c = type(self).__name__, len(self.classes_)
        if c < 2:
            given = f"only one class, {self.classes_.tolist()}"
            raise InvalidInput(message(who, given, "give rows of at least two classes"))
        if self.solver not in ("auto", "regression", "eigen"):
            raise InvalidInput(message(who, f"solver={self.solver!r}", 'choose "auto", "regression" or "eigen"'))
        k = self.n_components
        if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < c):
            do = f"{c} classes have at most {c - 1} directions: give a number from 1 to {c - 1}, or None"
            raise InvalidInput(message(who, f"n_components={k!r}", do))

    def _checked_priors(self, mass: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return mass / mass.sum()
        priors = np.asarray(self.priors, np.float64)
        if priors.shape != mass.shape or not np.all(priors > 0) or abs(priors.sum() - 1) > 1e-8:
            do = f"give {len(mass)} positive numbers that sum to 1"
            raise InvalidInput(message(type(self).__name__, f"priors={self.priors!r}", do))
        return priors

    def _chosen_delta(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, size: float, report: Report
    ) -> float:
        self._kernel_size(K)  # refuses values that are not finite
        if isinstance(self.delta, Real) and not isinstance(self.delta, bool) and 0 < self.delta < np.inf:
            return float(self.delta)
        if self.delta is not None and self.delta != "loo":
            do = 'S_W is singular, so give a number > 0, None (0.01·tr(K)/n), or "loo"'
            raise InvalidInput(message(type(self).__name__, f"delta={self.delta!r}", do))
        if not size > 0:
            given = "k(x, x) = 0 for all rows"
            raise InvalidInput(message(type(self).__name__, given, "choose another kernel, or check the rows"))
        if self.delta is None:
            return DELTA_SHARE * size
        n = len(Y)
        self._require(4 * 8 * n * n, "delta=None", report)
        with report.stage("leave one out"):
            matrix = Weighted(Centered(K, weights), np.sqrt(weights)).fill(np.empty(K.shape, np.float64))
            values, vectors = np.linalg.eigh(matrix)
            self.leave_one_out_deltas_ = DELTA_GRID * size
            errors = leave_one_out_errors(values, vectors, Y, weights, self.leave_one_out_deltas_)
        self.leave_one_out_errors_ = errors
        best = int(errors.argmin())
        report.notes.append(f"δ = {self.leave_one_out_deltas_[best]:.3g} has the smallest leave-one-out error")
        if best in (0, len(errors) - 1):
            report.notes.append("δ stands at the end of the range that was tried")
        return float(self.leave_one_out_deltas_[best])

    # ---- new rows ---------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """wᵀφ(x) = Σᵢ aᵢ k(xᵢ, x) for each direction (21.61): of shape (m, k), float64."""
        return np.asarray(self._cross(X) @ self.dual_coef_)

    def decision_function(self, X: Any) -> np.ndarray:
        """log π_c − ½ (z − m_c)ᵀΣ⁻¹(z − m_c) up to what all classes share, z = transform(x) and Σ = covariance_.

        Of shape (m, c); for two classes the second less the first, of shape (m,).
        """
        Z = self.transform(X)
        slopes = np.linalg.solve(self.covariance_, self.means_.T)
        scores = Z @ slopes + np.log(self.priors_) - np.sum(self.means_ * slopes.T, axis=1) / 2
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | x) of the Gaussian model, of shape (m, c)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @property
    def _n_features_out(self) -> int:
        return self.dual_coef_.shape[1]
