"""Classification by a Gaussian process with a logistic likelihood, by Laplace's approximation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NoReturn, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import expit, logit, ndtr
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators.base.calibration import probabilities, shared
from mercer.estimators.base.classifier import CLASSES, ScoreClassifier
from mercer.estimators.base.compression import OUTPUTS
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.base.labels import labelled
from mercer.estimators.gp.process import GaussianProcess
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.gram import KernelOperator
from mercer.schemas import Array, Rows, Schema
from mercer.select.covariance import Covariance
from mercer.select.laplace import LaplaceLikelihood, modes
from mercer.select.marginal import prepared

__all__ = ["GaussianProcessClassifier"]

CHUNK = 1 << 22
"""Kernel values of new rows at a time."""
ROWS = 4096
"""Rows whose probabilities are integrated at a time."""
_factors: WeakKeyDictionary[Any, tuple[Any, list[tuple[np.ndarray, CholeskyFactor]]]] = WeakKeyDictionary()
"""√W and the factor of B for each column of a model's coefficients, which serve all calls."""


def averaged(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    r"""∫ σ(z) N(z; m, s²) dz, to 1e-10, by the trapezoidal rule on an integrand that is analytic in a wide strip.

    For s < 1 it is ∫ σ(m + st) φ(t) dt, and for s ≥ 1 ∫ Φ((m − v)/s) σ'(v) dv.

    >>> averaged(np.array([0.0, 2.0, 2.0]), np.array([3.0, 0.0, 1.0])).round(6)
    array([0.5     , 0.880797, 0.844537])
    """
    t, v = np.linspace(-9, 9, 73), np.linspace(-40, 40, 321)
    normal, logistic = np.exp(-0.5 * t**2) * (t[1] - t[0]) / np.sqrt(2 * np.pi), expit(v) * expit(-v) * (v[1] - v[0])
    out = np.empty(np.shape(mean))
    for start in range(0, len(out), ROWS):
        some = slice(start, start + ROWS)
        m, s = mean[some][..., None], deviation[some][..., None]
        wide = ndtr((m - v) / np.maximum(s, 1.0)) @ logistic
        out[some] = np.where(s[..., 0] < 1, expit(m + s * t) @ normal, wide)
    return out


class GaussianProcessClassifier(GaussianProcess, ScoreClassifier):
    r"""P(y = 1 | f) = σ(f(x)) with f ~ GP(0, k), by Laplace's approximation of p(f | y) at its mode.

    With the mode f̂ of the training rows, α = y − σ(f̂) and W = σ(f̂)(1 − σ(f̂)),

        f(x) | y ≈ N(kₓᵀα, k(x, x) − kₓᵀ(K + W⁻¹)⁻¹kₓ),    P(1 | x) = ∫ σ(f) N(f) df.

    The mode is kernel logistic regression with the penalty 1. The parameters of the kernel maximise Laplace's
    approximation of the log marginal likelihood, by its exact gradient. More than two classes are each set against the
    rest; they share the kernel, whose parameters maximise the sum of their likelihoods, and the probabilities of a row
    are divided by their sum.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        The kernel with the first values of its parameters. A name is the kernel class of that name with its defaults;
        scikit-learn's names "rbf", "poly", "sigmoid" and "laplacian" have the defaults of its pairwise functions.
    optimize, fixed, bounds, restarts, per_column, random_state
        As for `GaussianProcessRegressor`.
    amplitude : bool, default True
        Multiply the kernel by a number that is optimised, at first 1, if it is not a multiple already.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. The likelihood takes 16n² bytes.

    Attributes
    ----------
    classes_ : array of shape (c,)
    kernel_ : Kernel
        The kernel with the best parameters.
    parameter_names_ : list of str
        The parameters that are optimised.
    theta_ : array of shape (parameters,)
        log of their best values.
    log_marginal_likelihood_value_ : float
        Laplace's approximation of log p(y) there, summed over the classes if there are more than two.
    log_marginal_likelihood_error_ : float
        0: given the approximation, nothing is random.
    dual_coef_, latent_ : arrays of shape (n, 1) for two classes, (n, c) otherwise
        α, and f̂ of the training rows.
    intercept_ : array of shape (1,) or (c,)
        0.
    X_fit_, report_
        The training rows, and the report on method and accuracy.

    Raises
    ------
    InvalidInput
        For invalid parameters or data.
    MemoryExceeded
        If the plan does not fit the budget.

    Notes
    -----
    Laplace's approximation has its centre at the mode and not at the mean, so that probabilities are somewhat drawn
    towards ½. Labels, scores and probabilities come from the same numbers and never contradict one another.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Chapter 3
    (Classification).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import GaussianProcessClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianProcessClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93), model.predict_proba([[5.0, 3.5, 1.5, 0.3]]).argmax()
    (True, np.int64(0))
    """

    # Those of a ScoreClassifier but for the loss of `compress`, which always refuses.
    fitted: ClassVar[Schema] = (
        KernelEstimator.fitted
        + Schema(Rows("X_fit_"))
        + CLASSES
        + OUTPUTS
        + GaussianProcess.fitted
        + Schema(Array("latent_", "n *targets"))
    )
    class_weight = None

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        optimize: bool = True,
        fixed: Iterable[str] = (),
        bounds: tuple[float, float] | Mapping[str, tuple[float, float]] = (1e-5, 1e5),
        restarts: int = 0,
        amplitude: bool = True,
        per_column: bool = False,
        memory: float | str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.optimize = optimize
        self.fixed = fixed
        self.bounds = bounds
        self.restarts = restarts
        self.amplitude = amplitude
        self.per_column = per_column
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Maximise the likelihood, and find the mode.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        """
        self._check_search()
        X, y = labelled(self, X, y)
        X, labels, _ = self._encoded(X, y, None)
        K, report = self._begin(X)
        self._kernel_size(K)  # refuses values that are not finite
        self.report_, n = report, len(labels)
        Y = np.asarray(labels[:, None] == np.arange(len(self.classes_)), np.float64)
        Y = np.ascontiguousarray(Y[:, 1:]) if Y.shape[1] == 2 else Y
        d = int(getattr(self, "n_features_in_", 0))
        kernel, redundant = prepared(self.kernel_, d, 1.0, self.per_column, self.amplitude)
        fixed = {self.fixed} if isinstance(self.fixed, str) else set(self.fixed)
        covariance = Covariance.of(type(self).__name__, kernel, X, fixed | redundant)
        need = 8 * n * (2 * n + 600) + covariance.bytes * self.optimize
        report.plan(need, f"{type(self).__name__} of {n} rows", "fewer rows")
        self.kernel_ = covariance.kernel_at(self._maximise(LaplaceLikelihood(covariance, Y), covariance.values))
        K = KernelOperator(self.kernel_, X, dtype=np.float64)
        with report.stage("mode"):
            self.dual_coef_, self.latent_, gap = modes(K.fill(np.empty((n, n))), Y)
        self.intercept_ = np.zeros(Y.shape[1])
        report.kernel, report.method = repr(self.kernel_), "Laplace's approximation at the mode, by Newton's method"
        report.reason, report.precision, report.steps = "the likelihood is logistic", "float64", 1
        report.residual, report.tolerance, report.status = gap, float("nan"), "relative duality gap of the mode"
        return self

    def _likelihood(self) -> LaplaceLikelihood:
        # α = y − σ(f̂), whose sign is rounding where σ(f̂) is almost y.
        Y = np.asarray(self.dual_coef_ + expit(self.latent_) > 0.5, np.float64)
        return LaplaceLikelihood(Covariance(self.kernel_, tuple(self.parameter_names_), self.X_fit_), Y)

    # ---- predictions -------------------------------------------------------------------------------------------------

    def latent(self, X: Any, return_std: bool = True) -> Any:
        """The mean of f(x) and its standard deviation, for the second class, or for each class against the rest.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)
        return_std : bool

        Returns
        -------
        mean : array of shape (m,), or (m, c) for more than two classes
        std : array of the same shape, with `return_std`

        Examples
        --------
        >>> from mercer import GaussianProcessClassifier
        >>> model = GaussianProcessClassifier("gaussian(gamma=1.0)", optimize=False).fit([[0.0], [3.0]], [0, 1])
        >>> mean, std = model.latent([[0.0], [50.0]])
        >>> mean.round(3), std.round(3)
        (array([-0.401,  0.   ]), array([0.898, 1.   ]))
        """
        mean = self._decide(X)
        if not return_std:
            return mean[:, 0] if mean.shape[1] == 1 else mean
        if self.kernel_.space.numbered:
            given = "the variance for a precomputed kernel, whose k(x, x) of new rows is not known"
            raise InvalidInput(message(type(self).__name__, given, "give the kernel, or latent(X, return_std=False)"))
        cross = self._cross(X)
        rows = self._validate_new(X)
        own = np.asarray(KernelOperator(self.kernel_, rows, dtype=np.float64).diagonal(), np.float64)
        own = known_values(own, cross, type(self).__name__)
        variance, factors = np.repeat(own[:, None], mean.shape[1], axis=1), self._factors()
        width = max(1, CHUNK // cross.shape[1])
        for start in range(0, len(mean), width):
            block = slice(start, min(start + width, len(mean)))
            C = cross.rows(block)
            for column, (root, factor) in enumerate(factors):
                V = np.ascontiguousarray((C * root).T)
                variance[block, column] -= np.einsum("ij,ij->j", V, factor.solve(V))
        std = np.sqrt(np.maximum(variance, 0.0))
        return (mean[:, 0], std[:, 0]) if mean.shape[1] == 1 else (mean, std)

    def _factors(self) -> list[tuple[np.ndarray, CholeskyFactor]]:
        """√W, and the factor of B = I + W^½ K W^½, for each column."""
        known = _factors.get(self)
        if known is None or known[0] is not self.dual_coef_:
            K = KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64)
            found = []
            for f in self.latent_.T:
                root = np.sqrt(expit(f) * expit(-f))
                B = K.fill(np.empty(K.shape))
                B *= root
                B *= root[:, None]
                factor = CholeskyFactor.of(B, 1.0)
                if factor is None:
                    given = "a kernel that is not positive semi-definite on these rows"
                    raise InvalidInput(message(type(self).__name__, given, "choose a Mercer kernel"))
                found.append((root, factor))
            known = _factors[self] = self.dual_coef_, found
        return known[1]

    def decision_function(self, X: Any) -> np.ndarray:
        """log P/(1 − P): of shape (m,) for two classes (positive: the second), of shape (m, c) against the rest."""
        check_is_fitted(self)
        return np.asarray(logit(np.clip(averaged(*self.latent(X)), np.finfo(float).tiny, 1 - np.finfo(float).epsneg)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class; of two, the one on whose side the mean of f(x) is, whatever its variance."""
        check_is_fitted(self)
        if self.kernel_.space.numbered and len(self.classes_) == 2:
            return self.classes_[(self.latent(X, return_std=False) > 0).astype(np.intp)]
        return np.asarray(super().predict(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(c | x), of shape (m, c)."""
        scores = self.decision_function(X)
        return probabilities(scores) if scores.ndim == 1 else shared(scores)

    def compress(self, *_: Any, **__: Any) -> NoReturn:
        """Raise InvalidInput: the variance of f(x) needs all rows."""
        given = "compress(), after which the variance of f(x) would not be known"
        raise InvalidInput(message(type(self).__name__, given, "compress a KernelLogisticRegression"))
