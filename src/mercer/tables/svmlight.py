"""The svmlight format: a target, then index:value pairs; other values are zero."""

from __future__ import annotations

import io
import re
from itertools import islice
from typing import Any

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.points import parse_memory, require
from mercer.tables.raw import stream_of

__all__ = ["looks_like_svmlight", "parse_svmlight"]

_LINE = re.compile(r"\s*[-+]?[0-9.][^\s,;|:]*(\s+(qid|\d+):[^\s,;|]+)*\s*(#.*)?$")
MOST_COLUMNS = 200_000
"""A table of more columns takes minutes: one line of a few bytes can name the four-millionth feature."""
_PAIR = re.compile(r"\s\d+:")


def looks_like_svmlight(text: str) -> bool:
    """Whether the first lines have a number and then index:value pairs.

    >>> looks_like_svmlight("-1 3:1 7:0.5\\n"), looks_like_svmlight("a,b\\n1,2\\n")
    (True, False)
    """
    rows = (line for line in stream_of(text) if line.strip() and not line.startswith("#"))
    lines = list(islice(rows, 20))
    return bool(lines) and _LINE.match(lines[0]) is not None and any(_PAIR.search(line) for line in lines)


def parse_svmlight(text: str, name: str, memory: Any = None) -> tuple[Any, tuple[str, ...]]:
    """A data frame with the columns label, f1, f2, ..., and notes.

    >>> frame, notes = parse_svmlight("1 1:2\\n-1 2:0.5\\n", "a.svmlight")
    >>> frame.columns.tolist(), frame["f1"].tolist()
    (['label', 'f1', 'f2'], [2.0, 0.0])
    """
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        given = f"a line is not of the svmlight form ({error})"
        raise InvalidInput(message(name, given, "write each line as: target index:value index:value ...")) from error
    first = 0 if X[:, :1].nnz else 1
    n, d = X.shape
    if d > MOST_COLUMNS:
        do = "read it by sklearn.datasets.load_svmlight_file, whose sparse rows all estimators take"
        raise InvalidInput(message(name, f"its {d} features are more than the {MOST_COLUMNS} columns of a table", do))
    require(3 * n * d * 8, parse_memory(memory), f"{name} as a dense table of {n} x {d}", "keep fewer columns")
    frame = pd.DataFrame(X[:, first:].toarray(), columns=[f"f{index}" for index in range(first, d)])
    if np.isfinite(y).all() and (y % 1 == 0).all():
        y = y.astype(np.int64)
    frame.insert(0, "label", y)
    return frame, ("svmlight: the target is label, features are named by their index",)
