"""What user code does to our classes, modules and processes works as with scikit-learn's."""

import functools
import os
import pickle
import shlex
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import sklearn.gaussian_process
import sklearn.kernel_approximation
import sklearn.kernel_ridge
import sklearn.svm
from sklearn.metrics import pairwise
from sklearn.svm._classes import SVC as TheirSVC

from mercer import accelerate
from mercer.accelerate import work
from mercer.errors import InvalidInput

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)
classes = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def derived(base):
    """A subclass that overrides what its own methods or scikit-learn's call, and the parameters to show it with."""
    if base.__name__ == "SVC":

        class Turned(base):
            def decision_function(self, X):
                return -super().decision_function(X)

        return Turned(break_ties=True, decision_function_shape="ovr")
    if base.__name__ == "KernelRidge":

        class Doubled(base):
            def _get_kernel(self, X, Y=None):
                return 2 * super()._get_kernel(X, Y)

        return Doubled(kernel="rbf")

    class Still(base):
        def _constrained_optimization(self, objective, start, bounds):
            return start, 0.0

    return Still(optimizer="fmin_l_bfgs_b", kernel=sklearn.gaussian_process.kernels.RBF())


HOMES = {"SVC": "svm", "KernelRidge": "kernel_ridge", "GaussianProcessRegressor": "gaussian_process"}


@pytest.mark.parametrize("name", HOMES)
def test_methods_that_a_subclass_overrides_are_called(installed, monkeypatch, name):
    monkeypatch.setattr(work, "PROCESSES", dict.fromkeys(work.PROCESSES, (40, 1.0)))
    module = getattr(sklearn, HOMES[name])
    ours = derived(eval(f"module.{name}", {"module": module, "__name__": "user"})).fit(X, classes)
    theirs = derived(vars(module)[name]).fit(X, classes)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert f"the subclass {type(ours).__name__} overrides" in accelerate.summary()
    assert "in mercer" not in accelerate.summary()


def test_what_a_subclass_adds_leaves_the_work_to_us(installed):
    class More(sklearn.svm.SVC):
        """Another parameter, another attribute, and another text."""

        def __init__(self, more=1, C=1.0):
            super().__init__(C=C)
            self.more = more

        def __repr__(self):
            return "More()"

        def twice(self, X):
            return 2 * self.decision_function(X)

    More().fit(X, y, sample_weight=None).twice(X)
    assert "scikit-learn" not in accelerate.summary()


def test_our_methods_take_scikit_learns_models(installed):
    model = sklearn.svm.SVC.fit(TheirSVC(), X, y)
    np.testing.assert_array_equal(sklearn.svm.SVC.predict(model, X), model.predict(X))
    assert "scikit-learn" not in accelerate.summary()


def test_parameters_that_are_properties_are_overridden(installed):
    class Fixed(sklearn.svm.SVC):
        gamma = property(lambda self: 0.1, lambda self, value: None)

    Fixed().fit(X, y)
    assert "the subclass Fixed overrides gamma" in accelerate.summary()


def test_strict_refuses_what_a_subclass_overrides():
    accelerate.install(strict=True)
    try:
        with pytest.raises(InvalidInput, match="Turned overrides decision_function"):
            derived(sklearn.svm.SVC).fit(X, classes)
    finally:
        accelerate.uninstall()


def test_rules_of_size_hold_for_subclasses():
    class Mine(TheirSVC):
        pass

    class Few(sklearn.kernel_approximation.Nystroem):
        pass

    assert work.of_call("fit", Mine(), np.zeros((500, 64))) == 0.0
    assert work.of_call("fit", Few(n_components=10), np.zeros((500, 64))) == 500 * 10 * 64


def test_what_users_put_in_the_place_of_scikit_learns_is_theirs(installed, monkeypatch):
    before = pairwise.rbf_kernel

    @functools.wraps(vars(pairwise)["rbf_kernel"])
    def mine(*args):
        return "mine"

    with mock.patch("sklearn.svm.SVC") as mocked:
        assert sklearn.svm.SVC is mocked
    assert vars(sklearn.svm)["SVC"] is TheirSVC
    monkeypatch.setattr(pairwise, "rbf_kernel", mine)
    accelerate.uninstall()
    accelerate.install()
    assert pairwise.rbf_kernel(X) == "mine"
    pairwise.rbf_kernel = before  # what the user has read: scikit-learn's own code gets its own back
    assert pairwise.rbf_kernel is before
    assert vars(pairwise)["rbf_kernel"] is before.__wrapped__


class Lazy:
    shape = (object(), 3)


