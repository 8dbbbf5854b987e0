"""The perceptron's rule: which entries of K it asks for, and what weights of which the sum is small mean."""

import numpy as np
import pytest

from mercer.operators import Dense
from mercer.solvers import ClassificationProblem, PerceptronRule, solve


class Asked(Dense):
    """A matrix that counts the entries it is asked for."""

    entries = 0

    def rows(self, I):
        self.entries += len(I) * self.shape[1]
        return super().rows(I)

    def block(self, I, J):
        self.entries += len(I) * len(J)
        return super().block(I, J)


def test_a_pass_asks_for_the_columns_of_the_chunk_and_of_mistakes():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    X, n = X[np.abs(X[:, 0]) > 0.3][:2000], 2000
    y = (X[:, 0] > 0).astype(np.int64)
    K = Asked(X @ X.T, symmetric=True)
    solution = solve(PerceptronRule(shuffle=False), ClassificationProblem(K, y, 2))
    assert solution.status.name == "CONVERGED"
    mistakes = np.count_nonzero(solution.x[1:, 1])
    assert K.entries <= solution.steps * n * (256 + mistakes)
    np.testing.assert_array_equal((K.array @ solution.x[1:, 1] + solution.x[0, 1] > 0), y == 1)


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-9])
def test_the_mean_is_over_the_weight_that_was_visited(scale):
    """The weights are parts of visits, so that a scale of all of them scales α, and nothing else."""
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((30, 2)), rng.integers(0, 2, 30), scale * rng.uniform(0.1, 1.0, 30)
    A, total, K = np.zeros((31, 2)), np.zeros((31, 2)), X @ X.T
    for i in np.tile(np.arange(30), 2):
        f, other = K[i] @ A[1:] + A[0], 1 - y[i]
        if f[y[i]] <= f[other]:
            for place in (1 + i, 0):
                A[place, y[i]] += w[i]
                A[place, other] -= w[i]
        total += w[i] * A
    problem = ClassificationProblem(Dense(K, symmetric=True), y, 2, w)
    found = solve(PerceptronRule(averaged=True, shuffle=False), problem, max_steps=2).x
    np.testing.assert_allclose(found, total / (2 * w.sum()), rtol=1e-9, atol=1e-12 * scale)
