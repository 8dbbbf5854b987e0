"""Hyper-parameters that maximise the marginal likelihood of a Gaussian process, by its exact gradient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas

from mercer.engine.backend import one_blas_thread, spare_threads
from mercer.errors import InvalidInput, NotAKernel, message
from mercer.events import StageDone, emit
from mercer.factorizations.cholesky import CholeskyFactor, upper_block
from mercer.gram import KernelOperator
from mercer.gram.remainder import require_values
from mercer.kernels import Kernel, Scaled, as_kernel
from mercer.numerals import counted
from mercer.points import as_rows, as_seed, available_memory, count, points_of, require, sample_rows, take, vectors_of
from mercer.points.validate import squarable
from mercer.select.alignment import less_mean
from mercer.select.ascent import Ascended, Ascent, bounds_of
from mercer.select.covariance import COARSE, NOISE, Covariance, free_parameters

__all__ = [
    "NOISE",
    "ExactLikelihood",
    "MarginalLikelihood",
    "likelihood_of",
    "log_marginal_likelihood",
    "maximise_marginal_likelihood",
]

Floats = NDArray[np.float64]
WHO = "maximise_marginal_likelihood"
LOG_TWO_PI = float(np.log(2 * np.pi))
AT_ONCE = 8
"""LAPACK runs once between two calls of the engine, not beside each tile, so that an eighth of the operations pays for
waking BLAS's threads: a fit to 2000 rows takes 5 % less on two cores."""
MANY = 2000
"""From this many rows on, a search begins with a ninth and a third of them, which takes a fifth less than with a
quarter and a half; a ninth of fewer rows says too little."""


@dataclass(frozen=True, eq=False)
class MarginalLikelihood:
    """The result of `maximise_marginal_likelihood`, for `KernelRidge(kernel, alpha=noise, fit_intercept=True)`.

    Attributes
    ----------
    kernel : Kernel
        The kernel with the best parameters.
    noise : float
        σ² in the units of y².
    value : float
        log p(y) of the sample, summed over the targets.
    gradient : dict
        ∂ log p/∂ log θ at the answer for each parameter; near 0 except at bounds.
    starts : tuple of float
        log p(y) at the end of each start.
    evaluations : int
        Evaluations of the likelihood.
    sample_size : int
        Number of rows used.
    notes : tuple of str
        Parameters that ended at a bound, and starts that ended at the step limit.
    """

    kernel: Kernel
    noise: float
    value: float
    gradient: dict[str, float]
    starts: tuple[float, ...]
    evaluations: int
    sample_size: int
    notes: tuple[str, ...] = ()


@spare_threads()
def log_marginal_likelihood(
    kernel: Kernel | str,
    X: Any,
    y: ArrayLike,
    noise: float,
    *,
    names: Iterable[str] | None = None,
) -> tuple[float, dict[str, float]]:
    r"""log p(y) = −½ yᵀC⁻¹y − ½ log det C − n/2 log 2π with C = K + σ²I, and its gradient in the log parameters.

    ∂/∂ log θ = ½ Σᵢⱼ (ααᵀ − C⁻¹)ᵢⱼ ∂Kᵢⱼ/∂ log θ with α = C⁻¹y. One backward sweep through the traced formula gives the
    derivatives in all parameters, including length-scales of single columns, at the cost of a few kernel matrices.

    Parameters
    ----------
    kernel : Kernel or str
    X : array-like of shape (n, d), or objects that the kernel takes
    y : array-like of shape (n,) or (n, targets)
        No mean is subtracted. Several targets are independent: their log-likelihoods are added.
    noise : float > 0
        σ².
    names : iterable of str, optional
        The parameters for the gradient; all of `mercer.kernels.derivatives.tunable_parameters` by default.

    Returns
    -------
    value : float
    gradient : dict
        The derivative for each name and for "noise".

    Raises
    ------
    InvalidInput
        For a noise that is not positive, targets that are not finite, and K + σ²I that is not positive definite.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Equations 5.8, 5.9.

    Examples
    --------
    >>> value, gradient = log_marginal_likelihood("2.0*gaussian(gamma=0.5)", [[0.0]], [1.0], noise=1.0)
    >>> round(value, 6), {name: round(one, 6) for name, one in gradient.items()}  # N(1; 0, 3)
    (-1.634911, {'scale': -0.222222, 'kernel__gamma': 0.0, 'noise': -0.111111})
    """
    own, rows, targets = _checked(kernel, X, y)
    require_values(KernelOperator(own, rows, dtype=np.float64), "log_marginal_likelihood")
    if not (np.isfinite(noise) and noise > 0):
        raise InvalidInput(message("log_marginal_likelihood", f"noise={noise!r}", "give a positive number"))
    chosen = set(free_parameters(own)) if names is None else set(names)
    covariance = Covariance.of("log_marginal_likelihood", own, rows, set(free_parameters(own)) ^ chosen)
    likelihood = ExactLikelihood(covariance, targets)
    found = likelihood(np.append(covariance.values, noise))
    if found is None:
        given = f"K + {noise:.3g} I, which is not positive definite"
        raise InvalidInput(message("log_marginal_likelihood", given, "give a larger noise"))
    return float(found[0]), dict(zip(likelihood.names, map(float, found[1]), strict=True))


