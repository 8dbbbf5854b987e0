"""MMD, HSIC and herding against their definitions, and their p-values against what they promise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binom, kstest

import mercer
from mercer import herd, hsic_test, mmd_test, thin
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.hypotheses.permutations import permutation_p
from mercer.kernels import Function, Gaussian, Laplace, Linear

rng0 = np.random.default_rng(0)
X, Y = rng0.normal(size=(17, 3)), rng0.normal(size=(12, 3)) + 0.3
KERNEL = Gaussian(gamma=0.4)


def mmd2(X, Y, k, unbiased):
    """Written out, entry by entry."""
    m, n = len(X), len(Y)
    K = k(np.vstack([X, Y]))
    xx = sum(K[i, j] for i in range(m) for j in range(m) if i != j or not unbiased)
    yy = sum(K[m + i, m + j] for i in range(n) for j in range(n) if i != j or not unbiased)
    xy = sum(K[i, m + j] for i in range(m) for j in range(n))
    if unbiased:
        return xx / (m * (m - 1)) + yy / (n * (n - 1)) - 2 * xy / (m * n)
    return xx / m**2 + yy / n**2 - 2 * xy / (m * n)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_mmd_is_its_definition_for_every_permutation(estimator):
    found = mmd_test(X, Y, KERNEL, estimator=estimator, n_permutations=5, random_state=3)
    assert found.statistic == pytest.approx(mmd2(X, Y, KERNEL, estimator == "unbiased"), rel=1e-12)
    rng, both = np.random.default_rng(3), np.vstack([X, Y])
    for value in found.null:
        order = rng.permutation(len(both))
        first, rest = both[order[: len(X)]], both[np.setdiff1d(np.arange(len(both)), order[: len(X)])]
        assert value == pytest.approx(mmd2(first, rest, KERNEL, estimator == "unbiased"), rel=1e-9, abs=1e-13)
    assert found.p_value == permutation_p(found.statistic, found.null)


def test_linear_kernel_is_the_distance_of_the_means():
    found = mmd_test(X, Y, Linear(), estimator="biased", n_permutations=1)
    assert found.statistic == pytest.approx(np.sum((X.mean(axis=0) - Y.mean(axis=0)) ** 2))


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "linear"])
def test_mmd_of_rows_far_from_the_origin_keeps_its_digits(estimator):
    rng = np.random.default_rng(0)
    A, B = np.round(rng.normal(size=(200, 2)), 3), np.round(rng.normal(size=(220, 2)) + 0.3, 3)
    near, far = (mmd_test(A + at, B + at, Linear(), estimator=estimator, n_permutations=99) for at in (0.0, 1e6))
    assert far.p_value == near.p_value
    np.testing.assert_allclose(far.null, near.null, rtol=1e-6, atol=1e-6 * np.abs(near.null).max())


def test_linear_time_is_its_definition():
    found = mmd_test(X, Y, KERNEL, estimator="linear")
    k = lambda a, b: KERNEL(a[None], b[None])[0, 0]  # noqa: E731
    h = [
        k(X[i], X[i + 1]) + k(Y[i], Y[i + 1]) - k(X[i], Y[i + 1]) - k(X[i + 1], Y[i])
        for i in range(0, 2 * (12 // 2), 2)
    ]
    assert found.statistic == pytest.approx(np.mean(h))
    assert "6 pairs" in found.method


def hsic(K, L, unbiased):
    n = len(K)
    if not unbiased:
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H) / n**2
    # The mean over all quadruples of different rows (Song et al. 2012, equation 4).
    K, L = K - np.diag(np.diagonal(K)), L - np.diag(np.diagonal(L))
    one = np.ones(n)
    return (
        np.trace(K @ L) + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * one @ K @ L @ one
    ) / (n * (n - 3))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_hsic_is_its_definition_for_every_permutation(estimator):
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(15, 2)), rng.normal(size=(15, 1))
    other = Laplace(gamma=0.7)
    found = hsic_test(A, B, KERNEL, other, estimator=estimator, n_permutations=4, random_state=8)
    K, L = KERNEL(A), other(B)
    assert found.statistic == pytest.approx(hsic(K, L, estimator == "unbiased"), rel=1e-12)
    rng = np.random.default_rng(8)
    for value in found.null:
        order = rng.permutation(15)
        assert value == pytest.approx(hsic(K, L[np.ix_(order, order)], estimator == "unbiased"), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_hsic_keeps_the_digits_of_large_values_that_differ_by_little(estimator):
    rng = np.random.default_rng(0)
    t = rng.normal(size=(100, 1))
    y = 0.5 * t + rng.normal(size=(100, 1))
    far = hsic_test(2e4 + t, 1e5 + y, Linear(), Linear(), estimator=estimator, n_permutations=199)
    assert far.statistic == pytest.approx(hsic(t @ t.T, y @ y.T, estimator == "unbiased"), rel=1e-6)
    flat = hsic_test(t, y, Gaussian(1e-6), Gaussian(1e-6), estimator=estimator, n_permutations=199)
    K, L = (np.expm1(-1e-6 * (x - x.T) ** 2) for x in (t, y))  # HKH of K less 1
    H = np.eye(100) - 1 / 100
    if estimator == "unbiased":
        assert flat.statistic == pytest.approx(hsic(K, L, True), rel=1e-6)
    else:
        assert flat.statistic == pytest.approx(hsic(H @ K @ H, H @ L @ H, False), rel=1e-6)
    assert far.p_value == flat.p_value == 0.005


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("at", [1e3 / 3, 1e4 / 3, 1e5 / 3])
def test_hsic_counts_permutations_that_change_nothing_as_ties(estimator, at):
    x, y = np.repeat([0.0, 1.0], [3, 5]), np.array([0.0, 0, 0, 0, 1, 1, 1, 1])
    near, far = (hsic_test(x + o, y + o, Linear(), Linear(), estimator=estimator) for o in (0.0, at))
    assert far.p_value == near.p_value > 0.1


def test_unbiased_hsic_is_the_mean_over_quadruples():
    rng = np.random.default_rng(4)
    A, B = rng.normal(size=(6, 1)), rng.normal(size=(6, 1))
    K, L, n = KERNEL(A), KERNEL(B), 6
    total, count = 0.0, 0
    for i in range(n):
        for j in range(n):
            for q in range(n):
                for r in range(n):
                    if len({i, j, q, r}) == 4:
                        total += K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q])
                        count += 1
    assert hsic_test(A, B, KERNEL, KERNEL, estimator="unbiased").statistic == pytest.approx(total / count)


LAWS = {
    "normal": lambda rng, n: rng.normal(size=(n, 1)),
    "heavy": lambda rng, n: rng.standard_cauchy((n, 1)),
    "skew": lambda rng, n: rng.exponential(size=(n, 2)) ** 3,
    "coins": lambda rng, n: rng.integers(0, 2, (n, 1)).astype(float),
    "rare": lambda rng, n: (rng.random((n, 1)) < 0.5 / n) * 1.0,
    "float32": lambda rng, n: (100 + rng.exponential(size=(n, 1))).astype(np.float32),
}
TESTS = {
    "linear": lambda x, y, **how: mmd_test(x, y, "0.1*gaussian(gamma=0.5)", estimator="linear", **how),
    "linear, dot": lambda x, y, **how: mmd_test(x, y, Linear(), estimator="linear", **how),
    "biased": lambda x, y, **how: mmd_test(x, y[: 2 + len(y) // 2], estimator="biased", **how),
    "unbiased": lambda x, y, **how: mmd_test(x, y, "0.1*gaussian()", **how),
    "hsic": lambda x, y, **how: hsic_test(x, y, **how),
    "hsic, unbiased": lambda x, y, **how: hsic_test(x, y, "0.1*gaussian()", Linear(), estimator="unbiased", **how),
}


def assert_calibrated(test, law, n, trials, seed):
    """No level is exceeded beyond chance. Discrete p-values may stay below it."""
    rng = np.random.default_rng(seed)
    p = np.array([TESTS[test](LAWS[law](rng, n), LAWS[law](rng, n), random_state=i).p_value for i in range(trials)])
    for level in (0.001, 0.05):
        assert np.count_nonzero(p <= level) <= binom.ppf(1 - 1e-6, trials, level), (level, test, law, n)
    return p


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n", [4, 10])
@pytest.mark.parametrize("law", ["heavy", "rare", "float32"])
def test_few_rows_are_no_more_evidence_than_they_say(test, n, law):
    assert_calibrated(test, law, n, 60 if test == "linear" else 25, 5)


def test_few_pairs_are_no_more_evidence_than_they_say():
    """Of two pairs the smallest p-value is 1/4; by a normal law one in twelve was below 0.001."""
    p = assert_calibrated("linear", "normal", 4, 250, 3)
    assert p.min() == 0.25
    assert assert_calibrated("linear", "normal", 24, 250, 4).min() < 0.05


@pytest.mark.soak
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "trials"), [(4, 1000), (10, 600), (100, 200), (1000, 20)])
def test_every_test_holds_its_levels(test, law, n, trials):
    assert_calibrated(test, law, n, trials, n)


TRIALS, LEVEL = 300, 0.1
BOUNDS = binom.ppf([0.0005, 0.9995], TRIALS, LEVEL)


def rejections(p_values):
    return int(np.count_nonzero(np.array(p_values) <= LEVEL))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_mmd_is_calibrated(estimator):
    rng = np.random.default_rng(5)
    p = [
        mmd_test(
            rng.exponential(size=(14, 2)),
            rng.exponential(size=(10, 2)),
            estimator=estimator,
            n_permutations=59,
            random_state=i,
        ).p_value
        for i in range(TRIALS)
    ]
    assert BOUNDS[0] <= rejections(p) <= BOUNDS[1]
    assert kstest(p, "uniform").statistic < 0.12


def test_linear_time_mmd_is_calibrated():
    rng = np.random.default_rng(6)
    p = [
        mmd_test(rng.normal(size=(400, 1)), rng.normal(size=(400, 1)), Gaussian(gamma=0.5), estimator="linear").p_value
        for _ in range(TRIALS)
    ]
    assert BOUNDS[0] <= rejections(p) <= BOUNDS[1]


def test_hsic_is_calibrated():
    rng = np.random.default_rng(7)
    p = [
        hsic_test(rng.exponential(size=(16, 1)), rng.normal(size=(16, 2)), n_permutations=59, random_state=i).p_value
        for i in range(TRIALS)
    ]
    assert BOUNDS[0] <= rejections(p) <= BOUNDS[1]


def test_power():
    rng = np.random.default_rng(8)
    A = rng.normal(size=(150, 1))
    assert mmd_test(A, rng.laplace(scale=1.5, size=(150, 1)), n_permutations=199).p_value < 0.02
    one, other, kernel = rng.normal(size=(3000, 1)), rng.normal(size=(3000, 1)) + 1.0, Gaussian(gamma=0.5)
    exact = 2 / np.sqrt(3) * (1 - np.exp(-1 / 6))  # of two normal laws a standard deviation apart
    for estimator, error in (("linear", 0.06), ("unbiased", 0.015)):
        found = mmd_test(one, other, kernel, estimator=estimator, n_permutations=19)
        assert found.statistic == pytest.approx(exact, abs=error)
        assert found.p_value <= 0.05
    angle = rng.uniform(0, 2 * np.pi, 100)
    circle = hsic_test(np.cos(angle)[:, None], np.sin(angle)[:, None], n_permutations=199)
    assert abs(np.corrcoef(np.cos(angle), np.sin(angle))[0, 1]) < 0.2
    assert circle.p_value == 1 / 200


def test_where_rounding_alone_makes_p_one_it_is_said():
    """Terms of 10²⁵ whose sums may be off by 10¹², beside statistics of 10¹¹: p = 1, once without a word."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)) + 1e6, rng.normal(size=(50, 3)) + 1e6 + 0.3
    with pytest.warns(UserWarning, match="mmd_test: kernel values of .* that differ by .* subtract the mean"):
        assert mmd_test(X, Y, "polynomial(degree=2)", n_permutations=99).p_value == 1.0
    assert mmd_test(X - 1e6, Y - 1e6, "polynomial(degree=2)", n_permutations=99).p_value < 0.5


