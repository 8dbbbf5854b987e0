"""Kernel logistic regression: a linear model of the log odds in feature space."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.calibration import probabilities
from mercer.estimators.base.classifier import ScoreClassifier
from mercer.estimators.base.labels import labelled
from mercer.estimators.base.landmarks import LandmarkSpan, given_count, landmark_bytes, landmark_rows
from mercer.factorizations.pivoted_cholesky import pivoted_cholesky
from mercer.gram import KernelOperator
from mercer.numerals import counted
from mercer.operators import LowRank, Operator
from mercer.schemas import Count, Schema
from mercer.solvers import FeatureLogistic, Logistic, NewtonFeatureLogistic, NewtonLogistic, Solution, Status, solve
from mercer.solvers.descent.curvature import CHUNK
from mercer.ways.nystroem_ridge import EVALUATION, default_landmarks, too_dear
from mercer.ways.report import Report

__all__ = ["KernelLogisticRegression"]

PIVOTS, MOST_PIVOTS = 4, 500
"""Pivots that precondition the steps for t scores: PIVOTS √(k/t) if a product takes k operations a row and score, n
with K and 2m with m features, so that their curvature, n(rt)² operations, takes as long as some products. Within a
quarter of the best at n = 1500 to 6000, t = 1 to 26, λ = 0.1 and 0.001, and at n = 15 000, t = 26, m = 300 and 612."""

MOST_LANDMARKS = 1000
"""Landmarks unless told otherwise, over the number of scores where a Newton step takes O(n m² t²)."""
AT_ONCE, MOST_AT_ONCE = 4e9, 1500
"""n m² t² up to which the Newton equations of several scores are factored, in a fifth of a second and exactly, whatever
λ is; and m t up to which they can be at all, also where conjugate gradients were not exact enough."""
LIKELY = 50
"""Newton's steps in which a fit ends unless conjugate gradients are not exact enough."""
LARGEST_PULL = 1e100
"""The largest weight over λ, up to which a fit that overflows does so by its kernel."""
INEXACT = (Status.STALLED, Status.BREAKDOWN, Status.MAX_STEPS)
VECTORS, ITERATED = 16, 24
"""Arrays of n numbers a score that a step has in memory, with its curvature and with conjugate gradients."""


