"""Online classification: every strategy against its definition written out, chunks of all sizes, and the contract."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.datasets import make_circles, make_classification, make_moons
from sklearn.exceptions import NotFittedError

from mercer import OnlineKernelClassifier, observe
from mercer.errors import Cancelled, InvalidInput, MemoryExceeded
from mercer.estimators.online import online_classifier as module
from mercer.estimators.online.online_estimator import OnlineEstimator
from mercer.kernels import Function, Gaussian, Polynomial, Precomputed
from mercer.testing import assert_close

STRATEGIES = ["merge", "project"]


def rows(n=150, classes=2, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + 0.8 * rng.normal(size=(classes, d))[y], y


def one_by_one(model, X, y):
    """The model after the last row, and how many mistakes there were after each."""
    mistakes = []
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(y.max() + 1))
        mistakes.append(model.mistakes_)
    return model, mistakes


# ---- the definitions -------------------------------------------------------------------------------------------------


def scores(S, B, x, kernel, classes):
    return np.zeros(classes) if not S else kernel(x[None], np.array(S))[0] @ np.array(B)


def best_rival(f, y):
    return max((r for r in range(len(f)) if r != y), key=lambda r: (f[r], -r))


def merging(X, y, classes, gamma, budget, alpha):
    """Two classes have f₀ = −f₁ and the margin 2 y f₁, so that the bound is on half of it."""
    kernel, S, B, mistakes = Gaussian(gamma), [], [], [0]
    for t, (x, c) in enumerate(zip(X, y, strict=True), start=1):
        f = scores(S, B, x, kernel, classes)
        r = best_rival(f, c)
        margin = (f[c] - f[r]) / (2 if classes == 2 else 1)
        mistakes.append(mistakes[-1] + (margin <= 0))
        if margin < alpha * max(t - 1, 1):
            e = np.zeros(classes)
            e[c], e[r] = 1, -1
            S.append(x)
            B.append(e)
        if len(S) > budget:
            merge_smallest(S, B, gamma)
    return np.array(S), np.array(B) / (alpha * len(y)), mistakes[1:]


def merge_smallest(S, B, gamma):
    sizes = [np.linalg.norm(b) for b in B]
    m = int(np.argmin(sizes))
    same = [s for s in range(len(S)) if s != m and np.argmax(B[s]) == np.argmax(B[m])]
    apart = {s: gamma * np.sum((S[s] - S[m]) ** 2) for s in same}
    near = [s for s in same if apart[s] <= 2]

    def share(s):
        p, q, D = sizes[m], sizes[s], apart[s]
        if np.isclose(p, q, rtol=1e-12) and D <= 2:
            return 0.5

        def slope(h):
            return p * (1 - h) * np.exp(-D * (1 - h) ** 2) - q * h * np.exp(-D * h**2)

        if D <= 2:
            return brentq(slope, 0, 0.5, xtol=1e-15)
        return brentq(slope, 0, 0.5 * (1 - np.sqrt(1 - 2 / D)), xtol=1e-15)  # before the minimum between two maxima

    def lost(s):
        p, q, D, h = sizes[m], sizes[s], apart[s], share(s)
        kept = p * np.exp(-D * (1 - h) ** 2) + q * np.exp(-D * h**2)
        return p**2 + q**2 + 2 * p * q * np.exp(-D) - kept**2

    if same:
        s = min(near, key=lost) if near else min(same, key=apart.get)
        h = share(s)
        B[s] = B[m] * np.exp(-apart[s] * (1 - h) ** 2) + B[s] * np.exp(-apart[s] * h**2)
        S[s] = h * S[m] + (1 - h) * S[s]
    S[m], B[m] = S[-1], B[-1]
    S.pop(), B.pop()


def projecting(X, y, classes, kernel, budget, eta):
    """Projectron++ with the inverse of the dictionary's matrix."""
    S, B, mistakes = [], [], [0]
    for x, c in zip(X, y, strict=True):
        f = scores(S, B, x, kernel, classes)
        r = best_rival(f, c)
        margin, e = (f[c] - f[r]) / 2, np.zeros(classes)
        e[c], e[r] = 1, -1
        mistakes.append(mistakes[-1] + (margin <= 0))
        k = kernel(x[None], np.array(S))[0] if S else np.zeros(0)
        d = np.linalg.solve(kernel(np.array(S)), k) if S else k
        square = float(k @ d)
        delta = np.sqrt(max(kernel(x[None])[0, 0] - square, 0))
        if margin <= 0 and delta > eta and len(S) < budget:
            S.append(x)
            B.append(e)
        elif margin <= 0:
            B = [b + di * e for b, di in zip(B, d, strict=True)]
        elif margin < 1 and 1 - margin >= delta / eta and square > 0:
            tau = min(1, (1 - margin) / square, 2 * (1 - margin - delta / eta) / square)
            B = [b + tau * di * e for b, di in zip(B, d, strict=True)]
    return np.array(S), np.array(B), mistakes[1:]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("budget", [1, 12, 1000])
