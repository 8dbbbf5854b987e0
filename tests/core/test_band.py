"""K = QBQᵀ with a band matrix B: the compiled module, its reference, and dense linear algebra."""

import numpy as np
import pytest

from mercer.engine import reference
from mercer.engine.opcodes import BAND

RNG = np.random.default_rng(0)


def aligned(*shape):
    whole = np.zeros(int(np.prod(shape)) + 8)
    first = -whole.ctypes.data // 8 % 8
    return whole[first : first + int(np.prod(shape))].reshape(shape)


def symmetric(blocks, seed=0):
    A = np.random.default_rng(seed).standard_normal((blocks * BAND, blocks * BAND))
    return A + A.T


def slabs_of(A):
    blocks = len(A) // BAND
    out, start = aligned(blocks * (blocks + 1) // 2 * BAND**2), 0
    for j in range(0, len(A), BAND):
        slab = A[j:, j : j + BAND].ravel()
        out[start : start + slab.size] = slab
        start += slab.size
    return out


def reduced(engine, A, isa="", strips=2):
    """B, Qᵀ and what the native code leaves behind."""
    blocks = len(A) // BAND
    slabs, pending = slabs_of(A), aligned(4 * blocks * BAND**2)
    upper, factors = aligned(blocks - 1, BAND, BAND), aligned(blocks - 1, BAND, BAND)
    for step in range(blocks):
        engine.band_step(slabs=slabs, upper=upper, factors=factors, pending=pending, step=step, isa=isa)
    vectors = aligned(len(A), len(A))
    for first in range(0, blocks, strips):
        engine.band_vectors(
            slabs=slabs, factors=factors, out=vectors, first=first, last=min(first + strips, blocks), isa=isa
        )
    B, start = np.zeros_like(A), 0
    for j in range(blocks):
        own = slice(j * BAND, (j + 1) * BAND)
        B[own, own] = slabs[start : start + BAND**2].reshape(BAND, BAND)
        start += (blocks - j) * BAND**2
        if j:
            above = slice((j - 1) * BAND, j * BAND)
            B[own, above], B[above, own] = upper[j - 1], upper[j - 1].T
    return B, vectors, slabs, upper, factors


@pytest.mark.parametrize("blocks", [1, 2, 3, 6, 11])
def test_the_factors_are_orthogonal_and_give_the_matrix_back(engine, isa, blocks):
    A = symmetric(blocks)
    B, Qt, *_ = reduced(engine, A, isa, strips=4)
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(len(A)), atol=2e-14)
    np.testing.assert_allclose(Qt.T @ B @ Qt, A, atol=1e-12)
    i, j = np.indices(A.shape)
    assert not np.any(B[np.abs(i - j) > BAND])


@pytest.mark.parametrize("blocks", [2, 5])
def test_every_number_is_the_references(native, isa, blocks):
    A = symmetric(blocks, 1)
    for ours, expected in zip(reduced(native, A, isa), reduced(reference, A), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-11)


@pytest.mark.parametrize("kind", ["zero", "diagonal", "band already", "rank one", "two blocks"])
def test_reflectors_that_have_nothing_to_do(engine, isa, kind, rng):
    n = 4 * BAND
    v = rng.standard_normal(n)
    i, j = np.indices((n, n))
    A = {
        "zero": np.zeros((n, n)),
        "diagonal": np.diag(v),
        "band already": np.where(np.abs(i - j) <= BAND, symmetric(4), 0.0),
        "rank one": np.outer(v, v),
        "two blocks": np.where((i < 100) == (j < 100), symmetric(4), 0.0),
    }[kind]
    B, Qt, *_ = reduced(engine, A, isa)
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(n), atol=2e-14)
    np.testing.assert_allclose(Qt.T @ B @ Qt, A, atol=1e-12)


def test_strips_may_be_made_in_any_order(engine, isa):
    A = symmetric(7)
    *_, slabs, _, factors = reduced(engine, A, isa)
    whole, parts = aligned(len(A), len(A)), aligned(len(A), len(A))
    engine.band_vectors(slabs=slabs, factors=factors, out=whole, first=0, last=7, isa=isa)
    for first, last in ((5, 7), (0, 1), (1, 5), (3, 3)):
        engine.band_vectors(slabs=slabs, factors=factors, out=parts, first=first, last=last, isa=isa)
    np.testing.assert_allclose(parts, whole, atol=1e-15)


@pytest.mark.parametrize(("blocks", "shifts"), [(1, 1), (2, 3), (5, 9), (9, 17)])
def test_norms_are_those_of_triangular_solutions(engine, isa, blocks, shifts, rng):
    n = blocks * BAND
    below, inverse = aligned(shifts, blocks, BAND, BAND), aligned(shifts, blocks, BAND, BAND)
    below[...] = np.triu(rng.standard_normal(below.shape))
    inverse[...] = np.tril(0.1 * rng.standard_normal(inverse.shape)) + np.eye(BAND)
    vectors = aligned(n, n)
    vectors[...] = rng.standard_normal((n, n))
    out = np.ones((shifts, n))
    engine.band_norms(vectors=vectors, below=below, inverse=inverse, out=out, isa=isa)
    for s in range(shifts):
        L = np.zeros((n, n))
        for k in range(blocks):
            own = slice(k * BAND, (k + 1) * BAND)
            L[own, own] = np.linalg.inv(inverse[s, k])
            if k:
                L[own, (k - 1) * BAND : k * BAND] = -below[s, k]
        expected = 1.0 + np.sum(np.linalg.solve(L, vectors) ** 2, axis=0)
        np.testing.assert_allclose(out[s], expected, rtol=1e-9)


