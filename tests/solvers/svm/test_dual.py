"""Duals of support vector machines: families against problems written out one by one."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.errors import InvalidInput
from mercer.gram import KernelOperator
from mercer.kernels import Gaussian
from mercer.operators import Dense, Diagonal
from mercer.solvers import SMO, DualBatch, DualPoint, Status, WorkingSet, WorkingSetState, solve
from mercer.solvers.svm import faces
from mercer.solvers.svm.faces import Face, minimise_on_face

RNG = np.random.default_rng(3)
X = RNG.standard_normal((40, 3))
K = Gaussian(gamma=0.4)(X)
Y = np.where(X[:, 0] + 0.4 * RNG.standard_normal(40) > 0, 1.0, -1.0)


def margins(C=2.0, **options):
    options = {"A": Dense(K), "start": np.zeros(40)} | options
    A, start = options.pop("A"), options.pop("start")
    return DualBatch(
        A, Y, np.minimum(C * Y, 0), np.maximum(C * Y, 0), start, np.arange(40), np.array([0, 40]), **options
    )


def tube(C=2.0, epsilon=0.2):
    bound = np.full(40, C)
    return DualBatch(Dense(K), X[:, 1], -bound, bound, np.zeros(40), np.arange(40), np.array([0, 40]), epsilon=epsilon)


@pytest.mark.parametrize("family", [margins(), margins(C=0.1), tube(), tube(epsilon=0.0)], ids=repr)
def test_the_optimum_is_that_of_a_general_solver(family):
    """SLSQP on β = α − α*, both in their halves of the box."""

    def value(ab):
        b = ab[:40] - ab[40:]
        return 0.5 * b @ K @ b - family.linear @ b + family.epsilon * ab.sum()

    def slope(ab):
        g = K @ (ab[:40] - ab[40:]) - family.linear
        return np.concatenate([g, -g]) + family.epsilon

    box = [(0.0, u) for u in np.concatenate([family.upper, -family.lower])]
    total = {
        "type": "eq",
        "fun": lambda ab: ab[:40].sum() - ab[40:].sum(),
        "jac": lambda ab: np.repeat([1.0, -1.0], 40),
    }
    reference = minimize(value, np.zeros(80), jac=slope, bounds=box, constraints=total, tol=1e-12)
    solution = solve(SMO(tol=1e-8), family)
    assert solution.status is Status.CONVERGED
    assert family.objectives(solution.x)[0] == pytest.approx(reference.fun, abs=1e-6)


def test_levels_and_duality_gap_tell_the_optimum():
    family = margins()
    x = solve(SMO(tol=1e-10), family).x
    b = family.multipliers(x)[0]
    f = K @ x.beta + b
    free = (x.beta != family.lower) & (x.beta != family.upper)
    np.testing.assert_allclose(Y[free] * f[free], 1.0, atol=1e-8)
    primal = 0.5 * x.beta @ K @ x.beta + 2.0 * np.maximum(0, 1 - Y * f).sum()
    assert primal + family.objectives(x)[0] == pytest.approx(family.duality_gaps(x)[0], abs=1e-8)
    assert family.duality_gaps(x)[0] < 1e-7
    rough = DualPoint(np.zeros(40), Y.copy(), np.array([2.0]))
    assert family.duality_gaps(rough)[0] >= -family.objectives(x)[0]


def test_problems_of_a_family_are_each_their_own():
    parts = [np.arange(0, 30), np.arange(10, 40), np.arange(0, 40, 2)]
    rows = np.concatenate(parts)
    offset = np.concatenate([[0], np.cumsum([len(one) for one in parts])])
    bound = 2.0 * Y[rows]
    low, high = np.minimum(bound, 0), np.maximum(bound, 0)
    blocks = np.array([4 * (i < 30) + 2 * (i >= 10) + (i % 2 == 0) for i in range(40)])
    exact = KernelOperator(Gaussian(gamma=0.4), X)
    family = DualBatch(Dense(K), Y[rows], low, high, np.zeros(len(rows)), rows, offset, blocks=blocks, exact=exact)
    together = solve(SMO(tol=1e-9), family)
    for q, part in enumerate(parts):
        some = slice(offset[q], offset[q + 1])
        one = DualBatch(
            Dense(np.ascontiguousarray(K[np.ix_(part, part)])),
            Y[part],
            low[some],
            high[some],
            np.zeros(len(part)),
            np.arange(len(part)),
            np.array([0, len(part)]),
        )
        alone = solve(SMO(tol=1e-9), one)
        np.testing.assert_allclose(together.x.beta[some], alone.x.beta, atol=1e-6)
        np.testing.assert_allclose(family.multipliers(together.x)[2 * q], one.multipliers(alone.x)[0], atol=1e-6)


def test_float32_entries_are_checked_in_float64():
    family = margins(C=1e3, A=Dense(K.astype(np.float32)), exact=Dense(K))
    solution = solve(SMO(tol=1e-5), family)
    assert solution.converged
    assert family.residual(solution.x) <= 1e-5
    np.testing.assert_allclose(solution.x.gradient, Y - K @ solution.x.beta, atol=1e-9)


def test_a_matrix_that_is_another_one_is_found_out():
    """The check against the exact operator never holds, and the loop says so, and ends."""
    solution = solve(SMO(), margins(A=Dense(K), exact=Dense(K + np.diag(5.0 * (1 + np.arange(40) % 3)))))
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.converged == (solution.residual <= 1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("rank", [3, 40])
def test_the_minimum_over_a_face(rank, epsilon, rng):
    """It lowers the objective, keeps bounds and sums, and leaves no slope among the variables inside their bounds."""
    F = rng.standard_normal((40, rank))
    A, beta = F @ F.T, np.clip(rng.standard_normal(40), -0.8, 0.8)
    bound, group = np.full(40, 0.8), np.repeat([0, 1], 20)
    face = Face(A, -bound, bound, epsilon, group, beta, Y - A @ beta)
    new, gradient = minimise_on_face(face)
    np.testing.assert_allclose(gradient, Y - A @ new, atol=1e-9)
    assert np.all(np.abs(new) <= 0.8)
    for g in (0, 1):
        assert new[group == g].sum() == pytest.approx(beta[group == g].sum(), abs=1e-9)
        inside = (np.abs(new) < 0.8) & (group == g) & ((new != 0) if epsilon else True)
        slopes = (gradient - epsilon * np.sign(new))[inside]
        assert len(slopes) < 2 or np.ptp(slopes) < 1e-6

    def value(b):
        return 0.5 * b @ A @ b - Y @ b + epsilon * np.abs(b).sum()

    assert value(new) < value(beta)


def test_a_positive_definite_face_is_solved_by_its_cholesky_factor(rng, monkeypatch):
    H, slope, group = K + 0.1 * np.eye(40), rng.standard_normal(40), np.repeat([0, 1], 20)
    monkeypatch.setattr(faces, "_DEFINITE", 2.0)
    expected, _ = faces._direction(H, slope, group)
    monkeypatch.undo()
    monkeypatch.setattr(faces.sl, "solve", None)
    found, whole = faces._direction(H, slope, group)
    assert whole
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_face_that_curves_downwards_is_left_alone():
    face = Face(-np.eye(3), -np.ones(3), np.ones(3), 0.0, np.zeros(3, int), np.array([0.1, 0.2, -0.3]), np.arange(3.0))
    np.testing.assert_array_equal(minimise_on_face(face)[0], face.beta)


def test_few_steps_are_said_to_be_few():
    solution = solve(SMO(tol=1e-9, max_iter=5), margins())
    assert solution.status is Status.MAX_STEPS
    assert solution.state.iterations.tolist() == [5]
    assert solution.residual == pytest.approx(margins().residual(solution.x))


def test_not_finite():
    bad = K.copy()
    bad[3] = bad[:, 3] = np.nan
    assert solve(SMO(), margins(A=Dense(bad, symmetric=True))).status is Status.NOT_FINITE


def test_indefinite_matrices_end_in_a_stationary_point():
    indefinite = K - 0.8 * np.eye(40)
    solution = solve(SMO(), margins(A=Dense(indefinite)))
    assert solution.converged
    assert np.linalg.eigvalsh(indefinite)[0] < -0.1


@pytest.mark.parametrize(
    "wrong",
    [
        {"A": Dense(RNG.standard_normal((40, 40)))},
        {"start": np.full(40, 3.0)},
        {"start": np.zeros(39)},
        {"A": Dense(np.ones((40, 39)))},
    ],
)
def test_what_is_no_problem_is_refused(wrong):
    with pytest.raises(InvalidInput, match="DualBatch"):
        margins(**wrong)


def test_smo_needs_a_stored_matrix():
    with pytest.raises(InvalidInput, match="store"):
        solve(SMO(), margins(A=Diagonal(np.ones(40))))
    for bad in ({"tol": 0.0}, {"max_iter": -1}):
        with pytest.raises(InvalidInput):
            SMO(**bad)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_working_sets_keep_the_gradient_of_what_is_active(epsilon):
    """After every set c − Kβ of the variables that are not set aside, and one check or two are enough."""
    rng = np.random.default_rng(0)
    n = 1500
    Z = rng.standard_normal((n, 3))
    A = Gaussian(gamma=0.4)(Z)
    y = np.sin(2 * Z[:, 0]) if epsilon else np.where(Z[:, 0] + 0.4 * rng.standard_normal(n) > 0, 1.0, -1.0)
    lower, upper = (np.full(n, -2.0), np.full(n, 2.0)) if epsilon else (np.minimum(2 * y, 0), np.maximum(2 * y, 0))
    problem = DualBatch(Dense(A), y, lower, upper, np.zeros(n), np.arange(n), np.array([0, n]), epsilon=epsilon)
    solver = WorkingSet(size=300)
    state, sets = solver.start(problem), 0
    while solver.verdict(problem, state) is None:
        state = solver.step(problem, state)
        active = state.active == 1
        np.testing.assert_allclose(state.gradient[active], (y - A @ state.beta)[active], atol=1e-9)
        sets += not state.checked
    assert solver.verdict(problem, state) is Status.CONVERGED
    assert sets > 2, "one set had all variables"
    assert state.checks <= 2


def test_working_sets_have_their_scratch_memory_in_the_state_and_leave_none():
    rng = np.random.default_rng(0)
    A, y = Gaussian(gamma=0.4)(rng.standard_normal((40, 2))), np.where(rng.random(40) > 0.5, 1.0, -1.0)
    bounds = np.minimum(2 * y, 0), np.maximum(2 * y, 0)
    problem = DualBatch(Dense(A), y, *bounds, np.zeros(40), np.arange(40), np.array([0, 40]))
    solver = WorkingSet(size=12)
    hash(solver)  # a value: nothing in it changes
    begun = solve(solver, problem, max_steps=1).state
    assert begun.memory._flat.size
    assert not pickle.loads(pickle.dumps(begun)).memory._flat.size
    ended = solve(solver, problem, state=begun)
    assert ended.converged
    assert not ended.state.memory._flat.size
    before = {name: value for name, value in vars(begun).items() if name != "memory"}  # as earlier versions pickled it
    earlier = WorkingSetState.__new__(WorkingSetState)
    earlier.__setstate__(before)
    np.testing.assert_array_equal(solve(solver, problem, state=earlier).x.beta, ended.x.beta)
