"""The contract suite of operators: one check for each promise, and one call for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.operators import Identity, Operator
from mercer.testing.comparison import hold

__all__ = ["OPERATOR_CHECKS", "check_operator_contract"]

Array = NDArray[Any]
_ORDERS: tuple[Literal["C", "F"], ...] = ("C", "F")


def check_operator_contract(operator: Operator, reference: Array | None = None) -> None:
    """Check the contract of an operator.

    Parameters
    ----------
    operator : Operator
        A small operator, because its whole matrix is computed.
    reference : array, optional
        The matrix of the operator; by default its products with the unit vectors.

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.operators import Diagonal
    >>> check_operator_contract(Diagonal([1.0, 2.0]), np.diag([1.0, 2.0]))
    """
    matrix = np.asarray(operator @ np.eye(operator.shape[1]) if reference is None else reference, np.float64)
    for check in OPERATOR_CHECKS:
        check(operator, matrix)


def check_products(A: Operator, matrix: Array) -> None:
    """A @ V is the matrix times V, for a vector, a column, many columns, and no column."""
    V = _vectors(A.shape[1])
    for v in (V, V[:, 0], V[:, :1], V[:, :0], np.asfortranarray(V), V[:, ::2]):
        _equal(A @ v, matrix @ v, A, "A @ V")


def check_dtypes(A: Operator, matrix: Array) -> None:
    """A product has the dtype of V (float64 for integers), and does not change V."""
    for dtype in (np.float32, np.float64):
        V = _vectors(A.shape[1]).astype(dtype)
        before = V.copy()
        product = A @ V
        hold(product.dtype == dtype, f"A @ V for {np.dtype(dtype)} V gave {product.dtype}")
        hold(np.array_equal(V, before), "A @ V changed V")
        hold(not np.shares_memory(product, V), "A @ V returned a view of V")
        _equal(product, matrix @ before.astype(np.float64), A, f"A @ V in {np.dtype(dtype)}", dtype)
    hold((A @ np.ones(A.shape[1], int)).dtype == np.float64, "A @ integers is not float64")


def check_transpose(A: Operator, matrix: Array) -> None:
    """A.T is an operator with ⟨u, Av⟩ = ⟨Aᵀu, v⟩, U @ A = (Aᵀ Uᵀ)ᵀ, and A.T.T = A."""
    U = _vectors(A.shape[0])
    hold(isinstance(A.T, Operator) and A.T.shape == A.shape[::-1], "A.T is not an operator of the transposed shape")
    _equal(A.T @ U, matrix.T @ U, A, "A.T @ U")
    _equal(U.T @ A, U.T @ matrix, A, "U @ A")
    _equal(A.T.T @ _vectors(A.shape[1]), matrix @ _vectors(A.shape[1]), A, "A.T.T @ V")


def check_normal_product(A: Operator, matrix: Array) -> None:
    """normal_product(V, w) is Aᵀ diag(w) A V, or Aᵀ A V without w, with the shape and dtype of V."""
    m, n = A.shape
    w = 0.5 + np.arange(m) % 3
    size = 1 + float(np.max(np.abs(matrix).T @ (w[:, None] * np.abs(matrix)), initial=0.0)) * n
    for dtype in (np.float32, np.float64):
        V = _vectors(n).astype(dtype)
        for v in (V, V[:, 0], V[:, :1], V[:, :0], np.asfortranarray(V)):
            for weights, scales in ((None, np.ones(m)), (w, w), (w.astype(np.float32), w)):
                given = A.normal_product(v, weights)
                hold(given.dtype == dtype, f"normal_product(V) for {np.dtype(dtype)} V gave {given.dtype}")
                wanted = matrix.T @ (np.diag(scales) @ (matrix @ v.astype(np.float64)))
                _equal(given, wanted, A, "normal_product(V, w)", dtype, size)


def check_symmetry(A: Operator, matrix: Array) -> None:
    """An operator with `symmetric` set is symmetric."""
    if A.symmetric:
        _equal(matrix, matrix.T, A, "symmetric=True")


def check_entries(A: Operator, matrix: Array) -> None:
    """toarray, fill, add_to, diagonal, rows and block agree with the matrix, in the dtype of A."""
    m, n = A.shape
    rows, columns = np.arange(m)[::-2], np.arange(n)[: max(1, n // 2)]
    found = {
        "toarray()": (A.toarray(), matrix),
        "diagonal()": (A.diagonal(), np.diagonal(matrix)),
        "rows(I)": (A.rows(rows), matrix[rows]),
        "rows(slice)": (A.rows(slice(0, 2)), matrix[:2]),
        "rows(mask)": (A.rows(np.arange(m) % 2 == 0), matrix[::2]),
        "rows([-1])": (A.rows([-1]), matrix[-1:]),
        "block(I, J)": (A.block(rows, columns), matrix[np.ix_(rows, columns)]),
        "block(J, I)": (A.block(columns[columns < m], np.arange(n)), matrix[columns[columns < m]]),
        "block(slice, J)": (A.block(slice(None), columns), matrix[:, columns]),
        "block(rows from the last, J)": (A.block(np.arange(m)[::-1], columns), matrix[::-1, columns]),
    }
    for what, (given, wanted) in found.items():
        hold(given.dtype == A.dtype, f"{what} is {given.dtype}, the operator says {A.dtype}")
        _equal(given, wanted, A, what)
    for dtype in (np.float32, np.float64):
        V = _vectors(n).astype(dtype)
        for chosen, picked in ((rows, V), (rows[:0], V), ([-1], V[:, :0]), (slice(0, 2), np.asfortranarray(V))):
            product = A.rows_times(chosen, picked)
            hold(product.dtype == dtype, f"rows_times(I, V) for {np.dtype(dtype)} V gave {product.dtype}")
            _equal(product, matrix[chosen] @ picked.astype(np.float64), A, "rows_times(I, V)", dtype)
            part = A.block_times(chosen, columns, picked[columns])
            hold(part.dtype == dtype, f"block_times(I, J, V) for {np.dtype(dtype)} V gave {part.dtype}")
            wanted = matrix[chosen][:, columns] @ picked[columns].astype(np.float64)
            _equal(part, wanted, A, "block_times(I, J, V)", dtype)
    for order in _ORDERS:
        out = np.full(A.shape, np.nan, A.dtype, order=order)
        hold(A.fill(out) is out, "fill(out) did not return out")
        _equal(out, matrix, A, f"fill(out) of order {order}")
        _equal(A.add_to(out), 2 * matrix, A, f"add_to(out) of order {order}")


def check_group_sums(A: Operator, matrix: Array) -> None:
    """group_sums(labels) adds up the columns of each group, with weights, and of some columns only; so do what follows
    from it: sums of several labellings, and after some columns moved.
    """
    n = A.shape[1]
    labels, weights, some = np.arange(n) % 3, 1.0 + np.arange(n), np.arange(n)[::-2]
    E = np.eye(4)[labels]  # the fourth group is empty
    after = labels.copy()
    after[some] = (labels[some] + 1 + np.arange(len(some)) % 3) % 4
    F, before = np.eye(4)[after], A.group_sums(labels, 4)
    several = list(A.several_group_sums([labels, after], 4, weights))
    hold(len(several) == 2, f"several_group_sums of 2 labellings gave {len(several)}")
    found = {
        "group_sums(labels)": (A.group_sums(labels, 4), matrix @ E),
        "group_sums(labels, weights)": (A.group_sums(labels, 4, weights), matrix @ (weights[:, None] * E)),
        "group_sums(labels, columns)": (A.group_sums(labels[some], 4, None, some), matrix[:, some] @ E[some]),
        "several_group_sums(...), the first": (several[0], matrix @ (weights[:, None] * E)),
        "several_group_sums(...), the second": (several[1], matrix @ (weights[:, None] * F)),
        "moved_sums(sums, ...)": (A.moved_sums(before, some, labels[some], after[some]), matrix @ F),
        "moved_sums(sums, ..., weights)": (
            A.moved_sums(several[0], some, labels[some], after[some], weights[some]),
            matrix @ (weights[:, None] * F),
        ),
        "sums before": (before, matrix @ E),
    }
    for what, (given, wanted) in found.items():
        hold(given.dtype == np.float64, f"{what} is {given.dtype}")
        _equal(given, wanted, A, what, np.float32 if A.dtype == np.float32 else np.float64)


def check_astype(A: Operator, matrix: Array) -> None:
    """astype changes only the dtype of the entries."""
    for dtype in (np.float32, np.float64):
        B = A.astype(dtype)
        hold(isinstance(B, Operator) and B.dtype == dtype, f"astype({np.dtype(dtype)}) gave {B!r} of {B.dtype}")
        hold(B.toarray().dtype == dtype and B.shape == A.shape, "astype changed more than the dtype")
        hold(B.symmetric == A.symmetric, "astype lost the symmetry")
        _equal(B.toarray(), matrix, A, f"astype({np.dtype(dtype)})", np.float32)


def check_algebra(A: Operator, matrix: Array) -> None:
    """+, −, scaling, @ and powers give operators, from both sides."""
    eye = Identity(A.shape[0])
    found = {
        "A + A": (A + A, 2 * matrix),
        "A − A/4": (A - A / 4, 0.75 * matrix),
        "−A": (-A, -matrix),
        "2 A": (2 * A, 2 * matrix),
        "A 2": (A * 2.0, 2 * matrix),
        "I A": (eye @ A, matrix),
        "A Aᵀ": (A @ A.T, matrix @ matrix.T),
        "array + A": (matrix + A, 2 * matrix),
        "array − A": (matrix - A, 0 * matrix),
    }
    if A.shape[0] == A.shape[1]:
        found["A²"] = (A**2, matrix @ matrix)
    for what, (B, wanted) in found.items():
        hold(isinstance(B, Operator), f"{what} is a {type(B).__name__}, not an operator of ours")
        _equal(B @ np.eye(B.shape[1]), wanted, A, what, scale=1 + np.abs(matrix).max(initial=0.0) * len(matrix))


def check_messages(A: Operator, matrix: Array) -> None:
    """Arguments of wrong shapes raise InvalidInput, which says who, what was given, and what to do."""
    m, n = A.shape
    wrong: dict[str, Callable[[], Any]] = {
        "A @ V with a row too many": lambda: A @ np.ones((n + 1, 2)),
        "A @ v with a row too many": lambda: A @ np.ones(n + 1),
        "A @ complex": lambda: A @ np.ones(n, complex),
        "A @ 2": lambda: A @ 2.0,
        "A + a larger one": lambda: A + np.ones((m + 1, n)),
        "rows beyond the last": lambda: A.rows([m]),
        "rows of floats": lambda: A.rows([0.5]),
        "rows_times with a row too many": lambda: A.rows_times([0], np.ones((n + 1, 2))),
        "block_times with a row too many": lambda: A.block_times([0], [0], np.ones((2, 2))),
        "normal_product with a row too many": lambda: A.normal_product(np.ones(n + 1)),
        "normal_product with a weight too many": lambda: A.normal_product(np.ones(n), np.ones(m + 1)),
        "fill of another shape": lambda: A.fill(np.empty((m + 1, n))),
        "group_sums of a group too many": lambda: A.group_sums(np.zeros(n + 1, int)),
        "astype(int)": lambda: A.astype(int),
        "A / 0": lambda: A / 0,
    }
    for what, attempt in wrong.items():
        try:
            attempt()
        except InvalidInput as error:
            hold(": " in str(error) and "; " in str(error), f"{what}: {error} does not say who, what and what to do")
        else:
            raise AssertionError(f"{what} was accepted")


OPERATOR_CHECKS = (
    check_products,
    check_dtypes,
    check_transpose,
    check_normal_product,
    check_symmetry,
    check_entries,
    check_group_sums,
    check_astype,
    check_algebra,
    check_messages,
)
"""One check for each promise, called as ``check(operator, matrix)``."""


def _vectors(n: int) -> Array:
    return np.random.default_rng(n).standard_normal((n, 4))


def _equal(
    given: Array, wanted: Array, A: Operator, what: str, dtype: Any = np.float64, scale: float | None = None
) -> None:
    hold(given.shape == wanted.shape, f"{what} has shape {given.shape}, not {wanted.shape}")
    eps = max(np.finfo(A.dtype).eps, np.finfo(dtype).eps)
    size = scale if scale is not None else max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    worst = float(np.max(np.abs(np.asarray(given, np.float64) - wanted), initial=0.0))
    hold(worst <= 64 * eps * size * (1 + A.shape[1]) ** 0.5, f"{what} is wrong by {worst:.3g} (size {size:.3g})")
