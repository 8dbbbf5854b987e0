"""Compositions of kernels that are kernels again, each by a closure theorem (see `properties`)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels import parameters, properties
from mercer.kernels.base import Array, Kernel, Resolver
from mercer.kernels.functions import abs as absolute
from mercer.kernels.functions import sqrt, where
from mercer.kernels.properties import Properties
from mercer.kernels.special import Constant
from mercer.kernels.views import Columns, LengthScales, View

__all__ = ["Normalized", "OnColumns", "Power", "Product", "Rescaled", "Scaled", "Sum"]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def add(left: Any, right: Any) -> Kernel:
    """left + right; a number ≥ 0 is a constant kernel, and 0 is nothing (so that sum([k1, k2]) works)."""
    if _is_number(left) or _is_number(right):
        value, kernel = (left, right) if _is_number(left) else (right, left)
        if value == 0:
            return kernel  # type: ignore[no-any-return]
        constant = Constant(parameters.non_negative("kernel + number", "number", value, "add a number ≥ 0"))
        return Sum(constant, kernel) if value is left else Sum(kernel, constant)
    return Sum(left, right) if isinstance(left, Kernel) and isinstance(right, Kernel) else NotImplemented


def multiply(left: Any, right: Any) -> Kernel:
    """left · right; one of them may be a number ≥ 0."""
    if _is_number(left):
        return Scaled(left, right)
    if _is_number(right):
        return Scaled(right, left)
    return Product(left, right) if isinstance(left, Kernel) and isinstance(right, Kernel) else NotImplemented


def divide(kernel: Kernel, value: Any) -> Kernel:
    """kernel / number."""
    if not _is_number(value):
        return NotImplemented
    return Scaled(1.0 / parameters.positive("kernel / number", "number", value), kernel)


def subtract(left: Any, right: Any) -> Kernel:
    """Always refused: a difference of kernels is no kernel in general."""
    given = f"{left!r} - {right!r} is no kernel in general"
    raise NotAKernel(message("kernel - kernel", given, "add kernels with non-negative weights instead"))


def _require_same_domain(who: str, left: Kernel, right: Kernel) -> None:
    domains = {left.domain, right.domain}
    if "precomputed" in domains and len(domains) > 1:
        given = f"{left!r} and {right!r}: one has kernel values for input, the other data"
        raise InvalidInput(message(who, given, "compute all of them first and combine the matrices, as Precomputed()"))


def _require_kernel(who: str, kernel: Any) -> None:
    if not isinstance(kernel, Kernel):
        raise InvalidInput(message(who, f"{kernel!r} is no kernel", "give a Kernel; as_kernel(...) makes one of a name"))


def _require_no_precomputed(who: str, kernel: Kernel) -> None:
    if kernel.domain == "precomputed":
        advice = "transform the matrix before you hand it over"
        raise InvalidInput(message(who, f"{kernel!r} has kernel values for input", advice))


def _viewed(view: View, X: Array, Z: Array) -> tuple[Array, Array]:
    seen = view.apply(X)
    return seen, seen if Z is X else view.apply(Z)


@dataclass(frozen=True, repr=False)
class _Pairwise(Kernel):
    """Two kernels combined entry by entry."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for kernel in (self.left, self.right):
            _require_kernel(type(self).__name__, kernel)
        _require_same_domain(type(self).__name__, self.left, self.right)

    @property
    def domain(self) -> str:
        domains = {self.left.domain, self.right.domain}
        return "vectors" if "vectors" in domains else domains.pop()


@dataclass(frozen=True, repr=False)
class Sum(_Pairwise):
    """k(x, z) = left(x, z) + right(x, z).

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    """

    precedence: ClassVar[int] = 1

    def formula(self, pair: Any) -> Any:
        return self.left.formula(pair) + self.right.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.left.block(X, Z) + self.right.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) + self.right.diagonal(X)

    @property
    def properties(self) -> Properties:
        return properties.of_sum(self.left.properties, self.right.properties)

    def __repr__(self) -> str:
        return f"{self.left._bracketed(1)} + {self.right._bracketed(2)}"


