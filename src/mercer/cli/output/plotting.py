"""The picture of ``mercer plot``: what suits a model and a table, or the kind that is asked for."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli import predicting
from mercer.cli.places import given_paths
from mercer.errors import InvalidInput, message
from mercer.files import write_whole
from mercer.io import Table, TableModel
from mercer.io.outputs import check_output
from mercer.numerals import counted
from mercer.tables.targets import Task

__all__ = ["KINDS", "Drawn", "check_picture_place", "plot"]

STARTS = {".png": (b"\x89PNG",), ".pdf": (b"%PDF",), ".svg": (b"<?xml", b"<svg")}
"""The first bytes of picture files, by their suffixes."""
DOTS = 150
"""Dots an inch."""
SIDE, CELL, LARGEST, LETTER = 5.0, 0.5, 20.0, 0.12
"""Inches: the least side of a matrix of confusion, that of a class with four digits, the largest side, and a letter."""
LINE = 0.05
"""The height of a note, of that of the axes."""
LONGEST, NOTED = 24, 18
"""Letters of a class at the edge of a matrix of confusion, and letters of a note below it in an inch."""
FEW = 10
"""Classes with which the zeros of a matrix of confusion are written; with more they hide the errors."""


@dataclass(frozen=True)
class Drawn:
    """The picture that was written, its number of rows, and what it leaves out."""

    kind: str
    rows: int
    notes: list[str]


def check_picture_place(out: Path, inputs: list[Path | None]) -> None:
    """Raise InvalidInput if a picture must not be written here, or matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        given, do = "matplotlib is not installed", 'pip install "mercer[plots]"'
        raise InvalidInput(message("plot", given, do)) from None
    mpl.use("Agg")
    starts = STARTS.get(out.suffix.lower())
    if starts is None:
        raise InvalidInput(message("--out", f"{out.name} is not a picture by its name", f"end it in {_or(STARTS)}"))
    check_output("--out", out, given_paths(inputs), "a picture", lambda path: path.read_bytes()[:8].startswith(starts))


def plot(model: TableModel, rows: Table, kind: str, target: str | None, out: Path) -> Drawn:
    """Draw, and write the picture, whole or not at all."""
    from mercer.plots.drawing.style import plain

    if kind != "auto" and kind not in KINDS:
        raise InvalidInput(message("--kind", f"{kind!r}", f"choose auto, {_or(KINDS)}"))
    chosen = _suits(model, rows, target) if kind == "auto" else kind
    display = KINDS[chosen](model, rows, target)
    title = chosen if model.task in ("components", "clusters") else f"{model.target}: {chosen}"
    display.figure_.suptitle(plain(title))
    buffer = io.BytesIO()
    display.figure_.savefig(buffer, format=out.suffix.lower()[1:], dpi=DOTS, bbox_inches="tight")
    write_whole(out, buffer.getvalue(), "--out")
    return Drawn(chosen, len(rows.frame), [str(one) for one in getattr(display, "notes_", []) if one])


def _or(names: Any) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _suits(model: TableModel, rows: Table, target: str | None) -> str:
    """The kind of picture that suits the model."""
    if model.task == "components":
        return "scores"
    features = _features(model)
    if len(features) == 2:
        return "surface"
    if model.task not in ("regression", "classification"):
        return "scores"
    if len(features) == 1 and model.task == "regression":
        return "posterior"
    return "confusion" if model.task == "classification" else "residuals"


def _features(model: TableModel) -> list[str]:
    """The columns of numbers that the model reads; none if it reads texts or sequences too."""
    encoder: Any = model.encoder
    return [] if getattr(encoder, "text_columns_", ["sequence"]) else list(encoder.feature_names_out_)


def _matrix(model: TableModel, rows: Table, kind: str, least: int) -> NDArray[Any]:
    """The rows as the model's columns of numbers."""
    found = _features(model)
    if len(found) < least:
        what = f"{counted(len(found), 'column')} of numbers" if found else "texts or sequences"
        raise InvalidInput(message("--kind", f"{kind} of a model of {what}", "choose another kind, or auto"))
    encoder: Any = model.encoder
    return np.asarray(encoder.transform(rows.frame))


def _labels(model: TableModel, rows: Table, target: str | None) -> Any:
    """The values of the target, or of the column that is named, to colour the rows; None if there are none."""
    name = target or model.target
    if target is None and name not in rows.columns:
        return None
    if name not in rows.columns:
        rows.split(name)  # refuses it, with the nearest name
    values = rows.frame[name]
    whole = values.notna()
    return values if values.dtype.kind in "iufb" and whole.all() else values.astype(str).where(whole, "missing")


def _surface(model: TableModel, rows: Table, target: str | None) -> Any:
    from mercer.plots import DecisionSurfaceDisplay
    from mercer.plots.drawing.style import plain

    X, y = _matrix(model, rows, "surface", 2), _labels(model, rows, target)
    display = DecisionSurfaceDisplay.from_estimator(model.estimator, X, y, points=False)
    first, second = map(plain, _features(model)[:2])
    display.ax_.set(xlabel=f"{first}, as encoded", ylabel=f"{second}, as encoded")
    return display


def _posterior(model: TableModel, rows: Table, target: str | None) -> Any:
    from mercer.plots import PosteriorDisplay
    from mercer.plots.drawing.style import plain

    if model.task != "regression":
        raise InvalidInput(message("--kind", f"posterior of a model of {model.task}", "choose another kind, or auto"))
    X = _matrix(model, rows, "posterior", 1)
    y = _labels(model, rows, target)
    y = None if y is None or y.dtype.kind not in "iufb" else y.to_numpy()
    display = PosteriorDisplay.from_estimator(model.estimator, X, y)
    display.ax_.set(xlabel=f"{plain(_features(model)[0])}, as encoded", ylabel=plain(model.target))
    return display


