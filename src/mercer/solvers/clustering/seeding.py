"""Initial clusters for Lloyd's iteration: k-means++ in feature space, several times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.keeping import Trail
from mercer.solvers.base import Solution, solve
from mercer.solvers.clustering.lloyd import Clustering, Floats, Labels, Lloyd, LloydState

__all__ = ["Seeds", "best_of_starts", "drawn_starts", "plus_plus"]


class Seeds(NamedTuple):
    """Distinct rows, and for each row the index of the nearest one of them.

    Attributes
    ----------
    rows : integers of shape (k,)
    labels : integers of shape (n,)
    """

    rows: Labels
    labels: Labels


def best_of_starts(
    solver: Lloyd, problem: Clustering, starts: Iterable[Labels], path: list[Labels] | None = None
) -> Solution[LloydState]:
    """The solution of least inertia from several starts; the first one of equal solutions, up to rounding.

    One pass over a stored matrix computes the first sums of several starts. The exact operator confirms only the best
    solution.

    Parameters
    ----------
    solver : Lloyd
    problem : Clustering
        Its own `labels` are not used.
    starts : iterable of integer arrays of shape (n,)
        Initial labels, at least one array.
    path : list, optional
        The labels of the best run are appended to it: those at its start, and each time that they change.

    Returns
    -------
    Solution

    Raises
    ------
    InvalidInput
        If there is no start.

    Examples
    --------
    >>> from mercer.operators import LowRank
    >>> problem = Clustering(LowRank([[0.0], [1.0], [9.0], [10.0]]), np.zeros(4, int), k=2)
    >>> best_of_starts(Lloyd(), problem, drawn_starts(problem, 3, seed=0)).x.inertia
    1.0
    """
    best, given, rough = None, list(starts), replace(solver, confirm=False)
    problem.release()  # what drawing them used
    for labels, sums in zip(given, problem.A.several_group_sums(given, problem.k, problem.weights), strict=True):
        fresh = LloydState(0, labels, labels, sums, age=-1)  # no row moves in the first step, which makes the age 0
        steps = _changes()
        found = solve(rough, problem, state=fresh, each=None if path is None else steps)
        if best is None or found.x.inertia < best.x.inertia - problem.rounding * problem.w.sum():
            best, taken = found, steps
    if best is None:
        raise InvalidInput(message("best_of_starts", "no start", "give one start or more"))
    if path is None:
        return solve(solver, problem, state=best.state)
    further = _changes()
    solution = solve(solver, problem, state=best.state, each=further)
    path += [*taken.arrays, *further.arrays[1:]]
    return solution


def _changes() -> Trail:
    """The labels at the start of a run, and each time that they change."""
    return Trail(lambda state, last: None if last is not None and np.array_equal(last, state.labels) else state.labels)


def drawn_starts(problem: Clustering, count: int, seed: int) -> Iterator[Labels]:
    """Labels from `count` runs of k-means++.

    The rows are sorted by their distance from the mean of all before the draw. So the same rows in another order, or
    repeated instead of weighted, give the same clusters.

    Parameters
    ----------
    problem : Clustering
    count : int
    seed : int

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> problem = Clustering(Dense(np.diag([1.0, 1.0, 9.0])), np.zeros(3, int), 3)
    >>> [sorted(labels.tolist()) for labels in drawn_starts(problem, 2, seed=0)]
    [[0, 1, 2], [0, 1, 2]]
    """
    order = np.argsort(problem.from_mean, kind="stable")
    return (plus_plus(problem, order, np.random.default_rng([seed, i])).labels for i in range(count))


def plus_plus(problem: Clustering, order: Labels, rng: np.random.Generator) -> Seeds:
    r"""k rows one after the other, each drawn with probability ∝ wᵢ minₛ ‖φ(xᵢ) − φ(xₛ)‖² over the seeds s so far.

    Each time 2 + log k candidates are drawn, and the one that lowers Σ wᵢ minₛ ‖φ(xᵢ) − φ(xₛ)‖² most is taken. There
    are fewer than k seeds if there are fewer distinct rows.

    Parameters
    ----------
    problem : Clustering
        Its `labels` are not used.
    order : integers of shape (n,)
        The order in which the probabilities of the rows are added up. If this order follows from the data alone, the
        draw does not depend on the input order of the rows.
    rng : Generator

    Returns
    -------
    Seeds

    References
    ----------
    D. Arthur, S. Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> problem = Clustering(Dense(np.diag([1.0, 1.0, 9.0])), np.zeros(3, int), 3)
    >>> sorted(plus_plus(problem, np.arange(3), np.random.default_rng(0)).rows.tolist())
    [0, 1, 2]
    """
    w, trials = problem.w, 2 + int(np.log(problem.k))
    seeds = [int(_drawn(w, order, rng, 1)[0])]
    D, labels = problem.distances_from(np.array(seeds))[0], np.zeros(len(w), np.intp)
    while len(seeds) < problem.k and np.any((D > 0) & (w > 0)):
        some = _drawn(w * D, order, rng, trials)
        near = np.minimum(problem.distances_from(some), D)
        best = int((near @ w).argmin())
        labels[near[best] < D - problem.rounding] = len(seeds)  # a tie goes to the first seed, as in every pass
        D = near[best]
        seeds.append(int(some[best]))
    return Seeds(np.array(seeds, np.intp), labels)


def _drawn(shares: Floats, order: Labels, rng: np.random.Generator, count: int) -> Labels:
    """Rows drawn with probabilities proportional to the shares."""
    steps = np.cumsum(shares[order])
    place = np.searchsorted(steps, rng.random(count) * steps[-1], side="right")
    last = int(np.flatnonzero(shares[order] > 0)[-1])
    return np.asarray(order[np.minimum(place, last)])
