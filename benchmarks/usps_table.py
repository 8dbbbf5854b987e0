"""The table of Schölkopf, Smola & Müller (1998): USPS, polynomial kernel PCA, then a linear support vector machine.

``python -m benchmarks.usps_table --data DIR`` prints the errors on the 2007 test digits, in per cent, of linear
machines on scores under (x·z)^d, d = 1 … 4, with 32 … 2048 components. The components are those of the first 3000
training digits; the machines are trained on the scores of all 7291. (Trained on the 3000 alone, which was tried first,
they reached 5.5 % at best; it is not certain which of the two the paper did.)
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DEGREES = (1, 2, 3, 4)
COMPONENTS = (32, 64, 128, 256, 512, 1024, 2048)
COMPONENT_ROWS = 3000
C = 10.0
"""C of the machine, on scores whose mean squared norm is 1."""


def digits(folder: Path, name: str) -> tuple[Any, Any]:
    """Images in [−1, 1] and labels of zip.train.gz or zip.test.gz (Le Cun et al. 1990)."""
    with gzip.open(folder / name, "rt") as lines:
        table = np.loadtxt(lines)
    return table[:, 1:], table[:, 0].astype(int)


def errors(
    train: tuple[Any, Any], test: tuple[Any, Any], degree: int, components: Sequence[int], rows: int = COMPONENT_ROWS
) -> dict[int, float | None]:
    """The test error for each number of components of the first `rows`; None if there are fewer components."""
    from sklearn.svm import SVC

    from mercer import KernelPCA
    from mercer.kernels import Polynomial

    # A factor of the kernel is one of the scores, which the division below takes away again: this keeps them near 1.
    kernel = Polynomial(degree=degree, gamma=1 / train[0].shape[1], coef0=0.0)
    model = KernelPCA(max(components), kernel).fit(train[0][:rows])
    known, new = model.transform(train[0]), model.transform(test[0])
    found: dict[int, float | None] = {}
    for k in components:
        if k > known.shape[1]:
            found[k] = None
            continue
        # One number for all scores: the paper feeds them raw, and their proportions matter.
        scale = 1 / np.mean(np.sum(known[:, :k] ** 2, axis=1))
        gram = scale * known[:, :k] @ known[:, :k].T
        machine = SVC(kernel="precomputed", C=C).fit(gram, train[1])  # the linear machine, from its inner products
        found[k] = float(np.mean(machine.predict(scale * new[:, :k] @ known[:, :k].T) != test[1]))
    return found


def table(results: dict[int, dict[int, float | None]]) -> str:
    """Components down, degrees across, in per cent.

    >>> print(table({1: {32: 0.0962, 64: None}}))
    | components | d = 1 |
    |---|---|
    | 32 | 9.6 |
    | 64 | – |
    """
    head = "| components | " + " | ".join(f"d = {degree}" for degree in results) + " |"
    lines = [head, "|---" * (len(results) + 1) + "|"]
    for k in next(iter(results.values())):
        cells = (column[k] for column in results.values())
        lines.append(f"| {k} | " + " | ".join("–" if e is None else f"{100 * e:.1f}" for e in cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the table, and return 1 if it contradicts the paper's conclusions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.usps_table", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="has zip.train.gz and zip.test.gz")
    options = parser.parse_args(arguments)
    train, test = digits(options.data, "zip.train.gz"), digits(options.data, "zip.test.gz")
    results: dict[int, dict[int, float | None]] = {}
    for degree in DEGREES:
        start = time.perf_counter()
        results[degree] = errors(train, test, degree, COMPONENTS)
        print(f"d = {degree}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(results))
    best = [min(e for e in column.values() if e is not None) for column in results.values()]
    print("best of each degree:", ", ".join(f"{100 * e:.1f} %" for e in best))
    return 0 if best[-1] <= 0.05 and best[-1] < best[0] else 1


if __name__ == "__main__":
    sys.exit(main())
