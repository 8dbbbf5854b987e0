"""The perceptron's rule: which entries of K it asks for."""

import numpy as np

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
