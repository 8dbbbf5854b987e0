"""Converts values to JSON and arrays, and back: data only, from a closed list of types."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector

from mercer.errors import InvalidInput, MercerError, ModelFileError, message
from mercer.io.consistency import schema_of
from mercer.io.transformers import FUNCTIONS, TYPES, peers, refused_parameter
from mercer.kernels import (
    Function,
    Kernel,
    Normalized,
    OnColumns,
    Power,
    Product,
    Rescaled,
    Scaled,
    SetKernel,
    Sum,
    TableKernel,
    TablePart,
    parse,
)
from mercer.kernels.table_plans import SeasonPlan, TextPlan
from mercer.tables.columns import ColumnPlan
from mercer.validity.repair import RepairedKernel, SpectralRepair
from mercer.ways import Report

__all__ = ["Decoder", "Encoder", "registry"]

_COMPOSED = (Sum, Product, Scaled, Power, Normalized, OnColumns, Rescaled, SetKernel)
"""Kernels of kernels, which are saved by their parts if a part has no text form."""

_STORED = "biuf"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEPTH = 40


def registry() -> dict[str, type]:
    """The classes that a file may name.

    These are mercer's estimators, the table model and its parts, the report, and the scikit-learn transformers of
    `mercer.io.transformers`.

    >>> "KernelRidge" in registry()
    True
    """
    from mercer import approx, estimators
    from mercer.io.table_model import TableModel
    from mercer.tables.encoder import TableEncoder
    from mercer.tables.sequences import SequenceEncoder

    public = (getattr(estimators, name) for name in dir(estimators))
    classes = [
        one for one in public if isinstance(one, type) and (issubclass(one, BaseEstimator) or one.__name__ == "Report")
    ]
    tables = (TableEncoder, TableModel, TableKernel, TablePart, ColumnPlan, SeasonPlan, TextPlan)
    kernels = (*_COMPOSED, RepairedKernel, SpectralRepair)
    return peers() | {
        one.__name__: one for one in (*classes, approx.MonomialFeatures, SequenceEncoder, *tables, *kernels)
    }


class Encoder:
    """Python values ↦ JSON, with arrays collected in `arrays`.

    >>> encoder = Encoder()
    >>> encoder.value({"a": np.array([1.5])}, "example")
    {'dict': [['a', {'array': '0'}]]}
    >>> encoder.arrays
    {'0': array([1.5])}
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.classes = registry()
        self.depth = 0

    def value(self, value: Any, where: str) -> Any:
        """The value as JSON; `where` is its place in the model, for messages."""
        self.depth += 1
        if self.depth > _DEPTH:
            self._refuse(where, "is nested too deeply", f"at most {_DEPTH} levels are saved: compose fewer kernels")
        found = self._value(value, where)
        self.depth -= 1
        return found

    def _value(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and not isinstance(value, np.generic):
            return value
        if isinstance(value, float) and not isinstance(value, np.generic):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if sp.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.value(one, where) for one in value]}
        if isinstance(value, dict):
            return {"dict": [[self.value(key, where), self.value(one, where)] for key, one in value.items()]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type) and (name := next((key for key, one in TYPES.items() if one is value), None)):
            return {"type": name}
        if type(value) is make_column_selector:
            chosen = (value.pattern, value.dtype_include, value.dtype_exclude)
            return {"selector": [self.value(one, where) for one in chosen]}
        if isinstance(value, np.ufunc) and FUNCTIONS.get(value.__name__) is value:
            return {"function": value.__name__}
        if isinstance(value, Kernel) and _reads_back(value):
            return {"kernel": repr(value)}
        if isinstance(value, Kernel) and self.classes.get(type(value).__name__) is not type(value):
            return self._own_kernel(value, where)
        return self._instance(value, where)

    def _array(self, value: Any, where: str) -> Any:
        array = np.asarray(value)
        if array.dtype.kind in "OUT":
            return self._texts(array, where)
        if array.dtype.kind not in _STORED or array.dtype.itemsize > 8:
            self._refuse(where, f"an array of {array.dtype}", "convert it to float64")
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        stored = array.T if by_columns else array
        name = str(len(self.arrays))
        self.arrays[name] = np.array(stored, dtype=array.dtype.newbyteorder("="), order="C")
        # The memory order is saved, because products can add in another order if it changes.
        extra = {"order": "F"} if by_columns else {}
        return {"array": name, **extra} | ({"scalar": True} if isinstance(value, np.generic) else {})

    def _texts(self, array: np.ndarray, where: str) -> Any:
        plain = [self.value(one.item() if isinstance(one, np.generic) else one, where) for one in array.ravel()]
        kind = "str" if array.dtype.kind in "UT" else "object"
        return {"texts": plain, "shape": list(array.shape), "dtype": kind}

    def _sparse(self, value: Any, where: str) -> Any:
        rows = value.tocsr()
        parts = {name: self._array(getattr(rows, name), where) for name in ("data", "indices", "indptr")}
        return {
            "csr": parts,
            "shape": list(rows.shape),
            "class": "array" if isinstance(value, sp.sparray) else "matrix",
        }

    def _own_kernel(self, kernel: Kernel, where: str) -> Any:
        """A kernel of a user's class, as the name of the class and its parameters, without its code."""
        cls = type(kernel)
        name, names = cls.__name__, {field.name for field in dataclasses.fields(kernel)}
        if isinstance(kernel, Function):
            given, do = f"{kernel!r:.60} is a Python function, which is not data", "write a kernel class instead: "
            self._refuse(where, given, do + "a frozen dataclass with its formula or block, which load(kernels=) takes")
        cached = {key for key in vars(kernel) if isinstance(getattr(cls, key, None), functools.cached_property)}
        if not set(vars(kernel)) <= names | cached:
            extra = min(set(vars(kernel)) - names - cached)
            given = f"the kernel {name} has {extra!r}, which is not a field of a dataclass"
            self._refuse(where, given, f"make {name} a frozen dataclass of its parameters, as mercer's own kernels are")
        fields = {one.name: getattr(kernel, one.name) for one in dataclasses.fields(kernel) if one.init}
        encoded = {key: self.value(one, f"{name}.{key}") for key, one in fields.items()}
        return {"class": name, "module": cls.__module__, "fields": encoded}

    def _instance(self, value: Any, where: str) -> Any:
        name: str = type(value).__name__
        if self.classes.get(name) is not type(value):
            do = "only data can be saved: set a plain value"
            if ".X_fit_" in where:
                do = "rows of this type are no data: give texts or lists of numbers, or pickle the model"
            self._refuse(where, f"{value!r:.60} is of type {type(value).__module__}.{name}", do)
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {"record": name, "fields": {key: self.value(one, f"{name}.{key}") for key, one in fields.items()}}
        model: BaseEstimator = value
        params, state = model.get_params(deep=False), schema_of(type(value)).contents(model)
        if refused := refused_parameter(name, params):
            self._refuse(where, f"{name}({refused[0]})", refused[1])
        if strange := next((key for key in state if not _is_state(type(value), key)), None):
            self._refuse(where, f"the attribute {strange!r}, which no fitted {name} has", "delete it")
        encoded = {
            part: {key: self.value(one, f"{name}.{key}") for key, one in values.items()}
            for part, values in (("params", params), ("state", state))
        }
        return {"model": name, **encoded}

    def _refuse(self, where: str, given: str, do: str) -> NoReturn:
        raise InvalidInput(message("save", f"{where}: {given}", do))


