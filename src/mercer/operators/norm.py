"""An estimate of an operator's norm, from a few products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["estimate_norm"]


def estimate_norm(product: Callable[[NDArray[Any]], NDArray[Any]], start: NDArray[Any], steps: int) -> float:
    r"""‖A xₛ₋₁‖ ≤ ‖A‖₂ by power iteration, x₀ = `start`/‖`start`‖ and xᵢ = A xᵢ₋₁/‖A xᵢ₋₁‖, for a symmetric A.

    It grows with each step and converges to the largest |λ|. A few steps give its order of magnitude, unless `start` is
    orthogonal to the leading eigenvectors. Squares of the entries must not overflow.

    Parameters
    ----------
    product : callable
        x ↦ A x.
    start : array
        An array of any shape that the product takes.
    steps : int
        The number of products s, at least 1.

    References
    ----------
    G. H. Golub, C. F. Van Loan (2013). Matrix Computations, 4th edition. Section 7.3.

    Examples
    --------
    >>> A = np.diag([1.0, 3.0])
    >>> round(estimate_norm(lambda x: A @ x, np.ones(2), 8), 3)
    3.0
    """
    x, norm = start, float(np.linalg.norm(start))
    for _ in range(steps):
        x = product(x / (norm or 1.0))
        norm = float(np.linalg.norm(x))
    return norm
