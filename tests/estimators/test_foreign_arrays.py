"""Arrays of other libraries, by DLPack or `__array__`, in every estimator: the same results, and no copies."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
METHODS = ("predict", "transform", "decision_function", "predict_proba", "score")


class ByDLPack:
    """An array with DLPack's two methods and nothing else."""

    def __init__(self, values: Any, device: tuple[int, int] | None = None) -> None:
        self.values, self.on = np.asarray(values), device

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options if self.on is None else {})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.on or self.values.__dlpack_device__()


class ByArray:
    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype=dtype)


def torch_tensor(values: Any) -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: tensors in estimators are NOT tested")
    return torch.from_numpy(np.array(values))


def tracked_tensor(values: Any) -> Any:
    """A tensor within a computation that torch will differentiate."""
    found = torch_tensor(values)
    return found.requires_grad_(True) * 1.0 if found.is_floating_point() else found


def arrow(values: Any) -> Any:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its tables in estimators are NOT tested")
    values = np.asarray(values)
    return pa.table({f"x{j}": column for j, column in enumerate(values.T)}) if values.ndim == 2 else pa.array(values)


KINDS = {"torch": torch_tensor, "torch, tracked": tracked_tensor, "DLPack": ByDLPack, "array": ByArray, "Arrow": arrow}


def outputs(model: Any, X: Any, y: Any) -> dict[str, np.ndarray]:
    found = {name: getattr(model, name) for name in METHODS if hasattr(model, name)}
    return {name: np.asarray(one(X, y) if name == "score" else one(X)) for name, one in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_reads_them(each_class, kind):
    read = KINDS[kind]
    for one in each_class:
        if not one.table:
            continue
        X, y = one.first
        expected = outputs(one.new.fit(X, y), X, y)
        model = one.new.fit(read(X), read(y))
        found = outputs(model, read(X), read(y))
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"{one.name}, {name}")
        if kind == "Arrow":
            assert list(model.feature_names_in_) == ["x0", "x1", "x2"], one.name


def test_every_estimator_reads_weights(each_weighted):
    model, (X, y) = each_weighted.new, each_weighted.first
    weights = np.linspace(0.5, 2.0, len(X))
    expected = outputs(model.fit(X, y, sample_weight=weights), X, y)
    found = outputs(each_weighted.new.fit(ByDLPack(X), ByDLPack(y), sample_weight=ByDLPack(weights)), X, y)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("kind", ["torch", "DLPack"])
def test_rows_are_not_copied(kind):
    X = np.random.default_rng(0).standard_normal((20, 3))
    given = KINDS[kind](X)
    own = np.from_dlpack(given)
    assert np.shares_memory(mercer.KernelRidge(Gaussian(0.5)).fit(given, X[:, 0]).X_fit_, own)


def test_kernels_and_operators_read_them():
    X = np.random.default_rng(0).standard_normal((20, 3))
    for read in (ByDLPack, ByArray):
        np.testing.assert_array_equal(Gaussian(0.5)(read(X), read(X[:4])), Gaussian(0.5)(X, X[:4]))
        np.testing.assert_array_equal(mercer.KernelOperator(Gaussian(0.5), read(X)).toarray(), Gaussian(0.5)(X))


def test_half_precision_of_torch():
    X = np.random.default_rng(0).integers(-8, 8, (20, 3)) / 8.0  # numbers that bfloat16 has
    rows = torch_tensor(X).bfloat16()
    model = mercer.SVR().fit(rows, X[:, 0])
    assert model.X_fit_.dtype == np.float32
    np.testing.assert_allclose(model.predict(rows), mercer.SVR().fit(X, X[:, 0]).predict(X), atol=1e-5)


@pytest.mark.parametrize("estimator", [mercer.SVC(), mercer.KernelPCA(), mercer.MonomialFeatures(), mercer.KernelCCA()])
def test_arrays_on_a_device_are_refused_in_a_line(estimator, monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = X[:, :1] if isinstance(estimator, mercer.KernelCCA) else (X[:, 0] > 0)
    estimator.fit(X, y)
    away, method = ByDLPack(X, (2, 0)), getattr(estimator, "transform", None) or estimator.predict
    calls = [lambda: estimator.fit(away, y), lambda: method(away)]
    if not isinstance(estimator, mercer.MonomialFeatures):  # which ignores y
        calls.append(lambda: estimator.fit(X, ByDLPack(y, (2, 0))))
    for fails in calls:
        with pytest.raises(InvalidInput, match=r"an array on the device.*copy it to the host.*mercer\.use\(\"cuda\"\)"):
            fails()
    monkeypatch.setenv("MERCER_ENGINE", "cuda")  # its rows come from the host
    read = mercer.points.on_host(ByDLPack(X, (3, 0)), "SVC")
    assert np.shares_memory(read, X)


def test_numbers_that_numpy_lacks_are_refused():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: sparse tensors are NOT tested")
    with pytest.raises(InvalidInput, match="SVC: a Tensor that NumPy cannot read"):
        mercer.SVC().fit(torch.eye(4).to_sparse(), [0, 1, 0, 1])


DISPATCHED = """
import sys, warnings
import numpy as np, torch
from sklearn import config_context
warnings.simplefilter("ignore")
sys.path.insert(0, {folder!r})
import conftest
for one in conftest.one_of_each():
    if not one.table:
        continue
    X, y = one.first
    expected = one.new.fit(X, y)
    with config_context(array_api_dispatch=True):
        for read in (np.asarray, torch.from_numpy):
            model = one.new.fit(read(X), read(y))
            for name in {methods!r}:
                if hasattr(model, name):
                    given, plain = ((read(X), read(y)), (X, y)) if name == "score" else ((read(X),), (X,))
                    found, same = getattr(model, name)(*given), getattr(expected, name)(*plain)
                    assert isinstance(found, (np.ndarray, float)), (one.name, name, type(found))
                    np.testing.assert_array_equal(found, same, err_msg=one.name + name)
print("all")
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: dispatch is NOT tested"
)
def test_dispatch_by_arrays_changes_nothing():
    """In a process of its own: SciPy asks for its variable when it is imported."""
    code = DISPATCHED.format(folder=os.path.dirname(__file__), methods=METHODS)
    settings = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=settings)
    assert done.stdout.strip() == "all", done.stderr


def test_texts_of_arrow_are_labels_without_a_warning():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: its texts as labels are NOT tested")
    X = np.random.default_rng(0).normal(size=(40, 2))
    names = np.where(X[:, 0] > 0, "a", "b")
    expected = mercer.SVC().fit(X, names).predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (pa.array(names), pa.chunked_array([names[:10], names[10:]])):
            assert np.array_equal(mercer.SVC().fit(X, given).predict(X), expected)
        ridge = mercer.KernelRidge().fit(X, pa.array(X[:, 1]))
    assert np.array_equal(ridge.dual_coef_, mercer.KernelRidge().fit(X, X[:, 1]).dual_coef_)
