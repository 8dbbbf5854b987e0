"""The variances of kernel components, for several kernels side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators import KernelPCA
from mercer.plots.drawing.display import Display, drawn_of, places_drawn
from mercer.plots.drawing.style import INK, colour
from mercer.points import count, take

__all__ = ["VariancesDisplay"]

MOST_BARS, MOST_ROWS = 20, 20_000
"""Components that are drawn; rows to which `from_kernels` fits each kernel."""


class VariancesDisplay(Display):
    """λⱼ/Σλ of each component j as bars, with their running sum, a picture for each kernel.

    How fast they fall says how many dimensions the rows have in feature space, as that kernel sees them.

    Parameters
    ----------
    ratios : dict of str to array
        For each kernel λⱼ over the whole variance.
    notes : sequence of str

    Attributes
    ----------
    bars_ : list of BarContainer
    sums_ : list of Line2D
    ax_, figure_, notes_
        See `Display`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plots import VariancesDisplay
    >>> t = np.linspace(0, 4 * np.pi, 60)
    >>> helix = np.column_stack([np.cos(t), np.sin(t), t / 2])
    >>> display = VariancesDisplay.from_kernels(["linear", "polynomial(degree=4)", "gaussian(gamma=0.1)"], helix)
    >>> [len(bars) for bars in display.bars_]
    [3, 10, 10]
    """

    def __init__(self, ratios: Mapping[str, np.ndarray], *, notes: Sequence[str] = ()) -> None:
        self.ratios = ratios
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the variances of a fitted `KernelPCA`, or of several in a dict of names.

        Parameters
        ----------
        estimator : fitted estimator with `explained_variance_ratio_`, or dict of str to such
        ax : array of Axes, optional
            One for each.

        Raises
        ------
        InvalidInput
            For an estimator without variances.
        sklearn.exceptions.NotFittedError
        """
        return cls._of(estimator if isinstance(estimator, Mapping) else {_name(estimator): estimator}).plot(ax)

    @classmethod
    def from_kernels(
        cls, kernels: Sequence[Any] | Mapping[str, Any], X: Any, *, n_components: int = 10, ax: Any = None
    ) -> Self:
        """Fit a `KernelPCA` with each kernel, and draw their variances.

        Parameters
        ----------
        kernels : sequence of kernels, or dict of str to kernel
            Kernels, names, or formulas as text.
        X : array-like of shape (n, d), or objects that the kernels take
            Of more than 20 000 rows as many are used.
        n_components : int
            At most; a kernel whose features have fewer dimensions has fewer.
        ax : array of Axes, optional
            One for each kernel.
        """
        named = kernels if isinstance(kernels, Mapping) else {_text(kernel): kernel for kernel in kernels}
        n = count(X)
        drawn = places_drawn(n, MOST_ROWS)
        rows = take(X, drawn) if len(drawn) < n else X
        models = {name: KernelPCA(n_components, k).fit(rows) for name, k in named.items()}
        return cls._of(models, drawn_of(len(drawn), n)).plot(ax)

    @classmethod
    def _of(cls, models: Mapping[str, Any], said: str = "") -> Self:
        """The shares of fitted models, of the first components."""
        ratios = {name: _ratios(model, cls.__name__) for name, model in models.items()}
        longest = max(map(len, ratios.values()))
        cut = f"the first {MOST_BARS} of up to {longest} components" if longest > MOST_BARS else ""
        return cls({name: one[:MOST_BARS] for name, one in ratios.items()}, notes=(cut, said))

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of axes, one for each kernel, or in new ones."""
        axes = self._several(ax, len(self.ratios), width=3.2, height=3.0, sharey=ax is None)
        longest = max(map(len, self.ratios.values()))
        self.bars_, self.sums_ = [], []
        for place, (one, (name, ratios)) in enumerate(zip(axes, self.ratios.items(), strict=True)):
            number = np.arange(1, len(ratios) + 1)
            self.bars_.append(one.bar(number, ratios, color=colour(place)))
            self.sums_ += one.plot(number, np.cumsum(ratios), color=INK, marker=".", linewidth=1, label="running sum")
            one.set_title(name, fontsize="medium", wrap=True)
            one.set(xlabel="component", xlim=(0.4, longest + 0.6), ylim=(0, 1.05))
            one.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel("share of the variance")
        axes[0].legend(fontsize="small")
        self._note(axes[-1], *self.notes)
        return self


def _ratios(model: Any, who: str) -> np.ndarray:
    check_is_fitted(model)
    if not hasattr(model, "explained_variance_ratio_"):
        given = f"{type(model).__name__}, which has no explained_variance_ratio_"
        raise InvalidInput(message(who, given, "give a fitted KernelPCA"))
    return np.asarray(model.explained_variance_ratio_, np.float64)


def _name(model: Any) -> str:
    return _text(getattr(model, "kernel_", type(model).__name__))


def _text(kernel: Any) -> str:
    return kernel if isinstance(kernel, str) else repr(kernel)
