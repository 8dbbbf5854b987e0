"""What later calls of `partial_fit` must agree with."""

from __future__ import annotations

from typing import Any

from mercer.errors import InvalidInput, message
from mercer.kernels import Kernel
from mercer.schemas import Value

__all__ = ["GIVEN", "require_same_kernel"]

GIVEN = Value("_given_kernel", Kernel, optional=True)
"""The kernel as given at the first call: that of the model has numbers for the bandwidths that depend on data."""


def require_same_kernel(model: Any) -> None:
    """Refuse another `kernel` than that of the first call, to which the coefficients belong."""
    now, before = model._as_kernel(model.kernel), getattr(model, "_given_kernel", None)  # none in earlier versions
    if before is not None and now not in (before, model.kernel_):
        given = f"kernel={now!r} after {before!r}, to which the coefficients belong"
        raise InvalidInput(message(type(model).__name__, given, "set it back, or start again with fit"))
