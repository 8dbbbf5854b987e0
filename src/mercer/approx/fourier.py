"""Frequencies of shift-invariant kernels, drawn from their spectral measures (Bochner's theorem)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels import Cauchy, Gaussian, Kernel, Laplace, Matern, RationalQuadratic
from mercer.kernels.base import OnColumns, Product, Rescaled, Scaled

__all__ = ["KNOWN", "Frequencies", "draw_frequencies", "fourier_features"]

Floats = NDArray[np.float64]

PHASE = 1e-5
"""Largest error of a phase in the dtype of X: small relative to the error of a random approximation."""
LOST = 1e-3
"""Largest error of a phase in float64."""

KNOWN = "Gaussian, Laplace, Matern, Cauchy, RationalQuadratic"
"""The kernels whose spectral measure is implemented here."""


class Frequencies(NamedTuple):
    """W with k(x, z) = scale · E cos(wᵀ(x − z)) over the rows w of W."""

    W: Floats
    scale: float


def draw_frequencies(kernel: Kernel, d: int, count: int, rng: np.random.Generator, *, orthogonal: bool) -> Frequencies:
    r"""Rows w of the spectral measure p of k(x, z) = κ(x − z): κ(δ) = κ(0) ∫ cos(wᵀδ) p(w) dw.

    =================  ==============================  ==============================================================
    kernel             κ(δ)                            w
    =================  ==============================  ==============================================================
    Gaussian           exp(−γ‖δ‖²)                     √(2γ) g with g standard normal
    Laplace, norm 2    exp(−γ‖δ‖)                      γ g/√(χ²₁), the multivariate Cauchy law
    Laplace, norm 1    exp(−γ‖δ‖₁)                     γ times a Cauchy variable in each coordinate
    Matern             ν, ℓ                            g/ℓ · √(2ν/χ²_2ν), Student's law with 2ν degrees of freedom
    RationalQuadratic  (1 + γ‖δ‖²/α)^(−α)              √(2γs/α) g with s of the Gamma law of shape α
    =================  ==============================  ==============================================================

    Cauchy is RationalQuadratic with α = 1. A multiple of a kernel has the same frequencies, those of a product are the
    sums of its factors' frequencies, and kernels on columns or on rescaled rows are supported.

    Parameters
    ----------
    kernel : Kernel
    d, count : int
        Columns of the rows, and number of frequencies.
    rng : Generator
    orthogonal : bool
        Whether the directions of each d frequencies are orthonormal. Their lengths are those of independent draws.

    Returns
    -------
    Frequencies

    Raises
    ------
    InvalidInput
        For a kernel without a known spectral measure, and for orthogonal draws of a measure that is not isotropic.

    References
    ----------
    A. Rahimi, B. Recht (2007). Random features for large-scale kernel machines. NeurIPS 20.
    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar (2016). Orthogonal random features. NeurIPS 29.

    Examples
    --------
    >>> W, scale = draw_frequencies(2.0 * Gaussian(0.5), 3, 100_000, np.random.default_rng(0), orthogonal=False)
    >>> scale, bool(np.abs(W.T @ W / len(W) - np.eye(3)).max() < 0.02)
    (2.0, True)
    """
    if isinstance(kernel, Scaled):
        W, scale = draw_frequencies(kernel.kernel, d, count, rng, orthogonal=orthogonal)
        return Frequencies(W, kernel.scale * scale)
    if isinstance(kernel, Product):
        left, right = (draw_frequencies(k, d, count, rng, orthogonal=orthogonal) for k in (kernel.left, kernel.right))
        return Frequencies(left.W + right.W, left.scale * right.scale)
    if isinstance(kernel, OnColumns):
        inner = draw_frequencies(kernel.kernel, len(kernel.columns), count, rng, orthogonal=orthogonal)
        W = np.zeros((count, d))
        W[:, list(kernel.columns)] = inner.W
        return Frequencies(W, inner.scale)
    if isinstance(kernel, Rescaled):
        W, scale = draw_frequencies(kernel.kernel, d, count, rng, orthogonal=orthogonal)
        return Frequencies(W / np.asarray(kernel.scales), scale)
    if isinstance(kernel, Laplace) and kernel.norm == 1:
        if orthogonal:
            raise _refused(f"orthogonal frequencies of {kernel!r}, whose measure is not isotropic", "orthogonal=False")
        return Frequencies(float(kernel.gamma) * rng.standard_cauchy((count, d)), 1.0)
    G = rng.standard_normal((count, d)) * _spread(kernel, count, rng)[:, None]
    return Frequencies(_orthogonalised(G, rng) if orthogonal else G, 1.0)


def _spread(kernel: Kernel, count: int, rng: np.random.Generator) -> Floats:
    """The standard deviation of each row. The isotropic measures here are mixtures of normal laws."""
    if isinstance(kernel, Gaussian):
        return np.full(count, math.sqrt(2 * float(kernel.gamma)))
    if isinstance(kernel, Laplace):
        return float(kernel.gamma) / np.sqrt(rng.chisquare(1.0, count))
    if isinstance(kernel, Matern):
        ell, dof = float(kernel.length_scale), 2 * kernel.nu
        return np.full(count, 1 / ell) if math.isinf(dof) else np.sqrt(dof / rng.chisquare(dof, count)) / ell
    if isinstance(kernel, (RationalQuadratic, Cauchy)):
        alpha = 1.0 if isinstance(kernel, Cauchy) else kernel.alpha
        return np.asarray(np.sqrt(2 * float(kernel.gamma) * rng.gamma(alpha, size=count) / alpha))
    raise _refused(f"{kernel!r}, which has no known spectral measure", f"a kernel built from {KNOWN}, or use Nystroem")


def _orthogonalised(G: Floats, rng: np.random.Generator) -> Floats:
    """Rows with the lengths of G's rows. The directions of each d of them are orthonormal and uniform on the sphere."""
    count, d = G.shape
    out = np.empty_like(G)
    for i in range(0, count, d):
        Q, R = np.linalg.qr(rng.standard_normal((d, min(d, count - i))))
        out[i : i + d] = (Q * np.sign(np.diagonal(R))).T
    return np.asarray(out * np.linalg.norm(G, axis=1)[:, None])


