"""The base of classifiers by scores: labels, weights of rows and classes, and the class of the largest score."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators.base.compression import OUTPUTS, Compressible
from mercer.mixins import ClassifierMixin
from mercer.schemas import SORTED, Array, Schema, Size

__all__ = ["CLASSES", "ScoreClassifier", "class_factors", "require_classes", "top_class"]


def top_class(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of the largest score of each row, (m, c); for scores (m,) the second class if they are above 0.

    >>> top_class(np.array([-1.0, 2.0]), np.array(["a", "b"]))
    array(['a', 'b'], dtype='<U1')
    """
    return np.asarray(classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])


def require_classes(who: str, classes: np.ndarray, of: str = "") -> None:
    """Refuse fewer than two classes."""
    if len(classes) < 2:
        given = f"only one class, {classes.tolist()}{of}"
        raise InvalidInput(message(who, given, "give rows of at least two classes"))


def class_factors(who: str, class_weight: Any, classes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The factor of each class by which `class_weight` multiplies its rows; "balanced" is proportional to 1/`mass`.

    As in scikit-learn a class that a dict leaves out has 1, but a dict may not leave classes out and name others.
    Classes are balanced with those that have a weight.

    >>> class_factors("SVC", "balanced", np.array([0, 1]), np.array([1, 3])).round(3)
    array([2.   , 0.667])
    >>> class_factors("SVC", {"b": 5.0}, np.array(["a", "b"]), np.array([1, 3]))
    array([1., 5.])
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        there = mass > 0
        return np.divide(mass.sum() / there.sum(), mass, out=np.ones(len(mass)), where=there)
    known = classes.tolist()
    if not isinstance(class_weight, Mapping):
        do = f'give {{class: factor}} of the classes {str(known[:5])[1:-1]}, "balanced", or None'
        raise InvalidInput(message(who, f"class_weight={class_weight!r:.60}", do))
    absent = [one for one in known if one not in class_weight]
    others = [one for one in class_weight if one not in known]
    if absent and others:
        given = f"class_weight names {others[0]!r}, which is not a class, and leaves out the class {absent[0]!r}"
        raise InvalidInput(message(who, given, f"name the classes as they are in y: {str(known[:5])[1:-1]}"))
    for one, factor in class_weight.items():
        number = isinstance(factor, Real) and not isinstance(factor, bool | np.bool_)
        if not (number and 0 < float(factor) < np.inf):
            do = "give a finite number > 0; to leave a class out, leave out its rows"
            raise InvalidInput(message(who, f"class_weight has {factor!r} for the class {one!r}", do))
    return np.array([float(class_weight.get(one, 1.0)) for one in known])


CLASSES = Schema(
    Array("classes_", "classes", np.generic, rules=(SORTED,)),
    Size("*targets", lambda _, sizes: (1,) if sizes["classes"] == 2 else (sizes["classes"],)),
)
"""A score for each class; with two classes, for the second only."""


class ScoreClassifier(ClassifierMixin, Compressible):
    """f(x) + b, a column for each class, or for two classes the second's only; the largest score wins."""

    fitted: ClassVar[Schema] = Compressible.fitted + CLASSES + OUTPUTS

    class_weight: Any
    dual_coef_: np.ndarray
    intercept_: Any

    def _encoded(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows that have a weight, the places of their classes in `classes_`, and the weights by `class_weight`."""
        if not self._space().numbered:
            X, y, weights = self._with_weight(X, y, weights)
        self.classes_, labels = np.unique(y, return_inverse=True)
        require_classes(type(self).__name__, self.classes_)
        if self.class_weight is not None:
            mass = np.bincount(labels, weights)
            factor = class_factors(type(self).__name__, self.class_weight, self.classes_, mass)[labels]
            weights = factor if weights is None else weights * factor
        return X, labels, weights

    def _decide(self, X: Any) -> np.ndarray:
        return np.asarray(self._expanded(X) + self.intercept_)

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) + b: of shape (m,) for two classes (positive: the second), of shape (m, c) otherwise."""
        scores = self._decide(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score."""
        return top_class(self.decision_function(X), self.classes_)
