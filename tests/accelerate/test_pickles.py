"""Proxies are pickled by name, everywhere; between joblib's processes they stay ours."""

import copy
import functools
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_ridge
import sklearn.svm
from sklearn.metrics import pairwise
from sklearn.svm._classes import SVC as TheirSVC

from mercer import accelerate

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)


def proxies():
    own = sklearn.kernel_ridge.KernelRidge, sklearn.decomposition.KernelPCA
    return [sklearn.svm.SVC, *own, pairwise.laplacian_kernel, pairwise.pairwise_kernels]


@pytest.mark.parametrize("dumps", [pickle.dumps, pickle._dumps, cloudpickle.dumps])
def test_proxies_are_pickled_as_what_their_names_give(installed, dumps):
    ours = proxies()
    stored = dumps(ours)
    assert b"mercer" not in stored
    assert all(one is other for one, other in zip(pickle.loads(stored), ours, strict=True))
    made = pickle.loads(dumps(functools.partial(sklearn.svm.SVC, C=2)))()
    assert (type(made), made.C) == (sklearn.svm.SVC, 2)
    accelerate.uninstall()
    assert pickle.loads(stored) == proxies()
    assert pickle.loads(stored)[0] is TheirSVC


def test_joblibs_processes_get_proxies_whatever_imports_give_there(installed):
    reduction = pytest.importorskip("joblib.externals.loky.backend.reduction")
    ours, stored = proxies(), reduction.dumps(proxies())
    accelerate.uninstall()
    assert all(one is other for one, other in zip(pickle.loads(stored), ours, strict=True))


def test_models_with_a_kernel_of_ours_are_pickled(installed):
    model = sklearn.svm.SVC(kernel=pairwise.laplacian_kernel).fit(X, y)
    stored = pickle.dumps(model)
    assert b"mercer" not in stored
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), model.predict(X))
    assert copy.deepcopy(model).kernel is copy.copy(model.kernel) is pairwise.laplacian_kernel
    assert repr(model.kernel).startswith("<function laplacian_kernel")


def test_classes_that_the_user_has_derived_are_pickled_as_others(installed, monkeypatch):
    class Local(sklearn.svm.SVC):
        pass

    twin = cloudpickle.loads(cloudpickle.dumps(Local().fit(X, y)))
    assert type(twin) is Local
    derived = type("Derived", (sklearn.svm.SVC,), {"__module__": __name__})
    monkeypatch.setattr(sys.modules[__name__], "Derived", derived, raising=False)
    assert pickle.loads(pickle.dumps(derived)) is derived
    assert type(pickle.loads(pickle.dumps(derived().fit(X, y)))) is derived


def test_a_function_of_ours_is_a_method_where_a_function_is(installed):
    class Rows:
        values = pairwise.rbf_kernel

        def __len__(self):
            return 2

        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    assert Rows.values is pairwise.rbf_kernel
    assert Rows().values().shape == (2, 2)


SCRIPT = """
from joblib import Parallel, delayed
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
X, y = load_iris(return_X_y=True)
class My(SVC):
    pass
def run(C, of=None):
    return (of or SVC)(C=C).fit(X, y).score(X, y) > 0.9
if __name__ == "__main__":
    print(all(Parallel(n_jobs=2)(delayed(run)(C) for C in (1, 2, 3))))
    print(all(Parallel(n_jobs=2)(delayed(run)(1, of) for of in (SVC, My))))
    print(cross_val_score(My(), X, y, cv=2, n_jobs=2).min() > 0.9)
    print(GridSearchCV(SVC(kernel=laplacian_kernel), {"C": [1, 2]}, cv=2, n_jobs=2).fit(X, y).best_score_ > 0.9)
"""


@pytest.mark.slow
def test_scripts_with_processes_run_and_are_counted(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mercer.accelerate", "--strict", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n" * 4
    fits = [line.split()[:5] for line in done.stderr.splitlines() if "SVC.fit" in line]
    assert fits == [["SVC.fit", str(3 + 2 + 2 + 5), "×", "in", "mercer"]]


FORKED = """
import multiprocessing
from sklearn.datasets import load_iris
from sklearn.svm import SVC
X, y = load_iris(return_X_y=True)
def run(of):
    return of is SVC and of().fit(X, y).score(X, y) > 0.9
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(run, [SVC, SVC]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_forked_workers_are_counted(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FORKED)
    command = [sys.executable, "-m", "mercer.accelerate", "--strict", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True]\n"
    assert "SVC.fit" in done.stderr
