"""Entries in 16 bits: the compiled module against its reference, and both against the matrix."""

import numpy as np
import pytest

from mercer.engine import reference
from mercer.engine.opcodes import QUANTISED_ROWS as BLOCK

SIZES = [
    (1, 1),
    (2, 2),
    (9, 9),
    (BLOCK - 1, BLOCK - 1),
    (BLOCK, BLOCK),
    (BLOCK, BLOCK + 1),
    (BLOCK, BLOCK + 333),
]


def size(h, w):
    return -(-h // 8) * 8 * (-(-w // 16) * 16)


def block(h, w, seed=0):
    """A block of a symmetric matrix from its diagonal on, with a diagonal far from the rest, and its seeds."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((h, w)).astype(np.float32)
    x[:, :h] = np.triu(x[:, :h]) + np.triu(x[:, :h], 1).T
    x[np.arange(h), np.arange(h)] = 100.0
    return x, rng.integers(0, 1 << 32, w, np.uint32)


def entries(q, h, w):
    """Strips of 8 rows, groups of 16 columns, written out one by one."""
    out, groups = np.zeros((h, w), int), -(-w // 16)
    for i in range(h):
        for j in range(w):
            out[i, j] = q[((i // 8 * groups + j // 16) * 8 + i % 8) * 16 + j % 16]
    return out


@pytest.mark.parametrize(("h", "w"), SIZES)
def test_entries_are_within_a_step_and_symmetric(engine, isa, h, w):
    x, seeds = block(h, w)
    out = np.full(size(h, w), 7, np.int16)
    centre, step = engine.quantise(x, seeds, out, isa)
    q = entries(out, h, w)
    on = np.arange(h)
    assert np.all(q[on, on] == 0)
    assert np.array_equal(q[:, :h], q[:, :h].T)
    assert np.count_nonzero(out) <= h * w, "what lies beyond the matrix is not zero"
    x[on, on] = centre
    assert np.abs(centre + step * q - x).max() <= 1.001 * step


@pytest.mark.parametrize(("h", "w"), SIZES)
def test_rounds_as_the_reference_does(native, isa, h, w):
    x, seeds = block(h, w, 1)
    ours, theirs = np.zeros(size(h, w), np.int16), np.zeros(size(h, w), np.int16)
    assert native.quantise(x, seeds, ours, isa) == pytest.approx(reference.quantise(x, seeds, theirs), rel=1e-12)
    apart = np.abs(ours.astype(int) - theirs)
    assert apart.max(initial=0) <= 1  # where a fused multiply-add falls on the other side of a whole number
    assert np.mean(apart) < 1e-3


def test_rounding_has_no_bias_where_all_entries_are_the_same(engine, isa):
    x = np.full((BLOCK, 4 * BLOCK), 0.3, np.float32)
    x[0, 1], x[1, 0], x[0, 2], x[2, 0] = 0.0, 0.0, 1.0, 1.0
    seeds = np.random.default_rng(2).integers(0, 1 << 32, 4 * BLOCK, np.uint32)
    out = np.zeros(size(*x.shape), np.int16)
    centre, step = engine.quantise(x, seeds, out, isa)
    errors = (centre + step * entries(out, *x.shape) - x)[3:, BLOCK:] / step
    assert abs(errors.mean()) < 5 / np.sqrt(errors.size)
    # Independent: a rectangle of such errors has a norm of at most about (√rows + √columns)/2.
    assert np.linalg.norm(errors, 2) < 0.6 * (np.sqrt(errors.shape[0]) + np.sqrt(errors.shape[1]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 1), (5, 300), (190, 207)])
def test_what_is_not_finite_is_told(engine, isa, bad, place):
    x, seeds = block(BLOCK, 400)
    x[place] = bad
    centre, step = engine.quantise(x, seeds, np.zeros(size(*x.shape), np.int16), isa)
    assert np.isnan(centre)
    assert np.isnan(step)


def test_a_constant_block_has_no_step(engine, isa):
    x, seeds = np.full((3, 3), 2.5, np.float32), np.arange(3, dtype=np.uint32)
    assert engine.quantise(x, seeds, np.zeros(size(3, 3), np.int16), isa) == (2.5, 0.0)


def whole(n, seed=0):
    """Random entries, where each block begins, and its step; and the matrix that they are."""
    rng = np.random.default_rng(seed)
    begin = np.arange(0, n, BLOCK)
    start, parts, A = [0], [], np.zeros((n, n))
    step = rng.uniform(0.5, 2.0, len(begin)) * 1e-4
    for b, i0 in enumerate(begin):
        h, w = min(BLOCK, n - i0), n - i0
        q = rng.integers(-32767, 32768, (h, w))
        q[:, :h] = np.triu(q[:, :h]) + np.triu(q[:, :h], 1).T
        padded = np.zeros((-(-h // 8) * 8, -(-w // 16) * 16), np.int16)
        padded[:h, :w] = q
        parts.append(
            np.concatenate([s.reshape(8, -1, 16).swapaxes(0, 1).ravel() for s in np.split(padded, len(padded) // 8)])
        )
        start.append(start[-1] + parts[-1].size)
        A[i0 : i0 + h, i0:] = step[b] * q
        A[i0:, i0 : i0 + h] = step[b] * q.T
    return np.concatenate(parts), np.array(start, np.int64), step, A


@pytest.mark.parametrize("n", [1, 8, 100, BLOCK, BLOCK + 1, 2 * BLOCK + 45, 1500])
@pytest.mark.parametrize("r", [1, 3])
def test_products(engine, isa, n, r):
    q, start, step, A = whole(n)
    v = np.random.default_rng(1).standard_normal((n, r)).astype(np.float32)
    out = np.ones((n, r))
    blocks = len(step)
    engine.quantised_product(entries=q, start=start, step=step, first=0, last=blocks // 2, v=v, out=out, isa=isa)
    engine.quantised_product(entries=q, start=start, step=step, first=blocks // 2, last=blocks, v=v, out=out, isa=isa)
    np.testing.assert_allclose(out, 1 + A @ v, rtol=0, atol=3e-6 * np.sqrt(n) * np.abs(A).max() + 1e-12)


def test_the_entries_of_some_blocks_are_enough_for_them(engine, isa):
    q, start, step, A = whole(2 * BLOCK + 45)
    v, out = np.eye(len(A), 3, dtype=np.float32), np.zeros((len(A), 3))
    for b in range(len(step)):
        own = {"entries": q[start[b] : start[b + 1]], "start": start - start[b], "step": step}
        engine.quantised_product(**own, first=b, last=b + 1, v=v, out=out, isa=isa)
    np.testing.assert_allclose(out, A[:, :3], rtol=0, atol=1e-6 * np.abs(A).max())


def test_bad_arguments_are_refused(native, isa):
    x, seeds = block(9, 9)
    out = np.zeros(size(9, 9), np.int16)
    for arguments in [(x[:, :8].copy(), seeds[:8], out), (x, seeds[:8], out), (x, seeds, out[:-1].copy())]:
        with pytest.raises(ValueError, match=r"block|seed|output"):
            native.quantise(*arguments, isa)
    with pytest.raises(ValueError, match="square"):
        native.quantise(np.zeros((5, 9), np.float32), seeds, np.zeros(size(5, 9), np.int16), isa)
    q, start, step, _ = whole(300)
    v, sums = np.zeros((300, 1), np.float32), np.zeros((300, 1))
    good = {"entries": q, "start": start, "step": step, "first": 0, "last": 2, "v": v, "out": sums}
    for change in [
        {"start": start[:-1].copy()},
        {"start": start + 1},
        {"step": step[:1].copy()},
        {"first": -1},
        {"last": 3},
        {"entries": q[:-1].copy()},
    ]:
        with pytest.raises(ValueError, match=r"block|range"):
            native.quantised_product(**good | change, isa=isa)
