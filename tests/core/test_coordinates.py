"""Dual coordinate descent: the engine takes the steps of its reference, on every instruction set."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine import backend, reference


class Family:
    """Three problems on one matrix of features, and the arrays that change."""

    def __init__(self, dtype=np.float64, width=37, epsilon=0.0, seed=0):
        rng = np.random.default_rng(seed)
        n, parts = 80, [np.arange(80), np.arange(0, 80, 3), np.arange(7, 60)]
        self.X = rng.standard_normal((n, width)).astype(dtype)
        self.X[5] = 0
        self.row = np.concatenate(parts)
        self.offset = np.concatenate([[0], np.cumsum([len(one) for one in parts])])
        v, p = len(self.row), len(parts)
        y = np.sign(self.X[self.row, 0] + 0.5 * rng.standard_normal(v))
        self.c = rng.standard_normal(v) if epsilon else y
        self.epsilon = epsilon
        self.lower = np.full(v, -0.3) if epsilon else np.minimum(0.3 * y, 0)
        self.upper = np.full(v, 0.3) if epsilon else np.maximum(0.3 * y, 0)
        self.square = np.sum(self.X.astype(np.float64) ** 2, axis=1)
        self.beta, self.w = np.zeros(v), np.zeros((p, width))
        self.order = np.concatenate([np.arange(len(one)) for one in parts])
        self.place = np.array([[len(one), 0, 0] for one in parts])
        self.level = np.array([[0.0, np.inf]] * p)
        self.random = np.array([1, 2, -3])
        self.ended = np.zeros(p, np.int64)

    def run(self, engine, work, tol=1e-8, isa=""):
        engine.coordinates(
            features=self.X, square=self.square, offset=self.offset, row=self.row, linear=self.c, lower=self.lower,
            upper=self.upper, epsilon=self.epsilon, beta=self.beta, w=self.w, order=self.order, place=self.place,
            level=self.level, random=self.random, tol=np.full(3, tol), work=work, ended=self.ended, isa=isa,
        )  # fmt: skip
        return self

    def changed(self):
        return self.beta, self.w, self.order, self.place, self.level, self.random, self.ended


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("width", [1, 37])
def test_the_steps_of_the_reference(native, isa, dtype, epsilon, width):
    found, expected = Family(dtype, width, epsilon), Family(dtype, width, epsilon)
    for _ in range(3):
        found.run(native, 150, isa=isa)
        expected.run(reference, 150)
        for ours, theirs in zip(found.changed(), expected.changed(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_end_is_the_optimum(engine, epsilon):
    one = Family(epsilon=epsilon).run(engine, 10**6, tol=1e-2 if engine is reference else 1e-10)
    near = 3e-2 if engine is reference else 1e-9  # the reference is slow; what violates is measured before its move
    assert np.all(one.ended == 1)
    for p in range(3):
        mine = slice(one.offset[p], one.offset[p + 1])
        X, beta = one.X[one.row[mine]], one.beta[mine]
        np.testing.assert_allclose(one.w[p], beta @ X, atol=1e-10)
        slope = X @ one.w[p] - one.c[mine]
        rise = slope + np.where(beta < 0, -epsilon, epsilon)
        fall = slope + np.where(beta > 0, epsilon, -epsilon)
        assert np.all(rise[beta < one.upper[mine]] >= -near)
        assert np.all(fall[beta > one.lower[mine]] <= near)


def test_the_same_bits_for_any_number_of_threads(native):
    results = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="openmp"):
            results.append(Family().run(native, 700).changed())
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


def test_one_call_or_many(native):
    whole, parts = Family().run(native, 400), Family()
    for _ in range(40):
        parts.run(native, 10)
    for first, second in zip(whole.changed(), parts.changed(), strict=True):
        np.testing.assert_array_equal(first, second)


BROKEN = {
    "a row": lambda f: f.row.__setitem__(3, 80),
    "a negative row": lambda f: f.row.__setitem__(3, -1),
    "offsets": lambda f: f.offset.__setitem__(1, 200),
    "the last offset": lambda f: f.offset.__setitem__(3, 5),
    "an order": lambda f: f.order.__setitem__(0, 1),
    "an order beyond": lambda f: f.order.__setitem__(0, 10**12),
    "a place": lambda f: f.place.__setitem__((0, 0), 81),
    "a visit": lambda f: f.place.__setitem__((0, 1), -1),
    "squares": lambda f: setattr(f, "square", f.square[:-1]),
    "w": lambda f: setattr(f, "w", f.w[:, :-1].copy()),
    "levels": lambda f: setattr(f, "level", f.level[:2].copy()),
    "ended": lambda f: setattr(f, "ended", f.ended[:2].copy()),
    "features": lambda f: setattr(f, "X", f.X[0].copy()),
    "epsilon": lambda f: setattr(f, "epsilon", -1.0),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_would_crash_is_refused(native, what):
    family = Family()
    BROKEN[what](family)
    with pytest.raises(ValueError):
        family.run(native, 100)


def test_nothing_to_do(engine):
    one = Family()
    one.run(engine, 0)
    assert not one.beta.any()
    assert backend.engine().threads() >= 1
