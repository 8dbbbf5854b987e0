"""The events that mercer emits while it computes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Event", "SolverStep", "StageDone", "StageStarted", "TilesDone"]


@dataclass(frozen=True, slots=True)
class SolverStep:
    """A solver has done a step.

    Attributes
    ----------
    solver : str
        The name of the solver.
    step : int
        The number of the step, from 1 on.
    residual, tolerance : float
        The residual after the step; the solver stops when it is at most the tolerance.

    Examples
    --------
    >>> SolverStep("ConjugateGradients", step=3, residual=1e-4, tolerance=1e-8)
    SolverStep(solver='ConjugateGradients', step=3, residual=0.0001, tolerance=1e-08)
    """

    solver: str
    step: int
    residual: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class TilesDone:
    """A sweep over the tiles of a kernel matrix has done some of them.

    Attributes
    ----------
    what : str
        What the sweep computes, such as "K @ V".
    done, total : int
        Tiles that are done, and all tiles.

    Examples
    --------
    >>> TilesDone("K @ V", done=2, total=8)
    TilesDone(what='K @ V', done=2, total=8)
    """

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage of a fit begins. The event says what the whole fit is predicted to take, and what it has taken so far.

    Attributes
    ----------
    name : str
        The stage, such as "solve".
    of : str
        The estimator.
    predicted : tuple of (str, float)
        Predicted seconds, by names of stages joined with " + ". There may be stages without a prediction.
    measured : tuple of (str, float)
        Seconds of the stages that have ended. It is empty for the first stage of a fit.

    Examples
    --------
    >>> StageStarted("solve", of="KernelRidge", predicted=(("kernel matrix + solve", 2.5),)).measured
    ()
    """

    name: str
    of: str = "fit"
    predicted: tuple[tuple[str, float], ...] = ()
    measured: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage of a fit or of a prediction has ended.

    Attributes
    ----------
    name : str
        The stage, such as "solve".
    seconds : float
        How long it took.

    Examples
    --------
    >>> StageDone("solve", seconds=0.25)
    StageDone(name='solve', seconds=0.25)
    """

    name: str
    seconds: float


Event = SolverStep | TilesDone | StageStarted | StageDone
"""The type of all events."""
