"""How classes and functions of ours are pickled: by name, as what importing it gives in the process that reads it."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

__all__ = ["by_name", "pickled", "sent"]


def by_name(home: str, name: str) -> tuple[Callable[..., Any], tuple[str]]:
    """The reduction to a name: `imports` answers `resolve_name` as it does imports. It needs no mercer."""
    return resolve_name, (f"{home}:{name}",)


def pickled(kind: type, reduce: Callable[[Any], Any]) -> None:
    """Pickle what is of this kind so, cloudpickle included."""
    copyreg.pickle(kind, reduce)  # type: ignore[arg-type]  # a name is a reduction, too
    if issubclass(kind, type):
        for package in ("cloudpickle", "joblib.externals.cloudpickle"):  # the latter before joblib 1.6
            try:
                _heed(import_module(package).CloudPickler, kind)
            except ImportError:
                continue


def _heed(pickler: Any, kind: type) -> None:
    """Let cloudpickle heed the reduction of a kind of classes; it would pickle them by value."""
    former = pickler.reducer_override

    @wraps(former)
    def reducer_override(self: Any, thing: Any) -> Any:
        # NotImplemented leaves it to the table. A class that the user has derived is in no table of theirs.
        return NotImplemented if type(thing) is kind and "_theirs" in vars(thing) else former(self, thing)

    pickler.reducer_override = reducer_override


def sent(kind: type, reduce: Callable[[Any], Any]) -> None:
    """Send what is of this kind so between the processes of joblib."""
    try:
        from joblib.externals.loky.backend.reduction import register
    except ImportError:  # a joblib that has moved it: workers run scikit-learn's
        return
    register(kind, reduce)
