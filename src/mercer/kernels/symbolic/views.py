"""Views: maps of the rows before a pairing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.points import is_torch, points_of, vectors_of

__all__ = ["Circle", "Columns", "LengthScales", "View"]


class View(Protocol):
    """A map that is applied to each row."""

    def apply(self, X: Any) -> Any:
        """The images of the rows of X."""
        ...


@dataclass(frozen=True)
class Columns:
    """x ↦ (xᵢ for i in indices).

    Parameters
    ----------
    indices : tuple of int
        The columns, counted from 0.

    Examples
    --------
    >>> Columns((2, 0)).apply(np.array([[1.0, 2.0, 3.0]]))
    array([[3., 1.]])
    """

    indices: tuple[int, ...]

    def apply(self, X: Any) -> Any:
        """The chosen columns, in the given order."""
        if self.indices and max(self.indices) >= X.shape[1]:
            given = f"column {max(self.indices)} of data with {counted(X.shape[1], 'column')}"
            raise InvalidInput(message("Columns", given, "give indices below the number of columns"))
        if isinstance(X, np.ndarray):
            return X.take(self.indices, axis=1)
        return X[:, list(self.indices)]


@dataclass(frozen=True)
class LengthScales:
    """x ↦ (xᵢ / scaleᵢ for each i).

    Parameters
    ----------
    scales : tuple of float > 0
        One for each column, in its units.

    Examples
    --------
    >>> LengthScales((1.0, 10.0)).apply(np.array([[1.0, 20.0]]))
    array([[1., 2.]])
    """

    scales: tuple[float, ...]

    def apply(self, X: Any) -> Any:
        """Each column divided by its length-scale, in the dtype of X."""
        if len(self.scales) != X.shape[1]:
            given = f"{counted(len(self.scales), 'length-scale')} for data with {counted(X.shape[1], 'column')}"
            raise InvalidInput(message("LengthScales", given, "give one number for each column"))
        factors = 1.0 / np.asarray(self.scales, dtype=np.float64)
        if points_of(X).sparse:
            return (vectors_of(X).csr() @ sp.diags_array(factors)).astype(X.dtype).tocsr()
        if is_torch(X):
            return X * sys.modules["torch"].as_tensor(factors, dtype=X.dtype, device=X.device)
        return (X * factors).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class Circle:
    """x ↦ (cos 2πxᵢ/p for each i, then sin 2πxᵢ/p for each i): points on circles, one for each coordinate.

    The squared distance of the images of two points is 4 Σ sin²(π(xᵢ − zᵢ)/p).

    Parameters
    ----------
    period : float > 0
        p, in the units of x.

    Examples
    --------
    >>> Circle(4.0).apply(np.array([[1.0]])).round(12)
    array([[0., 1.]])
    """

    period: float

    def apply(self, X: Any) -> Any:
        """Cosines and sines, computed in float64 and returned in the dtype of X."""
        if points_of(X).sparse:
            raise InvalidInput(message("Circle", "sparse data, whose zeros become ones", "convert it with X.toarray()"))
        if is_torch(X):
            torch = sys.modules["torch"]
            angle = 2 * torch.pi * torch.remainder(X.double() / self.period, 1.0)
            return torch.cat([torch.cos(angle), torch.sin(angle)], dim=1).to(X.dtype)
        # The remainder first, because the rounding of π would change 2πx/p by whole turns for large x.
        angle = 2 * np.pi * np.remainder(np.asarray(X, dtype=np.float64) / self.period, 1.0)
        return np.hstack([np.cos(angle), np.sin(angle)]).astype(X.dtype, copy=False)
