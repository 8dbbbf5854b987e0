"""Least squares with the λ and the kernel of the best validation: what regression and classification share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from mercer.errors import InvalidInput, message
from mercer.estimators.ridge.least_squares import RidgeEstimator, duals
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.mixins import ClassifierMixin, RegressorMixin
from mercer.points import Space, count, rows_of, take
from mercer.schemas import NON_NEGATIVE, Array, Record, Schema, Texts
from mercer.select import RidgeInverse, Scorer, default_alphas
from mercer.select.held_out import Split, held_out_bytes, held_out_predictions, systems_are_solved_together
from mercer.ways.report import Report

__all__ = ["GivenLabels", "GivenValues", "ValidatedLeastSquares", "Validation", "by_scorer"]

TIE = 1e-9
"""Scores that differ by less, relatively, are equal: then the larger λ wins, and the kernel that was named first."""

REUSED_FROM = 1000
"""Rows from which on the decomposition that validated gives α too. Below, a factorisation for it takes next to nothing,
and the model is that of `KernelRidge` to the bit."""


@dataclass(frozen=True, eq=False)
class Validation:
    """The data of the trials: rows, targets (n, t), weights, the rows left out together, and the scorer.

    `present` are the places of these rows among all that were given, and `absent` the rows of weight 0.
    """

    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    folds: list[np.ndarray] | None
    scorer: Scorer
    present: np.ndarray
    absent: Any


@dataclass(frozen=True, eq=False)
class _Trial:
    """A kernel, the score of each λ (rows; NaN if K + λI is singular), and what was predicted for rows left out.

    `dual` is α for the best λ, from the spectrum, if there are many rows.
    """

    kernel: Kernel
    K: KernelOperator
    rows: Any
    report: Report
    scores: np.ndarray
    predictions: np.ndarray | None
    dual: np.ndarray | None = None

    @property
    def known(self) -> np.ndarray:
        return np.where(np.isnan(self.scores), -np.inf, self.scores)

    @property
    def best(self) -> float:
        """The mean over the columns of the best score of each."""
        return float(self.known.max(axis=0).mean())

    @property
    def chosen(self) -> np.ndarray:
        """The row of the best score of each column; of equals the last, which is the largest λ."""
        top = self.known.max(axis=0)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ if no score is known
            good = self.known >= top - TIE * np.abs(top)
        return np.asarray(len(good) - 1 - good[::-1].argmax(axis=0))

    def left_out(self) -> np.ndarray | None:
        """The left-out predictions of the chosen λ, for each row and target."""
        if self.predictions is None:
            return None
        targets = self.predictions.shape[2]
        return np.asarray(self.predictions[:, np.broadcast_to(self.chosen, targets), np.arange(targets)])


class ValidatedLeastSquares(RidgeEstimator):
    """Validation of every λ and kernel by one decomposition for each kernel, then the fit of the best."""

    fitted: ClassVar[Schema] = RidgeEstimator.fitted + Schema(
        Array("best_score_", "*chosen", finite=False),
        Record(
            "cv_results_",
            (
                Texts("kernel", "candidates"),
                Array("alpha", "candidates", rules=(NON_NEGATIVE,)),
                Array("score", "candidates *chosen", finite=False),
                Array("predictions", "candidates samples *predictions", optional=True, finite=False),
            ),
        ),
    )

    penalty: ClassVar[str] = "alphas"
    alphas: Any
    cv: Any
    scoring: Any
    memory: Any
    alpha_per_target: bool = False
    store_cv_results: bool = False

    # ---- what is tried -----------------------------------------------------------------------------------------------

    def _kernels(self) -> list[Any]:
        several = isinstance(self.kernel, list | tuple)
        if several and not self.kernel:
            self._refuse("kernel", "give at least one")
        return list(self.kernel) if several else [self.kernel]

    def _require_repair_of_others(self, kernel: Kernel) -> None:
        """Refuse a kernel that would be repaired on the rows that are left out, too."""
        parts = (kernel, *kernel.get_params(deep=True).values())
        if any(getattr(one, "keeps_rows", False) and not one.is_resolved for one in parts):
            do = "give its points=, or choose by KernelSearchCV, which repairs it on the rows of each fit"
            given = f"{kernel!r}, whose repair would see the rows that are left out"
            raise InvalidInput(message(type(self).__name__, given, do))

    def _space(self) -> Space:
        found = {self._as_kernel(kernel).space for kernel in self._kernels()}
        if len(found) > 1:
            given = f"kernels of {' and of '.join(sorted(space.name for space in found))}"
            raise InvalidInput(message(type(self).__name__, given, "give kernels of the same rows"))
        return found.pop()

    def _reads_columns(self) -> bool:
        return any(self._as_kernel(kernel).of_mixed_rows for kernel in self._kernels())

    def _as_objects(self, X: Any) -> Any:
        X = rows_of(X)
        for kernel in self._kernels():
            X = self._as_kernel(kernel).as_objects(X)
        return X

    def _grid(self) -> np.ndarray:
        """The λ to try, ascending."""
        grid = default_alphas() if self.alphas is None else np.atleast_1d(np.asarray(self.alphas, np.float64))
        if grid.ndim != 1 or not grid.size or not np.all((grid >= 0) & (grid < np.inf)):
            self._refuse("alphas", "give numbers ≥ 0, the weights λ of ‖f‖² to try")
        return np.unique(grid)

    def _folds(self, X: Any, y: Any) -> list[np.ndarray] | None:
        """The rows that are left out together, or None for one at a time and for "gcv"; checks `cv` and its company."""
        who = type(self).__name__
        if self.cv is not None and self.store_cv_results:
            given = f"store_cv_results=True with cv={self.cv!r}"
            raise InvalidInput(message(who, given, "it keeps leave-one-out predictions: set cv=None"))
        if isinstance(self.cv, str) and self.cv == "gcv" and self.scoring is not None:
            given = f'scoring={self.scoring!r} with cv="gcv"'
            raise InvalidInput(message(who, given, "generalised cross-validation is a score itself: set scoring=None"))
        if self.cv is None or (isinstance(self.cv, str) and self.cv == "gcv"):
            return None
        if isinstance(self.cv, str):
            self._refuse("cv", 'choose None, "gcv", a number of folds, or a splitter')
        n = count(X)
        splitter = check_cv(self.cv, y, classifier=isinstance(self, ClassifierMixin))
        folds = []
        for train, test in splitter.split(np.zeros((n, 1)), y):
            fold, rest = np.sort(np.arange(n)[test]), np.sort(np.arange(n)[train])
            parted = np.array_equal(np.sort(np.concatenate([rest, fold])), np.arange(n))
            if not parted or not len(rest) or not len(fold):
                given = f"a fold of {len(fold)} rows with {len(rest)} of the other {n - len(fold)} to train on"
                if any(len(np.unique(rows)) < len(rows) for rows in (fold, rest)):
                    given = f"a fold of {len(fold)} rows and {len(rest)} to train on, in which a row is repeated"
                raise InvalidInput(message(who, given, "train on all others, or use scikit-learn's GridSearchCV"))
            folds.append(fold)
        return folds

    def _present(
        self, X: Any, Y: np.ndarray, weights: np.ndarray | None, folds: list[np.ndarray] | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None, list[np.ndarray] | None]:
        """All of it without the rows of weight 0."""
        if weights is None or np.all(weights > 0):
            return X, Y, weights, folds
        if folds is not None:
            place = np.cumsum(weights > 0) - 1
            folds = [place[fold[weights[fold] > 0]] for fold in folds]
            folds = [fold for fold in folds if len(fold)]
        return *self._with_weight(X, Y, weights), folds

    def _absent(self, X: Any, present: np.ndarray) -> tuple[np.ndarray, Any]:
        """The places of the rows that are there, and the others."""
        return np.flatnonzero(present), None if np.all(present) else take(X, np.flatnonzero(~present))

    # ---- the trials --------------------------------------------------------------------------------------------------

    def _fit_best(self, task: Validation) -> np.ndarray | None:
        """Fit the best candidate; what was predicted for each row by a fit without it, (n, targets)."""
        self._checked_choice("solver", "auto", "nystroem")
        grid, n = self._grid(), len(task.Y)
        if n < 2 or any(len(fold) == n for fold in task.folds or []):
            given = f"n_samples = {n} with a positive weight"
            raise InvalidInput(message(type(self).__name__, given, "give more: one or a fold of them is left out"))
        trials = [self._tried(task, kernel, grid) for kernel in self._kernels()]
        best = trials[0]
        for trial in trials[1:]:
            best = trial if trial.best > best.best + TIE * abs(trial.best) else best
        if best.best == -np.inf:
            given = f"no score for any λ up to {grid[-1]:.3g}: K + λI is singular, or the scorer gave NaN"
            raise InvalidInput(message(type(self).__name__, given, "give larger λ, or another kernel or scoring"))
        self._keep(best, trials, grid, task.Y.shape[1])
        self._finish(best, trials, grid, task)
        return best.left_out()

    def _tried(self, task: Validation, kernel: Any, grid: np.ndarray) -> _Trial:
        """The scores of one kernel with every λ."""
        n, targets = task.Y.shape
        self._require_repair_of_others(self._as_kernel(kernel))
        K, report = self._begin(task.X, task.weights, kernel)
        fits = self.solver == "auto" and held_out_bytes(n) <= report.room
        if task.folds is not None and task.weights is None and fits:
            splits = [Split(np.setdiff1d(np.arange(n), fold), fold) for fold in task.folds]
            if systems_are_solved_together(n, splits, len(grid), targets + bool(self.fit_intercept)):
                return self._tried_apart(task, splits, K, grid, report)
        self._require(RidgeInverse.answer_bytes(n, len(grid) * targets), "try fewer α", report)
        largest = max((len(fold) for fold in task.folds or []), default=0)
        if self.solver == "nystroem":
            self._require(24 * largest**2, "set cv=None", report)  # the inverse of a fold's part of P
            report.reason, answers = f"one for all {len(grid)} α", RidgeInverse.answer_bytes(n, len(grid) * targets)
            way = self._on_landmarks(K, task.X, task.Y, task.weights, grid, report)
            inverse: RidgeInverse = way.spectrum(2 * answers)  # the scorer has arrays of its own
        else:
            inverse = self._inverse(K, task.weights, grid, report, largest)
        usable = inverse.solvable(grid)
        scores = np.full((len(grid), targets if self.alpha_per_target else 1), np.nan)
        predictions = np.full((n, len(grid), targets), np.nan) if self.cv is None else None
        with report.stage("validation"):
            if np.any(usable):
                found, left_out = self._validated(inverse, task, grid[usable])
                scores[usable] = found if self.alpha_per_target else found.mean(axis=1, keepdims=True)
                if predictions is not None:
                    predictions[:, usable] = left_out
        if not np.all(usable):
            given = f"λ up to {grid[~usable][-1]:.3g} left out, because K + λI is singular but for rounding"
            report.warnings.append(message(type(self).__name__, given, "give larger α"))
        if predictions is not None and task.absent is not None:
            predictions = self._with_absent(inverse, K, task, grid, usable, predictions, report)
        trial = _Trial(self.kernel_, K, self.X_fit_, report, scores, predictions)
        if n < REUSED_FROM or trial.best == -np.inf or self.solver == "nystroem":
            return trial
        with report.stage("solve"):
            alphas = np.broadcast_to(grid[trial.chosen], targets)
            return replace(trial, dual=duals(inverse, K, task.Y, task.weights, alphas))

    def _tried_apart(
        self, task: Validation, splits: list[Split], K: KernelOperator, grid: np.ndarray, report: Report
    ) -> _Trial:
        """The scores from the systems of all folds and λ, which take less than a decomposition of K."""
        self._require(held_out_bytes(len(task.Y)), "set cv=None", report)
        report.method = f"{len(splits)} folds × {len(grid)} α, solved together"
        with report.stage("kernel matrix"):
            matrix = K.toarray()
        with report.stage("validation"):
            found = held_out_predictions(matrix, task.Y, splits, grid, intercept=bool(self.fit_intercept))
            scores = np.full((len(grid), task.Y.shape[1]), np.nan)
            known = np.all([np.isfinite(one).all(axis=(0, 2)) for one in found], axis=0)
            if np.any(known):
                each = [task.scorer(task.Y[s.test], one[:, known], None) for s, one in zip(splits, found, strict=True)]
                scores[known] = np.mean(each, axis=0)
        scores = scores if self.alpha_per_target else scores.mean(axis=1, keepdims=True)
        return _Trial(self.kernel_, K, self.X_fit_, report, scores, None)

    def _validated(
        self, inverse: RidgeInverse, task: Validation, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The scores (λ, targets), and for leave-one-out the predictions (n, λ, targets)."""
        if self.cv is None:
            left_out = inverse.leave_one_out(task.Y, alphas)
            return task.scorer(task.Y, left_out, task.weights), left_out
        if task.folds is None:
            return -inverse.generalised(task.Y, alphas), None
        solved, scores = inverse.solve(task.Y, alphas), []
        for fold in task.folds:
            predicted = inverse.leave_out(fold, task.Y, alphas, solved)
            scores.append(task.scorer(task.Y[fold], predicted, None if task.weights is None else task.weights[fold]))
        return np.mean(scores, axis=0), None

    def _with_absent(
        self,
        inverse: RidgeInverse,
        K: KernelOperator,
        task: Validation,
        grid: np.ndarray,
        usable: np.ndarray,
        left_out: np.ndarray,
        report: Report,
    ) -> np.ndarray:
        """Predictions for all rows that were given: a row of weight 0 is left out of every fit."""
        targets, tried = task.Y.shape[1], grid[usable]
        Y, alphas, rows = np.tile(task.Y, (1, len(tried))), np.repeat(tried, targets), self.X_fit_
        intercept = np.zeros(len(alphas))
        if self.solver == "nystroem":
            way = self._on_landmarks(K, task.X, Y, task.weights, alphas, report.continued())
            rows, dual, intercept = way.run()[:3]
        else:
            dual = duals(inverse, K, Y, task.weights, alphas)
            if self.fit_intercept:
                intercept = np.average(Y - K @ dual, axis=0, weights=task.weights)
        absent = KernelOperator(self.kernel_, task.absent, rows, dtype=np.float64)
        out = np.full((len(task.present) + absent.shape[0], len(grid), targets), np.nan)
        out[task.present] = left_out
        others = np.setdiff1d(np.arange(len(out)), task.present)
        out[np.ix_(others, np.flatnonzero(usable))] = (absent @ dual + intercept).reshape(len(others), -1, targets)
        return out

    # ---- the verdict -------------------------------------------------------------------------------------------------

    def _keep(self, best: _Trial, trials: list[_Trial], grid: np.ndarray, targets: int) -> None:
        """The attributes that say what was tried and chosen."""
        each = self.alpha_per_target and targets > 1
        tops = best.scores[best.chosen, np.arange(best.scores.shape[1])]
        self.alpha_ = grid[best.chosen] if each else float(grid[best.chosen[0]])
        self.best_score_ = tops if each else float(tops[0])
        scores = np.concatenate([trial.scores for trial in trials])
        self.cv_results_: dict[str, Any] = {
            "kernel": [repr(trial.kernel) for trial in trials for _ in grid],
            "alpha": np.tile(grid, len(trials)),
            "score": scores if each else scores[:, 0],
        }
        if self.store_cv_results:
            kept = np.concatenate([np.moveaxis(np.asarray(trial.predictions), 0, 1) for trial in trials])
            self.cv_results_["predictions"] = kept[:, :, 0] if targets == 1 else kept

    def _finish(self, best: _Trial, trials: list[_Trial], grid: np.ndarray, task: Validation) -> None:
        """The fit of the best candidate, and the report."""
        self.kernel_, self.X_fit_, self.report_ = best.kernel, best.rows, best.report
        report, planned, method = best.report, best.report.memory_planned, best.report.method
        for other in (trial.report for trial in trials if trial is not best):
            for stage, seconds in other.seconds.items():
                report.seconds[stage] = report.seconds.get(stage, 0.0) + seconds
        alphas = np.broadcast_to(grid[best.chosen], task.Y.shape[1])
        exact = False
        if best.dual is not None:
            with report.stage("solve"):
                exact = self._accepted(best.dual, best.K, task.Y, task.weights, alphas, report)
        if self.solver == "nystroem":
            self._solve_restricted(best.K, task.X, task.Y, task.weights, alphas, report.reason)
        elif not exact:
            self._solve_targets(best.K, task.Y, task.weights, alphas, report)
        report.memory_planned = max(planned, report.memory_planned)
        report.method = method if method == report.method else f"{method}, then {report.method}"
        how = "leave-one-out" if self.cv is None else "generalised cross-validation"
        how = how if task.folds is None else f"{len(task.folds)} folds"
        among = f"{len(grid)} α" + (f" and {len(trials)} kernels" if len(trials) > 1 else "")
        named = ", ".join(f"{alpha:.3g}" for alpha in np.unique(alphas))
        report.notes.append(f"λ = {named} chosen by {how} among {among}; score {best.best:.6g}")
        for edge, side in ((grid[0], "smallest"), (grid[-1], "largest")):
            if len(grid) > 1 and np.any(alphas == edge):
                given = f"λ = {edge:.3g} is the {side} that was tried"
                report.warnings.append(message(type(self).__name__, given, "widen alphas"))


# ---- scikit-learn's scorers ---------------------------------------------------------------------------------------


class GivenValues(RegressorMixin, BaseEstimator):
    """A regressor whose rows are its predictions: what a scorer reads."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The rows."""
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return True


class GivenLabels(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are its decision values."""

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self.classes_ = classes

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """The rows; for two classes their only column."""
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class of the largest value."""
        return np.asarray(self.classes_[(X[:, 0] > 0).astype(int) if X.shape[1] == 1 else X.argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return True


def by_scorer(scoring: Any, given: Any, *, each: bool = False) -> Scorer:
    """One of scikit-learn's scorers, for all targets at once or for `each`; weights are passed on if given."""
    scorer = get_scorer(scoring)

    def score(Y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        options = {} if weights is None else {"sample_weight": weights}
        if isinstance(given, ClassifierMixin):
            pairs = [(given.predict(Y), predicted)]
        elif each or Y.shape[1] == 1:
            pairs = [(Y[:, j], predicted[:, :, j]) for j in range(Y.shape[1])]
        else:
            pairs = [(Y, predicted)]
        scores = [[scorer(given, p[:, i], y, **options) for y, p in pairs] for i in range(predicted.shape[1])]
        return np.asarray(scores, np.float64)

    return score
