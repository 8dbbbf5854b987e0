"""What earlier versions wrote, this one reads: pickles, model files and the ledger of a search (`earlier/write.py`).

Numbers are compared to 1e-9 of the largest, not to the bit, because they were computed on one machine: another BLAS or
instruction set adds up in another order, and coefficients of up to some 10² times kernel values near 1 turn a rounding
of 1e-16 in each term into up to 1e-13, or 1e-10 where eigenvectors with gaps of 1e-3 are between. On one machine the
outputs are the same to the bit.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mercer
from mercer.former_names import RENAMED, former_name
from mercer.kernels import Kernel

FOLDER = Path(__file__).resolve().parent / "earlier"
VERSIONS = sorted(one.name for one in FOLDER.iterdir() if one.is_dir() and one.name[0].isdigit())
OF_MODELS = (
    *("ridge", "svm", "components", "classes", "clusters", "online", "features", "search"),
    *("words", "series", "sets", "table", "matrix", "repaired"),
)
REMOVED = {"ASkotch", "ASkotchState", "Forgetron", "ForgetronState"}
NEEDS = {"table": "pandas"}


def writer():
    """The module that wrote the files."""
    spec = importlib.util.spec_from_file_location("earlier_write", FOLDER / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(version, name):
    """The contents of a pickle; skipped where this NumPy cannot read that one's arrays at all."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", getattr(np, "exceptions", np).VisibleDeprecationWarning)
            return pickle.loads((FOLDER / version / f"{name}.pickle").read_bytes())
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("numpy"):
            pytest.skip(f"NumPy {np.__version__} does not read what another version of it wrote: {error}")
        raise


def assert_same(found, expected):
    found = np.asarray(found)
    assert found.dtype.kind == expected.dtype.kind
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max(initial=0.0))


def assert_says(model, rows, outputs):
    assert outputs
    for method, expected in outputs.items():
        assert_same(getattr(model, method)(rows), expected)


@pytest.mark.parametrize("name", OF_MODELS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_pickled_models(version, name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    kept = read(version, name)
    for one, model in kept["models"].items():
        assert_says(model, kept["rows"], kept["outputs"][one])
        assert type(pickle.loads(pickle.dumps(model))) is type(model)


@pytest.mark.parametrize("name", OF_MODELS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_reports_in_pickled_models(version, name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    reports = [model.report_ for model in read(version, name)["models"].values() if hasattr(model, "report_")]
    for report in reports:
        assert report.kernel in str(report)
        assert repr(report.continued()) == repr(report)  # some have NaN, which is not equal to itself


def test_a_model_of_a_removed_strategy_predicts_and_names_its_successor(tmp_path):
    pytest.importorskip("safetensors")
    kept = read("0.1.0", "online")
    model = kept["models"]["forget"]
    mercer.save(model, tmp_path / "model.mercer")
    assert_says(mercer.load(tmp_path / "model.mercer"), kept["rows"], kept["outputs"]["forget"])
    with pytest.raises(mercer.errors.InvalidInput, match='removed: use "project"'):
        model.partial_fit(kept["rows"], np.zeros(len(kept["rows"])))


@pytest.mark.parametrize("version", VERSIONS)
def test_pickled_kernels(version):
    kept = read(version, "kernels")
    assert [repr(kernel) for kernel in kept["kept"]] == kept["written"]
    assert kept["kept"] == writer().all_kernels()


@pytest.mark.parametrize("version", VERSIONS)
def test_pickled_results(version):
    kept = read(version, "results")
    assert {name: repr(one) for name, one in kept["kept"].items()} == kept["written"]
    solution = kept["kept"]["unfinished solution"]
    system = mercer.solvers.LinearSystem(mercer.operators.Dense(writer().KERNEL(writer().X) + np.eye(20)), writer().Y)
    ended = mercer.solvers.solve(mercer.solvers.ConjugateGradients(), system, state=solution.state)
    whole = mercer.solvers.solve(mercer.solvers.ConjugateGradients(), system)
    assert ended.steps == whole.steps
    assert_same(ended.x, whole.x)


@pytest.mark.parametrize("version", VERSIONS)
def test_pickled_operators(version):
    kept = read(version, "operators")
    for one, expected in zip(kept["kept"], kept["arrays"], strict=True):
        assert_same(one.toarray(), expected)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_model_files(version):
    pytest.importorskip("safetensors")
    pytest.importorskip("pandas")
    kept = read(version, "files")
    assert len(kept["rows"]) > 8
    for name, rows in kept["rows"].items():
        assert_says(mercer.load(FOLDER / version / f"{name}.mercer"), rows, kept["outputs"][name])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_search_goes_on(version, tmp_path):
    written = writer()
    shutil.copy(FOLDER / version / "ledger.json", tmp_path / "ledger.json")
    kept = json.loads((tmp_path / "ledger.json").read_text())["found"]
    search = written.search(tmp_path / "ledger.json").fit(written.X, written.Y[:, 0])
    found, scores = search.cv_results_["mean_test_score"], read(version, "ledger")["scores"]
    assert 0 < len(kept) < len(found)
    assert {np.mean(one["test_score"]) for one in kept.values()} <= set(found)
    np.testing.assert_allclose(found, scores, rtol=1e-6)  # those that were left are fits of this version


@pytest.mark.parametrize("version", VERSIONS)
def test_every_public_class_is_found_where_it_was(version):
    """And fingerprints name those of kernels and estimators as they did."""
    for module, names in json.loads((FOLDER / version / "classes.json").read_text()).items():
        for name in set(names) - REMOVED:
            kind = getattr(importlib.import_module(module), name)
            assert kind.__name__ == RENAMED.get(name, name)
            if issubclass(kind, Kernel | BaseEstimator):
                assert former_name(kind.__module__, name) == module


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_former_names_of_classes_warn(name):
    module = mercer.approx if hasattr(mercer.approx, RENAMED[name]) else mercer.solvers
    with pytest.warns(FutureWarning, match=f"{name} is now {RENAMED[name]}"):
        assert getattr(module, name) is getattr(module, RENAMED[name])
