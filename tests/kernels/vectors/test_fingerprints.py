"""Tanimoto and Dice: proved kernels, with a value at the empty row, in every engine and in fits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from mercer import KernelLMS, KernelRidge, OneClassSVM, check_kernel
from mercer.errors import IndefiniteKernelWarning, InvalidInput
from mercer.gram import KernelOperator
from mercer.kernels import Dice, Kernel, Tanimoto, as_kernel
from mercer.validity import Domain, prove


@dataclass(frozen=True, repr=False)
class Plain(Kernel):
    """Tanimoto's formula as it is written down first."""

    def formula(self, pair):
        return pair.min_sum / (pair.x.min_sum + pair.z.min_sum - pair.min_sum)


def fingerprints(n=40, d=16, empty=True):
    X = (np.random.default_rng(0).random((n, d)) < 0.3).astype(float)
    X[:, 0] = 1.0
    if empty:
        X[3] = X[7] = 0.0
    return X


@pytest.mark.parametrize(("name", "kernel"), [("tanimoto", Tanimoto()), ("dice", Dice())])
def test_they_are_proved_by_name_and_on_fingerprints(name, kernel):
    X = fingerprints()
    assert as_kernel(name) == kernel
    for report in (check_kernel(name), check_kernel(kernel, X), check_kernel(3.0 * kernel + 1.0)):
        assert report.verdict == "proved"
        assert "overlap" in str(report.derivation)
    assert prove(kernel, Domain()).psd is None  # of real rows it is none
    K = kernel(X)
    assert K[3, 7] == 1.0
    assert np.array_equal(np.diagonal(K), np.ones(len(X)))
    assert K[3, :3].max() == 0.0
    assert np.linalg.eigvalsh(K)[0] > -1e-13


@pytest.mark.parametrize("kernel", [Tanimoto(), Dice()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_engine_is_set_arithmetic(kernel, dtype):
    X = fingerprints()
    sets = [frozenset(np.flatnonzero(row)) for row in X]

    def share(a, b):
        if not a and not b:
            return 1.0
        return len(a & b) / len(a | b) if kernel == Tanimoto() else 2 * len(a & b) / (len(a) + len(b))

    expected = np.array([[share(a, b) for b in sets] for a in sets])
    K = KernelOperator(kernel, X.astype(dtype))
    np.testing.assert_allclose(K.toarray(), expected, atol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(K @ np.ones(len(X)), expected.sum(axis=1), rtol=1e-5)


def test_a_formula_in_text_and_by_where_is_proved():
    text = "where(l1 + min_sum > 0, min_sum / (l1 + min_sum), 1)"
    assert check_kernel(text, non_negative=True).verdict == "proved"
    X = fingerprints()
    np.testing.assert_allclose(as_kernel(text)(X), Tanimoto()(X), atol=1e-14)


def test_a_formula_without_a_value_at_the_empty_row_is_undefined():
    report = check_kernel(Plain(), non_negative=True)
    assert report.verdict == "undefined"
    assert report.witness is None
    assert "division by 0" in str(report.gap)
    assert set(map(float, report.gap.points[0])) == {0.0}
    assert "where(condition, value, other)" in str(report)


@pytest.mark.parametrize("estimator", [KernelRidge(Plain()), OneClassSVM(kernel=Plain())])
def test_fits_say_what_is_the_matter_with_it(estimator):
    y = np.arange(40.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        estimator.fit(fingerprints(empty=False), y)
    notes = " ".join(estimator.report_.notes)
    assert "division by 0" in notes
    assert "where(condition" in notes
    with pytest.raises(InvalidInput, match=r"division by 0.*row 3.*where\(condition") as refusal:
        estimator.fit(fingerprints(), y)
    assert "standardise" not in str(refusal.value)


def test_an_online_estimator_says_it_too():
    with pytest.raises(InvalidInput, match=r"division by 0.*where\(condition"):
        KernelLMS(Plain()).fit(fingerprints(), np.arange(40.0))
