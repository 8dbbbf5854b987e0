"""Films: their frames are the model's own steps, and a page or a GIF has them all."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

plt = pytest.importorskip("matplotlib.pyplot")
from PIL import Image  # noqa: E402

import mercer  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.plots import film  # noqa: E402

X, y = make_moons(80, noise=0.15, random_state=0)


def perceptron(**options):
    return mercer.KernelPerceptron(
        "gaussian(gamma=2.0)", **{"max_iter": 12, "tol": None, "keep_history": True, **options}
    )


def data_of(page):
    return json.loads(re.search(r'id="film">(.*?)</script>', page, re.DOTALL).group(1))


def unpacked(text, dtype, frames):
    """As the page's script does it: differences that are summed, and wrap."""
    one = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(frames, -1)
    return np.cumsum(one, axis=0, dtype=dtype)


def test_frames_are_the_steps_of_the_decision_function():
    model = perceptron(keep_history=3).fit(X, y)
    moons = film(model, X, y, side=9)
    assert moons.steps.tolist() == [0, 3, 6, 9, 12]
    a, b = np.meshgrid(*moons.axes)
    grid = np.column_stack([a.ravel(), b.ravel()])
    for frame, scores in zip(moons.values, model.staged_decision_function(grid), strict=True):
        assert np.allclose(frame.ravel(), scores)
    assert np.array_equal(moons.coefficients, model.history_[:, 1:, 0])
    assert np.array_equal(moons.points[0], X)


def test_a_page_has_the_frames_and_asks_for_nothing():
    moons = film(perceptron().fit(X, y), X, y, side=16)
    page = moons.html()
    data = data_of(page)
    size = data["scale"][1]
    values = unpacked(data["values"], np.uint8, 13).astype(float)
    expected = np.clip(moons.values.reshape(13, -1) / size, -1, 1)
    root = (values - 128) / 127
    assert np.allclose(root * np.abs(root), expected, atol=1 / 127)
    assert np.array_equal(np.sign(root)[np.abs(expected) > 1e-4], np.sign(expected)[np.abs(expected) > 1e-4])
    alpha = unpacked(data["alpha"], np.uint8, 13).astype(float)
    assert np.allclose((alpha - 128) / 127, moons.coefficients / np.abs(moons.coefficients).max(), atol=0.5 / 127)
    assert data["steps"] == list(range(13))
    assert data["labels"] == y.tolist()
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "default-src 'none'" in page
    for control in ('type="range"', "<button", "<output", 'aria-label="Frame"'):
        assert control in page


def test_names_cannot_leave_the_script_that_they_are_in():
    labels = np.where(y > 0, "</script><b>", "ok")
    page = film(perceptron(max_iter=2).fit(X, labels), X, labels, side=4).html()
    assert page.count("</script>") == 2
    assert data_of(page)["classes"] == ["</script><b>", "ok"]


def test_a_thousand_frames_of_two_moons_are_below_three_megabytes(tmp_path):
    moons = film(perceptron(max_iter=1000).fit(X, y), X, y)
    assert len(moons) == 1001
    assert not moons.said
    assert len(moons.html()) < 3e6
    moons.save(tmp_path / "moons.gif")
    assert (tmp_path / "moons.gif").stat().st_size < 3e6
    with Image.open(tmp_path / "moons.gif") as gif:
        assert gif.n_frames == 60


