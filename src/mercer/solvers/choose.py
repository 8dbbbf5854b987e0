"""Chooses a solver and gives the reason. The first row whose condition holds decides.

=============  ==========================================================  ===================
problem        condition                                                   solver
=============  ==========================================================  ===================
linear         a copy of A in float32 fits in 40 % of the budget           Cholesky
linear         otherwise                                                   conjugate gradients
eigen          n ≤ 500 or LAPACK is predicted to be the fastest, and a     LAPACK subset
               float64 copy fits in the budget
eigen          storing entries is not predicted to be 1.2 times as fast    block Krylov
eigen          a copy of A fits in 40 % of the budget, beside vectors      block Krylov, stored
eigen          otherwise                                                   block Krylov
=============  ==========================================================  ===================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from mercer.points import apart, human
from mercer.solvers.base import Solver
from mercer.solvers.eigen.dense import DenseEigen
from mercer.solvers.eigen.krylov import BlockKrylov
from mercer.solvers.linear.cg import ConjugateGradients
from mercer.solvers.linear.cholesky import Cholesky

__all__ = ["Choice", "choose_eigen", "choose_linear"]

FROM_STORING = 1.2
"""A stored matrix must be this many times as fast as recomputed entries, because fresh memory can be slow: a virtual
machine that had to get it from its host wrote 0.4 to 0.6 GB/s, and 4.6 GB/s later."""

STORED_SHARE = 0.4
"""Share of the memory budget that one stored matrix may take if the other arrays are not counted."""

COUNTED_SHARE = 0.8
"""Share of the memory budget that a stored matrix may take together with all other arrays."""

DENSE_BELOW = 500
"""Up to this many rows LAPACK is taken for any k: it is exact, and no other solver is much faster."""

DENSE_FRACTION = 10
"""LAPACK is taken for more than n/10 eigenpairs if no seconds are predicted."""

_NAMES = {Cholesky: "cholesky", ConjugateGradients: "cg", DenseEigen: "dense", BlockKrylov: "krylov"}


class Choice(NamedTuple):
    """A solver, the reason for it, and whether it stores the matrix.

    Attributes
    ----------
    solver : Solver
    reason : str
    stored : bool
    """

    solver: Solver[Any, Any]
    reason: str
    stored: bool

    @property
    def name(self) -> str:
        """The name of the solver in the parameters of estimators."""
        return _NAMES[type(self.solver)]


def choose_linear(n: int, itemsize: int, budget_bytes: float, tol: float = 1e-10) -> Choice:
    """Cholesky if the factor fits in 40 % of the memory budget, otherwise conjugate gradients.

    Parameters
    ----------
    n : int
        Number of unknowns.
    itemsize : int
        Bytes per entry of the factor: 4 for mixed precision, 8 for float64 alone.
    budget_bytes : float
        Memory budget in bytes.
    tol : float
        Tolerance on the true relative residual.

    Returns
    -------
    Choice

    Examples
    --------
    >>> choose_linear(10_000, 4, 2e9).name, choose_linear(100_000, 4, 2e9).name
    ('cholesky', 'cg')
    """
    need, room = itemsize * n * n, STORED_SHARE * budget_bytes
    needed, most = apart(need, room)
    if need <= room:
        reason = f"the {n} × {n} factor needs {needed}; one matrix may use up to {most}"
        return Choice(Cholesky(tol=tol, precision="mixed" if itemsize == 4 else "float64"), reason, True)
    reason = f"the {n} × {n} factor would need {needed}; one matrix may use up to {most}"
    return Choice(ConjugateGradients(tol=tol), reason, False)


def choose_eigen(
    n: int,
    k: int,
    budget_bytes: float,
    tol: float = 1e-3,
    itemsize: int = 4,
    cheap: bool = False,
    seconds: Mapping[str, float] | None = None,
) -> Choice:
    """LAPACK for small matrices and for many eigenpairs, otherwise block Krylov.

    Parameters
    ----------
    n, k : int
        Size of the matrix, and the number of eigenpairs.
    budget_bytes : float
        Memory budget in bytes.
    tol : float
        Tolerance on ‖Av − λv‖ relative to the largest |λ|.
    itemsize : int
        Bytes per entry of a stored matrix.
    cheap : bool
        Whether recomputing an entry is about as fast as reading a stored one. Used only without `seconds`.
    seconds : mapping of str to float, optional
        Seconds predicted for "dense", "stored" and "matrix-free" (`mercer.planning.costs.eigen_ways`). Without them,
        more than n/10 pairs count as many.

    Returns
    -------
    Choice

    Examples
    --------
    >>> choose_eigen(300, 5, 2e9).name, choose_eigen(7291, 64, 2e9).name, choose_eigen(1000, 1000, 2e9).name
    ('dense', 'krylov', 'dense')
    """
    known = {"dense": math.inf, "stored": math.inf, "matrix-free": math.inf} | dict(seconds or {})
    many, made = k * DENSE_FRACTION > n, cheap
    if seconds is not None:
        many = known["dense"] <= min(known["stored"], known["matrix-free"])
        made = known["matrix-free"] < FROM_STORING * known["stored"]
    small = n <= DENSE_BELOW
    if (small or many) and 8 * n * (n * (1 + small) + k) <= budget_bytes:  # few rows: beside what LAPACK overwrites
        why = f"n = {n} is at most {DENSE_BELOW}" if small else f"k = {k} of n = {n} eigenpairs are many"
        return Choice(DenseEigen(), why, True)
    need, room = itemsize * n * n, STORED_SHARE * budget_bytes
    few = f"k = {k} of n = {n} eigenpairs" + ("; LAPACK would exceed the memory budget" if small or many else "")
    if made:
        return Choice(BlockKrylov(tol=tol), f"{few}; a stored matrix would not be 1.2 times as fast", False)
    vectors = BlockKrylov().memory(n, k, 4 if tol >= 1e-6 else 8)
    stored = need <= room and need + vectors <= budget_bytes
    needed, most = apart(need, room)
    needs = f"the matrix {'needs' if stored else 'would need'} {needed}; one matrix may use up to {most}"
    if need <= room and not stored:
        needs = f"the matrix of {needed} would leave no room for vectors of {human(vectors)}"
    return Choice(BlockKrylov(tol=tol), f"{few}; {needs}", stored)
