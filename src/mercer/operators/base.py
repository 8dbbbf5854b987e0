"""The base class of operators, arrays as operators, and sums, products and other compositions of operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from mercer.errors import InvalidInput, message
from mercer.operators.arrays import (
    BLOCK_ELEMENTS,
    TALL_ELEMENTS,
    Array,
    add_moved,
    add_rows,
    as_floats,
    product,
    row_blocks,
    sums_of_rows,
    times,
)
from mercer.operators.groups import GroupSums
from mercer.points import given_back, is_away, on_host

__all__ = [
    "Cast",
    "Dense",
    "Foreign",
    "Operator",
    "Product",
    "Scaled",
    "Submatrix",
    "Sum",
    "Transposed",
    "as_operator",
]


class Operator(GroupSums, LinearOperator):  # type: ignore[misc]
    r"""V ↦ A V for a real m × n matrix A that need not exist in memory.

    A subclass must have ``_matmat(V)``: V is a 2-D array of float32 or float64, and the result has V's dtype. All other
    methods follow from it, and a subclass overrides those for which it knows a faster way: ``_transpose()``,
    ``diagonal()``, ``rows(I)``, ``_rows_times(index, V)``, ``_normal_product(V, weights)``, ``principal(I)``,
    ``fill(out)``, ``group_sums(labels)``, ``several_group_sums(labellings)``, ``moved_sums(sums, ...)``,
    ``_astype(dtype)``.

    **Dtype.** ``A @ V`` has the dtype of V: float32 for a float32 V, and float64 for every other real V. A float64
    product is accumulated in float64 even if the entries of A are float32. ``A.dtype`` is the dtype of the entries, and
    of the results of ``toarray()``, ``rows(I)``, ``block(I, J)`` and ``diagonal()``.

    Parameters
    ----------
    shape : (int, int)
        The numbers of rows and of columns.
    dtype : float32 or float64
        The dtype of the entries.
    symmetric : bool
        Whether A = Aᵀ holds by construction. Solvers rely on it.

    Raises
    ------
    InvalidInput
        For another dtype, and for a symmetric operator whose shape is not square.

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle, whichever version of SciPy wrote it: those from 1.18 on also keep an array library."""
        LinearOperator.__init__(self, state["dtype"], state["shape"])
        self.__dict__.update({name: value for name, value in state.items() if name != "_xp"})

    # ---- methods that a subclass must have or may override -----------------------------------------------------------

    @abstractmethod
    def _matmat(self, V: Array) -> Array:
        """A V for V of float32 or float64 and shape (n, r); the result has V's dtype."""
        raise NotImplementedError

    def _transpose(self) -> Operator:
        return self if self.symmetric else Transposed(self)

    def _rmatmat(self, U: Array) -> Array:
        """Aᵀ U from the columns of A: correct for every operator, but as expensive as the whole matrix."""
        if self.symmetric:
            return self._matmat(U)
        out = np.empty((self.shape[1], U.shape[1]), U.dtype)
        for J in row_blocks(self.shape[1], self.shape[0]):
            out[J] = self._matmat(_units(self.shape[1], J, U.dtype)).T @ U
        return out

    def release(self) -> None:
        """Free memory that is kept for further products; they allocate it again."""

    @property
    def symmetric(self) -> bool:
        """Whether A = Aᵀ by construction."""
        return bool(self._symmetric)

    def diagonal(self) -> Array:
        """The entries Aᵢᵢ, by default from products with unit vectors."""
        size = min(self.shape)
        out = np.empty(size, self.dtype)
        for J in row_blocks(size, self.shape[0]):
            out[J] = np.diagonal(self._columns(J)[J])
        return out

    def rows(self, I: ArrayLike | slice) -> Array:
        """The rows A[I, :] as an array of A's dtype; I is a slice, integers, or a mask."""
        index = self._index(I, 0)
        return np.asarray(self._transpose()._matmat(_units(self.shape[0], index, self.dtype)).T, order="C")

    def rows_times(self, I: ArrayLike | slice, V: ArrayLike) -> Array:
        """A[I, :] V in V's dtype, some rows at a time, with float64 sums for a float64 V."""
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
        """A[I, J] V in V's dtype, some rows at a time, with float64 sums for a float64 V.

        Examples
        --------
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
        """Aᵀ diag(w) A V, the product of the normal equations, in V's dtype.

        By default it takes two products; a subclass may compute each entry of A only once.

        Examples
        --------
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
        if weights is not None:  # in float64, because the products may overflow in float32
            images = weights[:, None] * images
        return np.asarray(self._transpose()._matmat(images), V.dtype)

    def row_space(self, I: ArrayLike | slice) -> Array:
        """A vector of the row space of A for each of the rows I: the rows, or combinations of them that cost less."""
        return self.rows(I)

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        """The entries A[I, J] for all pairs of indices, as ``A.toarray()[np.ix_(I, J)]``."""
        rows, columns = self._index(I, 0), self._index(J, 1)
        if self.symmetric and len(columns) < len(rows):
            return np.asarray(self.rows(columns)[:, rows].T, order="C")
        return np.asarray(self.rows(rows)[:, columns], order="C")

    def principal(self, I: ArrayLike | slice) -> Operator:
        """A[I, I] of a square A as an operator; the indices must differ.

        Examples
        --------
        >>> from mercer.operators import Dense
        >>> Dense([[2.0, 1.0], [1.0, 3.0]]).principal([1]).toarray()
        array([[3.]])
        """
        return Submatrix(self, self._index(I, 0))

    def entries(self) -> Any:
        """An array, or tiles, from which the engine can read single entries; None if there is neither."""
        return None

    def fill(self, out: Array) -> Array:
        """Write A into ``out`` without another n × n array, and return it."""
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
        return self.fill(np.empty(self.shape, self.dtype if dtype is None else _entry_dtype(dtype, "toarray")))

    def astype(self, dtype: DTypeLike) -> Operator:
        """The same operator with entries of another dtype."""
        kind = _entry_dtype(dtype, type(self).__name__)
        return self if kind == self.dtype else self._astype(kind)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Cast(self, dtype)

    # ---- SciPy's protocol --------------------------------------------------------------------------------------------

    def matmat(self, X: ArrayLike) -> Array:
        V = _real(X, type(self).__name__)
        if V.ndim != 2 or V.shape[0] != self.shape[1]:
            raise self._invalid(f"shape {self.shape} times an array of shape {V.shape}", f"give {self.shape[1]} rows")
        return self._matmat(V)

    def matvec(self, x: ArrayLike) -> Array:
        v = _real(x, type(self).__name__)
        if v.shape not in ((self.shape[1],), (self.shape[1], 1)):
            raise self._invalid(f"shape {self.shape} times an array of shape {v.shape}", f"give {self.shape[1]} rows")
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
        """Aᵀ as an operator; A itself if it is symmetric."""
        return self._transpose()

    def dot(self, x: Any) -> Any:
        if isinstance(x, Real):
            return Scaled(self, float(x))
        if _is_operator(x):
            return Product(self, as_operator(x))
        if is_away(x):
            return given_back(self.dot(on_host(x, type(self).__name__)), x)
        v = np.asarray(x)
        return self.matvec(v) if v.ndim == 1 else self.matmat(v)

    def _rdot(self, x: Any) -> Any:
        if _is_operator(x):
            return Product(as_operator(x), self)
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
        return Scaled(self, float(other)) if isinstance(other, Real) else self._rdot(other)

    def __truediv__(self, other: Any) -> Operator:
        if not isinstance(other, Real) or float(other) == 0.0:
            raise self._invalid(f"division by {other!r}", "divide by a number other than 0")
        return Scaled(self, 1.0 / float(other))

    def __add__(self, other: Any) -> Operator:
        return Sum(self, as_operator(other))

    def __radd__(self, other: Any) -> Operator:
        return Sum(as_operator(other), self)

    def __neg__(self) -> Operator:
        return Scaled(self, -1.0)

    def __sub__(self, other: Any) -> Operator:
        return Sum(self, Scaled(as_operator(other), -1.0))

    def __rsub__(self, other: Any) -> Operator:
        return Sum(as_operator(other), Scaled(self, -1.0))

    def __pow__(self, p: Any) -> Operator:
        if not isinstance(p, Integral) or p < 1 or self.shape[0] != self.shape[1]:
            raise self._invalid(
                f"shape {self.shape} to the power {p!r}", "give a square operator and a positive integer"
            )
        return self if p == 1 else Product(*[self] * int(p))

    # ---- checks ------------------------------------------------------------------------------------------------------

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
                f"index {I!r} along an axis of {size}", f"give integers below {size}, a slice or a mask"
            )
        index = index.astype(np.intp)  # a narrow type does not hold the size
        return np.where(index < 0, index + size, index)

    def _check_out(self, out: Array) -> None:
        if out.shape != self.shape:
            raise self._invalid(
                f"shape {self.shape} into an array of shape {out.shape}", "give an array of the same shape"
            )

    def _invalid(self, given: str, do: str) -> InvalidInput:
        return InvalidInput(message(type(self).__name__, given, do))


