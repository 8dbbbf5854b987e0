"""Chapter 003, slides on kernel methods: the support vector machine, in w and in α."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import SVC
from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid

RNG = np.random.default_rng(3)
X = RNG.standard_normal((40, 2))
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.standard_normal(40) > 0.7, 1.0, -1.0)
NEW = RNG.standard_normal((25, 2))


def chapter_objective(a, a0, K, C):
    """ΣΣ αᵢαⱼκ(xᵢ, xⱼ) + C Σξᵢ, with the smallest ξ that the constraints allow."""
    return a @ K @ a + C * np.maximum(0, 1 - Y * (K @ a + a0)).sum()


def alphas(model):
    a = np.zeros(len(X))
    a[model.support_] = model.dual_coef_[0]
    return a


@pytest.mark.parametrize(
    ("kernel", "features"),
    [
        (Linear(), lambda x: x),
        (Polynomial(2, gamma=1.0, coef0=0.0), lambda x: np.c_[x[:, 0] ** 2, 2**0.5 * x[:, 0] * x[:, 1], x[:, 1] ** 2]),
    ],
    ids=["x", "(x1², √2 x1 x2, x2²)"],
)
def test_the_support_vector_machine_minimises_the_chapters_objective_in_w(kernel, features):
    """min wᵀw + C Σξᵢ with yᵢ(wᵀφ(xᵢ) + w₀) ≥ 1 − ξᵢ, by a general solver; its C is twice that of ½wᵀw + C Σξᵢ."""
    C, F = 3.0, features(X)
    model = SVC(C / 2, kernel, tol=1e-9).fit(X, Y)
    d, n = F.shape[1], len(F)

    def value(v):
        return v[:d] @ v[:d] + C * v[d + 1 :].sum()

    margin = {"type": "ineq", "fun": lambda v: Y * (F @ v[:d] + v[d]) - 1 + v[d + 1 :]}
    box = [(None, None)] * (d + 1) + [(0, None)] * n
    start = np.r_[np.zeros(d + 1), np.ones(n)]
    best = minimize(
        value, start, bounds=box, constraints=margin, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12}
    )
    a = alphas(model)
    assert chapter_objective(a, model.intercept_[0], kernel(X), C) == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(a @ F, best.x[:d], atol=1e-4)  # w = Σ αⱼφ(xⱼ)
    np.testing.assert_allclose(model.decision_function(NEW), features(NEW) @ best.x[:d] + best.x[d], atol=1e-3)


@pytest.mark.parametrize("kernel", [Polynomial(3, gamma=1.0, coef0=1.0), Gaussian(gamma=1 / (2 * 0.7**2))], ids=repr)
def test_no_other_alpha_lowers_the_kernelised_objective(kernel, rng):
    """min ΣΣ αᵢαⱼκ(xᵢ, xⱼ) + C Σξᵢ with yᵢ(Σ αⱼκ(xᵢ, xⱼ) + α₀) ≥ 1 − ξᵢ."""
    C, K = 3.0, kernel(X)
    model = SVC(C / 2, kernel, tol=1e-9).fit(X, Y)
    a, a0 = alphas(model), float(model.intercept_[0])
    least = chapter_objective(a, a0, K, C)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            other = chapter_objective(a + size * rng.standard_normal(len(a)), a0 + size * rng.standard_normal(), K, C)
            assert other >= least - 1e-9 * abs(least)


def test_the_classification_needs_the_support_vectors_only():
    """f(x) = Σₖ αₖ κ(xₖ, x) + α₀ over the rows with αₖ ≠ 0: those on or within the margin."""
    kernel = Gaussian(gamma=1.0)
    model = SVC(0.5, kernel, tol=1e-9).fit(X, Y)
    few = model.support_
    assert 0 < len(few) < len(X)
    f = kernel(NEW, X[few]) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(NEW), f, atol=1e-9)
    margin = Y * model.decision_function(X)
    assert np.all(margin[few] <= 1 + 1e-6)
    assert np.all(np.delete(margin, few) >= 1 - 1e-6)


def test_c_trades_errors_for_the_margin():
    """A larger C gives fewer errors on the training rows, and a narrower margin 1/‖w‖."""
    kernel = Gaussian(gamma=1.0)
    path = SVC(kernel=kernel, tol=1e-9).path(X, Y, [0.1, 1.0, 10.0, 100.0])
    norms = [alphas(model) @ kernel(X) @ alphas(model) for model in path]
    slack = [np.maximum(0, 1 - Y * model.decision_function(X)).sum() for model in path]
    assert np.all(np.diff(norms) > 0)
    assert np.all(np.diff(slack) < 0)


def test_the_sigmoid_is_no_kernel_and_says_so():
    """κ(x, z) = tanh(xᵀz) of the slides has negative eigenvalues; the machine's answer is a stationary point."""
    kernel = Sigmoid(gamma=1.0, coef0=0.0)
    assert np.linalg.eigvalsh(kernel(X))[0] < -1e-6
    model = SVC(1.0, kernel).fit(X, Y)
    assert model.report_.residual <= 1e-3
    assert any("not proved" in note for note in model.report_.notes)
