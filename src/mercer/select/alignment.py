"""The alignment of a kernel matrix with the targets, and the non-negative mixture of kernels that maximises it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from mercer.errors import InvalidInput, message, warn
from mercer.gram import KernelOperator, lost_when_centred
from mercer.gram.remainder import about_the_mean, require_values
from mercer.kernels import Kernel, as_kernel
from mercer.numerals import counted
from mercer.operators.arrays import require_finite
from mercer.points import as_rows, as_seed, available_memory, count, require, sample_rows

__all__ = [
    "alignment_products",
    "alignment_weights",
    "all_equal",
    "centered_alignment",
    "centred",
    "cosine",
    "dense_matrix",
    "less_mean",
    "mixture_weights",
    "target_columns",
    "to_unit",
]

Floats = NDArray[np.float64]


def centered_alignment(
    kernel: Kernel | str, X: Any, y: ArrayLike, *, sample: int = 3000, random_state: Any = 0
) -> float:
    r"""⟨K_c, YYᵀ⟩/(‖K_c‖ ‖Y_cY_cᵀ‖) with K_c = HKH, H = I − 11ᵀ/n: the cosine between kernel and targets, 0 to 1.

    Without centring, a kernel with a large mean would align with any targets. A large alignment proves that a good
    predictor exists in the kernel's space (Cortes et al. 2012, theorem 13). It takes one pass over K, and needs no λ.

    Parameters
    ----------
    kernel : Kernel or str
        Parameters that depend on data are resolved on the sample. For a precomputed kernel X is the kernel matrix.
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, targets), or labels
        Text, booleans, and integers with up to 20 distinct values are labels, with one indicator for each class. Other
        numbers are targets.
    sample : int
        Most rows to use, drawn at random.
    random_state : int, RandomState or None, default 0

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If rows and targets differ in number.

    Warns
    -----
    UserWarning
        If float64 keeps too few digits of the kernel values less their means.

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
        given = f"{counted(n, 'row')} and {counted(len(Y), 'target')}"
        raise InvalidInput(message("centered_alignment", given, "give one target for each row"))
    if n > sample:
        chosen = sample_rows(n, sample, seed)
        X, Y = own.space.of(X).among(chosen).rows, Y[chosen]
    require(3 * 8 * len(Y) ** 2, max(available_memory() // 2, 1), f"alignment on {len(Y)} rows", "set sample= lower")
    K = dense_matrix("centered_alignment", own, X)
    return cosine(centred(K), less_mean(to_unit(Y)))


def dense_matrix(who: str, kernel: Kernel, X: Any) -> Floats:
    """The kernel matrix in float64, or one that is the same once it is centred; warns if that loses its digits."""
    K = KernelOperator(kernel, X, dtype=np.float64)
    require_values(K, who)
    K = about_the_mean(K)
    if lost := lost_when_centred(K, f"{who} with {K.kernel!r}"):
        warn(lost)
    return np.asarray(K.toarray())


def cosine(K: Floats, Y: Floats) -> float:
    """The cosine between K_c and YYᵀ; 0 if one of them is 0."""
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
    """Targets as columns: numbers unchanged, labels as ±1 indicators (one column for two classes).

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
            raise InvalidInput(message("targets", "a target that is not finite", "remove those rows"))
        return out
    classes, codes = np.unique(values.astype(str), return_inverse=True)
    if len(classes) < 2:
        given = f"one class, {values.ravel().tolist()[0]!r}"
        raise InvalidInput(message("targets", given, "give targets of at least two classes"))
    out = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return out[:, 1:] if len(classes) == 2 else out


def all_equal(Y: Floats) -> NDArray[np.bool_]:
    """Whether the targets of each column are all equal; their mean may differ from them by its rounding.

    >>> all_equal(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]]))
    array([ True, False])
    """
    return np.asarray(np.all(Y[:1] == Y, axis=0))


def less_mean(Y: Floats) -> Floats:
    """The targets less the mean of their column, exactly 0 if they are all equal.

    >>> less_mean(np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]]))
    array([[ 0., -1.],
           [ 0.,  0.],
           [ 0.,  1.]])
    """
    return np.where(all_equal(Y), 0.0, Y - Y.mean(axis=0))


def to_unit(Y: Floats) -> Floats:
    """The targets over a power of two that makes the largest at most 1, so that their squares neither overflow nor
    vanish; no digit of a sum or product changes.

    >>> to_unit(np.array([[3e200], [-4e200]])).ravel().round(2)
    array([ 0.49, -0.65])
    """
    return np.ldexp(Y, -np.frexp(np.max(np.abs(Y), initial=0.0))[1])


def alignment_weights(matrices: Sequence[ArrayLike], y: ArrayLike, *, sparse: float = 0.0) -> Floats:
    r"""argmax over w ≥ 0, ‖w‖ = 1 of the centred alignment of Σ wₖKₖ with the targets (ALIGNF).

    With Mₖₗ = ⟨Kₖ_c, Kₗ_c⟩ and aₖ = ⟨Kₖ_c, YYᵀ⟩ the answer is proportional to the minimiser of vᵀMv − 2vᵀa over v ≥ 0,
    a non-negative least-squares problem in a square root of M.

    Parameters
    ----------
    matrices : sequence of arrays of shape (n, n)
    y : array-like, as for `centered_alignment`
    sparse : float from 0 to 1
        Kernels whose share of Σ wₖ‖Kₖ_c‖ is below this get weight 0, and the other weights are computed again.

    Returns
    -------
    array of shape (kernels,)
        Weights of the given matrices, with sum 1; all equal if no kernel aligns with the targets.

    Raises
    ------
    InvalidInput
        Without a matrix, for `sparse` outside [0, 1), and for matrices that do not have a row and a column for each
        target.

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
        do = "give at least one matrix, and sparse from 0 to below 1"
        raise InvalidInput(message("alignment_weights", given, do))
    Y, shapes = target_columns(y), [np.shape(K) for K in matrices]
    if wrong := [shape for shape in shapes if shape != (len(Y), len(Y))]:
        given = f"a kernel matrix of shape {wrong[0]} and {counted(len(Y), 'target')}"
        raise InvalidInput(message("alignment_weights", given, "give n × n matrices of the same rows, and n targets"))
    for K in matrices:
        require_finite(K, "alignment_weights")
    M, a, sizes = alignment_products([centred(K) for K in matrices], Y)
    return mixture_weights(M, a, sizes, sparse)[0]


