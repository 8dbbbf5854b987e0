"""What regression and classification by a Gaussian process share: the parameters that maximise a likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import KernelEstimator
from mercer.kernels import Kernel
from mercer.numerals import counted
from mercer.schemas import NON_NEGATIVE, Array, Schema, Texts
from mercer.select.ascent import Ascended, Ascent, bounds_of

__all__ = ["GaussianProcess"]


class GaussianProcess(KernelEstimator):
    """An estimator with a kernel whose parameters maximise a likelihood, θ ↦ (log p, its gradient in log θ)."""

    fitted: ClassVar[Schema] = Schema(
        Texts("parameter_names_", shape="parameters"),
        Array("theta_", "parameters"),
        Array("log_marginal_likelihood_value_"),
        Array("log_marginal_likelihood_error_", rules=(NON_NEGATIVE,)),
    )
    indefinite_meaning: ClassVar[str] = "it is not a covariance, and the variances may be negative"
    tuned: ClassVar[str] = ""

    optimize: bool
    fixed: Iterable[str]
    bounds: tuple[float, float] | Mapping[str, tuple[float, float]]
    restarts: int
    kernel_: Kernel
    theta_: np.ndarray
    parameter_names_: list[str]
    log_marginal_likelihood_value_: float

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """log p(y) of the training rows at other parameters.

        Parameters
        ----------
        theta : array of shape (parameters,), optional
            log of the parameters, in the order of `parameter_names_`; by default `theta_`.
        eval_gradient : bool
            Whether to return the gradient in log θ, too.

        Returns
        -------
        value : float
            −inf if the kernel's matrix is not positive definite there.
        gradient : array of shape (parameters,), with `eval_gradient`

        Examples
        --------
        >>> from mercer import GaussianProcessRegressor
        >>> model = GaussianProcessRegressor("gaussian(gamma=1.0)", noise=1.0, amplitude=False, optimize=False)
        >>> model = model.fit([[0.0]], [1.0])  # N(1; 0, 2)
        >>> round(model.log_marginal_likelihood(), 6), model.parameter_names_
        (-1.515512, ['gamma', 'noise'])
        >>> model.log_marginal_likelihood([0.0, 0.0], eval_gradient=True)[1]
        array([ 0.   , -0.125])
        """
        check_is_fitted(self)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        if self.kernel_.space.numbered:
            given = "the likelihood for a precomputed kernel, whose matrix a model does not keep"
            do = "give the kernel and the rows themselves, or ask for that of the fit, without theta"
            raise InvalidInput(message(type(self).__name__, given, do))
        at = np.asarray(self.theta_ if theta is None else theta, np.float64)
        if at.shape != self.theta_.shape or not np.all(np.isfinite(at)):
            do = f"give {len(self.theta_)} finite numbers, the logarithms of {', '.join(self.parameter_names_)}"
            raise InvalidInput(message(type(self).__name__, f"theta of shape {at.shape}", do))
        with np.errstate(over="ignore"):  # such a θ has no likelihood
            found = self._likelihood()(np.exp(at), eval_gradient)
        value, gradient = (-np.inf, np.zeros(len(at))) if found is None else found
        return (value, gradient) if eval_gradient else value

    def _likelihood(self) -> Any:
        """The likelihood of the training rows."""
        raise NotImplementedError

    def _maximise(self, likelihood: Any, first: np.ndarray) -> np.ndarray:
        """The best θ, or the first one; sets the parameters and the likelihood there."""
        who, names, report = type(self).__name__, likelihood.names, self.report_
        most = likelihood.covariance.most(names)
        low, high = (np.minimum(bound, most) for bound in bounds_of(who, names, first, self.bounds))
        found: Ascended | None = None
        with report.stage("likelihood"), one_blas_thread(len(likelihood.Y) ** 3):
            on = self._searched(likelihood)
            if self.optimize and names:
                seed = self._seed()
                ascent = Ascent(who, names, first, low, high, int(self.restarts), seed=seed, firmer=self._firmer)
                found = ascent.run(on, on.coarse(seed))
            theta = first if found is None else found.theta
            at = likelihood(theta, gradient=False) if found is None or on is not likelihood else (found.value,)
            error = likelihood.error(theta) if at is not None else np.inf
        if at is None:
            given = f"{likelihood.covariance.kernel!r}, whose matrix is not positive definite in float64 on these rows"
            raise InvalidInput(message(who, given, self._firmer))
        self.parameter_names_, self.theta_ = list(names), np.log(theta)
        self.log_marginal_likelihood_value_, self.log_marginal_likelihood_error_ = float(at[0]), float(error)
        if found is not None:
            rows = f" of {counted(len(on.Y), 'row')}" if on is not likelihood else ""
            report.notes += [f"{found.evaluations} evaluations of the likelihood{rows}", *found.notes]
        sure = f" ± {error:.2g} (standard error)" if error else ""
        report.notes.append(f"log marginal likelihood {at[0]:.9g}{sure}, {likelihood.how}")
        return theta

    def _searched(self, likelihood: Any) -> Any:
        """The likelihood that is maximised."""
        return likelihood

    _firmer: ClassVar[str] = "choose another kernel, or centre the columns"

    def _check_search(self) -> None:
        if isinstance(self.restarts, bool) or not isinstance(self.restarts, Integral) or self.restarts < 0:
            self._refuse("restarts", "give a whole number ≥ 0")
