"""The contract of an online learner: a dictionary within a budget, rows that come a chunk at a time."""

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

__all__ = ["Basis", "ChunkKernel", "Learner", "ahead", "extended"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
L = TypeVar("L", bound=State)


@dataclass(frozen=True, eq=False)
class ChunkKernel:
    """The kernel values that a chunk of n rows brings to a dictionary of m: all that its updates need.

    Parameters
    ----------
    m, n : int
    values : callable
        p ↦ k of the dictionary and then the rows with its first p and then the rows, of shape (m + n, p + n).
    """

    m: int
    n: int
    values: Callable[[int], Floats]

    def near_and_own(self) -> tuple[Floats, Floats]:
        """k(dictionary, rows) and k(rows, rows)."""
        K = self.values(0)
        return K[: self.m], K[self.m :]


class Learner(ABC, Generic[L]):
    """A frozen dataclass of parameters. Its state is arrays, of as many rows as the dictionary where they have rows.

    The rows of a chunk are visited one after the other: cut in chunks in whatever way, they leave the same state, up to
    rounding.
    """

    budget: int

    @abstractmethod
    def start(self, outputs: int) -> L:
        """The state before the first row, for so many targets or classes."""

    @abstractmethod
    def visit(self, state: L, chunk: ChunkKernel, targets: NDArray[Any]) -> tuple[L, NDArray[np.intp]]:
        """The state after a chunk, and what is in the dictionary then: indices into its rows followed by the chunk's.

        `targets` are labels of shape (n,) for a classifier, values of shape (n, outputs) otherwise.
        """

    @abstractmethod
    def coefficients(self, state: L, averaged: bool = False) -> Floats:
        """b of shape (m, outputs) with f = Σ b k(dictionary, ·); `averaged` over all rows seen."""

    def _require(self, ok: bool) -> None:
        if not ok:
            raise InvalidInput(message(type(self).__name__, repr(self), "give budget ≥ 1 and numbers in their range"))


class Basis:
    """Orthonormal functions v = W k(dictionary, ·) of its span, W lower triangular: a Cholesky factor that grows.

    It keeps, for a chunk of rows, their coordinates V, and the squared distances from the span that are left.
    """

    def __init__(self, W: Floats, chunk: ChunkKernel) -> None:
        near, self.own = chunk.near_and_own()
        self.m, self.size, self.joined = chunk.m, chunk.m, list[int]()
        # V = W near, which to Fortran is Vᵀ = nearᵀ Wᵀ.
        first = scipy.linalg.blas.dtrmm(1.0, W, near.T, side=1, lower=1, trans_a=1).T if self.m else near
        self._W, self._V = W, first
        self.left = np.maximum(np.diagonal(self.own) - np.einsum("ij,ij->j", first, first), 0.0)

    @property
    def W(self) -> Floats:
        """The factor, with a row for each that joined."""
        return np.array(self._W[: self.size, : self.size], order="F") if self.joined else self._W

    @property
    def V(self) -> Floats:
        """The coordinates of the chunk's rows, in columns."""
        return self._V[: self.size]

    def admit(self, j: int) -> Floats:
        """Row j of the chunk joins; the new coordinate of the chunk's rows, 0 for those before j, which came before it.

        Earlier rows stay as they were seen: projected on the span that there was.
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
        """The dictionary, as indices into its rows at first and the chunk's."""
        return np.concatenate([np.arange(self.m), self.m + np.array(self.joined, np.intp)])


def extended(A: Floats, rows: int) -> Floats:
    """A copy of A with zeros below, so many rows in all."""
    out = np.zeros((max(rows, len(A)), *A.shape[1:]), A.dtype)
    out[: len(A)] = A
    return out


def ahead(F: Floats, labels: Integers) -> tuple[Floats, Integers]:
    """Half of f_y − f_r for each row, and the best rival r: with two classes and f₀ = −f₁ it is y f₁.

    >>> ahead(np.array([[-2.0, 2.0], [3.0, -3.0]]), np.array([1, 1]))
    (array([ 2., -3.]), array([0, 0]))
    """
    rows = np.arange(len(F))
    true = F[rows, labels]
    others = F.copy()
    others[rows, labels] = -np.inf
    rivals = others.argmax(axis=1)
    return 0.5 * (true - others[rows, rivals]), rivals
