"""The score of an estimator by the number of rows that it learned from, with what they cost."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import learning_curve

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.drawing.display import Display, drawn_of, one_for_each, places_drawn
from mercer.plots.drawing.style import NEGATIVE, POSITIVE
from mercer.points import count, take

__all__ = ["LearningCurveDisplay"]

MOST_ROWS = 20_000


class LearningCurveDisplay(Display):
    """Scores of held-out and of training rows by the number of rows of the fit, and the seconds of the fit.

    Where the held-out score still rises at the right, more rows would help; the second picture says what they cost.

    Parameters
    ----------
    sizes : array of int of shape (sizes,)
    train_scores, test_scores : arrays of shape (sizes, folds)
    seconds : array of shape (sizes, folds)
        Of each fit.
    notes : tuple of str

    Attributes
    ----------
    lines_ : list of Line2D
        Held-out scores, training scores, seconds.
    bands_ : list of FillBetweenPolyCollection
        One standard deviation over the folds.
    ax_, figure_, notes_
        See `Display`; ax_ has two.

    See Also
    --------
    sklearn.model_selection.LearningCurveDisplay : The same without the cost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> from mercer.plots import LearningCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = LearningCurveDisplay.from_estimator(SVC(), X, y, sizes=[0.3, 1.0], cv=3)
    >>> display.sizes, bool(display.test_scores.mean() > 0.9)
    (array([ 30, 100]), True)
    """

    def __init__(
        self,
        sizes: np.ndarray,
        train_scores: np.ndarray,
        test_scores: np.ndarray,
        seconds: np.ndarray,
        *,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.sizes = sizes
        self.train_scores = train_scores
        self.test_scores = test_scores
        self.seconds = seconds
        self.notes = notes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Any = (0.1, 0.2, 0.4, 0.7, 1.0),
        cv: Any = 5,
        scoring: Any = None,
        random_state: int = 0,
        ax: Any = None,
    ) -> Self:
        """Fit copies of an estimator on more and more rows, and draw.

        Parameters
        ----------
        estimator : estimator
            It need not be fitted, and stays as it is.
        X : array-like of shape (n, d), or objects that its kernel takes
            Of more than 20 000 rows as many are used.
        y : array-like of shape (n,)
        sizes : sequence of numbers
            Numbers of rows, or shares of the training rows.
        cv, scoring
            As of scikit-learn's `learning_curve`.
        random_state : int
            Of the order in which rows are added.
        ax : array of two Axes, optional

        Raises
        ------
        InvalidInput
            If no fit succeeds, as where there are fewer rows than folds, or one class, or no fold has a score.
        """
        n = count(X)
        drawn = places_drawn(n, MOST_ROWS)
        rows, target = (take(X, drawn) if len(drawn) < n else X), one_for_each(y, n, cls.__name__)[drawn]
        options = {"train_sizes": sizes, "cv": cv, "scoring": scoring, "shuffle": True, "random_state": random_state}
        try:
            found = learning_curve(clone(estimator), rows, target, return_times=True, error_score="raise", **options)
        except ValueError as error:
            given = f"fits of {type(estimator).__name__} on parts of {counted(n, 'row', ',')}, which failed ({error})"
            raise InvalidInput(message(cls.__name__, given, "give more rows, larger sizes= or fewer folds")) from error
        if not np.isfinite(found[2]).all(axis=1).any():  # no mean to draw
            given = f"folds of {counted(n, 'row', ',')} whose held-out scores are not numbers, as R² of one row"
            raise InvalidInput(message(cls.__name__, given, "give more rows, fewer folds or another scoring="))
        return cls(*found[:4], notes=(drawn_of(len(drawn), n),)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of two axes or in new ones."""
        left, right = self._several(ax, 2, width=4.2, height=3.6)
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        self._draw(left, self.test_scores, POSITIVE, "o", "held-out rows")
        self._draw(left, self.train_scores, NEGATIVE, "s", "training rows")
        self._draw(right, self.seconds, POSITIVE, "o", "fit")
        left.set(xlabel="rows of the fit", ylabel="score")
        right.set(xlabel="rows of the fit", ylabel="seconds of a fit", ylim=(0, None))
        for one in (left, right):
            one.locator_params(axis="x", nbins=5)  # numbers of rows are long
        left.legend(fontsize="small")
        self._note(right, *self.notes)
        return self

    def _draw(self, ax: Any, values: np.ndarray, shade: str, sign: str, label: str) -> None:
        mean, std = values.mean(axis=1), values.std(axis=1)
        self.lines_ += ax.plot(self.sizes, mean, color=shade, marker=sign, label=label)
        self.bands_.append(ax.fill_between(self.sizes, mean - std, mean + std, color=shade, alpha=0.2, linewidth=0))