@pytest.mark.parametrize("blocks", [1, 2, 6])
def test_factors_are_those_of_dense_matrices(engine, isa, blocks):
    n = blocks * BAND
    B, _, _, upper, _ = reduced(engine, symmetric(blocks), isa)
    diagonal = aligned(blocks, BAND, BAND)
    for k in range(blocks):
        diagonal[k] = B[k * BAND : (k + 1) * BAND, k * BAND : (k + 1) * BAND]
    least = np.linalg.eigvalsh(B)[0]
    shifts = np.array([-least - 1e-6, -least + 1e-6, 100.0, np.nan])
    below, inverse = aligned(4, blocks, BAND, BAND), aligned(4, blocks, BAND, BAND)
    definite = np.zeros(4, bool)
    engine.band_factors(
        diagonal=diagonal, upper=upper, shifts=shifts, below=below, inverse=inverse, definite=definite, isa=isa
    )
    assert definite.tolist() == [False, True, True, False]
    for s in (1, 2):
        L = np.linalg.cholesky(B + shifts[s] * np.eye(n))
        for k in range(blocks):
            own, above = slice(k * BAND, (k + 1) * BAND), slice((k - 1) * BAND, k * BAND)
            np.testing.assert_allclose(inverse[s, k] @ L[own, own], np.eye(BAND), atol=1e-7)
            assert not np.any(np.triu(inverse[s, k], 1))
            if k:
                np.testing.assert_allclose(below[s, k], -L[own, above], atol=1e-7)
                assert not np.any(np.tril(below[s, k], -1))
    assert not np.any(below[:, 0])


def test_entries_that_are_not_finite_end_as_such(engine, isa):
    A = symmetric(3)
    A[40, 100] = A[100, 40] = np.nan
    B, Qt, *_ = reduced(engine, A, isa)
    assert not np.all(np.isfinite(B)) or not np.all(np.isfinite(Qt))


def test_what_does_not_fit_is_refused(native):
    blocks = 3
    size = blocks * BAND
    good = {
        "slabs": aligned(6 * BAND**2),
        "upper": aligned(2, BAND, BAND),
        "factors": aligned(2, BAND, BAND),
        "pending": aligned(12 * BAND**2),
    }
    native.band_step(**good, step=0)
    for name, other in (
        ("slabs", aligned(5 * BAND**2)),
        ("slabs", aligned(6 * BAND**2 + 1)[1:]),  # not on a cache line
        ("upper", aligned(2, BAND, BAND + 1)),
        ("factors", aligned(3, BAND, BAND)),
        ("pending", aligned(11 * BAND**2)),
    ):
        with pytest.raises(ValueError, match=r"fit|size|tile|begin"):
            native.band_step(**good | {name: other}, step=0)
    for step in (-1, 3):
        with pytest.raises(ValueError, match="step"):
            native.band_step(**good, step=step)
    with pytest.raises(ValueError, match="range"):
        native.band_vectors(slabs=good["slabs"], factors=good["factors"], out=aligned(size, size), first=2, last=4)
    with pytest.raises(ValueError, match="output"):
        native.band_vectors(slabs=good["slabs"], factors=good["factors"], out=aligned(size, size + 1), first=0, last=1)
    tiles = aligned(2, blocks, BAND, BAND)
    with pytest.raises(ValueError, match="one verdict"):
        native.band_factors(
            diagonal=tiles[0],
            upper=tiles[0, 1:],
            shifts=np.zeros(2),
            below=tiles,
            inverse=tiles,
            definite=np.zeros(3, bool),
        )
    with pytest.raises(ValueError, match="shifts, or none"):
        native.band_factors(
            diagonal=tiles[0, :0],
            upper=tiles[0, :0],
            shifts=np.zeros(2),
            below=tiles,
            inverse=tiles,
            definite=np.zeros(2, bool),
        )
    with pytest.raises(ValueError, match="one factor"):
        native.band_norms(
            vectors=aligned(size, size), below=tiles, inverse=aligned(3, blocks, BAND, BAND), out=np.zeros((2, size))
        )
    with pytest.raises(ValueError, match="output"):
        native.band_norms(vectors=aligned(size, size), below=tiles, inverse=tiles, out=np.zeros((2, size - 1)))
    with pytest.raises(ValueError, match="blocks"):
        native.band_norms(vectors=aligned(size + 1, size + 1), below=tiles, inverse=tiles, out=np.zeros((2, size)))
