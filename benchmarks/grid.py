"""The cost of choices of methods: ``python -m benchmarks.grid`` times every method on a grid, and the choice.

It runs in five environments: all threads, one thread, the smallest instruction set, half of the memory, and BLAS on one
thread. The loss of a cell is the time of the chosen fit, including the choice, over that of the best method. The error
of a prediction is the ratio of predicted and actual seconds, the larger over the smaller.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "all threads": {},
    "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "x86-64-v2": {"MERCER_ISA": "x86-64-v2"},
    "half the memory": {"GRID_MEMORY": "150MB"},
    "BLAS on one thread": {"OMP_NUM_THREADS": str(os.cpu_count()), "OPENBLAS_NUM_THREADS": "1"},
}
MOST_LOSS, MOST_ERROR = 1.3, 2.0
LONG = 0.3
"""Seconds above which a fit is timed twice; shorter ones three times."""


@dataclass
class Cell:
    """One problem: the seconds of each method, those of the choice, and the seconds predicted for the choice."""

    environment: str
    name: str
    ways: dict[str, float]
    chosen: float
    method: str
    predicted: float | None = None
    taken: float | None = None

    @property
    def loss(self) -> float:
        return self.chosen / min([*self.ways.values(), self.chosen])

    @property
    def error(self) -> float | None:
        if not self.predicted or not self.taken:
            return None
        return max(self.predicted / self.taken, self.taken / self.predicted)


Fit = Callable[[], Any]
Ways = dict[str, tuple[Fit, AbstractContextManager[Any]]]


def cells(memory: str) -> Iterator[tuple[str, Fit, Ways]]:
    """The name of each problem, the fit that chooses, and the methods that it could have taken."""
    yield from _ridge(memory)
    yield from _clusters(memory)
    yield from _components(memory)
    yield from _many_shifts(memory)


def _data(n: int, d: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def _ridge(memory: str) -> Iterator[tuple[str, Fit, Ways]]:
    from mercer import KernelRidge
    from mercer.kernels import Gaussian

    for n, d, alpha in itertools.product((1000, 2500, 5000), (5, 100), (10.0, 0.1)):
        X, y = _data(n, d)

        def fit(solver: str, X: Any = X, y: Any = y, d: int = d, alpha: float = alpha) -> Any:
            return KernelRidge(Gaussian(1 / d), alpha=alpha, solver=solver, tol=1e-8, memory=memory).fit(X, y)

        ways: Ways = {s: (lambda s=s, fit=fit: fit(s), nullcontext()) for s in ("cholesky", "cg")}
        yield f"ridge n={n} d={d} λ={alpha:g}", lambda fit=fit: fit("auto"), ways


def _clusters(memory: str) -> Iterator[tuple[str, Fit, Ways]]:
    from mercer import KernelKMeans
    from mercer.kernels import Gaussian

    for n, d in itertools.product((2500, 5000), (5, 30, 200)):
        X, _ = _data(n, d)

        def fit(solver: str, X: Any = X, d: int = d) -> Any:
            return KernelKMeans(6, Gaussian(0.3 / d), solver=solver, memory=memory, max_iter=30).fit(X)

        ways: Ways = {s: (lambda s=s, fit=fit: fit(s), nullcontext()) for s in ("stored", "matrix_free")}
        yield f"k-means n={n} d={d}", lambda fit=fit: fit("auto"), ways


def _components(memory: str) -> Iterator[tuple[str, Fit, Ways]]:
    from mercer import KernelPCA
    from mercer.kernels import Gaussian
    from mercer.planning import costs

    for n, d, k in itertools.product((600, 1500, 4000), (5, 200), (5, 60)):
        X, _ = _data(n, d)

        def fit(X: Any = X, d: int = d, k: int = k) -> Any:
            return KernelPCA(k, Gaussian(1 / d), memory=memory).fit(X)

        forced = {
            name: mock.patch.object(costs, "eigen_ways", lambda *_, name=name: {name: 0.0})
            for name in ("dense", "stored", "matrix-free")[n > 2000 :]  # LAPACK takes far more of many rows
        }
        yield f"PCA n={n} d={d} k={k}", fit, {name: (fit, patch) for name, patch in forced.items()}


def _many_shifts(memory: str) -> Iterator[tuple[str, Fit, Ways]]:
    import numpy as np

    from mercer import KernelRidgeCV
    from mercer.kernels import Gaussian
    from mercer.ways import spectral

    for n, gamma, shifts in itertools.product((700, 1500), (0.3, 0.003), (10, 60)):
        X, y = _data(n, 10)

        def fit(X: Any = X, y: Any = y, gamma: float = gamma, shifts: int = shifts) -> Any:
            return KernelRidgeCV(Gaussian(gamma), np.logspace(-3, 2, shifts), memory=memory).fit(X, y)

        forced = {
            name: mock.patch.object(spectral, "predicted_ways", lambda *_, name=name, **__: {name: 0.0})
            for name in ("factor", "band", "eigenvectors")
        }
        yield f"λ by leave-one-out n={n} γ={gamma:g} λs={shifts}", fit, {k: (fit, patch) for k, patch in forced.items()}


# ---- timing ----------------------------------------------------------------------------------------------------------


def measure(environment: str, only: str = "") -> list[Cell]:
    """Measure all cells in the environment of this process, without methods that need too much memory.

    The rates of the machine are measured first, as a long fit would have done earlier.
    """
    from mercer.gram import rates

    warnings.simplefilter("ignore")
    for _ in range(60):  # for an idle moment
        if rates.machine(lambda machine: 2 * rates.WORTH_MEASURING).source != "documented":
            break
        time.sleep(1)
    found = []
    for name, choose, ways in cells(os.environ.get("GRID_MEMORY", "300MB")):
        if only not in name:
            continue
        if _seconds(choose, nullcontext()) is None:
            continue
        taken = {way: _seconds(fit, patch) for way, (fit, patch) in ways.items()}
        chosen, report = min((_timed(choose) for _ in range(3)), key=lambda one: one[0])
        cell = Cell(environment, name, {k: s for k, s in taken.items() if s is not None}, chosen, report.method)
        if report.predicted:
            cell.predicted, cell.taken = sum(report.predicted.values()), sum(map(report.taken, report.predicted))
        found.append(cell)
        print(_line(cell), file=sys.stderr, flush=True)
    return found


def _timed(fit: Fit) -> tuple[float, Any]:
    start = time.perf_counter()
    report = fit().report_
    return time.perf_counter() - start, report


def _seconds(fit: Fit, patch: AbstractContextManager[Any]) -> float | None:
    """The fastest of several fits; None if the method is refused."""
    with contextlib.suppress(MemoryError), patch:
        first = _timed(fit)[0]
        return min([first, *(_timed(fit)[0] for _ in range(1 if first > LONG else 2))])
    return None


def _line(cell: Cell) -> str:
    ways = ", ".join(f"{name} {seconds:.3f}" for name, seconds in cell.ways.items())
    error = f", predicted {cell.predicted:.3f} took {cell.taken:.3f}" if cell.error else ""
    return (
        f"{cell.environment}: {cell.name}: {ways}; chosen {cell.chosen:.3f} ({cell.method[:40]}) {cell.loss:.2f}{error}"
    )


def summary(found: list[Cell]) -> str:
    """A row for each environment: cells within the loss, the worst, and predictions within the error."""
    rows = [
        "| environment | cells | choice ≤ 1.3 × best | worst | predictions | within a factor 2 |",
        "|---|---|---|---|---|---|",
    ]
    for environment in dict.fromkeys(cell.environment for cell in found):
        own = [cell for cell in found if cell.environment == environment]
        errors = [cell.error for cell in own if cell.error is not None]
        good = sum(cell.loss <= MOST_LOSS for cell in own) / len(own)
        near = sum(error <= MOST_ERROR for error in errors) / max(len(errors), 1)
        worst = max(own, key=lambda cell: cell.loss)
        worst_cell = f"{worst.loss:.1f} ({worst.name})"
        rows.append(f"| {environment} | {len(own)} | {good:.0%} | {worst_cell} | {len(errors)} | {near:.0%} |")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Run each environment in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid", description=__doc__)
    parser.add_argument("--environment", choices=ENVIRONMENTS, action="append", help="an environment; by default all")
    parser.add_argument("--only", default="", help="cells whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the cells here")
    parser.add_argument("--here", metavar="COSTUME", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        print(json.dumps([asdict(cell) for cell in measure(options.here, options.only)]))
        return 0
    found: list[Cell] = []
    for environment in options.environment or ENVIRONMENTS:
        command = [sys.executable, "-m", "benchmarks.grid", "--here", environment, "--only", options.only]
        done = subprocess.run(command, env=os.environ | ENVIRONMENTS[environment], stdout=subprocess.PIPE, check=True)
        found += [Cell(**cell) for cell in json.loads(done.stdout)]
        if options.json:
            options.json.write_text(json.dumps([asdict(cell) for cell in found], indent=1, ensure_ascii=False))
    print(summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
