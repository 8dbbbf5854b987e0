"""Regression by a Gaussian process, with parameters that maximise the marginal likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.gp.process import GaussianProcess
from mercer.estimators.ridge.posterior import LeastSquaresRegressor, Posterior
from mercer.gram import KernelOperator
from mercer.numerals import counted
from mercer.planning import costs
from mercer.points import as_seed
from mercer.points.validate import squarable
from mercer.schemas import NON_NEGATIVE, POSITIVE, Array, Schema
from mercer.select.alignment import all_equal
from mercer.select.covariance import Covariance
from mercer.select.marginal import NOISE, ExactLikelihood, likelihood_of
from mercer.select.stochastic import StochasticLikelihood
from mercer.solvers.choose import STORED_SHARE
from mercer.ways.report import Report

__all__ = ["GaussianProcessRegressor"]

MOST_EXACT = 10_000
"""Rows up to which the likelihood is exact: an evaluation takes n³ operations, a trillion."""
NO_ROW = 1e100
"""The largest variance of a row's noise: already 1e30 of them leave nothing of the row."""
_posteriors: WeakKeyDictionary[Any, tuple[Any, Posterior]] = WeakKeyDictionary()
"""The posterior of each model, with the coefficients that it belongs to: its factor serves all later calls."""


class GaussianProcessRegressor(GaussianProcess, LeastSquaresRegressor):
    r"""y = f(x) + ε, f ~ GP(0, k), ε ~ N(0, σ² + αᵢ): f(x) | y ~ N(kₓᵀC⁻¹y, k(x, x) − kₓᵀC⁻¹kₓ), C = K + σ²I + diag α.

    The parameters of the kernel and σ² maximise the log marginal likelihood

        log p(y) = −½ yᵀC⁻¹y − ½ log det C − n/2 log 2π,

    by its exact gradient. Several targets are independent draws of one process: their likelihoods are added. From 1000
    rows on, each start is first improved on a quarter of the rows and on a half, drawn at random; all rows end it.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        The kernel with the first values of its parameters. A name is the kernel class of that name with its defaults;
        scikit-learn's names "rbf", "poly", "sigmoid" and "laplacian" have the defaults of its pairwise functions.
        All positive parameters in which the formula can be differentiated are optimised, your own kernel's too; those
        of a kernel without a formula are differentiated by differences. Numbers in a text, "exp(-0.5 * sqdist)", are
        no parameters: only its multiple varies.
    noise : float or None, default None
        The first value of σ², which new observations have, too; None is a tenth of the mean of y². With 0 there is no
        such noise.
    alpha : float or array of shape (n,), default 0.0
        αᵢ ≥ 0: known variances of the noise of the training rows, in addition to σ². They are not optimised, and new
        observations do not have them.
    optimize : bool, default True
        False keeps the parameters as they are given.
    fixed : iterable of str
        Parameters to keep: names of `parameter_names_`, such as "kernel__gamma" or "noise".
    bounds : (float, float) or dict, default (1e-5, 1e5)
        Multiples of the first value for all parameters, or {name: (low, high)} in the parameters' own units.
    restarts : int, default 0
        Further starts, drawn within a factor of 10 of the first; the best end is taken.
    amplitude : bool, default True
        Multiply the kernel by a number that is optimised, at first the mean of y², if it is not a multiple already.
    per_column : bool, default False
        Give each column a length-scale of its own, at first 1: automatic relevance determination.
    normalize_y : bool, default False
        Subtract the mean of y and divide by its standard deviation. The prior has mean 0, so do this if y has not.
        The kernel, σ², α and the likelihood are those of the normalised targets, as in scikit-learn; predictions,
        deviations and samples are in the units of y.
    solver : {"auto", "cholesky", "cg"}, default "auto"
        "cholesky": the likelihood is exact, in n³ operations and 8n² bytes. "cg": conjugate gradients with a randomly
        pivoted Cholesky preconditioner, and stochastic Lanczos quadrature for the log-determinant, in n² operations a
        step; `log_marginal_likelihood_error_` is its standard error. "auto" takes "cg" for more than 10 000 rows, and
        if the matrix does not fit in 40 % of the budget.
    sample : int or None, default None
        Rows, drawn at random, on which the parameters are optimised; None is all. The rest of the fit is on all rows.
    n_probes : int, default 30
        Random vectors of "cg".
    tol, memory
        As for `KernelRidge`.
    random_state : int, RandomState or None, default 0
        Seed for the further starts, the sample, and the random vectors.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with the best parameters.
    noise_ : float
        σ².
    parameter_names_ : list of str
        The parameters that are optimised, "noise" last.
    theta_ : array of shape (parameters,)
        log of their best values.
    log_marginal_likelihood_value_ : float
        log p(y) there.
    log_marginal_likelihood_error_ : float
        Its standard error: 0 if it is exact, as by Cholesky.
    dual_coef_ : array of shape (n,) or (n, targets)
        C⁻¹y in the units of y: the mean of f(x) is Σᵢ dual_coefᵢ k(x, xᵢ) + intercept.
    intercept_, y_scale_ : float or array of shape (targets,)
        What was subtracted from y, and what it was divided by; 0 and 1 unless `normalize_y`.
    alpha_, sample_weight_
        The mean variance v of the noise of the rows, and v/(σ² + αᵢ), or None if they are equal.
    X_fit_, y_fit_ : arrays of shape (n, d), (n,) or (n, targets)
        The training rows and targets.
    restricted_, report_, compression_loss_
        As for `KernelRidge`.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, and if C is not positive definite.
    MemoryExceeded
        If the plan does not fit the budget.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Chapters 2
    (Regression) and 5 (Model selection and adaptation of hyperparameters).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0])
    >>> model = GaussianProcessRegressor().fit(X, y)
    >>> mean, deviation = model.predict([[1.5], [30.0]], return_std=True)
    >>> bool(abs(mean[0] - 1) < 0.1), bool(deviation[0] < 0.1 < deviation[1]), model.parameter_names_
    (True, True, ['scale', 'kernel__gamma', 'noise'])
    """

    fitted: ClassVar[Schema] = (
        LeastSquaresRegressor.fitted
        + GaussianProcess.fitted
        + Schema(
            Array("noise_", rules=(NON_NEGATIVE,)),
            Array("y_scale_", "*targets", rules=(POSITIVE,)),
            Array("y_fit_", "n *targets", optional=True),
        )
    )
    fit_intercept = False
    _firmer: ClassVar[str] = "raise noise= or alpha="
    of_classes: ClassVar[str] = "GaussianProcessClassifier"

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        noise: float | None = None,
        alpha: Any = 0.0,
        optimize: bool = True,
        fixed: Iterable[str] = (),
        bounds: tuple[float, float] | Mapping[str, tuple[float, float]] = (1e-5, 1e5),
        restarts: int = 0,
        amplitude: bool = True,
        per_column: bool = False,
        normalize_y: bool = False,
        solver: Literal["auto", "cholesky", "cg"] = "auto",
        sample: int | None = None,
        n_probes: int = 30,
        tol: float = 1e-10,
        memory: float | str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.alpha = alpha
        self.optimize = optimize
        self.fixed = fixed
        self.bounds = bounds
        self.restarts = restarts
        self.amplitude = amplitude
        self.per_column = per_column
        self.normalize_y = normalize_y
        self.solver = solver
        self.sample = sample
        self.n_probes = n_probes
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Maximise the likelihood, and solve for C⁻¹y.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        """
        self._check()
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        self.y_fit_ = y = squarable(type(self).__name__, y.copy(), whole=True)
        mean, self.y_scale_ = self._normalisation(y)
        Z = ((y - mean) / self.y_scale_).reshape(len(y), -1)
        K, report = self._begin(X)
        self._kernel_size(K)  # refuses values that are not finite
        self.report_ = report
        variances = self._row_variances(len(y))
        likelihood, first, self.noise_ = likelihood_of(
            type(self).__name__,
            self.kernel_,
            X,
            Z,
            self.noise,
            variances,
            self.fixed,
            self.amplitude,
            self.per_column,
        )
        iterative = self._iterative(len(y), report, self.noise_ + variances)
        need = 8 * len(y) * (len(y) + 4 * Z.shape[1])
        if iterative:
            likelihood = self._stochastic(likelihood)
            need = likelihood.bytes(len(y), self.n_probes + Z.shape[1])
        need += likelihood.covariance.bytes * self.optimize
        report.plan(
            need, f"the likelihood of {len(y)} rows", ["fewer rows"] if iterative else ['solver="cg"', "fewer rows"]
        )
        own, noise = likelihood.parted(self._maximise(likelihood, first))
        self.noise_ = noise if likelihood.noise else self.noise_
        self.kernel_ = likelihood.covariance.kernel_at(own)
        report.kernel = repr(self.kernel_)
        K = KernelOperator(self.kernel_, X, dtype=np.float64)
        self.alpha_, weights = weighted(self.noise_ + variances, float(np.mean(K.diagonal())))
        self._solve_targets(K, Z, weights, np.full(Z.shape[1], self.alpha_), report)
        self.dual_coef_, self.intercept_ = (self.dual_coef_ * self.y_scale_).reshape(y.shape), mean
        return self

    # ---- the likelihood ----------------------------------------------------------------------------------------------

    def _likelihood(self) -> ExactLikelihood:
        if not hasattr(self, "y_fit_"):
            given = "the likelihood of a model that was compressed, which keeps no targets"
            raise InvalidInput(message(type(self).__name__, given, "ask before compress()"))
        names = tuple(name for name in self.parameter_names_ if name != NOISE)
        variances = self.alpha_ if self.sample_weight_ is None else self.alpha_ / self.sample_weight_
        varies = len(names) < len(self.theta_)
        rest = np.maximum(variances - self.noise_, 0.0) if varies else variances
        Z = ((self.y_fit_ - self.intercept_) / self.y_scale_).reshape(len(self.y_fit_), -1)
        likelihood = ExactLikelihood(Covariance(self.kernel_, names, self.X_fit_), Z, rest, varies)
        return self._stochastic(likelihood) if self.log_marginal_likelihood_error_ else likelihood

    def _stochastic(self, exact: ExactLikelihood) -> StochasticLikelihood:
        own = exact.covariance, exact.Y, exact.variances, exact.noise
        return StochasticLikelihood(*own, probes=self.n_probes, seed=self._seed())

    def _iterative(self, n: int, report: Report, variance: Any) -> bool:
        """Whether the likelihood is estimated by conjugate gradients, which need noise in each row."""
        dear = n > MOST_EXACT or 8 * n * n > STORED_SHARE * report.room
        iterative = self.solver == "cg" or (self.solver == "auto" and dear)
        if iterative and not np.all(np.asarray(variance) > 0):
            do = 'give noise= or alpha= above 0, or solver="cholesky"'
            raise InvalidInput(message(type(self).__name__, "conjugate gradients for rows without noise", do))
        return iterative

    def _searched(self, likelihood: ExactLikelihood) -> ExactLikelihood:
        if self.sample is None or int(self.sample) >= len(likelihood.Y):
            return likelihood
        return likelihood.part(int(self.sample), self._seed()) or likelihood

    def _normalisation(self, y: np.ndarray) -> tuple[Any, Any]:
        """What is subtracted from y, and what it is divided by."""
        mean, scale = np.zeros(y.shape[1:]), np.ones(y.shape[1:])
        if self.normalize_y:
            same = all_equal(y)
            # The mean of equal targets is rounded: less themselves they are 0.
            mean, deviation = np.where(same, y[0], y.mean(axis=0)), np.where(same, 0.0, y.std(axis=0))
            scale = np.where(deviation > 10 * np.finfo(float).eps * np.abs(mean), deviation, 1.0)
        return (mean, scale) if y.ndim > 1 else (float(mean), float(scale))

    def _row_variances(self, n: int) -> Any:
        """α, a number or an array of shape (n,)."""
        alpha = np.asarray(self.alpha, np.float64)
        if alpha.shape not in ((), (n,)) or not np.all((alpha >= 0) & (alpha < NO_ROW)):
            self._refuse("alpha", f"give a number from 0 to {NO_ROW:g}, or one for each of the {counted(n, 'row')}")
        return alpha if alpha.ndim else float(alpha)

    def _check(self) -> None:
        if self.noise is not None:
            self._checked_number("noise", or_equal=True, otherwise=", or None")
        self._checked_choice("solver", "auto", "cholesky", "cg")
        self._count_or_none("sample")
        if self._checked_count("n_probes") < 2:
            self._refuse("n_probes", "give at least 2, so that their spread is known")
        self._check_search()
        self._checked_number("tol", or_equal=True)

    # ---- predictions -------------------------------------------------------------------------------------------------

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, include_noise: bool = False
    ) -> Any:
        """The mean of f(x) for each row; on request with its standard deviation, or with the covariance of all rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)
        return_std, return_cov : bool
            At most one of the two.
        include_noise : bool
            Whether deviations and covariances are those of new observations, f(x) + ε with ε ~ N(0, σ²), and not
            those of f(x).

        Returns
        -------
        mean : array of shape (m,) or (m, targets)
        std : array of the same shape, with `return_std`
        cov : array of shape (m, m) or (m, m, targets), with `return_cov`

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor
        >>> model = GaussianProcessRegressor("gaussian(gamma=1.0)", noise=0.25, amplitude=False, optimize=False)
        >>> model = model.fit([[0.0]], [1.0])
        >>> model.predict([[0.0]], return_std=True)[1] ** 2, model.predict([[0.0]], True, include_noise=True)[1] ** 2
        (array([0.2]), array([0.45]))
        """
        if return_std and return_cov:
            given = "return_std and return_cov"
            raise InvalidInput(message(type(self).__name__, given, "ask for one: the variances are cov's diagonal"))
        mean = self._decide(X)
        if not (return_std or return_cov):
            return mean
        noise, posterior = self.noise_ * bool(include_noise), self.posterior()
        return mean, posterior.covariance(X, noise) if return_cov else posterior.std(X, noise)

    def prior_variance(self) -> Any:
        """The number 1: the kernel has the variance of f, in the units of y."""
        return 1.0

    def posterior(self) -> Posterior:
        """The covariance given the training rows, in the units of y, with its factor, which later calls share."""
        check_is_fitted(self)
        known = _posteriors.get(self)
        if known is None or known[0] is not self.dual_coef_:
            known = _posteriors[self] = self.dual_coef_, Posterior.of(self, self.alpha_, self.y_scale_)
        return known[1]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, *, include_noise: bool = False) -> np.ndarray:
        """Draws of f, or with `include_noise` of new observations, at all rows together.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)
        n_samples : int
        random_state : int, RandomState or None, default 0
        include_noise : bool
            Whether to add ε ~ N(0, σ²).

        Returns
        -------
        samples : array of shape (m, n_samples) or (m, targets, n_samples)

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor
        >>> model = GaussianProcessRegressor("gaussian(gamma=1.0)", noise=0.01, optimize=False).fit([[0.0]], [1.0])
        >>> model.sample_y([[0.0], [5.0]], 1000).std(axis=1).round(1)
        array([0.1, 1. ])
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            given = f"n_samples={n_samples!r}"
            raise InvalidInput(message(f"{type(self).__name__}.sample_y", given, "give a whole number ≥ 1"))
        mean, covariance = self.predict(X, return_cov=True, include_noise=include_noise)
        shape = (*mean.shape, int(n_samples))
        mean, covariance = mean.reshape(len(mean), -1), covariance.reshape(len(mean), len(mean), -1)
        rng, out = np.random.default_rng(as_seed(random_state, f"{type(self).__name__}.sample_y")), []
        for target in range(mean.shape[1]):
            with one_blas_thread(costs.eigen_operations(len(mean))):
                values, vectors = np.linalg.eigh(covariance[:, :, target])
            draws = rng.standard_normal((len(mean), int(n_samples)))
            out.append(mean[:, [target]] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * draws))
        return np.stack(out, axis=1).reshape(shape)

    def _restate(self, vectors: Any, B: np.ndarray) -> None:
        super()._restate(vectors, B)
        del self.y_fit_


def weighted(variance: Any, unit: float) -> tuple[float, np.ndarray | None]:
    """The mean of the variances of rows, and their weights under it; `unit` is the mean of k(x, x).

    A row without noise has what rounding makes of the kernel, or of the least variance if that is less. So it has not
    what rounding makes of the mean, which one row may make huge.

    >>> weighted(np.array([1.0, 3.0]), 1.0), weighted(0.5, 1.0)
    ((2.0, array([2.        , 0.66666667])), (0.5, None))
    """
    mean = float(np.mean(variance))
    if not np.ndim(variance) or not mean:
        return mean, None
    least = float(np.min(variance, where=variance > 0, initial=mean))
    return mean, mean / np.maximum(variance, np.finfo(float).eps * min(least, unit or least))
