"""The elementary functions against mpmath: errors in units in the last place, and what becomes of special arguments."""

from __future__ import annotations

from functools import lru_cache

import mpmath
import numpy as np
import pytest

from mercer.engine.opcodes import Operation

INF, NAN = np.inf, np.nan
TINY = {"float32": 1.4e-45, "float64": 5e-324}

# Operation, k0, k1, exact function, arguments, most ulps in float32 and in float64: what core/base/simd.inl states.
UNITS = {
    "exp": (Operation.EXP, 0, 0, mpmath.exp, "exp", 1.4, 1.3),
    "exp_affine": (Operation.EXP_AFFINE, 1.0, 0.0, mpmath.exp, "exp", 1.4, 1.3),
    "log": (Operation.LOG, 0, 0, mpmath.log, "positive", 0.51, 1.0),
    "sqrt": (Operation.SQRT, 0, 0, mpmath.sqrt, "positive", 0.5, 0.5),
    "tanh": (Operation.TANH, 0, 0, mpmath.tanh, "around zero", 0.51, 1.5),
    "sin": (Operation.SIN, 0, 0, mpmath.sin, "around zero", 0.51, 1.0),
    "cos": (Operation.COS, 0, 0, mpmath.cos, "around zero", 0.51, 1.0),
    "cube": (Operation.POW_INTEGER, 3.0, 0, lambda x: x**3, "moderate", 2.0, 2.0),
    "inverse square": (Operation.POW_INTEGER, -2.0, 0, lambda x: x**-2, "moderate", 2.0, 2.0),
    "power": (Operation.POW, 1.7, 0, lambda x: x ** mpmath.mpf(1.7), "moderate", 0.51, None),
    "root": (Operation.POW, -0.3, 0, lambda x: x ** mpmath.mpf(-0.3), "moderate", 0.51, None),
}


@lru_cache
def arguments(kind, dtype):
    rng = np.random.default_rng(1)
    small, info = 10.0 ** rng.uniform(-8, 0, 150), np.finfo(dtype)
    if kind == "exp":
        lowest, highest = (-86.6, 88.7) if dtype == "float32" else (-707.9, 709.7)
        x = np.concatenate([rng.uniform(lowest, highest, 600), rng.uniform(-2, 2, 300), small, -small])
    elif kind == "positive":
        powers = rng.uniform(np.log2(float(info.tiny)), np.log2(float(info.max)) - 1, 500)
        x = np.concatenate(
            [2.0**powers, 1 + rng.uniform(-0.5, 1, 400), 1 + small / 100, [float(info.smallest_subnormal) * 3]]
        )
    elif kind == "moderate":
        x = np.concatenate([10.0 ** rng.uniform(-9, 9, 600), 1 + rng.uniform(-0.1, 0.1, 200)])
    else:
        x = np.concatenate([rng.uniform(-30, 30, 500), rng.uniform(-1, 1, 400), small, -small])
    return x.astype(dtype)


@lru_cache
def exact(name, dtype):
    """The values as the sum of two float64 numbers each, for errors far below one unit."""
    function, kind = UNITS[name][3:5]
    with mpmath.workprec(160):
        values = [function(mpmath.mpf(float(x))) for x in arguments(kind, dtype)]
        high = np.array([float(v) for v in values])
        return high, np.array([float(v - h) for v, h in zip(values, high, strict=True)])


def run(native, op, x, isa, k0=0.0, k1=0.0):
    out = np.full_like(x, NAN)
    native.evaluate(op=int(op), k0=float(k0), k1=float(k1), x=x, out=out, isa=isa)
    return out


def units(values, name, dtype):
    high, low = exact(name, dtype)
    spacing = np.spacing(np.abs(high).astype(dtype)).astype(np.float64)
    return np.abs((values.astype(np.float64) - high) - low) / spacing


@pytest.mark.parametrize("name", UNITS)
def test_error_in_units_in_the_last_place(native, isa, dtype, name, record_property):
    op, k0, k1, _, kind, single, double = UNITS[name]
    x = arguments(kind, dtype.name)
    error = units(run(native, op, x, isa, k0, k1), name, dtype.name)
    record_property("ulp", float(error.max()))
    bound = single if dtype == np.float32 else double
    if bound is None:  # a^b = e^(b log a): what b log a is rounded by
        bound = 1.5 + 2 * np.abs(k0 * np.log(x.astype(np.float64)))
    assert (error <= bound).all(), f"{name}: {error.max():.3f} ulp at {x[error.argmax()]!r}"


