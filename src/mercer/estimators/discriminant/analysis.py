"""Kernel discriminant analysis ("Kernel methods", 21.2)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.approx.landmarks import landmark_features
from mercer.errors import InvalidInput, message
from mercer.estimators.base.calibration import probabilities
from mercer.estimators.base.classifier import require_classes, top_class
from mercer.estimators.base.compression import Compressible
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.base.labels import labelled
from mercer.estimators.base.landmarks import pool_rows
from mercer.estimators.discriminant.delta import choose_delta
from mercer.estimators.discriminant.fisher import (
    RUN,
    ClassScatter,
    Directions,
    class_targets,
    dense_directions,
    landmark_directions,
)
from mercer.estimators.discriminant.gaussian_classes import GaussianClasses, left_out_classes
from mercer.estimators.ridge.least_squares import RidgeEstimator
from mercer.gram import KernelOperator
from mercer.gram.operator import feature_rows
from mercer.mixins import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.numerals import counted
from mercer.points import human
from mercer.schemas import POSITIVE, SORTED, Array, Check, Schema
from mercer.solvers import Solution, Status
from mercer.solvers.choose import choose_linear
from mercer.ways.report import Report

__all__ = ["KernelDiscriminantAnalysis"]

MOST_EXACT = 20_000
"""Rows up to which "auto" stays exact: Cholesky takes time in proportion to their cube."""

MOST_EXACT_UNSTORED = 5000
"""Rows up to which "auto" stays exact if the matrix does not fit in memory, so that each step recomputes it."""

LANDMARK_RESIDUAL = 1e-8
"""Largest residual of the normal equations in the landmarks' features, whose condition number is squared."""

MOST_LANDMARKS = 1000
"""Landmarks unless told otherwise."""

POOL = 10
"""Rows for each landmark among which pivoted Cholesky chooses."""


def _has_inverse_covariance(model: Any) -> bool:
    try:
        np.linalg.solve(model.score_covariance_, model.score_means_.T)
    except np.linalg.LinAlgError:
        return False
    return True


class KernelDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, RidgeEstimator):
    r"""max over w = Σᵢ aᵢ φ(xᵢ) of J = wᵀS_B w / wᵀ(S_W + δI) w = aᵀMa / aᵀ(N + δK)a, scaled to wᵀw = aᵀKa = 1.

    S_B = Σ_c n_c (μ_c − μ)(μ_c − μ)ᵀ and S_W = Σ_c Σ_{x in c} (φ(x) − μ_c)(φ(x) − μ_c)ᵀ. With c classes there are c − 1
    directions, (21.61) projects a row on them, and rows are classified by the nearest class mean.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    n_components : int or None, default None
        How many directions, at most c − 1 (None: all that separate anything). The classifier sees only these.
    delta : float, "auto", "loo" or None, default "auto"
        δ > 0. "loo" is the one of 25 values from 1e-6 to 1e2 times tr(K̃)/n, the mean ‖φ(x) − μ‖², with the smallest
        leave-one-out error of the regression below, by one eigendecomposition; "auto" the largest of them with an error
        at most 0.5 % above that, on at most 500 rows, drawn in the proportions of the classes (fewer if the memory
        holds fewer), which takes at most as long as the rest of the fit. None is 0.01 · tr(K̃)/n of such rows. On the
        tables of docs/defaults.md "auto" errs less than None by up to 7 points (Adult), and more by at most 1.1
        (letters). None of them is below 1e6 ε tr(K), where rounding would decide, with a warning if that is much.
    solver : {"auto", "regression", "eigen", "nystroem"}, default "auto"
        Two ways to the same answer: "regression" is one solve with c right-hand sides, "eigen" the dense generalised
        eigenproblem, some hundred times the work. "nystroem" is the problem in the features of landmarks, O(n m²), and
        transforms by the landmarks alone. "auto" takes the first; the second if K + δI is so near singular that
        rounding spoils the first; the third above 20 000 rows, or above 5000 if K does not fit in the memory.
    n_landmarks : int or None, default None
        m of "nystroem"; None is 1000, or what the memory allows.
    calibration : {"loo", "training"}, default "loo"
        The scores to which the classifier's Gaussians are fitted: each row's on the directions found without it, in
        closed form, or those of the rows as they are (as in linear discriminant analysis), which a small δ makes
        far too tight.
    priors : array-like of shape (c,) or None
        Prior probabilities of the classes, in the order of ``classes_``; None takes them from the (weighted) rows. They
        do not change the directions.
    tol : float, default 1e-10
        Relative residual of the linear system in float64.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
        Seed for the choice of landmarks.

    Attributes
    ----------
    classes_, priors_ : arrays of shape (c,)
    dual_coef_ : array of shape (n, k), or (m, k) on landmarks
        a, one column for each direction; aᵀKa = 1, and Σᵢ aᵢ = 0 if it is exact.
    eigenvalues_ : array of shape (k,)
        λ = J, descending. (With two classes (21.56) has S_B = (μ₁ − μ₂)(μ₁ − μ₂)ᵀ, and λ₁ is n/(n₁n₂) times this one.)
    means_ : array of shape (c, k)
        Projected class means, m_c of (21.47).
    covariance_ : array of shape (k, k)
        Projected (S_W + δI)/n, shared by the classes.
    score_means_, score_covariance_ : arrays of shapes (c, k) and (k, k)
        The classifier's Gaussians: means and pooled covariance of the leave-one-out scores, or `means_` and
        `covariance_` with ``calibration="training"``.
    delta_ : float
    leave_one_out_deltas_, leave_one_out_errors_ : arrays
        With ``delta="auto"`` and "loo": what was tried, and the mean squared errors.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, and the report on method and accuracy.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Notes
    -----
    **Regularisation.** N has no inverse, because K(I − P)K with P = Σ_c 1_c1_cᵀ/n_c has none. Here S_W + δI stands for
    S_W in feature space, so N + δK for N: for two classes a = (N + δK)⁻¹(m₁ − m₂), scaled. The alternative N + δI would
    penalise ‖a‖² and not ‖w‖², and a row that stands twice would then count otherwise than a row of weight 2.

    **Why a regression finds the directions.** Let U be an orthonormal basis of the centred class indicators, so that
    M = KUUᵀK, and K̃ = HKH. Adding λM to both sides, Ma = λ(N + δK)a says KUUᵀKa = ν(KHK + δK)a with ν = λ/(1 + λ).
    Cancel K: UUᵀKa = ν(HK + δI)a. The sum of the rows is 0 = νδ 1ᵀa, so a = Ha, and a = (K̃ + δI)⁻¹Ub with the small
    symmetric problem UᵀK̃(K̃ + δI)⁻¹U b = ν b. And (K̃ + δI)⁻¹U is ridge regression with intercept on U, one
    factorisation of K + δI for all columns: nothing is approximated, and if K is singular the w are the same.

    **Rank.** Directions with ν below rounding are dropped: coinciding class means, or fewer dimensions than classes.

    **Weights.** A row of weight 2 counts as two rows, a row of weight 0 as none; n and n_c are then sums of weights.
    Classes are weighed by the weights of their rows, or in the decision alone by ``priors``. A class of one member has
    no scatter of its own, and its mean is that member.

    **Rounding.** K + δI has a condition of up to n/δ, and a small δ gives the Gaussians below a small covariance. The
    order of the rows, or a row that stands twice instead of a weight of 2, then changes probabilities by rounding: by
    2e-8 with δ = 1e-6, 7e-6 with 1e-8, and 1e-3 with 1e-10 (60 rows, k(x, x) = 1).

    **Probabilities** are those of Gaussian classes with one covariance, and always agree with ``predict``. The scatter
    of the training rows is no guide to that of new ones: a small δ pulls each row to its class mean, and no others.
    So the Gaussians are fitted to leave-one-out scores, zᵢ − (gᵢ − zᵢ)hᵢ/(1 − hᵢ) with gᵢ the target of the regression
    and hᵢ its leverage. Up to 500 rows hᵢ is exact; beyond, it is that of a pivoted Cholesky approximation of K and the
    diagonal that it leaves.

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

    fitted: ClassVar[Schema] = Compressible.fitted + Schema(
        Array("classes_", "classes", np.generic, rules=(SORTED,)),
        Array("dual_coef_", "n directions"),
        Array("priors_", "classes", rules=(POSITIVE,)),
        Array("score_means_", "classes directions"),
        Array("score_covariance_", "directions directions"),
        Check("score_covariance_ is singular", _has_inverse_covariance),
        Array("eigenvalues_", "directions"),
        Array("means_", "classes directions"),
        Array("covariance_", "directions directions"),
        Array("delta_"),
        Array("leave_one_out_deltas_", "tried", optional=True),
        Array("leave_one_out_errors_", "tried", optional=True, finite=False),
    )

    penalty: ClassVar[str] = "delta"
    centres: ClassVar[bool] = True
    indefinite_meaning: ClassVar[str] = (
        "the directions are stationary points of the ratio of scatters, which may be negative, and not maxima"
    )
    tuned: ClassVar[str] = "kernel"

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = None,
        *,
        delta: float | str | None = "auto",
        solver: Literal["auto", "regression", "eigen", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        calibration: Literal["loo", "training"] = "loo",
        priors: Any = None,
        tol: float = 1e-10,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.delta = delta
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.calibration = calibration
        self.priors = priors
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        X, y = labelled(self, X, y)
        weights = self._weights(sample_weight, X)
        X, y, weights = self._with_weight(X, np.asarray(y), weights)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._check()
        K, report = self._begin(X, weights)
        self.report_ = report
        w = np.ones(len(labels)) if weights is None else weights
        mass = np.bincount(labels, weights=w)
        self.priors_ = self._checked_priors(mass)
        Y = class_targets(mass)[labels]
        self._kernel_size(K)  # refuses values that are not finite
        self.delta_, tried = choose_delta(self.delta, K, labels, w, self._seed(), report)
        if tried is not None:
            self.leave_one_out_deltas_, self.leave_one_out_errors_ = tried
        found, features = None, None
        if self._takes_landmarks(len(Y), report):
            found, features = self._by_landmarks(K, Y, w, report)
        elif self.solver != "eigen":
            found = self._by_regression(K, Y, w, report)
        found = self._keep(self._by_pencil(K, Y, w, report) if found is None else found, labels, w, report)
        gaussians = GaussianClasses(self.means_, self.covariance_)
        if self.calibration == "loo":
            gaussians = left_out_classes(K, features, found, self.eigenvalues_, labels, w, self.delta_, report)
        self.score_means_, self.score_covariance_ = gaussians.means, gaussians.covariance
        return self

    def _by_landmarks(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, report: Report
    ) -> tuple[Directions, np.ndarray]:
        """The directions within the span of the landmarks, and the features of the rows in it."""
        n, stored = len(Y), not K.x.window

        def need(m: int) -> int:
            work = max(min(n, POOL * m) * m, 3 * min(n * m, RUN))  # the pivots, or some rows of the features
            return 8 * (n * m * stored + work + 4 * m * m + 4 * Y.size)

        m = min(self.n_landmarks or MOST_LANDMARKS, n)
        while self.n_landmarks is None and m > 1 and need(m) > report.room:
            m = int(0.8 * m)
        K.release()  # what δ was chosen with
        features = K.copies_of(min(n, feature_rows(m)), m)
        report.memory_rows = max(features, pool_rows(K, POOL * m)) + K.x.nbytes * m // n
        report.method, report.precision = f"regression in the features of {counted(m, 'landmark')}", "float64"
        self._require(need(m), "fewer landmarks", report)
        with report.stage("landmarks"):
            found = landmark_features(K, m, self._seed(), POOL * m)
        self.X_fit_ = found.landmarks
        report.notes.append(f"the landmarks leave out {found.lost:.1e} of the trace of K")
        with report.stage("directions"):
            try:
                directions, off = landmark_directions(found.Phi, found.root, Y, weights, self.delta_)
            except np.linalg.LinAlgError:
                given = f"S_W + δI with δ={self.delta_:.3g} is singular to rounding"
                raise InvalidInput(message(type(self).__name__, given, "raise delta")) from None
        status = Status.CONVERGED if off <= LANDMARK_RESIDUAL else Status.STALLED
        self._account(report, Solution(directions, status, 1, off, None), max(self.tol, LANDMARK_RESIDUAL))
        return directions, found.Phi

    def _by_regression(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, report: Report
    ) -> Directions | None:
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
            keep = order[nu[order] > 10 * max(noise, float(np.finfo(report.dtype).eps) * float(nu.max()))]
        A, F = A @ b[:, keep], F @ b[:, keep]
        # If K has no full rank, a has a part of size 1/δ that w does not see; its rounding must not drown aᵀKa.
        if np.all(np.sum(A * F, axis=0) > 100 * rounding * np.sum(A**2, axis=0)):
            return Directions(A, F, A.T @ F)
        given = f"K + δI with δ={self.delta_:.3g} is too near singular for a regression"
        if self.solver == "regression":
            raise InvalidInput(message(type(self).__name__, given, 'raise delta, or choose solver="eigen"'))
        report.notes.append(f"{given}, so the dense eigenproblem was solved")
        return None

    def _by_pencil(self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray, report: Report) -> Directions:
        """The generalised eigenproblem of the dense scatter matrices, and the scores of the rows."""
        n = len(Y)
        report.method, report.reason = "LAPACK, generalised eigenproblem in float64", "as requested"
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
            raise InvalidInput(message(type(self).__name__, given, self._advice(Status.NOT_POSITIVE_DEFINITE)))
        self._account(report, solution, self.tol, rounding=1e-8)
        F = np.asarray(K @ A)
        # The pencil's ν has its rounding over δ. That of the scores has none: of a constant direction they are level.
        between = np.sum(((weights[:, None] * Y).T @ F) ** 2, axis=0)
        within = weights @ F**2 - (weights @ F) ** 2 / weights.sum() - between
        rest = np.maximum(within, 0.0) + self.delta_ * np.sum(A * F, axis=0)
        rounding = eps * float(np.sum(weights * K.diagonal())) * np.sqrt(np.sum(A**2, axis=0) / n)
        share = float(np.finfo(report.dtype).eps) * max(float(solution.x.values[0]), 1.0)
        keep = between > 10 * np.maximum(share * rest, rounding**2)
        A, F = A[:, keep], F[:, keep]
        return Directions(A, F, A.T @ F)

    def _keep(self, found: Directions, labels: np.ndarray, weights: np.ndarray, report: Report) -> Directions:
        """Scale to aᵀKa = 1, fix the signs, and name the results as the chapter does."""
        if found.dual.shape[1] == 0:
            given = f"the class means coincide in feature space, to rounding beside δ={self.delta_:.3g}"
            do = "choose another kernel, lower delta, bring weights nearer to 1, or check the labels"
            raise InvalidInput(message(type(self).__name__, given, do))
        most = found.dual.shape[1]
        k = most if self.n_components is None else min(int(self.n_components), most)
        found = found.take(np.arange(k))
        # Two classes: the second has the higher mean. More: the one that is farthest from the mean has.
        away = ClassScatter.of(found.scores, labels, weights).means - np.average(found.scores, axis=0, weights=weights)
        far = np.full(k, 1) if len(self.classes_) == 2 else np.abs(away).argmax(axis=0)
        signs = np.where(away[far, np.arange(k)] < 0, -1.0, 1.0)
        found = found.times(signs / np.sqrt(np.diag(found.gram)))
        scatter = ClassScatter.of(found.scores, labels, weights)
        within = scatter.within + self.delta_ * found.gram
        self.dual_coef_, self.means_ = found.dual, scatter.means
        self.covariance_ = (within + within.T) / (2 * weights.sum())
        self.eigenvalues_ = np.diag(scatter.between) / np.diag(within)
        report.rank = k
        asked = len(self.classes_) - 1 if self.n_components is None else self.n_components
        if k < asked:
            report.notes.append(f"{k} of {asked} directions separate the classes by more than rounding")
        return found

    # ---- parameters -------------------------------------------------------------------------------------------------

    @property
    def _method(self) -> str:
        return "auto"

    def _check(self) -> None:
        require_classes(type(self).__name__, self.classes_)
        self._checked_choice("solver", "auto", "regression", "eigen", "nystroem")
        self._checked_choice("calibration", "loo", "training")
        self._count_or_none("n_landmarks")
        self._seed()  # refuses a bad random_state, though not all methods draw
        k, c = self._count_or_none("n_components"), len(self.classes_)
        if k is not None and k >= c:
            self._refuse("n_components", f"{c} classes have at most {c - 1} directions: lower it, or give None")

    def _checked_priors(self, mass: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return mass / mass.sum()
        priors = np.asarray(self.priors, np.float64)
        if priors.shape != mass.shape or not np.all(priors > 0) or abs(priors.sum() - 1) > 1e-8:
            self._refuse("priors", f"give {len(mass)} positive numbers that sum to 1")
        return priors

    def _takes_landmarks(self, n: int, report: Report) -> bool:
        """Whether the exact method takes too long: O(n³), or K recomputed in each step."""
        if self.solver != "auto" or n <= MOST_EXACT_UNSTORED:
            report.reason = "as requested"
            return self.solver == "nystroem"
        stored = choose_linear(n, 4, report.room).stored
        report.reason = f"n = {n}, and K would take {human(4 * n * n)}"
        return n > MOST_EXACT or not stored

    # ---- new rows ---------------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion:
        check_is_fitted(self)
        return expansion_of(self, prefix="discriminant ")

    def transform(self, X: Any) -> np.ndarray:
        """wᵀφ(x) = Σᵢ aᵢ k(xᵢ, x) for each direction (21.61): of shape (m, k), float64."""
        return self._expanded(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """log π_c − ½ (z − m_c)ᵀΣ⁻¹(z − m_c) up to what all classes share, z = transform(x) and m_c, Σ the
        `score_means_` and `score_covariance_`.

        Of shape (m, c); for two classes the second less the first, of shape (m,).
        """
        Z = self.transform(X)
        return GaussianClasses(self.score_means_, self.score_covariance_).decisions(Z, self.priors_)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        return top_class(self.decision_function(X), self.classes_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | x) of the Gaussian model, of shape (m, c)."""
        return probabilities(self.decision_function(X))

    @property
    def _n_features_out(self) -> int:
        return self.dual_coef_.shape[1]
