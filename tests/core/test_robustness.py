"""What must never happen: a crash, a silent copy, other bits at the next run, a process left in another state."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from mercer.engine import backend, reference
from mercer.engine.contract import LOOPS, NOTHING
from mercer.engine.opcodes import OperandKind, Operation
from mercer.errors import InvalidInput

R = OperandKind.REGISTER
REFUSED = (ValueError, TypeError)
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")


def python(code, **environment):
    """Runs the code in a fresh interpreter that imports this same mercer; its standard output."""
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# ---- outputs are written in place, or refused -----------------------------------------------------------------------


def outputs(tiles, n, dtype):
    """Every method that writes, with arrays that fit."""
    return {
        "block": (lambda out: tiles.block(0, n, 0, n, out=out), np.zeros((n, n), dtype)),
        "gram": (lambda out: tiles.gram(0, n, out), np.zeros((n, n), dtype)),
        "upper": (lambda out: tiles.upper(0, n, out), np.zeros(n * n, dtype)),
        "multiply": (
            lambda out: tiles.multiply(0, n, 0, n, v=np.ones((n, 2), dtype), out=out, symmetric=True),
            np.zeros((n, 2)),
        ),
        "normal_product": (
            lambda out: tiles.normal_product(0, n, v=np.ones((n, 2), dtype), weights=None, out=out),
            np.zeros((n, 2)),
        ),
        "group_sums": (
            lambda out: tiles.group_sums(0, n, start=np.array([0, n]), weights=None, out=out),
            np.zeros((n, 1)),
        ),
    }


@pytest.mark.parametrize("name", outputs(None, 1, np.float64))
def test_an_output_that_does_not_fit_is_refused(native, make_plan, dtype, name):
    """An array that the binding would convert is written to a copy: silence, and zeros."""
    n = 30
    call, good = outputs(make_plan(dtype, n).tiles(""), n, dtype)[name]
    call(good)
    wrong_type = np.zeros(good.shape, np.float32 if good.dtype != np.float32 else np.float64)
    bad = [
        wrong_type,
        good.astype(np.int32),
        np.repeat(good, 2, axis=0)[::2],
        good[:-1].copy(),
        good[None],
        good.tolist(),
    ]
    if good.ndim == 2 and good.shape[1] > 1:
        bad += [np.asfortranarray(good), good.T.copy().T, np.repeat(good, 2, axis=1)[:, ::2]]
    frozen = good.copy()
    frozen.flags.writeable = False
    for out in [*bad, frozen, None]:
        with pytest.raises(REFUSED):
            call(out)


def test_ranges_and_vectors_that_do_not_fit_are_refused(native, make_plan, dtype):
    n, m = 400, 250
    tiles = make_plan(dtype, n, m).tiles("")
    for i0, i1 in ((-1, 3), (3, 3), (5, 4), (0, n + 1), (n, n + 1), (-(2**62), 2**62)):
        with pytest.raises(ValueError, match="range"):
            tiles.block(i0, i1, 0, m, out=np.zeros((max(i1 - i0, 0) % 500, m), dtype))
        with pytest.raises(ValueError, match="range"):
            tiles.block(0, n, i0, i1, out=np.zeros((n, max(i1 - i0, 0) % 500), dtype))
    V, out = np.ones((m, 1), dtype), np.zeros((n, 1))
    for cut in ((1, n, 0, m), (0, n, 5, m), (0, n, 0, 100)):
        with pytest.raises(ValueError, match="blocks"):
            tiles.multiply(*cut, v=V, out=out[: cut[1] - cut[0]], symmetric=False)
    for vectors in (V[:-1], np.ones((m, 0), dtype), V[:, 0], V.astype(np.float16), np.ones((m, 1), int)):
        with pytest.raises(REFUSED):
            tiles.multiply(0, n, 0, m, v=vectors, out=out, symmetric=False)
    with pytest.raises(ValueError, match="square"):
        tiles.multiply(0, n, 0, m, v=V, out=out, symmetric=True)
    square = make_plan(dtype, n).tiles("")
    with pytest.raises(ValueError, match="blocks"):
        square.multiply(0, 100, 0, n, v=np.ones((n, 1), dtype), out=out, symmetric=True)
    images = np.zeros((m, 1))
    for cut in ((1, n), (0, 100)):
        with pytest.raises(ValueError, match="blocks"):
            tiles.normal_product(*cut, v=V, weights=None, out=images)
    for weights in (np.ones(n - 1), np.ones((n, 1)), np.ones(m)):
        with pytest.raises(REFUSED):
            tiles.normal_product(0, n, v=V, weights=weights, out=images)
    for vectors in (V[:-1], np.ones((m, 0), dtype), V[:, 0]):
        with pytest.raises(REFUSED):
            tiles.normal_product(0, n, v=vectors, weights=None, out=images)
    for start in ([0, 10], [1, m], [0, 20, 10, m], [m], []):
        with pytest.raises(ValueError):
            tiles.group_sums(
                0, n, start=np.array(start, np.int64), weights=None, out=np.zeros((n, max(len(start) - 1, 1)))
            )
    with pytest.raises(TypeError):
        tiles.group_sums(0, n, start=np.array([0.0, m]), weights=None, out=out)


# ---- plans ----------------------------------------------------------------------------------------------------------


def good_arguments(dtype=np.float64):
    A, B = np.ones((5, 3), dtype), np.ones((7, 3), dtype)
    return {
        "is_double": dtype == np.float64, "rows": 5, "columns": 7, "pairings": [(1, A, B, None)],
        "row_values": [np.ones(5, dtype)], "column_values": [np.ones(7, dtype)], "constants": [2.0],
        "program": [(int(Operation.ADD), 0, (0, 0), (1, 0), NOTHING, 0.0, 0.0)], "registers": 1, "result": 0,
        "self_pairs": None, "isa": "", "norms": [good_norms(dtype)],
    }  # fmt: skip


def good_norms(dtype=np.float64, **changes):
    parts = {"at": 0, "origin": np.ones(3), "row": np.ones(5, dtype)}
    parts |= {"column": np.ones(7, dtype), "rounding": 1e-7, "promise": 1e-6, "slow": 0.0, "fast": np.inf}
    parts["root"] = 0.0
    return tuple((parts | changes).values())


def bad_origins():
    return np.ones(2), np.ones(4), np.ones(0), np.ones((1, 3)), 1.0, "0"


def bad_values():
    A, B, one = np.ones((5, 3)), np.ones((7, 3)), (int(Operation.ADD), 0, (0, 0), (1, 0), NOTHING, 0.0, 0.0)

    def code(**changes):
        names = ("op", "target", "a", "b", "c", "k0", "k1")
        return [tuple({**dict(zip(names, one, strict=True)), **changes}.values())]

    yield from (("rows", n) for n in (0, -1, 4, 6, 2**40, 2**62, 2**70, 1.5))
    yield from (("columns", n) for n in (0, -1, 8, 2**62))
    for a, b in (
        (A[:, :2], B),
        (A, B[:5]),
        (A[:4], B),
        (A[0], B),
        (A.astype(int), B),
        (A.astype(np.float16), B),
        (A[:, :0], B[:, :0]),
    ):
        yield "pairings", [(1, a, b, None)]
    yield from (("pairings", [(kind, A, B, None)]) for kind in (-1, 6, 99))
    yield "pairings", [(1, A, B, None)] * 2  # more than registers
    yield from (("pairings", [(1, A, B, origin)]) for origin in bad_origins())
    yield from (
        ("row_values", [v]) for v in (np.ones(4), np.ones((5, 1)), np.ones(5, np.float32), np.ones(5, int), None)
    )
    yield from (("column_values", [v]) for v in (np.ones(5), np.ones(7, np.float32)))
    yield from (("program", code(op=op)) for op in (-1, len(Operation), 10**6))
    yield from (("program", code(target=t)) for t in (-1, 1, 10**6))
    yield from (("program", code(a=a)) for a in ((0, 1), (0, -1), (1, 1), (2, 1), (3, 1), (4, 0), (-2, 0), (3, -1)))
    yield from (
        ("program", code(op=int(Operation.POW_INTEGER), k0=k)) for k in (0.5, np.nan, np.inf, -np.inf, 1e300, 2.0**31)
    )
    yield from (("registers", n) for n in (0, -1, 65, 10**9))
    yield from (("result", n) for n in (-1, 1, 64))
    yield from (
        ("self_pairs", p)
        for p in (np.zeros(4, np.int64), np.zeros((5, 1), np.int64), np.zeros(5), np.zeros(5, np.int32))
    )
    yield from (("norms", [good_norms(at=at)]) for at in (-1, 1, 10**6))
    yield from (("norms", [good_norms(origin=origin)]) for origin in bad_origins())
    yield from (("norms", [good_norms(row=v)]) for v in (np.ones(4), np.ones((5, 1)), np.ones(5, np.float32)))
    yield from (("norms", [good_norms(column=v)]) for v in (np.ones(5), np.ones(7, int)))
    yield "pairings", [(0, A, B, None)]  # norms of no squared distance
    yield from (("isa", name) for name in ("x86-64-v9", "numpy", "\0"))


@pytest.mark.parametrize(("name", "value"), list(bad_values()))
def test_a_bad_plan_is_refused(native, name, value):
    native.Tiles(**good_arguments())
    with pytest.raises(REFUSED):
        native.Tiles(**{**good_arguments(), name: value})


def test_fuzzed_plans_run_or_are_refused(native, dtype):
    """Random small numbers everywhere: whatever is accepted must run without touching foreign memory."""
    rng, accepted = np.random.default_rng(0), 0
    for _ in range(3000):
        arguments = good_arguments(dtype)
        registers = int(rng.integers(1, 5))
        program = [
            (*rng.integers(-1, 24, 1).tolist(), int(rng.integers(0, registers + (rng.random() < 0.1))),
             *[(int(rng.integers(-1, 4)), int(rng.random() < 0.05)) for _ in range(3)], float(rng.integers(-3, 4)), 0.5)
            for _ in range(rng.integers(0, 5))
        ]  # fmt: skip
        self_pairs = rng.integers(-3, 10, 5) if rng.random() < 0.5 else None
        arguments |= {
            "registers": registers,
            "result": int(rng.integers(0, registers)),
            "program": program,
            "self_pairs": self_pairs,
        }
        try:
            tiles = native.Tiles(**arguments)
        except REFUSED:
            continue
        accepted += 1
        tiles.block(0, 5, 0, 7, out=np.empty((5, 7), dtype))
        tiles.multiply(0, 5, 0, 7, v=np.ones((7, 1), dtype), out=np.zeros((5, 1)), symmetric=False)
    assert accepted > 300


def parameters(function):
    """Names of the arguments of a compiled function, and how many of them may go by position."""
    text = function.__nb_signature__[0][0]
    positional = text.split("*, ", 1)[0] if re.search(r"[(,] ?\*, \w+: ", text) else text
    named = re.compile(r"[(,] ?(\w+): ")
    return named.findall(text), len(named.findall(positional))


LOOP_NAMES = [name for name in LOOPS if name != "threads"]
SWEEPS = ("block", "gram", "upper", "multiply", "normal_product", "group_sums")


@pytest.mark.parametrize("name", [*LOOP_NAMES, "Tiles", *SWEEPS])
def test_both_modules_name_arguments_alike_and_take_no_more_than_four_by_position(native, name):
    ours, other = (getattr(module.Tiles if name in SWEEPS else module, name) for module in (native, reference))
    names, positional = parameters(ours.__init__ if isinstance(ours, type) else ours)
    own = [one for one in inspect.signature(other).parameters.values() if one.name != "self"]
    assert names == [one.name for one in own]
    assert positional == sum(one.kind is not inspect.Parameter.KEYWORD_ONLY for one in own)
    assert positional <= 4


@posix
def test_no_memory_is_an_error_not_a_crash(native):
    """Whatever amount of memory is missing, inside the team's work too; the engine works again afterwards."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizer reserves more address space than any limit")
    python("""
        import resource
        import numpy as np
        from mercer import KernelOperator
        from mercer.kernels import Linear
        n, r = 600, 8000
        K = KernelOperator(Linear(), np.ones((n, 2), np.float32))
        assert (K @ np.ones(n, np.float32) == 2 * n).all()  # the team exists
        plan, V, out = K._tiles(), np.ones((n, r), np.float32), np.zeros((n, r))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        failed = 0
        for extra in range(1, 400, 23):
            resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), -1))
            out[:] = 0
            try:
                plan.multiply(0, n, 0, n, v=V, out=out, symmetric=True)
            except MemoryError:
                failed += 1
            else:
                assert (out == 2 * n).all()
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        assert 3 < failed < 18, failed
        assert (K @ np.ones(n, np.float32) == 2 * n).all()
    """) if sys.platform == "linux" else pytest.skip("needs /proc")  # fmt: skip


