"""Each component of a transformer as a function over a plane: the figure of kernel PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators import KernelKMeans
from mercer.plots.drawing.display import Display, drawn_of, named_columns, numbers
from mercer.plots.drawing.plane import Plane, bands
from mercer.plots.drawing.style import DIVERGING, INK
from mercer.points import count

__all__ = ["ComponentsDisplay"]

SIDE = 80
MOST_COMPONENTS = 8


class ComponentsDisplay(Display):
    """Contours of yⱼ(x) = Σᵢ aᵢⱼ k̃(x, xᵢ) over two columns, a picture for each component j.

    Where a contour runs along the rows, the component does not see how they differ there. Contours below 0 are dashed.

    Parameters
    ----------
    plane : Plane
    scores : array of shape (side, side, pictures)
    rows : array of shape (shown, d)
    titles : sequence of str
        One for each picture.
    column_names : sequence of str, optional
    notes : sequence of str

    Attributes
    ----------
    surfaces_, contours_ : lists of QuadContourSet
        Bands of colour, and the lines between them.
    rows_ : list of PathCollection
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> from mercer.plots import ComponentsDisplay
    >>> X, _ = make_circles(60, factor=0.3, noise=0.05, random_state=0)
    >>> display = ComponentsDisplay.from_estimator(KernelPCA(4, "gaussian(gamma=2.0)").fit(X), X)
    >>> [ax.get_title() for ax in display.ax_]
    ['component 1: 22 %', 'component 2: 17 %', 'component 3: 17 %', 'component 4: 9.1 %']
    """

    def __init__(
        self,
        plane: Plane,
        scores: np.ndarray,
        rows: np.ndarray,
        *,
        titles: Sequence[str],
        column_names: Sequence[str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.plane = plane
        self.scores = scores
        self.rows = rows
        self.titles = titles
        self.column_names = column_names
        self.notes = notes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        components: Sequence[int] | None = None,
        columns: Sequence[int] = (0, 1),
        side: int = SIDE,
        ax: Any = None,
    ) -> Self:
        """Compute the scores on the plane that shows the rows of X, and draw.

        Parameters
        ----------
        estimator : fitted transformer
            `KernelPCA`, a discriminant, a feature map, or another one with `transform`.
        X : array-like or CSR matrix of shape (n, d)
            Rows to show, such as those of the fit; of more than 3000 as many are drawn.
        components : sequence of int, optional
            Which; by default the first eight, or as many as there are.
        columns : (int, int)
            Which two vary; the others stay at their medians.
        side : int
            The scores are computed at side² places.
        ax : array of Axes, optional
            One for each component.

        Returns
        -------
        ComponentsDisplay

        Raises
        ------
        InvalidInput
            For X with one column, estimators without `transform`, and components that they do not have.
        sklearn.exceptions.NotFittedError
        """
        who = cls.__name__
        check_is_fitted(estimator)
        if not hasattr(estimator, "transform"):
            raise InvalidInput(message(who, f"{type(estimator).__name__}, which has no transform", "give a KernelPCA"))
        rows, _ = numbers(X, who)
        plane = Plane.through(rows, columns, side, who)
        scores = plane.values(lambda at: np.asarray(estimator.transform(at)).reshape(len(at), -1))
        places = chosen(components, scores.shape[2], who)
        notes = [plane.note, drawn_of(len(rows), count(X))]
        if components is None and len(places) < scores.shape[2]:
            notes.append(f"{len(places)} of {scores.shape[2]} components")
        return cls(
            plane,
            scores[:, :, places],
            rows,
            titles=[title(estimator, place) for place in places],
            column_names=named_columns(estimator, rows.shape[1]),
            notes=notes,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of axes, one for each component, or in new ones."""
        axes = self._several(ax, len(self.titles), width=3.2, height=3.0)
        self.surfaces_: list[Any] = []
        self.contours_: list[Any] = []
        self.rows_: list[Any] = []
        for place, one in enumerate(axes):
            self._draw(one, self.scores[:, :, place])
            one.set_title(self.titles[place], fontsize="medium")
        if self.column_names is not None:
            i, j = self.plane.columns
            axes[0].set(xlabel=self.column_names[i], ylabel=self.column_names[j])
        self._note(axes[-1], *self.notes)
        return self

    def _draw(self, ax: Any, scores: np.ndarray) -> None:
        levels, at = bands(scores, signed=True), (self.plane.first, self.plane.second, scores)
        self.surfaces_.append(ax.contourf(*at, levels=levels, cmap=DIVERGING))
        if np.ptp(scores) > 0:
            lines = ["dashed" if level < 0 else "solid" for level in levels]
            self.contours_.append(ax.contour(*at, levels=levels, colors=INK, linewidths=0.4, linestyles=lines))
        i, j = self.plane.columns
        self.rows_.append(ax.scatter(self.rows[:, i], self.rows[:, j], s=5, color=INK, linewidths=0))
        ax.set(xlim=self.plane.first[[0, -1]], ylim=self.plane.second[[0, -1]])


def chosen(components: Sequence[int] | None, found: int, who: str, most: int = MOST_COMPONENTS) -> list[int]:
    """The given components, or the first ones."""
    places = list(range(min(found, most))) if components is None else [int(one) for one in components]
    if not places or not all(0 <= place < found for place in places):
        given = f"components={components!r} of a model with {found}"
        raise InvalidInput(message(who, given, f"name some from 0 to {found - 1}" if found else "fit it to other rows"))
    return places


def title(estimator: Any, place: int) -> str:
    """The number of a component or discriminant, from 1, and its share of the variance where that is known.

    What k-means gives are distances from clusters, which have the numbers of the labels, from 0.
    """
    if isinstance(estimator, KernelKMeans | KMeans | MiniBatchKMeans):
        return f"distance from cluster {place}"
    shares = getattr(estimator, "explained_variance_ratio_", None)
    share = "" if shares is None else f": {100 * shares[place]:.2g} %"
    return f"{'discriminant' if is_classifier(estimator) else 'component'} {place + 1}{share}"
