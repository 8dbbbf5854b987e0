"""The rates of the machine: documented defaults, and rates that were measured on this machine and kept in a file.

No other module has figures in seconds or operations a second. `mercer.gram.rates` measures the rates.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from mercer.errors import InvalidInput, message
from mercer.files import write_whole
from mercer.version import __version__

__all__ = ["MANY", "NARROW", "WIDE", "Machine", "cache_folder", "given", "keep", "kept", "known"]

NARROW, WIDE = 8, 128
"""Numbers of columns at which the engine's rate of entries is measured. The seconds for a pair of rows are linear in d
between the two, constant below, and proportional to d above."""

MANY = 26
"""How many vectors the engine multiplies with at once for little more than the cost of ten."""

MOST_BANDWIDTH = 4
"""The number of threads above which the documented bandwidth does not grow."""

MOST_RATE = 1e18
"""Rates beyond are no machine's: a file that has one was not written by `Machine.save`."""

FORMAT = 1
"""The format of the file with rates."""


@dataclass(frozen=True)
class Machine:
    """The rates of a machine, a second, with as many threads as the engine uses.

    Attributes
    ----------
    threads : int
        The number of threads of the engine.
    product32, product64 : float
        Operations a second of a product of large matrices in float32 and float64, by all threads of BLAS.
    product32_alone, product64_alone : float
        Operations a second of the same products by one thread.
    bandwidth, bandwidth_alone : float
        Bytes a second that a product of a large stored matrix with a vector reads, by all threads and by one.
    touch : float
        Bytes a second of fresh memory that is written for the first time.
    narrow32, wide32, narrow64, wide64 : float
        Pairs of rows a second in a symmetric product of a Gaussian kernel matrix with one vector, for rows of `NARROW`
        and of `WIDE` columns, with entries in float32 and float64. A pair stands for two entries.
    block32, block64 : float
        1/s for the s seconds by which a pair takes longer if the product is with 26 vectors instead of one.
    sums : float
        Entries a second of a stored float32 matrix that are added up by groups of columns.
    compare, sort : float
        Comparisons a second of two vectors of sequence windows, and windows a second that counting one pattern sorts.
    calls : float
        Calls a second of NumPy functions on a few numbers: the rate of Python code.
    source : str
        The origin of the rates: "documented", "measured", or the name of a file.

    Examples
    --------
    >>> one, two = (Machine.documented(threads) for threads in (1, 2))
    >>> two.product64 == 2 * one.product64, two.touch == one.touch
    (True, True)
    """

    threads: int
    product32: float
    product64: float
    product32_alone: float
    product64_alone: float
    bandwidth: float
    bandwidth_alone: float
    touch: float
    narrow32: float
    wide32: float
    narrow64: float
    wide64: float
    block32: float
    block64: float
    sums: float
    compare: float
    sort: float
    calls: float
    source: str = "documented"

    @classmethod
    def documented(cls, threads: int = 2, instruction_set: str = "x86-64-v4", blas: int | None = None) -> Machine:
        """The default rates, those of a server processor of 2023.

        Parameters
        ----------
        threads : int
            Of the engine.
        instruction_set : str
            That of the engine; "" is a compiled engine without one, and others without documented rates have those of
            x86-64-v2.
        blas : int, optional
            Threads of BLAS, by default as many as of the engine.
        """
        one = _DOCUMENTED.get(instruction_set, _DOCUMENTED["x86-64-v2"])
        blas = threads if blas is None else blas
        more = {name: rate * threads for name, rate in one.items() if name not in _OF_ONE_THREAD}
        more |= {name: one[name] * blas for name in ("product32", "product64")}
        more["bandwidth"] = one["bandwidth"] * min(blas, MOST_BANDWIDTH)
        rates: dict[str, Any] = one | more
        return cls(threads, **rates)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the rates to a file, for the environment variable ``MERCER_MACHINE`` to name.

        >>> import tempfile
        >>> Machine.documented().save(Path(tempfile.mkdtemp()) / "rates.json")
        """
        _write(self, None, Path(file))

    def product(self, itemsize: int, *, alone: bool = False) -> float:
        """Operations a second of BLAS for entries of 4 or 8 bytes, by all threads or by one (`alone`)."""
        return float(getattr(self, f"product{8 * itemsize}{'_alone' if alone else ''}"))

    def pair(self, d: int, itemsize: int) -> float:
        """Seconds for a pair of rows of d columns.

        >>> machine = Machine.documented()
        >>> machine.pair(NARROW, 8) == 1 / machine.narrow64, machine.pair(1000, 8) > machine.pair(100, 8)
        (True, True)
        """
        narrow, wide = (1 / float(getattr(self, f"{width}{8 * itemsize}")) for width in ("narrow", "wide"))
        share = min(max((d - NARROW) / (WIDE - NARROW), 0.0), 1.0)
        return ((1 - share) * narrow + share * wide) * max(d / WIDE, 1.0)

    @property
    def tiles(self) -> float:
        """Operations a second of the engine's own matrix products in float64, estimated from its rate for wide rows."""
        return 0.9 * 2 * WIDE * self.wide64

    def block(self, itemsize: int) -> float:
        """Seconds by which a pair of rows takes longer if the product is with 26 vectors instead of one."""
        return 1 / float(getattr(self, f"block{8 * itemsize}"))


