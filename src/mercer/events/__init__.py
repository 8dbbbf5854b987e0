"""Progress, log and cancel: the only door through which mercer's work is seen from outside.

The mathematics emits; whoever wants to know observes:

>>> from mercer.events import Progress, SolverStep, emit, observe
>>> with observe(Progress()):
...     emit(SolverStep("ConjugateGradients", step=1, residual=1e-3, tolerance=1e-8))
"""

from mercer.events.door import Observer, emit, observe, observed
from mercer.events.event import Event, SolverStep, StageDone, TilesDone
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
    "TilesDone",
    "emit",
    "observe",
    "observed",
]


def __dir__() -> list[str]:
    return sorted(__all__)
