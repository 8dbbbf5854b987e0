"""Sequential minimal optimisation: the engine finds what its reference does, on every instruction set."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine import backend, reference

RNG = np.random.default_rng(5)
BIG = 10**9


class Family:
    """Some problems on one matrix, and the arrays that change."""

    def __init__(self, dtype=np.float64, n=150, epsilon=0.0, split=False, whole=False, C=5.0, seed=0, parts=None):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 4))
        self.K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
        if parts is None:
            parts = [np.arange(n)] if whole else [np.arange(n), np.arange(0, n, 2), np.r_[10:40, 80:130], np.array([5])]
        self.row = np.concatenate(parts)
        self.offset = np.concatenate([[0], np.cumsum([len(one) for one in parts])])
        self.split = self.offset[:-1] + np.diff(self.offset) // 2 if split else self.offset[1:].copy()
        y = np.where(X[self.row, 0] + 0.5 * rng.standard_normal(len(self.row)) > 0, 1.0, -1.0)
        self.c = np.sin(2 * X[self.row, 1]) if epsilon else y
        self.epsilon = epsilon
        self.lower = np.full(len(y), -C) if epsilon else np.minimum(C * y, 0)
        self.upper = np.full(len(y), C) if epsilon else np.maximum(C * y, 0)
        self.beta = np.zeros(len(y))
        self.restart()

    def restart(self):
        p = len(self.split)
        self.gradient, self.anchor, self.anchor_gradient = self.c.copy(), np.zeros(len(self.c)), self.c.copy()
        self.active = np.full(len(self.c), 0 if self.beta.any() else 1, np.uint8)
        self.gap, self.steps, self.ended = np.full(p, np.inf), np.zeros(p, np.int64), np.zeros(p, np.int64)
        return self

    def run(self, engine, isa="", tol=1e-6, limit=BIG, work=BIG, cache=1 << 20):
        engine.smo(
            matrix=self.K, offset=self.offset, split=self.split, row=self.row, lower=self.lower, upper=self.upper,
            epsilon=self.epsilon, beta=self.beta, gradient=self.gradient, anchor=self.anchor,
            anchor_gradient=self.anchor_gradient, active=self.active, tol=tol, limit=limit, work=work, cache=cache,
            gap=self.gap, steps=self.steps, ended=self.ended, isa=isa,
        )  # fmt: skip
        return self

    def exact(self):
        """g, and ½βᵀKβ − cᵀβ + ε‖β‖₁ of each problem, written out."""
        K, g, objectives = self.K.astype(np.float64), np.empty(len(self.c)), []
        for first, last in zip(self.offset[:-1], self.offset[1:], strict=True):
            r, b, c = self.row[first:last], self.beta[first:last], self.c[first:last]
            g[first:last] = c - K[np.ix_(r, r)] @ b
            objectives.append(0.5 * b @ K[np.ix_(r, r)] @ b - c @ b + self.epsilon * np.abs(b).sum())
        return g, np.array(objectives)

    def exact_with(self, K):
        """The objectives by this matrix."""
        self.K = K
        return self.exact()[1]

    def sums(self):
        ends = np.sort(np.concatenate([self.offset[:-1], self.split]))
        return np.array([one.sum() for one in np.split(self.beta, ends[1:])])


CASES = {
    "margins": {},
    "epsilon": {"epsilon": 0.1},
    "two sums": {"split": True},
    "one problem": {"whole": True, "n": 400},
    "hard margins": {"C": 1e6},
}


@pytest.mark.parametrize("case", CASES)
def test_the_engine_finds_what_the_reference_finds(native, dtype, case):
    limit = 20_000
    other = Family(dtype, **CASES[case]).run(reference, limit=limit)
    _, expected = other.exact()
    for isa in native.instruction_sets():
        ours = Family(dtype, **CASES[case]).run(native, isa, limit=limit)
        g, objective = ours.exact()
        np.testing.assert_allclose(ours.gradient, g, atol=1e-8)
        assert np.all((ours.lower <= ours.beta) & (ours.beta <= ours.upper))
        np.testing.assert_allclose(ours.sums(), 0.0, atol=1e-8)
        np.testing.assert_array_equal(ours.ended, other.ended)
        settled = ours.ended == 1
        assert np.all(ours.gap[settled] <= 1e-6)
        np.testing.assert_allclose(objective[settled], expected[settled], rtol=1e-5, atol=1e-5, err_msg=isa)


@pytest.mark.parametrize("engine", [reference, backend.engine().loops], ids=["reference", "engine"])
@pytest.mark.parametrize("case", ["margins", "epsilon", "two sums"])
def test_cut_into_pieces_it_comes_to_the_same_optimum(engine, case):
    whole, cut = Family(**CASES[case]).run(engine), Family(**CASES[case])
    for _ in range(10_000):
        cut.run(engine, work=2000)
        if np.all(cut.ended == 1):
            break
    np.testing.assert_allclose(cut.exact()[1], whole.exact()[1], rtol=1e-6, atol=1e-6)


def test_two_points_by_hand():
    """K = [[1, −1], [−1, 1]], y = (−1, 1): the margin's width is 2, and β = (−½, ½)."""
    one = Family(whole=True, n=2)
    one.K, one.c = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, 1.0])
    one.lower, one.upper = np.array([-10.0, 0.0]), np.array([0.0, 10.0])
    for engine in (reference, backend.engine().loops):
        one.beta = np.zeros(2)
        one.restart().run(engine)
        np.testing.assert_allclose(one.beta, [-0.5, 0.5])
        assert one.steps[0] == 1


