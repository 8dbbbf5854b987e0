"""What mercer tells while it works: a few frozen values and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Event", "SolverStep", "StageDone", "TilesDone"]


@dataclass(frozen=True, slots=True)
class SolverStep:
    """A solver took one step: its residual now, and the tolerance it stops at.

    >>> SolverStep("ConjugateGradients", step=3, residual=1e-4, tolerance=1e-8)
    SolverStep(solver='ConjugateGradients', step=3, residual=0.0001, tolerance=1e-08)
    """

    solver: str
    step: int
    residual: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class TilesDone:
    """A sweep over tiles has done this many of them.

    >>> TilesDone("K @ V", done=2, total=8)
    TilesDone(what='K @ V', done=2, total=8)
    """

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage of a fit or of a prediction is over, and took this long.

    >>> StageDone("solve", seconds=0.25)
    StageDone(name='solve', seconds=0.25)
    """

    name: str
    seconds: float


Event = SolverStep | TilesDone | StageDone
"""Any of the three."""
