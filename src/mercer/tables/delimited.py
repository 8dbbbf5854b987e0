"""Delimited text: detects the delimiter, and requires the same number of fields in every row."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.points import parse_memory, require
from mercer.tables.decimals import as_plain_numbers, is_number
from mercer.tables.raw import stream_of

__all__ = ["as_written", "left_out", "looks_like_lines", "looks_like_texts", "parse_delimited"]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
MISSING = ("?",)
"""Missing values in addition to those of pandas: empty, NA, N/A, NaN, null, None and others."""
_LOOK = 50
_TABLE = 5
"""Lines that are a table if a delimiter divides all of them alike, although the first one has spaces in its fields."""
_WORD = re.compile(r'(?<!\S)"[^"]*(?:""[^"]*)*"(?!\S)|\S+')
"""A field between spaces, which may be quoted and hold spaces."""
_IDENTIFIER = r"0\d+|\d{16,}"
_TOLD = re.compile(r"sep=([,;\t|])\n")
COLUMN = 3000
"""Bytes that pandas takes for a column, whatever is in it."""
FIELD = 24
"""Bytes that it takes for a field while it reads: its place in the text, twice, and the number."""


def looks_like_lines(text: str) -> bool:
    """Whether no delimiter divides the first lines alike, and they are not numbers under a name.

    >>> looks_like_lines("to be\\nor not to be\\n"), looks_like_lines("a b\\n1 2\\n"), looks_like_lines("a\\n1\\n")
    (True, False, False)
    """
    lines = _first(text)
    return not any(_alike(lines, delimiter) for delimiter in DELIMITERS) and not all(
        is_number(line.strip(), commas=True) for line in lines[1:] or lines
    )


def looks_like_texts(text: str, column: str) -> bool:
    """Whether each line is a text of this column, perhaps under its name, and not a table with this or other names.

    Prose has commas, but not as many in each line, and words between them, unlike a header.

    >>> looks_like_texts("good, fine\\nbad, poor\\n", "review"), looks_like_texts("a,b\\nbad,1\\n", "review")
    (True, False)
    >>> looks_like_texts("Review\\nbad\\n", "review"), looks_like_texts("a review of it\\nbad\\n", "review")
    (False, True)
    """
    lines = _first(text)
    if lines and lines[0].strip() == column:
        return True
    for delimiter in (one for one in DELIMITERS if one != " "):
        header = next(iter(_split(lines[:1], delimiter)), [])
        if column.lower() in {field.strip().lower() for field in header}:
            return False
        bare = " " not in lines[0].strip()
        if _alike(lines, delimiter) and len(lines) >= (2 if bare else _TABLE):
            return False
    return True


def _first(text: str) -> list[str]:
    return list(islice((line for line in stream_of(text) if line.strip()), _LOOK))


def _alike(lines: list[str], delimiter: str) -> bool:
    """Whether the delimiter divides all lines into as many fields, more than one."""
    widths = {len(fields) for fields in _split(lines, delimiter)}
    return len(widths) == 1 and max(widths) > 1


def parse_delimited(
    text: str,
    name: str,
    delimiter: str | None = None,
    memory: Any = None,
    like: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Any, tuple[str, ...], dict[str, str]]:
    """A data frame of the text, notes, and the marks of its numbers; it is split by the delimiter, or by one that fits.

    `like` are the marks of another table, as `as_plain_numbers` takes them.

    >>> frame, notes, marks = parse_delimited("1 2\\n3 4\\n", "numbers.txt")
    >>> list(frame.columns), notes
    (['c1', 'c2'], ('the first line is all numbers, so the columns are named c1 to c2', 'split by spaces'))
    """
    import pandas as pd

    if told := _TOLD.match(text):  # as spreadsheets write it for others of their kind
        delimiter, text = told[1], text[told.end() :]
    delimiter = delimiter or _delimiter(text)
    if delimiter == " ":
        text = "\n".join(" ".join(_words(line)) for line in text.split("\n"))
    names, bare = _checked_header(text, delimiter, name, parse_memory(memory))
    read = partial(_read, text, sep=delimiter, names=names, header=None if bare else 0)
    try:
        frame = read(dtype={one: str for one in names if like.get(one) == "text"})
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        if "No columns to parse" in str(error):
            return pd.DataFrame(columns=names), (), {}
        raise InvalidInput(message(name, f"cannot be read as a table ({error})", "check its quotes")) from error
    notes, marks = list[str](), dict[str, str]()
    if delimiter != " ":
        texts = lambda columns: read(usecols=columns, dtype=str)  # noqa: E731
        frame, notes, marks = as_plain_numbers(frame, commas=delimiter != ",", texts=texts, like=like, who=name)
    notes += ["split by spaces"] if delimiter == " " else []
    if bare:
        named = "the columns are named c1 to c" if names[1:] else "the column is named c"
        notes.insert(0, f"the first line is all numbers, so {named}{len(names)}")
    if names[1:] == [] or '"' not in text:
        notes += left_out(text.strip())
    return frame, tuple(notes), marks


def left_out(text: str) -> list[str]:
    """A note on blank lines, if there are any.

    >>> left_out("a\\n\\nb")
    ['1 blank line was left out']
    """
    blank = sum(map(_is_blank, text.split("\n")))
    return [f"{blank} blank line{'s were' * (blank > 1) or ' was'} left out"] if blank else []


def _is_blank(line: str) -> bool:
    return not line or line.isspace()


def _checked_header(text: str, delimiter: str, name: str, budget: int) -> tuple[list[str], bool]:
    """The names of the columns, and whether the first line is a row: of a table that fits in the budget."""
    _, header = next(_rows(text, delimiter, name), (0, []))
    if not header:
        raise InvalidInput(message(name, "its lines are blank", "give a table with a header and rows"))
    width = len(header)
    require(COLUMN * width, budget, f"{name}: a table of {width} columns", "leave some out")
    rows = _checked_rows(text, delimiter, width, name)
    size = COLUMN * width + FIELD * rows * width + 2 * len(text)  # of the text the stream, and what was read of it
    require(size, budget, f"{name}: a table of {rows} rows × {width} columns", "give fewer rows or columns")
    bare = _is_bare(header, delimiter)
    return [f"c{place}" for place in range(1, width + 1)] if bare else _checked_names(header, name), bare


def _read(text: str, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(
        stream_of(text), index_col=False, na_values=list(MISSING), low_memory=False, skipinitialspace=True, **options
    )


def _is_bare(header: list[str], delimiter: str) -> bool:
    """Whether the first line is one of numbers, and no header."""
    return all(is_number(field, commas=delimiter not in ", ") for field in header)


def as_written(text: str, frame: Any, columns: Sequence[str], delimiter: str | None = None) -> dict[str, Any]:
    """Columns of a parsed text that begin with 0 or have too many digits, so that they are no numbers, as texts.

    >>> text = "zip,n\\n00123,1\\n123,2\\n"
    >>> {name: one.tolist() for name, one in as_written(text, parse_delimited(text, "t.csv")[0], ["zip", "n"]).items()}
    {'zip': ['00123', '123']}
    """
    import pandas as pd

    numeric = [name for name in columns if name in frame and frame[name].dtype.kind in "iuf"]
    if not numeric:
        return {}
    delimiter = delimiter or _delimiter(text)
    if delimiter == " ":
        return {}
    _, header = next(_rows(text, delimiter, ""), (0, []))
    found = pd.read_csv(
        stream_of(text), sep=delimiter, index_col=False, skipinitialspace=True, dtype=str, keep_default_na=False,
        names=list(frame.columns), header=None if _is_bare(header, delimiter) else 0, usecols=numeric,
    )  # fmt: skip
    texts = {name: found[name].str.strip() for name in numeric}
    return {name: one for name, one in texts.items() if _identifies(one, frame[name])}


def _identifies(texts: Any, numbers: Any) -> bool:
    """Whether a text begins with 0 or is long, or all are whole, and numbers with a point because some are missing."""
    whole = numbers.dtype.kind == "f" and bool(texts.str.fullmatch(r"\d*").all())
    return whole or bool(texts.str.fullmatch(_IDENTIFIER).any())


def _delimiter(text: str) -> str:
    """The delimiter that splits the first lines into equally many fields, and the most; a space only as a last resort.

    A delimiter that splits the first line as it splits the others is preferred, then one that splits it at all: under
    a header a;b;c, or a;"b, c", commas belong to numbers.
    """
    lines = list(islice((line for line in stream_of(text) if line.strip()), _LOOK))
    best, most = None, (False, False, 1)
    for delimiter in DELIMITERS:
        if delimiter == " " and best is not None:
            break
        counts = [len(fields) for fields in _split(lines, delimiter)]
        usual, times = Counter(counts).most_common(1)[0]
        # A row of another length is reported later; it must not hide the delimiter.
        alike = times >= 0.7 * len(counts) or (len(counts) < 4 and counts[0] == usual)
        # Of two lines each length is as usual as the other, so the header is compared with the rows alone.
        agrees = counts[0] == Counter(counts[1:] or counts).most_common(1)[0][0]
        if usual > 1 and alike and (rank := (agrees, counts[0] > 1, usual)) > most:
            best, most = delimiter, rank
    if not most[1] and any('"' in line for line in lines) and _alike(lines, " "):
        best = " "  # what else splits the rows, but not the header, is in quotes
    if best == ",":
        best = next((other for other in ";\t|" if _all_numbers(_split(lines, other))), best)
    return best if best is not None else _of_the_header(lines)


def _of_the_header(lines: list[str]) -> str:
    """The delimiter that splits the first line into the most fields; a comma if none does (a table of one column)."""
    counts = {delimiter: len(_split(lines[:1], delimiter)[0]) for delimiter in DELIMITERS if delimiter != " "}
    return max(counts, key=counts.__getitem__)


def _all_numbers(rows: list[list[str]]) -> bool:
    """Whether all rows have the same number of fields, two or more, all of them numbers: then commas are decimal."""
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths.pop() > 1 and all(is_number(one, commas=True) for row in rows for one in row)


def _words(line: str) -> list[str]:
    """The fields between spaces, with their quotes.

    >>> _words('1  "far  away" 2')
    ['1', '"far  away"', '2']
    """
    return _WORD.findall(line) if '"' in line else line.split()


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [_words(line) for line in lines]
    try:
        with _long_fields():
            return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    except csv.Error:
        return [[""]]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow fields of any length; by default the csv module refuses those above 128 kB."""
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _rows(text: str, delimiter: str, name: str) -> Any:
    """(line number, fields) of each row that is not blank."""
    reader = csv.reader(stream_of(text), delimiter=delimiter, skipinitialspace=True)
    try:
        with _long_fields():
            for row in reader:
                if row and not (len(row) == 1 and not row[0].strip()):
                    yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInput(message(name, f"line {reader.line_num}: {error}", "check its quotes")) from error


