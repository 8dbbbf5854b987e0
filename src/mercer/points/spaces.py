"""Input spaces 𝒳 of kernels k : 𝒳 × 𝒳 → ℝ: which points a kernel has values for, and how data become these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.points.base import Points, VectorPoints
from mercer.points.kinds import points_of, rows_of, vectors_of
from mercer.points.precomputed import Numbers, Precomputed
from mercer.points.validate import as_rows, same_columns

__all__ = ["KERNEL_VALUES", "OBJECTS", "VECTORS", "Space", "space_named"]

Reader = Callable[[Any], Any]


class Space(ABC):
    """What the points of a kernel are.

    Attributes
    ----------
    name : str
        What `Kernel.domain` says.
    vectors : bool
        Whether a point is a vector of numbers: formulas, views and means of points make sense.
    objects : bool
        Whether a point is an object that the kernel alone can read.
    numbered : bool
        Whether the data are kernel values, and training points are known by their numbers only.
    """

    name: ClassVar[str]
    vectors: ClassVar[bool] = False
    objects: ClassVar[bool] = False
    numbered: ClassVar[bool] = False

    def __repr__(self) -> str:
        return type(self).__name__

    @abstractmethod
    def points(self, X: Any, who: str, as_objects: Reader) -> Points:
        """X as points of this space, checked; `as_objects` is how the kernel reads objects. InvalidInput if it fails.

        Points are checked and not made anew.
        """

    def of(self, rows: Any) -> Points:
        """Rows of this space that were checked before, as points."""
        return points_of(rows)

    def others(self, x: Points, Z: Any, who: str, as_objects: Reader) -> Points:
        """Z as the points that the points x have values with."""
        return self.points(Z, who, as_objects)

    def pair(self, X: Any, Z: Any | None, who: str, as_objects: Reader) -> tuple[Points, Points | None]:
        """Both sides of a kernel matrix, in one form that NumPy reads; None for Z=None."""
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
        dtype = np.result_type(x.dtype, z.dtype)
        return x.astype(dtype), z.astype(dtype)


class Objects(Space):
    """Objects of any kind, such as sequences, sets and graphs."""

    name = "any"
    objects = True

    def points(self, X: Any, who: str, as_objects: Reader) -> Points:
        return points_of(as_objects(rows_of(X)))


class KernelValues(Space):
    """Rows of kernel values with the training points."""

    name = "precomputed"
    numbered = True

    def points(self, X: Any, who: str, as_objects: Reader) -> Precomputed:
        return Precomputed(_vectors(X.values if isinstance(X, Precomputed) else X, who))

    def of(self, rows: Any) -> Points:
        return rows if isinstance(rows, Points) else Precomputed(vectors_of(rows))

    def others(self, x: Points, Z: Any, who: str, as_objects: Reader) -> Numbers:
        return Numbers(np.asarray(rows_of(Z)), x.columns).validate(who)


def _vectors(X: Any, who: str) -> VectorPoints:
    if isinstance(X, VectorPoints):
        return X.validate(who)  # type: ignore[return-value]
    return vectors_of(as_rows(rows_of(X), who=who))


VECTORS, OBJECTS, KERNEL_VALUES = Vectors(), Objects(), KernelValues()


def space_named(name: str) -> Space:
    """The space of which `Kernel.domain` says the name.

    >>> space_named("any") is OBJECTS
    True
    """
    for space in (VECTORS, OBJECTS, KERNEL_VALUES):
        if space.name == name:
            return space
    given = f"domain={name!r}"
    raise InvalidInput(message("Kernel", given, 'state "vectors", "any" or "precomputed"'))
