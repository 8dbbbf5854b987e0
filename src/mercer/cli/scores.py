"""Scores of predictions and of guessing, and confusions of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MemoryExceeded
from mercer.io import TableModel
from mercer.numerals import counted, of_metric
from mercer.tables.targets import Task

__all__ = ["Confusion", "Score", "deviations", "guess", "score"]

FEW_CLASSES = 12
"""The most classes whose whole confusion matrix is shown."""
PAIRS = 6
NORMAL_95 = 1.96
"""Within so many standard deviations of its mean a normal variable is with probability 0.95."""


@dataclass(frozen=True)
class Score:
    """Named numbers, the one that matters most first; nan where it is not defined, as R² of one row.

    >>> str(Score({"R²": 0.5, "RMSE": 1234.5})), str(Score({"accuracy": 0.044})), str(Score({"R²": np.nan, "MAE": 2.0}))
    ('R² 0.5000, RMSE 1234', 'accuracy 0.0440', 'MAE 2.000')
    """

    values: dict[str, float]

    @property
    def main(self) -> float:
        """R² or accuracy."""
        return next(iter(self.values.values()))

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {of_metric(value, name)}" for name, value in self.values.items() if not np.isnan(value)
        )


def score(
    y: NDArray[Any],
    predicted: NDArray[Any],
    task: Task,
    decision: NDArray[np.float64] | None = None,
    std: NDArray[np.float64] | None = None,
) -> Score:
    """R², MAE and RMSE; or accuracy and balanced accuracy, which is the mean recall of the classes.

    With decision values for the second of two sorted classes, also the area under the ROC curve. With the standard
    deviations of targets, also the share of targets within 1.96 of them, which holds 95 % of a normal distribution.
    """
    if task == "classification":
        hits = y == predicted
        classes = np.unique(y)
        recalls = [float(hits[y == one].mean()) for one in classes]
        values = {"accuracy": float(hits.mean()), "balanced accuracy": float(np.mean(recalls))}
        if decision is not None and decision.ndim == 1 and len(classes) == 2:
            from sklearn.metrics import roc_auc_score

            values["AUC"] = float(roc_auc_score(y == classes[1], decision))
        return Score(values)
    from sklearn.metrics import mean_absolute_error, r2_score

    mae = float(mean_absolute_error(y, predicted))
    rmse = float(np.sqrt(np.mean((y - predicted) ** 2)))
    r2 = float(r2_score(y, predicted)) if len(y) > 1 else float("nan")
    within = {} if std is None else {"95% coverage": float(np.mean(np.abs(y - predicted) <= NORMAL_95 * std))}
    return Score({"R²": r2, "MAE": mae, "RMSE": rmse} | within)


def deviations(model: TableModel, rows: Any) -> NDArray[np.float64] | None:
    """The standard deviations of the targets, if the model has them and the factor of all pairs fits in memory."""
    if not model.has_deviations:
        return None
    try:
        return np.asarray(model.predict(rows, return_std=True, include_noise=True)[1])
    except MemoryExceeded:
        return None


def guess(y_train: NDArray[Any], y: NDArray[Any], task: Task) -> Score:
    """The score of scikit-learn's dummy: the mean, or the most frequent class, of the training rows for every row."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    dummy = DummyClassifier() if task == "classification" else DummyRegressor()
    return score(y, dummy.fit(np.zeros((len(y_train), 1)), y_train).predict(np.zeros((len(y), 1))), task)


@dataclass(frozen=True)
class Confusion:
    """How many rows of each class (first index) were predicted to be of each class (second index)."""

    classes: list[str]
    counts: list[list[int]]

    @classmethod
    def of(cls, y: NDArray[Any], predicted: NDArray[Any]) -> Confusion:
        """The counts of true and predicted classes.

        >>> Confusion.of(np.array(["a", "b", "b"]), np.array(["b", "b", "b"]))
        Confusion(classes=['a', 'b'], counts=[[0, 1], [0, 2]])
        """
        classes = np.unique(np.concatenate([y, predicted]))
        counts = np.zeros((len(classes), len(classes)), np.int64)
        np.add.at(counts, (np.searchsorted(classes, y), np.searchsorted(classes, predicted)), 1)
        return cls([str(one) for one in classes], counts.tolist())

    @property
    def title(self) -> str:
        """The heading of `lines`."""
        if len(self.classes) <= FEW_CLASSES:
            return "Rows by class (down: what they are; across: what was predicted)"
        return "Classes that are most often confused"

    @property
    def lines(self) -> list[str]:
        """The confusion matrix, or for many classes the pairs that are most often confused."""
        if len(self.classes) > FEW_CLASSES:
            return self._pairs()
        rows = [["", *self.classes]] + [
            [name, *map(str, row)] for name, row in zip(self.classes, self.counts, strict=True)
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]

    def _pairs(self) -> list[str]:
        found = [
            (count, self.classes[i], self.classes[j], sum(row))
            for i, row in enumerate(self.counts)
            for j, count in enumerate(row)
            if i != j and count
        ]
        worst = sorted(found, key=lambda one: (-one[0], one[1], one[2]))[:PAIRS]
        return [f"{a} taken for {b}: {count} of {counted(rows, 'row')}" for count, a, b, rows in worst] or ["none"]
