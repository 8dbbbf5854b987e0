"""Bandwidths from quantiles of the distances between rows, such as the median heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.parameters.bandwidth import MEASURES, distance_quantiles, from_data, from_distance
from mercer.numerals import counted
from mercer.points import as_rows, as_seed
from mercer.select.candidates import _number

__all__ = ["bandwidth_heuristic", "checked_weights"]

WHO = "bandwidth_heuristic"


def bandwidth_heuristic(
    kernel: Kernel | str,
    X: Any,
    quantiles: Sequence[float] = (0.5,),
    *,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> list[Kernel]:
    r"""The kernel with γ = 1/(2m²), or 1/m if γ multiplies a distance, for a quantile m of the distances between rows.

    The distance is the kernel's own: Euclidean for Gaussian-like kernels, city-block for ``Laplace(norm=1)``, χ² for
    `Chi2`. The quantile 0.5 is the median heuristic, ``gamma="median"``; 0.1 and 0.9 span the bandwidths worth a
    search. The distances are those between 1000 rows drawn at random. Distances of 0 are omitted, so that many equal
    rows do not make γ infinite. If all distances are 0, γ is that of ``"scale"``.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel with a bandwidth, which is replaced.
    X : array-like of shape (n, d)
    quantiles : numbers from 0 to 1
    sample_weight : array-like of shape (n,), optional
        A row of weight 2 counts as two rows; a row of weight 0 does not count.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    list of Kernel
        One for each quantile.

    Raises
    ------
    InvalidInput
        For a kernel without a bandwidth, for quantiles outside [0, 1], and for weights that are negative, not finite,
        all 0, or not one for each row.

    References
    ----------
    D. Garreau, W. Jitkrittum, M. Kanagawa (2017). Large sample analysis of the median heuristic. arXiv:1707.07269.
    B. Caputo et al. (2002). Appearance-based object recognition using SVMs: which kernel should I use? NIPS workshop.

    Examples
    --------
    >>> X = [[0.0], [0.0], [1.0], [4.0]]
    >>> bandwidth_heuristic("gaussian", X, (0.1, 0.5))
    [Gaussian(gamma=0.5), Gaussian(gamma=0.0555556)]
    >>> bandwidth_heuristic("laplace", X)
    [Laplace(gamma=0.333333)]
    """
    seed = as_seed(random_state, "bandwidth_heuristic")
    own = as_kernel(kernel)
    name = own.rule_parameter
    if name not in own.get_params(deep=False):
        do = "give a kernel with a bandwidth, such as gaussian, laplace or matern"
        raise InvalidInput(message(WHO, f"{own!r}, which has no bandwidth", do))
    rows = as_rows(X)
    wrong = [q for q in quantiles if not 0 <= q <= 1]
    if wrong:
        raise InvalidInput(message(WHO, f"the quantile {wrong[0]!r}", "give numbers from 0 to 1"))
    weights = checked_weights(WHO, sample_weight, rows.shape[0])
    if weights is not None:
        rows, weights = rows[weights > 0], weights[weights > 0]
    measure = MEASURES[own.measure]
    found = distance_quantiles(measure.of_distance, rows, tuple(quantiles), weights, seed)
    if found is None:
        gammas = [from_data("scale", own.measure, rows, weights)] * len(quantiles)
    else:
        gammas = [from_distance(measure, distance) for distance in found]
    return [own.replace(**{name: _number(own._from_gamma(gamma))}) for gamma in gammas]


def checked_weights(who: str, sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """The weights of n rows in float64, or None if there are none.

    >>> checked_weights("bandwidth_heuristic", [1, 0], 2)
    array([1., 0.])
    """
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, np.float64)
    if w.shape != (n,) or not np.all((w >= 0) & (w < np.inf)) or not np.any(w > 0):
        given = f"weights of shape {w.shape} for {counted(n, 'row')}, or weights negative, not finite, or all 0"
        raise InvalidInput(message(who, given, "give one non-negative weight for each row, not all 0"))
    return w