def test_samples_that_are_all_the_same_are_no_evidence():
    same = np.ones((5, 2))
    assert mmd_test(same, same).p_value == 1.0
    assert mmd_test(same, same, Gaussian(gamma=1.0), estimator="linear").p_value == 1.0
    assert hsic_test(same, same, Gaussian(gamma=1.0), Gaussian(gamma=1.0)).p_value == 1.0


@pytest.mark.parametrize("kernel", ["0.1*gaussian(gamma=1.0)", "0.3*linear()"])
def test_rounding_of_equal_rows_is_no_evidence(kernel):
    """Sums of a hundred terms 0.1 differ by their order, and the observed order is not like the others."""
    same, varied = np.full((100, 2), 0.3), np.random.default_rng(0).normal(size=(100, 1))
    for estimator in ("linear", "unbiased", "biased"):
        assert mmd_test(same, same[1:], kernel, estimator=estimator, n_permutations=99).p_value == 1.0
    for estimator in ("unbiased", "biased"):
        assert hsic_test(varied, same, KERNEL, kernel, estimator=estimator, n_permutations=99).p_value == 1.0


def test_frames_sparse_rows_float32_and_objects():
    expected = mmd_test(X, Y, KERNEL, n_permutations=20)
    for form in (pd.DataFrame, sp.csr_array, np.ndarray.tolist):
        found = mmd_test(form(X), form(Y), KERNEL, n_permutations=20)
        np.testing.assert_allclose(found.null, expected.null, rtol=1e-9, atol=1e-14)
    narrow = mmd_test(X.astype(np.float32), Y.astype(np.float32), KERNEL, n_permutations=20)
    np.testing.assert_allclose(narrow.null, expected.null, atol=1e-6)
    shared = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    words = mmd_test(["ab", "abc", "ba"] * 5, ["xy", "xyz", "yz"] * 5, shared, n_permutations=99)
    assert words.p_value == 0.01
    assert hsic_test(["ab", "abc", "xy", "xyz"] * 5, [[0.0], [0.0], [1.0], [1.0]] * 5, shared).p_value < 0.01
    assert "p = 0.01" in str(words)


