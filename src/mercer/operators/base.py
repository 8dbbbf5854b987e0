"""The contract of an operator, and the algebra that keeps operators operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from mercer.errors import InvalidInput, message
from mercer.operators.groups import GroupSums

__all__ = ["Array", "Operator", "row_blocks"]

Array = NDArray[Any]

_BLOCK_ELEMENTS = 1 << 18  # 2 MB of float64: a block of rows that stays in the second-level cache


def row_blocks(rows: int, columns: int, elements: int = _BLOCK_ELEMENTS) -> Iterator[slice]:
    """Slices that cover ``range(rows)`` so that a slice of that many columns has about ``elements`` entries.

    >>> list(row_blocks(5, 10, elements=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, columns))
    return (slice(i, min(i + height, rows)) for i in range(0, rows, height))


class Operator(GroupSums, LinearOperator):  # type: ignore[misc]
    r"""V ↦ A V for a real m × n matrix A that need not exist in memory.

    A subclass owes ``_matmat(V)``: V is a 2-D array of float32 or float64, and the result has V's dtype. All else is
    derived from it, at a cost, and may be overridden: ``_transpose()``, ``diagonal()``, ``rows(I)``,
    ``_rows_times(index, V)``, ``_normal_product(V, weights)``, ``principal(I)``, ``fill(out)``, ``group_sums(labels)``,
    ``several_group_sums(labellings)``, ``moved_sums(sums, ...)``, ``_astype(dtype)``.

    **Dtype.** ``A @ V`` has the dtype of V: float32 for a float32 V, float64 for every other real one, and a float64
    product is accumulated in float64 even when the entries of A are float32. ``A.dtype`` is the dtype of the entries,
    which is what ``toarray()``, ``rows(I)``, ``block(I, J)`` and ``diagonal()`` return.

    Parameters
    ----------
    shape : (int, int)
        Number of rows and of columns.
    dtype : dtype
        Of the entries: float32 or float64.
    symmetric : bool
        Whether A = Aᵀ holds by construction. Solvers rely on it.

    Examples
    --------
    >>> import numpy as np
    >>> class Ones(Operator):
    ...     def _matmat(self, V):
    ...         return np.repeat(V.sum(axis=0, keepdims=True), self.shape[0], axis=0)
    >>> A = Ones((2, 2), np.float64, symmetric=True)
    >>> (A + 2 * A).toarray()
    array([[3., 3.],
           [3., 3.]])
    >>> A @ [1.0, 5.0]
    array([6., 6.])
    """

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike, *, symmetric: bool = False) -> None:
        super().__init__(_entry_dtype(dtype, type(self).__name__), (int(shape[0]), int(shape[1])))
        self._symmetric: bool | None = bool(symmetric)
        if symmetric and shape[0] != shape[1]:
            raise self._invalid(f"symmetric=True with shape {shape}", "give a square shape")

    # What a subclass owes, and may do better.

    @abstractmethod
    def _matmat(self, V: Array) -> Array:
        """A V for V of float32 or float64 and shape (n, r); the result has V's dtype."""
        raise NotImplementedError

    def _transpose(self) -> Operator:
        return self if self.symmetric else algebra.Transposed(self)

    def _rmatmat(self, U: Array) -> Array:
        """Aᵀ U from the columns of A: correct for every operator, and as dear as the whole matrix."""
        if self.symmetric:
            return self._matmat(U)
        out = np.empty((self.shape[1], U.shape[1]), U.dtype)
        for J in row_blocks(self.shape[1], self.shape[0]):
            out[J] = self._matmat(_units(self.shape[1], J, U.dtype)).T @ U
        return out

    def release(self) -> None:
        """Let go of what is kept for the next product, if anything: it is made anew then."""

    @property
    def symmetric(self) -> bool:
        """Whether A = Aᵀ by construction."""
        return bool(self._symmetric)

    def diagonal(self) -> Array:
        """The entries Aᵢᵢ, from products with unit vectors unless the class knows better."""
        size = min(self.shape)
        out = np.empty(size, self.dtype)
        for J in row_blocks(size, self.shape[0]):
            out[J] = np.diagonal(self._columns(J)[J])
        return out

    def rows(self, I: ArrayLike | slice) -> Array:
        """The rows A[I, :] as an array of A's dtype; I is a slice, integers, or a mask."""
        index = self._index(I, 0)
        return np.asarray(
            self._transpose()._matmat(_units(self.shape[0], index, self.dtype)).T,
            order="C",
        )

    def rows_times(self, I: ArrayLike | slice, V: ArrayLike) -> Array:
        """A[I, :] V, a few rows at a time; of V's dtype, float64 sums for a float64 V."""
        index, X = self._index(I, 0), _real(V, type(self).__name__)
        if X.ndim != 2 or X.shape[0] != self.shape[1]:
            raise self._invalid(f"rows of shape {self.shape} times {X.shape}", f"give {self.shape[1]} rows")
        return self._rows_times(index, X)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        out = np.empty((len(index), V.shape[1]), V.dtype)
        for some in row_blocks(len(index), self.shape[1]):
            out[some] = np.asarray(self.rows(index[some]), np.result_type(self.dtype, V.dtype)) @ V
        return out

    def block_times(self, I: ArrayLike | slice, J: ArrayLike | slice, V: ArrayLike) -> Array:
        """A[I, J] V, a few rows at a time; of V's dtype, float64 sums for a float64 V.

        >>> from mercer.operators import Dense
        >>> Dense([[1.0, 2.0], [3.0, 4.0]]).block_times([1], [0, 1], [[1.0], [10.0]])
        array([[43.]])
        """
        rows, columns = self._index(I, 0), self._index(J, 1)
        X = _real(V, type(self).__name__)
        if X.ndim != 2 or X.shape[0] != len(columns):
            raise self._invalid(f"{len(columns)} columns times {X.shape}", f"give {len(columns)} rows")
        return self._block_times(rows, columns, X)

    def _block_times(self, rows: NDArray[np.intp], columns: NDArray[np.intp], V: Array) -> Array:
        out = np.empty((len(rows), V.shape[1]), V.dtype)
        for some in row_blocks(len(rows), max(len(columns), self.shape[1] // 8)):
            out[some] = np.asarray(self.block(rows[some], columns), np.result_type(self.dtype, V.dtype)) @ V
        return out

    def normal_product(self, V: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Aᵀ diag(w) A V, the product of the normal equations; of V's dtype.

        Two products unless the class can have both from entries that are there once.

        >>> from mercer.operators import Dense
        >>> Dense([[1.0, 2.0], [3.0, 4.0]]).normal_product([1.0, 0.0], weights=[1.0, 10.0])
        array([ 91., 122.])
        """
        X = _real(V, type(self).__name__)
        if X.ndim not in (1, 2) or X.shape[0] != self.shape[1]:
            raise self._invalid(f"shape {self.shape} times an array of shape {X.shape}", f"give {self.shape[1]} rows")
        w = None if weights is None else _real(weights, type(self).__name__)
        if w is not None and w.shape != self.shape[:1]:
            raise self._invalid(f"weights of shape {w.shape}", f"give one for each of {self.shape[0]} rows")
        w = None if w is None else np.ascontiguousarray(w, np.float64)
        return self._normal_product(X.reshape(len(X), -1) if X.ndim == 1 else X, w).reshape(X.shape)

    def _normal_product(self, V: Array, weights: NDArray[np.float64] | None) -> Array:
        images = self._matmat(V)
        if weights is not None:  # in float64: a float32 image times a weight may be beyond its range
            images = weights[:, None] * images
        return np.asarray(self._transpose()._matmat(images), V.dtype)

    def row_space(self, I: ArrayLike | slice) -> Array:
        """Vectors of the row space of A from its rows I, one for each: the rows, or what is cheaper than those."""
        return self.rows(I)

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        """The entries A[I, J] (their outer product, as ``A.toarray()[np.ix_(I, J)]``)."""
        rows, columns = self._index(I, 0), self._index(J, 1)
        if self.symmetric and len(columns) < len(rows):
            return np.asarray(self.rows(columns)[:, rows].T, order="C")
        return np.asarray(self.rows(rows)[:, columns], order="C")

    def principal(self, I: ArrayLike | slice) -> Operator:
        """A[I, I] of a square A as an operator; each row is named once.

        >>> from mercer.operators import Dense
        >>> Dense([[2.0, 1.0], [1.0, 3.0]]).principal([1]).toarray()
        array([[3.]])
        """
        return caching.Submatrix(self, self._index(I, 0))

    def entries(self) -> Any:
        """What the engine reads A[i, j] from: an array, or tiles that make them; None where there is neither."""
        return None

    def fill(self, out: Array) -> Array:
        """Write A into ``out``, with no other n × n array beside it, and return it."""
        self._check_out(out)
        for rows in row_blocks(*self.shape):
            out[rows] = self.rows(rows)
        return out

    def add_to(self, out: Array) -> Array:
        """Add A to ``out`` in place and return it."""
        self._check_out(out)
        for rows in row_blocks(*self.shape):
            out[rows] += self.rows(rows)
        return out

    def toarray(self, dtype: DTypeLike | None = None) -> Array:
        """A as an array, of A's dtype unless another is given."""
        return self.fill(
            np.empty(
                self.shape,
                self.dtype if dtype is None else _entry_dtype(dtype, "toarray"),
            )
        )

    def astype(self, dtype: DTypeLike) -> Operator:
        """The same operator with entries of another dtype."""
        kind = _entry_dtype(dtype, type(self).__name__)
        return self if kind == self.dtype else self._astype(kind)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return algebra.Cast(self, dtype)

    # SciPy's protocol, spoken in our classes.

    def matmat(self, X: ArrayLike) -> Array:
        V = _real(X, type(self).__name__)
        if V.ndim != 2 or V.shape[0] != self.shape[1]:
            raise self._invalid(
                f"shape {self.shape} times an array of shape {V.shape}",
                f"give {self.shape[1]} rows",
            )
        return self._matmat(V)

    def matvec(self, x: ArrayLike) -> Array:
        v = _real(x, type(self).__name__)
        if v.shape not in ((self.shape[1],), (self.shape[1], 1)):
            raise self._invalid(
                f"shape {self.shape} times an array of shape {v.shape}",
                f"give {self.shape[1]} rows",
            )
        return self._matmat(v.reshape(-1, 1)).reshape(self.shape[:1] + v.shape[1:])

    def rmatmat(self, X: ArrayLike) -> Array:
        return self._transpose().matmat(X)

    def rmatvec(self, x: ArrayLike) -> Array:
        return self._transpose().matvec(x)

    def _matvec(self, x: Array) -> Array:
        return self.matvec(x)

    def _rmatvec(self, x: Array) -> Array:
        return self.rmatvec(x)

    def _adjoint(self) -> Operator:
        return self._transpose()

    @property
    def T(self) -> Operator:
        """Aᵀ as an operator; A itself when it is symmetric."""
        return self._transpose()

    def dot(self, x: Any) -> Any:
        if isinstance(x, Real):
            return algebra.Scaled(self, float(x))
        if isinstance(x, LinearOperator) or issparse(x):
            return algebra.Product(self, algebra.as_operator(x))
        v = np.asarray(x)
        return self.matvec(v) if v.ndim == 1 else self.matmat(v)

    def _rdot(self, x: Any) -> Any:
        if isinstance(x, LinearOperator) or issparse(x):
            return algebra.Product(algebra.as_operator(x), self)
        v = np.asarray(x)
        return self.rmatvec(v) if v.ndim == 1 else self.rmatmat(v.T).T

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Real):
            raise self._invalid("@ with a number", "scale with * instead")
        return self.dot(other)

    def __rmatmul__(self, other: Any) -> Any:
        if isinstance(other, Real):
            raise self._invalid("@ with a number", "scale with * instead")
        return self._rdot(other)

    def __mul__(self, other: Any) -> Any:
        return self.dot(other)

    def __rmul__(self, other: Any) -> Any:
        return algebra.Scaled(self, float(other)) if isinstance(other, Real) else self._rdot(other)

    def __truediv__(self, other: Any) -> Operator:
        if not isinstance(other, Real) or float(other) == 0.0:
            raise self._invalid(f"division by {other!r}", "divide by a number other than 0")
        return algebra.Scaled(self, 1.0 / float(other))

    def __add__(self, other: Any) -> Operator:
        return algebra.Sum(self, algebra.as_operator(other))

    def __radd__(self, other: Any) -> Operator:
        return algebra.Sum(algebra.as_operator(other), self)

    def __neg__(self) -> Operator:
        return algebra.Scaled(self, -1.0)

    def __sub__(self, other: Any) -> Operator:
        return algebra.Sum(self, algebra.Scaled(algebra.as_operator(other), -1.0))

    def __rsub__(self, other: Any) -> Operator:
        return algebra.Sum(algebra.as_operator(other), algebra.Scaled(self, -1.0))

    def __pow__(self, p: Any) -> Operator:
        if not isinstance(p, Integral) or p < 1 or self.shape[0] != self.shape[1]:
            raise self._invalid(
                f"shape {self.shape} to the power {p!r}",
                "give a square operator and a positive integer",
            )
        return self if p == 1 else algebra.Product(*[self] * int(p))

    # Helpers.

    def _columns(self, J: slice | NDArray[np.intp]) -> Array:
        return self._matmat(_units(self.shape[1], J, self.dtype))

    def _index(self, I: ArrayLike | slice, axis: int) -> NDArray[np.intp]:
        size = self.shape[axis]
        if isinstance(I, slice):
            return np.arange(size)[I]
        index = np.atleast_1d(np.asarray(I))
        if index.dtype == bool and index.shape == (size,):
            return np.flatnonzero(index)
        if index.size == 0:
            return np.empty(0, np.intp)
        if index.ndim != 1 or index.dtype.kind not in "iu" or index.min() < -size or index.max() >= size:
            raise self._invalid(
                f"index {I!r} along an axis of {size}",
                f"give integers below {size}, a slice or a mask",
            )
        return np.asarray(np.where(index < 0, index + size, index), np.intp)

    def _check_out(self, out: Array) -> None:
        if out.shape != self.shape:
            raise self._invalid(
                f"shape {self.shape} into an array of shape {out.shape}",
                "give an array of the same shape",
            )

    def _invalid(self, given: str, do: str) -> InvalidInput:
        return InvalidInput(message(type(self).__name__, given, do))


def _units(size: int, index: slice | NDArray[np.intp], dtype: DTypeLike) -> Array:
    """The columns of the identity that ``index`` names."""
    columns = np.arange(size)[index]
    E = np.zeros((size, len(columns)), dtype)
    E[columns, np.arange(len(columns))] = 1
    return E


def _entry_dtype(dtype: DTypeLike, who: str) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InvalidInput(message(who, f"dtype {kind}", "give float32 or float64"))
    return kind


def _real(X: ArrayLike, who: str) -> Array:
    V = np.asarray(X)
    if V.dtype == np.float32 or V.dtype == np.float64:
        return V
    if V.dtype.kind not in "biuf":
        raise InvalidInput(message(who, f"an array of dtype {V.dtype}", "give real numbers"))
    return V.astype(np.float64)


from mercer.operators import algebra, caching  # noqa: E402
