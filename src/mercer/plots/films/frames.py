"""The frames of a film: f at each step, over two columns or along one, with the rows and the coefficients."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.files import write_whole
from mercer.plots.films.gif import as_gif
from mercer.plots.films.page import page

__all__ = ["Film"]

FRAME = "width: 100%; max-width: 680px; height: 730px; border: 0"
"""Of the film on another page, which may be narrow."""


@dataclass(frozen=True, eq=False)
class Film:
    """f at each step that was kept. `save` writes a GIF or an HTML file; a notebook shows the film itself.

    Attributes
    ----------
    kind : {"surface", "classes", "curve"}
        f over two columns, the class of the largest of several f there, or f along one column.
    values : array of shape (frames, side, side), or (frames, places) of a curve
        f, or the places of classes.
    axes : (array, array)
        The values of the two columns at the grid; of a curve those of its column, and the limits of f.
    steps : array of int of shape (frames,)
        The number of each step.
    unit : str
        What is counted: "step" or "rows met".
    signed : bool
        Whether f = 0 divides the plane.
    rows : array of shape (m, 2)
        Where the rows are in the picture.
    labels : array of shape (m,) or (frames, m), or None
        The places of their classes, which may change from frame to frame.
    points : array of shape (frames or 1, k, 2) or None
        Where the xⱼ of f(x) = Σⱼ αⱼ k(x, xⱼ) are.
    coefficients : array of shape (frames, k) or None
        αⱼ.
    classes : tuple of str
    names : (str, str)
        Of the axes.
    title : str
    notes : tuple of str
        What the film says about what it leaves out.
    made : int
        How many frames there were before it was thinned; 0 if all are there.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import KernelPerceptron
    >>> from mercer.plots import film
    >>> X, y = make_moons(50, noise=0.1, random_state=0)
    >>> model = KernelPerceptron("gaussian(gamma=2.0)", max_iter=20, tol=None, keep_history=True).fit(X, y)
    >>> moons = film(model, X, y)
    >>> len(moons), moons.values.shape, len(moons.html()) < 100_000
    (21, (21, 64, 64), True)
    """

    kind: str
    values: np.ndarray
    axes: tuple[np.ndarray, np.ndarray]
    steps: np.ndarray
    unit: str
    rows: np.ndarray
    signed: bool = True
    labels: np.ndarray | None = None
    points: np.ndarray | None = None
    coefficients: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    names: tuple[str, str] = ("", "")
    title: str = ""
    notes: tuple[str, ...] = ()
    made: int = 0

    @property
    def said(self) -> list[str]:
        """The notes, and how many frames are left out."""
        return [*self.notes, *([f"{len(self):,} of {self.made:,} frames shown"] if self.made else [])]

    def __len__(self) -> int:
        return len(self.values)

    def save(self, path: Any) -> None:
        """Write the film to a file whose name ends in .gif or .html.

        Parameters
        ----------
        path : str or Path
            A GIF has at most 60 frames. An HTML file needs nothing but itself.

        Raises
        ------
        InvalidInput
            For other endings, and where the file cannot be written.
        """
        ending = Path(path).suffix.lower()
        if ending not in (".gif", ".html"):
            do = 'give a path that ends in ".gif" or ".html"'
            raise InvalidInput(message("film", f"a file named {Path(path).name!r}", do))
        write_whole(Path(path), self.html().encode() if ending == ".html" else as_gif(self), "film")

    def html(self) -> str:
        """The page: play, pause, a slider, and the number of the step."""
        return page(self)

    def thinned(self, most: int) -> Film:
        """At most so many of the frames, the first and the last among them."""
        if len(self) <= most:
            return self
        kept = np.unique(np.round(np.linspace(0, len(self) - 1, most)).astype(int))
        return replace(
            self,
            values=self.values[kept],
            steps=self.steps[kept],
            labels=self.labels[kept] if self.labels is not None and self.labels.ndim == 2 else self.labels,
            points=self.points[kept] if self.points is not None and len(self.points) > 1 else self.points,
            coefficients=None if self.coefficients is None else self.coefficients[kept],
            made=self.made or len(self),
        )

    def _repr_html_(self) -> str:
        inside = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{inside}" title="{html.escape(self.title)}" style="{FRAME}"></iframe>'
