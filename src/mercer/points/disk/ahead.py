"""Reading ahead: one thread prepares the next item while the caller works on this one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items; one thread makes the next one while the caller works on this one.

    Parameters
    ----------
    items : iterator

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """

    def advance() -> list[T]:
        return list(islice(items, 1))

    with ThreadPoolExecutor(1, "mercer-ahead") as thread:
        coming = thread.submit(advance)
        while item := coming.result():
            coming = thread.submit(advance)
            yield item[0]
