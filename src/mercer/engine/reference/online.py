"""Online learning of a chunk of rows in NumPy: the reference of ``_core.merge_pass``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import FARTHEST_PARTNER

__all__ = ["FARTHEST_PARTNER", "merge_loss", "merge_pass", "merge_share"]

Array = NDArray[Any]


def merge_share(p: Array, q: Array, D: Array) -> Array:
    """The h in [0, ½] with the largest |p e^(−D(1−h)²) + q e^(−Dh²)|, for sizes 0 < p ≤ q at the distance D.

    h = 1/(1 + eˢ), where s is the largest root of s = log(q/p) + D tanh(s/2). Newton's iteration from above
    decreases to it, because the function is convex there.
    """
    L = np.log(q / p)
    s = L + D
    for _ in range(50):
        t = np.tanh(0.5 * s)
        step = (s - L - D * t) / np.maximum(1 - 0.5 * D * (1 - t * t), 1e-12)
        s = s - step
        if not np.any(step > 1e-14 * (1 + s)):
            break
    with np.errstate(over="ignore"):  # 1/(1 + inf) is the share, 0
        return np.asarray(1 / (1 + np.exp(s)))


def merge_loss(p: Array, q: Array, D: Array, h: Array) -> Array:
    """‖p φ(a) + q φ(b) − r φ(ha + (1 − h)b)‖² with the best r, by a formula in which no large terms cancel."""
    g = 1 - h
    small = -(p**2) * np.expm1(-2 * D * g**2) - q**2 * np.expm1(-2 * D * h**2)
    return np.asarray(small - 2 * p * q * np.exp(-D) * np.expm1(2 * D * h * g))


def merge_pass(
    *,
    x: Array,
    own: Array,
    near: Array,
    z: Array,
    b: Array,
    u: Array,
    labels: Array,
    used: int,
    t: int,
    alpha: float,
    gamma: float,
    isa: str = "",
) -> tuple[int, int, int, int, int, int, float]:
    """Budgeted stochastic gradient descent on the hinge loss with the Gaussian kernel e^(−S), S = γ‖x − z‖².

    At row t, f = Σ b k/(α (t − 1)). If the margin is below 1, the row enters the dictionary with b = 1 for its class
    and b = −1 for the best other class (±1 with one output, for two classes). When the dictionary is full, the vector
    with the smallest b merges with the vector of its class for which the loss is least.

    Parameters
    ----------
    x : array of shape (n, d)
        The chunk's rows.
    own, near : arrays of shapes (n, n) and (slots, n)
        S between rows of the chunk, and between the first `used` vectors of the dictionary and these rows; `near` is
        overwritten.
    z, b, u : arrays of shapes (slots, d), (slots, outputs) and (slots, outputs)
        The dictionary, its coefficients b, and u, for which t b − u is the sum of b over the t rows so far. They are
        updated in place.
    labels : integers of shape (n,)
    used, t : int
        The slots in use, and the rows so far.
    alpha, gamma : float

    Returns
    -------
    used, t : int
        Their values after the chunk.
    mistakes, updates, merges, removals : int
    loss : float
        Σ max(0, 1 − margin) before each row was learned.
    """
    task = _MergePass(x, own, near, z, b, u, used, gamma)
    mistakes, loss = 0, 0.0
    for j, y in enumerate(labels):
        margin, rival = task.margin(j, int(y))
        bound = alpha * max(t, 1)
        mistakes += not margin > 0
        loss += max(0.0, 1 - margin / bound)
        if margin < bound:
            task.insert(j, int(y), rival, t)
            if task.used == len(b):
                task.shrink()
        t += 1
    return task.used, t, mistakes, task.updates, task.merges, task.removals, loss


class _MergePass:
    def __init__(
        self, x: Array, own: Array, near: Array, z: Array, b: Array, u: Array, used: int, gamma: float
    ) -> None:
        self.x, self.own, self.near, self.z, self.b, self.u = x, own, near, z, b, u
        self.used, self.gamma = used, gamma
        self.updates = self.merges = self.removals = 0

    def margin(self, j: int, y: int) -> tuple[float, int]:
        """f of the true class less that of the best other class (with one output y f), and that other class."""
        f = np.exp(-self.near[: self.used, j]).astype(np.float64) @ self.b[: self.used]
        if len(f) == 1:
            return float(f[0] if y else -f[0]), 0
        others = f.copy()
        others[y] = -np.inf
        rival = int(others.argmax())
        return float(f[y] - f[rival]), rival

    def insert(self, j: int, y: int, rival: int, t: int) -> None:
        s, self.used, self.updates = self.used, self.used + 1, self.updates + 1
        self.z[s], self.near[s], self.b[s] = self.x[j], self.own[j], 0
        if self.b.shape[1] == 1:
            self.b[s] = 1 if y else -1
        else:
            self.b[s, y], self.b[s, rival] = 1, -1
        self.u[s] = t * self.b[s]

    def shrink(self) -> None:
        b = self.b[: self.used]
        size = np.sqrt((b**2).sum(axis=1))
        m = int(size.argmin())
        q = self._partner(m, size)
        if q < 0:
            self.removals += 1
        else:
            self._merge(m, q, size)
            self.merges += 1
        self.used -= 1
        for part in (self.z, self.near, self.b, self.u):
            part[m] = part[self.used]

    def _distances(self, m: int) -> Array:
        return np.asarray(self.gamma * ((self.z[: self.used] - self.z[m]) ** 2).sum(axis=1), self.z.dtype)

    def _partner(self, m: int, size: Array) -> int:
        b = self.b[: self.used]
        tag = b[:, 0] > 0 if b.shape[1] == 1 else b.argmax(axis=1)
        D = np.where(tag == tag[m], self._distances(m), np.inf).astype(np.float64)
        D[m] = np.inf
        within = np.flatnonzero(D <= FARTHEST_PARTNER)
        if not len(within):
            nearest = int(D.argmin())
            return nearest if np.isfinite(D[nearest]) else -1
        q, d = size[within], D[within]
        return int(within[merge_loss(size[m], q, d, merge_share(size[m], q, d)).argmin()])

    def _merge(self, m: int, q: int, size: Array) -> None:
        D = float(self._distances(m)[q])
        h = float(merge_share(size[m], size[q], np.asarray(D)))
        km, kq = np.exp(-D * (1 - h) ** 2), np.exp(-D * h**2)
        self.near[q] = np.maximum(h * self.near[m] + (1 - h) * self.near[q] - h * (1 - h) * D, 0)
        self.z[q] = h * self.z[m] + (1 - h) * self.z[q]
        for part in (self.b, self.u):
            part[q] = km * part[m] + kq * part[q]