def failures():
    """Calls with arguments that have no size."""
    yield lambda: sklearn.svm.SVC().fit(np.array(5), y)
    yield lambda: sklearn.svm.SVC().fit(Lazy(), y)
    yield lambda: pairwise.rbf_kernel(np.array(5.0))
    for components in (None, "a"):
        model = sklearn.kernel_approximation.Nystroem(n_components=components)
        yield functools.partial(model.fit, X)


@pytest.mark.parametrize("worth", [0.0, work.WORTH])
def test_errors_of_arguments_without_a_size_are_scikit_learns(installed, monkeypatch, worth):
    def errors():
        for call in failures():
            with pytest.raises((TypeError, ValueError)) as found:
                call()
            yield type(found.value), str(found.value)

    monkeypatch.setattr(work, "WORTH", worth)
    ours = list(errors())
    accelerate.uninstall()
    assert ours == list(errors())


def test_what_is_made_for_our_classes_takes_scikit_learns_models(installed):
    @functools.singledispatch
    def name(model):
        return "another"

    name.register(sklearn.base.BaseEstimator, lambda model: "any")
    name.register(sklearn.svm.SVC, lambda model: "SVC")
    derived = type("Derived", (sklearn.svm.SVC,), {})
    loaded = pickle.loads(pickle.dumps(sklearn.svm.SVC()))
    for _ in range(2):  # `ABCMeta` keeps its answers
        assert isinstance(loaded, sklearn.svm.SVC)
        assert issubclass(type(loaded), sklearn.svm.SVC)
        assert not issubclass(type(loaded), derived | sklearn.svm.NuSVC)
        assert not issubclass(int, sklearn.svm.SVC | TheirSVC)
    models = (loaded, sklearn.svm.SVC(), derived(), sklearn.svm.NuSVC(), 3)
    assert [name(model) for model in models] == ["SVC", "SVC", "SVC", "any", "another"]


def run(folder, script, *options, arguments=("--its-own",), code=0, redirect=None):
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "mercer.accelerate", *options, "script.py", *arguments]
    if redirect:
        command = f"{shlex.join(command)} {redirect}"
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, shell=bool(redirect))
    assert done.returncode == code, done.stderr
    return done


ITSELF = """
import os, sys, __main__
os.chdir('/')
print(__file__, __main__.__file__, sys.argv, __name__)
print(__loader__.get_filename() == __file__, __builtins__.open is open)
"""


def test_a_script_finds_itself_as_in_python(tmp_path):
    path = tmp_path.resolve() / "script.py"
    said = f"{path} {path} ['script.py', '--', '--its-own'] __main__\nTrue True\n"
    assert run(tmp_path, ITSELF, arguments=("--", "--its-own")).stdout == said


@pytest.mark.parametrize("safe", [(), ("-P",)])
def test_modules_are_searched_where_python_searches(tmp_path, safe):
    here = tmp_path / "here"
    here.mkdir()
    (here / "colorsys.py").write_text("print('not this')")
    (tmp_path / "script.py").write_text("import sys, colorsys\nprint(sys.path)")
    ours, theirs = (
        subprocess.run([sys.executable, *safe, *how, "../script.py"], capture_output=True, text=True, cwd=here)
        for how in (("-m", "mercer.accelerate"), ())
    )
    assert ours.stdout == theirs.stdout != ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_the_exit_code_is_the_scripts_where_the_summary_cannot_be_written(tmp_path, redirect):
    run(tmp_path, "import sys\nsys.exit(3)", redirect=redirect, code=3)


LATE = """
import atexit, threading, time
from sklearn.svm import SVC, SVR
def late(kind):
    time.sleep(0.1)
    kind().fit([[0.0], [1.0]], [0, 1])
atexit.register(late, SVR)
threading.Thread(target=late, args=[SVC]).start()
raise ValueError("of the script")
"""


def test_what_ends_after_the_script_is_counted(tmp_path):
    said = run(tmp_path, LATE, "--strict", code=1).stderr.partition("ValueError: of the script\n")[2]
    assert {line.split()[0] for line in said.splitlines()[1:]} == {"SVC.fit", "SVR.fit"}


FORKS = """
import multiprocessing, os, sys
import mercer.accelerate
from sklearn.svm import SVC
mercer.accelerate.install(strict=True)
child = os.fork()
if not child:
    SVC().fit([[0.0], [1.0]], [0, 1])
    sys.exit()
os.waitpid(child, 0)
SVC().fit([[0.0], [1.0]], [0, 1])
multiprocessing.get_context("fork").Process(target=SVC().fit, args=([[0.0], [1.0]], [0, 1])).start()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_process_leaves_the_counts_and_the_summary_to_its_parent(tmp_path):
    said = run(tmp_path, FORKS).stderr
    assert said.count("mercer.accelerate:") == 1
    assert [line.split()[:3] for line in said.splitlines()[1:]] == [["SVC.fit", "3", "×"]]