# ---- the same bits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("team", [1, 2, 3])
def test_same_bits_at_every_run(make_plan, isa, dtype, team):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    n, m = 1500, 700
    square, rectangle = make_plan(dtype, n).tiles(isa), make_plan(dtype, n, m).tiles(isa)
    rng = np.random.default_rng(0)
    V, W = rng.standard_normal((n, 5)).astype(dtype), rng.standard_normal((m, 5)).astype(dtype)

    weights = rng.random(n)

    def results():
        found = []
        for r in (1, 5):
            out, other = np.zeros((n, r)), np.zeros((n, r))
            square.multiply(0, n, 0, n, v=V[:, :r].copy(), out=out, symmetric=True)
            rectangle.multiply(0, n, 0, m, v=W[:, :r].copy(), out=other, symmetric=False)
            normal = np.zeros((m, r))
            rectangle.normal_product(0, n, v=W[:, :r].copy(), weights=weights, out=normal)
            found += [out, other, normal]
        sums = np.zeros((n, 3))
        rectangle.group_sums(0, n, start=np.array([0, 100, 555, m]), weights=None, out=sums)
        return [*found, sums]

    with threadpoolctl.threadpool_limits(team):
        first = results()
        for _ in range(4):
            for one, again in zip(first, results(), strict=True):
                np.testing.assert_array_equal(one, again)


