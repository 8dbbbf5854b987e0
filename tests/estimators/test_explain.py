"""What is explained adds up to what the model says."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.errors import InvalidInput
from mercer.kernels import AllSubstrings, Function, GappedKmer, Gaussian, Kernel, Mismatch, Precomputed, Spectrum
from mercer.testing import assert_close

X, y = load_iris(return_X_y=True)
Y = X[:, 2:]
NEW = X[::37] + 0.1
KERNEL = Gaussian(gamma=0.5)

MODELS = {
    "ridge": (mercer.KernelRidge(KERNEL, alpha=0.1, fit_intercept=True), y, "predict"),
    "ridge, several targets": (mercer.KernelRidge(KERNEL, alpha=[0.1, 1.0]), Y, "predict"),
    "ridge, validated": (mercer.KernelRidgeCV(KERNEL), y, "predict"),
    "ridge on landmarks": (mercer.KernelRidge(KERNEL, solver="nystroem", n_landmarks=20), y, "predict"),
    "classes": (mercer.KernelRidgeClassifier(KERNEL), y, "decision_function"),
    "two classes": (mercer.KernelRidgeClassifier(KERNEL), y > 0, "decision_function"),
    "least mean squares": (mercer.KernelLMS(KERNEL, max_iter=2000, tol=1e-2), y, "predict"),
    "components": (mercer.KernelPCA(3, KERNEL), None, "transform"),
    "components of landmarks": (mercer.KernelPCA(2, KERNEL, solver="nystroem", n_landmarks=20), None, "transform"),
    "discriminants": (mercer.KernelDiscriminantAnalysis(KERNEL), y, "transform"),
    "logistic": (mercer.KernelLogisticRegression(KERNEL), y, "decision_function"),
    "margins of pairs": (mercer.SVC(kernel=KERNEL, decision_function_shape="ovo"), y, "decision_function"),
    "margins of classes": (mercer.SVC(kernel=KERNEL, multi_class="ovr"), y, "decision_function"),
    "margin": (mercer.SVC(kernel=KERNEL), y > 0, "decision_function"),
    "tube": (mercer.SVR(kernel=KERNEL), Y[:, 0], "predict"),
    "one class": (mercer.OneClassSVM(kernel=KERNEL), None, "decision_function"),
    "perceptron": (mercer.KernelPerceptron(KERNEL, max_iter=50, tol=None), y, "decision_function"),
    "descent": (mercer.OnlineKernelClassifier(KERNEL, budget=20), y, "decision_function"),
    "projection": (
        mercer.OnlineKernelClassifier(KERNEL, strategy="project", averaged=True),
        y > 0,
        "decision_function",
    ),
    "recursive": (mercer.OnlineKernelRegressor(KERNEL), Y, "predict"),
    "quantised": (mercer.OnlineKernelRegressor(KERNEL, method="qklms", averaged=True), y, "predict"),
    "latent": (mercer.KernelPLS(2, KERNEL), y, "predict"),
    "correlated": (mercer.KernelCCA(2, kernel=KERNEL), Y, "transform"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_terms_add_up_to_the_output(name):
    model, target, method = MODELS[name]
    model.fit(X, target)
    expected = np.asarray(getattr(model, method)(NEW)).reshape(len(NEW), -1)
    for output in range(expected.shape[1]):
        found = mercer.explain(model, NEW, output=output)
        total = found.intercept + found.contributions.sum(axis=1)
        scale = 1e-9 * max(np.abs(found.contributions).sum(axis=1).max(), 1.0)
        np.testing.assert_allclose(total, expected[:, output], atol=scale)
        np.testing.assert_allclose(found.prediction, expected[:, output], atol=scale)
        sizes = np.abs(np.take_along_axis(found.contributions, found.order, axis=1))
        assert np.all(np.diff(sizes, axis=1) <= 0)
        points = model.X_fit_
        np.testing.assert_allclose(found.similarities, KERNEL(NEW, points), atol=1e-12)
        assert (found.points == "landmark") == ("landmarks" in name)
    with pytest.raises(InvalidInput, match="output="):
        mercer.explain(model, NEW, output=expected.shape[1])


def test_what_is_no_expansion_is_refused():
    with pytest.raises(InvalidInput, match="not a sum of terms"):
        mercer.explain(mercer.KernelKMeans(3).fit(X), NEW)
    with pytest.raises(InvalidInput, match="not a sum of terms"):
        mercer.explain(StandardScaler().fit(X), NEW)
    with pytest.raises(InvalidInput, match="votes"):
        mercer.explain(mercer.KernelPerceptron(method="voted").fit(X, y), NEW)
    with pytest.raises(NotFittedError):
        mercer.explain(mercer.KernelRidge(), NEW)


@pytest.mark.parametrize("unit", ["character", "word"])
def test_parts_of_sequences_are_their_positions(unit):
    texts = ["the cat sat", "a dog and a cat", "stocks fell", "the market fell today"]
    model = mercer.SVC(kernel=Spectrum(1, unit=unit).normalized()).fit(texts, [0, 0, 1, 1])
    found = mercer.explain(model, ["the dog fell", "cat"])
    for row, parts in enumerate(found.parts):
        assert sum(weight for _, weight in parts) == pytest.approx(found.contributions[row].sum())
        assert np.all(np.diff([abs(weight) for _, weight in parts]) <= 0)
    assert sorted(part for part, _ in found.parts[1]) == ([(0, "cat")] if unit == "word" else list(enumerate("cat")))
    assert "part (" in str(found)
    assert mercer.explain(mercer.SVC(kernel=AllSubstrings()).fit(texts, [0, 0, 1, 1]), texts).parts is None


SEQUENCES = ["abcab", "bcacb", "aabbcc", "", "cabca", "bbbac", "acbacb", "c"]
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
NEW_SEQUENCES = ["abcabca", "", "bb", "cacbzab"]


def shared_windows(x, points, coefficients, patterns, span):
    """For each position of x what it adds, by the definition: all windows, all choices of places, all points."""
    out = np.zeros(len(x))
    for places in patterns:
        for i in range(len(x) - span + 1):
            shown = [x[i + p] for p in places]
            for z, c in zip(points, coefficients, strict=True):
                times = sum([z[j + p] for p in places] == shown for j in range(len(z) - span + 1))
                out[[i + p for p in places]] += c * times / len(places)
    return out


@pytest.mark.parametrize(
    ("kernel", "patterns", "span"),
    [
        (Spectrum(1), [(0,)], 1),
        (Spectrum(3), [(0, 1, 2)], 3),
        (GappedKmer(4, 2), list(combinations(range(4), 2)), 4),
    ],
    ids=str,
)
def test_weights_of_positions_are_those_of_the_windows(kernel, patterns, span):
    model = mercer.KernelRidgeClassifier(kernel, alpha=0.5).fit(SEQUENCES, LABELS)
    for output in range(3):
        found = mercer.position_weights(model, NEW_SEQUENCES, output)
        alpha = model.dual_coef_[:, output]
        for x, weights in zip(NEW_SEQUENCES, found, strict=True):
            expected = shared_windows(x, model.X_fit_, alpha, patterns, span)
            np.testing.assert_allclose(weights, expected, atol=1e-12 * np.abs(alpha).max() * 100)
        sums = np.array([weights.sum() for weights in found]) + model.intercept_[output]
        np.testing.assert_allclose(sums, model.decision_function(NEW_SEQUENCES)[:, output], atol=1e-12 * 100)


SEQUENCE_MODELS = [
    mercer.SVC(kernel=Spectrum(2)),
    mercer.SVC(kernel=GappedKmer(3, 2).normalized(), C=10.0),
    mercer.KernelLogisticRegression(Mismatch(2, 1, alphabet="abc")),
    mercer.KernelRidgeClassifier(0.5 * Spectrum(1) + (Spectrum(2) + GappedKmer(3, 2)).normalized()),
    mercer.KernelPerceptron(Spectrum(2), method="averaged", max_iter=20, tol=None),
]


@pytest.mark.parametrize("model", SEQUENCE_MODELS, ids=lambda model: type(model).__name__)
def test_weights_of_positions_sum_to_the_decision_function(model):
    y = LABELS > 0
    model.fit(SEQUENCES, y)
    weights = mercer.position_weights(model, SEQUENCES)
    assert [len(one) for one in weights] == [len(x) for x in SEQUENCES]
    sums = np.array([one.sum() for one in weights])
    intercept = mercer.explain(model, SEQUENCES).intercept
    decision = model.decision_function(SEQUENCES)
    np.testing.assert_allclose(sums + intercept, decision, atol=1e-10 * np.abs(decision).max())


def test_weights_of_positions_of_what_holds_a_model():
    line = make_pipeline(mercer.KernelRidgeClassifier(Spectrum(2) + 1.0, alpha=0.5)).fit(SEQUENCES, LABELS > 0)
    inner = line[-1]
    (weights,) = mercer.position_weights(line, "abcab")
    constant = inner.dual_coef_.sum()
    total = weights.sum() + constant + inner.intercept_[0]
    assert total == pytest.approx(inner.decision_function(["abcab"])[0], abs=1e-12)
    search = GridSearchCV(mercer.KernelRidgeClassifier(Spectrum(2)), {"alpha": [0.1, 1.0]}, cv=2)
    search.fit(SEQUENCES, LABELS > 0)
    for one, other in zip(
        mercer.position_weights(search, SEQUENCES),
        mercer.position_weights(search.best_estimator_, SEQUENCES),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_weights_of_positions_are_refused_where_there_are_none():
    with pytest.raises(InvalidInput, match=r"position_weights\(SVC\).*not sequences; use Spectrum"):
        mercer.position_weights(mercer.SVC().fit(X, y), NEW)
    with pytest.raises(InvalidInput, match="Spectrum, GappedKmer or Mismatch"):
        mercer.position_weights(mercer.SVC(kernel=AllSubstrings()).fit(SEQUENCES, LABELS), SEQUENCES)
    with pytest.raises(InvalidInput, match="not a sum of terms"):
        mercer.position_weights(mercer.KernelKMeans(2, Spectrum(1)).fit(SEQUENCES), SEQUENCES)
    with pytest.raises(NotFittedError):
        mercer.position_weights(mercer.KernelRidge(Spectrum(2)), SEQUENCES)
    model = mercer.KernelRidge(Spectrum(2)).fit(SEQUENCES, LABELS)
    with pytest.raises(InvalidInput, match="output=1"):
        mercer.position_weights(model, SEQUENCES, output=1)


def test_searches_are_their_best_estimator():
    search = GridSearchCV(make_pipeline(StandardScaler(), mercer.SVC()), {"svc__C": [0.1, 1.0]}, cv=2).fit(X, y)
    found, wanted = mercer.explain(search, NEW), mercer.explain(search.best_estimator_, NEW)
    np.testing.assert_array_equal(found.contributions, wanted.contributions)


def test_forms_of_rows_pipelines_matrices_and_objects():
    model = mercer.KernelRidge(KERNEL, alpha=0.1).fit(X, y)
    one = mercer.explain(model, NEW[0])
    assert one.contributions.shape == (1, 150)
    for form in (sp.csr_array, np.ndarray.tolist):
        np.testing.assert_allclose(mercer.explain(model, form(NEW)).contributions[0], one.contributions[0], atol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = mercer.KernelRidge(KERNEL, alpha=0.1).fit(frame, y)
    assert_close(mercer.explain(named, frame[:1]).prediction, named.predict(frame[:1]))
    line = make_pipeline(StandardScaler(), mercer.KernelRidge(KERNEL)).fit(X, y)
    assert_close(mercer.explain(line, NEW).prediction, line.predict(NEW))
    matrix = mercer.KernelRidge(Precomputed(), alpha=0.1).fit(KERNEL(X), y)
    np.testing.assert_allclose(mercer.explain(matrix, KERNEL(NEW, X)).contributions[0], one.contributions[0], atol=1e-8)
    words = ["ab", "abc", "xyz", "xy"]
    shared = Function(lambda s, t: float(len(set(s) & set(t))), mode="pair")
    text = mercer.KernelRidgeClassifier(shared).fit(words, [0, 0, 1, 1])
    assert {j for j, _ in mercer.explain(text, "xyz").top(2)} == {2, 3}


def test_a_kernel_may_tell_what_parts_weigh():
    @dataclass(frozen=True, repr=False)
    class Columnwise(Kernel):
        """A linear kernel whose parts are columns."""

        def formula(self, pair):
            return pair.dot

        def weights_of_parts(self, x, points, coefficients):
            return list(enumerate(x * (points.T @ coefficients)))

    model = mercer.KernelRidge(Columnwise(), alpha=0.1).fit(X, y)
    found = mercer.explain(model, NEW)
    for row, parts in enumerate(found.parts):
        assert sum(weight for _, weight in parts) == pytest.approx(found.contributions[row].sum())
        assert abs(parts[0][1]) >= abs(parts[-1][1])
    assert "part " in str(found)


def test_the_text_says_the_class_and_the_rest():
    model = mercer.KernelRidgeClassifier(KERNEL).fit(X, np.array(["a", "b", "c"])[y])
    text = str(mercer.explain(model, NEW[:1], output=1))
    assert text.startswith("f[b](x) = ")
    assert "the other 145" in text
    assert "training point" in text


def test_support_vectors_are_told_by_their_rows():
    X, y = load_iris(return_X_y=True)
    model = mercer.SVC(kernel="gaussian(gamma=0.5)").fit(X, y == 1)
    found = mercer.explain(model, X[60])
    j, _ = found.top(1)[0]
    assert f"support vector {j}, row {model.support_[j]}" in str(found).splitlines()[1]
    np.testing.assert_array_equal(X[found.rows], model.X_fit_)
