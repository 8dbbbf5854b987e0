"""How good predictions are, and how good guessing is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.targets import Task

__all__ = ["Score", "guess", "score"]


@dataclass(frozen=True)
class Score:
    """Named numbers, the one that matters most first.

    >>> str(Score({"R²": 0.5, "RMSE": 1234.5}))
    'R² 0.5000, RMSE 1234'
    """

    values: dict[str, float]

    @property
    def main(self) -> float:
        """R² or accuracy."""
        return next(iter(self.values.values()))

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:.4f}" if name in ("R²", "accuracy", "balanced accuracy") else f"{name} {value:.4g}"
            for name, value in self.values.items()
        )


def score(y: NDArray[Any], predicted: NDArray[Any], task: Task) -> Score:
    """R², MAE and RMSE, or accuracy and balanced accuracy (the mean over classes of how many were found)."""
    if task == "classification":
        hits = y == predicted
        recalls = [float(hits[y == one].mean()) for one in np.unique(y)]
        return Score({"accuracy": float(hits.mean()), "balanced accuracy": float(np.mean(recalls))})
    from sklearn.metrics import mean_absolute_error, r2_score

    mae = float(mean_absolute_error(y, predicted))
    rmse = float(np.sqrt(np.mean((y - predicted) ** 2)))
    r2 = float(r2_score(y, predicted)) if len(y) > 1 else float("nan")
    return Score({"R²": r2, "MAE": mae, "RMSE": rmse})


def guess(y_train: NDArray[Any], y: NDArray[Any], task: Task) -> Score:
    """The score of scikit-learn's dummy: the mean, or the most frequent class, of the training rows for every row."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    dummy = DummyClassifier() if task == "classification" else DummyRegressor()
    return score(y, dummy.fit(np.zeros((len(y_train), 1)), y_train).predict(np.zeros((len(y), 1))), task)
