"""Each pair of entries stored once: products, parts, and what is refused."""

import numpy as np
import pytest

from mercer import KernelOperator
from mercer.errors import InvalidInput
from mercer.kernels import GappedKmer, Gaussian
from mercer.operators import Packed
from mercer.testing import check_operator_contract


def packed(A, height):
    rows = [A[i : i + height, i:].ravel() for i in range(0, len(A), height)]
    return Packed(np.concatenate([A[:0].ravel(), *rows]), len(A), height)


@pytest.mark.parametrize(("n", "height"), [(0, 3), (1, 3), (7, 1), (7, 3), (7, 7), (7, 20), (400, 192)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contract(n, height, dtype):
    A = np.random.default_rng(n).standard_normal((n, n)).astype(dtype)
    kept = packed(A + A.T, height)
    assert kept.symmetric
    if n:
        check_operator_contract(kept, A + A.T)
    else:
        assert (kept @ np.empty((0, 2))).shape == (0, 2)
        assert kept.toarray().shape == (0, 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_upper_triangle_alone(threads):
    A = np.arange(49.0).reshape(7, 7)
    A = A + A.T
    out = np.full((7, 7), -1.0, np.float32)
    assert packed(A, 3).fill_upper(out, threads) is out
    np.testing.assert_array_equal(np.triu(out), np.triu(A))
    np.testing.assert_array_equal(out[3:, :3], -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (193, 3), (500, 40)])
def test_entries_of_a_kernel(n, d, dtype):
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    K = KernelOperator(Gaussian(1 / d), X)
    kept = K.packed()
    assert kept.dtype == dtype
    np.testing.assert_allclose(kept.toarray(), K.toarray(), rtol=10 * np.finfo(dtype).eps)
    assert kept._values.nbytes <= K.packed_bytes


def test_entries_of_a_kernel_of_objects():
    words = ["".join(np.random.default_rng(i).choice(list("ACGT"), 20)) for i in range(30)]
    K = KernelOperator(GappedKmer(5, 3), words)
    kept = K.packed()
    np.testing.assert_allclose(kept.toarray(), K.toarray(), rtol=1e-13)
    assert kept._values.nbytes <= K.packed_bytes


@pytest.mark.parametrize(("size", "n", "height"), [(6, 3, 2), (7, 3, 0), (7, -1, 2), (8, 3, 2)])
def test_values_that_do_not_fit_are_refused(size, n, height):
    with pytest.raises(InvalidInput, match="Packed: values of shape"):
        Packed(np.zeros(size), n, height)


def test_only_symmetric_operators_are_packed():
    with pytest.raises(InvalidInput, match="not symmetric"):
        KernelOperator("linear", np.ones((3, 2)), np.zeros((3, 2))).packed()
