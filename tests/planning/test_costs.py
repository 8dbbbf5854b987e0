"""Predictions grow with the sizes, and with each rate that is lower; no rate is without effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from mercer.planning import costs
from mercer.planning.machine import Machine

RATES = [field.name for field in fields(Machine) if field.name not in ("threads", "source", "compare", "sort")]

# What each way costs for n rows of d columns, r pivots or vectors, c right-hand sides.
WAYS: dict[str, Callable[[Machine, int, int, int, int], float]] = {
    "product": lambda m, n, d, r, c: costs.product(m, n, d, c),
    "product32": lambda m, n, d, r, c: costs.product(m, n, d, c, 4),
    "stored_product": lambda m, n, d, r, c: costs.stored_product(m, n, c),
    "matrix": lambda m, n, d, r, c: costs.matrix(m, n, d),
    "quantised": lambda m, n, d, r, c: costs.quantised(m, n, d),
    "quantised_product": lambda m, n, d, r, c: costs.quantised_product(m, n, c),
    "cholesky": lambda m, n, d, r, c: costs.cholesky(m, n),
    "substitution": lambda m, n, d, r, c: costs.substitution(m, n, c),
    "leading_eigenvectors": lambda m, n, d, r, c: costs.leading_eigenvectors(m, n, r),
    "eigenvectors": lambda m, n, d, r, c: costs.eigenvectors(m, n),
    "krylov": lambda m, n, d, r, c: costs.krylov(m, n, d, r),
    "krylov_stored": lambda m, n, d, r, c: costs.krylov(m, n, d, r, stored=True),
    "lloyd": lambda m, n, d, r, c: costs.lloyd(m, n, d, c),
    "lloyd_stored": lambda m, n, d, r, c: costs.lloyd(m, n, d, c, stored=True),
    "refined_cholesky": lambda m, n, d, r, c: costs.refined_cholesky(m, n, d, c),
    "refined_cholesky_kept": lambda m, n, d, r, c: costs.refined_cholesky(m, n, d, c, kept=True),
    "conjugate_gradients": lambda m, n, d, r, c: costs.conjugate_gradients(m, n, d, r, 30.0, c),
    "conjugate_gradients_stored": lambda m, n, d, r, c: costs.conjugate_gradients(m, n, d, r, 30.0, c, stored=True),
    "held_out_eigenvectors": lambda m, n, d, r, c: costs.held_out_ways(m, n, n - n // 5, c)["eigenvectors"],
    "held_out_cholesky": lambda m, n, d, r, c: costs.held_out_ways(m, n, n - n // 5, c)["cholesky"],
    "band": lambda m, n, d, r, c: costs.band(m, n, c),
    "pivots": lambda m, n, d, r, c: costs.pivots(m, n, d, r),
    "preconditioner": lambda m, n, d, r, c: costs.preconditioner(m, n, d, r),
    "preconditioning": lambda m, n, d, r, c: costs.preconditioning(m, n, r, c),
}
SIZES = [(200, 3, 20, 1), (3000, 20, 300, 1), (3000, 500, 300, 40), (50_000, 20, 2000, 3)]
MACHINES = [Machine.documented(threads, isa) for threads in (1, 2, 64) for isa in ("", "x86-64-v2", "x86-64-v4")]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("at", range(4))
def test_predictions_grow_with_each_size(name: str, at: int) -> None:
    for machine in MACHINES:
        for sizes in SIZES:
            more = [2 * size if i == at else size for i, size in enumerate(sizes)]
            assert 0 < WAYS[name](machine, *sizes) <= WAYS[name](machine, *more)
            assert at > 0 or WAYS[name](machine, *sizes) < WAYS[name](machine, *more)


@pytest.mark.parametrize("rate", RATES)
def test_a_rate_that_is_ten_times_lower_makes_nothing_quicker(rate: str) -> None:
    for machine in MACHINES:
        slower = replace(machine, **{rate: getattr(machine, rate) / 10})
        for name, way in WAYS.items():
            for sizes in SIZES:
                assert way(slower, *sizes) >= way(machine, *sizes), name


@pytest.mark.parametrize("rate", RATES)
def test_each_rate_is_felt(rate: str) -> None:
    machine = Machine.documented()
    slower = replace(machine, **{rate: getattr(machine, rate) / 10})
    assert any(way(slower, *one) > way(machine, *one) for way in WAYS.values() for one in SIZES)


def test_few_rows_are_decomposed_by_one_thread() -> None:
    one, many = Machine.documented(2), replace(Machine.documented(2), product64=1e15, bandwidth=1e15)
    assert costs.eigenvectors(one, 400) == costs.eigenvectors(many, 400)
    assert costs.eigenvectors(one, 4000) > 2 * costs.eigenvectors(many, 4000)


@pytest.mark.parametrize("itemsize", [4, 8])
def test_an_entry_costs_more_the_wider_the_rows(itemsize: int) -> None:
    for machine in MACHINES:
        seconds = [machine.pair(d, itemsize) for d in (0, 1, 8, 20, 128, 1000)]
        assert seconds[0] > 0
        assert seconds == sorted(seconds)


def test_documented_machines_are_as_textbooks_have_them() -> None:
    machine = Machine.documented()
    n, d = 5000, 20
    assert costs.cholesky(machine, n, 4) < costs.cholesky(machine, n) < costs.eigenvectors(machine, n)
    assert costs.band(machine, n, 30) < costs.eigenvectors(machine, n)
    assert costs.product(machine, n, d, 1) < costs.product(machine, n, d, 26) < 26 * costs.product(machine, n, d, 1)
    assert costs.quantised_product(machine, n) < costs.product(machine, n, d)
