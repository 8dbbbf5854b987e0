r"""Predicted seconds of each method: operations and bytes, counted in symbols, over the rates of a `Machine`.

n is the number of rows and d of columns, r of pivots or landmarks, c of right-hand sides, s of bytes of an entry. The
rates of the machine: f(s) operations a second of BLAS; e(d, s) seconds for a pair of rows (K has n²/2 pairs), and b(s)
seconds more if it is multiplied with a block of 26 vectors; β bytes a second that are read (β₁ by one thread); τ bytes
a second that are written to fresh memory; γ calls a second.

====================================  ==================================================================================
product of K, entries recomputed      n²/2 · (e(d, s) + b(s) · [c > 2] max(4/s, c/26))
product of a stored matrix            s n²/β · (1 + 2 [c > 1]) + [c > 1] 2 n² c/f(s)
K stored                              n²/2 · e(d, s) + s n²/τ
K in 16 bits                          n²/2 · (e(d, 4) + 2 b(4)) + n²/τ
product of entries in 16 bits         n²/β + n² c/2 · max(b(4)/26, 3/β)
Cholesky                              n³/3 · (1 + 1500/n)/(0.75 f(s))
substitution in the factor            2 max(s n²/2β, n² c/f(s))
LAPACK, values and k vectors          (4/3 n³/2 + 2 n² k)/f(8) + 4/3 · 8 n³/2 · 1/(2β) + 50 n/γ
LAPACK, all vectors                   (4/3 n³/2 + 4 n³)/f(8) + 4/3 · 8 n³/2 · 1/(2β) + 50 n/γ
both with one thread of BLAS          the same with f₁ and β₁, where 9 n³ operations are too few for more threads
a band, K = QBQᵀ, and l shifts        (8/3 n³ (1 + 500/n) + 100 n² l)/φ + 10³ l/γ, φ operations a second of the engine
sums by groups, entries recomputed    n²/2 · e(d, s)
sums by groups, K stored              n²/σ, σ entries a second
k-means, for each start               13 sums by groups (4 if K is stored), a product of K in float64, 22 · 600/γ
block Krylov, p steps of b columns    3 n b e(d, s) + p products of b columns + 25 p n b²/f(s) + LAPACK of p b
pivoted Cholesky of rank r            n r (e(d, s) + 2 s/τ) + n r²/f(s) + 250 r/γ
preconditioner of rank r              the same + 2 n r²/f(s)
its product, one thread of BLAS       max(2 s n r/β₁, 4 n r c/f₁(s)) + 600/γ
====================================  ==================================================================================

(K + λI)X = B with residuals in float64 is solved by Cholesky in float32 with three or four steps of refinement, or by
conjugate gradients, whose products have entries in 16 bits, float32 or float64, with four or five products in float64
that check the solution. Python takes 600/γ seconds for each step. Block Krylov takes p = 3 steps for k ≥ d
eigenvectors, and 1.5 √(d/k) more for k < d, because then the wanted eigenvalues may be close to others.

The shares of f(s) that decompositions reach, and the calls of a step or of a column, belong to the algorithms and not
to the machine. A good prediction is within a factor of two.
"""

from __future__ import annotations

import math

from mercer.planning.machine import MANY, Machine

__all__ = [
    "WORTH_WAKING",
    "band",
    "cholesky",
    "conjugate_gradients",
    "eigen_operations",
    "eigen_ways",
    "eigenvectors",
    "entries_of_storing",
    "held_out_ways",
    "krylov",
    "leading_eigenvectors",
    "lloyd",
    "matrix",
    "pivots",
    "preconditioner",
    "preconditioning",
    "product",
    "quantised",
    "quantised_product",
    "refined_cholesky",
    "stored_product",
    "substitution",
]

