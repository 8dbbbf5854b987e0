"""Whether a formula overflows or underflows in a precision, for rows of given norms.

A formula is tried on pairs of rows with the smallest and the largest norm, in the given precision and in extended
precision. The given precision holds the values if both agree. Where long doubles are float64, the second trial takes
the smallest normal number for what is lost in it, and refuses overflows in float64 and lost values of one row alone.
First the norms are bounded by the largest entry of all rows. Norms are computed only if the trial with the bounds
overflows or underflows, or if the formula has values of one row alone, which may be as small as the smallest row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.gram.compiler import canonical_form
from mercer.gram.program import Views
from mercer.kernels.symbolic.expression import LEAVES, Expression, leaves_of
from mercer.kernels.symbolic.values import evaluate
from mercer.points import DevicePoints, VectorPoints, vectors_of

__all__ = ["all_modest", "holds", "kernel_holds", "not_held"]

Array: TypeAlias = Any
Key: TypeAlias = Any
"""A formula's `canonical_form`."""
Size: TypeAlias = tuple[float, float, float, float, int]
"""The smallest and the largest norm of a row, on the left and on the right, and the number of columns."""
Sizes: TypeAlias = tuple[tuple[Views, Size], ...]
"""The sizes of the images of the rows by each chain of views."""

AGREEMENT = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-6}
"""Differences from extended precision, relative to √(k(x, x) k(z, z)), above this are more than rounding. exp(80) in
float32 has an error of 5e-6, and (1 + s/α)^−α in float64 one of 1e-7 for α = 10⁹."""
EXTENDED = np.dtype(np.longdouble)
"""On some machines it is float64."""
MODEST = (1e-30, 1e30)
"""For kernels without a formula, float32 is assumed to hold values within these bounds."""
PIECE = 1 << 19
"""Entries of a run of rows whose norms are computed at a time."""
ROOM = 4.0
"""A safety factor for the range of pairings: norms are rounded, and a difference can be twice as large as a row."""


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
        # Rounded to powers of two, so that the cached answer serves rows of similar sizes.
        bounds = [bound for size in sizes for bound in _powers(size, size * width**0.5)]
        # If the largest rows have only zeros as values, smaller rows may have others.
        if _tried(key, (((), (*bounds, width)),), kind, something=True):
            return True
    return _tried(key, tuple((chain, _norms(sides, chain)) for chain in chains), kind)


def not_held(kernel: Any, sides: tuple[Any, ...]) -> InvalidInput:
    """The error for points on which a kernel's values overflow or underflow in float64."""
    size = max(side.largest() for side in sides)
    given = f"{kernel!r} has values that are not finite, or lost, in float64 on rows of up to {size:.1e}"
    return InvalidInput(message("KernelOperator", given, "standardise the columns, or lower the degree"))


def kernel_holds(kernel: Any, expression: Expression | None, sides: tuple[Any, ...], dtype: Any) -> bool:
    """`holds` for a kernel's formula; without one, whether its diagonal, or its precomputed values, are `MODEST`."""
    if expression is not None:
        return holds(expression, sides, dtype)
    if dtype == np.float64:
        return True
    if kernel.space.numbered:
        return MODEST[0] < sides[0].largest() < MODEST[1]
    return all_modest(kernel.diagonal(side.rows) for side in sides)


def all_modest(diagonals: Iterable[Any]) -> bool:
    """Whether the largest of these values of k(x, x) is `MODEST`."""
    largest = (float(np.max(np.abs(np.asarray(values, np.float64)), initial=0.0)) for values in diagonals)
    return MODEST[0] < max(largest) < MODEST[1]


@lru_cache(maxsize=256)
def _leaves(key: Key) -> tuple[tuple[Views, ...], bool]:
    """The chains of views in a formula, and whether the formula has values of one row alone."""
    own = [(op, value) for op, value, _ in key if op in LEAVES and op != "const"]
    return tuple(dict.fromkeys(value[1] for _, value in own)), any(op != "pairing" for op, _ in own)


def _norms(sides: tuple[VectorPoints, VectorPoints], chain: Views) -> Size:
    """The sizes of the images of the rows by a chain of views."""
    (low, high, width), (other, top, _) = (_range(side, chain) for side in sides)
    return low, high, other, top, width


def _powers(low: float, high: float) -> tuple[float, float]:
    """The powers of two around a range; 0 for 0."""
    return (2.0 ** np.floor(np.log2(low)), 2.0 ** np.ceil(np.log2(high))) if high else (0.0, 0.0)


