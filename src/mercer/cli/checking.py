"""The work of ``mercer check``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mercer import KernelReport, check_kernel
from mercer.cli.columns import chosen_columns, left_out_target
from mercer.cli.fitting import fitted_encoder
from mercer.cli.mixed import placed
from mercer.errors import InvalidInput, message
from mercer.io import TableEncoder, read_table
from mercer.kernels import Kernel, as_kernel
from mercer.tables.sequences import SequenceEncoder

__all__ = ["examined"]


def examined(
    text: str,
    table: Path | None,
    target: str | None,
    columns: str | None,
    vary: str | None,
    drop: str | None = None,
    read_text: str | None = None,
) -> KernelReport:
    """The report on a kernel or a formula, on the rows of a table if there is one.

    >>> examined("gaussian(gamma=1.0)", None, None, None, None).verdict
    'proved'
    """
    kernel = as_kernel(text)
    if table is None:
        return check_kernel(kernel, n_features=_width(columns, drop), vary=_choices(vary))
    found = read_table(table)
    without = left_out_target(found, target)
    rest = replace(
        found, frame=found.frame[chosen_columns(found.path, found.frame, columns, drop, without, read_text).names]
    )
    if found.of_sequences:
        X = SequenceEncoder().fit_transform(rest.frame)
        return check_kernel(_of_sequences(kernel, text), X, vary=_choices(vary))
    encoder = fitted_encoder(rest, rest.frame, columns is not None, read_text)
    assert isinstance(encoder, TableEncoder)
    kernel, encoder = placed(kernel, encoder, "check")
    X = encoder.transform(rest.frame)
    return check_kernel(kernel.resolve(X, encoder.feature_names_out_), X, vary=_choices(vary))


def _width(columns: str | None, drop: str | None) -> int | None:
    """The number of columns that rows have, if there is no table.

    >>> _width("3", None)
    3
    """
    if drop is not None:
        raise InvalidInput(message("--drop", "no table", "give a table, or leave it out"))
    if columns is None:
        return None
    if not columns.strip().isdigit() or int(columns) < 1:
        do = "give a number of columns, or a table that has these"
        raise InvalidInput(message("--columns", f"{columns!r} and no table", do))
    return int(columns)


def _of_sequences(kernel: Kernel, text: str) -> Kernel:
    if not kernel.space.objects:
        advice = "choose a kernel of those, such as spectrum(k=3)"
        raise InvalidInput(message("check", f"{text} is not a kernel of sequences", advice))
    return kernel


def _choices(vary: str | None) -> dict[str, list[Any]] | None:
    """The values to try, from name=value,value,...

    >>> _choices("gamma=0.1,1")
    {'gamma': [0.1, 1.0]}
    """
    if vary is None:
        return None
    name, mark, values = vary.partition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        numbers = []
    if not mark or not numbers:
        raise InvalidInput(message("--vary", f"{vary!r}", "write name=value,value as in gamma=0.1,1,10"))
    return {name.strip(): [int(value) if value.is_integer() and "." not in values else value for value in numbers]}
