"""The search gives the scores of an honest loop over estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from mercer import KernelRidge, KernelRidgeClassifier
from mercer.errors import InvalidInput
from mercer.factorizations import RidgeBand, RidgeSpectrum, band
from mercer.gram import KernelOperator
from mercer.kernels import Constant, Gaussian, Laplace, Linear
from mercer.select import (
    cross_validate_ridge,
    default_alphas,
    default_kernels,
    default_sequence_kernels,
    held_out,
    r2,
    ridge,
)
from mercer.select.ridge import _folds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = 5 + np.sin(X[:, 0]) + 0.1 * RNG.normal(size=90)
LABELS = np.where(X[:, 0] + 0.5 * RNG.normal(size=90) > 0, "b", np.where(X[:, 1] > 0, "a", "c"))
ALPHAS = [1e-3, 0.1, 10.0]
KERNELS = [Linear(), Gaussian(gamma=0.3), Laplace(gamma=0.2, norm=1)]


def honest(kernel, alpha, y, folds, task, intercept):
    scores = []
    for fold in folds:
        train = np.setdiff1d(np.arange(len(y)), fold)
        cls = KernelRidgeClassifier if task == "classification" else KernelRidge
        model = cls(kernel, alpha, fit_intercept=intercept).fit(X[train], y[train])
        predicted = model.predict(X[fold])
        scores.append(np.mean(predicted == y[fold]) if task == "classification" else r2_score(y[fold], predicted))
    return np.mean(scores), np.std(scores)


@pytest.mark.parametrize("way", ["eigenvectors", "band", "together"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("case", ["regression", "two targets", "classification", "two classes"])
def test_the_scores_are_those_of_an_honest_loop(case, intercept, way, monkeypatch):
    """By eigenvectors and, as of many rows, by a band or by steps for all folds and α together."""
    monkeypatch.setattr(band, "WORTHWHILE", 1 if way == "band" else len(X) + 1)
    monkeypatch.setattr(held_out, "LARGE", 50 if way == "together" else len(X))
    monkeypatch.setattr(held_out, "_one_decomposition_pays", lambda *_: way != "together")
    taken = {"eigenvectors": (RidgeSpectrum, "of"), "band": (RidgeBand, "of"), "together": (held_out, "_Together")}
    for other in taken.keys() - {way}:
        monkeypatch.setattr(*taken[other], None)
    task = "classification" if "class" in case else "regression"
    y = {"regression": Y, "two targets": np.column_stack([Y, X[:, 1] ** 2]), "classification": LABELS}.get(
        case, LABELS == "b"
    )
    search = cross_validate_ridge(X, y, KERNELS, ALPHAS, task=task, random_state=3, fit_intercept=intercept)
    groups = np.unique(y, return_inverse=True)[1] if task == "classification" else None
    folds = _folds(groups, len(y), 5, 3)
    assert len(search.table) == len(KERNELS) * len(ALPHAS)
    by_text = {repr(kernel): kernel for kernel in KERNELS}
    for row in search.table:
        mean, std = honest(by_text[row.kernel], row.alpha, y, folds, task, intercept)
        np.testing.assert_allclose([row.mean, row.std], [mean, std], atol=1e-6 if way == "together" else 1e-8)
    assert search.best_score == max(row.mean for row in search.table) or search.table[0].mean == search.best_score


def test_an_indefinite_or_singular_matrix_is_the_nearest_semidefinite_one(monkeypatch):
    """The first is not solved as it stands, and of the second α is rounding."""
    values, vectors = np.linalg.eigh(np.tanh(2.0 * X @ X.T - 1.0))
    nearest, folds = (vectors * np.maximum(values, 0.0)) @ vectors.T, _folds(None, 90, 5, 0)
    solved, found = held_out.held_out_predictions, []
    monkeypatch.setattr(
        ridge, "held_out_predictions", lambda *given, **_: found.append(solved(*given, **_)) or found[0]
    )
    (row,) = cross_validate_ridge(X, Y, ["tanh(2.0 * dot - 1.0)"], [0.1], fit_intercept=False).table
    assert not found
    scores = []
    for fold in folds:
        rest = np.setdiff1d(np.arange(90), fold)
        model = KernelRidge("precomputed", 0.1).fit(nearest[np.ix_(rest, rest)], Y[rest])
        scores.append(r2_score(Y[fold], model.predict(nearest[np.ix_(fold, rest)])))
    assert row.mean == pytest.approx(np.mean(scores), abs=1e-6)
    (row,) = cross_validate_ridge(1e9 * X, Y, ["linear"], [1e-4]).table
    assert np.isnan(found[0]).any()
    assert np.isfinite(row.mean)


def test_folds_part_the_rows_and_keep_the_classes():
    groups = np.repeat([0, 1], [80, 10])
    folds = _folds(groups, 90, 5, 0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(90))
    assert [int((groups[fold] == 1).sum()) for fold in folds] == [2] * 5


def test_a_sample_is_seeded_and_keeps_the_classes():
    y = np.repeat(["rare", "common"], [9, 81])
    one, two = (cross_validate_ridge(X, y, ["linear"], [1.0], task="classification", sample=30) for _ in range(2))
    assert one.sample_size == 30
    assert one.table == two.table


def test_ties_go_to_the_first_kernel_and_the_larger_alpha():
    y = np.where(X[:, 0] > 0, 1, 0)
    shifted = X + 10 * y[:, None]  # any of them is perfect
    search = cross_validate_ridge(
        shifted, y, ["gaussian(gamma=0.01)", "gaussian(gamma=0.02)"], [1e-3, 1e-2, 1e-1], task="classification"
    )
    assert search.best_score == 1.0
    assert search.best_kernel == Gaussian(gamma=0.01)
    assert search.best_alpha == 0.1


def test_a_winner_on_the_border_is_said(rng):
    smallest = cross_validate_ridge(X, X[:, 0], ["linear"], [1e-2, 1.0])
    assert "smallest" in smallest.notes[0]
    largest = cross_validate_ridge(X, rng.normal(size=90), ["gaussian(gamma=1.0)"], [1e-2, 1.0])
    assert "largest" in largest.notes[0]
    assert not cross_validate_ridge(X, Y, ["gaussian(gamma=0.3)"], [1.0]).notes


def test_screening_keeps_the_best_of_each_family():
    kernels = [
        Linear(),
        *(Gaussian(gamma=g) for g in (0.01, 0.3, 100.0)),
        Laplace(gamma=0.2),
        Laplace(gamma=0.2, norm=1),
    ]
    search = cross_validate_ridge(X, Y, kernels, default_alphas(), screen=45)
    whole = {row.kernel for row in search.table if row.rows == 90}
    assert len(whole) == 4
    assert sum("Gaussian" in kernel for kernel in whole) == 1
    assert {row.rows for row in search.table} == {45, 90}
    assert search.table[0].rows == 90
    assert len(search.best_of_each_kernel()) == len(kernels)
    assert {row.kernel for row in search.screened} == whole
    assert {row.rows for row in search.screened} == {45}


def test_rules_are_resolved_and_singular_kernels_survive():
    search = cross_validate_ridge(X, Y, [Gaussian(gamma="median"), Constant(1.0)], [1e-6, 1.0])
    assert search.best_kernel.is_resolved
    assert all(np.isfinite(row.mean) for row in search.table)


def test_kernels_of_sequences_by_default_count_what_length_brings():
    """A value for each character, as in molecules: normalised kernels tell compositions, and not how many there are."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("CNO"), rng.integers(3, 30))) for _ in range(80)]
    y = np.array([text.count("C") - 2 * text.count("O") for text in texts], float)
    kernels = default_sequence_kernels(texts)
    search = cross_validate_ridge(texts, y, kernels, default_alphas())
    assert repr(search.best_kernel).endswith("* Spectrum(k=1)")
    normalised = max(one.mean for one in search.best_of_each_kernel() if "+" not in one.kernel)
    assert 0.999 < search.best_score > normalised + 0.05
    assert KernelOperator(kernels[-1], texts).diagonal().mean() == pytest.approx(2, abs=1e-5)
    assert "GappedKmer(g=4, k=2) + Spectrum(k=1)" in repr(default_sequence_kernels(["", ""]))


