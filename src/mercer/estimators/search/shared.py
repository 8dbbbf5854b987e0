"""Candidates of ridge regression on one kernel matrix for all folds and all λ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import validate_data

from mercer.estimators.base.estimator import FLOATS
from mercer.estimators.base.labels import labelled
from mercer.estimators.ridge.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.ridge.validated import GivenLabels, GivenValues
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.points import joined, parse_memory
from mercer.select.held_out import Buffers, Split, held_out_bytes, held_out_predictions

__all__ = ["NotScored", "SharedRidge", "shared_ridge", "why_not_shared"]


def why_not_shared(
    estimator: Any, candidates: list[dict[str, Any]], scoring: Any, fit_params: dict[str, Any], memory: Any, n: int
) -> str:
    """Why these candidates must be fitted one by one; empty if one method of ridge regression serves all.

    >>> why_not_shared(KernelRidge(), [{"alpha": 1.0}, {"kernel__gamma": 0.1}], None, {}, "1GB", 100)
    ''
    >>> why_not_shared(KernelRidge(), [{"tol": 1e-4}], None, {}, "1GB", 100)
    'candidates differ in tol'
    """
    ridge, prefix = _last(estimator)
    if type(ridge) not in (KernelRidge, KernelRidgeClassifier):
        return f"{type(ridge).__name__} shares nothing between its fits"
    others = sorted({name for one in candidates for name in one if not _is_shared(name, prefix)})
    if others:
        return f"candidates differ in {', '.join(others)}"
    if not all(_is_number(one.get(f"{prefix}alpha", ridge.alpha)) for one in candidates):
        return "alpha is not a number"
    if ridge.solver not in ("auto", "cholesky") or getattr(ridge, "class_weight", None) is not None:
        return f"solver={ridge.solver!r} or class_weight"
    if fit_params:
        return f"{', '.join(sorted(fit_params))} in fit"
    if not all(_is_plain(one) for one in _scorings(scoring)):
        return "a scorer that may look at the fitted model"
    need, budget = held_out_bytes(n), parse_memory(memory)
    return f"{n} rows need {need / 1e9:.1f} GB, of {budget / 1e9:.1f}" if need > budget else ""


def _last(estimator: Any) -> tuple[Any, str]:
    """The last step of a pipeline, and what its parameters' names begin with."""
    if type(estimator) is Pipeline and estimator.memory is None:
        name, last = estimator.steps[-1]
        return last, f"{name}__"
    return estimator, ""


def _is_shared(name: str, prefix: str) -> bool:
    own = name.removeprefix(prefix) if name.startswith(prefix) else ""
    return own in ("alpha", "kernel") or own.startswith("kernel__")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 <= value < np.inf)


def _scorings(scoring: Any) -> list[Any]:
    if isinstance(scoring, dict):
        return list(scoring.values())
    return list(scoring) if isinstance(scoring, list | tuple | set) else [scoring]


def _is_plain(scoring: Any) -> bool:
    """A scorer that sees predictions and decision values only."""
    return scoring is None or isinstance(scoring, str) or hasattr(scoring, "_score_func")


class NotScored(Exception):
    """A scorer failed on the predictions of a candidate."""


