"""The report of ``mercer fit --report``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from mercer.cli.fitting import KernelChoice, TrainingTable
from mercer.cli.output.show import choice_lines
from mercer.io import TableModel

__all__ = ["command", "write_report", "writer"]


def command(table: Path, data: TrainingTable, choice: KernelChoice, seed: int, **options: str | None) -> str:
    """The line that fits this model again, with what was chosen given; options are those of the columns."""
    given = {"target": data.target, "task": data.task, "kernel": str(choice.named)}
    given |= {} if choice.method.name == "ridge" else {"method": choice.method.name}
    given |= {} if choice.alpha is None else {"alpha": repr(choice.alpha)}
    given |= {name: value for name, value in options.items() if value is not None} | {"seed": str(seed)}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    return shlex.join(["mercer", "fit", str(table), *words])


def writer(
    path: Path | None, table: Path, data: TrainingTable, choice: KernelChoice, seed: int, **options: str | None
) -> Callable[[TableModel], Path] | None:
    """A function that writes the report of a model; None if no report is wanted."""
    again = command(table, data, choice, seed, **options)
    return None if path is None else lambda model: write_report(path, model, data, again, choice)


def write_report(path: Path, model: TableModel, data: TrainingTable, again: str, choice: KernelChoice) -> Path:
    """The report of a model that has not seen the held-out rows."""
    from mercer.report import write

    held, train = data.held, ~data.held
    pairs = [(data.frame[rows], data.y[rows]) for rows in (held, train)]
    title = f"{data.target} in {Path(data.table.path).name}: report"
    return write(
        model, path, *pairs[0], train=pairs[1], command=again, title=title, why="; ".join(choice_lines(choice))
    )