class Dense(Operator):
    """V ↦ A V for an array A, which is not copied if it is float32 or float64.

    The product of a float32 array and a float64 V is accumulated in float64 over blocks of rows, without a float64 copy
    of A.

    Parameters
    ----------
    array : array-like of shape (m, n)
    symmetric : bool, optional
        Whether the array equals its transpose; by default the array is compared when `symmetric` is first read.
    beside_lapack : bool
        Whether to use `product`, which is faster between factorisations and triangular solves.

    Examples
    --------
    >>> A = Dense([[2.0, 1.0], [1.0, 3.0]])
    >>> A @ [1.0, 1.0], A.symmetric
    (array([3., 4.]), True)
    """

    def __init__(self, array: ArrayLike, *, symmetric: bool | None = None, beside_lapack: bool = False) -> None:
        self.array, self.beside_lapack = as_floats(array, "Dense", 2), beside_lapack
        shape = (self.array.shape[0], self.array.shape[1])
        super().__init__(shape, self.array.dtype, symmetric=bool(symmetric))
        self._symmetric = False if shape[0] != shape[1] else symmetric

    @property
    def symmetric(self) -> bool:
        if self._symmetric is None:
            blocks = row_blocks(*self.shape)
            self._symmetric = all(np.array_equal(self.array[r, : r.stop], self.array[: r.stop, r].T) for r in blocks)
        return self._symmetric

    def _matmat(self, V: Array) -> Array:
        if self.dtype == V.dtype:
            return product(self.array, V) if self.beside_lapack else times(self.array, V)
        if V.dtype == np.float32:
            return np.asarray(times(self.array, V.astype(np.float64)), np.float32)
        out = np.empty((V.shape[1], self.shape[0])).T
        # Taller blocks for a large matrix, because a product of few rows would mostly read V.
        elements = min(max(BLOCK_ELEMENTS, self.array.size // 12), TALL_ELEMENTS)
        wide = np.empty((0, self.shape[1]))
        for rows in row_blocks(self.shape[0], self.shape[1], elements):
            if len(wide) == 0:  # once, because fresh memory costs as much as the conversion
                wide = np.empty((rows.stop, self.shape[1]))
            block = wide[: rows.stop - rows.start]
            block[...] = self.array[rows]
            out[rows] = times(block, V)
        return out

    def _transpose(self) -> Operator:
        return self if self.symmetric else Dense(self.array.T, symmetric=False, beside_lapack=self.beside_lapack)

    def diagonal(self) -> Array:
        return np.diagonal(self.array).copy()

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.ascontiguousarray(self.array[I if isinstance(I, slice) else self._index(I, 0)])

    def entries(self) -> Any:
        return np.ascontiguousarray(self.array)

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        rows, columns = self._index(I, 0), self._index(J, 1)
        if np.array_equal(rows, np.arange(self.shape[0])):  # a fifth of the time
            return self.array.take(columns, axis=1)
        return self.array[np.ix_(rows, columns)]

    def group_sums(
        self, labels: ArrayLike, groups: int | None = None, weights: ArrayLike | None = None, columns: Any = None
    ) -> NDArray[np.float64]:
        """Of a symmetric array its rows are added up, which costs the same for any number of groups."""
        if not self.symmetric:
            return super().group_sums(labels, groups, weights, columns)
        return sums_of_rows(self.array, self._groups(labels, groups, weights, columns)).T

    def several_group_sums(
        self, labellings: Sequence[ArrayLike], groups: int, weights: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """The sums of each labelling. A symmetric array is read once for many labellings, whose sums take an eighth of
        its size.
        """
        if not self.symmetric:
            yield from super().several_group_sums(labellings, groups, weights)
            return
        n = self.shape[1]
        side = max(1, self.array.nbytes // (64 * max(1, n * groups)))
        for first in range(0, len(labellings), side):
            all_of = [self._groups(one, groups, weights, None) for one in labellings[first : first + side]]
            some = len(all_of)
            place = np.stack([of.labels + s * groups for s, of in enumerate(all_of)], axis=1).ravel()
            w = None if all_of[0].weights is None else np.repeat(all_of[0].weights, some)
            out = np.zeros((some * groups, n))
            add_rows(self.array, np.repeat(np.arange(n), some), place, w, out)
            yield from (one.T for one in out.reshape(some, groups, n))

    def moved_sums(
        self, sums: NDArray[np.float64], columns: ArrayLike, old: ArrayLike, new: ArrayLike,
        weights: ArrayLike | None = None
    ) -> NDArray[np.float64]:  # fmt: skip
        if not self.symmetric:
            return super().moved_sums(sums, columns, old, new, weights)
        out = np.array(sums.T, np.float64, order="C")
        add_moved(self.array, self._moves(sums, columns, old, new, weights), out)
        return out.T

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        out[...] = self.array
        return out

    def add_to(self, out: Array) -> Array:
        self._check_out(out)
        out += self.array
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        if np.dtype(dtype) == self.dtype:
            return self
        return Dense(self.array.astype(dtype), symmetric=self._symmetric, beside_lapack=self.beside_lapack)


class Transposed(Operator):
    """V ↦ Aᵀ V.

    Parameters
    ----------
    A : Operator of shape (n, m)

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> Transposed(Dense([[1.0, 2.0]])) @ [1.0]
    array([1., 2.])
    """

    def __init__(self, A: Operator) -> None:
        self.A = A
        super().__init__((A.shape[1], A.shape[0]), A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self.A._rmatmat(V)

    def _transpose(self) -> Operator:
        return self.A

    def diagonal(self) -> Array:
        return self.A.diagonal()

    def fill(self, out: Array) -> Array:
        self._check_out(out)
        self.A.fill(out.T)
        return out

    def add_to(self, out: Array) -> Array:
        self._check_out(out)
        self.A.add_to(out.T)
        return out


class Cast(Operator):
    """V ↦ A V, whose entries are returned in another dtype; products are those of A.

    Parameters
    ----------
    A : Operator
    dtype : NumPy dtype
        float32 or float64.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> Cast(Dense([[2.0]]), "float32").toarray()
    array([[2.]], dtype=float32)
    """

    def __init__(self, A: Operator, dtype: DTypeLike) -> None:
        self.A = A
        super().__init__(A.shape, dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self.A._matmat(V)

    def _transpose(self) -> Operator:
        return self if self.symmetric else Cast(self.A.T, self.dtype)

    def diagonal(self) -> Array:
        return np.asarray(self.A.diagonal(), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(self.A.rows(I), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return self.A._rows_times(index, V)

    def fill(self, out: Array) -> Array:
        return self.A.fill(out)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return self.A.astype(dtype)


class Foreign(Operator):
    """V ↦ A V for a SciPy LinearOperator or a sparse matrix A.

    Parameters
    ----------
    A : SciPy LinearOperator or sparse matrix of shape (n, m)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Foreign(sp.eye_array(2)) @ [1.0, 2.0]
    array([1., 2.])
    """

    def __init__(self, A: Any) -> None:
        self.A = aslinearoperator(A)
        dtype = np.float32 if self.A.dtype == np.float32 else np.float64
        super().__init__(self.A.shape, dtype)

    def _matmat(self, V: Array) -> Array:
        if V.shape[1] == 0:  # SciPy stacks the products with the columns, and fails without columns
            return np.empty((self.shape[0], 0), V.dtype)
        return np.asarray(self.A.matmat(V), V.dtype)

    def _rmatmat(self, U: Array) -> Array:
        if U.shape[1] == 0:
            return np.empty((self.shape[1], 0), U.dtype)
        try:
            return np.asarray(self.A.rmatmat(U), U.dtype)
        except (NotImplementedError, TypeError):  # what SciPy raises if an operator has no adjoint
            return super()._rmatmat(U)


class Sum(Operator):
    """V ↦ Σᵢ Aᵢ V.

    Parameters
    ----------
    *terms : Operator
        A₁, A₂, …, of one shape.

    Raises
    ------
    InvalidInput
        If the shapes of the terms differ, or there is none.

    Examples
    --------
    >>> from mercer.operators import Identity, LowRank
    >>> Sum(Identity(2), LowRank([[1.0], [1.0]])) @ [1.0, 2.0]
    array([4., 5.])
    """

    def __init__(self, *terms: Operator) -> None:
        self.terms: tuple[Operator, ...] = tuple(
            t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,))
        )
        shapes = [t.shape for t in self.terms]
        if not shapes or len(set(shapes)) > 1:
            raise InvalidInput(message("Sum", f"terms of shapes {shapes}", "give one or more terms of one shape"))
        dtype = np.result_type(*(t.dtype for t in self.terms))
        super().__init__(shapes[0], dtype, symmetric=all(t.symmetric for t in self.terms))

    def _matmat(self, V: Array) -> Array:
        out = np.array(self.terms[0]._matmat(V))
        for term in self.terms[1:]:
            out += term._matmat(V)
        return out

    def _transpose(self) -> Operator:
        return self if self.symmetric else Sum(*(t.T for t in self.terms))

    def diagonal(self) -> Array:
        return np.asarray(sum(t.diagonal() for t in self.terms), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(sum(t.rows(I) for t in self.terms), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return np.asarray(sum(t._rows_times(index, V) for t in self.terms), V.dtype)

    def fill(self, out: Array) -> Array:
        self.terms[0].fill(out)
        for term in self.terms[1:]:
            term.add_to(out)
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Sum(*(t.astype(dtype) for t in self.terms))


class Scaled(Operator):
    """V ↦ c A V.

    Parameters
    ----------
    A : Operator
    c : float

    Examples
    --------
    >>> from mercer.operators import Identity
    >>> Scaled(Identity(2), 3.0) @ [1.0, 2.0]
    array([3., 6.])
    """

    def __init__(self, A: Operator, c: float) -> None:
        self.A: Operator = A.A if isinstance(A, Scaled) else A
        self.c: float = float(c) * (A.c if isinstance(A, Scaled) else 1.0)
        super().__init__(A.shape, A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return np.asarray(self.c * self.A._matmat(V), V.dtype)

    def _transpose(self) -> Operator:
        return self if self.symmetric else Scaled(self.A.T, self.c)

    def diagonal(self) -> Array:
        return np.asarray(self.c * self.A.diagonal(), self.dtype)

    def rows(self, I: ArrayLike | slice) -> Array:
        return np.asarray(self.c * self.A.rows(I), self.dtype)

    def _rows_times(self, index: NDArray[np.intp], V: Array) -> Array:
        return np.asarray(self.c * self.A._rows_times(index, V), V.dtype)

    def fill(self, out: Array) -> Array:
        self.A.fill(out)
        out *= self.c
        return out

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Scaled(self.A.astype(dtype), self.c)


class Product(Operator):
    """V ↦ A₁ (A₂ (… V)); it is symmetric if the transposes of the factors, in reverse order, are the factors.

    Parameters
    ----------
    *factors : Operator
        A₁, A₂, …

    Raises
    ------
    InvalidInput
        If the inner sizes of the factors differ, or there is none.

    Examples
    --------
    >>> from mercer.operators import Dense, Diagonal
    >>> Product(Diagonal([2.0, 3.0]), Dense([[1.0], [1.0]])) @ [1.0]
    array([2., 3.])
    """

    def __init__(self, *factors: Operator) -> None:
        self.factors: tuple[Operator, ...] = tuple(
            f for factor in factors for f in (factor.factors if isinstance(factor, Product) else (factor,))
        )
        shapes = [f.shape for f in self.factors]
        if not shapes or any(a[1] != b[0] for a, b in pairwise(shapes)):
            raise InvalidInput(message("Product", f"factors of shapes {shapes}", "make the inner sizes equal"))
        mirrored = all(_transposes(f, g) for f, g in zip(self.factors, reversed(self.factors), strict=True))
        dtype = np.result_type(*(f.dtype for f in self.factors))
        super().__init__((shapes[0][0], shapes[-1][1]), dtype, symmetric=mirrored)

    def _matmat(self, V: Array) -> Array:
        for factor in reversed(self.factors):
            V = factor._matmat(V)
        return V

    def _transpose(self) -> Operator:
        return self if self.symmetric else Product(*(f.T for f in reversed(self.factors)))

    def rows(self, I: ArrayLike | slice) -> Array:
        product = self.factors[0].rows(I)
        for factor in self.factors[1:]:
            product = factor.T._matmat(np.asarray(product.T, self.dtype)).T
        return np.asarray(product, self.dtype, order="C")

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Product(*(f.astype(dtype) for f in self.factors))


class Submatrix(Operator):
    """A[I, I] for different indices I.

    Parameters
    ----------
    A : Operator of shape (n, n)
    index : integers of shape (m,)
        I.

    Raises
    ------
    InvalidInput
        If A is not square, or an index occurs twice.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> Submatrix(Dense([[2.0, 1.0], [1.0, 3.0]]), [1]).toarray()
    array([[3.]])
    """

    def __init__(self, A: Operator, index: ArrayLike) -> None:
        self.A, self.index = A, A._index(index, 0)
        if A.shape[0] != A.shape[1] or len(np.unique(self.index)) < len(self.index):
            given = f"{len(self.index)} rows of a matrix of shape {A.shape}"
            raise InvalidInput(message("Submatrix", given, "give different rows of a square matrix"))
        super().__init__((len(self.index), len(self.index)), A.dtype, symmetric=A.symmetric)

    def _matmat(self, V: Array) -> Array:
        return self.A._block_times(self.index, self.index, V)

    def principal(self, I: ArrayLike | slice) -> Operator:
        return self.A.principal(self.index[self._index(I, 0)])

    def _transpose(self) -> Operator:
        return self if self.symmetric else Submatrix(self.A._transpose(), self.index)

    def diagonal(self) -> Array:
        return self.A.diagonal()[self.index]

    def rows(self, I: ArrayLike | slice) -> Array:
        return self.A.block(self.index[self._index(I, 0)], self.index)

    def block(self, I: ArrayLike | slice, J: ArrayLike | slice) -> Array:
        return self.A.block(self.index[self._index(I, 0)], self.index[self._index(J, 1)])

    def _block_times(self, rows: NDArray[np.intp], columns: NDArray[np.intp], V: Array) -> Array:
        return self.A._block_times(self.index[rows], self.index[columns], V)

    def _astype(self, dtype: np.dtype[Any]) -> Operator:
        return Submatrix(self.A.astype(dtype), self.index)


def as_operator(A: Any) -> Operator:
    """A as an `Operator`: a SciPy operator or sparse matrix becomes `Foreign`, and a 2-D array `Dense`.

    Parameters
    ----------
    A : Operator, SciPy LinearOperator, sparse matrix or array of shape (n, m)

    Examples
    --------
    >>> type(as_operator([[1.0, 2.0]])).__name__
    'Dense'
    """
    if isinstance(A, Operator):
        return A
    return Foreign(A) if _is_operator(A) else Dense(A)


def _is_operator(A: Any) -> bool:
    return isinstance(A, LinearOperator) or issparse(A)


def _transposes(f: Operator, g: Operator) -> bool:
    """Whether g is known to be fᵀ, by the identity of objects."""
    if f is g:
        return f.symmetric
    return (isinstance(f, Transposed) and f.A is g) or (isinstance(g, Transposed) and g.A is f)


def _units(size: int, index: slice | NDArray[np.intp], dtype: DTypeLike) -> Array:
    """The columns of the identity with these indices."""
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
