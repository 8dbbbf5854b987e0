"""The lab without a browser: settings, outcomes against other programs, and code that gives the numbers again."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC as PeerSVC

from mercer.errors import Cancelled, InvalidInput, NotAKernel
from mercer.events import Cancel, observe
from mercer.lab import BUNDLED, METHODS, Settings, bundled, kernel_of_parts, outcomes
from mercer.lab.settings import OPERATIONS, PARTS
from mercer.testing import assert_close
from mercer.validity import check_kernel
from mercer.validity.check import _search as search

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")


def last(data, settings):
    return list(outcomes(data, settings))[-1]


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("gaussian(gamma=gamma)", "gaussian(gamma=0.25)"),
        ("gaussian(gamma = γ) + laplace(gamma=gamma2)", "gaussian(gamma = 0.25) + laplace(gamma=7.0)"),
        ("exp(-gamma*sqdist**degree) * weight + coef0", "exp(-0.25*sqdist**2) * 3.0 + -1.0"),
        ("gammas(1)", "gammas(1)"),
        ("gaussian(gamma='median')", "gaussian(gamma='median')"),
    ],
)
def test_names_of_sliders_stand_for_their_numbers(text, read):
    assert Settings(kernel=text, gamma=0.25, gamma2=7.0, degree=2, weight=3.0, coef0=-1.0).text == read


def test_the_names_that_a_text_uses():
    assert Settings(kernel="gaussian(gamma=0.1) * weight + dot").used == ("weight",)
    assert Settings(kernel="gaussian(gamma=γ) + polynomial(degree=degree)").used == ("gamma", "degree")


@pytest.mark.parametrize("first", PARTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_kernel_of_parts_is_computed(first, operation):
    """With a weight every other time."""
    data = bundled("iris")
    parts = list(PARTS) if operation != "alone" else ["linear", "gaussian"]
    for at, second in enumerate(parts, list(PARTS).index(first)):
        settings = Settings("pca", kernel=kernel_of_parts(first, operation, second, bool(at % 2)))
        try:
            kernel = next(iter(outcomes(data, settings))).kernel
        except NotAKernel:  # a composition that is refused by name
            assert "sigmoid" in settings.kernel
            continue
        assert kernel(data.X[:3]).shape == (3, 3)


@pytest.mark.parametrize(
    "given",
    [
        {"method": "magic"},
        {"kernel": ""},
        {"kernel": "1 + " * 75 + "linear()"},
        {"gamma": float("nan")},
        {"gamma": 0},
        {"degree": 21},
        {"clusters": 1000},
        {"steps": 0},
        {"penalty": -1.0},
    ],
    ids=str,
)
def test_settings_are_bounded(given):
    with pytest.raises(InvalidInput, match="lab: "):
        Settings(**given)


@pytest.mark.parametrize("kernel", ["gauss()", "__import__('os')", "exp(-sqdist", "().__class__", "spectrum(k=3)"])
def test_what_is_no_kernel_of_such_rows_is_refused(kernel):
    with pytest.raises(InvalidInput):
        list(outcomes(bundled("iris"), Settings(kernel=kernel)))


def test_methods_that_need_classes_say_so():
    with pytest.raises(InvalidInput, match="needs classes"):
        list(outcomes(bundled("diabetes"), Settings("discriminant")))


# ---- outcomes --------------------------------------------------------------------------------------------------------


def test_scores_and_surfaces_are_those_of_another_program():
    data, settings = bundled("breast cancer"), Settings("svm", gamma=0.05, penalty=2.0, axes=(3, 7))
    found = last(data, settings)
    peer = PeerSVC(C=2.0, gamma=0.05, tol=1e-8).fit(data.X[~data.held], data.y[~data.held])
    assert found.score == pytest.approx(peer.score(data.X[data.held], data.y[data.held]))
    rows = np.tile(np.median(data.X, axis=0), (2, 1))
    rows[:, 3], rows[:, 7] = found.surface.x[[5, 50]], found.surface.y[[40, 11]]
    expected = peer.decision_function(rows)
    assert found.surface.values[[40, 11], [5, 50]] == pytest.approx(expected, abs=0.02)
    carried = np.flatnonzero(~data.held)[peer.support_]
    assert (found.surface.weights[carried] > 0).mean() > 0.99
    assert np.isnan(found.surface.weights[data.held]).all()


def test_the_steps_of_the_perceptron_are_those_of_the_chapter():
    """α := α + 2ηAᵀ(y − Aα), A = (1, K), from 0, with a step size below 1/λmax."""
    data, steps = bundled("exclusive or"), 7
    found = last(data, Settings("perceptron", gamma=3.0, steps=steps))
    X, y = data.X[~data.held], np.where(data.y[~data.held] == 1, 1.0, -1.0)
    gram = lambda Z: np.exp(-3 * ((Z[:, None] - X) ** 2).sum(axis=-1))  # noqa: E731
    A = np.column_stack([np.ones(len(X)), gram(X)])
    alpha, rate = np.zeros(len(X) + 1), 0.95 / np.linalg.eigvalsh(A.T @ A)[-1]
    for _ in range(steps):
        alpha += 2 * rate * A.T @ (y - A @ alpha)
    rows = np.array([[x, z] for z in found.surface.y for x in found.surface.x])
    expected = (alpha[0] + gram(rows) @ alpha[1:]).reshape(found.surface.values.shape)
    assert_close(found.surface.values, expected, rtol=2e-3)  # λmax is found to a thousandth
    agree = (alpha[0] + gram(data.X[data.held]) @ alpha[1:] > 0) == (data.y[data.held] == 1)
    assert found.score == pytest.approx(agree.mean())


def test_work_beyond_its_seconds_is_a_note_and_the_rest_is_shown(monkeypatch):
    monkeypatch.setattr("mercer.lab.session.MOST_SECONDS", 0.0)
    found = last(bundled("moons"), Settings())
    assert found.stage == "done"
    assert found.surface is None
    assert any("ridge regression is not done within 0 seconds" in note for note in found.notes)


def test_the_search_for_a_witness_can_be_cancelled():
    seen = []

    def when():
        seen.append(None)
        return len(seen) > 3

    with pytest.raises(Cancelled), observe(Cancel(when=when)):
        check_kernel("exp(-sqdist**1.31)")


def test_embedding_variances_and_gram_follow_their_definitions():
    data = bundled("helix")
    found = last(data, Settings("pca", kernel="polynomial(degree=degree, coef0=coef0)", degree=4, coef0=1.0))
    K = (data.X @ data.X.T + 1) ** 4
    H = np.eye(200) - 1 / 200
    values, vectors = np.linalg.eigh(H @ K @ H)
    assert_close(found.ratios, values[:-11:-1] / values.sum(), rtol=1e-9)
    assert found.score == pytest.approx(values[-2:].sum() / values.sum())
    scores = vectors[:, -2:][:, ::-1] * np.sqrt(values[-2:][::-1])
    assert_close(np.abs(found.embedding), np.abs(scores), rtol=1e-7)
    assert_close(found.gram, K, rtol=1e-12)  # t is in order, and there are 200 rows
    assert found.formula == "(⟨x, z⟩ + 1)⁴"


def test_rows_of_the_gram_matrix_are_in_the_order_of_the_classes():
    gram = last(bundled("iris"), Settings("svm", gamma=1.0)).gram
    within = np.mean([gram[i : i + 50, i : i + 50].mean() for i in (0, 50, 100)])
    assert gram.shape == (150, 150)
    assert within > 2 * gram[:50, 50:].mean()


@pytest.mark.parametrize("method", ["ridge", "svm", "pca", "kmeans"])
def test_a_table_of_one_column_has_a_curve(method):
    table = bundled("helix").with_columns((2,))
    found = last(table, Settings(method))
    assert found.surface.values.shape == found.surface.x.shape
    assert np.ptp(found.surface.values) > 0
    near = np.interp(table.X[:, 0], found.surface.x, found.surface.values)  # targets, or values of the model
    assert np.corrcoef(near, found.surface.y)[0, 1] > 0.9
    assert found.notes == ()


def test_the_same_column_on_both_axes_has_a_curve_and_can_be_used_alone():
    data = bundled("breast cancer")
    among, alone = (last(data, Settings("svm", axes=(3, 3), only_axes=only)) for only in (False, True))
    model = PeerSVC(C=0.1, gamma=0.1, tol=1e-8).fit(data.X[~data.held], data.y[~data.held])
    rows = np.tile(np.median(data.X, axis=0), (60, 1))
    rows[:, 3] = among.surface.x
    assert among.surface.values == pytest.approx(model.decision_function(rows), abs=0.02)
    assert among.surface.y == pytest.approx(model.decision_function(data.X), abs=0.02)
    assert np.interp(data.X[:, 3], alone.surface.x, alone.surface.values) == pytest.approx(alone.surface.y, abs=0.05)
    assert numbers_of(alone.python)["score"] == [alone.score]


def test_a_fit_and_the_verdict_search_for_one_witness(monkeypatch):
    searched = []
    monkeypatch.setattr("mercer.validity.check._search", lambda *given: searched.append(given[1].d) or search(*given))
    assert last(bundled("iris"), Settings("svm", kernel="exp(-0.37*sqdist**1.5)")).report.verdict == "refuted"
    assert searched == [4]


def test_the_two_columns_alone():
    data = bundled("iris")
    settings = Settings("svm", gamma=1.0, axes=(2, 3), only_axes=True)
    found = last(data, settings)
    peer = PeerSVC(C=0.1, gamma=1.0).fit(data.X[~data.held][:, 2:], data.y[~data.held])
    assert found.score == pytest.approx(peer.score(data.X[data.held][:, 2:], data.y[data.held]))
    assert found.surface.x[0] < data.X[:, 2].min() < data.X[:, 2].max() < found.surface.x[-1]
    assert numbers_of(found.python)["score"] == [found.score]


def test_a_function_that_is_no_kernel_has_a_witness_and_the_rest_is_still_shown():
    first, _, found = outcomes(bundled("moons"), Settings(kernel="exp(-gamma*sqdist**1.5)", gamma=2.0))
    assert first.report is None
    witness = found.report.witness
    points, z = np.array(witness.points, float), np.array(witness.z, float)
    distances = ((points[:, None] - points) ** 2).sum(axis=-1)
    assert z @ np.exp(-2 * distances**1.5) @ z == pytest.approx(witness.value)
    assert witness.value < 0
    assert found.gram.min() >= 0
    assert found.ratios is not None


def test_what_cannot_be_computed_is_a_note():
    found = last(bundled("moons"), Settings(kernel="tanh(dot-1)"))
    assert found.surface is None
    assert found.score is None
    assert any("has no solution" in note for note in found.notes)
    assert found.report.verdict == "refuted"


# ---- the code --------------------------------------------------------------------------------------------------------


def numbers_of(program: str) -> dict[str, list[float]]:
    """What a program prints: the numbers that follow each word."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program, "lab", "exec"), {})
    lines = [line.split() for line in said.getvalue().splitlines() if line.startswith(("score", "variances"))]
    return {name: [float(value) for value in values] for name, *values in lines}