class KernelLogisticRegression(ScoreClassifier):
    r"""min over f in Hᶜ, b of Σᵢ wᵢ (log Σ_c exp(f_c(xᵢ) + b_c) − f_yᵢ(xᵢ) − b_yᵢ) + λ/2 Σ_c ‖f_c‖².

    P(c | x) ∝ exp(f_c(x) + b_c) with f_c = Σᵢ α_ic k(·, xᵢ). For two classes one f is enough, the log odds of the
    second: log(P/(1 − P)) = f(x) + b. Its penalty is λ/2 ‖f‖², as in scikit-learn: twice that of f/2 and −f/2.
    At the optimum λα_ic = wᵢ(1[yᵢ = c] − P(c | xᵢ)): each row pulls by what the model gets wrong, so that no
    coefficient is 0, other than in a support vector machine.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    alpha : float, default 0.1
        λ > 0; 1/C of scikit-learn's `LogisticRegression`, which this is with the linear kernel. A Gaussian wants less
        penalty than its default of 1: on the tables of docs/defaults.md 0.1 errs less by 1.6 to 9 points on eight
        of twelve, and more by 1 and 2 on two small noisy ones.
    fit_intercept : bool, default True
        Add b, which is not penalised: the mean of P(c | xᵢ) is then the share of class c.
    class_weight : dict, "balanced" or None
        Multiplies the sample weights.
    solver : {"auto", "exact", "nystroem"}, default "auto"
        "nystroem" is an approximation for many rows, f in the span of m landmarks: Newton's method on their explicit
        features. A step takes O(n m²) time for two classes. For c > 2 its system is solved by conjugate gradients, some
        tens of products of O(n m c); but if the rows are in a file their features are, too, and it is solved at once,
        in O(n m² c²), with one pass over them.
        "auto" takes it, with a warning, if a hundred exact products would take hours, as `KernelRidge` does.
    n_landmarks : int or None, default None
        m of "nystroem"; None is 5√n, 1000 at most, or what the memory allows. Of c > 2 classes with features in a file
        it is 1000/c at most.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How they are chosen, as for `Nystroem`; integers name training rows, and an array of two dimensions is the
        landmarks themselves. Numbers count all rows, so that "nystroem" refuses weights of 0 beside them. Pivots are
        chosen among ten random rows for each landmark.
    tol : float, default 1e-10
        On the duality gap relative to the objective, which is then at most that much above its minimum.
    max_iter : int, default 100
        Newton's steps; some ten are the rule.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. K is stored if it takes at most 40 % of it.
    random_state : int, RandomState or None, default 0
        Seed for the landmarks.

    Attributes
    ----------
    classes_ : array of shape (c,)
    dual_coef_ : array of shape (n, 1) for two classes, (n, c) otherwise
        α; with landmarks, which are X_fit_ then, their coefficients.
    intercept_ : array of shape (1,) or (c,)
        b; of many classes their sum is 0.
    n_iter_ : int
        Newton's steps made.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, and the report on method and accuracy.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, and for a kernel matrix that is found not to be positive semi-definite.
    MemoryExceeded
        If the plan does not fit the budget.

    Warns
    -----
    ConvergenceWarning
        If the gap stays above `tol`; the report says by how much.

    Notes
    -----
    Labels and probabilities come from the same scores, so that they never contradict one another. The model is
    calibrated by its own loss, as far as λ lets it: a large λ draws all probabilities to the shares of the classes.

    References
    ----------
    J. Zhu, T. Hastie (2005). Kernel logistic regression and the import vector machine. Journal of Computational and
    Graphical Statistics 14.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(alpha=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.predict_proba(X[:1]).round(2), model.report_.status
    (True, array([[0.99, 0.01, 0.  ]]), 'converged')
    """

    fitted: ClassVar[Schema] = ScoreClassifier.fitted + Schema(Count("n_iter_"))

    tuned: ClassVar[str] = "alpha"

    def __init__(
        self,
        kernel: Any = "gaussian",
        alpha: float = 0.1,
        *,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        solver: Literal["auto", "exact", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        tol: float = 1e-10,
        max_iter: int = 100,
        memory: float | str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α and b.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        self._check()
        X, y = labelled(self, X, y)
        X, labels, weights = self._encoded(X, y, self._weights(sample_weight, X))
        X, labels, weights = self._with_weight(X, labels, weights)
        K, report = self._begin(X, weights)
        self.report_ = report
        self._kernel_size(K)
        report.reason = "as requested" if self.solver == "nystroem" else ""
        if self.solver == "auto":
            report.reason = too_dear(K.product_work(EVALUATION), self.kernel_)
        by = self._by_landmarks if report.reason else self._exactly
        solution = by(K, X, labels, weights, report)
        lost = solution.status is Status.BREAKDOWN and self.kernel_.properties.definiteness.is_mercer
        if solution.status in (Status.BREAKDOWN, Status.NOT_FINITE) and not lost:  # lost to rounding: a warning
            given = f"K is not positive semi-definite, or not finite ({solution.status.name.lower()})"
            do = f"choose a Mercer kernel, standardise the columns, or raise alpha (now {self.alpha!r})"
            most = 1.0 if weights is None else float(weights.max())
            if most / float(self.alpha) > LARGEST_PULL:
                given = f"weights up to {most:.3g} over alpha={self.alpha!r}, which lets numbers overflow"
                do = "bring them nearer to 1: weights count rows"
            raise InvalidInput(message(type(self).__name__, given, do))
        self.intercept_, self.n_iter_ = solution.x.intercept, solution.steps
        slope = float(np.sqrt(max(2 * self.alpha * solution.state.gap, 0.0)))
        report.notes.append(f"objective {solution.state.objective:.9g}, norm of its gradient in H {slope:.1e}")
        self._account(report, solution, float(self.tol), rounding=1e-12)
        return self

    def _exactly(
        self, K: KernelOperator, X: Any, labels: np.ndarray, weights: np.ndarray | None, report: Report
    ) -> Solution[Any]:
        """Set α of all rows; returns the solution."""
        operator, factor = self._prepared(K, report)
        problem = Logistic(operator, labels, float(self.alpha), weights, bool(self.fit_intercept), factor)
        with report.stage("solve"):
            solution = solve(self._newton(), problem)
        self.dual_coef_ = solution.x.coef
        return solution

    def _newton(self) -> NewtonLogistic:
        return NewtonLogistic(float(self.tol), int(self.max_iter))

    @property
    def _scores(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _iterates(self, K: KernelOperator) -> bool:
        """Whether Newton's steps on features are found by products with them: each is a pass over those in a file."""
        return self._scores > 1 and not K.x.window

    def _by_landmarks(
        self, K: KernelOperator, X: Any, labels: np.ndarray, weights: np.ndarray | None, report: Report
    ) -> Solution[Any]:
        """Set the landmarks and their coefficients; returns the solution."""
        who, m = type(self).__name__, self._planned(K, report)
        with report.stage("landmarks"):
            span = LandmarkSpan.chosen(who, self.landmarks, K, X, m, self._seed())
        with report.stage("features"):
            Phi = K.x.scratch((K.shape[0], span.root.shape[1]), np.float64)
            KernelOperator(self.kernel_, X, span.landmarks, dtype=np.float64).features(span.root, out=Phi)
        report.method = f"{counted(len(span.matrix), 'landmark')}, Newton on their Nyström features"
        report.rank, report.precision = span.rank, "float64"
        loss = labels, float(self.alpha), weights, bool(self.fit_intercept)
        solution, coef = self._on_features(Phi, loss, self._iterates(K), report)
        self.X_fit_, self.dual_coef_ = span.landmarks, span.root @ coef
        if self.solver == "auto":
            given = f"{report.reason}, so f is restricted to {counted(len(span.matrix), 'landmark')}, an approximation"
            do = 'compare other n_landmarks=, or set solver="exact"'
            report.warnings.append(message(who, given, do))
            warn(report.warnings[-1], ConvergenceWarning)
        return solution

    def _on_features(
        self, Phi: np.ndarray, loss: tuple[np.ndarray, float, np.ndarray | None, bool], iterates: bool, report: Report
    ) -> tuple[Solution[Any], np.ndarray]:
        """The solution and the coefficients of features: of few by a factor of Newton's equations, which is exact."""
        m = Phi.shape[1]
        features, unknowns = LowRank(Phi), m * self._scores
        if iterates and (unknowns > MOST_AT_ONCE or len(Phi) * unknowns**2 > AT_ONCE):
            with report.stage("preconditioner"):
                factor = pivoted_cholesky(features, self._pivots(2 * m, m), tol=float(self.alpha)).F
            with report.stage("solve"):
                solution = solve(self._newton(), Logistic(features, *loss, factor))
            limited = solution.status is Status.MAX_STEPS and self.max_iter < LIKELY
            if limited or solution.status not in INEXACT or unknowns > MOST_AT_ONCE:
                report.method += " with conjugate gradients"
                return solution, Phi.T @ solution.x.coef
            report.notes.append("conjugate gradients were not exact enough, so Newton's equations were factored")
        with report.stage("solve"):
            one_pass = NewtonFeatureLogistic(float(self.tol), int(self.max_iter))
            solution = solve(one_pass, FeatureLogistic(features, *loss))
        return solution, solution.x.coef

    def _planned(self, K: KernelOperator, report: Report) -> int:
        """How many landmarks, and the memory that they take; the budget may lower the default."""
        n, t, iterates = K.shape[0], self._scores, self._iterates(K)

        def need(m: int) -> int:
            features = 0 if K.x.window else 8 * n * m
            at_once = 8 * (VECTORS * n * t + 3 * (m * t) ** 2)
            step = self._iteration_bytes(n, self._pivots(2 * m, m)) if iterates else at_once
            step = max(step, at_once if m * t <= MOST_AT_ONCE else 0)
            return features + landmark_bytes(n, m) + step

        asked = given_count(type(self).__name__, self.landmarks, self._count_or_none("n_landmarks"))
        most = MOST_LANDMARKS if iterates else MOST_LANDMARKS // t
        m = max(1, min(default_landmarks(n), most)) if asked is None else asked
        while asked is None and m > 100 and need(m) + landmark_rows(K, m) > report.memory_budget:
            m = int(0.8 * m)
        m = min(m, n) if isinstance(self.landmarks, str) else m
        report.memory_rows = landmark_rows(K, m)
        do = "fewer rows" if asked is None else "lower n_landmarks="
        report.plan(need(m), f"{type(self).__name__} of {n} rows with {m} landmarks", do)
        return m

    def _prepared(self, K: KernelOperator, report: Report) -> tuple[Operator, np.ndarray]:
        """K, in memory if it fits, and F with FFᵀ ≈ K for the preconditioner."""
        n = K.shape[0]
        each = min(n, int(K.product_work(1) / n) + 1) if K.is_narrow else n
        rank = self._pivots(each, min(n, K.x.columns + 2) if K.is_narrow else n)  # with a constant and an intercept
        report.method = "Newton with conjugate gradients"
        operator = self._in_memory(K, self._iteration_bytes(n, rank), report, "fewer rows")
        with report.stage("preconditioner"):
            if not self.kernel_.properties.definiteness.is_mercer and np.any(K.diagonal() < 0):
                return operator, np.empty((n, 0))  # pivoted Cholesky asks for a diagonal ≥ 0
            return operator, pivoted_cholesky(operator, rank, tol=float(self.alpha)).F

    def _pivots(self, each: int, most: int) -> int:
        """Pivots for the steps, `most` at the most, if a product takes `each` operations a row and score."""
        return min(int(PIVOTS * np.sqrt(each / self._scores)), MOST_PIVOTS, most)

    def _iteration_bytes(self, n: int, rank: int) -> int:
        """Bytes of the vectors of conjugate gradients and of their preconditioner."""
        t = self._scores
        return 8 * (n * (ITERATED * t + 2 * rank) + min(n * rank * t, CHUNK) + (2 * t + 1) * t * rank**2)

    def _check(self) -> None:
        self._checked_number("alpha", otherwise=", the weight λ of ‖f‖²/2")
        self._checked_number("tol", or_equal=True)
        self._checked_count("max_iter")
        self._checked_choice("solver", "auto", "exact", "nystroem")

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(c | x), of shape (m, c)."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(c | x), of shape (m, c), finite where P is rounded to 0."""
        scores = self._decide(X)
        if scores.shape[1] == 1:
            return -np.hstack([np.logaddexp(0, scores), np.logaddexp(0, -scores)])
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
