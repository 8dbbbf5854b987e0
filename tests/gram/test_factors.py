"""Sparse factors of kernels that count: products, rows and blocks by them are those of the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import KernelOperator, KernelPCA, KernelRidge
from mercer.kernels import AllSubstrings, Constant, Function, GappedKmer, Mismatch, Spectrum
from mercer.kernels.sequences import counts
from mercer.ways.regularised import RegularisedSolve

ROOM = 1e8
SIGNED = Mismatch(4, 2, alphabet="ACGT")
"""A kernel that subtracts some counts."""
KERNELS = [
    Spectrum(3),
    Spectrum(1, unit="word"),
    Spectrum(2, both_strands=True),
    GappedKmer(5, 2),
    Mismatch(3, 1),
    SIGNED,
    Spectrum(2).normalized() + 0.5 * Spectrum(4),
    (Spectrum(2) + Constant(0.3)).normalized() + Spectrum(1),
]


def sequences(rng, n, low=0, high=30):
    return ["".join(rng.choice(list("ACGT"), rng.integers(low, high))) for _ in range(n)]


def operators(kernel, rng):
    """A symmetric one and one of two sets of sequences, some of them empty or shorter than a window."""
    X, Z = sequences(rng, 40), sequences(rng, 23)
    return KernelOperator(kernel, X), KernelOperator(kernel.resolve(X), X, Z)


def counting(monkeypatch):
    """How often windows were sorted."""
    calls, original = [], counts.count
    monkeypatch.setattr(counts, "count", lambda *a, **o: calls.append(1) or original(*a, **o))
    monkeypatch.setattr("mercer.kernels.sequences.comparing.is_less_work", lambda *_: False)
    return calls


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_they_are_the_kernel(kernel, rng, monkeypatch):
    calls = counting(monkeypatch)
    for K in operators(kernel, rng):
        (n, m), exact = K.shape, np.asarray(K.toarray())
        tolerance = 1e-14 * np.abs(exact).max()
        v, rows, columns = rng.standard_normal((m, 3)), rng.integers(0, n, 5), rng.permutation(m)[:4]
        assert K.keep_factors(ROOM)
        assert K.copies == K._factors.nbytes > 0
        calls.clear()
        np.testing.assert_allclose(K @ v, exact @ v, atol=64 * tolerance)
        np.testing.assert_allclose(K.T @ np.ones(n), exact.sum(axis=0), atol=64 * tolerance) if K.symmetric else None
        np.testing.assert_allclose(K.rows(rows), exact[rows], atol=tolerance)
        np.testing.assert_allclose(K.rows(slice(2, 9)), exact[2:9], atol=tolerance)
        np.testing.assert_allclose(K.block(rows, columns), exact[np.ix_(rows, columns)], atol=tolerance)
        np.testing.assert_allclose(K._rows_times(rows, v), exact[rows] @ v, atol=64 * tolerance)
        narrow = K.astype(np.float32)
        assert narrow.rows([0]).dtype == np.float32 == (narrow @ v.astype(np.float32)).dtype
        assert not calls
        assert (K._factors.A is K._factors.B) == (K.symmetric and kernel != SIGNED)


def test_many_vectors_are_taken_some_at_a_time(rng, monkeypatch):
    K, _ = operators(Spectrum(3), rng)
    V, exact = rng.standard_normal((40, 9)), K.toarray()
    assert K.keep_factors(ROOM)
    monkeypatch.setattr("mercer.kernels.factors.TABLE", 2 * K._factors.B.shape[1])
    np.testing.assert_allclose(K @ V, exact @ V, atol=1e-12 * exact.max())
    assert (K @ V[:, :0]).shape == (40, 0)


def test_there_are_none_without_room_or_features(rng, monkeypatch):
    counting(monkeypatch)
    K, _ = operators(Spectrum(3), rng)
    exact = K.toarray()
    windows = sum(max(len(x) - 2, 0) for x in K.X)
    assert not K.keep_factors(4 * (24 * windows - 1))
    np.testing.assert_array_equal(K @ np.eye(40), exact)
    assert K.copies == 0
    assert K.keep_factors(4 * 24 * windows)
    assert K.copies <= 12 * windows + 4 * 41
    for kernel in (AllSubstrings(), Spectrum(2) * Spectrum(1), Spectrum(2) + AllSubstrings(), "gaussian(gamma=1.0)"):
        X = rng.standard_normal((5, 2)) if isinstance(kernel, str) else K.X
        assert not KernelOperator(kernel, X).keep_factors(ROOM)
    monkeypatch.setattr("mercer.kernels.sequences.comparing.is_less_work", lambda *_: True)
    assert not KernelOperator(Spectrum(3), K.X).keep_factors(ROOM)


def test_one_column_of_a_table(rng, monkeypatch):
    counting(monkeypatch)  # with lanes for 64 windows at once comparing them is less work
    table = np.array([[x, k] for k, x in enumerate(sequences(rng, 30))], dtype=object)
    K = KernelOperator(Spectrum(2).normalized().on([0]), table)
    exact = K.toarray()
    assert K.keep_factors(ROOM)
    np.testing.assert_allclose(K @ np.eye(30), exact, atol=1e-14)


def test_steps_sort_no_windows(rng, monkeypatch):
    X, calls = sequences(rng, 600, 20, 30), counting(monkeypatch)
    y = np.array([x.count("A") - x.count("GT") for x in X], float)
    kernel, took = Spectrum(2).normalized(), []
    for alpha in (1.0, 1e-3):
        calls.clear()
        model = KernelRidge(kernel, alpha=alpha, solver="cg").fit(X, y)
        took.append((len(calls), model.report_.steps))
        assert "by factors of K" in model.report_.method
    assert took[1][1] != took[0][1]
    assert took[1][0] == took[0][0]
    direct = KernelRidge(kernel, alpha=1e-3, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(model.predict(X[:9]), direct.predict(X[:9]), atol=1e-7 * np.abs(y).max())


def test_components_by_factors_are_those_of_the_matrix(rng):
    X = sequences(rng, 700, 20, 30)
    kernel = Spectrum(3).normalized()
    found, exact = KernelPCA(4, kernel=kernel).fit(X), KernelPCA(4, kernel=kernel, solver="dense").fit(X)
    assert "matrix-free" in found.report_.method
    np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-5)


@pytest.mark.parametrize(("solver", "components"), [("nystroem", 4), ("dense", 4), ("auto", None)])
def test_factors_are_kept_for_products_alone(solver, components, rng, monkeypatch):
    """The plans of other ways do not count them."""
    counting(monkeypatch)
    held, original = [], KernelOperator.drop_factors
    monkeypatch.setattr(KernelOperator, "drop_factors", lambda K: (original(K), held.append(K)))
    model = KernelPCA(components, kernel=Spectrum(3).normalized(), solver=solver).fit(sequences(rng, 520, 10, 20))
    assert "Krylov" not in model.report_.method
    assert [K.has_factors for K in held] == [False]


def by_their_length(X, Z):
    return np.array([[float(len(x) == len(z)) for z in Z] for x in X])


@pytest.mark.parametrize(
    ("kernel", "fast"),
    [
        (AllSubstrings(), True),
        (0.5 * AllSubstrings().normalized(), True),
        (Spectrum(2).normalized(), False),
        (Spectrum(2) + AllSubstrings(), False),
        (Function(by_their_length), False),
    ],
    ids=repr,
)
def test_a_matrix_whose_products_take_as_long_as_its_entries_is_stored(kernel, fast, rng, monkeypatch):
    """Comparing all windows, for a kernel of counts, computes the matrix for each product."""
    monkeypatch.setattr("mercer.kernels.sequences.comparing.is_less_work", lambda *_: True)
    asked, original = [], RegularisedSolve._contest
    monkeypatch.setattr(RegularisedSolve, "_contest", lambda self: asked.append(1) or original(self))
    report = KernelRidge(kernel, alpha=1e-3).fit(sequences(rng, 600, 1, 9), np.arange(600.0)).report_
    assert report.method.startswith("Cholesky")
    assert bool(asked) == fast
