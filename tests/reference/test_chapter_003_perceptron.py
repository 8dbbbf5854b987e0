"""Chapter 003, kernel methods: the kernel perceptron with squared error loss, its formulas written out naively."""

import numpy as np
import pytest
from sklearn.datasets import make_circles

from mercer import KernelPerceptron
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.testing import assert_close

X, LABELS = make_circles(24, noise=0.1, factor=0.5, random_state=0)
Y = 2.0 * LABELS - 1
KERNELS = [Gaussian.from_sigma(0.7), Polynomial(degree=2, gamma=1.0, coef0=1.0), Linear()]


def with_dummy(kernel):
    """κ(xₙ, xᵢ) for n = 0, …, N, the dummy example first: κ(x₀, x) = 1."""
    return np.vstack([np.ones(len(X)), kernel(X)])


def objective(kappa, alpha):
    """ε(α) = Σᵢ (yᵢ − Σⱼ αⱼ κ(xⱼ, xᵢ))²."""
    return sum((Y[i] - sum(alpha[j] * kappa[j, i] for j in range(len(alpha)))) ** 2 for i in range(len(Y)))


def gradient(kappa, alpha):
    """∂ε/∂α_k = −2 Σᵢ (yᵢ − Σⱼ αⱼ κ(xⱼ, xᵢ)) κ(x_k, xᵢ)."""
    return np.array(
        [-2 * sum((Y[i] - alpha @ kappa[:, i]) * kappa[k, i] for i in range(len(Y))) for k in range(len(alpha))]
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_step_is_gradient_descent_in_alpha(kernel):
    kappa, alpha = with_dummy(kernel), np.zeros(1 + len(X))
    model = KernelPerceptron(kernel, max_iter=30, tol=None, keep_history=True).fit(X, LABELS)
    for frame in model.history_:
        np.testing.assert_allclose(frame[:, 0], alpha, rtol=1e-9, atol=1e-11)
        alpha = alpha - model.step_size_ * gradient(kappa, alpha)
    small = np.full(1 + len(X), 1e-6)
    slope = (objective(kappa, alpha + small) - objective(kappa, alpha - small)) / 2e-6
    assert slope == pytest.approx(gradient(kappa, alpha).sum(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_objective_falls_at_every_step(kernel):
    kappa = with_dummy(kernel)
    model = KernelPerceptron(kernel, max_iter=60, tol=None, keep_history=True).fit(X, LABELS)
    errors = [objective(kappa, frame[:, 0]) for frame in model.history_]
    assert np.all(np.diff(errors) < 0)
    assert model.step_size_ == pytest.approx(0.95 / np.linalg.eigvalsh(kappa.T @ kappa)[-1], rel=1e-3)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_classifier_is_a_sum_over_the_examples_and_the_dummy(kernel):
    model = KernelPerceptron(kernel, max_iter=40, tol=None).fit(X, LABELS)
    alpha = np.r_[model.intercept_, model.dual_coef_[:, 0]]
    new = np.random.default_rng(1).normal(size=(9, 2))
    expected = alpha @ np.vstack([np.ones(9), kernel(X, new)])
    assert_close(model.decision_function(new), expected, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(new), expected > 0)


def test_the_primal_step_is_the_step_in_alpha():
    """w := w − η Σᵢ βᵢ Φ(xᵢ) with βᵢ = wᵀΦ(xᵢ) − yᵢ keeps w = Σ αᵢΦ(xᵢ), and (Eq. 1) is that with Φ(x) = (1, x)."""
    phi, w, alpha = np.hstack([np.ones((len(X), 1)), X]), np.zeros(3), np.zeros(len(X))
    for _ in range(50):
        beta = phi @ w - Y
        w, alpha = w - 0.01 * phi.T @ beta, alpha - 0.01 * beta
        np.testing.assert_allclose(phi.T @ alpha, w, atol=1e-12)


def test_two_classes_that_no_line_separates():
    for method in ("gradient", "plain"):
        line = KernelPerceptron("linear", method=method, max_iter=200, tol=None).fit(X, LABELS)
        assert line.score(X, LABELS) < 0.8
        assert KernelPerceptron(KERNELS[0], method=method).fit(X, LABELS).score(X, LABELS) == 1.0


def test_most_alphas_have_the_sign_of_their_own_class():
    """'These α's will probably be negative', 'probably be positive'."""
    model = KernelPerceptron(Gaussian.from_sigma(0.2), max_iter=100, tol=None).fit(X, LABELS)
    assert np.mean(np.sign(model.dual_coef_[:, 0]) == Y) > 0.9