def test_pages_that_would_be_large_have_fewer_frames(monkeypatch):
    import mercer.plots.films.page as module

    moons = film(perceptron(max_iter=200).fit(X, y), X, y)
    monkeypatch.setattr(module, "MOST_BYTES", len(moons.html()) // 3)
    page = moons.html()
    data = data_of(page)
    assert len(json.dumps(data)) < len(moons.html()) * 1.5
    assert 2 <= len(data["steps"]) < 201
    assert data["steps"][0] == 0
    assert data["steps"][-1] == 200
    assert data["notes"] == [f"{len(data['steps'])} of 201 frames shown"]


def test_one_frame():
    moons = film(perceptron().fit(X, y), X, y, frames=1)
    assert moons.steps.tolist() == [12]
    assert moons.said == ["1 of 13 frames shown"]
    assert data_of(moons.html())["steps"] == [12]
    with pytest.raises(InvalidInput, match="frames=0"):
        film(perceptron().fit(X, y), X, y, frames=0)


@pytest.mark.parametrize("ending", ["html", "gif"])
def test_curves(ending, tmp_path):
    x = np.linspace(-1, 1, 20)[:, None]
    target = 1 - 2 * x[:, 0] ** 3
    model = mercer.KernelLMS("monomialsum(degree=3)", max_iter=8, tol=None, keep_history=True).fit(x, target)
    cubic = film(model, x, target)
    for frame, f in zip(cubic.values, model.staged_predict(cubic.axes[0][:, None]), strict=True):
        assert np.allclose(frame, f)
    assert np.allclose(cubic.rows, np.column_stack([x[:, 0], target]))
    data = data_of(cubic.html())
    low, high = data["limits"][1]
    drawn = low + unpacked(data["values"], np.dtype("<u2"), 9) / 65535 * (high - low)
    assert np.allclose(drawn, np.clip(cubic.values, low, high), atol=(high - low) / 65535)
    cubic.save(tmp_path / f"cubic.{ending}")
    assert (tmp_path / f"cubic.{ending}").stat().st_size > 1000
    with pytest.raises(InvalidInput, match="without targets"):
        film(model, x)


def test_steps_of_k_means_move_the_rows_between_clusters(tmp_path):
    model = mercer.KernelKMeans(3, "gaussian(gamma=0.5)", keep_history=True).fit(X)
    steps = film(model, X, side=12)
    assert steps.kind == "classes"
    assert np.array_equal(steps.labels, model.history_)
    a, b = np.meshgrid(*steps.axes)
    assert np.array_equal(steps.values[-1].ravel(), model.predict(np.column_stack([a.ravel(), b.ravel()])))
    data = data_of(steps.html())
    assert np.array_equal(unpacked(data["clusters"], np.uint8, len(steps)), model.history_)
    steps.save(tmp_path / "steps.gif")


def test_classes_are_those_of_the_largest_f(tmp_path):
    I, names = load_iris().data[:, :2], load_iris().target_names[load_iris().target]
    model = perceptron(max_iter=4).fit(I, names)
    flowers = film(model, I, names, side=10)
    a, b = np.meshgrid(*flowers.axes)
    assert np.array_equal(
        np.array(flowers.classes)[flowers.values[-1].ravel()], model.predict(np.column_stack([a.ravel(), b.ravel()]))
    )
    flowers.save(tmp_path / "flowers.gif")


@pytest.mark.parametrize(
    "model",
    [
        mercer.OnlineKernelClassifier("gaussian(gamma=2.0)", budget=10),
        mercer.OnlineKernelRegressor("gaussian(gamma=2.0)", budget=10),
    ],
    ids=lambda model: type(model).__name__,
)
def test_online_models_meet_the_rows_part_by_part(model, tmp_path):
    met = film(model, X, y, side=8)
    assert met.steps[-1] == 80
    assert met.unit == "rows met"
    assert not hasattr(model, "dual_coef_")
    learner = type(model)(**model.get_params()).partial_fit(X, y, **({"classes": [0, 1]} if "C" in str(model) else {}))
    a, b = np.meshgrid(*met.axes)
    f = getattr(learner, "decision_function", learner.predict)(np.column_stack([a.ravel(), b.ravel()]))
    assert np.allclose(met.values[-1].ravel(), f / np.abs(f).max(), atol=1e-6)
    data = data_of(met.html())
    if met.points is not None:
        moves = unpacked(data["moves"], np.dtype("<u2"), len(met)).reshape(met.points.shape) / 65535
        (left, right), (low, high) = data["limits"]
        used = met.coefficients != 0
        expected = (met.points - [left, low]) / [right - left, high - low]
        assert np.allclose(moves[used], np.clip(expected[used], 0, 1), atol=1e-4)
    met.thinned(3).save(tmp_path / "met.gif")


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: mercer.OnlineKernelClassifier(
            "gaussian(gamma=2.0)", budget=10, n_passes=1, shuffle=False, **more
        ),
        lambda **more: mercer.OnlineKernelRegressor("gaussian(gamma=2.0)", budget=10, shuffle=False, **more),
    ],
)
def test_the_history_of_an_online_model_is_what_a_copy_would_meet(make):
    kept, met = film(make(keep_history=8).fit(X, y), X, side=8), film(make(), X, y, side=8, frames=10)
    assert kept.unit == met.unit == "rows met"
    assert np.array_equal(kept.steps, met.steps)
    assert np.allclose(kept.values, met.values, atol=1e-6)
    assert np.allclose(kept.points, met.points, atol=1e-6)
    assert np.allclose(kept.coefficients, met.coefficients, atol=1e-6)


