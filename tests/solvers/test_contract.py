"""Every solver earns the contract by one line in a table; every check catches a planted wrong solver."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from mercer.operators import CachedRows, Centered, Dense, Diagonal, LowRank
from mercer.solvers import (
    SMO,
    BlockKrylov,
    Cholesky,
    ClassificationProblem,
    Clustering,
    ConjugateGradients,
    DenseEigen,
    DualBatch,
    DualCoordinateDescent,
    Eigenproblem,
    FeatureLogistic,
    KernelNipals,
    LinearDualBatch,
    LinearSystem,
    Lloyd,
    LogDeterminant,
    Logistic,
    NewtonFeatureLogistic,
    NewtonLogistic,
    PerceptronRule,
    RefinedConjugateGradients,
    ScoreProblem,
    Status,
    StochasticLanczos,
    SubsetGradients,
    SubsetSystems,
    WorkingSet,
)
from mercer.testing import solvers as suite


def spd(n=60, condition=1e3, dtype=np.float64, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = (Q * np.logspace(0, -np.log10(condition), n)) @ Q.T
    return ((A + A.T) / 2).astype(dtype)


def right_hand_sides(n=60, r=3):
    return np.random.default_rng(1).standard_normal((n, r))


def linear(**options):
    return lambda: LinearSystem(Dense(spd()), right_hand_sides(), **options)


def with_matrix():
    A = spd(dtype=np.float32)
    return LinearSystem(Dense(spd()), right_hand_sides(), shift=0.1, matrix=A)


def log_determinant(**options):
    Z = np.random.default_rng(4).standard_normal((60, 5))
    return lambda: LogDeterminant(Dense(spd()), Z, 0.1, right_hand_sides(), **options)


def eigen(k=4):
    return lambda: Eigenproblem(Centered(Dense(spd(300, 1e6))), k)


def clusters(**options):
    rows = np.random.default_rng(2).standard_normal((90, 3))
    return lambda: Clustering(LowRank(rows), np.arange(90) % 6, 6, **options)


def labelled(classes, **options):
    y = np.arange(60) % classes
    rows = np.random.default_rng(3).standard_normal((60, 3)) + 2 * np.eye(3)[y]
    return lambda: ClassificationProblem(
        Dense(np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2))), y, classes, **options
    )


def logistic(classes, **options):
    return lambda: Logistic(Dense(spd(condition=1e4)), np.arange(60) % classes, 1e-3, **options)


def machines(epsilon=0.0, C=1.0):
    """Three machines on parts of the same rows."""

    def make():
        X, rows = right_hand_sides(60, 4), np.r_[0:60, 0:60:2, 5:50]
        c = np.sin(3 * X[rows, 0]) if epsilon else np.sign(X[rows, 0] + 0.3)
        lower, upper = (-C + 0 * c, C + 0 * c) if epsilon else (np.minimum(C * c, 0), np.maximum(C * c, 0))
        return LinearDualBatch(X, c, lower, upper, rows, np.array([0, 60, 90, 135]), epsilon)

    return make


def one_dual(epsilon=0.0, split=False):
    """The last of the three problems of `duals`, on a matrix that computes its rows when they are needed."""

    def make():
        whole = duals(epsilon, split)()
        return replace(whole.part(2)[0], A=CachedRows(Dense(spd()), 8 * 60 * 10))

    return make


def duals(epsilon=0.0, split=False, dtype=np.float64, away=False):
    """Three problems on some of the rows of one matrix: margins, or a tube around a line."""
    A, n = spd(dtype=dtype), 60
    rows = np.concatenate([np.arange(0, 40), np.arange(20, 60), np.arange(n)])
    offset = np.array([0, 40, 80, 140])
    c = np.where(rows % 2, 1.0, -1.0) if not epsilon else np.sin(rows / 7.0)
    lower, upper = (np.minimum(c, 0) * 20, np.maximum(c, 0) * 20) if not epsilon else (-20 + 0 * c, 20 + 0 * c)
    start = np.zeros(len(rows))
    if away:
        start[[1, 0, 41, 40]] = upper[1], lower[0], 0.5 * upper[41], 0.5 * lower[40]
    ends = np.array([20, 60, 110]) if split else None
    return lambda: DualBatch(Dense(A), c, lower, upper, start, rows, offset, ends, epsilon, exact=Dense(spd()))


def subsets(**options):
    present = np.arange(60)[:, None] % 4 != np.arange(4)
    B = np.random.default_rng(1).standard_normal((60, 4)) * present
    return lambda: SubsetSystems(Dense(spd()), B, present, np.logspace(-3, 0, 4), **options)


SOLVERS = {
    "smo": (SMO(), duals()),
    "smo, exact": (SMO(tol=1e-9), duals()),
    "smo, float32": (SMO(tol=1e-4), duals(dtype=np.float32)),
    "smo, at once to the face": (SMO(tol=1e-9, patience=0), duals(epsilon=0.1)),
    "working sets": (WorkingSet(size=12), one_dual()),
    "working sets, epsilon": (WorkingSet(tol=1e-6, size=8), one_dual(epsilon=0.1)),
    "working sets, two sums": (WorkingSet(size=12), one_dual(split=True)),
    "smo, epsilon": (SMO(), duals(epsilon=0.1)),
    "smo, two sums": (SMO(), duals(split=True)),
    "smo, away from 0": (SMO(), duals(away=True)),
    "cg": (ConjugateGradients(), linear()),
    "cg, often recomputed": (ConjugateGradients(tol=1e-10, recompute_every=7), linear(shift=0.01)),
    "cg, one column": (ConjugateGradients(), lambda: LinearSystem(Dense(spd()), np.ones(60))),
    "cg, preconditioned": (ConjugateGradients(), linear(preconditioner=Diagonal(np.linspace(1, 2, 60)))),
    "cg, shift by row": (ConjugateGradients(), linear(shift=np.linspace(0.1, 1, 60))),
    "cg, low rank": (ConjugateGradients(), lambda: LinearSystem(LowRank(right_hand_sides()), np.ones(60), shift=1.0)),
    "lanczos": (StochasticLanczos(1e-9), log_determinant()),
    "lanczos, preconditioned": (StochasticLanczos(), log_determinant(preconditioner=Diagonal(np.linspace(1, 2, 60)))),
    "refined cg": (RefinedConjugateGradients(tol=1e-10), linear(low_precision=Dense(spd()).astype(np.float32))),
    "refined cg, beyond float32": (
        RefinedConjugateGradients(tol=1e-9),
        lambda: LinearSystem(Dense(spd(condition=1e4)), np.ones(60), low_precision=Dense(spd(dtype=np.float32))),
    ),
    "refined cg, no low precision": (RefinedConjugateGradients(tol=1e-10), linear(shift=0.01)),
    "cholesky": (Cholesky(), linear()),
    "cholesky, ill-conditioned": (Cholesky(), lambda: LinearSystem(Dense(spd(condition=1e6)), right_hand_sides())),
    "cholesky, float64": (Cholesky(precision="float64"), linear()),
    "cholesky, buffer given": (Cholesky(), with_matrix),
    "dense eigen": (DenseEigen(), eigen()),
    "krylov": (BlockKrylov(tol=1e-8), eigen()),
    "krylov, restarted": (BlockKrylov(tol=1e-8, block=3), eigen()),
    "nipals": (KernelNipals(), lambda: ScoreProblem(Dense(spd()), right_hand_sides(), 5)),
    "nipals, beyond the rank": (
        KernelNipals(),
        lambda: ScoreProblem(LowRank(right_hand_sides()), np.eye(60)[:, :2], 9),
    ),
    "lloyd": (Lloyd(), clusters()),
    "lloyd, weighted": (Lloyd(refresh=3), clusters(weights=np.linspace(0, 1, 90))),
    "mistakes": (PerceptronRule(), labelled(2)),
    "mistakes, weighted": (PerceptronRule(shuffle=False), labelled(3, weights=np.linspace(0.5, 3, 60), constant=0.0)),
    "logistic": (NewtonLogistic(), logistic(2)),
    "logistic, three classes": (NewtonLogistic(), logistic(3, weights=np.linspace(1, 2, 60))),
    "logistic, preconditioned": (NewtonLogistic(), logistic(3, factor=np.linalg.cholesky(spd(condition=1e4))[:, :40])),
    "logistic on features": (
        NewtonFeatureLogistic(),
        lambda: FeatureLogistic(LowRank(right_hand_sides(60, 5)), np.arange(60) % 3, 0.1, np.linspace(1, 2, 60)),
    ),
    "logistic, no intercept": (NewtonLogistic(), logistic(2, intercept=False)),
    "coordinates": (DualCoordinateDescent(), machines()),
    "coordinates, exact": (DualCoordinateDescent(tol=1e-9), machines(C=10.0)),
    "coordinates, a kink": (DualCoordinateDescent(tol=1e-6), machines(0.1)),
    "subsets": (SubsetGradients(), subsets()),
    "subsets, low precision": (SubsetGradients(), subsets(low_precision=Dense(spd(dtype=np.float32)))),
    "krylov, random": (BlockKrylov(tol=1e-8, start_from="random"), eigen()),
}


@pytest.mark.parametrize("check", suite.SOLVER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_contract(name, check):
    check(*SOLVERS[name])


def test_the_suite_runs_every_check():
    suite.check_solver_contract(*SOLVERS["cg"])
    with pytest.raises(AssertionError):
        suite.check_solver_contract(Optimist(), linear())


class NotFrozen(ConjugateGradients):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Optimist(ConjugateGradients):
    """Reports ten times less than is true."""

    def finish(self, problem, state):
        x, residual = super().finish(problem, state)
        return x, residual / 10


class Hasty(ConjugateGradients):
    """Says that it converged after two steps."""

    def verdict(self, problem, state):
        return Status.CONVERGED if state.steps >= 2 else None


class Moody(ConjugateGradients):
    def start(self, problem):
        state = super().start(problem)
        return replace(state, X=state.X + 1e-13 * np.random.default_rng().standard_normal(state.X.shape))


class Forgetful(ConjugateGradients):
    """Keeps in itself what belongs in the state."""

    seen: set[int] = set()  # noqa: RUF012 - that is the mistake

    def step(self, problem, state):
        first = state.steps not in self.seen
        self.seen.add(state.steps)
        following = super().step(problem, state)
        return following if first else replace(following, X=following.X * (1 + 1e-15))


class InPlace(ConjugateGradients):
    def step(self, problem, state):
        following = super().step(problem, state)
        state.X[...] = following.X
        return following


class TwoAtOnce(ConjugateGradients):
    def step(self, problem, state):
        following = super().step(problem, state)
        return following if self.verdict(problem, following) else super().step(problem, following)


class NoTolerance(ConjugateGradients):
    @property
    def tolerance(self):
        return self.tol * np.random.default_rng().random()


class NoVerdict(ConjugateGradients):
    def verdict(self, problem, state):
        return False


@dataclass(frozen=True)
class NotANumber(ConjugateGradients):
    def start(self, problem):
        return replace(super().start(problem), residuals=np.full(3, np.nan))


PLANTED = {
    "check_frozen": NotFrozen(),
    "check_answer": Optimist(),
    "check_answer (hasty)": Hasty(),
    "check_repeats": Moody(),
    "check_resumes": Forgetful(),
    "check_steps_leave_states_alone": InPlace(),
    "check_steps_leave_states_alone (two)": TwoAtOnce(),
    "check_events": NoTolerance(),
    "check_events (two)": TwoAtOnce(),
    "check_residual_is_a_number": NotANumber(),
    "check_residual_is_a_number (verdict)": NoVerdict(),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_check_catches_a_wrong_solver(name):
    with pytest.raises(AssertionError):
        getattr(suite, name.split(" ")[0])(PLANTED[name], linear())


def test_every_check_has_a_planted_solver():
    assert {name.split(" ")[0] for name in PLANTED} == {check.__name__ for check in suite.SOLVER_CHECKS}
