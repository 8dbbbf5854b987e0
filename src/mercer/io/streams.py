"""Predictions that stream from a file of rows to a file: a chunk of rows is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.files import appearing
from mercer.io.outputs import check_output
from mercer.points import DiskPoints, parse_memory
from mercer.points.disk import named

__all__ = ["WRITERS", "Streamed", "stream", "written"]

Write: TypeAlias = Callable[[Any], None]
Array: TypeAlias = Any
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
"""The methods that are named to who asks for one that a model does not have."""


class Streamed(NamedTuple):
    """What was written.

    Attributes
    ----------
    rows : int
    bytes : int
        Bytes of the rows that were read.

    Examples
    --------
    >>> Streamed(rows=3, bytes=48).rows
    3
    """

    rows: int
    bytes: int


def stream(
    model: Any,
    rows: DiskPoints,
    out: str | Path,
    *,
    method: str = "predict",
    name: str = "prediction",
    memory: Any = None,
) -> Streamed:
    """Write the outputs of a model for rows on disk to a file, in the order of the rows.

    One pass reads the rows, and one thread reads the next chunk while the model works on one. The file appears when it
    is complete.

    Parameters
    ----------
    model : fitted estimator
    rows : DiskPoints
        What `mercer.points.read_points` returns.
    out : path
        ``.parquet``, ``.csv`` or ``.npy``.
    method : str, default "predict"
        The method of the model, such as "transform".
    name : str, default "prediction"
        The name of the column; several columns are numbered.
    memory : int, str or None
        The budget; a chunk takes a small part of it.

    Returns
    -------
    Streamed

    Raises
    ------
    InvalidInput
        For rows that are in memory, are not finite or change meanwhile; for a method that the model does not have; for
        a file of another kind, and for one of the files of rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from mercer import KernelRidge
    >>> from mercer.points import read_points
    >>> model = KernelRidge("linear", alpha=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "predictions.npy")
    ...     done = stream(model, read_points(lambda: iter([np.ones((2, 1)), np.zeros((1, 1))])), path)
    ...     done.rows, np.load(path)
    (3, array([0.5, 0.5, 0. ]))
    """
    _check(model, rows, method)
    check_output("stream", Path(out), rows.source.paths, "a file of outputs", lambda _: True)
    rows = rows.within(memory)
    step, who = rows.window_rows(parse_memory(memory)), type(model).__name__
    count, size = 0, 0
    with written(Path(out), name) as write:
        for chunk in rows.checked(who, step):
            # Names of columns are compared where the model has some.
            given = named(chunk, rows.names) if rows.names and hasattr(model, "feature_names_in_") else chunk
            write(_outputs(model, method, given))
            count, size = count + len(chunk), size + chunk.nbytes
    return Streamed(count, size)


def _check(model: Any, rows: Any, method: str) -> None:
    """Raise InvalidInput for rows that are not on disk, and for a method that the model does not have."""
    if not isinstance(rows, DiskPoints):
        given = f"rows is a {type(rows).__name__}, not rows on disk"
        do = f"give what mercer.points.read_points returns, or of rows in memory save what model.{method} returns"
        raise InvalidInput(message("stream", given, do))
    there = [one for one in METHODS if hasattr(model, one)]
    do = f"give {' or '.join(there) or 'another model'}"
    if not callable(getattr(model, str(method), None)):
        given = f"method={method!r}, which {type(model).__name__} does not have"
        raise InvalidInput(message("stream", given, do))
    if method.startswith(("fit", "partial_fit")):
        raise InvalidInput(message("stream", f"method={method!r}, which would fit the model to each chunk", do))


def _outputs(model: Any, method: str, chunk: Array) -> Array:
    """The outputs for a chunk, in its order."""
    found = np.asarray(getattr(model, method)(chunk))
    if found.ndim not in (1, 2) or len(found) != len(chunk):
        given = f"method={method!r}, whose result is not one row of outputs for each row"
        raise InvalidInput(message("stream", given, "give predict, transform or another method of that kind"))
    return found


@contextmanager
def written(path: Path, name: str) -> Iterator[Write]:
    """A function that writes outputs, arrays or named columns, one after the other; the file appears at the end."""
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InvalidInput(message("stream", f"out={path.name!r}", f"name a file that ends in {', '.join(WRITERS)}"))
    with appearing(path, "stream") as beside, writer(beside, name) as write:
        yield write


def _columns(values: Array, name: str) -> dict[str, Array]:
    """The columns of the outputs, by their names."""
    if isinstance(values, dict):
        return values
    if values.ndim == 1:
        return {name: values}
    return {f"{name}{place}": column for place, column in enumerate(values.T)}


@contextmanager
def _parquet(path: Path, name: str) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    opened: list[Any] = []  # with the types of the first outputs

    def write(values: Array) -> None:
        table = pa.table(_columns(values, name))
        if not opened:
            # Fractions hardly repeat: a dictionary of them took four times as long and a fifth more bytes.
            repeated = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
            opened.append(parquet.ParquetWriter(path, table.schema, use_dictionary=repeated))
        opened[0].write_table(table)

    try:
        yield write
    finally:
        for one in opened:
            one.close()


@contextmanager
def _csv(path: Path, name: str) -> Iterator[Write]:
    import pandas as pd

    with open(path, "w", newline="", encoding="utf-8") as file:

        def write(values: Array) -> None:
            pd.DataFrame(_columns(values, name)).to_csv(file, index=False, header=file.tell() == 0)

        yield write


@contextmanager
def _npy(path: Path, name: str) -> Iterator[Write]:
    shapes: list[Any] = []
    with open(path, "w+b") as file:

        def head() -> None:
            shape = (sum(one[0] for one in shapes), *shapes[0][1:-1])
            file.seek(0)
            described = {"descr": shapes[0][-1], "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, described)

        def write(values: Array) -> None:
            if values.dtype.hasobject:
                given = "outputs that are Python objects, which a .npy file does not hold"
                raise InvalidInput(message("stream", given, "give a name that ends in .parquet or .csv"))
            shapes.append((*values.shape, np.lib.format.dtype_to_descr(values.dtype)))
            if len(shapes) == 1:
                head()  # NumPy leaves room in it for a longer number of rows
            file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

        yield write
        if shapes:
            head()


WRITERS: dict[str, Any] = {".parquet": _parquet, ".csv": _csv, ".npy": _npy}
"""The writers, by the endings of their files."""
