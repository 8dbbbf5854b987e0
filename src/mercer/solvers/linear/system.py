"""The linear system that Cholesky and conjugate gradients solve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, message
from mercer.former_names import present_fields
from mercer.operators import Operator
from mercer.solvers.base import require_symmetric

__all__ = ["Floats", "LinearSystem", "column_dots", "column_norms"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """(A + diag(shift)) X = B for a symmetric positive definite A + diag(shift) and one or many right-hand sides.

    Parameters
    ----------
    A : Operator of shape (n, n), symmetric
        Its products with float64 vectors define the true residual. A may be more precise than the factored matrix.
    B : array-like of shape (n,) or (n, r)
        One or r right-hand sides.
    shift : float or array-like of shape (n,)
        Added to the diagonal.
    preconditioner : Operator, optional
        V ↦ M V with M ≈ (A + diag(shift))⁻¹, symmetric positive definite. Conjugate gradients use it.
    low_precision : Operator, optional
        A with entries in float32 or 16 bits. Refined conjugate gradients use it for their inner products.
    matrix : array of shape (n, n), optional
        The entries of A, without the shift. ``Cholesky`` *overwrites* this buffer with its factor, and reads only the
        diagonal and the entries right of it if the buffer is row-major. Without it, ``Cholesky`` calls ``A.fill``.

    Examples
    --------
    >>> from mercer.operators import Dense
    >>> system = LinearSystem(Dense([[1.0, 0.0], [0.0, 3.0]]), [2.0, 4.0], shift=1.0)
    >>> system.residual([1.0, 1.0])
    0.0
    """

    A: Operator
    B: ArrayLike
    shift: ArrayLike = 0.0
    preconditioner: Operator | None = None
    matrix: NDArray[Any] | None = None
    low_precision: Operator | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(present_fields(state, narrow="low_precision"))

    def __post_init__(self) -> None:
        n = self.A.shape[0]
        B, shift = np.asarray(self.B), np.asarray(self.shift)
        require_symmetric("LinearSystem", self.A)
        if B.ndim not in (1, 2) or B.shape[0] != n or B.dtype.kind not in "biuf":
            self._refuse(f"a right-hand side of shape {B.shape} and dtype {B.dtype}", f"give {n} rows of real numbers")
        if shift.shape not in ((), (n,)) or shift.dtype.kind not in "biuf":
            self._refuse(f"a shift of shape {shift.shape}", "give a number or one number for each row")
        if self.preconditioner is not None and self.preconditioner.shape != (n, n):
            self._refuse(f"a preconditioner of shape {self.preconditioner.shape}", f"give shape {(n, n)}")
        if self.low_precision is not None and (self.low_precision.shape != (n, n) or not self.low_precision.symmetric):
            self._refuse(
                f"a low-precision operator of shape {self.low_precision.shape}",
                f"give a symmetric operator of shape {(n, n)}",
            )
        if self.matrix is not None and self.matrix.shape != (n, n):
            self._refuse(f"a matrix of shape {self.matrix.shape}", f"give shape {(n, n)}")

    @staticmethod
    def _refuse(given: str, do: str) -> None:
        raise InvalidInput(message("LinearSystem", given, do))

    @property
    def n(self) -> int:
        """The number of unknowns of one right-hand side."""
        return int(self.A.shape[0])

    @cached_property
    def columns(self) -> Floats:
        """B in float64 with one column for each right-hand side."""
        B = np.asarray(self.B, np.float64)
        return np.ascontiguousarray(B[:, None] if B.ndim == 1 else B)

    @cached_property
    def scales(self) -> Floats:
        """‖b‖ for each right-hand side, and 1 if b = 0."""
        norms = column_norms(self.columns)
        return np.where(norms == 0, 1.0, norms)

    @cached_property
    def _shift(self) -> Any:
        shift = np.asarray(self.shift, np.float64)
        return shift[:, None] if shift.ndim else float(shift)

    def apply(self, X: Floats) -> Floats:
        """(A + diag(shift)) X in float64."""
        return np.asarray(self.A.matmat(X) + self._shift * X)

    def residuals(self, X: Floats) -> Floats:
        """‖b − (A + diag(shift)) x‖/‖b‖ for each column."""
        return column_norms(self.columns - self.apply(X)) / self.scales

    def residual(self, x: ArrayLike) -> float:
        """The largest relative residual of the right-hand sides, from one product in float64."""
        X = np.asarray(x, np.float64).reshape(self.columns.shape)
        return float(np.max(self.residuals(X), initial=0.0))

    def shaped(self, X: Floats) -> Floats:
        """X in the shape of B."""
        return X.reshape(np.shape(self.B))


def column_dots(X: Floats, Y: Floats) -> Floats:
    """⟨xⱼ, yⱼ⟩ for each column, without an array of products."""
    return np.asarray(np.einsum("ij,ij->j", X, Y))


def column_norms(X: Floats) -> Floats:
    """‖xⱼ‖ for each column, scaled so that squares neither overflow nor underflow."""
    largest = np.max(np.abs(X), axis=0, initial=0.0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    scaled = X / unit
    return np.asarray(unit * np.sqrt(column_dots(scaled, scaled)))
