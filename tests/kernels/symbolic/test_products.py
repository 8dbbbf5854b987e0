"""Inner products of sparse rows against NumPy's, whatever their features."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels.symbolic.products import sparse_products


@pytest.mark.parametrize("columns", [3, 200, 10**6, 2**31 - 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_products_are_those_of_dense_rows(columns, dtype):
    rng = np.random.default_rng(0)
    places = rng.choice(columns, size=min(columns, 40), replace=False).astype(dtype)
    A, B = (rng.normal(size=(n, len(places))) * (rng.random((n, len(places))) < 0.3) for n in (11, 7))
    X, Z = (wide(one, places, columns) for one in (A, B))
    np.testing.assert_allclose(sparse_products(X, Z), A @ B.T, atol=1e-13)
    np.testing.assert_allclose(sparse_products(X, X), A @ A.T, atol=1e-13)
    np.testing.assert_array_equal(sparse_products(X[:0], Z), np.empty((0, 7)))
    np.testing.assert_array_equal(sparse_products(0 * X, Z), 0.0)


def wide(rows, places, columns):
    """Rows whose numbers are at these places, which are in no order, of many columns."""
    found = sp.csr_array(rows)
    return sp.csr_array((found.data, places[found.indices], found.indptr), shape=(len(rows), columns))
