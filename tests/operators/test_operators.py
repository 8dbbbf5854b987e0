"""What the contract does not say: identities, memory, precision, and what is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, eigsh

from mercer.errors import InvalidInput
from mercer.operators import (
    Bordered,
    Centered,
    Dense,
    Diagonal,
    Identity,
    LowRank,
    Operator,
    Product,
    Scaled,
    Sum,
    Weighted,
    arrays,
    as_operator,
    center_cross,
    estimate_norm,
    product,
)
from mercer.testing import assert_close

RNG = np.random.default_rng(1)
M = RNG.standard_normal((6, 6))
S = M @ M.T + np.eye(6)


def test_sums_are_flat_and_scalings_merge():
    A = Dense(S) + Identity(6) + Diagonal(np.ones(6))
    assert isinstance(A, Sum)
    assert len(A.terms) == 3
    scaled = 2 * (3 * Dense(S))
    assert isinstance(scaled, Scaled)
    assert scaled.c == 6
    assert isinstance(scaled.A, Dense)


def test_a_product_knows_when_it_is_symmetric():
    D, A = Diagonal(np.arange(6.0)), Dense(S)
    assert (D @ A @ D).symmetric
    assert not (D @ A).symmetric
    B = LowRank(M[:, :2], M[:, 2:4])
    assert not (B @ B).symmetric


def test_scipy_takes_our_operators():
    A = Dense(S) + 0.5 * Identity(6)
    x, info = cg(A, np.ones(6), rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose((S + 0.5 * np.eye(6)) @ x, np.ones(6), atol=1e-9)
    assert_close(eigsh(A, k=2)[0], np.linalg.eigvalsh(S)[-2:] + 0.5)


def test_we_take_scipys_operators():
    total = Dense(S) + aslinearoperator(M)
    assert isinstance(total, Operator)
    assert_close(total @ np.eye(6), S + M)
    assert_close((aslinearoperator(M) + Dense(S)) @ np.eye(6), S + M)  # SciPy's class, the same numbers
    assert isinstance(as_operator(M), Dense)
    assert isinstance(LinearOperator.__new__(Dense), Dense)


def test_a_float32_matrix_times_float64_vectors_accumulates_in_float64(rng):
    A = rng.standard_normal((300, 300)).astype(np.float32)
    V = rng.standard_normal((300, 3))
    exact = A.astype(np.float64) @ V
    np.testing.assert_allclose(Dense(A) @ V, exact, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kinds", [(np.float64, np.float64), (np.float32, np.float32), (np.float64, np.float32)])
def test_blocks_of_rows_cover_all_rows(rng, monkeypatch, order, kinds):
    monkeypatch.setattr(arrays, "ROWS", 40)
    monkeypatch.setattr(arrays, "LEAST_DEPTH", 5)
    A = rng.standard_normal((501, 7)).astype(kinds[0])
    V = np.asarray(rng.standard_normal((7, 3)), kinds[1], order=order)
    found = arrays.times(A, V)
    assert found.flags.c_contiguous
    assert found.dtype == np.result_type(A, V)
    np.testing.assert_allclose(found, A.astype(np.float64) @ V, atol=3e-6 if kinds[0] == np.float32 else 1e-13)


def test_a_float64_product_makes_no_float64_copy_of_a_float32_matrix():
    n = 1500
    A = Dense(np.ones((n, n), np.float32), symmetric=True)
    v = np.ones(n)
    tracemalloc.start()
    A @ v
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * 8 * n * n


@pytest.mark.parametrize(
    "make",
    [
        lambda A: Centered(A),
        lambda A: A + 0.1 * Identity(1500),
        lambda A: Weighted(A, np.ones(1500)),
        lambda A: 2 * A,
    ],
)
def test_fill_makes_no_second_matrix(make):
    n = 1500
    A = make(Dense(np.ones((n, n), np.float32), symmetric=True))
    out = np.empty((n, n), np.float32)
    tracemalloc.start()
    A.fill(out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * out.nbytes


def test_centring_keeps_small_eigenvalues_under_a_large_offset(rng):
    """float32 centring of a matrix with a large offset once made the 50th eigenvalue 663 times too large."""
    n, rank = 200, 60
    F = rng.standard_normal((n, rank)) * 0.9 ** np.arange(rank)
    F -= F.mean(axis=0)
    K = F @ F.T
    wanted = np.linalg.eigvalsh(K)[::-1]
    A = Centered(Dense(K + 1e7))
    assert A.toarray().dtype == np.float64
    assert_close(np.linalg.eigvalsh(A.toarray())[::-1][:rank], wanted[:rank], rtol=1e-4)
    assert_close(np.linalg.eigvalsh(A @ np.eye(n))[::-1][:rank], wanted[:rank], rtol=1e-4)
    # With float32 entries the offset has cost the entries their digits; centring must add nothing to that.
    small = (K + 100).astype(np.float32)
    H = np.eye(n) - 1 / n
    exact = H @ small.astype(np.float64) @ H
    np.testing.assert_allclose(Centered(Dense(small)) @ np.eye(n), exact, atol=1e-12)
    np.testing.assert_allclose(Centered(Dense(small)).toarray(), exact, atol=np.finfo(np.float32).eps * np.abs(K).max())


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 8), seed=st.integers(0, 1000), weighted=st.booleans())
def test_centring_removes_constants_and_twice_is_once(n, seed, weighted):
    local = np.random.default_rng(seed)
    K = local.standard_normal((n, n))
    w = local.random(n) + 0.1 if weighted else None
    A = Centered(Dense(K), w)
    np.testing.assert_allclose(A.toarray() @ (np.ones(n) if w is None else w), 0, atol=1e-12)
    np.testing.assert_allclose(Centered(A, w).toarray(), A.toarray(), atol=1e-12)
    np.testing.assert_allclose(A.diagonal(), np.diagonal(A.toarray()), atol=1e-12)


@pytest.mark.parametrize("weights", [None, [1, 2, 0, 3, 1, 1]])
def test_centring_new_rows_agrees_with_centring_features(weights, rng):
    F, G = rng.standard_normal((6, 3)), rng.standard_normal((4, 3))
    mean = np.average(F, axis=0, weights=weights)
    A = Centered(Dense(F @ F.T), weights)
    np.testing.assert_allclose(A.toarray(), (F - mean) @ (F - mean).T, atol=1e-12)
    crossed = center_cross(G @ F.T, A.column_means, A.grand_mean, weights)
    np.testing.assert_allclose(crossed, (G - mean) @ (F - mean).T, atol=1e-12)
    assert center_cross((G @ F.T).astype(np.float32), A.column_means, A.grand_mean).dtype == np.float32


def test_weight_two_is_a_repeated_row(rng):
    F = rng.standard_normal((3, 2))
    doubled = F[[0, 0, 1, 2]]
    weighted = Centered(Dense(F @ F.T), [2, 1, 1])
    plain = Centered(Dense(doubled @ doubled.T))
    np.testing.assert_allclose(weighted.toarray(), plain.block([1, 2, 3], [1, 2, 3]), atol=1e-12)
    assert weighted.grand_mean == pytest.approx(plain.grand_mean)


def test_symmetry_of_an_array_is_looked_up():
    assert Dense(S).symmetric
    assert not Dense(M).symmetric
    assert not Dense(M[:3]).symmetric
    large = np.zeros((700, 700))
    large[699, 0] = 1
    assert not Dense(large).symmetric
    assert Dense(np.zeros((0, 0))).symmetric


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Dense([1.0, 2.0]),
        lambda: Dense([["a"]]),
        lambda: Dense(np.ones((2, 2), complex)),
        lambda: Diagonal([[1.0]]),
        lambda: Identity(-1),
        lambda: LowRank(M[:, :2], M[:, :3]),
        lambda: Sum(Identity(2), Identity(3)),
        lambda: Product(Identity(2), Identity(3)),
        lambda: Bordered(Identity(2), np.ones((3, 1))),
        lambda: Centered(Dense(M[:3])),
        lambda: Centered(Identity(0)),
        lambda: Centered(Identity(2), [1.0, -1.0]),
        lambda: Centered(Identity(2), [0.0, 0.0]),
        lambda: Centered(Identity(2), [1.0, np.nan]),
        lambda: Weighted(Identity(2), [1.0]),
        lambda: center_cross(np.ones((2, 3)), np.ones(2), 0.0),
        lambda: Identity(2) ** 0,
        lambda: Identity(2) ** -1,
        lambda: Dense(M[:3]) ** 2,
        lambda: Identity(2) / 0.0,
        lambda: 2.0 @ Identity(2),
    ],
)
def test_what_does_not_fit_is_refused_with_advice(attempt):
    with pytest.raises(InvalidInput, match=r"\w+: .+; .+\."):
        attempt()


def test_empty_operators():
    assert (Dense(np.empty((0, 0))) @ np.empty((0, 2))).shape == (0, 2)
    assert (Dense(np.empty((3, 0))) @ np.empty((0, 2))).shape == (3, 2)
    assert Identity(0).toarray().shape == (0, 0)


def test_the_row_space_of_a_centred_matrix_needs_no_column_means():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4))
    K = A @ A.T + 5.0
    C = Centered(Dense(K, symmetric=True))
    H = np.eye(30) - 1 / 30
    Z = np.eye(30)[[3, 7, 8, 20]]
    Z = Z - Z.mean(axis=0)
    assert np.allclose(C.row_space([3, 7, 8, 20]), Z @ H @ K @ H, atol=1e-12)
    assert "row_means" not in vars(C)
    assert np.array_equal(Dense(K).row_space([1, 2]), K[[1, 2]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_products_beside_lapack_are_numpys_for_every_layout(dtype, columns):
    A, V = M[:4].astype(dtype), M[:, :columns].astype(dtype)
    for one in (A, np.asfortranarray(A), np.repeat(A, 2, axis=0)[::2]):
        for other in (V, np.asfortranarray(V)):
            found = product(one, other)
            assert found.dtype == dtype
            assert found.flags.c_contiguous
            np.testing.assert_allclose(found, A @ V, atol=1e-5 if dtype == np.float32 else 1e-13)
    beside = Dense(A, beside_lapack=True)
    np.testing.assert_allclose(beside @ V, A @ V, atol=1e-5)
    assert beside.T.beside_lapack
    assert beside.astype(np.float64).beside_lapack


def test_a_norm_by_power_iteration():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    for largest in (3.0, -3.0):
        A = Q @ np.diag(np.r_[largest, rng.uniform(-1, 1, 29)]) @ Q.T
        few, many = (estimate_norm(lambda x: A @ x, np.ones(30), steps) for steps in (4, 40))  # noqa: B023
        assert 1.5 < few <= 3 + 1e-12
        assert many == pytest.approx(3.0, rel=1e-10)
    assert estimate_norm(lambda x: A @ x, np.zeros(30), 5) == 0.0
    assert estimate_norm(lambda x: 1e100 * x, np.full(3, 1e-100), 5) == pytest.approx(1e100)
