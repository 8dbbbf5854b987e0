"""The kernel matrix as an operator: its contract, what it takes and refuses, and its other consumers."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from mercer import KernelOperator
from mercer.engine import reference
from mercer.engine.backend import is_native
from mercer.errors import InvalidInput
from mercer.gram import data, tiles
from mercer.gram.operator import MOST_TOGETHER
from mercer.gram.roundings import roundings
from mercer.kernels import Cosine, Formula, Function, Gaussian, Laplace, Linear, Matern, Polynomial, Precomputed
from mercer.points import sparse as limits
from mercer.testing import assert_close, check_operator_contract

RNG = np.random.default_rng(0)
BLOCKS = 0.1 if is_native() else 0.35
"""The share of the entries that may be in memory at once; the reference has several blocks of 4 MB."""
X = RNG.standard_normal((37, 4))
Z = RNG.standard_normal((11, 4))
WIDE, TALL = RNG.standard_normal((29, 700)), RNG.standard_normal((200, 3))
M = X @ X.T
WORDS = ["kernel", "colonel", "corn", "kern", "cornel", "", "k"]


def shared(a, b):
    return len(set(a) & set(b))


def longer(a, b):
    return float(len(a) > len(b))


OPERATORS = {
    "square": lambda: KernelOperator(Gaussian(gamma=0.3), X),
    "rectangular": lambda: KernelOperator(Laplace(gamma=0.3), X, Z),
    "wide": lambda: KernelOperator(Polynomial(degree=2), Z, X),
    "float32": lambda: KernelOperator(Gaussian(gamma=0.3), X.astype("f")),
    "narrowed": lambda: KernelOperator(Gaussian(gamma=0.3), X, dtype=np.float32),
    "one row": lambda: KernelOperator(Gaussian(gamma=0.3), X[:1]),
    "one row against many": lambda: KernelOperator(Gaussian(gamma=0.3), X[:1], Z),
    "one column of data": lambda: KernelOperator(Gaussian(gamma=0.3), X[:, :1]),
    "many columns": lambda: KernelOperator(Linear(), WIDE),
    "not traced": lambda: KernelOperator(Matern(nu=1.2), X),
    "not traced, rectangular": lambda: KernelOperator(Matern(nu=1.2), X, Z),
    "sparse": lambda: KernelOperator(Gaussian(gamma=0.3), sp.csr_array(X * (X > 0.5))),
    "sparse, wide": lambda: KernelOperator(
        Cosine(), sp.random_array((20, 9000), density=0.01, random_state=1, format="csr")
    ),
    "sparse against dense": lambda: KernelOperator(Linear(), sp.csr_array(X * (X > 0.5)), Z),
    "precomputed": lambda: KernelOperator(Precomputed(), M),
    "precomputed, columns": lambda: KernelOperator(Precomputed(), M, [3, 0, 7]),
    "precomputed, scaled": lambda: KernelOperator(2.0 * Precomputed(), M),
    "precomputed, test rows": lambda: KernelOperator(Precomputed(), X @ Z.T),
    "function of strings": lambda: KernelOperator(Function(shared, mode="pair"), WORDS),
    "function of two lists": lambda: KernelOperator(Function(shared, mode="pair"), WORDS, WORDS[:3]),
    "asymmetric function": lambda: KernelOperator(Function(longer, mode="pair", symmetric=False), WORDS),
    "asymmetric, rectangular": lambda: KernelOperator(
        Function(longer, mode="pair", symmetric=False), WORDS, WORDS[2:5]
    ),
    "asymmetric formula": lambda: KernelOperator(Formula("1/(1 + xx + 0.1*sqdist)"), X),
    "asymmetric formula, rectangular": lambda: KernelOperator(Formula("xx + 2*dot"), X, Z),
    "function of blocks": lambda: KernelOperator(Function(lambda A, B: A @ B.T), X),
    "row blocks": lambda: KernelOperator(Gaussian(gamma=0.3), TALL),
}


@pytest.mark.parametrize("core", ["", "off"])
@pytest.mark.parametrize("name", OPERATORS)
def test_contract(name, core, monkeypatch):
    monkeypatch.setenv("MERCER_CORE", core)
    K = OPERATORS[name]()
    check_operator_contract(K)
    check_operator_contract(K.T)


def test_symmetry_is_known_where_it_holds():
    symmetric = {name for name, make in OPERATORS.items() if make().symmetric}
    assert symmetric == {
        "square", "float32", "narrowed", "one row", "one column of data", "many columns", "not traced", "sparse",
        "sparse, wide", "precomputed", "precomputed, scaled", "function of strings", "function of blocks", "row blocks",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["1/(1 + xx + 0.1*sqdist)", "xx + 2*dot", "xx/zz", "sin(xx - zz)", "where(xx<1, 0, 1)"]
)
def test_a_formula_that_is_not_its_mirror_is_computed_as_a_whole(text):
    kernel = Formula(text)
    assert_close(kernel(X), kernel(X, X.copy()))
    assert_close(KernelOperator(kernel, X, Z).T.toarray(), kernel(X, Z).T)
    mixed = kernel.on([0, 1]) + Function(lambda A, B: A @ B.T)
    assert not KernelOperator(mixed, X).symmetric


@pytest.mark.parametrize(
    "text",
    ["xx + 2*dot + zz", "(xx - zz)**2", "abs(zz - xx)*dot", "(xx - zz)*(xx - zz)", "dot/sqrt(xx)/sqrt(zz)",
     "exp(-xx)*dot*exp(-zz)", "cos(xx - zz)", "minimum(xx, zz)", "xx/zz + zz/xx", "-xx - zz + dot",
     "where(xx < zz, xx, zz)", "where(xx <= 0, where(zz <= 0, 1, 0), dot)", "maximum(xx, maximum(dot, zz))"],
)  # fmt: skip
def test_a_formula_that_is_its_mirror_is_symmetric(text):
    assert KernelOperator(Formula(text), X).symmetric


def test_the_distance_of_a_row_to_itself_is_0_in_a_matrix_that_is_not_symmetric():
    far = np.random.default_rng(0).standard_normal((50, 30)) + 1e6
    np.testing.assert_array_equal(np.diagonal(Formula("exp(-0.1*sqdist) + 0*xx")(far)), 1.0)


def test_precomputed_test_rows_as_many_as_training_points(rng):
    """A square block of values is no symmetric matrix: mirroring its upper half would be silently wrong."""
    block = rng.standard_normal((30, 30))
    K = KernelOperator(Precomputed(), block)
    assert not K.symmetric
    np.testing.assert_array_equal(K.toarray(), block)
    assert_close(K @ np.ones(30), block.sum(axis=1))
    assert_close(K.T @ np.ones(30), block.sum(axis=0))


def test_products_of_a_sparse_precomputed_matrix_make_nothing_dense(rng, monkeypatch):
    B = sp.random_array((40, 40), density=0.1, format="csr", random_state=0)
    A, V = sp.csr_array(B + B.T), rng.normal(size=(40, 2))
    monkeypatch.setattr("mercer.kernels.values.Precomputed.block", None)
    for dtype, tol in ((np.float64, 1e-14), (np.float32, 1e-6)):
        own = A.astype(dtype)
        K = KernelOperator(Precomputed(), own)
        np.testing.assert_allclose(K @ V, A @ V, atol=tol)
        np.testing.assert_allclose(KernelOperator(2.0 * Precomputed(), own) @ V, 2 * (A @ V), atol=2 * tol)
        np.testing.assert_allclose(KernelOperator(Precomputed(), own, [5, 6, 7]) @ V[:3], A[:, 5:8] @ V[:3], atol=tol)
        np.testing.assert_allclose(KernelOperator(Precomputed(), own, [7, 2]) @ V[:2], A[:, [7, 2]] @ V[:2], atol=tol)
        np.testing.assert_allclose(K.rows_times([3, 1], V), A[[3, 1]] @ V, atol=tol)
        assert not KernelOperator(Precomputed(), own.toarray()).has_fast_matmul  # it would be copied in float64


def test_a_precomputed_matrix_may_carry_rounding_errors(rng):
    noisy = M * (1 + 4e-16 * np.triu(np.ones_like(M), 1))
    assert KernelOperator(Precomputed(), noisy).symmetric
    wide = rng.standard_normal((1100, 3))
    G = wide @ wide.T
    assert KernelOperator(Precomputed(), G).symmetric
    G[5, 1050] += 1e-3
    assert not KernelOperator(Precomputed(), G).symmetric


@pytest.mark.parametrize("bad", [[0.5, 1.0], [[0, 1]], [37], [-1], ["a"]])
def test_precomputed_columns_are_indices(bad):
    with pytest.raises(InvalidInput, match="KernelOperator"):
        KernelOperator(Precomputed(), M, bad)


# ---- parameters that depend on data ---------------------------------------------------------------------------------


def test_rules_are_resolved_on_the_rows_alone():
    assert KernelOperator(Gaussian(gamma="scale"), X).kernel == Gaussian(gamma="scale").resolve(X)
    assert KernelOperator(Gaussian(gamma="scale"), X, X).symmetric
    with pytest.raises(InvalidInput, match="resolve"):
        KernelOperator(Gaussian(gamma="scale"), X, Z)
    assert KernelOperator("gaussian(gamma=0.5) + linear()", X).kernel == Gaussian(gamma=0.5) + Linear()


def test_the_same_object_twice_is_symmetric_and_pinned(rng):
    far = rng.standard_normal((50, 30)) + 1e6
    K = KernelOperator(Gaussian(gamma=0.1), far, far)
    assert K.symmetric
    np.testing.assert_array_equal(np.diagonal(K.toarray()), 1.0)


# ---- entries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_and_blocks_of_any_indices(dtype, rng):
    n = 700
    K = KernelOperator(Gaussian(gamma=0.05), rng.standard_normal((n, 20)).astype(dtype))
    whole, eps = K.toarray(), 30 * np.finfo(dtype).eps
    mask = rng.random(n) < 0.3
    for index in (
        [3],
        [-1],
        [5, 4, 3, 5],
        [],
        slice(10, 20),
        slice(None, None, -3),
        mask,
        np.arange(100, 500),
        mask & False,
    ):
        rows = (
            np.arange(n)[index]
            if len(np.shape(index)) == 0
            else np.arange(n)[np.asarray(index, int if not len(index) else None)]
        )
        np.testing.assert_allclose(K.rows(index), whole[rows], rtol=eps, atol=eps)
        assert K.rows(index).shape == (len(rows), n)
        for columns in ([7, 7, 3, 5, 4, 3], [], [0], np.arange(n)[::-1]):
            got = K.block(index, columns)
            np.testing.assert_allclose(got, whole[np.ix_(rows, np.asarray(columns, int))], rtol=eps, atol=eps)
    # The diagonal is exact wherever it turns up.
    np.testing.assert_array_equal(np.diagonal(K.block([9, 2, 5], [9, 2, 5])), 1.0)
    assert K.block([4], [1, 4, 4])[0, 1:].tolist() == [1.0, 1.0]
    for i in (0, 191, 192, n - 1):
        assert K.rows([i])[0, i] == 1.0


def test_products_with_some_rows_come_without_the_rows(rng):
    n = 4000
    A, V = rng.standard_normal((n, 5)), rng.standard_normal((n, 2))
    K, index = KernelOperator(Gaussian(gamma=0.2), A), np.append(rng.permutation(n)[:2000], [7, 7])
    tracemalloc.start()
    product = K.rows_times(index, V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(product, K.rows(index) @ V, rtol=1e-12, atol=1e-12)
    assert peak < BLOCKS * 8 * n * len(index)


def test_products_with_a_block_come_without_the_block(rng):
    n = 4000
    A, V = rng.standard_normal((n, 5)), rng.standard_normal((1500, 2))
    K, rows, columns = KernelOperator(Gaussian(gamma=0.2), A), rng.permutation(n)[:2000], rng.permutation(n)[:1500]
    tracemalloc.start()
    product = K.block_times(rows, columns, V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(product, K.block(rows, columns) @ V, rtol=1e-12, atol=1e-12)
    assert peak < BLOCKS * 8 * len(rows) * len(columns)
    assert_close(K.block_times([3], [1, 1], np.ones((2, 1))), 2 * K.block([3], [1]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_by_columns_know_what_is_known_of_all(dtype, monkeypatch, rng):
    A, B = (rng.standard_normal((n, 40)).astype(dtype) + 3 for n in (150, 90))
    tried = []
    monkeypatch.setattr(data, "roundings", lambda *given: tried.append(1) or roundings(*given))
    K, J, v = KernelOperator(Gaussian(0.02), A, B), np.array([70, 3, 12, 4]), rng.standard_normal(4)
    exact = np.exp(-0.02 * cdist(A, B, "sqeuclidean"))
    for some in (J, np.arange(20, 60)):
        part = K.columns(some)
        assert part.shape == (150, len(some))
        assert part.dtype == dtype
        assert np.abs(part.toarray() - exact[:, some]).max() <= {4: 1e-6, 8: 1e-13}[part.dtype.itemsize]
    assert_close(K.columns(J) @ v, K.block(np.arange(150), J) @ v, rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert len(tried) == (dtype == np.float32)  # in float64 no rows of these norms have too many roundings


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_between_other_rows_are_the_entries_of_a_new_operator(dtype, rng):
    X, Z = (rng.standard_normal((n, 20)).astype(dtype) for n in (40, 30))
    for kernel in (Gaussian(0.1), Polynomial(degree=3, gamma=0.1)):
        K = KernelOperator(kernel, X[:1]).between(X, Z)
        assert K.shape == (40, 30)
        assert K.dtype == dtype
        np.testing.assert_array_equal(K.toarray(), KernelOperator(kernel, X, Z).toarray())


def test_between_large_rows_are_entries_in_float64_or_refused():
    tenth = KernelOperator(Polynomial(degree=10, gamma=1.0), np.ones((1, 2), np.float32))
    large = np.full((2, 2), 1e4, np.float32)
    K = tenth.between(large, large)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K.toarray(), (2e8 + 1.0) ** 10, rtol=1e-12)
    with pytest.raises(InvalidInput, match="not finite, or lost"):
        KernelOperator(Polynomial(degree=40, gamma=1.0), np.ones((1, 2))).between(*2 * [np.full((2, 2), 1e4)])


def test_columns_of_words_and_of_given_values():
    words = KernelOperator(Function(shared, mode="pair"), WORDS)
    assert_close(words.columns([5, 1]).toarray(), words.toarray()[:, [5, 1]])
    given = KernelOperator(Precomputed(), M, [3, 0, 7])
    assert_close(given.columns([2, 0]).toarray(), M[:, [7, 3]])


def test_indices_that_do_not_exist_are_refused():
    K = KernelOperator(Linear(), X, Z)
    for bad in ([37], [-38], [0.5], [[0]], np.ones(36, bool), ["a"]):
        with pytest.raises(InvalidInput):
            K.rows(bad)
    with pytest.raises(InvalidInput):
        K.block([0], [11])


def test_diagonal_of_a_rectangle(rng):
    A, B = rng.standard_normal((300, 5)), rng.standard_normal((200, 5))
    K = KernelOperator(Gaussian(gamma=0.2), A, B)
    assert_close(K.diagonal(), np.exp(-0.2 * ((A[:200] - B) ** 2).sum(axis=1)))
    np.testing.assert_array_equal(KernelOperator(Precomputed(), M).diagonal(), np.diagonal(M))


def test_fill_writes_in_place_whatever_the_layout(rng):
    K = KernelOperator(Gaussian(gamma=0.3), rng.standard_normal((300, 4)))
    whole = K.toarray()
    for out in (
        np.empty((300, 300)),
        np.empty((300, 300), order="F"),
        np.empty((600, 300))[::2],
        np.empty((300, 300), "f"),
    ):
        assert K.fill(out) is out
        np.testing.assert_allclose(out, whole, atol=1e-6)
    half = KernelOperator(Gaussian(gamma=0.3), X, Z)
    out = np.empty((37, 11), order="F")
    assert_close(half.fill(out), half.toarray())


# ---- products -------------------------------------------------------------------------------------------------------


def test_vectors_in_any_layout(rng):
    K = KernelOperator(Gaussian(gamma=0.3), X)
    V = rng.standard_normal((37, 6))
    expected = K.toarray() @ V
    frozen = V.copy()
    frozen.flags.writeable = False
    for same in (V, np.asfortranarray(V), np.repeat(V, 2, axis=1)[:, ::2], frozen, V[::-1].copy()[::-1]):
        assert_close(K @ same, expected)
    assert (K @ V[:, :0]).shape == (37, 0)
    with pytest.raises(InvalidInput):
        K @ V[:5]


@pytest.mark.parametrize("size", [1e-300, 1e-60, 1e60, 1e300])
def test_vectors_beyond_the_range_of_float32(size, rng):
    """The entries are float32, the vectors need not be: A(cv) = c A v for c a power of 2."""
    K = KernelOperator(Gaussian(gamma=0.3), X.astype("f"))
    V = np.column_stack([np.ones(37), rng.standard_normal(37)])
    c = 2.0 ** np.round(np.log2(size))
    np.testing.assert_array_equal(K @ (c * V), c * (K @ V))
    mixed = K @ (V * [1.0, c])
    np.testing.assert_array_equal(mixed, (K @ V) * [1.0, c])
    assert np.isnan(K @ np.full(37, np.nan)).all()


@pytest.mark.parametrize("r", [1, MOST_TOGETHER, MOST_TOGETHER + 1])
def test_normal_products_of_few_and_many_vectors(r, monkeypatch, rng):
    """Few in one sweep, many by two products: both are Kᵀ diag(w) K V."""
    sweeps = []
    one = tiles.normal_product
    monkeypatch.setattr(tiles, "normal_product", lambda *given: sweeps.append(1) or one(*given))
    K, w = KernelOperator(Gaussian(gamma=0.3), X, Z), rng.standard_normal(len(X))
    V = rng.standard_normal((len(Z), r))
    dense = K.toarray()
    np.testing.assert_allclose(K.normal_product(V, w), dense.T @ (w[:, None] * (dense @ V)), rtol=1e-10, atol=1e-10)
    assert len(sweeps) == (r <= MOST_TOGETHER)


def test_many_right_hand_sides(rng):
    rows = rng.standard_normal((500, 3))
    K = KernelOperator(Gaussian(gamma=0.3), rows)
    V = rng.standard_normal((500, 1500))
    np.testing.assert_allclose(K @ V, K.toarray() @ V, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("core", ["", "off"])
def test_group_sums(core, monkeypatch, rng):
    monkeypatch.setenv("MERCER_CORE", core)
    n, m = 500, 300
    A, B = rng.standard_normal((n, 20)), rng.standard_normal((m, 20))
    labels, weights = rng.integers(0, 5, m), rng.standard_normal(m)
    labels[labels == 3] = 2  # an empty group
    for K in (KernelOperator(Gaussian(gamma=0.05), A, B), KernelOperator(Matern(nu=1.2, length_scale=4.0), A, B)):
        whole = K.toarray()
        for w in (None, weights, weights * 1e-300):
            sums = np.stack([(whole * (1 if w is None else w))[:, labels == g].sum(axis=1) for g in range(7)], axis=1)
            np.testing.assert_allclose(K.group_sums(labels, 7, w), sums, rtol=1e-10, atol=1e-12 * np.abs(sums).max())
    own = KernelOperator(Gaussian(gamma=0.05), A)
    assert_close(own.group_sums(np.arange(n)), own.toarray(), rtol=1e-12)
    some = rng.permutation(n)[:90]
    sums = np.stack([own.toarray()[:, some[i::4]].sum(axis=1) for i in range(4)], axis=1)
    assert_close(own.group_sums(np.arange(90) % 4, 4, columns=some), sums, rtol=1e-12)
    assert own.group_sums(np.empty(0, int), 4, columns=[]).shape == (n, 4)


def test_groups_and_weights_that_do_not_fit_are_refused():
    K = KernelOperator(Linear(), X, Z)
    for labels, groups, weights in (
        (np.zeros(10, int), None, None), (np.zeros(11), None, None), (np.full(11, -1), None, None),
        (np.arange(11), 5, None), (np.zeros(11, int), None, np.ones(10)), (np.zeros(11, int), None, ["a"] * 11),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="KernelOperator"):
            K.group_sums(labels, groups, weights)


# ---- what comes in --------------------------------------------------------------------------------------------------


def test_rows_that_do_not_fit_are_refused():
    for bad in (lambda: KernelOperator(Linear(), X, Z[:, :3]), lambda: KernelOperator(Linear(), X[:, 0]),
                lambda: KernelOperator(Linear(), [[np.nan]]), lambda: KernelOperator(Linear(), X[:0]),
                lambda: KernelOperator("no such", X), lambda: KernelOperator(Linear(), X, dtype=int)):  # fmt: skip
        with pytest.raises(InvalidInput):
            bad()


def test_tensors_are_read_as_arrays():
    torch = pytest.importorskip("torch")
    rows = torch.as_tensor(X)
    for given in ((rows,), (rows, X), (X, rows)):
        assert_close(KernelOperator(Linear(), *given).toarray(), X @ X.T)
    assert_close(Linear()(rows).numpy(), X @ X.T)
    assert_close(np.asarray(Linear()(X, torch.as_tensor(Z))), X @ Z.T)
    with pytest.raises(InvalidInput, match="device meta"):
        KernelOperator(Linear(), rows.to("meta"))


def test_mixed_precisions_take_the_wider():
    K = KernelOperator(Linear(), X.astype("f"), Z)
    assert K.dtype == np.float64
    assert KernelOperator(Function(shared, mode="pair"), np.array(WORDS)).dtype == np.float64
    assert KernelOperator(Function(lambda A, B: A @ B.T), np.arange(6).reshape(3, 2)).dtype == np.float64


def test_sparse_rows_take_both_methods(monkeypatch):
    rows = sp.random_array((60, 40), density=0.2, random_state=0, format="csr")
    dense = KernelOperator(Gaussian(gamma=0.5), rows)
    assert not isinstance(dense._tiles(), reference.BlockTiles) or isinstance(dense._tiles(), reference.Tiles)
    expected = KernelOperator(Gaussian(gamma=0.5), rows.toarray()).toarray()
    assert_close(dense.toarray(), expected)
    monkeypatch.setattr(limits, "DENSE_COLUMNS", 10)
    sparse = KernelOperator(Gaussian(gamma=0.5), rows)
    assert type(sparse._tiles()) is reference.BlockTiles
    assert_close(sparse.toarray(), expected, rtol=1e-12)
    monkeypatch.setattr(limits, "DENSE_COLUMNS", 4096)
    monkeypatch.setattr(limits, "DENSE_BYTES", 10)
    big = sp.random_array((200, 400), density=0.001, random_state=0, format="csr")
    assert type(KernelOperator(Linear(), big)._tiles()) is reference.BlockTiles


@pytest.mark.parametrize("d", [3, 30])
def test_what_was_released_is_made_of_the_rows_as_they_are(d, rng):
    """By norms, beyond 16 columns, new rows and the norms of the old ones gave the entries of neither."""
    rows, V = rng.standard_normal((50, d)), rng.standard_normal((50, 2))
    K = KernelOperator(Gaussian(gamma=0.1), rows)
    _ = K @ V
    rows *= 2
    K.release()
    assert_close(K @ V, KernelOperator(Gaussian(gamma=0.1), rows) @ V, 1e-12)


def test_zeros_that_were_written_out_are_released():
    K = KernelOperator(Gaussian(gamma=0.1), sp.csr_array(np.eye(50, 30)))
    _ = K @ np.ones(50)
    dense = weakref.ref(K._data.x.rows)
    K.release()
    gc.collect()
    assert dense() is None


def test_tables_with_the_same_columns_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(InvalidInput, match="KernelOperator: two tables with the column 'a' in different places"):
        KernelOperator("linear", table, table[list("dbca")])
    with pytest.raises(InvalidInput, match="Linear: two tables with the column 'a' in different places"):
        Linear()(table, table[list("dbca")])
    assert_close(KernelOperator("linear", table, table.set_axis(list("wxyz"), axis=1)).toarray(), M, 1e-12)
