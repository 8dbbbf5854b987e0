"""`mercer fit --method`: each method goes through files, and is refused where it must be."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from sklearn.datasets import load_breast_cancer, load_diabetes  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.methods.supervised import METHODS, best_penalty, regularisation  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.io import load  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402

KERNEL = ["--kernel", "gaussian(gamma=0.03)"]


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    frame = load_breast_cancer(as_frame=True).frame.iloc[:240]
    frame.assign(kind=np.where(frame.pop("target") == 1, "benign", "malign")).to_csv(folder / "kinds.csv", index=False)
    load_diabetes(as_frame=True).frame.iloc[:200].to_csv(folder / "numbers.csv", index=False)
    return folder


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if "classification" in one.make])
def test_a_classification_goes_through_file_prediction_and_evaluation(folder, tmp_path, method):
    out = tmp_path / "m.mercer"
    done = mercer("fit", folder / "kinds.csv", "--target", "kind", "--method", method, *KERNEL, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["method"] == method
    assert found["score"]["accuracy"] > 0.88 > found["guessing"]["accuracy"]
    predicted = mercer("predict", out, folder / "kinds.csv", "--proba", "--json")
    columns = json.loads(predicted.stdout)["predictions"]
    P = np.column_stack([columns["P(benign)"], columns["P(malign)"]])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.array_equal(np.array(["benign", "malign"])[P.argmax(axis=1)], columns["kind"])
    evaluated = json.loads(mercer("evaluate", out, folder / "kinds.csv", "--json").stdout)
    assert evaluated["score"]["accuracy"] > 0.9
    shown = mercer("inspect", out)
    assert shown.exit_code == 0, shown.output
    assert regularisation(load(out).estimator) in shown.stdout


@pytest.mark.parametrize("method", ["svm", "gp"])
def test_a_regression_goes_through_a_file_and_its_line_can_be_given_again(folder, tmp_path, method):
    out = tmp_path / "m.mercer"
    given = ["fit", folder / "numbers.csv", "--target", "target", *KERNEL, "--method", method]
    done = mercer(*given, "--out", out, "--report", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    model = load(out)
    assert model.score(pd.read_csv(folder / "numbers.csv")) > 0.4
    assert f"--method {method}" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_process_tells_the_deviations_of_new_values(folder, tmp_path):
    """By the dense matrix; in a stream of rows, too; and `fit` and `evaluate` say how many values they cover."""
    out, table = tmp_path / "m.mercer", folder / "numbers.csv"
    given = ["fit", table, "--target", "target", *KERNEL, "--method", "gp", "--out", out]
    done = mercer(*given, "--json")
    assert 0.85 < json.loads(done.stdout)["score"]["95% coverage"] <= 1, done.output
    assert "m.mercer TABLE --std" in mercer(*given).stdout
    found = json.loads(mercer("predict", out, table, "--std", "--json").stdout)["predictions"]
    model, frame = load(out), pd.read_csv(table)
    process, X = model.estimator, model.encoder.transform(frame)
    K = np.asarray(process.kernel_(X, X))
    C = K + process.alpha_ * np.eye(len(K))
    variance = process.alpha_ + np.diag(K - K @ np.linalg.solve(C, K))
    np.testing.assert_allclose(found["target_std"], process.y_scale_ * np.sqrt(variance), rtol=1e-8)
    assert "numbers have no class probabilities" in mercer("predict", out, table, "--std", "--proba").stderr
    latent = model.predict(frame, return_std=True)[1]
    np.testing.assert_allclose(latent, process.y_scale_ * np.sqrt(variance - process.alpha_), rtol=1e-6)
    within = np.abs(frame["target"] - found["target"]) <= 1.96 * np.array(found["target_std"])
    assert json.loads(mercer("evaluate", out, table, "--json").stdout)["score"]["95% coverage"] == within.mean()
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "rows.parquet")
    done = mercer("predict", out, tmp_path / "rows.parquet", "--std", "--out", tmp_path / "s.csv")
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "s.csv"), pd.DataFrame(found), rtol=1e-12)


def test_other_methods_have_no_deviations(folder, tmp_path):
    out, table = tmp_path / "m.mercer", folder / "numbers.csv"
    assert mercer("fit", table, "--target", "target", *KERNEL, "--alpha", 1, "--out", out).exit_code == 0
    done = mercer("predict", out, table, "--std")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "m.mercer holds a KernelRidge, which has no standard deviations; leave --std out" in done.stderr
    assert mercer("predict", out, table, "--std", "--proba").stderr.startswith("mercer: --std: ")
    with pytest.raises(InvalidInput, match="return_std of a KernelRidge; fit a GaussianProcessRegressor"):
        load(out).predict(pd.read_csv(table), return_std=True)


def test_a_machine_has_the_optimum_of_the_cost_that_alpha_says(folder, tmp_path):
    out = tmp_path / "m.mercer"
    done = mercer("fit", folder / "kinds.csv", "--target", "kind", "--method", "svm", *KERNEL, "--alpha", "0.25",
                  "--out", out)  # fmt: skip
    assert done.exit_code == 0, done.output
    model, frame = load(out), pd.read_csv(folder / "kinds.csv")
    assert model.estimator.C == 2.0
    X = model.encoder.transform(frame)
    theirs = SVC(C=2.0, gamma=0.03, tol=1e-6).fit(X, frame["kind"])
    np.testing.assert_allclose(model.decision_function(frame), theirs.decision_function(X), atol=2e-3)


def test_alpha_is_the_one_of_the_best_mean_score(folder):
    frame = pd.read_csv(folder / "numbers.csv")
    X, y = frame.drop(columns="target").to_numpy(), frame["target"].to_numpy()
    kernel = Gaussian(gamma=30.0)
    found = best_penalty(METHODS["svm"], "regression", [kernel], X, y, 0)
    alone = [
        best_penalty(_only(METHODS["svm"], alpha), "regression", [kernel], X, y, 0) for alpha in METHODS["svm"].alphas
    ]
    assert found.score == max(one.score for one in alone)
    assert len({one.score for one in alone}) > 1
    assert best_penalty(METHODS["discriminant"], "classification", [kernel], X, y, 0) is None


def _only(method, alpha):
    return replace(method, alphas=(alpha,))


def test_smaller_alphas_are_tried_while_the_smallest_is_the_best(rng):
    X = rng.standard_normal((90, 2))
    y, kernel = np.sin(3 * X[:, 0]), Gaussian(gamma=1.0)
    method = replace(METHODS["svm"], alphas=(50.0, 5.0))
    found = best_penalty(method, "regression", [kernel], X, y, 0)
    assert (found.alpha, found.tried) == (5.0 / 100, 5)  # without noise 0.005 is no worse, but no better
    flat = best_penalty(method, "regression", [kernel], X, rng.standard_normal(90), 0)
    assert flat.tried == 2


def test_the_method_chooses_among_kernels_that_ridge_regression_cannot_tell_apart(folder):
    frame = pd.read_csv(folder / "numbers.csv")
    X, y = frame.drop(columns="target").to_numpy(), frame["target"].to_numpy()
    kernels = [Gaussian(gamma=100.0), Gaussian(gamma=0.1)]
    one, two = (best_penalty(METHODS["svm"], "regression", [kernel], X, y, 0) for kernel in kernels)
    both = best_penalty(METHODS["svm"], "regression", kernels, X, y, 0)
    assert both == replace(max(one, two, key=lambda found: found.score), tried=one.tried + two.tried)
    assert one.score != two.score


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "forest"], "'forest' is not a method; for a regression choose ridge, svm or gp"),
        (["--method", "logistic"], "logistic is not for a regression"),
        (["--method", "svm", "--alpha", "-1"], "--alpha: -1"),
    ],
)
def test_what_is_wrong_is_one_line(folder, options, words):
    done = mercer("fit", folder / "numbers.csv", "--target", "target", *options)
    assert done.exit_code == 2
    assert words in done.stderr
