"""The command line, end to end: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer import KernelPCA, KernelRidge  # noqa: E402
from mercer.cli import app as commands  # noqa: E402
from mercer.cli import fitting  # noqa: E402
from mercer.cli.guard import guarded, told_warnings  # noqa: E402
from mercer.errors import Cancelled, InvalidInput, MemoryExceeded  # noqa: E402
from mercer.io import load, read_table, save  # noqa: E402
from mercer.kernels import Gaussian  # noqa: E402
from mercer.solvers import Solution, Status  # noqa: E402
from mercer.tables.targets import as_target, holdout_rows, infer_task  # noqa: E402
from mercer.ways.report import Report  # noqa: E402

runner = testing.CliRunner()
QUICK = ["--kernel", "gaussian(gamma=0.2)", "--alpha", "0.1"]


def mercer(*args):
    return runner.invoke(commands.app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables and a model of each."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 160
    frame = pd.DataFrame(
        {"size": rng.normal(size=n), "rooms": rng.integers(1, 6, n), "town": rng.choice(["A", "B"], n)}
    )
    frame["price"] = 10 * frame["size"] + frame["rooms"] + 3 * (frame["town"] == "A") + 0.1 * rng.normal(size=n)
    frame.loc[::20, "size"] = np.nan
    frame.to_csv(folder / "houses.csv", index=False)
    kinds = frame.assign(kind=np.where(frame["price"] > 5, "dear", "cheap")).drop(columns="price")
    kinds.to_csv(folder / "kinds.tsv.gz", sep="\t", index=False)
    for name, target in (("houses.csv", "price"), ("kinds.tsv.gz", "kind")):
        done = mercer("fit", folder / name, "--target", target, *QUICK, "--out", folder / f"{target}.mercer")
        assert done.exit_code == 0, done.output
    return folder


def test_fit_chooses_and_tells(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "price")
    assert done.exit_code == 0, done.output
    for words in (
        "160 rows, 3 columns and the target price", "regression, for the target is numbers of many values",
        "40 rows, a quarter, are held out", "5-fold cross-validation on 120", "then ", "filled by the median",
        "town: 2 categories, one-hot", "KernelRidge", "residual", "Score on the rows held out", "guessing", "--out",
    ):  # fmt: skip
        assert words in done.output
    r2 = float(done.output.split("mercer    R² ")[1].split(",")[0])
    assert r2 > 0.8


def test_fit_with_one_given_searches_the_other(folder):
    done = mercer("fit", folder / "kinds.tsv.gz", "--target", "kind", "--kernel", "laplace(gamma='median')")
    assert done.exit_code == 0, done.output
    assert "classification, for the target is text" in done.output
    assert "2 classes: cheap" in done.output
    assert "balanced accuracy" in done.output
    assert "Laplace" in done.output
    assert mercer("fit", folder / "houses.csv", "--target", "price", "--alpha", "1").exit_code == 0


def test_a_kernel_on_named_columns(folder):
    kernel = "gaussian(gamma=0.5).on(['size']) + linear()"
    done = mercer("fit", folder / "houses.csv", "--target", "price", "--kernel", kernel, "--alpha", "0.1")
    assert done.exit_code == 0, done.output
    assert ".on([0])" in done.output


def test_the_same_seed_gives_the_same_text(folder):
    def text(seed):
        done = mercer("fit", folder / "houses.csv", "--target", "price", *QUICK, "--seed", seed).output
        return done.split("Score on")[1]

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_no_holdout(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "price", *QUICK, "--no-holdout", "--threads", "1")
    assert done.exit_code == 0, done.output
    assert "no rows were held out" in done.output


def test_predict_numbers(folder):
    done = mercer("predict", folder / "price.mercer", folder / "houses.csv")
    assert done.exit_code == 0
    predicted = pd.read_csv(io.StringIO(done.stdout))
    assert list(predicted.columns) == ["price"]
    truth = pd.read_csv(folder / "houses.csv")["price"]
    assert np.corrcoef(predicted["price"], truth)[0, 1] > 0.9


def test_predict_classes_in_any_order_of_columns_to_a_file(folder, tmp_path):
    frame = pd.read_csv(folder / "kinds.tsv.gz", sep="\t")
    truth = frame.pop("kind")
    frame.assign(extra=1)[["extra", "town", "size", "rooms"]].to_csv(tmp_path / "new.csv", index=False)
    done = mercer("predict", folder / "kind.mercer", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "columns that the model does not use: extra" in done.stderr
    assert (pd.read_csv(tmp_path / "p.csv")["kind"] == truth).mean() > 0.85


def test_evaluate(folder, tmp_path):
    done = mercer("evaluate", folder / "price.mercer", folder / "houses.csv")
    assert done.exit_code == 0
    assert "160 rows of houses.csv" in done.stdout
    frame = pd.read_csv(folder / "kinds.tsv.gz", sep="\t").rename(columns={"kind": "sort"})
    frame.loc[0, "sort"] = "free"
    frame.to_csv(tmp_path / "k.csv", index=False)
    done = mercer("evaluate", folder / "kind.mercer", tmp_path / "k.csv", "--target", "sort")
    assert "accuracy" in done.stdout
    assert "does not know the class free: its classes are cheap, dear" in done.stdout
    assert mercer("evaluate", folder / "kind.mercer", tmp_path / "k.csv").exit_code == 2


def test_scores_of_rows_of_the_fit_say_so(folder, tmp_path):
    frame = pd.read_csv(folder / "houses.csv", float_precision="round_trip")
    others = frame.assign(size=frame["size"].fillna(9) + 0.125)
    for some, said in (
        (frame, "note: all rows are rows of the fit"),
        (pd.concat([others[:70], frame[:80]]), "note: 53 % of the rows are rows of the fit"),
        (pd.concat([others, frame[:80]]), ""),
    ):
        some.to_csv(tmp_path / "t.csv", index=False)
        done = mercer("evaluate", folder / "price.mercer", tmp_path / "t.csv")
        assert (said in done.stderr) if said else ("rows of the fit" not in done.stderr)
        options = ("--kind", "residuals", "--out", tmp_path / "p.png")
        done = mercer("plot", folder / "price.mercer", tmp_path / "t.csv", *options)
        assert ("rows of the fit" in done.output) == bool(said)


def test_models_that_keep_some_rows_say_so_too(folder, tmp_path):
    given = ("--target", "price", "--kernel", "linear", "--alpha", "1e-4", "--method", "svm", "--out", tmp_path / "m")
    assert mercer("fit", folder / "houses.csv", *given).exit_code == 0
    assert len(load(tmp_path / "m").estimator.X_fit_) < 160
    assert "note: all rows are rows of the fit" in mercer("evaluate", tmp_path / "m", folder / "houses.csv").stderr
    others = pd.read_csv(folder / "houses.csv")
    others["size"] = others["size"].fillna(9) + 0.125
    others.to_csv(tmp_path / "t.csv", index=False)
    assert "rows of the fit" not in mercer("evaluate", tmp_path / "m", tmp_path / "t.csv").stderr


def test_a_model_is_not_written_to_standard_output(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "price", *QUICK, "--out", "-")
    assert done.exit_code == 2
    assert '--out: "-", which is standard output; name a file' in done.stderr


def test_a_category_of_held_out_rows_alone_is_not_known(folder, tmp_path):
    """The model is fitted to them too, but with the encoder of the others, and says so."""
    frame = pd.read_csv(folder / "houses.csv")
    given = ("--target", "price", *QUICK, "--out", tmp_path / "m")
    held = fitting.prepare(read_table(folder / "houses.csv"), "price", "auto", 0).held
    frame.loc[held, "town"] = "C"
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = mercer("fit", tmp_path / "t.csv", *given)
    assert "fitted on all 160 rows, those held out too" in done.output
    assert "categories, and what stands for missing values, are those of the rows that were not held out" in done.output
    done = mercer("evaluate", tmp_path / "m", tmp_path / "t.csv")
    assert f"town: 'C' in {held.sum()} of 160 rows, which the model does not know" in done.stderr


def test_inspect(folder, tmp_path):
    text = mercer("inspect", folder / "kind.mercer").stdout
    for words in (
        "classification of kind, fitted on 160 rows",
        "classes: cheap, dear",
        "held out",
        "size, rooms, town",
    ):
        assert words in text
    save(KernelPCA(2).fit(np.random.default_rng(0).normal(size=(20, 3))), tmp_path / "pca")
    assert "KernelPCA" in mercer("inspect", tmp_path / "pca").stdout
    refused = mercer("predict", tmp_path / "pca", folder / "houses.csv")
    assert refused.exit_code == 2
    assert "holds a KernelPCA" in refused.stderr


def test_the_model_is_of_all_rows(folder):
    assert load(folder / "price.mercer").n_rows_ == 160


def test_svmlight_from_fit_to_evaluate(tmp_path):
    rng = np.random.default_rng(0)
    rows = [[j for j in range(1, 9) if rng.random() < 0.4] for _ in range(80)]
    lines = [f"{1 if 3 in row else -1} " + " ".join(f"{j}:1" for j in row) for row in rows]
    (tmp_path / "a.svmlight").write_text("\n".join(lines))
    (tmp_path / "short.svmlight").write_text("1 3:1\n-1 1:1\n")
    done = mercer("fit", tmp_path / "a.svmlight", *QUICK, "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    done = mercer("evaluate", tmp_path / "m", tmp_path / "short.svmlight")
    assert "accuracy 1.0000" in done.stdout


def test_what_is_wrong_is_one_line_and_status_two(folder, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "few.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "same.csv").write_text("a,b\n" + "".join(f"{i},5\n" for i in range(40)))
    (tmp_path / "names.csv").write_text("a,b\n" + "".join(f"{i},name {i}\n" for i in range(40)))
    (tmp_path / "words.csv").write_text("size,rooms,town\n?,3,A\nlarge,2,B\n")
    houses, model = folder / "houses.csv", folder / "price.mercer"
    price = ["--target", "price"]
    cases = [
        (["fit", tmp_path / "none.csv", *price], "no such file"),
        (["fit", tmp_path, *price], "folder"),
        (["fit", tmp_path / "empty.csv", *price], "empty"),
        (["fit", tmp_path / "few.csv", "--target", "b"], "2 rows with a target"),
        (["fit", tmp_path / "same.csv", "--target", "b"], "one value"),
        (["fit", tmp_path / "names.csv", "--target", "b"], "too many for classes"),
        (["fit", tmp_path / "names.csv", "--target", "b", "--task", "regression"], "not a number"),
        (["fit", houses], "--target NAME"),
        (["fit", houses, "--target", "prize"], "did you mean 'price'"),
        (["fit", houses, *price, "--kernel", "gausian"], "did you mean 'gaussian'"),
        (["fit", houses, *price, "--kernel", "__import__('os')"], "parse"),
        (["fit", houses, *price, "--kernel", "precomputed()"], "not a kernel of the rows"),
        (["fit", houses, *price, "--alpha", "-1"], "positive"),
        (["fit", houses, *price, "--task", "ranking"], "--task"),
        (["fit", houses, *price, *QUICK, "--memory", "lots"], "lots"),
        (["fit", houses, *price, "--out", tmp_path / "no" / "m"], "no folder"),
        (["fit", houses, *price, "--out", tmp_path], "is a folder"),
        (["predict", houses, houses], "not a model file"),
        (["predict", tmp_path / "m", houses], "no such file"),
        (["predict", model, tmp_path / "same.csv"], "columns of the fit are not there"),
        (["predict", model, tmp_path / "words.csv"], "'size': 'large' in row 2 (counted from 1) is not a number"),
        (["evaluate", model, folder / "kinds.tsv.gz"], "no column 'price'"),
        (["inspect", houses], "not a model file"),
    ]
    for args, words in cases:
        done = mercer(*args)
        assert done.exit_code == 2, (args, done.output)
        assert words in done.stderr, (args, done.stderr)
        assert done.stderr.startswith("mercer: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_values_that_the_fit_did_not_see_are_told(folder, tmp_path):
    rows = pd.read_csv(folder / "houses.csv").head(8)
    rows.loc[:2, "town"] = "Moon"
    rows["rooms"] = rows["rooms"].astype(float)
    rows.loc[3, "rooms"] = np.inf
    rows.to_csv(tmp_path / "new.csv", index=False)
    for command in ("predict", "evaluate"):
        done = mercer(command, folder / "price.mercer", tmp_path / "new.csv")
        assert done.exit_code == 0, done.output
        assert "note: town: 'Moon' in 3 of 8 rows, which the model does not know" in done.stderr
        assert "note: rooms: missing in 1 of 8 rows, filled by 3" in done.stderr
        assert "size" not in done.stderr  # the fit met missing ones, and has a feature for them
    assert mercer("predict", folder / "price.mercer", folder / "houses.csv").stderr == ""


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_a_budget_that_is_none_is_refused_before_the_search(folder, command):
    done = mercer(command, folder / "houses.csv", "--target", "price", "--memory", "3XB")
    assert done.exit_code == 2
    assert "'3XB' is not an amount of memory" in done.stderr
    assert done.stdout == ""


def test_too_little_memory_is_status_one(folder):
    done = mercer("fit", folder / "houses.csv", "--target", "price", *QUICK, "--memory", "100")
    assert done.exit_code == 1
    assert "memory budget" in done.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), 130),
        (InvalidInput("x"), 2),
        (MemoryExceeded("x"), 1),
        (Cancelled("x"), 1),
        (OSError("x"), 1),
        (ModuleNotFoundError('x; pip install "mercer[report]".'), 2),
    ],
)
def test_status_of_errors(error, status, capsys):
    import typer

    def command(debug=False):
        raise error

    with pytest.raises(typer.Exit) as raised:
        guarded(command)()
    assert raised.value.exit_code == status
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert ("unexpected" in said) == isinstance(error, OSError)
    with pytest.raises(type(error)):
        guarded(command)(debug=True)


@pytest.mark.parametrize(
    ("residual", "rounding", "told"),
    [(2.3e-10, 0.0, False), (9.4e-7, 0.0, False), (2e-6, 0.0, True), (0.03, 0.0, True), (2e-6, 1e-5, True)],
)
def test_a_residual_that_no_prediction_shows_is_in_the_report_alone(residual, rounding, told, capsys):
    report, model = Report(method="conjugate gradients"), KernelRidge()
    with told_warnings():
        model._account(report, Solution(None, Status.MAX_STEPS, 5, residual, None), 1e-10, rounding)
    said = capsys.readouterr().err
    assert said == (f"warning: {report.warnings[0]}\n" if told else "")
    assert f"ended with a relative residual of {residual:.1e}" in str(report)
    assert "warning" in str(report)


def test_debug_shows_the_error(folder):
    done = mercer("fit", folder / "none.csv", "--target", "x", "--debug")
    assert isinstance(done.exception, InvalidInput)


def test_mistakes_in_options_are_one_line(capsys):
    for args in (["fit"], ["fitt"], ["fit", "a.csv", "--colour", "red"], ["fit", "a.csv", "--seed", "x"]):
        assert commands.run(args) == 2
        text = capsys.readouterr().err
        assert text.startswith("mercer: options: ")
        assert text.count("\n") == 1
    assert commands.run(["--version"]) == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["check", "-dot"], 'No such option: -d; write mercer check -- "-dot" if it is no option'),
        (["check", "dot", "--strict"], "No such option: --strict; mercer check --help"),
        (["fit", "a.csv", "-o", "a.mercer"], "No such option: -o; give --out FILE; mercer fit --help"),
        (["fit", "a.csv", "--holdot"], "No such option: --holdot; did you mean --holdout? mercer fit --help"),
        (["fit", "a.csv", "price"], "argument(s) (price); write --target price if it is the target; mercer fit --help"),
        (["--colour"], "No such option: --colour; mercer --help"),
    ],
)
def test_an_option_that_is_none_has_only_near_ones_beside_it(capsys, args, words):
    assert commands.run(args) == 2
    text = capsys.readouterr().err
    assert words in text
    assert text.count("\n") == 1


def test_a_formula_may_begin_with_a_minus(capsys):
    assert commands.run(["check", "--", "-dot"]) == 1
    assert "Formula('-dot')" in capsys.readouterr().out


def test_a_real_process(folder, tmp_path):
    def run(*args):
        return subprocess.run(
            [sys.executable, "-m", "mercer", *map(str, args)], capture_output=True, text=True, timeout=120
        )

    fit = run("fit", folder / "houses.csv", "--target", "price", *QUICK, "--out", tmp_path / "m")
    assert fit.returncode == 0, fit.stderr
    assert "\x1b" not in fit.stdout + fit.stderr
    assert run("fit", tmp_path / "none.csv", "--target", "price").returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device without room")
def test_an_output_without_room_is_one_line(folder):
    args = [sys.executable, "-m", "mercer", "predict", str(folder / "price.mercer"), str(folder / "houses.csv")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(args, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "output: it cannot be written" in done.stderr.splitlines()[-1]
    assert "Exception" not in done.stderr


def test_importing_mercer_needs_no_extra():
    extras = ["pandas", "typer", "rich", "safetensors", "safetensors.numpy", "polars"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras})); import mercer, mercer.io, mercer.cli, mercer.select"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_without_the_extra_one_line_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from mercer.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert 'pip install "mercer[cli]"' in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([0.5, 1.5] * 10, "classification"),
        ([1, 2, 3] * 10, "classification"),
        ([1.0, 2.0, 3.0] * 10, "classification"),
        ([1, 2, 3], "regression"),
        (list(range(100)), "regression"),
        ([0.1, 0.2, 0.3] * 10, "regression"),
    ],
)
def test_the_task_is_inferred(values, task):
    assert infer_task(pd.Series(values))[0] == task


def test_classes_keep_their_names():
    assert as_target("t", pd.Series([1.0, 2.0] * 5), "classification").dtype.kind == "i"
    assert set(as_target("t", pd.Series([True, False] * 5), "classification")) == {"True", "False"}
    assert set(as_target("t", pd.Series([" a", "b "] * 5), "classification")) == {"a", "b"}


def test_a_quarter_of_each_class_is_held_out():
    y = np.repeat(["a", "b", "c"], [80, 16, 4])
    held = holdout_rows(y, "classification", 0)
    assert [int(held[y == one].sum()) for one in "abc"] == [20, 4, 1]
    assert holdout_rows(np.arange(40.0), "regression", 0).sum() == 10


@pytest.mark.slow
def test_demo(monkeypatch):
    monkeypatch.setattr("mercer.cli.demo.ROUNDS", 1)
    monkeypatch.setattr("mercer.cli.demo.default_kernels", lambda X: [Gaussian(gamma=0.05)])
    done = mercer("demo", "--threads", "1")
    assert done.exit_code == 0, done.output
    assert float(done.output.split("mercer    accuracy ")[1].split(",")[0]) > 0.97
    assert "scikit-learn" in done.output
    differences = [float(line.split()[-1]) for line in done.output.splitlines() if " times " in line]
    assert len(differences) == 2
    assert max(differences) < 1e-4


def test_check_proves_and_refutes(folder):
    done = mercer("check", "gaussian(gamma=0.5) * linear() + 1")
    assert done.exit_code == 0, done.output
    assert "proved" in done.output
    assert "product (Schur)" in done.output
    done = mercer("check", "exp(-sqdist**1.5)", "--columns", 2)
    assert done.exit_code == 1, done.output
    assert "zᵀKz" in done.output
    done = mercer("check", "sigmoid(coef0=0.5)", "--vary", "gamma=0.1,1")
    assert done.output.count("refuted") == 3
    done = mercer("check", "gaussian(gamma='scale').on(['rooms'])", folder / "houses.csv", "--target", "price")
    assert done.exit_code == 0, done.output
    assert "n = 160" in done.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("exp(-foo)",), "unknown name 'foo'"),
        (("linear", "--vary", "gamma"), "name=value"),
        (("linear", "--vary", "gamma=1"), "no parameter 'gamma'"),
        (("linear", "nowhere.csv"), "nowhere.csv"),
        (("linear().on(['a'])",), "give X"),
    ],
)
def test_check_says_what_is_wrong(args, words):
    done = mercer("check", *args)
    assert done.exit_code == 2
    assert words in done.output


def test_fasta_from_fit_to_evaluate(tmp_path):
    rng = np.random.default_rng(0)

    def file(name, count):
        letters = ["aact", "ggct"] * count
        lines = [f">{place % 2}\n{''.join(rng.choice(list(own), 30))}" for place, own in enumerate(letters)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return str(tmp_path / name)

    train, test, out = file("train.fasta", 30), file("test.fasta", 10), str(tmp_path / "model.mercer")
    done = mercer("fit", train, "--out", out)
    assert done.exit_code == 0, done.output
    assert "60 sequences of 30 letters and the target label" in done.output
    assert "30 characters each, 4 distinct ones" in done.output
    assert "accuracy 1.0" in mercer("evaluate", out, test).output
    predicted = mercer("predict", out, test)
    assert predicted.stdout.split()[:3] == ["label", "0", "1"]
    given = mercer("fit", train, "--kernel", "mismatch(k=3, m=1).normalized()", "--alpha", "0.1")
    assert "alphabet='ACGT'" in given.output
    refused = mercer("fit", train, "--kernel", "gaussian()")
    assert refused.exit_code == 2
    assert "not a kernel of sequences" in refused.output
    assert "Sequences" in mercer("inspect", out).output
    checked = mercer("check", "spectrum(k=3) + mismatch(k=3, m=1)", train)
    assert checked.exit_code == 0, checked.output
    assert "n = 60" in checked.output
    refused = mercer("check", "gaussian()", train)
    assert refused.exit_code == 2
    assert "not a kernel of sequences" in refused.output


def test_tune_shows_a_shortlist_and_searches_around_its_best(folder, tmp_path):
    scores = tmp_path / "scores.json"
    done = mercer(
        "tune", folder / "houses.csv", "--target", "price", "--resume", scores, "--out", tmp_path / "m.mercer"
    )
    assert done.exit_code == 0, done.output
    for words in ("Shortlist: leave-one-out R²", "shared: one kernel matrix", "±", "Score on the rows held out"):
        assert words in done.output, words
    assert scores.exists()
    assert load(tmp_path / "m.mercer").predict(pd.read_csv(folder / "houses.csv")).shape == (160,)


def test_tune_learns_length_scales_and_races_classes(folder):
    done = mercer("tune", folder / "houses.csv", "--target", "price", "--per-column", "--kernel", "gaussian")
    assert done.exit_code == 0, done.output
    assert "length-scales, the shortest first" in done.output
    done = mercer("tune", folder / "kinds.tsv.gz", "--target", "kind", "--kernel", "laplace", "--halving", "3")
    assert done.exit_code == 0, done.output
    refused = mercer("tune", folder / "kinds.tsv.gz", "--target", "kind", "--per-column")
    assert refused.exit_code != 0
    assert "regression" in refused.output


def test_check_leaves_the_target_of_svmlight_out(tmp_path):
    path = tmp_path / "rows.svmlight"
    path.write_text("1 1:0.5 2:1\n-1 1:2 3:1.5\n1 1:1 2:3\n-1 2:2 3:1\n")
    done = mercer("check", "gaussian(gamma=1.0)", path)
    assert done.exit_code == 0, done.output
    assert "rows of 3 columns" in done.output


def test_a_model_is_saved_although_nobody_reads_the_output(folder, tmp_path):
    """As with ``mercer fit ... | head -1``: the pipe is closed before the first line is written."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mercer", "fit", folder / "houses.csv", "--target", "price", *QUICK]
    command += ["--out", tmp_path / "m"]
    done = subprocess.run([*map(str, command)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "m").target == "price"
