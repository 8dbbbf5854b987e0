"""The CUDA engine without a device: its sources run on the host, and compile for three architectures."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import SVC, KernelKMeans, KernelOperator, KernelPCA, KernelRidge
from mercer.engine import backend
from mercer.engine.contract import NOTHING, NormAccuracy, TilePairing, TileProgram, TileRows
from mercer.engine.cuda import arrays, nvidia, room, tiles
from mercer.engine.cuda import source as sources
from mercer.engine.cuda.distances import TENSOR_ROUNDINGS, Way
from mercer.engine.cuda.engine import CudaEngine
from mercer.engine.cuda.nvidia import cubin
from mercer.engine.cuda.source import Source
from mercer.engine.cuda.tiles import _symmetric_parts
from mercer.engine.opcodes import OperandKind, Operation, Pairing
from mercer.errors import DeviceError, InvalidInput
from mercer.gram import tiles as sweep
from mercer.gram.roundings import roundings
from mercer.testing.engines import ENGINE_CHECKS

sys.path.insert(0, str(Path(__file__).parent))
import host_device
from host_device import COMPILER, HostDevice

DTYPES = [np.dtype(np.float32), np.dtype(np.float64)]
SOME_OPERATIONS = [Operation.ADD, Operation.WHERE, Operation.GAUSS_FROM_SQDIST]
"""Of two operands, of three and of one."""
compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
nvrtc = pytest.mark.skipif(
    not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.core"), reason="cuda.core not installed"
)


@pytest.fixture(scope="module")
def engine(shared_folder):
    return CudaEngine([HostDevice(shared_folder)], backend.engines()[0])


@pytest.fixture(scope="module")
def tensor_engine(shared_folder):
    """All float32 dot products by tensor cores, whose smallest block has 64 threads."""
    return CudaEngine([HostDevice(shared_folder, 8, tensor_features=1)], backend.engines()[0])


@compiler
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_the_engine_keeps_the_contract(engine, check, dtype, every, monkeypatch):
    """All operations in each dtype and, for `every`, before each consumer."""
    if not every and check.__name__ != "check_operations":
        monkeypatch.setattr("mercer.testing.engines.Operation", SOME_OPERATIONS)
    check(engine, dtype)


@compiler
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_tensor_cores_keep_the_contract(tensor_engine, check, monkeypatch):
    """With some operations: which follow makes no difference to the dot products, and all ran above."""
    monkeypatch.setattr("mercer.testing.engines.Operation", SOME_OPERATIONS)
    check(tensor_engine, DTYPES[0])


@compiler
def test_a_wrong_operation_is_found(engine, monkeypatch):
    monkeypatch.setitem(sources.EXPRESSIONS, Operation.TANH, "tanh({a}) * REAL(1.001)")
    with pytest.raises(AssertionError, match="TANH"):
        ENGINE_CHECKS[2](engine, DTYPES[0])


@compiler
@pytest.mark.parametrize(
    "estimator",
    [
        KernelRidge("gaussian(gamma=0.3)"),
        SVC(),
        KernelKMeans(2, random_state=0),
        KernelPCA(2, "exp(-sqrt(sqdist)) + 1"),
    ],
    ids=repr,
)
def test_whole_fits_are_those_of_the_reference(engine, monkeypatch, estimator):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = np.where(X[:, 0] > 0, 1, 0)

    def outputs(one):
        monkeypatch.setattr(backend, "engine", lambda: one)
        model = clone(estimator).fit(X, y)
        return np.asarray(model.transform(X) if hasattr(model, "transform") else model.decision_function(X)
                          if hasattr(model, "decision_function") else model.predict(X))  # fmt: skip

    found, expected = outputs(engine), outputs(backend.engines()[0])
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@compiler
def test_two_devices_give_the_bits_of_one(engine):
    """Each computes a block of rows; a row more than a tile, and fewer rows than devices, too."""
    first = engine._devices[0]
    both, rows = CudaEngine([first, replace(first)], engine._host), np.random.default_rng(0).random((99, 20))
    accuracy = NormAccuracy(None, 5e-7, 8e-7, 1.0, 1.0)
    program = TileProgram(DTYPES[0], (TilePairing(Pairing.SQDIST, None, accuracy),))
    found = []
    for one in (engine, both):
        x = TileRows(99, (rows.astype(np.float32),), (np.square(rows).sum(axis=1).astype(np.float32),))
        tiles, v = one.plan(program, x, x, np.arange(99)), rows[:, :2]
        block, product, square = np.empty((97, 99), np.float32), np.zeros((99, 2)), np.zeros((99, 2))
        few = np.empty((1, 99), np.float32)
        tiles.block(1, 98, 0, 99, out=block)
        tiles.block(98, 99, 0, 99, out=few)
        tiles.multiply(0, 99, 0, 99, v=v, out=product, symmetric=True)
        tiles.normal_product(0, 99, v=v, weights=None, out=square)
        found.append((block, few, product, square))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(found[0][2], exact_distances(rows) @ rows[:, :2], rtol=1e-5)


@compiler
def test_many_vectors_take_the_room_of_few(engine, monkeypatch, rng):
    """The sums of all parts for all vectors were many times the product, and `memory=` knew nothing of them."""
    monkeypatch.setattr(backend, "engine", lambda: engine)
    monkeypatch.setattr(tiles, "SUMS", 1)
    shapes, parts = [], tiles.CudaTiles._parts
    monkeypatch.setattr(tiles.CudaTiles, "_parts", lambda *given: shapes.append((r := parts(*given)).shape) or r)
    X, v = rng.random((90, 3)), rng.random((90, 11))
    some = KernelOperator("gaussian(gamma=1.0)", X, X[:70], dtype=np.float32)
    product = some @ v[:70]
    assert {shape[2] for shape in shapes} == {room.VECTORS, 3}
    np.testing.assert_allclose(product, np.asarray(some.toarray(), np.float64) @ v[:70], rtol=1e-5)


@compiler
@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 6])
def test_a_product_with_a_symmetric_matrix_is_one_on_a_device(engine, monkeypatch, rng, vectors):
    """Whatever threads of a host would keep for mirror images: the device computes both; and one kernel for 3 or 4."""
    monkeypatch.setattr(backend, "engine", lambda: engine)
    monkeypatch.setattr(sweep, "OTHERS", 1 << 10)
    monkeypatch.setattr(sweep, "NARROWEST", 16)
    products, widths, product, text = [], set(), tiles.CudaTiles._product, Source.text
    monkeypatch.setattr(tiles.CudaTiles, "_product", lambda *given: products.append(given) or product(*given))
    monkeypatch.setattr(Source, "text", lambda one, width: widths.add(width) or text(one, width))
    X, V = rng.standard_normal((99, 3)), rng.standard_normal((99, vectors))
    found = KernelOperator("gaussian(gamma=0.3)", X) @ V
    np.testing.assert_allclose(found, np.exp(-0.3 * exact_distances(X)) @ V, atol=1e-12)
    assert (len(products), widths) == (1, {1 if vectors == 1 else 2 if vectors == 2 else 4})


def exact_distances(rows):
    return np.square(rows[:, None].astype(np.longdouble) - rows).sum(axis=2).astype(np.float64)


KINDS = {
    "random": lambda rng, d: rng.standard_normal((24, d)),
    "one large entry": lambda rng, d: np.append(10, np.full(d - 1, 0.3)) * (1 + 1e-3 * rng.random((24, 1))),
    "lower parts of one sign": lambda rng, d: 1 + 2.0**-11 * (0.9 + 0.09 * rng.random((24, d))),
}


@compiler
@pytest.mark.parametrize("kind", KINDS)
def test_tensor_cores_have_the_roundings_that_are_stated(tensor_engine, kind):
    """With sums that are cut off at the largest term, as at the worst; two parts of 11 bits hold 23 bits."""
    d = 200
    rows = KINDS[kind](np.random.default_rng(0), d).astype(np.float32)
    norms, u = np.square(rows.astype(np.float64)).sum(axis=1), 2.0**-24
    x = TileRows(24, (rows,))
    out = np.empty((24, 24), np.float32)
    tensor_engine.plan(TileProgram(DTYPES[0], (TilePairing(Pairing.DOT),)), x, x).block(0, 24, 0, 24, out=out)
    exact = rows.astype(np.longdouble) @ rows.T.astype(np.longdouble)
    found = float(np.max(np.abs(2 * (out - exact)) / (u * (norms[:, None] + norms))))
    assert found <= roundings(rows, rows, None, rows.dtype, (norms, norms)) + TENSOR_ROUNDINGS
    assert found < {"random": 4}.get(kind, 32)  # seen: 1.9, 23 and 3.1


@compiler
@pytest.mark.parametrize("far", [0.5, 4.0])
@pytest.mark.parametrize(
    ("tensors", "d", "copies"),
    [(False, 30, 1), (False, 30, 2), (False, 70, 2), (True, 70, 2)],
    ids=["one slice", "one slice and another origin", "units", "tensor"],
)
def test_entries_of_close_rows_keep_the_promise(engine, tensor_engine, monkeypatch, tensors, d, copies, far):
    """Where norms are not accurate enough, tiles are computed by differences: entries err by at most 1e-6."""
    one = tensor_engine if tensors else engine
    monkeypatch.setattr(backend, "engine", lambda: one)
    rng = np.random.default_rng(0)
    rows = np.repeat(far * rng.standard_normal((20, d)), 5, axis=0) + 1e-3 * rng.standard_normal((100, d))
    rows = np.concatenate([rows, -rows] if copies == 1 else [rows, rows + 1]).astype(np.float32)
    K = KernelOperator("gaussian(gamma=0.3)", rows)
    tiles = K._tiles()
    assert tiles._forward.ways[0].by_norms
    assert tiles._forward.ways[0].by_terms
    assert tiles._forward.ways[0].copies == copies
    assert tiles._forward.tensor == tensors
    found, expected, v = K.toarray(), np.exp(-0.3 * exact_distances(rows)), rng.random(len(rows))
    assert np.abs(found - expected).max() <= 1e-6
    # Where a tile is computed by differences, what was read ahead of the next one and rows that stay are given up.
    assert np.abs(K @ v - expected @ v).max() <= 1e-6 * v.sum()


@compiler
@pytest.mark.parametrize("features", [20, 25, 32, 33, 65])
@pytest.mark.parametrize("tensors", [False, True], ids=["units", "tensor"])
def test_slices_are_read_ahead_from_tile_to_tile(engine, tensor_engine, monkeypatch, rng, features, tensors):
    """Of one slice and of more, with rows and columns that begin anywhere; rows of one point are at distance 0."""
    monkeypatch.setattr(backend, "engine", lambda: tensor_engine if tensors else engine)
    rows = rng.standard_normal((150, features)).astype(np.float32)
    expected, V = np.exp(-exact_distances(rows) / features), rng.random((150, 2))
    K = KernelOperator(f"gaussian(gamma={1 / features})", rows)
    assert np.abs(K.toarray() - expected).max() <= 1e-6
    np.testing.assert_array_equal(K.toarray().diagonal(), 1)
    for v in (V, V[:, :1]):
        assert np.abs(K @ v - expected @ v).max() <= 1e-6 * V.sum(axis=0).max()
    out = np.zeros((130, 1))
    K._tiles().multiply(7, 137, 11, 149, v=V[:, :1], out=out, symmetric=False)
    assert np.abs(out - expected[7:137, 11:149] @ V[11:149, :1]).max() <= 1e-6 * V.sum()


@compiler
def test_distances_to_the_same_point_are_zero_in_transposed_products_too(engine, monkeypatch):
    monkeypatch.setattr(backend, "engine", lambda: engine)
    X = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32) + 3
    K = KernelOperator("gaussian(gamma=1e4)", X, X.copy())
    v = np.arange(40.0)[:, None]
    np.testing.assert_allclose(K.normal_product(v), v, rtol=1e-6)


@pytest.mark.parametrize("rows", [(0, 12), (4, 8), (0, 4), (8, 11)])
@pytest.mark.parametrize("columns", [(0, 12), (4, 8), (8, 12), (0, 4), (8, 11)])
def test_symmetric_parts_hold_each_pair_once(rows, columns):
    height, n = 4, 12
    seen, expected = np.zeros((n, n), int), np.zeros((n, n), int)
    for (a, b), (c, d) in _symmetric_parts(*rows, max(rows[0], columns[0]), columns[1], height):
        seen[a:b, c:d] += 1
        if a != c:
            seen[c:d, a:b] += 1
    for top in range(*rows, height):
        bottom = min(top + height, rows[1])
        if columns[0] <= top < columns[1]:
            expected[top:bottom, top:bottom] += 1
        right = slice(max(bottom, columns[0]), max(columns[1], bottom, columns[0]))
        expected[top:bottom, right] += 1
        expected[right, top:bottom] += 1
    np.testing.assert_array_equal(seen, expected)


def everything(dtype, depth, tensor=False):
    """A program with all pairings and operations, so that one source holds them."""
    pairings = tuple(TilePairing(kind) for kind in Pairing)
    register, row, column = int(OperandKind.REGISTER), int(OperandKind.ROW), int(OperandKind.COLUMN)
    code = []
    for at, op in enumerate(Operation):
        operands = [(register, at % len(pairings)), (row, 0), (column, 0)][: op.operands]
        code.append((int(op), 0, *operands, *[NOTHING] * (3 - op.operands), 3.0, 0.25))
    program = TileProgram(dtype, pairings, (), tuple(code), len(pairings), 0)
    return Source(
        program,
        (depth,) * len(pairings),
        (Way(tensor=tensor), Way(True, True, tensor), *[Way()] * 4),
        1,
        1,
        16,
        True,
    )


@nvrtc
@pytest.mark.parametrize(
    ("dtype", "tensor", "architecture"),
    [
        *((dtype, False, architecture) for dtype, architecture in zip(DTYPES, ("sm_80", "sm_75"), strict=True)),
        *((DTYPES[0], True, architecture) for architecture in ("sm_90", "sm_100")),
        *(
            pytest.param(dtype, tensor, architecture, marks=pytest.mark.soak)
            for dtype, tensor, architecture in (
                (DTYPES[0], False, "sm_75"),
                (DTYPES[1], False, "sm_80"),
                (DTYPES[0], True, "sm_80"),
            )
        ),
    ],
)
def test_all_pairings_operations_and_consumers_compile(dtype, tensor, architecture):
    """What sm_80 takes later architectures take, but for tensor cores, which differ; sm_75 copies in another way."""
    one = TileProgram(dtype, (TilePairing(Pairing.DOT),))  # whose threads have 8 × 8 pairs in float32
    light = Source(one, (128,), (Way(tensor=tensor),), 0, 0, 16, transposed=True)
    for source in (everything(dtype, 1100 if tensor else 300, tensor), light):
        for vectors, kernel in ((0, b"entries"), (1, b"multiply"), (2, b"multiply"), (4, b"multiply")):
            assert kernel in cubin(source.text(vectors), architecture, keep=False).code


@nvrtc
def test_object_code_is_kept_by_source_and_architecture(monkeypatch, tmp_path):
    """A file that lost its contents is made again, and a folder that cannot be written is not needed."""
    monkeypatch.setattr(nvidia, "cache_folder", lambda: tmp_path)

    def files():
        return sorted(path for path in tmp_path.rglob("*") if path.is_file())

    text = 'extern "C" __global__ void one(float* x) { *x = 1; }'
    first = cubin(text, "sm_90").code
    assert cubin(text, "sm_90").code == first
    assert len(files()) == 1
    cubin(text, "sm_80"), cubin(text.replace("1;", "2;"), "sm_90")
    assert len(files()) == 3
    for path in files():
        path.write_bytes(b"")
    assert cubin(text, "sm_90").code == cubin(text, "sm_90").code == first
    monkeypatch.setattr(nvidia, "cache_folder", lambda: tmp_path / "file" / "folder")
    (tmp_path / "file").write_text("")
    assert cubin(text, "sm_90").code == first


@nvrtc
def test_what_does_not_compile_is_one_clear_error():
    with pytest.raises(DeviceError, match="compiling for sm_90 failed"):
        cubin("this is no program", "sm_90", keep=False)


def test_an_engine_that_is_not_there_is_refused(monkeypatch):
    with pytest.raises(InvalidInput, match="no engine 'tpu'"):
        mercer.use("tpu")
    for wrong in ([], [0, 0], 1, "0", [0.5]):
        with pytest.raises(InvalidInput, match="give the number of each device once"):
            mercer.use("cuda", devices=wrong)
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    backend._cuda.cache_clear()
    with pytest.raises(DeviceError, match=r"pip install .mercer\[cuda\]"):
        mercer.use("cuda")
    monkeypatch.setenv("MERCER_ENGINE", "cuda")
    with pytest.raises(DeviceError, match="is not installed"):
        KernelRidge().fit(np.eye(3), np.arange(3.0))


@nvrtc
def test_without_a_driver_the_error_says_so():
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a device")
    backend._cuda.cache_clear()
    with pytest.raises(DeviceError, match=r"opening device 0 failed because there is no driver of NVIDIA"):
        mercer.use("cuda")


def test_the_reference_can_be_chosen_and_given_up():
    mercer.use("numpy")
    try:
        assert backend.engine() is backend.engines()[0]
    finally:
        mercer.use(None)


def test_new_numbers_compile_nothing():
    def text(gamma):
        code = ((int(Operation.GAUSS_FROM_SQDIST), 0, (0, 0), NOTHING, NOTHING, -gamma, 0.0),)
        program = TileProgram(DTYPES[0], (TilePairing(Pairing.SQDIST),), (gamma,), code)
        return Source(program, (32,), (Way(),), 0, 0, 16).text(1)

    assert text(1.0) == text(2.5)


@compiler
def test_no_rows_or_columns(engine):
    rows = np.ones((0, 3), np.float32)
    tiles = engine.plan(
        TileProgram(DTYPES[0], (TilePairing(Pairing.DOT),)),
        TileRows(0, (rows,)),
        TileRows(2, (np.ones((2, 3), np.float32),)),
    )
    out = np.empty((0, 2), np.float32)
    tiles.block(0, 0, 0, 2, out=out)
    product = np.ones((2, 1))
    tiles.block(np.int64(0), np.int64(0), 0, 2, out=out)
    tiles.normal_product(0, 0, v=np.ones((2, 1)), weights=None, out=product)
    np.testing.assert_array_equal(product, 1)


@compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_grid_is_higher_than_a_driver_takes(tmp_path, monkeypatch, dtype):
    for module, name in ((room, "GRID"), (tiles, "GRID"), (arrays, "BLOCKS")):
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(host_device, "HIGHEST", 3)
    A, B, device = np.arange(300.0).reshape(100, 3).astype(dtype), np.eye(3, dtype=dtype), HostDevice(tmp_path)
    program = TileProgram(dtype, (TilePairing(Pairing.DOT),))
    plan = tiles.CudaTiles(device, program, TileRows(100, (A,)), TileRows(3, (B,)), None)
    out = np.empty((90, 3), dtype)
    plan.block(5, 95, 0, 3, out=out)
    np.testing.assert_array_equal(out, A[5:95])
    np.testing.assert_array_equal(np.asarray(plan.held(5, 95)), A[5:95])
    assert plan.held(5, 5).shape == (0, 3)
