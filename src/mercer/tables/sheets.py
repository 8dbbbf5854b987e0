"""The first sheet of an Excel or OpenDocument file, as the text of its CSV export."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Any

from mercer.errors import InvalidInput, message

__all__ = ["SHEETS", "as_csv", "sheet_as_csv"]

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def sheet_as_csv(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The text, and notes. It needs python-calamine.

    Raises
    ------
    InvalidInput
        For a file that is not a spreadsheet, has a password or an empty first sheet, and without python-calamine.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError
    except ImportError:
        given = "spreadsheets need python-calamine, which is not installed"
        raise InvalidInput(message(name, given, 'pip install "mercer[excel]", or export it as CSV')) from None
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        names = book.sheet_names
        rows = book.get_sheet_by_index(0).to_python() if names else []
    except PasswordError:
        raise InvalidInput(message(name, "has a password", "save it without one")) from None
    except (CalamineError, ValueError, OSError) as error:
        given = f"cannot be read as a spreadsheet ({str(error).rstrip('.')[:100]})"
        raise InvalidInput(message(name, given, "export it as CSV")) from None
    if not any(one != "" for row in rows for one in row):
        raise InvalidInput(message(name, "its first sheet is empty", "put the table first"))
    notes = (f"the first of {len(names)} sheets, {names[0]!r}",) if len(names) > 1 else ()
    return as_csv(rows), notes


def as_csv(rows: list[list[Any]]) -> str:
    """Rows of cells as text: whole numbers without a point, dates as ISO; without empty rows and last columns.

    >>> as_csv([["a", "b", ""], [1.0, datetime.datetime(2024, 5, 1), ""], ["", "", ""]])
    'a,b\\n1,2024-05-01\\n'
    """
    texts = [[_text(one) for one in row] for row in rows if any(one != "" for one in row)]
    width = max(len(row) - next(i for i, one in enumerate(reversed(row)) if one) for row in texts)
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