def test_every_strategy_is_its_definition_row_by_row(strategy, classes, budget):
    X, y = rows(classes=classes)
    gamma = 0.3
    if strategy == "merge":
        S, B, mistakes = merging(X, y, classes, gamma, budget, 0.01)
    else:
        S, B, mistakes = projecting(X, y, classes, Gaussian(gamma), budget, 0.3)
    model = OnlineKernelClassifier(Gaussian(gamma), strategy=strategy, budget=budget, alpha=0.01, eta=0.3)
    model, found = one_by_one(model, X, y)
    assert found == mistakes
    np.testing.assert_allclose(model.X_fit_, S, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.dual_coef_, B[:, 1:] if classes == 2 else B, rtol=1e-6, atol=1e-9)
    assert model.n_seen_ == len(y)
    assert len(model.X_fit_) <= budget


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("budget", [3, 20, 500])
def test_the_size_of_the_chunks_does_not_matter(strategy, classes, averaged, budget, monkeypatch):
    X, y = rows(200, classes, d=3 if classes == 2 else 20)  # beyond 16 columns distances come from products
    found = []
    for size in (1, 7, 64, 256):
        monkeypatch.setattr(OnlineEstimator, "_rows_at_once", size)
        model = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=budget, averaged=averaged)
        for cut in (slice(0, 90), slice(90, 200)):
            model.partial_fit(X[cut], y[cut], classes=range(classes))
        found.append(model)
    for other in found[1:]:
        assert other.mistakes_ == found[0].mistakes_
        np.testing.assert_allclose(other.X_fit_, found[0].X_fit_, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other.dual_coef_, found[0].dual_coef_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("budget", "chunk", "widest"), [(20, 4, 4), (11, 4, 2), (520, 256, 2)])
@pytest.mark.parametrize("classes", [2, 3])
def test_wide_chunks_of_mergers_leave_the_model_of_narrow_ones(budget, chunk, widest, classes, monkeypatch):
    """Up to rounding; a chunk is as many times as wide as it goes into the budget, up to `WIDEST`."""
    X, y = rows(150 if chunk == 4 else 1300, classes)
    monkeypatch.setattr(module, "CHUNK", chunk)
    monkeypatch.setattr(OnlineEstimator, "_rows_at_once", chunk)
    sizes, chunks = [], OnlineEstimator._chunks
    monkeypatch.setattr(OnlineEstimator, "_chunks", lambda self, order, size: sizes.append(size) or chunks(order, size))
    wide = OnlineKernelClassifier(Gaussian(0.3), budget=budget, alpha=0.01).partial_fit(X, y)
    monkeypatch.setattr(module, "WIDEST", 1)
    narrow = OnlineKernelClassifier(Gaussian(0.3), budget=budget, alpha=0.01).partial_fit(X, y)
    assert sizes == [widest * chunk, chunk]
    assert wide.mistakes_ == narrow.mistakes_
    np.testing.assert_allclose(wide.X_fit_, narrow.X_fit_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(wide.dual_coef_, narrow.dual_coef_, rtol=1e-9, atol=1e-9)
    assert not np.isin(wide.X_fit_, X).all(), "nothing was merged"
    if chunk == 4:
        S, B, _ = merging(X, y, classes, 0.3, budget, 0.01)
        np.testing.assert_allclose(wide.X_fit_, S, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(wide.dual_coef_, B[:, 1:] if classes == 2 else B, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_average_is_the_mean_over_all_rows(strategy):
    """Where nothing is merged or forgotten; that of a merging model is weighted by t."""
    X, y = rows(60)
    model, every = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, alpha=0.01), []
    for i in range(60):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        every.append((i + 1 if strategy == "merge" else 1) * model.decision_function(X))
    every = np.mean(every, axis=0) / (60 if strategy == "merge" else 1)
    mean = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, alpha=0.01, averaged=True).partial_fit(X, y)
    np.testing.assert_allclose(mean.decision_function(X), every, rtol=1e-8, atol=1e-10)


def test_merging_without_a_budget_is_pegasos():
    """f := (1 − 1/t) f + [y f(x) < 1] y k(x, ·)/(αt)."""
    X, y = rows(80)
    alpha, K, a = 0.05, Gaussian(0.3)(X), np.zeros(80)
    for t, (i, sign) in enumerate(zip(range(80), 2 * y - 1, strict=True), start=1):
        violated = sign * (K[i] @ a) < 1
        a *= 1 - 1 / t
        a[i] = violated * sign / (alpha * t)
    model = OnlineKernelClassifier(Gaussian(0.3), alpha=alpha).partial_fit(X, y)
    assert_close(model.dual_coef_[:, 0], a[a != 0], rtol=1e-9)
    np.testing.assert_array_equal(model.X_fit_, X[a != 0])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_learns_what_no_line_separates(strategy):
    X, y = make_circles(1500, noise=0.1, factor=0.5, random_state=0)
    model = OnlineKernelClassifier(Gaussian(2.0), strategy=strategy, budget=60).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.93
    assert len(model.X_fit_) <= 60


def test_a_budget_costs_little_where_much_is_merged():
    X, y = make_classification(4000, 10, n_informative=6, random_state=0)
    exact = OnlineKernelClassifier(Gaussian(0.03), budget=10**6).fit(X[:3000], y[:3000])
    merged = OnlineKernelClassifier(Gaussian(0.03), budget=100).fit(X[:3000], y[:3000])
    assert len(exact.X_fit_) > 400
    assert merged.score(X[3000:], y[3000:]) > exact.score(X[3000:], y[3000:]) - 0.03


def test_other_kernels_and_other_objects():
    X, y = rows(200)
    model = OnlineKernelClassifier(Polynomial(2, gamma=0.3), budget=30).fit(X, y)
    assert model.score(X, y) > 0.6
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"] * 5
    common = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    model = OnlineKernelClassifier(common, n_passes=3).fit(words, [0, 0, 1, 1, 0, 1] * 5)
    assert model.predict(["abab", "zy"]).tolist() == [0, 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sparse_rows_frames_text_labels_and_float32(strategy):
    X, y = rows(200)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    names = np.array(["no", "yes"])[y]
    model = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=25).fit(X, names)
    expected = model.decision_function(X)
    assert set(model.predict(X)) == {"no", "yes"}
    sparse = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=25).fit(sp.csr_array(X), names)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), expected, rtol=1e-8, atol=1e-9)
    frame = pd.DataFrame(X, columns=list("abc"))
    framed = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=25).fit(frame, names)
    np.testing.assert_array_equal(framed.decision_function(frame), expected)
    narrow = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=25).fit(X.astype(np.float32), names)
    assert narrow.X_fit_.dtype == np.float32
    assert abs(narrow.score(X.astype(np.float32), names) - model.score(X, names)) < 0.1


