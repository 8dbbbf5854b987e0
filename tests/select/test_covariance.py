"""Derivatives of a kernel's matrix in its parameters, against differences."""

import numpy as np
import pytest

from mercer.gram import tiles
from mercer.gram.registers import DoesNotFit
from mercer.kernels import (
    Cauchy,
    Chi2,
    Cosine,
    Formula,
    Gaussian,
    Intersection,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Subsequence,
)
from mercer.select import covariance as covariances
from mercer.select.covariance import Covariance

SCALES = [1.0, 2.0, 3.0, 0.4]
KERNELS = [
    1.3 * Gaussian(0.7).with_length_scales(SCALES)
    + 0.2 * Linear().with_length_scales(SCALES) * Laplace(0.4, norm=1)
    + 0.1,
    Matern(1.5, 0.7).with_length_scales(SCALES).on([0, 1, 2, 3]),
    Matern(2.5, 0.7),
    RationalQuadratic(1.7, 0.6),
    Periodic(1.3, 0.6),
    Polynomial(3, 0.5, 0.7).normalized(),
    Chi2(0.8).with_length_scales(SCALES),
    Intersection().with_length_scales(SCALES).normalized(),
    (Cosine().with_length_scales(SCALES) + Cauchy(0.3)) ** 2,
    Laplace(0.5, 1).with_length_scales(SCALES).on([3, 2, 1, 0]),
    Gaussian(0.5).on([2, 0]).with_length_scales(SCALES),
    Gaussian(0.5).with_length_scales([1.0, 2.0]).with_length_scales([0.5, 1.5]).on([1, 3]),
    Sigmoid(0.4, 0.2),
    Gaussian(0.4) ** 0.5,
    2.0 * Formula("exp(-(sqdist**0.75))").with_length_scales(SCALES),
]


@pytest.fixture(params=["swept", "by the engine", "too large for the engine"])
def way(request, monkeypatch):
    """Few rows are swept back; others take the engine's blocks, here the last with two rows or fewer columns."""
    if request.param == "swept":
        return
    monkeypatch.setattr(covariances, "FEW", 1)
    monkeypatch.setattr(covariances, "TILE", (5, 4))
    if request.param == "too large for the engine":

        def refused(*_):
            raise DoesNotFit("a formula with too many values")

        monkeypatch.setattr(tiles, "program_tiles", refused)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_parameter_against_differences(kernel, way):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1, size=(12, 4))
    X[7] = X[2]  # at distance 0 the root of a distance has no derivative
    own = Covariance.of("test", kernel, X)
    G = rng.normal(size=(12, 12))
    G += G.T
    for i, found in enumerate(own.contracted(own.values, lambda rows, columns: G[rows, columns])):
        step = 1e-5 * (np.arange(len(own.names)) == i)
        up, down = own.values * np.exp(step), own.values * np.exp(-step)
        difference = np.sum(G * (own.kernel_at(up)(X) - own.kernel_at(down)(X))) / 2e-5
        assert found == pytest.approx(difference, rel=1e-6, abs=1e-8), own.names[i]


@pytest.mark.parametrize("rows", [5, 1024])
def test_kernels_without_a_formula_have_differences(rows, monkeypatch):
    """Of few rows at a time, the last with two."""
    monkeypatch.setattr(covariances, "ROWS", rows)
    words = ["abca", "bca", "cabb", "aab", "bb", "acbc", "ab", "cc", "abcb", "ca", "bcab", "cbc"]
    own = Covariance.of("test", Subsequence(length=2, decay=0.5), words)
    G = np.random.default_rng(0).normal(size=(12, 12))
    G += G.T
    up, down = (own.kernel_at(own.values * np.exp(step))(words) for step in (1e-4, -1e-4))
    found = own.contracted(own.values, lambda rows, columns: G[rows, columns])
    np.testing.assert_allclose(found, [np.sum(G * (up - down)) / 2e-4], rtol=1e-6)


def test_blocks_on_and_above_the_diagonal_are_asked_for_once(way):
    X = np.random.default_rng(0).normal(size=(12, 4))
    seen = np.zeros((12, 12), int)

    def ones(rows, columns):
        seen[rows, columns] += 1
        return np.ones((rows.stop - rows.start, columns.stop - columns.start))

    own = Covariance.of("test", 2.0 * Gaussian(0.5), X)
    np.testing.assert_allclose(own.contracted(own.values, ones)[0], own.kernel(X).sum(), rtol=1e-12)
    assert np.all(seen[np.triu_indices(12)] == 1)
