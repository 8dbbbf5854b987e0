"""Scores of predictions for many λ at once; larger scores are better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.select.alignment import all_equal

__all__ = ["Scorer", "accuracy", "negative_squares", "r2"]

Floats = NDArray[np.float64]
Scorer = Callable[[Floats, Floats, "Floats | None"], Floats]
"""Targets (m, t), predictions (m, λ, t), weights (m,) or None ↦ scores of shape (λ, t), or (λ, 1) over all targets."""


def negative_squares(Y: Floats, predicted: Floats, weights: Floats | None = None) -> Floats:
    """−Σ wᵢ (yᵢ − fᵢ)²/Σ wᵢ for each target.

    Parameters
    ----------
    Y : array of shape (n, t)
    predicted : array of shape (λ, n, t)
    weights : array of shape (n,), optional
        wᵢ; 1 by default.

    Examples
    --------
    >>> negative_squares(np.array([[1.0], [3.0]]), np.array([[[2.0]], [[3.0]]]))
    array([[-0.5]])
    """
    return -np.average((Y[:, None, :] - predicted) ** 2, axis=0, weights=weights)


def r2(Y: Floats, predicted: Floats, weights: Floats | None = None) -> Floats:
    """1 − Σ wᵢ (yᵢ − fᵢ)²/Σ wᵢ (yᵢ − ȳ)² for each target; 1 or 0 if the targets are constant, as in scikit-learn.

    It says nothing of a single row.

    Parameters
    ----------
    Y : array of shape (n, t)
    predicted : array of shape (λ, n, t)
    weights : array of shape (n,), optional
        wᵢ; 1 by default.

    Examples
    --------
    >>> r2(np.array([[1.0], [3.0]]), np.array([[[2.0]], [[3.0]]]))
    array([[0.5]])
    """
    lost = -negative_squares(Y, predicted, weights)
    spread = np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
    # The mean of equal targets is rounded, and their spread then its rounding.
    varies = (spread > 0) & ~all_equal(Y if weights is None else Y[weights > 0])
    safe = np.where(varies, spread, 1.0)
    return np.where(varies, 1 - lost / safe, np.where(lost == 0, 1.0, 0.0))


def accuracy(Y: Floats, predicted: Floats, weights: Floats | None = None) -> Floats:
    """The share of rows whose largest indicator (or sign, for one column) is right, of shape (λ, 1).

    Parameters
    ----------
    Y : array of shape (n, t)
        Indicators of the classes, 1 and −1.
    predicted : array of shape (λ, n, t)
    weights : array of shape (n,), optional

    Examples
    --------
    >>> accuracy(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[[0.3, 0.1]], [[0.3, 0.1]]]))
    array([[0.5]])
    """
    if Y.shape[1] == 1:
        right = (Y[:, None, 0] > 0) == (predicted[:, :, 0] > 0)
    else:
        right = Y.argmax(axis=1)[:, None] == predicted.argmax(axis=2)
    return np.average(right, axis=0, weights=weights)[:, None]