def _range(points: VectorPoints, chain: Views) -> tuple[float, float, int]:
    """The smallest norm that is not 0, the largest norm, and the number of columns."""
    low, high, width = np.inf, 0.0, 0
    for part in points.blocks(PIECE * points.dtype.itemsize):
        seen = vectors_of(part).astype(np.float64)
        for view in chain:
            seen = vectors_of(view.apply(seen.dense() if isinstance(seen, DevicePoints) else seen.rows))
        width, size = seen.columns, seen.largest()
        if not (0 < size < np.inf):
            continue
        if isinstance(seen, DevicePoints):
            norms = np.sqrt(seen.squared_norms())
        else:
            norms = size * np.sqrt(vectors_of(seen.rows / size).squared_norms())
        low, high = min(low, float(norms.min(where=norms > 0, initial=np.inf))), max(high, float(norms.max()))
    return min(low, high), high, width


@lru_cache(maxsize=1024)
def _tried(key: Key, sizes: Sizes, kind: np.dtype[Any], *, something: bool = False) -> bool:
    """Whether values for pairs of rows of these sizes neither overflow nor underflow, or agree with extended precision.

    With `something`, values that are all 0 do not count if there was an overflow or underflow.
    """
    known, alarms = dict(sizes), set[str]()
    if any(abs(value) > float(np.finfo(kind).max) for op, value, _ in key if op == "const"):
        alarms.add("underflow")
    try:
        expression = _rebuilt(key)
        nodes = _Flushed(kind, alarms)
        with np.errstate(all="call", call=lambda what, _: alarms.add(what)):
            mine, room = _values(expression, known, kind, nodes, kind)
        if not (room and alarms):
            return room
        if something and not np.any(mine[CROSS]):
            return False
        return _agrees(mine, expression, known, kind, nodes, "overflow" in alarms)
    except RecursionError:  # a formula of many levels is evaluated by its kernel
        return True


def _agrees(
    mine: Array, expression: Expression, known: dict[Views, Size], kind: np.dtype[Any], nodes: _Flushed, over: bool
) -> bool:
    """Whether the values are those of extended precision."""
    if over and EXTENDED.itemsize == kind.itemsize:
        return False
    lost = np.finfo(np.float64).tiny if EXTENDED.itemsize == 8 else 0.0
    with np.errstate(all="ignore"):
        wider = _Flushed(EXTENDED, set(), nodes, lost=float(lost))
        theirs, _ = _values(expression, known, EXTENDED, wider, kind)
        if lost and "own value" in wider.alarms:  # values of one row alone may be divisors
            return False
        root = np.sqrt(np.abs(theirs[SAME]))
        own, size = root[FIRST] * root[SECOND], np.abs(theirs)
        own = np.where(np.isfinite(own), own, size)  # an infinite value cannot scale an error
        most = np.max(size[CROSS], where=np.isfinite(size[CROSS]), initial=0.0)
        # For a formula that is 0 for equal rows, such as a distance, errors are relative to the largest value.
        near = np.abs(mine - theirs) <= AGREEMENT[kind] * np.where(own > 0, np.maximum(own, size), most)
    # Values that are undefined in every precision, such as 0/0, belong to the formula.
    undefined = ~np.isfinite(theirs) & ~np.isfinite(mine) & (not over)
    return bool(np.all((near | undefined)[CROSS]))


CLOSE = 2.0
"""Instead of a cosine: rows in the same direction, whose distance is lost by rounding."""
FIRST, SECOND, COSINE = (
    part.ravel() for part in np.meshgrid(range(4), range(4), [1.0, 0.0, -1.0, CLOSE], indexing="ij")
)
"""The pairs: the indices of the sizes of both rows (those of x, then those of z), and the cosine of their angle."""
SAME = np.array([np.flatnonzero((i == FIRST) & (i == SECOND) & (COSINE == 1.0))[0] for i in range(4)])
"""The pairs of a row of each size with itself."""
CROSS = (FIRST < 2) & (SECOND >= 2)
"""Pairs of an x and a z."""


