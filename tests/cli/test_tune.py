"""What `mercer tune` chooses, and what it says of options that cannot have an effect."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli import fitting, tuning  # noqa: E402
from mercer.io import load, read_table  # noqa: E402
from mercer.kernels import Gaussian, Laplace  # noqa: E402
from mercer.tables.targets import random_folds  # noqa: E402

runner = testing.CliRunner()


def mercer(*args):
    return runner.invoke(commands.app, [str(arg) for arg in args])


def best_score(output):
    """Of the first line with one under the choice."""
    return float(output.split("\nKernel and α\n")[1].split(" ± ")[0].split()[-1])


@pytest.fixture
def sorted_by_entry(tmp_path):
    """Rows in the order of a column that the target depends on: blocks of them are unlike each other."""
    x = np.linspace(0, 6, 150)
    noise = np.random.default_rng(0).normal(size=(2, 150))
    frame = pd.DataFrame({"x": x, "other": noise[0], "y": np.sin(x) + x + 0.1 * noise[1]})
    frame.to_csv(tmp_path / "sorted.csv", index=False)
    return tmp_path / "sorted.csv"


def test_folds_are_drawn_at_random_by_the_seed(sorted_by_entry):
    done = mercer("tune", sorted_by_entry, "--target", "y", "--kernel", "gaussian(gamma=0.5)")
    assert done.exit_code == 0, done.output
    assert best_score(done.output) > 0.95
    y = np.linspace(0, 1, 53)
    folds = [random_folds(y, "regression", seed, 5) for seed in (0, 0, 1)]
    assert all(np.array_equal(one[1], same[1]) for one, same in zip(folds[0], folds[1], strict=True))
    assert any(not np.array_equal(one[1], other[1]) for one, other in zip(folds[0], folds[2], strict=True))
    assert sorted(np.concatenate([test for _, test in folds[0]])) == list(range(53))
    assert all(not set(train) & set(test) and len(train) + len(test) == 53 for train, test in folds[0])


def test_folds_have_the_classes_in_their_proportions():
    y = np.repeat(["a", "b", "c"], [50, 25, 5])  # sorted by class, as exported tables are
    for train, test in random_folds(y, "classification", 0, 5):
        assert [int(np.sum(y[test] == one)) for one in "abc"] == [10, 5, 1]
        assert [int(np.sum(y[train] == one)) for one in "abc"] == [40, 20, 4]
    many = np.repeat(["a", "b"], [9000, 1000])
    drawn = tuning._sampled(many, "classification", 0)
    assert abs(int(np.sum(many[drawn] == "b")) - tuning.SAMPLE // 10) <= 1


def test_a_family_that_the_shortlist_lost_is_tried_on_all_rows(sorted_by_entry, monkeypatch):
    """The shortlist is made from few rows, on which rough kernels look worse than they are."""
    data = fitting.prepare(read_table(sorted_by_entry), "y", "auto", 0, True)
    full = tuning.suggest

    def smooth_only(*args, **options):
        found = full(*args, **options)
        kept = tuple(one for one in found.ranked if not isinstance(one.kernel, Laplace))
        return type(found)(kept, found.metric, found.sample_size)

    monkeypatch.setattr(tuning, "suggest", smooth_only)
    families = tuning.tune(data, None, False, None, None, 0).families
    tried = {type(one["kernel"]) for one in families.cv_results_["params"]}
    assert {Laplace, Gaussian} <= tried
    assert len({repr(one["kernel"]) for one in families.cv_results_["params"]}) <= 8


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """Two classes of sequences with letters in other proportions, sorted by class."""
    rng = np.random.default_rng(0)
    lines = [f">{i // 40}\n{''.join(rng.choice(list('aact' if i < 40 else 'ggct'), 20))}" for i in range(80)]
    path = tmp_path_factory.mktemp("reads") / "reads.fasta"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_sequences_are_tuned(reads, tmp_path):
    done = mercer("tune", reads, "--out", tmp_path / "m.mercer")
    assert done.exit_code == 0, done.output
    assert "Spectrum(k=6).normalized()" in done.output
    assert "AllSubstrings" in done.output
    assert best_score(done.output) > 0.9
    assert "accuracy 1.0" in mercer("evaluate", tmp_path / "m.mercer", reads).output


def test_a_kernel_of_sequences_is_tuned_and_what_sequences_cannot_have_is_refused(reads):
    done = mercer("tune", reads, "--kernel", "spectrum(k=3)")
    assert done.exit_code == 0, done.output
    assert "Spectrum()" in done.output
    for options, words in (
        (["--kernel", "gaussian()"], "not a kernel of sequences"),
        (["--per-column"], "sequences have no columns"),
    ):
        refused = mercer("tune", reads, *options)
        assert refused.exit_code == 2
        assert words in refused.stderr


def test_a_formula_is_tuned_as_it_is_fitted(sorted_by_entry):
    done = mercer("tune", sorted_by_entry, "--target", "y", "--kernel", "exp(-0.5*sqdist)")
    assert done.exit_code == 0, done.output
    assert best_score(done.output) > 0.95
    assert "only α was searched" in done.output
    done = mercer("tune", sorted_by_entry, "--target", "y", "--kernel", "gaussian(gamma=0.5)")
    assert "only α was searched" not in done.output
    done = mercer("tune", sorted_by_entry, "--target", "y", "--kernel", "exp(-0.5*sqdist)", "--per-column")
    assert done.exit_code == 0, done.output
    assert "length-scales, the shortest first: x" in done.output


@pytest.mark.parametrize("option", [("--halving", 3), ("--resume", "scores.json")])
def test_options_that_the_length_scales_of_columns_ignore_are_refused(sorted_by_entry, option):
    done = mercer("tune", sorted_by_entry, "--target", "y", "--per-column", *option)
    assert done.exit_code == 2
    assert f"--per-column with {option[0]}" in done.stderr
    assert done.stdout == ""


def test_a_race_that_is_none_is_said(sorted_by_entry, tmp_path):
    asked = ["--target", "y", "--kernel", "gaussian(gamma=0.5)"]
    done = mercer("tune", sorted_by_entry, *asked, "--halving", 3)
    assert "--halving 3 had no effect: a race begins with 200 rows" in done.output
    x = np.linspace(0, 6, 600)
    pd.DataFrame({"x": x, "y": np.sin(x)}).to_csv(tmp_path / "long.csv", index=False)
    long = ["tune", tmp_path / "long.csv", "--target", "y", "--kernel", "exp(-sqdist)"]  # 450 rows, 13 penalties
    assert "no effect" not in mercer(*long, "--halving", 2).output
    assert "no effect: 13 candidates are too few for a round that keeps 1/20" in mercer(*long, "--halving", 20).output
    assert "no effect" not in mercer("tune", sorted_by_entry, *asked).output


@pytest.fixture
def rare(tmp_path):
    """A category that only held-out rows show: encoders of the training rows and of all rows differ in width."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["a", "b"], 120), "x": np.linspace(0, 6, 120)})
    frame["y"] = np.sin(2 * frame["x"]) + 0.02 * rng.normal(size=120)
    held = fitting.prepare(_written(frame, tmp_path), "y", "auto", 0, True).held
    frame.loc[np.flatnonzero(held)[:2], "town"] = "rare"
    _written(frame, tmp_path)
    return tmp_path / "rare.csv"