def test_normal_products_of_any_team_agree(make_plan, isa, dtype):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    n, m = 1500, 700
    plan, found = make_plan(dtype, n, m), []
    for team in (1, 2, 5):
        with threadpoolctl.threadpool_limits(team):
            out = np.zeros((m, 2))
            plan.tiles(isa).normal_product(0, n, v=np.ones((m, 2), dtype), weights=None, out=out)
            found.append(out)
    for out in found[1:]:
        np.testing.assert_allclose(out, found[0], rtol=plan.eps)


def test_threads_are_those_of_openmp(native):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        assert native.threads() == 1
    assert python("from mercer import _core; print(_core.threads())", OMP_NUM_THREADS="3").split() == ["3"]


def test_threads_of_python_share_a_plan(make_plan, isa, dtype):
    """Nothing is written to a plan after it was made."""
    from concurrent.futures import ThreadPoolExecutor

    n = 500
    tiles = make_plan(dtype, n).tiles(isa)

    def product(r):
        out = np.zeros((n, r))
        tiles.multiply(0, n, 0, n, v=np.ones((n, r), dtype), out=out, symmetric=True)
        return out[:, 0]

    expected = {r: product(r) for r in (1, 2, 5)}
    with ThreadPoolExecutor(4) as pool:
        for r, got in zip((1, 2, 5) * 8, pool.map(product, (1, 2, 5) * 8), strict=True):
            np.testing.assert_array_equal(got, expected[r])


