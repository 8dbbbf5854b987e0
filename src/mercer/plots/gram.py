"""The kernel matrix as a picture, its rows in the order of classes or clusters."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.plots.drawing.display import Display, drawn_of, one_for_each
from mercer.plots.drawing.matrices import kernel_of, matrix_drawn, matrix_of
from mercer.plots.drawing.style import DIVERGING, INK, MOST_LETTERS, SEQUENTIAL, plain, shortened
from mercer.points import count

__all__ = ["GramDisplay"]

MOST_ROWS = 400
MOST_NAMES = 12


class GramDisplay(Display):
    """Kᵢⱼ = k(xᵢ, xⱼ) as colours, the rows of one class or cluster beside each other.

    Blocks on the diagonal say that the kernel finds rows of one class alike, and others not.

    Parameters
    ----------
    matrix : array of shape (shown, shown)
    y : array of shape (shown,) or None
        Classes or clusters.
    notes : tuple of str

    Attributes
    ----------
    image_ : AxesImage
        K in the order that is drawn.
    order_ : array of int of shape (shown,)
        That order.
    borders_ : list of Line2D
        Between classes.
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.plots import GramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = GramDisplay.from_kernel("gaussian(gamma=0.5)", X, y)
    >>> display.image_.get_array().shape, len(display.borders_)
    ((150, 150), 4)
    """

    def __init__(self, matrix: np.ndarray, *, y: np.ndarray | None = None, notes: tuple[str, ...] = ()) -> None:
        self.matrix = matrix
        self.y = y
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Draw the matrix of a model's kernel, by the classes of y, or by the model's clusters.

        Parameters
        ----------
        estimator : fitted estimator of mercer
        X : array-like of shape (n, d), or objects that its kernel takes
            Of more than 400 as many are drawn.
        y : array-like of shape (n,), optional
        ax : Axes, optional

        Raises
        ------
        InvalidInput
        sklearn.exceptions.NotFittedError
        """
        kernel, labels = kernel_of(estimator, cls.__name__), getattr(estimator, "labels_", None)
        if y is None and labels is not None:
            y = labels if len(labels) == count(X) else estimator.predict(X)
        return cls.from_kernel(kernel, X, y, ax=ax)

    @classmethod
    def from_kernel(cls, kernel: Any, X: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Draw the matrix of a kernel, a name or a formula on rows, in the order of y."""
        return cls._of(*matrix_of(kernel, X, MOST_ROWS, cls.__name__), count(X), y, ax)

    @classmethod
    def from_matrix(cls, K: Any, y: Any = None, *, ax: Any = None) -> Self:
        """Draw a kernel matrix of shape (n, n), in the order of y."""
        return cls._of(*matrix_drawn(K, MOST_ROWS, cls.__name__), len(K), y, ax)

    @classmethod
    def _of(cls, K: np.ndarray, drawn: np.ndarray, n: int, y: Any, ax: Any) -> Self:
        labels = None if y is None else one_for_each(y, n, cls.__name__)[drawn]
        return cls(K, y=labels, notes=(drawn_of(len(drawn), n),)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        ax, K = self._one(ax), self.matrix
        self.order_ = np.arange(len(K)) if self.y is None else np.argsort(self.y, kind="stable")
        size = float(np.abs(K).max()) or 1.0
        limits = (-size, size) if K.min() < 0 else (min(0.0, float(K.min())), size)
        colours = DIVERGING if K.min() < 0 else SEQUENTIAL
        self.image_ = ax.imshow(
            K[np.ix_(self.order_, self.order_)], cmap=colours, vmin=limits[0], vmax=limits[1], interpolation="nearest"
        )
        self.borders_: list[Any] = []
        if self.y is not None:
            self._draw_classes(ax, self.y[self.order_])
        self.figure_.colorbar(self.image_, ax=ax, label="k(x, z)")
        self._note(ax, *self.notes)
        return self

    def _draw_classes(self, ax: Any, y: np.ndarray) -> None:
        """A line between each two classes, and their names beside them."""
        first = np.flatnonzero(np.r_[True, y[1:] != y[:-1]])
        for place in first[1:] if len(first) <= MOST_ROWS // 4 else ():
            self.borders_ += [ax.axhline(place - 0.5, color=INK, lw=0.8), ax.axvline(place - 0.5, color=INK, lw=0.8)]
        if len(first) <= MOST_NAMES:
            middle = (first + np.r_[first[1:], len(y)] - 1) / 2
            names = [plain(shortened(y[place], MOST_LETTERS)) for place in first]
            ax.set_xticks(middle, names, rotation=30, ha="right")
            ax.set_yticks(middle, names)
