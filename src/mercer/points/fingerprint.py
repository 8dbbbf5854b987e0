"""Digests of data and parameters: they cover the values, structure, dtype and shape of everything that is given."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.former_names import former_name
from mercer.points.validate import is_torch
from mercer.schemas import Schema

__all__ = ["fingerprint"]

PLAIN = type(None) | bool | int | float | complex | str | bytes | range | slice | type(...)
STANDARD = sysconfig.get_path("stdlib")
IDLE = ("__doc__", "__module__", "__qualname__", "__firstlineno__")
"""What a class holds that no result depends on."""


def fingerprint(*things: Any) -> str:
    """A digest of objects: equal objects have equal digests, in other processes too.

    The digest covers all values of arrays, sparse matrices, tensors and tables; the class and the parameters of
    estimators and kernels, and what the schema of a fitted model declares; and whatever would be pickled of other
    objects. It covers the code of functions and of classes that are not of an installed library, with that of what they
    name. Reports of fits, which have times in them, do not count.

    Parameters
    ----------
    *things : object

    Returns
    -------
    str
        32 hexadecimal digits.

    Raises
    ------
    InvalidInput
        If an object has no value to digest, such as a generator or an open file.

    Examples
    --------
    >>> fingerprint(np.arange(3), "a") == fingerprint(np.arange(3), "a") != fingerprint(np.arange(3), "b")
    True
    """
    return _of(things, ()).hex()


def fingerprint_of_chunks(shape: tuple[int, ...], dtype: np.dtype[Any], chunks: Iterable[NDArray[Any]]) -> str:
    """The fingerprint of the array that consecutive chunks make.

    >>> X = np.arange(6.0).reshape(3, 2)
    >>> fingerprint_of_chunks(X.shape, X.dtype, [X[:1], X[1:]]) == fingerprint(X)
    True
    """
    name = ".".join(_name(np.ndarray))
    described, mask = _inner([repr((str(dtype), shape)).encode(), None], ())
    values = hashlib.blake2b(name.encode(), digest_size=16)
    for part in (described, mask):
        values.update(len(part).to_bytes(8, "little"))
        values.update(part)
    values.update(int(np.prod(shape) * dtype.itemsize).to_bytes(8, "little"))
    for chunk in chunks:
        values.update(np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data)
    return _digest(".".join(_name(tuple)), values.digest()).hex()


def _of(thing: Any, above: tuple[int, ...]) -> bytes:
    """The digest of an object within the objects `above`, by the first row of `TABLE` that fits it."""
    if id(thing) in above:
        return _digest("above", str(len(above) - above.index(id(thing))).encode())
    for fits, parts in TABLE:
        if fits(thing):
            kind = type(thing)
            return _digest(".".join(_name(kind)), *_inner(parts(thing), (*above, id(thing))))
    raise AssertionError("the last row of the table fits everything")


def _inner(parts: Iterable[Any], above: tuple[int, ...]) -> list[bytes | memoryview]:
    return [part if isinstance(part, bytes | memoryview) else _of(part, above) for part in parts]


def _name(thing: Any) -> tuple[str, str]:
    """The module and the name of a class or function: the earliest name of the module, so that moves change nothing."""
    return former_name(thing.__module__, thing.__qualname__), thing.__qualname__


def _digest(name: str, *parts: bytes | memoryview) -> bytes:
    """The digest of a name and of parts, each after its length, so that different lists of parts differ."""
    digest = hashlib.blake2b(name.encode(), digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


# ---- the parts of an object: bytes, or further objects ---------------------------------------------------------------


def _plain(thing: Any) -> list[bytes]:
    return [thing if isinstance(thing, bytes) else repr(thing).encode("utf-8", "surrogatepass")]


def _array(thing: NDArray[Any]) -> list[Any]:
    values = np.asarray(thing)
    mask = np.ma.getmaskarray(thing) if np.ma.isMaskedArray(thing) else None
    shape = repr((str(values.dtype), values.shape)).encode()
    if values.dtype.hasobject or values.dtype.kind == "T":  # the bytes of these are addresses
        return [shape, mask, *values.astype(object).ravel().tolist()]
    return [shape, mask, np.ascontiguousarray(values).reshape(-1).view(np.uint8).data]


def _sparse(thing: Any) -> list[Any]:
    rows = thing.tocsr()
    return [repr(rows.shape).encode(), rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]


def _tensor(thing: Any) -> list[Any]:
    import torch

    dense = (thing if thing.layout == torch.strided else thing.to_dense()).detach().cpu().contiguous()
    raw = dense.resolve_conj().flatten().view(torch.uint8).numpy()
    return [repr((str(thing.dtype), tuple(thing.shape))).encode(), raw.data]


def _frame(thing: Any) -> list[Any]:
    columns = [thing.iloc[:, j] if hasattr(thing, "iloc") else thing[name] for j, name in enumerate(thing.columns)]
    return [list(thing.columns), getattr(thing, "index", None), *columns]


def _series(thing: Any) -> list[Any]:
    dtype, known = thing.dtype, None
    if hasattr(thing, "cat") and hasattr(thing, "iloc"):  # pandas: str(dtype) does not name the categories
        known = [list(dtype.categories), dtype.ordered]
    return [str(dtype).encode(), known, getattr(thing, "index", None), np.asarray(thing)]


def _code(thing: CodeType) -> list[Any]:
    return [thing.co_code, thing.co_consts, thing.co_names, thing.co_varnames]


def _function(thing: FunctionType) -> list[Any]:
    return [*_alone(thing), *map(_alone, _called(thing))]


def _alone(thing: FunctionType) -> list[Any]:
    cells = [_contents(cell) for cell in thing.__closure__ or ()]
    return [*_name(thing), thing.__code__, thing.__defaults__, thing.__kwdefaults__, cells]


def _called(thing: FunctionType) -> list[FunctionType]:
    """The user's functions that a function names, and those of classes that it names, and so on, each once."""
    found, waiting = {thing.__code__: thing}, [thing]
    while waiting:
        one = waiting.pop()
        for other in (one.__globals__.get(name) for name in sorted(_names(one.__code__))):
            if isinstance(other, FunctionType | type) and _is_own(other):
                new = [known for known in _functions(other) if known.__code__ not in found]
                found |= {known.__code__: known for known in new}
                waiting += new
    return [*found.values()][1:]


