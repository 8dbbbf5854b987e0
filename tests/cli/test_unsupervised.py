"""`mercer fit` without a target, and what `transform` and `predict` make of such models."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from sklearn.datasets import load_iris, make_blobs  # noqa: E402
from sklearn.decomposition import KernelPCA as TheirPCA  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import OneClassSVM as TheirOneClass  # noqa: E402

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import completion  # noqa: E402
from mercer.cli.methods.supervised import METHODS  # noqa: E402
from mercer.cli.methods.unsupervised import UNSUPERVISED  # noqa: E402
from mercer.io import load  # noqa: E402


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


def result(*args):
    done = mercer(*args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Iris with names of its kinds, three blobs, and texts of two kinds."""
    folder = tmp_path_factory.mktemp("unsupervised")
    iris = load_iris(as_frame=True).frame
    iris.columns = ["a", "b", "c", "d", "kind"]
    iris.to_csv(folder / "iris.csv", index=False)
    X, y = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "true": y}).to_csv(folder / "blobs.csv", index=False)
    (folder / "words.fasta").write_text(
        "".join(f">{i % 2}\n{('ACAC' if i % 2 else 'GTGT') * (2 + i % 5)}\n" for i in range(24))
    )
    return folder


def test_components_are_those_of_scikit_learn(folder, tmp_path):
    out = tmp_path / "m"
    given = ["--method", "pca", "--components", 3, "--target", "kind", "--kernel", "gaussian(gamma=0.1)"]
    found = result("fit", folder / "iris.csv", *given, "--out", out)
    assert (found["task"], found["target"], found["score"]) == ("components", None, None)
    assert found["columns"] == ["a", "b", "c", "d"]
    scores = pd.DataFrame(result("transform", out, folder / "iris.csv")["scores"])
    assert list(scores) == ["component1", "component2", "component3"]
    rows = load(out).encoder.transform(pd.read_csv(folder / "iris.csv"))
    theirs = TheirPCA(3, kernel="rbf", gamma=0.1).fit(rows)
    np.testing.assert_allclose(np.abs(scores), np.abs(theirs.transform(rows)), atol=1e-6)  # the signs are free
    ratio = found["unsupervised"]["explained_variance_ratio"]
    whole = TheirPCA(kernel="rbf", gamma=0.1, remove_zero_eig=True).fit(rows).eigenvalues_
    np.testing.assert_allclose(ratio, whole[:3] / whole.sum(), rtol=1e-4)


@pytest.mark.parametrize("method", ["kmeans", "spectral"])
def test_clusters_are_found_and_new_rows_assigned(folder, tmp_path, method):
    out = tmp_path / "m"
    found = result("fit", folder / "blobs.csv", "--method", method, "--drop", "true", "--out", out)
    assert found["unsupervised"]["number"] == 3  # the silhouettes say so
    assert sorted(found["unsupervised"]["sizes"]) == [30, 30, 30]
    labels = result("predict", out, folder / "blobs.csv")["predictions"]["cluster"]
    assert adjusted_rand_score(pd.read_csv(folder / "blobs.csv")["true"], labels) == 1.0
    written = mercer("transform", out, folder / "blobs.csv", "--out", "-")
    assert written.exit_code == 0, written.output
    values = pd.read_csv(io.StringIO(written.stdout))
    if method == "kmeans":
        assert list(values) == ["distance0", "distance1", "distance2"]
        assert values.to_numpy().argmin(axis=1).tolist() == labels
    assert mercer("inspect", out).stdout.splitlines()[1] == "  clusters, fitted on 90 rows"


