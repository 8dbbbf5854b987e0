"""Kernels that see the rows through a view: some of the columns, or columns in other units."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels import parameters, properties
from mercer.kernels.algebra import require_kernel, require_no_precomputed
from mercer.kernels.base import Array, Kernel
from mercer.kernels.mixed import as_mixed_rows, numbers_of, of_mixed_rows, of_objects
from mercer.kernels.properties import Properties
from mercer.kernels.resolution import Resolver
from mercer.kernels.views import Columns, LengthScales, View

__all__ = ["OnColumns", "Rescaled"]

SPELLED = 8
"""Columns in a row that are shown one by one."""


def _viewed(view: View, X: Array, Z: Array) -> tuple[Array, Array]:
    seen = view.apply(X)
    return seen, seen if Z is X else view.apply(Z)


@dataclass(frozen=True, repr=False)
class OnColumns(Kernel):
    """k(x, z) = kernel(x[columns], z[columns]).

    `columns` are indices from 0, or names, which `resolve` looks up. A kernel on objects, such as sequences, is on one
    column of an array of objects, and may be added to kernels on columns of numbers:

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear, Spectrum
    >>> Linear().on([1])([[5.0, 2.0]])
    array([[4.]])
    >>> rows = np.array([[2.0, "abab"], [1.0, "ab"]], dtype=object)
    >>> (Linear().on([0]) + Spectrum(k=2).on([1]))(rows)
    array([[9., 4.],
           [4., 2.]])
    """

    kernel: Kernel
    columns: Any
    reads: ClassVar[str] = "columns"

    def __post_init__(self) -> None:
        require_kernel("on", self.kernel)
        require_no_precomputed("on", self.kernel)
        self._set("columns", _columns(self.columns))
        if of_objects(self.kernel) and len(self.columns) > 1:
            given = f"{self.kernel!r} on {len(self.columns)} columns"
            raise InvalidInput(message("on", given, "a kernel of objects is on one column: give each its own kernel"))

    @property
    def domain(self) -> str:
        return "any" if of_mixed_rows(self) else "vectors"

    def as_objects(self, X: Array) -> Array:
        rows = as_mixed_rows(X, max((c for c in self.columns if isinstance(c, int)), default=0) + 1)
        if self.is_resolved:
            self._seen(rows)
        return rows

    @property
    def folds(self) -> bool:
        return of_objects(self.kernel) and self.kernel.folds

    def product(self, X: Array, Z: Array, V: Array) -> Array:
        seen = self._seen(X)
        return self.kernel.product(seen, seen if Z is X else self._seen(Z), V)

    def _seen(self, X: Array) -> Array:
        """The chosen columns: of objects the column itself, of numbers among objects a table of numbers."""
        rows = Columns(self.columns).apply(X if hasattr(X, "shape") else as_mixed_rows(X))
        if of_objects(self.kernel):
            return self.kernel.as_objects(rows[:, 0])
        return numbers_of(rows) if getattr(rows, "dtype", None) == np.dtype(object) else rows

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair.through(Columns(self.columns)))

    def block(self, X: Array, Z: Array) -> Array:
        self._require_resolved()
        seen = self._seen(X)
        return self.kernel.block(seen, seen if Z is X else self._seen(Z))

    def diagonal(self, X: Array) -> Array:
        self._require_resolved()
        mixed = getattr(X, "dtype", None) == np.dtype(object)
        return self.kernel.diagonal(self._seen(X if mixed else self._rows(X)))

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(self._seen(X))

    @property
    def is_resolved(self) -> bool:
        return not any(isinstance(column, str) for column in self.columns) and self.kernel.is_resolved

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        indices = tuple(c if isinstance(c, int) else resolver.column(c) for c in self.columns)
        # A name inside is a name of the same table, but an index inside counts the columns chosen here.
        inside = replace(resolver, column=lambda name: _position(name, indices, resolver))
        rows = None if X is None else OnColumns(self.kernel, indices)._seen(X)
        return OnColumns(self.kernel._resolved(rows, inside), indices)

    @property
    def properties(self) -> Properties:
        return properties.of_on_columns(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.on({_shown(self.columns)})"


def _shown(columns: tuple[int | str, ...]) -> str:
    """As they can be given; many in a row by the first of them and the one after the last."""
    first, count = columns[0], len(columns)
    if count > SPELLED and isinstance(first, int) and columns == tuple(range(first, first + count)):
        return f"range({first}, {first + count})"
    return repr(list(columns))


def _position(name: str, indices: tuple[int, ...], resolver: Resolver) -> int:
    index = resolver.column(name)
    if index not in indices:
        raise InvalidInput(message("on", f"column {name!r} is not among those chosen outside", "choose it there, too"))
    return indices.index(index)


def _columns(columns: Any) -> tuple[int | str, ...]:
    if isinstance(columns, slice):
        raise InvalidInput(message("on", f"columns={columns!r}", "write the indices out: list(range(0, 3))"))
    if isinstance(columns, (str, numbers.Integral)):
        columns = (columns,)
    if not isinstance(columns, Iterable):
        raise InvalidInput(message("on", f"columns={columns!r}", "give indices or names, such as [0, 2]"))
    given = columns if isinstance(columns, tuple) else tuple(columns)
    for column in given:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, numbers.Integral)):
            raise InvalidInput(message("on", f"column {column!r}", "give indices or names, such as [0, 2]"))
        if not isinstance(column, str) and column < 0:
            raise InvalidInput(message("on", f"column {column}", "count columns from 0"))
    if not given or len(set(given)) < len(given):
        what = "a column twice" if given else "no columns"
        raise InvalidInput(message("on", f"{what} in {list(given)}", "name each column once"))
    exact = tuple(str(column) if isinstance(column, str) else int(column) for column in given)
    # The same object where nothing changed: scikit-learn's clone compares by identity.
    return given if all(type(a) is type(b) for a, b in zip(given, exact, strict=True)) else exact


@dataclass(frozen=True, repr=False)
class Rescaled(Kernel):
    """k(x, z) = kernel(x/scales, z/scales), column by column.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().with_length_scales([1.0, 2.0])([[1.0, 2.0]])
    array([[2.]])
    """

    kernel: Kernel
    scales: Any

    def __post_init__(self) -> None:
        require_kernel("with_length_scales", self.kernel)
        require_no_precomputed("with_length_scales", self.kernel)
        self._set("scales", _scales(self.scales))

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair.through(LengthScales(self.scales)))

    def block(self, X: Array, Z: Array) -> Array:
        return self.kernel.block(*_viewed(LengthScales(self.scales), X, Z))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(LengthScales(self.scales).apply(self._rows(X)))

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(LengthScales(self.scales).apply(X))

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        rows = None if X is None else LengthScales(self.scales).apply(X)
        return Rescaled(self.kernel._resolved(rows, resolver), self.scales)

    @property
    def properties(self) -> Properties:
        return properties.of_rescaled_columns(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.with_length_scales({list(self.scales)!r})"


def _scales(scales: Any) -> tuple[float, ...]:
    if isinstance(scales, str) or not isinstance(scales, Iterable):
        raise InvalidInput(message("with_length_scales", f"scales={scales!r}", "give one number for each column"))
    given = scales if isinstance(scales, tuple) else tuple(scales)
    exact = tuple(parameters.positive("with_length_scales", "scale", scale) for scale in given)
    if not all(math.isfinite(1.0 / scale) for scale in exact):
        raise NotAKernel(message("with_length_scales", "a length-scale too small to divide by", "rescale the column"))
    return given if all(type(scale) is float for scale in given) else exact
