"""BLAS on one thread where its calls alternate with the engine's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController

from mercer import (
    GaussianProcessRegressor,
    KernelCCA,
    KernelDiscriminantAnalysis,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    check_kernel,
    repair_kernel,
)
from mercer.engine import processors
from mercer.engine.backend import engine, fixed_threads, is_native, one_blas_thread, spare_threads
from mercer.factorizations import RidgeSpectrum
from mercer.factorizations.preconditioner import SpectralInverse
from mercer.kernels import Gaussian
from mercer.operators import Dense
from mercer.planning.costs import WORTH_WAKING
from mercer.select import cross_validate_kernel_pca
from mercer.select.decoders import noise_variance
from mercer.solvers import Cholesky, CholeskyFactor, LinearSystem, solve
from mercer.validity.spectrum import spectrum_of

RNG = np.random.default_rng(0)
X, Y, F = (RNG.standard_normal((60, columns)) for columns in (4, 2, 30))
K = Gaussian(0.3)(X)
FEW_ROWS: dict[str, Callable[[], object]] = {
    "ridge": lambda: KernelRidgeCV("gaussian", [0.01, 0.1, 1.0]).fit(X, Y),
    "components": lambda: KernelPCA(3, solver="dense").fit(X),
    "correlations": lambda: KernelCCA(n_components=2, solver="dense").fit(X, Y),
    "discriminant": lambda: KernelDiscriminantAnalysis(solver="eigen").fit(X, Y[:, 0] > 0),
    "landmarks": lambda: Nystroem(n_components=20).fit(X),
    "repair": lambda: repair_kernel("sigmoid(gamma=1.0, coef0=-1.0)", X),
    "components on landmarks": lambda: KernelPCA(3, solver="nystroem", n_landmarks=30).fit(X),
    "correlations on landmarks": lambda: KernelCCA(n_components=2, solver="nystroem", n_landmarks=30).fit(X, Y),
    "components of folds": lambda: cross_validate_kernel_pca(X, ["gaussian"], [2], folds=3),
    "noise of rows": lambda: noise_variance(F),
    "samples of a process": lambda: GaussianProcessRegressor(Gaussian(0.3), optimize=False).fit(X, Y).sample_y(X),
    "ridge on features": lambda: RidgeSpectrum.of_factor(F.copy()),
    "preconditioner": lambda: SpectralInverse.of(F),
    "spectrum": lambda: spectrum_of(Dense(K, symmetric=True)),
    "witness": lambda: check_kernel("precomputed", K - np.eye(60)),
}
"""What decomposes a matrix of few rows by LAPACK."""


def threads() -> list[int]:
    """Of each BLAS in this process."""
    return [one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info()]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(processors, "chosen", lambda: False)
    monkeypatch.setattr(processors, "free", lambda: 2)
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if not threads() or min(threads()) < 2:
            pytest.skip("this BLAS has no threads of its own to set")
        yield


def test_there_is_one_thread_inside_and_as_many_as_before_outside() -> None:
    with one_blas_thread():
        assert set(threads()) == {1}
        with one_blas_thread(WORTH_WAKING / 2):
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_large_calls_keep_their_threads() -> None:
    with one_blas_thread(WORTH_WAKING):
        assert set(threads()) == {2}


def test_an_error_inside_sets_the_threads_back() -> None:
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert set(threads()) == {2}


def test_sections_of_two_threads_that_overlap_leave_the_threads_as_they_were() -> None:
    """The second one finds one thread: if it set back what it found, one would stay for good."""
    inside, leave = threading.Event(), threading.Event()

    def longer() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(60)

    other = threading.Thread(target=longer)
    with one_blas_thread():
        other.start()
        assert inside.wait(60)
    leave.set()
    other.join(60)
    assert set(threads()) == {2}
    with one_blas_thread():
        assert set(threads()) == {1}


def test_the_least_number_of_all_threads_counts_until_the_last_section_ends() -> None:
    """A long section of a second thread within one that leaves two threads, and beyond its end."""
    inside, leave = threading.Event(), threading.Event()

    def longer() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(20)

    other = threading.Thread(target=longer)
    with one_blas_thread(WORTH_WAKING):
        assert set(threads()) == {2}
        other.start()
        assert inside.wait(20)
        assert set(threads()) == {1}
    assert set(threads()) == {1}
    leave.set()
    other.join()
    assert set(threads()) == {2}


def test_of_large_calls_and_stages_others_leave_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "free", lambda: 1)
    for section in (spare_threads(), one_blas_thread(WORTH_WAKING)):
        with section:
            assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_a_section_within_another_finds_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "free", lambda: 1)
    with spare_threads():
        assert set(threads()) == {1}
        monkeypatch.setattr(processors, "free", lambda: 2)
        with spare_threads():
            assert set(threads()) == {2}
        assert set(threads()) == {2}


def test_a_number_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "free", lambda: 1)
    with fixed_threads(2), spare_threads():
        assert set(threads()) == {2}
    with spare_threads():
        assert set(threads()) == {1}
    monkeypatch.setattr(processors, "chosen", lambda: True)
    with spare_threads():
        assert set(threads()) == {2}


def test_a_fixed_number_is_the_engines_too() -> None:
    before = engine().threads()
    with fixed_threads(3):
        assert engine().threads() == (3 if is_native() else 1)
    assert engine().threads() == before


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert not processors.chosen()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert processors.chosen()


def test_a_fit_asks_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    substituted = CholeskyFactor._substituted

    def watched(self: CholeskyFactor, X: Any) -> Any:
        seen.append(set(threads()))
        return substituted(self, X)

    monkeypatch.setattr(CholeskyFactor, "_substituted", watched)
    monkeypatch.setattr("mercer.engine.backend.WORTH_WAKING", 1.0)
    rows = np.random.default_rng(0).standard_normal((50, 3))
    for free in (1, 2):
        monkeypatch.setattr(processors, "free", lambda free=free: free)
        seen.clear()
        KernelRidge(Gaussian(0.5)).fit(rows, rows[:, 0])
        assert seen
        assert all(one == {free} for one in seen)
    assert set(threads()) == {2}


def test_a_fit_leaves_the_threads_as_they_were() -> None:
    rows = np.random.default_rng(0).standard_normal((1500, 3))
    KernelRidge(Gaussian(0.5), alpha=1.0, solver="cg").fit(rows, rows[:, 0])
    assert set(threads()) == {2}


def test_conjugate_gradients_of_few_columns_refine_on_one_thread_and_of_many_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What refines a factor is a product by the engine and a substitution, whose size says which."""
    monkeypatch.setattr("mercer.engine.backend.WORTH_WAKING", 2.0 * 50**2 * 8)
    substituted = CholeskyFactor._substituted
    products: list[set[int]] = []
    substitutions: list[set[int]] = []

    def watched(self: CholeskyFactor, X: Any) -> Any:
        substitutions.append(set(threads()))
        return substituted(self, X)

    class Watched(Dense):
        def _matmat(self, V: Any) -> Any:
            products.append(set(threads()))
            return super()._matmat(V)

    monkeypatch.setattr(CholeskyFactor, "_substituted", watched)
    A = np.random.default_rng(0).standard_normal((50, 60))
    for columns, expected in ((7, {1}), (8, {2})):
        products.clear()
        substitutions.clear()
        solve(Cholesky(), LinearSystem(Watched(A @ A.T, symmetric=True), A[:, :columns], 1.0))
        assert products
        assert len(substitutions) > 1  # of the start, and of a step
        assert all(seen == expected for seen in [*products, *substitutions])


@pytest.mark.parametrize("what", FEW_ROWS)
def test_decompositions_of_few_rows_take_one_thread(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread would wait for the others at each of the many steps: with two it takes longer than with one."""
    at_work: list[set[int]] = []

    def spied(decompose: Callable[..., Any]) -> Callable[..., Any]:
        def noted(A: Any, *rest: Any, **options: Any) -> Any:
            at_work.extend([set(threads())] * (min(A.shape[-2:]) >= 20))
            return decompose(A, *rest, **options)

        return noted

    homes = [np.linalg, scipy.linalg, *(one for name, one in sys.modules.items() if name.startswith("mercer."))]
    for home in homes:
        for name in ("eigh", "eigvalsh", "svd"):
            if (decompose := vars(home).get(name)) is not None:
                monkeypatch.setattr(home, name, spied(decompose))
    FEW_ROWS[what]()
    assert at_work
    assert all(one == {1} for one in at_work)
    assert set(threads()) == {2}
