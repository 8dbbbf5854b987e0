"""Pairings of two rows: arrays of values that define them, and symbols for tracing."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NoReturn, Protocol

from mercer.errors import CannotTrace, InvalidInput, MercerError, message
from mercer.kernels.symbolic import distances
from mercer.kernels.symbolic.expression import Expression, constant, tracing
from mercer.kernels.symbolic.views import View
from mercer.points import DevicePoints

__all__ = ["PAIRINGS", "ArrayPair", "Pair", "SymbolPair", "trace"]

PAIRINGS = ("dot", "sqdist", "l1", "min_sum", "chi2", "mismatches")


class _Pairings:
    """Raises errors with advice for unknown names, and for arithmetic with a pair instead of its pairings."""

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        # An existing attribute that failed raises its own error, and Python itself asks for names with "__".
        if name.startswith("__") or hasattr(type(self), name):
            return object.__getattribute__(self, name)
        near = get_close_matches(name, PAIRINGS, n=1)
        do = f"did you mean {near[0]!r}? The pairings are" if near else "the pairings are"
        text = message("pair", f"no pairing {name!r}", f"{do} {', '.join(PAIRINGS)}, xx and zz")
        raise AttributeError(text, name=name, obj=self)

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        do = (
            "write pair.dot for ⟨x, z⟩, pair.sqdist for ‖x − z‖², pair.l1 for Σ|xᵢ − zᵢ|, pair.mismatches for xᵢ ≠ zᵢ, "
        )
        do += "pair.x.dot for ⟨x, x⟩; use kernel.on([0]) for some of the columns"
        given = "a formula computes with pairings of two rows, and not with pair, pair.x or pair.z themselves"
        raise CannotTrace(message("pair", given, do))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _refused
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __iter__ = __len__ = __float__ = __array__ = _refused
    __array_ufunc__ = __array_function__ = _refused
    __int__ = __index__ = __round__ = __floor__ = __ceil__ = __trunc__ = _refused
    __eq__ = __ne__ = _refused  # type: ignore[assignment]


class Pair(Protocol):
    """The pairings of two rows x and z, from which a formula is computed."""

    @property
    def dot(self) -> Any:
        """⟨x, z⟩."""

    @property
    def sqdist(self) -> Any:
        """‖x − z‖²."""

    @property
    def l1(self) -> Any:
        """‖x − z‖₁."""

    @property
    def min_sum(self) -> Any:
        """Σ min(xᵢ, zᵢ)."""

    @property
    def chi2(self) -> Any:
        """Σ (xᵢ − zᵢ)²/(xᵢ + zᵢ), where 0/0 = 0."""

    @property
    def mismatches(self) -> Any:
        """The number of coordinates with xᵢ ≠ zᵢ."""

    @property
    def xx(self) -> Any:
        """⟨x, x⟩."""

    @property
    def zz(self) -> Any:
        """⟨z, z⟩."""

    @property
    def x(self) -> Pair:
        """The pair (x, x)."""

    @property
    def z(self) -> Pair:
        """The pair (z, z)."""

    def through(self, view: View) -> Pair:
        """The pair of the two rows as the view maps them."""


class ArrayPair(_Pairings):
    """All pairs of a row of X (n × d) with a row of Z (m × d): each pairing is an n × m array in the dtype of the rows.

    It defines the results of faster evaluations, so sums are in float64 and rounded once. In `ArrayPair(X, X)` the
    distance of the pair (i, i) is exactly 0.

    Parameters
    ----------
    X, Z : NumPy arrays, PyTorch tensors, or CSR matrices (for `dot` and `sqdist` only)

    Examples
    --------
    >>> import numpy as np
    >>> pair = ArrayPair(np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[3.0, 1.0]]))
    >>> pair.sqdist
    array([[9.],
           [2.]])
    """

    def __init__(self, X: Any, Z: Any) -> None:
        self.X, self.Z = distances.matched(X, Z)

    @cached_property
    def dot(self) -> Any:
        return distances.dot(self.X, self.Z)

    @cached_property
    def sqdist(self) -> Any:
        return distances.sqdist(self.X, self.Z)

    @cached_property
    def l1(self) -> Any:
        return distances.l1(self.X, self.Z)

    @cached_property
    def min_sum(self) -> Any:
        return distances.min_sum(self.X, self.Z)

    @cached_property
    def chi2(self) -> Any:
        return distances.chi2(self.X, self.Z)

    @cached_property
    def mismatches(self) -> Any:
        return distances.mismatches(self.X, self.Z)

    @property
    def xx(self) -> Any:
        return self.x.dot

    @property
    def zz(self) -> Any:
        return self.z.dot

    @cached_property
    def x(self) -> _SelfArrays:
        return _SelfArrays(self.X, (-1, 1))

    @cached_property
    def z(self) -> _SelfArrays:
        return _SelfArrays(self.Z, (1, -1))

    def through(self, view: View) -> ArrayPair:
        """The pairs of the rows as the view maps them."""
        X = _seen(view, self.X)
        return ArrayPair(X, X if self.Z is self.X else _seen(view, self.Z))


class _SelfArrays(_Pairings):
    """Pairings of each row with itself, as an n × 1 array for the rows of X or a 1 × m array for those of Z."""

    def __init__(self, rows: Any, shape: tuple[int, int]) -> None:
        self.rows, self.shape = rows, shape

    @cached_property
    def dot(self) -> Any:
        return distances.squared_norms(self.rows).reshape(self.shape)

    @cached_property
    def min_sum(self) -> Any:
        return distances.row_sums(self.rows).reshape(self.shape)

    @cached_property
    def sqdist(self) -> Any:
        return distances.zeros(self.rows).reshape(self.shape)

    @property
    def l1(self) -> Any:
        return self.sqdist

    @property
    def chi2(self) -> Any:
        return self.sqdist

    @property
    def mismatches(self) -> Any:
        return self.sqdist

    @property
    def xx(self) -> Any:
        return self.dot

    @property
    def zz(self) -> Any:
        return self.dot

    @property
    def x(self) -> _SelfArrays:
        return self

    @property
    def z(self) -> _SelfArrays:
        return self

    def through(self, view: View) -> _SelfArrays:
        return _SelfArrays(_seen(view, self.rows), self.shape)


def _seen(view: View, rows: Any) -> Any:
    """The rows as the view maps them; those on a device are copied first."""
    return view.apply(rows.dense() if isinstance(rows, DevicePoints) else rows)


@dataclass(frozen=True, eq=False)
class SymbolPair(_Pairings):
    """The pair as symbols: each pairing is a leaf `Expression` with its kind and the views of the rows.

    Parameters
    ----------
    views : tuple of View
        The maps that were applied to both rows.
    op : "pairing", "self_x" or "self_z"
        Whether the pairings are of x and z, of x with itself, or of z with itself.

    Examples
    --------
    >>> SymbolPair().sqdist
    sqdist
    """

    views: tuple[View, ...] = ()
    op: str = "pairing"

    def _leaf(self, kind: str, op: str | None = None) -> Expression:
        return Expression(op or self.op, (), (kind, self.views))

    def _distance(self, kind: str) -> Expression:
        return self._leaf(kind) if self.op == "pairing" else constant(0.0)

    @property
    def dot(self) -> Expression:
        return self._leaf("dot")

    @property
    def sqdist(self) -> Expression:
        return self._distance("sqdist")

    @property
    def l1(self) -> Expression:
        return self._distance("l1")

    @property
    def min_sum(self) -> Expression:
        return self._leaf("min_sum")

    @property
    def chi2(self) -> Expression:
        return self._distance("chi2")

    @property
    def mismatches(self) -> Expression:
        return self._distance("mismatches")

    @property
    def xx(self) -> Expression:
        return self.x.dot

    @property
    def zz(self) -> Expression:
        return self.z.dot

    @property
    def x(self) -> SymbolPair:
        return SymbolPair(self.views, "self_x") if self.op == "pairing" else self

    @property
    def z(self) -> SymbolPair:
        return SymbolPair(self.views, "self_z") if self.op == "pairing" else self

    def through(self, view: View) -> SymbolPair:
        """The symbols for the rows as the view maps them."""
        return SymbolPair((*self.views, view), self.op)


class HasFormula(Protocol):
    """An object with a formula over a pair."""

    def formula(self, pair: Any) -> Any:
        """The value of the kernel on a pair."""


def trace(kernel: HasFormula, exact: bool = False) -> Expression:
    """The kernel's formula as an `Expression`.

    Parameters
    ----------
    kernel : object with a method `formula(pair)`
    exact : bool
        Whether to combine numbers in the formula only if that rounds nothing, as proofs need it.

    Raises
    ------
    CannotTrace
        If the formula needs the values of the pairings.
    InvalidInput
        If parameters of the kernel depend on data.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> trace(Gaussian(gamma=0.5))
    exp(mul(-0.5, sqdist))
    """
    name = type(kernel).__name__
    advice = "its block(X, Z) is used instead"
    if not getattr(kernel, "is_resolved", True):
        raise InvalidInput(message(name, f"{kernel!r} has parameters that depend on data", "call .resolve(X) first"))
    try:
        with tracing(exact):
            return constant(kernel.formula(SymbolPair()))
    except MercerError:
        raise
    except (TypeError, AttributeError, ValueError, NotImplementedError) as error:
        raise CannotTrace(message(name, f"the formula failed on symbols: {error}", advice)) from error
