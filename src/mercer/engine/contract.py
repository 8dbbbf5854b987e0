"""What an engine owes: plans of programs on tiles, loops that Python would be slow for, and what it can.

A new engine is a subclass of `Engine`, or of the one whose loops it takes over, and a line in `mercer.engine.backend`.
`mercer.testing.check_engine` holds it to its contract.
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
    "LOOPS", "NOTHING", "Capabilities", "Code", "Engine", "NormAccuracy", "Operand", "TilePairing", "TileProgram",
    "TileRows", "Tiles",
]  # fmt: skip

Array: TypeAlias = NDArray[Any]
Loop: TypeAlias = Callable[..., Any]
Operand: TypeAlias = tuple[int, int]
"""(OperandKind, index)."""
NOTHING: Operand = (int(OperandKind.NOTHING), 0)
Code: TypeAlias = tuple[int, int, Operand, Operand, Operand, float, float]
"""(Operation, target register, a, b, c, k0, k1)."""


@dataclass(frozen=True)
class NormAccuracy:
    """How squared distances may be had by norms of the rows less `origin`: see `core/pairing/distances.inl`.

    Parameters
    ----------
    origin : array of shape (d,) or None
        None is 0.
    rounding : float
        Error of a distance, as a share of the sum of its two norms.
    promise : float
        The relative error that it may have, and the absolute error of e^(−γs).
    slow, fast : float
        The smallest and the largest γ of the e^(−γs) that read the distance; 0 and infinity if something else does.
    """

    origin: Array | None
    rounding: float
    promise: float
    slow: float = 0.0
    fast: float = np.inf


@dataclass(frozen=True)
class TilePairing:
    """A pairing to compute, of rows less `origin`; with `norms` a squared distance may be had by norms."""

    kind: Pairing
    origin: Array | None = None
    norms: NormAccuracy | None = None


@dataclass(frozen=True)
class TileProgram:
    """What an engine runs for each pair of rows: pairings into the first registers, then `code`."""

    dtype: np.dtype[Any]
    pairings: tuple[TilePairing, ...]
    constants: tuple[float, ...] = ()
    code: tuple[Code, ...] = ()
    registers: int = 1
    result: int = 0


@dataclass(frozen=True)
class TileRows:
    """One side of the pairs: for each pairing its rows, and their squared norms if it has `norms`; values of rows."""

    count: int
    rows: tuple[Array, ...]
    norms: tuple[Array | None, ...] = ()
    values: tuple[Array, ...] = ()


class Tiles(Protocol):
    """A plan: the matrix of a program on given rows, of which it writes or uses any part."""

    @property
    def row_block(self) -> int:
        """Rows of a block: ranges of products begin and end on blocks, or at the end."""

    def block(self, i0: int, i1: int, j0: int, j1: int, out: Array) -> None:
        """Rows [i0, i1) × columns [j0, j1) into `out`."""

    def gram(self, i0: int, i1: int, out: Array) -> None:
        """Rows [i0, i1) and, by symmetry, the same columns, into the whole n × n matrix `out`."""

    def upper(self, i0: int, i1: int, out: Array) -> None:
        """The same rows of the blocks on the diagonal and right of it, each block row whole and contiguous."""

    def multiply(self, i0: int, i1: int, j0: int, j1: int, v: Array, out: Array, symmetric: bool) -> None:
        """`out` += K[i0:i1, j0:j1] v[j0:j1]; `symmetric` visits each pair of rows once, and `out` has all rows."""

    def normal_product(self, i0: int, i1: int, v: Array, weights: Array | None, out: Array) -> None:
        """`out` += Kᵀ diag(w) K v with K the rows [i0, i1)."""

    def group_sums(self, i0: int, i1: int, start: Array, weights: Array | None, out: Array) -> None:
        """`out[i − i0, g]` += Σ wⱼ Kᵢⱼ over the columns start[g] ≤ j < start[g + 1]."""

    def row_max(self, i0: int, i1: int, index: Array, value: Array) -> None:
        """The largest entry of each row and its first column; NaN counts as the largest."""


@dataclass(frozen=True)
class Capabilities:
    """What an engine can.

    Parameters
    ----------
    instruction_set : str
        The one in use.
    instruction_sets : tuple of str
        All that this machine has, the best one last.
    compiled : bool
        Whether loops over single numbers are compiled. If so, entries of few columns are made about as fast as stored
        ones are read, and a call may take many steps.
    dtypes : tuple of dtypes
        Of entries.
    """

    instruction_set: str
    instruction_sets: tuple[str, ...]
    compiled: bool
    dtypes: tuple[np.dtype[Any], ...] = (np.dtype(np.float32), np.dtype(np.float64))


class Engine(ABC):
    """Plans of programs on tiles, and loops over single numbers.

    The loops are functions of `loops`, a module; `mercer.engine.reference` documents and defines them.
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
        """What this engine can."""

    @abstractmethod
    def plan(self, program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None = None) -> Tiles:
        """The matrix of a program on the rows x and z.

        `self_pairs` names, for each row of x, the row of z that is the same point (−1: none): their distance is 0.
        """

    def makes_entries(self, tiles: object) -> bool:
        """Whether `smo` takes these tiles instead of a stored matrix."""
        return False


LOOPS = tuple(Engine.__annotations__)


def parts(program: TileProgram, x: TileRows, z: TileRows, self_pairs: Array | None) -> dict[str, Any]:
    """A plan by the names that both modules give its parts."""
    norms = [
        (at, norms.origin, x.norms[at], z.norms[at], norms.rounding, norms.promise, norms.slow, norms.fast)
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
