"""One machine for each pair of classes: votes, and scikit-learn's scores from all decisions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

__all__ = ["class_pairs", "class_scores", "incidence", "votes"]


@lru_cache(maxsize=8)
def class_pairs(classes: int) -> np.ndarray:
    """The pairs a < b in LIBSVM's order, of shape (pairs, 2).

    >>> class_pairs(3)
    array([[0, 1],
           [0, 2],
           [1, 2]])
    """
    pairs = np.stack(np.triu_indices(classes, 1), axis=1)
    pairs.flags.writeable = False
    return pairs


def votes(decisions: np.ndarray, classes: int) -> np.ndarray:
    """How many pairs each class wins, (m, classes); a wins (a, b) if the decision is above 0."""
    first, second = incidence(classes)
    won = (decisions > 0).astype(np.float32)
    return np.asarray(won @ first + (1 - won) @ second, np.float64)


def class_scores(decisions: np.ndarray, classes: int) -> np.ndarray:
    """scikit-learn's score of each class: its votes, plus the sum of its decisions, scaled to (−⅓, ⅓) to break ties.

    >>> class_scores(np.array([[1.0, 1.0, -1.0]]), 3).round(4)
    array([[ 2.2222, -0.2222,  1.    ]])
    """
    first, second = incidence(classes)
    confidence = decisions @ (first - second).astype(np.float64)
    return votes(decisions, classes) + confidence / (3 * (np.abs(confidence) + 1))


def incidence(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Indicators of the first and of the second class of each pair, both of shape (pairs, classes)."""
    pairs, eye = class_pairs(classes), np.eye(classes, dtype=np.float32)
    return eye[pairs[:, 0]], eye[pairs[:, 1]]