def test_what_is_set_aside_comes_back(native, isa):
    """So many steps that variables are set aside; in a small cache rows are copied again and again."""
    for cache in (1, 1 << 24):
        family = Family(np.float32, n=1500, whole=True, C=30.0).run(native, isa, tol=1e-4, cache=cache)
        assert family.steps[0] > 1500
        g, objective = family.exact()
        np.testing.assert_allclose(family.gradient, g, atol=1e-7)
        if cache == 1:
            first = objective
    np.testing.assert_array_equal(objective, first)


def test_from_a_point_away_from_0(engine):
    """With all variables set aside and the anchor at 0 the engine makes the gradients itself."""
    cold = Family().run(engine)
    warm = Family()
    warm.beta = 0.5 * cold.beta
    warm.restart().run(engine)
    np.testing.assert_allclose(warm.exact()[1], cold.exact()[1], rtol=1e-6)


def test_the_same_bits_for_any_number_of_threads(native):
    """Each problem is solved by one thread."""
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="openmp"):
            found.append(Family(np.float32).run(native).beta)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_limits_are_kept(engine):
    family = Family().run(engine, limit=3)
    assert family.steps.tolist() == [3, 3, 3, 0]
    assert family.ended.tolist() == [3, 3, 3, 1]
    before = family.beta.copy()
    family.run(engine)
    np.testing.assert_array_equal(family.beta, before), "what has ended is left alone"


def test_nan_ends(engine):
    family = Family()
    family.K[:] = np.nan
    family.run(engine)
    assert np.all(family.ended != 0)


BAD = {
    "a row beyond the matrix": {"row": np.full(4, 9)},
    "a negative row": {"row": np.full(4, -1)},
    "problems beyond the variables": {"offset": np.array([0, 5])},
    "problems in disorder": {"offset": np.array([0, 3, 2, 4]), "split": np.array([3, 3, 4])},
    "a split outside": {"split": np.array([5])},
    "too few bounds": {"lower": np.zeros(3)},
    "a matrix that is not square": {"K": np.ones((4, 3))},
    "a matrix of integers": {"K": np.ones((4, 4), int)},
    "short results": {"gap": np.zeros(0)},
    "flags of another type": {"active": np.ones(4)},
    "a negative epsilon": {"epsilon": -1.0},
    "a kink that is not finite": {"epsilon": np.inf},
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused(native, case):
    family = Family(whole=True, n=4)
    for name, value in BAD[case].items():
        setattr(family, name, value)
    with pytest.raises((ValueError, TypeError)):
        family.run(native)


@pytest.mark.skipif(not backend.is_native(), reason="the compiled module is what stores the entries of each problem")
@pytest.mark.parametrize("isa", backend.engine().loops.instruction_sets())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_give_each_problem_the_entries_of_the_array(isa, dtype, monkeypatch):
    from mercer.gram import KernelOperator
    from mercer.kernels import Gaussian

    monkeypatch.setenv("MERCER_ISA", isa)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 4))
    K = KernelOperator(Gaussian(gamma=0.3), X, dtype=dtype)
    # Two runs share the first 30 rows, a third problem has others from there on; three runs, one, and one row.
    parts = [
        np.r_[10:40, 80:130],
        np.r_[10:40, 41:60],
        np.r_[10:20, 80:130],
        np.r_[0:9, 30:50, 90:140],
        np.arange(150),
        [5],
    ]
    array, tiles, other = (Family(dtype, seed=2, parts=[np.array(one) for one in parts]) for _ in range(3))
    array.K = other.K = K.toarray()
    tiles.K = K.entries()
    array.run(backend.engine().loops, isa)
    other.run(reference)
    tiles.run(backend.engine().loops, isa, work=2000)
    while np.any(tiles.ended == 0):  # a little at a time: the entries are made again
        tiles.run(backend.engine().loops, isa, work=2000)
    np.testing.assert_allclose(tiles.exact_with(array.K), array.exact()[1], rtol=1e-5)
    np.testing.assert_allclose(other.exact()[1], array.exact()[1], rtol=1e-5)
    assert np.all(tiles.gap <= 1e-6)
    assert np.all(tiles.ended == 1)


def test_a_plan_that_is_not_square_is_refused():
    if not backend.is_native():
        pytest.skip("the reference trusts its caller")
    from mercer.gram import KernelOperator
    from mercer.kernels import Gaussian

    family = Family()
    family.K = KernelOperator(Gaussian(gamma=0.3), np.zeros((150, 2)), np.zeros((149, 2))).entries()
    with pytest.raises(ValueError, match="square"):
        family.run(backend.engine().loops)