# ---- the process ----------------------------------------------------------------------------------------------------


def test_import_and_use_leave_the_floating_point_state_alone():
    """A library linked with -ffast-math flushes subnormal numbers to zero in the whole process."""
    python("""
        import threading
        import numpy as np
        def check():
            tiny = np.array([2.0**-1070]), np.array([2.0**-140], np.float32)
            for x in tiny:
                assert (x / 2 > 0).all() and (x * x.dtype.type(0.5) * 2 == x).all(), x
            assert 2.0**-1074 > 0 and 2.0**-1060 / 2.0**10 == 2.0**-1070
            assert np.nan != np.nan and np.isnan(np.inf - np.inf)
        check()
        from mercer import KernelOperator
        from mercer.kernels import Gaussian
        check()
        X = np.random.default_rng(0).standard_normal((500, 20)).astype(np.float32)
        KernelOperator(Gaussian(gamma=1.0), X) @ np.ones(500)
        check()
        other = threading.Thread(target=check)
        other.start()
        other.join()
    """)


@posix
def test_forks_after_use():
    """One by hand, then a pool of them."""
    python("""
        import multiprocessing, os, sys, time, warnings
        import numpy as np
        from mercer import KernelOperator
        from mercer.kernels import Gaussian
        warnings.simplefilter("ignore", DeprecationWarning)
        X = np.random.default_rng(0).standard_normal((1000, 4))
        K = KernelOperator(Gaussian(gamma=0.3), X)
        v = np.ones(1000)
        expected = K @ v
        def right(_=None):
            again = KernelOperator(Gaussian(gamma=0.3), X)
            return all(np.allclose(found, expected) for found in (K @ v, again @ v, again.toarray() @ v))
        child = os.fork()
        if child == 0:
            os._exit(0 if right() else 3)
        until = time.time() + 60
        done, status = 0, 0
        while not done and time.time() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not done:
            os.kill(child, 9)
        assert done and os.waitstatus_to_exitcode(status) == 0, (done, status)
        assert right()  # and the parent goes on
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map_async(right, range(4)).get(timeout=60) == [True] * 4
    """)


