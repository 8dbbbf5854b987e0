"""Support vector machines for classes: one for each pair, on one kernel matrix."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from mercer.errors import InvalidInput, message, warn
from mercer.estimators.base.calibration import coupled, fit_sigmoid, folds_by_class, probabilities, shared
from mercer.estimators.base.classifier import class_factors, require_classes
from mercer.estimators.base.expansion import Expansion
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.base.labels import require_labels
from mercer.estimators.base.pairwise import class_pairs, class_scores, votes
from mercer.estimators.svm.support_vectors import SupportVectorMachine, Training
from mercer.gram import KernelOperator
from mercer.mixins import ClassifierMixin
from mercer.points import count
from mercer.schemas import NON_NEGATIVE, SORTED, Array, Schema, Size, Value
from mercer.solvers import DualBatch

__all__ = ["SupportVectorClassifier"]

DECISIONS = 1 << 23
"""Decisions held in memory at a time when labels are predicted."""
AT_ONCE = 1 << 20
"""Kernel values that are computed once for the machines of all classes."""


def _has_probabilities(machine: Any) -> bool:
    """Whether a machine gives probabilities; the AttributeError of one that does not says what to set."""
    fitted = "classes_" in vars(machine)
    if machine._is_calibrated if fitted else machine.probability:
        return True
    given = "probabilities with probability=False" + " in its fit" * (fitted and bool(machine.probability))
    do = "set probability=True and fit, or use decision_function"
    raise AttributeError(message(type(machine).__name__, given, do))


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """fₐᵦ(x) + bₐᵦ for each pair of classes a < b, above 0 for a, as LIBSVM has it; of two classes for the second."""

    fitted: ClassVar[Schema] = SupportVectorMachine.fitted + Schema(
        Array("classes_", "classes", np.generic, rules=(SORTED,)),
        Array("class_weight_", "classes", rules=(NON_NEGATIVE,)),
        Value("_fitted_against_rest", bool, optional=True),  # not in older files
        Size("groups", lambda model, sizes: 1 if model.restricted_ else sizes["classes"]),
        Size("decisions", lambda model, _: model._machines()),
        Size("outputs", lambda model, _: len(model.classes_) - 1 if model._has_pairs else model._machines()),
        Array("calibration_", "decisions 2", optional=True),
    )

    class_weight: Any
    decision_function_shape: str
    break_ties: bool
    probability: bool
    calibration_: np.ndarray
    multi_class: str = "ovo"
    weighs_probabilities: bool = True
    """Whether sigmoids are fitted to weighted rows. LIBSVM's are not."""

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """The rows that have a weight, class by class."""
        X, y = self._validate_both(X, y)
        whole = y.dtype.kind in "biu"  # classes, of which scikit-learn's check, slow for few rows, warns if many
        if not whole:
            require_labels(y, type(self).__name__)
        self._checked_choice("multi_class", "ovo", "ovr")
        self._shape_is_by_class(self.multi_class == "ovr")
        given = self._weights(sample_weight, X)
        weights = np.ones(len(y)) if given is None else given
        present = np.flatnonzero(weights > 0)
        y = np.asarray(y)[present]
        self.classes_ = np.unique(y)
        label = np.searchsorted(self.classes_, y)  # `return_inverse` would take five arrays of n integers
        if whole and 2 * len(self.classes_) > len(y):
            require_labels(y, type(self).__name__)
        require_classes(type(self).__name__, self.classes_, "" if given is None else ", has rows of positive weight")
        self._fitted_against_rest = self.multi_class == "ovr" and len(self.classes_) > 2
        who, mass = type(self).__name__, np.bincount(label, weights[present])
        self.class_weight_ = class_factors(who, self.class_weight, self.classes_, mass)
        by_class = np.argsort(label, kind="stable")
        order, label = present[by_class], label[by_class]
        weights = weights[order]
        del y, present, by_class  # of n entries each
        return self._prepare(X, order, label, weights)

    def _problems(self, target: np.ndarray) -> tuple[int, int]:
        k, sizes = len(self.classes_), np.sort(np.bincount(target))
        return (k, len(target)) if self._against_rest else (k * (k - 1) // 2, int(sizes[-2:].sum()))

    def _pairs(self, data: Training) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The rows of each pair's variables, their sign (1: its first class), where each pair begins, and turns."""
        label, pairs = data.target, class_pairs(len(self.classes_))
        start = np.searchsorted(label, np.arange(len(self.classes_) + 1))
        sizes = np.diff(start)
        of_class = [np.arange(first, last) for first, last in pairwise(start)]
        first, second = sizes[pairs].T
        sign = np.repeat(np.tile([1.0, -1.0], len(pairs)), sizes[pairs].ravel())
        offset = np.concatenate([[0], np.cumsum(first + second)])
        return np.concatenate([of_class[c] for c in pairs.ravel()]), sign, offset, offset[:-1] + first

    def _rest(self, data: Training) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same for each class against all others."""
        k, n = len(self.classes_), len(data.order)
        sign = np.where(data.target == np.arange(k)[:, None], 1.0, -1.0)
        return np.tile(np.arange(n), k), sign.ravel(), np.arange(k + 1) * n

    @property
    def _against_rest(self) -> bool:
        """Whether there is a machine for each of several classes, not for each pair; older files do not have it."""
        found = vars(self).get("_fitted_against_rest")
        return bool(self.multi_class == "ovr" and len(self.classes_) > 2 if found is None else found)

    def _machines(self) -> int:
        k = len(self.classes_)
        return k if self._against_rest else k * (k - 1) // 2

    @property
    def _has_pairs(self) -> bool:
        """Whether `dual_coef_` is in LIBSVM's form: k − 1 rows that the pairs share."""
        return len(self.classes_) > 2 and not self._against_rest and not self.restricted_

    def _place(self, data: Training, family: DualBatch) -> tuple[np.ndarray, np.ndarray]:
        """The coefficient of each variable: of class a of (a, b) in row b − 1, of b in row a; and its column."""
        if self._against_rest:
            return family.owner, family.rows
        a, b = class_pairs(len(self.classes_))[family.owner].T
        return np.where(data.target[family.rows] == a, b - 1, a), family.rows

    def _read_pairs(self, data: Training, family: DualBatch, beta: np.ndarray, intercept: np.ndarray) -> None:
        """Set what scikit-learn has from LIBSVM."""
        k = len(self.classes_)
        coefficients = np.zeros((k if self._against_rest else k - 1, len(data.order)))
        coefficients[self._place(data, family)] = beta
        used = self._keep(data, coefficients)
        self.n_support_ = np.bincount(data.target[used], minlength=k).astype(np.int32)
        self.intercept_ = intercept
        if k == 2:
            self.dual_coef_, self.intercept_ = -self.dual_coef_, -self.intercept_

    def _variables(self, data: Training, family: DualBatch, coefficients: np.ndarray) -> np.ndarray | None:
        k = len(self.classes_)
        if len(coefficients) != (k if self._against_rest else k - 1):
            return None
        beta: np.ndarray = coefficients[self._place(data, family)]
        return -beta if k == 2 else beta

    def _by_output(self) -> np.ndarray:
        k = len(self.classes_)
        if not self._has_pairs:
            return self.dual_coef_
        pairs, ends = class_pairs(k), np.concatenate([[0], np.cumsum(self.n_support_)])
        out = np.zeros((len(pairs), len(self.support_)))
        for c in range(k):
            some = slice(ends[c], ends[c + 1])
            out[(pairs == c).any(axis=1), some] = self.dual_coef_[:, some]
        return out

    def _expansion(self) -> Expansion:
        """The outputs; for many classes one for each class against the rest, or for each pair (positive: its first)."""
        found, names = super()._expansion(), [str(one) for one in self.classes_]
        if len(names) == 2 or self._against_rest:
            return found
        return found._replace(names=[f"{names[a]} against {names[b]}" for a, b in class_pairs(len(names))])

    # ---- decisions ---------------------------------------------------------------------------------------------------

    def _decisions(self, X: Any) -> np.ndarray:
        """The decision of each pair, (m, pairs), at rows that `_validate_new` has seen."""
        return self._products(X) + self.intercept_

    def _products(self, X: Any) -> np.ndarray:
        """By one product for each class, with the k − 1 pairs that it is in: its vectors have no part in the others.

        Few entries are computed as one matrix: to begin a product takes longer than its entries.
        """
        k = len(self.classes_)
        if not self._has_pairs:
            return super()._products(X)
        pairs = class_pairs(k)
        if not count(self.X_fit_):
            return np.zeros((count(X), len(pairs)))
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        out = np.zeros((count(X), len(pairs)))
        K = KernelOperator(self.kernel_, X, self.X_fit_, dtype=np.float64)
        whole = K.toarray() if count(X) * len(self.support_) <= AT_ONCE else None
        for c in np.flatnonzero(self.n_support_):
            some = np.arange(ends[c], ends[c + 1])
            part: Any = K.columns(some) if whole is None else whole[:, some]
            # The pairs (a, c) with a < c, then (c, b): their coefficients are in rows a and b − 1, which are in order.
            out[:, (pairs == c).any(axis=1)] += part @ np.ascontiguousarray(self.dual_coef_[:, some].T)
        return known_values(out, K, type(self).__name__)

    def _shape_is_by_class(self, against_rest: bool) -> bool:
        self._checked_choice("decision_function_shape", "ovr", "ovo")
        if self.break_ties and self.decision_function_shape == "ovo":
            given = 'break_ties=True with decision_function_shape="ovo"'
            raise InvalidInput(message(type(self).__name__, given, 'set break_ties=False, or the shape to "ovr"'))
        if against_rest and self.decision_function_shape == "ovo":
            given = 'decision_function_shape="ovo" with multi_class="ovr"'
            raise InvalidInput(message(type(self).__name__, given, "set one of them to the other: there are no pairs"))
        return self.decision_function_shape == "ovr"

    def decision_function(self, X: Any) -> np.ndarray:
        """For two classes f(x) + b, positive for the second; otherwise a score for each class, or for each pair.

        With ``probability=True`` log odds of two classes and of pairs, and the logarithms of the probabilities of many.
        """
        X, k = self._validate_new(X), len(self.classes_)
        by_class, decisions = self._shape_is_by_class(self._against_rest), self._decisions(X)
        odds = self._log_odds(decisions) if self._is_calibrated else decisions
        if k == 2:
            return odds[:, 0]
        if not by_class:
            return odds
        if self._is_calibrated:
            return np.log(self._chances(decisions))
        return decisions if self._against_rest else class_scores(decisions, k)

    def predict(self, X: Any) -> np.ndarray:
        """The class that wins most pairs; of equals the first, or with `break_ties` the one of the best score.

        With machines of one class against the rest, the class of the largest decision; with ``probability=True`` the
        most probable class.
        """
        X, k = self._validate_new(X), len(self.classes_)
        step = max(1, DECISIONS // (k * (k - 1) // 2))
        runs = [slice(i, i + step) for i in range(0, count(X), step)]
        return np.concatenate([self._label(X if len(runs) == 1 else X[run]) for run in runs])

    def _label(self, X: Any) -> np.ndarray:
        decisions, k = self._decisions(X), len(self.classes_)
        if k == 2:
            odds = self._log_odds(decisions) if self._is_calibrated else decisions
            return self.classes_[(odds[:, 0] > 0).astype(np.intp)]
        if self._is_calibrated:
            return self.classes_[self._chances(decisions).argmax(axis=1)]
        if self._against_rest:
            return self.classes_[decisions.argmax(axis=1)]
        scores = class_scores(decisions, k) if self.break_ties else votes(decisions, k)
        return self.classes_[scores.argmax(axis=1)]

    # ---- probabilities ----------------------------------------------------------------------------------------------

    def _calibrate(self, data: Training) -> Self:
        """A sigmoid for each pair, fitted to decisions of machines that have not seen the rows they decide on."""
        self.__dict__.pop("calibration_", None)
        if not self.probability:
            return self
        label, weights = data.target, np.ones(len(data.target))
        if self.weighs_probabilities:
            weights = data.weights * self.class_weight_[label]
            weights *= max(len(weights) / float(weights.sum()), 1.0)  # weights of 1/n are no n-th of a row to Platt
        with self.report_.stage("cross-fitting"):
            decisions = self._cross_fitted(data)
            questions = enumerate(self._questions(label))
            fits = [fit_sigmoid(decisions[own, j], yes[own], weights[own]) for j, (own, yes) in questions]
        self.calibration_ = np.array(fits)
        self._warn_of_falling()
        chances = self._chances(decisions)[np.arange(len(label)), label]
        loss = -float(weights @ np.log(np.maximum(chances, np.finfo(float).tiny))) / float(weights.sum())
        self.report_.notes.append(f"probabilities by cross-fitting, log loss {loss:.3g}; labels are the most probable")
        return self

    def _warn_of_falling(self) -> None:
        """Warn of probabilities that do not rise with the decisions: labels by them are turned round, or all alike."""
        falling = np.flatnonzero(self.calibration_[:, 0] <= 0)
        if not len(falling):
            return
        names = [str(one) for one in self.classes_]
        asked = names if self._against_rest else [f"{names[a]} and {names[b]}" for a, b in class_pairs(len(names))]
        more = f" (and {len(falling) - 1} more)" * (len(falling) > 1)
        given = f"probabilities of {asked[falling[0]]}{more} that do not rise with the decisions on rows left out"
        do = "give more rows or another kernel, or set probability=False"
        self.report_.warnings.append(message(type(self).__name__, given, do))
        warn(self.report_.warnings[-1])

    def _questions(self, label: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each decision its rows, and those rows for which it should be positive."""
        k = len(self.classes_)
        if self._against_rest:
            return [(np.ones(len(label), bool), label == c) for c in range(k)]
        return [((label == a) | (label == b), label == (b if k == 2 else a)) for a, b in class_pairs(k)]

    def _cross_fitted(self, data: Training) -> np.ndarray:
        """The decisions of all pairs on each row by a machine without its fold, (n, pairs)."""
        label, points = data.target, data.K.x
        factors = dict(enumerate(self.class_weight_.tolist()))
        # A copy, not a clone, since a subclass may have other parameters; each fold begins anew.
        machine: Any = copy(self)
        vars(machine).update(kernel=self.kernel_, class_weight=factors, probability=False, warm_start=False)
        if self.restricted_:  # by the same method; rows as landmarks are the same in each fold
            rows_given = not isinstance(self.landmarks, str) and np.ndim(self.X_fit_) == 2  # type: ignore[attr-defined]
            vars(machine).update(solver="nystroem", landmarks=self.X_fit_ if rows_given else "pivoted")
        out = np.empty((len(label), len(self.intercept_)))
        for train, test in folds_by_class(type(self).__name__, label):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the machine itself has said what there is to say
                machine.fit(points.among(train).rows, label[train], data.weights[train])
            out[test] = machine._decisions(points.among(test, train).rows)
        return out

    @property
    def _is_calibrated(self) -> bool:
        return "calibration_" in vars(self)

    def _log_odds(self, decisions: np.ndarray) -> np.ndarray:
        return np.asarray(decisions * self.calibration_[:, 0] + self.calibration_[:, 1])

    def _chances(self, decisions: np.ndarray) -> np.ndarray:
        odds, k = self._log_odds(decisions), len(self.classes_)
        if self._against_rest:
            return shared(odds)
        return probabilities(odds[:, 0]) if k == 2 else coupled(odds, k)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | x), (m, k): a sigmoid of each pair's decision, and of many pairs what agrees best with them all.

        Only with ``probability=True``. Labels and scores then come from the same probabilities.
        """
        return self._chances(self._decisions(self._validate_new(X)))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(class | x), (m, k)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual of each pair of classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        raise NotImplementedError
