"""Scripts run unchanged with our classes; what ran where is said, and pickles are scikit-learn's."""

import copy
import os
import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise
from sklearn.svm._classes import SVC as TheirSVC
from sklearn.utils.estimator_checks import check_estimators_pickle

import mercer.sklearn
from mercer import accelerate
from mercer.accelerate import ledger, work
from mercer.accelerate.__main__ import main
from mercer.accelerate.imports import ANSWERED
from mercer.errors import InvalidInput

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)


def test_user_code_gets_ours_and_scikit_learn_its_own(installed):
    from sklearn.svm import SVC

    assert issubclass(SVC, TheirSVC)
    assert SVC is not TheirSVC
    assert sklearn.svm.SVC is SVC
    assert vars(sklearn.svm)["SVC"] is TheirSVC
    assert eval("sklearn.svm.SVC", {"sklearn": sklearn, "__name__": "sklearn.calibration"}) is TheirSVC
    accelerate.uninstall()
    assert sklearn.svm.SVC is TheirSVC
    assert type(sklearn.svm) is type(sys)


def test_every_answer_is_a_counterpart(installed):
    for home, names in ANSWERED.items():
        module = pytest.importorskip(home)
        for name in names:
            theirs = vars(module)[name]
            ours = eval(f"module.{name}", {"module": module, "__name__": "user"})
            assert ours is not theirs
            assert ours.__module__.startswith("sklearn" if isinstance(theirs, type) else "")
    assert set(mercer.sklearn.__all__) == {name for names in ANSWERED.values() for name in names if name[0].isupper()}


def test_models_are_scikit_learns_in_pickles_and_ours_in_copies(installed):
    model = sklearn.svm.SVC(kernel="poly").fit(X, y)
    stored = pickle.dumps(model)
    assert b"mercer" not in stored
    loaded = pickle.loads(stored)
    assert type(loaded) is TheirSVC
    np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X), rtol=1e-9)
    for twin in (copy.copy(model), copy.deepcopy(model), clone(model)):
        assert type(twin) is type(model)
    assert isinstance(TheirSVC(), sklearn.svm.SVC)
    assert not isinstance(model, pairwise.__class__)
    check_estimators_pickle("SVC", sklearn.svm.SVC())


def test_their_models_are_pickled_as_before(installed):
    from sklearn import kernel_ridge

    own = vars(kernel_ridge)["KernelRidge"]
    assert type(pickle.loads(pickle.dumps(own().fit(X, y)))) is own


def test_the_summary_says_what_ran_where_and_why(installed):
    sklearn.svm.SVC().fit(X, y).score(X, y)
    from sklearn.kernel_ridge import KernelRidge

    assert pairwise.rbf_kernel(X).shape == (40, 40)
    with pytest.warns(UserWarning, match="Singular"):
        KernelRidge(alpha=0).fit(np.ones((3, 1)), [0, 1, 1])
    lines = [line.split() for line in accelerate.summary().splitlines()[1:]]
    said = {(line[0], int(line[1]), line[4]) for line in lines if line[2] == "×"}
    expected = {("SVC.fit", 1), ("SVC.predict", 1), ("rbf_kernel", 1)}
    assert said == {(*one, "mercer") for one in expected} | {("KernelRidge.fit", 1, "scikit-learn")}
    assert "not positive definite" in accelerate.summary()


def test_strict_leaves_nothing_to_scikit_learn():
    accelerate.install(strict=True)
    try:
        with pytest.raises(InvalidInput, match="strict"):
            sklearn.svm.SVC(kernel="precomputed").fit(np.array([[1.0, 0.5], [0.0, 1.0]]), [0, 1])
        with pytest.raises(InvalidInput) as found:
            sklearn.kernel_ridge.KernelRidge(alpha=0).fit(np.ones((3, 1)), np.ones(3))
        assert str(found.value).count("KernelRidge: ") == 1
        assert ".;" not in str(found.value)
    finally:
        accelerate.uninstall()


def test_errors_are_scikit_learns(installed):
    with pytest.raises(ValueError, match="The number of classes has to be greater than one"):
        sklearn.svm.SVC().fit(X, np.ones(40))
    assert "SVC" not in accelerate.summary()


def test_little_work_is_scikit_learns_until_importing_pays(installed, monkeypatch):
    monkeypatch.setattr(work, "WORTH", 1000.0)
    monkeypatch.setattr(work, "IMPORT", 6000 * work.RATE)
    monkeypatch.setattr(work, "FEW_ROWS", 0)
    monkeypatch.setattr(work, "_spent", 0.0)
    monkeypatch.setattr(work, "_imported", lambda: False)
    sklearn.svm.SVC().fit(X[:10], y[:10])  # 10² values of 3 columns
    sklearn.svm.SVC().fit(X, y)  # 40²
    sklearn.svm.SVC().fit(X, y)
    lines = [line.strip() for line in accelerate.summary().splitlines()]
    assert "1 ×: too few kernel values to be faster" in lines
    assert "1 ×: too few kernel values so far to pay for importing mercer" in lines
    assert [line.split()[1:5] for line in lines if line.startswith("SVC.fit") and line.split()[4] == "mercer"] == [
        ["1", "×", "in", "mercer"]
    ]


