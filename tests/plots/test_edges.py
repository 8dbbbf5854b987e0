"""Every display on few, many and odd rows: a right picture, or one clear error."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError

plt = pytest.importorskip("matplotlib.pyplot")

import mercer  # noqa: E402
from mercer import plots  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.kernels import Spectrum  # noqa: E402

MILLION = 10**6


@dataclass(frozen=True)
class Case:
    """How a display is made of rows: an estimator, if it needs one, and what is drawn with it."""

    model: Callable[[], Any] | None
    draw: Callable[[Any, Any, Any], Any]
    one_class: str = "drawn"
    """Or "refused", by the fit of an estimator that needs two."""
    thins: bool = True
    """Whether a picture of a million rows leaves some out."""
    selects: bool = False
    """Whether it is of few of the rows in any case."""

    def fitted(self, X, y):
        return None if self.model is None else self.model().fit(X, y)


def svc():
    return mercer.SVC(kernel="gaussian(gamma=2.0)")


def pca():
    return mercer.KernelPCA(2, "gaussian(gamma=2.0)")


def as_text(X):
    """The rows as sequences, one letter for each sign."""
    return ["".join("AC"[int(value > 0)] for value in np.tile(row, 3)) for row in X]


class Sequences(mercer.KernelRidge):
    """Ridge regression on the rows as sequences."""

    def __init__(self):
        super().__init__(Spectrum(2))

    def fit(self, X, y):
        return super().fit(as_text(X), y)


CASES = {
    "ControlChartDisplay": Case(pca, lambda model, X, y: plots.ControlChartDisplay.from_estimator(model, X)),
    "ExplanationDisplay": Case(
        lambda: mercer.KernelRidge("gaussian(gamma=2.0)"),
        lambda model, X, y: plots.ExplanationDisplay.from_estimator(model, X[:1]),
        thins=False,
    ),
    "ExplanationDisplay, of many rows": Case(
        lambda: mercer.KernelRidge("gaussian(gamma=2.0)"),
        lambda model, X, y: plots.ExplanationDisplay.from_estimator(model, X, row=2),
        selects=True,
    ),
    "PreImagesDisplay": Case(
        lambda: mercer.KernelPCA(2, "linear"),
        lambda model, X, y: plots.PreImagesDisplay.from_estimator(model, X, X),
        selects=True,
    ),
    "RegularizationPathDisplay": Case(
        lambda: mercer.KernelRidgeCV("gaussian(gamma=2.0)", store_cv_results=True),
        lambda model, X, y: plots.RegularizationPathDisplay.from_estimator(model),
        thins=False,
        selects=True,
    ),
    "SequenceLogoDisplay": Case(
        lambda: Sequences(),
        lambda model, X, y: plots.SequenceLogoDisplay.from_estimator(model, as_text(X[:10]) * max(len(X) // 10, 1)),
        selects=True,
    ),
    "DecisionSurfaceDisplay, two classes": Case(
        svc, lambda model, X, y: plots.DecisionSurfaceDisplay.from_estimator(model, X, y), "refused"
    ),
    "DecisionSurfaceDisplay, a regression": Case(
        lambda: mercer.KernelRidge("gaussian(gamma=2.0)"),
        lambda model, X, y: plots.DecisionSurfaceDisplay.from_estimator(model, X),
    ),
    "DecisionSurfaceDisplay, clusters": Case(
        lambda: mercer.KernelKMeans(2, "gaussian(gamma=2.0)"),
        lambda model, X, y: plots.DecisionSurfaceDisplay.from_estimator(model, X, y),
    ),
    "ComponentsDisplay": Case(pca, lambda model, X, y: plots.ComponentsDisplay.from_estimator(model, X)),
    "GramDisplay": Case(pca, lambda model, X, y: plots.GramDisplay.from_estimator(model, X, y)),
    "GramDisplay, clusters": Case(
        lambda: mercer.KernelKMeans(2), lambda model, X, y: plots.GramDisplay.from_estimator(model, X)
    ),
    "PosteriorDisplay": Case(
        lambda: mercer.KernelRidge("gaussian(gamma=2.0)"),
        lambda model, X, y: plots.PosteriorDisplay.from_estimator(model, X, y),
    ),
    "PosteriorDisplay, no variance": Case(
        lambda: mercer.KernelLMS("gaussian(gamma=2.0)", tol=None, max_iter=9),
        lambda model, X, y: plots.PosteriorDisplay.from_estimator(model, X, y, column=1),
    ),
    "ScoresDisplay": Case(pca, lambda model, X, y: plots.ScoresDisplay.from_estimator(model, X, y)),
    "ScoresDisplay, of one component": Case(
        pca, lambda model, X, y: plots.ScoresDisplay.from_estimator(model, X, components=[0])
    ),
    "ScoresDisplay, known": Case(None, lambda _, X, y: plots.ScoresDisplay.from_predictions(X, y)),
    "SpectrumDisplay": Case(pca, lambda model, X, y: plots.SpectrumDisplay.from_estimator(model, X)),
    "SpectrumDisplay, no kernel": Case(None, lambda _, X, y: plots.SpectrumDisplay.from_kernel("sigmoid", X)),
    "WitnessDisplay": Case(
        None, lambda _, X, y: plots.WitnessDisplay.from_kernel("maximum(0, 1 - sqdist)", X[:50]), thins=False
    ),
    "VariancesDisplay": Case(pca, lambda model, X, y: plots.VariancesDisplay.from_estimator(model), thins=False),
    "VariancesDisplay, of kernels": Case(
        None, lambda _, X, y: plots.VariancesDisplay.from_kernels(["linear", "polynomial(degree=2)"], X)
    ),
}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def data(n):
    X, y = make_moons(n, noise=0.1, random_state=0)
    return (X, np.array([0, 1, 1])) if n == 3 else (X, y)


def shown(display):
    """The picture as a screen would have it; a warning on the way is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display.figure_.canvas.draw()
    return display


