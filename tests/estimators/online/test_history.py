"""What online estimators keep of their course: f after each so many rows is that of a model that met these rows."""

import numpy as np
import pytest

from mercer import OnlineKernelClassifier, OnlineKernelRegressor, load, save
from mercer.errors import InvalidInput, MemoryExceeded
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (90, 2))
SIGNS = (X[:, 0] * X[:, 1] > 0).astype(int)
THREE = SIGNS + (X[:, 0] > 1)
VALUES = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
KERNEL, NEW = "gaussian(gamma=1.0)", RNG.uniform(-2, 2, (7, 2))

MODELS = {
    "mergers": (OnlineKernelClassifier(KERNEL, budget=8), SIGNS),
    "mergers, three classes": (OnlineKernelClassifier(KERNEL, budget=8, averaged=True), THREE),
    "projections": (OnlineKernelClassifier(KERNEL, budget=8, strategy="project"), THREE),
    "recursive": (OnlineKernelRegressor(KERNEL, budget=8), VALUES),
    "quantised": (OnlineKernelRegressor(KERNEL, budget=8, method="qklms", step_size=0.2), VALUES[:, 0]),
}


@pytest.fixture(params=[*MODELS])
def online(request):
    model, y = MODELS[request.param]

    def made(**options):
        return type(model)(**{**model.get_params(), "shuffle": False, "n_passes": 1, **options})

    return made, y


def outputs(model):
    return model.decision_function(NEW) if hasattr(model, "decision_function") else model.predict(NEW)


def classes(y):
    return {"classes": np.unique(y)} if y.dtype.kind == "i" else {}


def test_each_stage_is_the_model_that_met_so_many_rows(online):
    made, y = online
    stages = list(made(keep_history=20).fit(X, y).staged_decision_function(NEW))
    assert len(stages) == 4  # the last ten rows fill no part
    for t, stage in enumerate(stages, start=1):
        met = made().partial_fit(X[: 20 * t], y[: 20 * t], **classes(y))
        assert_close(stage, outputs(met), 1e-9)


def test_how_rows_are_cut_into_calls_makes_no_difference(online):
    made, y = online
    once = made(keep_history=20).partial_fit(X, y)
    parts = made(keep_history=20)
    for start in range(0, 90, 35):
        parts.partial_fit(X[start : start + 35], y[start : start + 35], **classes(y))
    assert len(parts.history_ends_) == 4
    for one, other in zip(once.staged_decision_function(NEW), parts.staged_decision_function(NEW), strict=True):
        assert_close(one, other, 1e-9)


def test_the_history_is_saved_and_a_fit_starts_it_again(online, tmp_path):
    made, y = online
    model = made(keep_history=30).fit(X, y)
    save(model, tmp_path / "model")
    for one, other in zip(
        model.staged_decision_function(NEW), load(tmp_path / "model").staged_decision_function(NEW), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert len(model.fit(X, y).history_ends_) == 3
    assert not hasattr(model.set_params(keep_history=False).fit(X, y), "history_")
    with pytest.raises(InvalidInput, match="staged_decision_function without a history; set keep_history=True"):
        next(model.staged_decision_function(NEW))


def test_every_row_may_be_kept():
    model = OnlineKernelRegressor("linear", keep_history=True).fit(X[:12], VALUES[:12])
    assert len(list(model.staged_predict(NEW))) == 12
    np.testing.assert_array_equal(list(model.staged_predict(NEW))[-1], model.predict(NEW))


def test_rows_of_any_kind_are_kept():
    words = ["abab", "bbaa", "aaaa", "bbbb", "abba", "baba"]
    model = OnlineKernelClassifier("spectrum(k=2)", strategy="project", keep_history=2, n_passes=1)
    stages = list(model.fit(words, [0, 1, 0, 1, 0, 1]).staged_decision_function(words))
    np.testing.assert_array_equal(stages[-1], model.decision_function(words))
    assert len(stages) == 3


def test_a_history_is_within_the_memory_budget(rng):
    rows = rng.normal(size=(2000, 50))
    model = OnlineKernelRegressor(KERNEL, nu=0.0, budget=200, keep_history=1, memory="50MB")
    with pytest.raises(MemoryExceeded, match="budget of 200"):
        model.fit(rows, rows[:, 0])
    model.set_params(keep_history=500).fit(rows, rows[:, 0])


@pytest.mark.parametrize("wrong", [-1, 0.5, "all"])
def test_a_history_of_no_number_of_rows_is_refused(wrong):
    with pytest.raises(InvalidInput, match="give False, True for every row, or a number of rows"):
        OnlineKernelClassifier(keep_history=wrong).fit(X, SIGNS)
