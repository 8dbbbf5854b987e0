"""Subclasses of scikit-learn's classes whose methods run in mercer where that is worth it, and count what they do.

Their objects have scikit-learn's attributes and nothing else, so that either side can go on from there. They are
pickled as scikit-learn's, and they themselves by name. Functions have counterparts likewise.
"""

from __future__ import annotations

import copy
import copyreg
import threading
import warnings
from abc import ABCMeta
from collections.abc import Callable
from functools import cache, partial, update_wrapper, wraps
from importlib import import_module
from inspect import getattr_static, isfunction
from time import perf_counter
from types import MethodType
from typing import Any

from sklearn.utils.metaestimators import available_if

from mercer.accelerate import work
from mercer.accelerate.ledger import Call, note, strict
from mercer.accelerate.pickles import by_name, pickled, sent
from mercer.errors import DelegatedWarning, InvalidInput, MercerError, message

__all__ = ["named", "original", "proxy", "revive"]

METHODS = (
    *("fit", "fit_transform", "fit_predict", "predict", "decision_function", "score_samples", "transform"),
    *("inverse_transform", "predict_proba", "predict_log_proba"),
)
_call = threading.local()
"""`running`: whether a counted call is under way; `why` it is not mercer that does it."""
HOOKS = ("__getattribute__", "__getattr__", "__setattr__", "__sklearn_tags__")
"""The methods between underscores that decide what a model computes. The others tell of it, copy it, or pickle it."""


class Meta(ABCMeta):
    """The kind of the proxies of classes, and of the classes that users derive from them."""

    def __subclasscheck__(cls, kind: type) -> bool:
        """Models that scikit-learn itself has made are of the proxy's class, too: `isinstance` asks this."""
        theirs = original(cls)  # whose own check would ask its subclasses, and so this one
        return (theirs is not cls and type.__subclasscheck__(theirs, kind)) or super().__subclasscheck__(kind)


class Function:
    """The counterpart of a function. A plain function could be pickled only as what scikit-learn's module has."""

    def __init__(self, home: str, name: str, theirs: Any, call: Callable[..., Any]) -> None:
        update_wrapper(self, theirs)
        self._named, self._theirs, self._called = (home, name), theirs, call

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self._called(*args, **params)

    def __get__(self, thing: Any, owner: Any = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __repr__(self) -> str:
        return repr(self._theirs)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


def original(thing: Any) -> Any:
    """What scikit-learn has in the place of a proxy; anything else as it is."""
    return vars(thing).get("_theirs", thing) if isinstance(thing, Meta | Function) else thing


@cache
def proxy(home: str, name: str, theirs: Any) -> Any:
    """The counterpart of this class or function in this module of scikit-learn."""
    if isfunction(theirs):
        ours = _counted(name, theirs, lambda *args, **params: _ours(home, name)(*args, **params), work.of_matrix)
        return Function(home, name, theirs, ours)
    shared = {"__module__": theirs.__module__, "__qualname__": theirs.__qualname__, "__doc__": theirs.__doc__}
    made = Meta(name, (theirs,), shared | {"_named": (home, name)} | _conduct(theirs) | _methods(home, name, theirs))
    sent(made, lambda model: (revive, (home, name, model.__getstate__())))  # so a model keeps its class
    return made


def named(home: str, name: str) -> Any:
    """The proxy of this name in another process, whether or not that answers imports."""
    return proxy(home, name, original(vars(import_module(home))[name]))


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
    kind: Any = type(model)
    own = _overridden(kind)
    if own:  # our method would not call them
        given = f"the subclass {kind.__name__} overrides {', '.join(own)}, which mercer does not call"
        raise InvalidInput(message(name, given, f"leave it to scikit-learn, or take {name} itself"))
    face = _ours(home, name)
    twin = face.__new__(face)
    twin.__dict__ = model.__dict__
    done = getattr(twin, method)(*args, **params)
    model.__dict__.pop("report_", None)
    return model if done is twin else done


@cache
def _overridden(kind: type) -> list[str]:
    """What the classes before the proxy have in the place of scikit-learn's, other than `__init__`."""
    mro = kind.__mro__
    made = next((one for one in mro if "_theirs" in vars(one)), None)
    if made is None:  # a model of scikit-learn's own, given to our method
        return []
    theirs = original(made)
    has = {*HOOKS, *dir(theirs), *theirs._get_param_names()} - set(vars(Meta("Bare", (made,), {})))  # all have these
    names = {name for one in mro[: mro.index(made)] for name in vars(one)} & has
    return sorted(name for name in names if name in HOOKS or not name.startswith("__"))


def _counted(what: str, theirs: Callable[..., Any], ours: Callable[..., Any], size: Callable[..., float]) -> Any:
    """Our function where it is worth it, scikit-learn's else and if ours refuses; calls within others are theirs."""

    @wraps(theirs)
    def call(*args: Any, **params: Any) -> Any:
        if getattr(_call, "running", False):
            return theirs(*args, **params)
        much = 0.0 if strict() else _size(size, args, params)
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


def _size(size: Callable[..., float], args: tuple[Any, ...], params: dict[str, Any]) -> float:
    """The size of a call, 0 where its arguments tell none: what is wrong with them is scikit-learn's to say."""
    try:
        return float(size(*args, **params))
    except Exception:  # they may be anything
        return 0.0


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


def revive(home: str, name: str, state: dict[str, Any]) -> Any:
    """A model that comes from another process."""
    made = named(home, name)
    model = made.__new__(made)
    model.__setstate__(state)
    return model


def _by_name(thing: Any) -> Any:
    """Pickle a proxy by its name, and a class that the user has derived as any other."""
    return by_name(*thing._named) if original(thing) is not thing else thing.__qualname__


def _sent(thing: Any) -> Any:
    return (named, thing._named) if original(thing) is not thing else thing.__qualname__


for _kind in (Meta, Function):
    pickled(_kind, _by_name)
    sent(_kind, _sent)