def test_every_display_is_in_the_table():
    displays = {name for name in plots.__all__ if name.endswith("Display")} - {"Display"}
    assert displays - {"LearningCurveDisplay"} == {name.split(",")[0] for name in CASES}  # it fits by itself: below


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [3, 300])
def test_few_rows_are_all_drawn(name, n):
    case, (X, y) = CASES[name], data(n)
    display = shown(case.draw(case.fitted(X, y), X, y))
    assert case.selects or not any(" of " in note for note in display.notes_)
    assert all(text.get_text() for text in display.figure_.findobj(plt.Annotation))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.thins])
def test_a_million_rows_are_thinned_and_the_picture_says_so(name):
    case, (X, y) = CASES[name], data(300)
    rows = np.random.default_rng(0).integers(300, size=MILLION)
    display = shown(case.draw(case.fitted(X, y), X[rows], y[rows]))
    said = [text.get_text() for text in display.figure_.findobj(plt.Text)]
    assert any("of 1,000,000" in text for text in said), said


@pytest.mark.parametrize("name", CASES)
def test_one_class(name):
    case, (X, _) = CASES[name], data(300)
    y = np.zeros(300, int)
    if case.one_class == "refused":
        with pytest.raises(ValueError, match="class"):
            case.model().fit(X, y)
        return
    shown(case.draw(case.fitted(X, y), X, y))


@pytest.mark.parametrize("name", CASES)
def test_constant_columns(name):
    case, (X, y) = CASES[name], data(300)
    X = np.column_stack([X[:, 0], np.full(300, 5.0), np.zeros(300)])
    shown(case.draw(case.fitted(X, y), X, y))


def test_learning_curves_of_few_and_many_rows(monkeypatch):
    X, y = data(300)
    draw = plots.LearningCurveDisplay.from_estimator
    shown(draw(svc(), X, y, sizes=[0.5, 1.0], cv=3))
    shown(draw(svc(), np.column_stack([X[:, 0], np.zeros(300)]), y, sizes=[1.0], cv=3))
    for rows in (slice(0, 3), y == 0):
        with pytest.raises(InvalidInput, match="give more rows"):
            draw(svc(), X[rows], y[rows])
    with pytest.raises(InvalidInput, match="not numbers, as R² of one row; give more rows"):
        draw(mercer.KernelRidge(), X[:3], X[:3, 0], cv=3)
    with warnings.catch_warnings(), pytest.raises(InvalidInput, match="R² of one row"):
        warnings.simplefilter("ignore")  # of scikit-learn, for each fold
        draw(mercer.KernelRidge(), X[:3], X[:3, 0], cv=2)
    rows = np.random.default_rng(0).integers(300, size=MILLION)
    monkeypatch.setattr("mercer.plots.learning.MOST_ROWS", 200)
    many = shown(draw(svc(), X[rows], y[rows], sizes=[1.0], cv=2))
    assert many.notes_ == ["200 of 1,000,000 rows drawn"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.model])
def test_a_model_that_is_not_fitted_is_refused(name):
    case, (X, y) = CASES[name], data(300)
    with pytest.raises(NotFittedError, match="fit"):
        case.draw(case.model(), X, y)


