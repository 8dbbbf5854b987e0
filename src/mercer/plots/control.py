"""Control charts of a monitored process: T² within the components, SPE outside of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.display import MOST_POINTS, Display, drawn_of, largest_drawn
from mercer.plots.drawing.style import INK, NEGATIVE, POSITIVE

__all__ = ["ControlChartDisplay"]


class ControlChartDisplay(Display):
    """T² and SPE of each row in its order, with their limits; rows above a limit are vermilion.

    Parameters
    ----------
    t2, spe : arrays of shape (n,)
    limits : ControlLimits
        As `KernelPCA.control_limits` gives them.

    Attributes
    ----------
    points_, alarms_ : lists of Line2D
        Of T² and of SPE: rows within the limit, and above it.
    limits_ : list of Line2D
    ax_, figure_, notes_
        See `Display`; ax_ has two.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.plots import ControlChartDisplay
    >>> rng = np.random.default_rng(0)
    >>> model = KernelPCA(2, "linear").fit(rng.normal(size=(300, 4)))
    >>> new = np.vstack([rng.normal(size=(100, 4)), rng.normal(size=(5, 4)) + 6])
    >>> display = ControlChartDisplay.from_estimator(model, new)
    >>> set(range(100, 105)) <= {int(row) for line in display.alarms_ for row in line.get_xdata()}
    True
    """

    def __init__(self, t2: np.ndarray, spe: np.ndarray, limits: Any) -> None:
        self.t2 = t2
        self.spe = spe
        self.limits = limits

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, level: float = 0.99, in_control: Any = None, ax: Any = None
    ) -> Self:
        """Compute T², SPE and their limits, and draw.

        Parameters
        ----------
        estimator : fitted `KernelPCA`
        X : array-like of shape (n, d)
            In the order of time. Of more than 3000 rows as many are drawn, the largest among them.
        level : float
            A row in control exceeds each limit with probability 1 − level.
        in_control : array-like, optional
            Rows for the limits; by default those of the fit.
        ax : array of two Axes, optional

        Raises
        ------
        InvalidInput
            For other estimators, and as `control_limits` does.
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "control_limits"):
            given = f"{type(estimator).__name__}, which has no control_limits"
            raise InvalidInput(message(cls.__name__, given, "give a KernelPCA"))
        limits = estimator.control_limits(level, in_control)
        return cls(estimator.hotelling_t2(X), estimator.spe(X), limits).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of two axes or in new ones."""
        axes = self._several(ax, 2, width=7.0, height=2.4, most=1)
        self.points_: list[Any] = []
        self.alarms_: list[Any] = []
        self.limits_: list[Any] = []
        drawn = self._drawn()
        for one, values, limit, name in zip(
            axes, (self.t2, self.spe), (self.limits.hotelling_t2, self.limits.spe), ("T²", "SPE"), strict=True
        ):
            above = values[drawn] > limit
            within, beyond = drawn[~above], drawn[above]
            self.points_ += one.plot(within, values[within], ".", color=NEGATIVE, markersize=3, label="in control")
            self.alarms_ += one.plot(beyond, values[beyond], "^", color=POSITIVE, markersize=5, label="above the limit")
            self.limits_.append(one.axhline(limit, color=INK, linewidth=1, linestyle="--"))
            title = f"{name}: {np.mean(values > limit):.2%} of the rows above the {100 * self.limits.level:g} % limit"
            one.set_title(title, fontsize="medium", loc="left")
            one.set(ylabel=name, xlim=(-0.01 * len(values) - 0.5, 1.01 * len(values)))
            if values.min() > 0 and values.max() > 50 * limit > 0:
                one.set_yscale("log")
        axes[1].set_xlabel("row")
        left_out = drawn_of(len(drawn), len(self.t2))
        self._note(axes[1], f"{left_out}, the largest among them" if left_out else "")
        return self

    def _drawn(self) -> np.ndarray:
        """All rows, or a third of the largest against their limits and others at random."""
        ratios = [one / (limit or 1.0) for one, limit in zip((self.t2, self.spe), self.limits[:2], strict=True)]
        return largest_drawn(np.maximum(*ratios), MOST_POINTS // 3)
