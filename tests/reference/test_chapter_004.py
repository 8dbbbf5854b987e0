"""Chapter 004: kernel PCA by the duality with classical scaling, and its helix (example 5.1)."""

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.kernels import Gaussian, Laplace, Polynomial
from mercer.select import cross_validate_kernel_pca
from mercer.testing import assert_close

T = np.linspace(0, 4 * np.pi, 200)
HELIX = np.column_stack([np.cos(T), np.sin(T), T])  # regularly spaced points
POLYNOMIAL = Polynomial(4, coef0=1.0)  # "offset 1 and degree 4"


@pytest.mark.parametrize("kernel", [POLYNOMIAL, Gaussian(gamma=0.05), Laplace(gamma=0.5)], ids=repr)
def test_variances_of_the_helix(kernel):
    """HKH = UΛUᵀ, and the variances are λ/N."""
    H = np.eye(200) - np.full((200, 200), 1 / 200)
    values = np.linalg.eigvalsh(H @ kernel(HELIX) @ H)[::-1]
    model = KernelPCA(10, kernel).fit(HELIX)
    assert_close(model.explained_variance_, values[:10] / 200, rtol=1e-9)
    assert_close(model.explained_variance_ratio_, values[:10] / values.sum(), rtol=1e-9)


def test_only_the_polynomial_kernel_finds_one_dimension():
    first = {
        type(kernel).__name__: KernelPCA(5, kernel).fit(HELIX).explained_variance_ratio_[0]
        for kernel in (POLYNOMIAL, Gaussian(gamma=0.05), Laplace(gamma=0.5))
    }
    assert first["Polynomial"] > 0.95
    assert first["Gaussian"] < 0.6
    assert first["Laplace"] < 0.3


def test_the_recovered_coordinate_is_in_order_but_not_equally_spaced():
    score = KernelPCA(1, POLYNOMIAL).fit_transform(HELIX)[:, 0]
    steps = np.diff(score) * np.sign(score[-1] - score[0])
    assert np.all(steps > 0)
    assert steps.max() > 3 * np.median(steps)


def test_scores_are_scaled_so_that_their_variance_is_the_one_the_chapter_states():
    """UΛ^½ has the variance λ/N that the chapter states; divided by √N, as it writes, it would have λ/N²."""
    model = KernelPCA(3, POLYNOMIAL)
    scores = model.fit_transform(HELIX)
    assert_close(scores, model.eigenvectors_ * np.sqrt(model.eigenvalues_), rtol=1e-12)
    assert_close(scores.var(axis=0), model.eigenvalues_ / 200, rtol=1e-10)
    assert_close((scores / np.sqrt(200)).var(axis=0), model.eigenvalues_ / 200**2, rtol=1e-10)


def test_cross_validation_tunes_a_kernel():
    """The closing remark: sensitive to tuning, for which cross-validation is used."""
    kernels = [Gaussian(gamma) for gamma in (5.0, 0.5, 0.05)]
    search = cross_validate_kernel_pca(HELIX, kernels, [1, 2])
    assert search.best_kernel == Gaussian(gamma=0.05)
    assert search.best_n_components == 2
    errors = {row.kernel: row.mean for row in search.table if row.n_components == 2}
    assert errors["Gaussian(gamma=5.0)"] > 20 * errors["Gaussian(gamma=0.05)"]
