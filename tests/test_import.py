"""``import mercer`` imports packages when a name of theirs is first used; all else is as if they had been imported."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import mercer
from mercer import KernelRidge

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "bokeh", "rich"}


def program(*lines: str) -> str:
    """What a program prints in a new process."""
    code = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def heavy(*lines: str) -> str:
    return program(*lines, f"print(sorted({HEAVY} & sys.modules.keys()))").splitlines()[-1]


def test_the_package_imports_nothing_heavy_before_it_is_used():
    assert heavy("import mercer", "dir(mercer), mercer.__all__, mercer.__version__, hasattr(mercer, 'none')") == "[]"
    assert heavy("import mercer.estimators", "dir(mercer.estimators), hasattr(mercer.estimators, 'none')") == "[]"
    assert "numpy" in heavy("import mercer", "mercer.kernels")  # the test can fail


@pytest.mark.parametrize(
    "first", ["import mercer; model = mercer.SVC()", "from mercer.sklearn.svm import SVC; model = SVC()"]
)
def test_a_first_fit_imports_only_what_it_needs(first):
    fitted = "model.fit([[0.0], [1.0]], [0, 1]).predict([[2.0]])"
    found = set(program(first, fitted, "print(*[name for name in sys.modules if name.startswith('mercer.')])").split())
    packages = {name.split(".")[1] for name in found}
    assert {"estimators", "gram", "solvers"} <= packages
    assert not packages & {"cli", "hypotheses", "io", "lab", "plots", "report", "select", "testing", "validity"}
    assert not [name for name in found if name.startswith("mercer.sklearn.") and name[15:] not in ("faces", "svm")]


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["fit", "--help"]])
def test_the_command_line_says_what_it_is_without_heavy_imports(words):
    pytest.importorskip("typer")
    assert heavy("from mercer.cli.app import run", f"run({words})") == "[]"


def test_the_table_of_names_is_that_of_the_modules():
    for name in mercer.__all__:
        if name not in mercer.PACKAGES:
            module = import_module(mercer._MODULE_OF[name])
            assert name in module.__all__
            assert getattr(mercer, name) is getattr(module, name)
    assert set(mercer.estimators.__all__) <= set(mercer.__all__)
    for module, names in mercer.estimators._MODULES.items():
        assert set(names) == set(import_module(module).__all__)  # type checkers take the latter


def test_type_checkers_see_the_names_of_the_tables():
    table = {(module, name) for module, names in mercer._NOT_ESTIMATORS.items() for name in names}
    assert seen(mercer) == table | {("mercer", name) for name in mercer.PACKAGES} | {("mercer.estimators", "*")}
    assert seen(mercer.estimators) == {(module, "*") for module in mercer.estimators._MODULES}


def seen(module: ModuleType) -> set[tuple[str, str]]:
    """What a module imports for type checkers; by another name or by the same is for others too."""
    block = next(one for one in ast.parse(inspect.getsource(module)).body if isinstance(one, ast.If))
    imported = [(one.module, name) for one in block.body for name in one.names]
    assert all(name.name in ("*", name.asname) for _, name in imported)
    return {(module, name.name) for module, name in imported}


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'KernelRigde'"):
        mercer.KernelRigde  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'KernelRigde'"):
        from mercer import KernelRigde  # noqa: F401


def test_what_imports_registered_is_there_when_it_is_needed(tmp_path):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(KernelRidge("gaussian(gamma=2)").fit([[0.0], [1.0]], [0.0, 1.0])))
    loaded = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')).kernel_.gamma)"
    every = "from mercer import *; print(KernelSearchCV.__name__, thin.__name__)"
    assert program(loaded, every).splitlines() == ["2.0", "KernelSearchCV thin"]
    engine = "print('mercer.gram' in sys.modules, end=' ')"
    lines = ["from mercer.kernels import parse", engine, "parse('gaussian(gamma=2)')([[0.0]])", engine]
    assert program(*lines, "import mercer.estimators.svc, mercer") == "False True"  # the last by a former name


def test_an_extra_that_is_missing_is_said_when_its_package_is_asked_for():
    lines = ["import importlib.util, mercer", "found = importlib.util.find_spec"]
    lines += ["importlib.util.find_spec = lambda name, *rest: None if name == 'matplotlib' else found(name, *rest)"]
    tried = ["try:", "    from mercer import plots", "except ImportError as error:", "    print(error)"]
    said = program(*lines, "print(hasattr(mercer, 'plots'))", *tried).splitlines()
    assert said == ["False", 'mercer.plots: matplotlib is not installed; pip install "mercer[plots]".']
