"""A check that is cheap enough for every fit: once for each formula, or on a few of the rows."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from mercer.gram import KernelOperator
from mercer.kernels.base import trace_or_none
from mercer.points import vectors_of
from mercer.validity.check import check_values, check_vectors
from mercer.validity.report import KernelReport
from mercer.validity.rows import domain_of, of_histograms
from mercer.validity.witnesses.witness import Gap, confirm_gap

__all__ = ["brief_check", "gap_on"]

MOST_ROWS, MOST_OBJECTS = 200, 40
"""Most rows, and most objects, whose kernel matrix is checked. For objects each entry calls a Python function."""

SINGLE = float(np.finfo(np.float32).eps)
"""Assumed rounding of values of unknown origin, so that a fit does not warn about rounding in float32."""

MOST_GAPS = 5
"""Most rows without a finite value for which a reason is searched."""

MOST_WORK = 1e9
"""Most operations of the search."""


def brief_check(K: KernelOperator, seed: int = 0) -> KernelReport:
    """A report on the kernel of an operator, from its formula if it has one, otherwise from a sample of its rows.

    Examples
    --------
    >>> from mercer.kernels import Sigmoid
    >>> brief_check(KernelOperator(Sigmoid(gamma=1.0), [[1.0], [2.0]])).verdict
    'refuted'
    """
    kernel, n = K.kernel, K.shape[0]
    e = trace_or_none(kernel, exact=True) if kernel.space.vectors else None
    if e is not None:
        domain = domain_of(kernel, None, e, int(K.X.shape[1]), of_histograms(e, K.X) or None)
        return check_vectors(kernel, domain, None, work=MOST_WORK)
    most = MOST_OBJECTS if kernel.space.objects else MOST_ROWS
    index = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    if kernel.space.numbered:
        # The dtype of the given numbers sets their rounding; K may have a wider dtype.
        matrix = np.asarray(kernel.block(K.x.take(index).rows, index))
        return check_values(kernel, matrix, [int(i) for i in index], f"{len(index)} of {n} points", SINGLE)
    some = K.x.take(index)
    matrix = np.asarray(K.block(index, index) if kernel.space.objects else kernel.block(some.rows, some.rows))
    named = [tuple(map(float, row)) for row in vectors_of(some).dense()] if kernel.space.vectors else some.rows
    return check_values(kernel, matrix, named, f"{len(index)} of {n} training points", SINGLE)


def gap_on(K: KernelOperator) -> tuple[int, Gap] | None:
    """The first row x for which the formula has no value at k(x, x), and the reason; None if there is no such row.

    >>> from mercer.kernels import Formula
    >>> found = gap_on(KernelOperator(Formula("dot / xx"), [[1.0], [0.0]]))
    >>> print(found[0], found[1])
    1 k has no value (division by 0) at x₁ = (0)
    """
    e = trace_or_none(K.kernel, exact=True) if K.kernel.space.vectors else None
    with np.errstate(all="ignore"):
        bad = np.flatnonzero(~np.isfinite(np.asarray(K.diagonal(), np.float64)))
    for row in bad[:MOST_GAPS]:
        values = vectors_of(K.x.take(np.array([row]))).dense()[0]
        point = tuple(Decimal(float(value)).normalize() for value in values)
        if gap := confirm_gap(e, [point]):
            return int(row), gap
    return None
