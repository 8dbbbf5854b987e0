"""Repaired spectra are those of the definition, on training points and on new ones, by rows, matrix and objects."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import KernelRidge, RepairedKernel, repair_kernel
from mercer.errors import InvalidInput, NotAKernel
from mercer.kernels import Function, Gaussian, Precomputed, Sigmoid
from mercer.testing import assert_close

K0 = Sigmoid(gamma=0.7, coef0=-0.5)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 3)), rng.standard_normal((7, 3))


def by_definition(K, policy):
    values, U = np.linalg.eigh(K)
    new = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - min(values[0], 0)}[policy]
    return (U * new) @ U.T


@pytest.mark.parametrize("policy", ["clip", "flip", "shift"])
def test_the_spectrum_is_the_definitions(policy, rows):
    X, _ = rows
    kernel = repair_kernel(K0, X, policy)
    expected = by_definition(K0(X), policy)
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(expected), atol=1e-12)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    effect = np.linalg.norm(expected - K0(X)) / np.linalg.norm(K0(X))
    assert kernel.repair.change == pytest.approx(effect, rel=1e-9)
    assert kernel.repair.negative == np.count_nonzero(np.linalg.eigvalsh(K0(X)) < -1e-12)
    assert policy in str(kernel.repair)


@pytest.mark.parametrize("policy", ["clip", "flip"])
def test_new_points_are_changed_as_training_points_are(policy, rows):
    X, new = rows
    kernel = repair_kernel(K0, X, policy)
    values, U = np.linalg.eigh(K0(X))
    turn = (U * (values > 0 if policy == "clip" else np.sign(values))) @ U.T
    np.testing.assert_allclose(kernel(new, X), K0(new, X) @ turn, atol=1e-11)
    everything = np.vstack([X, new])
    assert np.linalg.eigvalsh(kernel(everything))[0] > -1e-10
    assert kernel.properties.definiteness.is_mercer


def test_shift_changes_equal_points_only(rows):
    X, new = rows
    kernel = repair_kernel(K0, X, "shift")
    np.testing.assert_array_equal(kernel(new, X), K0(new, X))
    np.testing.assert_allclose(kernel(X[:3], X)[:, :3], K0(X[:3]) + kernel.repair.shift * np.eye(3), atol=1e-14)
    twice = np.vstack([X[:1], X[:1], X[1:5]])
    assert_close(kernel(twice)[0, 1], K0(X[:1])[0, 0] + kernel.repair.shift)


@pytest.mark.parametrize("policy", ["clip", "flip", "shift"])
def test_an_estimator_binds_it_and_rows_equal_the_matrix(policy, rows):
    X, new = rows
    y = np.sin(X[:, 0])
    by_rows = KernelRidge(RepairedKernel(K0, policy), alpha=0.1).fit(X, y)
    by_matrix = KernelRidge(RepairedKernel(Precomputed(), policy), alpha=0.1).fit(K0(X), y)
    np.testing.assert_allclose(by_rows.predict(new), by_matrix.predict(K0(new, X)), atol=1e-10)
    np.testing.assert_allclose(by_rows.predict(X), by_matrix.predict(K0(X)), atol=1e-10)
    alpha = np.linalg.solve(by_definition(K0(X), policy) + 0.1 * np.eye(30), y)
    np.testing.assert_allclose(by_rows.dual_coef_, alpha, atol=1e-8)


def test_two_are_equal_where_kernel_policy_and_points_are(rows):
    X, _ = rows
    one = RepairedKernel(K0, "clip", X)
    assert RepairedKernel(K0, "clip") == RepairedKernel(K0, "clip") != RepairedKernel(K0, "flip")
    assert RepairedKernel(K0) != RepairedKernel(Gaussian(gamma=1.0))
    assert hash(RepairedKernel(K0)) == hash(RepairedKernel(K0))
    assert one == one.replace() == RepairedKernel(K0, "clip", one.points) != RepairedKernel(K0, "clip", X[:9])
    policies = [RepairedKernel(K0, policy) for policy in ("clip", "flip", "shift")]
    assert one + policies[0] != one + policies[1]


def test_a_kernel_is_left_as_it_is(rows):
    X, new = rows
    for policy in ("raise", "clip", "flip", "shift"):
        kernel = repair_kernel("gaussian(gamma=0.5)", X, policy)
        np.testing.assert_allclose(kernel(new, X), Gaussian(gamma=0.5)(new, X), atol=1e-7)
        assert "nothing to repair" in str(kernel.repair)


def test_raise_has_the_witness(rows):
    with pytest.raises(NotAKernel, match=r"zᵀKz"):
        repair_kernel(K0, rows[0], "raise")
    with pytest.raises(NotAKernel, match=r"zᵀKz"):
        KernelRidge(RepairedKernel(K0, "raise")).fit(rows[0], rows[0][:, 0])


def test_objects_sparse_rows_and_float32(rows):
    words = ["ab", "abc", "xyz", "xy", "abz", "yz"]
    tangled = Function(lambda s, t: float(len(set(s) & set(t))) - 1.5 * (s != t), mode="pair")
    kernel = repair_kernel(tangled, words, "flip")
    np.testing.assert_allclose(kernel.block(words, words), by_definition(tangled(words), "flip"), atol=1e-12)
    shifted = repair_kernel(tangled, words, "shift")
    np.testing.assert_allclose(shifted.block(words, words), by_definition(tangled(words), "shift"), atol=1e-12)
    X, new = rows
    for policy in ("clip", "shift"):
        dense, sparse = (repair_kernel(K0, form(X), policy) for form in (np.asarray, sp.csr_array))
        np.testing.assert_allclose(sparse(sp.csr_array(new), sp.csr_array(X)), dense(new, X), atol=1e-10)
    narrow = repair_kernel(K0, X.astype(np.float32), "clip")
    assert narrow(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(narrow(X.astype(np.float32)), by_definition(K0(X), "clip"), atol=1e-4)


def test_scikit_learns_tools(rows):
    X, y = rows[0], rows[0][:, 0]
    model = KernelRidge(RepairedKernel(K0, "clip"))
    assert clone(model).kernel.policy == "clip"
    search = GridSearchCV(model, {"kernel__policy": ["clip", "flip"], "kernel__kernel__gamma": [0.1, 1.0]}, cv=2).fit(
        X, y
    )
    assert search.best_params_["kernel__kernel__gamma"] in (0.1, 1.0)


def test_bad_use(rows):
    with pytest.raises((InvalidInput, NotAKernel), match="policy"):
        repair_kernel(K0, rows[0], "mend")
    with pytest.raises(InvalidInput, match="depend on data"):
        repair_kernel(K0)(rows[0], rows[1])
    with pytest.raises(InvalidInput, match="square"):
        repair_kernel(Precomputed(), np.ones((3, 2)))
    assert mercer.check_kernel(repair_kernel(K0, rows[0]), rows[0]).is_mercer
