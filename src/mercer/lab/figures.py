"""The pictures of the lab: figures that are made once, and filled anew at each outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColorBar, ColumnDataSource, LinearColorMapper, PlainText, Range1d
from bokeh.plotting import figure
from contourpy import contour_generator
from matplotlib import colormaps
from matplotlib.colors import to_hex

from mercer.lab.data import Dataset, Floats
from mercer.lab.session import Outcome, Surface
from mercer.plots.drawing.style import DIVERGING, INK, NEGATIVE, POSITIVE, SEQUENTIAL, SHADES, colour, tints
from mercer.validity import Witness

__all__ = ["Figures"]

HEIGHT, LARGE = 330, 1.35
CONTOURS, MOST_POINTS = 7, 1000
"""Lines of a surface; rows that are drawn, of all that are computed with."""


Pair = tuple[float, float]


def _hex(colours: Any) -> tuple[str, ...]:
    return tuple(to_hex(one) for one in colours)


VALUES, SIGNS, GREYS = (_hex(one(range(256))) for one in (colormaps[SEQUENTIAL], DIVERGING, SHADES))


class Figures:
    """Surface, embedding, variances, Gram matrix and witness."""

    def __init__(self, data: Dataset) -> None:
        self.surface = _figure("surface", "Surface")
        self.embedding = _figure("embedding", "Embedding")
        self.variances = _figure("variances", "Variances")
        self.gram = _figure("gram", "Gram matrix")
        self.witness = _figure("witness", "Witness: points with zᵀKz < 0")
        self._data = data
        self._rows, self._scores = ColumnDataSource(), ColumnDataSource()
        self._lines = ColumnDataSource({"xs": [], "ys": [], "width": []})  # thin lines, then thick ones
        self._bars = ColumnDataSource({"x": [1, 2], "top": [0.0, 0.0]})
        self._points = ColumnDataSource({"x": [0.0], "y": [0.0], "size": [1.0], "colour": ["black"], "label": [""]})
        self._values = LinearColorMapper(VALUES, low=0, high=1)
        self._entries = LinearColorMapper(VALUES, low=0, high=1)
        # Figures without any data make the browser complain.
        self._image, self._matrix = (ColumnDataSource(_image(np.zeros((2, 2)), self._values)) for _ in range(2))
        self._draw()
        self.use(data)

    @property
    def all(self) -> list[Any]:
        """In the order in which they are read."""
        return [self.surface, self.embedding, self.variances, self.gram, self.witness]

    def _draw(self) -> None:
        rows = {"fill_color": "colour", "line_color": None}  # outlines would double the time to paint
        self._heat = self.surface.image_rgba(source=self._image, level="image")
        self._contours = self.surface.multi_line("xs", "ys", source=self._lines, line_color=INK, line_width="width")
        self.surface.scatter("x", "y", size="size", fill_alpha="alpha", source=self._rows, **rows)
        self._scale = ColorBar(color_mapper=self._values, width=8)
        self.surface.add_layout(self._scale, "right")
        self.embedding.scatter("x", "y", size=5, fill_alpha=0.75, source=self._scores, **rows)
        self.variances.vbar("x", top="top", width=0.8, source=self._bars, color=colour(0))
        _label(self.variances, "component", "share of variance")
        self.gram.image_rgba(source=self._matrix)
        self.gram.add_layout(ColorBar(color_mapper=self._entries, width=8), "right")
        self.witness.scatter("x", "y", size="size", color="colour", source=self._points, line_color=INK)
        _label(self.witness, "first coordinate", "second coordinate")
        self.witness.text("x", "y", text="label", source=self._points, x_offset=12, y_offset=-6)

    def use(self, data: Dataset) -> None:
        """Colour the rows of another table."""
        self._data, n = data, min(len(data.y), MOST_POINTS)
        self.drawn = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n])
        colours = [colour(i) for i in range(len(data.classes))] if data.task == "classification" else VALUES
        codes = data.codes
        if data.task == "regression":
            codes = (codes - codes.min()) / (np.ptp(codes) or 1.0) * 255
        shown = [colours[int(code)] for code in codes[self.drawn]]
        self._rows.data = {
            **dict.fromkeys(("x", "y", "size"), np.zeros(n)),
            "alpha": np.ones(n),
            "colour": shown,
        }
        self._scores.data = {"x": np.zeros(n), "y": np.zeros(n), "colour": shown}

    def enlarge(self, large: bool) -> None:
        """Large figures and letters for a lecture, or those of a desk."""
        scale = LARGE if large else 1.0
        for one in self.all:
            one.height = int(HEIGHT * scale)
            one.title.text_font_size = f"{16 * scale:.0f}px"
            for axis in one.axis:
                axis.axis_label_text_font_size = axis.major_label_text_font_size = f"{12 * scale:.0f}px"

    def show_model(self, outcome: Outcome) -> None:
        """Surface and Gram matrix."""
        self.surface.visible, self.gram.visible = outcome.surface is not None, outcome.gram is not None
        if outcome.surface is not None:
            flat = outcome.surface.values.ndim == 1
            self._heat.visible = self._scale.visible = not flat
            self._contours.level = "overlay" if flat else "glyph"  # a curve is above the rows
            (self._show_curve if flat else self._show_surface)(outcome.surface)
            self._show_rows(outcome.surface, outcome)
        if outcome.gram is not None:
            self._show_gram(outcome.gram)

    def show_components(self, outcome: Outcome) -> None:
        """Embedding and variances."""
        self.embedding.visible, self.variances.visible = outcome.embedding is not None, outcome.ratios is not None
        if outcome.embedding is not None:
            x, y = places = outcome.embedding[self.drawn].T
            self._scores.data.update(x=x, y=y)
            _see(self.embedding, *((*_ends(one), 0.05) for one in places))
            _label(self.embedding, *_axes(outcome.embedding_name))
        if outcome.ratios is not None:
            shares = outcome.ratios
            self._bars.data = {"x": np.arange(1, len(shares) + 1), "top": shares}
            _see(self.variances, (0.4, len(shares) + 0.6, 0.0), (0.0, 1.05 * float(shares.max(initial=1e-9)), 0.0))
            two = float(shares[:2].sum())
            self.variances.title.text = f"Variances: two have {two:.1%}{'; others are negative' * (two > 1.001)}"

    def _show_curve(self, surface: Surface) -> None:
        """What is said along one column; of a decision function 0 too."""
        x, values = surface.x, surface.values
        level = x[[0, -1]] if surface.kind == "decision" else x[:0]
        self._lines.data = {"xs": [level, x], "ys": [np.zeros(len(level)), values], "width": [1.0, 3.0]}
        _see(self.surface, (x[0], x[-1], 0.0), (*_ends(np.concatenate([values, surface.y])), 0.05))

    def _show_surface(self, surface: Surface) -> None:
        values, (x, y) = surface.values, (surface.x, surface.y)
        low, high = float(values.min()), float(values.max())
        palette = GREYS
        if surface.kind == "decision":
            high = max(abs(low), abs(high), 1e-12)
            low, palette = -high, SIGNS
        elif surface.kind in ("classes", "clusters"):
            count = max(len(self._data.classes), int(high) + 1) if surface.kind == "classes" else int(high) + 1
            palette, low, high = _hex(tints(count)), -0.5, count - 0.5
        if self._values.palette != palette:
            self._values.palette = palette
        self._values.update(low=low, high=high if high > low else low + 1.0)
        self._image.data = _image(values, self._values, (x[0], y[0]), (x[-1] - x[0], y[-1] - y[0]))
        self._lines.data = _contours(surface)
        _see(self.surface, (x[0], x[-1], 0.0), (y[0], y[-1], 0.0))

    def _show_rows(self, surface: Surface, outcome: Outcome) -> None:
        i, j = outcome.settings.axes
        weights = surface.weights[self.drawn]
        has = np.isfinite(weights)
        size = np.where(has, 4 + 8 * np.sqrt(np.nan_to_num(weights)), 4.0 if has.any() else 6.0)
        alpha = np.where(has, 0.85, 0.35 if has.any() else 0.75)
        X, flat = self._data.X[self.drawn], surface.values.ndim == 1
        up = surface.y[self.drawn] if flat else X[:, j]
        changed = {"x": X[:, i], "y": up, "size": size, "alpha": alpha}
        self._rows.data.update({k: new for k, new in changed.items() if not np.array_equal(self._rows.data[k], new)})
        _label(self.surface, self._data.columns[i], UP[surface.kind] if flat else self._data.columns[j])
        self.surface.title.text = f"{'Curve' if flat else 'Surface'}: {SAYS[surface.kind]}"

    def _show_gram(self, K: Floats) -> None:
        low, high = float(K.min()), float(K.max())
        self._entries.update(low=low, high=high if high > low else low + 1.0)
        m = len(K)
        _see(self.gram, (0.0, m, 0.0), (m, 0.0, 0.0))
        self._matrix.data = _image(K, self._entries, (0.0, 0.0), (m, m))
        by = "class" if self._data.task == "classification" else "target"
        self.gram.title.text = f"Gram matrix of {m} rows by {by}"

    def show_witness(self, witness: Witness | None) -> None:
        """The points of a witness, as large as their coefficients and coloured by their signs; or none."""
        points = [] if witness is None else [one for one in witness.points if isinstance(one, tuple)]
        self.witness.visible = bool(points)
        if witness is None or not points:
            return
        z = np.array([float(one) for one in witness.z] or [1.0] * len(points))
        places = np.array([[float(one) for one in (*point, 0, 0)[:2]] for point in points])
        _see(self.witness, *((*_ends(values), 0.4) for values in places.T))
        self._points.data = {
            "x": places[:, 0],
            "y": places[:, 1],
            "size": 10 + 22 * np.sqrt(np.abs(z) / np.abs(z).max()),
            "colour": [POSITIVE if one > 0 else NEGATIVE for one in z],
            "label": [f"z = {one:.3g}" for one in z] if len(z) <= 12 else [""] * len(z),
        }


SAYS = {
    "prediction": "what is predicted",
    "decision": "decision function",
    "classes": "class",
    "component": "first component",
    "clusters": "cluster",
}
UP = {**SAYS, "prediction": "target, and what is predicted"}
"""Of the second axis where a column has a curve."""


def _figure(name: str, title: str) -> Any:
    tools = "pan,wheel_zoom,reset,save"
    # Ranges that follow the data are found by the browser, told to the server, and wrong while a figure is hidden.
    ranges = {"x_range": Range1d(), "y_range": Range1d()}
    size = {"sizing_mode": "stretch_width", "height": HEIGHT}  # the page says how wide
    found = figure(name=name, title=title, tools=tools, toolbar_location="right", **size, **ranges)
    found.toolbar.logo = None
    found.toolbar.autohide = True
    found.title.text_font_size = "16px"
    found.grid.visible = False
    for axis in found.axis:
        axis.formatter.power_limit_high = 7  # prices and populations are read as they are
    return found


def _image(values: Floats, mapper: Any, corner: Pair = (0.0, 0.0), size: Pair = (1.0, 1.0)) -> dict[str, list[Any]]:
    """The image in colours: the browser takes ten times as long to map values to them."""
    palette = np.array([(*(int(one[i : i + 2], 16) for i in (1, 3, 5)), 255) for one in mapper.palette], np.uint8)
    place = (values - mapper.low) * (len(palette) / (mapper.high - mapper.low))
    image = palette[np.clip(place, 0, len(palette) - 1).astype(np.intp)].view(np.uint32)[..., 0]
    return {"image": [image], "x": [corner[0]], "y": [corner[1]], "dw": [size[0]], "dh": [size[1]]}


def _label(one: Any, x: str, y: str) -> None:
    """Plain text: a column's name is never read as mathematics. A label that stays costs no layout."""
    for axis, text in ((one.xaxis[0], x), (one.yaxis[0], y)):
        if not (axis.axis_label and axis.axis_label.text == text):
            axis.axis_label = PlainText(text=text)


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _see(one: Any, *axes: tuple[float, float, float]) -> None:
    """Both axes from the first to the second number, and a share of the length more at both ends."""
    for found, (start, end, share) in zip((one.x_range, one.y_range), axes, strict=True):
        margin = share * (end - start) if end != start else 1.0
        ends = {"start": start - margin, "end": end + margin}
        found.update(**ends, reset_start=ends["start"], reset_end=ends["end"])


def _axes(name: str) -> tuple[str, str]:
    return (f"first of the {name}", "second")


def _contours(surface: Surface) -> dict[str, Any]:
    """Lines of equal value. A decision function has 0 and the margins ±1, and classes have their borders."""
    maker = contour_generator(surface.x, surface.y, surface.values)
    thin, thick = ([], []) if surface.kind in ("classes", "clusters") else ([-1.0, 1.0], [0.0])
    if surface.kind in ("prediction", "component"):
        thin, thick = np.linspace(*_ends(surface.values), CONTOURS + 2)[1:-1].tolist(), []
    drawn = [_joined([line for level in levels for line in maker.lines(level)]) for levels in (thin, thick)]
    return {"xs": [lines[:, 0] for lines in drawn], "ys": [lines[:, 1] for lines in drawn], "width": [1.0, 3.0]}


def _joined(lines: list[Floats]) -> Floats:
    """Lines as one, with a gap after each: an array each would be a message each."""
    gap = np.full((1, 2), np.nan)
    return np.concatenate([gap, *(part for line in lines for part in (line, gap))])
