"""NumPy files as tables: the columns of an array, or of all arrays of an archive."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message

__all__ = ["ARRAYS", "parse_arrays"]

ARRAYS = (".npy", ".npz")
DO = "write it by numpy.save or numpy.savez"


def parse_arrays(data: bytes, name: str) -> tuple[Any, tuple[str, ...]]:
    """A data frame of a .npy or .npz file, and notes.

    A .npy array of two dimensions has the columns c1, c2, ...; a structured one those of its fields. In a .npz file an
    array of one dimension is a column with its name, and an array X of two dimensions the columns X1, X2, ....

    >>> file = io.BytesIO()
    >>> np.savez(file, X=np.eye(2), y=np.array(["a", "b"]))
    >>> frame, notes = parse_arrays(file.getvalue(), "rows.npz")
    >>> frame.to_dict("list")
    {'X1': [1.0, 0.0], 'X2': [0.0, 1.0], 'y': ['a', 'b']}
    """
    import pandas as pd

    try:
        found = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = dict(found) if isinstance(found, np.lib.npyio.NpzFile) else {"": found}
        if not all(isinstance(one, np.ndarray) for one in arrays.values()):
            raise ValueError("a part of the archive is not an array")
    except Exception as error:  # NumPy raises what its tokenizer and the archive do, and MemoryError for a huge shape
        objects = "allow_pickle" in str(error) and data.startswith((b"\x93NUMPY", b"PK"))
        why = "holds Python objects" if objects else "is not a NumPy file, or is damaged"
        raise InvalidInput(message(name, why, "give arrays of numbers or texts" if "holds" in why else DO)) from None
    columns = [one for key, array in arrays.items() for one in _columns(key, array, name)]
    if twice := [title for title, count in Counter(title for title, _ in columns).items() if count > 1]:
        do = "rename an array or a field; an array X of two dimensions has the columns X1, X2 and so on"
        raise InvalidInput(message(name, f"two columns named {twice[0]!r}", do))
    lengths = {key or "it": len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        given = "arrays of " + (", ".join(f"{key} {n}" for key, n in lengths.items()) or "no") + " rows"
        raise InvalidInput(message(name, given, "give arrays of equally many rows"))
    notes: tuple[str, ...] = ()
    if arrays.get("") is not None and arrays[""].dtype.names is None:
        last = f" to c{len(columns)}" if len(columns) > 1 else ""
        notes = (f"an array has no names: the column{'s are' if last else ' is'} named c1{last}",)
    return pd.DataFrame(dict(columns)), notes


def _columns(key: str, array: NDArray[Any], name: str) -> list[tuple[str, NDArray[Any]]]:
    """The columns of an array with their names, of which some may be equal."""
    if array.ndim == 1 and array.dtype.names is not None:
        return [column for one in array.dtype.names for column in _columns(one, array[one], name)]
    if array.dtype.kind not in "biufMUS" or array.ndim not in (1, 2):
        given = f"an array {key} of {array.ndim} dimensions and {array.dtype}".replace("  ", " ")
        raise InvalidInput(message(name, given, "give numbers or texts in one or two dimensions"))
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "U":
        try:
            array = array.astype(object)
        except (SystemError, ValueError):  # a number that is not a character
            raise InvalidInput(message(name, "is damaged: it has texts that are none", DO)) from None
    if array.ndim == 1:
        return [(key or "c1", array)]
    return [(f"{key or 'c'}{place}", column) for place, column in enumerate(array.T, start=1)]