def _scores(model: TableModel, rows: Table, target: str | None) -> Any:
    from mercer.plots import ScoresDisplay

    labels = _labels(model, rows, target)
    if hasattr(model.estimator, "transform"):
        values, names = model.transform(rows), _axes(model)
        labels = model.predict(rows) if labels is None and model.task == "clusters" else labels
    elif hasattr(model.estimator, "decision_function"):
        found = model.decision_function(rows)
        values, names = found.reshape(len(found), -1), ["score"]
        if labels is None and model.task == "outliers":
            labels = np.where(found < 0, "outlier", "inlier")
    else:
        raise InvalidInput(message("--kind", "scores of a model that has none", "choose another kind, or auto"))
    display = ScoresDisplay.from_predictions(values[:, :2], labels)
    shown = names[: min(2, values.shape[1])]
    display.ax_.set(**dict(zip(("xlabel", "ylabel"), shown if len(shown) == 2 else ["row", *shown], strict=True)))
    if model.task == "outliers":
        _draw_border(display, values)
    return display


def _axes(model: TableModel) -> list[str]:
    """What the transformed rows are called: components with their shares of the variance, or distances."""
    from mercer.plots.components import title

    names = predicting.outputs(model, "the model", "transform")
    if not names[0].startswith("component"):
        return names
    return [title(model.estimator, place) for place in range(len(names))]


def _draw_border(display: Any, scores: NDArray[Any]) -> None:
    """The line of the scores 0, below which rows are outliers, and how many are."""
    from mercer.plots.drawing.style import INK

    display.ax_.axhline(0.0, color=INK, linewidth=1.0, zorder=1)
    outside = int(np.sum(scores < 0))
    said = f"{counted(outside, 'outlier')} among {counted(len(scores), 'row')}, score < 0"
    display.ax_.set_title(said, fontsize="medium")


def _compared(
    model: TableModel, rows: Table, target: str | None, kind: str, task: Task
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """The target, the predictions and what was left out, for a picture of a task."""
    if model.task != task:
        raise InvalidInput(message("--kind", f"{kind} of a model of {model.task}", "choose another kind, or auto"))
    rest, column = rows.split(target or model.target)
    notes = [*rest.notes[len(rows.notes) :], *predicting.seen(model, rest)]
    classes = model.classes_ if task == "classification" else None
    return *predicting.comparable(rows.path, column, model.predict(rest), task, classes), notes


def _residuals(model: TableModel, rows: Table, target: str | None) -> Any:
    from sklearn.metrics import PredictionErrorDisplay

    from mercer.plots.drawing.display import LARGEST, drawn_of, in_the_corner, largest_drawn

    y, found, notes = _compared(model, rows, target, "residuals", "regression")
    drawn = largest_drawn(np.abs(y - found))
    # The display is made of the rows themselves: `from_predictions` would draw some of them again, and leave some out.
    display: Any = PredictionErrorDisplay(y_true=y[drawn], y_pred=found[drawn])
    display.plot(kind="residual_vs_predicted", scatter_kwargs={"s": 12, "alpha": 0.6})
    if left_out := drawn_of(len(drawn), len(y)):
        notes.append(f"{left_out}, the {LARGEST} largest residuals among them")
    low, high = display.ax_.get_ylim()
    display.ax_.set_ylim(low - LINE * len(notes) * (high - low), high)  # the notes hide no residual
    display.notes_ = in_the_corner(display.ax_, *notes)
    return display


def _confusion(model: TableModel, rows: Table, target: str | None) -> Any:
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay

    from mercer.plots.drawing.style import plain, shortened

    y, found, notes = _compared(model, rows, target, "confusion", "classification")
    names = np.unique(np.concatenate([y, found]))
    classes = len(names)
    side = min(max(SIDE, CELL * classes), LARGEST)
    words = [shortened(name, LONGEST) for name in names]
    lie = LETTER * max(map(len, words)) < side / classes
    display = ConfusionMatrixDisplay.from_predictions(
        y,
        found,
        labels=names,
        display_labels=[plain(word) for word in words],
        ax=Figure(figsize=(side, side), layout="constrained").subplots(),
        include_values=CELL * classes <= LARGEST,
        colorbar=False,
        cmap="Blues",
        xticks_rotation="horizontal" if lie else "vertical",
    )
    if classes > FEW and display.text_ is not None:
        for number, text in zip(display.confusion_matrix.flat, display.text_.flat, strict=True):
            text.set_visible(number > 0)
    display.notes_ = notes
    _below(display.figure_, notes)
    return display


def _below(figure: Any, notes: list[str]) -> None:
    """Write the notes below a picture, whose cells would not show in its corner."""
    from mercer.plots.drawing.style import FAINT, plain

    lines = [line for note in notes for line in textwrap.wrap(note, int(NOTED * figure.get_figwidth()))]
    if lines:
        figure.supxlabel(plain("\n".join(lines)), fontsize="x-small", color=FAINT)


KINDS: dict[str, Callable[[TableModel, Table, str | None], Any]] = {
    "surface": _surface,
    "posterior": _posterior,
    "scores": _scores,
    "residuals": _residuals,
    "confusion": _confusion,
}
"""The kinds of pictures."""
