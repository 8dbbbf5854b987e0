"""Support vector regression: the ε-insensitive loss, with ε given or found."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import ConvergenceWarning, message, warn
from mercer.estimators.svm.landmark_machines import LandmarkMachine
from mercer.estimators.svm.support_vectors import ONE_OUTPUT, SMALL, SupportVectorMachine, Training, filled
from mercer.mixins import RegressorMixin
from mercer.schemas import NON_NEGATIVE, Array, Schema
from mercer.solvers import DualBatch, DualPoint

__all__ = ["SVR", "NuSVR"]


class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """f(x) + b, fitted to numbers."""

    fitted: ClassVar[Schema] = SupportVectorMachine.fitted + ONE_OUTPUT

    C: float

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """The rows that have a weight."""
        X, y = self._validate_both(X, y, y_numeric=True)
        given = self._weights(sample_weight, X)
        weights = np.ones(len(y)) if given is None else given
        order = np.flatnonzero(weights > 0)
        data = self._prepare(X, order, np.asarray(y, np.float64)[order], weights[order])
        self._warn_of_small_targets(data)
        return data

    def _warn_of_small_targets(self, data: Training) -> None:
        """Targets whose differences are within `tol` fit any start; those of few rows are fitted to rounding."""
        spread = float(np.std(data.target))
        if len(data.target) <= SMALL or not 0 < spread < 10 * self.tol or getattr(self, "epsilon", 0.0) > spread:
            return
        given = f"targets of standard deviation {spread:.1e} with tol={self.tol:g}, which is a bound in their unit"
        do = "standardise the targets (scikit-learn's TransformedTargetRegressor), or lower tol and raise C"
        self.report_.warnings.append(message(type(self).__name__, given, do))
        warn(self.report_.warnings[-1], ConvergenceWarning)

    def _read_one(self, data: Training, beta: np.ndarray, intercept: float) -> None:
        used = self._keep(data, beta[None, :])
        self.n_support_, self.n_iter_ = np.array([len(used)], np.int32), int(self.n_iter_[0])
        self.intercept_ = np.array([intercept])

    def predict(self, X: Any) -> np.ndarray:
        """f(x) + b."""
        return self._products(self._validate_new(X))[:, 0] + self.intercept_[0]


class SVR(LandmarkMachine, SupportVectorRegressor):
    r"""min ½‖f‖² + C Σᵢ wᵢ max(0, |yᵢ − f(xᵢ) − b| − ε) over f in H and b.

    f = Σⱼ βⱼ k(·, xⱼ), and β solves the dual, min ½βᵀKβ − yᵀβ + ε‖β‖₁ with Σβ = 0 and |βᵢ| ≤ C wᵢ: LIBSVM's optimum,
    with its α − α* as one variable that has a kink at 0.

    Parameters
    ----------
    C : float, default 1.0
        The cost of an error beyond ε. The default is scikit-learn's; rows with little noise want more.
    epsilon : float, default 0.1
        Half the width of the tube in which errors cost nothing, in the units of y.
    kernel, tol, max_iter, memory
        As for `SVC`.
    solver, n_landmarks, landmarks, random_state
        As for `SVC`: numbers of landmarks count all rows, and name none of weight 0.
    warm_start : bool, default False
        Whether a fit starts from the former one's β, times the ratio of the two C. See `path` too.

    Attributes
    ----------
    support_, support_vectors_, restricted_, fit_status_, shape_fit_, X_fit_, kernel_, report_, compression_loss_
        As for `SVC`.
    dual_coef_ : array of shape (1, s)
        β of the support vectors.
    intercept_ : array of shape (1,)
        b.
    n_support_ : array of shape (1,)
    n_iter_ : int
    coef_ : array of shape (1, d)
        Only with a linear kernel.

    References
    ----------
    A. J. Smola, B. Schölkopf (2004). A tutorial on support vector regression. Statistics and Computing 14.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = SVR(C=100, epsilon=0.01, kernel=Gaussian(gamma=1.0)).fit(X, np.sin(X[:, 0]))
    >>> bool(np.max(np.abs(model.predict(X) - np.sin(X[:, 0]))) < 0.012)
    True
    """

    fitted: ClassVar[Schema] = SupportVectorRegressor.fitted + Schema(Array("_fitted_C"))

    tuned: ClassVar[str] = "C"
    of_classes: ClassVar[str] = "SVC"

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: Any = "gaussian",
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        solver: Literal["auto", "exact", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        warm_start: bool = False,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.memory = memory
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        self._checked_number("C")
        self._checked_number("epsilon", or_equal=True)
        data = self._training(X, y, sample_weight)
        return self._solve(data, self._from(self, data) if self.warm_start else None)

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """A machine for each C, on one kernel matrix, each from the β of the former; see `SVC.path`."""
        self._checked_number("epsilon", or_equal=True)
        return self._path(Cs, lambda model: model._training(X, y, sample_weight))

    def _family(self, data: Training) -> DualBatch:
        n, bound = len(data.order), self._checked_number("C") * data.weights
        return DualBatch(
            data.A,
            linear=data.target,
            lower=-bound,
            upper=bound,
            start=np.zeros(n),
            rows=np.arange(n),
            offset=np.array([0, n]),
            epsilon=float(self.epsilon),
            exact=data.exact,
        )

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        self._fitted_C = float(self.C)
        self._read_one(data, x.beta, float(family.multipliers(x)[0]))

    def _variables(self, data: Training, family: DualBatch, coefficients: np.ndarray) -> np.ndarray | None:
        return coefficients[0]


class NuSVR(SupportVectorRegressor):
    r"""min ½‖f‖² + C Σᵢ wᵢ (νε + max(0, |yᵢ − f(xᵢ) − b| − ε)) over f in H, b and ε ≥ 0.

    ν bounds the share of rows outside the tube from above, and that of support vectors from below; its half-width ε
    follows. The dual is min ½(β + γ)ᵀK(β + γ) − yᵀ(β + γ) with 0 ≤ β ≤ Cw, −Cw ≤ γ ≤ 0, Σβ = −Σγ = Cν Σw/2.

    Parameters
    ----------
    nu : float, default 0.5
        ν in (0, 1].
    C : float, default 1.0
        As for `SVR`.
    kernel, tol, max_iter, memory
        As for `SVC`.

    Attributes
    ----------
    epsilon_ : float
        ε.
    support_, support_vectors_, dual_coef_, intercept_, n_support_, n_iter_, coef_, restricted_, fit_status_, shape_fit_
        As for `SVR`.
    X_fit_, kernel_, report_, compression_loss_
        As for `SVR`.

    References
    ----------
    B. Schölkopf, A. J. Smola, R. C. Williamson, P. L. Bartlett (2000). New support vector algorithms. Neural
    Computation 12.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> NuSVR(C=10).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    fitted: ClassVar[Schema] = SupportVectorRegressor.fitted + Schema(Array("epsilon_", rules=(NON_NEGATIVE,)))

    tuned: ClassVar[str] = "C"
    of_classes: ClassVar[str] = "NuSVC"

    def __init__(
        self,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "gaussian",
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory: float | str | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual; see `SVR.fit`."""
        self._checked_number("C")
        self._checked_number("nu", 0.0, 1.0)
        return self._solve(self._training(X, y, sample_weight))

    def _family(self, data: Training) -> DualBatch:
        n, bound = len(data.order), self._checked_number("C") * data.weights
        start = filled(bound, self._checked_number("nu") * float(bound.sum()) / 2)
        zero = np.zeros(n)
        return DualBatch(
            data.A,
            linear=np.tile(data.target, 2),
            lower=np.concatenate([zero, -bound]),
            upper=np.concatenate([bound, zero]),
            start=np.concatenate([start, -start]),
            rows=np.tile(np.arange(n), 2),
            offset=np.array([0, 2 * n]),
            split=np.array([n]),
            exact=data.exact,
        )

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        """y − f is b + ε if β is free, b − ε if γ is."""
        above, below = family.multipliers(x)
        self.epsilon_ = float(max((above - below) / 2, 0.0))
        n = len(data.order)
        self._read_one(data, x.beta[:n] + x.beta[n:], float((above + below) / 2))
