"""Selects the engine, and limits BLAS threads while the engine runs."""

from __future__ import annotations

import importlib
import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from numbers import Integral
from types import ModuleType
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

from mercer.engine import processors
from mercer.engine.contract import Engine
from mercer.engine.engines import NativeEngine, ReferenceEngine
from mercer.errors import InvalidInput, message
from mercer.planning.costs import WORTH_WAKING

__all__ = [
    "blas_threads",
    "device_in_use",
    "engine",
    "engines",
    "fixed_threads",
    "instruction_set",
    "is_native",
    "one_blas_thread",
    "one_thread_after_fork",
    "spare_threads",
    "stand_in",
    "use",
]

MOST_THREADS = 1024


def _load() -> ModuleType | None:
    try:
        native = importlib.import_module("mercer._core")
    except ImportError:
        return None
    if _most_threads() < MOST_THREADS:
        native.bound_threads(_most_threads())
    return native


def _most_threads() -> int:
    """The most threads that the engine may use: OpenMP's setting does not include the quota of the control group."""
    quota = processors.quota()
    if processors.chosen() or math.isinf(quota):
        return MOST_THREADS
    return min(math.ceil(quota), os.cpu_count() or 1)


_native = _load()


_compiled: tuple[Engine, ...] = (
    tuple(NativeEngine(_native, name) for name in _native.instruction_sets()) if _native else ()
)
_reference = ReferenceEngine()
_used: str | None = None
_options: tuple[tuple[int, ...], bool] = ((0,), True)
"""The devices in use, and whether their tensor cores are."""


def engines() -> tuple[Engine, ...]:
    """All engines of this machine: the reference, then the compiled module with each instruction set, the best last."""
    return (_reference, *_compiled)


def engine() -> Engine:
    """The engine in use.

    `use` or ``MERCER_ENGINE`` names it. By default it is the compiled module with the machine's best instruction set,
    or with the one that ``MERCER_ISA`` names. It is the reference if the module was not built, or if the environment
    has ``MERCER_CORE=off``.

    Raises
    ------
    InvalidInput
        If ``MERCER_ENGINE`` names no engine, or ``MERCER_ISA`` an instruction set that this machine does not have.
    DeviceError
        If the CUDA engine is requested, and no device can be used.
    """
    name = _used or os.environ.get("MERCER_ENGINE", "native")
    if name == "native":
        return _host()
    if name == "numpy":
        return _reference
    if name == "cuda":
        return _cuda(*_options)
    raise _unknown(name)


def use(name: str | None, *, devices: Sequence[int] = (0,), tensor_cores: bool = True) -> None:
    """Choose the engine that computes entries from now on, in this process.

    "native" is the compiled module, or its NumPy reference if that was not built; "numpy" is the reference; "cuda" an
    NVIDIA device (``pip install "mercer[cuda]"``). The environment variable ``MERCER_ENGINE`` has the same names, and
    counts if `use` was not called. Vectors and results are arrays of NumPy, and so are rows, unless they lie on the
    device already. Model files and pickles do not depend on the engine.

    Parameters
    ----------
    name : {"native", "numpy", "cuda"} or None
        None goes back to ``MERCER_ENGINE``, or to "native".
    devices : sequence of int, default=(0,)
        The NVIDIA devices that share the work of "cuda", by the driver's numbers. One is the default, because others
        may work on the rest.
    tensor_cores : bool, default=True
        Whether "cuda" multiplies float32 rows of many features on tensor cores, whose sums have about as many
        roundings. Numbers below 2⁻³⁹ of the largest in their row count as 0 there. With False all are those of FP32
        units.

    Raises
    ------
    InvalidInput
        If no engine has this name, or no devices are given, or one twice.
    DeviceError
        If "cuda" is requested, and cuda.core is not installed or no device can be used.

    Examples
    --------
    >>> import mercer
    >>> mercer.use("numpy")
    >>> mercer.use(None)
    """
    global _used, _options
    numbers = isinstance(devices, Sequence) and all(isinstance(one, Integral) for one in devices)
    chosen = tuple(int(one) for one in devices) if numbers else ()
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidInput(
            message("use", f"devices={devices!r}", "give the number of each device once, such as [0, 1]")
        )
    if name not in (None, "native", "numpy", "cuda"):
        raise _unknown(name)
    if name == "cuda":
        _cuda(chosen, tensor_cores)  # fails here and not in the next fit
    _used, _options = name, (chosen, tensor_cores)


def device_in_use() -> bool:
    """Whether an NVIDIA device computes the entries."""
    return (_used or os.environ.get("MERCER_ENGINE")) == "cuda"


def _unknown(name: object) -> InvalidInput:
    return InvalidInput(message("use", f"there is no engine {name!r}", 'choose "native", "numpy" or "cuda"'))


@lru_cache(maxsize=1)
def _cuda(devices: tuple[int, ...], tensor_cores: bool) -> Engine:
    from mercer.engine.cuda.engine import CudaEngine
    from mercer.engine.cuda.nvidia import NvidiaDevice

    return CudaEngine([NvidiaDevice(one, tensor_cores=tensor_cores) for one in devices], _host())


