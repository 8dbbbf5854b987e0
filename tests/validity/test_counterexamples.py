"""A search by machine for false proofs: random formulas, factors, masks and views, against exact arithmetic."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact_numbers import bound
from random_kernels import Drawn, pick

from mercer.errors import InvalidInput
from mercer.kernels.base import trace_or_none
from mercer.validity import Domain, prove
from mercer.validity.arithmetic.intervals import Arithmetic, exactly
from mercer.validity.arithmetic.precise import can_evaluate, kernel_value
from mercer.validity.witnesses.points import within

COEFFICIENTS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0), (1, 1, 0), (0, 1, -1), (1, 0, -1), (1, -2, 1), (1, 1, -1)]


def few_points(rng, d, domain):
    """Three rows of decimals: small ones, with a zero row; or beyond the mask."""
    scale = Decimal(pick(rng, "0.5", "0.1", "20000", "3"))
    rows = [tuple(scale * int(one) for one in rng.integers(-3, 4, d)) for _ in range(3)]
    rows[0] = tuple(Decimal(0) for _ in range(d)) if rng.random() < 0.3 else rows[0]
    return [tuple(abs(x) if domain.holds(i) else x for i, x in enumerate(row)) for row in rows]


def negative(e, points):
    """Coefficients with a negative sum for three rows; found by decimals, which are quick, then in exact numbers."""
    quick, done, exact = {}, {}, [tuple(map(Fraction, row)) for row in points]
    a = Arithmetic(30)
    for z in COEFFICIENTS:
        with suppress(ArithmeticError):
            if can_evaluate(e):
                total = exactly(0)
                for i, j in product(range(3), repeat=2):
                    if z[i] and z[j]:
                        if (i, j) not in quick:
                            quick[i, j] = kernel_value(e, points[i], points[j], 30)
                        total = a.add(total, a.mul(exactly(z[i] * z[j]), quick[i, j]))
                if total.hi >= 0:
                    continue
            if bound(e, exact, z, done) < 0:
                return exact, z
    return None


def clouds(rng, d, domain):
    """Rows in floats on which rules that ask too little fail: axes, lattices, lines, clusters, beyond the mask."""
    axes = np.vstack([np.zeros(d), np.eye(d), -np.eye(d)])[:14]
    grid = np.zeros((16, d))
    grid[:, 0] = np.repeat(np.arange(4.0), 4) if d > 1 else np.arange(16.0) / 4
    if d > 1:
        grid[:, 1] = np.tile(np.arange(4.0), 4)
    shapes = [rng.standard_normal((12, d)), axes, grid * pick(rng, 0.35, 0.7, 1.0)]
    scale = pick(rng, 1.0, 0.3, 2.0, 20_000.0)
    for points in shapes:
        yield within(scale * points, domain)


def counterexample(kernel, domain, rng):
    """Points and coefficients with Σ zᵢzⱼ k(xᵢ, xⱼ) < 0 in exact arithmetic, or None."""
    e = trace_or_none(kernel, exact=True)
    d = domain.d or 2
    if e is None:
        return None
    if found := negative(e, few_points(rng, d, domain)):
        return found
    for rows in clouds(rng, d, domain):
        try:
            with np.errstate(all="ignore"):
                K = np.asarray(kernel.block(rows, rows), float)
        except InvalidInput:  # χ² of negative entries
            continue
        sound = np.isfinite(np.diagonal(K)) & (np.isfinite(K).sum(axis=1) > len(K) // 2)
        rows, K = rows[sound], K[np.ix_(sound, sound)]
        if not len(K) or not np.all(np.isfinite(K)) or np.max(np.abs(K)) > 1e100:
            continue
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        if values[0] < -1e-11 * np.abs(values).max():
            z = [Fraction(int(one), 10**6) for one in np.rint(1e6 * vectors[:, 0])]
            points = [tuple(map(Fraction, row)) for row in rows]
            with suppress(ArithmeticError):
                if bound(e, points, z) < 0:
                    return points, z
    return None


def searched(seed, count):
    """How many of so many random kernels are proved, and which of these have a counterexample."""
    rng, proved, wrong = np.random.default_rng(seed), 0, []
    for number in range(count):
        d = pick(rng, 1, 1, 2, 2, 3, 9, None)
        kernel, is_promised = Drawn(rng, d).kernel()
        domain = Domain(pick(rng, False, False, True, frozenset({0})), d)
        proof = prove(kernel, domain)
        if proof.psd is None or proof.declared:
            continue
        proved += 1
        found = "declared" if is_promised else counterexample(kernel, domain, rng)
        if found is not None:
            wrong.append((number, str(proof.psd), found))
    return proved, wrong


def test_no_random_formula_is_proved_wrongly():
    proved, wrong = searched(0, 400)
    assert not wrong, wrong[0]
    assert proved > 100


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 21))
def test_no_random_formula_is_proved_wrongly_in_a_long_search(seed):
    proved, wrong = searched(seed, 5000)
    assert not wrong, wrong[0]
    assert proved > 1500
