"""The loops over sequences against their references, and what they refuse."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from mercer.engine import reference


def by_name(loop, *arguments):
    """Arguments in the order of the reference, by the names that it gives them."""
    return dict(zip(inspect.signature(getattr(reference, loop)).parameters, arguments, strict=False))


def corpus(seed, count=12, alphabet=4, longest=15):
    rng = np.random.default_rng(seed)
    lengths = np.array([0, 1, *rng.integers(0, longest, count - 2)])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return rng.integers(0, alphabet, starts[-1]).astype(np.int32), starts


def counted(engine, symbols, starts, offsets, span, alphabet):
    size = len(symbols)
    arrays = [np.full(size + 1, -7, np.int64), *np.full((2, size), -7, np.int32), np.full(size, -7, np.int64)]
    shown = np.full(size, -7, np.int32)
    features, entries = engine.count_kmers(
        **by_name("count_kmers", symbols, starts, np.array(offsets, np.int64), span, alphabet, *arrays, shown)
    )
    start, rows, counts, first = arrays
    return start[: features + 1], rows[:entries], counts[:entries], first[:features], shown


@pytest.mark.parametrize(
    ("offsets", "span"), [((0,), 1), ((0, 1, 2), 3), ((0, 3), 4), ((), 2), ((2, 0), 3), (range(9), 9)]
)
@pytest.mark.parametrize("alphabet", [1, 3, 4, 1 << 20])
def test_kmers(native, offsets, span, alphabet):
    symbols, starts = corpus(0)
    symbols[5] = -1
    one = counted(native, symbols, starts, offsets, span, alphabet)
    two = counted(reference, symbols, starts, offsets, span, alphabet)
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def sparse(seed, n, features, by_rows):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (n, features)) * rng.integers(0, 2, (n, features))
    table = dense if by_rows else dense.T
    start = np.concatenate([[0], np.cumsum((table > 0).sum(axis=1))]).astype(np.int64)
    row, column = np.nonzero(table)
    return dense, (start, column.astype(np.int32), table[row, column].astype(np.int32))


def test_products(native):
    dense, x = sparse(0, 9, 30, True)
    other, z = sparse(1, 7, 30, False)
    out = np.ones((9, 7))
    native.add_products(**by_name("add_products", *x, *z, 2.0, False, 0, 5, out))
    native.add_products(**by_name("add_products", *x, *z, 2.0, False, 5, 9, out))
    np.testing.assert_array_equal(out, 1 + 2 * dense @ other.T)
    _, own = sparse(0, 9, 30, False)
    one, two = np.zeros((2, 9, 9))
    for engine, values in ((native, one), (reference, two)):
        engine.add_products(**by_name("add_products", *x, *own, -1.0, True, 0, 4, values))
        engine.add_products(**by_name("add_products", *x, *own, -1.0, True, 4, 9, values))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, -np.triu(dense @ dense.T))


def test_products_of_numbers(native):
    dense, (start, column, counts) = sparse(0, 40, 90, True)
    _, (by_feature, rows, values) = sparse(0, 40, 90, False)
    rng = np.random.default_rng(2)
    numbers = rng.normal(size=dense.shape)
    x = start, column, numbers[dense > 0]
    z = by_feature, rows, numbers.T[dense.T > 0]
    one, two = np.ones((2, 40, 40))
    for engine, values in ((native, one), (reference, two)):
        engine.add_products(**by_name("add_products", *x, *z, -0.5, False, 0, 17, values))
        engine.add_products(**by_name("add_products", *x, *z, -0.5, False, 17, 40, values))
    np.testing.assert_allclose(one, two, atol=1e-14)
    X = np.where(dense > 0, numbers, 0.0)
    np.testing.assert_allclose(one, 1 - 0.5 * X @ X.T, atol=1e-13)
    with pytest.raises(TypeError):  # one of counts, one of numbers
        native.add_products(**by_name("add_products", start, column, counts, *z, 1.0, False, 0, 40, one))


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("exact", [False, True])
def test_subsequences(native, isa, length, exact):
    (x, xs), (z, zs) = corpus(0), corpus(1, count=19)
    one, two = np.zeros((2, 12, 19))
    for engine, values, name in ((native, one, isa), (reference, two, "")):
        for i0, i1 in ((0, 7), (7, 12)):
            engine.subsequence_kernel(
                x=x, x_starts=xs, z=z, z_starts=zs, length=length, decay=0.6, triangle=False, i0=i0, i1=i1,
                out=values, isa=name, exact=exact,
            )  # fmt: skip
    np.testing.assert_allclose(one, two, rtol=1e-13)


def test_long_subsequences(native, isa):
    """Columns by blocks, of 96, with odd and even numbers of rows."""
    (x, xs), (z, zs) = corpus(3, count=5, longest=60), corpus(4, count=11, longest=300)
    z, zs = z[: zs[10] + 96], np.append(zs[:11], zs[10] + 96)  # exactly a block among them
    one, two = np.zeros((2, 5, 11))
    for length in (1, 2, 4, 8):
        native.subsequence_kernel(
            x=x, x_starts=xs, z=z, z_starts=zs, length=length, decay=0.9, triangle=False, i0=0, i1=5, out=one, isa=isa
        )
        reference.subsequence_kernel(
            x=x, x_starts=xs, z=z, z_starts=zs, length=length, decay=0.9, triangle=False, i0=0, i1=5, out=two, isa=""
        )
        np.testing.assert_allclose(one, two, rtol=1e-13)


def test_triangles(native, isa):
    x, xs = corpus(2, count=21)
    rows = np.random.default_rng(0).normal(size=(len(x) + 21, 2))
    starts = xs + np.arange(22)
    whole, half = np.zeros((2, 21, 21))
    native.subsequence_kernel(
        x=x, x_starts=xs, z=x, z_starts=xs, length=3, decay=0.5, triangle=False, i0=0, i1=21, out=whole, isa=isa
    )
    native.subsequence_kernel(
        x=x, x_starts=xs, z=x, z_starts=xs, length=3, decay=0.5, triangle=True, i0=0, i1=10, out=half, isa=isa
    )
    native.subsequence_kernel(
        x=x, x_starts=xs, z=x, z_starts=xs, length=3, decay=0.5, triangle=True, i0=10, i1=21, out=half, isa=isa
    )
    np.testing.assert_array_equal(np.triu(half), np.triu(whole))
    native.alignment_kernel(
        x=rows, x_starts=starts, z=rows, z_starts=starts, gamma=0.3, triangle=False, i0=0, i1=21, out=whole, isa=isa
    )
    native.alignment_kernel(
        x=rows, x_starts=starts, z=rows, z_starts=starts, gamma=0.3, triangle=True, i0=0, i1=10, out=half, isa=isa
    )
    native.alignment_kernel(
        x=rows, x_starts=starts, z=rows, z_starts=starts, gamma=0.3, triangle=True, i0=10, i1=21, out=half, isa=isa
    )
    np.testing.assert_array_equal(np.triu(half), np.triu(whole))


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
def test_alignments(native, isa, depth, gamma):
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 11))]).astype(np.int64)
    rows = rng.normal(size=(starts[-1], depth))
    one, two = np.zeros((2, 11, 11))
    for engine, values, name in ((native, one, isa), (reference, two, "")):
        engine.alignment_kernel(
            x=rows,
            x_starts=starts,
            z=rows,
            z_starts=starts,
            gamma=gamma,
            triangle=False,
            i0=0,
            i1=11,
            out=values,
            isa=name,
        )
    np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("decay", [0.4, 1.0])
def test_substrings(native, decay):
    (x, xs), (z, zs) = corpus(0, alphabet=2), corpus(1, count=19, alphabet=2, longest=40)
    one, two = np.zeros((2, 12, 19))
    for engine, values in ((native, one), (reference, two)):
        engine.substring_kernel(
            x=x, x_starts=xs, z=z, z_starts=zs, alphabet=2, decay=decay, triangle=False, j0=0, j1=7, out=values
        )
        engine.substring_kernel(
            x=x, x_starts=xs, z=z, z_starts=zs, alphabet=2, decay=decay, triangle=False, j0=7, j1=19, out=values
        )
    np.testing.assert_allclose(one, two, rtol=1e-13)
    v = np.random.default_rng(0).normal(size=(19, 3))
    folded, plain = np.zeros((2, 12, 3))
    native.substring_product(x=x, x_starts=xs, z=z, z_starts=zs, alphabet=2, decay=decay, v=v, out=folded)
    reference.substring_product(x=x, x_starts=xs, z=z, z_starts=zs, alphabet=2, decay=decay, v=v, out=plain)
    np.testing.assert_allclose(folded, plain, atol=1e-9)


X, STARTS = corpus(0)
SIZE = len(X)
OUT = np.zeros((12, 12))
LONG, INT = np.zeros(SIZE + 1, np.int64), np.zeros(SIZE, np.int32)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("count_kmers", (X, STARTS[2:], LONG[:1], 1, 4, LONG, INT, INT, LONG)),
        ("count_kmers", (X, STARTS[::-1].copy(), LONG[:1], 1, 4, LONG, INT, INT, LONG)),
        ("count_kmers", (X, STARTS, LONG[:1] + 3, 3, 4, LONG, INT, INT, LONG)),
        ("count_kmers", (X, STARTS, LONG[:1], 0, 4, LONG, INT, INT, LONG)),
        ("count_kmers", (X, STARTS, LONG[:1], 1, 4, LONG[:3], INT, INT, LONG)),
        ("count_kmers", (X, STARTS, LONG[:1], 1, 4, LONG, INT, INT, LONG, INT[:2])),
        ("subsequence_kernel", (X, STARTS, X, STARTS, 9, 0.5, False, 0, 12, OUT)),
        ("subsequence_kernel", (X, STARTS, X, STARTS, 2, 0.5, False, 0, 13, OUT)),
        ("subsequence_kernel", (X, STARTS, X, STARTS, 2, 0.5, False, 0, 12, OUT[:3])),
        ("subsequence_kernel", (X - 9, STARTS, X, STARTS, 2, 0.5, False, 0, 12, OUT)),
        ("substring_kernel", (X, STARTS, X, STARTS, 2, 0.5, False, 0, 12, OUT)),
        ("substring_kernel", (X, STARTS, X, STARTS, 4, 0.5, False, 5, 13, OUT)),
        ("substring_product", (X, STARTS, X, STARTS, 4, 0.5, OUT[:3], OUT)),
        ("alignment_kernel", (np.zeros((SIZE, 2)), STARTS, np.zeros((SIZE, 1)), STARTS, 1.0, False, 0, 12, OUT)),
        ("add_products", (STARTS, X - 1, X, STARTS, X, X, 1.0, False, 0, 12, OUT)),
        ("add_products", (STARTS, X, X, STARTS, X + 12, X, 1.0, False, 0, 12, OUT)),
    ],
)  # fmt: skip
def test_nothing_crashes(native, name, arguments):
    with pytest.raises(ValueError):
        getattr(native, name)(**by_name(name, *arguments))


def test_same_bits_again(native, isa):
    x, xs = corpus(3, count=60, longest=60)
    one, two = np.zeros((2, 60, 60))
    for out in (one, two):
        native.subsequence_kernel(
            x=x, x_starts=xs, z=x, z_starts=xs, length=4, decay=0.5, triangle=True, i0=0, i1=60, out=out, isa=isa
        )
    np.testing.assert_array_equal(one, two)


def compared(engine, x, z, worth, alphabet, which, isa="", step=7):
    """The sums, some symbols of x at a time."""
    columns = 1 if which == 2 else len(z[1]) - 1
    out = np.zeros((len(x[1]) - 1, columns))
    sums = engine.WindowComparison(**by_name("WindowComparison", *x, *z, worth, alphabet, which, isa))
    for start in range(0, len(x[0]), step):
        sums.add(start, min(start + step, len(x[0])), out)
    return out


@pytest.mark.parametrize(
    ("span", "least", "most"),
    [
        (1, 0, 1),
        (3, 1, 255),
        (5, 5, 256),
        (16, 0, 60000),
        (16, 1, 65535),
        (20, 0, 65536),
        (31, 0, 1 << 40),
        (9, 2, 1 << 53),
        (120, 100, 7),  # longer than the space between sequences, some of which have no window
    ],
)
@pytest.mark.parametrize("alphabet", [1, 2, 253, 254, 5000])
def test_comparisons(native, span, least, most, alphabet):
    """Of one byte and several, one table and two, symbols that bytes hold and others; runs longer than a piece."""
    rng = np.random.default_rng(span)
    worth = np.where(np.arange(span + 1) < least, 0, rng.integers(0, most, span + 1, endpoint=True))
    worth[-1] = most
    x, z = corpus(1, 7, alphabet, 300), corpus(2, 7, alphabet, 90)
    for symbols, _ in (x, z):
        symbols[rng.integers(0, len(symbols), 5)] = -1
        symbols[rng.integers(0, len(symbols), 2)] = alphabet
    z[0][:60] = x[0][40:100]  # so that something agrees
    for which, other in ((0, z), (1, x), (2, x)):
        theirs = compared(reference, x, other, worth, alphabet, which)
        for isa in native.instruction_sets():
            mine = compared(native, x, other, worth, alphabet, which, isa)
            np.testing.assert_allclose(mine, theirs, rtol=0 if mine.max() < 1 << 53 else 1e-14, err_msg=isa)
    for isa in native.instruction_sets():
        whole, pieces = (compared(native, x, z, worth, alphabet, 0, isa, step) for step in (10**6, 7))
        np.testing.assert_allclose(whole, pieces, rtol=0 if whole.max() < 1 << 53 else 1e-14, err_msg=isa)


def test_bad_comparisons(native):
    x, worth = corpus(0), np.arange(4)
    for bad in (
        (*x, *x, np.arange(1), 4, 0), (*x, *x, np.ones(200, np.int64), 4, 0), (*x, *x, -worth, 4, 0),
        (*x, *x, worth, 0, 0),
        (*x, *x, worth, 4, 3), (*x, *corpus(0, 5), worth, 4, 1), (x[0], x[1][:-1], *x, worth, 4, 0),
        (*x, *x, np.ones(40, np.int64), 4, 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"windows|worth|table|fit|whole"):
            native.WindowComparison(**by_name("WindowComparison", *bad))
    sums, n = native.WindowComparison(**by_name("WindowComparison", *x, *x, worth, 4, 0)), len(x[1]) - 1
    for start, end, shape in ((3, 2, (n, n)), (0, 10**6, (n, n)), (-1, 2, (n, n)), (0, 1, (n, 1))):
        with pytest.raises(ValueError, match=r"range|fit"):
            sums.add(start, end, np.zeros(shape))
