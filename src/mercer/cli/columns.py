"""Chooses the columns to predict from: those that are named, or all but counters of rows and identifiers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.tables.identifiers import identifying_columns
from mercer.tables.texts import near_names

__all__ = ["Columns", "chosen_columns", "left_out_target", "named_columns", "split_names"]

MOST = 8
"""The most names that a message lists."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns to use, and why others are left out."""

    names: list[str]
    left_out: dict[str, str]

    @property
    def said(self) -> list[str]:
        """Sentences that say which columns are left out, and why."""
        grouped: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            grouped.setdefault(why, []).append(name)
        return [f"{listed(names)} {_be(names)} left out: {why}" for why, names in grouped.items()]


def _be(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def listed(names: list[str], most: int = MOST) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if names[most:] else "")


def chosen_columns(
    table: str,
    frame: Any,
    columns: str | None = None,
    drop: str | None = None,
    target: str | None = None,
    text: str | None = None,
    some: Any = None,
) -> Columns:
    """The columns of a data frame without its target, by the options --columns and --drop; those of --text are kept.

    `some` are those of its rows that have a target: a total below the rows has none, and hides an identifier.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"row": range(20), "size": [1.5, 2.5] * 10})
    >>> chosen_columns("a.csv", frame)
    Columns(names=['size'], left_out={'row': 'a counter of the rows, 0 to 19; name it by --columns to use it'})
    >>> chosen_columns("a.csv", frame, columns="row, size").names
    ['row', 'size']
    """
    there = [str(name) for name in frame.columns if str(name) != target]
    if columns is not None and drop is not None:
        given = "--columns and --drop together"
        raise InvalidInput(message("options", given, "name the columns to use, or those to leave out"))
    if columns is not None:
        wanted = set(named_columns("--columns", columns, table, there, target))
        others = {name: "as asked by --columns" for name in there if name not in wanted}
        return Columns([name for name in there if name in wanted], others)
    gone = (
        dict.fromkeys(named_columns("--drop", drop, table, there, target), "as asked by --drop")
        if drop is not None
        else {}
    )
    kept = [name for name in there if name not in gone]
    if not kept:
        raise InvalidInput(message("--drop", f"{drop} are all columns of {table}", "leave some to predict from"))
    read = named_columns("--text", text, table, kept, target) if text is not None else []
    looked = [name for name in kept if name not in read]
    found = identifying_columns(frame[looked])
    if some is not None and len(some) < len(frame):
        found = identifying_columns(some[looked]) | found
    if len(found) < len(kept):
        gone |= {name: f"{why}; name it by --columns to use it" for name, why in found.items()}
    return Columns([name for name in kept if name not in gone], gone)


def left_out_target(table: Any, target: str | None) -> str | None:
    """The column of a `Table` that is not looked at, because others predict it: the one given, or its format's."""
    if target is not None and target not in table.columns:
        near = near_names(target, table.columns)
        do = f"did you mean {near[0]!r}?" if near else f"the columns are {listed(table.columns)}"
        raise InvalidInput(message("--target", f"no column {target!r} in {table.path}", do))
    return target or table.default_target


def named_columns(option: str, text: str, table: str, there: list[str], target: str | None = None) -> list[str]:
    """The names that an option lists, separated by commas; in quotes they may have commas.

    >>> named_columns("--drop", 'b, "a, c"', "t.csv", ["a, c", "b"])
    ['b', 'a, c']
    """
    names = [text.strip()] if text.strip() in there else split_names(option, text)
    for name in names:
        if name == target:
            raise InvalidInput(message(option, f"{name!r} is the target", "name columns to predict it from"))
        if name not in there:
            near = [one for one in there if one.lower() == name.lower()] or near_names(name, there)
            do = f"did you mean {near[0]!r}?" if near else f"its columns to predict from are {listed(there)}"
            raise InvalidInput(message(option, f"{table} has no column {name!r} to predict from", do))
    return list(dict.fromkeys(names))


def split_names(option: str, text: str) -> list[str]:
    """The names that an option lists, whether or not they are there."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not any(names):
        raise InvalidInput(message(option, f"{text!r}", "name columns, separated by commas"))
    return names
