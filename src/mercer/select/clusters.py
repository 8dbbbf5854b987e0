"""The number of clusters by silhouettes in feature space."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message, warn
from mercer.gram import KernelOperator, lost_when_centred
from mercer.gram.remainder import require_values
from mercer.kernels import as_kernel
from mercer.numerals import counted
from mercer.operators import Dense, Operator, row_blocks
from mercer.points import as_seed, count, parse_memory
from mercer.select.heuristics import checked_weights
from mercer.solvers import Clustering, Lloyd, Partition, best_of_starts, drawn_starts
from mercer.solvers.choose import STORED_SHARE

__all__ = ["ClusterCounts", "choose_n_clusters", "silhouettes", "simplified_silhouettes"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClusterCounts:
    """The mean silhouette for each number of clusters that was tried, and the best number.

    Attributes
    ----------
    best : int
        The number of clusters with the largest mean silhouette; the smallest of equal ones.
    counts, scores, inertias : arrays of shape (c,)
        Numbers of clusters in ascending order, with their mean silhouettes and inertias.
    labels : array of shape (n,)
        The labels of the rows for `best` clusters.
    """

    best: int
    counts: NDArray[np.intp]
    scores: Floats
    inertias: Floats
    labels: NDArray[np.intp]


def simplified_silhouettes(D: Any, labels: Any) -> Floats:
    r"""(bᵢ − aᵢ)/max(aᵢ, bᵢ) for the distances aᵢ of row i from its own mean and bᵢ from the nearest other mean.

    Parameters
    ----------
    D : array of shape (n, k)
        Distances (not squared) from k > 1 means, as ``KernelKMeans.transform`` returns them.
    labels : integers of shape (n,)

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    InvalidInput
        If the distances do not have two or more columns, or not one row for each label.

    References
    ----------
    L. Vendramin, R. J. G. B. Campello, E. R. Hruschka (2010). Relative clustering validity criteria. SADM 3.

    Examples
    --------
    >>> simplified_silhouettes([[1.0, 4.0], [3.0, 2.0]], [0, 1]).round(3)
    array([0.75 , 0.333])
    """
    D, labels = np.array(D, np.float64), np.asarray(labels)
    if D.ndim != 2 or D.shape[1] < 2 or labels.shape != D.shape[:1]:
        given = f"distances of shape {D.shape} and labels of shape {labels.shape}"
        raise InvalidInput(message("simplified_silhouettes", given, "give n × k distances, k > 1, and n labels"))
    place = np.arange(len(labels))
    a = D[place, labels]
    D[place, labels] = np.inf
    return _silhouette(a, D.min(axis=1))


def silhouettes(A: Operator, labels: Any, weights: Any = None) -> Floats:
    r"""(bᵢ − aᵢ)/max(aᵢ, bᵢ) for the mean distances aᵢ of row i from its own cluster and bᵢ from the nearest other one.

    aᵢ is the mean of ‖φ(xᵢ) − φ(xⱼ)‖ over the other rows j of the cluster, and bᵢ the smallest mean over the rows of
    another cluster. In a cluster of one row the value is 0. All n² distances √(k(x, x) + k(z, z) − 2 k(x, z)) are
    computed, a few rows at a time. Squared distances would need sums over clusters only, but weigh outliers more.

    Parameters
    ----------
    A : Operator of shape (n, n)
        The kernel matrix.
    labels : integers of shape (n,)
        At least two clusters.
    weights : array of shape (n,), optional
        Multiplicities of the rows; 1 by default.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    InvalidInput
        If the operator is not square, or there is not one integer label for each row, with at least two distinct ones.

    References
    ----------
    P. J. Rousseeuw (1987). Silhouettes: a graphical aid to the interpretation and validation of cluster analysis. JCAM.

    Examples
    --------
    >>> from mercer import KernelOperator
    >>> K = KernelOperator("linear", [[0.0], [1.0], [5.0], [7.0]])
    >>> silhouettes(K, [0, 0, 1, 1]).round(3)
    array([0.833, 0.8  , 0.556, 0.692])
    """
    labels, n = _checked_labels(labels, A), A.shape[0]
    w = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    E = sp.csr_array((w, (labels, np.arange(n))), (labels.max() + 1, n))
    sizes, diagonal = np.bincount(labels, w), np.asarray(A.diagonal(), np.float64)
    out = np.empty(n)
    for some in row_blocks(n, n):
        D = _distances(A, diagonal, some)
        sums, own = np.asarray((E @ D.T).T), labels[some]
        place = np.arange(len(own))
        others = sizes[own] - np.minimum(w[some], 1.0)  # a row of weight 2 counts once among the other rows
        a = sums[place, own] / np.where(others > 0, others, 1.0)
        sums[:, sizes > 0] /= sizes[sizes > 0]
        sums[:, sizes == 0] = np.inf
        sums[place, own] = np.inf
        out[some] = np.where(others > 0, _silhouette(a, sums.min(axis=1)), 0.0)
    return out


def _checked_labels(labels: Any, A: Operator) -> NDArray[np.intp]:
    """The labels as 0, 1, …, each of which has a row."""
    labels, n = np.asarray(labels), A.shape[0]
    if A.shape != (n, n) or labels.shape != (n,) or labels.dtype.kind not in "iu" or len(np.unique(labels)) < 2:
        given = f"an operator of shape {A.shape} and labels of shape {labels.shape}, {labels.dtype}"
        do = "give an n × n operator, and an integer label for each row with at least two distinct ones"
        raise InvalidInput(message("silhouettes", given, do))
    return np.unique(labels, return_inverse=True)[1]


def _distances(A: Operator, diagonal: Floats, some: slice) -> Floats:
    """‖φ(xᵢ) − φ(xⱼ)‖ for the rows i in `some` and all j."""
    D = np.sqrt(np.maximum(diagonal[some, None] + diagonal - 2 * np.asarray(A.rows(some), np.float64), 0.0))
    D[np.arange(len(D)), np.arange(len(diagonal))[some]] = 0.0
    return np.asarray(D)


def _silhouette(a: Floats, b: Floats) -> Floats:
    larger = np.maximum(a, b)
    return np.asarray((b - a) / np.where(larger > 0, larger, 1.0))


def choose_n_clusters(
    X: Any,
    kernel: Any = "gaussian",
    counts: Iterable[int] = range(2, 11),
    *,
    criterion: Literal["simplified", "exact"] = "simplified",
    sample_weight: Any = None,
    n_init: int = 3,
    memory: float | str | None = None,
    random_state: Any = 0,
) -> ClusterCounts:
    """Run kernel k-means for each number of clusters, and choose the number with the largest mean silhouette.

    The kernel matrix is computed once for all runs if it fits in 40 % of the memory budget.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows, or a precomputed kernel matrix.
    kernel : Kernel or str
        Parameters that depend on data are resolved on the rows with their weights.
    counts : integers above 1
        Numbers of clusters to try.
    criterion : {"simplified", "exact"}
        "simplified" uses the distances from the means, which k-means already has. "exact" uses the mean distances from
        the rows of each cluster, with n² operations for each number of clusters.
    sample_weight : array of shape (n,), optional
        A row of weight 2 counts as two rows; a row of weight 0 only gets a label.
    n_init : int
        Number of starts for each number of clusters.
    memory : int, str or None
        Memory budget, in bytes or as "2GB"; None means half of the free memory.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    ClusterCounts

    Raises
    ------
    InvalidInput
        For numbers outside 2 … n − 1, an unknown criterion, and weights that are negative, not finite or all 0.

    Warns
    -----
    UserWarning
        If float64 keeps too few digits of the kernel values less their means.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> found = choose_n_clusters(X, "gaussian(gamma=0.1)", range(2, 7))
    >>> found.best, found.counts[found.scores.argmax()]
    (3, np.int64(3))
    """
    seed = as_seed(random_state, "choose_n_clusters")
    rows, own = np.asarray(X) if isinstance(X, list) else X, as_kernel(kernel)
    w = None if sample_weight is None else checked_weights("choose_n_clusters", sample_weight, count(rows))
    K = KernelOperator(own if w is None else own.resolve(rows, None, w), rows, dtype=np.float64)
    n, tried = K.shape[0], sorted(set(counts))
    if not tried or tried[0] < 2 or tried[-1] >= n or criterion not in ("simplified", "exact"):
        given = f"counts={tried} and criterion={criterion!r} for {counted(n, 'row')}"
        do = 'give numbers from 2 to n − 1, and "simplified" or "exact"'
        raise InvalidInput(message("choose_n_clusters", given, do))
    require_values(K, "choose_n_clusters")
    if lost := lost_when_centred(K, "choose_n_clusters"):
        warn(lost)
    fits = 8 * n * n <= STORED_SHARE * parse_memory(memory)
    A: Operator = Dense(K.toarray(), symmetric=True) if fits else K
    problems = [Clustering(A, np.zeros(n, np.intp), k, w) for k in tried]
    found = [best_of_starts(Lloyd(), one, drawn_starts(one, n_init, seed)).x for one in problems]
    scores = np.array([_score(A, one, w, criterion) for one in found])
    best = int(scores.argmax())
    inertias = np.array([one.inertia for one in found])
    return ClusterCounts(tried[best], np.array(tried, np.intp), scores, inertias, found[best].labels)


def _score(A: Operator, found: Partition, w: Floats | None, criterion: str) -> float:
    """The mean silhouette; −1 if only one cluster has rows."""
    if np.count_nonzero(found.sizes) < 2:
        return -1.0
    if criterion == "simplified":
        each = simplified_silhouettes(np.sqrt(found.distances), found.labels)
    else:
        each = silhouettes(A, found.labels, w)
    return float(np.average(each, weights=w))
