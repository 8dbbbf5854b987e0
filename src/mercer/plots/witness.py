"""A witness against definiteness: points, coefficients z and a matrix K with zᵀKz < 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.plots.drawing.display import Display
from mercer.plots.drawing.style import DIVERGING, INK, NEGATIVE, POSITIVE, discs, plain
from mercer.validity import check_kernel

__all__ = ["WitnessDisplay"]

MOST_NUMBERS = 12
"""Points up to which the numbers of the matrix can be read in the picture."""


class WitnessDisplay(Display):
    """Σᵢⱼ zᵢ zⱼ k(xᵢ, xⱼ) < 0: the points xᵢ with their zᵢ, and the matrix of the terms, whose sum is below 0.

    A Mercer kernel has no such points, so that these refute that the function is one.

    Parameters
    ----------
    witness : Witness
        As `mercer.check_kernel(k).witness`.
    kernel : str
        What it refutes.

    Attributes
    ----------
    points_ : PathCollection, BarContainer or None
        zᵢ: discs at points of one or two numbers, coloured by sign; bars for other points.
    image_ : AxesImage
        The terms zᵢ Kᵢⱼ zⱼ, or K for a function that is not symmetric.
    ax_, figure_, notes_
        See `Display`; ax_ has two.

    Examples
    --------
    >>> from mercer.plots import WitnessDisplay
    >>> display = WitnessDisplay.from_kernel("maximum(0, 1 - sqdist)")
    >>> float(display.image_.get_array().sum())
    -1.0
    """

    def __init__(self, witness: Any, *, kernel: str = "k") -> None:
        self.witness = witness
        self.kernel = kernel

    @classmethod
    def from_kernel(cls, kernel: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Look for a witness as `mercer.check_kernel` does, on the rows X too if they are given, and draw it.

        Parameters
        ----------
        kernel : Kernel, name, formula or callable
        X : array-like of shape (n, d), optional
            The matrix itself for the kernel "precomputed".
        ax : array of two Axes, optional

        Raises
        ------
        InvalidInput
            If there is none: the function is proved to be a kernel, or nothing was found against it.
        """
        return cls.from_report(check_kernel(kernel, X), ax=ax)

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None) -> Self:
        """Draw the witness of a `KernelReport`."""
        if report.witness is None:
            given = f"{report.kernel!r}, against which there is no witness (verdict: {report.verdict})"
            raise InvalidInput(message(cls.__name__, given, "draw SpectrumDisplay, or read print(check_kernel(k))"))
        return cls(report.witness, kernel=repr(report.kernel)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, in an array of two axes or in new ones."""
        left, right = self._several(ax, 2, width=4.2, height=3.8)
        z = np.array([float(one) for one in self.witness.z])
        self._draw_points(left, z)
        self._draw_terms(right, z)
        return self

    def _draw_points(self, ax: Any, z: np.ndarray) -> None:
        """The points with the sizes and signs of z; bars of z where they cannot be drawn."""
        points, m = self._places(), self.witness.m
        weight = z if len(z) else np.ones(m)
        colours = [POSITIVE if one > 0 else NEGATIVE for one in weight]
        names = [f"$x_{{{i + 1}}}$" for i in range(m)]
        if points is None:
            self.points_ = ax.bar(np.arange(1, m + 1), weight, color=colours)
            ax.axhline(0, color=INK, linewidth=0.8)
            ax.set(xlabel="point", ylabel="z")
            return
        self.points_ = ax.scatter(*points.T, s=2 * discs(weight), c=colours, edgecolors="white")
        if m <= MOST_NUMBERS:
            for name, at, one in zip(names, points, self.witness.z or [""] * m, strict=True):
                label = f"{name}\nz = {one}" if len(z) else name
                ax.annotate(label, at, xytext=(0, 12), textcoords="offset points", ha="center", fontsize="small")
        ax.margins(0.25)
        if not np.any(points[:, 1]):
            ax.set_yticks([])
        ax.set_title("points, sized by |z|, vermilion for z > 0" if len(z) else "points", fontsize="medium")

    def _places(self) -> np.ndarray | None:
        """The points in the plane, if they have one or two numbers each."""
        points = self.witness.points
        if not all(isinstance(p, tuple) and 1 <= len(p) <= 2 and isinstance(p[0], Decimal) for p in points):
            return None
        rows = np.array([[float(value) for value in point] for point in points])
        return rows if rows.shape[1] == 2 else np.column_stack([rows, np.zeros(len(rows))])

    def _draw_terms(self, ax: Any, z: np.ndarray) -> None:
        """The terms zᵢ Kᵢⱼ zⱼ, with their numbers where there is room."""
        K = np.asarray(self.witness.matrix)
        terms = z[:, None] * K * z if len(z) else K
        size = float(np.abs(terms).max()) or 1.0
        self.image_ = ax.imshow(terms, cmap=DIVERGING, vmin=-size, vmax=size)
        if self.witness.m <= MOST_NUMBERS:
            for (i, j), term in np.ndenumerate(terms):
                ax.text(j, i, f"{term:.3g}", ha="center", va="center", fontsize="small", color=INK)
            names = [f"$x_{{{i + 1}}}$" for i in range(self.witness.m)]
            ax.set_xticks(range(len(names)), names)
            ax.set_yticks(range(len(names)), names)
        text = f"terms $z_i K_{{ij}} z_j$, whose sum is {self.witness.value:.4g}"
        ax.set_title(text if len(z) else "K, which is not symmetric", fontsize="medium")
        self.figure_.suptitle(f"{plain(self.kernel[:70])} is not a Mercer kernel", fontsize="medium")
