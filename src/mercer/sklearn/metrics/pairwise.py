"""Kernel matrices with scikit-learn's words; those that are one product are scikit-learn's own functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import additive_chi2_kernel, cosine_similarity, linear_kernel, sigmoid_kernel
from sklearn.utils._param_validation import validate_params

from mercer.gram import KernelOperator
from mercer.sklearn.faces import REFUSALS, kernel_of, left

__all__ = [
    "additive_chi2_kernel",
    "chi2_kernel",
    "cosine_similarity",
    "laplacian_kernel",
    "linear_kernel",
    "pairwise_kernels",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
]


def _face(name: str, theirs: Callable[..., Any], dtype: Any = None) -> Callable[..., Any]:
    """scikit-learn's function of a kernel, to which is left what we have no kernel for.

    Those are sparse rows, arrays that are not NumPy's, and, without a warning, parameters of no Mercer kernel.
    """
    defaults = signature(theirs)

    @wraps(theirs)
    def matrix(X: Any, Y: Any = None, *args: Any, **params: Any) -> Any:
        try:
            given = defaults.bind(X, Y, *args, **params)
        except TypeError:  # theirs names the function
            return theirs(X, Y, *args, **params)
        given.apply_defaults()
        x, y = pairwise.check_pairwise_arrays(X, Y)
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            return theirs(X, Y, *args, **params)
        values = {"gamma": None, "degree": 3, "coef0": 1} | given.arguments
        if values["gamma"] is None and defaults.parameters["gamma"].default is None:
            values["gamma"] = 1.0 / x.shape[1]
        numbers = [values[one] for one in ("gamma", "degree", "coef0")]
        # γ may be an array, by which entries of their matrix are multiplied.
        kernel = kernel_of(name, *numbers) if all(isinstance(one, Real) for one in numbers) else None
        if kernel is None:
            return theirs(X, Y, *args, **params)
        try:
            return KernelOperator(kernel, x, None if y is x else y, dtype=dtype).toarray()
        except REFUSALS as error:  # rows that are an error there, too, or whose values are not finite there
            left(theirs.__name__, str(error))
            return theirs(X, Y, *args, **params)

    return validate_params(theirs._skl_parameter_constraints, prefer_skip_nested_validation=True)(matrix)  # type: ignore[attr-defined]


chi2_kernel = _face("chi2", pairwise.chi2_kernel)
laplacian_kernel = _face("laplacian", pairwise.laplacian_kernel, np.float64)
polynomial_kernel = _face("poly", pairwise.polynomial_kernel)
rbf_kernel = _face("rbf", pairwise.rbf_kernel)

OURS = {
    "chi2": chi2_kernel,
    "laplacian": laplacian_kernel,
    "poly": polynomial_kernel,
    "polynomial": polynomial_kernel,
    "rbf": rbf_kernel,
}

_THEIRS = pairwise.pairwise_kernels


@wraps(_THEIRS)
def _pairwise_kernels(
    X: Any,
    Y: Any = None,
    metric: Any = "linear",
    *,
    filter_params: bool = False,
    n_jobs: int | None = None,
    **params: Any,
) -> Any:
    """The matrix of the kernel of this name, or of this function; see `sklearn.metrics.pairwise.pairwise_kernels`."""
    if not isinstance(metric, str) or metric not in OURS:
        return _THEIRS(X, Y, metric, filter_params=filter_params, n_jobs=n_jobs, **params)
    known = pairwise.KERNEL_PARAMS[metric]
    kept = {key: value for key, value in params.items() if key in known or not filter_params}
    return OURS[metric](X, Y, **kept)


# As there, the parameters of the kernels themselves are not checked: γ = 0 gives ones.
pairwise_kernels = validate_params(_THEIRS._skl_parameter_constraints, prefer_skip_nested_validation=True)(
    _pairwise_kernels
)
