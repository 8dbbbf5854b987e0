"""The first sheet of an Excel or OpenDocument file, as the text of its CSV export."""

from __future__ import annotations

import csv
import datetime
import io
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.points import human

__all__ = ["SHEETS", "as_csv", "sheet_as_csv"]

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

_READ = """
import io, pickle, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
except (ImportError, ValueError):
    pass
from python_calamine import CalamineError, CalamineWorkbook, PasswordError
try:
    book = CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
    found = book.sheet_names, book.get_sheet_by_index(0).to_python() if book.sheet_names else []
except PasswordError:
    found = "has a password"
except (CalamineError, ValueError, OSError) as error:
    found = f"cannot be read as a spreadsheet ({str(error).rstrip('.')[:100]})"
pickle.dump(found, sys.stdout.buffer)
"""
"""Read in a process of its own: a cell in the last row and column makes the library ask for 500 GB, and abort."""
OWN = 1 << 29
"""Bytes of address space that this process takes for itself."""


def sheet_as_csv(data: bytes, name: str, budget: int = 1 << 32) -> tuple[str, tuple[str, ...]]:
    """The text, and notes; at most `budget` bytes are taken. It needs python-calamine.

    Raises
    ------
    InvalidInput
        For a file that is not a spreadsheet, has a password, an empty first sheet or cells too far apart, and without
        python-calamine.
    """
    if sys.modules.get("python_calamine", True) is None or find_spec("python_calamine") is None:
        given = "spreadsheets need python-calamine, which is not installed"
        raise InvalidInput(message(name, given, 'pip install "mercer[excel]", or export it as CSV'))
    found = _read(data, budget)
    if found is None:
        given = f"is damaged, or its cells lie so far apart that a table of them exceeds {human(budget)}"
        raise InvalidInput(message(name, given, "export it as CSV"))
    if isinstance(found, str):
        raise InvalidInput(message(name, found, "save it without one" if "password" in found else "export it as CSV"))
    names, rows = found
    if not any(one != "" for row in rows for one in row):
        raise InvalidInput(message(name, "its first sheet is empty", "put the table first"))
    notes = (f"the first of {len(names)} sheets, {names[0]!r}",) if len(names) > 1 else ()
    return as_csv(rows), notes


def _read(data: bytes, budget: int) -> Any:
    """The names of the sheets and the rows of the first one, or what is wrong; None if the process did not survive."""
    ran = subprocess.run(
        [sys.executable, "-c", _READ, str(budget + OWN)],
        input=data,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return pickle.loads(ran.stdout) if ran.returncode == 0 else None


def as_csv(rows: list[list[Any]]) -> str:
    """Rows of cells as text: whole numbers without a point, dates as ISO; without the empty rows and columns around.

    An empty row between others stays, so that the rows below it keep their places.

    >>> as_csv([["a", "b", ""], ["", "", ""], [1.0, datetime.datetime(2024, 5, 1), ""], ["", "", ""]])
    'a,b\\n,\\n1,2024-05-01\\n'
    """
    filled = [place for place, row in enumerate(rows) if any(one != "" for one in row)]
    texts = [[_text(one) for one in row] for row in rows[filled[0] : filled[-1] + 1]]
    width = max(place for row in texts for place, one in enumerate(row, start=1) if one)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(row[:width] for row in texts)
    return out.getvalue()


def _text(cell: Any) -> str:
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
