"""The schema suite: a fit sets the declared attributes, and a model file keeps them to the bit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from mercer.errors import InvalidInput, ModelFileError
from mercer.io import load, save
from mercer.io.models import as_bytes
from mercer.points import fingerprint
from mercer.schemas import Array, Count, Elements, Field, Indices, Part, Record, Rows, Schema, Sizes, Texts, Value

__all__ = ["check_schema"]


def check_schema(estimator: Any, *data: Any) -> int:
    """Check that a fit sets the attributes declared in `fitted`, that a file keeps them, and that changes are refused.

    Every declared attribute must exist, with its shape and dtype, and no other one. `save` and `load` must give the
    same attributes to the bit. Then each attribute is removed, and replaced by values of other kinds, shapes, dtypes
    and ranges. `save` must refuse each changed model, and `load` a file with it.

    Parameters
    ----------
    estimator : object
        It is not changed, because a clone is fitted.
    *data : object
        The arguments of its `fit`.

    Returns
    -------
    int
        The number of changes that were refused.

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> from mercer import KernelRidge
    >>> check_schema(KernelRidge(), [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]) > 30
    True
    """
    model = clone(estimator).fit(*data)
    name, schema = type(model).__name__, getattr(type(model), "fitted", None)
    assert isinstance(schema, Schema), f"{name} does not declare what a fit leaves"
    assert schema.closed, f"the schema of {name} allows attributes that it does not declare"
    try:
        sizes = schema.check(model)
    except ValueError as error:
        raise AssertionError(f"a fit of {name} leaves something else than it declares: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        assert _written_out(load(path)) == _written_out(model), f"{name} is not the same after save and load"
        return sum(_require_refusal(changed, words, path) for words, changed in _changed_models(model, schema, sizes))


def _written_out(model: BaseEstimator) -> str:
    """A digest of all parameters and fitted attributes, including those of inner models."""
    return fingerprint(_plain(model))


def _plain(value: Any) -> Any:
    """The value with models as lists of their parts and records as tuples, which files do not distinguish."""
    if isinstance(value, BaseEstimator):
        return [type(value), sorted((name, _plain(one)) for name, one in vars(value).items())]
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _require_refusal(model: BaseEstimator, words: str, path: Path) -> bool:
    """Raise AssertionError unless `save` refuses the model and `load` refuses a file with it."""
    try:
        save(model, path)
    except InvalidInput:
        pass
    else:
        raise AssertionError(f"{type(model).__name__} is saved with {words}")
    try:
        path.write_bytes(as_bytes(model))
    except InvalidInput:  # no value that a file can hold
        return True
    try:
        load(path)
    except ModelFileError:
        return True
    raise AssertionError(f"{type(model).__name__} is loaded with {words}")


def _changed_models(model: Any, schema: Schema, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    """Descriptions and copies of the model, each with one attribute that is not as declared."""
    for field in schema.fields:
        if field.name in vars(model):
            for words, value in _changes(field, vars(model)[field.name], sizes):
                yield f"{field.name} {words}", _with(model, field.name, value)
            changed = copy(model)
            del vars(changed)[field.name]
            if not field.optional and not schema.names.isdisjoint(vars(changed)):  # otherwise it is an unfitted model
                yield f"{field.name} removed", changed
    yield "an attribute that is not declared", _with(model, "undeclared_", 1)


def _with(model: Any, name: str, value: Any) -> Any:
    changed = copy(model)
    vars(changed)[name] = value
    return changed


# ---- values that are not as declared ---------------------------------------------------------------------------------


def _changes(field: Field, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    """Descriptions and values near the given one that the field does not allow."""
    if not (isinstance(field, Value) and isinstance("text", field.kind)):
        yield "of another kind", "text"
    if not field.nullable:
        yield "None", None
    if value is None:
        return
    for kind, changes in _CHANGES.items():
        if isinstance(field, kind):
            yield from changes(field, value, sizes)


def _of_array(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    if field.dtype is not np.generic:
        yield "of another dtype", np.zeros(np.shape(value), bool)
    yield from _of_shape(field.shape, value, sizes)
    if field.finite and np.asarray(value).dtype.kind == "f" and np.size(value):
        yield "not finite", value + np.nan
    for rule in field.rules:
        spoiled = rule.spoiled(value) if np.size(value) else value
        if not rule.holds(spoiled):
            yield f"not {rule.words}", spoiled


def _of_shape(shape: str, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    """The array with one more axis, and with one entry less along each axis whose length is checked elsewhere."""
    axes = shape.split()
    star = next((one for one in axes if one[0] == "*"), "")
    if not star or sizes.is_shared(star):
        yield "with another axis", np.expand_dims(value, -1)
    for axis, token in enumerate(axes[: axes.index(star)] if star else axes):
        if sizes.is_shared(token.partition("+")[0]) and value.shape[axis]:
            yield f"shorter in {token}", value[(slice(None),) * axis + (slice(1, None),)]


def _of_indices(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    if np.size(value):
        for entry in (-1, sizes[field.of]):
            yield f"with the entry {entry}", np.append(value[1:], entry)


def _of_count(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    yield "below 0", -1
    yield "a fraction", value + 0.5
    if sizes.is_shared(field.symbol):
        yield "greater by one", value + 1


def _of_rows(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    count = len(value) if isinstance(value, list) else value.shape[0]
    if count and sizes.is_shared(field.shape):
        yield "with a row less", value[1:]
    if np.ndim(value) == 2 and value.dtype != object and sizes.is_shared(field.columns):
        yield "with a column less", value[:, 1:]


def _of_elements(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    if sizes.is_shared(field.shape) and value:
        yield "with an element less", value[1:]


def _of_texts(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    if value:
        yield "with a number for a text", [[1] if field.of_lists else 1, *value[1:]]


def _of_record(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    names = [one.name for one in field.fields]
    record = dict(zip(names, value, strict=True)) if isinstance(value, tuple) else value
    yield "with an undeclared part", {**record, "undeclared": 1}
    for one in field.fields:
        if one.name in record:
            for words, changed in _changes(one, record[one.name], sizes):
                yield f"with {one.name} {words}", {**record, one.name: changed}
            if not one.optional:
                yield f"without {one.name}", {key: part for key, part in record.items() if key != one.name}


def _of_part(field: Any, value: Any, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    if field.columns:
        yield "of other columns", _with(value, "n_features_in_", value.n_features_in_ + 1)
    yield "with an attribute that is not declared", _with(value, "undeclared_", 1)


_CHANGES: dict[type[Field], Any] = {
    Array: _of_array,
    Indices: _of_indices,
    Count: _of_count,
    Rows: _of_rows,
    Elements: _of_elements,
    Texts: _of_texts,
    Record: _of_record,
    Part: _of_part,
}
"""The changes for each class of fields; a field gets those of its base classes too."""
