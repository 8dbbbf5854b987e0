"""The film as a GIF."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap, to_rgb
from PIL import Image

from mercer.plots.drawing.display import new_axes
from mercer.plots.drawing.style import (
    DIVERGING,
    INK,
    LARGEST_DISC,
    NEGATIVE,
    SHADES,
    as_signs,
    colour,
    in_legend,
    marker,
    plain,
    tints,
)
from mercer.plots.films.page import BANDS, scale

__all__ = ["as_gif"]

MOST_FRAMES = 60
SECONDS = 10
LAST = 2000
"""Milliseconds of the last frame."""
DOTS_PER_INCH = 80


def as_gif(film: Any) -> bytes:
    """At most 60 of the frames, in some ten seconds, and the last one for a while."""
    import matplotlib.pyplot as plt

    film = film.thinned(MOST_FRAMES)
    drawing = Drawing(film)
    try:
        images = [drawing.image_of(frame) for frame in range(len(film))]
    finally:
        plt.close(drawing.ax.figure)
    each = int(np.clip(1000 * SECONDS / len(film), 100, 500))
    times = [each] * (len(images) - 1) + [LAST]
    file = io.BytesIO()
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0)
    return file.getvalue()


def palette_of(film: Any) -> Any:
    """At most 256 colours: those of the surface, of points and their edges, and greys."""
    surface: Any = (DIVERGING if film.signed else SHADES).resampled(BANDS)
    pale = [surface(place)[:3] for place in range(BANDS)] + tints(8) + [(grey / 23,) * 3 for grey in range(24)]
    inks = [to_rgb(colour(place)) for place in range(8)]
    mixed = [tuple(1 - share * (1 - part) for part in ink) for ink in inks for share in (0.25, 0.5, 0.75, 1.0)]
    image = Image.new("P", (1, 1))
    image.putpalette([round(255 * part) for one in pale + mixed for part in one])
    return image


class Drawing:
    """The artists of a film, which `show` sets to a frame."""

    def __init__(self, film: Any) -> None:
        self.film, self.boundary, self.palette = film, None, palette_of(film)
        self.ax = new_axes(1)[0]
        (first, second), ax = film.axes, self.ax
        ax.set(xlim=first[[0, -1]], ylim=second[[0, -1]], xlabel=film.names[0], ylabel=film.names[1])
        if film.kind == "curve":
            (self.line,) = ax.plot([], [], color=NEGATIVE, linewidth=2, zorder=3)
        else:
            self.surface = self._surface()
        self.dots = self._rows()
        self.discs = ax.scatter([], [], edgecolors="white", linewidths=0.5, zorder=4)
        if film.said:
            ax.text(0.99, 0.01, plain("\n".join(film.said)), transform=ax.transAxes, ha="right", fontsize=7, color=INK)
        self.show(0)
        ax.figure.set_dpi(DOTS_PER_INCH)
        ax.figure.canvas.draw()
        ax.figure.set_layout_engine("none")  # the places of the axes stay as they are

    def image_of(self, frame: int) -> Any:
        """The picture of a frame, in the palette of the film, so that small discs keep their colours."""
        self.show(frame)
        canvas = self.ax.figure.canvas
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3])
        return picture.quantize(palette=self.palette, dither=Image.Dither.NONE)

    def _surface(self) -> Any:
        """The surface, in bands of colour."""
        film, ends = self.film, scale(self.film)
        low, high = ends
        colours: Any = (DIVERGING if film.signed else SHADES).resampled(BANDS)
        if film.kind == "classes":
            low, high, colours = -0.5, len(film.classes) - 0.5, ListedColormap(tints(len(film.classes)))
        (left, right), (bottom, top) = (one[[0, -1]] for one in film.axes)
        kind = "nearest" if film.kind == "classes" else "bilinear"
        image = self.ax.imshow(
            film.values[0],
            extent=(left, right, bottom, top),
            origin="lower",
            aspect="auto",
            cmap=colours,
            vmin=low,
            vmax=high,
            interpolation=kind,
        )
        if film.kind == "surface":
            self.ax.figure.colorbar(image, ax=self.ax, label="f(x)")
        return image

    def _rows(self) -> list[Any]:
        """The rows, by class where these are known."""
        film, ax = self.film, self.ax
        small = 8 if film.coefficients is not None else 20
        if film.labels is None or film.labels.ndim == 2:
            return [ax.scatter(*film.rows.T, s=small, color=INK, linewidths=0, zorder=2)]
        found = []
        for place, name in enumerate(film.classes):
            of = film.labels == place
            dots = {"s": small, "color": colour(place), "marker": marker(place), "linewidths": 0}
            found.append(ax.scatter(*film.rows[of].T, label=in_legend(name), zorder=2, **dots))
        ax.legend(loc="upper right", fontsize="x-small")
        return found

    def show(self, frame: int) -> None:
        """Set the artists to a frame."""
        film, ax = self.film, self.ax
        ax.set_title(f"{film.title.split(':')[0]}, {film.unit} {film.steps[frame]:,}", fontsize="medium")
        if film.kind == "curve":
            self.line.set_data(film.axes[0], film.values[frame])
        else:
            self.surface.set_data(film.values[frame])
            self._show_boundary(film.values[frame])
        if film.labels is not None and film.labels.ndim == 2:
            self.dots[0].set_color([colour(place) for place in film.labels[frame]])
        if film.coefficients is not None and film.points is not None:
            alpha = film.coefficients[frame]
            self.discs.set_offsets(film.points[min(frame, len(film.points) - 1)])
            self.discs.set_sizes(LARGEST_DISC * np.abs(alpha) / (np.abs(film.coefficients).max() or 1.0))
            as_signs(self.discs, alpha)

    def _show_boundary(self, values: np.ndarray) -> None:
        """The line f = 0."""
        if self.boundary is not None:
            self.boundary.remove()
            self.boundary = None
        if self.film.kind == "surface" and self.film.signed and values.min() < 0 < values.max():
            self.boundary = self.ax.contour(*self.film.axes, values, levels=[0.0], colors=INK, linewidths=1.5)
