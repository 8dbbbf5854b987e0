"""Bandwidths from distances."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Laplace, Matern
from mercer.select import bandwidth_heuristic


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 3))


def test_quantiles_are_numpys(rows):
    distances = pdist(rows)
    for q, kernel in zip((0.1, 0.5, 0.9), bandwidth_heuristic("gaussian", rows, (0.1, 0.5, 0.9)), strict=True):
        assert kernel.gamma == pytest.approx(1 / (2 * np.quantile(distances, q) ** 2), rel=1e-3)
    (city,) = bandwidth_heuristic(Laplace(norm=1), rows)
    assert city.gamma == pytest.approx(1 / np.median(pdist(rows, "cityblock")), rel=1e-5)
    (matern,) = bandwidth_heuristic(Matern(2.5), rows)
    assert matern.length_scale == pytest.approx(np.median(distances), rel=1e-5)


def test_the_median_is_the_rule(rows):
    assert bandwidth_heuristic("gaussian", rows)[0].gamma == pytest.approx(
        Gaussian("median").resolve(rows).gamma, rel=1e-5
    )


def test_duplicates_weights_and_constant_rows(rows):
    many = np.vstack([rows[:20], *[rows[:1]] * 100])
    assert bandwidth_heuristic("gaussian", many, (0.01,))[0].gamma < np.inf
    w = np.repeat([1.0, 0.0], 100)
    assert bandwidth_heuristic("gaussian", rows, sample_weight=w) == bandwidth_heuristic("gaussian", rows[:100])
    assert bandwidth_heuristic("gaussian", np.ones((9, 2)))[0].gamma == Gaussian("scale").resolve(np.ones((9, 2))).gamma


def test_it_does_not_look_at_the_first_rows_only():
    X = np.vstack([1e-3 * np.arange(1200)[:, None], 1e3 * np.random.default_rng(0).normal(size=(3000, 1))])
    assert bandwidth_heuristic("gaussian", X)[0].gamma < 1e-4


@pytest.mark.parametrize(
    ("kernel", "q", "says"), [("linear", (0.5,), "no bandwidth"), ("gaussian", (1.5,), "quantile")]
)
def test_refusals(rows, kernel, q, says):
    with pytest.raises(InvalidInput, match=says):
        bandwidth_heuristic(kernel, rows, q)


@pytest.mark.parametrize("first", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused(rows, first):
    for w in (np.r_[first, np.ones(199)], np.zeros(200), np.ones(5), np.ones((200, 1))):
        with pytest.raises(InvalidInput, match=r"bandwidth_heuristic: weights .* give one non-negative weight"):
            bandwidth_heuristic("gaussian", rows, sample_weight=w)
