"""Schemas: the attributes of fitted models. Each estimator declares one; saving, loading and checks read it."""

from mercer.schemas.fields import (
    Array,
    Check,
    Count,
    Elements,
    Entry,
    Field,
    Indices,
    Part,
    Record,
    Rows,
    Size,
    Texts,
    Value,
)
from mercer.schemas.rules import NON_NEGATIVE, POSITIVE, SORTED, Rule
from mercer.schemas.schema import COLUMNS, Schema
from mercer.schemas.sizes import SchemaError, Sizes

__all__ = [
    "COLUMNS",
    "NON_NEGATIVE",
    "POSITIVE",
    "SORTED",
    "Array",
    "Check",
    "Count",
    "Elements",
    "Entry",
    "Field",
    "Indices",
    "Part",
    "Record",
    "Rows",
    "Rule",
    "Schema",
    "SchemaError",
    "Size",
    "Sizes",
    "Texts",
    "Value",
]


def __dir__() -> list[str]:
    return sorted(__all__)
