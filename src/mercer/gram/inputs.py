"""Input of the tile engine: symmetry of kernels, and arrays in the dtype and in the parts that it reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from mercer.gram.compiler import canonical_form
from mercer.kernels import Function, Kernel
from mercer.kernels.base import trace_or_none
from mercer.kernels.symbolic.expression import Expression
from mercer.points import VectorPoints

__all__ = ["commutes", "is_own_mirror", "narrowed", "parts_of", "seen_to_commute", "wider"]

SEEN = 40
"""Rows on which a formula that is not its own mirror is seen to be symmetric or not."""

Array: TypeAlias = Any


def commutes(kernel: Kernel, expression: Expression | None) -> bool:
    """Whether k(x, z) = k(z, x), by the traced formula, or without one by what its parts state and their formulas."""
    if expression is not None:
        return is_own_mirror(expression)
    if isinstance(kernel, Function) and not kernel.symmetric:
        return False
    return all(commutes(part, trace_or_none(part)) for part in kernel._children().values())


def seen_to_commute(kernel: Kernel, x: VectorPoints, z: VectorPoints) -> bool:
    """Whether k(x, z) = k(z, x) for some of these rows: a formula may be symmetric though it is not its own mirror."""
    X, Z = (_some(one) for one in (x, z))
    with np.errstate(all="ignore"):
        there, back = kernel.block(X, Z), kernel.block(Z, X).T
        size = float(np.max(np.abs(there), initial=0.0, where=np.isfinite(there)))
    return bool(np.allclose(there, back, rtol=1e-9, atol=1e-9 * size, equal_nan=True))


def _some(points: VectorPoints) -> Array:
    """Some rows in float64."""
    index = np.unique(np.linspace(0, len(points) - 1, SEEN, dtype=int))
    rows: Any = points.take(index)
    return np.asarray(rows.dense(), np.float64)


def narrowed(V: Array, dtype: np.dtype[Any]) -> tuple[Array, Any]:
    """V in this dtype, and the exponents p of the factors 2⁻ᵖ of its columns, which prevent overflow in float32."""
    if V.dtype.itemsize <= dtype.itemsize:
        return np.ascontiguousarray(V, dtype), 0
    largest = np.abs(V).max(axis=0, initial=0.0)
    power = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.ldexp(V, -power), dtype), power


def wider(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with the most bytes."""
    return max(dtypes, key=lambda dtype: dtype.itemsize)


RUN = 1 << 17
"""Entries of a run of rows. Temporary arrays of a run are small, while those of all rows would be copies."""


def parts_of(rows: Array) -> Iterator[Array]:
    """Consecutive runs of rows of a few megabytes; at least one run."""
    height = max(1, RUN // max(1, rows.shape[1]))
    for i in range(0, max(rows.shape[0], 1), height):
        yield rows[i : i + height]


# ---- whether a formula is its own mirror, which has x and z exchanged -----------------------------------------------

Signed: TypeAlias = tuple[int, int]
"""A sign and the number of an expression: −e has the number of e."""
Parts: TypeAlias = dict[int, int]
"""The numbers of the terms of a sum with their coefficients, or of the factors of a product with their exponents."""
EXCHANGED = {"self_x": "self_z", "self_z": "self_x"}
COMMUTATIVE = ("minimum", "maximum")
EVEN = ("abs", "cos")


def is_own_mirror(expression: Expression) -> bool:
    """Whether exchanging x and z gives the same formula, up to the order of sums and products and to signs.

    Other formulas may be symmetric, too; then their whole matrix is computed.

    Parameters
    ----------
    expression : Expression
        A traced formula.

    Examples
    --------
    >>> from mercer.kernels import Formula, trace
    >>> [is_own_mirror(trace(Formula(text))) for text in ("(xx - zz)**2 + dot", "xx + 2*dot")]
    [True, False]
    """
    return _is_own_mirror(canonical_form(expression))


@lru_cache(maxsize=256)
def _is_own_mirror(nodes: Any) -> bool:
    """The same for a formula's `canonical_form`."""
    if not any(op in EXCHANGED for op, _, _ in nodes):
        return True
    names = _Names()
    here: list[Signed] = []
    there: list[Signed] = []
    for op, value, args in nodes:
        here.append(names.of(op, value, [here[i] for i in args]))
        there.append(names.of(EXCHANGED.get(op, op), value, [there[i] for i in args]))
    return here[-1] == there[-1]


@dataclass
class _Names:
    """Numbers of expressions: those with one number are equal for all pairs."""

    known: dict[Hashable, int] = field(default_factory=dict)
    terms: dict[int, Parts] = field(default_factory=dict)
    factors: dict[int, Parts] = field(default_factory=dict)

    def of(self, op: str, value: Any, args: list[Signed]) -> Signed:
        """The sign and the number of op(args)."""
        if op in ("add", "sub"):
            (a, left), (b, right) = args
            return self._sum(self._joined(self.terms, a, left, b if op == "add" else -b, right))
        if op in ("mul", "div"):
            (a, left), (b, right) = args
            parts = self._joined(self.factors, 1, left, 1 if op == "mul" else -1, right)
            return a * b, self._number("product", parts, self.factors)
        if op == "neg":
            return -args[0][0], args[0][1]
        if op in EVEN or (op == "pow" and value % 2 == 0):
            args = [(1, args[0][1])]
        name = op, value, *(sorted(args) if op in COMMUTATIVE else args)
        return 1, self.known.setdefault(name, len(self.known))

    def _joined(self, known: dict[int, Parts], a: int, left: int, b: int, right: int) -> Parts:
        """The parts of a sum or of a product of two expressions. They are collected: their number stays small."""
        found: Parts = {}
        for scale, e in ((a, left), (b, right)):
            for part, times in known.get(e, {e: 1}).items():
                found[part] = found.get(part, 0) + scale * times
        return found

    def _sum(self, parts: Parts) -> Signed:
        opposite = {part: -times for part, times in parts.items()}
        sign = 1 if sorted(parts.items()) >= sorted(opposite.items()) else -1
        return sign, self._number("sum", parts if sign > 0 else opposite, self.terms)

    def _number(self, op: str, parts: Parts, known: dict[int, Parts]) -> int:
        found = self.known.setdefault((op, *sorted(parts.items())), len(self.known))
        known[found] = parts
        return found
