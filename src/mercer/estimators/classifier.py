"""What classifiers by scores share: labels, weights of rows and classes, and the class of the largest score."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InvalidInput, message
from mercer.estimators.compression import Compressible

__all__ = ["ScoreClassifier"]


class ScoreClassifier(ClassifierMixin, Compressible):
    """f(x) + b, a column for each class, for two classes that of the second alone; the largest wins."""

    class_weight: Any
    dual_coef_: np.ndarray
    intercept_: Any

    def _labelled(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = self._validate_both(X, y)
        check_classification_targets(y)
        return X, y

    def _encoded(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows that have a weight, the places of their classes in `classes_`, and the weights by `class_weight`."""
        if weights is not None and np.any(weights == 0) and self._domain() != "precomputed":
            X, y, weights = self._without(weights == 0, X, y, weights)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            given = f"only one class, {self.classes_.tolist()}"
            raise InvalidInput(message(type(self).__name__, given, "give rows of at least two classes"))
        if self.class_weight is not None:
            factor = self._class_factors(y, labels, weights)
            weights = factor if weights is None else weights * factor
        return X, labels, weights

    def _class_factors(self, y: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """What `class_weight` multiplies each row with; "balanced" counts a row of weight 2 as two rows."""
        if self.class_weight != "balanced":
            return np.asarray(compute_sample_weight(self.class_weight, y), np.float64)
        mass = np.bincount(labels, weights)
        return np.asarray((mass.sum() / (len(mass) * mass))[labels])

    def _decide(self, X: Any) -> np.ndarray:
        return np.asarray(self._cross(X) @ self.dual_coef_) + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) + b: of shape (m,) for two classes (positive: the second), of shape (m, c) otherwise."""
        scores = self._decide(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
