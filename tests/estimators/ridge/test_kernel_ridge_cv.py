"""Leave-one-out, generalised cross-validation and folds against honest refits; λ per target; what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

from mercer import KernelRidge, KernelRidgeClassifier, KernelRidgeClassifierCV, KernelRidgeCV, RepairedKernel
from mercer.engine import backend
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.estimators.ridge import least_squares, validated
from mercer.kernels import Constant, Gaussian, Linear, Precomputed, Sigmoid, Spectrum
from mercer.planning.machine import Machine
from mercer.select import RidgeSpectrum, held_out
from mercer.testing import assert_close
from mercer.ways import spectral

KERNEL = Gaussian(gamma=0.1)


@pytest.fixture
def data():
    X, y = load_diabetes(return_X_y=True)
    return X[:200] * 20, y[:200] / 50


@pytest.fixture
def weights():
    return np.random.default_rng(0).uniform(0.2, 3.0, 200)


def refitted(X, y, w, kernel=KERNEL, **options):
    """What n models, each fitted without one row, predict for it."""
    out = np.empty(y.shape)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = KernelRidge(kernel, **options).fit(X[rest], y[rest], None if w is None else w[rest])
        out[i] = model.predict(X[i : i + 1])[0]
    return out


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_on_landmarks_is_that_of_refits_on_the_same(data, weights, intercept):
    (X, y), w = data, np.where(np.arange(200) % 40, weights, 0.0)
    options = {"fit_intercept": intercept, "solver": "nystroem"}
    model = KernelRidgeCV(KERNEL, [0.05, 5.0], n_landmarks=20, store_cv_results=True, **options).fit(X, y, w)
    predictions, some = model.cv_results_["predictions"][0], [3, 40, 81]  # 40 has no weight
    for i in some:
        rest = np.where(np.arange(200) == i, 0.0, w)
        one = KernelRidge(KERNEL, 0.05, landmarks=model.X_fit_, **options).fit(X, y, rest)
        np.testing.assert_allclose(predictions[i], one.predict(X[i : i + 1])[0], rtol=0, atol=1e-8)
    whole = KernelRidge(KERNEL, model.alpha_, landmarks=model.X_fit_, **options).fit(X, y, w)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-10)
    assert model.restricted_
    assert model.report_.rank == 20


# ---- against brute force ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_that_of_n_refits(data, weights, intercept, weighted):
    (X, y), w = data, weights if weighted else None
    model = KernelRidgeCV(KERNEL, [0.05, 5.0], fit_intercept=intercept, store_cv_results=True).fit(X, y, w)
    honest = refitted(X, y, w, alpha=0.05, fit_intercept=intercept)
    results = model.cv_results_
    np.testing.assert_allclose(results["predictions"][0], honest, rtol=0, atol=1e-8)
    assert_close(results["score"][0], -np.average((y - honest) ** 2, weights=w), rtol=1e-8)
    chosen = results["predictions"][results["alpha"] == model.alpha_][0]
    np.testing.assert_array_equal(model.loo_predictions_, chosen)


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_of_weight_0_have_predictions_of_the_model(data, weights, intercept):
    (X, y), w = data, weights.copy()
    w[[0, 7, len(w) - 1]] = 0.0
    absent = w == 0
    model = KernelRidgeCV(KERNEL, [0.05, 5.0], fit_intercept=intercept, store_cv_results=True).fit(X, y, w)
    rest = KernelRidgeCV(KERNEL, [0.05, 5.0], fit_intercept=intercept).fit(X[~absent], y[~absent], w[~absent])
    assert model.loo_predictions_.shape == y.shape
    np.testing.assert_array_equal(model.loo_predictions_[~absent], rest.loo_predictions_)
    np.testing.assert_allclose(model.loo_predictions_[absent], model.predict(X[absent]), rtol=0, atol=1e-9)
    assert model.cv_results_["predictions"].shape == (2, len(y))
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    classifier = KernelRidgeClassifierCV(KERNEL, [0.05, 5.0], class_weight="balanced").fit(X, labels, w)
    assert classifier.loo_decision_function_.shape == (len(y), 3)
    found = classifier.loo_decision_function_[absent]
    np.testing.assert_allclose(found, classifier.decision_function(X[absent]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_its_closed_form(data, intercept):
    """The hat matrix of the model with its intercept, entry by entry, for 30 λ."""
    X, y = data
    K, n = KERNEL(X), len(y)
    alphas = np.logspace(-5, 3, 30)
    predicted = RidgeSpectrum.of(K.copy(), intercept=intercept).leave_one_out(y, alphas)[:, :, 0]
    for alpha, ours in zip(alphas, predicted.T, strict=True):
        G = np.linalg.inv(K + alpha * np.eye(n))
        P = G - np.outer(G.sum(axis=1), G.sum(axis=0)) / G.sum() if intercept else G
        np.testing.assert_allclose(ours, y - (P @ y) / np.diag(P), rtol=0, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_generalised_cross_validation_is_its_formula(data, weights, intercept):
    X, y = data
    alphas = np.logspace(-3, 2, 6)
    n, S = len(y), np.diag(np.sqrt(weights))
    K = S @ KERNEL(X) @ S
    model = KernelRidgeCV(KERNEL, alphas, cv="gcv", fit_intercept=intercept).fit(X, y, weights)
    for alpha, score in zip(alphas, model.cv_results_["score"], strict=True):
        G = np.linalg.inv(K + alpha * np.eye(n))
        Gs = G @ np.sqrt(weights)
        P = G - np.outer(Gs, Gs) / (np.sqrt(weights) @ Gs) if intercept else G
        H = np.eye(n) - alpha * P
        left = np.sqrt(weights) * y
        left = left - H @ left
        gcv = n * (left @ left) / np.trace(np.eye(n) - H) ** 2 * n / weights.sum()
        assert_close(-score, gcv, rtol=1e-9)
    assert not hasattr(model, "loo_predictions_")


@pytest.mark.parametrize(
    "cv", [3, KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, test_size=0.2, random_state=1)]
)
def test_folds_are_those_of_honest_fits(data, weights, cv):
    X, y = data
    Y = np.column_stack([y, X[:, 0] ** 2])
    alphas = [1e-2, 0.3, 10.0]
    model = KernelRidgeCV(KERNEL, alphas, cv=cv, fit_intercept=True).fit(X, Y, weights)
    splits = list((KFold(3) if cv == 3 else cv).split(X))
    for alpha, score in zip(alphas, model.cv_results_["score"], strict=True):
        scores = [
            KernelRidge(KERNEL, alpha, fit_intercept=True)
            .fit(X[train], Y[train], weights[train])
            .score(X[test], Y[test], weights[test])
            for train, test in splits
        ]
        assert_close(score, np.mean(scores), rtol=1e-8)


def test_folds_of_one_row_are_leaving_one_out(data):
    X, y = data
    by_folds = KernelRidgeCV(KERNEL, [0.1, 1.0], cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(X, y)
    in_one = KernelRidgeCV(KERNEL, [0.1, 1.0]).fit(X, y)
    assert_close(by_folds.cv_results_["score"], in_one.cv_results_["score"], rtol=1e-10)


@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(29)], ids=["all", "most of them"])
def test_a_fold_of_one_row_has_no_r2(cv):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InvalidInput, match=r"a fold of one row, which has no R²; set cv=None"):
        KernelRidgeCV(KERNEL, cv=cv).fit(rows, rows[:, 0])


@pytest.mark.parametrize("intercept", [False, True])
def test_the_linear_kernel_is_scikit_learns_ridge_cv(data, weights, intercept):
    X, y = data
    Y = np.column_stack([y, np.sin(X[:, 0]), np.random.default_rng(0).normal(size=200)])
    alphas = np.logspace(-2, 4, 9)
    ours = KernelRidgeCV(Linear(), alphas, fit_intercept=intercept, alpha_per_target=True).fit(X, Y)
    theirs = RidgeCV(alphas, fit_intercept=intercept, alpha_per_target=True).fit(X, Y)
    assert_close(ours.alpha_, theirs.alpha_)
    assert_close(ours.best_score_, theirs.best_score_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-8)


def test_the_model_is_kernel_ridge_with_the_chosen_alpha_and_kernel(data, weights):
    X, y = data
    kernels = [Linear(), Gaussian(gamma="median"), Gaussian(gamma=1.0)]
    model = KernelRidgeCV(kernels, fit_intercept=True).fit(X, y, weights)
    plain = KernelRidge(model.kernel_, model.alpha_, fit_intercept=True).fit(X, y, weights)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    results = model.cv_results_
    best = int(np.argmax(results["score"]))
    assert (results["kernel"][best], results["alpha"][best]) == (repr(model.kernel_), model.alpha_)
    assert results["score"][best] == model.best_score_
    each = [KernelRidgeCV(kernel, fit_intercept=True).fit(X, y, weights).best_score_ for kernel in kernels]
    assert model.best_score_ == max(each)


def prefer(monkeypatch, method):
    """Predict this decomposition to be the quickest where it may be taken."""

    def ways(machine, n, d, shifts, *, factor, band):
        may = {"eigenvectors": True, "factor": factor, "band": band}
        return {name: float(name != method) for name in may if may[name] and name in ("eigenvectors", method)}

    monkeypatch.setattr(spectral, "predicted_ways", ways)


@pytest.mark.parametrize(
    ("slow", "shifts", "taken"),
    [("", 10, "band"), ("wide64", 10, "eigenvectors"), ("", 60, "eigenvectors"), ("product64", 60, "band")],
)
def test_a_wrong_rate_takes_the_other_decomposition(slow, shifts, taken):
    """A band is made of the engine's products of tiles, eigenvectors of BLAS's."""
    machine = Machine.documented()
    machine = replace(machine, **({slow: getattr(machine, slow) / 10} if slow else {}))
    ways = spectral.predicted_ways(machine, 1500, 10, shifts, factor=False, band=True)
    assert min(ways, key=ways.__getitem__) == taken


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("cv", [None, "gcv", 3])
def test_a_factor_of_small_rank_leads_to_the_same_place(data, weights, monkeypatch, intercept, cv):
    X, y = data
    Y = np.column_stack([y, X[:, 1]])
    kernel = Gaussian(gamma=0.05).on([2])
    full = KernelRidgeCV(kernel, [1e-2, 1.0, 30.0], cv=cv, fit_intercept=intercept).fit(X, Y, weights)
    prefer(monkeypatch, "factor")
    low = KernelRidgeCV(kernel, [1e-2, 1.0, 30.0], cv=cv, fit_intercept=intercept).fit(X, Y, weights)
    assert "eigendecomposition" in full.report_.method
    assert "factor of K of rank" in low.report_.method
    assert_close(low.cv_results_["score"], full.cv_results_["score"], rtol=1e-8)
    if cv is None:
        np.testing.assert_allclose(low.loo_predictions_, full.loo_predictions_, rtol=0, atol=1e-8)


@pytest.mark.skipif(not backend.is_native(), reason="the band is a method of the compiled module only")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("cv", [None, "gcv", 3])
def test_a_band_leads_to_the_same_place(data, weights, monkeypatch, intercept, cv):
    X, y = data
    Y, alphas = np.column_stack([y, X[:, 1]]), [1e-2, 1.0, 30.0]
    full = KernelRidgeCV(KERNEL, alphas, cv=cv, fit_intercept=intercept).fit(X, Y, weights)
    prefer(monkeypatch, "band")
    band = KernelRidgeCV(KERNEL, alphas, cv=cv, fit_intercept=intercept).fit(X, Y, weights)
    assert "eigendecomposition" in full.report_.method
    assert "reduction to a band" in band.report_.method
    assert_close(band.cv_results_["score"], full.cv_results_["score"], rtol=1e-10)
    np.testing.assert_allclose(band.predict(X), full.predict(X), atol=1e-8)
    if cv is None:
        np.testing.assert_allclose(band.loo_predictions_, full.loo_predictions_, rtol=0, atol=1e-10)


@pytest.mark.skipif(not backend.is_native(), reason="the band is a method of the compiled module only")
def test_a_band_of_a_matrix_that_is_made_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("acgt"), 12)) for _ in range(100)]
    y, kernel = np.array([word.count("a") for word in words], float), Spectrum(2)
    assert kernel.prefers_large_blocks
    full = KernelRidgeCV(kernel, [0.1, 1.0]).fit(words, y)
    prefer(monkeypatch, "band")
    band = KernelRidgeCV(kernel, [0.1, 1.0]).fit(words, y)
    assert "reduction to a band" in band.report_.method
    np.testing.assert_allclose(band.loo_predictions_, full.loo_predictions_, atol=1e-9)


@pytest.mark.skipif(not backend.is_native(), reason="the band is a method of the compiled module only")
def test_a_band_says_where_k_is_singular(monkeypatch):
    prefer(monkeypatch, "band")
    F = np.random.default_rng(0).standard_normal((120, 4))
    model = KernelRidgeCV(Linear(), [0.0, 1.0, 10.0]).fit(F, F[:, 0])
    assert "reduction to a band" in model.report_.method
    assert np.isnan(model.cv_results_["score"]).tolist() == [True, False, False]
    with pytest.raises(InvalidInput, match="singular"):
        KernelRidgeCV(Linear(), [0.0]).fit(F, F[:, 0])


def test_no_factor_is_sought_where_interlacing_excludes_it(data, monkeypatch):
    def never(*_, **__):
        raise AssertionError("pivoted Cholesky was tried")

    X, y = data
    prefer(monkeypatch, "factor")
    monkeypatch.setattr(spectral, "pivoted_cholesky", never)
    assert "eigendecomposition" in KernelRidgeCV(Gaussian(gamma=1.0)).fit(X, y).report_.method
    with pytest.raises(AssertionError, match="was tried"):
        KernelRidgeCV(Linear()).fit(X, y)


def test_a_factor_is_refused_where_there_is_none(data, monkeypatch):
    X, y = data
    prefer(monkeypatch, "factor")
    assert "eigendecomposition" in KernelRidgeCV(Gaussian(gamma=1.0)).fit(X, y).report_.method
    assert "eigendecomposition" in KernelRidgeCV(Linear(), [0.0, 1.0]).fit(X, y).report_.method
    assert "of rank 10 " in KernelRidgeCV(Linear()).fit(X, y).report_.method
    # A larger λ needs less of the spectrum.
    methods = [KernelRidgeCV(Gaussian(gamma=0.05).on([2]), [one]).fit(X, y).report_.method for one in (1e-3, 1e3)]
    small, large = (int(method.split("rank ")[1].split()[0]) for method in methods)
    assert large < small


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("cv", [None, "gcv", 3])
@pytest.mark.parametrize("low_rank", [False, True])
def test_many_rows_take_the_model_from_the_decomposition_that_validated(
    data, weights, monkeypatch, intercept, cv, low_rank
):
    X, y = data
    Y = np.column_stack([y, X[:, 1]])
    monkeypatch.setattr(validated, "REUSED_FROM", 100)
    if low_rank:
        prefer(monkeypatch, "factor")
    kernels, alphas = [Linear(), Gaussian(gamma=0.05).on([2])], [1e-2, 1.0, 30.0]
    options = {"fit_intercept": intercept, "cv": cv, "alpha_per_target": True}
    model = KernelRidgeCV(kernels, alphas, **options).fit(X, Y, weights)
    assert "Cholesky" not in model.report_.method
    assert model.report_.residual <= 1e-10
    plain = KernelRidge(model.kernel_, model.alpha_, fit_intercept=intercept).fit(X, Y, weights)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=0, atol=1e-8)
    classes = KernelRidgeClassifierCV(KERNEL, alphas, fit_intercept=intercept, cv=cv).fit(X, y > y.mean(), weights)
    plain = KernelRidgeClassifier(KERNEL, classes.alpha_, fit_intercept=intercept).fit(X, y > y.mean(), weights)
    assert "Cholesky" not in classes.report_.method
    np.testing.assert_allclose(classes.decision_function(X), plain.decision_function(X), rtol=0, atol=1e-8)


def test_what_the_decomposition_leaves_inexact_is_solved_for(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(validated, "REUSED_FROM", 100)
    monkeypatch.setattr(KernelRidgeCV, "tol", 1e-17)
    model = KernelRidgeCV(KERNEL, [0.1, 1.0]).fit(X, y)
    assert "then Cholesky" in model.report_.method
    assert_close(model.predict(X), KernelRidge(KERNEL, model.alpha_).fit(X, y).predict(X), rtol=1e-10)
    # Rounding of a nearly singular system, which only a refined factorisation removes.
    twice, targets = np.repeat(X[:60], 3, axis=0), np.repeat(y[:60], 3)
    monkeypatch.undo()
    fitted = KernelRidgeCV(KERNEL, [1e-9]).fit(twice, targets)
    monkeypatch.setattr(validated, "REUSED_FROM", 100)
    again = KernelRidgeCV(KERNEL, [1e-9]).fit(twice, targets)
    assert again.report_.residual <= max(1e-10, fitted.report_.residual)
    np.testing.assert_allclose(again.predict(twice), fitted.predict(twice), rtol=0, atol=1e-7)


# ---- one λ a target --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("spectral", [False, True])
def test_a_lambda_for_each_target_is_a_fit_for_each(data, weights, intercept, spectral, monkeypatch):
    X, y = data
    monkeypatch.setattr(least_squares, "one_decomposition_pays", lambda *_: spectral)
    Y = np.column_stack([y, X[:, 0], y**2])
    alphas = np.array([0.1, 3.0, 0.1])
    model = KernelRidge(KERNEL, alphas, fit_intercept=intercept).fit(X, Y, weights)
    assert ("eigen" in model.report_.method) == spectral
    assert model.report_.residual <= 1e-10
    for j, alpha in enumerate(alphas):
        one = KernelRidge(KERNEL, alpha, fit_intercept=intercept).fit(X, Y[:, j], weights)
        assert_close(model.predict(X)[:, j], one.predict(X), rtol=1e-8)


def test_many_lambdas_take_one_eigendecomposition(data):
    X, y = data
    Y = np.outer(y, np.arange(1.0, 31.0))
    report = KernelRidge(KERNEL, np.logspace(-3, 2, 30)).fit(X, Y).report_
    assert "eigendecomposition" in report.method
    assert "30 α" in report.reason
    tight = KernelRidge(KERNEL, np.logspace(-3, 2, 30), tol=0.9e-16).fit(X, Y).report_
    assert any("not exact enough" in note for note in tight.notes)
    assert "Cholesky" in tight.method
    assert "Cholesky" in KernelRidge(KERNEL, np.logspace(-3, 2, 30), solver="cholesky").fit(X, Y).report_.method
    with pytest.raises(InvalidInput, match="no solution"):
        KernelRidge(Linear(), np.linspace(0.0, 1.0, 30)).fit(X, Y)


@pytest.mark.parametrize("alpha", [[1.0, 2.0], [-1.0, 1.0, 1.0], [np.nan] * 3, [[1.0, 1.0, 1.0]]])
def test_lambdas_that_do_not_fit_the_targets_are_refused(data, alpha):
    X, y = data
    with pytest.raises(InvalidInput, match="alpha"):
        KernelRidge(alpha=alpha).fit(X, np.column_stack([y, y, y]))


# ---- classification --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_left_out_decisions_are_those_of_honest_fits(classes, balanced):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:] if classes == 2 else X, np.array(["a", "b", "c"])[y[50:] if classes == 2 else y]
    X, y = X[::2], y[::2]
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = KernelRidgeClassifierCV(KERNEL, [0.05, 0.5], class_weight=balanced).fit(X, y, w)
    # Balance belongs to the whole data, so the honest fits take the weights that it gave.
    w = model.sample_weight_
    honest = np.empty(model.loo_decision_function_.shape)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        one = KernelRidgeClassifier(KERNEL, model.alpha_).fit(X[rest], y[rest], w[rest])
        honest[i] = one.decision_function(X[i : i + 1])[0]
    np.testing.assert_allclose(model.loo_decision_function_, honest, atol=1e-8)
    guessed = model.classes_[(honest > 0).astype(int) if classes == 2 else honest.argmax(axis=1)]
    assert_close(model.best_score_, np.average(guessed == y, weights=w), rtol=1e-12)


def test_classes_by_scorers_folds_and_gcv():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = KernelRidgeClassifierCV("gaussian", scoring="balanced_accuracy").fit(X, y)
    labels = model.classes_[model.loo_decision_function_.argmax(axis=1)]
    assert_close(model.best_score_, balanced_accuracy_score(y, labels))
    assert KernelRidgeClassifierCV(cv=5).fit(X, y).best_score_ > 0.95
    assert KernelRidgeClassifierCV(cv="gcv").fit(X, y).score(X, y) > 0.95
    two = KernelRidgeClassifierCV(scoring="roc_auc").fit(X, y == 1)
    assert two.best_score_ > 0.99
    assert two.decision_function(X).shape == (len(y),)


def test_scorers_of_several_targets(data, weights):
    X, y = data
    Y = np.column_stack([y, X[:, 0]])
    by_name = KernelRidgeCV(KERNEL, [0.1, 1.0], scoring="neg_mean_squared_error").fit(X, Y, weights)
    default = KernelRidgeCV(KERNEL, [0.1, 1.0]).fit(X, Y, weights)
    assert_close(by_name.cv_results_["score"], default.cv_results_["score"])
    each = KernelRidgeCV(KERNEL, [0.1, 1.0], scoring="r2", alpha_per_target=True).fit(X, Y)
    assert each.best_score_.shape == each.alpha_.shape == (2,)
    assert each.loo_predictions_.shape == Y.shape


# ---- rows, weights, degenerate cases --------------------------------------------------------------------------------


def test_weight_zero_is_an_absent_row_also_of_the_folds(data, weights):
    X, y = data
    weights[::3] = 0.0
    there = weights > 0
    for cv in (None, "gcv", 4):
        splits = None if cv is None else cv
        if cv == 4:
            splits = list(KFold(4).split(X))
            place = np.cumsum(there) - 1
            kept = [(place[a[there[a]]], place[b[there[b]]]) for a, b in splits]
        short = KernelRidgeCV(KERNEL, cv=kept if cv == 4 else splits).fit(X[there], y[there], weights[there])
        model = KernelRidgeCV(KERNEL, cv=splits).fit(X, y, weights)
        assert_close(model.cv_results_["score"], short.cv_results_["score"], rtol=1e-10)


def test_rows_in_any_form(data):
    X, y = data
    expected = KernelRidgeCV(KERNEL).fit(X, y)
    for rows in (sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(
            KernelRidgeCV(KERNEL).fit(rows, y).loo_predictions_, expected.loo_predictions_, atol=1e-9
        )
    narrow = KernelRidgeCV(KERNEL).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.loo_predictions_, expected.loo_predictions_, atol=1e-4)
    stored = KernelRidgeCV(Precomputed()).fit(KERNEL(X), y)
    np.testing.assert_allclose(stored.loo_predictions_, expected.loo_predictions_, atol=1e-9)


def test_a_singular_matrix_without_regularisation_is_left_out_and_said(data):
    X, y = data
    model = KernelRidgeCV(Linear(), [0.0, 1.0, 10.0], store_cv_results=True).fit(X, y)
    assert np.isnan(model.cv_results_["score"][0])
    assert np.isnan(model.cv_results_["predictions"][0]).all()
    assert model.alpha_ > 0
    assert any("singular" in warning for warning in model.report_.warnings)
    with pytest.raises(InvalidInput, match="singular"):
        KernelRidgeCV(Linear(), [0.0]).fit(X, y)


def test_interpolation_has_a_leave_one_out_error_too():
    """h = 1 in every row: (y − f)/(1 − h) is 0/0, and the formula in P isn't."""
    rng = np.random.default_rng(0)
    X, y = 3 * rng.standard_normal((60, 3)), rng.standard_normal(60)
    model = KernelRidgeCV(Gaussian(gamma=1.0), [0.0]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)
    np.testing.assert_allclose(model.loo_predictions_, refitted(X, y, None, Gaussian(gamma=1.0), alpha=0.0), atol=1e-8)


