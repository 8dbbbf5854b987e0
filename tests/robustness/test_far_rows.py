"""Rows far from the origin: differences of kernel values stay right, or a warning says that they are lost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer import KernelOperator
from mercer.gram import lost_when_centred
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.select import choose_n_clusters

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 80)
# Multiples of 2⁻¹⁰ below 2⁷: float32 holds them after they are moved by 8192, and float64 by 10¹⁰.
X = np.round((RNG.standard_normal((80, 4)) + 3.0 * LABELS[:, None]) * 1024) / 1024
NEW = X[::7] + 0.25
Y = X @ [1.0, -2.0, 0.5, 0.0]

STATISTICS = {
    "mmd_test, unbiased": lambda rows: mercer.mmd_test(rows[:40], rows[40:] + 1, "linear", n_permutations=99),
    "mmd_test, biased": lambda rows: mercer.mmd_test(
        rows[:40], rows[40:] + 1, "linear", estimator="biased", n_permutations=99
    ),
    "mmd_test, linear": lambda rows: mercer.mmd_test(
        rows[:40], rows[40:] + 1, "linear", estimator="linear", n_permutations=99
    ),
    "hsic_test, unbiased": lambda rows: mercer.hsic_test(rows, Y, "linear", "linear", n_permutations=99),
    "hsic_test, biased": lambda rows: mercer.hsic_test(
        rows, Y, "linear", "linear", estimator="biased", n_permutations=99
    ),
}
FITS = {
    "KernelPCA": lambda rows, kernel: mercer.KernelPCA(2, kernel=kernel).fit(rows),
    "KernelPCA of landmarks": lambda rows, kernel: mercer.KernelPCA(
        2, kernel=kernel, solver="nystroem", n_landmarks=20
    ).fit(rows),
    "KernelKMeans": lambda rows, kernel: mercer.KernelKMeans(2, kernel=kernel).fit(rows),
    "KernelPLS": lambda rows, kernel: mercer.KernelPLS(2, kernel=kernel).fit(rows, Y),
    "KernelCCA": lambda rows, kernel: mercer.KernelCCA(1, kernel=kernel, kernel_y="linear").fit(rows, Y),
    "KernelCCA, second view": lambda rows, kernel: mercer.KernelCCA(1, kernel="linear", kernel_y=kernel).fit(
        Y[:, None], rows
    ),
    "KernelDiscriminantAnalysis": lambda rows, kernel: mercer.KernelDiscriminantAnalysis(kernel=kernel).fit(
        rows, LABELS
    ),
    "choose_n_clusters": lambda rows, kernel: choose_n_clusters(rows, kernel, (2, 3)),
    "herd": lambda rows, kernel: mercer.herd(rows, 5, kernel),
    "thin": lambda rows, kernel: mercer.thin(rows, 5, kernel),
    "hsic_test": lambda rows, kernel: mercer.hsic_test(rows, Y, kernel, "linear", n_permutations=9),
    "mmd_test": lambda rows, kernel: mercer.mmd_test(rows[:40], rows[40:], kernel, n_permutations=9),
}  # fmt: skip
MOVED = ("mmd_test", "hsic_test", "herd", "thin")
"""What moves the rows of ⟨x, z⟩ to their mean."""


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_of_a_translation_invariant_kernel(name, dtype):
    """MMD and HSIC with ⟨x, z⟩ do not depend on the origin; float32 rows too, whose entries are in float64."""
    near, far = (STATISTICS[name]((X + shift).astype(dtype)) for shift in (0.0, 8192.0))
    # A kernel value is rounded at the size of ‖x‖², 8192²·4.
    error = 80 * np.finfo(np.float64).eps * 4 * 8192.0**2 * max(1.0, Y.var())
    assert far.statistic == pytest.approx(near.statistic, abs=error)
    assert far.p_value == near.p_value


@pytest.mark.parametrize("points", [mercer.herd, mercer.thin])
def test_chosen_points_do_not_depend_on_the_precision(points):
    """The distance that is left is a small difference: float32 entries made it 0."""
    rows = (X + 100.0).astype(np.float32)
    for kernel in (Linear(), Polynomial(2, gamma=0.25), Gaussian(gamma=0.1)):
        narrow, wide = (points(given, 16, kernel) for given in (rows, rows.astype(np.float64)))
        np.testing.assert_array_equal(narrow.indices, wide.indices)
        assert narrow.mmd[-1] == wide.mmd[-1] > 0


@pytest.mark.filterwarnings("ignore:KernelCCA. LAPACK")
@pytest.mark.parametrize("name", FITS)
def test_what_rounding_takes_is_said(name):
    with pytest.warns(UserWarning, match=r"differ by .* of which float64 keeps") as said:
        FITS[name](X + 1e7, 2.0 * Linear() if name in MOVED else Linear())
    assert "StandardScaler" in str(said[0].message)
    with pytest.warns(UserWarning, match="of which float64 keeps"):
        FITS[name](X, Gaussian(gamma=1e-14))


@pytest.mark.parametrize("name", FITS)
def test_what_rounding_leaves_is_not_warned_of(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*of which float64 keeps")
        for rows, kernel in ((X, Linear()), (X + 1e4, Linear()), (X + 1e9, Gaussian(gamma=0.1))):
            FITS[name](rows, kernel)


@pytest.mark.filterwarnings("ignore:KernelKMeans. n_clusters")
def test_equal_rows_lose_nothing():
    rows = np.full((50, 3), 1e8 / 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*of which float64 keeps")
        assert len(mercer.KernelPCA(2, kernel="linear").fit(rows).eigenvalues_) == 0
        assert mercer.KernelKMeans(2, kernel="linear").fit(rows).n_clusters_ == 1


@pytest.mark.parametrize("shift", [3e8, 1e9, 1e10, 1e11])
def test_what_rounding_takes_whole_is_said_too(shift):
    """The share that is left may be 0 by chance, and its inverse infinite."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        said = lost_when_centred(KernelOperator("linear", X + shift), "KernelPCA")
    assert "of which float64 keeps no digit" in said
