"""Schemas tell what is as declared from what is not, and the check that estimators owe them can fail."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer.io import codec, load
from mercer.io.consistency import check_consistent
from mercer.kernels import Gaussian, Precomputed, Spectrum
from mercer.schemas import (
    NON_NEGATIVE,
    POSITIVE,
    SORTED,
    Array,
    Check,
    Count,
    Elements,
    Indices,
    Part,
    Record,
    Rows,
    Schema,
    SchemaError,
    Size,
    Sizes,
    Texts,
    Value,
)
from mercer.testing import check_schema

THREE = np.zeros(3)


def holds(field, value, model=None, **sizes):
    known = Sizes()
    for symbol, size in sizes.items():
        known.set("given", symbol, size)
    try:
        field.check(model, {field.name: value}, known)
    except SchemaError:
        return False
    return True


CASES = [
    (Array("a_", "n"), [THREE], [np.zeros(2), np.zeros((3, 1)), np.float64(1), [0.0, 0.0, 0.0], "text", None]),
    (Array("a_", "n n"), [np.zeros((3, 3))], [np.zeros((3, 2)), np.zeros((2, 2)), THREE]),
    (Array("a_", "n+1 2"), [np.zeros((4, 2))], [np.zeros((3, 2)), np.zeros((4, 3)), np.zeros((4, 2, 1))]),
    (Array("a_", "n *t"), [THREE, np.zeros((3, 2)), np.zeros((3, 2, 2))], [np.zeros(2), np.float64(1)]),
    (Array("a_", "*t n"), [THREE, np.zeros((2, 3))], [np.zeros((3, 2))]),
    (Array("a_"), [1.0, np.float64(1)], [1, True, THREE, "1"]),
    (Array("a_", "n", np.integer), [np.arange(3), np.arange(3, dtype=np.uint8)], [THREE, THREE > 0]),
    (Array("a_", "n", (np.object_, np.str_)), [np.array(["a", "b", "c"]), np.array([1, 2, 3], object)], [THREE]),
    (Array("a_", "n"), [THREE], [np.array([0, np.nan, 0]), np.array([np.inf, 0, 0])]),
    (Array("a_", "n", finite=False), [THREE, THREE * np.nan], [np.zeros(2)]),
    (Array("a_", "n", rules=(NON_NEGATIVE,)), [THREE], [THREE - 1]),
    (Array("a_", "n", rules=(POSITIVE,)), [THREE + 1], [THREE]),
    (Array("a_", "n", np.generic, rules=(SORTED,)), [np.array(["a", "b", "c"])], [THREE, np.array([1, 3, 2])]),
    (Array("a_", "n", nullable=True), [THREE, None], [np.zeros(2)]),
    (Indices("a_", "n", of="d"), [np.array([0, 1, 1])], [np.array([0, 1, 2]), np.array([-1, 0, 1]), THREE]),
    (Count("a_"), [0, 5, np.int64(5)], [-1, True, 1.0, "1"]),
    (Count("a_", "n"), [3], [2]),
    (Value("a_", (str, dict)), ["text", {}], [1, None]),
    (Elements("a_", "n"), [[1, 2, 3]], [[1], (1, 2, 3), THREE]),
    (Texts("a_", "n"), [["a", "b", "c"]], [["a", "b"], ["a", "b", 1], "abc"]),
    (Texts("a_", "n", of_lists=True), [[["a"], [], ["b"]]], [["a", "b", "c"], [["a"], [], [1]], [["a"]]]),
    (Part("a_"), [BaseEstimator()], ["text", BaseEstimator]),
    (Record("a_", (Array("x", "n"), Count("y", optional=True))), [{"x": THREE}, {"x": THREE, "y": 1}, (THREE, 1)],
     [{"y": 1}, {"x": np.zeros(2)}, {"x": THREE, "z": 1}, (THREE,), [THREE, 1], 1]),
]  # fmt: skip


@pytest.mark.parametrize(("field", "good", "bad"), CASES, ids=lambda one: repr(one)[:40])
def test_fields_take_what_they_declare(field, good, bad):
    for value in good:
        assert holds(field, value, n=3, d=2), value
    for value in bad:
        assert not holds(field, value, n=3, d=2), value


MATRIX = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("kernel", "good", "bad"),
    [
        (Gaussian(), [MATRIX, sp.csr_array(MATRIX)], [MATRIX.T, THREE, ["a", "b", "c"], MATRIX.astype(object), 1]),
        (Precomputed(), [np.array([0, 1, 1])], [np.array([0, 1, 2]), MATRIX, THREE]),
        (Spectrum(1), [["a", "b", "c"], np.array(["a", "b", "c"], object)], [["a"], 1]),
    ],
)
def test_rows_are_such_as_the_kernel_takes(kernel, good, bad):
    model = SimpleNamespace(kernel_=kernel)
    assert all(holds(Rows("a_"), value, model, n=3, d=2) for value in good)
    assert not any(holds(Rows("a_"), value, model, n=3, d=2) for value in bad)


class Mean(BaseEstimator):
    """The mean of the columns, and the number of rows."""

    fitted: ClassVar[Any] = Schema(
        Count("n_features_in_", "d"),
        Count("n_rows_"),
        Array("mean_", "d"),
        Array("above_", "d", optional=True),
        Size("d", lambda model, _: len(model.mean_)),
        Check("the mean of no rows", lambda model: model.n_rows_ > 0),
    )

    def fit(self, X):
        self.n_features_in_, self.n_rows_, self.mean_ = X.shape[1], len(X), X.mean(axis=0)
        return self


def test_a_schema_is_asked_of_fitted_models():
    Mean.fitted.check(Mean())
    model = Mean().fit(MATRIX)
    Mean.fitted.check(model)
    for change in ({"mean_": THREE}, {"n_rows_": 0}, {"other_": 1}, {"above_": THREE}, {"mean_": None}):
        changed = Mean()
        vars(changed).update(vars(model) | change)
        with pytest.raises(SchemaError, match=min(change) if min(change) != "n_rows_" else "the mean of no rows"):
            Mean.fitted.check(changed)
    for name in ("n_features_in_", "n_rows_", "mean_"):
        changed = Mean()
        vars(changed).update({key: one for key, one in vars(model).items() if key != name})
        with pytest.raises(SchemaError, match=f"{name} is missing"):
            Mean.fitted.check(changed)


def test_models_within_a_model_are_asked_too():
    inner = Mean().fit(MATRIX)
    inner.mean_ = THREE
    outer = Mean().fit(MATRIX)
    outer.set_params = [("step", inner)]
    with pytest.raises(SchemaError, match="Mean: mean_"):
        check_consistent(outer)


# ---- the contract can be broken --------------------------------------------------------------------------------------


class Undeclared(Mean):
    def fit(self, X):
        super().fit(X).note_ = "left behind"
        return self


class Missing(Mean):
    def fit(self, X):
        del super().fit(X).n_rows_
        return self


class OtherShape(Mean):
    def fit(self, X):
        self.mean_ = super().fit(X).mean_[1:]
        return self


class OtherDtype(Mean):
    def fit(self, X):
        self.mean_ = super().fit(X).mean_.astype(np.float32)
        return self


class NoSchema(Mean):
    fitted: ClassVar[Any] = None


class OpenSchema(Mean):
    fitted: ClassVar[Any] = Schema(*Mean.fitted.entries, closed=False)


class Drifting(Mean):
    """Whose arrays change when they are set once more."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value + 1e-16 if name == "mean_" else value)