def _checked_rows(text: str, delimiter: str, width: int, name: str) -> int:
    """The number of rows, the first one included, which all have as many fields."""
    rows, ragged, header = 0, list[tuple[int, int]](), False
    for line, row in _rows(text, delimiter, name):
        rows += 1
        if len(row) != width:
            header = header if ragged else not any(map(is_number, row))
            ragged.append((line, len(row)))
    if ragged:
        line, found = ragged[0]
        usual, times = Counter(count for _, count in ragged).most_common(1)[0]
        if header and times > rows / 2:
            given = (
                f"most lines have {counted(usual, 'field')}, split by {DELIMITERS[delimiter]}s, and the first line has"
            )
            raise InvalidInput(message(name, f"{given} {width}", "delete the lines above the header"))
        given = f"line {line} has {counted(found, 'field')} and the first line has {width}, "
        given += f"split by {DELIMITERS[delimiter]}s"
        given += f", and {counted(len(ragged) - 1, 'more line')} of another length" if ragged[1:] else ""
        do = f"give every row the same number of fields; quote fields that hold a {DELIMITERS[delimiter]}"
        if (usual, times) == (width + 1, rows - 1):
            do += "; if the first fields are names of rows, as R writes them, give them a name in the first line"
        raise InvalidInput(message(name, given, do))
    return rows


def _checked_names(header: list[str], name: str) -> list[str]:
    names = [field.strip() or f"column {place}" for place, field in enumerate(header, start=1)]
    twice = [one for one, count in Counter(names).items() if count > 1]
    if twice:
        given = f"two columns are named {twice[0]!r}"
        given += f", and {counted(len(twice) - 1, 'more repeated name')}" if twice[1:] else ""
        raise InvalidInput(message(name, given, "give every column a name of its own"))
    return names
