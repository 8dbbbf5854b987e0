"""A kernel says in `space` which points it takes, or only the name of that, `domain`."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer import SVC, KernelDiscriminantAnalysis, KernelKMeans, KernelOperator, KernelPCA, KernelRidge
from mercer.errors import InvalidInput
from mercer.kernels import Chi2, Function, Hamming, Intersection, Kernel, Laplace, Linear, Precomputed, Tanimoto
from mercer.points import KERNEL_VALUES, OBJECTS, VECTORS


class Counts(Kernel):
    """The number of items of both: a kernel of lists."""

    domain = "any"

    def block(self, X, Z):
        return np.array([[float(len(x) * len(z)) for z in Z] for x in X])

    def diagonal(self, X):
        return np.array([float(len(x) ** 2) for x in X])


class Choosing(Linear):
    """Of objects if the parameter says so."""

    objects = False

    @property
    def domain(self):
        return "any" if self.objects else super().domain


class OfObjects(Choosing):
    objects = True


class Values:
    domain = "precomputed"


class Mixed(Values, Linear):
    pass


class Stated(Linear):
    @property
    def space(self):
        return OBJECTS


def test_a_kernel_of_objects_reads_one_column_of_mixed_rows():
    """A kernel that only states `domain = "any"` can read one column, beside a kernel on columns of numbers."""
    rows = np.empty((2, 2), dtype=object)
    rows[:] = [[2.0, None], [3.0, None]]
    rows[0, 1], rows[1, 1] = ["a", "b"], ["c"]
    kernel = Linear().on([0]) + Counts().on([1])
    assert np.array_equal(kernel(rows), [[4.0 + 4.0, 6.0 + 2.0], [6.0 + 2.0, 9.0 + 1.0]])
    assert kernel.space is OBJECTS
    with pytest.raises(InvalidInput, match="reads one column"):
        Counts().on([0, 1])


@pytest.mark.parametrize(
    ("kernel", "space"),
    [
        (Linear(), VECTORS),
        (Precomputed(), KERNEL_VALUES),
        (2 * Function(min), OBJECTS),
        (Linear() + Function(min), VECTORS),
        (Counts(), OBJECTS),
        (Choosing(), VECTORS),
        (OfObjects(), OBJECTS),
        (Mixed(), KERNEL_VALUES),
        (Stated(), OBJECTS),
        (3 * Counts(), OBJECTS),
    ],
    ids=repr,
)
def test_a_class_states_its_space_or_the_name_of_it(kernel, space):
    assert kernel.space is space
    assert kernel.domain == space.name


def test_a_kernel_that_states_a_name_computes():
    words = ["a", "bcd", "ef"]
    assert (
        KernelOperator(Counts(), words).toarray().tolist()
        == Counts()(words).tolist()
        == [
            [1.0, 3.0, 2.0],
            [3.0, 9.0, 6.0],
            [2.0, 6.0, 4.0],
        ]
    )


def test_an_unknown_name_is_refused():
    class Unknown(Linear):
        domain = "strings"

    with pytest.raises(InvalidInput, match="domain='strings'"):
        Unknown().space  # noqa: B018


class Common(Kernel):
    """|x ∩ z| of sets, without a diagonal of its own; with faults on request."""

    space = OBJECTS
    fault = ""

    def block(self, X, Z):
        found = np.array([[len(x & z) for z in Z] for x in X], float)
        if self.fault == "NaN":
            found[0, 0] = np.nan
        return found[:, :3] if self.fault == "shape" else found


SETS = [frozenset({place % 5, place % 3 + 5, 9}) for place in range(12)]


def test_a_kernel_of_objects_needs_no_diagonal():
    kernel = Common()
    assert np.array_equal(kernel.diagonal(SETS), np.diag(kernel(SETS)))
    assert np.allclose(np.diag(kernel.normalized()(SETS)), 1.0)
    model = KernelRidge(kernel, alpha=0.1).fit(SETS, np.arange(12.0))
    expected = np.linalg.solve(kernel(SETS) + 0.1 * np.eye(12), np.arange(12.0))
    np.testing.assert_allclose(model.dual_coef_, expected, rtol=1e-6)


class Plain(Kernel):
    """exp(−‖x − z‖₁) of vectors, by `block` alone."""

    def block(self, X, Z):
        return np.exp(-np.abs(np.asarray(X)[:, None] - np.asarray(Z)[None]).sum(axis=-1))


@pytest.mark.parametrize(
    "model", [KernelRidge(), SVC(), KernelPCA(2), KernelKMeans(2)], ids=lambda one: type(one).__name__
)
def test_a_kernel_of_vectors_needs_no_diagonal_either(model):
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.testing.assert_allclose(Plain().normalized()(X), Plain()(X), rtol=1e-12)
    mine, known = (clone(model).set_params(kernel=one).fit(X, X[:, 0] > 0) for one in (Plain(), Laplace(1.0, norm=1)))
    shown = (one.transform(X) if hasattr(one, "transform") else one.predict(X) for one in (mine, known))
    np.testing.assert_allclose(*shown, atol=1e-6)


@pytest.mark.parametrize("kernel", [Laplace(0.5, norm=1), Chi2(), Intersection(), Hamming(), Tanimoto()], ids=repr)
@pytest.mark.parametrize("model", [KernelPCA(2), KernelKMeans(2), KernelDiscriminantAnalysis()], ids=repr)
def test_sparse_rows_of_every_pairing_are_fitted(model, kernel):
    """The check of digits read them by NumPy, which has no such pairing of sparse rows."""
    X = np.random.default_rng(0).integers(0, 3, (30, 4)).astype(float)
    X[:, 0] += 1
    sparse, dense = (clone(model).set_params(kernel=kernel).fit(rows, X[:, 1] > 0) for rows in (sp.csr_array(X), X))
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X), atol=1e-8)


@pytest.mark.parametrize("kind", ["u1", "i1", "i4", "u8"])
def test_places_of_a_narrow_type(kind):
    X = np.random.default_rng(0).normal(size=(300, 3))
    K, places = KernelOperator("gaussian", X), np.array([1, 2], kind)
    np.testing.assert_array_equal(K.block(places, places), K.block([1, 2], [1, 2]))
    model = KernelKMeans(2, "gaussian", init=places).fit(X)
    np.testing.assert_array_equal(model.labels_, KernelKMeans(2, "gaussian", init=[1, 2]).fit(X).labels_)


@pytest.mark.parametrize(
    ("fault", "say"),
    [("shape", r"block\(X, Z\) of shape \(12, 3\) for 12 and 12 rows"), ("NaN", r"block\(X, Z\) with NaN; return")],
)
@pytest.mark.parametrize("model", [KernelRidge(), SVC(), KernelPCA(2)], ids=lambda model: type(model).__name__)
def test_faults_of_a_users_block_are_named(model, fault, say):
    kernel = Common()
    kernel.fault = fault
    with pytest.raises(InvalidInput, match=f"Common: {say}"):
        clone(model).set_params(kernel=kernel).fit(SETS, np.arange(12) % 2)