def _values(
    expression: Expression,
    sizes: dict[Views, Size],
    kind: np.dtype[Any],
    nodes: _Flushed,
    low_precision: np.dtype[Any],
) -> tuple[Array, bool]:
    """The formula on all pairs in one precision, and whether it has all pairings, with `nodes.lost` for lost ones."""
    top, room = float(np.finfo(kind).max) / ROOM, True

    def leaf(e: Expression) -> Array:
        nonlocal room
        name, views = e.value
        *norms, width = sizes[views]
        # What is below is rounded by more than a relative error.
        least = ROOM * width * float(np.finfo(low_precision).tiny)
        single = low_precision == np.float32
        exact = _pairing(e.op, name, np.array(norms, EXTENDED), int(width), least, single=single)
        room = room and bool(np.all(np.abs(exact[CROSS]) <= top))
        lost = (exact != 0) & (np.abs(exact) < least)
        if kind != low_precision or not np.any(lost):
            return exact.astype(kind)
        nodes.alarms.add("underflow")
        return np.asarray(np.where(lost, np.copysign(nodes.lost, exact), exact), kind)

    value = evaluate(expression, leaf, nodes)
    return np.broadcast_to(np.asarray(value, kind), FIRST.shape), room


VANISHING = ("mul", "div", "pow", "exp")
"""Operations whose values may be 0 though none of their arguments is."""


class _Flushed(dict[Expression, Any]):
    """Values of nodes, with 0, or `lost`, for those below the smallest normal number, which have fewer digits.

    If a formula keeps its value without them, it keeps it with their roundings. Rows whose distance is lost are equal,
    so that their conditions are those of `others`, if given: a formula may jump at distance 0.
    """

    def __init__(
        self, kind: np.dtype[Any], alarms: set[str], others: _Flushed | None = None, lost: float = 0.0
    ) -> None:
        super().__init__()
        self.least, self.alarms, self.others, self.lost = float(np.finfo(kind).tiny), alarms, others, lost

    def __setitem__(self, node: Expression, value: Any) -> None:
        if self.others is not None and node.op in ("less", "less_equal"):
            value = np.where(COSINE == CLOSE, self.others[node], value)
        lost = (value != 0) & (np.abs(value) < self.least)
        if self.lost and node.op in VANISHING:
            lost = lost | self._vanished(node, value)
        if np.any(lost):
            self.alarms.add("underflow" if any(leaf.op == "pairing" for leaf in leaves_of(node)) else "own value")
            signed = np.copysign(self.lost, value)
            value = float(signed) if node.op == "const" else np.where(lost, signed, value)
        super().__setitem__(node, value)

    def _vanished(self, node: Expression, value: Any) -> Any:
        """Where a value is 0 by underflow."""
        zero = value == 0
        for arg in node.args:
            zero = zero & (np.isfinite(self[arg]) if node.op == "exp" else self[arg] != 0)
        return zero


def _pairing(op: str, name: str, norms: Array, width: int, least: float, *, single: bool) -> Array:
    """A pairing for all pairs; for those that norms do not determine, the bound with the largest ratio of norms."""
    x, z, root = norms[FIRST], norms[SECOND], np.sqrt(EXTENDED.type(width))
    if op != "pairing":
        own = x if op == "self_x" else z
        return _product(own, own) if name == "dot" else root * own
    cosine = np.minimum(COSINE, 1.0)
    if name == "dot":
        return cosine * _product(x, z)
    if name == "min_sum":
        return root * np.where(cosine == 1.0, np.minimum(x, z), np.where(cosine == 0.0, 0.0, -np.maximum(x, z)))
    apart = np.where(cosine == 1.0, np.abs(x - z), np.where(cosine == 0.0, np.hypot(x, z), x + z))
    if name == "mismatches":
        return np.where(apart > 0, width, 0.0)
    # Rows of equal norms can be close, too. In float64 that would refuse formulas with no value at distance 0.
    close = x + z if single else np.abs(x - z)
    apart, close = (_product(one, one) if name == "sqdist" else root * one for one in (apart, close))
    return np.where(COSINE == CLOSE, np.minimum(close, EXTENDED.type(least) / 2), apart)


def _product(a: Array, b: Array) -> Array:
    """a b ≥ 0; the smallest number where it would be 0 by underflow."""
    with np.errstate(under="ignore"):  # the product's underflow is the one to hear of
        least = np.nextafter(a.dtype.type(0), a.dtype.type(1))
    return np.where((a > 0) & (b > 0), np.maximum(a * b, least), 0)


def _rebuilt(key: Key) -> Expression:
    """The expression with this canonical form."""
    nodes: list[Expression] = []
    for op, value, args in key:
        nodes.append(Expression(op, tuple(nodes[i] for i in args), value))
    return nodes[-1]
