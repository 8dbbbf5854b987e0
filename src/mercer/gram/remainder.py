"""What is left of kernel values when their mean is subtracted: a warning if few digits are, and how to keep more."""

from __future__ import annotations

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.gram.operator import KernelOperator
from mercer.kernels import Linear
from mercer.numerals import counted
from mercer.points import Points, SparsePoints

__all__ = ["TO_KEEP_DIGITS", "about_the_mean", "lost_when_centred", "require_values"]

SAMPLE = 32
"""The number of rows in the sample."""
LOST = 1e-4
"""The relative rounding error of centred kernel values above which `lost_when_centred` warns."""
TO_KEEP_DIGITS = (
    "subtract the mean of each column (scikit-learn's StandardScaler), "
    'or choose the kernel\'s parameters by the rows (gamma="scale")'
)
"""What to do where values are so much larger than their differences."""


def lost_when_centred(K: KernelOperator, who: str, most: float = LOST) -> str | None:
    r"""A message if float64 keeps too few digits of k(x, z) less its mean, else None.

    It compares the means of k(x, x) and of ½‖φ(x) − φ(z)‖² over a sample. Rows far from the origin, such as times in
    seconds, have large inner products that differ by little. The result is also None if all rows are equal, and for
    kernels of objects.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    who : str
        The caller, which the message names.
    most : float
        The largest relative rounding error of centred values that is no loss.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> lost_when_centred(KernelOperator("linear", X), "KernelPCA") is None
    True
    >>> "of which float64 keeps no digit" in lost_when_centred(KernelOperator("linear", X + 1e8), "KernelPCA")
    True
    """
    space = K.kernel.space
    if not (space.numbered or (space.vectors and K.kernel.traceable)) or not K.symmetric:
        return None
    index = np.arange(0, K.shape[0], -(-K.shape[0] // SAMPLE))
    some = K.x.take(index).widened(np.float64)
    # By the kernel's own block, because compiling a program takes longer than these few entries.
    if isinstance(some, SparsePoints):  # of which the engine has pairings that NumPy has not
        entries = KernelOperator(K.kernel, some.rows, dtype=np.float64).toarray()
    else:
        entries = K.block(index, index) if space.numbered else K.kernel.block(some.rows, some.rows)
    values = np.asarray(entries, np.float64)
    own = values.diagonal()
    size, apart = float(abs(own).mean()), float(own.mean() - values.mean())
    with np.errstate(over="ignore"):  # infinity says that no digit is left
        share = np.finfo(np.float64).eps * size / np.float64(max(apart, np.finfo(np.float64).tiny))
    if share < most or not np.isfinite(size) or not np.ptp(values) or _equal(some):
        return None
    digits = int(-np.log10(share)) if share < 1 else 0
    kept = counted(digits, "digit") if digits else "no digit"
    differ = f"differ by {max(apart, 0.0):.1e} between rows, of which float64 keeps {kept}"
    return message(who, f"kernel values of {size:.1e} that {differ}", TO_KEEP_DIGITS)


def require_values(K: KernelOperator, who: str) -> None:
    """Refuse rows for which k(x, x) is not finite; every other value of theirs may be wrong then.

    >>> require_values(KernelOperator("1/xx", [[1.0], [0.0]]), "me")
    Traceback (most recent call last):
    ...
    mercer.errors.InvalidInput: me: Formula('1/xx') without a finite k(x, x) for 1 row, the first of them row 1; ...
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bad = np.flatnonzero(~np.isfinite(np.asarray(K.diagonal(), np.float64)))
    if len(bad):
        given = f"{K.kernel!r} without a finite k(x, x) for {counted(len(bad), 'row')}, the first of them row {bad[0]}"
        raise InvalidInput(message(who, given, "standardise the columns, or give a kernel that has values there"))


def about_the_mean(K: KernelOperator) -> KernelOperator:
    """For the linear kernel that of the rows less their mean: centred values are the same, and keep their digits.

    >>> far = KernelOperator("linear", np.array([[1e9], [1e9 + 2]]), dtype=np.float64)
    >>> about_the_mean(far).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if not (isinstance(K.kernel, Linear) and isinstance(K.X, np.ndarray)):
        return K
    return KernelOperator(K.kernel, K.X - K.X.mean(axis=0, dtype=np.float64), dtype=K.dtype)


def _equal(points: Points) -> bool:
    """Whether all points are equal, so that centred values are 0."""
    return points.fingerprint() == points.take(np.zeros(len(points), np.intp)).fingerprint()
