"""The generalised eigenproblem against SciPy, and what is none."""

import numpy as np
import pytest
import scipy.linalg

from mercer.errors import InvalidInput
from mercer.solvers import DensePencil, Pencil, Status, solve
from mercer.testing import assert_close
from mercer.testing import solvers as suite


def matrices(n=30):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, n, n))
    return A + A.T, B @ B.T + np.eye(n)


@pytest.mark.parametrize("check", suite.SOLVER_CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check(DensePencil(), lambda: Pencil(*matrices(), 3))


def test_equals_scipy():
    A, B = matrices()
    pairs = solve(DensePencil(), Pencil(A, B, 4)).x
    assert_close(pairs.values, scipy.linalg.eigh(A, B)[0][::-1][:4], rtol=1e-10)
    np.testing.assert_allclose(pairs.vectors.T @ B @ pairs.vectors, np.eye(4), atol=1e-10)


def test_a_pencil_without_a_definite_right_matrix_is_no_pencil():
    A = np.diag([1.0, 2.0])
    assert solve(DensePencil(), Pencil(A, np.diag([1.0, -1.0]), 1)).status is Status.NOT_POSITIVE_DEFINITE
    assert solve(DensePencil(), Pencil(A, np.diag([1.0, np.nan]), 1)).status is Status.NOT_FINITE
    for B, k in ((np.eye(3), 1), (np.eye(2), 3)):
        with pytest.raises(InvalidInput):
            Pencil(A, B, k)
