"""What a report of a bug should say: versions, engine, threads and BLAS."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

from mercer.engine import processors
from mercer.engine.backend import engine
from mercer.planning.machine import known
from mercer.version import __version__

__all__ = ["show_versions"]

NEEDED = ("numpy", "scipy", "scikit-learn", "threadpoolctl")
OPTIONAL = (
    "pandas", "polars", "pyarrow", "zarr", "safetensors", "matplotlib", "pillow", "rich", "typer", "dask",
    "distributed", "bokeh", "jinja2", "torch", "onnx", "cuda-core",
)  # fmt: skip
VARIABLES = (
    "MERCER_CORE", "MERCER_ENGINE", "MERCER_ISA", "MERCER_MACHINE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)  # fmt: skip


def show_versions() -> None:
    """Print what a report of a bug should say: versions, instruction sets, threads, BLAS, and optional packages.

    No paths and no names of machines or users are printed.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    mercer: 0...
    """
    sys.stdout.write("\n".join(f"{name}: {value}" for name, value in _facts().items()) + "\n")


def _facts() -> dict[str, str]:
    chosen = engine()
    own = chosen.capabilities
    facts = {
        "mercer": __version__,
        "python": sys.version.replace("\n", " "),
        "machine": platform.platform(),
        "engine": ("compiled, " if own.compiled else "not compiled, ") + own.instruction_set,
        "instruction sets": ", ".join(own.instruction_sets),
        "threads": f"{chosen.threads()}, of {processors.allowed()} processors",
        "rates": _origin(known(chosen.threads(), own.instruction_set).source),
    }
    facts |= {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    for place, library in enumerate(threadpool_info(), 1):
        told = (library["internal_api"], library["version"], library.get("architecture"))
        facts[f"{library['user_api']} {place}"] = f"{' '.join(filter(None, told))}, {library['num_threads']} threads"
    return facts | {name: _setting(name) for name in VARIABLES if name in os.environ}


def _origin(source: str) -> str:
    return source if source in ("documented", "measured") else "of a file"


def _setting(name: str) -> str:
    value = os.environ[name]
    return value if name != "MERCER_MACHINE" or value.lower() in ("", "off") else "a file"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
