"""The border of one-class machines: which rows are on it, and where there is none."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm

from mercer import OneClassSVM
from mercer.errors import ConvergenceWarning
from mercer.kernels import Gaussian
from mercer.sklearn import svm as faces


def test_a_machine_that_is_zero_has_all_rows_on_its_border():
    """The origin is among the rows, so that f and ρ are 0: signs of their rounding were labels."""
    rows = np.random.default_rng(0).normal(size=(80, 2)) * 7
    new = np.random.default_rng(1).normal(size=(20, 2)) * 7
    for form in (np.asarray, sp.csr_array):
        model = OneClassSVM(kernel="linear").fit(form(rows))
        np.testing.assert_array_equal(model.decision_function(form(new)), 0.0)
        np.testing.assert_array_equal(model.predict(form(new)), 1)
    far = OneClassSVM(kernel="linear").fit(rows + 100)
    assert np.abs(far.decision_function(new + 100)).max() > 1


@pytest.mark.parametrize("n", [500, 501, 1200])
@pytest.mark.parametrize("machine", [OneClassSVM, faces.OneClassSVM])
def test_rows_on_the_border_are_inside_however_many_rows_there_are(machine, n):
    """Few rows are solved to rounding; of more, the border is as wide as what the solver left. LIBSVM at its finest."""
    X = np.random.default_rng(1).normal(size=(n, 3))
    kernel = {"kernel": Gaussian(gamma=0.5)} if machine is OneClassSVM else {"gamma": 0.5}
    model = machine(nu=0.1, **kernel).fit(X)
    free = model.support_[(model.dual_coef_[0] > 1e-9) & (model.dual_coef_[0] < 1 - 1e-9)]
    assert len(free) > 40
    np.testing.assert_array_equal(model.decision_function(X[free]), 0.0)
    outside = np.mean(model.predict(X) < 0)
    finest = svm.OneClassSVM(gamma=0.5, nu=0.1, tol=1e-9).fit(X).decision_function(X)
    assert outside <= 0.1
    assert abs(outside - np.mean(finest < -1e-6)) < 0.003


@pytest.mark.parametrize("n", [400, 501, 1200])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rows_on_all_sides_of_the_origin_have_no_border_but_all(kernel, n):
    """The optimum is f = ρ = 0; what a solver leaves of it was half of the labels."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    with pytest.warns(ConvergenceWarning, match="nu=0.1 leaves no ρ that differs from 0"):
        model = OneClassSVM(kernel, nu=0.1).fit(X - X.mean(axis=0))
    np.testing.assert_array_equal(model.predict(3 * X), 1)
    assert abs(float(model.offset_[0])) < 1e-4


def test_a_small_border_is_found_to_a_hundredth_of_itself():
    """ρ is near ν where rows are far apart, and `tol` may be as large."""
    X = np.random.default_rng(2).normal(size=(600, 8)) * 3
    model = OneClassSVM(Gaussian(gamma=0.5), nu=0.005).fit(X)
    finest = OneClassSVM(Gaussian(gamma=0.5), nu=0.005, tol=1e-9).fit(X)
    np.testing.assert_allclose(model.offset_, finest.offset_, rtol=0.01)
    assert model.report_.residual <= 0.01 * model.offset_ < 1e-4 < model.tol
