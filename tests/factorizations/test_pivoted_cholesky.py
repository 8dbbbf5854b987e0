"""Randomly pivoted Cholesky against its plain definition, and against the bound on its expected trace."""

import importlib

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.approx import pivoted_cholesky
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.operators import Dense
from mercer.testing import assert_close


def decaying(n=60, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = (Q * 0.8 ** np.arange(n)) @ Q.T
    return (A + A.T) / 2


def kernel_operator(n=400, d=3, dtype=np.float64):
    X = np.random.default_rng(0).standard_normal((n, d))
    return KernelOperator(Gaussian(0.5), X.astype(dtype))


@pytest.mark.parametrize("block", [1, 7, 120])
def test_equals_a_column_at_a_time_on_the_same_pivots(block):
    K = kernel_operator()
    found, A = pivoted_cholesky(K, 50, block=block, seed=3), K.toarray()
    F = np.zeros((len(A), 0))
    for s in found.pivots:
        column = A[:, s] - F @ F[s]
        F = np.column_stack([F, column / np.sqrt(column[s])])
    np.testing.assert_allclose(found.F, F, atol=1e-9)
    assert_close(found.residual_trace, np.trace(A - F @ F.T), rtol=1e-10)
    assert found.rank == len(set(found.pivots)) == 50
    assert found.trace == pytest.approx(400.0)


def law_of_two_pivots(A):
    """P(first = i, second = j) by the definition: each in proportion to the diagonal that is left."""
    law = np.zeros(A.shape)
    for i in range(len(A)):
        left = np.diagonal(A - np.outer(A[:, i], A[i]) / A[i, i])
        law[i] = A[i, i] / np.trace(A) * left / left.sum()
    return law


def drawn(block, repeats=3000):
    A = np.array([[3.0, 2.5, 0.2], [2.5, 2.5, 0.1], [0.2, 0.1, 1.0]])
    counts = np.zeros(A.shape)
    for seed in range(repeats):
        i, j = pivoted_cholesky(Dense(A), 2, block=block, seed=seed).pivots
        counts[i, j] += 1
    expected = repeats * law_of_two_pivots(A)
    off = ~np.eye(3, dtype=bool)
    return float(np.sum((counts - expected)[off] ** 2 / expected[off]))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("block", [1, 8])
def test_a_matrix_that_is_not_finite_beside_its_diagonal_is_refused(wrong, block):
    A, asked = decaying(), []
    A[:, 7] = A[7] = wrong
    A[7, 7] = 1.0

    class Counted(Dense):
        def block(self, I, J):
            asked.append(len(I))
            assert len(asked) < 1000, "it goes on for ever"
            return super().block(I, J)

    with pytest.raises(InvalidInput, match="not finite"):
        pivoted_cholesky(Counted(A, symmetric=True), 60, block=block)


@pytest.mark.parametrize("block", [1, 8])
def test_pivots_have_the_law_of_one_at_a_time(block):
    assert drawn(block) < 20.5  # χ² with 5 degrees of freedom beyond this once in a thousand


def test_without_rejection_the_law_would_be_another(monkeypatch):
    import importlib

    module = importlib.import_module("mercer.factorizations.pivoted_cholesky")
    honest = module._accepted
    monkeypatch.setattr(module, "_accepted", lambda G, noise, uniform: honest(G, noise, 0.0 * uniform))
    assert drawn(8) > 100


def test_the_expected_trace_is_within_its_bound():
    A = decaying()
    tail = lambda k: np.sort(np.linalg.eigvalsh(A))[::-1][k:].sum()  # noqa: E731
    k, eps = 5, 1.0
    r = int(np.ceil(k / eps + k * np.log(np.trace(A) / (eps * tail(k)))))
    mean = np.mean([pivoted_cholesky(Dense(A), r, seed=seed).residual_trace for seed in range(40)])
    assert tail(r) <= mean <= (1 + eps) * tail(k)


def test_grown_until_the_tolerance_or_the_cap():
    K = kernel_operator()
    found = pivoted_cholesky(K, 400, tol=1.0)
    assert found.residual_trace <= 1.0
    assert found.rank < 250
    assert pivoted_cholesky(K, 10, tol=1.0).rank == 10
    assert pivoted_cholesky(K, 400, tol=400.0).rank == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stops_at_rounding_and_never_takes_noise_for_a_pivot(dtype):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((300, 5)).astype(dtype)
    found = pivoted_cholesky(Dense(B @ B.T, symmetric=True), 300)
    assert found.rank == 5
    assert found.F.dtype == dtype
    np.testing.assert_allclose(found.F @ found.F.T, B @ B.T, atol=2e3 * np.finfo(dtype).eps)
    duplicated = np.repeat(rng.standard_normal((40, 3)), 5, axis=0)
    assert pivoted_cholesky(KernelOperator(Gaussian(0.5), duplicated), 200).rank <= 40


def test_float32_entries_follow_float64_ones():
    wide, narrow = pivoted_cholesky(kernel_operator(), 60), pivoted_cholesky(kernel_operator(dtype=np.float32), 60)
    assert narrow.F.dtype == np.float32
    assert narrow.residual_trace == pytest.approx(wide.residual_trace, rel=0.2)
    K = kernel_operator().toarray()
    assert np.linalg.eigvalsh(K - narrow.F.astype(float) @ narrow.F.T.astype(float)).min() > -1e-4


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    K = kernel_operator()
    first, second, third = (pivoted_cholesky(K, 30, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.F, second.F)
    assert not np.array_equal(first.pivots, third.pivots)


def test_what_is_no_mercer_matrix_is_refused():
    with pytest.raises(InvalidInput, match="symmetric"):
        pivoted_cholesky(Dense(np.triu(np.ones((3, 3)))), 2)
    with pytest.raises(InvalidInput, match="negative"):
        pivoted_cholesky(Dense(np.diag([1.0, -1.0])), 2)
    with pytest.raises(InvalidInput, match="max_rank"):
        pivoted_cholesky(Dense(np.eye(2)), -1)


def test_nothing_asked_for_and_nothing_there():
    assert pivoted_cholesky(Dense(np.zeros((3, 3))), 3).rank == 0
    assert pivoted_cholesky(Dense(np.eye(3)), 0).F.shape == (3, 0)
    assert pivoted_cholesky(Dense(np.eye(3)), 100).rank == 3


def test_a_diagonal_of_less_precision_than_the_entries_comes_to_an_end():
    """Rounding that the diagonal alone has looks like something left, and can never be accepted."""

    class Rounded(Dense):
        def diagonal(self):
            return super().diagonal() * (1 + 1e-7)

    X = np.random.default_rng(0).standard_normal((80, 3))
    found = pivoted_cholesky(Rounded(X @ X.T, symmetric=True), 40)
    assert found.rank == 3
    np.testing.assert_allclose(found.F @ found.F.T, X @ X.T, atol=1e-12)


def test_float32_rows_with_float64_entries_have_a_float64_diagonal():
    X = np.random.default_rng(0).standard_normal((50, 5)).astype(np.float32)
    K = KernelOperator("linear", X, dtype=np.float64)
    np.testing.assert_array_max_ulp(K.diagonal(), np.diagonal(K.toarray()), 4)


def test_correlation_of_what_is_left_and_the_norm_of_the_factor():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((60, 90))
    A = W @ W.T
    found = pivoted_cholesky(Dense(A, symmetric=True), 5)
    E = A - found.F @ found.F.T
    np.testing.assert_allclose(found.left, np.maximum(np.diagonal(E), 0), atol=1e-9)
    there = np.flatnonzero(found.left)
    rho = E[np.ix_(there, there)] / np.sqrt(np.outer(found.left[there], found.left[there]))
    every = np.sum(rho**2, axis=1) - 1
    assert every.min() <= found.correlation(Dense(A, symmetric=True)) <= every.max()
    assert (
        pivoted_cholesky(Dense(np.diag(np.arange(1.0, 9.0))), 3).correlation(Dense(np.diag(np.arange(1.0, 9.0)))) == 0
    )
    assert pivoted_cholesky(Dense(np.eye(4)), 4).correlation(Dense(np.eye(4))) == 0
    s = 10.0 ** rng.uniform(-2.0, 2.0, 60)
    exact = np.linalg.norm(s[:, None] * found.F, 2) ** 2
    assert 0.5 * exact < found.norm(s) <= exact * (1 + 1e-9)
    assert pivoted_cholesky(Dense(np.zeros((4, 4))), 4).norm() == 0.0


def test_correlations_of_many_rows_are_summed_by_parts(monkeypatch):
    """64 rows of A, of FFᵀ, and their differences in float64 took 300 MB at 300 000 rows, which no plan counted."""
    module = importlib.import_module("mercer.factorizations.pivoted_cholesky")
    K, shapes, plain = kernel_operator(5000), [], module.squared_correlations
    found = pivoted_cholesky(K, 20)
    whole = found.correlation(K)

    def recorded(rows, known, left):
        shapes.append(rows.shape)
        return plain(rows, known, left)

    monkeypatch.setattr(module, "BLOCK_ENTRIES", 64 * 700)
    monkeypatch.setattr(module, "squared_correlations", recorded)
    assert found.correlation(K) == pytest.approx(whole, rel=1e-10)
    assert max(rows * columns for rows, columns in shapes) <= 64 * 700 < 64 * 5000
