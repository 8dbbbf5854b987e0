"""The lines of a schema: attributes, sizes by a rule, and relations that are no shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer.schemas.rules import Rule
from mercer.schemas.sizes import SchemaError, Sizes

__all__ = [
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
    "Size",
    "Texts",
    "Value",
]


class Entry:
    """One line of a schema."""

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Raise SchemaError unless the line is true of a model with these fitted attributes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Check(Entry):
    """A relation between attributes, or of parameters: what is wrong where it does not hold, and whether it does.

    `unfitted`: it must hold of a model that is not fitted, too.
    """

    wrong: str
    holds: Callable[[Any], Any]
    unfitted: bool = False

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Raise SchemaError unless the relation holds."""
        if not self.holds(model):
            raise SchemaError(self.wrong)


@dataclass(frozen=True)
class Size(Entry):
    """The size of a symbol by a rule, from the model and the sizes of the symbols above; None leaves it open."""

    symbol: str
    rule: Callable[[Any, Sizes], Any]

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Set the size, or raise SchemaError if it differs from the one of an attribute above."""
        size = self.rule(model, sizes)
        if size is not None:
            sizes.set(f"{type(model).__name__}'s rule", self.symbol, size)


@dataclass(frozen=True)
class Field(Entry):
    """An attribute. `optional`: some fits leave it out, or an older file does; `nullable`: it may be None."""

    name: str
    _: KW_ONLY
    optional: bool = False
    nullable: bool = False

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Raise SchemaError if the attribute is missing, or not as declared."""
        if self.name not in state:
            if not self.optional:
                raise SchemaError(f"{self.name} is missing")
        elif state[self.name] is not None or not self.nullable:
            self.check_value(state[self.name], model, sizes)

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is as declared."""
        raise NotImplementedError

    def refuse(self, value: Any, wanted: str) -> NoReturn:
        """Raise SchemaError: the value is not what is wanted."""
        given = f"has dtype {value.dtype}" if isinstance(value, np.ndarray) else f"is a {type(value).__name__}"
        raise SchemaError(f"{self.name} {given}, not {wanted}")


@dataclass(frozen=True)
class Value(Field):
    """An object of a type, or of one of several."""

    kind: Any = object

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is of the type."""
        if not isinstance(value, self.kind):
            self.refuse(value, getattr(self.kind, "__name__", str(self.kind)))


@dataclass(frozen=True)
class Count(Field):
    """A whole number ≥ 0; it is the size of `symbol`, if one is given."""

    symbol: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a whole number ≥ 0, and the size of the symbol."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            self.refuse(value, "a whole number ≥ 0")
        if self.symbol:
            sizes.set(self.name, self.symbol, int(value))


@dataclass(frozen=True)
class Array(Field):
    """An array, or a number if the shape has no axes; `shape` as "n *targets", `dtype` as NumPy's, also abstract.

    Entries in floating point are finite, unless the field says otherwise.
    """

    shape: str = ""
    dtype: Any = np.float64
    _: KW_ONLY
    rules: tuple[Rule, ...] = ()
    finite: bool = True

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless dtype, shape and entries are as declared."""
        kinds = self.dtype if isinstance(self.dtype, tuple) else (self.dtype,)
        number = isinstance(value, np.ndarray | np.generic | int | float)
        if not number or not any(np.issubdtype(np.asarray(value).dtype, kind) for kind in kinds):
            self.refuse(value, " or ".join(kind.__name__ for kind in kinds))
        sizes.match(self.name, self.shape, np.shape(value))
        if self.finite and np.asarray(value).dtype.kind == "f" and not np.all(np.isfinite(value)):
            raise SchemaError(f"{self.name} is not finite")
        for rule in self.rules:
            if not rule.holds(value):
                raise SchemaError(f"{self.name} is not {rule.words}")


@dataclass(frozen=True)
class Indices(Array):
    """Whole numbers from 0 to below the size of the symbol `of`."""

    dtype: Any = np.integer
    _: KW_ONLY
    of: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is an array of such numbers."""
        super().check_value(value, model, sizes)
        if np.size(value) and (np.min(value) < 0 or np.max(value) >= sizes[self.of]):
            raise SchemaError(f"{self.name} has entries that are not from 0 to below {self.of} = {sizes[self.of]}")


@dataclass(frozen=True)
class Rows(Field):
    """Rows as the kernel takes them: a matrix (dense or CSR), objects, or places in a precomputed matrix."""

    shape: str = "n"
    columns: str = "d"
    kernel: str = "kernel_"
    """The attribute with the kernel, a field above."""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError, or what the kernel raises, unless they are rows of the kernel's domain."""
        kernel = getattr(model, self.kernel)
        objects = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object)
        numbers = sp.issparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
        if not (numbers or objects) or (objects and not kernel.space.objects):
            self.refuse(value, f"rows for {kernel!r:.60}")
        if kernel.space.objects:
            kernel.as_objects(value)
            sizes.match(self.name, self.shape, np.shape(value)[:1] if numbers else (len(value),))
        elif kernel.space.numbered:
            Indices(self.name, self.shape, of=self.columns).check_value(value, model, sizes)
        else:
            sizes.match(self.name, f"{self.shape} {self.columns}", value.shape)


@dataclass(frozen=True)
class Elements(Field):
    """A list, as long as the symbol says."""

    shape: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a list of that length."""
        if not isinstance(value, list):
            self.refuse(value, "a list")
        sizes.match(self.name, self.shape, (len(value),))


@dataclass(frozen=True)
class Texts(Elements):
    """A list of texts, or of lists of texts (`of_lists`)."""

    of_lists: bool = False

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a list of that length, of texts."""
        super().check_value(value, model, sizes)
        for one in value if self.of_lists else [value]:
            if not isinstance(one, list) or not all(isinstance(text, str) for text in one):
                self.refuse(one, "a list of texts")


@dataclass(frozen=True)
class Record(Field):
    """A dict with these fields, or a tuple of their values; their symbols are those of the model."""

    fields: tuple[Field, ...] = ()

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value has the fields, and no others."""
        names = [one.name for one in self.fields]
        if isinstance(value, tuple) and len(value) == len(names):
            value = dict(zip(names, value, strict=True))
        if not isinstance(value, dict) or not set(value) <= set(names):
            self.refuse(value, f"a record of {', '.join(names)}")
        for one in self.fields:
            try:
                one.check(model, value, sizes)
            except SchemaError as error:
                raise SchemaError(f"{self.name}: {error}") from None


@dataclass(frozen=True)
class Part(Field):
    """A model within the model, which takes rows of so many columns; its own schema says what is in it."""

    columns: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a model with that number of columns."""
        if not isinstance(value, BaseEstimator):
            self.refuse(value, "a model")
        if self.columns:
            sizes.set(f"{self.name}.n_features_in_", self.columns, getattr(value, "n_features_in_", None))