def test_single_numbers_are_one_column():
    x, y = X[:, 0], X[:, 1] ** 2
    expected = hsic_test(X[:, :1], y[:, None], KERNEL, KERNEL, n_permutations=9).null
    for form in (np.asarray, list, pd.Series):
        np.testing.assert_array_equal(hsic_test(X[:, :1], form(y), KERNEL, KERNEL, n_permutations=9).null, expected)
    np.testing.assert_array_equal(hsic_test(x, y, KERNEL, KERNEL, n_permutations=9).null, expected)
    np.testing.assert_array_equal(
        mmd_test(x, list(y), KERNEL, n_permutations=9).null,
        mmd_test(X[:, :1], y[:, None], KERNEL, n_permutations=9).null,
    )


def test_bad_use():
    with pytest.raises(InvalidInput, match="estimator"):
        mmd_test(X, Y, estimator="best")
    with pytest.raises(InvalidInput, match="at least 2 points"):
        mmd_test(X, Y[:1])
    with pytest.raises(InvalidInput, match="columns"):
        mmd_test(X, Y[:, :2])
    with pytest.raises(InvalidInput, match="Precomputed"):
        mmd_test(KERNEL(X), KERNEL(X), "precomputed")
    with pytest.raises(InvalidInput, match="n_permutations"):
        mmd_test(X, Y, n_permutations=0)
    with pytest.raises(InvalidInput, match="rows"):
        hsic_test(X, Y)
    with pytest.raises(MemoryExceeded):
        hsic_test(X, X, memory=100)
    with pytest.raises(MemoryExceeded, match="999 permutations"):
        mmd_test(X, Y, memory="10kB")
    assert mmd_test(X, Y, estimator="linear", memory=100).p_value > 0
    with pytest.raises(InvalidInput, match="n_points"):
        herd(X, 18)
    with pytest.raises(InvalidInput, match="n_points"):
        thin(X, 18)
    with pytest.raises(InvalidInput, match="delta"):
        thin(X, 4, delta=0.0)
    with pytest.raises(InvalidInput, match="sample_weight"):
        herd(X, 2, sample_weight=np.full(17, -1.0))


