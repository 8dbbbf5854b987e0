"""The rows of the benchmarks: our callable and the peer's are timed in turn, over several rounds."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import math
import re
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine, memory

ROWS = (
    "rows_products",
    "rows_entries",
    "rows_estimators",
    "rows_ridge",
    "rows_select",
    "rows_processes",
    "rows_discriminant",
    "rows_clusters",
    "rows_online",
    "rows_svm",
    "rows_machines",
    "rows_large",
    "rows_usps",
    "rows_sequences",
)

SETTLE = 0.05
"""Seconds of rest before each measurement: a BLAS's threads spin on for hundredths of a second after their work."""

FAST = 0.2
"""A call shorter than this is repeated within a round until it has taken so long, at most `REPEATS` times."""
REPEATS = 10


class Missing(Exception):
    """Raised if a peer, a data set or a part of mercer is missing. The row is skipped with this message."""


@dataclass(frozen=True)
class Setting:
    """The options of a run."""

    quick: bool = False
    rounds: int = 5
    threads: int = 2
    data: Path | None = None
    patience: float = 0.0

    def size(self, full: int, quick: int) -> int:
        """`full`, or `quick` in a run that only checks that the rows work."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Target:
    """A bound on a row's figure, from below or from above."""

    bound: float
    least: bool

    def met(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound


def at_least(bound: float) -> Target:
    return Target(bound, True)


def at_most(bound: float) -> Target:
    return Target(bound, False)


@dataclass(frozen=True)
class Row:
    """Our callable against one peer.

    Parameters
    ----------
    name : str
        The computation, in the words of the table.
    ours, peer : callables without arguments
        They include everything that a user would have to do, but not what both share (the data). Without a peer only
        our error or our memory is measured.
    peer_name : str
        The peer, in the words of the table.
    figure : {"speedup", "cost", "share", "rate", "error", "memory", "seconds"}
        Peer's time over ours; our time over the peer's; our rate over the peer's; our pairs a second; our error; our
        peak memory; our time.
    work : (float, float)
        For "share": floating-point operations in one call of ours and of the peer's. For "rate": pairs in one of ours.
    target : Target, optional
        The bound that the figure must reach.
    error : callable, optional
        The error of a result against a float64 reference; the peer's too, where both compute the same thing.
    tolerance : float, optional
        The error that ours may have for the target to count as met; a peer beyond it is shown, but sets no target.
    memory : bool
        Measure the peak memory of both, each in a process of its own.
    once : bool
        For rows of minutes: one call of each, which is timed, gives the error and, if `most_megabytes` is given, the
        memory, as far as this process's peak can tell it.
    most_megabytes : float, optional
        The memory above the data that ours may take for the target to count as met.
    rounds : int
        At most so many rounds: for rows of many seconds.
    note : str
        A remark for the table.
    """

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any] | None = None
    peer_name: str = ""
    figure: str = "speedup"
    work: tuple[float, float] = (1.0, 1.0)
    target: Target | None = None
    error: Callable[[Any], float] | None = None
    tolerance: float | None = None
    memory: bool = False
    once: bool = False
    most_megabytes: float | None = None
    rounds: int = 100
    note: str = ""

    def value(self, ours: float, peer: float) -> float:
        """The figure of one round, from the seconds of both."""
        if self.figure == "seconds":
            return ours
        if self.figure == "cost":
            return ours / peer
        if self.figure == "rate":
            return self.work[0] / ours
        return peer / ours * (self.work[0] / self.work[1])


@dataclass
class Result:
    """The measurements of one row."""

    key: str
    group: str
    name: str = ""
    peer_name: str = ""
    figure: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    target: float | None = None
    target_is_least: bool = True
    met: bool | None = None
    rounds: int = 0
    ours_seconds: float = math.nan
    peer_seconds: float = math.nan
    ours_error: float = math.nan
    peer_error: float = math.nan
    tolerance: float | None = None
    ours_megabytes: float = math.nan
    peer_megabytes: float = math.nan
    note: str = ""
    skipped: str = ""
    seconds: float = 0.0
    earlier: bool = False  # measured by an earlier run
    quiet: machine.Quiet = field(default_factory=machine.Quiet)
    disturbed: bool = False  # judged once, by the pace of the run that measured it


@dataclass(frozen=True)
class Case:
    """A row by its key, built when it is run, possibly in another process."""

    key: str
    group: str
    build: Callable[[Setting], Row]
    module: str = ""


_cases: list[Case] = []


def benchmark(group: str, **grid: Sequence[Any]) -> Callable[[Callable[..., Row]], Callable[..., Row]]:
    """Register a function setting, **values -> Row, once for each combination of the grid's values."""

    def register(function: Callable[..., Row]) -> Callable[..., Row]:
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            key = ",".join([function.__name__, *(f"{name}={value}" for name, value in chosen.items())])
            build = functools.partial(function, **chosen)
            _cases.append(Case(key, group, build, function.__module__))
        return function

    return register


def select(pattern: str = "", files: Sequence[str] = ROWS) -> list[Case]:
    """The rows of these files whose key matches, in the order in which the files state them."""
    modules = {importlib.import_module(f"benchmarks.{name}").__name__ for name in files}
    return [case for case in _cases if case.module in modules and re.search(pattern, case.key)]


# ---- a run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """All results, and the machine that they were measured on."""

    results: list[Result]
    machine: dict[str, Any]
    setting: Setting
    pace: float
    seconds: float


