"""The scores of a search over a penalty, with the choice marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.display import Display, clear_legend, places_drawn
from mercer.plots.drawing.style import INK, colour, marker, plain

__all__ = ["RegularizationPathDisplay"]

MOST_LINES = 10
MOST_ROWS = 40


class RegularizationPathDisplay(Display):
    """The score of each candidate λ, a line for each kernel, and a star for the choice.

    Scores below 0, such as minus the mean squared error of leave-one-out predictions, are drawn as errors: less is
    better. Where `KernelRidgeCV` has stored its leave-one-out predictions (`store_cv_results`), a second picture has
    them for some of the rows, as functions of λ.

    Parameters
    ----------
    values : array of shape (candidates,)
        λ, or another parameter.
    scores : array of shape (candidates,)
    names : sequence of str of length candidates
        Of the line that each candidate is on.
    chosen : int
        Which was chosen.
    std : array of shape (candidates,) or None
        Of the scores over folds.
    paths : array of shape (candidates, rows) or None
        Predictions.
    parameter : str
    label : str
        Of the scores.
    error : str
        Of minus the scores, if they are errors with a name of their own.
    notes : sequence of str

    Attributes
    ----------
    lines_ : list of Line2D
        One for each name.
    choice_ : Line2D
    paths_ : list of Line2D
    ax_, figure_, notes_
        See `Display`; ax_ is an array if there are paths.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeCV
    >>> from mercer.plots import RegularizationPathDisplay
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidgeCV(["linear", "gaussian(gamma=0.5)"]).fit(X, np.sin(X[:, 0]))
    >>> display = RegularizationPathDisplay.from_estimator(model)
    >>> [line.get_label() for line in display.lines_], bool(display.choice_.get_xdata()[0] == model.alpha_)
    (['Linear()', 'Gaussian(gamma=0.5)'], True)
    """

    def __init__(
        self,
        values: np.ndarray,
        scores: np.ndarray,
        names: Sequence[str],
        chosen: int,
        *,
        std: np.ndarray | None = None,
        paths: np.ndarray | None = None,
        parameter: str = "λ",
        label: str = "score",
        error: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.values = values
        self.scores = scores
        self.names = names
        self.chosen = chosen
        self.std = std
        self.paths = paths
        self.parameter = parameter
        self.label = label
        self.error = error
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, *, parameter: str | None = None, ax: Any = None) -> Self:
        """Draw the candidates of a fitted `KernelRidgeCV`, `KernelRidgeClassifierCV` or search.

        Parameters
        ----------
        estimator : fitted estimator with `cv_results_`
        parameter : str, optional
            Of a search: which goes from left to right. By default the one with the most different numbers.
        ax : Axes, optional
            An array of two, if the predictions were stored.

        Raises
        ------
        InvalidInput
            For estimators without `cv_results_`, searches over no number, and a λ for each target.
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(estimator)
        table = getattr(estimator, "cv_results_", None)
        if table is None:
            given = f"{type(estimator).__name__}, which has no cv_results_"
            raise InvalidInput(message(cls.__name__, given, "give a KernelRidgeCV or a search"))
        found = cls._of_search(estimator, table, parameter) if "params" in table else cls._of_path(estimator, table)
        return found.plot(ax)

    @classmethod
    def _of_path(cls, model: Any, table: dict[str, Any]) -> Self:
        """Of `KernelRidgeCV`."""
        if np.ndim(model.alpha_) or np.ndim(table["score"]) > 1:
            given = "a model with a λ for each target"
            raise InvalidInput(message(cls.__name__, given, "fit one target, or alpha_per_target=False"))
        scores, alphas = np.asarray(table["score"], np.float64), np.asarray(table["alpha"], np.float64)
        paths = table.get("predictions")
        notes = []
        if paths is not None:
            paths = np.asarray(paths)
            paths = paths.reshape(*paths.shape[:2], -1)[:, :, 0]
            kept = places_drawn(paths.shape[1], MOST_ROWS)
            notes = [f"{len(kept)} of {paths.shape[1]:,} rows drawn"] if len(kept) < paths.shape[1] else []
            paths = paths[:, kept]
        cv, own = getattr(model, "cv", None), model.scoring is None and not is_classifier(model)
        label = "leave-one-out score" if cv is None else "score"
        error = "leave-one-out mean squared error" if own and cv is None else ""
        best = int(np.nanargmax(scores))
        return cls(alphas, scores, table["kernel"], best, paths=paths, label=label, error=error, notes=notes)

    @classmethod
    def _of_search(cls, search: Any, table: dict[str, Any], parameter: str | None) -> Self:
        """Of a grid search, in scikit-learn's form."""
        params = table["params"]
        numeric = {name: [one.get(name) for one in params] for name in params[0]}
        numeric = {name: v for name, v in numeric.items() if all(isinstance(one, float | int | np.number) for one in v)}
        if parameter is None and numeric:
            parameter = max(numeric, key=lambda name: len(set(numeric[name])))
        if parameter is None or parameter not in numeric:
            given = f"parameter={parameter!r}, which is not a number in every candidate"
            do = f"choose one of {', '.join(numeric)}" if numeric else "search over numbers"
            raise InvalidInput(message(cls.__name__, given, do))
        others = [", ".join(f"{k}={v!r}" for k, v in one.items() if k != parameter) or "score" for one in params]
        scores = np.asarray(table["mean_test_score"], np.float64)
        std, values = np.asarray(table["std_test_score"], np.float64), np.asarray(numeric[parameter], np.float64)
        return cls(values, scores, others, int(search.best_index_), std=std, parameter=parameter, label="test score")

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        if self.paths is None:
            first = self._one(ax)
        else:
            first, second = self._several(ax, 2)
        known = np.isfinite(self.scores)
        errors = bool(np.all(self.scores[known] < 0))
        sign = -1.0 if errors else 1.0
        names = list(dict.fromkeys(self.names))
        order = [self.names[self.chosen], *[name for name in names if name != self.names[self.chosen]]][:MOST_LINES]
        self.lines_ = [self._draw_line(first, name, place, sign) for place, name in enumerate(names) if name in order]
        best = (self.values[self.chosen], sign * self.scores[self.chosen])
        (self.choice_,) = first.plot(*best, "*", color=INK, markersize=15, label="choice", zorder=5)
        for one in np.ravel(self.ax_):
            one.set(xlabel=self.parameter, xscale="log" if np.all(self.values > 0) else "linear")
            one.axvline(best[0], color=INK, linewidth=0.8, linestyle=":")
        first.set_ylabel(
            f"{self.error or f'−{self.label}'}: less is better" if errors else f"{self.label}: more is better"
        )
        if errors:
            first.set_yscale("log")
        self.paths_ = [] if self.paths is None else self._draw_paths(second)
        left_out = f"{len(order)} of {len(names)} lines drawn" if len(order) < len(names) else ""
        self._note(np.ravel(self.ax_)[-1], *self.notes, left_out)
        clear_legend(first, [*self.lines_, self.choice_], widen=ax is None)
        return self

    def _draw_line(self, ax: Any, name: str, place: int, sign: float) -> Any:
        """The scores of one kernel, in the order of λ, with a band of one standard deviation."""
        of = np.flatnonzero([one == name for one in self.names])
        of = of[np.argsort(self.values[of], kind="stable")]
        at, scores = self.values[of], sign * self.scores[of]
        (line,) = ax.plot(at, scores, color=colour(place), marker=marker(place), markersize=4, label=plain(name))
        if self.std is not None:
            ax.fill_between(at, scores - self.std[of], scores + self.std[of], color=colour(place), alpha=0.15, lw=0)
        return line

    def _draw_paths(self, ax: Any) -> list[Any]:
        """The predictions by the kernel that was chosen."""
        assert self.paths is not None
        of = np.flatnonzero([one == self.names[self.chosen] for one in self.names])
        of = of[np.argsort(self.values[of], kind="stable")]
        ax.set_ylabel("leave-one-out prediction of a row")
        return list(ax.plot(self.values[of], self.paths[of], color=INK, linewidth=0.6, alpha=0.6))
