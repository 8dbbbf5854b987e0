"""Pictures of choices, predictions and processes have the numbers that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, learning_curve

plt = pytest.importorskip("matplotlib.pyplot")

import mercer  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.kernels import Spectrum  # noqa: E402
from mercer.plots import (  # noqa: E402
    ControlChartDisplay,
    ExplanationDisplay,
    LearningCurveDisplay,
    PreImagesDisplay,
    RegularizationPathDisplay,
    SequenceLogoDisplay,
)

X, y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_path_has_all_candidates_and_the_choice():
    model = mercer.KernelRidgeCV(["linear", "gaussian(gamma=0.5)"], store_cv_results=True).fit(X[:, :3], X[:, 3])
    display = RegularizationPathDisplay.from_estimator(model)
    table = model.cv_results_
    for line in display.lines_:
        of = [name == line.get_label() for name in table["kernel"]]
        assert np.allclose(line.get_xydata(), np.column_stack([table["alpha"], -table["score"]])[of])
    assert display.choice_.get_xydata().tolist() == [[model.alpha_, -model.best_score_]]
    assert display.ax_[0].get_yscale() == "log"
    assert display.ax_[0].get_ylabel() == "leave-one-out mean squared error: less is better"
    of = [name == repr(model.kernel_) for name in table["kernel"]]
    assert len(display.paths_) == 40
    assert any(np.allclose(display.paths_[0].get_ydata(), row) for row in table["predictions"][of].T)
    assert display.notes_ == ["40 of 150 rows drawn"]


def test_searches_have_a_line_for_each_other_choice():
    search = GridSearchCV(mercer.SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["linear", "rbf"]}, cv=3).fit(X, y)
    display = RegularizationPathDisplay.from_estimator(search)
    assert {line.get_label() for line in display.lines_} == {"kernel='linear'", "kernel='rbf'"}
    assert display.choice_.get_xydata().tolist() == [[search.best_params_["C"], search.best_score_]]
    assert display.ax_.get_xlabel() == "C"
    with pytest.raises(InvalidInput, match="choose one of C"):
        RegularizationPathDisplay.from_estimator(search, parameter="kernel")
    with pytest.raises(InvalidInput, match="no cv_results_"):
        RegularizationPathDisplay.from_estimator(mercer.SVC().fit(X, y))


def covered(display, ax):
    """How many of the lines and of the notes lie under the legend, in a figure that is drawn."""
    display.figure_.canvas.draw()
    box = ax.get_legend().get_window_extent()
    lines = [line.get_transform().transform_path(line.get_path()) for line in [*display.lines_, display.choice_]]
    under = sum(one.intersects_bbox(box, filled=False) or box.count_contains(one.vertices) > 0 for one in lines)
    return under + sum(text.get_window_extent().overlaps(box) for text in ax.texts)


@pytest.mark.parametrize(("kernels", "stored"), [(1, False), (2, True), (11, False), (11, True)])
def test_the_legend_hides_no_curve(kernels, stored):
    """Eleven curves leave no room for it in the axes: it is beside them, and these keep their width."""
    rows = np.linspace(0, 6, 40)[:, None]
    noise = 0.1 * np.random.default_rng(0).normal(size=40)
    named = [f"gaussian(gamma={10 ** (0.5 * place - 3):.3g})" for place in range(kernels)]
    model = mercer.KernelRidgeCV(named, store_cv_results=stored).fit(rows, np.sin(rows[:, 0]) + noise)
    display = RegularizationPathDisplay.from_estimator(model)
    ax = np.ravel(display.ax_)[0]
    assert covered(display, ax) == 0
    width, page = ax.get_window_extent().width / display.figure_.dpi, display.figure_.bbox
    assert 3.5 < width < 5
    assert page.x0 <= ax.get_legend().get_window_extent().x0 < ax.get_legend().get_window_extent().x1 <= page.x1
    assert len(ax.get_legend().get_texts()) == min(kernels, 10) + 1


def test_long_names_of_candidates_leave_room_for_the_curves():
    kernels = ["gaussian(gamma=0.5) + 0.3*laplace(gamma=1.0) * polynomial(degree=3)", "linear"]
    search = GridSearchCV(mercer.KernelRidge(), {"alpha": [0.1, 1.0, 10.0], "kernel": kernels}, cv=3).fit(X, y)
    display = RegularizationPathDisplay.from_estimator(search)
    assert covered(display, display.ax_) == 0
    assert display.ax_.get_window_extent().width > 3.5 * display.figure_.dpi
    assert max(len(line) for text in display.ax_.get_legend().get_texts() for line in text.get_text().split("\n")) <= 40
    assert len(display.lines_) == 2


def test_the_legend_stays_in_axes_of_a_figure_without_a_layout():
    figure, axes = plt.subplots(1, 2)
    model = mercer.KernelRidgeCV([f"gaussian(gamma={one})" for one in range(1, 12)]).fit(X[:, :3], X[:, 3])
    RegularizationPathDisplay.from_estimator(model, ax=axes[0])
    figure.canvas.draw()
    assert not axes[0].get_legend().get_window_extent().overlaps(axes[1].get_window_extent())
    assert figure.get_figwidth() == 6.4


def test_a_choice_for_each_target_is_refused():
    model = mercer.KernelRidgeCV(alpha_per_target=True).fit(X[:, :2], X[:, 2:])
    with pytest.raises(InvalidInput, match="for each target"):
        RegularizationPathDisplay.from_estimator(model)


def test_the_learning_curve_is_scikit_learns():
    display = LearningCurveDisplay.from_estimator(mercer.SVC(), X, y, sizes=[0.3, 0.9], cv=3)
    options = {"train_sizes": [0.3, 0.9], "cv": 3, "shuffle": True, "random_state": 0}
    sizes, train, test = learning_curve(mercer.SVC(), X, y, **options)
    assert np.allclose(display.lines_[0].get_xydata(), np.column_stack([sizes, test.mean(axis=1)]))
    assert np.allclose(display.lines_[1].get_ydata(), train.mean(axis=1))
    assert np.all(display.lines_[2].get_ydata() > 0)


def test_bars_add_up_to_the_prediction():
    model = mercer.SVC(kernel="gaussian(gamma=0.5)").fit(X[:100], y[:100])
    display = ExplanationDisplay.from_estimator(model, X, row=7, count=4)
    found = mercer.explain(model, X[7:8])
    widths = [bar.get_width() for bar in display.bars_]
    assert sum(widths) == pytest.approx(model.decision_function(X[7:8])[0])
    assert widths[:4] == [value for _, value in found.top(4)]
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    first = found.order[0, 0]
    assert labels[0] == f"support vector {first}, row {model.support_[first]}"
    assert labels[-2:] == [f"the other {len(model.support_) - 4}", "intercept"]
    with pytest.raises(InvalidInput, match="row=150 of 150"):
        ExplanationDisplay.from_estimator(model, X, row=150)


def test_letters_are_as_high_as_their_weights():
    texts, labels = ["ACGTAC", "ACGGGT", "TTACGA", "TTGGGA"], [0, 1, 0, 1]
    model = mercer.KernelRidgeClassifier(Spectrum(3)).fit(texts, labels)
    display = SequenceLogoDisplay.from_estimator(model, ["CAGGGT", "ACGA"])
    for text, letters, weights in zip(
        ["CAGGGT", "ACGA"], display.letters_, mercer.position_weights(model, ["CAGGGT", "ACGA"]), strict=True
    ):
        drawn = [(i, weight) for i, weight in enumerate(weights) if weight]
        assert len(letters) == len(drawn) <= len(text)
        for (place, weight), letter in zip(drawn, letters, strict=True):
            box = letter.get_path().get_extents(letter.get_transform() - display.ax_[0].transData)
            if letter.axes is display.ax_[0]:
                assert (box.x0 + box.x1) / 2 == pytest.approx(place)
                assert (box.y0, box.y1) == pytest.approx((min(weight, 0), max(weight, 0)))


def test_blanks_have_no_letter():
    texts = ["a good film", "a bad film", "bad", "good"]
    model = mercer.KernelRidgeClassifier(Spectrum(2)).fit(texts, [1, 0, 0, 1])
    (letters,) = SequenceLogoDisplay.from_estimator(model, texts[:1]).letters_
    weights = mercer.position_weights(model, texts[:1])[0]
    assert weights[1]
    assert len(letters) == np.count_nonzero(weights[[symbol != " " for symbol in texts[0]]])


def test_long_and_many_sequences_are_cut_and_said():
    model = mercer.KernelRidgeClassifier(Spectrum(2)).fit(["ABAB", "BBBB"], [0, 1])
    display = SequenceLogoDisplay.from_estimator(model, ["AB" * 100] * 9)
    assert [len(letters) for letters in display.letters_] == [120] * 8
    assert display.notes_ == ["8 of 9 sequences drawn", "120 of up to 200 positions drawn"]
    with pytest.raises(InvalidInput, match="not sequences"):
        SequenceLogoDisplay.from_estimator(mercer.KernelRidge().fit(X, y), X)


def test_pre_images_are_the_models():
    model = mercer.KernelPCA(2, "linear").fit(X)
    display = PreImagesDisplay.from_estimator(model, X[:5], X[:5] + 1, shape=(2, 2))
    given, back, clean = (np.array([image.get_array() for image in images]) for images in display.images_)
    assert np.allclose(given.reshape(5, 4), X[:5])
    assert np.allclose(back.reshape(5, 4), model.inverse_transform(model.transform(X[:5])))
    assert np.allclose(clean, given + 1)
    for wrong in ({"shape": (3, 2)}, {"clean": X[:4]}):
        with pytest.raises(InvalidInput, match="PreImagesDisplay"):
            PreImagesDisplay.from_estimator(model, X[:5], **wrong)
    with pytest.raises(InvalidInput, match="fit_inverse_transform=True"):
        PreImagesDisplay.from_estimator(mercer.KernelPCA(2).fit(X), X)


def test_rows_above_a_limit_are_marked():
    model = mercer.KernelPCA(2, "gaussian(gamma=0.1)").fit(X[:100])
    display = ControlChartDisplay.from_estimator(model, X, level=0.9)
    limits = model.control_limits(0.9)
    for alarms, points, values, limit in zip(
        display.alarms_, display.points_, (model.hotelling_t2(X), model.spe(X)), limits[:2], strict=True
    ):
        assert alarms.get_xdata().tolist() == np.flatnonzero(values > limit).tolist()
        assert len(points.get_xdata()) + len(alarms.get_xdata()) == len(X)
    assert display.limits_[1].get_ydata()[0] == limits.spe
    assert display.ax_[1].get_title(loc="left").endswith("above the 90 % limit")


def test_of_many_rows_the_largest_are_drawn():
    rng = np.random.default_rng(0)
    model = mercer.KernelPCA(2, "linear").fit(rng.normal(size=(200, 3)))
    rows = rng.normal(size=(20_000, 3))
    rows[777] = 50
    display = ControlChartDisplay.from_estimator(model, rows)
    assert 777 in display.alarms_[0].get_xdata()
    assert display.notes_[0].endswith("of 20,000 rows drawn, the largest among them")