def _written(frame, folder):
    frame.to_csv(folder / "rare.csv", index=False)
    return read_table(folder / "rare.csv")


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_the_model_in_the_file_is_the_one_that_was_scored(rare, tmp_path, command):
    out = tmp_path / "m.mercer"
    done = mercer(
        command, rare, "--target", "y", "--kernel", 'gaussian(gamma=2.0).on(["x"])', "--out", out,
        *(["--alpha", 0.001] if command == "fit" else []),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert float(done.output.split("mercer    R² ")[1].split(",")[0]) > 0.95
    assert load(out).score(pd.read_csv(rare)) > 0.95


def test_length_scales_are_those_of_the_saved_columns(rare, tmp_path):
    out = tmp_path / "m.mercer"
    done = mercer("tune", rare, "--target", "y", "--per-column", "--kernel", "gaussian", "--out", out)
    assert done.exit_code == 0, done.output
    assert load(out).score(pd.read_csv(rare)) > 0.95


@pytest.mark.parametrize("command", ["tune", "compare"])
def test_a_class_of_one_row_is_named(command, tmp_path):
    """Without it a fold has one class to learn; all scores were nan, and the first kernel was recommended."""
    x = np.random.default_rng(0).standard_normal(40)
    pd.DataFrame({"x": x, "y": ["yes"] * 39 + ["no"]}).to_csv(tmp_path / "rare.csv", index=False)
    done = mercer(command, tmp_path / "rare.csv", "--target", "y")
    assert done.exit_code == 2
    assert "the class 'no' has 1 row, all in one fold" in done.output
