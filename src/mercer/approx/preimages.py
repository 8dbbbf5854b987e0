"""Pre-images: points x̂ such that φ(x̂) is near a given point P = Σᵢ γᵢ φ(bᵢ) of feature space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels import Cauchy, Expression, Gaussian, Kernel, Scaled
from mercer.kernels.base import trace_or_none

__all__ = ["fixed_point", "fixed_point_weight", "neighbour_location"]

Floats = NDArray[np.float64]

STEPS = 20
"""Most steps of the fixed point. Further steps hardly move a point that a decoder has placed."""
SETTLED = 1e-6
"""The fixed point stops for a point that moves by less than this share of the rows' spread."""
SMALL = 1e-6
"""A sum of weights below this share of the sum of their absolute values is rounding."""
NEIGHBOURS = 10
FLAT = 1e-6
"""Directions in which the neighbours spread by less than this share of the largest spread are ignored."""
HALVINGS = 60


# ---- Mika's fixed point ---------------------------------------------------------------------------------------------


def fixed_point_weight(kernel: Kernel) -> Kernel:
    """The kernel −dk/d‖x − z‖² up to a factor: for a Gaussian itself, for a Cauchy kernel its square.

    >>> fixed_point_weight(2.0 * Gaussian(0.5))
    Gaussian(gamma=0.5)
    """
    if isinstance(kernel, Gaussian):
        return kernel
    if isinstance(kernel, Cauchy):
        return kernel**2
    if isinstance(kernel, Scaled):
        return fixed_point_weight(kernel.kernel)
    do = 'choose preimage="ridge": the fixed point exists for Gaussian and Cauchy kernels and multiples of them only'
    raise InvalidInput(message("preimage", f"fixed_point for {kernel!r}", do))


def fixed_point(weight: Kernel, basis: Floats, gamma: Floats, start: Floats) -> Floats:
    r"""x ← Σᵢ γᵢ w(x, bᵢ) bᵢ / Σᵢ γᵢ w(x, bᵢ), whose fixed points have a zero gradient of ‖φ(x) − P‖².

    Each point takes at most 20 steps. It stops if the denominator is small, or if it hardly moves.

    Parameters
    ----------
    weight : Kernel
        w, as `fixed_point_weight` returns it.
    basis : array of shape (m, d)
        The rows bᵢ.
    gamma : array of shape (points, m)
        γᵢ for each point.
    start : array of shape (points, d)

    References
    ----------
    S. Mika, B. Schölkopf, A. Smola, K.-R. Müller, M. Scholz, G. Rätsch (1999). Kernel PCA and de-noising in feature
    spaces. NeurIPS 11.
    """
    x, moving = np.array(start, np.float64), np.arange(len(start))
    spread = float(np.linalg.norm(basis.std(axis=0)))
    for _ in range(STEPS):
        W = np.asarray(weight(x[moving], basis), np.float64) * gamma[moving]
        below = W.sum(axis=1)
        sound = np.abs(below) > SMALL * np.abs(W).sum(axis=1)
        moving = moving[sound]
        new = (W[sound] @ basis) / below[sound, None]
        far = np.linalg.norm(new - x[moving], axis=1) > SETTLED * spread
        x[moving] = new
        moving = moving[far]
        if not len(moving):
            break
    return x


# ---- Kwok and Tsang -------------------------------------------------------------------------------------------------


