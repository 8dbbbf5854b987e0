"""The kernel of the decoder from scores to rows, by an estimate of its error on rows without their noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.symbolic.expression import Expression
from mercer.select.reconstruction import _decoded, _scores
from mercer.select.ridge import _folds

__all__ = ["DecoderChoice", "choose_decoder", "noise_variance", "reads_scores"]

Floats = NDArray[np.float64]
ROWS = 600
"""Rows that the choice looks at: three eigendecompositions of 400 rows, and two factorisations for each candidate."""
FOLDS = 3
PROBE = 1e-4
"""The step of the numerical divergence, in standard deviations of the rows."""


class DecoderChoice(NamedTuple):
    """The kernel chosen, and for each candidate the estimated mean squared error of a row."""

    kernel: Kernel
    errors: tuple[float, ...]
    noise: float
    """σ̂² of a column."""


def choose_decoder(
    kernel: Kernel, X: Floats, n_components: int, candidates: Sequence[Kernel], alpha: float, seed: int
) -> DecoderChoice:
    r"""The candidate of the smallest ‖x − x̂‖² − dσ² + 2σ² div x̂ over rows left out: Stein's estimate of ‖x₀ − x̂‖².

    x = x₀ + noise of variance σ² in each column. Without noise it is the error of reconstruction, which a decoder that
    follows the scores closely makes small; with noise such a decoder returns the noise too, and the divergence
    Σ ∂x̂ᵢ/∂xᵢ says by how much. It is found by one random direction for each row.

    Parameters
    ----------
    kernel : Kernel
        Of the components, resolved.
    X : array of shape (n, d)
        At most 600 rows of it are used, in three folds.
    n_components : int
    candidates : sequence of Kernel
        On scores; of equals the first.
    alpha : float
        The ridge decoder's penalty, of which fewer rows get their share.
    seed : int
        Of the sample, the folds and the directions.

    References
    ----------
    C. M. Stein (1981). Estimation of the mean of a multivariate normal distribution. Annals of Statistics 9.
    S. Ramani, T. Blu, M. Unser (2008). Monte-Carlo SURE. IEEE Transactions on Image Processing 17.
    """
    rng = np.random.default_rng(seed)
    rows = X if len(X) <= ROWS else X[np.sort(rng.choice(len(X), ROWS, replace=False))]
    sigma2, d = noise_variance(rows), rows.shape[1]
    step = PROBE * (float(rows.std()) or 1.0)
    errors = np.zeros(len(candidates))
    for test in _folds(None, len(rows), FOLDS, seed):
        train = np.setdiff1d(np.arange(len(rows)), test)
        known, new = rows[train], rows[test]
        signs = rng.choice([-1.0, 1.0], size=new.shape)
        cross = np.vstack([kernel(new, known), kernel(new + step * signs, known)]).astype(np.float64)
        K = np.asarray(kernel(known), np.float64)
        _, fitted, scores = _scores(K, cross, n_components, float(np.finfo(np.float64).eps))
        mean = known.mean(axis=0)
        for j, candidate in enumerate(candidates):
            try:
                decoded = _decoded(fitted, scores, known - mean, candidate, alpha * len(known) / len(X))
            except np.linalg.LinAlgError:  # K' + αI is singular, for α near 0 or an indefinite kernel
                errors[j] = np.inf
                continue
            found = mean + decoded
            at, beside = found[: len(new)], found[len(new) :]
            divergence = np.einsum("ij,ij->", signs, beside - at) / step
            errors[j] += float(np.sum((new - at) ** 2)) - sigma2 * d * len(new) + 2 * sigma2 * divergence
    return DecoderChoice(candidates[int(errors.argmin())], tuple(errors / len(rows)), sigma2)


def noise_variance(X: Floats) -> float:
    """σ² of the noise in each column: the smaller of two estimates that structure in the rows makes larger.

    One is the median of the smaller half of the eigenvalues of the covariance, over that of standard normal rows; the
    other half the mean squared distance to the nearest other row, a column, which is low if the columns are few.

    >>> X = np.random.default_rng(0).normal(size=(300, 200))
    >>> bool(0.7 < noise_variance(X) < 1.1)
    True
    """
    flat = _smaller_half(X) / _smaller_half(np.random.default_rng(0).standard_normal(X.shape))
    apart = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(apart, np.inf)
    return min(flat, float(apart.min(axis=1).mean()) / (2 * X.shape[1]))


def _smaller_half(X: Floats) -> float:
    """The median of the smaller half of the squared singular values that are not 0 by the shape alone."""
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[: max(len(X) - 1, 1)] ** 2
    return float(np.median(values[len(values) // 2 :]))


def reads_scores(kernel: Kernel) -> bool:
    """Whether a kernel of rows may be one of scores: a function of ‖x − z‖, ‖x − z‖₁ or inner products of whole rows.

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