@pytest.mark.parametrize("name", UNITS)
def test_every_lane_and_length(native, isa, dtype, name):
    op, k0, k1, _, kind, _, _ = UNITS[name]
    x = arguments(kind, dtype.name)[:67]
    whole = run(native, op, x, isa, k0, k1)
    for size in range(1, 20):
        np.testing.assert_array_equal(run(native, op, x[:size].copy(), isa, k0, k1), whole[:size])


SPECIAL = {
    "exp": (Operation.EXP, 0, [0.0, -0.0, INF, -INF, NAN, 1e4, -1e4, TINY], [1, 1, INF, 0, NAN, INF, 0, 1]),
    "log": (Operation.LOG, 0, [0.0, -0.0, INF, -INF, NAN, -1.0, 1.0, -0.75], [-INF, -INF, INF, NAN, NAN, NAN, 0, NAN]),
    "sqrt": (Operation.SQRT, 0, [0.0, -0.0, INF, NAN, -1.0, 1.0], [0, -0.0, INF, NAN, NAN, 1]),
    "tanh": (Operation.TANH, 0, [0.0, -0.0, INF, -INF, NAN, 1e30, -50.0, TINY], [0, 0, 1, -1, NAN, 1, -1, TINY]),
    "sin": (Operation.SIN, 0, [0.0, -0.0, INF, NAN], [0, -0.0, NAN, NAN]),
    "cos": (Operation.COS, 0, [0.0, -0.0, INF, NAN], [1, 1, NAN, NAN]),
    "abs": (Operation.ABS, 0, [-0.0, -INF, NAN, -2.0], [0, INF, NAN, 2]),
    "neg": (Operation.NEG, 0, [0.0, -INF, NAN, -2.0], [-0.0, INF, NAN, 2]),
    "power": (Operation.POW, 1.5, [0.0, INF, NAN, -1.0, 1.0, 4.0], [0, INF, NAN, NAN, 1, 8]),
    "negative power": (Operation.POW, -0.5, [0.0, INF, NAN, -1.0, 1.0], [INF, 0, NAN, NAN, 1]),
    "large even power": (Operation.POW, 2000.0, [-1.0, 0.0, -0.5, 1.0], [1, 0, 0, 1]),
    "large odd power": (Operation.POW, 2001.0, [-1.0, 0.0, -0.5, 2.0, -2.0], [-1, 0, 0, INF, -INF]),
    "square": (Operation.POW_INTEGER, 2.0, [0.0, -INF, NAN, -3.0], [0, INF, NAN, 9]),
    "cube": (Operation.POW_INTEGER, 3.0, [0.0, -INF, NAN, -3.0], [0, -INF, NAN, -27]),
    "fifth power": (Operation.POW_INTEGER, 5.0, [0.0, -INF, NAN, -2.0], [0, -INF, NAN, -32]),
    "zeroth power": (Operation.POW_INTEGER, 0.0, [0.0, -INF, 3.0], [1, 1, 1]),
    "inverse": (Operation.POW_INTEGER, -1.0, [0.0, -INF, NAN, -2.0], [INF, -0.0, NAN, -0.5]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arguments(native, isa, dtype, name):
    op, k0, given, expected = SPECIAL[name]
    given = np.array([TINY[dtype.name] if g is TINY else g for g in given], dtype)
    expected = np.array([TINY[dtype.name] if e is TINY else e for e in expected], dtype)
    got = run(native, op, given, isa, k0)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    zero = expected == 0
    if name in ("sqrt", "sin", "neg"):
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


def test_exp_at_the_ends_of_its_range(native, isa, dtype):
    """Results below the normal numbers become zero, never garbage; the largest finite result is reached."""
    info = np.finfo(dtype)
    top = np.nextafter(np.log(info.max), dtype.type(0), dtype=dtype)
    x = np.concatenate([np.linspace(-120, -80, 4001), np.linspace(-760, -700, 6001)]).astype(dtype)
    got = run(native, Operation.EXP, x, isa)
    with np.errstate(under="ignore"):
        true = np.exp(x.astype(np.longdouble))
    normal = true > 2.5 * float(info.tiny)
    np.testing.assert_allclose(got[normal], true[normal].astype(dtype), rtol=4 * info.eps)
    assert (got[~normal] <= 3 * info.tiny).all()
    assert (got >= 0).all()
    last = run(native, Operation.EXP, np.array([top, top + 1], dtype), isa)
    assert np.isfinite(last[0])
    assert last[0] > 0.99 * info.max
    assert np.isinf(last[1])
