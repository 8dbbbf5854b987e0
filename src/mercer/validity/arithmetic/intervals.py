"""Interval arithmetic on decimal numbers, rounded outwards: each result contains the exact value."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Arithmetic", "Interval", "Undecided", "Undefined", "enclosing", "exactly"]

_WIDEST = 999_999
_MOST_TURNS = 400
"""The sine of a number with more digits than this is bounded by −1 and 1 only."""


class Undefined(ArithmeticError):
    """The function has no real value at the argument, such as log of a negative number or division by 0."""


class Undecided(ArithmeticError):
    """The interval is too wide to decide; more digits may help."""


class Interval(NamedTuple):
    """All numbers from lo to hi."""

    lo: Decimal
    hi: Decimal


def exactly(value: Decimal | str | int) -> Interval:
    """The interval of one decimal number.

    >>> exactly("0.1")
    Interval(lo=Decimal('0.1'), hi=Decimal('0.1'))
    """
    number = Decimal(value)
    return Interval(number, number)


def enclosing(value: float) -> Interval:
    """A float as it is stored and as it is printed: 0.1 is both 1/10 and the binary number next to it."""
    stored, printed = Decimal(value), Decimal(repr(value))
    return Interval(min(stored, printed), max(stored, printed))


class Arithmetic:
    """Interval arithmetic with a given number of digits, for the operations that formulas have.

    Examples
    --------
    >>> a = Arithmetic(30)
    >>> third = a.div(exactly(1), exactly(3))
    >>> third.lo < third.hi, a.mul(third, exactly(3)).hi >= 1
    (True, True)
    >>> str(a.exp(exactly(1)).lo)[:22]
    '2.71828182845904523536'
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        traps = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
        self._near, self._down, self._up = (
            decimal.Context(digits, rounding, -_WIDEST, _WIDEST, traps=traps)
            for rounding in (decimal.ROUND_HALF_EVEN, decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
        )

    # ---- rational ----------------------------------------------------------------------------------------------------

    def add(self, a: Interval, b: Interval) -> Interval:
        """a + b."""
        return Interval(self._down.add(a.lo, b.lo), self._up.add(a.hi, b.hi))

    def neg(self, a: Interval) -> Interval:
        """−a."""
        return Interval(a.hi.copy_negate(), a.lo.copy_negate())

    def sub(self, a: Interval, b: Interval) -> Interval:
        """a − b."""
        return self.add(a, self.neg(b))

    def mul(self, a: Interval, b: Interval) -> Interval:
        """a · b."""
        low = min(self._down.multiply(p, q) for p in a for q in b)
        return Interval(low, max(self._up.multiply(p, q) for p in a for q in b))

    def div(self, a: Interval, b: Interval) -> Interval:
        """a / b."""
        if b.lo <= 0 <= b.hi:
            raise Undefined("division by 0") if b.lo == b.hi else Undecided("a divisor near 0")
        low = min(self._down.divide(p, q) for p in a for q in b)
        return Interval(low, max(self._up.divide(p, q) for p in a for q in b))

    def square(self, a: Interval) -> Interval:
        """a², never below 0."""
        b = self.abs(a)
        return self.mul(b, b)

    def abs(self, a: Interval) -> Interval:
        """|a|."""
        if a.lo >= 0:
            return a
        return self.neg(a) if a.hi <= 0 else Interval(Decimal(0), max(a.lo.copy_negate(), a.hi))

    def minimum(self, a: Interval, b: Interval) -> Interval:
        """The smaller one."""
        return Interval(min(a.lo, b.lo), min(a.hi, b.hi))

    def maximum(self, a: Interval, b: Interval) -> Interval:
        """The larger one."""
        return Interval(max(a.lo, b.lo), max(a.hi, b.hi))

    def less(self, a: Interval, b: Interval) -> Interval:
        """1 if a < b, otherwise 0."""
        if a.hi < b.lo or a.lo >= b.hi:
            return exactly(int(a.hi < b.lo))
        raise Undecided("a comparison of nearly equal numbers")

    def less_equal(self, a: Interval, b: Interval) -> Interval:
        """1 if a ≤ b, otherwise 0."""
        return self.sub(exactly(1), self.less(b, a))

    def power(self, a: Interval, exponent: float) -> Interval:
        """a^exponent, by multiplication if the exponent is an integer."""
        if exponent < 0:
            return self.div(exactly(1), self.power(a, -exponent))
        if exponent == int(exponent):
            return self._repeated(a, int(exponent))
        if a.lo < 0:
            raise Undefined("a fractional power of a negative number") if a.hi < 0 else Undecided("a base near 0")
        if a.hi == 0:
            return exactly(0)
        top = self.exp(self.mul(enclosing(exponent), self.log(exactly(a.hi))))
        low = self.exp(self.mul(enclosing(exponent), self.log(exactly(a.lo)))) if a.lo > 0 else exactly(0)
        return Interval(low.lo, top.hi)

    def _repeated(self, a: Interval, exponent: int) -> Interval:
        """a^exponent by repeated squaring. An odd power is increasing; an even one is that of |a|."""
        if exponent % 2 == 0:
            a = self.abs(a)
        if a.lo < 0 < a.hi:
            low, high = (
                self._repeated(self.neg(Interval(a.lo, Decimal(0))), exponent),
                self._repeated(Interval(Decimal(0), a.hi), exponent),
            )
            return Interval(self.neg(low).lo, high.hi)
        result, square = exactly(1), a
        while exponent:
            result = self.mul(result, square) if exponent & 1 else result
            exponent >>= 1
            square = self.square(square) if exponent else square
        return result

    # ---- transcendental ----------------------------------------------------------------------------------------------

    def _rounded(self, function: Callable[[Decimal], Decimal], a: Interval) -> Interval:
        """The range of an increasing function that `decimal` rounds correctly."""
        try:
            lo, hi = self._near.next_minus(function(a.lo)), self._near.next_plus(function(a.hi))
        except decimal.Overflow:
            raise Undecided("a number beyond all bounds") from None
        return Interval(lo, hi)

    def exp(self, a: Interval) -> Interval:
        """eᵃ."""
        lo, hi = self._rounded(self._near.exp, a)
        return Interval(max(lo, Decimal(0)), hi)

    def log(self, a: Interval) -> Interval:
        """The natural logarithm."""
        if a.lo <= 0:
            raise Undefined("the logarithm of a number ≤ 0") if a.hi <= 0 else Undecided("a logarithm near 0")
        return self._rounded(self._near.ln, a)

    def sqrt(self, a: Interval) -> Interval:
        """√a."""
        if a.lo < 0:
            raise Undefined("the root of a negative number") if a.hi < 0 else Undecided("a root near 0")
        if a.hi == 0:
            return exactly(0)
        lo, hi = self._rounded(self._near.sqrt, a)
        return Interval(max(lo, Decimal(0)), hi)

    def tanh(self, a: Interval) -> Interval:
        """1 − 2/(e²ᵃ + 1), which is increasing; |tanh| ≤ 1 bounds it where the exponential would overflow."""
        far = Decimal(4 * self.digits)
        ends = []
        for end in a:
            x = exactly(max(min(end, far), -far))
            y = self.sub(exactly(1), self.div(exactly(2), self.add(self.exp(self.add(x, x)), exactly(1))))
            if abs(end) > far:
                y = self.maximum(y, exactly(-1)) if end < 0 else Interval(y.lo, Decimal(1))
                y = Interval(Decimal(-1), y.hi) if end < 0 else y
            ends.append(y)
        return Interval(max(ends[0].lo, Decimal(-1)), min(ends[1].hi, Decimal(1)))

    def cos(self, a: Interval) -> Interval:
        """cos a = sin(a + π/2)."""
        return self.sin(self.add(a, self.mul(pi(self.digits), exactly("0.5"))))

    def sin(self, a: Interval) -> Interval:
        """The Taylor series at the midpoint modulo 2π, widened by the half-width of a (because |sin′| ≤ 1)."""
        if (beyond := max(a.lo.adjusted(), a.hi.adjusted())) > _MOST_TURNS:
            return Interval(Decimal(-1), Decimal(1))
        fine = Arithmetic(self.digits + max(0, beyond) + 10)
        middle = fine._near.divide(fine._near.add(a.lo, a.hi), Decimal(2))
        radius = max(fine._up.subtract(a.hi, middle), fine._up.subtract(middle, a.lo))
        turn = fine.mul(pi(fine.digits), exactly(2))
        turns = fine._near.to_integral_value(fine._near.divide(middle, turn.lo))
        rest = fine.sub(exactly(middle), fine.mul(exactly(turns), turn))
        total, term, n, small = rest, rest, 1, Decimal(1).scaleb(-self.digits - 5)
        while n < 20 or max(term.lo.copy_abs(), term.hi.copy_abs()) > small:
            term = fine.neg(fine.div(fine.mul(term, fine.mul(rest, rest)), exactly((n + 1) * (n + 2))))
            total, n = fine.add(total, term), n + 2
        # From here on the terms alternate and decrease, so the last one bounds the remainder.
        spread = fine._up.add(radius, max(term.lo.copy_abs(), term.hi.copy_abs()))
        lo, hi = fine._down.subtract(total.lo, spread), fine._up.add(total.hi, spread)
        return Interval(max(lo, Decimal(-1)), min(hi, Decimal(1)))


@lru_cache(maxsize=64)
def pi(digits: int) -> Interval:
    """π by Machin's formula, 16 arctan(1/5) − 4 arctan(1/239).

    >>> pi(20).lo < Decimal("3.14159265358979323847") < pi(20).hi + Decimal("1e-19")
    True
    """
    scale = 10 ** (digits + 10)
    value = 16 * _arctan_inverse(5, scale) - 4 * _arctan_inverse(239, scale)
    # Each of fewer than 4·digits terms was rounded down by less than one unit.
    slack = 100 * (digits + 20)
    ends = (Decimal(value + sign * slack).scaleb(-(digits + 10), decimal.Context(digits + 30)) for sign in (-1, 1))
    return Interval(*ends)


def _arctan_inverse(x: int, scale: int) -> int:
    """scale · arctan(1/x) = scale · Σ (−1)ⁿ/((2n + 1)x²ⁿ⁺¹) in integers."""
    term = scale // x
    total, n = term, 1
    while term:
        term //= x * x
        total += (-1 if n % 2 else 1) * (term // (2 * n + 1))
        n += 1
    return total
