"""Parameters that depend on data become numbers of the training rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.svm import SVC

from mercer.errors import InvalidInput
from mercer.kernels import (
    Cauchy,
    Chi2,
    Columns,
    Gaussian,
    Hamming,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from mercer.kernels.parameters import bandwidth
from mercer.kernels.parameters.bandwidth import median_distance, spread

RNG = np.random.default_rng(1)
X = RNG.normal(3.0, 2.0, (50, 4))
SQUARED = [Gaussian, RationalQuadratic, Cauchy, Polynomial, Sigmoid]


@pytest.mark.parametrize("cls", SQUARED)
def test_scale_is_scikit_learns(cls):
    theirs = SVC(gamma="scale").fit(X, X[:, 0] > 3)._gamma
    np.testing.assert_allclose(cls(gamma="scale").resolve(X).gamma, theirs, rtol=1e-13)
    theirs = SVC(gamma="scale").fit(sp.csr_matrix(X), X[:, 0] > 3)._gamma
    np.testing.assert_allclose(cls(gamma="scale").resolve(sp.csr_matrix(X)).gamma, theirs, rtol=1e-11)


def test_scale_of_lengths_and_counts():
    d, std = 4, X.std()
    for k, expected in [
        (Laplace(), 1 / np.sqrt(d * std**2)),
        (Laplace(norm=1), 1 / (d * std)),
        (Chi2(gamma="scale"), 1 / (d * std)),
        (Hamming(gamma="scale"), 1 / d),
    ]:
        np.testing.assert_allclose(k.resolve(X).gamma, expected, rtol=1e-13)
    np.testing.assert_allclose(Matern(length_scale="scale").resolve(X).length_scale, np.sqrt(d * std**2 / 2))


def test_median():
    H = np.abs(X).round()
    for k, rows, expected in [
        (Gaussian(gamma="median"), X, 1 / (2 * np.median(pdist(X)) ** 2)),
        (Polynomial(gamma="median"), X, 1 / (2 * np.median(pdist(X)) ** 2)),
        (Laplace(gamma="median"), X, 1 / np.median(pdist(X))),
        (Laplace(gamma="median", norm=1), X, 1 / np.median(pdist(X, "cityblock"))),
        (Hamming(gamma="median"), H, 1 / np.median((lambda m: m[m > 0])(pdist(H, "hamming") * 4))),
    ]:
        np.testing.assert_allclose(k.resolve(rows).gamma, expected, rtol=1e-12)
    assert Matern(length_scale="median").resolve(X).length_scale == pytest.approx(np.median(pdist(X)))
    assert Chi2(gamma="median").resolve(H).gamma == pytest.approx(1 / median_distance("chi2", H))


def test_the_median_distance_comes_out_as_its_own_bandwidth():
    assert Gaussian(gamma="median").resolve(X).gamma == pytest.approx(Gaussian.from_sigma(np.median(pdist(X))).gamma)


def test_units_cancel():
    """A rule makes the kernel independent of the unit of the data."""
    H = np.abs(X).round()
    for rule in ("scale", "median"):
        for k in (Gaussian(gamma=rule), Laplace(gamma=rule), Laplace(gamma=rule, norm=1), Chi2(gamma=rule),
                  Hamming(gamma=rule), Matern(length_scale=rule), RationalQuadratic(gamma=rule)):  # fmt: skip
            np.testing.assert_allclose(k(H), k(64 * H), rtol=1e-9)


@pytest.mark.parametrize("mean", [0.0, 1000.0])
def test_many_duplicates(mean, rng):
    """The median of all distances is 0, that of distinct rows is not (pitfall 12)."""
    rows = mean + np.repeat(rng.normal(size=(4, 3)), [40, 2, 2, 2], axis=0)
    assert np.median(pdist(rows)) == 0
    gamma = Gaussian(gamma="median").resolve(rows).gamma
    distances = pdist(rows)
    assert gamma == pytest.approx(1 / (2 * np.median(distances[distances > 0]) ** 2))
    sparse = Gaussian(gamma="median").resolve(sp.csr_matrix(rows)).gamma
    assert sparse == pytest.approx(gamma, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e10, -1e-5])
@pytest.mark.parametrize("rule", ["scale", "median"])
def test_constant_data(value, rule):
    for rows in (np.full((20, 3), value), np.full((1, 3), value), sp.csr_matrix(np.full((20, 3), value))):
        assert Gaussian(gamma=rule).resolve(rows).gamma == 1.0
        assert Laplace(gamma=rule).resolve(rows).gamma == 1.0
        assert Matern(length_scale=rule).resolve(rows).length_scale == pytest.approx(np.sqrt(0.5))


def test_median_of_one_row_falls_back_to_scale():
    row = np.array([[1.0, 2.0]])
    assert Gaussian(gamma="median").resolve(row) == Gaussian(gamma="scale").resolve(row)


def test_median_samples_all_rows_by_its_seed(rng):
    """The first rows are not a sample (pitfall 12)."""
    rows = np.repeat([[0.0], [1.0], [2.0]], 1000, axis=0) + 1e-3 * rng.normal(size=(3000, 1))
    k = Gaussian(gamma="median")
    assert k.resolve(rows) == k.resolve(rows)
    assert k.resolve(rows, random_state=1) != k.resolve(rows, random_state=2)
    assert median_distance("sqdist", rows) > 0.9
    assert np.median(pdist(rows[:1000])) < 0.01


def test_wide_data_do_not_cost_more(monkeypatch, rng):
    seen = []
    monkeypatch.setattr(bandwidth, "_WORK", 2e7)
    monkeypatch.setattr(bandwidth, "_distances", lambda kind, rows: seen.append(len(rows)) or pdist(rows))
    assert median_distance("sqdist", rng.normal(size=(300, 5000))) == pytest.approx(100, rel=0.01)
    assert seen == [63]


def test_spread():
    assert spread(X) == pytest.approx(X.std())
    assert spread(
        sp.random_array((30, 8), density=0.2, random_state=np.random.default_rng(0)).tocsr()
    ) == pytest.approx(sp.random_array((30, 8), density=0.2, random_state=np.random.default_rng(0)).toarray().std())
    assert spread(1e9 + X) == pytest.approx(X.std(), rel=1e-6)


@pytest.mark.parametrize("size", [1e160, 1e-170])
def test_data_without_a_bandwidth(size):
    rows = size * np.array([[1.0], [2.0]])
    with pytest.raises(InvalidInput, match="StandardScaler"):
        Gaussian().resolve(rows)


def test_float32_data_have_a_float64_bandwidth():
    narrow = (1000 + X).astype(np.float32)
    gamma = Gaussian().resolve(narrow).gamma
    assert gamma == pytest.approx(1 / (4 * narrow.astype(float).var()), rel=1e-12)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("rule", ["scale", "median"])
def test_weights_are_repetitions(rule, wrap, rng):
    """Weight 2 is a repeated row, weight 0 an absent one (pitfall 19)."""
    rows, weights = np.round(X[:20], 1), rng.integers(0, 3, 20)
    k = Gaussian(gamma=rule).on([0, 2]) + Matern(length_scale=rule)
    repeated = k.resolve(wrap(np.repeat(rows, weights, axis=0)))
    weighted = k.resolve(wrap(rows), sample_weight=weights)
    assert weighted.left.kernel.gamma == pytest.approx(repeated.left.kernel.gamma, rel=1e-9)
    assert weighted.right.length_scale == pytest.approx(repeated.right.length_scale, rel=1e-9)
    assert weighted.left.kernel.gamma != pytest.approx(k.resolve(wrap(rows)).left.kernel.gamma, rel=1e-9)
    with pytest.raises(InvalidInput, match="rows"):
        k.resolve(wrap(rows), sample_weight=np.zeros(20))


def test_absent_rows_are_not_sampled():
    rows, weights = np.repeat(X, 30, axis=0), np.zeros(1500)
    weights[:60] = 1
    k = Gaussian(gamma="median")
    assert k.resolve(1e6 * rows - 3, sample_weight=weights) == k.resolve((1e6 * rows - 3)[:60])


def test_resolve_goes_through_composites_and_views():
    k = 0.5 * Gaussian().on([2, 0]) + Laplace(gamma="median").with_length_scales([1, 2, 4, 8]) * Linear()
    r = k.resolve(X)
    assert r.is_resolved
    assert not k.is_resolved
    assert r.left.kernel.kernel == Gaussian().resolve(X[:, [2, 0]])
    assert r.right.left.kernel == Laplace(gamma="median").resolve(X / [1, 2, 4, 8])
    assert r.right.right is k.right.right


def test_resolved_kernels_come_back_as_they_are():
    for k in (Gaussian(gamma=1.0), Linear().on([0]) + Laplace(gamma=2.0)):
        assert k.resolve(X) is k
    assert (Gaussian() + Linear()).resolve(X).resolve(1e9 * X) == (Gaussian() + Linear()).resolve(X)


def test_call_resolves_on_its_own_rows():
    assert np.array_equal(Gaussian()(X), Gaussian().resolve(X)(X))
    assert np.array_equal(Gaussian()(X), Gaussian()(X, X))


def test_columns_by_name():
    pandas = pytest.importorskip("pandas", reason="data frames come from pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    k = Gaussian().on(["c", "a"])
    assert k.resolve(frame) == k.resolve(X, feature_names=frame.columns) == Gaussian().on([2, 0]).resolve(X)
    np.testing.assert_array_equal(k(frame), Gaussian().on([2, 0])(X))
    assert Linear().on("b").resolve(frame) == Linear().on(1)
    assert Linear().on(["b", 3]).resolve(frame) == Linear().on([1, 3])
    with pytest.raises(InvalidInput, match=r"'e' found 0 times; the columns are \['a'"):
        Linear().on("e").resolve(frame)
    with pytest.raises(InvalidInput, match="2 times"):
        Linear().on("a").resolve(X, feature_names=["a", "a", "b", "c"])
    with pytest.raises(InvalidInput, match="once"):
        Linear().on(["a", 0]).resolve(frame)


def test_names_inside_chosen_columns():
    names = ["a", "b", "c", "d"]
    nested = Gaussian().on("c").on(["d", "c"]).resolve(X, feature_names=names)
    assert nested.columns == (3, 2)
    assert nested.kernel == Gaussian().on([0]).resolve(X[:, [2]]).replace(columns=(1,))
    np.testing.assert_array_equal(nested(X), nested.kernel.kernel(Columns((2,)).apply(X)))
    with pytest.raises(InvalidInput, match="outer"):
        Linear().on("a").on(["d", "c"]).resolve(X, feature_names=names)