@pytest.mark.parametrize("name", ["iris", "diabetes", "moons"])
@pytest.mark.parametrize("method", METHODS)
def test_the_code_gives_the_same_numbers(name, method):
    data = bundled(name)
    if data.task not in METHODS[method].estimators:
        pytest.skip("needs classes")
    settings = Settings(method, kernel="gaussian(gamma=gamma) + weight*linear()", gamma=0.3, weight=0.5)
    found = last(data, settings)
    printed = numbers_of(found.python)
    assert printed["score"] == [found.score]
    assert printed["variances"] == found.ratios.tolist()


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_tables_are_finite_and_have_a_quarter_held_out(name):
    data = bundled(name)
    n, d = data.X.shape
    assert np.isfinite(data.X).all()
    assert len(data.columns) == d
    assert len(data.y) == len(data.held) == n
    assert abs(data.held.sum() - n / 4) <= max(1, len(data.classes))
    assert np.isfinite(data.codes).all()


def test_an_unknown_bundled_table():
    with pytest.raises(InvalidInput, match="the bundled ones are moons"):
        bundled("mooons")


def test_support_vector_regression_is_in_units_of_the_target():
    """C = 1 is useful whatever these are, and so is ε."""
    data = bundled("diabetes")
    scores = [last(data, Settings("svm", gamma=0.01, penalty=C)).score for C in (0.1, 1.0)]
    assert scores[1] > 0.4
    small = replace(data, y=data.y / 1e6)
    assert last(small, Settings("svm", gamma=0.01, penalty=1.0)).score == pytest.approx(scores[1], abs=0.01)
