"""Plans for two tile engines: the one in use (compiled, or the reference if that is off), and the float64 reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mercer.engine import backend, reference
from mercer.engine.contract import NOTHING
from mercer.engine.opcodes import OperandKind, Operation, Pairing

ENGINE = backend.engine().loops


@pytest.fixture
def engine():
    return ENGINE


@pytest.fixture
def native():
    if ENGINE is reference:
        pytest.skip("the compiled module is off or was not built")
    return ENGINE


@pytest.fixture(params=ENGINE.instruction_sets())
def isa(request):
    return request.param


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@dataclass
class Plan:
    """Rows A against columns B under a program; `tiles` and `reference` are two engines for it."""

    dtype: np.dtype
    pairings: list[tuple[int, Any, Any]]
    rows: int
    columns: int
    program: list[tuple[Any, ...]]
    registers: int
    result: int
    row_values: list[Any]
    column_values: list[Any]
    constants: list[float]
    self_pairs: Any = None
    norms: Any = ()
    """Of each pairing by norms: its place, the origin, `rounding`, `promise`, `slow`, `fast` and `root`."""

    def tiles(self, isa: str) -> Any:
        return self._build(ENGINE.Tiles, self.dtype, isa)

    def reference(self, dtype: Any = np.float64) -> Any:
        return self._build(reference.Tiles, np.dtype(dtype), "")

    def _build(self, Tiles: Any, dtype: np.dtype, isa: str) -> Any:
        def cast(values):
            return [v.astype(dtype) for v in values]

        return Tiles(
            is_double=dtype == np.float64,
            rows=self.rows,
            columns=self.columns,
            pairings=[(kind, a.astype(dtype), b.astype(dtype), None) for kind, a, b in self.pairings],
            row_values=cast(self.row_values),
            column_values=cast(self.column_values),
            constants=self.constants,
            program=self.program,
            registers=self.registers,
            result=self.result,
            self_pairs=self.self_pairs,
            isa=isa,
            norms=[self._by_norms(dtype, *norms) for norms in self.norms],
        )

    def _by_norms(self, dtype: np.dtype, at: int, origin: Any, *accuracy: float) -> tuple[Any, ...]:
        given = [rows.astype(dtype).astype(np.float64) for rows in self.pairings[at][1:]]
        origin = np.broadcast_to(np.float64(origin), given[0].shape[1:]).copy()
        moved = [(rows - origin).astype(dtype).astype(np.float64) for rows in given]
        return at, origin, *((rows**2).sum(axis=1).astype(dtype) for rows in moved), *accuracy

    @property
    def eps(self) -> float:
        """A rounding error, with some room for sums over features."""
        return 40 * float(np.finfo(self.dtype).eps)


REGISTER, ROW, COLUMN, CONSTANT = OperandKind.REGISTER, OperandKind.ROW, OperandKind.COLUMN, OperandKind.CONSTANT


@pytest.fixture
def make_plan():
    """make_plan(dtype, n, m, ...): by default 1 / (1 + ‖x − z‖²) of positive rows, which is neither small nor large."""

    def make(dtype, n, m=None, depth=5, kind=Pairing.SQDIST, program=None, seed=0, registers=None, result=0, **more):
        rng = np.random.default_rng(seed)
        A = (0.1 + rng.random((n, depth))).astype(dtype)
        B = A if m is None else (0.1 + rng.random((m, depth))).astype(dtype)
        if program is None:
            program = [
                (Operation.AFFINE, 0, (REGISTER, 0), NOTHING, NOTHING, 1.0, 1.0),
                (Operation.POW_INTEGER, 0, (REGISTER, 0), NOTHING, NOTHING, -1.0, 0.0),
            ]
        parts = {
            "row_values": [],
            "column_values": [],
            "constants": [],
            "self_pairs": None,
            "pairings": [(int(kind), A, B)],
        }
        program = [(int(op), *rest) for op, *rest in program]
        return Plan(np.dtype(dtype), rows=n, columns=n if m is None else m, program=program, registers=registers or 1,
                    result=result, **(parts | more))  # fmt: skip

    return make


def whole(tiles: Any, n: int, m: int, dtype: Any) -> Any:
    out = np.full((n, m), np.nan, dtype)
    tiles.block(0, n, 0, m, out=out)
    return out


@pytest.fixture
def full():
    """full(tiles, n, m, dtype): all entries."""
    return whole
