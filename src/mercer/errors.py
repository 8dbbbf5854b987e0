"""What can go wrong. Each message says who speaks, what was given, and what to do about it."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "Cancelled",
    "CannotTrace",
    "ConvergenceWarning",
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

LIBRARIES = ("mercer", "sklearn", "joblib")
"""Whose lines a warning never points to."""


def message(who: str, given: str, do: str) -> str:
    """One sentence for who speaks and what was given, one for what to do.

    >>> message("Gaussian", "gamma=-1.0 is not positive", "give a positive number")
    'Gaussian: gamma=-1.0 is not positive; give a positive number.'
    """
    return f"{who}: {given}; {do}."


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the last one outside of mercer, and of the libraries that call it for the user."""
    level, frame = 2, sys._getframe(1).f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=2 if frame is None else level + 1)


class IndefiniteKernelWarning(UserWarning):
    """A fit with a function that is no Mercer kernel; the message has the witness and what the method still means."""


class MercerError(Exception):
    """Any error that mercer raises on purpose."""


class InvalidInput(MercerError, ValueError):
    """Data or a parameter that the mathematics has no answer for."""


class NotAKernel(MercerError, ValueError):
    """A composition or a parameter that cannot be positive semi-definite."""


class UnknownParameter(MercerError, TypeError, ValueError):
    """A name that is no parameter: a TypeError as Python's constructors raise, a ValueError as `set_params` does."""


class CannotTrace(MercerError, TypeError):
    """A formula used something that the symbolic tracer does not know; it is evaluated with arrays instead."""


class MemoryExceeded(MercerError, MemoryError):
    """The plan needs more than the memory budget; the message has the numbers and the alternatives."""


class ModelFileError(MercerError, ValueError):
    """A file that is not a model of ours, or not of a version that this one reads."""


class Cancelled(BaseException):
    """An observer asked a long computation to stop.

    It is no `Exception`, as `KeyboardInterrupt` is none: a search takes those of a fit for a bad candidate.
    """
