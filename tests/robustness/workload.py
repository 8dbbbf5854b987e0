"""Fits of all estimators beside each other, or in one process for a long time: run by test_side_by_side.py.

``python tests/robustness/workload.py threads 1000``: two threads at once each fit this many estimators.
``… fork 200`` and ``… spawn 200``: processes that are started after use of the threads fit one of them.
``… threads 1000 fork 200`` does one after the other in one process.
``… soak 3600``: fits, predictions and cancels at random for this many seconds, and what the process holds.
A line of JSON says what went wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import itertools
import json
import multiprocessing
import os
import pickle
import runpy
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import Cancelled
from mercer.events import Cancel, observe

TABLE = runpy.run_path(str(Path(__file__).parents[1] / "estimators" / "conftest.py"))
TABLE["rows"].__defaults__ = (150,)  # more rows than its tests have, so that fits last and the threads share them
EXAMPLES = {one.name: one for one in TABLE["examples"]()}
PATIENCE = 600.0
"""Seconds after which a process hangs: on a machine that is busy, or stopped, one that does not takes minutes."""
STOPPED = 2.0
"""Seconds that count at most for one fit of a soak: a longer one was stopped meanwhile, and a stop tries nothing."""
OF_OPENMP = "k-means, landmarks"
"""Fits by scikit-learn's k-means, whose threads of OpenMP a fork does not have."""
UNKEPT = "report_"
"""What a fit leaves that has times in it."""


def digest(value: Any) -> bytes:
    """A digest of all numbers in the attributes of a fitted model, to the bit."""
    found = hashlib.sha256()

    def add(one: Any) -> None:
        if isinstance(one, np.ndarray) and one.dtype != object:
            found.update(str((one.dtype, one.shape)).encode() + one.tobytes())
        elif sp.issparse(one):
            add(one.toarray())
        elif isinstance(one, dict):
            for name in sorted(one, key=str):
                found.update(str(name).encode())
                add(one[name] if "time" not in str(name) else 0)
        elif isinstance(one, list | tuple | np.ndarray):
            for each in one:
                add(each)
        elif isinstance(one, bool | int | float | str | np.generic):
            found.update(repr(one).encode())

    add({name: one for name, one in vars(value).items() if name.endswith("_") and name != UNKEPT})
    return found.digest()


def fit(name: str) -> bytes:
    """The digest of this estimator, fitted; an estimator in the attributes is digested, too."""
    example = EXAMPLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = example.new.fit(*example.first)
    inner = getattr(model, "best_estimator_", getattr(model, "estimator", None))
    return digest(model) + (digest(inner) if hasattr(inner, "n_features_in_") else b"")


class Expected(dict[str, bytes]):
    """The digests of fits that nothing disturbs, each made when it is first asked for."""

    def __missing__(self, name: str) -> bytes:
        self[name] = fit(name)
        return self[name]


def drawn(seed: int, times: int) -> list[str]:
    """Estimators in random order, none twice before all were drawn."""
    rng, rounds = np.random.default_rng(seed), -(-times // len(EXAMPLES))
    return [str(name) for _ in range(rounds) for name in rng.permutation(list(EXAMPLES))][:times]


def side_by_side(times: int, expected: Expected) -> list[str]:
    """What differs if two threads fit at once, each `times` estimators."""
    wrong: list[str] = []
    each = [[(name, expected[name]) for name in drawn(seed, times)] for seed in range(2)]

    def work(seed: int) -> None:
        for name, bits in each[seed]:
            try:
                if fit(name) != bits:
                    wrong.append(f"{name}: other bits")
            except Exception as error:
                wrong.append(f"{name}: {error!r}")

    warnings.simplefilter("ignore")  # the filters are those of the process: two threads would set each other's
    both = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    return wrong


def _child(name: str, connection: Any) -> None:
    connection.send(fit(name))


def in_processes(how: str, times: int, expected: Expected) -> list[str]:
    """What differs in so many processes, each of which fits one estimator."""
    context, wrong = multiprocessing.get_context(how), []
    for name in [OF_OPENMP, *drawn(0, times)][:times]:
        bits = expected[name]
        here, there = context.Pipe()
        child = context.Process(target=_child, args=(name, there))
        child.start()
        there.close()
        try:
            if not here.poll(PATIENCE):
                wrong.append(f"{name}: no answer")
            elif here.recv() != bits:
                wrong.append(f"{name}: other bits")
        except EOFError:
            wrong.append(f"{name}: the process died")
        child.join(5)
        child.kill()
        fit(name)  # and this process goes on
    return wrong


def held() -> tuple[int, int, int]:
    """Bytes in memory, open files, and threads of this process.

    Pages that the allocator keeps for the next array go back first: how many there are at a moment is chance.
    """
    gc.collect()
    with contextlib.suppress(AttributeError):  # a C library other than glibc has no such call
        ctypes.CDLL(None).malloc_trim(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) * 1024, len(os.listdir("/proc/self/fd")), int(status["Threads"])


def one_of_many(random: np.random.Generator) -> str:
    """A fit that is cut off somewhere, or a fit and what its model does; what went wrong, or nothing."""
    name = str(random.choice(list(EXAMPLES)))
    example, events = EXAMPLES[name], itertools.count(int(random.integers(1, 30)), -1)
    watchers = [Cancel(when=lambda: not next(events))] if random.random() < 0.3 else []
    model = example.new
    try:
        with warnings.catch_warnings(), observe(*watchers):
            warnings.simplefilter("ignore")
            model.fit(*example.first)
            for method in ("predict", "transform", "decision_function"):
                if hasattr(model, method):
                    getattr(model, method)(example.first[0])
            if random.random() < 0.2:
                pickle.loads(pickle.dumps(model))
    except Cancelled:
        return ""
    except Exception as error:
        return f"{name}: {error!r}"
    return ""


def soak(seconds: float) -> tuple[int, list[str], list[tuple[int, int, int]]]:
    """How much was done, what went wrong, and what the process held at a hundred moments."""
    random, wrong, done = np.random.default_rng(0), [], 0
    passed, seen = 0.0, []
    while passed < seconds:
        start = time.monotonic()
        wrong += [why for why in [one_of_many(random)] if why]
        done += 1
        if passed >= len(seen) * seconds / 100:
            seen.append(held())
        passed += min(time.monotonic() - start, STOPPED)
    return done, wrong, seen


def main(*work: str) -> None:
    if work[0] == "soak":
        done, wrong, seen = soak(float(work[1]))
        found: dict[str, Any] = {"done": done, "held": seen, "wrong": wrong}
    else:
        expected, wrong = Expected(), list[str]()
        for what, amount in zip(work[::2], map(int, work[1::2]), strict=True):
            each = side_by_side(amount, expected) if what == "threads" else in_processes(what, amount, expected)
            wrong += [f"{what}: {one}" for one in each]
        found = {"wrong": wrong}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
