"""Events: how a program follows mercer's work (`Progress`, `Log`), and stops it (`Cancel`).

Solvers, sweeps and fits emit events; observers receive those that are emitted within their `observe` block.

Examples
--------
>>> from mercer.events import Progress, SolverStep, emit, observe
>>> with observe(Progress()):
...     emit(SolverStep("ConjugateGradients", step=1, residual=1e-3, tolerance=1e-8))
"""

from mercer.events.dispatch import Observer, emit, observe, observed
from mercer.events.event import Event, SolverStep, StageDone, StageStarted, TilesDone
from mercer.events.observers import Cancel, Log
from mercer.events.progress import Progress

__all__ = [
    "Cancel",
    "Event",
    "Log",
    "Observer",
    "Progress",
    "SolverStep",
    "StageDone",
    "StageStarted",
    "TilesDone",
    "emit",
    "observe",
    "observed",
]


def __dir__() -> list[str]:
    return sorted(__all__)
