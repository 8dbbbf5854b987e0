"""Comparison of arrays in the norm in which numerical errors are bounded, and the assertion of all suites."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_close", "hold"]


def hold(promise: Any, broken: str) -> None:
    """Raise AssertionError with the broken promise. Not ``assert``, which ``python -O`` removes."""
    if not promise:
        raise AssertionError(broken)


def assert_close(actual: Any, desired: Any, rtol: float = 1e-7) -> None:
    r"""max |aᵢ − dᵢ| ≤ rtol · max |dᵢ|, and the same shape.

    A backward stable method bounds its error relative to the largest entry of the result, not to each entry: an entry
    near zero is a difference of larger ones, and has their absolute error. The size of that error depends on the
    processor, the BLAS and the number of threads.

    Parameters
    ----------
    actual, desired : array-like
        The result and the reference. The shapes must agree; `desired` may be a scalar.
    rtol : float, default=1e-7
        The largest error relative to the largest |desired|. Choose it from the condition of the problem.

    Raises
    ------
    AssertionError
        If the error of an entry is larger, or only one of the two entries is finite.

    Examples
    --------
    >>> from mercer.testing import assert_close
    >>> assert_close([1.0, 1e-12], [1.0, 0.0], rtol=1e-10)
    """
    desired = np.asarray(desired)
    if desired.ndim:
        assert np.shape(actual) == desired.shape, f"shapes {np.shape(actual)} and {desired.shape}"
    finite = np.abs(desired[np.isfinite(desired)])
    np.testing.assert_allclose(actual, desired, rtol=0, atol=rtol * float(finite.max(initial=0.0)))
