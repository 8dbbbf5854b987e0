"""One chunk of online updates: the compiled module against the reference, and the reference against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mercer.engine import reference
from mercer.engine.reference.online import merge_loss, merge_share


def task(n, d, budget, outputs, dtype, used=0, seed=0, gamma=0.3):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(n, d)).astype(dtype), np.zeros((budget + 1, d), dtype)
    z[:used] = rng.normal(size=(used, d))
    b, u = np.zeros((2, budget + 1, outputs))
    b[:used], u[:used] = rng.normal(size=(2, used, outputs))
    near = np.full((budget + 1, n), np.nan, dtype)
    near[:used] = gamma * ((z[:used, None] - x) ** 2).sum(axis=2)
    own = (gamma * ((x[:, None] - x) ** 2).sum(axis=2)).astype(dtype)
    labels = rng.integers(0, max(outputs, 2), n)
    return [x, own, near, z, b, u, labels, used, 50, 1e-3, gamma]


NAMES = ("x", "own", "near", "z", "b", "u", "labels", "used", "t", "alpha", "gamma")


def run(module, arguments, isa=""):
    copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    found = module.merge_pass(**dict(zip(NAMES, copies, strict=True)), isa=isa)
    return found, copies


@pytest.mark.parametrize("outputs", [1, 3, 5])
@pytest.mark.parametrize(("n", "d", "budget", "used"), [(1, 1, 1, 0), (7, 3, 2, 2), (70, 5, 20, 0), (130, 17, 33, 33)])
def test_equals_the_reference(native, isa, outputs, n, d, budget, used):
    arguments = task(n, d, budget, outputs, np.float64, used)
    (expected, ours), (got, theirs) = run(reference, arguments), run(native, arguments, isa)
    assert got[:2] == expected[:2]
    assert got[2:6] == expected[2:6]
    assert sum(got[4:6]) == max(used + got[3] - budget, 0)
    assert got[6] == pytest.approx(expected[6], rel=1e-9)
    for a, b in zip(ours[3:6], theirs[3:6], strict=True):
        np.testing.assert_allclose(b[: got[0]], a[: got[0]], rtol=1e-7, atol=1e-9)


def test_equals_the_reference_in_float32(native, isa):
    """Until rounding decides otherwise: few rows."""
    arguments = task(40, 4, 12, 1, np.float32, 12)
    (expected, ours), (got, theirs) = run(reference, arguments), run(native, arguments, isa)
    assert got[2:6] == expected[2:6]
    np.testing.assert_allclose(theirs[4], ours[4], rtol=1e-3, atol=1e-4)


def test_threads_and_instruction_sets_do_not_crash_on_odd_values(native, isa):
    for change in (np.nan, np.inf, -1.0):
        arguments = task(20, 3, 6, 1, np.float64, 6)
        arguments[1][3] = arguments[2][2] = arguments[3][1] = change
        arguments[4][2] = np.nan
        run(native, arguments, isa)


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (0, np.zeros((0, 3))),
        (1, np.zeros((7, 6))),
        (2, np.zeros((3, 7), np.float32)),
        (3, np.zeros((3, 4))),
        (4, np.zeros((1, 1))),
        (5, np.zeros((3, 2))),
        (6, np.full(7, 2)),
        (6, np.zeros(6, int)),
        (7, 3),
        (7, -1),
        (8, -1),
        (9, 0.0),
        (10, -1.0),
    ],
)
def test_what_does_not_fit_is_refused(native, index, value):
    arguments = task(7, 3, 2, 1, np.float64)
    arguments[index] = value
    with pytest.raises((ValueError, TypeError)):
        native.merge_pass(**dict(zip(NAMES, arguments, strict=True)))


@pytest.mark.parametrize("ratio", [1.0, 1.5, 4.0, 100.0])
@pytest.mark.parametrize("D", [1e-6, 0.1, 1.0, 1.999, 2.0])
def test_the_share_is_the_best_one(D, ratio):
    def lost(h):
        z = np.exp(-D * (1 - h) ** 2) + ratio * np.exp(-D * h**2)
        return 1 + ratio**2 + 2 * ratio * np.exp(-D) - z**2

    h = float(merge_share(np.float64(1), np.float64(ratio), np.float64(D)))
    best = minimize_scalar(lost, bounds=(0, 0.5), method="bounded", options={"xatol": 1e-10})
    assert lost(h) <= best.fun + 1e-15 * (1 + ratio) ** 2  # what `lost` is rounded by
    assert float(merge_loss(1.0, ratio, D, h)) == pytest.approx(lost(h), abs=1e-11)


def test_what_the_search_may_leave_out():
    """At one distance a larger partner loses more, so that two of the smaller size bound the loss from below."""
    for D in np.linspace(0.01, 2, 20):
        q = np.geomspace(1, 50, 40)
        lost = merge_loss(np.ones(40), q, np.full(40, D), merge_share(np.ones(40), q, np.full(40, D)))
        assert np.all(np.diff(lost) >= -1e-12)
        assert lost[0] == pytest.approx(2 * np.expm1(-D / 2) ** 2, rel=1e-6, abs=1e-9)