def test_default_kernels():
    kernels = default_kernels(X)
    assert len(set(kernels)) == len(kernels)
    assert all(kernel.is_resolved for kernel in kernels)
    assert default_kernels(np.ones((5, 2)))  # no distances at all


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alphas": [0.0]}, "positive"),
        ({"alphas": []}, "positive"),
        ({"alphas": [np.nan]}, "positive"),
        ({"kernels": []}, "no kernel"),
        ({"folds": 1}, "two folds"),
        ({"folds": 60}, "two folds"),
        ({"y": np.full(90, np.nan)}, "not finite"),
        ({"y": Y[:5]}, "90 rows and 5 targets"),
        ({"y": np.zeros(90), "task": "classification"}, "one class"),
    ],
)
def test_bad_input(options, words):
    given = {"y": Y, "kernels": ["linear"], "alphas": [1.0]} | options
    with pytest.raises(InvalidInput, match=words):
        cross_validate_ridge(X, given.pop("y"), given.pop("kernels"), given.pop("alphas"), **given)


def test_rivals_are_the_kernels_that_the_folds_do_not_tell_apart(rng):
    X = rng.standard_normal((80, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(80)
    search = cross_validate_ridge(X, y, [Gaussian(0.5), Gaussian(0.6), Gaussian(1e4)], [0.1, 1.0])
    close = {Gaussian(0.5), Gaussian(0.6)}
    assert search.rivals[0] == search.best_kernel
    assert set(search.rivals) == close
    best = search.table[0]
    left = next(row for row in search.table if row.kernel == repr(Gaussian(1e4)))
    assert left.mean < best.mean - best.std


def test_rows_far_from_the_origin_are_told():
    with pytest.warns(UserWarning, match=r"cross_validate_ridge with Linear\(\): .* keeps no digit") as told:
        cross_validate_ridge(X + 1e8, Y, ["linear"], [0.1])
    assert {one.filename for one in told} == {__file__}


def test_the_rounding_of_a_mean_is_no_spread_of_targets():
    y = np.column_stack([Y, np.full(90, 0.1)])
    varied, both = (cross_validate_ridge(X, t, [Gaussian(0.3)], [0.1]).best_score for t in (Y, y))
    assert both in (pytest.approx(varied / 2), pytest.approx((varied + 1) / 2))
    w = np.r_[0.0, np.ones(8)]
    assert r2(np.r_[5.0, np.full(8, 0.1)][:, None], np.full((9, 1, 1), 0.2), w).tolist() == [[0.0]]