def test_the_report_tells_what_was_done():
    X, y = rows(200)
    for strategy, words in (("merge", "mergers"), ("project", "projected")):
        model = OnlineKernelClassifier(strategy=strategy, budget=10, n_passes=1).fit(X, y)
        model.partial_fit(X, y)
        text = str(model.report_)
        assert words in text
        assert "400 rows × 3 columns" in text
        assert text.count("in all") == 1
        assert model.report_.residual == model.mistakes_ / 400


def test_few_rows_are_passed_over_more_often_unless_told_otherwise():
    for n, passes in ((200, 10), (3000, 3), (6000, 1)):
        X, y = rows(n)
        model = OnlineKernelClassifier(budget=10).fit(X, y)
        assert model.n_seen_ == passes * n
        again = OnlineKernelClassifier(budget=10, n_passes=passes).fit(X, y)
        np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)


def test_a_call_that_is_cancelled_changes_nothing():
    X, y = rows(1000)

    class Stop:
        def __init__(self):
            self.left = 2

        def on_event(self, event):
            if getattr(event, "what", "") == "rows":
                self.left -= 1
                if not self.left:
                    raise Cancelled("enough")

    for strategy in STRATEGIES:
        model = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=20).partial_fit(X[:100], y[:100])
        before, seen = model.decision_function(X), model.n_seen_
        with pytest.raises(Cancelled), observe(Stop()):
            model.partial_fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), before)
        again = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy, budget=20).partial_fit(X[:100], y[:100])
        np.testing.assert_array_equal(
            model.partial_fit(X[100:], y[100:]).dual_coef_, again.partial_fit(X[100:], y[100:]).dual_coef_
        )
        assert seen == 100
        stopped = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy)
        with pytest.raises(Cancelled), observe(Stop()):
            stopped.partial_fit(X, y)
        with pytest.raises(NotFittedError):
            stopped.predict(X)
        first = OnlineKernelClassifier(Gaussian(0.3), strategy=strategy).partial_fit(X, y)
        np.testing.assert_array_equal(stopped.partial_fit(X, y).dual_coef_, first.dual_coef_)


