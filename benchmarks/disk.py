"""What rows on disk cost: ``python -m benchmarks.disk FOLDER`` times fits and predictions from files and from memory.

FOLDER receives the rows, up to 7 GB for each kind of work, and is emptied of them afterwards. Each fit is a process of
its own. On disk the process has a limit that Linux keeps: of its addresses (``ulimit -v``) or its data (``ulimit -d``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import ROOT, in_use

CHUNK = 100_000
"""Rows that are drawn and written at a time: a row group of Parquet, a chunk of Zarr."""

SHOWN = 1000
"""Rows whose outputs from disk and from memory are compared."""


def fit(model: Any, X: Any, y: Any, _out: Path) -> None:
    """The fit itself."""
    model.fit(X, y)


def predict(model: Any, X: Any, y: Any, out: Path) -> None:
    """Predictions for all rows by a model of the first thousand: to a file if the rows are on disk."""
    from mercer.io import stream

    model.fit(X[:SHOWN], y[:SHOWN])
    if isinstance(X, np.ndarray):
        model.predict(X)
    else:
        stream(model, X, out, memory=model.memory)


@dataclass(frozen=True)
class Work:
    """A model of `n` rows in `d` columns from a file with this `ending`, within `memory`, and a `limit` in bytes.

    The model that has its rows in memory has `beside` as its `memory=`, and so many times `fewer` rows.
    """

    n: int
    d: int
    ending: str
    model: Callable[[str | None], Any]
    memory: str
    limit: tuple[str, int] | None = None
    outputs: str = "predict"
    does: Callable[[Any, Any, Any, Path], None] = fit
    beside: str | None = None
    fewer: int = 1


def ridge(memory: str | None) -> Any:
    """Ridge on 200 landmarks."""
    from mercer import KernelRidge

    return KernelRidge("gaussian(gamma=0.02)", 1.0, solver="nystroem", n_landmarks=200, memory=memory)


def exact_ridge(memory: str | None) -> Any:
    """Ridge on all rows by conjugate gradients."""
    from mercer import KernelRidge

    return KernelRidge("gaussian(gamma=0.05)", 0.1, solver="cg", tol=1e-6, memory=memory)


def components(memory: str | None) -> Any:
    """Five components of 100 landmarks."""
    from mercer import KernelPCA

    return KernelPCA(5, "gaussian(gamma=0.05)", solver="nystroem", n_landmarks=100, memory=memory)


def machine(memory: str | None) -> Any:
    """A support vector machine on 100 landmarks."""
    from mercer import SVC

    return SVC(1.0, "gaussian(gamma=0.05)", solver="nystroem", n_landmarks=100, memory=memory)


def clusters(memory: str | None) -> Any:
    """k-means on 100 landmarks by mini-batches."""
    from mercer import KernelKMeans

    return KernelKMeans(
        8, "gaussian(gamma=0.05)", solver="nystroem", n_landmarks=100, batch_size=100_000, memory=memory
    )


GB = 10**9
WORK = {
    "parquet": Work(20_000_000, 40, ".parquet", ridge, "1GB", ("RLIMIT_AS", 2 * GB), fewer=5),
    "zarr": Work(20_000_000, 40, ".zarr", ridge, "1GB", ("RLIMIT_AS", 2 * GB), fewer=5),
    "exact": Work(100_000, 20, ".npy", exact_ridge, "1.5GB", beside="1.5GB"),
    "components": Work(5_000_000, 20, ".parquet", components, "700MB", ("RLIMIT_DATA", GB), "transform"),
    "machine": Work(5_000_000, 20, ".parquet", machine, "700MB", ("RLIMIT_DATA", GB), "decision_function"),
    "clusters": Work(5_000_000, 20, ".parquet", clusters, "700MB", ("RLIMIT_DATA", GB)),
    "predictions": Work(10_000_000, 20, ".parquet", ridge, "700MB", ("RLIMIT_DATA", GB), does=predict),
}
"""Each kind of work. A limit leaves the libraries what `memory` does not count: code, stacks, reserved addresses."""


def drawn(work: Work) -> Iterator[Any]:
    """Normal rows, CHUNK at a time."""
    for first in range(0, work.n, CHUNK):
        yield np.random.default_rng(first).standard_normal((min(CHUNK, work.n - first), work.d))


def target(X: Any) -> Any:
    """A function of the first three columns, and of its rows' last one as noise."""
    return np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * X[:, -1]


def write(work: Work, rows: Path) -> None:
    """The rows in a file, and their targets beside it."""
    written = {".parquet": _to_parquet, ".zarr": _to_zarr, ".npy": _to_npy}[work.ending](work, rows)
    np.save(rows.with_name("targets.npy"), np.concatenate(written))


