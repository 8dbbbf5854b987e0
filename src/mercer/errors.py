"""Errors and warnings. Each message names the caller, what was given, and what to do about it."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "Cancelled",
    "CannotTrace",
    "CheckpointWarning",
    "ClusterLost",
    "ConvergenceWarning",
    "DelegatedWarning",
    "DeviceError",
    "IndefiniteKernelWarning",
    "InvalidInput",
    "MemoryExceeded",
    "MercerError",
    "ModelFileError",
    "NotAKernel",
    "UnknownParameter",
    "message",
    "warn",
]

LIBRARIES = ("mercer", "sklearn", "joblib", "contextlib")
"""Packages whose own lines a warning never points to; `contextlib` calls what a context manager decorates."""


def message(who: str, given: str, do: str) -> str:
    """The text of an error: who raises it, what was given, and what to do.

    Parameters
    ----------
    who : str
        The class or function, as users write it.
    given : str
        What was given, or what is wrong with it.
    do : str
        An imperative without its full stop, or a question with its mark.

    Examples
    --------
    >>> message("Gaussian", "gamma=-1.0 is not positive", "give a positive number")
    'Gaussian: gamma=-1.0 is not positive; give a positive number.'
    >>> message("--target", "no column 'prize' in houses.csv", "did you mean 'price'?")
    "--target: no column 'prize' in houses.csv; did you mean 'price'?"
    """
    return f"{who}: {given}; {do}" + ("" if do.endswith("?") else ".")


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and point to the user's line: the innermost one that is not in one of `LIBRARIES`.

    Parameters
    ----------
    text : str
    category : type of Warning

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as given:
    ...     warn("KernelRidge: 3 rows are equal; drop two of them.")
    >>> len(given)
    1
    """
    level, frame = 2, sys._getframe(1).f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=2 if frame is None else level + 1)


class IndefiniteKernelWarning(UserWarning):
    """A fit uses a function that is not a Mercer kernel; the message shows a witness and says what the fit means."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or is damaged and the one before is used; the fit goes on."""


class DelegatedWarning(UserWarning):
    """A class of `mercer.sklearn` left what was asked to scikit-learn's own code; the message says why."""


class MercerError(Exception):
    """Any error that mercer raises on purpose."""


class DeviceError(MercerError, RuntimeError):
    """The requested GPU does not exist, or it failed. Nothing is computed elsewhere in its place."""


class InvalidInput(MercerError, ValueError):
    """Data or a parameter for which the method is not defined."""


class NotAKernel(MercerError, ValueError):
    """A composition or a parameter that cannot be positive semi-definite."""


class UnknownParameter(MercerError, TypeError, ValueError):
    """No parameter has this name. It is a TypeError, as for constructors, and a ValueError, as for `set_params`."""


class CannotTrace(MercerError, TypeError):
    """A formula uses something that symbolic tracing does not support; the formula is evaluated on arrays instead."""


class ClusterLost(MercerError, RuntimeError):
    """The workers, or the client that reaches them, were gone before the work was done."""


class MemoryExceeded(MercerError, MemoryError):
    """The plan needs more memory than the budget allows; the message shows both figures and the alternatives."""


class ModelFileError(MercerError, ValueError):
    """A file is not a model file of mercer, or has a format that this version cannot read."""


class Cancelled(BaseException):
    """An observer asked a long computation to stop.

    Like `KeyboardInterrupt` it is not an `Exception`: a search treats an `Exception` of a fit as a failed candidate.
    """