def test_degenerate_rows():
    for strategy in STRATEGIES:
        model = OnlineKernelClassifier(Gaussian(1.0), strategy=strategy, budget=2)
        model.fit(np.zeros((30, 2)), np.arange(30) % 2)  # one point, both labels
        assert np.all(np.isfinite(model.decision_function(np.zeros((1, 2)))))
        model.fit(1e6 * np.arange(30.0)[:, None], np.arange(30) % 3)  # orthogonal rows
        assert np.all(np.isfinite(model.decision_function(np.zeros((1, 1)))))
        one = OnlineKernelClassifier(strategy=strategy).partial_fit([[1.0, 2.0]], ["a"], classes=["a", "b"])
        assert one.predict([[1.0, 2.0]]) == ["a"]
    model = OnlineKernelClassifier("linear", strategy="project").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_array_equal(model.decision_function(np.ones((3, 2))), 0)


BAD = {
    "strategy": "drop",
    "budget": 0,
    "alpha": 0.0,
    "eta": -1.0,
    "n_passes": 0,
    "random_state": -1,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused(name):
    with pytest.raises(InvalidInput, match=name):
        OnlineKernelClassifier(**{name: BAD[name]}).fit(*rows())


def test_what_cannot_be_is_refused():
    X, y = rows()
    with pytest.raises(InvalidInput, match="merger"):
        OnlineKernelClassifier("linear", strategy="merge").fit(X, y)
    with pytest.raises(InvalidInput, match="merger"):
        OnlineKernelClassifier(2 * Gaussian(), strategy="merge").fit(X, y)
    with pytest.raises(InvalidInput, match="precomputed"):
        OnlineKernelClassifier(Precomputed(), strategy="project").fit(X @ X.T, y)
    with pytest.raises(InvalidInput, match="one class"):
        OnlineKernelClassifier().partial_fit(X, np.zeros(150))
    with pytest.raises(InvalidInput, match=r"the class 2, which is none of \[0, 1\]"):
        OnlineKernelClassifier().partial_fit(X, y).partial_fit(X, y + 1)
    names = np.array(["no", "yes"])[y]
    with pytest.raises(InvalidInput, match=r"the class 'maybe', which is none of \['no', 'yes'\]"):
        OnlineKernelClassifier().partial_fit(X, names).partial_fit(X, np.where(y, "yes", "maybe"))
    for before, after in (("gaussian", "gaussian(gamma=2.0)"), ("laplace", "linear")):
        with pytest.raises(InvalidInput, match=r"kernel=.* after .*; set it back"):
            OnlineKernelClassifier(before).partial_fit(X, y).set_params(kernel=after).partial_fit(X, y)
    with pytest.raises(InvalidInput, match="first call"):
        OnlineKernelClassifier().partial_fit(X, y).partial_fit(X, y, classes=[0, 1, 2])
    for change in ({"strategy": "project"}, {"budget": 5}):
        model = OnlineKernelClassifier().partial_fit(X, y).set_params(**change)
        with pytest.raises(InvalidInput, match="changed"):
            model.partial_fit(X, y)
        assert len(model.fit(X, y).X_fit_) <= model.budget
    with pytest.raises(MemoryExceeded, match="budget"):
        OnlineKernelClassifier(memory=10_000).fit(X, y)
    for strategy in STRATEGIES:
        with pytest.raises(InvalidInput, match=r"finite|overflow"):
            OnlineKernelClassifier(strategy=strategy).fit(X * 1e200, y)
    with pytest.raises(InvalidInput, match="sparse"):
        OnlineKernelClassifier(Gaussian(1.0)).fit(sp.csr_array((150, 10**6)), y)


def test_the_kernel_chooses_the_strategy():
    X, y = make_moons(200, noise=0.1, random_state=0)
    by_default = OnlineKernelClassifier("gaussian(gamma=2.0)").fit(X, y)
    assert 'strategy="merge"' in by_default.report_.reason
    other = OnlineKernelClassifier("laplace").fit(X, y)
    assert 'strategy="project"' in other.report_.reason
    assert other.score(X, y) > 0.9


@pytest.mark.parametrize(("size", "eta"), [(1e4, 1e-6), (1e8, 1e-9), (1e12, 0.1)])
def test_rows_in_the_span_are_projected_whatever_their_size(size, eta):
    """Their distances from it are rounding, which an η of another unit does not tell."""
    for seed in range(8):
        X = np.random.default_rng(seed).standard_normal((300, 3)) * size
        y = X[:, 0] * X[:, 1] > 0
        model = OnlineKernelClassifier("linear", strategy="project", eta=eta, shuffle=False, n_passes=1).fit(X, y)
        assert len(model.X_fit_) == 3
