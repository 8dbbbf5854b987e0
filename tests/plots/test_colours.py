"""Colours and shapes can be told apart with any colour vision, and names from data are no formulas."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_moons

plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402

import mercer  # noqa: E402
from mercer.plots import DecisionSurfaceDisplay, ScoresDisplay, film  # noqa: E402
from mercer.plots.drawing.style import CLASSES, NEGATIVE, POSITIVE  # noqa: E402

# Linear RGB as seen without the receptors of long, middle and short waves: Machado, Oliveira and Fernandes (2009).
SEEN = {
    "all": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no middle": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lab(linear):
    """CIE L*a*b*, in which equal distances look equally large."""
    x = np.clip(linear, 0, 1) @ np.transpose(TO_XYZ) / [0.95047, 1.0, 1.08883]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


@pytest.mark.parametrize("vision", SEEN)
def test_colours_of_classes_differ(vision):
    rgb = np.array([to_rgb(one) for one in CLASSES])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = lab(linear @ np.transpose(SEEN[vision]))
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1) + 1000 * np.eye(len(seen))
    assert distance.min() > 15  # differences from 2 or 3 on are seen side by side
    assert np.linalg.norm(seen[CLASSES.index(POSITIVE)] - seen[CLASSES.index(NEGATIVE)]) > 60


def test_signs_have_shapes_of_equal_area():
    X, y = make_moons(60, noise=0.1, random_state=0)
    display = DecisionSurfaceDisplay.from_estimator(mercer.SVC(kernel="gaussian(gamma=2.0)").fit(X, y), X)
    shapes, colours = display.points_.get_paths(), display.points_.get_facecolors()
    up = [bool(np.allclose(colour[:3], to_rgb(POSITIVE))) for colour in colours]
    assert 0 < sum(up) < len(up)
    assert [len(one.vertices) == 5 for one in shapes] == up
    areas = [np.abs(area(one.to_polygons(closed_only=True)[0])) for one in shapes]
    assert np.allclose(areas, np.pi / 4, rtol=1e-2)


def area(corners):
    x, y = corners.T
    return (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def test_names_with_dollars_are_drawn_as_they_are():
    X, y = make_moons(60, noise=0.1, random_state=0)
    names = np.array(["US$ ^$", "$\\frac{$"])[y]
    display = ScoresDisplay.from_predictions(X, names)
    display.figure_.canvas.draw()
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["price_$^$", "b"])
    model = mercer.KernelPerceptron("gaussian(gamma=2.0)", max_iter=3, tol=None, keep_history=True).fit(frame, names)
    display = DecisionSurfaceDisplay.from_estimator(model, frame, names)
    display.figure_.canvas.draw()
    assert '"names":["price_$^$","b"]' in film(model, frame, names).html()


def test_classes_that_a_model_does_not_know_have_colours_of_their_own():
    X, y = make_moons(60, noise=0.1, random_state=0)
    display = DecisionSurfaceDisplay.from_estimator(mercer.KernelKMeans(2).fit(X), X, np.array(["one", "two"])[y])
    assert len({tuple(one.get_facecolors()[0]) for one in display.rows_}) == 2


def test_where_the_terms_cancel_the_surface_is_0():
    X, y = np.ones((40, 2)), np.repeat([0, 1], 20)
    display = DecisionSurfaceDisplay.from_estimator(mercer.SVC(kernel="gaussian(gamma=2.0)").fit(X, y), X, side=9)
    assert display.boundary_ is None
    assert not display.response.any()
