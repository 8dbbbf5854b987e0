"""Every estimator takes lists of strings, predicts for new ones, and is saved and read back."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import mercer
from mercer.kernels import GappedKmer, Mismatch, Spectrum

RNG = np.random.default_rng(0)


def strings(rng, count, letters):
    return ["".join(rng.choice(list(letters), rng.integers(8, 16))) for _ in range(count)]


X = strings(RNG, 20, "aabc") + strings(RNG, 20, "abbd")
y = np.array([0.0] * 20 + [1.0] * 20)
NEW = [*strings(RNG, 3, "aabc"), *strings(RNG, 3, "abbd"), "", "zz"]
KERNELS = [
    Spectrum(2).normalized() + 0.1,
    GappedKmer(4, 2).normalized(),
    Spectrum(1) * Spectrum(2),
    Mismatch(3, 1).normalized(),
]

MAKERS = {
    "KernelRidge": lambda k: mercer.KernelRidge(k),
    "KernelRidge cg": lambda k: mercer.KernelRidge(k, solver="cg"),
    "KernelRidge nystroem": lambda k: mercer.KernelRidge(k, solver="nystroem", n_landmarks=12),
    "KernelRidgeCV": lambda k: mercer.KernelRidgeCV(k),
    "KernelRidgeClassifier": lambda k: mercer.KernelRidgeClassifier(k),
    "KernelRidgeClassifierCV": lambda k: mercer.KernelRidgeClassifierCV(k),
    "KernelPCA": lambda k: mercer.KernelPCA(2, k),
    "KernelPCA krylov": lambda k: mercer.KernelPCA(2, k, solver="krylov"),
    "KernelPCA nystroem": lambda k: mercer.KernelPCA(2, k, solver="nystroem", n_landmarks=15),
    "KernelDiscriminantAnalysis": lambda k: mercer.KernelDiscriminantAnalysis(kernel=k),
    "KernelPLS": lambda k: mercer.KernelPLS(2, k),
    "KernelLMS": lambda k: mercer.KernelLMS(k),
    "KernelKMeans": lambda k: mercer.KernelKMeans(2, kernel=k),
    "KernelSpectralClustering": lambda k: mercer.KernelSpectralClustering(2, kernel=k),
    "EmpiricalKernelMap": lambda k: mercer.EmpiricalKernelMap(kernel=k),
    "Nystroem": lambda k: mercer.Nystroem(kernel=k, n_components=10),
}


def answer(model, rows):
    return model.predict(rows) if hasattr(model, "predict") else model.transform(rows)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", MAKERS)
def test_estimator(name, kernel, tmp_path):
    model = MAKERS[name](kernel).fit(X, y)
    found = np.asarray(answer(model, NEW))
    assert len(found) == len(NEW)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(answer(MAKERS[name](kernel).fit(np.array(X), y), np.array(NEW)), found)
    if importlib.util.find_spec("safetensors"):
        mercer.save(model, tmp_path / "model.mercer")
        np.testing.assert_array_equal(answer(mercer.load(tmp_path / "model.mercer"), NEW), found)


def test_they_learn():
    model = mercer.KernelRidgeClassifier(Spectrum(2).normalized()).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.array_equal(model.predict(NEW[:6]), [0, 0, 0, 1, 1, 1])


def test_both_methods_of_a_product_agree():
    kernel = Spectrum(2)
    product = kernel * Spectrum(1)  # has no features of its own here
    one = mercer.KernelRidge(kernel, alpha=0.1, solver="cg").fit(X, y)
    two = mercer.KernelRidge(kernel, alpha=0.1, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(one.predict(NEW), two.predict(NEW), atol=1e-8)
    assert mercer.KernelRidge(product, alpha=0.1).fit(X, y).predict(NEW).shape == (8,)


def test_weight_two_is_a_row_twice_and_zero_is_none():
    weights = np.ones(40)
    weights[0], weights[1] = 2, 0
    one = mercer.KernelRidge(Spectrum(2)).fit(X, y, sample_weight=weights)
    rows = [0, *range(2, 40), 0]
    two = mercer.KernelRidge(Spectrum(2)).fit([X[i] for i in rows], y[rows])
    np.testing.assert_allclose(one.predict(NEW), two.predict(NEW), atol=1e-8)


def test_two_views_of_texts():
    back = [x[::-1] for x in X]
    model = mercer.KernelCCA(1, kernel=Spectrum(2), kernel_y=Spectrum(1)).fit(X, back)
    given = mercer.KernelCCA(1, kernel="precomputed").fit(Spectrum(2)(X), Spectrum(1)(back))
    np.testing.assert_allclose(model.transform(NEW), given.transform(Spectrum(2)(NEW, X)), atol=1e-8)


def test_token_lists_of_one_length_are_saved(tmp_path):
    pytest.importorskip("safetensors")
    rows = [["a", 1], ["b", 2], ["a", 2]]
    model = mercer.KernelRidge(Spectrum(1)).fit(rows, [0.0, 1.0, 2.0])
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(rows), model.predict(rows))


def test_searches():
    search = GridSearchCV(
        mercer.KernelRidgeClassifier(Spectrum(1).normalized()), {"kernel__kernel__k": [1, 2, 9]}, cv=3
    )
    assert search.fit(X, y).best_params_["kernel__kernel__k"] in (1, 2)
    assert search.predict(NEW).shape == (8,)


def test_targets_are_checked():
    with pytest.raises(ValueError, match="inconsistent"):
        mercer.KernelRidge(Spectrum(2)).fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        mercer.KernelRidge(Spectrum(2)).fit(X, np.full(40, np.nan))
    with pytest.raises(mercer.errors.InvalidInput, match="one string"):
        mercer.KernelRidge(Spectrum(2)).fit(X, y).predict("abc")


def test_products_with_many_vectors_are_made_by_parts(monkeypatch):
    V = np.random.default_rng(0).normal(size=(40, 7))
    whole = mercer.KernelOperator(Spectrum(2), X) @ V
    monkeypatch.setattr("mercer.kernels.factors.TABLE", 20)
    np.testing.assert_array_equal(mercer.KernelOperator(Spectrum(2), X) @ V, whole)


def test_matrices_in_several_blocks(monkeypatch):
    whole = mercer.KernelOperator(Spectrum(2), X).toarray()
    monkeypatch.setattr("mercer.gram.tiles.LARGE_BLOCK", 1)
    monkeypatch.setattr("mercer.engine.reference.BlockTiles.row_block", 7)
    K = mercer.KernelOperator(Spectrum(2), X)
    np.testing.assert_array_equal(K.toarray(), whole)
    np.testing.assert_array_equal(
        K.group_sums(np.arange(40) % 3), np.stack([whole[:, i::3].sum(axis=1) for i in range(3)], 1)
    )
