"""The entries of a schema: attributes, sizes that follow from a rule, and relations between attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np
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
    """An entry of a schema."""

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Raise SchemaError unless the entry holds for a model with these fitted attributes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Check(Entry):
    """A relation between attributes or parameters.

    Parameters
    ----------
    wrong : str
        The error message if the relation does not hold.
    holds : callable
        model ↦ whether the relation holds.
    unfitted : bool
        Whether it must also hold for models that are not fitted.
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
    """The size of a symbol by a rule.

    Parameters
    ----------
    symbol : str
    rule : callable
        (model, sizes of the symbols above) ↦ the size, or None if the rule does not determine it.
    """

    symbol: str
    rule: Callable[[Any, Sizes], Any]

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Set the size, or raise SchemaError if it differs from the one of an attribute above."""
        size = self.rule(model, sizes)
        if size is not None:
            sizes.set(f"{type(model).__name__}'s rule", self.symbol, size)


@dataclass(frozen=True)
class Field(Entry):
    """An attribute.

    Parameters
    ----------
    name : str
    optional : bool
        Whether it may be missing, after some fits or in older files.
    nullable : bool
        Whether it may be None.
    varies : bool
        Whether equal fits may differ in it, as they do in the seconds that they take.
    """

    name: str
    _: KW_ONLY
    optional: bool = False
    nullable: bool = False
    varies: bool = False

    def check(self, model: Any, state: Mapping[str, Any], sizes: Sizes) -> None:
        """Raise SchemaError if the attribute is missing, or differs from its declaration."""
        if self.name not in state:
            if not self.optional:
                raise SchemaError(f"{self.name} is missing")
        elif state[self.name] is not None or not self.nullable:
            self.check_value(state[self.name], model, sizes)

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError if the value differs from its declaration."""
        raise NotImplementedError

    def refuse(self, value: Any, wanted: str) -> NoReturn:
        """Raise SchemaError, which says what the value is and what is wanted."""
        given = f"has dtype {value.dtype}" if isinstance(value, np.ndarray) else f"is a {type(value).__name__}"
        raise SchemaError(f"{self.name} {given}, not {wanted}")


@dataclass(frozen=True)
class Value(Field):
    """An object of the type `kind`, or of one of a tuple of types.

    Parameters
    ----------
    name, optional, nullable, varies
        As for `Field`.
    kind : type or tuple of types
    """

    kind: Any = object

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value has the type."""
        if not isinstance(value, self.kind):
            self.refuse(value, getattr(self.kind, "__name__", str(self.kind)))


@dataclass(frozen=True)
class Count(Field):
    """A whole number ≥ 0. If `symbol` is given, the number is its size.

    Parameters
    ----------
    name, optional, nullable, varies
        As for `Field`.
    symbol : str
        Empty for a number that is not a size.
    """

    symbol: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a whole number ≥ 0, and agrees with the size of the symbol."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            self.refuse(value, "a whole number ≥ 0")
        if self.symbol:
            sizes.set(self.name, self.symbol, int(value))


@dataclass(frozen=True)
class Array(Field):
    """An array, or a number if the shape has no axes.

    Parameters
    ----------
    shape : str
        The symbols of the axes, such as "n *targets"; one with a star stands for any number of axes.
    dtype : NumPy dtype or abstract type such as np.integer, or a tuple of these
    rules : tuple of Rule
        Properties of the entries.
    finite : bool
        Whether all floating-point entries must be finite.
    """

    shape: str = ""
    dtype: Any = np.float64
    _: KW_ONLY
    rules: tuple[Rule, ...] = ()
    finite: bool = True

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError if dtype, shape or entries differ from the declaration."""
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
    """Whole numbers i with 0 ≤ i < the size of the symbol `of`.

    Parameters
    ----------
    name, shape, dtype, optional, nullable, varies, rules, finite
        As for `Array`.
    of : str
        The symbol.
    """

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
    """Rows for the kernel: a matrix (dense or CSR), objects, or indices of columns of a precomputed matrix.

    Parameters
    ----------
    shape, columns : str
        The symbols of the number of rows, and of columns.
    kernel : str
        The attribute with the kernel, a field above this one.
    """

    shape: str = "n"
    columns: str = "d"
    kernel: str = "kernel_"

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError, or the kernel's error, unless the value has rows of the kernel's space."""
        kernel = getattr(model, self.kernel)
        if not kernel.space.holds(value):
            self.refuse(value, f"rows for {kernel!r:.60}")
        if kernel.space.objects:
            kernel.as_objects(value)
            sizes.match(self.name, self.shape, (len(kernel.space.of(value)),))
        elif kernel.space.numbered:
            Indices(self.name, self.shape, of=self.columns).check_value(value, model, sizes)
        else:
            sizes.match(self.name, f"{self.shape} {self.columns}", value.shape)


@dataclass(frozen=True)
class Elements(Field):
    """A list whose length is the size of the symbol `shape`.

    Parameters
    ----------
    name, optional, nullable, varies
        As for `Field`.
    shape : str
        The symbol.
    """

    shape: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a list of that length."""
        if not isinstance(value, list):
            self.refuse(value, "a list")
        sizes.match(self.name, self.shape, (len(value),))


@dataclass(frozen=True)
class Texts(Elements):
    """A list of texts, or with `of_lists` of lists of texts.

    Parameters
    ----------
    name, shape, optional, nullable, varies
        As for `Elements`.
    of_lists : bool
    """

    of_lists: bool = False

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a list of texts of that length."""
        super().check_value(value, model, sizes)
        for one in value if self.of_lists else [value]:
            if not isinstance(one, list) or not all(isinstance(text, str) for text in one):
                self.refuse(one, "a list of texts")


@dataclass(frozen=True)
class Record(Field):
    """A dict with these fields, or a tuple of their values. The symbols of their shapes are those of the model.

    Parameters
    ----------
    name, optional, nullable, varies
        As for `Field`.
    fields : tuple of Field
    """

    fields: tuple[Field, ...] = ()

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value has these fields and no others."""
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
    """A model within the model; its own schema declares its attributes.

    Parameters
    ----------
    columns : str
        The symbol of the number of columns of its rows.
    """

    columns: str = ""

    def check_value(self, value: Any, model: Any, sizes: Sizes) -> None:
        """Raise SchemaError unless the value is a model with that number of columns."""
        if not isinstance(value, BaseEstimator):
            self.refuse(value, "a model")
        if self.columns:
            sizes.set(f"{self.name}.n_features_in_", self.columns, getattr(value, "n_features_in_", None))
