"""Which solver, and why: one table for linear systems, one for eigenproblems.

=============  ==========================================================  ===================
problem        first row that holds                                        taken
=============  ==========================================================  ===================
linear         a copy of A in float32 fits in 40 % of the budget           Cholesky
linear         otherwise                                                   conjugate gradients
eigen          n ≤ 500, or LAPACK is predicted to be the quickest, and a   LAPACK subset
               float64 copy fits in the budget
eigen          products that make the entries are predicted to be quicker  block Krylov
eigen          a copy of A fits in 40 % of the budget                      block Krylov, stored
eigen          otherwise                                                   block Krylov
=============  ==========================================================  ===================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from mercer.points import human
from mercer.solvers.base import Solver
from mercer.solvers.eigen.dense import DenseEigen
from mercer.solvers.eigen.krylov import BlockKrylov
from mercer.solvers.linear.cg import ConjugateGradients
from mercer.solvers.linear.cholesky import Cholesky

__all__ = ["Choice", "choose_eigen", "choose_linear"]

STORED_SHARE = 0.4
"""Of the memory budget that one stored matrix may take if the rest, such as a second one, is not counted beside it."""

COUNTED_SHARE = 0.8
"""Of the budget that a stored matrix may take with all that is held beside it."""

DENSE_BELOW = 500
"""Rows up to which LAPACK is taken for any k: it is exact, and no solver takes much less time."""

DENSE_FRACTION = 10
"""LAPACK is taken for more than n/10 eigenpairs where no seconds are predicted."""

_NAMES = {Cholesky: "cholesky", ConjugateGradients: "cg", DenseEigen: "dense", BlockKrylov: "krylov"}


class Choice(NamedTuple):
    """A solver, why it was taken, and whether it wants the matrix in memory."""

    solver: Solver[Any, Any]
    reason: str
    stored: bool

    @property
    def name(self) -> str:
        """The solver in one word, as estimators spell it."""
        return _NAMES[type(self.solver)]


def choose_linear(n: int, itemsize: int, budget_bytes: float, tol: float = 1e-10) -> Choice:
    """Cholesky where the matrix in float32 fits in 40 % of the budget, otherwise conjugate gradients.

    Parameters
    ----------
    n : int
        Unknowns.
    itemsize : int
        Bytes of an entry of the factor: 4 for mixed precision, 8 for float64 alone.
    budget_bytes : float
        The memory that may be used.
    tol : float
        On the true relative residual.

    Examples
    --------
    >>> choose_linear(10_000, 4, 2e9).name, choose_linear(100_000, 4, 2e9).name
    ('cholesky', 'cg')
    """
    need, room = itemsize * n * n, STORED_SHARE * budget_bytes
    if need <= room:
        reason = f"a {n} × {n} factor takes {human(need)} of the {human(room)} that one matrix may"
        return Choice(Cholesky(tol=tol, precision="mixed" if itemsize == 4 else "float64"), reason, True)
    reason = f"a {n} × {n} factor would take {human(need)}, above the {human(room)} that one matrix may"
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
    """LAPACK for small matrices and for many eigenpairs, otherwise block Krylov, stored where that fits and is quicker.

    `seconds` are those predicted for "dense", "stored" and "matrix-free" (`mercer.planning.costs.eigen_ways`). Without
    them more than n/10 pairs are many, and `cheap` says that products make the entries about as fast as they would read
    stored ones.

    Examples
    --------
    >>> choose_eigen(300, 5, 2e9).name, choose_eigen(7291, 64, 2e9).name, choose_eigen(1000, 1000, 2e9).name
    ('dense', 'krylov', 'dense')
    """
    known = {"dense": math.inf, "stored": math.inf, "matrix-free": math.inf} | dict(seconds or {})
    many, made = k * DENSE_FRACTION > n, cheap
    if seconds is not None:
        many = known["dense"] <= min(known["stored"], known["matrix-free"])
        made = known["matrix-free"] < known["stored"]
    small = n <= DENSE_BELOW
    if (small or many) and 8 * n * (n + k) <= budget_bytes:
        why = f"n = {n} is at most {DENSE_BELOW}" if small else f"k = {k} of n = {n} eigenpairs are many"
        return Choice(DenseEigen(), why, True)
    need, room = itemsize * n * n, STORED_SHARE * budget_bytes
    few = f"k = {k} of n = {n} eigenpairs" + (", too many for the budget to hold all" if small or many else "")
    if made:
        return Choice(BlockKrylov(tol=tol), f"{few}; entries are computed as fast as they are read", False)
    if need <= room:
        return Choice(BlockKrylov(tol=tol), f"{few}; the matrix takes {human(need)} of {human(room)}", True)
    reason = f"{few}; the matrix would take {human(need)}, above the {human(room)} that one may"
    return Choice(BlockKrylov(tol=tol), reason, False)
