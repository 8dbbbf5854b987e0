"""The contract suite of points: one check for each promise, and one call for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.points import Points, VectorPoints
from mercer.testing.comparison import hold

__all__ = ["POINT_CHECKS", "check_points"]

Make = Callable[[list[Any]], Points]
INDICES = ([0], [2, 0, 1], [1, 1, 3, 0], [1, 2, 3])


def check_points(
    make: Make, items: Sequence[Any], *, refused: Sequence[Sequence[Any]] = (), others: Sequence[Points] = ()
) -> None:
    """Check the contract of a kind of points.

    Parameters
    ----------
    make : callable
        ``make(list of items)`` returns points of this kind.
    items : sequence
        Four or more distinct points: rows of numbers, or objects.
    refused : sequence of lists of items, default ()
        Data that `validate` must refuse.
    others : sequence of points, default ()
        Points that differ from these in a property that matters, such as the dtype or stored zeros.

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points import DensePoints
    >>> check_points(lambda items: DensePoints(np.array(items)), [[0.0, 1.0], [2.0, 5.0], [1.0, 1.0], [3.0, 0.0]])
    """
    items = list(items)
    assert len(items) >= 4, "give four items or more"
    for check in POINT_CHECKS:
        check(make, items)
    check_validate(make, items, refused)
    check_differences(make, items, others)


def check_length(make: Make, items: list[Any]) -> None:
    """len(points) is the number of points, for parts too."""
    points = make(items)
    hold(len(points) == len(items), f"len of {len(items)} points is {len(points)}")
    for index in (*INDICES, []):
        hold(len(points.take(_index(index))) == len(index), f"len of {len(index)} points that were taken")


def check_dtype(make: Make, items: list[Any]) -> None:
    """dtype is float32 or float64, and every part has the same one."""
    points = make(items)
    hold(points.dtype in (np.float32, np.float64), f"dtype is {points.dtype}")
    for part in (points.take(_index([1])), points.run(0, 2), points.join(points), points.validate("check")):
        hold(part.dtype == points.dtype, f"the dtype of a part is {part.dtype}, not {points.dtype}")


def check_take(make: Make, items: list[Any]) -> None:
    """take(index) copies the points with these indices, in this order and with repetitions."""
    points = make(items)
    for index in INDICES:
        wanted = make([items[i] for i in index])
        for copy in (True, False):
            _same(points.take(_index(index), copy=copy), wanted, f"take({index}, copy={copy})")
        taken = points.take(_index(index))
        if isinstance(points, VectorPoints) and isinstance(taken, VectorPoints):
            hold(not np.shares_memory(taken.values, points.values), f"take({index}) shares memory")


def check_run(make: Make, items: list[Any]) -> None:
    """run(first, last) is the points from `first` up to but not including `last`."""
    for first, last in ((0, len(items)), (1, 3), (3, 4)):
        _same(make(items).run(first, last), make(items[first:last]), f"run({first}, {last})")


def check_join(make: Make, items: list[Any]) -> None:
    """join gives these points followed by the others, and changes neither."""
    first, second = make(items[:3]), make(items[1:])
    _same(first.join(second), make(items[:3] + items[1:]), "join")
    _same(first, make(items[:3]), "the first part after join")
    _same(make(items).take(_index([2])).join(second), make([items[2], *items[1:]]), "join to points that were taken")


def check_blocks(make: Make, items: list[Any]) -> None:
    """blocks(size) gives all points in order, in blocks of at most `size` bytes or of one point."""
    points, n = make(items), len(items)
    for size in (1, max(points.nbytes // 2, 1), 1 << 40):
        blocks = list(points.blocks(size))
        first = 0
        for block in blocks:
            last = first + len(block)
            _same(block, make(items[first:last]), f"the points from {first} in blocks({size})")
            hold(len(block) == 1 or len(block) * points.nbytes <= size * n, f"a block of more than {size} bytes")
            first = last
        hold(first == n, f"blocks({size}) have {first} of {n} points")
    hold(len(list(points.blocks(1 << 40))) == 1, "what fits is not one block")


def check_fingerprint(make: Make, items: list[Any]) -> None:
    """fingerprint() is the same for equal points, and differs if a value, the order or the number of points does."""
    points = make(items)
    hold(points.fingerprint() == points.fingerprint() == make(items).fingerprint(), "equal points differ")
    swapped = [items[1], items[0], *items[2:]]
    for name, changed in (("order", swapped), ("number", items[:-1]), ("values", [*items[:-1], items[0]])):
        hold(make(changed).fingerprint() != points.fingerprint(), f"another {name} and the same fingerprint")


def check_data_sets(make: Make, items: list[Any]) -> None:
    """among(index) gives a data set of its own, with as many anchors as points."""
    for index in INDICES[:2]:
        part = make(items).among(_index(index))
        hold(len(part) == len(part.anchors()) == len(index), f"among({index}) is not a data set of its own")


def check_frozen(make: Make, items: list[Any]) -> None:
    """Points cannot be changed."""
    points = make(items)
    try:
        points.rows = make(items[:1]).rows
    except (AttributeError, TypeError):
        return
    raise AssertionError(f"{type(points).__name__}: rows can be set")


def check_vectors(make: Make, items: list[Any]) -> None:
    """The table of vectors has the given values, in the requested dtype."""
    points = make(items)
    if not isinstance(points, VectorPoints):
        return
    table = np.asarray(items, np.float64)
    hold(points.dense().shape == (len(points), points.columns) == table.shape, "the shape of dense()")
    hold(np.array_equal(points.dense(), table.astype(points.dtype)), "dense() is not the table")
    hold(np.array_equal(points.csr().toarray(), points.dense()), "csr() is not the table")
    norms = (points.dense().astype(np.float64) ** 2).sum(axis=1)
    hold(np.allclose(points.squared_norms(), norms, rtol=1e-5), "squared_norms()")
    hold(points.largest() == float(np.abs(points.dense()).max()), f"largest() is {points.largest()}")
    for dtype in (np.float32, np.float64):
        other = points.astype(dtype)
        hold(other.dtype == dtype, f"astype({np.dtype(dtype)}) is in {other.dtype}")
        hold(np.array_equal(other.dense(), points.dense().astype(dtype)), f"the values of astype({np.dtype(dtype)})")
        hold(points.widened(dtype).dtype == np.result_type(points.dtype, dtype), f"widened({np.dtype(dtype)})")


def check_validate(make: Make, items: list[Any], refused: Sequence[Sequence[Any]]) -> None:
    """validate returns equal points, and refuses bad data with a message that begins with `who`."""
    _same(make(items).validate("check"), make(items), "validate")
    for bad in refused:
        try:
            make(list(bad)).validate("Somebody")
        except InvalidInput as error:
            hold(str(error).startswith("Somebody"), f"the message {str(error)!r} does not say who")
        else:
            raise AssertionError(f"{bad!r} was not refused")


def check_differences(make: Make, items: list[Any], others: Sequence[Points]) -> None:
    """fingerprint() differs for points that differ in a property that matters."""
    own = make(items).fingerprint()
    for other in others:
        hold(other.fingerprint() != own, f"the fingerprint of {other!r} is that of other points")


POINT_CHECKS: tuple[Callable[[Make, list[Any]], None], ...] = (
    check_length,
    check_dtype,
    check_take,
    check_run,
    check_join,
    check_blocks,
    check_fingerprint,
    check_data_sets,
    check_frozen,
    check_vectors,
)


def _index(index: Sequence[int]) -> np.ndarray:
    return np.array(index, np.intp)


def _same(points: Points, wanted: Points, what: str) -> None:
    hold(points.fingerprint() == wanted.fingerprint(), f"{what}: wrong points")