@spare_threads()
def maximise_marginal_likelihood(
    kernel: Kernel | str,
    X: Any,
    y: ArrayLike,
    *,
    noise: float | None = None,
    per_column: bool = False,
    amplitude: bool = True,
    fixed: Iterable[str] = (),
    bounds: tuple[float, float] = (1e-4, 1e4),
    restarts: int = 0,
    max_steps: int = 100,
    sample: int = 2000,
    random_state: Any = 0,
) -> MarginalLikelihood:
    r"""max over θ and σ² of log N(y − ȳ; 0, K(θ) + σ²I), by L-BFGS-B in log θ with the exact gradient.

    Parameters
    ----------
    kernel : Kernel or str
        The initial kernel; "scale" and "median" are resolved on the sample first.
    X : array-like of shape (n, d), or objects that the kernel takes
    y : array-like of shape (n,) or (n, targets)
        Its mean is subtracted.
    noise : float, optional
        The initial σ²; a tenth of the variance of y by default.
    per_column : bool
        Whether each column gets a length-scale (automatic relevance determination): ``kernel.with_length_scales(...)``
        with initial length-scales 1. The kernel's own bandwidth is then redundant, and is held fixed.
    amplitude : bool
        Whether the kernel is multiplied by a factor that is optimised, if it is not a multiple already.
    fixed : iterable of str
        Parameters to hold fixed: names of `mercer.kernels.derivatives.tunable_parameters`, or "noise".
    bounds : (float, float)
        Bounds of each parameter as multiples of its initial value.
    restarts : int
        Number of further starts, drawn within a factor of 10 of the first. The best answer is returned.
    max_steps : int
        Most steps of each start.
    sample : int
        Most rows to use, drawn at random; an evaluation costs n³.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    MarginalLikelihood

    Raises
    ------
    InvalidInput
        For targets that are constant or not finite, a kernel without tunable parameters, or unknown names in `fixed`.

    Notes
    -----
    If a column is not related to y, its length-scale goes to the upper bound, where the column has almost no effect; a
    note tells so. The marginal likelihood assumes that the kernel is right. If it is not, leave-one-out may choose
    better parameters.

    References
    ----------
    C. E. Rasmussen, C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. Chapter 5
    (Model selection and adaptation of hyperparameters).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> found = maximise_marginal_likelihood("gaussian(gamma=0.5)", X, np.sin(2 * X[:, 0]), per_column=True)
    >>> scales = found.kernel.get_params()["kernel__scales"]
    >>> scales[0] < 2, scales[1] > 10  # the second column is noise
    (True, True)
    """
    seed = as_seed(random_state, "maximise_marginal_likelihood")
    start = perf_counter()
    own, rows, targets = _checked(kernel, X, y, sample, seed)
    Z = less_mean(targets)
    if not np.any(Z):
        raise InvalidInput(message(WHO, "targets that are all the same", "give targets that vary"))
    require_values(KernelOperator(own, rows, dtype=np.float64), WHO)
    likelihood, first, sigma = likelihood_of(WHO, own, rows, Z, noise, 0.0, fixed, amplitude, per_column)
    if not likelihood.covariance.names and not free_parameters(likelihood.covariance.kernel):
        given = f"{own!r}, which has no tunable parameter"
        raise InvalidInput(message(WHO, given, "multiply it by a number, or compare kernels by cross-validation"))
    most = likelihood.covariance.most(likelihood.names)
    low, high = (np.minimum(bound, most) for bound in bounds_of(WHO, likelihood.names, first, bounds))
    ascent = Ascent(WHO, likelihood.names, first, low, high, restarts, max_steps, seed, "give a larger noise=")
    found = ascent.run(likelihood, likelihood.coarse(seed))
    emit(StageDone(f"marginal likelihood of {own!r}", perf_counter() - start))
    return _result(likelihood, sigma, found)


