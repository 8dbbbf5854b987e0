"""The surface f(x) = b + Σⱼ αⱼ k(x, xⱼ) over a plane, with the points xⱼ that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator
from sklearn.base import is_classifier

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.display import (
    MOST_NAMED,
    Display,
    drawn_of,
    name_classes,
    name_of,
    named_columns,
    numbers,
    one_for_each,
    places_drawn,
    sortable,
)
from mercer.plots.drawing.outputs import expansion_points, output_of
from mercer.plots.drawing.plane import Plane, bands
from mercer.plots.drawing.style import (
    CLASSES,
    DIVERGING,
    INK,
    NEGATIVE,
    POSITIVE,
    SEQUENTIAL,
    SHADES,
    as_signs,
    colour,
    discs,
    in_legend,
    marker,
    plain,
    tints,
)
from mercer.points import count

__all__ = ["DecisionSurfaceDisplay"]

SIDE = 160


class DecisionSurfaceDisplay(Display):
    """f(x) = b + Σⱼ αⱼ k(x, xⱼ) over two columns, its points xⱼ with areas ∝ |αⱼ|.

    Those with αⱼ > 0 are vermilion squares, those with αⱼ < 0 blue discs. A line is where f = 0. Of more than two
    classes the picture has the class of each place, and the rows.

    Parameters
    ----------
    plane : Plane
        Two columns that vary, and the medians of the others.
    response : array of shape (side, side)
        f on the plane, or the places of classes.
    rows : array of shape (shown, d)
    y : array of shape (shown,) or None
        Their classes or targets.
    points, coefficients : arrays of shape (m, d) and (m,), or None
        xⱼ and αⱼ.
    classes : sequence
        Of `response`, where it has their places.
    signed : bool
        Whether f = 0 divides the plane.
    name : str
        Of f.
    y_name : str
        What the scale of targets that are numbers is called.
    known : sequence
        The classes of the model, which have the first colours; by default those of `response`.
    column_names : sequence of str, optional
    notes : sequence of str
        What the picture says in its corner.

    Attributes
    ----------
    surface_ : QuadContourSet or QuadMesh
        f in bands, or the classes.
    boundary_ : QuadContourSet, list of QuadContourSet, or None
        f = 0, or the border of each class.
    rows_ : list of PathCollection
        The rows: all as dots, coloured by their numbers if they have some, or a collection for each class.
    points_ : PathCollection or None
        The xⱼ with α ≠ 0.
    ax_, figure_, notes_
        See `Display`.

    See Also
    --------
    sklearn.inspection.DecisionBoundaryDisplay : Regions and probabilities, without coefficients.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.plots import DecisionSurfaceDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = SVC(kernel="gaussian(gamma=2.0)").fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(model, X, y)
    >>> len(display.points_.get_offsets()) == len(model.support_)
    True
    """

    def __init__(
        self,
        plane: Plane,
        response: np.ndarray,
        rows: np.ndarray,
        *,
        y: np.ndarray | None = None,
        points: np.ndarray | None = None,
        coefficients: np.ndarray | None = None,
        classes: Sequence[Any] = (),
        signed: bool = True,
        name: str = "f(x)",
        y_name: str = "y",
        known: Sequence[Any] = (),
        column_names: Sequence[str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.plane = plane
        self.response = response
        self.rows = rows
        self.y = y
        self.points = points
        self.coefficients = coefficients
        self.classes = classes
        self.signed = signed
        self.name = name
        self.y_name = y_name
        self.known = known or classes
        self.column_names = column_names
        self.notes = notes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        columns: Sequence[int] = (0, 1),
        output: int | None = None,
        side: int = SIDE,
        points: bool = True,
        ax: Any = None,
    ) -> Self:
        """Compute f on the plane that shows the rows of X, and draw.

        Parameters
        ----------
        estimator : fitted classifier, regressor, clusterer or outlier detector
            Of mercer or scikit-learn, or a pipeline or search.
        X : array-like or CSR matrix of shape (n, d)
            Rows to show, such as those of the fit; of more than 3000 as many are drawn.
        y : array-like of shape (n,), optional
            Their classes or numbers, shown if no xⱼ are drawn; a pandas Series gives the scale of numbers its name.
        columns : (int, int)
            Which two vary; the others stay at their medians.
        output : int, optional
            Show f of this class or target. By default f of two classes or the first target, and the class of the
            largest f where there are more than two.
        side : int
            f is computed at side² places.
        points : bool
            Draw the xⱼ if the output has αⱼ; otherwise the rows alone.
        ax : Axes, optional

        Returns
        -------
        DecisionSurfaceDisplay

        Raises
        ------
        InvalidInput
            For X with one column, or estimators that predict nothing.
        sklearn.exceptions.NotFittedError
        """
        rows, drawn = numbers(X, cls.__name__)
        found = output_of(estimator, output, rows, cls.__name__)
        plane = Plane.through(rows, columns, side, cls.__name__)
        response = plane.values(found.function)
        if not np.all(np.isfinite(response)):
            given = f"{found.name} of {type(estimator).__name__}, which is not finite on all of the plane"
            raise InvalidInput(message(cls.__name__, given, "standardise the columns, or show fewer rows"))
        at, alpha = (None, None) if found.classes else expansion_points(estimator, found, rows) or (None, None)
        if alpha is not None:  # where terms cancel, the signs of what rounding leaves say nothing
            response = np.where(np.abs(response) > 8 * np.finfo(float).eps * np.abs(alpha).sum(), response, 0.0)
        return cls(
            plane,
            response,
            rows,
            y=None if y is None else one_for_each(y, count(X), cls.__name__)[drawn],
            points=at if points else None,
            coefficients=alpha if points else None,
            classes=found.classes,
            signed=found.signed,
            name=plain(found.name),
            y_name=name_of(y),
            known=tuple(getattr(estimator, "classes_", ())) if is_classifier(estimator) else (),
            column_names=named_columns(estimator, rows.shape[1]),
            notes=(plane.note, drawn_of(len(rows), count(X))),
        ).plot(ax)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> Self:
        """Draw, in these axes or in new ones.

        Parameters
        ----------
        ax : Axes, optional
        colorbar : bool
            Whether f has a scale beside the picture.
        """
        ax = self._one(ax)
        self.boundary_: Any = None
        self.points_ = None
        self.rows_: list[Any] = []
        if self.classes:
            self._draw_classes(ax)
        else:
            self._draw_surface(ax, colorbar)
        left_out = self._draw_rows(ax, colorbar) if self.points is None else self._draw_points(ax)
        i, j = self.plane.columns
        if self.column_names is not None:
            ax.set(xlabel=self.column_names[i], ylabel=self.column_names[j])
        ax.set(xlim=self.plane.first[[0, -1]], ylim=self.plane.second[[0, -1]])
        shared = f"{len(self.classes)} classes share {len(CLASSES)} colours" if len(self.classes) > len(CLASSES) else ""
        self._note(ax, *self.notes, left_out, shared)
        return self

    def _draw_surface(self, ax: Any, colorbar: bool) -> None:
        """f in bands, symmetric about 0 where that divides the plane, and the line f = 0."""
        place = (self.plane.first, self.plane.second, self.response)
        levels = bands(self.response, self.signed)
        self.surface_ = ax.contourf(*place, levels=levels, cmap=DIVERGING if self.signed else SHADES)
        if self.signed and self.response.min() < 0 < self.response.max():
            self.boundary_ = ax.contour(*place, levels=[0.0], colors=INK, linewidths=1.5)
        if colorbar:
            self.figure_.colorbar(self.surface_, ax=ax, label=self.name, ticks=MaxNLocator(9))

    def _draw_classes(self, ax: Any) -> None:
        """The class of each place, and the borders between them."""
        many, (a, b) = len(self.classes), (self.plane.first, self.plane.second)
        colours = ListedColormap(tints(many))
        self.surface_ = ax.pcolormesh(a, b, self.response, cmap=colours, vmin=-0.5, vmax=many - 0.5, shading="nearest")
        # Of each class by itself: between two places of far classes the codes of others would be crossed, too.
        codes = np.unique(self.response)
        if len(codes) > 1:
            inside = ((self.response == code).astype(float) for code in codes)
            self.boundary_ = [ax.contour(a, b, one, levels=[0.5], colors=INK, linewidths=0.6) for one in inside]

    def _draw_rows(self, ax: Any, colorbar: bool) -> str:
        """The rows, by their classes where these are known and few, or by their numbers; and what is left out."""
        i, j = self.plane.columns
        y = None if self.y is None else sortable(self.y)
        labels = np.asarray([]) if y is None else np.unique(y)
        many = len(labels) > min(MOST_NAMED, max(20, len(self.known)))
        if y is not None and _are_numbers(y, many):
            dots = {"s": 24, "edgecolors": "white", "linewidths": 0.6, "cmap": SEQUENTIAL}
            self.rows_ = [ax.scatter(self.rows[:, i], self.rows[:, j], c=y.astype(np.float64), **dots)]
            if colorbar:
                self.figure_.colorbar(self.rows_[0], ax=ax, label=plain(self.y_name))
            return ""
        if many or not len(labels):
            self.rows_ = [ax.scatter(self.rows[:, i], self.rows[:, j], s=9, color=INK, linewidths=0)]
            if not many and 1 < len(self.classes or ()) <= MOST_NAMED:  # no colours of rows say which region is which
                for name, shade in zip(self.classes, tints(len(self.classes)), strict=True):
                    ax.fill([], [], facecolor=shade, edgecolor=INK, linewidth=0.6, label=in_legend(name))
                name_classes(ax, len(self.classes), loc="best")
            return f"{len(labels)} classes, too many to tell apart" if many else ""
        known = [str(one) for one in self.known]
        order = [*known, *(str(one) for one in labels.tolist() if str(one) not in known)]
        for label in labels.tolist():
            place, of = order.index(str(label)), y == label
            dots = {"s": 24, "color": colour(place), "marker": marker(place), "edgecolor": "white", "linewidths": 0.6}
            self.rows_.append(ax.scatter(self.rows[of, i], self.rows[of, j], label=in_legend(label), **dots))
        name_classes(ax, len(labels), loc="best")
        return ""

    def _draw_points(self, ax: Any) -> str:
        """The rows as small dots, and over them a disc or a square for each xⱼ with αⱼ ≠ 0, the large ones below.

        Returns what is left out.
        """
        assert self.points is not None
        assert self.coefficients is not None
        i, j = self.plane.columns
        self.rows_ = [ax.scatter(self.rows[:, i], self.rows[:, j], s=2, color=INK, linewidths=0)]
        used = np.flatnonzero(self.coefficients)
        drawn = used[places_drawn(len(used))]
        drawn = drawn[np.argsort(-np.abs(self.coefficients[drawn]), kind="stable")]
        alpha = self.coefficients[drawn]
        at = self.points[drawn][:, [i, j]]
        self.points_ = ax.scatter(*at.T, s=discs(alpha), edgecolors="white", linewidths=0.5)
        as_signs(self.points_, alpha)
        for sign, shade, shape in (("α > 0", POSITIVE, "s"), ("α < 0", NEGATIVE, "o")):
            ax.scatter([], [], s=40, color=shade, marker=shape, edgecolors="white", label=sign)
        ax.legend(loc="best", fontsize="small", title="area ∝ |α|", title_fontsize="small")
        return drawn_of(len(drawn), len(used), "points with α ≠ 0")


def _are_numbers(y: np.ndarray, many: bool) -> bool:
    """Whether colours are on a scale: there are fractions, or many whole numbers. A target that is missing has none."""
    if y.dtype.kind not in "fiu" or not np.all(np.isfinite(y)):
        return False
    return many or bool(np.any(y != np.round(y)))
