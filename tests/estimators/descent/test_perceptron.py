"""The kernel perceptron: scikit-learn's contract, the mistake-driven rules written out naively, and the limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_circles

from mercer import KernelPerceptron, load, save
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.testing import assert_close


@pytest.fixture
def rings():
    return make_circles(80, noise=0.1, factor=0.5, random_state=0)


def three(n=40):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) + 2 * np.array([[0, 1], [1, -1], [-1, -1]])[y], y


def by_hand(K, y, classes, order, weights=None, constant=1.0):
    """The rule visit by visit: the last α, the mean of all, and the α of every visit."""
    n = len(y)
    A, every = np.zeros((1 + n, classes)), []
    for i in order:
        for _ in range(1 if weights is None else int(weights[i])):
            f = K[i] @ A[1:] + constant * A[0]
            others = [r for r in range(classes) if r != y[i]]
            r = max(others, key=lambda r: f[r])
            if f[y[i]] <= f[r]:
                A = A.copy()
                A[1 + i, y[i]] += 1
                A[1 + i, r] -= 1
                A[0, y[i]] += constant
                A[0, r] -= constant
            every.append(A)
    return A, np.mean(every, axis=0), every


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_rule_is_the_one_written_out(classes, constant, weighted):
    X, y = three()
    y = np.minimum(y, classes - 1)
    kernel = Polynomial(2, coef0=0.3)
    weights = 1 + np.arange(len(y)) % 3 if weighted else None
    passes = np.concatenate([np.random.default_rng([0, t]).permutation(len(y)) for t in range(4)])
    last, mean, every = by_hand(kernel(X), y, classes, passes, weights, float(constant))
    new = np.random.default_rng(1).normal(size=(30, 2))
    kept = slice(1, None) if classes == 2 else slice(None)
    options = {"fit_intercept": constant, "max_iter": 4, "tol": None}
    for method, alpha in (("plain", last), ("averaged", mean)):
        model = KernelPerceptron(kernel, method=method, **options).fit(X, y, weights)
        np.testing.assert_allclose(model.dual_coef_, alpha[1:, kept], atol=1e-9)
        np.testing.assert_allclose(model.intercept_, alpha[0, kept], atol=1e-9)
    voted = KernelPerceptron(kernel, method="voted", **options).fit(X, y, weights)
    votes = np.zeros((30, classes))
    for A in every:
        f = kernel(new, X) @ A[1:] + float(constant) * A[0]
        votes[np.arange(30), f.argmax(axis=1)] += 1 / len(every)
    expected = votes[:, 1] - votes[:, 0] if classes == 2 else votes
    np.testing.assert_allclose(voted.decision_function(new), expected, atol=1e-9)


def test_it_ends_after_no_more_mistakes_than_novikoff_allows(rings):
    X, y = rings
    kernel = Gaussian(2.0)
    model = KernelPerceptron(kernel, method="plain", fit_intercept=False, tol=0).fit(X, y)
    assert model.report_.status == "converged"
    assert model.score(X, y) == 1.0
    # f = Σ yᵢ k(xᵢ, ·) separates with this margin, if it does; mistakes ≤ (R ‖f‖/margin)².
    signs = 2.0 * y - 1
    K = kernel(X)
    f = np.linalg.solve(K, signs)
    assert np.abs(model.dual_coef_).sum() <= signs @ f


@pytest.mark.parametrize("method", ["gradient", "plain", "voted", "averaged"])
def test_classes_that_no_line_separates(rings, method):
    X, y = rings
    assert KernelPerceptron(Gaussian(2.0), method=method).fit(X, y).score(X, y) >= 0.97
    line = KernelPerceptron("linear", method=method, max_iter=30, tol=None).fit(X, y)
    assert line.score(X, y) < 0.75


@pytest.mark.parametrize("method", ["gradient", "plain", "voted", "averaged"])
def test_many_classes_and_text_labels(method):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = KernelPerceptron(method=method, max_iter=100, tol=None).fit(X, names)
    assert model.score(X, names) > 0.9
    assert model.decision_function(X).shape == (150, 3)
    assert model.dual_coef_.shape == (150, 3)


def test_the_history_is_a_film_of_the_surface(rings):
    X, y = rings
    for method in ("gradient", "plain", "averaged"):
        kernel = Gaussian(2.0) if method == "gradient" else Linear()  # which no pass gets right
        model = KernelPerceptron(kernel, method=method, keep_history=2, max_iter=6, tol=None).fit(X, y)
        assert model.history_.shape == (4, 81, 1)
        np.testing.assert_array_equal(model.history_[0], 0)
        frames = list(model.staged_decision_function(X))
        np.testing.assert_allclose(frames[-1], model.decision_function(X), atol=1e-10)
        half = KernelPerceptron(kernel, method=method, max_iter=4, tol=None).fit(X, y)
        np.testing.assert_allclose(frames[2], half.decision_function(X), atol=1e-10)
    with pytest.raises(InvalidInput, match="keep_history"):
        list(KernelPerceptron().fit(X, y).staged_decision_function(X))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("method", ["gradient", "plain", "voted", "averaged"])
def test_a_fitted_perceptron_answers_as_it_was_fitted(method, constant, tmp_path):
    X, y = three()
    for labels in (y, y > 0):
        model = KernelPerceptron("linear", method=method, fit_intercept=constant, max_iter=5, tol=None).fit(X, labels)
        scores = model.decision_function(X)
        for other in ("voted", "plain"):
            model.set_params(method=other, fit_intercept=not constant)
            np.testing.assert_array_equal(model.decision_function(X), scores)
        save(model, tmp_path / "m")
        np.testing.assert_allclose(load(tmp_path / "m").decision_function(X), scores, rtol=1e-12)
    if method == "voted":
        with pytest.raises(InvalidInput, match="votes of many functions"):
            model.compress(5)
        model.votes_.pop("constant")  # models that were saved before have none
        old = model.set_params(fit_intercept=constant).decision_function(X)
        np.testing.assert_array_equal(old, scores)


def test_weight_2_is_a_repeated_row_and_weight_0_an_absent_one():
    X, y = three()
    weights = np.arange(len(y)) % 3
    for method in ("gradient", "plain", "averaged"):
        options = {"method": method, "shuffle": False, "max_iter": 7, "tol": None}
        weighted = KernelPerceptron(Gaussian(0.3), **options).fit(X, y, weights)
        repeated = KernelPerceptron(Gaussian(0.3), **options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", ["plain", "averaged", "voted"])
def test_a_scale_of_all_weights_only_scales(method):
    X, y = three()
    weights = np.random.default_rng(0).uniform(0.1, 1.0, len(y))
    options = {"method": method, "max_iter": 3, "tol": None}
    model = KernelPerceptron(Gaussian(0.3), **options).fit(X, y, weights)
    for scale in (1e-3, 1e-9):
        small = KernelPerceptron(Gaussian(0.3), **options).fit(X, y, scale * weights)
        scores = small.decision_function(X) / (1.0 if method == "voted" else scale)
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(small.predict(X), model.predict(X))


def test_class_weights_multiply():
    X, y = three()
    one = KernelPerceptron(Gaussian(0.3), class_weight={0: 2.0, 1: 1.0, 2: 3.0}).fit(X, y)
    other = KernelPerceptron(Gaussian(0.3)).fit(X, y, np.array([2.0, 1.0, 3.0])[y])
    assert_close(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("method", ["gradient", "averaged"])
def test_stored_matrix_free_precomputed_sparse_and_float32_agree(rings, method):
    X, y = rings
    X = np.where(np.abs(X) > 0.1, X, 0.0)
    options = {"method": method, "max_iter": 20, "tol": None}
    model = KernelPerceptron(Gaussian(2.0), **options).fit(X, y)
    scores = model.decision_function(X)
    assert "stored" in model.report_.method
    free = KernelPerceptron(Gaussian(2.0), memory=7_000_000, **options).fit(np.vstack([X] * 12), np.tile(y, 12))
    assert "matrix-free" in free.report_.method
    K = Gaussian(2.0)(X)
    precomputed = KernelPerceptron(Precomputed(), **options).fit(K, y)
    np.testing.assert_allclose(precomputed.decision_function(K), scores, atol=1e-8)
    sparse = KernelPerceptron(Gaussian(2.0), **options).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), scores, atol=1e-8)
    if method == "gradient":
        narrow = KernelPerceptron(Gaussian(2.0), **options).fit(X.astype(np.float32), y)
        np.testing.assert_allclose(narrow.decision_function(X.astype(np.float32)), scores, atol=1e-4)


def test_too_large_a_step_is_told():
    X, y = three()
    with pytest.warns(ConvergenceWarning, match="step size"):
        model = KernelPerceptron(Gaussian(0.3), step_size=1.0).fit(X, y)
    assert any("1/λmax" in note for note in model.report_.notes)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_opposite_labels_on_one_point_are_told():
    X = np.zeros((4, 1))
    with pytest.warns(ConvergenceWarning, match="averaged perceptron"):
        model = KernelPerceptron(method="averaged", max_iter=5).fit(X, [0, 1, 0, 1])
    assert any("no f separates" in note for note in model.report_.notes)
    model = KernelPerceptron("linear", fit_intercept=False, tol=None, max_iter=3).fit(X, [0, 1, 0, 1])
    np.testing.assert_array_equal(model.decision_function(X), 0)


BAD = {
    "method": "fast",
    "step_size": 0.0,
    "tol": -1,
    "max_iter": 0,
    "keep_history": -1,
    "random_state": 0.5,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused(name, rings):
    with pytest.raises(InvalidInput, match=name):
        KernelPerceptron(**{name: BAD[name]}).fit(*rings)


def test_bad_data_are_refused(rings):
    X, y = rings
    with pytest.raises(InvalidInput, match="one class"):
        KernelPerceptron().fit(X, np.zeros(80))
    with pytest.raises(MemoryExceeded, match="memory="):
        KernelPerceptron(memory=1000).fit(X, y)
    with pytest.raises(InvalidInput, match=r"finite|overflow"):
        KernelPerceptron(Linear()).fit(X * 1e200, y)
    with pytest.raises(MemoryExceeded, match="keep_history"):
        KernelPerceptron(keep_history=True, max_iter=10**6, memory="10MB").fit(X, y)


@pytest.mark.parametrize("labels", [2, 3])
def test_staged_classes(labels):
    X = np.random.default_rng(0).standard_normal((30, 2))
    model = KernelPerceptron("gaussian", keep_history=True, max_iter=5, tol=None).fit(X, np.arange(30) % labels)
    stages = list(model.staged_predict(X))
    assert len(stages) == 6
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert not hasattr(model.set_params(keep_history=False).fit(X, np.arange(30) % labels), "history_")
