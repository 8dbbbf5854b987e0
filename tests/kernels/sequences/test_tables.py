"""SetKernel and GlobalAlignment: sets of points and time series."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import errors
from mercer.kernels import Gaussian, GlobalAlignment, Laplace, Linear, Polynomial, SetKernel, Sigmoid, parse

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 2)) for n in (1, 3, 7, 2, 5, 4, 1, 9, 6, 3)]
Z = [RNG.normal(size=(n, 2)) for n in (4, 1, 2)]


@pytest.mark.parametrize(
    "base", [Linear(), Gaussian(gamma=0.5), Laplace(gamma=0.3, norm=1), Gaussian(gamma=0.2) * Polynomial(2)]
)
@pytest.mark.parametrize("aggregate", ["mean", "sum"])
def test_set_kernel_is_the_mean_of_all_pairs(base, aggregate):
    kernel = SetKernel(base, aggregate)
    fold = np.mean if aggregate == "mean" else np.sum
    expected = np.array([[fold(base(x, z)) for z in Z] for x in X])
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-13)
    square = kernel(X)
    np.testing.assert_allclose(square, [[fold(base(x, z)) for z in X] for x in X], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(square), rtol=1e-12, atol=1e-13)


def test_set_kernel_in_small_blocks(monkeypatch):
    whole = SetKernel(Gaussian(gamma=0.5))(X, Z)
    monkeypatch.setattr("mercer.kernels.sequences.sets.ENTRIES", 20)
    np.testing.assert_allclose(SetKernel(Gaussian(gamma=0.5))(X, Z), whole, rtol=1e-14)


def test_set_kernel_of_a_name():
    assert SetKernel("rbf") == parse("setkernel(rbf)") == SetKernel(Gaussian("auto"))
    assert SetKernel("gaussian") == SetKernel(Gaussian()) == parse("setkernel('gaussian')")
    assert SetKernel("2*laplace(gamma=0.5) + linear()", "sum") == SetKernel(2 * Laplace(0.5) + Linear(), "sum")
    np.testing.assert_array_equal(SetKernel("linear")(X, Z), SetKernel(Linear())(X, Z))
    with pytest.raises(errors.InvalidInput, match="did you mean 'gaussian'"):
        SetKernel("gausian")
    for other in ("spectrum", 3, None):
        with pytest.raises(errors.InvalidInput, match="is not a kernel on vectors"):
            SetKernel(other)


def test_set_kernel_resolves_on_all_points():
    kernel = SetKernel(Gaussian(gamma="median"))
    assert kernel.resolve(X) == SetKernel(Gaussian(gamma="median").resolve(np.concatenate(X)))
    assert kernel.get_params()["kernel__gamma"] == "median"
    assert parse(repr(SetKernel(Gaussian(gamma=2.0) + Linear(), "sum"))) == SetKernel(
        Gaussian(gamma=2.0) + Linear(), "sum"
    )
    assert SetKernel(Gaussian()).properties.definiteness.is_mercer
    assert not SetKernel(Sigmoid()).properties.definiteness.is_mercer


def alignments(x, z, gamma):
    """Over every alignment, each written out."""
    g = np.exp(-gamma * ((x[:, None] - z[None]) ** 2).sum(axis=2))
    local, last = g / (2 - g), (len(x) - 1, len(z) - 1)

    def after(i, j):
        steps = [(i + 1, j), (i, j + 1), (i + 1, j + 1)]
        rest = 1.0 if (i, j) == last else sum(after(*s) for s in steps if s[0] < len(x) and s[1] < len(z))
        return local[i, j] * rest

    return after(0, 0)


@pytest.mark.parametrize("gamma", [0.01, 0.4, 30.0])
def test_alignment_is_the_sum_over_alignments(gamma):
    few = [x for x in X if len(x) < 7]
    kernel = GlobalAlignment(gamma, normalize=False)
    expected = np.array([[alignments(x, z, gamma) for z in Z] for x in few])
    np.testing.assert_allclose(kernel(few, Z), expected, rtol=1e-11)
    square = np.array([[alignments(x, z, gamma) for z in few] for x in few])
    np.testing.assert_allclose(kernel(few), square, rtol=1e-11)
    np.testing.assert_allclose(kernel.diagonal(few), np.diagonal(square), rtol=1e-11)
    root = np.sqrt(np.diagonal(square))
    np.testing.assert_allclose(GlobalAlignment(gamma)(few), square / root[:, None] / root, rtol=1e-11)
    own = np.sqrt([alignments(z, z, gamma) for z in Z])
    np.testing.assert_allclose(GlobalAlignment(gamma)(few, Z), expected / root[:, None] / own, rtol=1e-11)


def test_alignment_of_long_series_neither_overflows_nor_loses(rng):
    long = [np.cumsum(rng.normal(size=700)), np.cumsum(rng.normal(size=650)), np.zeros(700)]
    for gamma in (1e-4, 1.0, 1e4):
        K = GlobalAlignment(gamma)(long)
        assert np.all(np.isfinite(K))
        np.testing.assert_array_equal(np.diagonal(K), 1.0)
        assert np.linalg.eigvalsh(K).min() > -1e-12
    with pytest.raises(errors.InvalidInput, match="normalize=True"):
        GlobalAlignment(1e-4, normalize=False)(long)


def test_alignment_is_definite_where_one_of_gaussians_is_not_promised(rng):
    many = [rng.normal(size=(n, 1)) for n in rng.integers(1, 12, 60)]
    for gamma in (0.05, 1.0):
        assert np.linalg.eigvalsh(GlobalAlignment(gamma)(many)).min() > -1e-12


def test_gamma_by_the_median():
    kernel = GlobalAlignment().resolve(X)
    points = Gaussian(gamma="median").resolve(np.concatenate(X))
    assert kernel.gamma == pytest.approx(points.gamma / np.median([len(x) for x in X]))
    assert parse(repr(kernel)) == kernel
    with pytest.raises(errors.InvalidInput, match="resolve"):
        GlobalAlignment()(X, Z)


@pytest.mark.parametrize("kernel", [GlobalAlignment(0.1), SetKernel(Linear())])
@pytest.mark.parametrize(
    "data",
    [[], "abc", [[1.0], [[1.0, 2.0]]], [[1.0, np.nan]], [[]], 3, [["a"]], [np.zeros((2, 0))], [[[1.0], [1.0, 2.0]]]],
)
def test_refused_data(kernel, data):
    with pytest.raises(errors.InvalidInput, match=type(kernel).__name__):
        kernel(data)
    with pytest.raises(errors.InvalidInput, match="columns"):
        kernel(X, [[1.0, 2.0]])


@pytest.mark.parametrize("kernel", [GlobalAlignment(), SetKernel(Gaussian(gamma="median"))])
def test_estimators(kernel, tmp_path):
    pytest.importorskip("safetensors")
    y = np.array([len(x) > 3 for x in X], float)
    model = mercer.KernelRidge(kernel, alpha=0.01).fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(Z), model.predict(Z))
    assert mercer.KernelPCA(2, kernel).fit(X).transform(Z).shape == (3, 2)
    assert mercer.KernelKMeans(2, kernel=kernel).fit(X).predict(Z).shape == (3,)