# ---- herding ---------------------------------------------------------------------------------------------------------


def distance(K, chosen, w):
    v = np.bincount(chosen, minlength=len(K)) / len(chosen) - w
    return np.sqrt(max(v @ K @ v, 0.0))


@pytest.mark.parametrize("kernel", [KERNEL, Linear() + 1.0])
@pytest.mark.parametrize("replace", [False, True])
def test_each_point_is_the_best_next_one(kernel, replace):
    w = np.random.default_rng(2).uniform(size=17)
    w[3] = 0.0
    found = herd(X, 9, kernel, sample_weight=w, replace=replace)
    K, w = kernel(X), w / w.sum()
    for t in range(9):
        before = list(found.indices[:t])
        options = [i for i in range(17) if w[i] > 0 and (replace or i not in before)]
        best = min(distance(K, [*before, i], w) for i in options)
        assert found.mmd[t] == pytest.approx(best, abs=1e-9)
        assert distance(K, found.indices[: t + 1], w) == pytest.approx(best, abs=1e-9)
    assert 3 not in found.indices


def test_weights_are_repetitions_and_the_herd_beats_a_random_sample():
    w = np.arange(17) % 3
    twice = herd(np.repeat(X, w, axis=0), 6, KERNEL, replace=True)
    np.testing.assert_allclose(herd(X, 6, KERNEL, sample_weight=w, replace=True).mmd, twice.mmd, atol=1e-9)
    many = np.random.default_rng(3).normal(size=(600, 2))
    K = KERNEL(many)
    random = np.mean([distance(K, np.random.default_rng(i).choice(600, 25, replace=False), 1 / 600) for i in range(20)])
    assert mercer.herd(many, 25, KERNEL).mmd[-1] < 0.3 * random
    assert herd(X, 17, KERNEL).mmd[-1] == pytest.approx(0.0, abs=1e-7)


