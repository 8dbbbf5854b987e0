"""Hyper-parameters that maximise the marginal likelihood of a Gaussian process, by its exact gradient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

from mercer.engine.backend import spare_threads
from mercer.errors import InvalidInput, message
from mercer.events import SolverStep, StageDone, emit
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.kernels import Kernel, Scaled, as_kernel
from mercer.kernels.derivatives import ParametricKernel, tunable_parameters
from mercer.points import as_rows, as_seed, available_memory, require, vectors_of

__all__ = ["MarginalLikelihood", "log_marginal_likelihood", "maximise_marginal_likelihood"]

Floats = NDArray[np.float64]
WHO = "maximise_marginal_likelihood"
NOISE = "noise"


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
    X : array-like of shape (n, d)
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
    rows, targets = _checked(X, y)
    own = as_kernel(kernel).resolve(rows)
    chosen = tuple(tunable_parameters(own)) if names is None else tuple(names)
    parametric = ParametricKernel(own, chosen)
    if not (np.isfinite(noise) and noise > 0):
        raise InvalidInput(message("log_marginal_likelihood", f"noise={noise!r}", "give a positive number"))
    found = _likelihood(parametric, rows, targets, np.append(parametric.values, noise))
    if found is None:
        given = f"K + {noise:.3g} I, which is not positive definite"
        raise InvalidInput(message("log_marginal_likelihood", given, "give a larger noise"))
    return float(found[0]), dict(zip((*chosen, NOISE), map(float, found[1]), strict=True))


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
    X : array-like of shape (n, d)
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
    rows, targets = _checked(X, y, sample, seed)
    spread = float(np.mean(targets.var(axis=0)))
    if not spread > 0:
        raise InvalidInput(message(WHO, "targets that are all the same", "give targets that vary"))
    own = _prepared(as_kernel(kernel).resolve(rows), rows.shape[1], spread, per_column, amplitude)
    held = set(fixed) | _redundant(own, per_column)
    known = tunable_parameters(own)
    _refuse_unknown(own, held - {NOISE}, known)
    problem = ParametricKernel(own, tuple(name for name in known if name not in held))
    first = np.append(problem.values, 0.1 * spread if noise is None else noise)
    ascent = _Ascent(problem, rows, targets - targets.mean(axis=0), first, bounds, max_steps, NOISE in held)
    rng = np.random.default_rng(seed)
    starts = [np.zeros(len(first)), *(rng.uniform(-1, 1, len(first)) * np.log(10) for _ in range(restarts))]
    ends = [ascent.from_(one) for one in starts]
    best = min(ends, key=lambda end: end.fun)
    emit(StageDone(f"marginal likelihood of {own!r}", perf_counter() - start))
    return ascent.found(best, tuple(-float(end.fun) for end in ends), own)


class _Ascent:
    """The maximisation of log p over u = log θ/θ₀."""

    def __init__(
        self,
        problem: ParametricKernel,
        X: Floats,
        Y: Floats,
        first: Floats,
        bounds: tuple[float, float],
        max_steps: int,
        hold_noise: bool,
    ) -> None:
        self.problem, self.X, self.Y, self.first = problem, X, Y, first
        self.max_steps, self.hold_noise, self.evaluations = max_steps, hold_noise, 0
        if not 0 < bounds[0] <= 1 <= bounds[1]:
            raise InvalidInput(message(WHO, f"bounds={bounds!r}", "give (a, b) with 0 < a ≤ 1 ≤ b"))
        self.low, self.high = float(np.log(bounds[0])), float(np.log(bounds[1]))

    def value(self, u: Floats) -> tuple[float, Floats]:
        """−log p and its gradient; 1e25 if the matrix is not positive definite."""
        self.evaluations += 1
        found = _likelihood(self.problem, self.X, self.Y, self.first * np.exp(u))
        if found is None:
            return 1e25, np.zeros(len(u))
        gradient = -found[1]
        if self.hold_noise:
            gradient[-1] = 0.0
        emit(SolverStep("L-BFGS-B", self.evaluations, float(np.abs(gradient).max()), 0.0))
        return -found[0], gradient

    def from_(self, u: Floats) -> Any:
        bounds = [(self.low, self.high)] * len(u)
        if self.hold_noise:
            u, bounds[-1] = np.append(u[:-1], 0.0), (0.0, 0.0)
        options = {"maxiter": self.max_steps, "gtol": 1e-3, "ftol": 1e-9}
        u = np.clip(u, self.low, self.high)
        return minimize(self.value, u, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    def found(self, best: Any, starts: tuple[float, ...], kernel: Kernel) -> MarginalLikelihood:
        if not best.fun < 1e25:
            given = f"{kernel!r}, whose matrix was not positive definite for any parameters that were tried"
            raise InvalidInput(message(WHO, given, "give a larger initial noise"))
        names, theta = (*self.problem.names, NOISE), self.first * np.exp(best.x)
        notes = []
        for name, u, value in zip(names, best.x, theta, strict=True):
            if name == NOISE and self.hold_noise:
                continue
            if u <= self.low + 1e-6 or u >= self.high - 1e-6:
                side = "lower" if u < 0 else "upper"
                notes.append(f"{name} = {value:.3g} is at its {side} bound")
        if best.status == 1:
            notes.append(f"stopped after {self.max_steps} steps: more steps may find better parameters")
        gradient = dict(zip(names, (-best.jac).tolist(), strict=True))
        return MarginalLikelihood(
            kernel=self.problem.kernel_at(theta[:-1]),
            noise=float(theta[-1]),
            value=-float(best.fun),
            gradient=gradient,
            starts=starts,
            evaluations=self.evaluations,
            sample_size=len(self.X),
            notes=tuple(notes),
        )


# ---- the mathematics ------------------------------------------------------------------------------------------------


def _likelihood(problem: ParametricKernel, X: Floats, Y: Floats, theta: Floats) -> tuple[float, Floats] | None:
    """log p and its gradient in log θ, with the noise last; None if the matrix is not positive definite."""
    noise, (n, targets) = float(theta[-1]), Y.shape
    K, back = problem.at(theta[:-1], X)
    factor = CholeskyFactor.of(np.ascontiguousarray(K), noise) if np.isfinite(K).all() else None
    if factor is None:
        return None
    A = factor.solve(Y)
    value = -0.5 * (float(np.sum(Y * A)) + targets * (factor.log_determinant + n * np.log(2 * np.pi)))
    inverse, _ = lapack.dpotri(factor.buffer.T, lower=True, overwrite_c=True)
    lower = np.tril(inverse)
    G = A @ A.T
    G -= targets * (lower + np.tril(lower, -1).T)
    G *= 0.5
    return value, np.append(back(G), noise * np.trace(G))


# ---- checks and preparation of the input ----------------------------------------------------------------------------


def _checked(X: Any, y: ArrayLike, sample: int | None = None, seed: int = 0) -> tuple[Floats, Floats]:
    rows = as_rows(X)
    targets = np.asarray(y, np.float64)
    n = rows.shape[0]
    if targets.ndim not in (1, 2) or len(targets) != n or not np.isfinite(targets).all():
        given = f"targets of shape {targets.shape} for {n} rows, or targets that are not finite"
        raise InvalidInput(message(WHO, given, "give one finite number for each row and target"))
    targets = targets.reshape(n, -1)
    if sample is not None and n > sample:
        chosen = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
        rows, targets = rows[chosen], targets[chosen]
    m = len(targets)
    require(12 * 8 * m * m, max(available_memory() // 2, 1), f"marginal likelihood of {m} rows", "set sample= lower")
    return np.ascontiguousarray(vectors_of(rows).dense(), np.float64), targets


def _prepared(kernel: Kernel, d: int, spread: float, per_column: bool, amplitude: bool) -> Kernel:
    if per_column:
        kernel = kernel.with_length_scales([1.0] * d)
    return Scaled(spread, kernel) if amplitude and not isinstance(kernel, Scaled) else kernel


def _redundant(kernel: Kernel, per_column: bool) -> set[str]:
    """The name of the bandwidth, which is redundant next to the length-scales of all columns."""
    if not per_column:
        return set()
    before = "kernel__" if isinstance(kernel, Scaled) else ""
    inner: Any = kernel.get_params(deep=False)["kernel"]
    inner = inner.get_params(deep=False)["kernel"] if before else inner
    return {f"{before}kernel__{inner.rule_parameter}"} & set(tunable_parameters(kernel))


def _refuse_unknown(kernel: Kernel, held: set[str], known: dict[str, float]) -> None:
    if not known:
        given = f"{kernel!r}, which has no tunable parameter"
        raise InvalidInput(message(WHO, given, "multiply it by a number, or compare kernels by cross-validation"))
    unknown = sorted(held - set(known))
    if unknown:
        raise InvalidInput(message(WHO, f"no parameter {unknown[0]!r}", f"choose from {', '.join(known)}, noise"))
