"""Silhouettes in feature space against scikit-learn's, and the number of clusters that they choose."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from mercer import KernelKMeans, KernelOperator
from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Precomputed
from mercer.select import choose_n_clusters, silhouettes, simplified_silhouettes
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
X, CLOUD = make_blobs(200, 2, centers=[[0, 0], [7, 0], [0, 7], [7, 7]], random_state=0)
KERNEL = Gaussian(0.1)


def distances(K):
    D = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2 * K, 0))
    np.fill_diagonal(D, 0)
    return D


@pytest.mark.parametrize("kernel", ["linear", "gaussian(gamma=0.1)", "laplace(gamma=0.5)"])
def test_silhouettes_are_scikit_learns_of_the_distances_in_feature_space(kernel, rng):
    K = KernelOperator(kernel, X)
    labels = rng.integers(0, 5, len(X)) * 3
    labels[7] = 100  # a cluster of one
    expected = silhouette_samples(distances(K.toarray()), labels, metric="precomputed")
    np.testing.assert_allclose(silhouettes(K, labels), expected, atol=1e-7)


def test_weights_are_repetitions(rng):
    w = rng.integers(1, 4, len(X))
    labels = rng.integers(0, 4, len(X))
    many = np.repeat(np.arange(len(X)), w)
    expected = silhouette_samples(distances(KERNEL(X))[np.ix_(many, many)], labels[many], metric="precomputed")
    found = silhouettes(KernelOperator(KERNEL, X), labels, w)
    np.testing.assert_allclose(found[many], expected, atol=1e-7)


def test_simplified_silhouettes_by_hand():
    model = KernelKMeans(4, KERNEL).fit(X)
    D = model.transform(X)
    two = np.sort(D, axis=1)[:, :2]
    assert_close(simplified_silhouettes(D, model.labels_), 1 - two[:, 0] / two[:, 1], rtol=1e-12)
    assert simplified_silhouettes([[0.0, 0.0]], [1]).tolist() == [0.0]


@pytest.mark.parametrize("criterion", ["simplified", "exact"])
@pytest.mark.parametrize("memory", [None, 100_000])
def test_the_number_of_clouds_is_found(criterion, memory):
    found = choose_n_clusters(X, KERNEL, range(2, 8), criterion=criterion, memory=memory)
    assert found.best == 4
    assert adjusted_rand_score(found.labels, CLOUD) == 1.0
    assert np.all(np.diff(found.inertias) < 0)
    assert found.scores.argmax() == 2
    assert len(found.scores) == len(found.counts) == 6


def test_weights_and_precomputed_matrices(rng):
    w = rng.integers(1, 3, len(X)).astype(float)
    direct = choose_n_clusters(X, KERNEL, [3, 4, 5], sample_weight=w)
    given = choose_n_clusters(KERNEL(X), Precomputed(), [5, 4, 3], sample_weight=w)
    repeated = choose_n_clusters(np.repeat(X, w.astype(int), axis=0), KERNEL, [3, 4, 5])
    assert_close(given.scores, direct.scores, rtol=1e-9)
    assert_close(repeated.scores, direct.scores, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "gaussian(gamma='median')"])
def test_rows_of_weight_0_change_no_bandwidth(kernel):
    w = np.r_[np.zeros(20), np.ones(180)]
    far = np.vstack([X[:20] * 100, X[20:]])
    found, without = choose_n_clusters(far, kernel, [3, 4], sample_weight=w), choose_n_clusters(X[20:], kernel, [3, 4])
    assert_close(found.scores, without.scores, rtol=1e-9)
    assert_close(found.inertias, without.inertias, rtol=1e-9)


def test_fewer_distinct_rows_than_clusters_lose():
    found = choose_n_clusters(np.repeat([[0.0], [1.0], [5.0]], 4, axis=0), KERNEL, [2, 3, 5])
    assert found.best == 3
    assert choose_n_clusters(np.ones((5, 1)), KERNEL, [2, 3]).scores.tolist() == [-1.0, -1.0]


def test_what_cannot_be_chosen_from_is_refused():
    for options in ({"counts": []}, {"counts": [1, 2]}, {"counts": [200]}, {"criterion": "gap"}):
        with pytest.raises(InvalidInput, match="choose_n_clusters"):
            choose_n_clusters(X, KERNEL, **options)
    with pytest.raises(InvalidInput, match="weight"):
        choose_n_clusters(X, KERNEL, sample_weight=-np.ones(len(X)))
    with pytest.raises(InvalidInput, match="two distinct ones"):
        silhouettes(KernelOperator(KERNEL, X), np.zeros(len(X), int))
    with pytest.raises(InvalidInput, match="k > 1"):
        simplified_silhouettes(np.ones((3, 1)), np.zeros(3, int))
