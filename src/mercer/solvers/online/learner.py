"""The contract of an online learner: a dictionary within a budget, updated by chunks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.solvers.base import State
from mercer.solvers.descent.perceptron import rivals

__all__ = ["FARTHEST", "Basis", "ChunkKernel", "Learner", "ahead", "extended"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
L = TypeVar("L", bound=State)


@dataclass(frozen=True, eq=False)
class ChunkKernel:
    """The kernel values that updates of a dictionary of m rows by a chunk of n rows need.

    Parameters
    ----------
    m, n : int
        Rows of the dictionary and of the chunk.
    values : callable
        p ↦ kernel matrix of shape (m + n, p + n). Its rows are the dictionary and then the chunk; its columns are the
        first p rows of the dictionary and then the chunk.

    Examples
    --------
    >>> ChunkKernel(1, 2, lambda p: np.ones((3, p + 2))).values(1).shape
    (3, 3)
    """

    m: int
    n: int
    values: Callable[[int], Floats]


class Learner(ABC, Generic[L]):
    """A frozen dataclass of parameters. The arrays of its state have one row for each row of the dictionary.

    The rows of a chunk are visited one after the other. So the state does not depend on how the rows were divided into
    chunks, up to rounding.
    """

    budget: int

    @abstractmethod
    def start(self, outputs: int) -> L:
        """The state before the first row, for this number of targets or classes."""

    @abstractmethod
    def visit(self, state: L, chunk: ChunkKernel, targets: NDArray[Any]) -> tuple[L, NDArray[np.intp]]:
        """The state after a chunk, and the new dictionary: indices into its former rows followed by those of the chunk.

        `targets` are labels of shape (n,) for a classifier, and values of shape (n, outputs) otherwise.
        """

    @abstractmethod
    def coefficients(self, state: L, averaged: bool = False) -> Floats:
        """b of shape (m, outputs) with f = Σ b k(dictionary, ·), or its average over all rows seen."""

    def _require(self, ok: bool) -> None:
        if not ok:
            do = "give budget ≥ 1, and parameters within the ranges of the docstring"
            raise InvalidInput(message(type(self).__name__, repr(self), do))


FARTHEST = 1e150
"""No distance is larger; its square does not overflow."""
ROUNDING = 1e-12
"""A squared distance from the span below this share of k(x, x) is rounding, as of 1000 products."""


class Basis:
    """Orthonormal functions v = W k(dictionary, ·) of the dictionary's span; W, lower triangular, grows with it.

    For the rows of a chunk it holds the coordinates V, and in `left` the squared distances from the span.
    """

    def __init__(self, W: Floats, chunk: ChunkKernel) -> None:
        K = chunk.values(0)
        near, self.own = K[: chunk.m], K[chunk.m :]
        self.m, self.size, self.joined = chunk.m, chunk.m, list[int]()
        # V = W near, computed in Fortran order as Vᵀ = nearᵀ Wᵀ.
        first = scipy.linalg.blas.dtrmm(1.0, W, near.T, side=1, lower=1, trans_a=1).T if self.m else near
        self._W, self._V = W, first
        self.left = np.maximum(np.diagonal(self.own) - np.einsum("ij,ij->j", first, first), 0.0)

    @property
    def W(self) -> Floats:
        """W, with a new row for each row that joined."""
        return np.array(self._W[: self.size, : self.size], order="F") if self.joined else self._W

    @property
    def V(self) -> Floats:
        """The coordinates of the chunk's rows in columns."""
        return self._V[: self.size]

    @property
    def outside(self) -> Floats:
        """`left`, and 0 for rows that are in the span up to rounding."""
        return np.where(self.left > ROUNDING * np.diagonal(self.own), self.left, 0.0)

    def admit(self, j: int) -> Floats:
        """Add row j of the chunk; return the new coordinate of the chunk's rows, which is 0 for the rows before j.

        Those rows keep their projection on the span at the time when they were visited.
        """
        if not self.joined:
            most, n = self.m + len(self.own), len(self.own)
            W, V = np.zeros((most, most), order="F"), np.zeros((most, n))
            W[: self.m, : self.m], V[: self.m] = self._W, self._V
            self._W, self._V = W, V
        s, v, root = self.size, self._V[: self.size, j], float(np.sqrt(self.left[j]))
        row = np.zeros(len(self.own))
        row[j:] = (self.own[j, j:] - v @ self._V[:s, j:]) / root
        row[j] = root
        self._W[s, :s], self._W[s, s], self._V[s] = -(self._W[:s, :s].T @ v) / root, 1 / root, row
        self.left[j:] = np.maximum(self.left[j:] - row[j:] ** 2, 0.0)
        self.left[j] = 0.0
        self.joined.append(j)
        self.size += 1
        return row

    def members(self) -> NDArray[np.intp]:
        """The dictionary, as indices into its former rows followed by those of the chunk."""
        return np.concatenate([np.arange(self.m), self.m + np.array(self.joined, np.intp)])


def extended(A: Floats, rows: int) -> Floats:
    """A copy of A with rows of zeros added, up to `rows` rows."""
    out = np.zeros((max(rows, len(A)), *A.shape[1:]), A.dtype)
    out[: len(A)] = A
    return out


def ahead(F: Floats, labels: Integers) -> tuple[Floats, Integers]:
    """(f_y − f_r)/2 for each row, and the best rival r; with two classes and f₀ = −f₁ this is y f₁.

    >>> ahead(np.array([[-2.0, 2.0], [3.0, -3.0]]), np.array([1, 1]))
    (array([ 2., -3.]), array([0, 0]))
    """
    rows, best = np.arange(len(F)), rivals(F, labels)
    return 0.5 * (F[rows, labels] - F[rows, best]), best
