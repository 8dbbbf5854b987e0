"""A model of a table: the encoder of its columns, the estimator, and the name of the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_clusterer, is_outlier_detector
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.atomic import Atomic
from mercer.errors import InvalidInput, message
from mercer.estimators import SVC, GaussianProcessRegressor, KernelRidge, NuSVC
from mercer.estimators.base.calibration import coupled, fit_temperature, probabilities
from mercer.estimators.base.seen import share_of_the_fit
from mercer.schemas import POSITIVE, Array, Check, Count, Schema, SchemaError
from mercer.tables.encoder import TableEncoder
from mercer.tables.reader import Table
from mercer.tables.sequences import SequenceEncoder
from mercer.tables.targets import as_labels, target_numbers

__all__ = ["TableModel"]


def _has(name: str) -> Callable[[TableModel], bool]:
    """Whether the estimator of a model has this method, without which the model has none either."""
    return lambda model: hasattr(model.estimator, name)


class TableModel(Atomic, BaseEstimator):
    """A `TableEncoder` followed by an estimator, for one target column; `mercer fit` fits and saves it.

    Parameters
    ----------
    encoder : TableEncoder or SequenceEncoder
    estimator : a regressor or classifier of mercer, by default KernelRidge
    target : str
        The name of the target column.
    notes : tuple of str
        Notes for later inspection, such as the score on held-out rows.

    Attributes
    ----------
    n_rows_ : int
        Number of rows of the fit.
    temperature_ : float
        T of the class probabilities softmax(f/T) of scores f, if set by `with_temperature`.
    pair_temperature_ : float
        Instead of it, of a machine of several classes: T of the probabilities coupled from log odds f/T on all pairs.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 2.0, 4.0, 6.0]})
    >>> model = TableModel(estimator=KernelRidge("linear", alpha=1e-9, fit_intercept=True), target="y")
    >>> model.fit(frame[["x"]], frame["y"]).predict(pd.DataFrame({"x": [1.5]})).round(3)
    array([3.])
    """

    fitted: ClassVar[Schema] = Schema(
        Count("n_rows_"),
        Array("temperature_", optional=True, rules=(POSITIVE,)),
        Array("pair_temperature_", optional=True, rules=(POSITIVE,)),
        Check(
            "it has no encoder, estimator or name of a target",
            lambda model: model._parts_fit(),
            unfitted=True,
        ),
    )

    def __init__(
        self,
        encoder: TableEncoder | SequenceEncoder | None = None,
        estimator: Any = None,
        target: str = "target",
        notes: tuple[str, ...] = (),
    ) -> None:
        self.encoder = encoder
        self.estimator = estimator
        self.target = target
        self.notes = notes

    def fit(self, frame: Any, y: Any) -> Self:
        """Fit the encoder to the data frame, and the estimator to the encoded rows."""
        # Copies, so that the parts of the original model are not changed.
        self.encoder = TableEncoder() if self.encoder is None else copy(self.encoder)
        self.estimator = KernelRidge() if self.estimator is None else copy(self.estimator)
        self.estimator.fit(self.encoder.fit_transform(frame), np.asarray(y))
        self.n_rows_ = len(frame)
        return self

    @classmethod
    def of(cls, encoder: Any, estimator: Any, target: str, rows: int) -> Self:
        """The model of parts that are fitted already, the estimator on `rows` encoded rows."""
        model = cls(encoder, estimator, target)
        model.n_rows_ = rows
        return model

    @property
    def task(self) -> str:
        """What the model does: "regression" or "classification"; without a target "components", "clusters", "outliers".

        "components" are scores by `transform`, with nothing to predict.
        """
        if is_classifier(self.estimator):
            return "classification"
        if is_clusterer(self.estimator):
            return "clusters"
        if is_outlier_detector(self.estimator):
            return "outliers"
        return "regression" if hasattr(self.estimator, "predict") else "components"

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags: the kind of the estimator, and the rows of a data frame."""
        tags, inner = super().__sklearn_tags__(), get_tags(KernelRidge() if self.estimator is None else self.estimator)
        for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags.two_d_array, tags.input_tags.string, tags.input_tags.categorical = False, True, True
        tags.input_tags.allow_nan = True
        return tags

    @available_if(_has("transform"))
    def transform(self, frame: Any) -> NDArray[np.float64]:
        """The scores of each row on the components, or its distances from the clusters."""
        return np.asarray(self.estimator.transform(self._rows(frame)))

    def predict(self, frame: Any, return_std: bool = False, *, include_noise: bool = False) -> Any:
        """The target of each row of a data frame or `Table`, on request with its standard deviation.

        Parameters
        ----------
        frame : data frame or Table
        return_std : bool
            Needs a Gaussian process.
        include_noise : bool
            Whether deviations are those of new observations, and not those of f.

        Returns
        -------
        target : array of shape (m,)
        std : array of shape (m,), with `return_std`
        """
        if return_std and not self.has_deviations:
            given = f"return_std of a {type(self.estimator).__name__}"
            raise InvalidInput(message("TableModel.predict", given, "fit a GaussianProcessRegressor"))
        if hasattr(self, "pair_temperature_"):
            return np.asarray(self.classes_[self.predict_proba(frame).argmax(axis=1)])
        rows = self._rows(frame)
        assert self.estimator is not None
        if return_std:
            return self.estimator.predict(rows, return_std=True, include_noise=include_noise)
        return np.asarray(self.estimator.predict(rows))

    @property
    def has_deviations(self) -> bool:
        """Whether `predict` has standard deviations."""
        return isinstance(self.estimator, GaussianProcessRegressor)

    @property
    def _decides_on_pairs(self) -> bool:
        """Whether the estimator's scores of several classes count the pairs that a class wins."""
        machine = self.estimator
        return isinstance(machine, SVC | NuSVC) and len(machine.classes_) > 2 and not machine._against_rest

    def confidences(self, frame: Any) -> NDArray[np.float64]:
        """What `chances` makes into probabilities: the scores of classes, or the decisions on pairs of classes.

        Of several classes, machines score the number of pairs that each one wins, which says little about how sure it
        is.
        """
        if not self._decides_on_pairs:
            return self.decision_function(frame)
        pairs = copy(self.estimator).set_params(break_ties=False, decision_function_shape="ovo")
        return np.asarray(pairs.decision_function(self._rows(frame)))

    def chances(self, confidences: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(class | f): softmax(f), or what agrees best with the log odds f of all pairs."""
        return coupled(confidences, len(self.classes_)) if self._decides_on_pairs else probabilities(confidences)

    def fitted_temperature(self, confidences: NDArray[np.float64], y: Any) -> float:
        """T of P(class | f) = chances(f/T), fitted to the confidences f of rows that the model was not fitted on.

        Rows of unknown classes are ignored.
        """
        y = np.asarray(y)
        known, labels = np.isin(y, self.classes_), np.searchsorted(self.classes_, y)
        return fit_temperature(confidences[known], labels[known], self.chances)

    def with_temperature(self, temperature: float) -> Self:
        """The same model, with class probabilities chances(f/temperature), of which labels have the largest."""
        if not (math.isfinite(temperature) and temperature > 0):
            raise InvalidInput(message("TableModel", f"temperature={temperature!r}", "give a positive number"))
        model = copy(self)
        setattr(model, "pair_temperature_" if self._decides_on_pairs else "temperature_", float(temperature))
        return model

    @property
    def has_probabilities(self) -> bool:
        """Whether `predict_proba` is available."""
        set_here = hasattr(self, "temperature_") or hasattr(self, "pair_temperature_")
        return set_here or hasattr(self.estimator, "predict_proba")

    @available_if(lambda model: model.has_probabilities)
    def predict_proba(self, frame: Any) -> NDArray[np.float64]:
        """The probability of each of `classes_` for each row.

        They are `chances` of `confidences` over T if a temperature T is set, otherwise the estimator's own.
        """
        if hasattr(self, "pair_temperature_"):
            return self.chances(self.confidences(frame) / self.pair_temperature_)
        if hasattr(self, "temperature_"):  # also of machines that were saved before decisions on pairs were coupled
            return probabilities(self.decision_function(frame) / self.temperature_)
        return np.asarray(self.estimator.predict_proba(self._rows(frame)))

    @available_if(_has("decision_function"))
    def decision_function(self, frame: Any) -> NDArray[np.float64]:
        """The score of each of `classes_` for each row; for two classes the score of the second one."""
        return np.asarray(self.estimator.decision_function(self._rows(frame)))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the target."""
        return np.asarray(self.estimator.classes_)

    def score(self, frame: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² or the accuracy of the predictions; by default `y` is the target column of the frame.

        Classes are compared by name, as on the command line, and as numbers where both are numbers.
        """
        import pandas as pd
        from sklearn.metrics import accuracy_score, r2_score

        predicted = self.predict(frame)
        table = getattr(frame, "frame", frame)
        if y is None and self.target not in table.columns:
            given = f"no column {self.target!r} to compare the predictions with"
            raise InvalidInput(message("TableModel.score", given, "give y"))
        y = table[self.target] if y is None else y
        if self.task == "regression":
            return float(
                r2_score(
                    target_numbers(pd.Series(y), getattr(self.encoder, "target_form_", None)),
                    predicted,
                    sample_weight=sample_weight,
                )
            )
        names, told = (as_labels(one, self.classes_) for one in (y, predicted))
        return float(accuracy_score(names, told, sample_weight=sample_weight))

    def _explained(self, X: Any) -> tuple[Any, Any]:
        """The estimator and the encoded rows, for `explain`."""
        return self.estimator, self._rows(X)

    def _parts_fit(self) -> bool:
        """Whether the parts are an encoder and an estimator; raises SchemaError if their numbers of columns differ."""
        encoder, estimator = self.encoder, self.estimator
        if not isinstance(self.target, str) or not isinstance(estimator, BaseEstimator):
            return False
        fitted = any(name[-1:] == "_" for part in (encoder, estimator) for name in vars(part))
        if fitted and not hasattr(self, "n_rows_"):
            raise SchemaError("n_rows_ is missing")
        if not isinstance(encoder, TableEncoder):
            return isinstance(encoder, SequenceEncoder)
        rows: Any = getattr(estimator, "X_fit_", None)
        of_objects = isinstance(rows, np.ndarray) and rows.dtype == object
        made, taken = len(encoder.feature_names_out_), rows.shape[1:] if of_objects else (estimator.n_features_in_,)
        if taken != (made,):
            raise SchemaError(f"the encoder makes {made} columns and the estimator takes {taken}")
        return True

    def _rows(self, frame: Any) -> Any:
        check_is_fitted(self, "n_rows_")
        assert self.encoder is not None
        return self.encoder.transform(self._frame(frame))

    def ignored(self, frame: Any) -> list[str]:
        """The columns of a data frame or `Table` that the prediction does not use."""
        assert self.encoder is not None
        return [name for name in self.encoder.ignored(getattr(frame, "frame", frame)) if name != self.target]

    def share_of_the_fit(self, frame: Any) -> float:
        """The share of the rows of a data frame or `Table` that are equal to rows of the fit."""
        return share_of_the_fit(self.estimator, self._rows(frame), self.n_rows_)

    def unlike_the_fit(self, frame: Any) -> list[str]:
        """The values that the prediction replaces, in words: see `TableEncoder.unlike_the_fit`."""
        assert self.encoder is not None
        return self.encoder.unlike_the_fit(self._frame(frame))

    def _frame(self, table: Any) -> Any:
        """The data frame; features that are missing from an svmlight file are added as zeros."""
        if not isinstance(table, Table):
            return table
        assert self.encoder is not None
        present = set(table.columns)
        absent = [name for name in self.encoder.columns_ if name not in present]
        if table.format != "svmlight" or not absent:
            return table.frame
        if not all(name[:1] == "f" and name[1:].isdigit() for name in self.encoder.columns_):
            given = "an svmlight file for a model of a table with named columns"
            raise InvalidInput(message(table.path, given, "give a table with those columns"))
        return table.frame.reindex(columns=[*table.frame.columns, *absent], fill_value=0.0)