def test_thinning_beats_a_random_sample_and_is_what_it_says():
    many = np.random.default_rng(9).normal(size=(700, 2))
    K, w = KERNEL(many), np.full(700, 1 / 700)
    found = [thin(many, 40, KERNEL, random_state=seed) for seed in range(3)]
    for one in found:
        assert len(set(one.indices.tolist())) == 40
        assert one.mmd[-1] == pytest.approx(distance(K, one.indices, w), abs=1e-9)
    random = np.mean([distance(K, np.random.default_rng(i).choice(700, 40, replace=False), w) for i in range(20)])
    assert max(one.mmd[-1] for one in found) < 0.2 * random
    assert thin(many[:50], 50, KERNEL).mmd[-1] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("shift", [1e5, 1e8])
def test_a_large_mean_costs_no_digits_with_the_linear_kernel(shift):
    """The rows are whole numbers, so that the shifted ones are exact."""
    rows = np.random.default_rng(0).integers(-50, 50, (60, 2)).astype(float)
    w = np.full(60, 1 / 60)
    near, far = herd(rows, 6, "linear"), herd(rows + shift, 6, "linear")
    np.testing.assert_array_equal(near.indices, far.indices)
    K = (rows - rows.mean(axis=0)) @ (rows - rows.mean(axis=0)).T
    np.testing.assert_allclose(far.mmd, [distance(K, far.indices[: t + 1], w) for t in range(6)], atol=1e-6)
    thinned = thin(rows + shift, 8, "linear")
    assert thinned.mmd[-1] == pytest.approx(distance(K, thinned.indices, w), abs=1e-6)
    for estimator in ("biased", "unbiased"):
        moved, kept = (
            hsic_test(rows[:, :1] + by, rows[:, 1:], Linear(), Linear(), estimator=estimator, n_permutations=19)
            for by in (shift, 0.0)
        )
        assert moved.statistic == pytest.approx(kept.statistic, rel=1e-9)


