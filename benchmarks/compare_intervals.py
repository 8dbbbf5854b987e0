"""How often the interval that ``mercer compare`` states holds the winner's score on rows that it has not seen.

    python -m benchmarks.compare_intervals --data FOLDER [--splits 10] [--train 0.5]

Each split divides a table at random. The comparison sees the training rows; the winner, fitted on all of them, is
scored on the others.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import sklearn.datasets
from threadpoolctl import threadpool_limits

from mercer.cli.compare.leaderboard import leaderboard
from mercer.cli.compare.trials import candidates, final_model, trials
from mercer.cli.fitting import prepare
from mercer.cli.scores import score
from mercer.io import Table, read_table
from mercer.tables.targets import stratified_order

BUNDLED = {"breast_cancer": "target", "wine": "target", "diabetes": "target"}
FILES = {"housing.csv.gz": "median_house_value", "adult.svmlight.gz": "label"}
MOST, FOLDS, REPEATS = 1000, 5, 2


def tables(folder: Path) -> list[tuple[Table, str]]:
    """Five tables of at most `MOST` rows."""
    bundled = [
        (Table(getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame, name), target)
        for name, target in BUNDLED.items()
    ]
    return bundled + [(_some(read_table(folder / name)), target) for name, target in FILES.items()]


def _some(table: Table) -> Table:
    kept = np.sort(np.random.default_rng(0).permutation(len(table.frame))[:MOST])
    return replace(table, frame=table.frame.iloc[kept])


def split(table: Table, target: str, seed: int, share: float) -> tuple[str, float, float, float, float]:
    """The winner of a split, its interval, and its score on the rows left out."""
    data = prepare(table, target, "auto", seed, False)
    order = stratified_order(data.y, data.task, seed)
    train = np.sort(order[np.floor(np.arange(len(order)) * share) != np.floor((np.arange(len(order)) + 1) * share)])
    left = np.setdiff1d(order, train)
    part = replace(
        data, table=replace(data.table, frame=data.frame.iloc[train]), y=data.y[train], held=data.held[train]
    )
    found = trials(part, candidates(part, None, []), FOLDS, REPEATS, None, seed, None)
    winner = leaderboard(found, len(train), FOLDS, REPEATS, data.task).winner
    _, model = final_model(part, winner.candidate, None, seed)
    held = score(data.y[left], model.predict(data.frame.iloc[left]), data.task).main
    return winner.candidate.name, winner.score.mean, winner.score.low, winner.score.high, held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--train", type=float, default=0.5)
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    given = parser.parse_args()
    hits = []
    wanted = given.only.split(",")
    for table, target in tables(given.data):
        if given.only and table.path.split(".")[0] not in wanted:
            continue
        own = []
        for seed in range(given.splits):
            name, mean, low, high, held = split(table, target, seed, given.train)
            own.append(low <= held <= high)
            print(
                f"{table.path:20} {seed:2} {name:22} {mean:.4f} ({low:.4f} to {high:.4f}), held out {held:.4f}",
                flush=True,
            )
        hits += own
        print(f"{table.path:20} {sum(own)} of {len(own)}", flush=True)
    print(f"all: {sum(hits)} of {len(hits)}, {np.mean(hits):.0%}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
