"""Every engine keeps the contract, a second copy of the reference too, and each broken promise is found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import SVC, KernelKMeans, KernelPCA, KernelRidge
from mercer.engine import reference
from mercer.engine.backend import engines
from mercer.engine.contract import Capabilities, Engine, parts
from mercer.engine.engines import ReferenceEngine
from mercer.engine.reference.tiles import OPERATIONS, PAIRINGS
from mercer.testing import check_engine
from mercer.testing.engines import FORMULAS


class Trial(Engine):
    """All that a new engine is."""

    def __init__(self):
        super().__init__(reference)

    @property
    def capabilities(self):
        return Capabilities("trial", ("trial",), compiled=False)

    def plan(self, program, x, z, self_pairs=None):
        return reference.Tiles(**parts(program, x, z, self_pairs))


@pytest.mark.parametrize("engine", [*engines(), Trial()], ids=lambda one: one.capabilities.instruction_set)
def test_every_engine_keeps_the_contract(engine):
    check_engine(engine)


@pytest.mark.parametrize("estimator", [KernelRidge(), SVC(), KernelKMeans(2, random_state=0), KernelPCA(2)], ids=repr)
def test_a_new_engine_serves_whole_fits(monkeypatch, estimator):
    """No other file names it: it makes all plans, and its results are those of the reference."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(X[:, 0] > 0, 1, 0)
    plans = []

    class Counted(Trial):
        def plan(self, program, x, z, self_pairs=None):
            plans.append(program)
            return super().plan(program, x, z, self_pairs)

    monkeypatch.delenv("MERCER_ISA", raising=False)  # which it does not have

    def outputs(*compiled):
        monkeypatch.setattr("mercer.engine.backend._compiled", compiled)
        model = clone(estimator).fit(X, y)
        return model.transform(X) if hasattr(model, "transform") else model.predict(X)

    np.testing.assert_array_equal(outputs(Counted()), outputs())
    assert len(plans) > 1


@pytest.mark.parametrize("name", sorted({one.name for one in FORMULAS}))
def test_a_wrong_operation_is_found(monkeypatch, name):
    op = next(one for one in FORMULAS if one.name == name)
    right = OPERATIONS[op]
    monkeypatch.setitem(OPERATIONS, op, lambda k0, k1, *operands: right(k0, k1, *operands) + k0.dtype.type(1e-3))
    with pytest.raises(AssertionError, match=name):
        check_engine(ReferenceEngine())


@pytest.mark.parametrize("kind", list(PAIRINGS), ids=lambda kind: kind.name)
def test_a_wrong_pairing_is_found(monkeypatch, kind):
    right = PAIRINGS[kind]
    monkeypatch.setitem(PAIRINGS, kind, lambda a, b: right(a[:, 1:], b[:, 1:]))
    with pytest.raises(AssertionError, match=kind.name):
        check_engine(ReferenceEngine())


class DropsTheLastColumn(reference.Tiles):
    def block(self, i0, i1, j0, j1, *, out):
        super().block(i0, i1, j0, j1, out=out)
        out[:, -1] = 0


class DropsTheEdgeOfATile(reference.Tiles):
    def block(self, i0, i1, j0, j1, *, out):
        super().block(i0, i1, j0, j1, out=out)
        if j1 > self.row_block:
            out[:, self.row_block - 1 - j0 : self.row_block - j0] = 0


class TurnsNothing(reference.Tiles):
    def gram(self, i0, i1, out):
        self.block(i0, i1, 0, self.columns, out=out[i0:i1])
        out[i1:, i0:i1] = 0
        if i0:
            out[i0:i1, :i0] = 0


class DropsBlockRows(reference.Tiles):
    def upper(self, i0, i1, out):
        if not i0:
            super().upper(i0, i1, out)


class AddsToOneRow(reference.Tiles):
    def multiply(self, i0, i1, j0, j1, *, v, out, symmetric):
        super().multiply(i0, i1, j0, j1, v=v, out=out[i0:i1] if symmetric else out, symmetric=False)


class Overwrites(reference.Tiles):
    def multiply(self, i0, i1, j0, j1, *, v, out, symmetric):
        out[...] = 0
        super().multiply(i0, i1, j0, j1, v=v, out=out, symmetric=symmetric)


class ForgetsWeights(reference.Tiles):
    def normal_product(self, i0, i1, *, v, weights, out):
        super().normal_product(i0, i1, v=v, weights=None, out=out)


class ForgetsColumnWeights(reference.Tiles):
    def group_sums(self, i0, i1, *, start, weights, out):
        super().group_sums(i0, i1, start=start, weights=None, out=out)


class ForgetsAGroup(reference.Tiles):
    def group_sums(self, i0, i1, *, start, weights, out):
        super().group_sums(i0, i1, start=start[:-1], weights=weights, out=out)


class Unpinned(reference.Tiles):
    def _zero_self_pairs(self, distances, i0, i1, j0, j1):
        return distances


FAULTS = {
    DropsTheLastColumn: "DOT of 1 × 1", DropsTheEdgeOfATile: "DOT of 1 ×", TurnsNothing: "gram",
    DropsBlockRows: "upper",
    AddsToOneRow: "symmetric multiply", Overwrites: "multiply", ForgetsWeights: "normal_product",
    ForgetsColumnWeights: "group_sums", ForgetsAGroup: "group_sums", Unpinned: "self_pairs",
}  # fmt: skip


@pytest.mark.parametrize("tiles", FAULTS, ids=lambda tiles: tiles.__name__)
def test_each_broken_promise_is_found(tiles):
    class Broken(Trial):
        def plan(self, program, x, z, self_pairs=None):
            return tiles(**parts(program, x, z, self_pairs))

    with pytest.raises(AssertionError, match=FAULTS[tiles]):
        check_engine(Broken())
