"""A function of one column with its posterior standard deviation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.drawing.display import Display, drawn_of, named_columns, numbers, one_for_each
from mercer.plots.drawing.outputs import innermost, quietly
from mercer.plots.drawing.plane import spread
from mercer.plots.drawing.style import INK, NEGATIVE
from mercer.points import count

__all__ = ["PosteriorDisplay"]

PLACES = 300
OTHERS = {is_classifier: "classes", is_clusterer: "clusters", is_outlier_detector: "outliers"}
"""Kinds of models whose predictions are labels. A model that declares no kind is taken for a regressor."""


class PosteriorDisplay(Display):
    """f(x) ± 2 √var f(x) over one column, the band that holds f with probability 0.95; other columns at their medians.

    The band is that of f. A new observation varies about f by its noise too. For ridge regression, whose kernel has no
    units, f ~ GP(0, σ²k) with σ² estimated from the targets, and the noise has variance σ²λ.

    Parameters
    ----------
    at : array of shape (places,)
    mean : array of shape (places,)
        f, or the first target of several.
    std : array of shape (places,) or None
        None if the model has no variance: then there is no band.
    rows : array of shape (shown,)
        The column of the rows.
    y : array of shape (shown,) or None
        Their targets.
    labels : (str, str)
        Of the axes.
    notes : tuple of str

    Attributes
    ----------
    line_ : Line2D
    band_ : FillBetweenPolyCollection or None
    points_ : Line2D or None
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.plots import PosteriorDisplay
    >>> X = np.r_[0:2:10j, 4:6:10j][:, None]
    >>> model = KernelRidge("gaussian(gamma=1.0)", alpha=0.01).fit(X, np.sin(X[:, 0]))
    >>> display = PosteriorDisplay.from_estimator(model, X, np.sin(X[:, 0]))
    >>> bool(2.9 < display.at[display.std.argmax()] < 3.1 or display.std.argmax() in (0, 299))
    True
    """

    def __init__(
        self,
        at: np.ndarray,
        mean: np.ndarray,
        std: np.ndarray | None,
        rows: np.ndarray,
        *,
        y: np.ndarray | None = None,
        labels: tuple[str, str] = ("x", "f(x)"),
        notes: tuple[str, ...] = (),
    ) -> None:
        self.at = at
        self.mean = mean
        self.std = std
        self.rows = rows
        self.y = y
        self.labels = labels
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, column: int = 0, ax: Any = None) -> Self:
        """Compute f and its standard deviation along a column, and draw.

        Parameters
        ----------
        estimator : fitted regressor
            `KernelRidge` has a variance, and so has scikit-learn's Gaussian process: ``predict(X, return_std=True)``.
        X : array-like or CSR matrix of shape (n, d)
            Of more than 3000 rows as many are drawn.
        y : array-like of shape (n,), optional
            Targets to draw.
        column : int
            Which varies.
        ax : Axes, optional

        Raises
        ------
        InvalidInput
            For models that predict classes, clusters or outliers, too.
        sklearn.exceptions.NotFittedError
        """
        who = cls.__name__
        check_is_fitted(estimator)
        _check(estimator, who)
        rows, drawn = numbers(X, who)
        d = rows.shape[1]
        if not 0 <= int(column) < d:
            given = f"column={column!r} of a table with {d}"
            raise InvalidInput(message(who, given, f"give a whole number from 0 to {d - 1}"))
        at = np.linspace(*spread(rows[:, column]), PLACES)
        path = np.tile(np.median(rows, axis=0), (PLACES, 1))
        path[:, column] = at
        mean, std = _prediction(estimator, path)
        notes = [] if std is not None else [f"{type(estimator).__name__} has no variance"]
        if d > 1:
            notes.append(f"{counted(d - 1, 'other column')} at the median")
        labels = (named_columns(estimator, d)[column] if d > 1 or hasattr(estimator, "feature_names_in_") else "x", "f")
        targets = None if y is None else one_for_each(y, count(X), who)[drawn]
        said = (*notes, drawn_of(len(rows), count(X)))
        return cls(at, mean, std, rows[:, column], y=targets, labels=labels, notes=said).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        ax = self._one(ax)
        self.band_ = self.points_ = None
        if self.y is not None:
            (self.points_,) = ax.plot(self.rows, self.y, ".", color=INK, markersize=5, label="rows")
        else:
            ax.plot(self.rows, np.zeros(len(self.rows)), "|", color=INK, transform=ax.get_xaxis_transform())
        if self.std is not None:
            low, high = self.mean - 2 * self.std, self.mean + 2 * self.std
            self.band_ = ax.fill_between(
                self.at, low, high, color=NEGATIVE, alpha=0.25, linewidth=0, label="± 2 std of f"
            )
        (self.line_,) = ax.plot(self.at, self.mean, color=NEGATIVE, linewidth=2, label="f")
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1], xlim=self.at[[0, -1]])
        ax.legend(fontsize="small")
        self._note(ax, *self.notes)
        return self


def _check(model: Any, who: str) -> None:
    """Refuse models whose predictions are not values of a function f: labels have no mean and no deviation."""
    name = type(model).__name__
    if not hasattr(model, "predict"):
        raise InvalidInput(message(who, f"{name}, which has no predict", "give a regressor"))
    for is_such, what in OTHERS.items():
        if is_such(model):
            do = "give a regressor, such as KernelRidge, or draw this model over two columns, by DecisionSurfaceDisplay"
            raise InvalidInput(message(who, f"{name}, which predicts {what}", do))


def _prediction(model: Any, path: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """f and its standard deviation, of the first target; None where the model has no such thing."""
    try:
        mean, std = quietly(lambda X: model.predict(X, return_std=True), path)
        own, _ = innermost(model)
        if hasattr(own, "prior_variance"):
            std = std * np.sqrt(own.prior_variance())
    except (AttributeError, InvalidInput, TypeError):  # the first where a regressor around another reads a pair
        mean, std = quietly(model.predict, path), None
    mean = np.asarray(mean, np.float64).reshape(len(path), -1)[:, 0]
    return mean, None if std is None else np.asarray(std).reshape(len(path), -1)[:, 0]
