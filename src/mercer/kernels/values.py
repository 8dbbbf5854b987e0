"""Kernels without a formula over pairings: precomputed values, and Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, MercerError, message
from mercer.kernels.base import Array, Kernel
from mercer.kernels.parameters import checks
from mercer.numerals import counted
from mercer.points import KERNEL_VALUES, OBJECTS, Numbers, ObjectPoints, Space, as_rows, is_torch, points_of, vectors_of

__all__ = ["Function", "Precomputed"]


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """k(x, j) = the j-th entry of the row x: data are kernel values with the training points.

    X has a row for each point and a column for each training point, so it need not be square. Z is None for all
    training points, or an integer vector of their column indices.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> Precomputed()(K, [0, 2])
    array([[2., 0.],
           [1., 1.],
           [0., 2.]])
    """

    @property
    def space(self) -> Space:
        return KERNEL_VALUES

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self.block(as_rows(X, who="Precomputed"), Z)

    def block(self, X: Array, Z: Array | None) -> Array:
        """The columns Z of the rows X."""
        values = self._columns(X, Z)
        return vectors_of(values).dense() if vectors_of(X).sparse else values

    def _columns(self, X: Array, Z: Array | None) -> Array:
        """The columns Z of the rows X, as they are stored; a run of them is not copied if X is an array."""
        if Z is None or Z is X:
            return X
        index = Numbers(np.asarray(Z), vectors_of(X).columns).validate("Precomputed").rows
        whole = len(index) == X.shape[1]
        if not len(index) or np.any(np.diff(index) != 1):
            return X[:, index]
        return X if whole else X[:, index[0] : index[-1] + 1]

    @property
    def has_fast_matmul(self) -> bool:
        return True  # of sparse rows

    def matmul(self, X: Array, Z: Array, V: Array) -> Array:
        return self._columns(X, Z) @ V

    def diagonal(self, X: Array) -> Array:
        """The diagonal of the square matrix of the training points."""
        if X.shape[0] != X.shape[1]:
            given = f"the diagonal of a {X.shape[0]} × {X.shape[1]} matrix"
            raise InvalidInput(message("Precomputed", given, "give the square matrix of the training points"))
        return X.diagonal()


@dataclass(frozen=True, repr=False)
class Function(Kernel):
    """k(x, z) = func(x, z) for a Python function of single objects or of blocks.

    It is not known whether the function is a Mercer kernel, and `properties` says so.

    Parameters
    ----------
    func : callable
        With mode="block" func(X, Z) returns the array of all values; with mode="pair" func(x, z) returns one number.
        The objects may be of any kind. If they are no vectors, and func fails on two lists of them or returns one
        number, it is called for each pair.
    mode : "block" or "pair", default "block"
    symmetric : bool, default True
        Whether func(x, z) = func(z, x); if so, it is called for half of the pairs of X with itself.

    Raises
    ------
    InvalidInput
        If `func` cannot be called with two arguments, or returns something else than finite numbers.

    Examples
    --------
    >>> shared = Function(lambda x, z: len(set(x) & set(z)), mode="pair")
    >>> shared(["ab", "bcd"])
    array([[2., 1.],
           [1., 3.]])
    """

    func: Callable[..., Any]
    mode: str = "block"
    symmetric: bool = True

    def __post_init__(self) -> None:
        if not callable(self.func):
            raise InvalidInput(message("Function", f"func={self.func!r} cannot be called", "give f(x, z)"))
        if not _takes_two(self.func):
            do = "give f(X, Z) of two blocks of rows; for a formula of a pair give text, 'exp(-sqdist)', or a subclass "
            do += "of Kernel with formula(self, pair)"
            raise InvalidInput(message("Function", f"func={self.func!r} does not take two arguments", do))
        self._set("mode", checks.one_of("Function", "mode", self.mode, ("block", "pair")))
        if not isinstance(self.symmetric, (bool, np.bool_)):
            raise InvalidInput(message("Function", f"symmetric={self.symmetric!r}", "give True or False"))

    @property
    def space(self) -> Space:
        return OBJECTS

    def _of_objects(self) -> bool:
        return False  # it takes vectors as well

    def block(self, X: Array, Z: Array) -> Array:
        """func for all pairs, checked for shape and finite values, in the dtype of the rows."""
        values = self._pairs(X, Z) if self.mode == "pair" else self._all_at_once(X, Z)
        return _checked(values, (len(points_of(X)), len(points_of(Z))), X)

    def diagonal(self, X: Array) -> Array:
        count = range(len(points_of(X)))
        if self.mode == "pair":
            return _checked([self.func(X[i], X[i]) for i in count], (len(count),), X)
        return _checked([self.block(X[i : i + 1], X[i : i + 1]).item() for i in count], (len(count),), X)

    def _all_at_once(self, X: Array, Z: Array) -> Any:
        objects = isinstance(points_of(X), ObjectPoints)
        try:
            values = self.func(X, Z)
            return self._pairs(X, Z) if objects and np.ndim(values) == 0 else values
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            if isinstance(error, MercerError):
                raise
            if objects:
                return self._pairs_instead(X, Z, error)
            given = f"func failed on blocks of {len(points_of(X))} and {counted(len(points_of(Z)), 'row')} ({error})"
            do = "return all values k(x, z) of the two arrays, or give Function(f, mode='pair') for f of two rows"
            raise InvalidInput(message("Function", given, do)) from error

    def _pairs_instead(self, X: Array, Z: Array, error: Exception) -> Any:
        """All pairs by a function that failed on the two lists."""
        try:
            return self._pairs(X, Z)
        except (TypeError, ValueError, LookupError, AttributeError) as again:
            given = f"func failed on two lists of objects ({error}), and on two objects ({again})"
            do = "give f(x, z) of two objects, or f(X, Z) that returns all values k(x, z)"
            raise InvalidInput(message("Function", given, do)) from again

    def _pairs(self, X: Array, Z: Array) -> Any:
        values = np.empty((len(points_of(X)), len(points_of(Z))))
        mirrored = Z is X and self.symmetric
        for i in range(values.shape[0]):
            for j in range(i if mirrored else 0, values.shape[1]):
                values[i, j] = self.func(X[i], Z[j])
                if mirrored:
                    values[j, i] = values[i, j]
        return values

    def __repr__(self) -> str:
        name = getattr(self.func, "__qualname__", repr(self.func))
        mode = "" if self.mode == "block" else f", mode={self.mode!r}"
        return f"Function({name}{mode}{'' if self.symmetric else ', symmetric=False'})"


def _takes_two(func: Callable[..., Any]) -> bool:
    try:
        signature(func).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True  # a builtin function without a signature
    return True


def _checked(values: Any, shape: tuple[int, ...], X: Any) -> Any:
    if is_torch(values):
        is_finite = bool(values.isfinite().all())
    else:
        values = np.asarray(values)
        values = _in_dtype_of(X, values)
        is_finite = bool(np.isfinite(values).all())
    if tuple(values.shape) != shape:
        given = f"func returned the shape {tuple(values.shape)} for {shape} pairs"
        raise InvalidInput(message("Function", given, "return one number for each pair, or use mode='pair'"))
    if not is_finite:
        raise InvalidInput(message("Function", "func returned NaN or infinity", "return finite numbers"))
    return values


def _in_dtype_of(X: Any, values: Any) -> Any:
    if values.dtype.kind not in "fiub":
        given = f"func returned values of dtype {values.dtype}"
        raise InvalidInput(message("Function", given, "return real numbers"))
    return values.astype(np.float64 if is_torch(X) else points_of(X).dtype, copy=False)