@posix
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="instrumented code is some twenty times slower")
def test_interrupt_is_obeyed(record_property):
    """Ctrl-C during a product of half a minute ends it within a second (here: three, on a busy machine)."""
    code = """
        import signal
        import numpy as np
        from mercer import KernelOperator
        from mercer.kernels import Gaussian
        # a shell's background jobs are started with the interrupt ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        n = 500_000
        X = np.random.default_rng(0).standard_normal((n, 64), dtype=np.float32)
        K = KernelOperator(Gaussian(gamma=0.01), X)
        K.rows([0])
        print("ready", flush=True)
        K @ np.ones(n)
        print("done", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        assert child.stdout.readline().strip() == "ready", child.stderr.read()
        time.sleep(1.0)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=30)
        latency = time.perf_counter() - sent
    finally:
        child.kill()
    record_property("latency", latency)
    assert "done" not in out
    assert "KeyboardInterrupt" in error
    assert latency < 3.0, latency


# ---- switches -------------------------------------------------------------------------------------------------------


def test_switch_of_the_instruction_set(native, monkeypatch):
    names = native.instruction_sets()
    monkeypatch.delenv("MERCER_ISA", raising=False)
    assert backend.instruction_set() == names[-1]
    for name in names:
        monkeypatch.setenv("MERCER_ISA", name)
        assert backend.instruction_set() == name
    monkeypatch.setenv("MERCER_ISA", "z80")
    with pytest.raises(InvalidInput, match="z80"):
        backend.instruction_set()


def test_switch_to_the_reference(monkeypatch):
    monkeypatch.setenv("MERCER_CORE", "off")
    assert not backend.is_native()
    assert backend.instruction_set() == "numpy"
    assert backend.engine().threads() == 1
    code = "from mercer.engine.backend import is_native; print(is_native())"
    assert python(code, MERCER_CORE="off").split() == ["False"]


def test_the_reference_stands_in_where_nothing_was_built():
    python("""
        import os, sys
        sys.modules["mercer._core"] = None
        os.environ.pop("MERCER_CORE", None)  # which asks for it
        import numpy as np
        from mercer import KernelOperator
        from mercer.engine.backend import is_native
        assert not is_native()
        assert (KernelOperator("linear", np.ones((3, 2))).toarray() == 2).all()
        import mercer
        found = lambda: mercer.KernelRidge().fit(np.ones((3, 2)), [1.0, 2.0, 3.0]).report_.notes
        assert any("the compiled engine is not there" in note for note in found())
        mercer.use("numpy")
        assert not any("compiled engine" in note for note in found())
    """)