@pytest.mark.parametrize("name", CASES)
def test_a_picture_is_drawn_again_in_axes_that_are_given(name):
    case, (X, y) = CASES[name], data(300)
    display = case.draw(case.fitted(X, y), X, y)
    figure, axes = plt.subplots(1, np.size(display.ax_), squeeze=False)
    given = axes[0] if isinstance(display.ax_, np.ndarray) else axes[0, 0]
    again = display.plot(given)
    assert again is display
    assert again.figure_ is figure
    assert np.ravel(again.ax_).tolist() == np.ravel(given).tolist()


def test_several_axes_are_asked_for_by_number():
    X, _ = data(300)
    with pytest.raises(InvalidInput, match="1 axes for 2 pictures"):
        plots.ComponentsDisplay.from_estimator(pca().fit(X), X, ax=[plt.figure().add_subplot()])


def test_pictures_need_no_display_server_and_mercer_no_matplotlib():
    code = """
import io, sys, numpy as np, mercer
late = {"matplotlib", "PIL", "jinja2", "bokeh", "tornado", "typer", "dask", "distributed"} & sys.modules.keys()
assert not late, f"import mercer imports {late}"
from mercer.plots import ComponentsDisplay
X = np.random.default_rng(0).normal(size=(20, 2))
ComponentsDisplay.from_estimator(mercer.KernelPCA(2).fit(X), X).figure_.savefig(io.BytesIO())
import matplotlib
print(matplotlib.get_backend())
"""
    free = {key: value for key, value in os.environ.items() if key not in ("MPLBACKEND", "DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], env=free, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().lower() == "agg"


def test_without_matplotlib_the_error_says_what_to_install():
    code = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "matplotlib" else found(name, *rest)
import mercer.plots
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'mercer.plots: matplotlib is not installed; pip install "mercer[plots]".' in done.stderr


LONG = "a name of a class or of a column as long as those of museums and of laboratories"


def test_long_names_leave_room_for_the_picture():
    """The names took all of the figure, or were cut at its edge: they are shortened, and their ends are kept."""
    X, y = make_moons(60, noise=0.1, random_state=0)
    names = np.array([f"{LONG}, one", f"{LONG}, two"])[y]
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"{LONG}, first", f"{LONG}, second"])
    drawn = [
        plots.GramDisplay.from_kernel("gaussian", X, names),
        plots.ExplanationDisplay.from_estimator(mercer.SVC().fit(X, names), X, row=3),
        plots.ComponentsDisplay.from_estimator(mercer.KernelPCA(4).fit(frame), frame),
    ]
    for one in drawn:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # matplotlib's, of a layout that it gave up
            one.figure_.canvas.draw()
        texts = [text.get_text() for text in one.figure_.findobj(plt.Text)]
        assert any("…" in text for text in texts)
        assert not any(LONG in text for text in texts)
        plt.close(one.figure_)


def test_many_terms_of_an_explanation_have_a_taller_picture():
    X, y = make_moons(80, noise=0.1, random_state=0)
    model = mercer.KernelRidge().fit(X, 1e6 * y)
    few, many = (plots.ExplanationDisplay.from_estimator(model, X, row=0, count=count) for count in (10, 50))
    assert many.figure_.get_figheight() > 2 * few.figure_.get_figheight()
    few.figure_.canvas.draw()
    places = [one.get_window_extent() for one in few.ax_.get_xticklabels() if one.get_text()]
    assert all(left.x1 < right.x0 for left, right in pairwise(places))


def test_classes_that_share_colours_are_counted():
    X, _ = make_moons(120, noise=0.1, random_state=0)
    model = mercer.KernelRidgeClassifier("gaussian").fit(X, np.arange(120) % 12)
    drawn = plots.DecisionSurfaceDisplay.from_estimator(model, X)
    assert "12 classes share 8 colours" in drawn.notes_


@pytest.mark.parametrize("name", ["DecisionSurfaceDisplay", "ComponentsDisplay", "PosteriorDisplay", "film"])
def test_rows_without_a_place_in_a_plane_are_named(name):
    texts, y = ["abc", "abd", "cde", "acd"], [0, 1, 0, 1]
    model = {
        "DecisionSurfaceDisplay": mercer.SVC(kernel=Spectrum(2)),
        "ComponentsDisplay": mercer.KernelPCA(2, Spectrum(2)),
        "PosteriorDisplay": mercer.GaussianProcessRegressor(Spectrum(2), optimize=False),
        "film": mercer.KernelPerceptron(Spectrum(2), keep_history=True),
    }[name].fit(texts, y)
    draw = plots.film if name == "film" else getattr(plots, name).from_estimator
    with pytest.raises(InvalidInput, match=rf"{name}: rows of type str, which have no place in a plane; draw"):
        draw(model, texts, y) if name in ("film", "DecisionSurfaceDisplay") else draw(model, texts)