def test_at_most_the_share_that_is_asked_for_is_outside(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    pd.DataFrame(X).add_prefix("x").to_csv(tmp_path / "t.csv", index=False)
    found = result("fit", tmp_path / "t.csv", "--method", "oneclass", "--kernel", "gaussian(gamma=0.33)")
    assert 0 < found["unsupervised"]["outliers"] <= 0.05 * 1000


def test_outliers_are_those_of_scikit_learn(folder, tmp_path):
    out, kernel = tmp_path / "m", "gaussian(gamma=0.3)"
    given = ["--method", "oneclass", "--outliers", "0.2", "--drop", "true", "--kernel", kernel, "--out", out]
    found = result("fit", folder / "blobs.csv", *given)
    told = pd.DataFrame(result("predict", out, folder / "blobs.csv")["predictions"])
    X = StandardScaler().fit_transform(pd.read_csv(folder / "blobs.csv")[["x", "y"]])
    theirs = TheirOneClass(gamma=0.3, nu=0.2, tol=1e-8).fit(X).decision_function(X)
    np.testing.assert_allclose(told["score"], theirs, atol=1e-2 * np.abs(theirs).max())
    assert np.array_equal(told["outlier"] == 1, told["score"] < 0)
    assert found["unsupervised"]["outliers"] == told["outlier"].sum()
    assert 0.1 < told["outlier"].mean() <= 0.2 + 1e-9


def test_sequences_have_clusters_and_components(folder, tmp_path):
    given = [folder / "words.fasta", "--method", "kmeans", "--clusters", 2, "--out", tmp_path / "m"]
    assert result("fit", *given)["kernel"].startswith("Spectrum")
    labels = result("predict", tmp_path / "m", folder / "words.fasta")["predictions"]["cluster"]
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]
    frame = pd.DataFrame({"x": np.linspace(0, 1, 24), "word": ["ACAC" * 5, "GTGT" * 6] * 12})
    frame.to_csv(tmp_path / "mixed.csv", index=False)
    both = result("fit", tmp_path / "mixed.csv", "--method", "pca", "--text", "word")
    assert both["columns"] == ["x", "word"]
    assert "Spectrum" in both["kernel"]
    assert "Gaussian" in both["kernel"]


def test_a_discriminant_has_components_too(folder, tmp_path):
    given = ["--target", "kind", "--method", "discriminant", "--kernel", "gaussian(gamma=0.1)", "--out", tmp_path / "m"]
    assert mercer("fit", folder / "iris.csv", *given).exit_code == 0
    scores = result("transform", tmp_path / "m", folder / "iris.csv")["scores"]
    assert list(scores) == ["component1", "component2"]


def test_what_a_model_cannot_do_is_one_line(folder, tmp_path):
    iris, out = folder / "iris.csv", tmp_path / "m"
    assert mercer("fit", iris, "--method", "pca", "--out", out).exit_code == 0
    ridge = [*["--target", "a"], "--kernel", "linear", "--alpha", 1, "--out", tmp_path / "r"]
    assert mercer("fit", iris, *ridge).exit_code == 0
    cases = [
        (["predict", out, iris], "mercer transform m writes the scores"),
        (["transform", tmp_path / "r", iris], "holds a KernelRidge, which has no components"),
        (["evaluate", out, iris], "was fitted without a target"),
        (["fit", iris, "--method", "pca", "--clusters", 3], "pca with --clusters"),
        (["fit", iris, "--method", "pca", "--alpha", 3], "pca with --alpha"),
        (["fit", iris, "--method", "kmeans", "--no-holdout"], "kmeans with --no-holdout"),
        (["fit", iris, "--target", "a", "--components", 3], "ridge with --components"),
        (["fit", iris, "--method", "pca", "--target", "knd"], "did you mean 'kind'"),
        (["fit", iris, "--method", "kmeans", "--clusters", 500], "n_clusters=500"),
        (["fit", iris, "--method", "oneclass", "--outliers", 0], "nu=0"),
        (["transform", out, iris, "--out", tmp_path / "s.xlsx"], "end it in .csv, .tsv, .parquet or .npy"),
        (["transform", out, iris, "--out", iris], "is also the file"),
    ]
    for args, words in cases:
        done = mercer(*args)
        assert done.exit_code == 2, (args, done.output)
        assert words in done.stderr, (args, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".npy"])
def test_scores_are_written_in_each_format_and_replaced(folder, tmp_path, ending):
    model, out = tmp_path / "m", tmp_path / f"s{ending}"
    assert mercer("fit", folder / "iris.csv", "--method", "pca", "--components", 2, "--out", model).exit_code == 0
    for _ in range(2):
        done = mercer("transform", model, folder / "iris.csv", "--out", out)
        assert done.exit_code == 0, done.output
        assert done.stdout == ""
    read = {".parquet": pd.read_parquet, ".npy": np.load}.get(ending) or (
        lambda path: pd.read_csv(path, sep=None, engine="python")
    )
    expected = load(model).transform(pd.read_csv(folder / "iris.csv"))
    np.testing.assert_allclose(np.asarray(read(out)), expected, rtol=1e-12)
    done = mercer("fit", folder / "blobs.csv", "--method", "pca", "--components", 3, "--out", model)
    assert done.exit_code == 0, done.output
    refused = mercer("transform", model, folder / "blobs.csv", "--out", out)
    assert refused.exit_code == 2
    assert "it would be lost" in refused.stderr


def test_the_names_for_shells_are_those_of_the_methods():
    assert (*METHODS, *UNSUPERVISED) == completion.METHODS
