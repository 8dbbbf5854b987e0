"""Every estimator on the CUDA engine, whose device is the host: the outputs of the processor, wherever the rows lie."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.engine import backend
from mercer.engine.cuda.engine import CudaEngine

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from host_device import COMPILER, ForeignArray, HostDevice

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine"),
    pytest.mark.filterwarnings("ignore"),
]
METHODS = ("predict", "transform", "decision_function", "predict_proba")
READERS = {"NumPy": (np.asarray, np.float64)}
if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.core"):
    READERS["on the device"] = ForeignArray, np.float32


def outputs(model, X):
    found = {name: np.asarray(getattr(model, name)(X)) for name in METHODS if hasattr(model, name)}
    return {name: values for name, values in found.items() if values.dtype.kind in "biuf"}


def test_every_estimator_has_the_outputs_of_the_processor(each_class, monkeypatch, shared_folder):
    """Within 1e-5, by tensor cores where entries are float32; most entries are float64, and differences below 1e-11."""
    device = HostDevice(shared_folder, 8, tensor_features=1)
    shim, planned = CudaEngine([device], backend.engine()), []
    monkeypatch.setattr(shim, "plan", lambda *given: planned.append(given) or CudaEngine.plan(shim, *given))
    monkeypatch.setattr(backend, "_cuda", lambda *_: shim)
    for one in each_class:
        if not one.table:
            continue
        table, y = (np.asarray(part) for part in one.first)
        for name, (read, dtype) in READERS.items():
            X = table.astype(dtype)
            expected = outputs(one.new.fit(X, y), X)
            planned.clear()
            mercer.use("cuda")
            try:
                model = one.new.fit(read(X), read(y) if y.dtype.kind in "biuf" else y)
                found = outputs(model, read(X))
            finally:
                mercer.use(None)
            assert planned or one.name in ("Fourier features", "polynomial sketch", "monomials"), one.name
            assert found.keys() == expected.keys()
            for method, values in expected.items():
                most = 1e-5 * np.abs(values).max()
                np.testing.assert_allclose(found[method], values, atol=most, err_msg=f"{one.name}.{method}, {name}")
