"""The choice of the kernel of a decoder from scores to rows, by its estimated error on the rows without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.symbolic.expression import Expression
from mercer.planning import costs
from mercer.points import sample_rows
from mercer.select.reconstruction import _decoded, _scores
from mercer.select.ridge import _folds

__all__ = ["DecoderChoice", "choose_decoder", "noise_variance", "reads_scores"]

Floats = NDArray[np.float64]
ROWS = 600
"""Most rows for the choice. It costs three eigendecompositions of 400 rows, and three factorisations per candidate."""
FOLDS = 3
PROBE = 1e-4
"""The step of the numerical divergence, in standard deviations of the rows."""


class DecoderChoice(NamedTuple):
    """The chosen kernel, and the estimated mean squared error per row for each candidate."""

    kernel: Kernel
    errors: tuple[float, ...]
    noise: float
    """σ̂² of a column."""


def choose_decoder(
    kernel: Kernel, X: Floats, n_components: int, candidates: Sequence[Kernel], alpha: float, seed: int
) -> DecoderChoice:
    r"""The candidate with the smallest ‖x − x̂‖² − dσ² + 2σ² div x̂ on held-out rows: Stein's estimate of ‖x₀ − x̂‖².

    x is x₀ with noise of variance σ² in each column. Without noise the estimate is the error of reconstruction, which
    is small for a decoder that follows the scores closely. With noise, such a decoder reproduces the noise too, and
    the divergence Σ ∂x̂ᵢ/∂xᵢ measures how much. It is estimated with one random direction for each row.

    Parameters
    ----------
    kernel : Kernel
        The kernel of the components, resolved.
    X : array of shape (n, d)
        At most 600 of its rows are used, in three folds.
    n_components : int
    candidates : sequence of Kernel
        Kernels of scores. The first one wins a tie.
    alpha : float
        The penalty of the ridge decoder for all rows; it is scaled for the rows of a fold.
    seed : int
        Seed for the sample, the folds and the directions.

    Returns
    -------
    DecoderChoice

    References
    ----------
    C. M. Stein (1981). Estimation of the mean of a multivariate normal distribution. Annals of Statistics 9.
    S. Ramani, T. Blu, M. Unser (2008). Monte-Carlo SURE. IEEE Transactions on Image Processing 17.
    """
    rng = np.random.default_rng(seed)
    rows = X[sample_rows(len(X), ROWS, rng)]
    sigma2 = noise_variance(rows)
    step = PROBE * (float(rows.std()) or 1.0)
    errors = np.zeros(len(candidates))
    for test in _folds(None, len(rows), FOLDS, seed):
        train = np.setdiff1d(np.arange(len(rows)), test)
        known, new = rows[train], rows[test]
        signs = rng.choice(np.array([-1.0, 1.0]), size=new.shape)
        cross = np.vstack([kernel(new, known), kernel(new + step * signs, known)]).astype(np.float64)
        K = np.asarray(kernel(known), np.float64)
        _, fitted, scores = _scores(K, cross, n_components, float(np.finfo(np.float64).eps))
        mean = known.mean(axis=0)
        for j, candidate in enumerate(candidates):
            try:
                decoded = _decoded(fitted, scores, known - mean, candidate, alpha * len(known) / len(X))
            except np.linalg.LinAlgError:  # K' + αI is singular: α is near 0, or the kernel is indefinite
                errors[j] = np.inf
                continue
            errors[j] += _risk(new, mean + decoded, signs, step, sigma2)
    return DecoderChoice(candidates[int(errors.argmin())], tuple(errors / len(rows)), sigma2)


def _risk(X: Floats, decoded: Floats, signs: Floats, step: float, sigma2: float) -> float:
    """Σ(‖x − x̂‖² − dσ² + 2σ² div x̂), from what rows x, and after them x + step · signs, are decoded to."""
    at, beside = decoded[: len(X)], decoded[len(X) :]
    divergence = float(np.einsum("ij,ij->", signs, beside - at)) / step
    return float(np.sum((X - at) ** 2)) - sigma2 * X.size + 2 * sigma2 * divergence


def noise_variance(X: Floats) -> float:
    """σ² of the noise in each column: the smaller of two estimates, which structure in the rows increases.

    One estimate is the median of the smaller half of the eigenvalues of the covariance, divided by that of standard
    normal rows. The other is half the mean squared distance from the nearest other row, divided by the number of
    columns; it is too low for few columns.

    >>> X = np.random.default_rng(0).normal(size=(300, 200))
    >>> bool(0.7 < noise_variance(X) < 1.1)
    True
    """
    flat = _smaller_half(X) / _smaller_half(np.random.default_rng(0).standard_normal(X.shape))
    apart = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(apart, np.inf)
    return min(flat, float(apart.min(axis=1).mean()) / (2 * X.shape[1]))


def _smaller_half(X: Floats) -> float:
    """The median of the smaller half of the squared singular values, without those that are 0 by the shape of X."""
    with one_blas_thread(costs.eigen_operations(min(X.shape))):
        values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[: max(len(X) - 1, 1)] ** 2
    return float(np.median(values[len(values) // 2 :]))


def reads_scores(kernel: Kernel) -> bool:
    """Whether a kernel of rows applies to scores: a function of ‖x − z‖, ‖x − z‖₁ or inner products of whole rows.

    >>> from mercer.kernels import Chi2, Gaussian
    >>> reads_scores(Gaussian(1.0)), reads_scores(Chi2(1.0)), reads_scores(Gaussian(1.0).on([0]))
    (True, False, False)
    """
    try:
        expression = trace_or_none(kernel)
    except InvalidInput:
        return False

    def plain(node: Expression) -> bool:
        if node.op in ("pairing", "self_x", "self_z"):
            kind, views = node.value
            return kind in ("dot", "sqdist", "l1") and not views
        return all(map(plain, node.args))

    return expression is not None and plain(expression)
