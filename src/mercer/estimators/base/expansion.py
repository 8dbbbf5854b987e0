"""A model's outputs as kernel expansions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Expansion", "expansion_of"]


class Expansion(NamedTuple):
    """f(x) = b + Σⱼ αⱼ k(x, xⱼ) for each output, xⱼ the rows of `X_fit_`."""

    coefficients: np.ndarray
    """αⱼ, of shape (n, outputs)."""
    intercept: np.ndarray
    """b of each output."""
    names: list[str]
    """Names of the outputs; an only output that needs no name has the empty text."""
    points: str = "training point"
    """The name of one xⱼ in explanations."""
    rows: np.ndarray | None = None
    """The numbers of the xⱼ among the rows of the fit, if `X_fit_` has some of these."""


def expansion_of(model: Any, intercept: Any = 0.0, coefficients: Any = None, prefix: str = "") -> Expansion:
    """The expansion of a model with coefficients (`dual_coef_`) for the points of `X_fit_`.

    >>> import mercer
    >>> expansion_of(mercer.KernelRidge("linear", alpha=1.0).fit([[1.0], [2.0]], [1.0, 2.0])).coefficients.round(3)
    array([[0.167],
           [0.333]])
    """
    alpha = np.asarray(model.dual_coef_ if coefficients is None else coefficients)
    alpha = alpha.reshape(len(alpha), -1)
    outputs = alpha.shape[1]
    classes = getattr(model, "classes_", None) if not prefix else None
    if outputs == 1 and not prefix:
        names = [str(classes[1])] if classes is not None and len(classes) == 2 else [""]
    elif classes is not None and len(classes) == outputs:
        names = [str(one) for one in classes]
    else:
        names = [f"{prefix or 'target '}{place}" for place in range(outputs)]
    b = np.broadcast_to(np.asarray(intercept, np.float64).reshape(-1), (outputs,))
    n = model.report_.n if hasattr(model, "report_") else -1
    return Expansion(alpha, b, names, "training point" if n == len(alpha) else "landmark")