def test_halving_alone_balances_better_than_a_coin():
    from mercer import KernelOperator
    from mercer.hypotheses.thinning import _halved

    many = np.random.default_rng(10).normal(size=(512, 2))
    K, w, operator = KERNEL(many), np.full(512, 1 / 512), KernelOperator(KERNEL, many)
    halves, coins = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        halves.append(distance(K, _halved(operator, rng.permutation(512), 0.5, rng), w))
        coins.append(distance(K, rng.choice(512, 256, replace=False), w))
    assert np.mean(halves) < 0.6 * np.mean(coins)
    # Equal rows: which of them is kept makes no difference, and no division by 0.
    same = KernelOperator(KERNEL, np.ones((8, 2)))
    assert len(_halved(same, np.arange(8), 0.5, np.random.default_rng(0))) == 4


def test_kernels_of_tables():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=30), "colour": rng.choice(["red", "blue"], 30)})
    other = frame.assign(size=frame["size"] + 3.0)
    k = mercer.table_kernel(pd.concat([frame, other]))
    assert mmd_test(frame, other, k, n_permutations=99).p_value == 0.01
    wanted = mmd2(k.rows(frame), k.rows(other), k.vector_kernel, unbiased=True)
    assert mmd_test(frame, other, k, n_permutations=9).statistic == pytest.approx(wanted)
    assert hsic_test(frame, other, k, k, n_permutations=99).p_value == 0.01
    assert len(herd(frame, 3, k).indices) == 3


def test_columns_in_another_order_are_refused():
    rng = np.random.default_rng(0)
    A, B = (pd.DataFrame({"a": rng.normal(size=40), "b": 3 + 5 * rng.normal(size=40)}) for _ in range(2))
    with pytest.raises(InvalidInput, match="mmd_test: two tables with the column 'a' in different places"):
        mmd_test(A, B[["b", "a"]])
    other = B.rename(columns={"a": "x", "b": "y"})
    assert mmd_test(A, other).p_value == mmd_test(A, B).p_value == mmd_test(A.to_numpy(), B.to_numpy()).p_value


@pytest.mark.parametrize("kernel", ["gaussian", "gaussian(gamma='median')", "linear"])
def test_rows_of_weight_0_are_absent_from_a_herd(kernel):
    def width(found):
        return found.kernel.get_params(deep=False)

    X, w = np.random.default_rng(0).normal(size=(60, 3)), np.ones(60)
    w[:10], X[:10] = 0, X[:10] * 1000 + 1e12 * (kernel == "linear")
    given, wanted = herd(X, 4, kernel, sample_weight=w), herd(X[10:], 4, kernel)
    assert width(given) == pytest.approx(width(wanted))
    np.testing.assert_array_equal(given.indices, wanted.indices + 10)
    np.testing.assert_allclose(given.mmd, wanted.mmd, rtol=1e-9)
    twice = herd(X[10:], 4, kernel, sample_weight=np.full(50, 2.0))
    assert width(twice) == pytest.approx(width(herd(np.tile(X[10:], (2, 1)), 4, kernel)))


def test_single_values_of_any_kind_are_one_column():
    X = np.random.default_rng(0).normal(size=(30, 2))
    positive = X[:, 0] > 0
    wanted = hsic_test(X, positive.astype(int), kernel_y="hamming").statistic
    names = np.where(positive, "a", "b")
    for labels in (names, names.astype(object), names.tolist(), pd.Series(names), list(positive), positive):
        assert hsic_test(X, labels, kernel_y="hamming").statistic == wanted
    assert mmd_test(range(20), list(range(20))).statistic == mmd_test(np.arange(20.0), np.arange(20.0)).statistic
    with pytest.raises(InvalidInput, match="Python objects"):  # as texts 1 and 1.0 would be two classes
        hsic_test(X, np.where(positive, 1, 1.0).astype(object), kernel_y="hamming")
    with pytest.raises(InvalidInput, match="text; encode it"):
        hsic_test(X, names)
    with pytest.raises(InvalidInput, match="text; encode it"):  # codes of each sample would call other names equal
        mmd_test(["a", "b"] * 9, ["b", "c"] * 9, "hamming")
    with pytest.raises(InvalidInput, match="rows of equal length"):
        mmd_test([[1.0], [2.0, 3.0]] * 9, X)
    with pytest.raises(InvalidInput, match="n_points=1 of 0 rows"):
        herd([], 1, lambda x, z: np.ones((len(x), len(z))))
