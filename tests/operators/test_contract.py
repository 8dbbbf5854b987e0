"""Every operator class earns the contract by one line in a table; every check catches a planted wrong operator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from mercer.operators import (
    Bordered,
    CachedRows,
    Centered,
    Dense,
    Diagonal,
    Foreign,
    Identity,
    LowRank,
    Operator,
    Product,
    Quantised,
    Scaled,
    StoredLater,
    Submatrix,
    Sum,
    Weighted,
)
from mercer.operators.base import Cast, Transposed
from mercer.testing import operators as suite

rng = np.random.default_rng(0)
M = rng.standard_normal((7, 7))
S = M + M.T
R = rng.standard_normal((7, 4))
d = rng.random(7) + 0.5
H = np.eye(7) - 1 / 7
W = np.eye(7) - np.outer(np.ones(7), d) / d.sum()
S32 = S.astype(np.float32)
Q16, Q16_LARGE = Quantised(Dense(S32)), Quantised(Dense(np.add.outer(np.arange(203.0), np.arange(203.0)) % 7))


class Bare(Operator):
    """Owes ``_matmat`` and gives nothing else."""

    def __init__(self, array, symmetric=False):
        super().__init__(array.shape, array.dtype, symmetric=symmetric)
        self.array = array

    def _matmat(self, V):
        return (self.array @ V).astype(V.dtype)


OPERATORS = {
    "Dense": (Dense(M), M),
    "Dense rectangular": (Dense(R), R),
    "Dense of columns": (Dense(np.asfortranarray(R)), R),
    "Dense float32": (Dense(S32), S32),
    "Dense 1 × 1": (Dense([[3.0]]), np.array([[3.0]])),
    "Diagonal": (Diagonal(d), np.diag(d)),
    "Identity": (Identity(5), np.eye(5)),
    "Identity float32": (Identity(5, np.float32), np.eye(5)),
    "LowRank": (LowRank(R), R @ R.T),
    "LowRank, two factors": (LowRank(R, M[:, :4]), R @ M[:, :4].T),
    "Bordered": (Bordered(Dense(M), R[:, :2]), np.block([[M, R[:, :2]], [R[:, :2].T, np.zeros((2, 2))]])),
    "Sum": (Sum(Dense(S), Diagonal(d), LowRank(R)), S + np.diag(d) + R @ R.T),
    "Sum of two dtypes": (Dense(S32) + Identity(7), S32 + np.eye(7)),
    "Scaled": (Scaled(Dense(M), -2.5), -2.5 * M),
    "Product": (Product(Dense(M), Diagonal(d), Dense(R)), M @ np.diag(d) @ R),
    "Transposed": (Transposed(Bare(R)), R.T),
    "Cast": (Cast(Dense(S), np.float32), S32),
    "Foreign": (Foreign(aslinearoperator(R)), R),
    "Foreign, sparse": (Foreign(scipy.sparse.csr_array(np.diag(d))), np.diag(d)),
    "Foreign, no adjoint": (Foreign(LinearOperator((7, 7), matvec=lambda v: M @ v, dtype=float)), M),
    "Centered": (Centered(Dense(S)), H @ S @ H),
    "Centered, not symmetric": (Centered(Dense(M)), H @ M @ H),
    "Centered, weighted": (Centered(Dense(M), weights=d), W @ M @ W.T),
    "Centered float32": (Centered(Dense(S32)), H @ S32 @ H),
    "Weighted": (Weighted(Dense(S), d), d[:, None] * S * d),
    "CachedRows": (CachedRows(Dense(S32), 4 * 7 * 3), S32),
    "CachedRows, not symmetric": (CachedRows(Dense(R), 50), R),
    "StoredLater": (StoredLater(Bare(S32, symmetric=True), 100), S32),
    "StoredLater at once, not symmetric": (StoredLater(Bare(R), 0), R),
    "StoredLater, never": (StoredLater(Bare(S, symmetric=True), 1e9), S),
    "Quantised": (Q16, Q16 @ np.eye(7)),
    "Quantised, blocks": (Q16_LARGE, Q16_LARGE @ np.eye(203)),
    "Submatrix": (Submatrix(Dense(S32), [3, 0, 5]), S32[np.ix_([3, 0, 5], [3, 0, 5])]),
    "Submatrix, not symmetric": (Submatrix(Dense(M), [6, 1]), M[np.ix_([6, 1], [6, 1])]),
    "Bare": (Bare(R), R),
    "Bare symmetric": (Bare(S, symmetric=True), S),
}


@pytest.mark.parametrize("check", suite.OPERATOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", OPERATORS)
def test_contract(name, check):
    operator, matrix = OPERATORS[name]
    check(operator, np.asarray(matrix, np.float64))


def test_the_suite_runs_every_check():
    suite.check_operator_contract(*OPERATORS["Sum"])
    with pytest.raises(AssertionError):
        suite.check_operator_contract(OPERATORS["Sum"][0], S)


class WrongProduct(Bare):
    def _matmat(self, V):
        return super()._matmat(V) * 1.001


class AlwaysFloat64(Bare):
    def _matmat(self, V):
        return self.array @ V.astype(np.float64)


class ChangesInput(Bare):
    def _matmat(self, V):
        product = super()._matmat(V)
        V *= 2
        return product


class WrongTranspose(Bare):
    def _transpose(self):
        return Bare(np.roll(self.array.T, 1, axis=0))


class WrongDiagonal(Bare):
    def diagonal(self):
        return np.zeros(len(self.array))


class WrongRows(Bare):
    def rows(self, I):
        return super().rows(I)[::-1]


class WrongRowProducts(Bare):
    def _rows_times(self, index, V):
        return super()._rows_times(index, V)[::-1]


class WrongBlockProducts(Bare):
    def _block_times(self, rows, columns, V):
        return super()._block_times(rows, columns, V)[::-1]


class WrongNormalProduct(Bare):
    def _normal_product(self, V, weights):
        return super()._normal_product(V, None)


class WrongFill(Bare):
    def fill(self, out):
        out[...] = self.array
        return out.copy()


class WrongGroups(Bare):
    def group_sums(self, labels, groups=None, weights=None, columns=None):
        return super().group_sums(labels, groups, None, columns)


class WrongMoves(Bare):
    def moved_sums(self, sums, columns, old, new, weights=None):
        return super().moved_sums(sums, columns, new, old, weights)


class WrongSeveral(Bare):
    def several_group_sums(self, labellings, groups, weights=None):
        return super().several_group_sums(labellings[::-1], groups, weights)


class LosesDtype(Bare):
    def astype(self, dtype):
        return self


class SciPySum(Bare):
    def __add__(self, other):
        return LinearOperator.__add__(self, other)


class AcceptsAnything(Bare):
    def __matmul__(self, other):
        return np.zeros(len(self.array)) if np.shape(other)[:1] != (len(self.array),) else super().__matmul__(other)


PLANTED = {
    "check_products": WrongProduct(M),
    "check_dtypes": AlwaysFloat64(M),
    "check_dtypes (input)": ChangesInput(M),
    "check_normal_product": WrongNormalProduct(M),
    "check_transpose": WrongTranspose(M),
    "check_symmetry": Bare(M, symmetric=True),
    "check_entries": WrongDiagonal(M),
    "check_entries (rows)": WrongRows(M),
    "check_entries (row products)": WrongRowProducts(M),
    "check_entries (block products)": WrongBlockProducts(M),
    "check_entries (fill)": WrongFill(M),
    "check_group_sums": WrongGroups(M),
    "check_group_sums (moved)": WrongMoves(M),
    "check_group_sums (several)": WrongSeveral(M),
    "check_astype": LosesDtype(M),
    "check_algebra": SciPySum(M),
    "check_messages": AcceptsAnything(M),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_check_catches_a_wrong_operator(name):
    check = getattr(suite, name.split(" ")[0])
    with pytest.raises(AssertionError):
        check(PLANTED[name], M)


def test_every_check_has_a_planted_operator():
    assert {name.split(" ")[0] for name in PLANTED} == {check.__name__ for check in suite.OPERATOR_CHECKS}