SHARE = 0.75
"""The share of the rate of large products that a blocked decomposition reaches for large n."""
HALF_WAY = 1500
"""The number of rows for which it reaches half of that share."""
CALLS_A_STEP = 600
"""Python's time in a step of conjugate gradients, of refinement, or of Lloyd's iteration, in calls of NumPy."""
CALLS_A_PIVOT = 250
"""Python's time for a pivot, in calls of NumPy."""
CALLS_A_COLUMN = 50
"""The time of LAPACK's tridiagonal reduction for each column, beside its operations, in calls of NumPy."""
CALLS_A_SHIFT = 1000
"""Python's time for each shift of a band matrix, in calls of NumPy."""
CALLS_OF_KRYLOV = 3000
"""Python's time in a block Krylov step, in calls of NumPy."""
PASSES, PASSES_OF_STORED = 13.0, 4.0
"""Full passes of Lloyd's iteration for each start, with recomputed entries and with a stored matrix."""
STEPS_OF_LLOYD = 22
"""Steps of Lloyd's iteration for each start; most of them move few rows."""
FEW = 20
"""How many vectors the engine multiplies with one at a time in what a block of many takes."""
READS = 3.0
"""The time in which BLAS copies a matrix into panels, in that of a product with one vector, which reads it once."""
BYTES_OF_QUANTISED = 3.0
"""The time in which an entry in 16 bits is widened and multiplied with a vector, twice, in bytes that are read."""
SPIN = 0.09
"""Seconds for which idle threads of BLAS spin: more threads pay off only in calls that are longer."""
WORTH_WAKING = SPIN * Machine.documented().product64_alone
"""Operations of a BLAS call above which extra threads pay off. It follows from documented rates and not from measured
ones, because the number of threads decides the order of sums, and so the last bits."""


def product(machine: Machine, n: int, d: int, columns: int = 1, itemsize: int = 8) -> float:
    """K V for a symmetric K whose entries are recomputed, once for each pair of rows.

    >>> m = Machine.documented()
    >>> product(m, 2000, 10) == 4 * product(m, 1000, 10), product(m, 1000, 10, 26) > product(m, 1000, 10)
    (True, True)
    """
    blocks = min((columns - 1) / FEW, max(4 / itemsize, columns / MANY))
    return n * n / 2 * (machine.pair(d, itemsize) + blocks * machine.block(itemsize))


def stored_product(machine: Machine, n: int, columns: int = 1, itemsize: int = 8) -> float:
    """A V for a stored matrix: BLAS reads it for one column; for more it copies it into panels, and then multiplies."""
    read = itemsize * n * n / machine.bandwidth
    return read if columns == 1 else READS * read + 2.0 * n * n * columns / machine.product(itemsize)


def matrix(machine: Machine, n: int, d: int, itemsize: int = 8) -> float:
    """K, computed into fresh memory."""
    return n * n / 2 * machine.pair(d, itemsize) + itemsize * n * n / machine.touch


def quantised(machine: Machine, n: int, d: int) -> float:
    """K in 16 bits, once for each pair of rows, into fresh memory."""
    return n * n / 2 * (machine.pair(d, 4) + 2 * machine.block(4)) + n * n / machine.touch


def quantised_product(machine: Machine, n: int, columns: int = 1) -> float:
    """The product of a matrix in 16 bits, of which half is stored, with vectors, one after the other."""
    each = max(machine.block(4) / MANY, BYTES_OF_QUANTISED / machine.bandwidth)
    return n * n / machine.bandwidth + n * n / 2 * columns * each


def cholesky(machine: Machine, n: int, itemsize: int = 8) -> float:
    """LAPACK's factor of a stored matrix.

    >>> m = Machine.documented()
    >>> cholesky(m, 4000, 4) < cholesky(m, 4000, 8) < 8 * cholesky(m, 2000, 8)
    True
    """
    return n**3 / 3 * (1 + HALF_WAY / max(n, 1)) / (SHARE * machine.product(itemsize))


def substitution(machine: Machine, n: int, columns: int = 1, itemsize: int = 8) -> float:
    """Forward and back substitution with the Cholesky factor."""
    return 2 * max(itemsize * n * n / 2 / machine.bandwidth, n * n * columns / machine.product(itemsize))


