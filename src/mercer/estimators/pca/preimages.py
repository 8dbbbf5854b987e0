"""From scores back to rows: the pre-images of kernel PCA's projections, and how well rows are reconstructed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.approx.preimages import NEIGHBOURS, fixed_point, fixed_point_weight, neighbour_location
from mercer.errors import InvalidInput, message
from mercer.estimators.pca.monitoring import ProcessMonitoring
from mercer.estimators.ridge.kernel_ridge import KernelRidge
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.kernels.vectors.products import is_linear
from mercer.points import parse_memory, require, require_table, vectors_of
from mercer.schemas import Array, Part, Schema
from mercer.select.decoders import choose_decoder, reads_scores
from mercer.ways.report import Report

__all__ = ["PreImages"]

DECODER = "decoder:"
"""How its note in the report begins."""

LEAST_ROWS = 12
"""Below, three folds say nothing, and the decoder is Gaussian."""

ENTRIES = 1 << 22
"""Of a matrix between scores and basis rows, or of neighbours, at a time."""


def _can_invert(model: Any) -> bool:
    free = model.preimage == "auto" and is_linear(model._as_kernel(model.kernel))
    return bool(model.fit_inverse_transform or model.preimage == "kwok_tsang" or free)


class PreImages(ProcessMonitoring):
    r"""x̂ with φ(x̂) ≈ P = m + Σⱼ yⱼ uⱼ = Σᵢ γᵢ φ(bᵢ), γ = c + A y."""

    fitted: ClassVar[Schema] = ProcessMonitoring.fitted + Schema(
        Array("eigenvectors_", "n components", optional=True),
        Array("decoder_mean_", "d", optional=True),
        Part("decoder_", "components", optional=True, nullable=True),
    )

    fit_inverse_transform: bool
    preimage: str
    decoder_kernel: Any
    alpha: float

    def inverse_transform(self, X: Any, *, return_residual: bool = False) -> Any:
        r"""Rows x̂ whose features are near P = m + Σⱼ yⱼ uⱼ, from scores y, by the method that `preimage` names.

        Parameters
        ----------
        X : array-like of shape (m, k)
            Scores, as `transform` gives them.
        return_residual : bool, default False
            Whether to return ‖φ(x̂) − P‖² too.

        Returns
        -------
        array of shape (m, d), or that and an array of shape (m,)

        Raises
        ------
        InvalidInput
            Where the model was fitted without `fit_inverse_transform` and the method needs it, for a kernel that the
            method has no formula for, and for rows that are not vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((50, 3))
        >>> model = KernelPCA(3, "linear").fit(X)
        >>> bool(np.allclose(model.inverse_transform(model.transform(X)), X))
        True
        """
        check_is_fitted(self)
        self._check_rows()
        require_table(X, type(self).__name__)
        Y, k = check_array(X, dtype=np.float64, ensure_min_features=0), self.dual_coef_.shape[1]
        if Y.shape[1] != k:
            given = f"scores of {Y.shape[1]} columns for {k} components"
            raise InvalidInput(message(type(self).__name__, given, "give what transform returns"))
        rows = self._inverted(Y)
        return (rows, self._preimage_residuals(rows, Y)) if return_residual else rows

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """‖x − x̂‖² of each row, x̂ the pre-image of its projection: in the units of the rows, whatever the kernel.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,)
        """
        rows = self._validate_new(X)
        self._check_rows()
        apart = self.inverse_transform(self._scores(X)) - _dense(rows)
        return np.asarray(np.einsum("ij,ij->i", apart, apart))

    @available_if(_can_invert)
    def score(self, X: Any, y: Any = None) -> float:
        """−(1/m) Σ ‖x − x̂‖², for searches over kernels and numbers of components; y is ignored.

        It is in the units of the rows, so that kernels can be compared by it, as they cannot by errors in feature
        space (Alam & Fukumizu 2014, Journal of Computer Science 10).
        """
        return -float(np.mean(self.reconstruction_error(X)))

    # ---- the methods -------------------------------------------------------------------------------------------------

    def _inverted(self, Y: np.ndarray) -> np.ndarray:
        if self._exact_inverse():
            basis = self.X_fit_
            return np.asarray(self.mean_coef_ @ basis + Y @ (self.dual_coef_.T @ basis), np.float64)
        start = None if self.preimage == "kwok_tsang" else self._decode(Y)
        if self.preimage in ("auto", "ridge"):
            assert start is not None
            return start
        basis = _dense(self.X_fit_)
        step = max(1, ENTRIES // max(len(basis), NEIGHBOURS * basis.shape[1]))
        runs = [slice(i, i + step) for i in range(0, len(Y), step)]
        if start is None:
            return np.concatenate([self._by_neighbours(Y[run], basis) for run in runs])
        return np.concatenate([self._by_fixed_point(Y[run], start[run], basis) for run in runs])

    def _exact_inverse(self) -> bool:
        return self.preimage == "auto" and is_linear(self.kernel_)

    def _decode(self, Y: np.ndarray) -> np.ndarray:
        """x̄ + Σᵢ Dᵢ k'(y, yᵢ): ridge regression from scores to rows, with a kernel k' of its own."""
        if not hasattr(self, "decoder_mean_"):
            given = "inverse_transform of a model that was fitted without fit_inverse_transform"
            raise InvalidInput(message(type(self).__name__, given, "set fit_inverse_transform=True and fit again"))
        if self.decoder_ is None:
            return np.tile(self.decoder_mean_, (len(Y), 1))
        return np.asarray(self.decoder_.predict(Y).reshape(len(Y), -1) + self.decoder_mean_)

    def _by_fixed_point(self, Y: np.ndarray, start: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Mika's, from the decoder's answer; that answer itself where it is the nearer one in feature space."""
        gamma = self.mean_coef_ + Y @ self.dual_coef_.T
        found = fixed_point(fixed_point_weight(self.kernel_), basis, gamma, start)
        better = self._preimage_residuals(found, Y) < self._preimage_residuals(start, Y)
        return np.where(better[:, None], found, start)

    def _by_neighbours(self, Y: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Kwok and Tsang's, with ‖φ(b) − P‖² = SPE(b) + ‖y(b) − y‖²."""
        scores = self._basis_scores()
        spe = self._basis_spe(scores)
        middle, squares = self.column_means_, np.einsum("ij,ij->i", scores, scores)
        sizes = float(self.mean_coef_ @ middle) + np.einsum("ij,ij->i", Y, Y) + 2 * Y @ (middle @ self.dual_coef_)
        own = spe + squares + 2 * middle - float(self.mean_coef_ @ middle)
        apart = np.einsum("ij,ij->i", Y, Y)[:, None] + squares - 2 * Y @ scores.T
        return neighbour_location(self.kernel_, basis, own, spe + np.maximum(apart, 0.0), sizes)

    def _preimage_residuals(self, rows: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """‖φ(x̂) − P‖² = SPE(x̂) + ‖y(x̂) − y‖², because P lies in the span of the components."""
        scores, spe = self._position(rows)
        return np.asarray(spe + np.einsum("ij,ij->i", scores - Y, scores - Y))

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def _check_preimage(self) -> None:
        if self.preimage not in ("auto", "ridge", "fixed_point", "kwok_tsang"):
            do = 'choose "auto", "ridge", "fixed_point" or "kwok_tsang"'
            raise InvalidInput(message(type(self).__name__, f"preimage={self.preimage!r}", do))
        if self.fit_inverse_transform and not self._space().vectors:
            self._check_rows()

    def _check_rows(self) -> None:
        if not self._space().vectors:
            given = "pre-images where the rows are not vectors of numbers"
            raise InvalidInput(message(type(self).__name__, given, "give rows, and a kernel on them"))

    def _fit_decoder(self, report: Report) -> None:
        """Learn the rows in X_fit_, training rows or landmarks, from their scores: one factorisation."""
        for name in ("decoder_", "decoder_mean_"):
            self.__dict__.pop(name, None)
        if not self.fit_inverse_transform or self.preimage == "kwok_tsang" or self._exact_inverse():
            return
        if self.preimage == "fixed_point":
            fixed_point_weight(self.kernel_)
        m, d = self.X_fit_.shape
        need = 8 * 3 * m * d
        require(need, parse_memory(self.memory), f"the decoder of {m} rows and {d} columns", "set n_landmarks lower")
        scores, rows = self._basis_scores(), _dense(self.X_fit_)
        self.decoder_mean_ = rows.mean(axis=0)
        self.decoder_ = None
        if scores.shape[1]:
            decoder = KernelRidge(self._chosen_decoder(rows, report), self.alpha, memory=self.memory)
            with report.stage("decoder"):
                self.decoder_ = decoder.fit(scores, rows - self.decoder_mean_)
            report.notes.append(f"{DECODER} {decoder.report_.method}, {decoder.kernel_!r}, alpha={self.alpha:g}")

    def _chosen_decoder(self, rows: np.ndarray, report: Report) -> Any:
        """`decoder_kernel`, or of three candidates the one of the smallest estimated error."""
        if not (isinstance(self.decoder_kernel, str) and self.decoder_kernel == "auto"):
            return self.decoder_kernel
        candidates: list[Kernel] = [Gaussian("median"), Linear()]
        if reads_scores(self.kernel_) and not is_linear(self.kernel_):
            candidates.insert(1, self.kernel_)
        alpha = self._checked_number("alpha", or_equal=True)
        if len(rows) < LEAST_ROWS:
            return candidates[0]
        with report.stage("choice of the decoder"):
            k = self.dual_coef_.shape[1]
            found = choose_decoder(self.kernel_, rows, k, candidates, alpha, self._seed())
        shown = ", ".join(f"{each!r} {error:.3g}" for each, error in zip(candidates, found.errors, strict=True))
        report.notes.append(f"estimated squared errors of decoders, noise {found.noise:.2g} a column: {shown}")
        return found.kernel


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(vectors_of(rows).dense(), np.float64)
