"""The base of kernel ridge regression and classification: squared loss, with one λ or one for each target."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.classifier import CLASSES, ScoreClassifier
from mercer.estimators.base.compression import OUTPUTS, Compressible
from mercer.estimators.base.estimator import AGAINST_ROUNDING
from mercer.gram import KernelOperator
from mercer.numerals import counted
from mercer.schemas import NON_NEGATIVE, Array, Schema, Value
from mercer.select import RidgeInverse, RidgeSpectrum
from mercer.solvers import Solution, Status
from mercer.ways.nystroem_ridge import EVALUATION, NystroemRidge, too_dear
from mercer.ways.regularised import RegularisedSolve
from mercer.ways.report import Report
from mercer.ways.spectral import one_decomposition_pays, ridge_inverse

__all__ = ["LeastSquaresClassifier", "RidgeEstimator", "duals"]

SAMPLE = 'choose on a sample (mercer.select.cross_validate_ridge), or set solver="nystroem"'
USELESS = 0.5
"""A relative residual from which a solution that rounding stopped is no better than 0."""


class RidgeEstimator(Compressible):
    """f = Σⱼ αⱼ k(·, xⱼ) + b with (K + λ diag(1/w)) α + b = y, and Σ αⱼ = 0 if there is an intercept b."""

    fitted: ClassVar[Schema] = (
        Compressible.fitted
        + OUTPUTS
        + Schema(
            Array("alpha_", "*penalties", rules=(NON_NEGATIVE,)),
            Array("sample_weight_", "n", nullable=True, rules=(NON_NEGATIVE,)),
            Value("restricted_", bool),
        )
    )

    alpha: Any
    fit_intercept: bool
    solver: str = "auto"
    n_landmarks: int | None = None
    landmarks: Any = "pivoted"
    random_state: int = 0
    tol: float = 1e-10
    dual_coef_: np.ndarray
    intercept_: Any
    restricted_: bool
    indefinite_meaning: ClassVar[str] = (
        "the solution is a stationary point of the regularised risk in a Kreĭn space, not a minimum (Ong et al. 2004), "
        "and is found for α > −λmin(K) only"
    )

    def _fit_targets(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Fit every column of Y; rows of weight 0 are left out."""
        alphas = self._penalties(Y.shape[1])
        self.alpha_: Any = float(alphas[0]) if np.ndim(self.alpha) == 0 else alphas
        X, Y, weights = self._with_weight(X, Y, weights)
        K, report = self._begin(X, weights)
        self.report_ = report
        reason = "as requested" if self.solver == "nystroem" else ""
        if self.solver == "auto":
            reason = too_dear(K.product_work(EVALUATION), self.kernel_)
        if reason:
            self._solve_restricted(K, X, Y, weights, alphas, reason)
        else:
            self._solve_targets(K, Y, weights, alphas, report)

    def _penalties(self, targets: int) -> np.ndarray:
        """λ of each target."""
        if self.solver == "askotch":
            self._refuse("solver", 'this solver was removed: use "cg", which is faster, or "auto"')
        self._checked_choice("solver", "auto", "cholesky", "cg", "nystroem")
        if not (isinstance(self.alpha, Real) and 0 <= float(self.alpha) < np.inf):
            self._refuse("alpha", "give a number ≥ 0, the weight α of ‖f‖²")
        return np.full(targets, float(self.alpha))

    # ---- the system --------------------------------------------------------------------------------------------------

    def _solve_targets(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray | None, alphas: np.ndarray, report: Report
    ) -> None:
        """Set α and b of every target: one factorisation for each value of λ, or one decomposition for many."""
        self.sample_weight_, self.restricted_ = weights, False
        values = np.unique(alphas)
        several = self.solver == "auto" and len(values) > 1 and RidgeSpectrum.bytes(len(Y)) <= report.room
        if several and one_decomposition_pays(len(Y), max(K.pair_columns, 1), len(values)):
            if self._by_inverse(K, Y, weights, alphas, report):
                return
            report.notes.append("one decomposition for all α was not exact enough, so each α has a factorisation")
        self.dual_coef_, self.intercept_ = np.empty(Y.shape), np.zeros(Y.shape[1])
        steps, worst = 0, (-1.0, "")
        for value in values:
            own = alphas == value
            shift = value if weights is None else value / weights
            self.dual_coef_[:, own], self.intercept_[own] = self._solve_columns(K, Y[:, own], shift, report)
            steps, worst = steps + report.steps, max(worst, (report.residual, report.status))
        report.steps, (report.residual, report.status) = steps, worst
        if len(values) > 1:
            report.notes.append(f"{len(values)} different α, each with a factorisation of its own")

    def _solve_columns(
        self, K: KernelOperator, Y: np.ndarray, shift: Any, report: Report
    ) -> tuple[np.ndarray, np.ndarray]:
        targets = Y.shape[1]
        ones = np.ones((len(Y), 1)) if self.fit_intercept else np.empty((len(Y), 0))
        dual = np.asarray(self._solve(K, np.hstack([Y, ones]), shift, report).x)
        if not self.fit_intercept:
            return dual, np.zeros(targets)
        # (K + D) u = 1 and (K + D) v = y: α = v − u b, with b such that Σα = 0.
        v, u = dual[:, :targets], dual[:, targets]
        intercept = v.sum(axis=0) / u.sum()
        return v - np.outer(u, intercept), intercept

    def _solve(self, K: KernelOperator, B: np.ndarray, shift: Any, report: Report) -> Solution[Any]:
        size = self._kernel_size(K)
        solution = RegularisedSolve(
            who=type(self).__name__,
            K=K,
            B=B,
            shift=shift,
            solver=self._method,
            tol=self.tol,
            low_precision=size.fits_float32,
            mercer=self.kernel_.properties.definiteness.is_mercer,
            report=report,
        ).run()
        self._require_solved(solution, float(np.min(shift)), size.trace)
        report.precision = f"{getattr(solution.state, 'precision', 'float64')}, residual in float64"
        # Entries are rounded, so no solution has a residual below eps‖A‖‖x‖: that of a stable method is as good.
        # A sum of n terms is rounded √n times as much (Higham & Mary 2019); a method that stalls there has found out.
        terms = max(4.0, float(np.sqrt(K.shape[0]))) if solution.status is Status.STALLED else 4.0
        growth = np.linalg.norm(solution.x, axis=0) / np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
        rounding = (
            terms * np.finfo(np.float64).eps * (size.trace + float(np.max(shift))) * float(growth.max(initial=0.0))
        )
        self._account(report, solution, self.tol, rounding)
        return solution

    def _require_solved(self, solution: Solution[Any], least: float, trace: float) -> None:
        """Refuse what is no solution: K + αI is not positive definite, or it is and rounding hides that."""
        failed = solution.status in (Status.NOT_POSITIVE_DEFINITE, Status.BREAKDOWN)
        definite = least > 0 and self.kernel_.properties.definiteness.is_mercer
        if (failed and definite) or (solution.status is Status.STALLED and not solution.residual < USELESS):
            given = f"{self.penalty} = {least:.3g} beside a sum of k(x, x) of {trace:.3g}, which float64 cannot solve"
            raise InvalidInput(message(type(self).__name__, given, AGAINST_ROUNDING.format(self.penalty)))
        if failed or solution.status is Status.NOT_FINITE:
            how = solution.status.name.lower().replace("_", " ")
            given = f"K + αI with α = {least:.3g} has no solution ({how})"
            raise InvalidInput(message(type(self).__name__, given, self._advice(solution.status)))

    def _solve_restricted(
        self, K: KernelOperator, X: Any, Y: np.ndarray, weights: np.ndarray | None, alphas: np.ndarray, reason: str
    ) -> None:
        """Set the landmarks, their coefficients and b."""
        report = self.report_
        report.reason, self.sample_weight_, self.restricted_ = reason, None, True
        found = self._on_landmarks(K, X, Y, weights, alphas, report).run()
        self.X_fit_, self.dual_coef_, self.intercept_ = found.landmarks, found.coefficients, found.intercept
        self._account(report, found.solution, self.tol, found.rounding)
        if self.solver == "auto":
            given = f"{reason}, so f is restricted to {counted(len(self.dual_coef_), 'landmark')}, an approximation"
            do = 'compare other n_landmarks=, or set solver="cg" for the exact answer'
            report.warnings.append(message(type(self).__name__, given, do))
            warn(report.warnings[-1], ConvergenceWarning)

    def _on_landmarks(
        self, K: KernelOperator, X: Any, Y: np.ndarray, weights: np.ndarray | None, alphas: np.ndarray, report: Report
    ) -> NystroemRidge:
        """The method on landmarks."""
        return NystroemRidge(
            who=type(self).__name__,
            K=K,
            X=X,
            Y=Y,
            alphas=alphas,
            weights=weights,
            fit_intercept=self.fit_intercept,
            landmarks=self.landmarks,
            n_landmarks=self.n_landmarks,
            tol=self.tol,
            low_precision=self._kernel_size(K).fits_float32,
            seed=self._seed(),
            report=report,
        )

    def _by_inverse(
        self, K: KernelOperator, Y: np.ndarray, weights: np.ndarray | None, alphas: np.ndarray, report: Report
    ) -> bool:
        """α and b from one decomposition of K; False if the residual is above `tol`."""
        inverse = self._inverse(K, weights, alphas, report)
        if not np.all(inverse.solvable(alphas)):
            given = f"K + αI with α = {alphas.min():.3g} has no solution (not positive definite)"
            raise InvalidInput(message(type(self).__name__, given, self._advice(Status.NOT_POSITIVE_DEFINITE)))
        return self._accepted(duals(inverse, K, Y, weights, alphas), K, Y, weights, alphas, report)

    def _accepted(
        self,
        dual: np.ndarray,
        K: KernelOperator,
        Y: np.ndarray,
        weights: np.ndarray | None,
        alphas: np.ndarray,
        report: Report,
    ) -> bool:
        """Set α to `dual`, and b = Σ wᵢ (y − Kα)ᵢ/Σ wᵢ; False if the residual is above `tol`."""
        w = np.ones(len(Y)) if weights is None else weights
        rest = Y - K @ dual
        intercept = np.average(rest, axis=0, weights=w) if self.fit_intercept else np.zeros(Y.shape[1])
        rest -= intercept + alphas * dual / w[:, None]
        sizes = np.maximum(np.linalg.norm(Y, axis=0), np.finfo(float).tiny)
        self.sample_weight_, self.restricted_ = weights, False
        self.dual_coef_, self.intercept_ = dual, intercept
        report.residual = float(np.max(np.linalg.norm(rest, axis=0) / sizes))
        report.steps, report.tolerance, report.precision, report.status = 1, self.tol, "float64", "converged"
        return report.residual <= self.tol

    def _inverse(
        self, K: KernelOperator, weights: np.ndarray | None, alphas: np.ndarray, report: Report, fold: int = 0
    ) -> RidgeInverse:
        """The decomposition of K that serves all λ and folds of so many rows, within the memory budget."""
        self._kernel_size(K)  # refuses values that are not finite
        report.reason = f"one for all {len(np.unique(alphas))} α"
        return ridge_inverse(
            K,
            weights,
            alphas,
            intercept=self.fit_intercept,
            mercer=self.kernel_.properties.definiteness.is_mercer,
            fold=fold,
            report=report,
            require=lambda need: self._require(need, SAMPLE, report),
        )

    @property
    def _method(self) -> str:
        """The solver of the linear system, or "auto"."""
        return self.solver

    def _require(self, need: int, alternative: str, report: Report) -> None:
        """Refuse a plan beyond the budget; the report keeps the largest plan."""
        report.plan(need, f"{type(self).__name__} on {report.n} rows", [alternative, "fewer rows"])

    def _decide(self, X: Any) -> np.ndarray:
        return self._expanded(X) + self.intercept_