def _to_parquet(work: Work, rows: Path) -> list[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, targets = [f"x{j}" for j in range(work.d)], []
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(rows, schema, compression="none", use_dictionary=False) as file:
        for X in drawn(work):
            file.write_table(pa.table(list(X.T), schema=schema))
            targets.append(target(X))
    return targets


def _to_zarr(work: Work, rows: Path) -> list[Any]:
    import zarr

    shape, targets = (work.n, work.d), []
    file = zarr.create_array(str(rows), shape=shape, chunks=(CHUNK, work.d), dtype="f8", compressors=None)
    for i, X in enumerate(drawn(work)):
        file[i * CHUNK : i * CHUNK + len(X)] = X
        targets.append(target(X))
    return targets


def _to_npy(work: Work, rows: Path) -> list[Any]:
    X = np.concatenate(list(drawn(work)))
    np.save(rows, X)
    return [target(X)]


def timed(work: Work, place: str, rows: Path) -> dict[str, Any]:
    """The seconds of the work from `place`, the megabytes of its process at the most, and some outputs."""
    from sklearn.base import is_classifier

    from mercer.points import read_points

    on_disk = place == "disk"
    model = work.model(work.memory if on_disk else work.beside)
    y: Any = np.load(rows.with_name("targets.npy"))
    y = y > 0 if is_classifier(model) else y
    X: Any = read_points(rows, memory=work.memory) if on_disk else read_points(rows, memory="16GB").dense()
    began = time.perf_counter()
    work.does(model, X, y, rows.with_name("outputs.parquet"))
    seconds = time.perf_counter() - began
    outputs = np.asarray(getattr(model, work.outputs)(next(drawn(work))[:SHOWN]), dtype=np.float64)
    return {"seconds": seconds, "megabytes": in_use()[1], "outputs": outputs.ravel().tolist()}


def in_process(name: str, place: str, folder: Path, scale: float) -> dict[str, Any]:
    """What `timed` gives, from a process of its own, with the limit of the work on disk."""
    work = scaled(WORK[name], scale)
    limit = work.limit if place == "disk" else None

    def limited() -> None:
        import resource

        if limit:
            resource.setrlimit(getattr(resource, limit[0]), (limit[1], limit[1]))

    rows = folder / f"rows{work.ending}"
    folder.mkdir(parents=True)
    try:
        write(work, rows)
        command = [sys.executable, "-m", "benchmarks.disk", str(rows), "--one", name, place, "--scale", str(scale)]
        settings = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # Arrow's own pools reserve 1 GB of addresses
        done = subprocess.run(
            command, cwd=ROOT, env=settings, preexec_fn=limited, capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise RuntimeError(f"{name} from {place} failed:\n{done.stderr}")
    return {"n": work.n, **json.loads(done.stdout.splitlines()[-1])}


def compare(name: str, folder: Path, scale: float) -> None:
    """Print what one kind of work takes from disk and from memory, and how far their outputs are apart."""
    fewer, folder = WORK[name].fewer, folder / f"mercer-{name}"
    disk, memory = in_process(name, "disk", folder, scale), in_process(name, "memory", folder, scale / fewer)
    here, there = (1e6 * one["seconds"] / one["n"] for one in (disk, memory))
    answers = "not compared"
    if fewer == 1:
        found, expected = (np.array(one["outputs"]) for one in (disk, memory))
        answers = f"differ by {np.abs(found - expected).max() / np.abs(expected).max():.1e}"
    print(
        f"{name}, n = {disk['n']}, d = {WORK[name].d}: {disk['seconds']:.1f} s, {here:.3g} µs a row from disk, "
        f"{there:.3g} µs in memory (n = {memory['n']}): {here / there:.2f} times the time;"
        f" peak {disk['megabytes']:.0f} MB with pages of files; answers {answers}",
        flush=True,
    )


def scaled(work: Work, scale: float) -> Work:
    return Work(**{**vars(work), "n": int(work.n * scale)})


def main(arguments: list[str] | None = None) -> None:
    """Compare all kinds of work, or one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where rows are written")
    parser.add_argument("--only", choices=list(WORK), help="one kind of work (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="times so many rows (1)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        name, place = options.one
        print(json.dumps(timed(scaled(WORK[name], options.scale), place, options.folder)))
        return
    for name in [options.only] if options.only else WORK:
        compare(name, options.folder.resolve(), options.scale)


if __name__ == "__main__":
    main()
