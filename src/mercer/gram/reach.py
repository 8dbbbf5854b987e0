"""Whether a precision holds what a formula makes of rows of a given size: overflow and underflow, found beforehand.

A formula is tried on pairs of rows of the smallest and of the largest norm, in the precision that is asked about and in
extended precision. It is held where the two agree. The sizes are bounds first, one number for all rows; the norms
themselves are computed only where the bounds raise an alarm, or where the formula has values of one row alone, which
may be as small as the smallest row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.gram.compiler import canonical_form
from mercer.gram.program import Views
from mercer.kernels.symbolic.expression import LEAVES, Expression
from mercer.kernels.symbolic.values import evaluate
from mercer.points import VectorPoints, vectors_of

__all__ = ["holds", "kernel_holds", "not_held"]

Array: TypeAlias = Any
Key: TypeAlias = Any
"""A formula's `canonical_form`."""
Size: TypeAlias = tuple[float, float, float, float, int]
"""The smallest and the largest norm of a row, on the left and on the right, and the number of columns."""
Sizes: TypeAlias = tuple[tuple[Views, Size], ...]
"""These of the rows seen through each chain of views."""

AGREEMENT = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-6}
"""Difference from extended precision, relative to √(k(x, x) k(z, z)), that is not rounding. exp(80) in float32 is wrong
by 5e-6; (1 + s/α)^−α in float64 by 1e-7 for α = 10⁹."""
MODEST = (1e-30, 1e30)
"""The sizes of kernel values without a formula that float32 is taken to hold."""
PIECE = 1 << 19
"""Numbers of a run of rows whose norms are computed at a time."""
ROOM = 4.0
"""How far the pairings stay from the ends of the range: norms are rounded, and differences are twice as large."""


def holds(expression: Expression, rows: tuple[Array, ...], dtype: Any) -> bool:
    """Whether entries of `dtype` hold the values of a formula on pairs of these rows.

    Parameters
    ----------
    expression : Expression
        A traced formula.
    rows : tuple of arrays, CSR matrices or vector points
        X, or X and Z.
    dtype : float32 or float64

    Examples
    --------
    >>> from mercer.kernels import Polynomial, trace
    >>> tenth = trace(Polynomial(degree=10, gamma=1.0))
    >>> X = np.array([[1e4, 0.0], [1.0, 1.0]])
    >>> holds(tenth, (X,), np.float32), holds(tenth, (X,), np.float64)
    (False, True)
    """
    sides = vectors_of(rows[0]), vectors_of(rows[-1])
    sizes = [side.largest() for side in sides]
    if not max(sizes) < np.inf:
        return True
    key, kind = canonical_form(expression), np.dtype(dtype)
    chains, alone = _leaves(key)
    width = sides[0].columns
    if not alone and all(chain == () for chain in chains):
        # Up and down to powers of two, so that the answer is kept for rows of that size.
        bounds = [bound for size in sizes for bound in _powers(size, size * width**0.5)]
        # Where the largest rows leave nothing of a value, smaller ones may have more.
        if _tried(key, (((), (*bounds, width)),), kind, something=True):
            return True
    return _tried(key, tuple((chain, _norms(sides, chain)) for chain in chains), kind)


def not_held(kernel: Any, sides: tuple[Any, ...]) -> InvalidInput:
    """What to say of points on which float64 does not hold a kernel's values."""
    size = max(side.largest() for side in sides)
    given = f"{kernel!r} has values that are not finite, or lost, in float64 on rows of up to {size:.1e}"
    return InvalidInput(message("KernelOperator", given, "standardise the columns, or lower the degree"))


def kernel_holds(kernel: Any, expression: Expression | None, sides: tuple[Any, ...], dtype: Any) -> bool:
    """`holds` of a kernel's formula; without one, whether its values are far from the ends of float32's range.

    They are judged by their diagonals, if they are not the rows themselves.
    """
    if expression is not None:
        return holds(expression, sides, dtype)
    if dtype == np.float64:
        return True
    if kernel.space.numbered:
        return MODEST[0] < sides[0].largest() < MODEST[1]
    values = [np.abs(np.asarray(kernel.diagonal(side.rows), np.float64)) for side in sides]
    return MODEST[0] < max(float(np.max(part, initial=0.0)) for part in values) < MODEST[1]


@lru_cache(maxsize=256)
def _leaves(key: Key) -> tuple[tuple[Views, ...], bool]:
    """The chains of views that a formula sees the rows through, and whether it has values of one row alone."""
    own = [(op, value) for op, value, _ in key if op in LEAVES and op != "const"]
    return tuple(dict.fromkeys(value[1] for _, value in own)), any(op != "pairing" for op, _ in own)


def _norms(sides: tuple[VectorPoints, VectorPoints], chain: Views) -> Size:
    """The sizes of the rows seen through a chain of views."""
    (low, high, width), (other, top, _) = (_range(side, chain) for side in sides)
    return low, high, other, top, width


def _powers(low: float, high: float) -> tuple[float, float]:
    """The powers of two around a range; 0 for 0."""
    return (2.0 ** np.floor(np.log2(low)), 2.0 ** np.ceil(np.log2(high))) if high else (0.0, 0.0)


def _range(points: VectorPoints, chain: Views) -> tuple[float, float, int]:
    """The smallest norm that is not 0, the largest, and the number of columns."""
    low, high, width = np.inf, 0.0, 0
    for part in points.blocks(PIECE * points.dtype.itemsize):
        seen = vectors_of(part).astype(np.float64)
        for view in chain:
            seen = vectors_of(view.apply(seen.rows))
        width, size = seen.columns, seen.largest()
        if not (0 < size < np.inf):
            continue
        norms = size * np.sqrt(vectors_of(seen.rows / size).squared_norms())
        low, high = min(low, float(norms.min(where=norms > 0, initial=np.inf))), max(high, float(norms.max()))
    return min(low, high), high, width


