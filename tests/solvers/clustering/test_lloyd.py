"""Lloyd's iteration against k-means written out, and what it promises about its objective."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import KernelOperator
from mercer.kernels import Gaussian
from mercer.operators import Dense, LowRank
from mercer.solvers import Clustering, Lloyd, Status, best_of_starts, plus_plus, solve

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.standard_normal((80, 4)) + shift for shift in (0.0, 1.5, 3.0)])
K = Gaussian(0.2)(X)


def brute_force(K, w, labels, k, passes=300):
    """Lloyd's iteration with every mean written out as weights on the rows; returns labels and objectives."""
    objectives = []
    for _ in range(passes):
        E = np.eye(k)[labels] * w[:, None]
        C = E / E.sum(axis=0)
        D = np.diag(K)[:, None] - 2 * K @ C + np.einsum("ic,ij,jc->c", C, K, C)
        objectives.append(float(w @ D[np.arange(len(K)), labels]))
        following = D.argmin(axis=1)
        if np.array_equal(following, labels):
            return labels, objectives
        labels = following
    raise AssertionError


def steps(solver, problem):
    """All states, one pass after another."""
    state = solver.start(problem)
    while solver.verdict(problem, state) is None:
        state = solver.step(problem, state)
        yield state


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("operator", ["dense", "tiles", "tiles, float32 first"])
@pytest.mark.parametrize("refresh", [1, 3, 10])
def test_equals_k_means_written_out(operator, weighted, refresh, rng):
    w = rng.random(len(X)) if weighted else np.ones(len(X))
    start = rng.integers(0, 5, len(X))
    expected, objectives = brute_force(K, w, start, 5)
    tiles = KernelOperator(Gaussian(0.2), X)
    A = {"dense": Dense(K), "tiles": tiles, "tiles, float32 first": tiles.astype(np.float32)}[operator]
    problem = Clustering(A, start, 5, w if weighted else None, None if A.dtype == np.float64 else tiles)
    solution = solve(Lloyd(refresh=refresh), problem)
    assert solution.status is Status.CONVERGED
    np.testing.assert_array_equal(solution.x.labels, expected)
    assert solution.x.inertia == pytest.approx(objectives[-1], rel=1e-12)
    assert solution.residual == 0.0


def test_rows_of_weight_0_end_with_their_nearest_mean(rng):
    """The other rows decide when a run ends, so the labels of these were those of the means before."""
    for _ in range(10):
        w, start = rng.integers(0, 3, len(X)).astype(float), rng.integers(0, 5, len(X))
        found = solve(Lloyd(), Clustering(Dense(K), start, 5, w)).x
        np.testing.assert_array_equal(found.labels, found.distances.argmin(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(5))
def test_the_inertia_never_rises(dtype, seed):
    """In float64 up to the rounding of its sums, 1e-13 of tr K; with float32 entries up to that of these, 1e-6."""
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 3, len(X)).astype(float)
    problem = Clustering(Dense(K.astype(dtype)), rng.integers(0, 12, len(X)), 12, w)
    inertia = [state.inertia for state in steps(Lloyd(), problem)]
    assert len(inertia) > 3
    assert np.all(np.diff(inertia) <= (1e-13 if dtype == np.float64 else 1e-6) * w.sum())


@pytest.mark.parametrize("k", [2, 3, 5, 8, 13])
def test_rows_on_a_grid_with_ties_everywhere_come_to_rest(k):
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    for operator in (LowRank(np.repeat(grid, 2, axis=0)), KernelOperator(Gaussian(0.05), np.repeat(grid, 2, axis=0))):
        for seed in range(4):
            start = np.random.default_rng(seed).integers(0, k, 128)
            problem = Clustering(operator, start, k)
            inertia = [state.inertia for state in steps(Lloyd(max_steps=100), problem)]
            assert len(inertia) < 100
            assert np.all(np.diff(inertia) <= 1e-13 * problem.diagonal.sum())


def test_moved_rows_alone_give_the_sums_of_all(rng):
    """Between two refreshments the sums are those of a whole pass, to rounding."""
    problem = Clustering(Dense(K), rng.integers(0, 7, len(X)), 7, rng.random(len(X)))
    ages = []
    for state in steps(Lloyd(refresh=100), problem):
        np.testing.assert_allclose(state.sums, problem.sums(problem.A, state.labels), rtol=1e-11, atol=1e-11)
        ages.append(state.age)
    assert max(ages) > 3
    assert ages[-1] == 0, "the last pass is a whole one"


