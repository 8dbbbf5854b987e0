"""Online regression within a budget: recursive least squares, and least mean squares, on a small dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import MultiOutputMixin

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.continued import require_same_kernel
from mercer.estimators.online.online_estimator import OnlineEstimator
from mercer.gram import KernelOperator
from mercer.mixins import RegressorMixin
from mercer.points.validate import squarable
from mercer.schemas import POSITIVE, Array, Schema
from mercer.solvers import Learner, QuantisedLMS, QuantisedState, RecursiveLeastSquares, RecursiveState, Status

__all__ = ["OnlineKernelRegressor"]

EXPLODED = 1e3
"""A run whose errors exceed ‖y‖ this many times has diverged."""


class OnlineKernelRegressor(MultiOutputMixin, RegressorMixin, OnlineEstimator):
    r"""f = Σ b_s k(s, ·) over a dictionary of at most `budget` rows s, which each row that is met may change.

    "krls" is recursive least squares: min Σ (y − f(x))² + α‖f‖² over all rows met, where a row joins the dictionary if
    it is not nearly in its span, ‖k(x, ·) − Pk(x, ·)‖² > ν k(x, x), and counts as its projection otherwise. "qklms" is
    least mean squares: b_q gains η(y − f(x)), where q is the nearest of the dictionary if ‖φ(x) − φ(q)‖ ≤ ε, and
    otherwise x, which joins. With a full dictionary no row joins.

    A chunk of rows has its kernel values made at once, and the updates are then those of one row after the other: how
    rows are cut into calls of `partial_fit` makes no difference, up to rounding.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. A bandwidth that depends on data is that of
        the rows of the first call.
    method : {"krls", "qklms"}, default "krls"
        With a dictionary of B rows in d columns, "krls" costs O(B² + Bd) a row, "qklms" O(Bd), and learns less from it.
    budget : int, default 1000
    nu : float, default 1e-3
        ν ≥ 0 of "krls".
    alpha : float, default 0.1
        The weight of ‖f‖² in "krls", as for `KernelRidge`; the paper has 0. With ν → 0 the answer is kernel ridge
        regression. The default is the best of 0.01, 0.1 and 1 for most tables of docs/defaults.md.
    epsilon : float, default 0.1
        ε ≥ 0 of "qklms", a distance in feature space: 2 − 2k(x, z) is its square if k(x, x) = 1. At 0 every row
        joins, which is kernel least mean squares.
    step_size : float or "auto", default "auto"
        η of "qklms"; "auto" is 0.5/max k(x, x) over the rows of the first call, a quarter of the limit. Another number
        may be set between calls of `partial_fit`.
    averaged : bool, default False
        "qklms" predicts with the mean of f over all rows met.
    n_passes : int, default 1
        Passes of `fit` over its rows; for "krls" a row that is met twice counts twice.
    shuffle : bool, default True
        `fit` takes a new order in each pass; `partial_fit` takes rows as they come.
    random_state : int, RandomState or None, default 0
        Seed for these orders.
    keep_history : int or bool, default False
        Keep f after each so many rows met, or each row (1 or True), for `staged_predict`.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    X_fit_ : array of shape (m, d)
        The dictionary.
    dual_coef_ : array of shape (m,) or (m, targets)
        b.
    n_seen_ : int
        Rows met.
    step_size_ : float
        η as used ("qklms").
    history_, history_rows_ : arrays of shape (k, *targets) and (k, d)
        b and the dictionaries that `keep_history` asks for, one after the other.
    history_ends_ : array of int of shape (frames,)
        Where each of them ends.
    kernel_, report_

    Warns
    -----
    ConvergenceWarning
        If a step size that is too large made the errors of "qklms" explode; f is then as it was before the call.

    Notes
    -----
    There is no intercept: centre the targets, or use a kernel with a constant (``Gaussian() + 1``).

    References
    ----------
    Y. Engel, S. Mannor, R. Meir (2004). The kernel recursive least-squares algorithm. IEEE Trans. Signal Processing 52.
    B. Chen, S. Zhao, P. Zhu, J. C. Príncipe (2012). Quantized kernel least mean square algorithm. IEEE Trans. Neural
    Networks and Learning Systems 23.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnlineKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(1000, 1))
    >>> model = OnlineKernelRegressor("gaussian(gamma=1.0)")
    >>> for rows in range(0, 1000, 100):
    ...     model = model.partial_fit(X[rows : rows + 100], np.sin(X[rows : rows + 100, 0]))
    >>> model.predict([[np.pi / 2]]).round(2), len(model.X_fit_) < 20
    (array([1.]), True)
    """

    fitted: ClassVar[Schema] = OnlineEstimator.fitted + Schema(Array("step_size_", optional=True, rules=(POSITIVE,)))

    tuned: ClassVar[str] = "alpha"
    of_classes: ClassVar[str] = "OnlineKernelClassifier"

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        method: Literal["krls", "qklms"] = "krls",
        budget: int = 1000,
        nu: float = 1e-3,
        alpha: float = 0.1,
        epsilon: float = 0.1,
        step_size: float | str = "auto",
        averaged: bool = False,
        n_passes: int = 1,
        shuffle: bool = True,
        random_state: int = 0,
        keep_history: int | bool = False,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.method = method
        self.budget = budget
        self.nu = nu
        self.alpha = alpha
        self.epsilon = epsilon
        self.step_size = step_size
        self.averaged = averaged
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.keep_history = keep_history
        self.memory = memory

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, and pass over these rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        """
        self._check_parameters()
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        Y = squarable("OnlineKernelRegressor", y).reshape(len(y), -1)
        self._open(X, Y.shape[1])
        for order in self._orders(len(Y)):
            self._learn(X, Y, order, np.shape(y)[1:])
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Meet these rows, in the order given, with what was learned before.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        """
        self._check_parameters()
        first = not self._known()
        require_same_kernel(self)
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True, reset=not self._known())
        Y, shape = squarable("OnlineKernelRegressor", y).reshape(len(y), -1), np.shape(y)[1:]
        if first:
            self._open(X, Y.shape[1])
        else:
            self._go_on()
            if self.method == "qklms" and self.step_size != "auto":
                self.step_size_ = float(self.step_size)
        if not first and self.dual_coef_.shape[1:] != shape:
            given = f"targets of shape {np.shape(y)} after coefficients of shape {self.dual_coef_.shape}"
            raise InvalidInput(message("OnlineKernelRegressor", given, "give as many targets as before"))
        return self._learn(X, Y, np.arange(len(Y)), shape)

    def _meet(self, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        self._follow(X, targets, order)

    def _open(self, X: Any, targets: int) -> None:
        self._begin_stream(X, targets)
        if self.method == "qklms":
            diagonal = np.asarray(KernelOperator(self.kernel_, X, dtype=np.float64).diagonal())
            self._require_finite(diagonal)
            auto = 0.5 / (float(np.max(diagonal)) or 1.0)
            self.step_size_ = auto if self.step_size == "auto" else float(self.step_size)

    def _learner(self, room: int) -> Learner[Any]:
        if self.method == "krls":
            return RecursiveLeastSquares(room, float(self.nu), float(self.alpha))
        return QuantisedLMS(room, float(self.epsilon), getattr(self, "step_size_", 1.0))

    def _settled(self, shape: tuple[int, ...]) -> Self:
        """Set the coefficients and the report from the current state."""
        learner, report = self._learner(int(self.budget)), self.report_
        report.n, report.steps, report.tolerance = self.n_seen_, self.n_seen_, float("nan")
        report.reason = f'method="{self.method}", budget {self.budget}'
        full = ""
        if isinstance(learner, RecursiveLeastSquares):
            met = RecursiveState.from_arrays(self._state)
            b, report.residual = learner.answer(met)
            report.method = f"recursive least squares, ν = {self.nu:g}, α = {self.alpha:g}"
            report.status = "‖y − f(x)‖/‖y‖ over the rows met, as they were projected"
            if met.full:
                full = f"; {met.full} were new after the dictionary was full, and were projected"
        else:
            kept = QuantisedState.from_arrays(self._state)
            b, report.residual = learner.coefficients(kept, bool(self.averaged)), kept.residual
            report.method = f"quantised least mean squares, ε = {self.epsilon:g}, η = {self.step_size_:.3g}"
            report.status = "‖y − f(x)‖/‖y‖, each row judged before it was learned"
        self.dual_coef_ = b.reshape(-1, *shape)
        report.rank = len(b)
        report.notes = [note for note in report.notes if not note.startswith("in all: ")]
        report.notes.append(f"in all: {len(b)} of {self.n_seen_} rows joined{full}")
        return self

    def _sound(self, state: Any) -> bool:
        """Whether least mean squares stayed finite; if it did not, f stays as before, with a warning."""
        if not isinstance(state, QuantisedState) or (np.all(np.isfinite(state.b)) and state.residual < EXPLODED):
            return True
        given = f"these rows made the error grow without end (step size {self.step_size_:.3g}); f is as before"
        self.report_.warnings.append(message("OnlineKernelRegressor", given, self._advice(Status.DIVERGED)))
        warn(self.report_.warnings[-1], ConvergenceWarning)
        return False

    def _check_parameters(self) -> None:
        self._checked_choice("method", "krls", "qklms")
        self._check_counts("budget", "n_passes")
        for name in ("nu", "alpha", "epsilon"):
            self._checked_number(name, or_equal=True)
        if self.step_size != "auto":
            self._checked_number("step_size", otherwise=', or "auto"')

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """f(x) for each f that `keep_history` kept, one after the other: what was learned when.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Yields
        ------
        array of shape (m,) or (m, targets)

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import OnlineKernelRegressor
        >>> X = np.linspace(-1, 1, 40).reshape(-1, 1)
        >>> model = OnlineKernelRegressor("linear", keep_history=10, alpha=1.0).fit(X, X[:, 0])
        >>> [round(float(f[0]), 2) for f in model.staged_predict([[1.0]])]
        [0.8, 0.88, 0.91, 0.93]
        """
        return self._stages(X, "staged_predict")

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The same as `staged_predict`, by the name that classifiers have for it and films read."""
        return self._stages(X, "staged_decision_function")

    def predict(self, X: Any) -> np.ndarray:
        """f(x) for each row, in float64."""
        return self._decide(X)
