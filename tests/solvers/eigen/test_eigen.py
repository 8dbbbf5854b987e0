"""LAPACK's subset and block Krylov against NumPy, and on repeated, missing, negative and zero eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.operators import Centered, Dense, Diagonal, Identity, LowRank
from mercer.solvers import BlockKrylov, DenseEigen, Eigenproblem, Status, leading_pairs, rayleigh_ritz, solve
from mercer.testing import assert_close

RNG = np.random.default_rng(4)
SOLVERS = [DenseEigen(), BlockKrylov(tol=1e-9), BlockKrylov(tol=1e-9, start_from="random")]


def with_spectrum(values, seed=0):
    values = np.asarray(values, float)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


def check(solution, A, k, rtol=1e-7):
    assert solution.converged, solution.status
    wanted = np.linalg.eigvalsh(np.asarray(A, np.float64))[::-1][:k]
    values, V = solution.x.values, solution.x.vectors
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(values, wanted, atol=rtol * max(scale, 1e-300))
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-7)
    np.testing.assert_allclose(A @ V, V * values, atol=1e-6 * max(scale, 1e-300))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize(
    "spectrum",
    [
        np.logspace(0, -8, 200),
        np.linspace(1, 2, 200),
        np.repeat([5.0, 4.0, 1.0], [3, 8, 189]),
        np.concatenate([np.linspace(-10, -1, 150), np.linspace(0, 3, 50)]),
        -np.logspace(0, -3, 200),
        np.concatenate([[1e6], np.full(199, 1.0)]),
    ],
    ids=["decaying", "flat", "repeated", "indefinite", "negative", "one alone"],
)
def test_against_numpy(solver, spectrum):
    A = with_spectrum(spectrum)
    check(solve(solver, Eigenproblem(Dense(A), 6)), A, 6)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 25), seed=st.integers(0, 100), data=st.data())
def test_small_matrices_and_any_k(n, seed, data):
    k = data.draw(st.integers(1, n))
    A = np.random.default_rng(seed).standard_normal((n, n))
    A = A + A.T
    for solver in SOLVERS:
        check(solve(solver, Eigenproblem(Dense(A), k)), A, k)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_fewer_eigenvalues_than_were_asked_for(solver, rng):
    F = rng.standard_normal((150, 3))
    solution = solve(solver, Eigenproblem(LowRank(F), 6))
    assert solution.converged
    assert_close(solution.x.values[:3], np.linalg.eigvalsh(F.T @ F)[::-1])
    np.testing.assert_allclose(solution.x.values[3:], 0, atol=1e-10)
    assert np.isfinite(solution.x.vectors).all()
    if isinstance(solver, BlockKrylov):
        assert solution.status is Status.RANK_DEFICIENT


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_zero_matrix(solver):
    solution = solve(solver, Eigenproblem(Dense(np.zeros((60, 60))), 4))
    assert solution.converged
    assert (solution.x.values == 0).all()
    np.testing.assert_allclose(solution.x.vectors.T @ solution.x.vectors, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("offset", [0.0, 1.0, -5.0])
def test_hundreds_of_equal_eigenvalues(sign, offset):
    """LAPACK's search by index finds none of those of a centred unit matrix, which is that of a kernel too narrow."""
    A = sign * (np.eye(300) - 1 / 300) + offset * np.eye(300)
    check(solve(DenseEigen(), Eigenproblem(Dense(A), 4)), A, 4)
    pairs = leading_pairs(A, 3, np.diag(np.linspace(1.0, 1.0 + 1e-15, 300)))
    np.testing.assert_allclose(pairs[0], np.linalg.eigvalsh(A)[::-1][:3], atol=1e-12)


