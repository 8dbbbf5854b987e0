"""The contract suite of engines: one check for each promise, and one call for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engine.contract import NOTHING, Code, Engine, NormAccuracy, TilePairing, TileProgram, TileRows, Tiles
from mercer.engine.opcodes import OperandKind, Operation, Pairing
from mercer.kernels.symbolic.pairing import ArrayPair
from mercer.testing.comparison import hold

__all__ = ["ENGINE_CHECKS", "check_engine"]

Array = NDArray[Any]

ROUNDINGS = 100
"""Largest error of a result, in roundings of the same sum over absolute values."""
FORMULAS: dict[Operation, Callable[[Array, Array, Array], Array]] = {
    Operation.ADD: lambda a, b, c: a + b,
    Operation.SUB: lambda a, b, c: a - b,
    Operation.MUL: lambda a, b, c: a * b,
    Operation.DIV: lambda a, b, c: a / b,
    Operation.MINIMUM: lambda a, b, c: np.minimum(a, b),
    Operation.MAXIMUM: lambda a, b, c: np.maximum(a, b),
    Operation.LESS: lambda a, b, c: (a < b) * 1.0,
    Operation.LESS_EQUAL: lambda a, b, c: (a <= b) * 1.0,
    Operation.WHERE: lambda a, b, c: np.where(a != 0, b, c),
    Operation.NEG: lambda a, b, c: -a,
    Operation.ABS: lambda a, b, c: np.abs(a),
    Operation.EXP: lambda a, b, c: np.exp(a),
    Operation.LOG: lambda a, b, c: np.log(a),
    Operation.SQRT: lambda a, b, c: np.sqrt(a),
    Operation.TANH: lambda a, b, c: np.tanh(a),
    Operation.SIN: lambda a, b, c: np.sin(a),
    Operation.COS: lambda a, b, c: np.cos(a),
    Operation.POW: lambda a, b, c: a**1.5,
    Operation.POW_INTEGER: lambda a, b, c: a**3,
    Operation.AFFINE: lambda a, b, c: 1.5 * a + 0.25,
    Operation.EXP_AFFINE: lambda a, b, c: np.exp(1.5 * a + 0.25),
    Operation.GAUSS_FROM_SQDIST: lambda a, b, c: np.exp2(-1.5 * a),
}
"""The formula of each operation with k0 from `FACTORS` (1.5 by default) and k1 = 0.25."""
FACTORS = {Operation.POW_INTEGER: 3.0, Operation.GAUSS_FROM_SQDIST: -1.5}


def check_engine(engine: Engine) -> None:
    """Check the contract of an engine.

    Every pairing and operation, dtype, consumer and edge of a tile is compared with the formula on arrays in float64.

    Parameters
    ----------
    engine : Engine

    Raises
    ------
    AssertionError
        With the first promise that is broken.

    Examples
    --------
    >>> from mercer.engine import backend
    >>> check_engine(backend.engine())
    """
    hold(engine.capabilities.instruction_set in engine.capabilities.instruction_sets, "the instruction set is unknown")
    hold(engine.threads() >= 1, f"{engine.threads()} threads")
    for dtype in engine.capabilities.dtypes:
        for check in ENGINE_CHECKS:
            check(engine, dtype)


def check_pairings(engine: Engine, dtype: np.dtype[Any]) -> None:
    """Each pairing computes its formula, for all sizes."""
    for kind in Pairing:
        for (n, m), depth in [(size, 5) for size in _sizes(engine)] + [((13, 21), 1), ((13, 21), 40), ((3, 4), 300)]:
            X, Z = _rows(n, depth, dtype, kind), _rows(m, depth, dtype, kind, seed=1)
            expected = getattr(_pair(X, Z), kind.name.lower())
            tiles = engine.plan(TileProgram(dtype, (TilePairing(kind),)), TileRows(n, (X,)), TileRows(m, (Z,)))
            _close(
                dtype,
                _whole(tiles, n, m, dtype),
                expected,
                np.abs(_pair(X, Z).dot) + expected,
                f"{kind.name} of {n} × {m}",
            )


def check_distances(engine: Engine, dtype: np.dtype[Any]) -> None:
    """Squared distances by norms have the requested accuracy, and `self_pairs` have distance 0."""
    X, Z = _rows(50, 40, dtype), _rows(61, 40, dtype, seed=1)
    Z[:30] = X[30:0:-1]
    eps, expected = float(np.finfo(dtype).eps), _pair(X, Z).sqdist
    x, z = (TileRows(len(rows), (rows,), (np.einsum("ij,ij->i", rows, rows),)) for rows in (X, Z))
    self_pairs = np.append(-1, np.append(np.arange(30)[::-1], np.full(19, -1)))
    for fastest in (np.inf, 1e-3):
        accuracy = NormAccuracy(None, 8 * eps, 100 * eps, 0.0 if fastest == np.inf else fastest, fastest)
        program = TileProgram(dtype, (TilePairing(Pairing.SQDIST, None, accuracy),))
        found = _whole(engine.plan(program, x, z, self_pairs), 50, 61, dtype)
        size = expected + (_pair(X, Z).xx + _pair(X, Z).zz if fastest < np.inf else 0)
        _close(dtype, found, expected, size, "a squared distance by norms")
        hold(not np.any(found[np.arange(1, 31), self_pairs[1:31]]), "self_pairs: the same point is not at distance 0")


def check_operations(engine: Engine, dtype: np.dtype[Any]) -> None:
    """Each operation computes its formula, on operands of each kind and in every part of the matrix."""
    for op in Operation:
        tiles, K = _plan(engine, dtype, op)
        n, m = K.shape
        whole = _whole(tiles, n, m, dtype)
        _close(dtype, whole, K, np.abs(K) + 1, op.name)
        for i0, i1, j0, j1 in ((0, 1, 0, m), (3, n, 1, m), (n - 1, n, m - 1, m), (5, n - 2, 7, m - 3)):
            part = np.full((i1 - i0, j1 - j0), np.nan, dtype)
            tiles.block(i0, i1, j0, j1, out=part)
            _close(dtype, part, K[i0:i1, j0:j1], np.abs(K[i0:i1, j0:j1]) + 1, f"{op.name}: block {i0}:{i1}, {j0}:{j1}")


def check_products(engine: Engine, dtype: np.dtype[Any]) -> None:
    """`multiply`, `normal_product` and `group_sums` add their results to `out`."""
    for op in Operation:
        tiles, K = _plan(engine, dtype, op)
        (n, m), size = K.shape, np.abs(K) + 1
        for r in (1, 3):
            V = _rows(m, r, dtype, seed=2) - dtype.type(0.5)
            out = np.ones((n, r))
            for j0, j1 in _blocks(tiles, m):
                tiles.multiply(0, n, j0, j1, v=V, out=out, symmetric=False)
            _close(dtype, out, 1 + K @ V.astype(float), 1 + size @ np.abs(V).astype(float), f"{op.name}: multiply")
            for w in (None, np.linspace(-1.0, 2.0, n)):
                out = np.ones((m, r))
                for i0, i1 in _blocks(tiles, n):
                    tiles.normal_product(i0, i1, v=V, weights=w, out=out)
                weights = np.ones(n) if w is None else w
                bound = size.T @ (np.abs(weights)[:, None] * (size @ np.abs(V).astype(float)))
                found = 1 + K.T @ (weights[:, None] * (K @ V.astype(float)))
                _close(dtype, out, found, bound, f"{op.name}: normal_product")
        start = np.array([0, 1, 1, m // 2, m - 1, m], np.int64)
        for w in (None, _rows(m, 1, dtype, seed=3)[:, 0]):
            sums = np.ones((n - 2, 5))
            tiles.group_sums(2, n, start=start, weights=w, out=sums)
            weighted = K[2:] if w is None else K[2:] * w.astype(float)
            expected = 1 + np.stack([weighted[:, a:b].sum(axis=1) for a, b in pairwise(start)], axis=1)
            _close(dtype, sums, expected, size[2:].sum(axis=1, keepdims=True), f"{op.name}: group_sums")


def check_symmetric(engine: Engine, dtype: np.dtype[Any]) -> None:
    """`gram`, `upper` and a symmetric `multiply` agree with the matrix, and `gram` is symmetric to the bit."""
    for op in Operation:
        tiles, K = _plan(engine, dtype, op, square=True)
        n, size = len(K), np.abs(K) + 1
        out, V = np.full((n, n), np.nan, dtype), _rows(n, 2, dtype, seed=2)
        product = np.ones((n, 2))
        rows = [K[i0:i1, i0:] for i0, i1 in _blocks(tiles, n)]
        upper = np.full(sum(one.size for one in rows), np.nan, dtype)
        for i0, i1 in _blocks(tiles, n):
            tiles.gram(i0, i1, out)
            tiles.upper(i0, i1, upper)
            for j0, j1 in _blocks(tiles, n):
                if j0 >= i0:
                    tiles.multiply(i0, i1, j0, j1, v=V, out=product, symmetric=True)
        _close(dtype, out, K, size, f"{op.name}: gram")
        kept = np.concatenate([one.ravel() for one in rows])
        _close(dtype, upper, kept, np.abs(kept) + 1, f"{op.name}: upper")
        hold(np.array_equal(out, out.T), f"{op.name}: gram is not symmetric to the bit")
        _close(dtype, product, 1 + K @ V.astype(float), size @ V.astype(float), f"{op.name}: symmetric multiply")


ENGINE_CHECKS: Sequence[Callable[[Engine, np.dtype[Any]], None]] = (
    check_pairings, check_distances, check_operations, check_products, check_symmetric,
)  # fmt: skip


# ---- plans ----------------------------------------------------------------------------------------------------------


def _plan(engine: Engine, dtype: np.dtype[Any], op: Operation, square: bool = False) -> tuple[Tiles, Array]:
    """Tiles of `op` on ⟨x, z⟩, a value of the row and one of the column, and their matrix; `square` uses equal rows."""
    n, m = _sizes(engine)[-1]
    X, Z = _rows(n, 5, dtype), _rows(m, 5, dtype, seed=1)
    row, column = _rows(n, 1, dtype, seed=4)[:, 0], _rows(m, 1, dtype, seed=5)[:, 0]
    places = [(OperandKind.REGISTER, 0), (OperandKind.ROW, 0), (OperandKind.COLUMN, 0)]
    b, c = row.astype(float)[:, None], column.astype(float)
    if square:
        n, Z, places = m, Z, [(OperandKind.REGISTER, 0), (OperandKind.CONSTANT, 0), (OperandKind.REGISTER, 0)]
        X, row = Z, column
        b, c = np.full((1, 1), 1.5), _pair(X, Z).dot
    program = TileProgram(dtype, (TilePairing(Pairing.DOT),), (1.5,), (_code(op, *places[: op.operands]),))
    x, z = TileRows(n, (X,), (), (row,)), TileRows(m, (Z,), (), (column,))
    K = FORMULAS[op](_pair(X, Z).dot, b, c)
    return engine.plan(program, x, z), np.array(np.broadcast_to(K, (n, m)))


def _code(op: Operation, *operands: tuple[int, int]) -> Code:
    a, b, c, *_ = [*((int(kind), at) for kind, at in operands), NOTHING, NOTHING, NOTHING]
    return int(op), 0, a, b, c, FACTORS.get(op, 1.5), 0.25


def _sizes(engine: Engine) -> list[tuple[int, int]]:
    """Numbers of rows and columns near the edges of tiles, the largest last."""
    one = np.zeros((1, 1), np.float32)
    program = TileProgram(np.dtype(np.float32), (TilePairing(Pairing.DOT),))
    block = engine.plan(program, TileRows(1, (one,)), TileRows(1, (one,))).row_block
    return [(1, 1), (1, block + 1), (block, 1), (17, 33), (block + 5, block + 13)]


def _blocks(tiles: Tiles, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, tiles.row_block):
        yield start, min(start + tiles.row_block, size)


def _rows(n: int, depth: int, dtype: np.dtype[Any], kind: Pairing = Pairing.DOT, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (n, depth)) if kind == Pairing.MISMATCHES else 0.3 + 0.5 * rng.random((n, depth))
    return rows.astype(dtype)


def _pair(X: Array, Z: Array) -> ArrayPair:
    return ArrayPair(X.astype(np.float64), Z.astype(np.float64))


def _whole(tiles: Tiles, n: int, m: int, dtype: np.dtype[Any]) -> Array:
    out = np.full((n, m), np.nan, dtype)
    tiles.block(0, n, 0, m, out=out)
    return out


def _close(dtype: np.dtype[Any], found: Array, expected: Array, size: Any, what: str) -> None:
    most = ROUNDINGS * float(np.finfo(dtype).eps) * size
    hold(np.all(np.abs(found - expected) <= most), f"{what} is wrong in {dtype}")