def test_models_of_other_libraries_are_filmed_too():
    met = film(SGDClassifier(random_state=0), X, y, side=4)
    assert (met.kind, met.steps[-1], met.points) == ("surface", 80, None)
    assert len(data_of(met.html())["steps"]) == 80


def test_values_that_are_not_finite_do_not_stop_a_film():
    with pytest.warns(mercer.errors.ConvergenceWarning):
        model = mercer.KernelLMS("linear", step_size=1e3, max_iter=200, keep_history=True).fit(X, y)
    page = film(model, X, y, side=5).html()
    assert np.all(np.isfinite(data_of(page)["scale"]))


def test_a_million_rows_are_thinned_and_the_film_says_so():
    rows = np.random.default_rng(0).integers(80, size=10**6)
    moons = film(perceptron().fit(X, y), X[rows], y[rows], side=4)
    assert len(moons.rows) == 400
    assert moons.said == ["400 of 1,000,000 rows drawn"]


@pytest.mark.parametrize("n", [3, 80])
def test_few_rows_and_constant_columns(n, tmp_path):
    some = np.column_stack([X[:n, 0], np.full(n, 2.0)])
    labels = np.arange(n) % 2
    film(perceptron(max_iter=2).fit(some, labels), some, labels, side=4).save(tmp_path / "few.gif")


@pytest.mark.parametrize(
    ("make", "error", "say"),
    [
        (lambda: film(mercer.SVC().fit(X, y), X), InvalidInput, "does not say what it was at each step"),
        (lambda: film(perceptron(keep_history=False).fit(X, y), X), InvalidInput, "keep_history=True"),
        (lambda: film(mercer.KernelKMeans(2).fit(X), X), InvalidInput, "keep_history=True"),
        (lambda: film(perceptron(), X, y), NotFittedError, "fit"),
        (lambda: film(mercer.OnlineKernelClassifier(), X), InvalidInput, "give y"),
        (lambda: film(perceptron().fit(X, y), X, side=4).save("film.mp4"), InvalidInput, '".gif" or ".html"'),
    ],
)
def test_what_cannot_be_filmed_is_refused(make, error, say):
    with pytest.raises(error, match=say):
        make()


@pytest.mark.parametrize("name", ["moons.gif", "moons.html"])
def test_a_disk_without_room_keeps_the_film_that_was_there(name, tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    moons = film(perceptron(max_iter=2).fit(X, y), X, side=4)
    (tmp_path / name).write_bytes(b"before")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match=rf"film: .*{name} cannot be written \(No space left on device\)"):
        moons.save(tmp_path / name)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"before"]


def test_notebooks_show_the_film():
    moons = film(perceptron(max_iter=2).fit(X, y), X, side=4)
    assert "<iframe srcdoc=" in moons._repr_html_()
    assert "<main>" in moons.html()