def test_what_is_overwritten_is_not_lost():
    """A search that misses eigenvalues goes on in the triangle that it left alone."""
    A = np.eye(300) - 1 / 300
    values, vectors = leading_pairs(np.asfortranarray(A), 299, overwrite=True)
    assert_close(values, 1.0)
    np.testing.assert_allclose(A @ vectors, vectors, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(299), atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_what_is_not_finite_is_reported(solver):
    A = with_spectrum(np.linspace(0, 1, 80))
    A[3, 3] = np.nan
    solution = solve(solver, Eigenproblem(Dense(A, symmetric=True), 3))
    assert solution.status is Status.NOT_FINITE
    assert not solution.converged


def test_sampled_rows_do_not_hide_what_they_cannot_see():
    """Rows of a block-diagonal matrix span invariant subspaces; the largest block is not among those sampled."""
    d = np.ones(600)
    d[431] = 3.0
    check(solve(BlockKrylov(tol=1e-9), Eigenproblem(Diagonal(d), 3)), np.diag(d), 3)
    blocks = np.kron(np.eye(100), np.ones((4, 4))) + 0.5 * np.eye(400)
    blocks[200, 200] = 9.0
    check(solve(BlockKrylov(tol=1e-9), Eigenproblem(Dense(blocks), 2)), blocks, 2)


def test_float32_entries_are_multiplied_in_float32_and_the_rest_is_float64(rng):
    points = rng.standard_normal((400, 3))
    K = np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(-1))
    A = Centered(Dense(K.astype(np.float32), symmetric=True))
    H = np.eye(400) - 1 / 400
    wanted = np.linalg.eigvalsh(H @ K @ H)[::-1][:10]
    solution = solve(BlockKrylov(tol=1e-5), Eigenproblem(A, 10))
    assert solution.converged
    assert_close(solution.x.values, wanted, rtol=1e-5)
    assert Eigenproblem(A, 10).residual(solution.x) == pytest.approx(solution.residual, rel=0.1, abs=1e-6)
    refined = rayleigh_ritz(solution.x.vectors, Centered(Dense(K)) @ solution.x.vectors)
    assert_close(refined.values, wanted, rtol=1e-6)


def test_a_tolerance_below_the_products_precision_stalls_and_says_so():
    class Coarse(Dense):
        def _matmat(self, V):
            return (self.array @ V).astype(np.float16).astype(V.dtype)

    solution = solve(BlockKrylov(tol=1e-7), Eigenproblem(Coarse(with_spectrum(np.logspace(0, -3, 300))), 5))
    assert solution.status is Status.STALLED
    assert solution.x.values[0] == pytest.approx(1.0, abs=1e-2)


def test_the_basis_is_bounded_however_long_it_runs():
    A = Dense(with_spectrum(np.linspace(1, 1.5, 300)))
    solution = solve(BlockKrylov(tol=1e-10, block=4), Eigenproblem(A, 2))
    check(solution, A.array, 2)
    assert solution.steps > 16
    assert len(solution.state.V) <= 40


def test_narrow_blocks_find_repeated_eigenvalues_only_as_often_as_they_are_wide_and_default_ones_all():
    d = np.concatenate([np.full(12, 2.0), np.linspace(0, 1, 288)])
    check(solve(BlockKrylov(tol=1e-9), Eigenproblem(Diagonal(d), 12)), np.diag(d), 12)


def test_seeds_give_other_starts_and_the_same_values():
    A = Dense(with_spectrum(np.logspace(0, -6, 200)))
    a, b = (solve(BlockKrylov(tol=1e-9), Eigenproblem(A, 4, seed=seed)) for seed in (0, 1))
    assert_close(a.x.values, b.x.values, rtol=1e-9)
    assert not np.array_equal(a.x.values, b.x.values) or not np.array_equal(a.x.vectors, b.x.vectors)


def test_one_by_one():
    for solver in SOLVERS:
        assert solve(solver, Eigenproblem(Dense([[7.0]]), 1)).x.values.tolist() == pytest.approx([7.0])


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Eigenproblem(Dense([[1.0, 2.0], [3.0, 4.0]]), 1),
        lambda: Eigenproblem(Identity(3), 0),
        lambda: Eigenproblem(Identity(3), 4),
        lambda: BlockKrylov(tol=-1.0),
        lambda: BlockKrylov(block=0),
        lambda: BlockKrylov(start_from="zeros"),
    ],
)
def test_what_does_not_fit_is_refused_with_advice(attempt):
    with pytest.raises(InvalidInput, match=r"\w+: .+; .+\."):
        attempt()


