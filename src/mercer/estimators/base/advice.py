"""A solver's status, as advice in terms of the estimator's own parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Real
from typing import Any

from mercer.solvers import Status

__all__ = ["advice", "left_to_default"]


def advice(status: Status, parameters: Mapping[str, Any], limit: str = "max_iter", penalty: str = "alpha") -> str:
    """What happened, and which of the estimator's parameters to change; the solver's own advice if none applies.

    Parameters
    ----------
    status : Status
    parameters : mapping
        The estimator's parameters; the advice names only these.
    limit, penalty : str
        The parameter that bounds the solver's steps, and the one added to the diagonal.

    Examples
    --------
    >>> advice(Status.MAX_STEPS, {"max_iter": 100, "tol": 1e-3}).partition("; ")[2]
    'raise max_iter=100, or loosen tol=0.001'
    >>> advice(Status.BREAKDOWN, {"delta": 1e-9}, penalty="delta").partition("; ")[2]
    'raise delta=1e-09, or check that the kernel is positive semi-definite'
    """

    def named(verb: str, name: str) -> list[str]:
        value = parameters.get(name)
        if name not in parameters or (name == "tol" and value is None) or (name == limit and value == -1):
            return []  # not there, or switched off
        return [f"{verb} {name}={value!r}" if isinstance(value, Real) else f"{verb} {name}"]

    stronger, looser = named("raise", penalty), named("loosen", "tol")
    match status:
        case Status.MAX_STEPS:
            do = (named("raise", limit) or stronger) + looser
        case Status.STALLED:
            do = stronger + looser
        case Status.BREAKDOWN | Status.NOT_POSITIVE_DEFINITE:
            do = [*stronger, "check that the kernel is positive semi-definite"] if stronger else []
        case Status.DIVERGED:
            do = named("lower", "step_size")
        case _:
            do = []
    what = status.advice.partition(";")[0]
    return f"{what}; {', or '.join(do)}" if do else status.advice


def left_to_default(estimator: Any, name: str) -> list[str]:
    """A note for the report if neither this parameter nor the kernel was chosen.

    >>> from mercer import SVC
    >>> left_to_default(SVC(), "C")[0].partition(";")[0]
    "C=1.0 and kernel='gaussian' are defaults, which suit some rows better than others"
    >>> left_to_default(SVC(C=10), "C"), left_to_default(SVC(kernel="gaussian(gamma=2.0)"), "C")
    ([], [])
    """
    defaults = _defaults(type(estimator).__init__)
    names = [name] if name == "kernel" else [name, "kernel"]
    for one in names:
        value = getattr(estimator, one)
        if one not in defaults or not isinstance(value, Real | str) or value != defaults[one]:
            return []
    given = " and ".join(f"{one}={getattr(estimator, one)!r}" for one in names)
    what = f"{given} are defaults, which suit" if len(names) > 1 else f"{given} is the default, which suits"
    return [f"{what} some rows better than others; KernelSearchCV chooses (docs/defaults.md has what that is worth)"]


@lru_cache(maxsize=256)
def _defaults(constructor: Callable[..., None]) -> dict[str, Any]:
    """The defaults of its parameters, kept because reading a signature is slow."""
    return {name: parameter.default for name, parameter in inspect.signature(constructor).parameters.items()}
