"""Least mean squares with the kernel trick ("Kernel methods", 5.2 to 5.12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import MultiOutputMixin

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.compression import Compressible
from mercer.estimators.base.continued import GIVEN, require_same_kernel
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.descent.learning import (
    EARLY,
    check_descent,
    frames_kept,
    largest_eigenvalue,
    made_all_steps,
)
from mercer.gram import KernelOperator
from mercer.keeping import Trail
from mercer.mixins import RegressorMixin
from mercer.operators import Operator
from mercer.points import joined
from mercer.points.validate import squarable
from mercer.schemas import Array, Count, Schema
from mercer.solvers import (
    BatchLMS,
    LeastSquares,
    Solution,
    Status,
    StochasticLMS,
    replay,
    solve,
    update_rates,
)
from mercer.ways.report import Report

__all__ = ["KernelLMS"]

EXPLODED = 1e3
"""Rows whose errors grew this many times have made f diverge."""

BATCH_SHARE = 1.9
"""The step size is this over λmax: 2 is the limit, and the twentieth is more than the error of λmax."""


class KernelLMS(MultiOutputMixin, RegressorMixin, Compressible):
    r"""θ := θ + α Σᵢ (yᵢ − θᵀφ(xᵢ)) φ(xᵢ), kept as θ = Σᵢ βᵢ φ(xᵢ): β := β + α(y − Kβ), and f(x) = Σᵢ βᵢ k(xᵢ, x).

    Gradient descent on ½ Σᵢ (yᵢ − f(xᵢ))² in feature space, from β = 0, after (5.11); the stochastic rule visits one
    row after the other, βᵢ := βᵢ + α (yᵢ − f(xᵢ)), after (5.4). There is no penalty: what is smooth is fitted first,
    and to stop early (`max_iter`, `tol`) is the regularisation. There is no intercept: centre the targets, or use a
    kernel that has a constant.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "linear"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. ``MonomialSum(3)`` is the chapter's (5.9). The
        default is the chapter's first; "gaussian" fits most tables better, and noisy ones worse without an earlier stop
        (docs/defaults.md).
    mode : {"batch", "stochastic"}, default "batch"
    step_size : float or "auto", default "auto"
        α. In batch mode "auto" is 1.9/λmax(K): each α < 2/λmax makes the errors fall in each step, and λmax comes from
        LAPACK or a block Krylov method, with an error below a thousandth. In stochastic mode it is 1/max k(xᵢ, xᵢ),
        half the limit: each update then meets its own target, or falls short of it.
    max_iter : int, default 1000
        Steps; in stochastic mode passes over the rows.
    tol : float or None, default 1e-3
        On the norm of the gradient, relative to that at β = 0. With None all of `max_iter` steps are made, which
        is not a failure.
    keep_history : int or bool, default False
        Keep β before the first step, and after each step or pass (1 or True) or each so many, for `staged_predict`.
    shuffle : bool, default True
        A new order in each pass of the stochastic mode.
    random_state : int, RandomState or None, default 0
        Seed for these orders.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. K is stored if it takes at most 40 % of it.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, targets)
        β.
    history_ : array of shape (frames, n) or (frames, n, targets)
        β as `keep_history` asks.
    step_size_ : float
        α as used.
    n_iter_ : int
        Steps or passes made.
    kernel_, X_fit_, report_
        The kernel as resolved, the rows of the expansion of f, and the report on method and accuracy.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Notes
    -----
    A step size that is too large makes the error grow: the run then ends, the best iterate is kept, and a
    `ConvergenceWarning` says what the limit is. A row of weight w counts as w rows: in batch mode its error is
    multiplied by w, in stochastic mode and by `partial_fit` it is visited w times in succession. What is left of w
    after whole visits is one more with that part of α: a weight of 0.5 is half an update, and one near 0 almost none.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLMS
    >>> from mercer.kernels import MonomialSum
    >>> X = np.linspace(-1, 1, 30).reshape(-1, 1)
    >>> y = 1 - 2 * X[:, 0] ** 3
    >>> model = KernelLMS(MonomialSum(3), tol=1e-5, max_iter=20000).fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - 0.75) < 0.01), model.report_.status
    (True, 'converged')
    """

    fitted: ClassVar[Schema] = Compressible.fitted + Schema(
        GIVEN,
        Array("dual_coef_", "n *targets"),
        Array("step_size_", optional=True),
        Count("n_iter_"),
        Array("history_", "frames n *targets", optional=True, finite=False),
    )

    indefinite_meaning: ClassVar[str] = (
        "the steps converge along eigenvectors of positive eigenvalues only, and diverge along the others"
    )

    early: ClassVar[str] = EARLY
    tuned: ClassVar[str] = "kernel"
    of_classes: ClassVar[str] = "KernelPerceptron"

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        mode: Literal["batch", "stochastic"] = "batch",
        step_size: float | str = "auto",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        keep_history: int | bool = False,
        shuffle: bool = True,
        random_state: int = 0,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.mode = mode
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.keep_history = keep_history
        self.shuffle = shuffle
        self.random_state = random_state
        self.memory = memory

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Descend from β = 0.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        self._check_parameters()
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        y = squarable("KernelLMS", y, whole=True)
        weights = self._weights(sample_weight, X)
        X, y, weights = self._with_weight(X, y, weights)
        K, report = self._begin(X, weights)
        self.report_, self._given_kernel = report, self._as_kernel(self.kernel)
        largest = self._kernel_size(K).largest_entry
        report.method = f"{self.mode} least mean squares"
        held = 8 * len(y) * ((6 + 2 * frames_kept(self)) * (y.size // len(y)) + 64)
        fewer = "fewer rows, targets or frames"
        operator = self._in_memory(K, held, report, fewer, products=self.mode == "batch")
        if self.step_size != "auto":
            self.step_size_ = float(self.step_size)
        elif self.mode == "batch":
            self.step_size_ = BATCH_SHARE / (largest_eigenvalue(operator, weights, report, self._seed()) or 1.0)
        else:
            self.step_size_ = 1.0 / (largest or 1.0)
        every = int(self.keep_history)
        frames = Trail(lambda state, _: state.X.reshape(y.shape) if every and state.steps % every == 0 else None)
        with report.stage("descent"):
            solution = solve(self._rule(), LeastSquares(operator, y, weights), each=frames)
        self.dual_coef_, self.n_iter_ = np.asarray(solution.x), solution.steps
        if every:
            self.history_ = np.array(frames.arrays)
        self._judge(solution, operator, weights, largest, report)
        return self

    def _rule(self) -> BatchLMS | StochasticLMS:
        tol, steps = float(self.tol or 0.0), int(self.max_iter)
        if self.mode == "batch":
            return BatchLMS(self.step_size_, tol, steps)
        return StochasticLMS(self.step_size_, tol, steps, bool(self.shuffle), self._seed())

    def _judge(
        self, solution: Solution[Any], K: Operator, weights: np.ndarray | None, largest: float, report: Report
    ) -> None:
        """Report the run; if it diverged, say which limit the step size exceeded."""
        report.notes.append(f"step size {self.step_size_:.3g}")
        if made_all_steps(self.tol, solution, report):
            return
        if solution.status is Status.DIVERGED:
            if self.mode == "batch":
                limit = f"2/λmax = {2 / (largest_eigenvalue(K, weights, report, self._seed()) or np.inf):.3g}"
            else:
                limit = f"2/max k(x, x) = {2 / (largest or np.inf):.3g}"
            report.notes.append(f"diverged with step size {self.step_size_:.3g}; the limit is {limit}")
            report.method += f" with step size {self.step_size_:.3g} (the limit is {limit})"
        if solution.status is Status.MAX_STEPS and self.mode == "stochastic":
            report.notes.append(
                "with a constant step size the stochastic rule settles only if some f meets all targets: "
                'lower step_size, choose mode="batch", or set tol=None to make all passes as asked'
            )
        self._account(report, solution, self.tol or 0.0)

    # ---- one row after the other ------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One stochastic update for each row of X, in the order given; every row joins the expansion of f.

        The first call resolves the kernel on its rows. A row that is given again joins again, which is the same f.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        sample_weight : array-like of shape (n,), optional
        """
        self._check_parameters()
        if self._space().numbered:
            given = "partial_fit with a precomputed kernel"
            raise InvalidInput(message("KernelLMS", given, "give the kernel itself, or use fit"))
        first = not hasattr(self, "dual_coef_")
        require_same_kernel(self)
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True, reset=first)
        y = squarable("KernelLMS", y)
        weights = self._weights(sample_weight, X)
        X, y, weights = self._with_weight(X, y, weights)
        if first:
            _, self.report_ = self._begin(X, weights)
            self._given_kernel = self._as_kernel(self.kernel)
            self.dual_coef_, self.X_fit_, self.n_iter_ = np.empty((0, *y.shape[1:])), X[:0], 0
        if self.dual_coef_.shape[1:] != y.shape[1:]:
            given = f"targets of shape {y.shape} after coefficients of shape {self.dual_coef_.shape}"
            raise InvalidInput(message("KernelLMS", given, "give as many targets as before"))
        self._visit(X, y, np.ones(len(y)) if weights is None else weights)
        return self

    def _visit(self, X: Any, y: np.ndarray, weights: np.ndarray) -> None:
        """Replay the updates of the new rows; if f diverges, keep the former f and warn."""
        old, n = len(self.dual_coef_), len(y)
        together = joined(self.X_fit_, X)
        K = KernelOperator(self.kernel_, X, together, dtype=np.float64)
        diagonal = np.asarray(KernelOperator(self.kernel_, X, dtype=np.float64).diagonal(), np.float64)
        if self.step_size == "auto":
            largest = float(np.max(KernelOperator(self.kernel_, together).diagonal()))
            self.step_size_ = 1.0 / (largest or 1.0)
        else:
            self.step_size_ = float(self.step_size)
        report, rates = self.report_.continued(), update_rates(self.step_size_, diagonal, weights)
        Y, known = y.reshape(n, -1), self.dual_coef_.reshape(old, y.size // n)
        self.__dict__.pop("history_", None)  # of fewer rows
        report.method, report.reason = "stochastic least mean squares, one pass", "partial_fit"
        report.memory_rows, report.precision = K.copies, "float64"
        report.plan(8 * 256 * (old + n), f"KernelLMS of {old + n} rows", "fewer rows at a time")
        with report.stage("updates"), np.errstate(over="ignore", invalid="ignore"):
            start = np.vstack([known, np.zeros((n, Y.shape[1]))])
            dual = replay(K.rows, start, Y, np.arange(n), old + np.arange(n), rates)
            error = self._error(K, Y, start, dual[old:], rates)
        report.residual, report.steps, report.tolerance = error, old + n, float("inf")
        self.n_iter_ = 1
        if not error < EXPLODED:
            report.status, report.residual = "diverged", float("inf")
            given = f"these rows made the error grow without end (step size {self.step_size_:.3g})"
            report.warnings.append(message("KernelLMS", f"{given}; f is as before", self._advice(Status.DIVERGED)))
            warn(report.warnings[-1], ConvergenceWarning)
            dual = np.vstack([known, np.zeros((n, Y.shape[1]))])
        else:
            report.status = "one pass made; the residual is the error of the rows before they were learned"
        report.n, self.report_ = old + n, report
        self.X_fit_, self.dual_coef_ = together, dual.reshape(-1, *y.shape[1:])

    @staticmethod
    def _error(K: Operator, Y: np.ndarray, start: np.ndarray, updates: np.ndarray, rates: np.ndarray) -> float:
        """The error that the updates saw, relative to the targets, or to the error before them where that is larger."""
        moved = rates != 0  # an update is ρ times the error that it saw
        error, scale = np.linalg.norm(updates[moved] / rates[moved, None]), np.linalg.norm(Y)
        if not error < EXPLODED * scale:  # rarely: targets near 0 say nothing of the size of the errors
            scale = max(scale, np.linalg.norm(Y - np.asarray(K @ start)))
        return float(error / (scale or 1.0))

    # ---- parameters and new rows ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._checked_choice("mode", "batch", "stochastic")
        check_descent(self)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """f(x) = Σᵢ βᵢ k(xᵢ, x) for each β that `history_` has, one after the other: what was learned when.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Yields
        ------
        array of shape (m,) or (m, targets)

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelLMS
        >>> X = np.linspace(-1, 1, 20).reshape(-1, 1)
        >>> model = KernelLMS("linear", max_iter=3, tol=None, keep_history=True, step_size=0.1).fit(X, X[:, 0])
        >>> [round(float(f[0]), 2) for f in model.staged_predict([[1.0]])]
        [0.0, 0.74, 0.93, 0.98]
        """
        self._require_history("staged_predict")
        K = self._cross(X)
        for frame in self.history_:
            yield known_values(np.asarray(K @ frame), K, "KernelLMS")

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The same as `staged_predict`, by the name that classifiers have for it and films read."""
        return self.staged_predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """f(x) = Σᵢ βᵢ k(xᵢ, x) for each row, in float64."""
        return self._expanded(X)