def test_what_another_call_has_imported_costs_nothing(installed, monkeypatch):
    monkeypatch.setattr(work, "WORTH", 1000.0)
    monkeypatch.setattr(work, "FEW_ROWS", 0)
    monkeypatch.setattr(work, "IMPORT", 1e9)
    import_module("mercer.sklearn")
    sklearn.svm.SVC().fit(X, y)
    assert "pay for importing" not in accelerate.summary()
    assert "in mercer" in accelerate.summary()


def test_a_search_of_a_process_is_ours(installed, monkeypatch):
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor

    monkeypatch.setattr(work, "PROCESSES", dict.fromkeys(work.PROCESSES, (40, 1.0)))
    monkeypatch.setattr(work, "WORTH", 1.0)
    GaussianProcessRegressor().fit(X[:39], X[:39, 0])
    for model in (GaussianProcessRegressor().fit(X, X[:, 0]), GaussianProcessClassifier().fit(X, y)):
        assert b"mercer" not in pickle.dumps(model)
    assert np.isfinite(model.predict_proba(X)).all()
    said = {(line.split()[0], line.split()[4]) for line in accelerate.summary().splitlines()[1:] if "GaussianP" in line}
    fit, both = (
        "GaussianProcessRegressor.fit",
        ["GaussianProcessClassifier.fit", "GaussianProcessClassifier.predict_proba"],
    )
    assert said == {(fit, "mercer"), (fit, "scikit-learn"), *((one, "mercer") for one in both)}


def test_few_rows_of_a_machine_are_little_work():
    few, more = np.zeros((500, 64)), np.zeros((501, 64))
    assert [work.of_call("fit", sklearn.svm.SVC(), rows) for rows in (few, more)] == [0.0, 501 * 501 * 64]
    assert work.of_call("fit", KernelRidge(), few) > 0


def test_each_machine_of_a_process_with_classes_counts():
    from sklearn.gaussian_process import GaussianProcessClassifier

    rows, labels = np.zeros((150, 4)), np.arange(150)
    sizes = [work.of_call("fit", GaussianProcessClassifier(), rows, labels % classes) for classes in (2, 3)]
    assert sizes == [1000 * 150**2, 3 * 1000 * 150**2]
    assert work.RATE * sizes[1] > work.IMPORT  # the first fit of the rows of iris pays for importing mercer


def test_a_factor_counts_as_work():
    rows = np.zeros((3000, 1))
    svr, ridge = (work.of_call("fit", model, rows) for model in (sklearn.svm.SVR(), KernelRidge()))
    assert (svr, ridge) == (9e6, pytest.approx(9e6 + 27e6))


SCRIPT = """
import gc
import sys
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
if __name__ == "__main__":
    found = GridSearchCV(SVC(), {"C": [1, 10]}, cv=3, n_jobs=JOBS).fit(*load_iris(return_X_y=True))
    print(sys.argv[1:], type(found.best_estimator_).__name__, round(found.best_score_, 3))
    print("collects:", gc.isenabled(), "frozen:", gc.get_freeze_count() > 100_000)
"""


@pytest.mark.parametrize("jobs", [None, pytest.param(2, marks=pytest.mark.soak)])
def test_a_script_runs_unchanged(tmp_path, jobs):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("JOBS", str(jobs)))
    command = [sys.executable, "-m", "mercer.accelerate", "--strict", str(script), "--a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['--a', 'b'] SVC 0.973\ncollects: True frozen: True\n"
    fits = [line.split()[:5] for line in done.stderr.splitlines() if "SVC.fit" in line]
    assert fits == [["SVC.fit", "7", "×", "in", "mercer"]]


def test_a_script_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["accelerate", "absent.py"])
    with pytest.raises(SystemExit):
        main()
    assert "absent.py: no such file" in capsys.readouterr().err


def test_workers_have_ours_and_are_counted(installed, monkeypatch):
    reduction = pytest.importorskip("joblib.externals.loky.backend.reduction")
    model = sklearn.svm.SVC().fit(X, y)
    assert type(pickle.loads(reduction.dumps(model))) is type(model)
    owner, rest = os.environ[ledger.VARIABLE].split(":", 1)
    monkeypatch.setenv(ledger.VARIABLE, f"{int(owner) + 1}:{rest}")
    model.predict(X)  # as in another process
    monkeypatch.setenv(ledger.VARIABLE, f"{owner}:{rest}")
    assert "SVC.predict" in accelerate.summary()
