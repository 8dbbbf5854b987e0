"""A solver's status, as advice in terms of the estimator's own parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels import Kernel
from mercer.numerals import shown
from mercer.points import DensePoints, Points
from mercer.solvers import Status

__all__ = ["advice", "left_to_default", "outweighing_column"]

LARGE = 30
"""A standard deviation is large if it is so many times that of most columns: their squared differences hardly count."""
SAMPLE = 1 << 16
"""Entries by which columns are compared, of 20 to 1000 rows: half a megabyte."""


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
    'raise max_iter (now 100), or loosen tol (now 0.001)'
    >>> advice(Status.BREAKDOWN, {"delta": 1e-9}, penalty="delta").partition("; ")[2]
    'raise delta (now 1e-09), or check that the kernel is positive semi-definite'
    """

    def named(verb: str, name: str) -> list[str]:
        value = parameters.get(name)
        if name not in parameters or (name == "tol" and value is None) or (name == limit and value == -1):
            return []  # not there, or switched off
        return [f"{verb} {name} (now {shown(value)})" if isinstance(value, Real) else f"{verb} {name}"]

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


def outweighing_column(kernel: Kernel, points: Points, names: Any = None) -> list[str]:
    """A note for the report if one column outweighs most others, in a kernel that has one bandwidth for all columns.

    Parameters
    ----------
    kernel : Kernel
        As it was given; the note is for one whose own bandwidth is a rule such as "scale".
    points : Points
    names : sequence of str, optional
        The names of the columns.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0, 1000.0], [1.0, 3000.0], [2.0, 5000.0]])
    >>> outweighing_column(Gaussian(), DensePoints(X))[0].partition(",")[0]
    'the standard deviation of column 1 is 2000 times that of most columns'
    >>> outweighing_column(Gaussian(0.5), DensePoints(X)), outweighing_column(Gaussian(), DensePoints(X / [1, 1000]))
    ([], [])
    """
    if not isinstance(points, DensePoints) or not isinstance(getattr(kernel, kernel.rule_parameter, None), str):
        return []
    n, d = points.rows.shape
    most = min(1000, SAMPLE // max(d, 1))
    if most < 20:
        return []
    rows = np.asarray(points.rows[:: -(-n // most)], np.float64)
    with np.errstate(over="ignore"):
        spreads = rows.std(axis=0)
    if _times_most(spreads) <= LARGE:
        return []
    # a rare indicator has a small deviation in the unit of a frequent one
    low, high = rows.min(axis=0), rows.max(axis=0)
    spreads[((rows == low) | (rows == high)).all(axis=0)] = 0
    times = _times_most(spreads)
    if times <= LARGE:
        return []
    column = int(spreads.argmax())
    name = column if names is None else repr(str(names[column]))
    what = f"the standard deviation of column {name} is {float(f'{times:.2g}'):g} times that of most columns"
    do = "standardise the columns (scikit-learn's StandardScaler) if their units differ"
    return [f"{what}, so that distances hardly show these; {do}"]


def _times_most(spreads: NDArray[np.float64]) -> float:
    """The largest of them in units of one that half of the columns do not exceed; of columns that vary.

    >>> _times_most(np.array([3.0, 0.0, 1.0, 600.0, 2.0]))
    300.0
    """
    varying = np.sort(spreads[(spreads > 0) & (spreads < np.inf)])
    return float(varying[-1] / varying[(len(varying) - 1) // 2]) if len(varying) else 1.0


@lru_cache(maxsize=256)
def _defaults(constructor: Callable[..., None]) -> dict[str, Any]:
    """The defaults of its parameters, kept because reading a signature is slow."""
    return {name: parameter.default for name, parameter in inspect.signature(constructor).parameters.items()}
