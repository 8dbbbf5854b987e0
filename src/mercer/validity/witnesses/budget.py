"""How much a search may do, by count and not by the clock, so that an answer is the same every time."""

from __future__ import annotations

__all__ = ["MOST_WORK", "Budget", "Spent"]

MOST_WORK = 5e9
"""What a search may cost, in operations: looks at point sets, and then as much again to make a witness."""

_ENTRY, _CALL, _INTERVALS = 15.0, 15_000.0, 30_000.0
"""What an operation costs on an entry, for each block, and on intervals of 30, 60 and 120 digits together."""


class Spent(Exception):
    """The search has done the work that it may do."""


class Budget:
    """Work that is left.

    >>> budget = Budget(1e6)
    >>> budget.of_arrays(2, 100)
    >>> budget.left, budget.spent
    (967000.0, False)
    """

    def __init__(self, whole: float = MOST_WORK) -> None:
        self.whole = self.left = whole
        self.spent = False

    def of_arrays(self, operations: int, entries: int) -> None:
        """So many operations on blocks; raises Spent where so much is not left, as the next one does."""
        self._spend(operations * (_CALL + _ENTRY * entries))

    def of_intervals(self, operations: int) -> None:
        """So many operations on intervals."""
        self._spend(operations * _INTERVALS)

    def _spend(self, work: float) -> None:
        self.left -= work
        if self.left < 0:
            self.spent = True
            raise Spent

    def renew(self) -> None:
        """As much again."""
        self.left = self.whole
