"""Compositions of kernels that are kernels again, each by a closure theorem (see `properties`)."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

from mercer.errors import InvalidInput, NotAKernel, message
from mercer.kernels import parameters, properties
from mercer.kernels.base import Array, Kernel
from mercer.kernels.functions import abs as absolute
from mercer.kernels.functions import sqrt, where
from mercer.kernels.mixed import of_mixed_rows, refuse_whole_rows
from mercer.kernels.properties import Properties
from mercer.kernels.special import Constant

__all__ = ["Normalized", "Power", "Product", "Scaled", "Sum", "add", "divide", "multiply", "subtract"]


def is_number(value: Any) -> bool:
    """Whether a value is a real number that a kernel can be added to or multiplied by."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def add(left: Kernel | float, right: Kernel | float) -> Kernel:
    """left + right; a number ≥ 0 is a constant kernel, and 0 is nothing (so that sum([k1, k2]) works)."""
    if isinstance(left, Kernel):
        if isinstance(right, Kernel):
            return Sum(left, right)
        return left if right == 0 else Sum(left, _constant(right))
    if isinstance(right, Kernel):
        return right if left == 0 else Sum(_constant(left), right)
    raise TypeError("one of the two must be a kernel")


def _constant(value: float) -> Constant:
    return Constant(parameters.non_negative("kernel + number", "number", value, "add a number ≥ 0"))


def multiply(left: Kernel | float, right: Kernel | float) -> Kernel:
    """left · right; one of them may be a number ≥ 0."""
    if isinstance(left, Kernel):
        return Product(left, right) if isinstance(right, Kernel) else Scaled(right, left)
    if isinstance(right, Kernel):
        return Scaled(left, right)
    raise TypeError("one of the two must be a kernel")


def divide(kernel: Kernel, value: Any) -> Kernel:
    """kernel / number."""
    if isinstance(value, Kernel):
        raise NotAKernel(message("kernel / kernel", f"{kernel!r} / ({value!r})", "divide by a positive number only"))
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


def require_kernel(who: str, kernel: Any) -> None:
    if not isinstance(kernel, Kernel):
        advice = "give a Kernel; as_kernel(...) makes one of a name"
        raise InvalidInput(message(who, f"{kernel!r} is no kernel", advice))


def require_no_precomputed(who: str, kernel: Kernel) -> None:
    if kernel.domain == "precomputed":
        advice = "transform the matrix before you hand it over"
        raise InvalidInput(message(who, f"{kernel!r} has kernel values for input", advice))


@dataclass(frozen=True, repr=False)
class _Pairwise(Kernel):
    """Two kernels combined entry by entry."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for kernel in (self.left, self.right):
            require_kernel(type(self).__name__, kernel)
        _require_same_domain(type(self).__name__, self.left, self.right)

    @property
    def domain(self) -> str:
        if of_mixed_rows(self):
            return "any"
        domains = {self.left.domain, self.right.domain}
        return "vectors" if "vectors" in domains else domains.pop()

    def as_objects(self, X: Array) -> Array:
        refuse_whole_rows(self)
        return super().as_objects(X)


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
    def folds(self) -> bool:
        return self.left.folds and self.right.folds

    def product(self, X: Array, Z: Array, V: Array) -> Array:
        return self.left.product(X, Z, V) + self.right.product(X, Z, V)

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
        require_kernel("Scaled", self.kernel)
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
    def folds(self) -> bool:
        return self.kernel.folds

    def product(self, X: Array, Z: Array, V: Array) -> Array:
        return self.scale * self.kernel.product(X, Z, V)

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
        require_kernel("Power", self.kernel)
        require_no_precomputed("Power", self.kernel)
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
        require_kernel("Normalized", self.kernel)
        require_no_precomputed("Normalized", self.kernel)

    @property
    def domain(self) -> str:
        return self.kernel.domain

    def formula(self, pair: Any) -> Any:
        k = self.kernel.formula
        return k(pair) * _inverse_root(k(pair.x)) * _inverse_root(k(pair.z))

    def block(self, X: Array, Z: Array) -> Array:
        values = self.kernel.block(X, Z)
        # Where blocks are dear the diagonal is, too, and of X with itself it is there already.
        given = values.diagonal() if Z is X and self.kernel.whole else self.kernel.diagonal(X)
        rows = _inverse_root(given)
        columns = rows if Z is X else _inverse_root(self.kernel.diagonal(Z))
        return values * rows.reshape(-1, 1) * columns.reshape(1, -1)

    def diagonal(self, X: Array) -> Array:
        d = self.kernel.diagonal(X)
        root = _inverse_root(d)
        return d * root * root  # in this order: the square of the root may overflow

    @property
    def folds(self) -> bool:
        return self.kernel.folds

    def product(self, X: Array, Z: Array, V: Array) -> Array:
        columns = _inverse_root(self.kernel.diagonal(Z))
        rows = columns if Z is X else _inverse_root(self.kernel.diagonal(X))
        return rows.reshape(-1, 1) * self.kernel.product(X, Z, columns.reshape(-1, 1) * V)

    @property
    def properties(self) -> Properties:
        return properties.of_normalized(self.kernel.properties)

    def __repr__(self) -> str:
        return f"{self.kernel._bracketed(4)}.normalized()"


def _inverse_root(value: Any) -> Any:
    """1/√value, and 0 for 0; a negative value, which no kernel has, stays NaN."""
    is_nonzero = absolute(value) > 0
    return where(is_nonzero, 1 / sqrt(where(is_nonzero, value, 1.0)), 0.0)
