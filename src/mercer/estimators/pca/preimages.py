"""From scores back to rows: the pre-images of kernel PCA's projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.approx.preimages import NEIGHBOURS, fixed_point, fixed_point_weight, neighbour_location
from mercer.errors import InvalidInput, message
from mercer.estimators.pca.subspace import FeatureSubspace
from mercer.estimators.ridge.kernel_ridge import KernelRidge
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.kernels.vectors.products import is_linear
from mercer.points import parse_memory, require, vectors_of
from mercer.select.decoders import choose_decoder, reads_scores
from mercer.ways.report import Report

__all__ = ["DECODER", "METHODS", "Decoder", "PreImages", "dense", "fit_decoder", "is_closed_form"]

METHODS = ("auto", "ridge", "fixed_point", "kwok_tsang")

DECODER = "decoder:"
"""The beginning of its note in the report."""

LEAST_ROWS = 12
"""Below, three folds say nothing, and the decoder is Gaussian."""

ENTRIES = 1 << 22
"""Entries of a matrix of scores and basis rows, or of neighbours, at a time."""
MATRICES = 8
"""How many of these matrices are in memory at once."""


def dense(rows: Any) -> np.ndarray:
    """The rows as a dense array in float64."""
    return np.asarray(vectors_of(rows).dense(), np.float64)


def is_closed_form(method: str, kernel: Kernel) -> bool:
    """Whether pre-images are Σᵢ γᵢ bᵢ exactly, so that no decoder is needed."""
    return method == "auto" and is_linear(kernel)


@dataclass(frozen=True, eq=False)
class Decoder:
    """x̂ = x̄ + Σᵢ Dᵢ k'(y, yᵢ): ridge regression from scores to rows, with a kernel k' of its own."""

    mean: np.ndarray
    ridge: KernelRidge | None
    """None if there are no components."""

    def __call__(self, Y: np.ndarray) -> np.ndarray:
        if self.ridge is None:
            return np.tile(self.mean, (len(Y), 1))
        return np.asarray(self.ridge.predict(Y).reshape(len(Y), -1) + self.mean)


def fit_decoder(
    subspace: FeatureSubspace, kernel: Any, penalty: float, memory: Any, seed: int, report: Report
) -> Decoder:
    """Learn the basis rows, training rows or landmarks, from their scores: one factorisation.

    `kernel` is the decoder's, or "auto": of three candidates the one of the smallest estimated error.
    """
    m, d = subspace.basis.shape
    need = 8 * 3 * m * d
    require(need, parse_memory(memory), f"the decoder of {m} rows and {d} columns", "set n_landmarks lower")
    scores, rows = subspace.basis_scores(), dense(subspace.basis)
    mean = rows.mean(axis=0)
    if not scores.shape[1]:
        return Decoder(mean, None)
    if isinstance(kernel, str) and kernel == "auto":
        kernel = _best_kernel(subspace, rows, penalty, seed, report)
    with report.stage("decoder"):
        ridge = KernelRidge(kernel, penalty, memory=memory).fit(scores, rows - mean)
    report.memory_planned = max(report.memory_planned, ridge.report_.memory_planned + need)
    report.notes.append(f"{DECODER} {ridge.report_.method}, {ridge.kernel_!r}, alpha={penalty:g}")
    return Decoder(mean, ridge)


def _best_kernel(subspace: FeatureSubspace, rows: np.ndarray, penalty: float, seed: int, report: Report) -> Kernel:
    own = subspace.kernel
    candidates: list[Kernel] = [Gaussian("median"), Linear()]
    if reads_scores(own) and not is_linear(own):
        candidates.insert(1, own)
    if len(rows) < LEAST_ROWS:
        return candidates[0]
    with report.stage("choice of the decoder"):
        found = choose_decoder(own, rows, subspace.dual_coef.shape[1], candidates, penalty, seed)
    shown = ", ".join(f"{each!r} {error:.3g}" for each, error in zip(candidates, found.errors, strict=True))
    report.notes.append(f"estimated squared errors of decoders, noise {found.noise:.2g} a column: {shown}")
    return found.kernel


@dataclass(frozen=True, eq=False)
class PreImages:
    r"""x̂ with φ(x̂) ≈ P = m + Σⱼ yⱼ uⱼ = Σᵢ γᵢ φ(bᵢ), γ = c + A y, by one of the `METHODS`."""

    subspace: FeatureSubspace
    method: str
    decoder: Decoder | None
    memory: Any = None

    def rows(self, Y: np.ndarray) -> np.ndarray:
        """x̂ of each row of scores."""
        if is_closed_form(self.method, self.subspace.kernel):
            basis = self.subspace.basis
            return np.asarray(self.subspace.mean_coef @ basis + Y @ (self.subspace.dual_coef.T @ basis), np.float64)
        start = None if self.method == "kwok_tsang" else self._decoded(Y)
        if start is not None and self.method in ("auto", "ridge"):
            return start
        basis = dense(self.subspace.basis)
        entries = min(ENTRIES, parse_memory(self.memory) // (8 * MATRICES))
        step = max(1, entries // max(len(basis), NEIGHBOURS * basis.shape[1]))
        runs = [slice(i, i + step) for i in range(0, len(Y), step)]
        if start is None:
            return np.concatenate([self._by_neighbours(Y[run], basis) for run in runs])
        return np.concatenate([self._by_fixed_point(Y[run], start[run], basis) for run in runs])

    def residuals(self, rows: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """‖φ(x̂) − P‖² = SPE(x̂) + ‖y(x̂) − y‖², because P lies in the span of the components."""
        scores, spe = self.subspace.position(rows)
        return np.asarray(spe + np.einsum("ij,ij->i", scores - Y, scores - Y))

    def _decoded(self, Y: np.ndarray) -> np.ndarray:
        if self.decoder is None:
            given = "inverse_transform of a model that was fitted without fit_inverse_transform"
            raise InvalidInput(message("KernelPCA", given, "set fit_inverse_transform=True and fit again"))
        return self.decoder(Y)

    def _by_fixed_point(self, Y: np.ndarray, start: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Mika's, from the decoder's answer; that answer itself if it is nearer in feature space."""
        gamma = self.subspace.mean_coef + Y @ self.subspace.dual_coef.T
        found = fixed_point(fixed_point_weight(self.subspace.kernel), basis, gamma, start)
        better = self.residuals(found, Y) < self.residuals(start, Y)
        return np.where(better[:, None], found, start)

    def _by_neighbours(self, Y: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Kwok and Tsang's, with ‖φ(b) − P‖² = SPE(b) + ‖y(b) − y‖²."""
        space = self.subspace
        scores, spe, middle = space.basis_scores(), space.basis_spe(), space.column_means
        squares, lengths = np.einsum("ij,ij->i", scores, scores), np.einsum("ij,ij->i", Y, Y)
        sizes = space.mean_norm + lengths + 2 * Y @ space.offset
        own = spe + squares + 2 * middle - space.mean_norm
        apart = lengths[:, None] + squares - 2 * Y @ scores.T
        return neighbour_location(space.kernel, basis, own, spe + np.maximum(apart, 0.0), sizes)
