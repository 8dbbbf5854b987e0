"""Pictures of models: their artists have the models' own numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris, make_circles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgba  # noqa: E402

import mercer  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.plots import (  # noqa: E402
    ComponentsDisplay,
    DecisionSurfaceDisplay,
    ExplanationDisplay,
    PosteriorDisplay,
    ScoresDisplay,
    VariancesDisplay,
)
from mercer.plots.drawing.style import NEGATIVE, POSITIVE  # noqa: E402

X, y = make_moons(120, noise=0.15, random_state=0)
IRIS = load_iris()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


# ---- the decision surface -------------------------------------------------------------------------------------------


def test_the_surface_is_the_decision_function_and_the_discs_are_the_coefficients():
    model = mercer.SVC(kernel="gaussian(gamma=2.0)").fit(X, y)
    display = DecisionSurfaceDisplay.from_estimator(model, X, y, side=31)
    a, b = display.plane.first[7], display.plane.second[20]
    assert display.response[20, 7] == pytest.approx(model.decision_function([[a, b]])[0])
    alpha = model.dual_coef_[0]
    discs = {tuple(at): (area, shade) for at, area, shade in zip(*of_collection(display.points_), strict=True)}
    assert len(discs) == len(alpha)
    for point, one in zip(model.X_fit_, alpha, strict=True):
        area, shade = discs[tuple(point)]
        assert area == pytest.approx(max(120 * abs(one) / np.abs(alpha).max(), 3))
        assert tuple(shade) == to_rgba(POSITIVE if one > 0 else NEGATIVE)
    assert len(display.rows_[0].get_offsets()) == len(X)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["α > 0", "α < 0"]


def of_collection(points):
    return points.get_offsets().tolist(), points.get_sizes(), points.get_facecolors()


def test_the_boundary_is_where_f_is_0():
    model = mercer.KernelPerceptron("gaussian(gamma=2.0)", tol=None, max_iter=50).fit(X, y)
    display = DecisionSurfaceDisplay.from_estimator(model, X)
    line = np.vstack([path.vertices for path in display.boundary_.get_paths()])
    assert np.abs(model.decision_function(line)).max() < 0.02 * np.abs(display.response).max()


def test_of_several_classes_the_picture_has_the_predicted_ones_and_the_rows():
    names = IRIS.target_names[IRIS.target]
    model = mercer.KernelRidgeClassifier("gaussian(gamma=0.2)").fit(IRIS.data, names)
    display = DecisionSurfaceDisplay.from_estimator(model, IRIS.data, names, columns=(2, 3), side=21)
    assert display.classes == ("setosa", "versicolor", "virginica")
    rows = display.plane.rows()
    assert np.array_equal(rows[:, :2], np.tile(np.median(IRIS.data[:, :2], axis=0), (21 * 21, 1)))
    assert np.array_equal(display.response.ravel(), np.searchsorted(display.classes, model.predict(rows)))
    assert [len(one.get_offsets()) for one in display.rows_] == [50, 50, 50]
    assert display.notes_ == ["2 other columns at the median"]
    assert display.ax_.get_xlabel() == "$x_{3}$"
    display.figure_.canvas.draw()
    box = display.ax_.get_legend().get_window_extent()
    assert not box.count_contains(display.ax_.transData.transform(IRIS.data[:, 2:]))


def test_one_of_several_classes_has_its_own_surface_and_coefficients():
    model = mercer.KernelRidgeClassifier("gaussian(gamma=0.2)").fit(IRIS.data, IRIS.target)
    display = DecisionSurfaceDisplay.from_estimator(model, IRIS.data, columns=(2, 3), output=2, side=11)
    assert np.allclose(display.response.ravel(), model.decision_function(display.plane.rows())[:, 2])
    assert np.allclose(display.coefficients, model.dual_coef_[:, 2])
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        DecisionSurfaceDisplay.from_estimator(model, IRIS.data, output=3)


def test_points_within_pipelines_and_searches_are_where_the_rows_are():
    search = GridSearchCV(mercer.SVC(kernel="rbf"), {"C": [1.0, 10.0]}, cv=2)
    model = make_pipeline(StandardScaler(), search).fit(X * [1, 100], y)
    display = DecisionSurfaceDisplay.from_estimator(model, X * [1, 100], y)
    assert np.allclose(display.points, X[search.best_estimator_.support_] * [1, 100])


def test_a_model_without_coefficients_has_its_rows_by_class():
    display = DecisionSurfaceDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    assert display.points_ is None
    assert [len(one.get_offsets()) for one in display.rows_] == [60, 60]


def test_rows_without_their_coefficients_are_coloured_by_their_targets():
    model = mercer.KernelRidge("gaussian(gamma=1.0)").fit(X, X[:, 0])
    target = pd.Series(X[:, 0], name="cost in $ or $")
    display = DecisionSurfaceDisplay.from_estimator(model, X, target, points=False)
    assert display.points_ is None
    assert np.array_equal(display.rows_[0].get_array(), X[:, 0])
    assert display.figure_.axes[-1].get_ylabel() == r"cost in \$ or \$"
    display = DecisionSurfaceDisplay.from_estimator(model, X, [f"class {i}" for i in range(len(X))], points=False)
    assert display.notes_ == ["120 classes, too many to tell apart"]


def test_a_class_has_its_colour_where_the_other_is_missing():
    model = mercer.SVC(kernel="gaussian(gamma=2.0)").fit(X, np.where(y == 1, "right", "left"))
    only = DecisionSurfaceDisplay.from_estimator(model, X[y == 1], ["right"] * 60, points=False)
    assert only.rows_[0].get_facecolor()[0].tolist() == list(to_rgba(POSITIVE))


def test_dollars_of_classes_are_no_formulas():
    names = np.array(["$a$", "$b$", "$c$"])[IRIS.target]
    model = mercer.KernelRidgeClassifier("gaussian(gamma=0.2)").fit(IRIS.data, names)
    display = DecisionSurfaceDisplay.from_estimator(model, IRIS.data, output=1, side=5)
    assert display.figure_.axes[-1].get_ylabel() == r"f of \$b\$"
    assert ExplanationDisplay.from_estimator(model, IRIS.data[:1], output=1).ax_.get_title().startswith(r"f[\$b\$](x)")


def test_names_of_columns_and_sparse_rows():
    frame = pd.DataFrame(X, columns=["width", "height"])
    display = DecisionSurfaceDisplay.from_estimator(mercer.KernelRidge("gaussian").fit(frame, y), frame)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")
    model = mercer.SVC(kernel="gaussian(gamma=2.0)").fit(sp.csr_array(X), y)
    assert np.allclose(DecisionSurfaceDisplay.from_estimator(model, sp.csr_array(X)).points, X[model.support_])


@pytest.mark.parametrize(
    ("draw", "say"),
    [
        (lambda: DecisionSurfaceDisplay.from_estimator(mercer.KernelRidge().fit(X[:, :1], y), X[:, :1]), "one column"),
        (lambda: DecisionSurfaceDisplay.from_estimator(mercer.KernelPCA().fit(X), X), "neither decision_function"),
        (lambda: DecisionSurfaceDisplay.from_estimator(mercer.KernelRidge().fit(X, y), X, columns=(0, 2)), "0 to 1"),
        (lambda: DecisionSurfaceDisplay.from_estimator(mercer.KernelRidge().fit(X, y), X, y[:-1]), "one number or cl"),
        (lambda: ComponentsDisplay.from_estimator(mercer.KernelRidge().fit(X, y), X), "no transform"),
        (lambda: ComponentsDisplay.from_estimator(mercer.KernelPCA(2).fit(X), X, components=[2]), "from 0 to 1"),
        (lambda: VariancesDisplay.from_estimator(mercer.KernelRidge().fit(X, y)), "no explained_variance_ratio_"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(draw, say):
    with pytest.raises(InvalidInput, match=say):
        draw()


# ---- components and variances ---------------------------------------------------------------------------------------


def test_contours_are_of_the_scores():
    C, _ = make_circles(80, factor=0.3, noise=0.05, random_state=0)
    model = mercer.KernelPCA(3, "gaussian(gamma=2.0)").fit(C)
    display = ComponentsDisplay.from_estimator(model, C, components=[0, 2], side=15)
    assert np.allclose(display.scores.reshape(-1, 2), model.transform(display.plane.rows())[:, [0, 2]])
    share = model.explained_variance_ratio_
    assert display.ax_[1].get_title() == f"component 3: {100 * share[2]:.2g} %"
    for contour, scores in zip(display.contours_, np.moveaxis(display.scores, 2, 0), strict=True):
        assert contour.zmin == pytest.approx(scores.min())
    assert len(display.rows_[0].get_offsets()) == 80


def test_more_than_eight_components_are_left_out_and_said():
    display = ComponentsDisplay.from_estimator(mercer.KernelPCA(10, "gaussian(gamma=2.0)").fit(X), X, side=5)
    assert len(display.ax_) == 8
    assert display.notes_ == ["8 of 10 components"]


def test_bars_are_the_shares_of_each_kernel():
    kernels = {"linear": "linear", "quartic": "polynomial(degree=4)"}
    display = VariancesDisplay.from_kernels(kernels, X)
    for (name, kernel), bars, total in zip(kernels.items(), display.bars_, display.sums_, strict=True):
        share = mercer.KernelPCA(10, kernel).fit(X).explained_variance_ratio_
        assert np.allclose([bar.get_height() for bar in bars], share), name
        assert np.allclose(total.get_ydata(), np.cumsum(share))
    assert [ax.get_title() for ax in display.ax_] == ["linear", "quartic"]


# ---- many classes, and units ----------------------------------------------------------------------------------------


def of_classes(count):
    rng = np.random.default_rng(0)
    return rng.standard_normal((120, 2)), np.array([f"class {one}" for one in np.arange(120) % count])


@pytest.mark.parametrize("count", [5, 26, 61])
def test_classes_of_text_are_named_where_they_can_be_told_apart(count):
    scores, classes = of_classes(count)
    display = ScoresDisplay.from_predictions(scores, pd.Series(classes, name="letter"))
    legend = display.ax_.get_legend()
    if count > 60:
        assert legend is None
        assert display.notes_ == ["61 classes, too many to tell apart"]
        return
    assert len(legend.get_texts()) == len(display.points_) == count
    display.figure_.canvas.draw()
    box, page = legend.get_window_extent(), display.figure_.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert page.y0 <= box.y0 < box.y1 <= page.y1


def named(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_every_class_is_in_the_legend_whatever_its_name():
    labels = np.array(["_a", "", "b"])[np.arange(120) % 3]
    assert named(ScoresDisplay.from_predictions(X, labels)) == ["(empty)", " _a", "b"]
    model = LogisticRegression().fit(X, y)
    assert named(DecisionSurfaceDisplay.from_estimator(model, X, labels)) == ["(empty)", " _a", "b"]


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_rows_without_a_label_are_called_missing(nothing):
    labels = np.array(["a", "b", nothing], object)[np.arange(120) % 3]
    assert named(ScoresDisplay.from_predictions(X, labels)) == ["a", "b", "missing"]
    model = LogisticRegression().fit(X, y)
    assert named(DecisionSurfaceDisplay.from_estimator(model, X, labels)) == ["a", "b", "missing"]


def test_a_regressor_around_another_has_no_variance():
    model = TransformedTargetRegressor(mercer.KernelRidge("gaussian(gamma=1.0)")).fit(X, y)
    display = PosteriorDisplay.from_estimator(model, X, y)
    assert display.band_ is None
    assert display.notes_[0] == "TransformedTargetRegressor has no variance"
    assert np.isfinite(display.mean).all()


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (mercer.SVC(), "SVC, which predicts classes"),
        (mercer.KernelRidgeClassifier(), "KernelRidgeClassifier, which predicts classes"),
        (make_pipeline(StandardScaler(), mercer.SVC()), "Pipeline, which predicts classes"),
        (GridSearchCV(mercer.SVC(), {"C": [1.0]}, cv=2), "GridSearchCV, which predicts classes"),
        (mercer.KernelKMeans(2), "KernelKMeans, which predicts clusters"),
        (mercer.OneClassSVM(), "OneClassSVM, which predicts outliers"),
    ],
)
def test_labels_are_no_function_with_a_posterior(model, what):
    with pytest.raises(InvalidInput, match=f"^PosteriorDisplay: {what}; give a regressor, such as KernelRidge"):
        PosteriorDisplay.from_estimator(model.fit(X, y), X, y)
    assert not plt.get_fignums()


def test_a_model_that_declares_no_kind_is_drawn():
    class Own(BaseEstimator):
        def fit(self, X, y):
            self.mean_ = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

    display = PosteriorDisplay.from_estimator(Own().fit(X, y), X)
    assert np.all(display.mean == 0.5)


def test_the_scale_of_numbers_has_their_name():
    display = ScoresDisplay.from_predictions(X, pd.Series(X[:, 0], name="height"))
    assert [ax.get_ylabel() for ax in display.figure_.axes[1:]] == ["height"]
    model = mercer.KernelPCA(2, "gaussian(gamma=1.0)").fit(X)
    computed = ScoresDisplay.from_estimator(model, X, pd.Series(X[:, 0], name="height"))
    assert [ax.get_ylabel() for ax in computed.figure_.axes[1:]] == ["height"]
    numbered = ScoresDisplay.from_predictions(X, np.arange(len(X)))
    assert [ax.get_ylabel() for ax in numbered.figure_.axes[1:]] == ["y"]


def test_distances_from_clusters_are_named_as_such():
    display = ScoresDisplay.from_estimator(mercer.KernelKMeans(3).fit(X), X, components=(0, 2))
    assert display.titles == ["distance from cluster 0", "distance from cluster 2"]


def test_a_border_is_that_of_its_two_classes():
    """Their numbers may be far apart: those of the classes between them are no borders there."""
    rows, classes = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]), [0, 1, 2, 3]
    model = mercer.KernelRidgeClassifier("gaussian(gamma=0.3)").fit(rows, classes)
    borders = DecisionSurfaceDisplay.from_estimator(model, rows, classes, side=20).boundary_
    lines = [np.vstack([path.vertices for path in border.get_paths()]) for border in borders]
    assert [np.any(line[:, 1] < 1) for line in lines] == [True, True, False, False]
    assert [np.any(line[:, 0] < 1) for line in lines] == [True, False, False, True]


def test_many_classes_leave_room_for_the_surface():
    rows, classes = of_classes(26)
    model = mercer.KernelRidgeClassifier("gaussian(gamma=1.0)").fit(rows, classes)
    display = DecisionSurfaceDisplay.from_estimator(model, rows, classes, side=20)
    display.figure_.canvas.draw()
    assert display.ax_.get_window_extent().height > 0.7 * display.figure_.bbox.height
    assert len(display.ax_.get_legend().get_texts()) == 26


@pytest.mark.parametrize("unit", [1e5, 1e-6])
@pytest.mark.parametrize("piped", [False, True])
def test_the_band_of_ridge_has_the_units_of_the_targets(unit, piped):
    """Its kernel has none: σ² of the prior σ²k is estimated."""

    def band(unit):
        model = mercer.KernelRidge("gaussian(gamma=1.0)", alpha=0.1, fit_intercept=True)
        model = make_pipeline(StandardScaler(), model) if piped else model
        return PosteriorDisplay.from_estimator(model.fit(X[:, :1], unit * X[:, 1]), X[:, :1]).std

    np.testing.assert_allclose(band(unit), unit * band(1.0), rtol=1e-6)


def test_regions_without_targets_have_the_names_of_their_classes():
    """The picture of clusters did not tell which region is cluster 0 of `predict`."""
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0, 0], [6, 0], [0, 6]], 20, axis=0)
    model = mercer.KernelKMeans(3, "gaussian(gamma=0.1)").fit(X)
    display = DecisionSurfaceDisplay.from_estimator(model, X)
    names = display.ax_.get_legend()
    assert [one.get_text() for one in names.get_texts()] == ["0", "1", "2"]
    shades = [patch.get_facecolor() for patch in names.get_patches()]
    for label in range(3):
        first, second = X[model.labels_ == label].mean(axis=0)
        row, column = np.abs(display.plane.second - second).argmin(), np.abs(display.plane.first - first).argmin()
        assert display.surface_.cmap(display.surface_.norm(display.response[row, column])) == shades[label]
    with_targets = DecisionSurfaceDisplay.from_estimator(model, X, np.repeat(["a", "b", "c"], 20))
    assert [one.get_text() for one in with_targets.ax_.get_legend().get_texts()] == ["a", "b", "c"]