@dataclass(eq=False)
class SharedRidge:
    """Scores of one kernel with many λ on many splits, by `held_out_predictions`."""

    estimator: Any
    X: Any
    y: Any
    scorer: Any
    buffers: Buffers = field(default_factory=Buffers)

    def __post_init__(self) -> None:
        self.ridge, self.prefix = _last(self.estimator)
        self.ridge = clone(self.ridge)
        self.before = self.estimator[:-1] if self.prefix and len(self.estimator) > 1 else None
        self._transformed: dict[tuple[bytes, bytes], Any] = {}
        self.judged: BaseEstimator
        check_array(self.y, ensure_2d=False, dtype=None, input_name="y")
        if type(self.ridge) is KernelRidge:
            self.targets = np.asarray(self.y, np.float64).reshape(len(self.y), -1)
            self.judged = GivenValues()
        else:
            classes, labels = np.unique(np.asarray(self.y).ravel(), return_inverse=True)
            indicators = np.where(labels[:, None] == np.arange(len(classes)), 1.0, -1.0)
            self.targets = indicators[:, 1:] if len(classes) == 2 else indicators
            self.judged = GivenLabels(classes)

    def kernel_of(self, params: dict[str, Any]) -> Kernel:
        """The kernel of a candidate."""
        own = {name.removeprefix(self.prefix): value for name, value in params.items()}
        own.pop("alpha", None)
        return self.ridge._as_kernel(clone(self.ridge).set_params(**own).kernel)

    def alpha_of(self, params: dict[str, Any]) -> float:
        """The λ of a candidate."""
        return float(params.get(f"{self.prefix}alpha", self.ridge.alpha))

    def all_classes_in(self, splits: list[Split]) -> bool:
        """Whether the training rows of every split have all classes, so that indicators are those of every fit."""
        if type(self.ridge) is KernelRidge:
            return True
        y = np.asarray(self.y)
        return all(len(np.unique(y[split.train])) == len(np.unique(y)) > 1 for split in splits)

    def scores(self, kernel: Kernel, alphas: np.ndarray, splits: list[Split]) -> list[list[Any]]:
        """For each split a score (or a dictionary of them) for each λ; None if the system is singular."""
        intercept, ridge = bool(self.ridge.fit_intercept), clone(self.ridge).set_params(kernel=kernel)
        if self.before is None:
            checked = self._checked(ridge)
        if self.before is None and kernel.is_resolved:
            K = self._matrix(kernel, checked)
            found = held_out_predictions(K, self.targets, splits, alphas, intercept=intercept, buffers=self.buffers)
            return [self._judged(p, split) for p, split in zip(found, splits, strict=True)]
        out = []
        for split in splits:
            rows, places = self._fold(ridge, split), np.arange(len(split.train) + len(split.test))
            own = Split(places[: len(split.train)], places[len(split.train) :])
            train = _safe_indexing(rows, own.train)
            resolved = kernel.resolve(train, getattr(ridge, "feature_names_in_", None))
            Y = self.targets[np.concatenate([split.train, split.test])]
            found = held_out_predictions(self._matrix(resolved, rows), Y, [own], alphas, intercept=intercept)
            out.append(self._judged(found[0], split))
        return out

    def _checked(self, ridge: Any) -> Any:
        """The rows, after what a fit would refuse is refused."""
        if type(ridge) is KernelRidge:
            return ridge._validate_both(self.X, self.y, multi_output=True, y_numeric=True)[0]
        return labelled(ridge, self.X, self.y)[0]

    def _matrix(self, kernel: Kernel, rows: Any) -> np.ndarray:
        K = KernelOperator(kernel, rows, dtype=np.float64)
        return np.asarray(K.fill(self.buffers.array("K", K.shape, np.float64)))

    def _fold(self, ridge: Any, split: Split) -> Any:
        """The rows of a split, those to fit first, through the steps before, fitted to these alone."""
        key = split.train.tobytes(), split.test.tobytes()
        if key not in self._transformed:
            train, test = _safe_indexing(self.X, split.train), _safe_indexing(self.X, split.test)
            if self.before is not None:
                before = clone(self.before)
                train = before.fit_transform(train, _safe_indexing(self.y, split.train))
                for _, step in before.steps:  # a pipeline asks whether its last step is fitted, which may keep nothing
                    test = test if step in (None, "passthrough") else step.transform(test)
            self._transformed[key] = train, test
        train, test = self._transformed[key]
        checked = ridge._validate(train)
        if ridge._space().objects:
            return joined(checked, ridge._as_objects(test))
        test = validate_data(ridge, test, reset=False, accept_sparse="csr", dtype=FLOATS, order="C")
        return joined(checked, test)

    def _judged(self, predicted: np.ndarray, split: Split) -> list[Any]:
        actual = _safe_indexing(self.y, split.test)
        flat = type(self.ridge) is KernelRidge and np.ndim(self.y) == 1
        out = []
        for i in range(predicted.shape[1]):
            known = predicted[:, i, 0] if flat else predicted[:, i]
            try:
                out.append(self.scorer(self.judged, known, actual) if np.all(np.isfinite(known)) else None)
            except Exception as error:  # whatever a scorer raises
                raise NotScored from error
        return out


def shared_ridge(estimator: Any, X: Any, y: Any, scorer: Any, splits: list[Split]) -> SharedRidge | None:
    """The method, or None if a class is missing from some training rows."""
    method = SharedRidge(estimator, X, y, scorer)
    return method if method.all_classes_in(splits) else None
