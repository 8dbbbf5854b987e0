"""The same values from lists, CSR matrices, data frames and tensors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels import (
    Circle,
    Columns,
    Cosine,
    Gaussian,
    Laplace,
    LengthScales,
    Linear,
    Matern,
    MonomialSum,
    Polynomial,
    RationalQuadratic,
    dense,
    set_engine,
)
from mercer.testing import assert_close

SPARSE = [
    Linear(),
    Polynomial(degree=2),
    MonomialSum(),
    Cosine(),
    Gaussian(gamma=0.5),
    Gaussian(),
    Laplace(gamma=0.5),
    Matern(nu=1.5),
    RationalQuadratic(gamma=0.5),
    Gaussian(gamma=0.5).on([1, 3]) + Linear().with_length_scales([1, 2, 3, 4, 5]).normalized(),
]


@pytest.mark.parametrize("format_", [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix])
@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
def test_sparse(kernel, format_, dtype, no_engine):
    X = sp.random_array((12, 5), density=0.4, random_state=np.random.default_rng(0)).toarray().astype(dtype)
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    K = kernel(format_(X))
    assert isinstance(K, np.ndarray)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, kernel(X), rtol=tolerance, atol=tolerance)
    resolved = kernel.resolve(X)
    for left, right in ((format_(X[:4]), format_(X[4:])), (format_(X[:4]), X[4:]), (X[:4], format_(X[4:]))):
        np.testing.assert_allclose(resolved(left, right), resolved(X[:4], X[4:]), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(resolved.diagonal(format_(X)), resolved.diagonal(X), rtol=tolerance)


def test_lists_integers_and_mixed_precision():
    k = Gaussian(gamma=0.5)
    expected = k(np.array([[0.0, 1.0], [2.0, 3.0]]))
    for same in ([[0, 1], [2, 3]], np.array([[0, 1], [2, 3]]), np.array([[0, 1], [2, 3]], dtype=np.int8)):
        assert k(same).dtype == np.float64
        np.testing.assert_array_equal(k(same), expected)
    narrow = np.ones((2, 2), dtype=np.float32)
    assert k(narrow, np.ones((3, 2))).dtype == np.float64
    assert k(narrow).dtype == np.float32


def test_the_same_object_twice_is_x_with_itself():
    X = np.random.default_rng(0).normal(size=(5, 40))
    k = Laplace(gamma=1.0)
    np.testing.assert_array_equal(k(X, X), k(X))
    assert np.array_equal(np.diag(k(X, X)), np.ones(5))


def test_memory_order_does_not_matter(plain, rows):
    """To rounding: a BLAS may add up the other way where its first factor is transposed."""
    X, Z = rows
    assert_close(plain.block(np.asfortranarray(X), Z[::-1]), plain.block(X, Z[::-1].copy()), 1e-15)


def test_input_is_left_alone(kernel, rows):
    X, Z = rows
    before = X.copy(), Z.copy()
    for array in (X, Z):
        array.flags.writeable = False
    kernel(X, Z)
    kernel(X)
    assert np.array_equal(X, before[0])
    assert np.array_equal(Z, before[1])


def test_views():
    X = np.array([[1.0, 2.0, 3.0]])
    for wrap in (np.asarray, sp.csr_array):
        M = wrap(X)
        np.testing.assert_array_equal(np.asarray(sp.csr_array(Columns((2, 0)).apply(M)).toarray()), [[3.0, 1.0]])
        np.testing.assert_allclose(sp.csr_array(LengthScales((1, 2, 6)).apply(M)).toarray(), [[1.0, 1.0, 0.5]])
    narrow = X.astype(np.float32)
    for view in (Columns((1,)), LengthScales((1.0, 2.0, 3.0)), Circle(2.0)):
        assert view.apply(narrow).dtype == np.float32
    assert Circle(4.0).apply(X).shape == (1, 6)
    with pytest.raises(InvalidInput, match="convert it"):
        Circle(1.0).apply(sp.csr_array(X))


def test_engine_hook(rows):
    X, Z = rows
    asked = []

    def engine(kernel, X, Z):
        asked.append((kernel, Z is None))
        return NotImplemented if isinstance(kernel, Linear) else "its answer"

    previous = set_engine(engine)
    try:
        assert Gaussian(gamma=1.0)(X) == "its answer"
        assert Gaussian()(X) == "its answer"
        assert Gaussian(gamma=1.0)(X, Z) == "its answer"
        np.testing.assert_allclose(Linear()(X, Z), X @ Z.T)
        assert [is_self for _, is_self in asked] == [True, True, False, False]
        assert all(kernel.is_resolved for kernel, _ in asked)
    finally:
        assert set_engine(previous) is engine
    np.testing.assert_array_equal(dense(Gaussian(gamma=1.0), X, X), Gaussian(gamma=1.0)(X))


class TestTensors:
    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch", reason="PyTorch is not installed: tensors as input are NOT tested")

    def test_same_values_as_arrays(self, kernel, dtype, draw_rows, torch, no_engine):
        X, Z = draw_rows(dtype)
        tolerance = 5e-6 if dtype == np.float32 else 1e-12
        K = kernel(torch.from_numpy(X), torch.from_numpy(Z))
        assert isinstance(K, torch.Tensor)
        assert K.numpy().dtype == dtype
        scale = max(1.0, np.abs(kernel(X, Z)).max())
        np.testing.assert_allclose(K.numpy(), kernel(X, Z), rtol=tolerance, atol=tolerance * scale)
        np.testing.assert_allclose(
            kernel(torch.from_numpy(X)).numpy(), kernel(X), rtol=tolerance, atol=tolerance * scale
        )
        diagonal = kernel.diagonal(torch.from_numpy(X))
        np.testing.assert_allclose(diagonal.numpy(), kernel.diagonal(X), rtol=tolerance, atol=tolerance)

    def test_many_columns(self, torch, no_engine):
        X = (1000 + np.random.default_rng(0).normal(size=(30, 60))).astype(np.float32)
        K = Gaussian(gamma=0.02)(torch.from_numpy(X)).numpy()
        assert np.abs(K - Gaussian(gamma=0.02)(X.astype(float))).max() < 1e-6
        assert np.array_equal(np.diag(K), np.ones(30))

    def test_rules(self, torch, no_engine):
        X = np.random.default_rng(0).normal(size=(30, 3))
        assert Gaussian().resolve(torch.from_numpy(X)) == Gaussian().resolve(X)

    def test_gradients(self, torch, no_engine):
        X = torch.tensor([[0.0, 1.0], [2.0, 0.5]], dtype=torch.float64, requires_grad=True)
        (Gaussian(gamma=0.5) + Polynomial(degree=2))(X).sum().backward()
        assert bool(torch.isfinite(X.grad).all())

    def test_matern_of_any_order_is_refused(self, torch, no_engine):
        with pytest.raises(InvalidInput, match="half-integer"):
            Matern(nu=1.2)(torch.ones(2, 2))