def alignment_products(matrices: Sequence[Floats], Y: Floats) -> tuple[Floats, Floats, Floats]:
    """M and a of centred matrices scaled to norm 1 (0 stays 0), and the norms ‖Kₖ_c‖ before."""
    Y = less_mean(to_unit(Y))
    sizes = np.array([np.linalg.norm(K) for K in matrices])
    safe = np.where(sizes > 0, sizes, 1.0)
    M = np.array([[np.sum(A * B) for B in matrices] for A in matrices]) / np.outer(safe, safe)
    a = np.array([np.sum(Y * (K @ Y)) for K in matrices]) / safe / max(float(np.linalg.norm(Y.T @ Y)), 1e-300)
    return M, a, sizes


def mixture_weights(M: Floats, a: Floats, sizes: Floats, sparse: float) -> tuple[Floats, Floats]:
    """The weights of the unscaled matrices from the products of the scaled ones, and the norms `sizes`."""
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
    """argmin over v ≥ 0 of vᵀMv − 2vᵀa, as least squares ‖Lᵀv − L⁺a‖² with M = LLᵀ from eigenvalues."""
    values, vectors = np.linalg.eigh(M)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    R = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    b = (vectors[:, kept].T @ a) / np.sqrt(values[kept])
    return np.asarray(nnls(R, b)[0])
