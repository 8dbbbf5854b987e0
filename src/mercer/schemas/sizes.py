"""The sizes of the symbols of a schema in a model."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["SchemaError", "Sizes"]


class SchemaError(ValueError):
    """A fitted model differs from the schema of its class; the message names the attribute."""


@functools.cache
def _axes(shape: str) -> tuple[tuple[str, int], ...]:
    """For each axis the symbol and the number added to it, or "" and the length of an axis of fixed length.

    >>> _axes("n+1 *targets 5")
    (('n', 1), ('*targets', 0), ('', 5))
    """
    parted = (token.partition("+") for token in shape.split())
    return tuple(("", int(one)) if one.isdecimal() else (one, int(more or 0)) for one, _, more in parted)


class Sizes:
    """The sizes of the symbols in a model: the first attribute with a symbol sets its size, and the others must agree.

    >>> sizes = Sizes()
    >>> sizes.match("dual_coef_", "n *targets", (60, 2))
    >>> sizes["n"], sizes["*targets"]
    (60, (2,))
    >>> sizes.match("intercept_", "*targets", (3,))
    Traceback (most recent call last):
        ...
    mercer.schemas.sizes.SchemaError: intercept_: *targets is (3,), and by dual_coef_ it is (2,)
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, list[str]]] = {}

    def __getitem__(self, symbol: str) -> Any:
        return self._known[symbol][0]

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._known

    def set(self, name: str, symbol: str, size: Any) -> None:
        """Set the size of a symbol by the attribute `name`; raise SchemaError if another attribute disagrees."""
        known, names = self._known.setdefault(symbol, (size, []))
        names.append(name)
        if known != size:
            raise SchemaError(f"{name}: {symbol} is {size}, and by {names[0]} it is {known}")

    def is_shared(self, symbol: str) -> bool:
        """Whether more than one attribute has the symbol."""
        return len(self._known.get(symbol, (0, []))[1]) > 1

    def match(self, name: str, shape: str, given: tuple[int, ...]) -> None:
        """Compare a shape with the declared one, in which a symbol with a star stands for any number of axes."""
        axes, place = _axes(shape), 0
        stars = sum(symbol[:1] == "*" for symbol, _ in axes)
        extra = len(given) - (len(axes) - stars)
        if extra < 0 or (extra and not stars):
            raise SchemaError(f"{name} has the shape {given}, not ({', '.join(shape.split())})")
        for symbol, more in axes:
            if symbol[:1] == "*":
                self.set(name, symbol, given[place : place + extra])
                place += extra
                continue
            if symbol:
                self.set(name, symbol, given[place] - more)
            elif given[place] != more:
                raise SchemaError(f"{name} has the shape {given}, not ({', '.join(shape.split())})")
            place += 1
