"""What each position of a sequence adds to a prediction, as letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from mercer.errors import InvalidInput, message
from mercer.estimators import position_weights
from mercer.plots.drawing.display import Display
from mercer.plots.drawing.style import INK, colour, plain
from mercer.points import rows_of

__all__ = ["SequenceLogoDisplay"]

MOST_POSITIONS = 120
MOST_SEQUENCES = 8
NUCLEOTIDES = "ACGTU"


class SequenceLogoDisplay(Display):
    """The letters of sequences, as high as their positions add to f(x) = b + Σⱼ αⱼ k(x, xⱼ), below 0 if they take away.

    Parameters
    ----------
    sequences : list of sequences of symbols
    weights : list of arrays
        One number for each symbol.
    notes : sequence of str

    Attributes
    ----------
    letters_ : list of lists of PathPatch
        For each sequence those of its letters; a weight of 0 has none, and a blank neither.
    ax_, figure_, notes_
        See `Display`; ax_ is an array with one for each sequence.

    Examples
    --------
    >>> from mercer import KernelRidgeClassifier
    >>> from mercer.kernels import Spectrum
    >>> from mercer.plots import SequenceLogoDisplay
    >>> X, y = ["ACGTAC", "ACGGGT", "TTACGA", "TTGGGA"], [0, 1, 0, 1]
    >>> model = KernelRidgeClassifier(Spectrum(3)).fit(X, y)
    >>> display = SequenceLogoDisplay.from_estimator(model, ["CAGGGT"])
    >>> max(zip(display.weights[0], "CAGGGT"))[1]
    'G'
    """

    def __init__(self, sequences: list[Any], weights: list[np.ndarray], *, notes: Sequence[str] = ()) -> None:
        self.sequences = sequences
        self.weights = weights
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, output: int | None = None, ax: Any = None) -> Self:
        """Compute the weights by `mercer.position_weights`, and draw.

        Parameters
        ----------
        estimator : fitted estimator with a kernel on sequences
        X : sequences, or one string
            The first eight are drawn, and of each the first 120 positions.
        output : int, optional
            As for `mercer.explain`.
        ax : array of Axes, optional
            One for each sequence.

        Raises
        ------
        InvalidInput
            For other models and kernels.
        sklearn.exceptions.NotFittedError
        """
        rows = [X] if isinstance(X, str) else list(rows_of(X))
        shown = rows[:MOST_SEQUENCES]
        weights = position_weights(estimator, shown, output)
        symbols = [row if len(row) == len(one) else row.split() for row, one in zip(shown, weights, strict=True)]
        notes = [f"{len(shown)} of {len(rows):,} sequences drawn"] if len(shown) < len(rows) else []
        longest = max(map(len, weights))
        if longest > MOST_POSITIONS:
            notes.append(f"{MOST_POSITIONS} of up to {longest:,} positions drawn")
        return cls([one[:MOST_POSITIONS] for one in symbols], [w[:MOST_POSITIONS] for w in weights], notes=notes).plot(
            ax
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of axes, one for each sequence, or in new ones."""
        longest = max(map(len, self.sequences))
        if not longest:
            raise InvalidInput(message(type(self).__name__, "sequences without symbols", "give longer ones"))
        axes = self._several(ax, len(self.sequences), width=max(4.0, 0.16 * longest), height=1.6, most=1)
        size = max((float(np.abs(one).max(initial=0.0)) for one in self.weights), default=0.0) or 1.0
        self.letters_ = []
        for one, symbols, weights in zip(axes, self.sequences, self.weights, strict=True):
            drawn = enumerate(zip(symbols, weights, strict=True))
            self.letters_.append([_letter(one, i, symbol, w) for i, (symbol, w) in drawn if w and str(symbol).strip()])
            one.axhline(0, color=INK, linewidth=0.6)
            one.set(xlim=(-0.6, longest - 0.4), ylim=(-1.05 * size, 1.05 * size))
            one.set_ylabel("adds to f", fontsize="small")
            one.xaxis.get_major_locator().set_params(integer=True)
        axes[-1].set_xlabel("position, from 0")
        self._note(axes[-1], *self.notes, "" if any(self.letters_) else "all weights are 0")
        return self


def _letter(ax: Any, place: int, symbol: str, height: float) -> Any:
    """A symbol from 0 to its height; below 0 it hangs upright."""
    outline = TextPath((0, 0), plain(symbol), size=1)
    box = outline.get_extents()
    width, tall = max(box.width, 0.3), box.height or 1.0
    move = Affine2D().translate(-box.x0 - box.width / 2, -box.y0).scale(0.9 / width, abs(height) / tall)
    move = move.translate(place, min(height, 0.0))
    patch = PathPatch(outline, transform=move + ax.transData, facecolor=_shade(str(symbol)), linewidth=0)
    return ax.add_patch(patch)


def _shade(symbol: str) -> str:
    """The four nucleotides have the first four colours, U that of T; others follow their place in the alphabet."""
    place = NUCLEOTIDES.find(symbol[:1].upper())
    return colour(min(place, 3) if place >= 0 else sum(map(ord, symbol)) % 8)
