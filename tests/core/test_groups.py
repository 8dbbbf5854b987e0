"""Sums by group and nearest means: the engine gives what its reference defines, on every instruction set."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine import reference


def task(dtype, rows=90, width=37, count=200, places=5, weighted=True, seed=0):
    """Rows of a matrix, where each is added, its weight, and sums to begin with."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, width)).astype(dtype)
    row, place = rng.integers(0, rows, count), rng.integers(0, places, count)
    return matrix, row, place, rng.standard_normal(count) if weighted else None, rng.standard_normal((places, width))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "shape",
    [{}, {"width": 1}, {"width": 1500}, {"width": 700, "places": 400, "count": 900}, {"count": 0}, {"count": 1}],
    ids=str,
)
def test_rows_are_added(native, isa, dtype, shape, weighted):
    matrix, row, place, weight, out = task(dtype, weighted=weighted, **shape)
    E = np.zeros((len(out), len(matrix)))
    np.add.at(E, (place, row), 1.0 if weight is None else weight)
    by_hand, other = out + E @ matrix.astype(np.float64), out.copy()
    reference.add_rows(matrix=matrix, row=row, place=place, weight=weight, out=other)
    native.add_rows(matrix=matrix, row=row, place=place, weight=weight, out=out, isa=isa)
    np.testing.assert_allclose(out, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, by_hand, rtol=1e-12, atol=1e-12)


def test_rows_of_weight_one_are_added_in_their_order_whatever_the_number_of_threads(native, isa, dtype):
    matrix, row, place, _, out = task(dtype, width=3000, count=500)
    expected = out.copy()
    for t, g in zip(row, place, strict=True):
        expected[g] += matrix[t].astype(np.float64)
    for threads in (1, 2, 3):
        sums = out.copy()
        with threadpool_limits(threads, user_api="openmp"):
            native.add_rows(matrix=matrix, row=row, place=place, weight=None, out=sums, isa=isa)
        np.testing.assert_array_equal(sums, expected)


BROKEN_ROWS = {
    "a row beyond": lambda a: a[1].__setitem__(3, 90),
    "a negative row": lambda a: a[1].__setitem__(3, -1),
    "a place beyond": lambda a: a[2].__setitem__(3, 5),
    "a negative place": lambda a: a[2].__setitem__(3, -1),
    "places": lambda a: a.__setitem__(2, a[2][:-1].copy()),
    "weights": lambda a: a.__setitem__(3, a[3][:-1].copy()),
    "sums": lambda a: a.__setitem__(4, a[4][:, :-1].copy()),
    "one dimension": lambda a: a.__setitem__(0, a[0][0].copy()),
    "integers": lambda a: a.__setitem__(0, a[0].astype(np.int64)),
}


@pytest.mark.parametrize("what", BROKEN_ROWS)
def test_rows_that_would_crash_are_refused(native, what):
    arguments = list(task(np.float64))
    BROKEN_ROWS[what](arguments)
    with pytest.raises(ValueError):
        native.add_rows(**by_name(ROWS, arguments))


def test_copies_are_refused(native):
    """What would be added to a copy would be lost."""
    matrix, row, place, weight, out = task(np.float64)
    for arguments in (
        (matrix, row, place, weight, np.asfortranarray(out)),
        (np.asfortranarray(matrix), row, place, weight, out),
        (matrix, row.astype(np.int32), place, weight, out),
        (matrix, row, place, weight, out.astype(np.float32)),
    ):
        with pytest.raises(TypeError):
            native.add_rows(**by_name(ROWS, arguments))


ROWS = ("matrix", "row", "place", "weight", "out")
MEANS = ("sums", "slope", "offset", "diagonal", "labels", "rounding", "own", "nearest", "left")


def by_name(names, arguments):
    return dict(zip(names, arguments, strict=True))


def means(rows=700, groups=5, seed=0, scale=1.0):
    """Sums, the scales and offsets of the means, the diagonal, labels, the rounding, and room for the results."""
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal((groups, rows)) * scale, -rng.random(groups), rng.random(groups), rng.random(rows),
        rng.integers(0, groups, rows), 1e-12, np.empty(rows), np.empty(rows, np.int64), np.empty(rows),
    ]  # fmt: skip


def found(engine, arguments, isa=""):
    results = [np.full_like(one, -7) for one in arguments[6:]]
    engine.nearest_means(**by_name(MEANS, [*arguments[:6], *results]), isa=isa)
    return results


@pytest.mark.parametrize("groups", [1, 2, 7, 300])
@pytest.mark.parametrize("rows", [1, 3, 255, 256, 257, 9000])
def test_nearest_means(native, isa, rows, groups):
    arguments = means(rows, groups)
    arguments[2][groups // 2 : groups // 2 + (groups > 1)] = np.inf  # an empty cluster
    sums, slope, offset, diagonal, labels = arguments[:5]
    D = np.maximum(sums * slope[:, None] + offset[:, None] + diagonal, 0.0)
    for engine in (reference, native):
        own, nearest, left = found(engine, arguments, isa)
        np.testing.assert_array_equal(nearest, (D.min(axis=0) + 1e-12 >= D).argmax(axis=0))
        np.testing.assert_allclose(own, D[labels, np.arange(rows)], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(left, D[nearest, np.arange(rows)], rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(own[nearest == labels], left[nearest == labels])


def test_of_means_within_rounding_the_first(engine, isa):
    arguments = means(400, 6)
    arguments[0][4] = arguments[0][2] = arguments[0][5]
    arguments[1][4] = arguments[1][2] = arguments[1][5]
    arguments[2][4], arguments[2][2] = arguments[2][5] - 1e-14, arguments[2][5] + 1e-14
    nearest = found(engine, arguments, isa)[1]
    assert np.any(nearest == 2)
    assert not np.any((nearest == 4) | (nearest == 5))


@pytest.mark.parametrize("where", [0, 2, 4])
def test_a_row_that_is_not_finite_goes_to_the_first_mean(engine, isa, where):
    arguments = means(300, 5)
    arguments[0][where, 17] = np.nan
    arguments[4][17] = where
    own, nearest, left = found(engine, arguments, isa)
    assert np.isnan(own[17])
    assert nearest[17] == 0
    assert np.isnan(left[17]) == (where == 0)
    assert np.isfinite(np.delete(own, 17)).all()


def test_the_same_nearest_means_for_any_number_of_threads(native):
    arguments, results = means(30_000, 9), []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="openmp"):
            results.append(found(native, arguments))
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


BROKEN_MEANS = {
    "a label beyond": lambda a: a[4].__setitem__(3, 5),
    "a negative label": lambda a: a[4].__setitem__(3, -1),
    "slopes": lambda a: a.__setitem__(1, a[1][:-1].copy()),
    "offsets": lambda a: a.__setitem__(2, a[2][:-1].copy()),
    "the diagonal": lambda a: a.__setitem__(3, a[3][:-1].copy()),
    "labels": lambda a: a.__setitem__(4, a[4][:-1].copy()),
    "no mean": lambda a: a.__setitem__(0, a[0][:0].copy()),
    "room": lambda a: a.__setitem__(6, a[6][:-1].copy()),
    "room for labels": lambda a: a.__setitem__(7, a[7][:-1].copy()),
}


@pytest.mark.parametrize("what", BROKEN_MEANS)
def test_means_that_would_crash_are_refused(native, what):
    arguments = means()
    BROKEN_MEANS[what](arguments)
    with pytest.raises(ValueError):
        native.nearest_means(**by_name(MEANS, arguments))
