"""Probabilities from scores: one softmax for all classifiers, and what makes machines' decisions into log odds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.model_selection import StratifiedKFold

from mercer.errors import InvalidInput, message
from mercer.estimators.base.pairwise import class_pairs

__all__ = ["coupled", "fit_sigmoid", "fit_temperature", "folds_by_class", "probabilities", "shared"]

FOLDS = 5
STEPS = 100
LEAST = 1e-7
"""Pairs' probabilities stay this far from 0 and 1, as in LIBSVM, so that the coupling has a unique answer."""
AT_A_TIME = 1 << 22
"""Entries of the systems of coupling that are held in memory."""


def probabilities(scores: np.ndarray) -> np.ndarray:
    """P(class | x) of log odds (m,), of which the second class is that above 0, or of log probabilities (m, c) + const.

    >>> probabilities(np.array([0.0, np.log(3)]))
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


def fit_sigmoid(decisions: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    r"""(a, b) of P(positive | f) = 1/(1 + exp(−af − b)) that minimise the cross entropy, by Newton's method.

    The targets are Platt's, (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2) with N the sums of weights, so that the minimum is finite
    for decisions that tell the classes apart without an error.

    References
    ----------
    J. C. Platt (1999). Probabilistic outputs for support vector machines. Advances in Large Margin Classifiers.
    H.-T. Lin, C.-J. Lin, R. C. Weng (2007). A note on Platt's probabilistic outputs for support vector machines.
    Machine Learning 68.

    Examples
    --------
    >>> a, b = fit_sigmoid(np.array([-1.0, -0.5, 0.5, 1.0]), np.array([False, True, False, True]), np.ones(4))
    >>> a > 0, round(b, 6) == 0
    (True, True)
    """
    many, few = float(weights[positive].sum()), float(weights[~positive].sum())
    target = np.where(positive, (many + 1) / (many + 2), 1 / (few + 2))
    size = float(np.max(np.abs(decisions), initial=0.0)) or 1.0
    F = np.column_stack([decisions / size, np.ones(len(decisions))])
    x = np.array([0.0, np.log((many + 1) / (few + 1))])

    def loss(x: np.ndarray) -> float:
        z = F @ x
        return float(weights @ (np.logaddexp(0.0, z) - target * z))

    now = loss(x)
    for _ in range(STEPS):
        p = expit(F @ x)
        gradient = F.T @ (weights * (p - target))
        H = (F * (weights * p * (1 - p))[:, None]).T @ F
        move = -np.linalg.solve(H + 1e-12 * (1 + np.trace(H)) * np.eye(2), gradient)
        t = 1.0
        while (new := loss(x + t * move)) > now + 1e-4 * t * float(gradient @ move) and t > 1e-10:
            t /= 2
        if t <= 1e-10 or np.max(np.abs(gradient)) <= 1e-10 * float(weights.sum()):
            break
        x, now = x + t * move, new
    return float(x[0] / size), float(x[1])


def fit_temperature(
    scores: np.ndarray, labels: np.ndarray, chances: Callable[[np.ndarray], np.ndarray] = probabilities
) -> float:
    r"""T > 0 of P(class | f) = chances(f/T) that minimises the cross entropy of n rows.

    The largest score has the largest probability, whatever T. The target of a row is 1 − ε for its class, and ε for the
    most probable other one. With ε = 1/(n + 2), Laplace's share of the errors of n rows without one, T is positive if
    the scores tell the classes apart without an error.

    Raises
    ------
    InvalidInput
        If there is no row.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> scores, labels = np.array([-1.0, -0.5, 0.5, 1.0]), np.array([0, 1, 0, 1])
    >>> fit_temperature(scores, labels) > fit_temperature(scores, (scores > 0).astype(int))
    True
    """
    if not len(labels):
        raise InvalidInput(
            message("fit_temperature", "no row of a known class", "hold out rows of the model's classes")
        )
    rows, size = np.arange(len(labels)), float(np.max(np.abs(scores))) or 1.0
    missed = 1.0 / (len(labels) + 2)

    def loss(log_t: float) -> float:
        P = np.maximum(chances(scores / (size * np.exp(log_t))), np.finfo(float).tiny)
        own = P[rows, labels]
        P[rows, labels] = 0.0
        return -float(np.mean((1 - missed) * np.log(own) + missed * np.log(P.max(axis=1))))

    return size * float(np.exp(minimize_scalar(loss, bounds=(-9.0, 9.0), method="bounded").x))


def coupled(log_odds: np.ndarray, classes: int) -> np.ndarray:
    r"""P (m, c) from the log odds of a against b for each pair a < b: min Σ_{a<b} (r_ba p_a − r_ab p_b)², Σp = 1.

    r_ab = P(a | a or b). The minimum is unique and has no negative part; it solves a linear system.

    References
    ----------
    T.-F. Wu, C.-J. Lin, R. C. Weng (2004). Probability estimates for multi-class classification by pairwise coupling.
    JMLR 5. The second method.

    Examples
    --------
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> odds = np.log([[p[0] / p[1], p[0] / p[2], p[1] / p[2]]])
    >>> coupled(odds, 3).round(6)
    array([[0.5, 0.3, 0.2]])
    """
    step = max(1, AT_A_TIME // (classes + 1) ** 2)
    runs = [log_odds[i : i + step] for i in range(0, max(len(log_odds), 1), step)]
    return np.concatenate([_coupled(run, classes) for run in runs])


def _coupled(log_odds: np.ndarray, classes: int) -> np.ndarray:
    m, (a, b) = len(log_odds), class_pairs(classes).T
    r = np.clip(expit(log_odds), LEAST, 1 - LEAST)
    Q = np.zeros((m, classes + 1, classes + 1))
    for j in range(len(a)):
        Q[:, a[j], a[j]] += (1 - r[:, j]) ** 2
        Q[:, b[j], b[j]] += r[:, j] ** 2
        Q[:, a[j], b[j]] = Q[:, b[j], a[j]] = -r[:, j] * (1 - r[:, j])
    Q[:, :classes, classes] = Q[:, classes, :classes] = 1.0
    right = np.zeros((m, classes + 1, 1))
    right[:, classes] = 1.0
    p = np.maximum(np.linalg.solve(Q, right)[:, :classes, 0], np.finfo(float).tiny)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def shared(log_odds: np.ndarray) -> np.ndarray:
    """P (m, c) in proportion to P(c | c or another class), from the log odds of each class against the rest.

    >>> shared(np.log([[0.4 / 0.6, 0.4 / 0.6, 0.2 / 0.8]])).round(3)
    array([[0.4, 0.4, 0.2]])
    """
    p = np.maximum(expit(log_odds), np.finfo(float).tiny)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def folds_by_class(who: str, labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Up to five stratified folds: the rows of the others, and those of the fold.

    Each class is dealt out in an order that looks random and is always the same. Blocks of rows as they come would be
    of rows alike where these are sorted, and a machine cannot decide on rows unlike all that it has seen.
    """
    least = int(np.bincount(labels).min())
    if least < 2:
        given = "probability=True with a class of one row, which cannot be left out"
        raise InvalidInput(message(who, given, "give more rows of it, or set probability=False"))
    return list(StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0).split(labels, labels))
