"""The choice of kernel and number of components for kernel PCA, by cross-validated reconstruction of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mercer.engine.backend import spare_threads
from mercer.errors import InvalidInput, message, warn
from mercer.events import StageDone, emit
from mercer.gram import KernelOperator, lost_when_centred
from mercer.gram.remainder import require_values
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.vectors.products import is_linear
from mercer.numerals import counted
from mercer.points import as_rows, as_seed, available_memory, require, sample_rows, vectors_of
from mercer.select.ridge import _folds
from mercer.solvers import leading_pairs

__all__ = ["Reconstruction", "ReconstructionSearch", "cross_validate_kernel_pca"]

Floats = NDArray[np.float64]
WHO = "cross_validate_kernel_pca"
TIE = 1e-6
"""Errors within this share of the smallest are ties: fewer components win, then the first kernel."""


@dataclass(frozen=True)
class Reconstruction:
    """A kernel, a number of components, and the mean and standard deviation of ‖x − x̂‖² over the folds.

    Attributes
    ----------
    kernel : str
        The expression of the kernel.
    n_components : int
    mean, std : float
        In the squared units of the columns.

    Examples
    --------
    >>> Reconstruction("Linear()", 2, mean=0.5, std=0.02)
    Reconstruction(kernel='Linear()', n_components=2, mean=0.5, std=0.02)
    """

    kernel: str
    n_components: int
    mean: float
    std: float


@dataclass(frozen=True)
class ReconstructionSearch:
    """The result of `cross_validate_kernel_pca`.

    Attributes
    ----------
    best_kernel : Kernel
        The kernel with all parameters resolved to numbers.
    best_n_components : int
    best_error : float
        The mean of ‖x − x̂‖² over the folds.
    table : tuple of Reconstruction
        All candidates, the best first.
    sample_size : int
        Number of rows used.
    folds : int
    notes : tuple of str
        Notes on the best candidate, for example that it lies on the border of the grid.
    """

    best_kernel: Kernel
    best_n_components: int
    best_error: float
    table: tuple[Reconstruction, ...]
    sample_size: int
    folds: int
    notes: tuple[str, ...] = ()

    @property
    def simplest(self) -> Reconstruction:
        """The fewest components whose error is within one standard error of the best (Breiman et al. 1984).

        >>> means = ((8, 1.0), (3, 1.1), (2, 2.0))
        >>> rows = tuple(Reconstruction("linear", k, mean, std=0.4) for k, mean in means)
        >>> ReconstructionSearch(as_kernel("linear"), 8, 1.0, rows, 100, folds=4).simplest.n_components
        3
        """
        limit = self.table[0].mean + self.table[0].std / np.sqrt(self.folds)
        return min((row for row in self.table if row.mean <= limit), key=lambda row: (row.n_components, row.mean))


@spare_threads()
def cross_validate_kernel_pca(
    X: Any,
    kernels: Iterable[Kernel | str],
    n_components: Iterable[int] = (1, 2, 4, 8, 16, 32),
    *,
    decoder_kernel: Kernel | str = "gaussian(gamma='median')",
    alpha: float = 0.1,
    folds: int = 5,
    sample: int = 1000,
    random_state: Any = 0,
) -> ReconstructionSearch:
    r"""min over kernels and k of the mean over folds S of (1/|S|) Σ_{x in S} ‖x − x̂‖², x̂ from the first k scores.

    x̂ is that of ``KernelPCA(k, kernel, fit_inverse_transform=True)``: the projection for the linear kernel, and a ridge
    regression from scores to rows for all others. Errors are measured in the units of the rows. Errors in feature space
    cannot be compared between kernels, because each kernel has its own space; a kernel under which all rows look alike
    would win.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n, d)
    kernels : iterable of Kernel or str
        The first one wins a tie, so give the simplest first. Parameters that depend on data are resolved on the sample.
        ``mercer.select.default_kernels`` makes a list.
    n_components : iterable of int
        Numbers k to try. If a kernel has fewer components in a fold, all of them are used, as in `KernelPCA`.
    decoder_kernel, alpha
        Kernel and penalty of the ridge decoder, as in `KernelPCA`. All candidates have the same decoder, although
        `KernelPCA` may choose its own ("auto").
    folds : int
    sample : int
        Most rows to use, drawn at random.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    ReconstructionSearch

    Raises
    ------
    InvalidInput
        For fewer than two rows per fold, rows that are not vectors, no kernel, or k and α that are not positive.

    Warns
    -----
    UserWarning
        If float64 keeps too few digits of a kernel's values less their means.

    Notes
    -----
    One eigendecomposition for each kernel and fold serves every k; each k needs a factorisation for its decoder.
    The best k is often the largest, because more scores seldom make a decoder worse. `simplest` is the smallest k
    within one standard error of the best. For noisy rows choose `simplest`, or compare `hotelling_t2` and `spe`.

    References
    ----------
    M. A. Alam, K. Fukumizu (2014). Hyperparameter selection in kernel principal component analysis. Journal of Computer
    Science 10.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 4 * np.pi, 150)
    >>> helix = np.column_stack([np.cos(t), np.sin(t), 0.2 * t])
    >>> search = cross_validate_kernel_pca(helix, ["linear", "gaussian(gamma=0.3)"], [1, 2, 3])
    >>> search.best_kernel, search.best_n_components
    (Linear(), 3)
    >>> [row for row in search.table if row.n_components == 2][0].kernel  # the best kernel for two components
    'Gaussian(gamma=0.3)'
    """
    seed = as_seed(random_state, "cross_validate_kernel_pca")
    rows, counts = _checked(X, n_components, alpha, folds, sample, seed)
    m = rows.shape[0]
    parts = _folds(None, m, folds, seed)
    tried: list[tuple[Kernel, Floats]] = []
    for one in kernels:
        start = perf_counter()
        kernel = as_kernel(one).resolve(rows)
        if not kernel.space.vectors:
            raise InvalidInput(message(WHO, f"{kernel!r}", "give kernels of rows of numbers"))
        errors = _errors(kernel, rows, counts, parts, as_kernel(decoder_kernel), float(alpha))
        emit(StageDone(f"cross-validation of {kernel!r}", perf_counter() - start))
        tried.append((kernel, errors))
    if not tried:
        raise InvalidInput(message(WHO, "no kernel to choose from", "give at least one kernel"))
    return _verdict(tried, counts, m, folds)


def _checked(
    X: Any, n_components: Iterable[int], alpha: float, folds: int, sample: int, seed: int
) -> tuple[Any, list[int]]:
    rows, counts = as_rows(X), list(n_components)
    if not counts or any(isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1 for k in counts):
        raise InvalidInput(message(WHO, f"n_components={counts!r}", "give positive integers"))
    if not (isinstance(alpha, Real) and 0 < alpha < np.inf):
        raise InvalidInput(message(WHO, f"alpha={alpha!r}", "give a positive number"))
    n = rows.shape[0]
    if folds < 2 or min(n, sample) < 2 * folds:
        given = f"{counted(folds, 'fold')} of {counted(n, 'row')} (sample={sample})"
        raise InvalidInput(message(WHO, given, "give at least two folds and two rows for each"))
    m = min(n, sample)
    require(8 * 5 * m * m, max(available_memory() // 2, 1), f"cross-validation on {m} rows", "set sample= lower")
    if n > sample:
        rows = rows[sample_rows(n, sample, seed)]
    return rows, sorted({int(k) for k in counts})


# ---- the mathematics ------------------------------------------------------------------------------------------------


def _errors(
    kernel: Kernel, X: Any, counts: list[int], parts: Sequence[NDArray[np.intp]], decoder: Kernel, alpha: float
) -> Floats:
    """The error of each number of components (rows) on each fold (columns)."""
    operator = KernelOperator(kernel, X).astype(np.float64)
    require_values(operator, WHO)
    if lost := lost_when_centred(operator, f"{WHO} with {kernel!r}"):
        warn(lost)
    K = np.asarray(operator.toarray())
    dense = np.asarray(vectors_of(X).dense(), np.float64)
    eps = float(np.finfo(X.dtype).eps)
    out = np.empty((len(counts), len(parts)))
    for j, test in enumerate(parts):
        train = np.setdiff1d(np.arange(len(K)), test)
        A, fitted, new = _scores(K[np.ix_(train, train)], K[np.ix_(test, train)], counts[-1], eps)
        mean = dense[train].mean(axis=0)
        for i, k in enumerate(counts):
            known = dense[train] - mean
            if is_linear(kernel):
                found = new[:, :k] @ (A[:, :k].T @ known)
            else:
                found = _decoded(fitted[:, :k], new[:, :k], known, decoder, alpha)
            out[i, j] = float(np.mean(np.sum((dense[test] - mean - found) ** 2, axis=1)))
    return out


def _scores(K: Floats, cross: Floats, k: int, eps: float) -> tuple[Floats, Floats, Floats]:
    """A, and the scores of training rows and of new rows, for the first k components above rounding."""
    n, means = len(K), K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    values, vectors = leading_pairs(centred, min(k, n), overwrite=True)
    trace = float(np.trace(K))
    kept = values > max(eps * n * max(float(values[0]), 0.0), 4 * np.finfo(np.float64).eps * trace)
    A = vectors[:, kept] / np.sqrt(values[kept])
    A = A - A.mean(axis=0)
    return A, vectors[:, kept] * np.sqrt(values[kept]), cross @ A - means @ A


def _decoded(scores: Floats, new: Floats, rows: Floats, kernel: Kernel, alpha: float) -> Floats:
    """K'(new, scores) (K' + αI)⁻¹ rows."""
    if scores.shape[1] == 0:
        return np.zeros((len(new), rows.shape[1]))
    resolved = kernel.resolve(scores)
    G = np.asarray(resolved(scores), np.float64)
    G[np.diag_indices_from(G)] += alpha
    return np.asarray(resolved(new, scores) @ cho_solve(cho_factor(G, overwrite_a=True), rows))


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(tried: list[tuple[Kernel, Floats]], counts: list[int], m: int, folds: int) -> ReconstructionSearch:
    """The search with the smallest mean; a tie goes to the fewest components, then to the first kernel."""
    rows = [
        (Reconstruction(repr(kernel), k, float(errors[i].mean()), float(errors[i].std())), kernel)
        for kernel, errors in tried
        for i, k in enumerate(counts)
    ]
    # If the reconstruction is exact, the errors are rounding; the second term makes them ties.
    least = min(row.mean for row, _ in rows)
    tie = least * (1 + TIE) + TIE**2 * max(row.mean for row, _ in rows)
    chosen, kernel = min(
        ((row, kernel) for row, kernel in rows if row.mean <= tie), key=lambda pair: pair[0].n_components
    )
    table = [chosen, *sorted((row for row, _ in rows if row is not chosen), key=lambda r: (r.mean, r.n_components))]
    notes = []
    if len(counts) > 1 and chosen.n_components == counts[-1]:
        most = f"{counts[-1]} components are the most that were tried"
        notes.append(f"{most}: more may be better; see `simplest` for fewer")
    return ReconstructionSearch(kernel, chosen.n_components, chosen.mean, tuple(table), m, folds, tuple(notes))
