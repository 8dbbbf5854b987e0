"""The scores of rows on one, two or three components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.components import chosen, title
from mercer.plots.drawing.display import (
    MOST_NAMED,
    Display,
    drawn_of,
    name_classes,
    name_of,
    one_for_each,
    places_drawn,
    sortable,
)
from mercer.plots.drawing.style import INK, SEQUENTIAL, colour, in_legend, marker, plain
from mercer.points import count, take

__all__ = ["ScoresDisplay"]

MOST_CLASSES = 20
"""Of more than so many whole numbers the colour is their size."""


class ScoresDisplay(Display):
    """yⱼ(x) of each row x on two or three components j; on one, against the numbers of the rows.

    Parameters
    ----------
    scores : array of shape (shown, 1, 2 or 3)
    y : array of shape (shown,) or None
        Classes, which have colours and markers, or numbers, which have a scale.
    titles : sequence of str
        Of the components.
    rows : array of int of shape (shown,), optional
        The numbers of the rows.
    notes : sequence of str
    y_name : str
        What the scale of numbers is called.

    Attributes
    ----------
    points_ : list of PathCollection
        One for each class; or one.
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.plots import ScoresDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ScoresDisplay.from_estimator(KernelPCA(3, "gaussian(gamma=0.1)").fit(X), X, y, components=(0, 2))
    >>> [len(points.get_offsets()) for points in display.points_], display.ax_.get_ylabel()
    ([50, 50, 50], 'component 3: 4 %')
    """

    def __init__(
        self,
        scores: np.ndarray,
        *,
        y: np.ndarray | None = None,
        titles: Sequence[str],
        rows: np.ndarray | None = None,
        notes: Sequence[str] = (),
        y_name: str = "y",
    ) -> None:
        self.scores = scores
        self.y = y
        self.y_name = y_name
        self.titles = titles
        self.rows = rows
        self.notes = notes

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, components: Sequence[int] | None = None, ax: Any = None
    ) -> Self:
        """Compute the scores of the rows that are drawn, and draw.

        Parameters
        ----------
        estimator : fitted transformer
        X : array-like of shape (n, d), or objects that its kernel takes
            Of more than 3000 as many are drawn.
        y : array-like of shape (n,), optional
            Classes or numbers; a pandas Series gives their scale its name. More than 60 classes are not told apart.
        components : one, two or three ints, optional
            By default the first two, or the only one.
        ax : Axes, optional
            Three-dimensional ones for three components.

        Raises
        ------
        InvalidInput
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "transform"):
            given = f"{type(estimator).__name__}, which has no transform"
            raise InvalidInput(message(cls.__name__, given, "give a KernelPCA"))
        n, drawn = count(X), places_drawn(count(X))
        scores = np.asarray(estimator.transform(take(X, drawn) if len(drawn) < n else X)).reshape(len(drawn), -1)
        places = chosen(components, scores.shape[1], cls.__name__, most=2)
        return cls(
            scores[:, places],
            y=None if y is None else one_for_each(y, n, cls.__name__)[drawn],
            titles=[title(estimator, place) for place in places],
            rows=drawn,
            notes=[drawn_of(len(drawn), n)],
            y_name=name_of(y),
        ).plot(ax)

    @classmethod
    def from_predictions(cls, scores: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Draw scores that are known, of shape (n, 1), (n, 2) or (n, 3)."""
        table = np.asarray(scores, np.float64)
        table = table[:, None] if table.ndim == 1 else table
        drawn = places_drawn(len(table))
        labels = None if y is None else one_for_each(y, len(table), cls.__name__)[drawn]
        titles = [f"component {place + 1}" for place in range(table.shape[1])]
        notes = [drawn_of(len(drawn), len(table))]
        return cls(table[drawn], y=labels, titles=titles, rows=drawn, notes=notes, y_name=name_of(y)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        k = self.scores.shape[1]
        if k > 3:
            given = counted(k, "component")
            raise InvalidInput(message(type(self).__name__, given, "choose one, two or three"))
        ax = self._one(ax, **({"subplot_kw": {"projection": "3d"}} if k == 3 else {}))
        if k == 3 and ax.name != "3d":
            do = 'give axes with projection="3d", or none'
            raise InvalidInput(message(type(self).__name__, "three components for axes of two dimensions", do))
        at = self.scores.T if k > 1 else (self._numbers(), self.scores[:, 0])
        self.points_, left_out = self._draw(ax, at)
        self._note(ax, *self.notes, left_out)
        names = self.titles if k > 1 else ["row", *self.titles]
        ax.set(xlabel=names[0], ylabel=names[1])
        if k == 3:
            ax.set_zlabel(names[2])
        return self

    def _numbers(self) -> np.ndarray:
        return np.arange(len(self.scores)) if self.rows is None else self.rows

    def _draw(self, ax: Any, at: Any) -> tuple[list[Any], str]:
        """The points, by class, by number, or all alike, and what the picture does not tell of them."""
        dots = {"s": 16, "linewidths": 0.3, "edgecolors": "white"}
        y = None if self.y is None else sortable(self.y)
        labels = np.asarray([]) if y is None else np.unique(y)
        if y is not None and y.dtype.kind in ("fiu" if len(labels) > MOST_CLASSES else "f"):
            points = ax.scatter(*at, c=np.asarray(y, np.float64), cmap=SEQUENTIAL, **dots)
            self.figure_.colorbar(points, ax=ax, label=plain(self.y_name), pad=0.15 if len(at) == 3 else 0.02)
            return [points], ""
        if not 0 < len(labels) <= MOST_NAMED:
            points = ax.scatter(*at, color=INK, **dots)
            return [points], f"{len(labels)} classes, too many to tell apart" if len(labels) else ""
        found = []
        for place, label in enumerate(labels):
            one = {"color": colour(place), "marker": marker(place), "label": in_legend(label), **dots}
            found.append(ax.scatter(*(axis[y == label] for axis in at), **one))
        name_classes(ax, len(labels), markerscale=1.4, loc="upper left" if len(at) == 3 else "best")
        return found, ""
