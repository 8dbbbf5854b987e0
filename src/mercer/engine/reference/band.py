"""Reduction of a symmetric matrix to a band, and systems with it, in NumPy: the reference of ``_core.band_*``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.engine.opcodes import BAND

__all__ = ["band_factors", "band_norms", "band_step", "band_vectors"]


def band_step(*, slabs: Any, upper: Any, factors: Any, pending: Any, step: int, isa: str = "") -> None:
    """A ← HᵀAH with H = I − V T Vᵀ, so that block column `step` is zero below the tile under its diagonal tile.

    Parameters
    ----------
    slabs : float64 array of shape (blocks (blocks + 1)/2 · 48²,)
        The lower triangle by block columns, each from its diagonal tile downwards. V is stored where A becomes zero.
    upper, factors : float64 arrays of shape (blocks − 1, 48, 48)
        Written at `step`: the tile of B under the diagonal tile, and T; both are upper triangular.
    pending : float64 array of shape (4 · blocks · 48²,)
        V and X of the previous step, read and replaced by those of this one, for each block as [V X] and −[Xᵀ; Vᵀ].
        The update A ← A − V Xᵀ − X Vᵀ, with X = W − ½ V Tᵀ Vᵀ W and W = A V T, is applied to the columns after the
        next one only in the next step, together with its product A V.
    """
    blocks = len(upper) + 1
    kept = pending.reshape(blocks, -1)
    left, right = kept[:, : 2 * BAND**2].reshape(-1, BAND, 2 * BAND), kept[:, 2 * BAND**2 :].reshape(-1, 2 * BAND, BAND)
    columns = list(_slabs(slabs, blocks))[step:]
    if step:
        for j, slab in enumerate(columns):
            slab += (left[j : blocks - step] @ right[j]).reshape(slab.shape)
    if step + 1 == blocks:
        return
    V = columns[0][BAND:]
    tau = _reflectors(V, upper[step])
    T = factors[step]
    T[...] = 0.0
    gram = V.T @ V
    for c in range(BAND):
        T[:c, c] = -tau[c] * (T[:c, :c] @ gram[:c, c])
        T[c, c] = tau[c]
    Y = np.zeros_like(V)
    for j, slab in enumerate(columns[1:]):
        own = slice(j * BAND, (j + 1) * BAND)
        Y[own] += slab[:BAND] @ V[own] + slab[BAND:].T @ V[own.stop :]
        Y[own.stop :] += slab[BAND:] @ V[own]
    W = Y @ T
    X = W - 0.5 * V @ (T.T @ (V.T @ W))
    shape = (len(V) // BAND, BAND, BAND)
    V, X = V.reshape(shape), X.reshape(shape)
    left[: len(V)] = np.concatenate([V, X], axis=2)
    right[: len(V)] = -np.concatenate([X.swapaxes(1, 2), V.swapaxes(1, 2)], axis=1)


def band_vectors(*, slabs: Any, factors: Any, out: Any, first: int, last: int, isa: str = "") -> None:
    """Rows of the blocks [first, last) of Qᵀ, Q = Q₀ Q₁ …, Q_p = I − V T Vᵀ."""
    blocks = len(factors) + 1
    own = slice(first * BAND, last * BAND)
    Q = np.eye(blocks * BAND)[:, own]
    for p, slab in reversed(list(enumerate(_slabs(slabs, blocks)))[:-1]):
        V, rest = slab[BAND:], Q[(p + 1) * BAND :]
        rest -= V @ (factors[p] @ (V.T @ rest))
    out[own] = Q.T


def band_factors(
    *, diagonal: Any, upper: Any, shifts: Any, below: Any, inverse: Any, definite: Any, isa: str = ""
) -> None:
    """−L_{k,k−1} and L_kk⁻¹ of L Lᵀ = B + λI, for each λ of `shifts`.

    Parameters
    ----------
    diagonal, upper : float64 arrays of shape (blocks, 48, 48) and (blocks − 1, 48, 48)
        B's tiles on the diagonal and below it.
    below, inverse : float64 arrays of shape (shifts, blocks, 48, 48)
        Results; the caller gives zeros.
    definite : array of bool
        Result: for each shift, whether B + λI is positive definite, so that L exists.
    """
    for a, shift in enumerate(shifts):
        definite[a] = True
        for k, tile in enumerate(diagonal):
            corner = tile + shift * np.eye(BAND)
            if k:
                own = upper[k - 1] @ inverse[a, k - 1].T
                below[a, k] = -own
                corner -= own @ own.T
            try:
                L = np.linalg.cholesky(corner)
            except np.linalg.LinAlgError:
                L = np.full_like(corner, np.nan)
            if np.isnan(L[-1, -1]):  # LAPACK accepts NaN as a pivot
                definite[a] = False
                break
            inverse[a, k] = np.tril(np.linalg.inv(L))


def band_norms(*, vectors: Any, below: Any, inverse: Any, out: Any, isa: str = "") -> None:
    """out[λ, i] += ‖L⁻¹ Qᵀ eᵢ‖² for L Lᵀ = B + λI, by x_k = L_kk⁻¹ (q_k − L_{k,k−1} x_{k−1}).

    Parameters
    ----------
    vectors : float64 array of shape (rows, rows)
        Qᵀ, or any other matrix.
    below, inverse : float64 arrays of shape (shifts, blocks, 48, 48)
        −L_{k,k−1}, upper triangular, and L_kk⁻¹, lower triangular.
    """
    for shift in range(len(below)):
        x = np.zeros((BAND, vectors.shape[1]))
        for k in range(below.shape[1]):
            x = np.tril(inverse[shift, k]) @ (vectors[k * BAND : (k + 1) * BAND] + np.triu(below[shift, k]) @ x)
            out[shift] += np.sum(x**2, axis=0)


def _slabs(slabs: Any, blocks: int) -> Iterator[Any]:
    start = 0
    for j in range(blocks):
        size = (blocks - j) * BAND**2
        yield slabs[start : start + size].reshape(-1, BAND)
        start += size


def _reflectors(panel: Any, upper: Any) -> Any:
    """τ of Householder's H = I − τ v vᵀ for each column; V replaces the panel, and R is written to `upper`."""
    tau = np.zeros(BAND)
    upper[...] = 0.0
    for c in range(BAND):
        x = panel[c:, c].copy()
        square = x[1:] @ x[1:]
        if square > 0:
            beta = -np.copysign(np.sqrt(x[0] ** 2 + square), x[0]) if x[0] else np.sqrt(square)
            tau[c], x = (beta - x[0]) / beta, x / (x[0] - beta)
        x[0] = 1.0
        rest = panel[c:, c:]
        rest -= tau[c] * np.outer(x, x @ rest)
        upper[c, c:] = panel[c, c:]
        panel[c, c:], panel[c:, c] = 0.0, x
    return tau
