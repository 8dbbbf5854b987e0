"""scikit-learn's callbacks see each fit, its stages in order, and the fitted estimator at the end."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from mercer import KernelPCA, KernelRidge, KernelSearchCV
from mercer.estimators import SVC

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
X, y = load_iris(return_X_y=True)


class Recorder:
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.told.append(("begin", context.task_name, None if X is None else len(X)))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        at = None if fitted_estimator is None else fitted_estimator.predict(X[:1]).shape
        self.told.append(("end", context.task_name, at))


@pytest.mark.parametrize("model", [KernelRidge("gaussian"), SVC()])
def test_a_fit_and_its_stages_are_told_in_order(model):
    recorder = Recorder()
    known = clone(model).fit(X, y).predict(X)
    model.set_callbacks(recorder).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), known)
    told = recorder.told
    assert (told[0], told[1], told[-2], told[-1]) == ("setup", ("begin", "fit", 150), ("end", "fit", (1,)), "teardown")
    stages = [name for what, name, _ in told[2:-2] if what == "begin"]
    assert stages == list(model.report_.seconds)
    assert sorted(stages) == sorted(name for what, name, _ in told[2:-2] if what == "end")
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & set(vars(model))
    pickle.loads(pickle.dumps(model)).predict(X)


def test_a_fit_within_a_fit_is_one_task_and_a_failed_one_is_torn_down():
    recorder = Recorder()
    model = KernelPCA(2).set_callbacks(recorder)
    recorder.on_fit_task_end = lambda estimator, context: recorder.told.append("end")
    model.fit_transform(X)
    assert recorder.told.count("setup") == recorder.told.count(("begin", "fit", 150)) == 1
    recorder.told.clear()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 2), np.nan))
    assert (recorder.told[0], recorder.told[-1]) == ("setup", "teardown")
    told = len(recorder.told)
    model.set_callbacks().fit(X)
    assert (recorder.told[-1], len(recorder.told)) == ("teardown", told)


def test_progress_bars_of_scikit_learn_show_the_stages(capsys):
    pytest.importorskip("rich", reason="scikit-learn's progress bar needs rich")
    KernelRidge("gaussian").set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "KernelRidge - fit" in capsys.readouterr().out


def test_a_search_passes_its_callbacks_on():
    recorder = Recorder()
    recorder.max_propagation_depth = None
    search = GridSearchCV(KernelRidge("gaussian"), {"alpha": [0.1, 1.0]}, cv=2)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this version of GridSearchCV has no callbacks")
    search.set_callbacks(recorder).fit(X, y)
    assert sum(what == ("end", "fit", (1,)) for what in recorder.told) >= 5


def test_a_search_here_tells_the_stages_of_its_fits():
    recorder = Recorder()
    KernelSearchCV(KernelRidge("gaussian"), {"alpha": [0.1, 1.0]}, cv=2).set_callbacks(recorder).fit(X, y)
    assert (recorder.told[1], recorder.told[-2]) == (("begin", "fit", 150), ("end", "fit", (1,)))
    assert ("begin", "solve", None) in recorder.told