def _tridiagonal(machine: Machine, n: int) -> float:
    """LAPACK's reduction: half of its operations are products with vectors, which read the remaining matrix."""
    alone = _by_one_thread(n)
    read = 8 / 3 * n**3 / (machine.bandwidth_alone if alone else machine.bandwidth)
    return 2 / 3 * n**3 / machine.product(8, alone=alone) + read / 2 + CALLS_A_COLUMN * n / machine.calls


def _by_one_thread(n: int) -> bool:
    """Whether the eigenvectors of n rows are computed by one thread of BLAS."""
    return eigen_operations(n) < WORTH_WAKING


def leading_eigenvectors(machine: Machine, n: int, k: int) -> float:
    """The k largest eigenvalues and their vectors by LAPACK, of a stored matrix in float64."""
    return _tridiagonal(machine, n) + 2 * n * n * k / machine.product(8, alone=_by_one_thread(n))


def eigenvectors(machine: Machine, n: int) -> float:
    """All eigenvectors by LAPACK's divide and conquer, in float64."""
    return _tridiagonal(machine, n) + 4 * n**3 / machine.product(8, alone=_by_one_thread(n))


def band(machine: Machine, n: int, shifts: int) -> float:
    """K = QBQᵀ with a band matrix B, and the diagonal of (K + λI)⁻¹ for each of the shifts λ."""
    operations = 8 / 3 * n * n * (n + 500) + 100 * n * n * shifts
    return operations / machine.tiles + CALLS_A_SHIFT * (shifts + 1) / machine.calls


