"""A kernel that has no value for some pairs of rows: no estimator goes on with NaN, or goes on for ever."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mercer.errors import ConvergenceWarning, InvalidInput
from mercer.events import observe
from mercer.kernels import Formula

PARTIAL = Formula("log(dot + 1) + dot")
"""Finite for x = z, and NaN where ⟨x, z⟩ < −1."""
MOST = 2000
"""Events of a fit of so few rows, far more than any has."""


class Patience:
    def __init__(self):
        self.events = 0

    def on_event(self, event):
        self.events += 1
        if self.events > MOST:
            pytest.fail("the fit does not end")


def test_values_that_are_nan_for_some_pairs_are_refused(example):
    model, X = example.new, example.first[0]
    if "kernel" not in model.get_params(deep=False) or not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        pytest.skip("no kernel on vectors of numbers")
    X = X - X.mean(axis=0)
    with warnings.catch_warnings(record=True) as told, observe(Patience()):
        warnings.simplefilter("always")
        try:
            model.set_params(kernel=PARTIAL).fit(X, *example.first[1:])
            if hasattr(model, "transform"):
                model.transform(X)
        except InvalidInput:
            return
    assert any(issubclass(one.category, ConvergenceWarning) for one in told)
