"""The contract of engines: they plan programs on tiles, run loops that are slow in Python, and say what they can do.

A new engine is a subclass of `Engine`, or of an engine whose loops it shares, and a line in `mercer.engine.backend`.
`mercer.testing.check_engine` tests the contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.engine.opcodes import OperandKind, Pairing

__all__ = [
    "LOOPS", "NOTHING", "Capabilities", "Code", "Engine", "HeldFactors", "NormAccuracy", "Operand", "Tall",
    "TilePairing", "TileProgram", "TileRows", "Tiles",
]  # fmt: skip

Array: TypeAlias = NDArray[Any]
Loop: TypeAlias = Callable[..., Any]
Operand: TypeAlias = tuple[int, int]
"""(OperandKind, index)."""
PIECE = 1e8
"""Operations of one thread of a processor between two interrupt checks."""
NOTHING: Operand = (int(OperandKind.NOTHING), 0)
Code: TypeAlias = tuple[int, int, Operand, Operand, Operand, float, float]
"""(Operation, target register, a, b, c, k0, k1)."""


@dataclass(frozen=True)
class NormAccuracy:
    """When squared distances may be computed from norms of the rows less `origin`: see `core/pairing/distances.inl`.

    Parameters
    ----------
    origin : array of shape (d,) or None
        None stands for 0.
    rounding : float
        The error of such a distance, as a share of the sum of the two squared norms.
    promise : float
        The relative error that a distance s may have, and the absolute error that the kernel may have.
    slow, fast, root : float
        The kernel's derivative is at most fast·(1 + root·slow·s)^(−1/root), or fast·e^(−slow·s) if root is 0. If no
        such bound is known, slow is 0 and fast infinite.
    """

    origin: Array | None
    rounding: float
    promise: float
    slow: float = 0.0
    fast: float = np.inf
    root: float = 0.0


@dataclass(frozen=True)
class TilePairing:
    """A pairing of rows less `origin`; with `norms` a squared distance may be computed from norms."""

    kind: Pairing
    origin: Array | None = None
    norms: NormAccuracy | None = None


@dataclass(frozen=True)
class TileProgram:
    """The program for each pair of rows: the pairings fill the first registers, then `code` runs."""

    dtype: np.dtype[Any]
    pairings: tuple[TilePairing, ...]
    constants: tuple[float, ...] = ()
    code: tuple[Code, ...] = ()
    registers: int = 1
    result: int = 0


@dataclass(frozen=True)
class TileRows:
    """One side of the pairs: the rows of each pairing, their squared norms if it has `norms`, and values of rows.

    Rows are arrays, or rows that the engine has adopted.
    """

    count: int
    rows: tuple[Any, ...]
    norms: tuple[Array | None, ...] = ()
    values: tuple[Array, ...] = ()


class Tiles(Protocol):
    """The matrix of a program on given rows; its methods compute parts of it, or products with parts of it."""

    @property
    def row_block(self) -> int:
        """Rows of a block: ranges of rows in products begin and end at multiples of it, or at the last row."""

    def block(self, i0: int, i1: int, j0: int, j1: int, *, out: Array) -> None:
        """Rows [i0, i1) × columns [j0, j1) into `out`."""

    def gram(self, i0: int, i1: int, out: Array) -> None:
        """Rows [i0, i1) and, by symmetry, the same columns, into the n × n matrix `out`."""

    def upper(self, i0: int, i1: int, out: Array) -> None:
        """The same rows from the diagonal blocks on, into a vector `out` in which each row of blocks is contiguous."""

    def multiply(self, i0: int, i1: int, j0: int, j1: int, *, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1]; `symmetric` visits each pair of rows once, and `out` has all rows."""

    def normal_product(self, i0: int, i1: int, *, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with K the rows [i0, i1)."""

    def group_sums(self, i0: int, i1: int, *, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1]."""


class Tall(Protocol):
    """A tall matrix F in an engine's own memory, and its products with arrays, which have the dtype of F."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""

    def times(self, V: Array) -> Array:
        """F V."""

    def transposed_times(self, U: Array) -> Array:
        """Fᵀ U, with sums in float64."""

    def gram(self, scale: Array, dtype: np.dtype[Any]) -> Array:
        """Fᵀ diag(s)² F, with products in this dtype and sums in float64."""

    def turned(self, R: Array) -> Tall:
        """F R."""

    def squares(self) -> Array:
        """‖fᵢ‖² of each row."""

    def rows(self, index: Array) -> Array:
        """The rows with these indices."""


class HeldFactors(Protocol):
    """Upper triangular T and U in an engine's own memory, TᵀT = A and UᵀU = TTᵀ + sI, so (UT)ᵀ(UT) = A(A + sI).

    They are rounded to the precision of the entries. What they give for B of shape (m, c) is computed in float64.
    """

    def solve(self, B: Array) -> Array:
        """(UT)⁻¹ B."""

    def solve_transposed(self, B: Array) -> Array:
        """(UT)⁻ᵀ B."""

    def inverse(self, B: Array) -> Array:
        """T⁻¹T⁻ᵀ B, which is A⁻¹ B but for the rounding of T."""


@dataclass(frozen=True)
class Capabilities:
    """Properties of an engine.

    Parameters
    ----------
    instruction_set : str
        The instruction set in use.
    instruction_sets : tuple of str
        All instruction sets of this machine, the best last.
    compiled : bool
        Whether loops over single numbers are compiled. If so, entries for rows of few columns are computed about as
        fast as stored ones are read, and one call may do many steps.
    dtypes : tuple of dtypes
        The dtypes that entries may have.
    """

    instruction_set: str
    instruction_sets: tuple[str, ...]
    compiled: bool
    dtypes: tuple[np.dtype[Any], ...] = (np.dtype(np.float32), np.dtype(np.float64))


class Engine(ABC):
    """An engine plans programs on tiles, and has loops over single numbers.

    Parameters
    ----------
    loops : module
        The module with the loops. `mercer.engine.reference` defines and documents them.
    """

    WindowComparison: Loop
    add_products: Loop
    add_rows: Loop
    alignment_kernel: Loop
    band_factors: Loop
    band_norms: Loop
    band_step: Loop
    band_vectors: Loop
    coordinates: Loop
    count_kmers: Loop
    match_lanes: Loop
    merge_pass: Loop
    nearest_means: Loop
    quantise: Loop
    quantised_product: Loop
    smo: Loop
    subsequence_kernel: Loop
    substring_kernel: Loop
    substring_product: Loop
    threads: Callable[[], int]
    """How many threads the next call uses."""

    def __init__(self, loops: ModuleType) -> None:
        self.loops = loops
        for name in LOOPS:
            setattr(self, name, getattr(loops, name))

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The properties of this engine."""

    @abstractmethod
    def plan(self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None = None) -> Tiles:
        """The matrix of a program on the rows x and z.

        `self_pairs` has, for each row of x, the index of the row of z that is the same point, or −1. The distance of
        such a pair is exactly 0.
        """

    def adopted(self, X: Any) -> Any:
        """An array with DLPack's methods as rows in the engine's own memory; None if it is elsewhere."""
        return None

    def reads(self, rows: Any) -> bool:
        """Whether plans take these rows that an engine has adopted; the others have to be copied to the host."""
        return False

    def exported(self, values: Array) -> Any:
        """A copy of an array in the engine's own memory, with DLPack's methods; the array itself has them, too."""
        return values

    def host_bytes(self, copies: int) -> int:
        """Bytes of this process that a plan takes at most for copies of rows of so many bytes."""
        return copies

    def room(self) -> int:
        """Bytes of the engine's own memory for arrays that stay beside its plans."""
        return 0

    def kept_product(self, tiles: object, R: Array) -> Tall | None:
        """K R for the K of these tiles, in the engine's own memory; None if it has none."""
        return None

    def cholesky_rows(self) -> int:
        """The most rows of a matrix of float32 entries that `kept_factors` has room for; 0 if it keeps none."""
        return 0

    def kept_factors(self, tiles: object, jitter: float, shift: float, largest: float) -> HeldFactors | None:
        """The factors of A + jitter·I, s = shift, for the square matrix A of these tiles with entries up to `largest`.

        None if A + jitter·I is not positive definite in the precision of the entries, or if the engine keeps none.
        """
        return None

    def piece(self, tiles: object) -> float:
        """Operations of one thread on these tiles between two interrupt checks."""
        return PIECE

    def mirrors(self, tiles: object) -> bool:
        """Whether a symmetric product uses each entry for its mirror image, too; if not, it computes both."""
        return True

    def makes_entries(self, tiles: object) -> bool:
        """Whether `smo` takes these tiles instead of a stored matrix."""
        return False


LOOPS = tuple(Engine.__annotations__)


def parts(program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None) -> dict[str, Any]:
    """The arguments of `Tiles`, which have the same names in both engines."""
    norms = [
        (at, norms.origin, x.norms[at], z.norms[at], norms.rounding, norms.promise, norms.slow, norms.fast, norms.root)
        for at, norms in enumerate(one.norms for one in program.pairings)
        if norms is not None
    ]
    return {
        "is_double": program.dtype == np.float64,
        "rows": x.count,
        "columns": z.count,
        "pairings": [
            (int(one.kind), a, b, one.origin) for one, a, b in zip(program.pairings, x.rows, z.rows, strict=True)
        ],
        "row_values": list(x.values),
        "column_values": list(z.values),
        "constants": list(program.constants),
        "program": list(program.code),
        "registers": program.registers,
        "result": program.result,
        "self_pairs": None if self_pairs is None else np.ascontiguousarray(self_pairs, np.int64),
        "norms": norms,
    }
