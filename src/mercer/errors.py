"""What can go wrong. Each message says who speaks, what was given, and what to do about it."""

from __future__ import annotations

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
]


def message(who: str, given: str, do: str) -> str:
    """One sentence for who speaks and what was given, one for what to do.

    >>> message("Gaussian", "gamma=-1.0 is not positive", "give a positive number")
    'Gaussian: gamma=-1.0 is not positive; give a positive number.'
    """
    return f"{who}: {given}; {do}."


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


class Cancelled(MercerError):
    """An observer asked a long computation to stop."""