@dataclass(frozen=True, repr=False)
class Product(_Pairwise):
    """k(x, z) = left(x, z) · right(x, z) (Schur's product theorem).

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) * Linear()
    Gaussian(gamma=0.5) * Linear()
    """

    precedence: ClassVar[int] = 2

    def formula(self, pair: Any) -> Any:
        return self.left.formula(pair) * self.right.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.left.block(X, Z) * self.right.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.left.diagonal(X) * self.right.diagonal(X)

    @property
    def properties(self) -> Properties:
        return properties.of_product(self.left.properties, self.right.properties)

    def __repr__(self) -> str:
        return f"{self.left._bracketed(2)} * {self.right._bracketed(3)}"


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """k(x, z) = scale · kernel(x, z), scale ≥ 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (0.5 * Linear())([[2.0]])
    array([[2.]])
    """

    scale: float
    kernel: Kernel
    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _require_kernel("Scaled", self.kernel)
        why = "a negative multiple is no kernel; give a number ≥ 0"
        self._set("scale", parameters.non_negative("Scaled", "scale", self.scale, why))

    @property
    def domain(self) -> str:
        return self.kernel.domain

    def formula(self, pair: Any) -> Any:
        return self.scale * self.kernel.formula(pair)

    def block(self, X: Array, Z: Array) -> Array:
        return self.scale * self.kernel.block(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.scale * self.kernel.diagonal(X)

    @property
    def properties(self) -> Properties:
        return properties.of_scaled(self.kernel.properties, self.scale)

    def __repr__(self) -> str:
        return f"{self.scale!r} * {self.kernel._bracketed(3)}"


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """k(x, z) = kernel(x, z)^exponent, exponent a positive integer; or > 0 where the kernel is infinitely divisible.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> (Linear() ** 2)([[2.0]])
    array([[16.]])
    >>> Gaussian(gamma=1.0) ** 0.5
    Gaussian(gamma=1.0) ** 0.5
    """

    kernel: Kernel
    exponent: float
    precedence: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _require_kernel("Power", self.kernel)
        _require_no_precomputed("Power", self.kernel)
        exponent = parameters.number("Power", "exponent", self.exponent)
        if exponent <= 0:
            given = f"exponent={self.exponent!r} is not positive"
            raise NotAKernel(message("Power", given, "give a positive exponent; Constant(1.0) is the power 0"))
        if exponent != int(exponent) and not self.kernel.properties.infinitely_divisible:
            given = f"the power {exponent} of {self.kernel!r}, which is not infinitely divisible"
            raise NotAKernel(message("Power", given, "give an integer, or a Gaussian-like kernel"))
        self._set("exponent", int(exponent) if exponent == int(exponent) else exponent)

    @property
    def domain(self) -> str:
        return self.kernel.domain

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair) ** self.exponent

    def block(self, X: Array, Z: Array) -> Array:
        return self.kernel.block(X, Z) ** self.exponent

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(X) ** self.exponent

    @property
    def properties(self) -> Properties:
        return properties.of_power(self.kernel.properties, self.exponent)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)} ** {self.exponent!r}"


@dataclass(frozen=True, repr=False)
class Normalized(Kernel):
    """k(x, z) = kernel(x, z)/√(kernel(x, x) · kernel(z, z)), and 0 where one of these is 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0], [0.0, 0.0]], [[1.0, 0.0]])
    array([[0.6],
           [0. ]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        _require_kernel("Normalized", self.kernel)
        _require_no_precomputed("Normalized", self.kernel)

    @property
    def domain(self) -> str:
        return self.kernel.domain

    def formula(self, pair: Any) -> Any:
        k = self.kernel.formula
        return k(pair) * _inverse_root(k(pair.x)) * _inverse_root(k(pair.z))

    def block(self, X: Array, Z: Array) -> Array:
        rows, columns = (_inverse_root(self.kernel.diagonal(data)) for data in (X, Z))
        return self.kernel.block(X, Z) * rows.reshape(-1, 1) * columns.reshape(1, -1)

    def diagonal(self, X: Array) -> Array:
        d = self.kernel.diagonal(X)
        return d * _inverse_root(d) ** 2

    @property
    def properties(self) -> Properties:
        return properties.of_normalized(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.normalized()"


def _inverse_root(value: Any) -> Any:
    """1/√value, and 0 for 0; a negative value, which no kernel has, stays NaN."""
    is_nonzero = absolute(value) > 0
    return where(is_nonzero, 1 / sqrt(where(is_nonzero, value, 1.0)), 0.0)


@dataclass(frozen=True, repr=False)
class OnColumns(Kernel):
    """k(x, z) = kernel(x[columns], z[columns]).

    `columns` are indices from 0, or names, which `resolve` looks up.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().on([1])([[5.0, 2.0]])
    array([[4.]])
    """

    kernel: Kernel
    columns: Any

    def __post_init__(self) -> None:
        _require_kernel("on", self.kernel)
        _require_no_precomputed("on", self.kernel)
        self._set("columns", _columns(self.columns))

    def formula(self, pair: Any) -> Any:
        return self.kernel.formula(pair.through(Columns(self.columns)))

    def block(self, X: Array, Z: Array) -> Array:
        self._require_resolved()
        return self.kernel.block(*_viewed(Columns(self.columns), X, Z))

    def diagonal(self, X: Array) -> Array:
        self._require_resolved()
        return self.kernel.diagonal(Columns(self.columns).apply(self._rows(X)))

    def check_data(self, X: Array) -> None:
        self.kernel.check_data(Columns(self.columns).apply(X))

    @property
    def is_resolved(self) -> bool:
        return not any(isinstance(column, str) for column in self.columns) and self.kernel.is_resolved

    def _resolved(self, X: Array, resolver: Resolver) -> Kernel:
        indices = tuple(c if isinstance(c, int) else resolver.column(c) for c in self.columns)
        # A name inside is a name of the same table, but an index inside counts the columns chosen here.
        inside = replace(resolver, column=lambda name: _position(name, indices, resolver))
        rows = None if X is None else Columns(indices).apply(X)
        return OnColumns(self.kernel._resolved(rows, inside), indices)

    @property
    def properties(self) -> Properties:
        return properties.of_on_columns(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.on({list(self.columns)!r})"


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
        _require_kernel("with_length_scales", self.kernel)
        _require_no_precomputed("with_length_scales", self.kernel)
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
