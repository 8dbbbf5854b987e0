"""``mercer plot``: the picture that suits each model, and those that are asked for."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
pytest.importorskip("matplotlib")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.output import plotting  # noqa: E402


def run(folder, text, status=0):
    with contextlib.chdir(folder):
        done = testing.CliRunner().invoke(commands.app, text.split())
    assert done.exit_code == status, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "price": 10 * x[:, 0] + rng.normal(size=80)})
    frame["kind"] = np.where(frame["price"] > 0, "pos", "neg")
    frame.to_csv(folder / "t.csv", index=False)
    (folder / "s.fasta").write_text("".join(f">{i % 2}\n{'acgt' * (4 + i % 2)}{'acgt'[i % 4]}\n" for i in range(40)))
    for columns in ("a", "a,b", "a,b,c"):
        for target in ("price", "kind"):
            given = f"--target {target} --columns {columns} --kernel gaussian(gamma=0.5) --alpha 0.1"
            run(folder, f"fit t.csv {given} --out {target}{len(columns) // 2 + 1}")
        for method in ("pca", "kmeans", "oneclass", "spectral"):
            number = {"pca": "--components 3", "oneclass": ""}.get(method, "--clusters 2")
            run(
                folder,
                f"fit t.csv --columns {columns} --method {method} {number} --out {method}{len(columns) // 2 + 1}",
            )
    run(folder, "fit t.csv --target kind --columns a,b,c --method discriminant --kernel linear --out discriminant3")
    run(folder, "fit s.fasta --kernel spectrum(k=3) --alpha 1 --out sequences")
    return folder


SUITS = {
    "price1": "posterior", "price2": "surface", "price3": "residuals",
    "kind1": "confusion", "kind2": "surface", "kind3": "confusion", "discriminant3": "confusion",
    "pca1": "scores", "pca2": "scores", "pca3": "scores", "spectral3": "scores",
    "kmeans1": "scores", "kmeans2": "surface", "kmeans3": "scores", "oneclass1": "scores", "oneclass2": "surface",
}  # fmt: skip


@pytest.mark.parametrize("model", SUITS)
def test_the_picture_suits_the_model(folder, model):
    found = json.loads(run(folder, f"plot {model} t.csv --out p.png --json").stdout)
    assert found["kind"] == SUITS[model]
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def drawn(monkeypatch, folder, text, kind="scores"):
    """The axes of the picture of a command."""
    found, draw = [], plotting.KINDS[kind]
    monkeypatch.setitem(plotting.KINDS, kind, lambda *given: found.append(draw(*given)) or found[-1])
    run(folder, text)
    return found[0].ax_


def test_outliers_are_marked_below_a_line(folder, monkeypatch):
    frame = pd.read_csv(folder / "t.csv")
    frame.loc[:4, ["a", "b", "c"]] *= 9
    frame.to_csv(folder / "far.csv", index=False)
    ax = drawn(monkeypatch, folder, "plot oneclass3 far.csv --out p.png")
    inside, outside = (points.get_offsets()[:, 1] for points in ax.collections)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["inlier", "outlier"]
    assert inside.min() >= 0 > outside.max()
    assert [list(line.get_ydata()) for line in ax.lines] == [[0.0, 0.0]]
    assert ax.get_title() == f"{len(outside)} outliers among 80 rows, score < 0"


def test_components_have_their_shares_of_the_variance(folder, monkeypatch):
    ax = drawn(monkeypatch, folder, "plot pca3 t.csv --out p.png")
    assert [name.partition(":")[0] for name in (ax.get_xlabel(), ax.get_ylabel())] == ["component 1", "component 2"]
    assert ax.get_xlabel().endswith(" %")


def test_rows_without_a_class_are_called_missing(folder, monkeypatch):
    frame = pd.read_csv(folder / "t.csv")
    frame.loc[:4, "kind"] = None
    frame.to_csv(folder / "gaps.csv", index=False)
    ax = drawn(monkeypatch, folder, "plot pca3 gaps.csv --target kind --out p.png")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing", "neg", "pos"]


def of_rows(folder, count, worst):
    """A table of this many rows, the target of one of which is far off."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(count, 3)), columns=["a", "b", "c"])
    frame["price"] = 10 * frame["a"] + rng.normal(size=count)
    frame.loc[worst, "price"] = 1000.0
    frame.to_csv(folder / "many.csv", index=False)
    return frame