def _host() -> Engine:
    """The engine of the processor."""
    if not _compiled or os.environ.get("MERCER_CORE", "").lower() == "off":
        return _reference
    wanted = os.environ.get("MERCER_ISA", "")
    if not wanted:
        return _compiled[-1]
    for one in _compiled:
        if one.capabilities.instruction_set == wanted:
            return one
    given = f"{wanted!r} on a machine with {list(_compiled[-1].capabilities.instruction_sets)}"
    raise InvalidInput(message("MERCER_ISA", given, "unset it, or choose one of these"))


def stand_in() -> str:
    """A note if the reference computes because the compiled module was not built, and nobody asked for it; else ""."""
    asked = os.environ.get("MERCER_CORE", "").lower() == "off" or (_used or os.environ.get("MERCER_ENGINE")) == "numpy"
    if _compiled or asked or engine() is not _reference:
        return ""
    return "the compiled engine is not there, and NumPy computes, many times slower: mercer.show_versions()"


def is_native() -> bool:
    """Whether the engine in use is the compiled module."""
    return engine() is not _reference


def instruction_set() -> str:
    """The instruction set in use."""
    return engine().capabilities.instruction_set


def blas_threads() -> int:
    """The threads of BLAS outside of the sections that limit them."""
    return max(_limits.before(), default=1)


@contextmanager
def spare_threads() -> Iterator[None]:
    """Limit BLAS to the processors that other processes leave free, at least one, unless the user set a number.

    A decomposition waits for the slowest thread of BLAS many times, while the others spin. With two other busy
    processes on two cores, the eigenvectors of 1000 rows took nine times as long with two threads as with one. The free
    processors are counted again for each section within this one.
    """
    with _limits.section(None):
        yield


@contextmanager
def one_blas_thread(operations: float = 0.0) -> Iterator[None]:
    """Limit BLAS to one thread where its calls alternate with the engine's, unless a call has many `operations`.

    Idle threads of OpenBLAS spin for a while before they sleep, and so take cores from the engine. NumPy's and SciPy's
    wheels each have an OpenBLAS of their own. On two cores a product of 10 000 rows takes twice as long. In nested
    sections the least number counts.
    """
    with _limits.section(1 if operations < WORTH_WAKING else None):
        yield


@contextmanager
def fixed_threads(number: int) -> Iterator[None]:
    """Give BLAS and the engine exactly this number of threads, however busy the machine is."""
    with threadpool_limits(number), _limits.fixed():
        if _native is None:
            yield
            return
        _native.bound_threads(number)  # an engine that was built without OpenMP has no other number
        try:
            yield
        finally:
            _native.bound_threads(_most_threads())


@contextmanager
def one_thread_after_fork() -> Iterator[None]:
    """In a process that was forked from one with this module, limit other libraries' OpenMP to one thread.

    GNU's OpenMP waits for its threads, and a fork has none of them: scikit-learn's k-means then never ends.
    """
    with threadpool_limits(1, user_api="openmp") if os.getpid() != _loaded_by else nullcontext():
        yield


_loaded_by = os.getpid()


class _Limits:
    """The number of BLAS threads of this process.

    The least number of all open sections counts, whichever thread opened them, because BLAS has one number for the
    process. An OpenMP build of BLAS has one for each thread. When the last section is closed, the number is as before.
    """

    def __init__(self) -> None:
        self._lock, self._fixed = threading.Lock(), 0
        self._open: list[tuple[int, int | None]] = []
        self._before: list[int] = []

    @contextmanager
    def section(self, most: int | None) -> Iterator[None]:
        """Use at most this many threads, or the free ones if None."""
        own = threading.get_ident(), most
        if (own[0], 1) in self._open:  # nested in such a section of the same thread, which is common
            yield
            return
        with self._lock:
            if not self._open:
                self._before = [library.num_threads for library in _blas()]
            self._open.append(own)
            self._set()
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(own)
                self._set()

    def before(self) -> list[int]:
        """The threads of each library outside of all sections."""
        with self._lock:
            return self._before if self._open else [library.num_threads for library in _blas()]

    def after_fork(self) -> None:
        """In the child process: forget sections of threads that the fork did not copy."""
        self._lock = threading.Lock()
        self._open = [one for one in self._open if one[0] == threading.get_ident()]

    @contextmanager
    def fixed(self) -> Iterator[None]:
        """Ignore the number of free processors."""
        self._fixed += 1
        try:
            yield
        finally:
            self._fixed -= 1

    def _set(self) -> None:
        own, asked = threading.get_ident(), any(most is None for _, most in self._open)
        free = processors.free() if asked and not self._fixed and not processors.chosen() else math.inf
        for library, before in zip(_blas(), self._before, strict=True):
            each = getattr(library, "threading_layer", "") == "openmp"
            open_here = [most for thread, most in self._open if thread == own or not each]
            wanted = min([before, *(free if most is None else most for most in open_here)])
            if library.num_threads != wanted:
                library.set_num_threads(wanted)
            if hasattr(library, "clear_controlling_thread"):  # else only the thread that set it first can change it
                library.clear_controlling_thread()


_limits = _Limits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limits.after_fork)


@lru_cache(maxsize=1)
def _blas() -> tuple[Any, ...]:
    """Each BLAS library of this process. The search is slow, so it is done once, after NumPy and SciPy are loaded."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