@pytest.mark.parametrize("operator", ["stored", "tiles", "tiles, float32 first", "features"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_of_starts_is_the_best_of_each(operator, weighted, rng):
    """As if each start were gone through alone, with a fixed point of the exact operator at the end."""
    w = rng.random(len(X)) if weighted else np.ones(len(X))
    tiles, exact = KernelOperator(Gaussian(0.2), X), None
    A = {"stored": Dense(K), "tiles": tiles, "features": LowRank(X)}.get(operator, tiles.astype(np.float32))
    matrix = X @ X.T if operator == "features" else K
    if A.dtype == np.float32:
        exact = tiles
    rng = np.random.default_rng(5)
    starts = [((X[:, None] - X[rng.permutation(len(X))[:6]]) ** 2).sum(axis=2).argmin(axis=1) for _ in range(7)]
    problem = Clustering(A, starts[0], 6, w if weighted else None, exact)
    best = best_of_starts(Lloyd(), problem, iter(starts))
    assert best.status is Status.CONVERGED
    assert best.residual == 0.0
    assert best.state.checked
    alone = [brute_force(matrix, w, labels, 6) for labels in starts]
    inertia = [objectives[-1] for _, objectives in alone]
    assert max(inertia) > min(inertia) * (1 + 1e-6)
    assert best.x.inertia == pytest.approx(min(inertia), rel=1e-12)
    np.testing.assert_array_equal(best.x.labels, alone[int(np.argmin(inertia))][0])


def test_a_start_that_is_a_fixed_point_takes_one_step(rng):
    labels = brute_force(K, np.ones(len(X)), rng.integers(0, 5, len(X)), 5)[0]
    best = best_of_starts(Lloyd(max_steps=1), Clustering(Dense(K), labels, 5), [labels])
    assert (best.status, best.steps) == (Status.CONVERGED, 1)


def test_no_start_is_refused():
    with pytest.raises(InvalidInput, match="start"):
        best_of_starts(Lloyd(), Clustering(Dense(K), np.zeros(len(X), int), 2), [])


def test_an_empty_cluster_takes_the_farthest_row():
    rows = np.array([[0.0], [0.1], [0.2], [5.0], [9.0]])
    problem = Clustering(LowRank(rows), np.zeros(5, int), 3)
    solution = solve(Lloyd(), problem)
    groups = {frozenset(np.flatnonzero(solution.x.labels == c).tolist()) for c in range(3)}
    assert groups == {frozenset({0, 1, 2}), frozenset({3}), frozenset({4})}


def test_fewer_distinct_rows_than_clusters_leave_some_empty():
    rows = np.repeat([[0.0], [3.0]], 4, axis=0)
    solution = solve(Lloyd(), Clustering(LowRank(rows), np.zeros(8, int), 4))
    assert solution.status is Status.CONVERGED
    assert solution.x.inertia == 0.0
    assert np.sort(solution.x.sizes).tolist() == [0.0, 0.0, 4.0, 4.0]


def test_values_that_are_not_finite_end_it():
    bad = K.copy()
    bad[3, 4] = bad[4, 3] = np.nan
    assert solve(Lloyd(), Clustering(Dense(bad, symmetric=True), np.zeros(len(X), int), 2)).status is Status.NOT_FINITE


def test_a_step_limit_gives_the_labels_and_their_own_inertia(rng):
    w, start = np.ones(len(X)), rng.integers(0, 5, len(X))
    solution = solve(Lloyd(max_steps=2), Clustering(Dense(K), start, 5))
    assert solution.status is Status.MAX_STEPS
    assert solution.residual > 0
    expected = brute_force(K, w, start, 5)[1]
    assert solution.x.inertia == pytest.approx(expected[1], rel=1e-12)


def test_seeds_are_apart_and_do_not_depend_on_the_order_of_rows(rng):
    mean = K.mean(axis=1)
    problem = Clustering(Dense(K), np.zeros(len(X), int), 6)
    seeds = plus_plus(problem, np.argsort(mean), np.random.default_rng(3))
    assert len(set(seeds.rows.tolist())) == 6
    distance = np.diag(K)[:, None] + np.diag(K)[seeds.rows] - 2 * K[:, seeds.rows]
    np.testing.assert_array_equal(seeds.labels, distance.argmin(axis=1))
    p = rng.permutation(len(X))
    other = plus_plus(
        Clustering(Dense(K[np.ix_(p, p)]), np.zeros(len(X), int), 6), np.argsort(mean[p]), np.random.default_rng(3)
    )
    np.testing.assert_array_equal(p[other.rows], seeds.rows)


def test_seeds_are_better_than_random_ones(rng):
    far = np.concatenate([rng.standard_normal((50, 2)) + 40 * np.array([c % 3, c // 3]) for c in range(6)])
    problem = Clustering(LowRank(far), np.zeros(300, int), 6)
    order = np.argsort(far[:, 0])
    for seed in range(10):
        seeds = plus_plus(problem, order, np.random.default_rng(seed))
        assert len(set((seeds.rows // 50).tolist())) == 6, "one in each of six clouds that are far apart"


def test_rows_of_no_weight_are_never_seeds():
    w = np.ones(len(X))
    w[::2] = 0
    problem = Clustering(Dense(K), np.zeros(len(X), int), 100, w)
    seeds = plus_plus(problem, np.arange(len(X)), np.random.default_rng(0))
    assert len(seeds.rows) == 100
    assert np.all(w[seeds.rows] > 0)


def test_no_more_seeds_than_distinct_rows():
    rows = np.repeat([[0.0], [3.0], [4.0]], 5, axis=0)
    problem = Clustering(LowRank(rows), np.zeros(15, int), 8)
    assert len(plus_plus(problem, np.arange(15), np.random.default_rng(0)).rows) == 3


def test_problems_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match="symmetric"):
        Clustering(Dense(np.arange(4.0).reshape(2, 2)), np.zeros(2, int), 1)
    for labels in (np.zeros(3, int), np.zeros(len(X)), np.full(len(X), 2), np.full(len(X), -1)):
        with pytest.raises(InvalidInput, match="from 0 to k"):
            Clustering(Dense(K), labels, 2)
    with pytest.raises(InvalidInput, match="refresh"):
        Lloyd(refresh=0)
