"""Kernel ridge regression and classification: the linear model in feature space, with squared loss."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput, message
from mercer.estimators.base import KernelEstimator
from mercer.estimators.regularised import RegularisedSolve
from mercer.estimators.report import Report
from mercer.gram import KernelOperator
from mercer.solvers import Solution, Status

__all__ = ["KernelRidge", "KernelRidgeClassifier"]


class _LeastSquares(KernelEstimator):
    """f = Σⱼ αⱼ k(·, xⱼ) + b with (K + λ diag(1/w)) α + b = y, and Σ αⱼ = 0 where there is an intercept b."""

    alpha: float
    fit_intercept: bool
    solver: str
    tol: float

    def _fit_targets(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Fit every column of Y; a row of weight 0 is absent."""
        self._check_parameters()
        if weights is not None and np.any(weights == 0):
            X, Y, weights = self._without(weights == 0, X, Y, weights)
        K, report = self._begin(X, weights)
        self.report_ = report
        shift = self.alpha if weights is None else self.alpha / weights
        ones = np.ones((len(Y), 1)) if self.fit_intercept else np.empty((len(Y), 0))
        solution = self._solve(K, np.hstack([Y, ones]), shift, report)
        dual = np.asarray(solution.x)
        targets = Y.shape[1]
        self.intercept_ = np.zeros(targets)
        if self.fit_intercept:
            # (K + D) u = 1 and (K + D) v = y: α = v − u b, with b such that Σα = 0.
            v, u = dual[:, :targets], dual[:, targets]
            self.intercept_ = v.sum(axis=0) / u.sum()
            dual = v - np.outer(u, self.intercept_)
        self.dual_coef_ = dual

    def _check_parameters(self) -> None:
        who = type(self).__name__
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < np.inf):
            raise InvalidInput(message(who, f"alpha={self.alpha!r}", "give a number ≥ 0, the weight λ of ‖f‖²"))
        if self.solver not in ("auto", "cholesky", "cg", "askotch"):
            raise InvalidInput(message(who, f"solver={self.solver!r}", 'choose "auto", "cholesky", "cg" or "askotch"'))

    @property
    def _road(self) -> str:
        """The solver of the linear system, or "auto"."""
        return self.solver

    def _solve(self, K: KernelOperator, B: np.ndarray, shift: Any, report: Report) -> Solution[Any]:
        size = self._kernel_size(K)
        solution = RegularisedSolve(
            who=type(self).__name__,
            K=K,
            B=B,
            shift=shift,
            solver=self.solver,
            tol=self.tol,
            narrow=size.largest_entry < 1e30 and size.largest_row < 1e15,  # the range of float32
            mercer=self.kernel_.properties.definiteness.is_mercer,
            report=report,
        ).run()
        if solution.status in (Status.NOT_POSITIVE_DEFINITE, Status.BREAKDOWN, Status.NOT_FINITE):
            how = solution.status.name.lower().replace("_", " ")
            given = f"K + λI with λ = {float(np.min(shift)):.3g} has no solution ({how})"
            raise InvalidInput(message(type(self).__name__, given, solution.status.advice))
        report.precision = f"{getattr(solution.state, 'precision', 'float64')}, residual in float64"
        # Entries are rounded, so no solution has a residual below eps‖A‖‖x‖: that of a stable method is as good.
        growth = np.linalg.norm(solution.x, axis=0) / np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
        rounding = 4 * np.finfo(np.float64).eps * (size.trace + float(np.max(shift))) * float(growth.max(initial=0.0))
        self._account(report, solution, self.tol, rounding)
        return solution

    def _decide(self, X: Any) -> np.ndarray:
        return np.asarray(self._cross(X) @ self.dual_coef_) + self.intercept_