@lru_cache(maxsize=1024)
def _tried(key: Key, sizes: Sizes, kind: np.dtype[Any], *, something: bool = False) -> bool:
    """Whether pairs of rows of these sizes raise no alarm in this precision, or agree with a wider one.

    `something`: and are not all 0 if there is an alarm.
    """
    known, alarms, range_ = dict(sizes), set[str](), np.finfo(kind)
    constants = [abs(value) for op, value, _ in key if op == "const" and value]
    if constants and not float(range_.tiny) <= min(constants) <= max(constants) <= float(range_.max):
        alarms.add("underflow")
    try:
        expression = _rebuilt(key)
        with np.errstate(all="call", call=lambda what, _: alarms.add(what)):
            mine, room = _values(expression, known, kind, alarms, kind)
        if not (room and alarms):
            return room
        if something and not np.any(mine[CROSS]):
            return False
        return _agrees(mine, expression, known, kind, "overflow" in alarms)
    except RecursionError:  # a formula of many levels is evaluated by its kernel
        return True


def _agrees(mine: Array, expression: Expression, known: dict[Views, Size], kind: np.dtype[Any], over: bool) -> bool:
    """Whether the values are those of extended precision."""
    wide = np.dtype(np.longdouble)
    if wide.itemsize == kind.itemsize and over:  # nothing wider to compare with
        return False
    with np.errstate(all="ignore"):
        theirs, _ = _values(expression, known, wide, set(), kind)
        root = np.sqrt(np.abs(theirs[SAME]))
        own, size = root[FIRST] * root[SECOND], np.abs(theirs)
        own = np.where(np.isfinite(own), own, size)  # infinity is no measure
        most = np.max(size[CROSS], where=np.isfinite(size[CROSS]), initial=0.0)
        # Of a formula that is 0 where the rows coincide, such as a distance, the largest value is the measure.
        near = np.abs(mine - theirs) <= AGREEMENT[kind] * np.where(own > 0, np.maximum(own, size), most)
    # What no precision has a number for, such as 0/0, is the formula's own affair.
    undefined = ~np.isfinite(theirs) & ~np.isfinite(mine) & (not over)
    return bool(np.all((near | undefined)[CROSS]))


CLOSE = 2.0
"""In the place of a cosine: rows in one direction, whose distance is lost."""
FIRST, SECOND, COSINE = (
    part.ravel() for part in np.meshgrid(range(4), range(4), [1.0, 0.0, -1.0, CLOSE], indexing="ij")
)
"""The pairs: which size each of the two has, of x and then of z, and the cosine of their angle."""
SAME = np.array([np.flatnonzero((i == FIRST) & (i == SECOND) & (COSINE == 1.0))[0] for i in range(4)])
"""Where a row of each size meets itself."""
CROSS = (FIRST < 2) & (SECOND >= 2)
"""Pairs of an x and a z."""


def _values(
    expression: Expression,
    sizes: dict[Views, Size],
    kind: np.dtype[Any],
    alarms: set[str],
    low_precision: np.dtype[Any],
) -> tuple[Array, bool]:
    """The formula on all pairs in one precision, and whether it has all pairings; 0 for what `low_precision` loses."""
    top, room = float(np.finfo(kind).max) / ROOM, True

    def leaf(e: Expression) -> Array:
        nonlocal room
        name, views = e.value
        *norms, width = sizes[views]
        # What is below is rounded by more than a relative error.
        least = ROOM * width * float(np.finfo(low_precision).tiny)
        exact = _pairing(e.op, name, np.array(norms, np.longdouble), int(width), least)
        room = room and bool(np.all(np.abs(exact[CROSS]) <= top))
        lost = (exact != 0) & (np.abs(exact) < least)
        if kind != low_precision or not np.any(lost):
            return exact.astype(kind)
        alarms.add("underflow")
        return np.where(lost, 0, exact).astype(kind)

    value = evaluate(expression, leaf)
    return np.broadcast_to(np.asarray(value, kind), FIRST.shape), room


def _pairing(op: str, name: str, norms: Array, width: int, least: float) -> Array:
    """A pairing of all pairs, or its bound: of what is not Euclidean with the largest ratio of the norms."""
    x, z, root = norms[FIRST], norms[SECOND], np.sqrt(np.longdouble(width))
    if op != "pairing":
        own = x if op == "self_x" else z
        return own * own if name == "dot" else root * own
    cosine = np.minimum(COSINE, 1.0)
    if name == "dot":
        return cosine * x * z
    if name == "min_sum":
        return root * np.where(cosine == 1.0, np.minimum(x, z), np.where(cosine == 0.0, 0.0, -np.maximum(x, z)))
    apart = np.where(cosine == 1.0, np.abs(x - z), np.where(cosine == 0.0, np.hypot(x, z), x + z))
    if name == "mismatches":
        return np.where(apart > 0, width, 0.0)
    apart = apart * apart if name == "sqdist" else root * apart
    return np.where(COSINE == CLOSE, np.minimum(apart, np.longdouble(least) / 2), apart)


def _rebuilt(key: Key) -> Expression:
    """The expression of a structure."""
    nodes: list[Expression] = []
    for op, value, args in key:
        nodes.append(Expression(op, tuple(nodes[i] for i in args), value))
    return nodes[-1]