def krylov(machine: Machine, n: int, d: int, k: int, *, stored: bool = False, itemsize: int = 4) -> float:
    """The k largest eigenvalues and their vectors by block Krylov steps, with K `stored` or its entries recomputed.

    >>> m = Machine.documented()
    >>> krylov(m, 5000, 20, 10) < leading_eigenvectors(m, 5000, 10)
    True
    """
    b = min(n, (3 * k + 32) // 32 * 32)
    made = matrix(machine, n, d, itemsize) if stored else 0.0
    one = stored_product(machine, n, b, itemsize) if stored else product(machine, n, d, b, itemsize)
    steps = 3 + (1.5 * math.sqrt(d / k) if k < d else 0.0)
    beside = 25 * steps * n * b * b / machine.product(itemsize) + eigenvectors(machine, min(round(steps * b), n))
    return made + 3 * n * b * machine.pair(d, itemsize) + steps * one + beside + CALLS_OF_KRYLOV * steps / machine.calls


def eigen_ways(machine: Machine, n: int, d: int, k: int) -> dict[str, float]:
    """The k largest eigenpairs by LAPACK, and by block Krylov with a stored matrix and without one.

    Each includes a product in float64 that checks the pairs.
    """
    check = product(machine, n, d, k)
    return {
        "dense": matrix(machine, n, d) + leading_eigenvectors(machine, n, k) + check,
        "stored": krylov(machine, n, d, k, stored=True) + check,
        "matrix-free": krylov(machine, n, d, k) + check,
    }


def lloyd(machine: Machine, n: int, d: int, starts: int, *, stored: bool = False) -> float:
    """Kernel k-means with K `stored` or its entries recomputed.

    A pass costs in proportion to the rows that change their cluster; the passes of a start amount to a few full ones.
    Each start ends with a pass in float64.
    """
    beside = starts * (product(machine, n, d) + CALLS_A_STEP * STEPS_OF_LLOYD / machine.calls)
    if stored:
        return matrix(machine, n, d, 4) + PASSES_OF_STORED * starts * n * n / machine.sums + beside
    return PASSES * starts * n * n / 2 * machine.pair(d, 4) + beside


def entries_of_storing(machine: Machine, n: int, d: int) -> float:
    """How many float32 entries are computed in the time that storing K takes.

    >>> m = Machine.documented()
    >>> 1000**2 / 2 < entries_of_storing(m, 1000, 500) < entries_of_storing(m, 1000, 5)
    True
    """
    return matrix(machine, n, d, 4) / machine.pair(d, 4)


def pivots(machine: Machine, n: int, d: int, rank: int, itemsize: int = 4) -> float:
    """A pivoted Cholesky approximation FFᵀ of rank r."""
    entries = n * rank * (machine.pair(d, itemsize) + 2 * itemsize / machine.touch)
    return entries + n * rank**2 / machine.product(itemsize) + CALLS_A_PIVOT * rank / machine.calls


def preconditioner(machine: Machine, n: int, d: int, rank: int, itemsize: int = 4) -> float:
    """A pivoted Cholesky approximation FFᵀ, and the Cholesky factor of FᵀF."""
    return pivots(machine, n, d, rank, itemsize) + 2 * n * rank**2 / machine.product(itemsize)


def preconditioning(machine: Machine, n: int, rank: int, columns: int = 1, itemsize: int = 4) -> float:
    """A step of conjugate gradients without its product: one thread multiplies with F and Fᵀ, and Python's calls.

    BLAS reads F for one column, and copies it into blocks for more, which takes twice as long: with n = 20 000 and
    r = 1920, 8 ms for one column, 18 to 20 for 2 to 8, and 31 for 32.
    """
    read = (2 if columns == 1 else 4) * itemsize * n * rank / machine.bandwidth_alone
    made = 4 * n * rank * columns / machine.product(itemsize, alone=True)
    return max(read, made) + CALLS_A_STEP / machine.calls


CHECKS, CHECKS_OF_STORED = 3.5, 4.5
"""Products in float64 that refine a solution, and that check one after rounds with entries in 16 bits."""
ROUNDS = 1.25
"""Steps that rounds with entries in 16 bits take for each step with entries in float32."""


def refined_cholesky(machine: Machine, n: int, d: int, columns: int = 1, *, kept: bool = False) -> float:
    """(K + λI)X = B by a factor in float32, and residuals by float64 entries, which may be `kept` in memory."""
    made = matrix(machine, n, d, 4)
    residual = product(machine, n, d, columns)
    if kept:
        made = matrix(machine, n, d, 8)  # as many fresh bytes as each pair once in float64 and a float32 matrix
        residual = stored_product(machine, n, columns)
    refinement = residual + substitution(machine, n, columns, 4) + CALLS_A_STEP / machine.calls
    return made + cholesky(machine, n, 4) + CHECKS * refinement


def conjugate_gradients(
    machine: Machine,
    n: int,
    d: int,
    rank: int,
    steps: float,
    columns: int = 1,
    *,
    stored: bool = False,
    itemsize: int = 4,
) -> float:
    """(K + λI)X = B by steps with recomputed entries, or with entries `stored` in 16 bits, and a preconditioner.

    >>> m = Machine.documented()
    >>> conjugate_gradients(m, 20_000, 100, 960, 80, stored=True) < conjugate_gradients(m, 20_000, 100, 960, 80)
    True
    """
    beside, check = preconditioning(machine, n, rank, columns), product(machine, n, d, columns)
    if stored:
        step = quantised_product(machine, n, columns) + beside
        return quantised(machine, n, d) + ROUNDS * steps * step + CHECKS_OF_STORED * check
    return steps * (product(machine, n, d, columns, itemsize) + beside) + CHECKS * check


def held_out_ways(machine: Machine, n: int, train: int, systems: int) -> dict[str, float]:
    """Ridge regressions on `train` of n rows: `systems` of them, one for each fold and λ.

    One decomposition of K serves them all, with corrections for the rows that a fold leaves out, or each has its own
    Cholesky factor.
    """
    out = n - train
    left = (2 * n * out**2 + out**3 / 3) / machine.product(8) + CALLS_A_STEP / machine.calls
    each = cholesky(machine, train) + 16 * train**2 / machine.bandwidth + CALLS_A_STEP / machine.calls
    return {"eigenvectors": eigenvectors(machine, n) + systems * left, "cholesky": systems * each}


def eigen_operations(n: int) -> float:
    """The operations of all eigenvectors of n rows by LAPACK.

    >>> eigen_operations(10)
    9000.0
    """
    return 9.0 * n**3
