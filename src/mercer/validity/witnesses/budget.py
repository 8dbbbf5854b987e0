"""The work limit of a search, counted in operations instead of seconds, so that answers are reproducible."""

from __future__ import annotations

from mercer.events import TilesDone, emit

__all__ = ["MOST_WORK", "Budget", "Spent"]

MOST_WORK = 5e9
"""Most operations to search point sets; a witness may cost as much again."""

_ENTRY, _CALL, _INTERVALS = 15.0, 15_000.0, 30_000.0
"""Cost of an operation per entry, per block, and on intervals of 30, 60 and 120 digits together."""


_PART = 5e6
"""Work between two events, at which a search can be cancelled."""


class Spent(Exception):
    """The search has reached its work limit."""


class Budget:
    """The work that is left.

    >>> budget = Budget(1e6)
    >>> budget.of_arrays(2, 100)
    >>> budget.left, budget.spent
    (967000.0, False)
    """

    def __init__(self, whole: float = MOST_WORK) -> None:
        self.whole = self.left = whole
        self.spent = False

    def of_arrays(self, operations: int, entries: int) -> None:
        """Count operations on blocks of this many entries; raises Spent if the work is not left."""
        self._spend(operations * (_CALL + _ENTRY * entries))

    def of_intervals(self, operations: int) -> None:
        """Count operations on intervals; raises Spent if the work is not left."""
        self._spend(operations * _INTERVALS)

    def _spend(self, work: float) -> None:
        before, self.left = self.left, self.left - work
        if self.left // _PART != before // _PART:
            emit(TilesDone("search for a witness", int((self.whole - self.left) / _PART), int(self.whole / _PART)))
        if self.left < 0:
            self.spent = True
            raise Spent

    def renew(self) -> None:
        """Allow the same amount of work again."""
        self.left = self.whole