def duals(
    inverse: RidgeInverse, K: KernelOperator, Y: np.ndarray, weights: np.ndarray | None, alphas: np.ndarray
) -> np.ndarray:
    """α = Sβ of every target with its λ, refined once, because a factor may equal K only to 10⁻⁹ λ."""
    w = np.ones(len(Y)) if weights is None else weights
    dual = _inverted(inverse, Y, alphas)
    rest = Y - K @ dual - alphas * dual / w[:, None]  # without b, which P removes
    return dual + _inverted(inverse, rest, alphas)


def _inverted(inverse: RidgeInverse, Y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """S P S y of every column with its λ."""
    dual = np.empty(Y.shape)
    for value in np.unique(alphas):
        own = alphas == value
        dual[:, own] = inverse.roots[:, None] * inverse.solve(Y[:, own], value)[:, 0]
    return dual


class LeastSquaresClassifier(ScoreClassifier, RidgeEstimator):
    """Least squares on yᵢ ∈ {−1, +1} for each class; the largest f(x) + b wins."""

    fitted: ClassVar[Schema] = RidgeEstimator.fitted + CLASSES

    def _indicators(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows that have a weight, one column of ±1 for each class (for two: the second's), and the weights."""
        X, labels, weights = self._encoded(X, y, weights)
        indicators = np.where(labels[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        return X, indicators[:, 1:] if len(self.classes_) == 2 else indicators, weights
