"""Colours, markers and sizes of all pictures: readers with any colour vision can tell them apart, and so can a copier.

The colours of classes are those of Okabe and Ito, but for the last; each class has a marker of its own too. Signs are
those of the first two classes, blue discs and vermilion squares, and sizes a map of even lightness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.path import Path

__all__ = [
    "DIVERGING",
    "FAINT",
    "INK",
    "LARGEST_DISC",
    "NEGATIVE",
    "POSITIVE",
    "SEQUENTIAL",
    "SHADES",
    "as_signs",
    "colour",
    "discs",
    "in_legend",
    "marker",
    "plain",
    "shortened",
    "tints",
]

MOST_LETTERS = 24
"""Of a name beside a picture."""
CLASSES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#692D00")
MARKERS = "os^DvP*X<>"
NEGATIVE, POSITIVE = CLASSES[:2]
INK, FAINT = "#222222", "#767676"

DIVERGING = LinearSegmentedColormap.from_list("mercer_signs", ["#4A9CCB", "#FFFFFF", "#EF9A5C"])
"""Blue below 0, white at 0, vermilion above; pale, so that points can be seen on it."""
SHADES = LinearSegmentedColormap.from_list("mercer_shades", ["#FFFFFF", "#8C8C8C"])
"""For what has no sign, where coloured points are drawn on it."""
SEQUENTIAL = "cividis"
"""For what has no sign by itself."""

SMALLEST_DISC, LARGEST_DISC = 3.0, 120.0
"""Areas in square points."""


def colour(place: int) -> str:
    """The colour of a class."""
    return CLASSES[place % len(CLASSES)]


def marker(place: int) -> str:
    """The marker of a class, another one where the colours begin again.

    >>> len({(colour(i), marker(i)) for i in range(40)})
    40
    """
    return MARKERS[(place + place // len(CLASSES)) % len(MARKERS)]


def as_signs(discs: Any, values: Any) -> None:
    """Discs of values < 0 become blue, and those of others vermilion squares of the same areas."""
    up, disc = np.asarray(values) >= 0, Path.circle(radius=0.5)
    half = np.sqrt(np.pi) / 4
    square = Path([(-half, -half), (half, -half), (half, half), (-half, half), (0.0, 0.0)], closed=True)
    discs.set_paths([square if one else disc for one in up] or [disc])
    discs.set_facecolors([POSITIVE if one else NEGATIVE for one in up])


def plain(text: Any) -> str:
    """Names from data: their dollars are no formulas.

    >>> print(plain("price in $ or US$"))
    price in \\$ or US\\$
    """
    return str(text).replace("$", "\\$")


def shortened(text: Any, most: int) -> str:
    """A name without line breaks, and of a long one both ends: names often differ in the last letters alone.

    >>> shortened("a name", 9), shortened("the first of them", 9)
    ('a name', 'the …them')
    """
    words = " ".join(str(text).split())
    last = (most - 1) // 2
    return words if len(words) <= most else f"{words[: most - 1 - last]}…{words[-last:]}"


def in_legend(label: Any) -> str:
    """The name of a class in a legend, from which matplotlib leaves out empty labels and those that begin with "_".

    >>> in_legend("_a"), in_legend(""), in_legend(3)
    (' _a', '(empty)', '3')
    """
    text = plain(label)
    return f" {text}" if text.startswith("_") else text if text.strip() else "(empty)"


def tints(count: int) -> list[Any]:
    """The colours of this many classes, light enough to draw on."""
    return [tuple(1 - 0.35 * (1 - c) for c in to_rgb(colour(place))) for place in range(count)]


def discs(values: Any) -> np.ndarray:
    """Areas of discs in proportion to |values|, the largest of them the same in all pictures.

    >>> discs([-2.0, 0.0, 1.0])
    array([120.,   3.,  60.])
    """
    size = np.abs(np.asarray(values, np.float64))
    top = size.max(initial=0.0)
    return np.maximum(LARGEST_DISC * size / (top if top > 0 else 1.0), SMALLEST_DISC)
