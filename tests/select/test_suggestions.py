"""Suggestions: the evidence is that of honest fits, and the ranking is sensible on data whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

from mercer import KernelRidge, KernelRidgeCV
from mercer.errors import InvalidInput
from mercer.kernels import Linear, TableKernel
from mercer.select import (
    centered_alignment,
    cross_validate_ridge,
    default_alphas,
    default_sequence_kernels,
    suggest,
)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(150, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=150)


def test_the_evidence_is_leave_one_out_and_alignment(waves):
    X, y = waves
    found = suggest(X, y)
    for one in found.ranked[:2]:
        model = KernelRidgeCV(one.kernel, [one.alpha], fit_intercept=True).fit(X, y)
        errors = np.mean((model.loo_predictions_ - y) ** 2) / y.var()
        assert one.score == pytest.approx(1 - errors, abs=1e-4)
        assert one.alignment == pytest.approx(centered_alignment(one.kernel, X, y), rel=1e-9)
    assert [one.score for one in found.ranked] == sorted((one.score for one in found.ranked), reverse=True)
    assert found[0].behind == 0
    assert KernelRidge(found[0].kernel, found[0].alpha).fit(X, y).score(X, y) > 0.9


def test_linear_data_get_the_linear_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    found = suggest(X, X @ [1.0, 2.0, 3.0] + 0.5 * rng.normal(size=120))
    linear = [one for one in found.ranked if isinstance(getattr(one.kernel, "kernel", one.kernel), Linear)]
    assert linear
    assert linear[0].as_good
    assert "linear functions" in str(found)


def test_classes():
    for X, y in (load_iris(return_X_y=True), (load_digits().data[:300], load_digits().target[:300])):
        found = suggest(X, y)
        assert found.metric == "accuracy"
        assert found[0].score > 0.93
    assert suggest(X, y > 4).metric == "accuracy"
    assert suggest(X, y, task="regression").metric == "R²"


def test_histograms_are_noticed():
    found = suggest(load_digits().data[:200], load_digits().target[:200] % 2, top=20)
    assert len(found) == 6
    assert len(suggest(load_digits().data[:50], load_digits().target[:50], top=20)) > 10


def test_data_frames_of_several_kinds():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["u", "v"], 90)})
    found = suggest(frame, np.sin(frame["a"]) + (frame["b"] == "u"))
    assert isinstance(found[0].kernel, TableKernel)
    assert found[0].score > 0.9


def test_a_sample_bounds_the_work(waves):
    assert suggest(*waves, sample=80).sample_size == 80


def test_pure_noise_is_said():
    rng = np.random.default_rng(0)
    assert any("no kernel" in note for note in suggest(rng.normal(size=(100, 3)), rng.normal(size=100)).notes)


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        (np.ones(150), {}, "all the same"),
        (np.ones(3), {}, "one target for each"),
        (np.arange(150.0), {"task": "clustering"}, "task"),
        (np.full(150, np.nan), {}, "finite"),
    ],
)
def test_refusals(waves, y, options, says):
    with pytest.raises(InvalidInput, match=says):
        suggest(waves[0], y, **options)


@pytest.mark.parametrize("y", [["0"] * 20, np.zeros(20, int), np.array(["0"] * 20, object)])
def test_one_class_is_named_as_it_was_given(y):
    X = np.arange(20.0)[:, None]
    said = "one class, '0'" if isinstance(y[0], str) else "one class, 0"
    with pytest.raises(InvalidInput, match=said):
        suggest(X, y)
    with pytest.raises(InvalidInput, match=said):
        cross_validate_ridge(X, y, ["linear"], [1.0], task="classification")


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_texts_are_sent_to_kernels_of_sequences(form):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    texts = form(["".join(rng.choice(list("acgt" if one else "aacg"), 12)) for one in y])
    with pytest.raises(InvalidInput, match=r"spectrum\(k=3\).*default_sequence_kernels\(X\), default_alphas") as caught:
        suggest(texts, y)
    assert "OneHotEncoder" not in str(caught.value)
    # The advice as it stands.
    found = cross_validate_ridge(list(texts), y, default_sequence_kernels(texts), default_alphas())
    assert "Spectrum" in repr(found.best_kernel) or "Substrings" in repr(found.best_kernel)


def test_equal_targets_whose_mean_is_rounded_are_refused(rng):
    with pytest.raises(InvalidInput, match="all the same; give targets that vary"):
        suggest(rng.normal(size=(60, 2)), np.full(60, 0.1))
