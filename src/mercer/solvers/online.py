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

__all__ = ["Basis", "Learner", "Meeting", "ahead", "extended"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
L = TypeVar("L", bound=State)


@dataclass(frozen=True, eq=False)
class Meeting:
    """The kernel values that a chunk of n rows brings to a dictionary of m: all that its updates need.

    Parameters
    ----------
    near : array of shape (m, n)
        k(dictionary, rows).
    own : array of shape (n, n)
        k(rows, rows).
    oldest : callable
        p ↦ k(dictionary, its first p), of shape (m, p).
    """

    near: Floats
    own: Floats
    oldest: Callable[[int], Floats]


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
    def visit(self, state: L, meeting: Meeting, targets: NDArray[Any]) -> tuple[L, NDArray[np.intp]]:
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

    def __init__(self, W: Floats, meeting: Meeting) -> None:
        self.W, self.own = W, meeting.own
        self.V = W @ meeting.near
        self.m, self.joined = len(W), list[int]()
        self.left = np.maximum(np.diagonal(self.own) - np.einsum("ij,ij->j", self.V, self.V), 0.0)

    @property
    def size(self) -> int:
        """Rows of the dictionary."""
        return self.m + len(self.joined)

    def admit(self, j: int) -> Floats:
        """Row j of the chunk joins; the new coordinate of the chunk's rows, 0 for those before j, which came before it.

        Earlier rows stay as they were seen: projected on the span that there was.
        """
        v, root = self.V[:, j], float(np.sqrt(self.left[j]))
        row = np.zeros(len(self.own))
        row[j:] = (self.own[j, j:] - v @ self.V[:, j:]) / root
        row[j] = root
        below = scipy.linalg.blas.dtrmv(self.W, v, lower=1, trans=1) if len(self.W) else v
        grown = np.zeros((len(self.W) + 1, len(self.W) + 1), order="F")
        grown[:-1, :-1], grown[-1, :-1], grown[-1, -1] = self.W, -below / root, 1 / root
        self.W, self.V = grown, np.vstack([self.V, row])
        self.left[j:] = np.maximum(self.left[j:] - row[j:] ** 2, 0.0)
        self.left[j] = 0.0
        self.joined.append(j)
        return row

    def members(self) -> NDArray[np.intp]:
        """The dictionary, as indices into its rows at first and the chunk's."""
        return np.concatenate([np.arange(self.m), self.m + np.array(self.joined, np.intp)])


def extended(A: Floats, rows: int) -> Floats:
    """A with zero rows below, so many in all."""
    return np.vstack([A, np.zeros((rows - len(A), *A.shape[1:]))]) if rows > len(A) else A.copy()


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
