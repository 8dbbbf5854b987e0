"""The search for kernel PCA's kernel and components against the estimator, fold by fold."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import mercer
from mercer import KernelPCA
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.select import cross_validate_kernel_pca, default_kernels
from mercer.select.ridge import _folds

# Without the row that stands twice: whether the distance of its scores is 0 or 1e-16, and so whether the median of the
# distances counts it, is rounding.
X = np.unique(load_iris().data, axis=0)


@pytest.mark.parametrize("kernel", [Linear(), 2.0 * Linear(), Gaussian(0.2), Polynomial(degree=2, gamma=0.1)])
def test_equals_the_estimator_fitted_on_each_fold(kernel):
    search = cross_validate_kernel_pca(X, [kernel], [1, 2, 3, 9], folds=3, alpha=0.05)
    options = {"fit_inverse_transform": True, "alpha": 0.05, "decoder_kernel": "gaussian(gamma='median')"}
    for row in search.table:
        errors = []
        for test in _folds(None, len(X), 3, 0):
            train = np.delete(X, test, axis=0)
            model = KernelPCA(row.n_components, kernel, solver="dense", **options)
            errors.append(-model.fit(train).score(X[test]))
        assert row.mean == pytest.approx(np.mean(errors), rel=1e-6, abs=1e-12)
        assert row.std == pytest.approx(np.std(errors), rel=1e-5, abs=1e-12)
    assert [row.mean for row in search.table] == sorted(row.mean for row in search.table) or kernel != Gaussian(0.2)


def test_the_bandwidth_of_a_circle_is_found():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    kernels = [Gaussian(gamma) for gamma in (1e3, 1.0)]
    search = cross_validate_kernel_pca(circle, kernels, [1, 2])
    assert search.best_kernel == Gaussian(1.0)
    assert search.best_n_components == 2
    # in feature space the wide kernel would look best, whatever the data: that is why it is not the criterion
    spe = [KernelPCA(2, kernel).fit(circle).spe(circle).mean() for kernel in (Gaussian(1e-4), *kernels)]
    assert spe[0] < 1e-6 < spe[2]


def test_data_of_two_dimensions_need_two_components():
    rows = np.random.default_rng(1).standard_normal((80, 2)) @ np.random.default_rng(2).standard_normal((2, 6))
    search = cross_validate_kernel_pca(rows, ["linear"], [1, 2, 3, 5])
    assert (search.best_n_components, search.simplest.n_components) == (2, 2)
    assert search.best_error < 1e-12
    assert not search.notes
    assert cross_validate_kernel_pca(rows, ["linear"], [1, 2]).notes


def test_sparse_rows_samples_and_default_kernels():
    dense = cross_validate_kernel_pca(X, ["gaussian(gamma=0.3)"], [2])
    sparse = cross_validate_kernel_pca(sp.csr_array(X), ["gaussian(gamma=0.3)"], [2])
    assert sparse.best_error == pytest.approx(dense.best_error, rel=1e-9)
    search = cross_validate_kernel_pca(X, default_kernels(X), [1, 2], sample=60)
    assert search.sample_size == 60
    assert len(search.table) == 20
    narrow = cross_validate_kernel_pca(X.astype(np.float32), ["gaussian(gamma=0.3)"], [2])
    assert narrow.best_error == pytest.approx(dense.best_error, rel=1e-3)


def test_the_search_says_when_a_kernel_is_done():
    seen = []

    class Watch:
        def on_event(self, event):
            seen.append(event)

    with mercer.observe(Watch()):
        cross_validate_kernel_pca(X, ["linear", "gaussian(gamma=1)"], [1])
    assert any("cross-validation of Linear()" in str(event) for event in seen)


def test_rows_that_are_all_the_same_are_found_again():
    search = cross_validate_kernel_pca(np.ones((20, 3)), ["linear", "gaussian(gamma=1)"], [1, 2])
    assert search.best_error == 0.0
    assert search.best_kernel == Linear()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": []}, "n_components"),
        ({"n_components": [0]}, "n_components"),
        ({"n_components": [1.5]}, "n_components"),
        ({"alpha": 0.0}, "alpha"),
        ({"folds": 1}, "folds"),
        ({"sample": 5}, "folds"),
        ({"kernels": []}, "no kernel"),
        ({"kernels": [Precomputed()]}, "rows of numbers"),
    ],
)
def test_bad_parameters(options, words):
    options = {"kernels": ["linear"], "n_components": [1]} | options
    with pytest.raises(InvalidInput, match=words):
        cross_validate_kernel_pca(X, **options)


def test_rows_far_from_the_origin_are_told():
    with pytest.warns(UserWarning, match=r"cross_validate_kernel_pca with Linear\(\): .* keeps no digit") as told:
        cross_validate_kernel_pca(X + 1e8, ["linear"], [1, 2])
    assert {one.filename for one in told} == {__file__}