class KernelRidge(MultiOutputMixin, RegressorMixin, _LeastSquares):
    r"""min over f in H of Σᵢ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖²: f = Σᵢ αᵢ k(·, xᵢ) with (K + λ diag(1/w)) α = y − b.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name means its bandwidth by scikit-learn's rule "scale"; ``Gaussian(gamma="median")`` and expressions such as
        ``"gaussian() + 0.1*linear()"`` work too.
    alpha : float, default 1.0
        λ ≥ 0. At 0 the fit interpolates, if K is positive definite in float64, and is refused otherwise.
    fit_intercept : bool, default False
        Add b, which is not penalised. Without it f shrinks towards 0, so centre the targets or set this.
    solver : {"auto", "cholesky", "cg", "askotch"}, default "auto"
        "cholesky" stores K in float32 (4n² bytes), factors it and refines with float64 products; "cg" stores at most
        2000 columns: conjugate gradients preconditioned by randomly pivoted Cholesky, refined alike; "askotch" stores
        none, and solves a block of rows at a time. "auto" takes "cg" where K doesn't fit in 40 % of the memory budget
        or where it is predicted to be quicker, and "askotch" where so few columns fit that "cg" is predicted to take
        much longer; the report says why.
    tol : float, default 1e-10
        Relative residual ‖y − (K + λI)α‖/‖y‖ in float64, per target, whichever the solver. The steps of "cg" grow with
        log(1/tol): where only predictions matter and n is large, 1e-6 or 1e-4 is enough.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, targets)
        α.
    intercept_ : float or array of shape (targets,)
        b; 0 without intercept.
    kernel_ : Kernel
        As resolved from the data.
    X_fit_ : array of shape (n, d)
        Training rows (column indices for a precomputed kernel).
    report_ : Report
        What was chosen, how exact it is, what it cost.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, and where K + λI is not positive definite.
    MemoryExceeded
        Where the plan does not fit the budget.

    Warns
    -----
    ConvergenceWarning
        Where the residual stays above `tol`; the report says by how much and what to try.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk (1998). Ridge regression learning algorithm in dual variables. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = KernelRidge(Gaussian(gamma=1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(3)
    array([1.])
    >>> model.report_.residual < 1e-10
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = False,
        solver: Literal["auto", "cholesky", "cg", "askotch"] = "auto",
        tol: float = 1e-10,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: 2 is a row that stands twice, 0 one that is not there.
        """
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        self._fit_targets(X, y.reshape(len(y), -1), self._weights(sample_weight, X))
        if y.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(x) + b for each row, in float64."""
        return self._decide(X)


class KernelRidgeClassifier(ClassifierMixin, _LeastSquares):
    r"""min over f of Σᵢ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖² with yᵢ ∈ {−1, +1} for each class; the largest f(x) + b wins.

    With two classes this is the least-squares support vector machine, and its direction is that of regularised kernel
    Fisher discriminant analysis. With c classes one factorisation serves the c indicators. The scores are no
    probabilities.

    Parameters
    ----------
    kernel, alpha, solver, tol, memory
        As for `KernelRidge`.
    fit_intercept : bool, default True
        Classes are seldom balanced.
    class_weight : dict, "balanced" or None
        Multiplies the sample weights.

    Attributes
    ----------
    classes_ : array of shape (c,)
    dual_coef_ : array of shape (n, 1) for two classes, (n, c) otherwise
    intercept_ : array of shape (1,) or (c,)
    kernel_, X_fit_, report_
        As for `KernelRidge`.

    References
    ----------
    J. A. K. Suykens, J. Vandewalle (1999). Least squares support vector machine classifiers. Neural Processing
    Letters 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelRidgeClassifier(alpha=0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        solver: Literal["auto", "cholesky", "cg", "askotch"] = "auto",
        tol: float = 1e-10,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α on the indicators of the classes.

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
        if weights is not None and np.any(weights == 0) and self._domain() != "precomputed":
            X, y, weights = self._without(weights == 0, X, y, weights)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            given = f"only one class, {self.classes_.tolist()}"
            raise InvalidInput(message(type(self).__name__, given, "give rows of at least two classes"))
        if self.class_weight is not None:
            factor = compute_sample_weight(self.class_weight, y)
            weights = factor if weights is None else weights * factor
        indicators = np.where(labels[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._fit_targets(X, indicators[:, 1:] if len(self.classes_) == 2 else indicators, weights)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) + b: of shape (m,) for two classes (positive: the second), of shape (m, c) otherwise."""
        scores = self._decide(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
