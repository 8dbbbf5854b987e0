"""A likelihood of a quarter of the rows gives a start and a curvature, but not the answer."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.select.ascent import NEAR, Ascent

H = np.array([[900.0, 850.0, 5.0], [850.0, 1000.0, 20.0], [5.0, 20.0, 3.0]])
PEAK = np.array([0.4, -0.7, 1.2])


def hill(peak, curvature=H):
    """log p = −½ (u − peak)ᵀ H (u − peak), u = log θ."""

    def of(theta):
        v = np.log(theta) - peak
        return -0.5 * float(v @ curvature @ v), -curvature @ v

    return of


def search(low=1e-3, high=1e3):
    ones = np.ones(3)
    return Ascent("test", ("a", "b", "c"), ones, low * ones, high * ones)


def test_the_curvature_saves_evaluations():
    plain = search().run(hill(PEAK))
    found = search().run(hill(PEAK), [hill(PEAK + np.array([0.02, -0.05, 0.1]), H / 4)])
    assert found.evaluations <= 3 < plain.evaluations
    scaled = np.linalg.cholesky(H).T @ (np.log(found.theta) - PEAK)
    assert np.abs(scaled).max() <= NEAR
    np.testing.assert_allclose(found.gradient, hill(PEAK)(found.theta)[1], atol=1e-6)


def test_growth_from_a_quarter_to_a_half_goes_on():
    """One direction learns nothing from further rows, one a little, and one in proportion."""
    growth = np.array([1.0, 1.5, 2.0])
    quarter, half, whole = (turned @ turned.T for turned in (np.linalg.cholesky(H) * growth**p for p in (0, 0.5, 1)))
    near = hill(PEAK + np.array([0.02, -0.05, 0.1]), quarter), hill(PEAK + np.array([0.0, 0.02, -0.04]), half)
    found = search().run(hill(PEAK, whole), near)
    assert found.evaluations <= 3 < search().run(hill(PEAK, whole), near[:1]).evaluations
    assert -found.value < 3 * NEAR**2


@pytest.mark.parametrize("shift", [0.0, 2.0, -2.0])
def test_a_maximum_on_a_bound_is_found(shift):
    """The bounds cut off the peak, that of the quarter (shift 2) or not."""
    bounded = search(high=2.0)
    plain = bounded.run(hill(PEAK))
    found = bounded.run(hill(PEAK), [hill(PEAK - (shift + 0.8) * np.eye(3)[2], H / 4)])
    assert plain.notes
    np.testing.assert_allclose(found.theta, plain.theta, rtol=1e-4)
    assert found.value == pytest.approx(plain.value, rel=1e-6)


@pytest.mark.parametrize("curvature", [-H, np.zeros((3, 3)), np.diag([1.0, 1.0, 0.0])])
def test_a_quarter_without_a_maximum_is_no_guide(curvature):
    found = search().run(hill(PEAK), [hill(PEAK, curvature)])
    np.testing.assert_allclose(np.log(found.theta), PEAK, atol=1e-3)


def test_where_the_likelihood_has_no_value_the_first_start_is_taken():
    own = hill(PEAK)
    found = search().run(lambda theta: own(theta) if theta[2] < 5 else None, [hill(PEAK + 3 * np.eye(3)[2], H / 4)])
    np.testing.assert_allclose(np.log(found.theta), PEAK, atol=0.05)
    with pytest.raises(InvalidInput, match="another kernel, or centre the columns"):
        search().run(lambda theta: None, [own])


def cliff(ends_at, value=-1.0, steep=1.0):
    """log p = −steep (u − 1)², without a value where u < ends_at."""

    def of(theta):
        u = np.log(theta)
        return None if u[0] < ends_at else (value - steep * float((u[0] - 1) ** 2), -2 * steep * (u - 1))

    return of


def one(first, **options):
    at = np.array([np.exp(first)])
    return Ascent("test", ("a",), at, at * 1e-9, at * 1e9, **options)


@pytest.mark.parametrize("steep", [1.0, 1e4, 1e8])
def test_a_steep_start_ends_no_search(steep):
    """The loss is divided by the first slope, and a gain of 1e-9 of it was an end: 1 nat of a slope of 1e9."""

    def of(theta):
        v = np.log(theta[0] / 3)
        return -float(np.log(1 + steep * v**2)) - 5.0, np.array([-2 * steep * v / (1 + steep * v**2)])

    found = one(-4.0).run(of)
    assert found.value == pytest.approx(-5.0, abs=1e-6)


@pytest.mark.parametrize("edge", [0.8, 0.9, 0.999])
@pytest.mark.parametrize("first", [1.5, 3.0])
def test_a_cliff_beside_the_maximum_ends_no_search(first, edge):
    """The first step, of length 1, leads over it from 1.5."""
    found = one(first).run(cliff(edge, steep=100.0))
    assert found.value == pytest.approx(-1.0, abs=1e-6)
    assert not found.notes


def test_the_end_at_a_cliff_is_noted():
    found = one(3.0).run(cliff(2.0))
    assert found.value == pytest.approx(-2.0, abs=1e-3)
    assert "the search ended at a slope of" in found.notes[0]


@pytest.mark.parametrize("rising", [1.0, -1.0])
def test_a_bound_is_no_steep_end(rising):
    """log p rises beyond it, and the maximum within the bounds is there."""
    at = np.array([2.0])
    found = Ascent("test", ("a",), at, at / 3, at * 3).run(
        lambda theta: (rising * 1e3 * float(np.log(theta[0])), rising * np.array([1e3]))
    )
    assert found.theta[0] == pytest.approx(6.0 if rising > 0 else 2 / 3)
    assert found.notes == (f"a = {found.theta[0]:.3g} is at its {'upper' if rising > 0 else 'lower'} bound",)


def test_where_nothing_has_a_likelihood_the_advice_is_the_callers():
    with pytest.raises(InvalidInput, match=r"test: .* not positive definite .*; add noise\."):
        one(0.0, firmer="add noise").run(lambda theta: None)
