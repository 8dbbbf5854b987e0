"""The explicit features of chapter 002: entry by entry, and by their inner products."""

import numpy as np
import pandas as pd
import pytest

from mercer import MonomialFeatures
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.kernels import MonomialSum, Polynomial
from mercer.testing import assert_close

KERNELS = {
    "power": lambda k, c: Polynomial(k, coef0=0.0),
    "all": lambda k, c: Polynomial(k, coef0=c),
    "sum": lambda k, c: MonomialSum(k),
}


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("coef0", [0.0, 0.7, 2.0])
def test_inner_products_are_the_kernel(kind, degree, coef0, distinct):
    X, Z = np.random.default_rng(0).normal(size=(2, 6, 4))
    features = MonomialFeatures(degree, coef0, kind, distinct=distinct).fit(X)
    products = features.transform(X) @ features.transform(Z).T
    np.testing.assert_allclose(products, KERNELS[kind](degree, coef0)(X, Z), rtol=1e-11, atol=1e-11)


def test_entries_are_the_chapters():
    x1, x2, x3, c = 2.0, 3.0, 5.0, 0.5
    X = [[x1, x2, x3]]
    pairs = [a * b for a in (x1, x2, x3) for b in (x1, x2, x3)]
    np.testing.assert_array_equal(MonomialFeatures(2, kind="power").fit_transform(X)[0], pairs)
    rest = [np.sqrt(2 * c) * x for x in (x1, x2, x3)] + [c]
    assert_close(MonomialFeatures(2, c, kind="all").fit_transform(X)[0], pairs + rest)
    np.testing.assert_array_equal(MonomialFeatures(3).fit_transform([[x1]])[0], [1, x1, x1**2, x1**3])  # (5.1)
    triples = [a * b for a in pairs for b in (x1, x2, x3)]
    assert_close(MonomialFeatures(3).fit_transform(X)[0], [1, x1, x2, x3, *pairs, *triples])  # (5.5)


def test_counts_are_the_chapters():
    X = np.ones((1, 4))
    assert MonomialFeatures(3).fit(X).n_output_features_ == 1 + 4 + 16 + 64
    assert MonomialFeatures(3, kind="all", distinct=True).fit(X).n_output_features_ == 35  # C(4 + 3, 3)


@pytest.mark.parametrize("distinct", [False, True])
def test_names_say_what_the_columns_are(distinct):
    frame = pd.DataFrame({"u": [2.0, 3.0], "v": [5.0, 7.0]})
    features = MonomialFeatures(3, kind="sum", distinct=distinct).set_output(transform="pandas")
    out = features.fit_transform(frame)
    assert len(set(out.columns)) == out.shape[1]
    assert ("v u" in out.columns) == (not distinct)
    for name in out.columns:
        factors = [] if name == "1" else name.split(" ")
        times = {1: 1, 2: 3}.get(len(set(factors)), 1) if len(factors) == 3 else len(set(factors)) or 1
        value = frame[factors].prod(axis=1) * (np.sqrt(times) if distinct else 1.0)
        assert_close(out[name], value)


def test_float32_stays_float32():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for distinct in (False, True):
        out = MonomialFeatures(3, kind="all", distinct=distinct).fit_transform(X)
        assert out.dtype == np.float32
        np.testing.assert_allclose(out @ out.T, Polynomial(3)(X), rtol=1e-4, atol=1e-5)


def test_sizes_beyond_the_bound_are_refused_with_numbers():
    with pytest.raises(InvalidInput, match="1001001001 features"):
        MonomialFeatures(3).fit(np.ones((1, 1000)))  # the chapter's d = 1000
    with pytest.raises(MemoryExceeded, match="85 features"):
        MonomialFeatures(3, memory="1kB").fit(np.ones((100, 4)))
    fitted = MonomialFeatures(3, memory="20kB").fit(np.ones((10, 4)))
    with pytest.raises(MemoryExceeded, match="100 rows"):
        fitted.transform(np.ones((100, 4)))


@pytest.mark.parametrize(
    "options", [{"degree": 0}, {"degree": 1.5}, {"degree": True}, {"kind": "some"}, {"coef0": -1.0}, {"coef0": "c"}]
)
def test_bad_parameters(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        MonomialFeatures(**options).fit([[1.0]])


@pytest.mark.parametrize("degree", [1001, 10**9, 10**100])
def test_degrees_beyond_what_numbers_hold_are_refused_before_any_work(degree):
    for kind in ("power", "all", "sum"):
        with pytest.raises(InvalidInput, match=r"degree=.* give at most 1000"):
            MonomialFeatures(degree, kind=kind).fit([[1.0]])
    assert MonomialFeatures(1000, kind="power").fit_transform([[1.0]]).tolist() == [[1.0]]
