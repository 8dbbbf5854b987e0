"""Arrays that lie on the device already: a made-up library's, whose memory is the host's, are read where they are."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import SVC, KernelKMeans, KernelOperator, KernelPCA, KernelRidge
from mercer.engine import backend
from mercer.engine.cuda.arrays import FLOATS, DeviceArray
from mercer.engine.cuda.engine import CudaEngine
from mercer.engine.cuda.nvidia import cubin
from mercer.errors import InvalidInput
from mercer.estimators.base import elsewhere
from mercer.points import DensePoints, DevicePoints
from mercer.testing import check_points

sys.path.insert(0, str(Path(__file__).parent))
from fake_driver import Driver
from host_device import COMPILER, ForeignArray, HostDevice

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine"),
    pytest.mark.skipif(
        not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.core"),
        reason="cuda.core not installed: arrays on devices are NOT tested",
    ),
]
RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((300, 20)) + 1, RNG.standard_normal((200, 20)) + 1
Y = np.sin(X).sum(axis=1) - 10
SAMPLED = 2 * 80
"""The most rows of two sides on which roundings are tried."""


@pytest.fixture(scope="module")
def shim(shared_folder):
    return HostDevice(shared_folder)


@pytest.fixture
def copied(shim, monkeypatch):
    """The device in use, and the numbers of rows of all copies from it."""
    engine, rows, right = CudaEngine([shim], backend.engines()[0]), [], DeviceArray._copied

    def counted(one):
        rows.append(len(one))
        return right(one)

    monkeypatch.setattr(DeviceArray, "_copied", counted)
    monkeypatch.setattr(backend, "_cuda", lambda *_: engine)
    mercer.use("cuda")
    shim.staged = 0
    yield rows
    mercer.use(None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("formula", ["gaussian(gamma=0.03)", "exp(-0.1 * l1) + 0.1 * dot ** 2", "cosine"])
def test_products_read_rows_where_they_are(shim, copied, formula, dtype):
    there, new, v = (ForeignArray(one.astype(dtype)) for one in (X, NEW, Y))
    square = KernelOperator(formula, there) @ v
    cross = KernelOperator(formula, new, there) @ v
    entries = KernelOperator(formula, new, there).block([3, 5], slice(0, 300))
    assert isinstance(square, ForeignArray)
    assert square.__dlpack_device__() == (2, 0)
    assert sum(copied) <= 3 * SAMPLED
    assert not shim.staged  # nor are rows copied to it
    mercer.use("native")
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    for found, rows in ((square.values, X), (cross.values, NEW)):
        expected = KernelOperator(formula, rows.astype(dtype), X.astype(dtype)) @ Y.astype(dtype)
        np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())
    expected = KernelOperator(formula, NEW, X).block([3, 5], slice(0, 300))
    np.testing.assert_allclose(entries, expected, atol=tolerance * np.abs(expected).max())


def test_rows_are_turned_in_runs_if_there_is_no_room_for_all(shim, copied, monkeypatch):
    monkeypatch.setattr(shim, "memory", 150_000)
    K = KernelOperator("gaussian(gamma=0.03)", ForeignArray(X))
    found = K @ Y
    assert not K._tiles().room.whole
    assert not shim.staged
    mercer.use("native")
    np.testing.assert_allclose(found, KernelOperator("gaussian(gamma=0.03)", X) @ Y, rtol=1e-12)


ESTIMATORS = {
    "ridge": KernelRidge("gaussian", alpha=0.1, solver="cg", tol=1e-6),
    "landmarks": KernelRidge("gaussian", alpha=0.1, solver="nystroem", n_landmarks=20, landmarks="uniform"),
    "components": KernelPCA(2, "gaussian"),
    "clusters": KernelKMeans(2, "gaussian", random_state=0),
    "svm": SVC(),
    "a view of the columns": KernelRidge(mercer.kernels.Gaussian(gamma=0.2).on([0, 2])),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_and_predictions_read_rows_where_they_are(shim, copied, name):
    estimator = ESTIMATORS[name]
    method = "transform" if hasattr(estimator, "transform") else "predict"
    y = (Y > 0) * 1.0 if isinstance(estimator, SVC) else Y
    model = clone(estimator).fit(ForeignArray(X), ForeignArray(y))
    found = getattr(model, method)(ForeignArray(NEW))
    if "view" not in name:
        assert max(copied, default=0) <= SAMPLED, copied
        assert not shim.staged
    kept = pickle.loads(pickle.dumps(model))
    mercer.use("native")
    expected = getattr(clone(estimator).fit(X, y), method)(NEW)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    assert isinstance(kept.X_fit_, np.ndarray)
    for one in (kept, model):  # the second one's rows lie on the device still
        np.testing.assert_allclose(getattr(one, method)(NEW), expected, atol=1e-5 * np.abs(expected).max())


def test_rows_that_are_targets_too(copied):
    there, v = ForeignArray(X[:60]), X[:60, :1]
    found = KernelRidge("gaussian").fit(there, there).predict(X=there)
    mercer.use("native")
    np.testing.assert_allclose(found, KernelRidge("gaussian").fit(X[:60], X[:60]).predict(X[:60]), atol=1e-9)
    one = KernelRidge("gaussian(gamma=1)").fit(X[:1], v[:1]).predict(X[:2])
    mercer.use("cuda")
    model = KernelRidge("gaussian(gamma=1)").fit(ForeignArray(X[:1]), ForeignArray(v[:1]))
    np.testing.assert_allclose(model.predict(ForeignArray(X[:2])), one, rtol=1e-12)


def test_a_saved_model_has_the_rows(copied, tmp_path):
    model = KernelRidge("gaussian").fit(ForeignArray(X[:60]), Y[:60])
    assert isinstance(model.X_fit_, DevicePoints)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").X_fit_, X[:60])
    np.testing.assert_array_equal(model.to_local().X_fit_, X[:60])


def test_outputs_are_on_the_device_if_scikit_learn_dispatches(copied, monkeypatch):
    model = SVC().fit(ForeignArray(X[:80]), np.where(Y[:80] > 0, 1, 0))
    expected = model.decision_function(X[:9])
    monkeypatch.setattr(elsewhere, "get_config", lambda: {"array_api_dispatch": True})
    found = model.decision_function(ForeignArray(X[:9]))
    assert isinstance(found, ForeignArray)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert isinstance(model.predict(ForeignArray(X[:9])), ForeignArray)
    assert isinstance(model.decision_function(X[:9]), np.ndarray)
    names = SVC().fit(ForeignArray(X[:80]), np.where(Y[:80] > 0, "yes", "no"))
    assert set(names.predict(ForeignArray(X[:9]))) == {"yes", "no"}


def test_arrays_that_are_elsewhere_are_copied(shim, copied, monkeypatch):
    """On another device, of integers, or with two devices in use."""
    for there in (ForeignArray(X[:30], (2, 1)), ForeignArray(np.arange(60).reshape(30, 2))):
        model = KernelRidge("gaussian").fit(there, Y[:30])
        np.testing.assert_array_equal(model.X_fit_, there.values)
    both = CudaEngine([shim, HostDevice(shim.folder)], backend.engines()[0])
    monkeypatch.setattr(backend, "_cuda", lambda *_: both)
    assert isinstance(KernelRidge("gaussian").fit(ForeignArray(X[:30]), Y[:30]).X_fit_, np.ndarray)


def test_rows_that_are_not_finite_are_refused_by_number(copied):
    wrong = X.copy()
    wrong[7, 3] = np.nan
    for fails in (lambda: KernelOperator("gaussian(gamma=1)", ForeignArray(wrong)),
                  lambda: KernelRidge().fit(ForeignArray(wrong), Y)):  # fmt: skip
        with pytest.raises(InvalidInput, match="row 7, column 3 is nan"):
            fails()
    for empty in ((0, 3), (3, 0)):
        with pytest.raises(InvalidInput, match=f"is empty, {empty[0]} rows of {empty[1]} columns"):
            KernelRidge().fit(ForeignArray(np.empty(empty)), Y[: empty[0]])
    with pytest.raises(InvalidInput, match="squared norm overflows float32"):
        KernelRidge().fit(ForeignArray(np.full((9, 3), 3e38, np.float32)), Y[:9])


ROWS = [[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [1.0, 1.5, -7.0], [0.0, 0.0, 0.25], [1e-3, 2.0, 2.0]]
NOT_FINITE = [[[0.0, np.nan], [1.0, 2.0]], [[0.0, np.inf], [1.0, 2.0]], [[0.0, 1e200], [1.0, 2.0]]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_points_keep_their_contract(copied, dtype):
    def make(items):
        return DevicePoints.of(ForeignArray(np.array(items, dtype).reshape(len(items), -1)))

    single = dtype == np.float32
    others = [DensePoints(np.array(ROWS, np.float64 if single else np.float32))]
    check_points(make, np.array(ROWS, dtype).tolist(), refused=NOT_FINITE[: 2 if single else 3], others=others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("laid", ["C", "F", "reversed", "every second"])
def test_sums_and_copies_of_rows_in_any_order(shim, copied, laid, dtype):
    rows = X.astype(dtype, order="F" if laid == "F" else "C")
    rows = rows[::-1, ::-1] if laid == "reversed" else rows[::2, ::3] if laid == "every second" else rows
    there, o = shim.adopted(ForeignArray(rows)), np.linspace(-1, 1, rows.shape[1])
    np.testing.assert_array_equal(np.asarray(there), rows)
    np.testing.assert_array_equal(there[np.array([3, 0, 3])], rows[[3, 0, 3]])
    np.testing.assert_array_equal(np.asarray(there[5:30]), rows[5:30])
    wide = rows.astype(np.float64)
    np.testing.assert_allclose(there.mean(), wide.mean(axis=0), rtol=1e-14)
    assert there.largest() == np.abs(rows).max()
    squares, sums, _ = there.row_sums(o, np.dtype(np.float32))
    moved = (wide - o).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(squares, np.square(moved).sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(sums, wide.sum(axis=1), rtol=1e-14)
    padded, deep = len(rows) + 5, rows.shape[1] + 3
    out = shim.empty(4 * padded * deep)
    there.lay(o, np.dtype(np.float32), (out, 2, padded), padded - 2, deep)
    expected = np.zeros((deep, padded), np.float32)
    expected[: rows.shape[1], 2 : len(rows) + 2] = (wide - o).T
    found = shim.fetch(out, np.dtype(np.float32), (deep, padded))
    np.testing.assert_array_equal(found[:, 2:], expected[:, 2:])


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e-38, 1e30])
def test_two_parts_of_sixteen_bits_hold_almost_a_float32_number(shim, rng, size):
    """To half a unit in the last place of 23 bits, or 2⁻³⁹ of the largest number of the row."""
    rows = (size * rng.standard_normal((7, 11)) * 10.0 ** rng.integers(-9, 1, (7, 11))).astype(np.float32)
    rows[0], rows[1] = 0, size
    padded, groups = 9, 2
    out, scales = shim.empty(32 * groups * padded), shim.empty(4 * padded)
    DeviceArray.of(shim, rows).split(None, (out, scales, 1, padded), padded - 1, groups)
    parts = shim.fetch(out, np.dtype(np.float16), (groups, 2, padded, 8)).astype(np.float64)
    scale = shim.fetch(scales, np.dtype(np.float32), (padded,)).astype(np.float64)
    found = parts.sum(axis=1).transpose(1, 0, 2).reshape(padded, 8 * groups)[1:] * scale[1:, None]
    lost = np.abs(found[:7, :11] - rows)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    assert np.all(lost <= np.maximum(2.0**-23 * np.abs(rows.astype(np.float64)), 2.0**-39 * largest))
    assert not found[7:].any()
    assert not found[:, 11:].any()
    assert np.all((np.abs(parts[:, 0]).max(axis=(0, 2))[2:8] >= 2.0**14) | (size < 1e-30))


def test_the_driver_is_asked_for_arrays_of_this_device_only(shim, monkeypatch):
    device = Driver(shim).install(monkeypatch)
    there = device.adopted(ForeignArray(X))
    assert (there.address, there.shape, there.strides) == (X.ctypes.data, (300, 20), (20, 1))
    np.testing.assert_array_equal(there[np.arange(4)], X[:4])
    assert device.adopted(ForeignArray(X, (2, 1))) is None
    assert device.adopted(ForeignArray(np.arange(6).reshape(3, 2))) is None
    given = device.exported(X.T)
    np.testing.assert_array_equal(given.values, X.T)

    class Narrow:
        shape = (3, 2)

        @property
        def dtype(self):
            raise NotImplementedError("Support for bfloat16 within cuda-core requires ml_dtypes")

    view = sys.modules["cuda.core.utils"].StridedMemoryView
    monkeypatch.setattr(view, "from_dlpack", staticmethod(lambda X, stream_ptr: Narrow()))
    assert device.adopted(ForeignArray(X)) is None


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_kernels_of_rows_compile(architecture):
    seen = []
    device = HostDevice(Path(), 16)
    device.compiled = lambda source: seen.append(source) or type("", (), {"launch": lambda *_: None})
    for given in FLOATS:
        for dtype in FLOATS:
            DeviceArray(device, 0, (1, 1), (1, 1), given, None)._kernels(dtype, 256)
    assert len(set(seen)) == 4
    for source in seen:
        code = cubin(source, architecture, keep=False).code
        assert all(name in code for name in (b"laid", b"row_sums", b"column_sums"))
