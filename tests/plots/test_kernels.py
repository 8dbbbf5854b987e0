"""Pictures of kernels: scores, matrices, spectra, posteriors and witnesses have the numbers that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

plt = pytest.importorskip("matplotlib.pyplot")

import mercer  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.kernels import Gaussian, Spectrum  # noqa: E402
from mercer.plots import (  # noqa: E402
    GramDisplay,
    PosteriorDisplay,
    ScoresDisplay,
    SpectrumDisplay,
    VariancesDisplay,
    WitnessDisplay,
)

X, y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


# ---- scores --------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_model_by_class():
    model = mercer.KernelPCA(3, "gaussian(gamma=0.2)").fit(X)
    display = ScoresDisplay.from_estimator(model, X, y, components=(2, 0))
    for label, points in enumerate(display.points_):
        assert np.allclose(points.get_offsets(), model.transform(X[y == label])[:, [2, 0]])
    assert len({str(points.get_facecolor()) for points in display.points_}) == 3


def test_the_scores_of_a_discriminant_analysis_are_called_so():
    display = ScoresDisplay.from_estimator(mercer.KernelDiscriminantAnalysis().fit(X, y), X, y)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("discriminant 1", "discriminant 2")


def test_three_components_need_three_dimensions():
    scores = np.random.default_rng(0).normal(size=(20, 3))
    display = ScoresDisplay.from_predictions(scores)
    assert display.ax_.name == "3d"
    assert display.ax_.get_zlabel() == "component 3"
    with pytest.raises(InvalidInput, match='projection="3d"'):
        ScoresDisplay.from_predictions(scores, ax=plt.figure().add_subplot())
    with pytest.raises(InvalidInput, match="4 components"):
        ScoresDisplay.from_predictions(np.zeros((5, 4)))


def test_one_component_is_drawn_against_the_rows_and_numbers_have_a_scale():
    t = np.linspace(0, 1, 30)
    display = ScoresDisplay.from_predictions(t**2, t)
    (points,) = display.points_
    assert np.allclose(points.get_offsets(), np.column_stack([np.arange(30), t**2]))
    assert np.allclose(points.get_array(), t)


# ---- matrices ------------------------------------------------------------------------------------------------------


def test_rows_of_a_class_are_beside_each_other():
    shuffled = np.random.default_rng(0).permutation(len(X))
    display = GramDisplay.from_kernel(Gaussian(0.5), X[shuffled], y[shuffled])
    order = shuffled[display.order_]
    assert np.array_equal(y[order], np.sort(y))
    assert np.allclose(display.image_.get_array(), Gaussian(0.5)(X[order]))
    assert sorted({line.get_ydata()[0] for line in display.borders_[::2]}) == [49.5, 99.5]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0", "1", "2"]


def test_a_matrix_that_is_given_and_objects():
    K = Gaussian(0.5)(X)
    assert np.array_equal(GramDisplay.from_matrix(K).image_.get_array(), K)
    words = ["abab", "abba", "xyxy"]
    assert np.allclose(GramDisplay.from_kernel(Spectrum(2), words).image_.get_array(), Spectrum(2)(words))
    model = mercer.KernelKMeans(3, "gaussian(gamma=0.5)").fit(X)
    assert np.array_equal(GramDisplay.from_estimator(model, X).y, model.labels_)


def test_matrices_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match="square"):
        GramDisplay.from_matrix(np.ones((2, 3)))
    K = np.eye(3)
    K[0, 2] = K[2, 0] = np.inf
    with pytest.raises(InvalidInput, match=r"K\[0, 2\] = inf"):
        SpectrumDisplay.from_matrix(K)


# ---- spectra -------------------------------------------------------------------------------------------------------


def test_eigenvalues_are_drawn_by_size_and_sign():
    K = np.diag([4.0, -2.0, 1.0])
    display = SpectrumDisplay.from_matrix(K)
    assert display.positive_.get_xydata().tolist() == [[1, 1.0], [3, 0.25]]
    assert display.negative_.get_xydata().tolist() == [[2, 0.5]]
    assert display.is_indefinite_
    assert display.ax_.get_title() == "indefinite: λmin / max |λ| = -0.5"
    assert display.threshold == 3 * np.finfo(float).eps


def test_rounding_is_no_refutation():
    v = np.random.default_rng(0).normal(size=(50, 2))
    display = SpectrumDisplay.from_matrix(v @ v.T)
    assert np.any(display.eigenvalues < 0)
    assert not display.is_indefinite_
    assert display.ax_.get_title() == "positive semi-definite to rounding, rank 2 of 50"


# ---- posteriors ----------------------------------------------------------------------------------------------------


def test_the_band_is_two_standard_deviations():
    x = np.linspace(0, 3, 12)[:, None]
    model = mercer.KernelRidge("gaussian(gamma=1.0)", alpha=0.1).fit(x, np.sin(x[:, 0]))
    display = PosteriorDisplay.from_estimator(model, x, np.sin(x[:, 0]))
    mean, std = model.predict(display.at[:, None], return_std=True)
    std *= np.sqrt(model.prior_variance())
    assert np.allclose(display.line_.get_ydata(), mean)
    corners = display.band_.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx((mean + 2 * std).max())
    assert corners[:, 1].min() == pytest.approx((mean - 2 * std).min())
    assert np.allclose(display.points_.get_xdata(), x[:, 0])


def test_without_a_variance_there_is_no_band():
    model = mercer.SVR().fit(X[:, :3], X[:, 3])
    display = PosteriorDisplay.from_estimator(model, X[:, :3], column=2)
    assert display.band_ is None
    assert display.notes_ == ["SVR has no variance", "2 other columns at the median"]
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        PosteriorDisplay.from_estimator(model, X[:, :3], column=3)


# ---- witnesses -----------------------------------------------------------------------------------------------------


def test_the_terms_of_a_witness_add_up_to_its_value():
    display = WitnessDisplay.from_kernel("maximum(0, 1 - sqdist)")
    assert display.image_.get_array().sum() == display.witness.value < 0
    assert display.points_.get_offsets().tolist() == [[0, 0], [0.5, 0], [1, 0]]
    assert [text.get_text() for text in display.ax_[1].texts] == [
        "4",
        "-4.5",
        "0",
        "-4.5",
        "9",
        "-4.5",
        "0",
        "-4.5",
        "4",
    ]


def test_points_that_are_no_numbers_have_bars():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    display = WitnessDisplay.from_kernel("precomputed", K)
    assert [bar.get_height() for bar in display.points_] == [float(z) for z in display.witness.z]


def test_a_function_that_is_not_symmetric():
    display = WitnessDisplay.from_report(mercer.check_kernel(lambda X, Z: X[:, :1] - Z[:, :1].T, X))
    assert len(display.ax_) == 2


def test_a_kernel_has_no_witness():
    with pytest.raises(InvalidInput, match="verdict: proved"):
        WitnessDisplay.from_kernel("gaussian(gamma=1.0)")


def test_variances_of_many_rows_are_those_of_some_and_said(monkeypatch):
    fitted, fit = [], mercer.KernelPCA.fit
    monkeypatch.setattr("mercer.plots.variances.MOST_ROWS", 20)
    monkeypatch.setattr(mercer.KernelPCA, "fit", lambda model, rows: fitted.append(len(rows)) or fit(model, rows))
    display = VariancesDisplay.from_kernels({"linear": "linear"}, X)
    assert fitted[0] <= 20
    assert any("of 150 rows drawn" in note for note in display.notes)
