"""Columns of sequences and of text in a table: found, joined with the numbers, saved, predicted, checked and tuned."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.io import TableEncoder, load  # noqa: E402


def mercer(*args):
    return testing.CliRunner().invoke(commands.app, [str(arg) for arg in args])


def accuracy(output):
    return float(output.split("mercer    accuracy ")[1].split(",")[0])


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Sequences with one of two motifs, numbers that tell half as much, and a remark that tells nothing."""
    rng = np.random.default_rng(0)
    n = 120
    bound = np.arange(n) % 2
    letters = ["".join(rng.choice(list("ACGT"), 24)) for _ in range(n)]
    places = rng.integers(0, 18, n)
    motifs = np.where(rng.random(n) < 0.05, 1 - bound, bound)
    found = [s[:p] + ("GATTACA", "CCGGCTC")[m] + s[p + 7 :] for s, p, m in zip(letters, places, motifs, strict=True)]
    frame = pd.DataFrame(
        {"gc": rng.normal(size=n) + 0.7 * bound, "depth": rng.normal(size=n), "seq": found,
         "remark": [f"looked at by {name} on day {i}" for i, name in enumerate(rng.choice(["ann", "bob"], n))],
         "bound": np.where(bound, "yes", "no")}
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("texts")
    frame.to_csv(folder / "sites.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def fitted(sites):
    done = mercer("fit", sites / "sites.csv", "--target", "bound", "--out", sites / "model")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("method", ["ridge", "svm"])
def test_the_kernel_that_is_named_first_is_that_of_the_model(sites, method):
    """The search numbers the columns of all kernels; those of the sequences alone are fewer."""
    shown = mercer("fit", sites / "sites.csv", "--target", "bound", "--drop", "remark", "--method", method).output
    chosen = shown.split("Kernel and α\n  ")[1].split(", α")[0]
    assert chosen == "Spectrum().normalized().on([0])"
    assert f"  kernel     {chosen} " in shown


def test_a_column_of_sequences_has_a_kernel_of_sequences(sites, fitted):
    assert "seq: sequences of 24 to 24 nucleotides" in fitted
    assert "seq alone: accuracy" in fitted
    assert "numbers alone: accuracy" in fitted
    assert accuracy(fitted) > 0.8
    without = mercer("fit", sites / "sites.csv", "--target", "bound", "--drop", "seq").output
    assert accuracy(without) < accuracy(fitted)


def test_text_is_left_out_and_how_to_read_it_is_said(sites, fitted, tmp_path):
    assert "remark: left out, as text; --text remark reads it" in fitted
    assert "remark" not in load(sites / "model").encoder.columns_
    for options in (["--text", "remark"], ["--columns", "remark,gc"]):
        done = mercer("fit", sites / "sites.csv", "--target", "bound", *options)
        assert done.exit_code == 0, done.output
        assert "remark alone: accuracy" in done.output


def test_the_model_goes_through_file_prediction_and_evaluation(sites, fitted, tmp_path):
    model, frame = load(sites / "model"), pd.read_csv(sites / "sites.csv")
    expected = model.predict(frame)
    shuffled = frame[["seq", *[name for name in frame.columns if name != "seq"]]].assign(seq=frame["seq"].str.lower())
    shuffled.to_csv(tmp_path / "new.csv", index=False)
    done = mercer("predict", sites / "model", tmp_path / "new.csv", "--proba", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "p.csv")["bound"].tolist() == expected.tolist()
    assert "AUC" in mercer("evaluate", sites / "model", sites / "sites.csv").output
    assert "seq" in mercer("inspect", sites / "model").output
    frame.drop(columns="seq").to_csv(tmp_path / "less.csv", index=False)
    refused = mercer("predict", sites / "model", tmp_path / "less.csv")
    assert refused.exit_code == 2
    assert "'seq'" in refused.stderr


def test_what_is_printed_can_be_given_again(sites, fitted):
    line = next(one for one in fitted.splitlines() if "without the search" in one)
    done = mercer("fit", sites / "sites.csv", "--target", "bound", *shlex.split(line[line.index("--kernel") :]))
    assert done.exit_code == 0, done.output
    assert accuracy(done.output) == accuracy(fitted)


@pytest.mark.parametrize(
    ("kernel", "columns"),
    [
        ("gaussian(gamma=0.2)", ["gc", "depth"]),
        ("spectrum(k=4).normalized()", ["seq"]),
        ("spectrum(k=4).normalized().on(['seq']) + gaussian(gamma=0.2).on(['gc'])", ["gc", "seq"]),
    ],
)
def test_a_given_kernel_reads_the_columns_that_it_can(sites, tmp_path, kernel, columns):
    given = ["--target", "bound", "--kernel", kernel]
    done = mercer("fit", sites / "sites.csv", *given, "--alpha", "0.1", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").encoder.columns_ == columns
    frame = pd.read_csv(sites / "sites.csv")[columns]
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert mercer("predict", tmp_path / "m", tmp_path / "new.csv").exit_code == 0
    done = mercer("check", kernel, sites / "sites.csv", "--target", "bound")
    assert done.exit_code == 0, done.output
    assert "proved" in done.output
    done = mercer("tune", sites / "sites.csv", *given)
    assert done.exit_code == 0, done.output


def test_a_kernel_that_does_not_say_which_column_is_refused(sites):
    for options in (["--text", "remark", "--kernel", "spectrum(k=3)"], ["--kernel", "precomputed()"]):
        done = mercer("fit", sites / "sites.csv", "--target", "bound", *options)
        assert done.exit_code == 2, done.output
        assert "seq" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_table_with_sequences_is_tuned(sites, tmp_path):
    done = mercer("tune", sites / "sites.csv", "--target", "bound", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert accuracy(done.output) > 0.8
    assert "seq" in load(tmp_path / "m").encoder.columns_
    done = mercer("tune", sites / "sites.csv", "--target", "gc", "--per-column")
    assert done.exit_code == 2
    assert "(seq)" in done.stderr


def test_a_regression_of_sequences_alone(sites, tmp_path):
    frame = pd.read_csv(sites / "sites.csv")[["seq"]]
    frame["count"] = frame["seq"].str.count("C") + 0.01
    frame.to_csv(tmp_path / "c.csv", index=False)
    done = mercer("fit", tmp_path / "c.csv", "--target", "count", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "m").score(frame) > 0.9


def test_the_encoder_keeps_texts_after_the_numbers():
    frame = pd.DataFrame(
        {"seq": ["ACGTACGT", "ttgaccat"] * 20, "x": np.arange(40.0), "word": ["a", "b", "c", "d"] * 10}
    )
    frame["seq"] = [one + "ACGT"[i % 4] * (i % 9) for i, one in enumerate(frame["seq"])]
    encoder = TableEncoder(keep_text=True, text=("word",)).fit(frame)
    assert encoder.text_columns_ == ["seq", "word"]
    rows = encoder.transform(frame)
    assert rows.dtype == object
    assert rows[1, 1].startswith("TTGACCAT")
    assert "2 of text" in encoder.heading
    less = encoder.without("word")
    assert less.text_columns_ == ["seq"]
    assert "word" in less.summary_[-1]
    assert encoder.text_columns_ == ["seq", "word"]
    numbers = encoder.with_features("x")
    assert numbers.columns_ == ["x"]
    assert numbers.transform(frame).dtype == np.float64
    assert encoder.unlike_the_fit(frame.assign(seq=[None, *frame["seq"][1:]])) == [
        "seq: missing in 1 of 40 rows, treated as empty"
    ]
    for column in (frame["x"], frame["x"].astype(str)):
        assert encoder.unlike_the_fit(frame.assign(seq=column)) == [
            "seq: numbers, read as text, as the fit saw sequences"
        ]
    with pytest.raises(ValueError, match="no column is left"):
        numbers.without("x")
