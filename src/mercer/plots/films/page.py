"""The film as one HTML file: the frames as bytes, differences from frame to frame, deflated."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.ticker import MaxNLocator

from mercer.plots.drawing.style import DIVERGING, NEGATIVE, POSITIVE, SHADES, colour, tints

__all__ = ["page"]

MOST_BYTES = 2_900_000
BANDS = 21
MIDDLE = 128
"""The byte of 0."""


def page(film: Any) -> str:
    """The page, with fewer frames where all would make it larger than 2.9 MB."""
    template = files("mercer.plots.films").joinpath("page.html").read_text(encoding="utf-8")
    while True:
        data = json.dumps(_data(film), separators=(",", ":")).replace("</", "<\\/")
        if len(data) <= MOST_BYTES or len(film) <= 2:
            return template.replace("__TITLE__", html.escape(film.title)).replace("__FILM__", data)
        film = film.thinned(max(2, int(len(film) * 0.9 * MOST_BYTES / len(data))))


def _data(film: Any) -> dict[str, Any]:
    """The data for the script of the page."""
    first, second = film.axes
    limits = [[float(one[0]), float(one[-1])] for one in (first, second)]
    size = scale(film)
    alpha = film.coefficients
    moving = film.points is not None and len(film.points) > 1
    return {
        "kind": film.kind,
        "title": film.title,
        "unit": film.unit,
        "steps": film.steps.tolist(),
        "names": [re.sub(r"^\$x_\{(\d+)\}\$$", r"x\1", name).replace("\\$", "$") for name in film.names],
        "limits": limits,
        "ticks": [np.asarray(MaxNLocator(6).tick_values(*one)).tolist() for one in limits],
        "side": film.values.shape[-1],
        "rows": np.round(_places(film.rows, limits), 4).tolist(),
        "labels": film.labels.tolist() if film.labels is not None and film.labels.ndim == 1 else None,
        "classes": list(film.classes),
        "classColours": [colour(place) for place in range(max(len(film.classes), 1))],
        "colours": _colours(film),
        "signed": film.signed and film.kind == "surface",
        "scale": size,
        "signs": [NEGATIVE, POSITIVE],
        "points": [] if film.points is None or moving else np.round(_places(film.points[0], limits), 4).tolist(),
        "values": _packed(_as_bytes(film, size)),
        "alpha": None if alpha is None else _packed(_signed_bytes(alpha, float(np.abs(alpha).max()) or 1.0)),
        "moves": _packed(_fractions(film.points, limits)) if moving else None,
        "clusters": _packed(film.labels.astype(np.uint8))
        if film.labels is not None and film.labels.ndim == 2
        else None,
        "notes": film.said,
    }


def scale(film: Any) -> list[float]:
    """The ends of the colours: what all but half a per cent of the values are within."""
    finite = film.values[np.isfinite(film.values)]
    if film.kind == "classes" or not len(finite):
        return [0.0, 1.0]
    if film.signed:
        size = float(np.quantile(np.abs(finite), 0.995)) or 1.0
        return [-size, size]
    low, high = (float(end) for end in np.quantile(finite, [0.005, 0.995]))
    return [low, high if high > low else low + 1]


def _as_bytes(film: Any, ends: list[float]) -> np.ndarray:
    """f as numbers from 0 to 255, with signs as roots; of a curve to 65535, which is finer than the screen."""
    if film.kind == "classes":
        return film.values.astype(np.uint8)
    low, high = (float(end) for end in film.axes[1][[0, -1]]) if film.kind == "curve" else ends
    values = np.nan_to_num(film.values, nan=(low + high) / 2, posinf=high, neginf=low)
    if film.kind == "surface" and film.signed:
        return _signed_bytes(np.sign(values) * np.sqrt(np.abs(values) / high), 1.0)
    top, kind = (65535, np.uint16) if film.kind == "curve" else (255, np.uint8)
    return np.round(np.clip((values - low) / (high - low), 0, 1) * top).astype(kind)


def _signed_bytes(values: np.ndarray, size: float) -> np.ndarray:
    return np.asarray(np.round(np.clip(values / size, -1, 1) * (MIDDLE - 1)) + MIDDLE).astype(np.uint8)


def _fractions(points: np.ndarray | None, limits: list[list[float]]) -> np.ndarray:
    """Where points are in the picture, in 65535ths of its sides."""
    assert points is not None
    return np.round(np.clip(_places(points, limits), 0, 1) * 65535).astype(np.uint16)


def _places(points: np.ndarray, limits: list[list[float]]) -> np.ndarray:
    """Points as fractions of the picture's sides."""
    (left, right), (low, high) = limits
    return np.asarray((points - [left, low]) / [right - left, high - low])


def _packed(frames: np.ndarray) -> str:
    """Differences from frame to frame, which wrap, deflated, as text."""
    differences = np.concatenate([frames[:1], frames[1:] - frames[:-1]])
    return base64.b64encode(
        zlib.compress(differences.astype(differences.dtype.newbyteorder("<")).tobytes(), 9)
    ).decode()


def _colours(film: Any) -> list[list[int]]:
    """The colour of each byte."""
    if film.kind == "classes":
        return [[round(255 * part) for part in one] for one in tints(len(film.classes))]
    colours = colormaps.get_cmap(DIVERGING if film.signed else SHADES)
    bands = np.minimum(np.floor(np.linspace(0, 1, 256) * BANDS), BANDS - 1) / (BANDS - 1)
    return [[round(255 * part) for part in colours(one)[:3]] for one in bands]
