"""Input spaces 𝒳 of kernels k : 𝒳 × 𝒳 → ℝ: each converts and checks the data that users give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.points.base import Points, VectorPoints
from mercer.points.kinds import points_of, rows_of, vectors_of
from mercer.points.precomputed import Numbers, Precomputed
from mercer.points.tensors import DevicePoints
from mercer.points.validate import as_rows, same_columns, same_names

__all__ = ["KERNEL_VALUES", "OBJECTS", "VECTORS", "Space", "space_named"]

Reader = Callable[[Any], Any]


class Space(ABC):
    """The points that a kernel has values for.

    Attributes
    ----------
    name : str
        The name of the space in `Kernel.domain`.
    vectors : bool
        Whether points are vectors of numbers, so that formulas, views and means of points are defined.
    objects : bool
        Whether points are objects that only the kernel itself can read.
    numbered : bool
        Whether data are kernel values, and training points are columns of them.
    """

    name: ClassVar[str]
    vectors: ClassVar[bool] = False
    objects: ClassVar[bool] = False
    numbered: ClassVar[bool] = False

    def __repr__(self) -> str:
        return type(self).__name__

    @abstractmethod
    def points(self, X: Any, who: str, as_objects: Reader) -> Points:
        """X as checked points of this space; raise InvalidInput if X has none.

        `as_objects` is the kernel's method that reads objects. Points are checked, but not copied.
        """

    def of(self, rows: Any) -> Points:
        """Rows that were checked before, as points of this space."""
        return points_of(rows)

    def holds(self, rows: Any) -> bool:
        """Whether the rows of a model can be points of this space, by their type alone."""
        return isinstance(points_of(rows), VectorPoints)

    def others(self, x: Points, Z: Any, who: str, as_objects: Reader) -> Points:
        """Z as checked points: the second arguments of kernel values of the points x."""
        return self.points(Z, who, as_objects)

    def pair(self, X: Any, Z: Any | None, who: str, as_objects: Reader) -> tuple[Points, Points | None]:
        """The points of the rows and of the columns of a kernel matrix, of one dtype; (x, None) for Z=None."""
        x = self.points(X, who, as_objects).readable(who)
        return x, None if Z is None else self.others(x, Z, who, as_objects).readable(who)


class Vectors(Space):
    """ℝᵈ: rows of a table of numbers."""

    name = "vectors"
    vectors = True

    def points(self, X: Any, who: str, as_objects: Reader) -> VectorPoints:
        return _vectors(X, who)

    def pair(self, X: Any, Z: Any | None, who: str, as_objects: Reader) -> tuple[Points, Points | None]:
        x, z = super().pair(X, Z, who, as_objects)
        if z is None:
            return x, None
        assert isinstance(x, VectorPoints) and isinstance(z, VectorPoints)  # noqa: PT018
        same_columns(x.rows, z.rows, who)
        same_names(points_of(X).names, points_of(Z).names, who)
        dtype = np.result_type(x.dtype, z.dtype)
        return x.astype(dtype), z.astype(dtype)


class Objects(Space):
    """Objects of any kind, such as sequences, sets and graphs."""

    name = "any"
    objects = True

    def points(self, X: Any, who: str, as_objects: Reader) -> Points:
        return points_of(as_objects(rows_of(X)))

    def pair(self, X: Any, Z: Any | None, who: str, as_objects: Reader) -> tuple[Points, Points | None]:
        if Z is not None:
            same_names(points_of(X).names, points_of(Z).names, who)
        return super().pair(X, Z, who, as_objects)

    def holds(self, rows: Any) -> bool:
        listed = isinstance(rows, list | tuple) or (isinstance(rows, np.ndarray) and rows.dtype.kind in "biufO")
        return listed or super().holds(rows)


class KernelValues(Space):
    """Rows of kernel values with the training points."""

    name = "precomputed"
    numbered = True

    def points(self, X: Any, who: str, as_objects: Reader) -> Precomputed:
        return Precomputed(_vectors(X.values if isinstance(X, Precomputed) else X, who))

    def of(self, rows: Any) -> Points:
        return rows if isinstance(rows, Points) else Precomputed(vectors_of(rows))

    def holds(self, rows: Any) -> bool:
        return isinstance(rows, np.ndarray)  # a model keeps the indices of its training points

    def others(self, x: Points, Z: Any, who: str, as_objects: Reader) -> Numbers:
        return Numbers(np.asarray(rows_of(Z)), x.columns).validate(who)


def _vectors(X: Any, who: str) -> VectorPoints:
    found = X if isinstance(X, VectorPoints) else DevicePoints.of(X)
    if found is not None:
        return found.validate(who)  # type: ignore[return-value]
    return vectors_of(as_rows(rows_of(X), who=who))


VECTORS, OBJECTS, KERNEL_VALUES = Vectors(), Objects(), KernelValues()


def space_named(name: str) -> Space:
    """The space with this name.

    Parameters
    ----------
    name : "vectors", "any" or "precomputed"

    Raises
    ------
    InvalidInput
        For any other name.

    Examples
    --------
    >>> space_named("any") is OBJECTS
    True
    """
    for space in (VECTORS, OBJECTS, KERNEL_VALUES):
        if space.name == name:
            return space
    given = f"domain={name!r}"
    raise InvalidInput(message("Kernel", given, 'state "vectors", "any" or "precomputed"'))
