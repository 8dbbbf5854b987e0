"""Substitution with a triangular factor: the engine gives what its twin defines, on every instruction set."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine import reference


def task(dtype, n, columns, seed=0):
    """U with NaN where nothing may read, B, and X in float64 by products with the inverse of U."""
    rng = np.random.default_rng(seed)
    U = np.triu(rng.standard_normal((n, n)) / (4 * np.sqrt(n)), 1) + np.diag(1 + rng.random(n))
    U = U.astype(dtype)
    B = rng.standard_normal((n, columns)).astype(dtype)
    inverse = np.linalg.inv(U.astype(np.float64))
    U[np.tril_indices(n, -1)] = np.nan
    return U, B, inverse @ (inverse.T @ B.astype(np.float64))


@pytest.mark.parametrize("columns", [1, 7, 16, 17, 64])
@pytest.mark.parametrize("n", [1, 2, 12, 13, 48, 49, 97, 331])
def test_both_substitutions(native, isa, dtype, n, columns):
    U, B, exact = task(dtype, n, columns)
    X, twin = B.copy(), B.copy()
    native.cholesky_solve(U, X, isa)
    reference.cholesky_solve(U, twin)
    tolerance = 8 * np.finfo(dtype).eps * np.abs(exact).max()
    assert np.abs(X - exact).max() <= tolerance
    assert np.abs(twin - exact).max() <= tolerance


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
def test_nothing_to_solve(engine, shape):
    X = np.ones(shape)
    engine.cholesky_solve(np.eye(shape[0]), X)
    assert np.array_equal(X, np.ones(shape))


def test_the_same_bits_for_any_number_of_threads(native, isa, dtype):
    U, B, _ = task(dtype, 700, 160)
    found = []
    for threads in (1, 2, 3):
        X = B.copy()
        with threadpool_limits(threads, user_api="openmp"):
            native.cholesky_solve(U, X, isa)
        found.append(X)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_columns_do_not_meet(native, isa, dtype):
    """One that is not finite, or large, leaves the others as they are alone."""
    U, B, _ = task(dtype, 60, 5)
    alone, mixed = B.copy(), B.copy()
    mixed[7, 1], mixed[:, 3] = np.nan, np.finfo(dtype).max
    native.cholesky_solve(U, alone, isa)
    native.cholesky_solve(U, mixed, isa)
    assert np.array_equal(mixed[:, [0, 2, 4]], alone[:, [0, 2, 4]])
    assert np.isnan(mixed[:, 1]).all()


@pytest.mark.parametrize(
    ("upper", "x"),
    [
        (np.eye(3), np.ones(3)),
        (np.eye(3), np.ones((4, 1))),
        (np.eye(3), np.ones((3, 1), np.float32)),
        (np.ones((3, 4)), np.ones((3, 1))),
        (np.ones(3), np.ones((3, 1))),
        (np.eye(3, dtype=np.int64), np.ones((3, 1))),
    ],
    ids=["vector", "rows", "dtype", "not square", "no matrix", "integers"],
)
def test_what_would_crash_is_refused(native, upper, x):
    with pytest.raises(ValueError):
        native.cholesky_solve(upper, x)


def test_copies_are_refused(native):
    """The answer would be lost in a copy."""
    with pytest.raises(TypeError):
        native.cholesky_solve(np.eye(3), np.ones((3, 4))[:, ::2])
    with pytest.raises(TypeError):
        native.cholesky_solve(np.asfortranarray(np.triu(np.ones((3, 3)))), np.ones((3, 2)))
