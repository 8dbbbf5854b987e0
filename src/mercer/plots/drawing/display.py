"""What all displays share: the axes, the rows that are drawn, and what is said of those that are not."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.drawing.style import FAINT, MOST_LETTERS, plain, shortened
from mercer.points import as_rows, count, sample_rows, take, vectors_of

__all__ = [
    "LARGEST",
    "MOST_NAMED",
    "MOST_POINTS",
    "Display",
    "clear_legend",
    "drawn_of",
    "in_the_corner",
    "largest_drawn",
    "name_classes",
    "name_of",
    "numbers",
    "places_drawn",
]

MOST_POINTS = 3000
"""Points that a picture has at most: with more they hide each other."""
MOST_NAMED, BESIDE, COLUMN = 60, 10, 13
"""Classes that a picture names at most; more than BESIDE are named beside the axes, COLUMN of them in each column."""
LARGEST = 100
"""Of more rows than a picture shows it has at least so many of the largest residuals: the worst must not be missing."""
LETTERS, NEAR = 40, 0.05
"""The longest line of a name in a legend of lines, and the room in inches that these need: their markers are wide."""


class Display:
    """A picture's data and, after `plot`, its artists.

    As in scikit-learn ``from_estimator`` computes the data from a fitted model and draws, and ``plot`` draws again, in
    other axes if wanted. Where a picture leaves something out, it says so in its lower right corner.

    Attributes
    ----------
    ax_ : Axes
        Or the array of them, where there are several.
    figure_ : Figure
    notes_ : list of str
        What the picture says about what it leaves out.

    Examples
    --------
    >>> from mercer.plots import ComponentsDisplay, Display
    >>> issubclass(ComponentsDisplay, Display)
    True
    """

    ax_: Any
    figure_: Any
    notes_: list[str]

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        raise NotImplementedError

    def _one(self, ax: Any, **options: Any) -> Any:
        """The axes of a picture that has one."""
        self.notes_ = []
        self.ax_ = new_axes(1, **options)[0] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _several(self, ax: Any, wanted: int, **options: Any) -> list[Any]:
        """The axes of a picture that has several: an array of this many, if any are given."""
        self.notes_ = []
        self.ax_ = new_axes(wanted, **options) if ax is None else np.asarray(ax, object).ravel()
        if len(self.ax_) != wanted:
            given = f"{len(self.ax_)} axes for {wanted} pictures"
            raise InvalidInput(message(type(self).__name__, given, f"give an array of {wanted} axes, or none"))
        self.figure_ = self.ax_[0].figure
        return list(self.ax_)

    def _note(self, ax: Any, *notes: str) -> None:
        """Say what is left out."""
        self.notes_ += in_the_corner(ax, *notes)


def in_the_corner(ax: Any, *notes: str) -> list[str]:
    """Write the notes that are not empty in the lower right corner, and return these."""
    said = [note for note in notes if note]
    if said:
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.8, "edgecolor": "none"}
        place = {"xy": (1, 0), "xycoords": "axes fraction", "xytext": (-3, 3), "textcoords": "offset points"}
        ax.annotate(
            plain("\n".join(said)),
            **place,
            ha="right",
            va="bottom",
            fontsize="x-small",
            color=FAINT,
            bbox=box,
            zorder=9,
        )
    return said


def new_axes(wanted: int, width: float = 5.0, height: float = 4.0, most: int = 4, **options: Any) -> np.ndarray:
    """A figure of this many axes, at most four beside each other, none of them empty."""
    import matplotlib.pyplot as plt

    beside = min(wanted, most)
    rows = -(-wanted // beside)
    figure, axes = plt.subplots(
        rows, beside, squeeze=False, layout="constrained", figsize=(width * beside, height * rows), **options
    )
    for ax in axes.flat[wanted:]:
        figure.delaxes(ax)
    return np.asarray(axes.flat[:wanted], object)


def name_classes(ax: Any, classes: int, **options: Any) -> None:
    """The legend of this many classes, in the axes or, of many, beside them."""
    if classes > BESIDE:
        beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "ncols": -(-classes // COLUMN)}
        options |= {**beside, "fontsize": "x-small", "columnspacing": 0.8, "handletextpad": 0.2}
    ax.legend(**{"fontsize": "small", **options})


def clear_legend(ax: Any, lines: Sequence[Any], *, widen: bool) -> None:
    """The legend where it hides neither these lines nor what is written: in the axes or, if it must, beside them.

    matplotlib's "best" place hides the fewest points, which may be many. `widen` makes the figure as much wider. In a
    figure without a layout it stays in the axes: beside them it would be under others.
    """
    handles, names = ax.get_legend_handles_labels()
    names, figure = [textwrap.fill(name, LETTERS) for name in names], ax.figure.canvas.figure
    found = ax.legend(handles, names, fontsize="small")
    found.set_in_layout(False)  # a wide one would leave the axes no room
    figure.draw_without_rendering()  # puts it in its place
    box = found.get_window_extent()
    room = box.padded(NEAR * figure.dpi)
    paths = [line.get_transform().transform_path(line.get_path()) for line in lines]
    hides = any(one.intersects_bbox(room, filled=False) or room.count_contains(one.vertices) for one in paths)
    hides = hides or any(text.get_window_extent().overlaps(box) for text in ax.texts)
    if hides and figure.get_layout_engine() is not None:
        ax.legend(handles, names, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
        if widen:
            figure.set_figwidth(figure.get_figwidth() + box.width / figure.dpi)


def places_drawn(n: int, most: int = MOST_POINTS) -> np.ndarray:
    """Which of n rows a picture shows: all, or `most` of them at random, always the same.

    >>> places_drawn(3), len(places_drawn(10**6))
    (array([0, 1, 2]), 3000)
    """
    return sample_rows(n, most, 0)


def largest_drawn(values: np.ndarray, kept: int = LARGEST, most: int = MOST_POINTS) -> np.ndarray:
    """Which rows a picture shows: all, or `most` of them: the `kept` of the largest values, and others at random.

    >>> values = np.arange(10**6)[::-1]
    >>> largest_drawn(values)[:100].tolist() == list(range(100)), len(largest_drawn(values))
    (True, 3000)
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    largest = np.argsort(-values, kind="stable")[:kept]
    rest = np.setdiff1d(np.arange(n), largest, assume_unique=True)
    return np.sort(np.concatenate([largest, rest[places_drawn(len(rest), most - kept)]]))


