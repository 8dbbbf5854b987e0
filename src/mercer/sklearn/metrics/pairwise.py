"""Kernel matrices with scikit-learn's words; those that are one product are scikit-learn's own functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import additive_chi2_kernel, cosine_similarity, linear_kernel, sigmoid_kernel
from sklearn.utils._param_validation import validate_params

from mercer.gram import KernelOperator
from mercer.sklearn.faces import kernel_of

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
    """scikit-learn's function of a kernel; sparse rows, and arrays that are not NumPy's, are left to it."""
    defaults = signature(theirs)

    @wraps(theirs)
    def matrix(X: Any, Y: Any = None, *args: Any, **params: Any) -> Any:
        given = defaults.bind(X, Y, *args, **params)
        given.apply_defaults()
        values = {key: value for key, value in given.arguments.items() if key not in ("X", "Y", "dense_output")}
        x, y = pairwise.check_pairwise_arrays(X, Y)
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            return theirs(X, Y, *args, **params)
        gamma = 1.0 / x.shape[1] if values.get("gamma") is None else values["gamma"]
        kernel = kernel_of(name, gamma, values.get("degree", 3), values.get("coef0", 1))
        if kernel is None:
            return theirs(X, Y, *args, **params)
        return KernelOperator(kernel, x, None if y is x else y, dtype=dtype).toarray()

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
def pairwise_kernels(
    X: Any, Y: Any = None, metric: Any = "linear", *, filter_params: bool = False, **params: Any
) -> Any:
    """The matrix of the kernel of this name, or of this function; see `sklearn.metrics.pairwise.pairwise_kernels`."""
    if not isinstance(metric, str) or metric not in OURS:
        return _THEIRS(X, Y, metric, filter_params=filter_params, **params)
    params.pop("n_jobs", None)
    known = pairwise.KERNEL_PARAMS[metric]
    kept = {key: value for key, value in params.items() if key in known or not filter_params}
    return OURS[metric](X, Y, **kept)
