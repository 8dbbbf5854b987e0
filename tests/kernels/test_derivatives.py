"""Derivatives in parameters; `select/test_covariance.py` compares them with differences."""

import pytest

from mercer.errors import InvalidInput
from mercer.kernels import Function, Gaussian, Matern, Periodic, Polynomial
from mercer.kernels.derivatives import ParametricKernel, tunable_parameters
from mercer.kernels.symbolic.expression import leaves_of


def test_derivatives_are_formulas_without_symbols():
    own = ParametricKernel((Matern(1.5, 0.7) + 0.2 * Gaussian(0.5)).with_length_scales([1.0, 2.0]), ("scales[1]",))
    (slope,) = own.slopes({"scales[1]": 2.0}).values()
    assert {(leaf.op, *map(repr, leaf.value[1])) for leaf in leaves_of(slope) if leaf.op != "const"} == {
        ("pairing", "LengthScales(scales=(1.0, 2.0))")
    }
    shifted = ParametricKernel(Gaussian(0.5) + 0.1, ("left__gamma", "right__value"))
    given = {"left__gamma": 0.5, "right__value": 0.1}
    assert {leaf.value: repr(slope) for leaf, slope in shifted.slopes(given).items()} == {
        "left__gamma": "neg(mul(exp(mul(-0.5, sqdist)), sqdist))",
        "right__value": "1.0",
    }


def test_which_parameters_there_are():
    assert set(tunable_parameters(Polynomial(3, 0.5, 0.0))) == {"gamma"}  # an offset of 0 has no logarithm
    assert tunable_parameters(Periodic(2.0, 0.5)) == {"period": 2.0, "length_scale": 0.5}
    rescaled = tunable_parameters(Periodic(2.0, 0.5).with_length_scales([1.0]))  # not the scales before a circle
    assert rescaled == {"kernel__period": 2.0, "kernel__length_scale": 0.5}
    assert tunable_parameters(Function(lambda X, Z: X @ Z.T)) == {}
    with pytest.raises(InvalidInput, match="its tunable parameters are gamma"):
        ParametricKernel(Gaussian(1.0), ("nu",))