def drawn_of(shown: int, n: int, what: str = "rows") -> str:
    """What the picture says if it leaves rows out; nothing otherwise.

    >>> drawn_of(3000, 10**6), drawn_of(3, 3)
    ('3,000 of 1,000,000 rows drawn', '')
    """
    return f"{shown:,} of {n:,} {what} drawn" if shown < n else ""


def numbers(X: Any, who: str, most: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are drawn as an array of numbers, and their places."""
    if isinstance(X, list | tuple | np.ndarray) and len(X) and isinstance(X[0], str | bytes | set | frozenset | dict):
        do = "draw their scores (ScoresDisplay) or kernel values (GramDisplay)"
        raise InvalidInput(message(who, f"rows of type {type(X[0]).__name__}, which have no place in a plane", do))
    places = places_drawn(count(X), most)
    rows = as_rows(X if len(places) == count(X) else take(X, places), who=who)
    return np.asarray(vectors_of(rows).dense(), np.float64), places


def named_columns(model: Any, d: int) -> Sequence[str]:
    """The names of the columns that the model was fitted to, or x₁, x₂, …"""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"$x_{{{j + 1}}}$" for j in range(d)]
    return [plain(shortened(name, MOST_LETTERS)) for name in names]


def sortable(labels: np.ndarray) -> np.ndarray:
    """Labels that can be sorted: objects of several kinds, or of which some are missing, as texts.

    >>> sortable(np.array(["b", None, 2], object)).tolist()
    ['b', 'missing', '2']
    """
    kinds = {type(one) for one in labels}
    if labels.dtype != object or (len(kinds) < 2 and type(None) not in kinds):
        return labels
    return np.array(["missing" if _is_missing(one) else str(one) for one in labels])


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or one of pandas' values that are not equal to themselves."""
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None) or bool(value != value)


def name_of(y: Any) -> str:
    """What the scale of numbers is called: the name of a pandas Series, or y."""
    return str(name) if (name := getattr(y, "name", None)) is not None else "y"


def one_for_each(values: Any, n: int, who: str) -> np.ndarray:
    """Labels or targets, one for each of n rows."""
    found = np.asarray(values)
    if found.ndim != 1 or len(found) != n:
        given = f"y of shape {found.shape} for {counted(n, 'row')}"
        raise InvalidInput(message(who, given, "give one number or class for each row"))
    return found