def fourier_features(
    X: NDArray[np.floating], W: Floats, scale: float, offset: float | None = None
) -> NDArray[np.floating]:
    """φ(x) = √(2·scale/D) [cos Wx, sin Wx] in the dtype of X: ⟨φ(x), φ(z)⟩ = scale · mean cos(wᵀ(x − z)).

    With an `offset` b, uniform on the circle, the last row of W gives cos(wᵀx + b) only, so that D can be odd.

    >>> fourier_features(np.array([[0.0]]), np.array([[3.0], [5.0]]), 2.0)
    array([[1., 1., 0., 0.]])
    """
    m = len(W) if offset is None else len(W) - 1
    out = np.empty((X.shape[0], 2 * m + (offset is not None)), X.dtype)
    phase = _phases(X, W)
    np.cos(phase[:, :m], out=out[:, :m])
    np.sin(phase[:, :m], out=out[:, m : 2 * m])
    if offset is not None:
        np.cos(phase[:, m] + out.dtype.type(offset), out=out[:, 2 * m])
    out *= out.dtype.type(math.sqrt(2 * scale / out.shape[1]))
    return out


def _phases(X: NDArray[np.floating], W: Floats) -> NDArray[np.floating]:
    """Wx in the dtype of X, modulo 2π if its values are too large to have an error below `PHASE`."""
    # The median of the frequencies, because some laws have a few very large ones, whose features are noise anyway.
    reach = float(np.sqrt(np.max(_squares(X), initial=0.0) * np.median(_squares(W))))
    if float(np.finfo(X.dtype).eps) * reach <= PHASE:
        return np.asarray(X @ W.T.astype(X.dtype))
    if float(np.finfo(np.float64).eps) * reach > LOST:
        given = f"phases ⟨w, x⟩ of up to {reach:.0e}, whose cosines are rounding noise"
        raise InvalidInput(message("RandomFourierFeatures", given, "standardise the columns, or lower gamma"))
    phase = np.asarray(X.astype(np.float64) @ W.T)
    phase -= 2 * np.pi * np.rint(phase / (2 * np.pi))
    return phase.astype(X.dtype)


def _squares(X: Any) -> Floats:
    """‖x‖² of each row, in float64."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1))
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def _refused(given: str, do: str) -> InvalidInput:
    return InvalidInput(message("RandomFourierFeatures", given, f"give {do}"))