def test_the_powered_basis_is_orthonormal_and_closer_to_the_leading_subspace():
    d = np.r_[np.linspace(2, 1, 5), 0.5 ** np.arange(1, 196)]
    pairs = solve(BlockKrylov(tol=1e-12, block=8, max_steps=2, start_from="random"), Eigenproblem(Diagonal(d), 5)).x
    ahead = pairs.powered()
    assert np.allclose(ahead.T @ ahead, np.eye(5), atol=1e-12)
    distance = [np.linalg.norm(basis[5:], 2) for basis in (pairs.vectors, ahead)]
    assert distance[1] < 0.5 * distance[0]


def test_the_powered_basis_keeps_vectors_whose_images_are_rounding():
    d = np.r_[3.0, 2.0, np.zeros(98)]
    pairs = solve(BlockKrylov(tol=1e-9), Eigenproblem(Diagonal(d), 4)).x
    ahead = pairs.powered()
    assert np.allclose(ahead.T @ ahead, np.eye(4), atol=1e-10)
    assert np.allclose(ahead[:2] @ ahead[:2].T, np.eye(2), atol=1e-10)  # e₁ and e₂ are in its span
    plain = solve(DenseEigen(), Eigenproblem(Diagonal(d), 2)).x
    assert plain.powered() is plain.vectors


def test_a_float32_operator_keeps_a_float32_basis():
    A = Dense(with_spectrum(np.logspace(0, -3, 300)).astype(np.float32), symmetric=True)
    solution = solve(BlockKrylov(tol=1e-5), Eigenproblem(A, 5))
    assert solution.state.V.dtype == solution.state.W.dtype == np.float32
    V = solution.x.vectors
    assert V.dtype == np.float64
    assert np.abs(V.T @ V - np.eye(5)).max() < 1e-5
    assert np.abs(solution.x.values / np.linalg.eigvalsh(A.array.astype(np.float64))[::-1][:5] - 1).max() < 1e-6


def test_a_float32_run_that_is_resumed_with_a_tolerance_beyond_float32_stalls_near_rounding():
    A = Dense(with_spectrum(np.logspace(0, -3, 300)).astype(np.float32), symmetric=True)
    first = solve(BlockKrylov(tol=1e-5), Eigenproblem(A, 5))
    then = solve(BlockKrylov(tol=1e-9), Eigenproblem(A, 5), state=first.state)
    assert then.state.V.dtype == np.float32
    assert then.residual < 1e-5
    assert then.status in (Status.STALLED, Status.CONVERGED)


@pytest.mark.parametrize("block", [None, 3])
def test_a_converged_run_taken_up_with_a_smaller_tolerance_is_the_run_with_that_tolerance(block):
    problem = Eigenproblem(Dense(with_spectrum(np.logspace(0, -3, 300))), 5)
    first = solve(BlockKrylov(tol=1e-4, block=block), problem)
    then = solve(BlockKrylov(tol=1e-9, block=block), problem, state=first.state)
    whole = solve(BlockKrylov(tol=1e-9, block=block), problem)
    assert then.converged
    assert then.steps == whole.steps > first.steps
    assert np.array_equal(then.x.vectors, whole.x.vectors)


def test_eigenvalues_below_rounding_end_the_run():
    noise = 1e-9 * np.random.default_rng(0).standard_normal((400, 400))
    A = Dense(noise + noise.T - np.diag(np.r_[np.ones(5), np.zeros(395)]))
    solution = solve(BlockKrylov(tol=1e-6), Eigenproblem(A, 3, rounding=1e-6))
    assert solution.status is Status.RANK_DEFICIENT
    assert solution.steps == 2
    with pytest.raises(InvalidInput, match="rounding=-1"):
        Eigenproblem(A, 3, rounding=-1.0)
