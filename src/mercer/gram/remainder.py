"""What is left of kernel values when their mean is subtracted, and whether float64 still has digits of it."""

from __future__ import annotations

import numpy as np

from mercer.errors import message
from mercer.gram.operator import KernelOperator
from mercer.points import Points

__all__ = ["lost_when_centred"]

SAMPLE = 32
"""Rows whose kernel values are looked at."""
LOST = 1e-4
"""Rounding of the kernel values, relative to what is left of them, from which on outputs are off by as much or more."""


def lost_when_centred(K: KernelOperator, who: str) -> str | None:
    r"""What to say where k(x, z) less its mean is rounding: k(x, x) against ½‖φ(x) − φ(z)‖², both means over a sample.

    Rows far from the origin, such as times in seconds, have large inner products that differ by little. None where
    enough digits are left, where the rows are equal, and for kernels of objects.

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
    # The kernel's own block, because a program of tiles takes longer to make than so few entries.
    entries = K.block(index, index) if space.numbered else K.kernel.block(some.rows, some.rows)
    values = np.asarray(entries, np.float64)
    own = values.diagonal()
    size, apart = float(abs(own).mean()), float(own.mean() - values.mean())
    share = float(np.finfo(np.float64).eps) * size / max(apart, np.finfo(np.float64).tiny)
    if share < LOST or not np.isfinite(share) or not np.ptp(values) or _equal(some):
        return None
    digits = int(-np.log10(share)) if share < 1 else 0
    kept = f"{digits} digit{'s' * (digits > 1)}" if digits else "no digit"
    differ = f"differ by {max(apart, 0.0):.1e} between rows, of which float64 keeps {kept}"
    do = "subtract the mean of each column (scikit-learn's StandardScaler), "
    do += 'or choose the kernel\'s parameters by the rows (gamma="scale")'
    return message(who, f"kernel values of {size:.1e} that {differ}", do)


def _equal(points: Points) -> bool:
    """Whether all points are one point, so that there is nothing to lose."""
    return points.fingerprint() == points.take(np.zeros(len(points), np.intp)).fingerprint()