def _result(likelihood: ExactLikelihood, sigma: float, found: Ascended) -> MarginalLikelihood:
    theta, at = likelihood.parted(found.theta)
    return MarginalLikelihood(
        kernel=likelihood.covariance.kernel_at(theta),
        noise=at if likelihood.noise else sigma,
        value=found.value,
        gradient=dict(zip(likelihood.names, found.gradient.tolist(), strict=True)),
        starts=found.ends,
        evaluations=found.evaluations,
        sample_size=len(likelihood.Y),
        notes=found.notes,
    )


# ---- the mathematics ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactLikelihood:
    r"""θ ↦ log p(Y), summed over the columns, and its gradient in log θ, with C = K(θ) + diag(variances) + σ²I.

    θ are the parameters of the kernel, and σ² last if there is `noise`. One Cholesky factor gives all, and the inverse
    takes its memory: 8n² bytes.

    Parameters
    ----------
    covariance : Covariance
    Y : array of shape (n, targets)
    variances : float or array of shape (n,)
        Known variances of the rows' noise.
    noise : bool
        Whether σ² is a parameter.
    """

    covariance: Covariance
    Y: Floats
    variances: Any = 0.0
    noise: bool = True

    how: ClassVar[str] = "by a Cholesky factor in float64"

    def __post_init__(self) -> None:
        if NOISE in self.covariance.names:
            given = f"{self.covariance.kernel!r}, whose parameter {NOISE!r} has the name of σ²"
            raise InvalidInput(message("the likelihood", given, "give it another name, or multiply the kernel by 1.0"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters θ."""
        return (*self.covariance.names, NOISE) if self.noise else self.covariance.names

    def parted(self, theta: Floats) -> tuple[Floats, float]:
        """The kernel's parameters, and σ²."""
        return (theta[:-1], float(theta[-1])) if self.noise else (theta, 0.0)

    def coarse(self, seed: int) -> list[ExactLikelihood]:
        """The likelihoods of some rows, drawn at random, and of more of them; none if there are too few to save."""
        n = len(self.Y)
        shares = (9, 3) if n >= MANY else (4, 2) if n >= COARSE else ()
        return [part for share in shares if (part := self.part(n // share, seed)) is not None]

    def error(self, theta: Floats) -> float:
        """The standard error of log p: 0."""
        return 0.0

    def part(self, rows: int, seed: int) -> ExactLikelihood | None:
        """The exact likelihood of this many rows, drawn at random; None for a precomputed kernel."""
        if self.covariance.kernel.space.numbered:
            return None
        some = sample_rows(len(self.Y), rows, seed)
        variances = self.variances if np.ndim(self.variances) == 0 else self.variances[some]
        return ExactLikelihood(self.covariance.taken(some), self.Y[some], variances, self.noise)

    def __call__(self, theta: Floats, gradient: bool = True) -> tuple[float, Floats] | None:
        """log p and its gradient, empty unless asked for; None if C is not positive definite, or not defined."""
        (n, targets), (own, noise) = self.Y.shape, self.parted(theta)
        inverting = AT_ONCE * 2 * n**3 / 3 if gradient else 0.0
        try:
            K = self.covariance.matrix(own)
            factor = CholeskyFactor.of(K, self.variances + noise, inverting)
        except (InvalidInput, NotAKernel):  # a parameter out of the kernel's range, or a value beyond float64's
            return None
        if factor is None:
            return None
        A = factor.solve(self.Y)
        value = -0.5 * (float(np.sum(self.Y * A)) + targets * (factor.log_determinant + n * LOG_TWO_PI))
        if not gradient:
            return value, np.empty(0)
        with one_blas_thread(inverting):  # ½ (AAᵀ − targets · C⁻¹), in the memory of the factor
            G = blas.dsyrk(0.5, A, beta=-0.5 * targets, c=factor.inverted().T, lower=1, overwrite_c=1).T
        with one_blas_thread():
            slopes = self.covariance.contracted(own, partial(upper_block, G))
        return value, np.append(slopes, noise * np.trace(G)) if self.noise else slopes


# ---- checks and preparation of the input ----------------------------------------------------------------------------


def _checked(
    kernel: Kernel | str, X: Any, y: ArrayLike, sample: int | None = None, seed: int = 0
) -> tuple[Kernel, Any, Floats]:
    """The kernel as resolved on the rows of the sample, these rows, and their targets as columns."""
    own = as_kernel(kernel)
    rows = own.space.points(X, WHO, own.as_objects).rows if own.space.objects else as_rows(X)
    targets = np.asarray(y, np.float64)
    n = count(rows)
    if targets.ndim not in (1, 2) or len(targets) != n or not np.isfinite(targets).all():
        given = f"targets of shape {targets.shape} for {counted(n, 'row')}, or targets that are not finite"
        raise InvalidInput(message(WHO, given, "give one finite number for each row and target"))
    targets = squarable(WHO, targets).reshape(n, -1)
    if sample is not None and n > sample:
        chosen = sample_rows(n, sample, seed)
        rows, targets = take(rows, chosen), targets[chosen]
    m = len(targets)
    require(3 * 8 * m * m, max(available_memory() // 2, 1), f"marginal likelihood of {m} rows", "set sample= lower")
    if not own.space.objects:
        rows = np.ascontiguousarray(vectors_of(rows).dense(), np.float64)
    return own.resolve(rows, points_of(X).names), rows, targets


def likelihood_of(
    who: str,
    kernel: Kernel,
    X: Any,
    Y: Floats,
    noise: float | None,
    variances: Any,
    fixed: Iterable[str],
    amplitude: bool,
    per_column: bool,
) -> tuple[ExactLikelihood, Floats, float]:
    """The likelihood of the parameters that vary, their first values, and the first σ², whether or not it varies.

    σ² is at first a tenth of the mean square of Y unless it is given; if it is 0, it does not vary.
    """
    spread = float(np.mean(Y**2)) or 1.0
    own, redundant = prepared(kernel, points_of(X).columns if per_column else 0, spread, per_column, amplitude)
    sigma, held = 0.1 * spread if noise is None else float(noise), {fixed} if isinstance(fixed, str) else set(fixed)
    varies = sigma > 0 and NOISE not in held
    covariance = Covariance.of(who, own, X, (held | redundant) - {NOISE})
    likelihood = ExactLikelihood(covariance, Y, variances if varies else variances + sigma, varies)
    return likelihood, np.append(covariance.values, sigma) if varies else covariance.values, sigma


def prepared(kernel: Kernel, d: int, spread: float, per_column: bool, amplitude: bool) -> tuple[Kernel, set[str]]:
    """The kernel with a length-scale for each of d columns, and an amplitude, and the names that these make redundant.

    >>> from mercer.kernels import Gaussian
    >>> prepared(Gaussian(gamma=0.5), 2, 3.0, True, True)
    (3.0 * Gaussian(gamma=0.5).with_length_scales([1.0, 1.0]), {'kernel__kernel__gamma'})
    """
    inner: Any = kernel.kernel if isinstance(kernel, Scaled) else kernel
    scale = kernel.scale if isinstance(kernel, Scaled) else spread if amplitude else None
    redundant = set()
    if per_column:
        redundant = {f"{'kernel__' * (scale is not None)}kernel__{inner.rule_parameter}"}
        inner = inner.with_length_scales([1.0] * d)
        if not any(name.startswith("scales[") for name in free_parameters(inner)):
            given = f"{inner.kernel!r} has a part, such as a periodic one, whose formula has no derivative in them"
            do = "give per_column=False, or length-scales to the other parts: kernel=a.with_length_scales([1.0, …]) + b"
            raise InvalidInput(message("per_column=True", given, do))
    kernel = inner if scale is None else Scaled(scale, inner)
    return kernel, redundant & set(free_parameters(kernel))
