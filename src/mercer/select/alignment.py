"""How well a kernel matrix agrees with the targets, and the best non-negative mixture of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.kernels import Kernel, as_kernel
from mercer.points import as_rows, as_seed, available_memory, count, require

__all__ = [
    "alignment_products",
    "alignment_weights",
    "centered_alignment",
    "centred",
    "cosine",
    "mixture_weights",
    "target_columns",
]

Floats = NDArray[np.float64]


def centered_alignment(
    kernel: Kernel | str, X: Any, y: ArrayLike, *, sample: int = 3000, random_state: Any = 0
) -> float:
    r"""⟨K_c, YYᵀ⟩/(‖K_c‖ ‖Y_cY_cᵀ‖) with K_c = HKH, H = I − 11ᵀ/n: the cosine between kernel and targets, 0 to 1.

    Without the centring a kernel with a large mean would agree with everything. A large alignment proves that a good
    predictor exists in the kernel's space (Cortes et al. 2012, theorem 13); it is one pass over K, with no λ to choose.

    Parameters
    ----------
    kernel : Kernel or str
        Parameters that depend on data are resolved on the sample. Precomputed kernels take the matrix for X.
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, targets), or labels
        Numbers are used as they are; text, booleans and whole numbers of up to 20 values are labels, with one
        indicator for each class.
    sample : int
        At most so many rows are used, drawn at random.
    random_state : int, RandomState or None, default 0

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh (2012). Algorithms for learning kernels based on centered alignment. JMLR 13.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> round(centered_alignment("linear", x, x[:, 0]), 6)  # the kernel is the target's own
    1.0
    >>> abs(round(centered_alignment("linear", x, x[:, 0] ** 2), 6))
    0.0
    """
    seed = as_seed(random_state, "centered_alignment")
    own, Y = as_kernel(kernel), target_columns(y)
    if not own.space.objects and X is not None:
        X = as_rows(X)
    n = count(X)
    if len(Y) != n:
        given = f"{n} rows and {len(Y)} targets"
        raise InvalidInput(message("centered_alignment", given, "give one target for each row"))
    if n > sample:
        chosen = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
        X, Y = own.space.of(X).among(chosen).rows, Y[chosen]
    require(3 * 8 * len(Y) ** 2, max(available_memory() // 2, 1), f"alignment on {len(Y)} rows", "set sample= lower")
    K = KernelOperator(own, X, dtype=np.float64).toarray()
    return cosine(centred(K), Y - Y.mean(axis=0))


def cosine(K: Floats, Y: Floats) -> float:
    """Of K_c and YYᵀ; 0 where one of them is 0."""
    sizes = float(np.linalg.norm(K)) * float(np.linalg.norm(Y.T @ Y))
    return float(np.sum(Y * (K @ Y))) / sizes if sizes > 0 else 0.0


def centred(K: ArrayLike) -> Floats:
    """HKH in float64.

    >>> centred([[2.0, 0.0], [0.0, 2.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    K = np.array(K, np.float64)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    return K


def target_columns(y: ArrayLike) -> Floats:
    """Targets as columns: numbers as they are, labels as ±1 indicators (one column for two classes).

    >>> target_columns(["a", "b", "a"]).tolist()
    [[-1.0], [1.0], [-1.0]]
    """
    values = np.asarray(y)
    labels = values.dtype.kind in "OUSb"
    if values.ndim == 1 and values.dtype.kind in "iu":
        labels = len(np.unique(values)) <= 20
    if not labels:
        out = np.asarray(values, np.float64).reshape(len(values), -1)
        if not np.isfinite(out).all():
            raise InvalidInput(message("targets", "a target that is not finite", "leave those rows out"))
        return out
    classes, codes = np.unique(values.astype(str), return_inverse=True)
    if len(classes) < 2:
        given = f"one class, {values.ravel().tolist()[0]!r}"
        raise InvalidInput(message("targets", given, "give targets of at least two classes"))
    out = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return out[:, 1:] if len(classes) == 2 else out


def alignment_weights(matrices: Sequence[ArrayLike], y: ArrayLike, *, sparse: float = 0.0) -> Floats:
    r"""argmax over w ≥ 0, ‖w‖ = 1 of the centred alignment of Σ wₖKₖ with the targets (ALIGNF).

    With Mₖₗ = ⟨Kₖ_c, Kₗ_c⟩ and aₖ = ⟨Kₖ_c, YYᵀ⟩ it is the direction of the minimiser of vᵀMv − 2vᵀa over v ≥ 0, a
    non-negative least-squares problem in the Cholesky factor of M.

    Parameters
    ----------
    matrices : sequence of arrays of shape (n, n)
    y : array-like, as for `centered_alignment`
    sparse : float from 0 to 1
        The weights of kernels whose share of Σ wₖ‖Kₖ_c‖ is below this are made 0, and the others found anew.

    Returns
    -------
    array of shape (kernels,)
        Of the matrices as they are, with sum 1; all equal where no kernel agrees with the targets.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh (2012). Algorithms for learning kernels based on centered alignment. JMLR 13.
    Proposition 9.

    Examples
    --------
    >>> x, z = np.random.default_rng(0).normal(size=(2, 40))
    >>> alignment_weights([np.outer(x, x), np.outer(z, z)], x, sparse=0.1)
    array([1., 0.])
    """
    if not len(matrices) or not 0 <= sparse < 1:
        given = f"{len(matrices)} kernel matrices and sparse={sparse!r}"
        raise InvalidInput(message("alignment_weights", given, "give at least one, and a share from 0 to below 1"))
    M, a, sizes = alignment_products([centred(K) for K in matrices], target_columns(y))
    return mixture_weights(M, a, sizes, sparse)[0]


def alignment_products(matrices: Sequence[Floats], Y: Floats) -> tuple[Floats, Floats, Floats]:
    """M, a and ‖Kₖ_c‖ of centred matrices, all scaled to norm 1 (0 stays 0)."""
    Y = Y - Y.mean(axis=0)
    sizes = np.array([np.linalg.norm(K) for K in matrices])
    safe = np.where(sizes > 0, sizes, 1.0)
    M = np.array([[np.sum(A * B) for B in matrices] for A in matrices]) / np.outer(safe, safe)
    a = np.array([np.sum(Y * (K @ Y)) for K in matrices]) / safe / max(float(np.linalg.norm(Y.T @ Y)), 1e-300)
    return M, a, sizes


def mixture_weights(M: Floats, a: Floats, sizes: Floats, sparse: float) -> tuple[Floats, Floats]:
    """The mixture of the matrices as they are, from products of those of norm 1; and their norms."""
    left = sizes > 0
    shares = np.zeros(len(a))
    while np.any(left):
        shares = np.zeros(len(a))
        shares[left] = _non_negative(M[np.ix_(left, left)], a[left])
        if not shares.sum() > 0:
            break
        shares /= shares.sum()
        low = left & (shares < sparse)
        if not np.any(low):
            break
        left &= ~low
    if not shares.sum() > 0:
        return np.full(len(a), 1.0 / len(a)), sizes
    weights = np.where(sizes > 0, shares / np.where(sizes > 0, sizes, 1.0), 0.0)
    return np.asarray(weights / weights.sum()), sizes


def _non_negative(M: Floats, a: Floats) -> Floats:
    """argmin over v ≥ 0 of vᵀMv − 2vᵀa, as least squares ‖Lᵀv − L⁺a‖² with M = LLᵀ by eigenvalues."""
    values, vectors = np.linalg.eigh(M)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    R = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    b = (vectors[:, kept].T @ a) / np.sqrt(values[kept])
    return np.asarray(nnls(R, b)[0])
