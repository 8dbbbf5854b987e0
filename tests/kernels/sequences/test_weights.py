"""Features, and the weights of positions and k-mers in a prediction."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mercer import KernelRidge, errors
from mercer.kernels import GappedKmer, Mismatch, Spectrum, Subsequence
from mercer.kernels.sequences import kmer_weights, position_weights

spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

X = reference.random_strings(0)
Z = reference.random_strings(1)
COEF = np.random.default_rng(0).normal(size=len(Z))

KERNELS = [
    Spectrum(2),
    GappedKmer(4, 2).normalized(),
    Mismatch(3, 1, alphabet="abcæ"),
    Mismatch(2, 1, alphabet="abcæ").normalized(),
    0.5 * Spectrum(1) + (Spectrum(3) + 2.0 * GappedKmer(3, 2)).normalized(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_weights_of_positions_add_up_to_the_prediction(kernel):
    for rows in (X, Z):
        found = position_weights(kernel, rows, Z, COEF)
        assert [len(one) for one in found] == [len(x) for x in rows]
        np.testing.assert_allclose([one.sum() for one in found], kernel(rows, Z) @ COEF, atol=1e-12)


def test_they_are_where_the_substring_is():
    (found,) = position_weights(Spectrum(2), ["xxabxx"], ["ab"], [3.0])
    np.testing.assert_array_equal(found, [0, 0, 1.5, 1.5, 0, 0])
    (found,) = position_weights(GappedKmer(3, 2), ["xaxbx"], ["a-b"], [3.0])
    np.testing.assert_array_equal(found, [0, 1.5, 0, 1.5, 0])


def test_words_and_characters_together():
    texts, model = ["to be  or", "or not"], ["be or", "not"]
    words, characters = Spectrum(1, unit="word"), Spectrum(3)
    (first, second) = position_weights(words, texts, model, [1.0, 2.0])
    np.testing.assert_array_equal(first, [0, 1, 1])
    np.testing.assert_array_equal(second, [1, 2])
    both = words.normalized() + characters
    found = position_weights(both, texts, model, [1.0, 2.0])
    assert [len(one) for one in found] == [9, 6]
    np.testing.assert_allclose([one.sum() for one in found], both(texts, model) @ [1.0, 2.0])


@pytest.mark.parametrize("kernel", KERNELS[:4], ids=repr)
def test_weights_of_kmers_add_up_to_the_prediction(kernel):
    inner = getattr(kernel, "kernel", kernel)
    windows = ["".join(u) for x in X for u in reference.kmers(x, inner.span)]
    weights = dict(kmer_weights(kernel, Z, COEF, windows))
    x = X[5]
    own = [weights.get("".join(u), 0.0) for u in reference.kmers(x, inner.span)]
    value = sum(own) if inner is kernel else sum(own) / np.sqrt(inner.diagonal([x])[0])
    assert value == pytest.approx((kernel([x], Z) @ COEF)[0])


def test_of_a_fitted_model():
    model = KernelRidge(Spectrum(2).normalized(), alpha=0.1).fit(Z, COEF)
    weights = position_weights(model.kernel_, X, model.X_fit_, model.dual_coef_)
    np.testing.assert_allclose([one.sum() for one in weights], model.predict(X), atol=1e-12)
    top = kmer_weights(model.kernel_, model.X_fit_, model.dual_coef_)
    assert len(top) == len({u for z in Z for u in reference.kmers(z, 2)})
    assert [abs(w) for _, w in top] == sorted((abs(w) for _, w in top), reverse=True)
    words = kmer_weights(Spectrum(2, unit="word"), ["to be or", "be or"], [1.0, 1.0])
    assert words == [("be or", 2.0), ("to be", 1.0)]


def test_refused():
    with pytest.raises(errors.InvalidInput, match="Spectrum, GappedKmer or Mismatch"):
        position_weights(Subsequence(), X, Z, COEF)
    with pytest.raises(errors.InvalidInput, match="one for each"):
        position_weights(Spectrum(), X, Z, COEF[:3])
    with pytest.raises(errors.InvalidInput, match="windows have 3"):
        kmer_weights(Spectrum(3), Z, COEF, ["ab"])
    with pytest.raises(errors.InvalidInput, match="without its features"):
        Mismatch(3, 1, alphabet="ab").features(X)


@pytest.mark.parametrize("kernel", [Spectrum(2), GappedKmer(4, 2), Spectrum(1, unit="word")], ids=repr)
def test_features_multiply_to_the_kernel(kernel):
    F, G = kernel.features(X, Z), kernel.features(Z)
    np.testing.assert_array_equal((F @ G.T).toarray(), kernel(X, Z))
    np.testing.assert_array_equal((G @ G.T).toarray(), kernel(Z))
    names = kernel.feature_names(Z)
    assert len(names) == G.shape[1] == len(set(names))
    if kernel == Spectrum(2):
        np.testing.assert_array_equal(G.toarray(), [[_times(z, name) for name in names] for z in Z])


def _times(text, part):
    return sum(text[i : i + len(part)] == part for i in range(len(text) - len(part) + 1))
