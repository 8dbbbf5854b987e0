"""How much of a fit is done, and the time that is left, by predicted and measured seconds of its stages."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from mercer.events.event import StageDone, StageStarted

__all__ = ["Forecast", "time_left"]

NEARLY = 0.99
"""The largest share that is shown while a stage runs."""


def time_left(seconds: float) -> str:
    """The time that is left, as minutes and seconds.

    >>> time_left(90.2)
    '1:30 left'
    """
    return f"{round(seconds) // 60}:{round(seconds) % 60:02d} left"


@dataclass
class Forecast:
    """The share T/(T + L) of a fit that is done, for T seconds that its stages took and L predicted for the rest.

    A stage has p − t seconds left if p are predicted and t passed. If its solver has done the share s of its work, it
    has (1 − s)((1 − s)(p − t₀) + t − t₀) left, with t₀ of the t seconds before the solver's stage: the prediction
    counts at first, and what is observed in the end.

    Parameters
    ----------
    stage : StageStarted
        The last stage that began.
    """

    stage: StageStarted
    solved: float = 0.0
    since: float = field(default_factory=lambda: time.monotonic())
    ended: bool = False

    def end(self, event: StageDone) -> None:
        """Note that the stage has ended, and what it took."""
        if event.name == self.stage.name:
            measured = {**dict(self.stage.measured), event.name: event.seconds}
            self.stage, self.ended = replace(self.stage, measured=tuple(measured.items())), True

    @property
    def taken(self) -> float:
        """T."""
        return sum(seconds for _, seconds in self.stage.measured) + self._running

    @property
    def left(self) -> float:
        """L, of the stages with a prediction."""
        return sum(self._left(stages.split(" + "), seconds) for stages, seconds in self.stage.predicted)

    @property
    def share(self) -> float | None:
        """T/(T + L); None if nothing is predicted."""
        if not self.stage.predicted:
            return None
        share = self.taken / max(self.taken + self.left, 1e-300)
        return share if self.ended else min(share, NEARLY)

    @property
    def note(self) -> str:
        """The stage, and the time that is left or why it is not known."""
        if self.ended:
            return time_left(self.left) if self.left > 0 else ""
        name, own = self.stage.name, self._own
        if own is None:
            return f"{name}, no prediction of its time"
        return f"{name}, {time_left(self.left)}" if self._left(*own) > 0 else f"{name}, longer than predicted"

    @property
    def _running(self) -> float:
        return 0.0 if self.ended else time.monotonic() - self.since

    @property
    def _own(self) -> tuple[list[str], float] | None:
        """The stages that are predicted together with the present one, and their seconds."""
        groups = ((stages.split(" + "), seconds) for stages, seconds in self.stage.predicted)
        return next((group for group in groups if self.stage.name in group[0]), None)

    def _left(self, stages: list[str], seconds: float) -> float:
        measured = dict(self.stage.measured)
        current = self.stage.name in stages and not self.ended
        if stages[-1] in measured and not current:
            return 0.0
        rest = max(seconds - sum(measured.get(one, 0.0) for one in stages), 0.0)
        if not current:
            return rest
        if self.solved > 0:
            return (1 - self.solved) * ((1 - self.solved) * rest + self._running)
        return max(rest - self._running, 0.0)