def run(cases: Sequence[Case], setting: Setting) -> Run:
    """Measure every case; progress goes to stderr. Ctrl-C ends the run with the rows that are done."""
    start, probe, results = time.perf_counter(), machine.Probe(setting.size(1536, 128)), []
    with contextlib.suppress(KeyboardInterrupt):
        for case in cases:
            print(f"{case.key} … ", end="", file=sys.stderr, flush=True)
            probe.await_quiet(setting.patience)
            results.append(measure(case, setting, probe))
            outcome = results[-1].skipped or f"{results[-1].value:.4g}"
            print(f"{outcome}  [{results[-1].seconds:.0f} s]", file=sys.stderr, flush=True)
            gc.collect()
    for result in results:
        result.disturbed = not result.skipped and result.quiet.disturbed(probe.best)
    description = machine.describe(setting.threads)
    return Run(results, description, setting, probe.best, time.perf_counter() - start)


def measure(case: Case, setting: Setting, probe: machine.Probe) -> Result:
    """Measure one row. A missing peer or a failure is noted in the result, so that the other rows still run."""
    result, start = Result(case.key, case.group), time.perf_counter()
    try:
        row = case.build(setting)
        with probe.watch(result.quiet):
            _measure(row, case, setting, result)
    except Missing as missing:
        result.skipped = str(missing)
    except Exception as error:
        traceback.print_exc()
        result.skipped = f"failed: {type(error).__name__}: {str(error)[:100]}"
    result.seconds = time.perf_counter() - start
    return result


def _measure(row: Row, case: Case, setting: Setting, result: Result) -> None:
    for name in ("name", "peer_name", "figure", "note", "tolerance"):
        setattr(result, name, getattr(row, name))
    if row.memory and (row.figure == "memory" or not setting.quick):
        asked = {"threads": setting.threads, "quick": setting.quick, "data": setting.data}
        result.ours_megabytes = memory.peak(case.key, "ours", **asked)
        result.peer_megabytes = memory.peak(case.key, "peer", **asked) if row.peer else math.nan
    if row.figure == "memory":
        result.value = result.ours_megabytes
    elif row.once:
        _once(row, result)
    else:
        _errors(row, result)
        if row.figure == "error":
            result.value = result.ours_error
        else:
            _race(row, setting, result)
    _judge(row, setting, result)


def _errors(row: Row, result: Result) -> None:
    """Call each once as a warm-up; the results give the errors."""
    ours = row.ours()
    result.ours_error = row.error(ours) if row.error else math.nan
    del ours
    if row.peer is not None:
        peer = row.peer()
        same = row.error is not None and row.figure in ("speedup", "error")
        result.peer_error = row.error(peer) if same else math.nan


def _once(row: Row, result: Result) -> None:
    """Measure time, memory and error in a single call of each."""
    with memory.watched() as taken:
        start = time.perf_counter()
        ours = row.ours()
        result.ours_seconds = time.perf_counter() - start
    result.ours_megabytes = taken() if row.most_megabytes is not None else math.nan
    result.value = result.ours_seconds
    if row.peer is not None:
        start = time.perf_counter()
        peer = row.peer()
        result.peer_seconds = time.perf_counter() - start
        result.value = row.value(result.ours_seconds, result.peer_seconds)
        result.peer_error = row.error(peer) if row.error is not None else math.nan
    result.ours_error = row.error(ours) if row.error else math.nan
    result.rounds, result.low, result.high = 1, result.value, result.value


def _race(row: Row, setting: Setting, result: Result) -> None:
    assert row.peer is not None or row.figure == "rate", f"{row.name}: a figure of time needs a peer"
    peer_call = row.peer or (lambda: None)
    rounds = 1 if setting.quick else min(setting.rounds, row.rounds)
    if setting.quick:  # the figures are not used, so one call of each is enough
        pairs = [(_one_call(row.ours), _one_call(peer_call))]
    else:
        pairs = _rounds(row.ours, peer_call, rounds, SETTLE)
    ours, peer = zip(*pairs, strict=True)
    values = [row.value(a, b) for a, b in zip(ours, peer, strict=True)]
    result.rounds = rounds
    result.value, result.low, result.high = statistics.median(values), min(values), max(values)
    result.ours_seconds = statistics.median(ours)
    result.peer_seconds = statistics.median(peer) if row.peer else math.nan


def _rounds(ours: Callable[[], Any], peer: Callable[[], Any], rounds: int, rest: float) -> list[tuple[float, float]]:
    """Seconds of both in `rounds` rounds. If others take the cores, up to three times as many; the quietest count."""
    taken: list[tuple[float, tuple[float, float]]] = []
    while len(taken) < 3 * rounds and sum(share <= machine.CROWDED for share, _ in taken) < rounds:
        others = machine.crowd()
        seconds = clock(ours, rest), clock(peer, rest)
        taken.append((others() or 0.0, seconds))
    return [seconds for _, seconds in sorted(taken, key=lambda one: one[0])[:rounds]]


def _judge(row: Row, setting: Setting, result: Result) -> None:
    if row.target is None:
        return
    result.target, result.target_is_least = row.target.bound, row.target.least
    tolerance = math.inf if row.tolerance is None else row.tolerance
    if not (setting.quick or result.peer_error > tolerance):
        fits = row.most_megabytes is None or not result.ours_megabytes > row.most_megabytes
        result.met = row.target.met(result.value) and not result.ours_error > tolerance and fits


def clock(call: Callable[[], Any], rest: float = SETTLE) -> float:
    """Seconds of one call: the fastest of those that fit into a fifth of a second."""
    gc.collect()
    time.sleep(rest)
    return min(_seconds(call))


def _seconds(call: Callable[[], Any]) -> Iterator[float]:
    total = 0.0
    for _ in range(REPEATS):
        seconds = _one_call(call)
        yield seconds
        total += seconds
        if total > FAST:
            return


def _one_call(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    del result  # outside of the time: freeing can take long
    return seconds
