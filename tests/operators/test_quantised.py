"""A symmetric operator in 16 bits: how far it is from the matrix, whatever the structure of that."""

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.operators import Dense, Quantised


def matrices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 5))
    grid = rng.integers(0, 2, (700, 4)).astype(float)
    for A in (X @ X.T, Gaussian(0.1)(X), Gaussian(0.4)(grid)):  # of the last one all entries take five values
        yield A.astype(np.float32)


@pytest.mark.parametrize("A", list(matrices()), ids=["linear", "gaussian", "grid"])
def test_noise_is_the_norm_of_what_was_rounded(A):
    kept = Quantised(Dense(A))
    errors = kept @ np.eye(len(A)) - A
    norm = np.linalg.norm(errors, 2)
    assert norm < 1.1 * kept.noise
    assert norm > 0.5 * kept.noise
    assert np.abs(np.diag(errors)).max() <= 1e-6 * np.abs(A).max()
    np.testing.assert_array_equal(kept.diagonal(), np.diag(A))


def test_of_a_kernel_and_vectors_of_any_size():
    X = np.random.default_rng(1).standard_normal((500, 3))
    K = KernelOperator(Gaussian(0.5), X)
    kept, V = Quantised(K.astype(np.float32)), np.random.default_rng(2).standard_normal((500, 3)) * [1e-290, 1.0, 1e290]
    size = np.abs(V).max(axis=0)
    error = np.linalg.norm((kept @ V - K @ V) / size, axis=0) / np.linalg.norm(V / size, axis=0)
    assert np.all(error < 1.5 * kept.noise)


def test_what_would_be_too_far_is_not_finished():
    A = np.random.default_rng(3).standard_normal((800, 800))
    asked = []

    class Counting(Dense):
        def block(self, I, J):
            asked.append(len(I))
            return super().block(I, J)

    kept = Quantised(Counting(A + A.T, symmetric=True), most=1e-6)
    assert kept.noise > 1e-6
    assert len(asked) == 1
    with pytest.raises(InvalidInput, match="most"):
        kept @ np.ones(800)


def test_entries_that_are_not_finite():
    A = np.eye(300)
    A[250, 7] = A[7, 250] = np.nan
    assert np.isnan(Quantised(Dense(A, symmetric=True)).noise)
    A = np.diag(np.append(np.ones(299), np.inf))
    assert np.isnan(Quantised(Dense(A, symmetric=True)).noise)


def test_only_symmetric_operators():
    with pytest.raises(InvalidInput, match="symmetric"):
        Quantised(Dense(np.triu(np.ones((3, 3)))))
    with pytest.raises(InvalidInput, match="most"):
        Quantised(Dense(np.ones((3, 3))), most=-1.0)


@pytest.mark.parametrize(("rows", "columns"), [((3, 50), (100, 390)), ((0, 400), (0, 400)), ((380, 400), (0, 1))])
def test_entries_of_a_run_are_those_of_the_matrix(rows, columns):
    K = KernelOperator(Gaussian(0.5), np.random.default_rng(4).standard_normal((400, 3)))
    before = K.block(np.arange(*rows), np.arange(*columns))
    whole = K.toarray()
    np.testing.assert_array_equal(before, whole[slice(*rows), slice(*columns)])
    np.testing.assert_array_equal(K.block(np.arange(*rows), np.arange(*columns)), before)
