"""Multiple kernel learning: a weighted sum of kernels, with weights from the targets and their uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.engine.backend import spare_threads
from mercer.errors import InvalidInput, message
from mercer.events import StageDone, TilesDone, emit
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.factorizations.spectrum import RidgeSpectrum
from mercer.gram.remainder import TO_KEEP_DIGITS
from mercer.kernels import Kernel, as_kernel
from mercer.numerals import counted
from mercer.points import as_rows, as_seed, available_memory, count, require, sample_rows, take
from mercer.select.alignment import (
    alignment_products,
    centred,
    dense_matrix,
    less_mean,
    mixture_weights,
    target_columns,
    to_unit,
)
from mercer.select.candidates import default_alphas

__all__ = ["KernelMixture", "column_kernels", "combine_kernels"]

Floats = NDArray[np.float64]
WHO = "combine_kernels"
UNSOLVED = "float64 cannot solve for the weights"
STEPS = 100
SETTLED = 1e-4


@dataclass(frozen=True, eq=False)
class KernelMixture:
    """The result of `combine_kernels`; `str` gives a table.

    Attributes
    ----------
    kernel : Kernel
        Σ wₖkₖ without the kernels of weight 0, for use in any estimator.
    kernels : tuple of Kernel
        All kernels that were given, resolved.
    weights : array of shape (kernels,)
        wₖ.
    shares : array of shape (kernels,)
        The share of each kernel in the size of the mixture, wₖ‖HKₖH‖/Σ, or wₖ tr HKₖH/Σ for "ridge". Unlike the wₖ,
        shares do not depend on the scales of the kernels.
    low, high : arrays of shape (kernels,)
        The 5 % and 95 % quantiles of the shares over bootstrap samples of the rows.
    alpha : float or None
        λ of the ridge regression on the scale of `kernel`; None for alignment.
    method : str
    sample_size : int
        Number of rows used.
    """

    kernel: Kernel
    kernels: tuple[Kernel, ...]
    weights: Floats
    shares: Floats
    low: Floats
    high: Floats
    alpha: float | None
    method: str
    sample_size: int

    def __str__(self) -> str:
        lines = [f"{self.method} on {self.sample_size} rows: share [5 %, 95 % of bootstrap samples]"]
        for i in np.argsort(-self.shares, kind="stable"):
            lines.append(f"  {self.shares[i]:6.3f} [{self.low[i]:.3f}, {self.high[i]:.3f}]  {self.kernels[i]!r}")
        return "\n".join(lines)


def column_kernels(
    X: Any, families: Sequence[Kernel | str] = ("gaussian", "linear"), groups: Iterable[Any] | None = None
) -> list[Kernel]:
    """A kernel of each family on each group of columns and on all columns, with the median heuristic's bandwidth.

    Parameters
    ----------
    X : array-like of shape (n, d)
    families : kernels or names
    groups : iterable of lists of columns, optional
        Each column by itself by default.

    Returns
    -------
    list of Kernel

    Examples
    --------
    >>> column_kernels([[0.0, 1.0], [1.0, 3.0]], ["gaussian"])
    [Gaussian(gamma=0.5).on([0]), Gaussian(gamma=0.125).on([1]), Gaussian(gamma=0.1)]
    """
    rows = as_rows(X)
    chosen = [[j] for j in range(rows.shape[1])] if groups is None else [list(group) for group in groups]
    out = []
    for family in map(as_kernel, families):
        rule = {family.rule_parameter: "median"} if family.rule_parameter in family.get_params(deep=False) else {}
        kernel = family.replace(**rule)
        out += [_rounded(kernel.on(columns).resolve(rows)) for columns in chosen] + [_rounded(kernel.resolve(rows))]
    return out


def _rounded(kernel: Kernel) -> Kernel:
    """The kernel with its numbers rounded to six digits."""
    inner = {name: value for name, value in kernel.get_params().items() if isinstance(value, float)}
    return kernel.replace(**{name: float(f"{value:.6g}") for name, value in inner.items()})


@spare_threads()
def combine_kernels(
    kernels: Iterable[Kernel | str],
    X: Any,
    y: ArrayLike,
    *,
    method: Literal["alignment", "ridge"] = "alignment",
    alpha: float | None = None,
    sparse: float = 0.0,
    bootstrap: int = 20,
    sample: int = 1000,
    random_state: Any = 0,
) -> KernelMixture:
    r"""Σ wₖkₖ with weights w ≥ 0 that are fitted to the targets: multiple kernel learning.

    "alignment" maximises the centred alignment of the mixture with the targets (`alignment_weights`), without λ and
    without iteration. "ridge" minimises the objective of ridge regression over w too,
    min_w min_f ‖y − f − b‖² + λ Σ ‖fₖ‖²/wₖ, with Σ wₖ = 1 and all kernels centred and scaled to trace n. This is a
    group lasso, which sets many weights to 0. Its steps wₖ ← ‖fₖ‖/Σ ‖fₗ‖ with ‖fₖ‖ = wₖ √(αᵀKₖα) lower the objective.

    Parameters
    ----------
    kernels : iterable of Kernel or str
        For example those of `column_kernels`. Parameters that depend on data are resolved on the sample.
    X : array-like of shape (n, d), or a sequence of objects that all kernels accept
    y : array-like of shape (n,) or (n, targets), or labels
        As for `centered_alignment`.
    method : "alignment" or "ridge"
    alpha : float, optional
        λ of "ridge" for kernels of trace n; by default leave-one-out on the equal mixture chooses it.
    sparse : float from 0 to 1
        Shares below this are set to 0, and the other weights are computed again.
    bootstrap : int
        Number of bootstrap samples of the rows for the quantiles of the shares; 0 for none.
    sample : int
        Most rows to use, drawn at random.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    KernelMixture

    Raises
    ------
    InvalidInput
        Without kernels, for an unknown method, `sparse` outside [0, 1), or fewer than two rows; and for "ridge", if
        float64 cannot solve its systems.

    Warns
    -----
    UserWarning
        If float64 keeps too few digits of a kernel's values less their means.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh (2012). Algorithms for learning kernels based on centered alignment. JMLR 13.
    Z. Xu, R. Jin, H. Yang, I. King, M. R. Lyu (2010). Simple and efficient multiple kernel learning by group
    lasso. ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    >>> found = combine_kernels(column_kernels(X, ["gaussian"]), X, y, method="ridge", sparse=0.05)
    >>> found.kernel
    0.6346 * Gaussian(gamma=0.453941).on([0]) + 0.3654 * Gaussian(gamma=0.555029).on([1])
    """
    seed = as_seed(random_state, "combine_kernels")
    start = perf_counter()
    own, rows, Y = _checked(kernels, X, y, method, sparse, sample, seed)
    matrices = [dense_matrix(WHO, kernel, rows) for kernel in own]
    n = len(Y)
    everyone = np.arange(n)
    if method == "ridge" and alpha is None:
        alpha = _chosen_alpha([_standard(centred(K)) for K in matrices], less_mean(Y))
    weights, shares = _found(matrices, Y, everyone, method, alpha, sparse)
    rng, drawn = np.random.default_rng(seed + 1), []
    for done in range(bootstrap):
        drawn.append(_found(matrices, Y, rng.integers(0, n, n), method, alpha, sparse)[1])
        emit(TilesDone(f"{WHO}: bootstrap", done + 1, bootstrap))
    low, high = np.quantile(drawn, (0.05, 0.95), axis=0) if drawn else (shares, shares)
    emit(StageDone(WHO, perf_counter() - start))
    factor = float(weights.sum())
    weights = weights / factor
    scaled = None if alpha is None else alpha / factor
    return KernelMixture(_sum(own, weights), tuple(own), weights, shares, low, high, scaled, method, n)


def _sum(kernels: Sequence[Kernel], weights: Floats) -> Kernel:
    """The sum of the kernels with positive weights, rounded to four digits."""
    terms = [float(f"{w:.4g}") * kernel for w, kernel in zip(weights, kernels, strict=True) if w > 0]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _found(
    matrices: Sequence[Floats], Y: Floats, rows: NDArray[np.intp], method: str, alpha: float | None, sparse: float
) -> tuple[Floats, Floats]:
    """Weights of the unscaled matrices, and shares, on some rows."""
    whole = len(rows) == len(Y) and bool(np.all(rows == np.arange(len(Y))))
    own = [centred(K if whole else K[np.ix_(rows, rows)]) for K in matrices]
    targets = less_mean(Y[rows])
    if method == "alignment":
        weights, sizes = mixture_weights(*alignment_products(own, targets), sparse)
    else:
        assert alpha is not None
        weights, sizes = _group_lasso(own, targets, alpha, sparse)
    parts = weights * sizes
    return weights, np.asarray(parts / parts.sum()) if parts.sum() > 0 else np.full(len(own), 1 / len(own))


# ---- ridge regression with weights ----------------------------------------------------------------------------------


def _standard(K: Floats) -> Floats:
    """K scaled to trace n; 0 stays 0."""
    trace = float(np.trace(K))
    return K * (len(K) / trace) if trace > 0 else K


def _chosen_alpha(matrices: Sequence[Floats], Y: Floats) -> float:
    """The λ with the smallest leave-one-out error of the equal mixture."""
    grid = default_alphas()
    spectrum = RidgeSpectrum.of(np.mean(matrices, axis=0), intercept=True)
    grid = grid[spectrum.solvable(grid)]
    if not len(grid):
        raise InvalidInput(message(WHO, f"kernels for which {UNSOLVED}", f"{TO_KEEP_DIGITS}, or give alpha="))
    errors = np.mean((spectrum.leave_one_out(Y, grid) - Y[:, None, :]) ** 2, axis=(0, 2))
    return float(grid[int(errors.argmin())])


def _group_lasso(own: Sequence[Floats], Y: Floats, alpha: float, sparse: float) -> tuple[Floats, Floats]:
    """Weights of the unscaled matrices, and their traces; see `combine_kernels`."""
    traces = np.array([float(np.trace(K)) for K in own])
    matrices = [_standard(K) for K in own]
    left = traces > 1e-12 * max(float(traces.max(initial=0.0)), 1e-300)
    if not np.any(left):
        return np.full(len(own), 1.0 / len(own)), traces
    while True:
        shares = _iterated(matrices, Y, alpha, left)
        low = left & (shares < sparse)
        if not np.any(low) or np.all(low == left):
            break
        left &= ~low
    shares[shares < 1e-6] = 0.0
    return np.where(left, shares * len(Y) / np.where(left, traces, 1.0), 0.0), traces


def _iterated(matrices: Sequence[Floats], Y: Floats, alpha: float, left: NDArray[np.bool_]) -> Floats:
    shares = left / np.count_nonzero(left)
    for _ in range(STEPS):
        factor = CholeskyFactor.of(sum(w * K for w, K in zip(shares, matrices, strict=True) if w > 0), alpha)
        if factor is None:  # by rounding: a centred kernel matrix plus a positive shift is positive definite
            given = f"kernels for which {UNSOLVED} with alpha={alpha:g}"
            raise InvalidInput(message(WHO, given, f"{TO_KEEP_DIGITS}, or give a larger alpha"))
        A = factor.solve(Y)
        norms = np.array(
            [
                w * np.sqrt(max(float(np.sum(A * (K @ A))), 0.0)) if w > 0 else 0.0
                for w, K in zip(shares, matrices, strict=True)
            ]
        )
        if not norms.sum() > 0:
            return np.asarray(shares)
        before, shares = shares, norms / norms.sum()
        if np.abs(shares - before).max() < SETTLED:
            break
    return np.asarray(shares)


# ---- checks and preparation of the input ----------------------------------------------------------------------------


def _checked(
    kernels: Iterable[Kernel | str], X: Any, y: ArrayLike, method: str, sparse: float, sample: int, seed: int
) -> tuple[list[Kernel], Any, Floats]:
    given = [as_kernel(kernel) for kernel in kernels]
    if not given or method not in ("alignment", "ridge") or not 0 <= sparse < 1:
        said = f"{counted(len(given), 'kernel')}, method={method!r}, sparse={sparse!r}"
        do = 'give at least one kernel, method="alignment" or "ridge", and sparse from 0 to below 1'
        raise InvalidInput(message(WHO, said, do))
    objects = any(kernel.space.objects for kernel in given)
    rows, Y = X if objects else as_rows(X), to_unit(target_columns(y))  # weights do not depend on the unit
    n = count(rows)
    if len(Y) != n or n < 2:
        do = "give two or more rows, with one target for each"
        raise InvalidInput(message(WHO, f"{counted(n, 'row')} and {counted(len(Y), 'target')}", do))
    m = min(n, sample)
    require(8 * (2 * len(given) + 3) * m * m, max(available_memory() // 2, 1), f"{len(given)} kernels", "lower sample=")
    if n > sample:
        chosen = sample_rows(n, sample, seed)
        rows, Y = take(rows, chosen), Y[chosen]
    return [kernel.resolve(rows) for kernel in given], rows, Y
