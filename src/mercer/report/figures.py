"""The pictures of a report, as SVG text that needs no file and no request."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, roc_curve

from mercer.plots.drawing.display import drawn_of, places_drawn
from mercer.plots.drawing.style import CLASSES, FAINT, INK

__all__ = ["Picture", "bars", "calibration", "confusion", "residuals", "roc"]

MOST_CLASSES = 20
"""Classes of a confusion matrix; with more, numbers can't be read."""


@dataclass(frozen=True)
class Picture:
    """A drawing, its heading, and what it shows in words, for those who don't see it."""

    title: str
    svg: str
    says: str

    @property
    def base64(self) -> str:
        """The drawing for a data address, in which its identifiers are its own."""
        return b64encode(self.svg.encode()).decode("ascii")


def residuals(y: NDArray[Any], predicted: NDArray[Any]) -> Picture:
    """y − f(x) against f(x)."""
    shown = places_drawn(len(y), 2000)
    error, size = y - predicted, np.abs(y - predicted)
    figure, ax = _figure()
    ax.axhline(0.0, color=FAINT, linewidth=1)
    ax.scatter(predicted[shown], error[shown], s=9, color=CLASSES[0], alpha=0.5, linewidths=0)
    ax.set(xlabel="predicted", ylabel="observed − predicted")
    says = f"half of the rows are within ±{np.median(size):.3g}, nine of ten within ±{np.quantile(size, 0.9):.3g}"
    left_out = drawn_of(len(shown), len(y))
    return _picture(figure, "Residuals", f"Residuals against predictions: {says}.{f' {left_out}.' if left_out else ''}")


def confusion(y: NDArray[Any], predicted: NDArray[Any]) -> Picture | None:
    """How many rows of each class were predicted to be of each class; None with more than twenty classes."""
    names = np.unique(np.concatenate([y, predicted]))
    if len(names) > MOST_CLASSES:
        return None
    counts = confusion_matrix(y, predicted, labels=names)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, ax = _figure(width=1.5 + 0.55 * max(len(names), 4), height=1.2 + 0.5 * max(len(names), 4))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(counts.shape):
        ax.text(j, i, str(counts[i, j]), ha="center", va="center", color="white" if shares[i, j] > 0.55 else INK)
    ax.set_xticks(range(len(names)), names, rotation=30 if max(map(len, map(str, names))) > 3 else 0)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted class", ylabel="true class")
    wrong = counts - np.diag(np.diag(counts))
    i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
    says = (
        f"most often {names[i]} is taken for {names[j]}, {wrong[i, j]} times" if wrong.any() else "no row is mistaken"
    )
    return _picture(figure, "Confusion matrix", f"Rows by true and predicted class: {says}.")


def roc(y: NDArray[Any], decision: NDArray[Any]) -> Picture:
    """Share of the second class that is found, against the share of the first that is mistaken for it."""
    names = np.unique(y)
    wrong, found, _ = roc_curve(y == names[1], decision)
    figure, ax = _figure()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
    ax.plot(wrong, found, color=CLASSES[0])
    ax.set(xlabel=f"share of {names[0]} taken for {names[1]}", ylabel=f"share of {names[1]} found", aspect="equal")
    at = float(np.interp(0.1, wrong, found))
    says = f"if a tenth of {names[0]} is mistaken, {100 * at:.0f} % of {names[1]} are found"
    return _picture(figure, "ROC curve", f"ROC curve: {says}.")


def calibration(hits: NDArray[Any], confidence: NDArray[Any]) -> Picture:
    """How often the predicted class is right, against how probable the model says it is."""
    bins = int(np.clip(len(hits) // 30, 3, 10))
    right, said = calibration_curve(hits, np.clip(confidence, 0, 1), n_bins=bins, strategy="quantile")
    figure, ax = _figure()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
    ax.plot(said, right, color=CLASSES[0], marker="o", markersize=5)
    ax.set(xlabel="stated probability of the predicted class", ylabel="share that is right")
    says = f"on average the model states {np.mean(confidence):.3f}, and {np.mean(hits):.3f} of the rows are right"
    return _picture(figure, "Calibration", f"Calibration: {says}.")


def bars(names: Sequence[str], values: NDArray[Any], spread: NDArray[Any], title: str, label: str) -> Picture:
    """Horizontal bars, the largest on top."""
    order = np.argsort(values)[::-1][:15]
    figure, ax = _figure(height=0.8 + 0.28 * len(order))
    at = np.arange(len(order))[::-1]
    ax.barh(at, values[order], xerr=spread[order], color=CLASSES[0], ecolor=FAINT)
    ax.set_yticks(at, [_short(names[j]) for j in order])
    ax.axvline(0.0, color=FAINT, linewidth=1)
    ax.set_xlabel(label)
    first = ", ".join(f"{names[j]} {values[j]:.3g}" for j in order[:3])
    return _picture(figure, title, f"{title}, {label}. The largest: {first}.")


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _figure(width: float = 4.6, height: float = 3.6) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _picture(figure: Figure, title: str, says: str) -> Picture:
    text = StringIO()
    # The same file each time: identifiers in SVG come from the salt, and there is no date.
    with rc_context({"svg.hashsalt": f"mercer {title}", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue()
    return Picture(title, drawing[drawing.index("<svg") :], says)
