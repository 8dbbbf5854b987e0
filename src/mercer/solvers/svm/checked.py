"""The common loop of the solvers of duals: steps on a matrix that may be in float32, checked in float64."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import SmoStatus
from mercer.errors import InvalidInput, message
from mercer.solvers.base import Solver, State, Status
from mercer.solvers.svm.dual import DualBatch, DualPoint, Floats, Integers

__all__ = ["CAPPED", "MARGIN", "RUNNING", "SETTLED", "STUCK", "CheckedDual", "DualState"]

MARGIN = 0.95
"""Share of the tolerance that the steps on the stored matrix must meet; the rest allows for its rounding."""
STALLS_ALLOWED = 3

RUNNING, SETTLED, STUCK, CAPPED = SmoStatus


@dataclass(frozen=True)
class DualState(State):
    """β and the gradients. Those of inactive variables belong to the anchor, an earlier β.

    `ended` tells for each problem whether it is running, settled, stuck, or at the limit of its steps. `gaps` and
    `last` are m − M now and at the last check, and `stalls` counts the checks that did not halve it. `checked` tells
    whether the exact operator computed the gradient, and `checks` how often it did. `faces` counts the minimisations
    over a face.
    """

    beta: Floats
    gradient: Floats
    anchor: Floats
    anchor_gradient: Floats
    active: NDArray[np.uint8]
    gaps: Floats
    last: Floats
    stalls: Integers
    iterations: Integers
    faces: Integers
    ended: Integers
    checks: int = 0
    checked: bool = False

    @property
    def residual(self) -> float:
        return float(np.max(np.maximum(self.gaps, 0.0), initial=0.0))


S = TypeVar("S", bound=DualState)


@dataclass(frozen=True)
class CheckedDual(Solver[DualBatch, S]):
    """A solver that advances the running problems, and checks all of them in float64 when none is running.

    A subclass defines `start` and `_advance`.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    patience: int = 20

    def __post_init__(self) -> None:
        if not self.tol > 0 or self.patience < 0 or (self.max_iter or 0) < 0:
            raise InvalidInput(
                message(type(self).__name__, repr(self), "give tol > 0, patience ≥ 0, and max_iter ≥ 0 or None")
            )

    def step(self, problem: DualBatch, state: S) -> S:
        if np.all(state.ended != RUNNING):
            return self._check(problem, state)
        return self._advance(problem, state)

    @abstractmethod
    def _advance(self, problem: DualBatch, state: S) -> S:
        """The state after a bounded piece of work on each running problem."""

    def _limit(self, problem: DualBatch) -> int:
        largest = int(np.max(np.diff(problem.offset), initial=0))
        return max(10_000_000, 100 * largest) if self.max_iter is None else self.max_iter

    def _check(self, problem: DualBatch, state: S) -> S:
        """The state with the exact operator's gradient. Problems that do not meet the tolerance by it run again."""
        gradient = problem.gradient(state.beta)
        gaps = problem.gaps(state.beta, gradient)
        good, halved = gaps <= self.tol, gaps <= 0.5 * state.last
        stalls = state.stalls + (~good & ~halved)
        again = np.where(stalls < STALLS_ALLOWED, RUNNING, STUCK)
        again = np.where(state.ended == CAPPED, CAPPED, again)
        return replace(
            state,
            steps=state.steps + 1,
            gradient=gradient,
            active=np.ones_like(state.active),
            gaps=gaps,
            last=gaps,
            stalls=stalls,
            ended=np.where(good, SETTLED, again),
            checks=state.checks + 1,
            checked=True,
        )

    def verdict(self, problem: DualBatch, state: S) -> Status | None:
        if not state.checked:
            return None
        if not (np.all(np.isfinite(state.gradient)) and np.all(np.isfinite(state.beta))):
            return Status.NOT_FINITE
        if np.any(state.ended == RUNNING):
            return None
        if np.any(state.ended == CAPPED):
            return Status.MAX_STEPS
        return Status.STALLED if np.any(state.ended == STUCK) else Status.CONVERGED

    def finish(self, problem: DualBatch, state: S) -> tuple[DualPoint, float]:
        known = state.checked
        gradient = state.gradient if known else problem.gradient(state.beta)
        point = DualPoint(state.beta, gradient, state.gaps if known else problem.gaps(state.beta, gradient))
        worst = np.max(np.maximum(point.gaps, 0.0), initial=0.0)
        return point, float("nan") if np.any(np.isnan(gradient)) else float(worst)