def test_duplicates_constants_and_a_kernel_of_rank_one(data):
    X, y = data
    twice = KernelRidgeCV(KERNEL, [1e-6, 1.0]).fit(np.repeat(X[:40], 3, axis=0), np.repeat(y[:40], 3))
    assert np.all(np.isfinite(twice.loo_predictions_))
    flat = KernelRidgeCV(KERNEL, fit_intercept=True).fit(X, np.full(200, 7.0))
    assert_close(flat.loo_predictions_, 7.0, rtol=1e-9)
    # Without features the row left out is predicted by the mean of the others.
    mean = KernelRidgeCV(Constant(1.0), [1.0], fit_intercept=True).fit(X, y)
    assert_close(mean.loo_predictions_, (y.sum() - y) / 199, rtol=1e-9)
    two = KernelRidgeCV(KERNEL, [1.0], fit_intercept=True).fit(X[:2], y[:2])
    assert_close(two.loo_predictions_, y[1::-1])


def test_an_indefinite_matrix_is_refused_where_lambda_does_not_outweigh_it():
    K, y = np.diag([1.0, 2.0, -5.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InvalidInput, match="singular"):
        KernelRidgeCV(Precomputed(), [0.1, 1.0]).fit(K, y)
    assert KernelRidgeCV(Precomputed(), [0.1, 6.0]).fit(K, y).alpha_ == 6.0


def test_the_report_tells_the_choice_and_warns_at_the_edge(data):
    X, y = data
    report = KernelRidgeCV([KERNEL, Linear()], np.logspace(-3, 3, 13)).fit(X, y).report_
    assert "eigendecomposition" in report.method
    assert "Cholesky" in report.method
    assert any("leave-one-out among 13 α and 2 kernels" in note for note in report.notes)
    assert not report.warnings
    assert any("largest" in text for text in KernelRidgeCV(KERNEL, [1e-4, 1e-3]).fit(X, y).report_.warnings)
    assert any("smallest" in text for text in KernelRidgeCV(KERNEL, [1e3, 1e4]).fit(X, y).report_.warnings)


BAD = [
    ({"alphas": []}, "alphas"),
    ({"alphas": [-1.0]}, "alphas"),
    ({"alphas": [np.nan]}, "alphas"),
    ({"alphas": [[1.0]]}, "alphas"),
    ({"kernel": []}, "at least one"),
    ({"kernel": [Linear(), Precomputed()]}, "same rows"),
    ({"cv": "loo"}, "gcv"),
    ({"cv": "gcv", "scoring": "r2"}, "scoring"),
    ({"cv": 3, "store_cv_results": True}, "store_cv_results"),
    ({"cv": TimeSeriesSplit(3)}, "train on all others"),
    ({"scoring": "nonsense"}, "nonsense"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=[f"{options}" for options, _ in BAD])
def test_bad_options(data, options, words):
    with pytest.raises(ValueError, match=words):
        KernelRidgeCV(**options).fit(*data)


@pytest.mark.parametrize(("train", "test"), [(np.r_[:150, :9], np.r_[150:200]), (np.r_[:150], np.r_[150:200, 199])])
def test_a_fold_that_repeats_a_row_is_refused(data, train, test):
    words = f"a fold of {len(test)} rows and {len(train)} to train on, in which a row is repeated"
    with pytest.raises(InvalidInput, match=words):
        KernelRidgeCV(cv=[(train, test)]).fit(*data)


def test_too_few_rows_and_too_little_memory(data):
    X, y = data
    with pytest.raises(InvalidInput, match="n_samples = 1"):
        KernelRidgeCV().fit(X[:1], y[:1])
    with pytest.raises(InvalidInput, match="n_samples = 1"):
        KernelRidgeCV().fit(X, y, np.arange(200) == 3)
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelRidgeCV(memory="500kB").fit(X, y)


@pytest.mark.parametrize("cv", [None, 3, "gcv"])
def test_a_repair_that_would_see_rows_left_out_is_refused(cv):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(X[:, 0])
    kernel = RepairedKernel(Sigmoid(0.5, -1.0), "flip")
    for one in (kernel, 2.0 * kernel + Gaussian(1.0)):
        with pytest.raises(InvalidInput, match=r"repair would see.*KernelSearchCV"):
            KernelRidgeCV(one, [0.1], cv=cv).fit(X, y)
    assert KernelRidgeCV(RepairedKernel(Sigmoid(0.5, -1.0), "clip", X[:20]), [0.1], cv=cv).fit(X, y).alpha_ == 0.1


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("each", [False, True])
def test_folds_of_many_rows_are_those_of_fits_without_them(monkeypatch, intercept, each):
    """Their systems are solved together: the scores are those of an honest loop."""
    monkeypatch.setattr(held_out, "LARGE", 60)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.2 * rng.normal(size=(90, 2))
    alphas, folds = [1e-3, 0.1, 10.0], KFold(4, shuffle=True, random_state=0)
    kernel, options = Gaussian(0.3), {"fit_intercept": intercept}
    model = KernelRidgeCV(kernel, alphas, cv=folds, alpha_per_target=each, scoring="r2", **options).fit(X, Y)
    assert "4 folds × 3 α, solved together" in model.report_.method
    honest = [
        [
            r2_score(
                Y[test], KernelRidge(kernel, a, **options).fit(X[train], Y[train]).predict(X[test]), multioutput=raw
            )
            for train, test in folds.split(X)
        ]
        for a in alphas
        for raw in ["raw_values" if each else "uniform_average"]
    ]
    np.testing.assert_allclose(model.cv_results_["score"], np.mean(honest, axis=1), rtol=1e-6, atol=1e-6)
    again = KernelRidge(kernel, model.alpha_, **options).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-9, atol=1e-9)
    little = KernelRidgeCV(kernel, alphas, cv=folds, memory=240_000, **options).fit(X, Y)
    weighted = KernelRidgeCV(kernel, alphas, cv=folds, **options).fit(X, Y, np.arange(1.0, 91.0))
    for other in (little, weighted):
        assert "together" not in other.report_.method