def _reads_back(kernel: Kernel) -> bool:
    """Whether the kernel's text parses to the same kernel."""
    try:
        return bool(parse(repr(kernel)) == kernel)
    except MercerError:
        return False


class Decoder:
    """JSON and arrays ↦ Python values; raises ModelFileError for anything that `Encoder` does not write.

    `kernels` are the user's kernel classes by name. Besides mercer's own, no other code can be called by a file.

    >>> Decoder({}, "a file").value({"tuple": [1, {"float": "inf"}]})
    (1, inf)
    """

    def __init__(
        self, arrays: dict[str, np.ndarray], path: str, kernels: Mapping[str, type[Kernel]] = MappingProxyType({})
    ) -> None:
        self.arrays, self.path, self.classes, self.kernels = arrays, path, registry(), kernels
        self.depth = 0

    def value(self, given: Any) -> Any:
        """The value of its JSON."""
        if given is None or isinstance(given, bool | str | int | float):
            return given
        self.depth += 1
        if not isinstance(given, dict) or self.depth > _DEPTH:
            self._refuse("a value that is not JSON of a model")
        kinds = ("float", "array", "texts", "csr", "list", "tuple", "dict", "slice", "dtype", "type")
        more = ("function", "selector", "kernel", "class", "record", "model")
        kind = next((one for one in (*kinds, *more) if one in given), None)
        if kind is None:
            self._refuse(f"a value of unknown kind {sorted(map(str, given))[:3]}")
        result = getattr(self, f"_{kind}")(given[kind], given)
        self.depth -= 1
        return result

    def _refuse(self, what: str) -> NoReturn:
        raise ModelFileError(message(self.path, f"the file has {what}", "save the model again"))

    def _float(self, text: Any, _: dict[str, Any]) -> float:
        if text not in ("inf", "-inf", "nan"):
            self._refuse("a text that is not a number")
        return float(text)

    def _array(self, name: Any, given: dict[str, Any]) -> Any:
        if not isinstance(name, str) or name not in self.arrays:
            self._refuse("the name of an array that it does not hold")
        array = self.arrays[name]
        array = array.T if given.get("order") == "F" else array
        return array[()] if given.get("scalar") else array

    def _texts(self, values: Any, given: dict[str, Any]) -> np.ndarray:
        shape, plain = given.get("shape"), self._list(values, given)
        if not _is_shape(shape) or math.prod(shape or ()) != len(plain) or given.get("dtype") not in ("str", "object"):
            self._refuse("a list of texts without its shape")
        if given["dtype"] == "str":
            if not all(isinstance(one, str) for one in plain):
                self._refuse("an entry that should be a list of texts")
            return np.array(plain, dtype=str).reshape(shape)
        out = np.empty(len(plain), dtype=object)
        for place, one in enumerate(plain):  # one by one, because tuples of equal length would become a table
            out[place] = one
        return out.reshape(shape)

    def _csr(self, parts: Any, given: dict[str, Any]) -> Any:
        if not isinstance(parts, dict) or not _is_shape(given.get("shape")):
            self._refuse("a sparse matrix without its parts")
        arrays = tuple(self.value(parts.get(name)) for name in ("data", "indices", "indptr"))
        if not all(isinstance(one, np.ndarray) for one in arrays):
            self._refuse("a sparse matrix without its parts")
        matrix = (sp.csr_array if given.get("class") == "array" else sp.csr_matrix)(arrays, shape=tuple(given["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _list(self, values: Any, _: dict[str, Any]) -> list[Any]:
        if not isinstance(values, list):
            self._refuse("an entry that should be a list")
        return [self.value(one) for one in values]

    def _tuple(self, values: Any, given: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(values, given))

    def _dict(self, pairs: Any, _: dict[str, Any]) -> dict[Any, Any]:
        if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            self._refuse("an entry that should be a list of pairs")
        return {self.value(key): self.value(one) for key, one in pairs}

    def _slice(self, ends: Any, _: dict[str, Any]) -> slice:
        if not isinstance(ends, list) or len(ends) != 3 or not all(one is None or type(one) is int for one in ends):
            self._refuse("a slice without its ends")
        return slice(*ends)

    def _dtype(self, name: Any, _: dict[str, Any]) -> Any:
        if not isinstance(name, str) or np.dtype(name).kind not in "biufOU":
            self._refuse("a dtype that is neither of numbers nor of texts")
        return np.dtype(name)

    def _type(self, name: Any, _: dict[str, Any]) -> type:
        if not isinstance(name, str) or name not in TYPES:
            self._refuse(f"the type {name!r:.40}, which is not on the list")
        return TYPES[name]

    def _selector(self, chosen: Any, given: dict[str, Any]) -> make_column_selector:
        pattern, include, exclude = self._list(chosen, given)
        return make_column_selector(pattern, dtype_include=include, dtype_exclude=exclude)

    def _function(self, name: Any, _: dict[str, Any]) -> Any:
        if not isinstance(name, str) or name not in FUNCTIONS:
            self._refuse(f"the function {name!r:.40}, which is not on the list")
        return FUNCTIONS[name]

    def _kernel(self, text: Any, _: dict[str, Any]) -> Kernel:
        if not isinstance(text, str):
            self._refuse("a kernel that is not text")
        return parse(text)

    def _class(self, name: Any, given: dict[str, Any]) -> Kernel:
        """A kernel of a class that was passed to `load`."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._refuse("a class without a name")
        if name not in self.kernels:
            where = f" (of the module {given['module']})" if isinstance(given.get("module"), str) else ""
            text = f"the file holds a kernel of the class {name}{where}, which is not one of mercer's"
            raise ModelFileError(message(self.path, text, f"give the class: mercer.load(path, kernels=[{name}])"))
        return self.kernels[name](**self._fields(given.get("fields")))

    def _named(self, name: Any) -> type:
        if not isinstance(name, str) or name not in self.classes:
            known = ", ".join(sorted(self.classes))
            given = f"the file holds a {name!r:.60}, which this version does not know ({known})"
            raise ModelFileError(message(self.path, given, "update mercer, or save the model again"))
        return self.classes[name]

    def _fields(self, fields: Any) -> dict[str, Any]:
        if not isinstance(fields, dict) or not all(_NAME.fullmatch(key) for key in fields):
            self._refuse("an entry that should be named values")
        return {key: self.value(one) for key, one in fields.items()}

    def _record(self, name: Any, given: dict[str, Any]) -> Any:
        cls, stored = self._named(name), given.get("fields")
        if cls is Report and isinstance(stored, dict):  # what later versions tell of a fit changes no prediction
            stored = {key: one for key, one in stored.items() if key in Report.__dataclass_fields__}
        fields = self._fields(stored)
        if not dataclasses.is_dataclass(cls):
            self._refuse(f"a record of the class {name}, which is not one")
        return RepairedKernel.restored(**fields) if cls is RepairedKernel else cls(**fields)

    def _model(self, name: Any, given: dict[str, Any]) -> Any:
        cls = self._named(name)
        if not issubclass(cls, BaseEstimator):
            self._refuse(f"a model of the class {name}, which is not one")
        params, state = self._fields(given.get("params")), self._fields(given.get("state"))
        if refused := refused_parameter(name, params):
            self._refuse(f"{name}({refused[0]})")
        model = cls(**params)
        for key, value in state.items():
            if not _is_state(cls, key):
                self._refuse(f"the attribute {key!r}, which no fitted {name} has")
            setattr(model, key, value)
        return model


def _is_state(cls: type, key: str) -> bool:
    """Whether a fit may set this attribute; the same rule holds for writing and reading."""
    return schema_of(cls).allows(key) and not hasattr(cls, key)


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(
        isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in shape
    )
