"""``mercer lab``: a table as the lab takes it, and the code that opens it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mercer.cli import fitting
from mercer.errors import InvalidInput, message
from mercer.io import TableEncoder, read_table
from mercer.lab import BUNDLED, Dataset, Settings, bundled
from mercer.numerals import counted

__all__ = ["opened", "run_lab"]

MOST_ROWS, MOST_COLUMNS = 10_000, 500


def run_lab(
    table: str | None,
    target: str | None,
    columns: str | None,
    drop: str | None,
    task: str,
    rows: int,
    port: int,
    as_json: bool = False,
) -> None:
    """Open the table, then serve the page until Ctrl-C."""
    try:
        from mercer.lab.server import serve
    except ImportError as error:
        given = f"the page needs {error.name}, which is not installed"
        raise InvalidInput(message("lab", given, 'pip install "mercer[lab]"')) from None
    tables: dict[str, Callable[[], Dataset]] = {name: partial(bundled, name) for name in BUNDLED}
    first = table or "moons"
    if first not in BUNDLED:
        found = opened(Path(first), target, columns, drop, task, rows)
        tables, first = {found.name: lambda: found, **tables}, found.name
    elif target or columns or drop:
        raise InvalidInput(
            message("lab", f"{first} has its columns chosen", "leave --target, --columns and --drop out")
        )
    serve(tables, first, Settings(), port, partial(_told, as_json))


def _told(as_json: bool, address: str) -> None:
    """Print the address of the page, which has its token."""
    said = f"mercer lab: open this address; Ctrl-C ends it.\n{address}"
    print(json.dumps({"command": "lab", "address": address}) if as_json else said, flush=True)


def opened(path: Path, target: str | None, columns: str | None, drop: str | None, task: str, rows: int) -> Dataset:
    """The rows of a file as `mercer fit` takes them, or some of them if there are more."""
    table, code, command = read_table(path), [], ["mercer", "fit", str(path)]
    code += ["import numpy as np", "from mercer.io import TableEncoder, read_table"]
    code += ["from mercer.tables.targets import as_target, holdout_rows", "", f"table = read_table({str(path)!r})"]
    notes: tuple[str, ...] = ()
    if len(table.frame) > rows:
        code.insert(0, "from dataclasses import replace")
        notes = (f"{rows} of {len(table.frame)} rows, taken at random",)
        kept = np.sort(np.random.default_rng(0).permutation(len(table.frame))[:rows])
        table, command = replace(table, frame=table.frame.iloc[kept]), []
        drawn = f"kept = np.sort(np.random.default_rng(0).permutation(len(table.frame))[:{rows}])"
        code += [drawn, "table = replace(table, frame=table.frame.iloc[kept])"]
    data = fitting.prepare(table, target, task, 0, columns=columns, drop=drop)
    if not isinstance(data.encoder, TableEncoder) or data.has_texts:
        raise InvalidInput(message("lab", f"{path} has sequences or texts", "give a table of numbers and categories"))
    X = data.encoder.transform(data.frame)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    if X.shape[1] > MOST_COLUMNS:
        given = f"{counted(X.shape[1], 'column')} as numbers"
        raise InvalidInput(message("lab", given, f"choose some with --columns; at most {MOST_COLUMNS} are taken"))
    kept_columns = list(data.encoder.columns_)
    code += [f"rest, target = table.split({data.target!r})", f"frame = rest.frame[{kept_columns!r}]"]
    code += [f"y = as_target({data.target!r}, target, {data.task!r})", f"held = holdout_rows(y, {data.task!r}, seed=0)"]
    code += ["X = np.asarray(TableEncoder().fit(frame[~held]).knowing(frame).transform(frame), float)"]
    command += ["--target", data.target, "--task", data.task] if command else []
    command += ["--columns", columns] if command and columns else []
    command += ["--drop", drop] if command and drop else []
    names = tuple(map(str, data.encoder.feature_names_out_))
    return Dataset(path.name, X, data.y, data.task, names, data.held, tuple(code), tuple(command), notes)