def neighbour_location(kernel: Kernel, basis: Floats, own: Floats, sqdist: Floats, sizes: Floats) -> Floats:
    r"""x̂ from its distances to its 10 nearest neighbours, which follow from the distances in feature space.

    For k = f(‖x − z‖²), f(d²) = ½(k(b, b) + f(0) − ‖φ(b) − P‖²). For k = g(⟨x, z⟩), ⟨x̂, b⟩ = g⁻¹(⟨P, φ(b)⟩) and
    ‖x̂‖² = g⁻¹(‖P‖²). Bisection inverts f and g. x̂ is the least-squares solution in the affine span of the neighbours.

    Parameters
    ----------
    kernel : Kernel
        A decreasing function of ‖x − z‖, or a function of ⟨x, z⟩ that increases over the range of the rows.
    basis : array of shape (m, d)
        The rows b.
    own : array of shape (m,)
        k(b, b).
    sqdist : array of shape (points, m)
        ‖φ(b) − P‖².
    sizes : array of shape (points,)
        ‖P‖².

    Raises
    ------
    InvalidInput
        For any other kernel.

    References
    ----------
    J. T. Kwok, I. W. Tsang (2004). The pre-image problem in kernel methods. IEEE Transactions on Neural Networks 15.
    """
    count = min(NEIGHBOURS, len(basis))
    near = np.argpartition(sqdist, count - 1, axis=1)[:, :count]
    apart = np.take_along_axis(sqdist, near, axis=1)
    pairings = _pairings(kernel)
    if pairings == {"sqdist"}:
        radius = float(np.sqrt(np.max(np.sum((basis - basis.mean(axis=0)) ** 2, axis=1)))) or 1.0
        profile = _profile(kernel, 0.0)
        at_zero = float(profile(np.zeros(1))[0])
        distances = _inverse(kernel, profile, (own[near] + at_zero - apart) / 2, (0.0, 4 * radius)) ** 2
    elif pairings == {"dot"}:
        norms = np.einsum("ij,ij->i", basis, basis)
        most = float(norms.max()) or 1.0
        span = (0.0 if np.min(basis) >= 0 else -most, most)
        inner = _inverse(kernel, _profile(kernel, 1.0), (sizes[:, None] + own[near] - apart) / 2, span)
        squares = _inverse(kernel, _profile(kernel, 1.0), sizes, (0.0, most))
        distances = np.maximum(squares[:, None] + norms[near] - 2 * inner, 0.0)
    else:
        raise _refused(kernel, "is a function neither of ‖x − z‖ alone nor of ⟨x, z⟩ alone")
    return _located(basis[near], distances)


def _pairings(kernel: Kernel) -> set[str]:
    """The pairings of whole rows in the formula; "?" stands for any other pairing."""
    expression = trace_or_none(kernel)
    found: set[str] = set()

    def visit(node: Expression) -> None:
        if node.op in ("pairing", "self_x", "self_z"):
            kind, views = node.value
            found.add(str(kind) if node.op == "pairing" and not views else "?")
        for arg in node.args:
            visit(arg)

    if expression is not None:
        visit(expression)
    return found


def _profile(kernel: Kernel, at: float) -> Callable[[Floats], Floats]:
    """f(t) = k(0, t) of a radial kernel, or g(s) = k(1, s) of a function of ⟨x, z⟩, from rows of one column."""
    return lambda t: np.asarray(kernel(np.array([[at]]), t.reshape(-1, 1)), np.float64).reshape(t.shape)


def _inverse(kernel: Kernel, profile: Callable[[Floats], Floats], values: Floats, span: tuple[float, float]) -> Floats:
    """The arguments in the span at which a monotone function has these values, by bisection, or the nearer end."""
    steps = np.diff(profile(np.linspace(*span, 257)))
    falls = bool(np.all(steps <= 0))
    if not falls and not np.all(steps >= 0):
        raise _refused(kernel, "is not monotone on the range of these rows")
    low, high = np.full(values.shape, span[0]), np.full(values.shape, span[1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = (profile(middle) > values) if falls else (profile(middle) < values)
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray((low + high) / 2)


def _refused(kernel: Kernel, why: str) -> InvalidInput:
    do = 'choose preimage="ridge": the distances between rows do not follow from those in feature space'
    return InvalidInput(message("preimage", f"kwok_tsang for {kernel!r}, which {why}", do))


def _located(points: Any, distances: Floats) -> Floats:
    """The points of the affine spans of `points` (each q × d) with these squared distances, by least squares.

    ‖z − pᵢ‖² = dᵢ² minus its mean over i is a linear equation for z.
    """
    centre = points.mean(axis=1, keepdims=True)
    U, s, Vt = np.linalg.svd(points - centre, full_matrices=False)
    squares = np.sum((points - centre) ** 2, axis=2)
    right = np.einsum("pqr,pq->pr", U, squares - distances) / 2
    wide = s > FLAT * s[:, :1]
    z = np.where(wide, right / np.where(wide, s, 1.0), 0.0)
    return np.asarray(centre[:, 0] + np.einsum("pr,prd->pd", z, Vt))
