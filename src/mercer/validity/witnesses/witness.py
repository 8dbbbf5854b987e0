"""Witnesses: points and coefficients that prove that a function is not a kernel, and how this was confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Expression
from mercer.numerals import counted
from mercer.validity.arithmetic.intervals import Interval, Undecided, Undefined
from mercer.validity.arithmetic.precise import can_evaluate, kernel_value, quadratic_form

__all__ = ["Gap", "Witness", "confirm", "confirm_asymmetry", "confirm_gap"]

DIGITS = (30, 60, 120)
"""Digits of the interval arithmetic; each number is tried if the one before cannot decide."""

MOST_FRACTIONS = 100
"""Up to this many points, values are summed exactly, as fractions."""

VALUES_EXACT_TO = 64
"""Assumed error of the values of a function without a formula, in units in the last place."""


@dataclass(frozen=True)
class Witness:
    """Points x₁ … xₘ and z with zᵀKz < 0, Kᵢⱼ = k(xᵢ, xⱼ).

    Attributes
    ----------
    points : tuple
        Rows as tuples of exact decimals, the objects, or the indices of rows of a precomputed matrix.
    z : tuple of Decimal
        The coefficients; empty for a function that is not symmetric.
    matrix : tuple of tuples of float
        K, rounded to floats.
    value : float
        zᵀKz; for an asymmetric function k(x₁, x₂) − k(x₂, x₁).
    upper_bound : float
        A rigorous upper bound of zᵀKz, below 0.
    how : str
        How the bound was obtained.

    Examples
    --------
    >>> import mercer
    >>> from mercer.kernels import Sigmoid
    >>> print(mercer.check_kernel(Sigmoid(gamma=1.0, coef0=-1.0)).witness)
    1 point with zᵀKz < 0:
      x₁ = (0.1)
      K = [[-0.757362]]
      z = (1)
      zᵀKz = -0.757362 (interval arithmetic with 30 digits: at most -0.7573623242165263)
    """

    points: tuple[Any, ...]
    z: tuple[Decimal, ...]
    matrix: tuple[tuple[float, ...], ...]
    value: float
    upper_bound: float
    how: str

    @property
    def m(self) -> int:
        """The number of points."""
        return len(self.points)

    @property
    def line(self) -> str:
        """The witness in one line."""
        points = ", ".join(f"x{_subscript(i + 1)} = {_point(point)}" for i, point in enumerate(self.points[:4]))
        if not self.z:
            return f"k(x₁, x₂) = {self.matrix[0][1]:.6g} and k(x₂, x₁) = {self.matrix[1][0]:.6g} for {points}"
        more = f" (and {self.m - 4} more)" if self.m > 4 else ""
        z = "" if self.m > 4 else f" and z = ({', '.join(map(str, self.z))})"
        return f"zᵀKz = {self.value:.3g} < 0 for {points}{more}{z}"

    def __str__(self) -> str:
        m = self.m
        shown = [f"  x{_subscript(i + 1)} = {_point(point)}" for i, point in enumerate(self.points[:12])]
        if m > 12:
            shown.append(f"  … and {m - 12} more (.points)")
        if not self.z:
            title = "k(x₁, x₂) ≠ k(x₂, x₁) for"
            last = f"  k(x₁, x₂) = {self.matrix[0][1]:.6g}, k(x₂, x₁) = {self.matrix[1][0]:.6g} ({self.how})"
            return "\n".join([title, *shown, last])
        if m <= 12:
            rows = ", ".join("[" + ", ".join(f"{value:.6g}" for value in row) + "]" for row in self.matrix)
            shown += [f"  K = [{rows}]", f"  z = ({', '.join(map(str, self.z))})"]
        bound = f"{self.how}: at most {self.upper_bound!r}"
        title = f"{counted(m, 'point')} with zᵀKz < 0:"
        return "\n".join([title, *shown, f"  zᵀKz = {self.value:.6g} ({bound})"])


@dataclass(frozen=True)
class Gap:
    """A point x, or two points x and z, at which a function has no value.

    Attributes
    ----------
    points : tuple
        One or two rows as tuples of exact decimals.
    why : str
        The operation that has no value there.

    Examples
    --------
    >>> import mercer
    >>> print(mercer.check_kernel("1 / sqdist").gap)
    k has no value (division by 0) at x₁ = (0)
    """

    points: tuple[Any, ...]
    why: str

    @property
    def advice(self) -> str:
        """Advice on a formula that has a value everywhere."""
        condition = {"division by 0": "the denominator is not 0"}.get(self.why, "k has a value")
        return f"define k there by where(condition, value, other) with the condition that {condition}"

    def __str__(self) -> str:
        points = " and ".join(f"x{_subscript(i + 1)} = {_point(point)}" for i, point in enumerate(self.points))
        return f"k has no value ({self.why}) at {points}"


def _subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _point(point: Any) -> str:
    if isinstance(point, tuple) and all(isinstance(one, Decimal) for one in point):
        shown = ", ".join(map(str, point[:12]))
        return f"({shown}{', …' * (len(point) > 12)})"
    text = repr(point)
    return text if len(text) <= 100 else text[:97] + "..."


def confirm(
    e: Expression | None, points: Sequence[Any], K: NDArray[np.float64], z: Sequence[Decimal], unit: float
) -> Witness | None:
    """The witness if zᵀKz < 0 is certain, from the formula at decimal points, or from values with bounded errors.

    `unit` is the rounding of the values of a function without a formula.
    """
    if e is not None and can_evaluate(e):
        found = _sure(lambda digits: quadratic_form(e, points, z, digits))
        if found is None:
            return None
        bounds, digits = found
        value, how = float((bounds.lo + bounds.hi) / 2), f"interval arithmetic with {digits} digits"
    else:
        bounds, how = _from_values(K, z, unit)
        if bounds.hi >= 0:
            return None
        value = float(bounds.lo)
    matrix = tuple(tuple(map(float, row)) for row in K + 0.0)
    return Witness(tuple(points), tuple(z), matrix, value, float(bounds.hi), how)


def _from_values(K: NDArray[np.float64], z: Sequence[Decimal], unit: float) -> tuple[Interval, str]:
    """zᵀKz from the values, widened by their possible errors."""
    how = f"the values assumed exact to a relative error of {VALUES_EXACT_TO * unit:.1e}"
    if len(z) > MOST_FRACTIONS:
        v = np.array([float(one) for one in z])
        value, size = float(v @ K @ v), float(np.abs(v) @ np.abs(K) @ np.abs(v))
        # Each sum has at most 2m + 8 roundings (Higham 2002, 3.5).
        high = value + (VALUES_EXACT_TO * unit + (2 * len(z) + 8) * float(np.finfo(np.float64).eps)) * size
        return Interval(Decimal(value), Decimal(high)), f"sum in float64 with its rounding bounded, {how}"
    exact = [Fraction(one) for one in z]
    terms = [Fraction(float(K[i, j])) * p * q for i, p in enumerate(exact) for j, q in enumerate(exact)]
    total, whole = sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
    high_exact = total + VALUES_EXACT_TO * Fraction(unit) * whole
    return Interval(_decimal(total), _decimal(high_exact)), f"exact sum, {how}"


def _sure(bounds: Any) -> tuple[Interval, int] | None:
    """Bounds below 0 and the number of digits that they needed; None if the value is not below 0."""
    for digits in DIGITS:
        try:
            found = bounds(digits)
        except Undecided:
            continue
        except (Undefined, ArithmeticError):
            return None
        if found.hi < 0:
            return found, digits
        if found.lo >= 0:
            return None
    return None


def confirm_gap(e: Expression | None, points: Sequence[Any]) -> Gap | None:
    """The gap if k has no real value for a point with itself, or for a pair, such as 1/0; otherwise None."""
    if e is None or not can_evaluate(e):
        return None
    try:
        kernel_value(e, points[0], points[-1], DIGITS[-1])
    except Undefined as reason:
        return Gap(tuple(points), str(reason))
    except ArithmeticError:
        pass
    return None


def confirm_asymmetry(e: Expression | None, x: Any, y: Any, K: NDArray[np.float64]) -> Witness | None:
    """The witness if k(x, y) ≠ k(y, x) is certain; otherwise None."""
    matrix, difference = tuple(tuple(map(float, row)) for row in K), float(K[0, 1] - K[1, 0])
    how = f"the two differ by {abs(difference):.3g}, more than rounding"
    if e is not None and can_evaluate(e):
        apart = None
        for digits in DIGITS:
            try:
                one, other = kernel_value(e, x, y, digits), kernel_value(e, y, x, digits)
            except ArithmeticError:
                continue
            if one.hi < other.lo or other.hi < one.lo:
                apart = digits
                break
        if apart is None:
            return None
        how = f"interval arithmetic with {apart} digits"
    return Witness((x, y), (), matrix, difference, -abs(difference), how)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
