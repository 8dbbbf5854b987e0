"""Derivatives in parameters, against differences."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.kernels import (
    Cauchy,
    Chi2,
    Cosine,
    Function,
    Gaussian,
    Intersection,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    derivatives,
)
from mercer.kernels.derivatives import ParametricKernel, tunable_parameters

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
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_parameter_against_differences(kernel, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1, size=(12, 4))
    own = ParametricKernel(kernel, tuple(tunable_parameters(kernel)))
    G = rng.normal(size=(12, 12))
    G += G.T
    monkeypatch.setattr(derivatives, "TILE", 5)  # three tiles, of which the last has two rows
    for i, found in enumerate(own.contracted(own.values, X, lambda rows, columns: G[rows, columns])):
        step = 1e-5 * (np.arange(len(own.names)) == i)
        up, down = own.values * np.exp(step), own.values * np.exp(-step)
        difference = np.sum(G * (own.kernel_at(up)(X) - own.kernel_at(down)(X))) / 2e-5
        assert found == pytest.approx(difference, rel=1e-6, abs=1e-8), own.names[i]


def test_which_parameters_there_are():
    assert set(tunable_parameters(Polynomial(3, 0.5, 0.0))) == {"gamma"}  # an offset of 0 has no logarithm
    assert tunable_parameters(Periodic(2.0, 0.5)) == {"period": 2.0, "length_scale": 0.5}
    rescaled = tunable_parameters(Periodic(2.0, 0.5).with_length_scales([1.0]))  # not the scales before a circle
    assert rescaled == {"kernel__period": 2.0, "kernel__length_scale": 0.5}
    assert tunable_parameters(Function(lambda X, Z: X @ Z.T)) == {}
    with pytest.raises(InvalidInput, match="its tunable parameters are gamma"):
        ParametricKernel(Gaussian(1.0), ("nu",))