@pytest.mark.parametrize(("count", "shown"), [(2000, 2000), (3000, 3000), (4000, 3000)])
def test_the_worst_residual_is_in_the_picture_and_what_is_not_is_said(folder, monkeypatch, count, shown):
    of_rows(folder, count, 77)
    ax = drawn(monkeypatch, folder, "plot price3 many.csv --out p.png", "residuals")
    points = ax.collections[0].get_offsets()
    assert len(points) == len(np.unique(points, axis=0)) == shown
    assert points[:, 1].max() > 900
    ax.figure.canvas.draw()
    at = ax.transData.transform(points)
    assert not any(text.get_window_extent().count_contains(at) for text in ax.texts)
    said = [text.get_text() for text in ax.texts]
    note = f"3,000 of {count:,} rows drawn, the 100 largest residuals among them"
    assert said == ([] if count <= 3000 else [note])
    found = json.loads(run(folder, "plot price3 many.csv --out p.png --json").stdout)
    assert (found["rows"], found["notes"]) == (count, said)


def test_rows_without_a_target_are_said_to_be_left_out(folder):
    frame = of_rows(folder, 50, 7)
    frame["kind"] = np.where(frame["price"] > 0, "pos", "neg")
    frame.loc[:4, ["price", "kind"]] = None
    frame.to_csv(folder / "gaps.csv", index=False)
    for model, target in (("price3", "price"), ("kind3", "kind")):
        found = json.loads(run(folder, f"plot {model} gaps.csv --out p.png --json").stdout)
        assert found["notes"] == [f"5 of 50 rows have no {target} and were left out"]


def test_other_pictures_and_files(folder):
    asked = ["discriminant3 t.csv --kind scores", "price2 t.csv --kind residuals", "kind2 t.csv --kind confusion",
             "price3 t.csv --kind surface --target kind", "sequences s.fasta", "pca2 t.csv --target kind"]  # fmt: skip
    for one, ending, start in zip(asked, ["png", "svg", "pdf"] * 2, [b"\x89PNG", b"<?xml", b"%PDF"] * 2, strict=True):
        done = run(folder, f"plot {one} --out q.{ending}")
        assert "written to" in done.stdout
        assert (folder / f"q.{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("classes", [2, 18, 60])
def test_numbers_of_a_confusion_fit_into_their_cells(monkeypatch, classes):
    y = np.repeat(np.arange(classes), 1234)
    monkeypatch.setattr(plotting, "_compared", lambda *_: (y, y, []))
    display = plotting._confusion(None, None, None)
    if classes > 40:
        assert display.text_ is None
        return
    display.figure_.canvas.draw()
    cell = display.ax_.transData.transform([[0, 0], [1, 1]])
    assert max(text.get_window_extent().width for text in display.text_.flat) < cell[1, 0] - cell[0, 0]
    zeros = [text.get_visible() for text in display.text_.flat if text.get_text() == "0"]
    assert zeros == [classes <= 10] * (classes**2 - classes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("price2 t.csv --out p.png --kind pie", "'pie'; choose auto, surface"),
        ("price2 t.csv --out p.jpg", "end it in .png, .pdf or .svg"),
        ("price2 t.csv --out t.csv", "end it in .png"),
        ("price2 t.csv --out other.png", "is not a picture"),
        ("price2 t.csv --out p.png --kind confusion", "confusion of a model of regression"),
        ("price1 t.csv --out p.png --kind surface", "a model of 1 column of numbers"),
        ("sequences s.fasta --out p.png --kind surface", "a model of texts or sequences"),
        ("pca2 t.csv --out p.png --target prize", "did you mean 'price'"),
        ("price3 s.fasta --out p.png", "s.fasta"),
        ("price2 t.csv", "mercer plot --help"),
    ],
)
def test_what_cannot_be_drawn_is_said(folder, text, words, capsys):
    (folder / "other.png").write_text("mine")
    with contextlib.chdir(folder):
        assert commands.run(["plot", *text.split()]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert (folder / "other.png").read_text() == "mine"