def _rates_of(one: str) -> dict[str, float]:
    names = [field.name for field in fields(Machine)[1:-1]]
    return dict(zip(names, map(float, one.split()), strict=True))


_OF_ONE_THREAD = ("product32_alone", "product64_alone", "bandwidth_alone", "touch", "calls")

# product32, product64, the same alone; bandwidth, the same alone; touch;
# narrow32, wide32, narrow64, wide64; block32, block64, sums; compare, sort; calls
_BLAS = "9e10 4.5e10 9e10 4.5e10  2e10 2e10  2e9"
_DOCUMENTED = {
    "": _rates_of(f"{_BLAS}  2e7 8e6 1.5e7 6e6  2e8 1e8 2e8  1e7 4e5  2e6"),
    "x86-64-v2": _rates_of(f"{_BLAS}  2e8 7e7 1.4e8 4e7  1.2e8 1e8 6e8  6e8 2.4e7  2e6"),
    "x86-64-v3": _rates_of(f"{_BLAS}  5e8 1.6e8 3.5e8 1e8  2.6e8 2.2e8 1e9  6e8 2.4e7  2e6"),
    "x86-64-v4": _rates_of(f"{_BLAS}  8.5e8 2.9e8 6.5e8 1.5e8  6e8 3.6e8 1.3e9  6e8 2.4e7  2e6"),
}


# ---- the rates in use ------------------------------------------------------------------------------------------------

_measured: dict[tuple[int, str], Machine | None] = {}


def known(threads: int, instruction_set: str) -> Machine:
    """The rates of ``MERCER_MACHINE``, else those that were measured before, else the documented ones."""
    return given() or kept(threads, instruction_set) or Machine.documented(threads, instruction_set)


def given() -> Machine | None:
    """The rates in the file that ``MERCER_MACHINE`` names; None if the variable is not set.

    "off" stands for the documented rates of two threads and x86-64-v4, so that plans are the same on all machines.

    Raises
    ------
    InvalidInput
        If the file has no rates.
    """
    wanted = os.environ.get("MERCER_MACHINE", "")
    if not wanted:
        return None
    return Machine.documented() if wanted.lower() == "off" else _from_file(wanted)


@functools.lru_cache(maxsize=8)
def _from_file(name: str) -> Machine:
    found = _read(Path(name))
    if found is None:
        given = f"{name[:200]!r} cannot be read, or does not hold the rates of a machine"
        do = "name a file that Machine.save wrote, or set it to off for documented rates"
        raise InvalidInput(message("MERCER_MACHINE", given, do))
    return replace(found[0], source=name)


def cache_folder() -> Path:
    """The folder of mercer in the user's cache folder."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "mercer"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "mercer"
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else home / ".cache") / "mercer"  # its standard ignores relative paths


def kept(threads: int, instruction_set: str) -> Machine | None:
    """The rates that were measured on this machine for this number of threads, in this process or an earlier one."""
    at = threads, instruction_set
    if at not in _measured:
        _measured[at] = _kept(*at)
    return _measured[at]


def _kept(threads: int, instruction_set: str) -> Machine | None:
    """The rates in the user's cache folder; None if it has none for this machine and these versions."""
    key = _key(threads, instruction_set)
    found = _read(_place(key))
    return found[0] if found is not None and found[1] == key and found[0].threads == threads else None


def keep(machine: Machine, instruction_set: str) -> None:
    """Use measured rates from now on, and in later processes too if the user's cache folder can be written."""
    _measured[machine.threads, instruction_set] = machine
    key = _key(machine.threads, instruction_set)
    with contextlib.suppress(OSError, InvalidInput):
        _write(machine, key, _place(key))


def _write(machine: Machine, key: Any, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, "key": key, "rates": asdict(machine)}
    write_whole(place, json.dumps(content, indent=1).encode(), "rates")


def _read(file: Path) -> tuple[Machine, Any] | None:
    """The rates in a file, and the key of the machine they belong to; None if there is no file with rates."""
    names = {field.name for field in fields(Machine)}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rates, key = content["rates"], content["key"]
        if content["format"] != FORMAT or set(rates) != names or not isinstance(rates["source"], str):
            return None
        numbers = [rates[name] for name in names - {"source"}]
        sound = all(type(x) in (int, float) and 1 <= x <= MOST_RATE for x in numbers)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return (Machine(**rates), key) if sound and type(rates["threads"]) is int else None


def _place(key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / f"machine-{digest}.json"


def _key(threads: int, instruction_set: str) -> dict[str, Any]:
    """Everything that rates depend on: the processor, versions of libraries, the instruction set and the threads."""
    versions = [__version__, np.__version__, scipy.__version__]
    return {
        "processor": [platform.system(), platform.machine(), _processor(), os.cpu_count()],
        "versions": versions,
        "instruction_set": instruction_set,
        "threads": threads,
        "blas": [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OMP", "OPENBLAS", "MKL")],
    }


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """The name of the processor's model."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "flags", "CPU part")):
                return line.partition(":")[2].strip()
    return platform.processor()
