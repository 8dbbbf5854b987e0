"""Reduced sets: a fitted f = Σᵢ αᵢ k(xᵢ, ·) from fewer vectors, and its error."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.approx.reduced_set import moved_vectors, projection, select_vectors
from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.gram import KernelOperator
from mercer.points import count, take
from mercer.schemas import Array, Rows, Schema
from mercer.ways.report import Report

__all__ = ["OUTPUTS", "Compressible"]

STEPS = 30
"""Steps of L-BFGS on the vectors: on USPS 10 steps left 0.43 of ‖f‖, 30 steps 0.419, 100 steps 0.413."""

OUTPUTS = Schema(Array("dual_coef_", "n *targets"), Array("intercept_", "*targets"))
"""The coefficients and b of each output."""


class Compressible(KernelEstimator):
    """An estimator whose outputs are f = Σᵢ αᵢ k(xᵢ, ·) + b over the rows X_fit_."""

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("X_fit_"), Array("compression_loss_", optional=True)
    )

    dual_coef_: np.ndarray
    compression_loss_: float
    sample_weight_: np.ndarray | None

    def compress(
        self, n_vectors: int | float | None = None, tolerance: float | None = None, *, move: bool = True, X: Any = None
    ) -> Self:
        r"""A copy whose f̃ is made of fewer vectors: min Σⱼ‖fⱼ − f̃ⱼ‖², for all outputs j from the same ones.

        Vectors are taken from the expansion one after the other, each the one that lowers the loss most, with the best
        coefficients for them; then they are moved to lower it further. Predictions cost as many kernel values as there
        are vectors. The copy's `compression_loss_` and `report_` state the loss.

        Parameters
        ----------
        n_vectors : int, float or None
            How many, or their share of the vectors there are; at most. None is as many as `tolerance` asks for.
        tolerance : float or None
            On √(Σ‖fⱼ − f̃ⱼ‖²/Σ‖fⱼ‖²): no more vectors are taken than it needs.
        move : bool, default True
            Whether the vectors are moved, if k is a differentiable formula of ⟨x, z⟩ and ‖x − z‖ and the rows are
            dense. Otherwise they stay rows of the data.
        X : array-like, optional
            Rows on which the change of the outputs is stated; the vectors themselves by default.

        Returns
        -------
        A fitted model of the same class. Its `X_fit_` are the vectors, its `dual_coef_` their coefficients.

        Raises
        ------
        InvalidInput
            For a precomputed kernel, whose values between vectors a model does not keep, and for invalid parameters.

        References
        ----------
        C. J. C. Burges (1996). Simplified support vector decision rules. ICML.
        B. Schölkopf, S. Mika, C. J. C. Burges et al. (1999). Input space versus feature space in kernel-based methods.
        IEEE Transactions on Neural Networks 10.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelRidge
        >>> rows, y = load_iris(return_X_y=True)
        >>> model = KernelRidge(alpha=0.1).fit(rows, y)
        >>> small = model.compress(0.1)
        >>> len(small.X_fit_), small.score(rows, y) > 0.9 * model.score(rows, y)
        (15, True)
        """
        check_is_fitted(self)
        most, wanted = self._compression(n_vectors, tolerance)
        out = copy.copy(self)
        A, n = np.ascontiguousarray(self._expansion().coefficients, np.float64), count(self.X_fit_)
        report = out.report_ = replace(self.report_, notes=[], warnings=[], seconds={}, memory_planned=0)
        K = KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64)
        report.memory_rows = K.copies
        need = 8 * n * (3 * most + 3 * A.shape[1]) + 8 * most * (4 * most + 2 * A.shape[1])
        report.plan(need, f"{type(self).__name__}.compress", "fewer vectors")
        with report.stage("selection"):
            found = select_vectors(K, A, most, wanted)
        vectors, moved = take(self.X_fit_, found.places), None
        if move and len(found.places) < n and isinstance(vectors, np.ndarray) and vectors.dtype.kind == "f":
            with report.stage("moves"):
                rows = np.asarray(self.X_fit_, np.float64)
                moved = moved_vectors(self.kernel_, rows, A, np.asarray(vectors, np.float64), STEPS)
        vectors = vectors if moved is None else np.ascontiguousarray(moved, vectors.dtype)
        B, losses = A[:0], np.zeros((2, 1))
        if len(found.places):
            B, losses = projection(self.kernel_, self.X_fit_, A, vectors)
        report.method = f"reduced set of {len(B)} of {n} vectors" + (", moved" if moved is not None else ", chosen")
        out._restate(vectors, B)
        out.compression_loss_ = float(np.sqrt(losses[0].sum() / max(losses[1].sum(), np.finfo(float).tiny)))
        self._account_for_compression(out, losses, A, B, self.X_fit_ if X is None else self._validate_new(X))
        return out

    def _begin(self, *arguments: Any) -> tuple[KernelOperator, Report]:
        self.__dict__.pop("compression_loss_", None)  # of a model that is fitted anew
        return super()._begin(*arguments)

    def _expansion(self) -> Expansion:
        check_is_fitted(self)
        return expansion_of(self, getattr(self, "intercept_", 0.0))

    def _restate(self, vectors: Any, B: np.ndarray) -> None:
        """Set the vectors and their coefficients, (m, t)."""
        self.X_fit_, self.dual_coef_ = vectors, B.reshape(len(B), *self.dual_coef_.shape[1:])
        if hasattr(self, "restricted_"):
            self.restricted_, self.sample_weight_ = True, None
        self.__dict__.pop("history_", None)  # it belongs to the former vectors

    def _compression(self, n_vectors: Any, tolerance: Any) -> tuple[int, float]:
        """How many vectors at most, and the loss that is small enough."""
        who, n = f"{type(self).__name__}.compress", count(self.X_fit_)
        if self.kernel_.space.numbered:
            raise InvalidInput(message(who, "a precomputed kernel", "fit with the kernel itself"))
        if n_vectors is None and tolerance is None:
            raise InvalidInput(message(who, "neither n_vectors nor tolerance", "give one of them, or both"))
        if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= float(tolerance) < 1):
            raise InvalidInput(message(who, f"tolerance={tolerance!r}", "give a number from 0 to 1"))
        most = n
        if n_vectors is not None:
            whole = isinstance(n_vectors, Integral) and not isinstance(n_vectors, bool)
            share = isinstance(n_vectors, Real) and not isinstance(n_vectors, Integral) and float(n_vectors) <= 1
            if not (share or whole) or not float(n_vectors) > 0:
                do = "give a whole number ≥ 1, or a share above 0 and up to 1.0"
                raise InvalidInput(message(who, f"n_vectors={n_vectors!r}", do))
            most = min(n, max(1, int(n * n_vectors) if share else int(n_vectors)))
        return most, 0.0 if tolerance is None else float(tolerance)

    def _account_for_compression(self, out: Any, losses: np.ndarray, A: np.ndarray, B: np.ndarray, X: Any) -> None:
        """Report the error in feature space and in the outputs."""
        report = out.report_
        worst = np.sqrt(np.max(losses[0] / np.maximum(losses[1], np.finfo(float).tiny), initial=0.0))
        report.reason = f"‖f − f̃‖ is {out.compression_loss_:.2e} of ‖f‖, {worst:.2e} of the worst output"
        report.residual, report.tolerance, report.steps = out.compression_loss_, float("nan"), 0
        report.status = "the relative error of f in feature space"
        if not (count(X) and len(B)):
            return
        before = np.asarray(KernelOperator(self.kernel_, X, self.X_fit_, dtype=np.float64) @ A)
        after = np.asarray(KernelOperator(self.kernel_, X, out.X_fit_, dtype=np.float64) @ B)
        change, size = np.sqrt(np.mean((after - before) ** 2)), np.sqrt(np.mean(before**2))
        report.notes.append(f"on {count(X)} rows the outputs change by {change:.3g} (root mean square), of {size:.3g}")
