"""Rows of images, what is left of them in the span of components, and what they were."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.plots.drawing.display import Display, numbers
from mercer.points import count

__all__ = ["PreImagesDisplay"]


class PreImagesDisplay(Display):
    """Rows x of images beside x̂, whose features are near the projection of φ(x) on the components: denoising.

    Parameters
    ----------
    rows : list of arrays of shape (images, height, width)
        Noisy images, their pre-images, and the clean ones, if known.
    titles : list of str
        Of these.
    notes : tuple of str

    Attributes
    ----------
    images_ : list of lists of AxesImage
        For each of the titles.
    ax_, figure_, notes_
        See `Display`; ax_ is an array, title by title.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.plots import PreImagesDisplay
    >>> clean = load_digits().data[:200]
    >>> noisy = clean + np.random.default_rng(0).normal(scale=4, size=clean.shape)
    >>> model = KernelPCA(20, "gaussian(gamma=0.0005)", fit_inverse_transform=True).fit(noisy)
    >>> display = PreImagesDisplay.from_estimator(model, noisy, clean)
    >>> bool(np.mean((display.rows[1] - display.rows[2]) ** 2) < np.mean((display.rows[0] - display.rows[2]) ** 2))
    True
    """

    def __init__(self, rows: list[np.ndarray], titles: list[str], *, notes: tuple[str, ...] = ()) -> None:
        self.rows = rows
        self.titles = titles
        self.notes = notes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        clean: Any = None,
        *,
        shape: tuple[int, int] | None = None,
        images: int = 10,
        ax: Any = None,
    ) -> Self:
        """Project the rows that are drawn, go back, and draw.

        Parameters
        ----------
        estimator : fitted transformer with `inverse_transform`
            Such as `KernelPCA` with ``fit_inverse_transform=True``.
        X : array-like of shape (n, height · width)
            Images, one a row; some of them are drawn.
        clean : array-like of the shape of X, optional
            The same without noise.
        shape : (int, int), optional
            Height and width; by default the images are square, or strips of one row of pixels.
        images : int
            How many are drawn.
        ax : array of Axes, optional
            As many as there are pictures.

        Raises
        ------
        InvalidInput
        sklearn.exceptions.NotFittedError
        """
        who = cls.__name__
        check_is_fitted(estimator)
        if not hasattr(estimator, "inverse_transform"):
            given = f"{type(estimator).__name__}, which has no inverse_transform"
            raise InvalidInput(message(who, given, "give a KernelPCA with fit_inverse_transform=True"))
        rows, drawn = numbers(X, who, images)
        height, width = _shape(rows.shape[1], shape, who)
        back = np.asarray(estimator.inverse_transform(estimator.transform(rows)))
        parts, titles = [rows, back], ["given", "pre-image"]
        if clean is not None:
            if count(clean) != count(X):
                given = f"{counted(count(clean), 'clean image', ',')} for {counted(count(X), 'row', ',')}"
                raise InvalidInput(message(who, given, "give one for each row"))
            parts, titles = [*parts, numbers(clean, who, images)[0]], [*titles, "clean"]
        notes = (f"{len(drawn)} of {count(X):,} images drawn",) if len(drawn) < count(X) else ()
        return cls([part.reshape(-1, height, width) for part in parts], titles, notes=notes).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of axes or in new ones; black and white are the same in all."""
        many = len(self.rows[0])
        axes = self._several(ax, many * len(self.rows), width=0.9, height=1.0, most=many)
        low, high = (float(end) for end in np.quantile(self.rows[-1], [0.01, 0.99]))
        high = high if high > low else low + 1
        self.images_: list[list[Any]] = []
        for place, (part, title) in enumerate(zip(self.rows, self.titles, strict=True)):
            own = axes[place * many : (place + 1) * many]
            self.images_.append(
                [one.imshow(image, cmap="gray_r", vmin=low, vmax=high) for one, image in zip(own, part, strict=True)]
            )
            own[0].set_ylabel(title, fontsize="small")
        for one in axes:
            one.set(xticks=[], yticks=[])
        if self.notes:
            self.notes_ += self.notes
            self.figure_.supxlabel("; ".join(self.notes), fontsize="x-small")
        return self


def _shape(d: int, given: tuple[int, int] | None, who: str) -> tuple[int, int]:
    """Height and width of images of d pixels."""
    side = round(d**0.5)
    if given is None:
        return (side, side) if side * side == d else (1, d)
    if len(given) != 2 or int(given[0]) * int(given[1]) != d:
        raise InvalidInput(message(who, f"shape={given!r} for rows of {d} pixels", "give (height, width)"))
    return int(given[0]), int(given[1])
