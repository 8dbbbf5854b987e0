"""The pictures of a report, as SVG text that needs no file and no request."""

from __future__ import annotations

import warnings
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
from sklearn.metrics import roc_curve

from mercer.plots.drawing.display import drawn_of, largest_drawn
from mercer.plots.drawing.style import CLASSES, FAINT, INK, plain, shortened
from mercer.report.scores import number

__all__ = ["Picture", "bars", "calibration", "confusion", "residuals", "roc"]

MOST_CLASSES = 20
"""Classes of a confusion matrix; with more, numbers can't be read."""
LONGEST = 28
"""Letters of a name in a picture."""


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
    error, size = y - predicted, np.abs(y - predicted)
    shown = largest_drawn(size, most=2000)
    figure, ax = _figure()
    ax.axhline(0.0, color=FAINT, linewidth=1)
    ax.scatter(predicted[shown], error[shown], s=9, color=CLASSES[0], alpha=0.5, linewidths=0)
    ax.set(xlabel="predicted", ylabel="observed − predicted")
    ax.locator_params(nbins=5)
    says = (
        f"half of the rows are within ±{number(np.median(size))}, nine of ten within ±{number(np.quantile(size, 0.9))}"
    )
    left_out = drawn_of(len(shown), len(y))
    return _picture(figure, "Residuals", f"Residuals against predictions: {says}.{f' {left_out}.' if left_out else ''}")


def confusion(y: NDArray[Any], predicted: NDArray[Any]) -> Picture | None:
    """How many rows of each class were predicted to be of each class; the mistakes alone with more than twenty."""
    names = np.unique(np.concatenate([y, predicted]))
    if len(names) > MOST_CLASSES:
        return _mistakes(y, predicted)
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (np.searchsorted(names, y), np.searchsorted(names, predicted)), 1)
    words = [_short(name) for name in names]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, ax = _figure(width=1.5 + 0.55 * max(len(names), 4), height=1.2 + 0.5 * max(len(names), 4))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(counts.shape):
        ax.text(j, i, str(counts[i, j]), ha="center", va="center", color="white" if shares[i, j] > 0.55 else INK)
    ax.set_xticks(range(len(names)), words, **({"rotation": 30, "ha": "right"} if max(map(len, words)) > 3 else {}))
    ax.set_yticks(range(len(names)), words)
    ax.set(xlabel="predicted class", ylabel="true class")
    wrong = counts - np.diag(np.diag(counts))
    i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
    says = (
        f"most often {names[i]} is taken for {names[j]}, {wrong[i, j]} times" if wrong.any() else "no row is mistaken"
    )
    return _picture(figure, "Confusion matrix", f"Rows by true and predicted class: {says}.")


def _mistakes(y: NDArray[Any], predicted: NDArray[Any]) -> Picture | None:
    """The most frequent mistakes; None without one."""
    pairs, times = np.unique(np.column_stack([y, predicted])[y != predicted], axis=0, return_counts=True)
    if not len(pairs):
        return None
    half = (LONGEST - len(" as ")) // 2
    names = [f"{shortened(true, half)} as {shortened(said, half)}" for true, said in pairs]
    return bars(names, times, None, "Most frequent mistakes", "rows of the first class predicted as the second")


def roc(y: NDArray[Any], decision: NDArray[Any]) -> Picture:
    """Share of the second class that is found, against the share of the first that is mistaken for it."""
    names = np.unique(y)
    wrong, found, _ = roc_curve(y == names[1], decision)
    figure, ax = _figure()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
    ax.plot(wrong, found, color=CLASSES[0])
    first, second = map(_short, names)
    ax.set(xlabel=f"share of {first} taken for {second}", ylabel=f"share of {second} found", aspect="equal")
    at = float(np.interp(0.1, wrong, found))
    says = f"if a tenth of {names[0]} is mistaken, {100 * at:.0f} % of {names[1]} are found"
    return _picture(figure, "ROC curve", f"ROC curve: {says}.")


def calibration(hits: NDArray[Any], confidence: NDArray[Any], how: str = "") -> Picture:
    """The share of right predictions against the probability that the model gives them."""
    bins = int(np.clip(len(hits) // 30, 3, 10))
    right, said = calibration_curve(hits, np.clip(confidence, 0, 1), n_bins=bins, strategy="quantile")
    figure, ax = _figure()
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
    ax.plot(said, right, color=CLASSES[0], marker="o", markersize=5)
    ax.set(xlabel="stated probability of the predicted class", ylabel="share that is right")
    says = f"on average the model states {np.mean(confidence):.3f}, and {np.mean(hits):.3f} of the rows are right"
    return _picture(figure, "Calibration", f"Calibration: {says}.{how}")


def bars(names: Sequence[str], values: NDArray[Any], spread: NDArray[Any] | None, title: str, label: str) -> Picture:
    """Horizontal bars, the largest on top."""
    order = np.argsort(-values, kind="stable")[:15]
    figure, ax = _figure(height=0.8 + 0.28 * len(order))
    at = np.arange(len(order))[::-1]
    ax.barh(at, values[order], xerr=None if spread is None else spread[order], color=CLASSES[0], ecolor=FAINT)
    ax.set_yticks(at, [_short(names[j]) for j in order])
    ax.axvline(0.0, color=FAINT, linewidth=1)
    figure.supxlabel(label, fontsize="medium")  # long names leave the axes too little room for it
    ax.locator_params(axis="x", nbins=5)  # long names leave little room for numbers
    first = ", ".join(f"{names[j]} {values[j]:.3g}" for j in order[:3])
    return _picture(figure, title, f"{title}, {label}. The largest: {first}.")


def _short(name: Any) -> str:
    """A name for a picture, without line breaks."""
    return plain(shortened(name, LONGEST))


def _figure(width: float = 4.6, height: float = 3.6) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _picture(figure: Figure, title: str, says: str) -> Picture:
    text = StringIO()
    # The same file each time: identifiers in SVG come from the salt, and there is no date.
    # Text stays text, which a browser draws in any script; matplotlib, which only measures it, knows few.
    with rc_context({"svg.hashsalt": f"mercer {title}", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue()
    return Picture(title, drawing[drawing.index("<svg") :], says)
