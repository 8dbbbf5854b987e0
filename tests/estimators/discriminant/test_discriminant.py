"""Kernel discriminant analysis against the chapter's formulas, brute force, the linear method, and by hand."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_digits, load_iris, make_blobs, make_circles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge as Reference

from mercer import KernelDiscriminantAnalysis
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.estimators.discriminant.fisher import class_targets
from mercer.kernels import Formula, Gaussian, Laplace, Linear, Polynomial, Precomputed
from mercer.testing import assert_close

KERNEL = Gaussian(gamma=0.1)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 200)
    X = rng.normal(size=(200, 4))
    X[:, 0] += y
    X[:, 1] += y == 2
    return X, y


def chapter(K, y):
    """M of many classes (for two: n₁n₂/n times the chapter's) and N, (21.48) to (21.54) to the letter."""
    n = len(y)
    M, N = np.zeros((n, n)), np.zeros((n, n))
    for c in np.unique(y):
        E = K[:, y == c]
        size = E.shape[1]
        away = E.mean(axis=1) - K.mean(axis=1)
        M += size * np.outer(away, away)
        N += E @ (np.eye(size) - np.full((size, size), 1 / size)) @ E.T
    return M, N


def angle(A, B, K):
    """The largest principal angle between two subspaces of feature space."""
    A, B = A / np.sqrt(np.sum(A * (K @ A), axis=0)), B / np.sqrt(np.sum(B * (K @ B), axis=0))
    L = scipy.linalg.cholesky(K + 1e-13 * np.trace(K) * np.eye(len(K)), lower=False)
    return scipy.linalg.subspace_angles(L @ A, L @ B).max()


@pytest.mark.parametrize("solver", ["regression", "eigen"])
def test_equals_the_generalised_eigenproblem_of_the_chapter(solver, data):
    X, y = data
    model = KernelDiscriminantAnalysis(KERNEL, delta=0.3, solver=solver).fit(X, y)
    K = KERNEL(X)
    M, N = chapter(K, y)
    A = model.dual_coef_
    np.testing.assert_allclose(M @ A, (N + 0.3 * K) @ A * model.eigenvalues_, atol=1e-8 * np.abs(M @ A).max())
    assert_close(np.diag(A.T @ K @ A), 1.0, rtol=1e-9)
    np.testing.assert_allclose(A.sum(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(model.means_, [(K @ A)[y == c].mean(axis=0) for c in range(5)], atol=1e-9)


@pytest.mark.parametrize("solver", ["regression", "eigen"])
def test_two_classes_are_the_chapters_formula(solver):
    X, y = make_circles(120, factor=0.4, noise=0.1, random_state=0)
    K = KERNEL(X)
    M, _ = chapter(K, y)
    m1, m2 = K[:, y == 1].mean(axis=1), K[:, y == 0].mean(axis=1)
    np.testing.assert_allclose(M, 60 * 60 / 120 * np.outer(m1 - m2, m1 - m2), atol=1e-10)
    model = KernelDiscriminantAnalysis(Laplace(gamma=1.0), solver=solver, delta=0.2).fit(X, y)
    K = Laplace(gamma=1.0)(X)
    _, N = chapter(K, y)
    m1, m2 = K[:, y == 1].mean(axis=1), K[:, y == 0].mean(axis=1)
    a = np.linalg.solve(N + 0.2 * K, m1 - m2)
    lam = (m1 - m2) @ a
    np.testing.assert_allclose(model.dual_coef_[:, 0], a / np.sqrt(a @ K @ a), rtol=1e-7, atol=1e-10)
    assert_close(model.eigenvalues_[0] * 120 / 60 / 60, lam, rtol=1e-9)


def test_four_points_by_hand():
    """x = −1, 0 | 1, 2 with ⟨x, z⟩: μ₁ − μ₂ = −2, S_W = 1, w = ±1, J = 4/(1 + δ); the scores are the points."""
    X, y = np.array([[-1.0], [0.0], [1.0], [2.0]]), [-1, -1, 1, 1]
    for solver in ("regression", "eigen"):
        model = KernelDiscriminantAnalysis(Linear(), delta=0.25, solver=solver, calibration="training").fit(X, y)
        np.testing.assert_allclose(model.transform(X)[:, 0], X[:, 0], atol=1e-9)
        np.testing.assert_allclose(model.means_[:, 0], [-0.5, 1.5], atol=1e-9)
        assert_close(model.eigenvalues_, 4 / 1.25, rtol=1e-8)  # n₁n₂/n = 1
        assert_close(model.covariance_, [[1.25 / 4]], rtol=1e-8)
        # log odds of two Gaussians with means −½ and 3/2: slope 2/Σ, zero half way
        np.testing.assert_allclose(model.decision_function([[0.5], [1.5]]), [0.0, 2 / (1.25 / 4)], atol=1e-7)


def test_both_methods_span_the_same_space():
    digits = load_digits()
    X, y = digits.data / 16.0, digits.target
    kernel = Gaussian(gamma=0.05)
    fast = KernelDiscriminantAnalysis(kernel).fit(X[:700], y[:700])
    slow = KernelDiscriminantAnalysis(kernel, solver="eigen").fit(X[:700], y[:700])
    K = kernel(X[:700])
    assert angle(fast.dual_coef_, slow.dual_coef_, K) < 1e-6
    assert_close(fast.eigenvalues_, slow.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(fast.transform(X[700:]), slow.transform(X[700:]), atol=1e-7)
    assert fast.score(X[700:], y[700:]) > 0.95


def test_the_linear_kernel_is_linear_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    ours = KernelDiscriminantAnalysis(Linear(), delta=1e-6, calibration="training").fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    for j in range(2):
        assert abs(np.corrcoef(ours.transform(X)[:, j], theirs.transform(X)[:, j])[0, 1]) > 1 - 1e-6
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_a_delta_that_is_lost_in_rounding_takes_the_dense_method_or_is_refused():
    X, y = load_iris(return_X_y=True)
    model = KernelDiscriminantAnalysis(Linear(), delta=1e-6).fit(X, y)
    assert any("too near singular" in note for note in model.report_.notes)
    assert "LAPACK" in model.report_.method
    with pytest.raises(InvalidInput, match="raise delta"):
        KernelDiscriminantAnalysis(Linear(), delta=1e-6, solver="regression").fit(X, y)


def test_the_direction_of_two_classes_is_that_of_ridge_regression_with_intercept():
    X, y = make_blobs(80, 3, centers=2, cluster_std=3.0, random_state=1)
    model = KernelDiscriminantAnalysis(KERNEL, delta=0.5).fit(X, y)
    H = np.eye(80) - 1 / 80
    a = Reference(kernel="precomputed", alpha=0.5).fit(H @ KERNEL(X) @ H, y - y.mean()).dual_coef_
    assert np.corrcoef(a, model.dual_coef_[:, 0])[0, 1] > 1 - 1e-10


@pytest.mark.parametrize("solver", ["regression", "eigen"])
@pytest.mark.parametrize("options", [{}, {"delta": None}, {"delta": "loo"}], ids=str)
def test_weight_two_is_a_repeated_row_and_weight_zero_an_absent_one(solver, options, data):
    X, y = data
    model = KernelDiscriminantAnalysis(KERNEL, solver=solver, **options)
    w = np.ones(200)
    w[:60], w[60:80] = 2.0, 0.0
    rows = np.concatenate([np.arange(60), np.arange(60), np.arange(80, 200)])
    repeated = model.fit(X[rows], y[rows])
    expected, delta, scores = repeated.transform(X), repeated.delta_, repeated.predict_proba(X)
    model.fit(X, y, w)
    assert_close(model.delta_, delta, rtol=1e-12)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), scores, atol=1e-8)


def left_out_errors(K, y, weights, deltas):
    """Σ wᵢ‖yᵢ − f₍ᵢ₎(xᵢ)‖²/Σ wᵢ by a ridge regression with intercept for each row that is left out."""
    Y, errors = class_targets(np.bincount(y, weights=weights))[y], np.zeros(len(deltas))
    for place, delta in enumerate(deltas):
        for i, target in enumerate(Y):
            rest = weights - np.minimum(1, weights) * (np.arange(len(y)) == i)
            some = np.flatnonzero(rest > 0)
            system = np.ones((len(some) + 1, len(some) + 1))
            system[-1, -1] = 0
            system[:-1, :-1] = K[np.ix_(some, some)] + np.diag(delta / rest[some])
            found = np.linalg.solve(system, np.vstack([Y[some], np.zeros((1, Y.shape[1]))]))
            errors[place] += weights[i] * np.sum((target - np.append(K[i, some], 1) @ found) ** 2)
    return errors / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_brute_force(weighted, data):
    X, y = data[0][:60], data[1][:60]
    w = np.random.default_rng(3).integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    model = KernelDiscriminantAnalysis(KERNEL, delta="loo").fit(X, y, w if weighted else None)
    some = [4, 12, 20]
    wanted = left_out_errors(KERNEL(X), y, w, model.leave_one_out_deltas_[some])
    np.testing.assert_allclose(model.leave_one_out_errors_[some], wanted, rtol=1e-8)
    assert model.delta_ == model.leave_one_out_deltas_[model.leave_one_out_errors_.argmin()]
    assert any("leave-one-out" in note for note in model.report_.notes)


@pytest.mark.parametrize("kind", ["all equal", "in pairs", "one column constant", "three", "few"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(0.5), Linear()], ids=repr)
def test_errors_of_few_and_equal_rows_are_exact_at_the_smallest_delta(kind, weighted, kernel):
    """Eigenvalues that are rounding, over δ = 1e-6, made errors wrong by 1e-4, and decided between equal ones."""
    rng = np.random.default_rng(3)
    n = {"three": 3, "few": 5}.get(kind, 12)
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    X[:, 0] += y
    if kind == "all equal":
        X[1:] = X[0] + 1e-3 * (y[1:, None] - y[0])  # but for the classes, whose means differ
    elif kind == "in pairs":
        X[6:], y[6:] = X[:6], y[:6]
    elif kind == "one column constant":
        X[:, 1] = 7.0
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    model = KernelDiscriminantAnalysis(kernel, delta="loo").fit(X, y, w)
    K, deltas = np.asarray(kernel(X), np.float64), model.leave_one_out_deltas_
    rounding, wanted = np.finfo(float).eps * float(w @ np.diag(K)), left_out_errors(K, y, w, deltas)
    assert np.all(np.abs(model.leave_one_out_errors_ / wanted - 1) <= 1e-7 + rounding / deltas)
    order = rng.permutation(n)
    again = KernelDiscriminantAnalysis(kernel, delta="loo").fit(X[order], y[order], w[order])
    assert_close(again.delta_, model.delta_, 1e-9 + rounding / (deltas[-1] / 100))  # a share of tr(K̃)/n


def test_the_default_delta_is_the_largest_of_nearly_the_smallest_error(data):
    X, y = data
    model = KernelDiscriminantAnalysis(KERNEL).fit(X, y)
    exact = KernelDiscriminantAnalysis(KERNEL, delta="loo").fit(X, y)
    errors = exact.leave_one_out_errors_
    np.testing.assert_array_equal(model.leave_one_out_errors_, errors)
    best = exact.leave_one_out_deltas_[errors <= 1.005 * errors.min()].max()
    assert model.delta_ == best >= exact.delta_
    again = KernelDiscriminantAnalysis(KERNEL, delta=float(best)).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("delta", ["auto", "loo", None])
def test_the_chosen_delta_does_not_depend_on_where_the_rows_lie(delta, kernel):
    """A share of tr(K)/n was 10⁸ times ‖φ(x) − μ‖² for rows at 10⁵: all rows in one class, and no word."""
    X, y = load_iris(return_X_y=True)
    near = KernelDiscriminantAnalysis(Linear(), delta=delta).fit(X, y)
    away = KernelDiscriminantAnalysis(Linear(), delta=delta).fit(X + 100, y)
    assert_close(away.delta_, near.delta_, 1e-9)
    with pytest.warns(UserWarning, match=r"so far above ‖φ\(x\) − μ‖².*; subtract the mean of each column"):
        far = KernelDiscriminantAnalysis(kernel, delta=delta).fit(X + 1e5, y)
    assert far.score(X + 1e5, y) > 0.85
    assert far.report_.warnings


def test_the_default_delta_is_chosen_on_few_of_many_rows():
    X, y = make_blobs(1300, 3, centers=3, cluster_std=4.0, random_state=0)
    y[:2] = 7  # too rare to be drawn for sure
    model = KernelDiscriminantAnalysis(KERNEL).fit(X, y)
    assert any("on 500 rows" in note for note in model.report_.notes)
    exact = KernelDiscriminantAnalysis(KERNEL, delta="loo").fit(X, y)
    assert abs(model.score(X, y) - exact.score(X, y)) < 0.02


def test_the_default_delta_of_rows_drawn_from_one_class_is_a_share_of_the_trace():
    X = np.random.default_rng(0).normal(size=(1100, 2))
    y = np.arange(1100) == 3
    for seed in range(20):
        model = KernelDiscriminantAnalysis(KERNEL, random_state=seed).fit(X, y)
        if any("of one class" in note for note in model.report_.notes):
            assert 0 < model.delta_ <= 0.01 * np.mean(1 - KERNEL(X)) * 1.1  # of 500 of the rows
            return
    pytest.fail("the only row of its class was drawn by each of twenty seeds")


@pytest.mark.filterwarnings("ignore:.*no Mercer kernel|.*not a Mercer kernel")
def test_the_default_delta_makes_an_indefinite_matrix_definite(data):
    X, y = data
    noise = np.triu(np.random.default_rng(1).normal(scale=0.05, size=(200, 200)), 1)
    K = KERNEL(X) + noise + noise.T
    least = np.linalg.eigvalsh(K)[0]
    assert least < -0.5
    model = KernelDiscriminantAnalysis(Precomputed()).fit(K, y)
    assert model.delta_ > -least
    assert model.leave_one_out_deltas_.min() > -least


@pytest.mark.filterwarnings("ignore:.*not a Mercer kernel")
def test_a_delta_that_few_rows_choose_makes_the_matrix_of_all_rows_definite(monkeypatch):
    """The negative eigenvalues of an indefinite kernel grow with n: those of m rows drawn are smaller by m/n."""
    monkeypatch.setattr("mercer.estimators.discriminant.delta.DELTA_ROWS", 60)
    X = np.random.default_rng(0).normal(size=(600, 3))
    kernel = Formula("exp(-0.5 * sqdist) - 0.05 * dot")
    centring = np.eye(600) - 1 / 600
    least = np.linalg.eigvalsh(centring @ kernel(X) @ centring)[0]
    assert least < -5
    model = KernelDiscriminantAnalysis(kernel).fit(X, X[:, 0] * X[:, 1] > 0)
    assert any("on 60 rows" in note for note in model.report_.notes)
    assert model.leave_one_out_deltas_.min() > -least
    assert model.delta_ > -least


def test_classes_that_no_line_separates():
    X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    assert KernelDiscriminantAnalysis(Linear()).fit(X, y).score(X, y) < 0.7
    model = KernelDiscriminantAnalysis(Gaussian(gamma=1.0)).fit(X, y)
    assert model.score(X, y) == 1.0
    scores = model.transform(X)[:, 0]
    assert scores[y == 1].min() > scores[y == 0].max()


def test_probabilities_agree_with_labels(data):
    X, y = data
    for labels in (y, y > 1):
        model = KernelDiscriminantAnalysis(KERNEL).fit(X, labels)
        new = np.random.default_rng(1).normal(size=(500, 4)) * 3
        P = model.predict_proba(new)
        assert_close(P.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new))
        scores = model.decision_function(new)
        assert scores.shape == ((500,) if len(model.classes_) == 2 else (500, 5))


def test_probabilities_are_those_of_gaussian_classes(data):
    X, y = data
    model = KernelDiscriminantAnalysis(KERNEL, priors=[0.1, 0.2, 0.3, 0.2, 0.2]).fit(X, y)
    Z = model.transform(X)
    away, inverse = Z[:, None] - model.score_means_, np.linalg.inv(model.score_covariance_)
    density = model.priors_ * np.exp(-0.5 * np.einsum("ncj,jk,nck->nc", away, inverse, away))
    np.testing.assert_allclose(model.predict_proba(X), density / density.sum(axis=1, keepdims=True), atol=1e-9)


def test_priors_move_the_boundary_not_the_directions(data):
    X, y = data
    plain = KernelDiscriminantAnalysis(KERNEL).fit(X, y)
    assert_close(plain.priors_, np.bincount(y) / 200)
    rare = KernelDiscriminantAnalysis(KERNEL, priors=[0.96, 0.01, 0.01, 0.01, 0.01]).fit(X, y)
    np.testing.assert_array_equal(rare.dual_coef_, plain.dual_coef_)
    assert np.mean(rare.predict(X) == 0) > np.mean(plain.predict(X) == 0)


def test_fewer_components_are_the_first_ones(data):
    X, y = data
    whole, two = (KernelDiscriminantAnalysis(KERNEL, k).fit(X, y) for k in (None, 2))
    np.testing.assert_allclose(two.transform(X), whole.transform(X)[:, :2], atol=1e-9)
    assert np.all(np.diff(whole.eigenvalues_) < 0)
    assert two.means_.shape == (5, 2)
    assert list(two.get_feature_names_out()) == ["kerneldiscriminantanalysis0", "kerneldiscriminantanalysis1"]


@pytest.mark.parametrize("solver", ["regression", "eigen"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_beyond_the_rank_are_dropped(solver, dtype, data):
    X, y = data
    model = KernelDiscriminantAnalysis(Linear(), solver=solver).fit(X[:, :2].astype(dtype), y)
    assert model.transform(X[:, :2]).shape == (200, 2)
    assert any("2 of 4 directions" in note for note in model.report_.notes)


@pytest.mark.parametrize("solver", ["auto", "eigen"])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
def test_a_constant_direction_is_no_discriminant(solver, delta):
    """(γxz + 1)² of one column has x, x² and 1, which is level. Its ν was what rounding made of 0, over δ."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.append(np.arange(4), rng.integers(0, 4, 26))
        X = rng.normal(size=(30, 1)) + 0.8 * y[:, None]
        model = KernelDiscriminantAnalysis(Polynomial(2, 0.5, 1.0), delta=delta, solver=solver).fit(X, y)
        reference = KernelDiscriminantAnalysis(Polynomial(2, 0.5, 1.0), delta=delta, n_components=2).fit(X, y)
        assert len(model.eigenvalues_) == 2
        np.testing.assert_array_equal(model.predict(X), reference.predict(X))


@pytest.mark.parametrize("solver", ["regression", "eigen"])
def test_duplicates_and_a_class_of_one_member(solver):
    X, y = load_iris(return_X_y=True)
    X, y = np.repeat(X[:101:5], 4, axis=0), np.repeat(y[:101:5], 4)
    X, y = X[:81], y[:81]  # one row of the third class
    assert np.bincount(y)[2] == 1
    model = KernelDiscriminantAnalysis(KERNEL, solver=solver).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.all(np.isfinite(model.predict_proba(X)))
    np.testing.assert_allclose(model.means_[2], model.transform(X[80:])[0], atol=1e-9)
    only = KernelDiscriminantAnalysis(KERNEL, solver=solver).fit(X[[0, 40, 80]], [0, 1, 2])
    assert only.predict(X[[0, 40, 80]]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("solver", ["regression", "eigen"])
def test_coinciding_means_are_refused(solver):
    X, y = [[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1]
    with pytest.raises(InvalidInput, match="coincide"):
        KernelDiscriminantAnalysis(Linear(), solver=solver).fit(X, y)
    with pytest.raises(InvalidInput, match=r"coincide|k\(x, x\) = 0"):
        KernelDiscriminantAnalysis(Linear(), solver=solver).fit(np.zeros((4, 2)), y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": -1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"delta": "much"}, "delta"),
        ({"n_components": 5}, "at most 4"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"solver": "magic"}, "solver"),
        ({"priors": [0.5, 0.5]}, "priors"),
        ({"priors": [0.5, 0.5, 0.5, 0.5, 0.5]}, "priors"),
    ],
    ids=str,
)
def test_bad_parameters(options, words, data):
    with pytest.raises(InvalidInput, match=words):
        KernelDiscriminantAnalysis(KERNEL, **options).fit(*data)


def test_one_class_is_refused():
    with pytest.raises(InvalidInput, match="two classes"):
        KernelDiscriminantAnalysis().fit(np.eye(3), [1, 1, 1])


def test_budgets_are_kept(data):
    for options in ({"solver": "eigen"}, {"delta": "loo"}):
        with pytest.raises(MemoryExceeded, match=r"eigen|delta=None|regression"):
            KernelDiscriminantAnalysis(KERNEL, memory=500_000, **options).fit(*data)
    small = KernelDiscriminantAnalysis(KERNEL, delta=0.01, memory=300_000).fit(*data)
    assert "conjugate gradients" in small.report_.method
    large = KernelDiscriminantAnalysis(KERNEL, delta=0.01).fit(*data)
    np.testing.assert_allclose(small.transform(data[0]), large.transform(data[0]), atol=1e-7)
    fewer = KernelDiscriminantAnalysis(KERNEL, memory=300_000).fit(*data)
    assert any("on 94 rows" in note for note in fewer.report_.notes)


def test_an_indefinite_matrix_is_refused(data):
    K = np.diag([1.0, 1.0, 1.0, 1.0])
    K[:2, :2] = [[1.0, 5.0], [5.0, 1.0]]
    for solver in ("regression", "eigen"):
        with pytest.raises(InvalidInput, match="positive"):
            KernelDiscriminantAnalysis(Precomputed(), delta=None, solver=solver).fit(K, [0, 0, 1, 1])
