"""The training points that carry a prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator

from mercer.errors import InvalidInput, message
from mercer.estimators import explain
from mercer.plots.drawing.display import Display
from mercer.plots.drawing.style import FAINT, INK, MOST_LETTERS, NEGATIVE, POSITIVE, plain, shortened
from mercer.points import points_of, take

__all__ = ["ExplanationDisplay"]


class ExplanationDisplay(Display):
    """f(x) = b + Σⱼ αⱼ k(x, xⱼ) as bars: the largest terms, the sum of the others, and the intercept b.

    Parameters
    ----------
    explanation : Explanation
        As `mercer.explain` returns it.
    row : int
        Which of its rows.
    count : int
        How many terms have a bar of their own.
    notes : tuple of str

    Attributes
    ----------
    bars_ : BarContainer
        From above: the terms, the others, the intercept. They add up to the prediction.
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.plots import ExplanationDisplay
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = KernelRidge("gaussian(gamma=1.0)", alpha=0.1).fit(X, np.sin(X[:, 0]))
    >>> display = ExplanationDisplay.from_estimator(model, [[1.5]], count=3)
    >>> bool(np.isclose(sum(bar.get_width() for bar in display.bars_), model.predict([[1.5]])[0]))
    True
    """

    def __init__(self, explanation: Any, *, row: int = 0, count: int = 10, notes: tuple[str, ...] = ()) -> None:
        self.explanation = explanation
        self.row = row
        self.count = count
        self.notes = notes

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int = 0, output: int | None = None, count: int = 10, ax: Any = None
    ) -> Self:
        """Explain one row, and draw.

        Parameters
        ----------
        estimator : fitted estimator
            As for `mercer.explain`.
        X : array-like of shape (n, d), or objects that its kernel takes
        row : int
            Which of the rows.
        output : int, optional
            As for `mercer.explain`.
        count : int
            How many terms have a bar of their own.
        ax : Axes, optional

        Raises
        ------
        InvalidInput
            If the output of the model is not such a sum, or X has no such row.
        sklearn.exceptions.NotFittedError
        """
        n = len(points_of(X))
        if not 0 <= int(row) < n:
            raise InvalidInput(message(cls.__name__, f"row={row!r} of {n:,}", f"give a number from 0 to {n - 1}"))
        notes = (f"row {row} of {n:,}",) if n > 1 else ()
        return cls(explain(estimator, take(X, np.array([row])), output), count=count, notes=notes).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in these axes or in new ones."""
        found, row = self.explanation, self.row
        top = found.order[row, : self.count]
        rest = found.order[row, self.count :]
        terms = [*found.contributions[row, top], *([found.contributions[row, rest].sum()] if len(rest) else [])]
        names = [found.named(j) for j in top] + ([f"the other {len(rest):,}"] if len(rest) else [])
        terms, names = [*terms, found.intercept], [*names, "intercept"]
        shades = [POSITIVE if term > 0 else NEGATIVE for term in terms[: len(top)]] + [FAINT] * (len(terms) - len(top))
        place = np.arange(len(terms))
        ax = self._one(ax, height=max(4.0, 0.2 * len(terms) + 1.0))
        self.bars_ = ax.barh(place, terms, color=shades)
        for at, term in zip(place, terms, strict=True):
            ax.text(1.02, at, f"{term:.3g}", transform=ax.get_yaxis_transform(), va="center", fontsize="small")
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.set_yticks(place, names)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.ticklabel_format(axis="x", scilimits=(-3, 4), useMathText=True)
        ax.set_ylim(len(terms) - 0.4, -0.6)
        name = f"f[{plain(shortened(found.output, MOST_LETTERS))}]" if found.output else "f"
        ax.set_xlabel("$α_j\\,k(x, x_j)$")
        ax.set_title(f"{name}(x) = {found.prediction[row]:.4g}", fontsize="medium")
        self._note(ax, *self.notes)
        return self