def _functions(thing: FunctionType | type) -> list[FunctionType]:
    """A function, or those of a class and of the user's classes among its bases."""
    if isinstance(thing, FunctionType):
        return [thing]
    return [one for _, one in _written(thing) if isinstance(one, FunctionType)]


def _names(code: CodeType) -> set[str]:
    """The names that the code, and the code within it, reads."""
    return set(code.co_names).union(*(_names(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_own(thing: Any) -> bool:
    """Whether a class or function is the user's, and not of an installed library, whose code a release keeps."""
    name = str(thing.__module__)
    if name == "__main__":
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name.partition(".")[0] == "mercer":
        return False
    path = Path(file)
    installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return not installed and not path.is_relative_to(STANDARD)


def _written(kind: type) -> list[Any]:
    """What the user's classes among a class and its bases hold: methods, and numbers and texts."""
    held = [item for base in kind.__mro__ if _is_own(base) for item in sorted(vars(base).items())]
    bare = [(name, getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))) for name, one in held]
    return [[name, one] for name, one in bare if name not in IDLE and isinstance(one, FunctionType | PLAIN)]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None


def _reduced(thing: Any) -> list[Any]:
    try:
        found = thing.__reduce_ex__(4)
    except Exception as error:
        given = f"a {type(thing).__name__}, which has no value to compare"
        do = "give objects that can be pickled, or leave out resume="
        raise InvalidInput(message("fingerprint", given, do)) from error
    if isinstance(found, str):
        return [thing.__module__, found]
    return [list(part) if i >= 3 and part is not None else part for i, part in enumerate(found)]


def _estimator(thing: Any) -> list[Any]:
    schema = getattr(type(thing), "fitted", None)
    state = schema.results(thing) if isinstance(schema, Schema) else {}
    return [thing.get_params(deep=False), *([state] if state else []), *_written(type(thing))]


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda thing: isinstance(thing, kinds)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda thing: all(hasattr(thing, name) for name in names)


TABLE: tuple[tuple[Callable[[Any], bool], Callable[[Any], Iterable[Any]]], ...] = (
    (lambda thing: isinstance(thing, PLAIN), _plain),
    (_is(np.ndarray), _array),
    (sp.issparse, _sparse),
    (is_torch, _tensor),
    (_is(type), lambda thing: [*_name(thing)]),
    (_has("columns", "shape", "dtypes"), _frame),
    (_has("dtype", "shape", "to_frame", "name"), _series),
    (_is(list, tuple), lambda thing: thing),
    (_is(set, frozenset), lambda thing: sorted(thing, key=repr)),
    (_is(dict), lambda thing: sorted(thing.items(), key=lambda item: repr(item[0]))),
    (_is(ModuleType), lambda thing: [thing.__name__]),
    (_is(CodeType), _code),
    (_is(FunctionType), _function),
    (_is(MethodType), lambda thing: [thing.__func__, thing.__self__]),
    (_is(BuiltinFunctionType, np.ufunc), lambda thing: [str(getattr(thing, "__module__", "")), thing.__name__]),
    (_has("get_params"), _estimator),
    (is_dataclass, lambda thing: [*(getattr(thing, one.name) for one in fields(thing)), *_written(type(thing))]),
    (_has("__array__", "shape"), lambda thing: [np.asarray(thing)]),
    (lambda thing: True, _reduced),
)
"""Tests of objects, and the parts of the objects that pass: the first row that fits counts."""