@dataclass(frozen=True)
class Careless(Array):
    """A field that checks the shape alone."""

    def check_value(self, value, model, sizes):
        sizes.match(self.name, self.shape, np.shape(value))


class Unchecked(Mean):
    fitted: ClassVar[Any] = Schema(Count("n_features_in_", "d"), Count("n_rows_"), Careless("mean_", "d"))


FAULTS = {
    Undeclared: "something else than it declares: the attribute 'note_'",
    Missing: "n_rows_ is missing",
    OtherShape: "mean_: d is 2",
    OtherDtype: "mean_ has dtype float32",
    NoSchema: "does not declare",
    OpenSchema: "allows attributes",
    Drifting: "not the same after save and load",
    Unchecked: "is saved with mean_ of another dtype",
}


@pytest.fixture
def known(monkeypatch):
    """Model files know the classes of this file."""
    classes = codec.registry() | {one.__name__: one for one in (Mean, Kept, *FAULTS)}
    for module in ("codec", "models"):
        monkeypatch.setattr(f"mercer.io.{module}.registry", lambda: classes)


def test_a_sound_estimator_passes(known):
    assert check_schema(Mean(), np.eye(3)) > 10


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__)
def test_every_fault_is_found(known, fault):
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_schema(fault(), np.eye(3))


def test_a_reader_that_does_not_ask_is_found(known, monkeypatch):
    """`save` refuses what was changed, and `load` takes it."""

    def without_asking(path):
        with monkeypatch.context() as patch:
            patch.setattr("mercer.io.models.check_consistent", lambda model: None)
            return load(path)

    monkeypatch.setattr("mercer.testing.schemas.load", without_asking)
    with pytest.raises(AssertionError, match="is loaded with"):
        check_schema(Mean(), np.eye(3))


class Kept(BaseEstimator):
    """Keeps rows, whose number nothing else tells."""

    fitted: ClassVar[Any] = Schema(Count("n_features_in_", "d"), Value("kernel_", Gaussian), Rows("rows_"))

    def fit(self, X):
        self.n_features_in_, self.kernel_, self.rows_ = X.shape[1], Gaussian(), X
        return self


def test_a_number_of_rows_that_nothing_tells_may_be_any(known):
    assert check_schema(Kept(), np.eye(3)) > 5
