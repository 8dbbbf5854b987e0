"""Subclasses of scikit-learn's classes whose methods run in mercer where that is worth it, and count what they do.

Their objects have scikit-learn's attributes and nothing else, so that either side can go on from there. They are
pickled as scikit-learn's.
"""

from __future__ import annotations

import copy
import copyreg
import threading
import warnings
from collections.abc import Callable
from functools import cache, partial, wraps
from importlib import import_module
from inspect import getattr_static, isfunction
from time import perf_counter
from typing import Any

from sklearn.utils.metaestimators import available_if

from mercer.accelerate import work
from mercer.accelerate.ledger import Call, note, strict
from mercer.errors import DelegatedWarning, InvalidInput, MercerError, message

__all__ = ["proxy", "revive"]

METHODS = (
    *("fit", "fit_transform", "fit_predict", "predict", "decision_function", "score_samples", "transform"),
    *("inverse_transform", "predict_proba", "predict_log_proba"),
)
_call = threading.local()
"""`running`: whether a counted call is under way; `why` it is not mercer that does it."""


@cache
def proxy(home: str, name: str, theirs: Any) -> Any:
    """The counterpart of this class or function in this module of scikit-learn."""
    if isfunction(theirs):
        return _counted(name, theirs, lambda *args, **params: _ours(home, name)(*args, **params), work.of_matrix)
    meta = type("Meta", (type(theirs),), {"__instancecheck__": _made_by_either})
    shared = {"__module__": theirs.__module__, "__qualname__": theirs.__qualname__, "__doc__": theirs.__doc__}
    made = meta(name, (theirs,), shared | _conduct(theirs) | _methods(home, name, theirs))
    _travels(made, home, name)
    return made


@cache
def _ours(home: str, name: str) -> Any:
    """Our class or function, whose delegations are noted and, if need be, refused."""
    face = getattr(import_module("mercer." + ("sklearn.metrics.pairwise" if home == "sklearn.metrics" else home)), name)

    def delegated(self: Any, why: str) -> None:
        if strict():
            given = why.removeprefix(f"{name}: ").removesuffix(".")
            raise InvalidInput(message(name, given, "leave out --strict, or strict=True, to let scikit-learn do it"))
        _call.why = why

    return _refusing(face) if isfunction(face) else type(name, (face,), {"_delegated": delegated})


def _refusing(face: Callable[..., Any]) -> Callable[..., Any]:
    """Our function, which raises an error where it would leave the work to scikit-learn."""

    @wraps(face)
    def call(*args: Any, **params: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DelegatedWarning)
            try:
                return face(*args, **params)
            except DelegatedWarning as said:
                raise InvalidInput(str(said).partition("has this to say: ")[2]) from said

    return call


def _made_by_either(cls: Any, thing: Any) -> bool:
    """Models that scikit-learn itself has made are of the proxy's class, too."""
    return type.__instancecheck__(cls, thing) or ("_theirs" in vars(cls) and isinstance(thing, cls._theirs))


def _methods(home: str, name: str, theirs: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for method in METHODS:
        there = getattr_static(theirs, method, None)
        if there is not None:
            conditional = not isfunction(there)  # there for some parameters only
            ours = partial(_by_ours, home, name, method)
            called = _counted(
                f"{name}.{method}", there.fn if conditional else there, ours, partial(work.of_call, method)
            )
            found[method] = available_if(there.check)(called) if conditional else called
    return found


def _by_ours(home: str, name: str, method: str, model: Any, *args: Any, **params: Any) -> Any:
    """Our method on the attributes of a model of scikit-learn."""
    face = _ours(home, name)
    twin = face.__new__(face)
    twin.__dict__ = model.__dict__
    done = getattr(twin, method)(*args, **params)
    model.__dict__.pop("report_", None)
    return model if done is twin else done


def _counted(what: str, theirs: Callable[..., Any], ours: Callable[..., Any], size: Callable[..., float]) -> Any:
    """Our function where it is worth it, scikit-learn's else and if ours refuses; calls within others are theirs."""

    @wraps(theirs)
    def call(*args: Any, **params: Any) -> Any:
        if getattr(_call, "running", False):
            return theirs(*args, **params)
        much = 0.0 if strict() else size(*args, **params)
        _call.running, _call.why = True, "" if strict() else work.too_little(much)
        try:
            start, done = perf_counter(), None
            if not _call.why:
                try:
                    done = ours(*args, **params)
                    note(Call(what, perf_counter() - start, _call.why))
                    return done
                except MercerError as error:
                    if strict():
                        raise
                    _call.why, start = str(error), perf_counter()
            done = theirs(*args, **params)
            seconds = perf_counter() - start
            work.took(much, seconds)
            note(Call(what, seconds, _call.why))
            return done
        finally:
            _call.running = False

    return call


def _conduct(theirs: type) -> dict[str, Any]:
    """Copying and pickling of a proxy's objects."""

    def shallow(self: Any) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def deep(self: Any, memo: dict[int, Any]) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def reduce(self: Any, protocol: Any) -> Any:
        if "_theirs" not in vars(type(self)):  # a class that the user has derived
            return object.__reduce_ex__(self, protocol)
        return copyreg._reconstructor, (theirs, object, None), self.__getstate__()  # type: ignore[attr-defined]

    return {"_theirs": theirs, "__copy__": shallow, "__deepcopy__": deep, "__reduce_ex__": reduce}


def _travels(made: type, home: str, name: str) -> None:
    """Between processes of joblib a model keeps its class."""
    try:
        from joblib.externals.loky.backend.reduction import register
    except ImportError:  # a joblib that has moved it: workers run scikit-learn's
        return
    register(made, lambda model: (revive, (home, name, model.__getstate__())))


def revive(home: str, name: str, state: dict[str, Any]) -> Any:
    """A model that comes from another process."""
    made = proxy(home, name, vars(import_module(home))[name])
    model = made.__new__(made)
    model.__setstate__(state)
    return model
