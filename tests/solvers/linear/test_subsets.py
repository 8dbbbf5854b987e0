"""Systems on subsets of the rows of one matrix, against each by itself."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.factorizations.deflated import Deflated
from mercer.factorizations.subset_preconditioner import InverseWithout, SubsetInverse
from mercer.operators import Dense
from mercer.solvers import CholeskyFactor, Status, SubsetGradients, SubsetSystems, solve
from mercer.solvers.linear.subsets import SLOW
from mercer.testing import assert_close


@pytest.fixture
def systems():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3))
    A = np.exp(-0.3 * np.sum((rows[:, None] - rows) ** 2, axis=2))
    present = np.arange(80)[:, None] % 5 != np.arange(5)
    return A, rng.normal(size=(80, 5)) * present, present, np.logspace(-3, 1, 5)


def alone(A, B, present, shifts):
    out = np.zeros_like(B)
    for j, on in enumerate(present.T):
        out[on, j] = np.linalg.solve(A[np.ix_(on, on)] + shifts[j] * np.eye(on.sum()), B[on, j])
    return out


@pytest.mark.parametrize("low_precision", [False, True])
@pytest.mark.parametrize("rank", [0, 20])
def test_each_system_is_solved_as_if_alone(systems, low_precision, rank):
    A, B, present, shifts = systems
    M = None
    if rank:
        values, vectors = np.linalg.eigh(A)
        F = vectors[:, -rank:] * np.sqrt(values[-rank:])
        M = SubsetInverse.of(F, [np.flatnonzero(~on) for on in present.T], np.arange(5), shifts)
    problem = SubsetSystems(Dense(A), B, present, shifts, M, Dense(A.astype(np.float32)) if low_precision else None)
    solution = solve(SubsetGradients(tol=1e-11, max_steps=10**6), problem)
    assert solution.status is Status.CONVERGED, solution.state
    np.testing.assert_allclose(solution.x, alone(A, B, present, shifts), rtol=1e-7, atol=1e-8)
    assert np.all(solution.x[~present] == 0)


def test_the_preconditioner_is_the_inverse_where_the_matrix_has_its_rank(systems):
    _, B, present, shifts = systems
    F = np.random.default_rng(1).normal(size=(80, 4))
    M = SubsetInverse.of(F, [np.flatnonzero(~on) for on in present.T], np.arange(5), shifts)
    np.testing.assert_allclose(M.apply(B, np.arange(5)), alone(F @ F.T, B, present, shifts), rtol=1e-8, atol=1e-10)
    some = np.array([3, 1])
    assert_close(M.apply(B[:, some], some), M.apply(B, np.arange(5))[:, some], rtol=1e-12)


def test_a_system_may_need_fewer_columns_than_another(systems):
    _, B, present, shifts = systems
    F = np.random.default_rng(1).normal(size=(80, 4))
    absent, ranks = [np.flatnonzero(~on) for on in present.T], np.array([4, 1, 2, 4, 3])
    M = SubsetInverse.of(F, absent, np.arange(5), shifts, ranks)
    for j, r in enumerate(ranks):
        expected = alone(F[:, :r] @ F[:, :r].T, B[:, [j]], present[:, [j]], shifts[[j]])
        np.testing.assert_allclose(M.apply(B[:, [j]], np.array([j])), expected, rtol=1e-8, atol=1e-10)


LACKING = {
    "folds": np.array_split(np.arange(80), 5),
    "folds in any order": np.array_split(np.random.default_rng(2).permutation(80), 5),
    "folds, and one that lacks nothing": [*np.array_split(np.arange(80), 4), np.arange(0)],
    "draws that overlap": [np.random.default_rng(seed).permutation(80)[:24] for seed in range(5)],
    "as many as there are rows, some of them twice": [np.arange(8 * s, 8 * s + 16) for s in range(5)],
    "all rows, some of them twice": [np.arange(16 * s, 16 * s + 24) % 80 for s in range(5)],
    "folds that leave rows out": np.array_split(np.arange(5, 80), 5),
    "every other row, twice": [np.arange(0, 80, 2), *np.array_split(np.arange(0, 80, 2), 4)],
}


@pytest.mark.parametrize("lacking", LACKING)
def test_folds_and_other_subsets_are_both_inverted(lacking, capfd):
    """Of folds the parts that are lacking add up to FᵀF, and of nothing else."""
    rng, absent, subset = np.random.default_rng(1), LACKING[lacking], np.repeat(np.arange(5), 2)
    F, R, shifts = rng.normal(size=(80, 4)), rng.normal(size=(80, 10)), np.tile([0.01, 3.0], 5)
    expected = np.zeros_like(R)
    for j, (s, mu) in enumerate(zip(subset, shifts, strict=True)):
        R[absent[s], j] = 0
        on = np.setdiff1d(np.arange(80), absent[s])
        expected[on, j] = np.linalg.inv(F[on] @ F[on].T + mu * np.eye(len(on))) @ R[on, j]
    found = SubsetInverse.of(F, absent, subset, shifts).apply(R, np.arange(10))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    assert capfd.readouterr() == ("", "")  # where LAPACK and BLAS complain


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_the_inverse_of_all_rows_inverts_without_some(systems, dtype, tolerance):
    A, B, present, _ = systems
    factor = CholeskyFactor.of((A + 0.1 * np.eye(80)).astype(dtype))
    M = InverseWithout.of(factor, [np.flatnonzero(~on) for on in present.T], np.arange(5))
    expected = alone(A, B, present, np.full(5, 0.1))
    for size in (1.0, 1e-50):  # the latter is no number in float32
        found = M.apply(size * B, np.arange(5)) / size
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert_close(M.apply(B[:, [3, 1]], np.array([3, 1])), M.apply(B, np.arange(5))[:, [3, 1]], rtol=1e-4)


def test_what_has_no_factor_is_none(systems):
    present = systems[2]
    absent = [np.flatnonzero(~on) for on in present.T]
    tiny = np.full(5, 1e-12)
    assert SubsetInverse.of(np.ones((80, 2), np.float32), absent, np.arange(5), tiny) is None
    broken = CholeskyFactor(np.triu(np.full((80, 80), np.nan)))
    assert InverseWithout.of(broken, absent, np.arange(5)) is None


def test_rounding_of_a_deflated_matrix_is_that_of_what_is_left():
    rng = np.random.default_rng(0)
    F, rest = 30 * rng.normal(size=(450, 3)), np.diag(rng.uniform(size=450))  # more rows than one tile has
    A, V = F @ F.T + rest, rng.normal(size=(450, 2))
    plain = Deflated(A, F[:, :0], np.empty(A.shape, np.float32)) @ V - A @ V
    error = Deflated(A, F, np.empty(A.shape, np.float32)) @ V - A @ V
    assert np.abs(error).max() < 1e-6 < 1e-4 < np.abs(plain).max()


def test_images_are_those_of_the_iterates(systems):
    A, B, present, shifts = systems
    low_precision = Deflated(A, np.zeros((80, 0)), np.empty(A.shape, np.float32))
    solution = solve(
        SubsetGradients(tol=1e-9, max_steps=10**6), SubsetSystems(Dense(A), B, present, shifts, None, low_precision)
    )
    assert solution.converged
    np.testing.assert_allclose(solution.state.images, A @ solution.x, atol=1e-10)


def test_slow_columns_are_given_up_and_the_others_solved(systems):
    A, B, present, shifts = systems
    problem = SubsetSystems(Dense(A), B, present, shifts)
    solution = solve(SubsetGradients(max_steps=12), problem)
    assert solution.status is Status.MAX_STEPS
    assert solution.state.codes[0] == SLOW
    assert problem.residuals(solution.x)[-1] <= 1e-9


def test_an_indefinite_matrix_ends_in_a_status(systems):
    _, B, present, shifts = systems
    assert (
        solve(SubsetGradients(), SubsetSystems(Dense(-9 * np.eye(80)), B, present, shifts)).status is Status.BREAKDOWN
    )
    assert (
        solve(SubsetGradients(), SubsetSystems(Dense(np.eye(80)), B * np.nan, present, shifts)).status.name
        == "NOT_FINITE"
    )


def test_shapes_that_do_not_fit(systems):
    A, B, present, shifts = systems
    with pytest.raises(InvalidInput, match="one subset"):
        SubsetSystems(Dense(A), B, present, shifts[:2])
