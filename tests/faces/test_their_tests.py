"""scikit-learn's own tests pass with mercer's classes in the place of its own, but for those in docs/sklearn.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).resolve().parents[2]

DIFFER = {"test_svm::test_svr_errors", "test_kernel_pca::test_precomputed_kernel_not_psd[randomized]"}
"""The tests that fail, each with its reason in docs/sklearn.md."""

SHORT = ["svm.tests.test_svm", "decomposition.tests.test_kernel_pca", "tests.test_kernel_ridge"]
SHORT += ["tests.test_kernel_approximation"]
LONG = ["svm.tests.test_sparse", "gaussian_process.tests.test_gpr", "gaussian_process.tests.test_gpc"]
LEFT_OUT = "not array_api and not polynomial_count_sketch and not solvers_equivalence and not gridsearch"
"""Of arrays that are not NumPy's, of classes that are scikit-learn's own, and slow ones."""


def outcomes(folder, modules, *options):
    """What became of each test of these modules of scikit-learn, which run in a process of their own."""
    file, paths = folder / "outcomes.json", [str(ROOT / "src"), str(Path(__file__).parent)]
    names = [f"sklearn.{one}" for one in modules]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "swap_classes", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(Path(sklearn.__file__).parent)]
    environment = os.environ | {"OUTCOMES": str(file), "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([*command, *options, "--pyargs", *names], cwd=folder, env=environment, capture_output=True)
    assert file.exists(), done.stdout.decode()
    return json.loads(file.read_text())


def failed(found):
    return {name for name, outcome in found.items() if outcome == "failed"}


def test_their_tests(tmp_path):
    pytest.importorskip("sklearn.svm.tests")
    found = outcomes(tmp_path, SHORT, "-k", LEFT_OUT)
    assert len(found) > 140
    assert failed(found) == DIFFER & found.keys()


@pytest.mark.soak
def test_all_their_tests(tmp_path):
    pytest.importorskip("sklearn.svm.tests")
    found = outcomes(tmp_path, [*SHORT, *LONG])
    assert len(found) > 600
    assert failed(found) == DIFFER


def test_each_difference_is_documented():
    page = (ROOT / "docs" / "sklearn.md").read_text(encoding="utf-8")
    assert not [name for name in DIFFER if f"`{name}`" not in page]
