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

from matplotlib.colors import to_rgba  # noqa: E402

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.output import plotting  # noqa: E402
from mercer.plots.drawing.style import POSITIVE  # noqa: E402


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


def read(text):
    """A text as it is drawn, which must be no formula."""
    drawn, formula = text._preprocess_math(text.get_text())
    assert not formula
    return drawn


@pytest.fixture(scope="module")
def dollars(tmp_path_factory):
    """Models whose columns, targets and classes have dollars in their names."""
    folder = tmp_path_factory.mktemp("dollars")
    x = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame({r"$\frac{$": x[:, 0], "$b$": x[:, 1], "price_$_$": x[:, 0]})
    frame["$t$"] = np.where(x[:, 0] > 0, "$0k_to_$5k", "$5k_to_$10k")
    frame.to_csv(folder / "t.csv", index=False)
    given = "--kernel gaussian(gamma=0.5) --alpha 0.1 --out"
    run(folder, rf"fit t.csv --target $t$ --columns $\frac{{$,$b$ {given} kind")
    run(folder, rf"fit t.csv --target price_$_$ --columns $\frac{{$ {given} price")
    return folder


def test_dollars_of_a_confusion_are_no_formulas(dollars, monkeypatch):
    ax = drawn(monkeypatch, dollars, "plot kind t.csv --kind confusion --out p.png", "confusion")
    assert [read(text) for text in ax.get_yticklabels()] == ["$0k_to_$5k", "$5k_to_$10k"]
    assert read(ax.figure._suptitle) == "$t$: confusion"


@pytest.mark.parametrize(
    ("model", "kind", "names"),
    [
        ("kind", "surface", [r"$\frac{$, as encoded", "$b$, as encoded"]),
        ("price", "posterior", [r"$\frac{$, as encoded", "price_$_$"]),
    ],
)
def test_dollars_of_axes_are_no_formulas(dollars, monkeypatch, model, kind, names):
    ax = drawn(monkeypatch, dollars, f"plot {model} t.csv --out p.png", kind)
    assert [read(ax.xaxis.label), read(ax.yaxis.label)] == names


def test_dollars_of_notes_are_no_formulas(monkeypatch):
    y, note = np.arange(5.0), r"5 of 50 rows have no $\frac{$ and were left out"
    monkeypatch.setattr(plotting, "_compared", lambda *_: (y, y + 1, [note]))
    (said,) = plotting._residuals(None, None, None).ax_.texts
    assert read(said) == note


def test_long_names_leave_room_for_the_confusion(monkeypatch):
    names = np.array([f"the_class_with_{'o' * 40}_number_{place}" for place in range(3)])
    monkeypatch.setattr(plotting, "_compared", lambda *_: (names, names, []))
    display = plotting._confusion(None, None, None)
    words = [f"the_class_wi…oo_number_{place}" for place in range(3)]
    assert [read(text) for text in display.ax_.get_xticklabels()] == words
    display.figure_.draw_without_rendering()
    assert display.ax_.get_window_extent().width > 0.4 * display.figure_.bbox.width


def test_the_notes_of_a_confusion_are_below_it(monkeypatch):
    y = np.array(["$a$", "b"])
    notes = ["5 of 50 rows have no $t$ and were left out", "all rows are rows of the fit: " + "give others " * 10]
    monkeypatch.setattr(plotting, "_compared", lambda *_: (y, y, notes))
    display = plotting._confusion(None, None, None)
    assert display.notes_ == notes
    said = display.figure_._supxlabel
    assert read(said).split() == " ".join(notes).split()
    display.figure_.draw_without_rendering()
    box, page = said.get_window_extent(), display.figure_.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert box.y1 <= display.ax_.get_tightbbox().y0


@pytest.mark.parametrize(
    ("model", "options", "names"),
    [("kind2", "", ["pos"]), ("price2", "--target kind", ["pos"]), ("price2", "", None), ("oneclass2", "", None)],
)
def test_a_surface_has_the_rows_of_the_table(folder, monkeypatch, model, options, names):
    frame = pd.read_csv(folder / "t.csv").query("kind == 'pos'").head(7)
    frame.to_csv(folder / "seven.csv", index=False)
    ax = drawn(monkeypatch, folder, f"plot {model} seven.csv --out p.png {options}", "surface")
    rows = [one for one in ax.collections if len(one.get_offsets()) == 7]
    assert len(rows) == 1
    assert not any(1 < len(one.get_offsets()) != 7 for one in ax.collections)
    if names is not None:
        assert [text.get_text() for text in ax.get_legend().get_texts()] == names
    if model == "price2" and names is None:
        assert np.allclose(rows[0].get_array(), frame["price"])
        assert "price" in [one.get_ylabel() for one in ax.figure.axes]
    if model == "kind2":
        assert np.allclose(rows[0].get_facecolor()[0], to_rgba(POSITIVE))  # as the side of its class is


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
