"""A report has what it promises, equal to what scikit-learn computes, in one file that requests nothing."""

from __future__ import annotations

import base64
import json
import re
import shlex
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from matplotlib.text import Text

import mercer
from mercer.errors import InvalidInput
from mercer.kernels import Linear, Matern
from mercer.report import figures, write
from mercer.report.scores import scores


class Page(HTMLParser):
    """The words of a page, its headings, tags that are open at the end, and all addresses."""

    EMPTY = frozenset({"meta", "img", "br"})

    def __init__(self, path):
        super().__init__()
        self.words, self.headings, self.open, self.addresses, self.images = [], [], [], [], []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        self.images += [dict(attributes)["alt"]] if tag == "img" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1:] != ["style"]:
            self.words.append(data.strip())
            self.headings += [data.strip()] if self.open[-1] in ("h1", "h2") else []

    def after(self, label):
        """The next word, as in the rows of tables."""
        return self.words[self.words.index(label) + 1]


@pytest.fixture(scope="module")
def halves():
    def of(load, **options):
        X, y = load(return_X_y=True, **options)
        order = np.random.default_rng(0).permutation(len(y))
        first, second = order[: len(y) // 2], order[len(y) // 2 :]
        part = (lambda rows: X.iloc[rows]) if hasattr(X, "iloc") else (lambda rows: X[rows])
        return part(first), np.asarray(y)[first], part(second), np.asarray(y)[second]

    return of


def test_a_classifier_of_two_classes(halves, tmp_path):
    X, y, Z, t = halves(load_breast_cancer)
    model = make_pipeline(StandardScaler(), mercer.SVC(probability=True)).fit(X, y)
    page = Page(write(model, tmp_path / "r.html", Z, t, train=(X, y)))
    assert page.open == []
    assert page.images == ["Confusion matrix", "ROC curve", "Calibration", "Importance of the columns"]
    assert float(page.after("balanced accuracy")) == pytest.approx(
        balanced_accuracy_score(t, model.predict(Z)), abs=1e-4
    )
    found = float(page.after("area under the ROC curve"))
    assert found == pytest.approx(roc_auc_score(t, model.decision_function(Z)), abs=1e-4)
    assert float(page.after("guessing")) == pytest.approx(np.mean(t == np.bincount(y).argmax()), abs=1e-4)
    assert page.after("rows of this report") == f"{len(t)}, not seen by the fit"
    assert page.after("residual").endswith("converged")


def test_a_regressor_beside_the_line(halves, tmp_path):
    X, y, Z, t = halves(load_diabetes)
    model = mercer.KernelRidge("gaussian", alpha=0.1).fit(X, y)
    page = Page(write(model, tmp_path / "r.html", Z, t, train=(X, y)))
    line = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(X, y)
    assert float(page.after("R²")) == pytest.approx(r2_score(t, model.predict(Z)), abs=1e-4)
    assert float(page.after("linear regression")) == pytest.approx(line.score(Z, t), abs=1e-4)
    assert page.images == ["Residuals", "Importance of the columns"]
    assert any(word.startswith("linear regression scores higher") for word in page.words)


def test_the_page_requests_nothing_and_is_the_same_each_time(halves, tmp_path):
    X, y, Z, t = halves(load_iris)
    model = mercer.SVC().fit(X, y)
    page = Page(write(model, tmp_path / "r.html", Z, t))
    assert page.addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
    assert "<script" not in page.text
    assert not re.search(r"https?://|@import|url\(", page.text)
    assert Page(write(model, tmp_path / "r.html", Z, t)).text == page.text


def test_baselines_without_training_rows_are_cross_validated(halves, tmp_path):
    X, y, Z, t = halves(load_iris)
    page = Page(write(mercer.SVC().fit(X, y), tmp_path / "r.html", Z, t))
    assert "by 5 folds of these rows" in page.words
    assert page.after("rows of this report") == str(len(t))


def test_influential_points_are_those_of_explain(halves, tmp_path):
    X, y, Z, t = halves(load_diabetes)
    model = mercer.KernelRidge("gaussian").fit(X, y)
    page = Page(write(model, tmp_path / "r.html", Z[:50], t[:50]))
    size = np.abs(mercer.explain(model, Z[:50]).contributions).mean(axis=0)
    assert float(page.after(f"training point {size.argmax()}")) == pytest.approx(size.max(), rel=1e-2)


def test_the_command_line_has_a_linear_model_of_a_column_of_text(tmp_path):
    testing = pytest.importorskip("typer.testing")
    from mercer.cli import app as commands

    words = ["".join(np.random.default_rng(i).choice(list("ab"), 12)) for i in range(80)]
    lines = [f"{word},{word.count('ab') + 0.5}" for word in words]
    (tmp_path / "t.csv").write_text("\n".join(["word,y", *lines]))
    given = ["fit", str(tmp_path / "t.csv"), "--text", "word", "--target", "y", "--report", str(tmp_path / "r.html")]
    done = testing.CliRunner().invoke(commands.app, [*given, "--kernel", "spectrum(k=2)"])
    assert done.exit_code == 0, done.output
    assert float(Page(tmp_path / "r.html").after("linear regression on letters")) > 0.5


def test_rows_that_are_not_numbers(tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), 12)) for _ in range(60)]
    y = np.array([word.count("ab") for word in words], float)
    model = mercer.KernelRidge("spectrum(k=2)", alpha=0.1).fit(words[:40], y[:40])
    page = Page(write(model, tmp_path / "r.html", words[40:], y[40:], train=(words[:40], y[:40])))
    assert page.images == ["Residuals"]
    assert page.after("guessing")
    counts = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
    line = RidgeCV(np.logspace(-3, 3, 13)).fit(counts.fit_transform(words[:40]), y[:40])
    found = r2_score(y[40:], line.predict(counts.transform(words[40:])))
    assert page.after("linear regression on letters") == f"{found:.4f}"


def test_texts_too_long_to_count_have_no_linear_model(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.report.scores.MOST_LETTERS", 12 * 19)
    words, y = ["abbaabababab", "babababbbaab"] * 20, np.tile([1.0, 2.0], 20)
    page = Page(write(mercer.KernelRidge("spectrum(k=2)").fit(words, y), tmp_path / "r.html", words, y))
    assert page.after("guessing")
    assert "linear regression" not in page.words


def test_intervals_hold_what_they_say():
    """Of 100 samples of 100 rows, with a true accuracy of 0.8: between 88 and 99 of the intervals hold it."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(100):
        y = rng.integers(2, size=100)
        predicted = np.where(rng.random(100) < 0.8, y, 1 - y)
        one = scores(y, predicted, None, classes=True)[0]
        held += one.low <= 0.8 <= one.high
    assert 88 <= held <= 99


def test_no_error_among_few_rows_has_an_interval():
    """0.715 is the end of the exact interval of 11 hits of 11; a rare class leaves the others more room."""
    y = np.repeat(["a", "b"], [5, 6])
    for hits in (y, np.where(y == "a", "b", "a")):
        found = scores(y, hits, np.where(hits == "a", -1.0, 1.0), classes=True)
        wide = [one.high - one.low for one in found]
        assert np.allclose(wide, 1 - 0.715, atol=0.003)
        assert all(0 <= one.low <= one.value <= one.high <= 1 for one in found)
    rare = np.repeat(["a", "b"], [1, 100])
    accuracy, balanced = scores(rare, rare, None, classes=True)
    assert balanced.low < 0.5 < 0.9 < accuracy.low


@pytest.mark.parametrize("rows", [11, 199, 200])
def test_few_rows_are_said_to_have_wide_intervals(rows, tmp_path):
    X = np.arange(rows, dtype=float)[:, None]
    y = np.where(X[:, 0] < rows / 2, "a", "b")
    page = Page(write(mercer.SVC().fit(X, y), tmp_path / "r.html", X, y))
    said = f"the scores are of {rows} rows, fewer than 200: their intervals are wide"
    assert (said in page.words) == (rows < 200)


def test_long_names_leave_room_for_what_bars_show(monkeypatch):
    monkeypatch.setattr(figures, "_picture", lambda figure, *_: figure)
    label = "rows of the first class predicted as the second"
    figure = figures.bars(["a long name of a class, really"] * 3, np.arange(3.0), None, "Mistakes", label)
    figure.draw_without_rendering()
    (text,) = (one for one in figure.findobj(Text) if one.get_text() == label)
    box = text.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_dollars_of_mistakes_are_drawn_as_they_are(tmp_path):
    y = np.array([f"${place}k_to_$" for place in range(30)])
    picture = figures.confusion(y, np.roll(y, 1))
    assert "$0k_to_$ as $29k_to_$" in picture.svg
    assert "\\$" not in picture.svg


def test_text_from_data_is_escaped(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((40, 2)), columns=["<b>one</b>", "two"])
    y = np.where(frame["two"] > 0, "<script>alert(1)</script>", "no")
    model = mercer.SVC().fit(frame, y)
    page = Page(write(model, tmp_path / "r.html", frame, y, title="<i>title</i>"))
    assert "<script" not in page.text
    assert page.headings[0] == "<i>title</i>"
    assert any("<b>one</b>" in word for word in page.words)


def test_names_of_any_kind_are_words(tmp_path):
    """Dollars are no formulas, and letters that matplotlib does not know stay letters, without a warning."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = np.where(X[:, 0] > 0, "US$ ^ $", "漢字 😀 <b>")
    page = Page(write(mercer.SVC(probability=True).fit(X, y), tmp_path / "r.html", X, y))
    drawings = [base64.b64decode(address.split(",")[1]).decode() for address in page.addresses]
    assert "US$ ^ $" in drawings[0]
    assert "漢字 😀 &lt;b&gt;" in drawings[0]
    assert ">share of US$ ^ $ found<" in drawings[1] or ">share of 漢字 😀 &lt;b&gt; found<" in drawings[1]


def test_many_classes_have_their_most_frequent_mistakes(tmp_path):
    X = np.repeat(np.arange(30.0), 4)[:, None]
    y = np.repeat(np.arange(30), 4)
    t = np.where(y == 7, 8, y)
    t[0] = 5
    page = Page(write(mercer.KernelRidgeClassifier("gaussian(gamma=9.0)").fit(X, y), tmp_path / "r.html", X, t))
    assert "Most frequent mistakes" in page.images
    assert any("The largest: 8 as 7 4, 5 as 0 1." in word for word in page.words)


def test_many_columns_are_said_to_have_no_importance(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 201))
    page = Page(write(mercer.KernelRidge("linear").fit(X, X[:, 0]), tmp_path / "r.html", X, X[:, 0]))
    assert "the importance of the columns is left out: there are 201, more than 200" in page.words


def test_a_class_that_no_fit_saw_has_no_curve(tmp_path):
    """The decision function is of a and b, and says nothing of c."""
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], 20)
    model = mercer.SVC().fit(X, y)
    assert "ROC curve" not in Page(write(model, tmp_path / "r.html", X, np.where(y == "b", "c", y))).images
    assert "ROC curve" in Page(write(model, tmp_path / "r.html", X, y)).images


@pytest.mark.parametrize("pipeline", [False, True])
def test_the_lines_of_python_make_the_model_again(pipeline, halves, tmp_path):
    X, y, Z, t = halves(load_diabetes)
    model = mercer.KernelRidge(0.5 * Matern(length_scale=2.0) + Linear(), alpha=0.5)
    model = make_pipeline(StandardScaler(with_mean=False), model) if pipeline else model
    page = Page(write(model.fit(X, y), tmp_path / "r.html", Z, t))
    names = {"X": X, "y": y}
    exec(next(word for word in page.words if "model = " in word), names)
    assert np.array_equal(names["model"].predict(Z), model.predict(Z))


def test_a_search_says_what_it_chose_from(halves, tmp_path):
    X, y, Z, t = halves(load_iris)
    search = GridSearchCV(mercer.SVC(), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    found = Page(write(search, tmp_path / "r.html", Z, t)).after("choice")
    assert found.startswith(f"the best of 2 candidates: C={search.best_params_['C']}, score 0.")


@pytest.mark.parametrize("rows", [2, 3])
def test_few_rows(rows, halves, tmp_path):
    X, y, _, _ = halves(load_diabetes)
    model = mercer.KernelRidge("gaussian").fit(X, y)
    assert Page(write(model, tmp_path / "r.html", X[:rows].tolist(), y[:rows].tolist())).after("R²")


def test_one_class_and_constant_columns(tmp_path):
    """With warnings as errors."""
    X = np.ones((30, 3))
    X[:, 0] = np.arange(30)
    y = np.repeat([0, 1], 15)
    model = mercer.SVC().fit(X, y)
    page = Page(write(model, tmp_path / "r.html", X[:10], y[:10], train=(X, y)))
    assert page.images[0] == "Confusion matrix"
    assert "ROC curve" not in page.images
    page = Page(write(model, tmp_path / "r.html", X[:10], y[:10]))
    assert "logistic regression" not in page.words
    with np.errstate(all="raise"):
        write(mercer.KernelRidge("gaussian").fit(X, X[:, 1]), tmp_path / "r.html", X, X[:, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": mercer.KernelPCA().fit(np.eye(4))}, "give a fitted classifier or regressor"),
        ({"model": mercer.SVC()}, "not fitted"),
        ({"y": [1.0, 2.0]}, "one target for each row"),
        ({"y": ["a"] * 221}, "targets that are not numbers"),
        ({"y": [np.nan] * 221}, "221 of 221 targets missing, the first in row 0"),
        ({"model": mercer.SVC().fit(np.eye(10), ["a", "b"] * 5)}, "which the model does not know: it has 'a'"),
        ({"path": "r.txt"}, "ends in .html"),
        ({"path": "missing/r.html"}, "no folder"),
        ({"path": "other.html"}, "not a report"),
    ],
    ids=["components", "unfitted", "targets", "words", "missing", "unknown", "suffix", "folder", "another page"],
)
def test_refusals(change, message, halves, tmp_path):
    X, y, Z, t = halves(load_diabetes)
    (tmp_path / "other.html").write_text("<html>mine</html>")
    given = {"model": mercer.KernelRidge().fit(X, y), "path": "r.html", "y": t} | change
    with pytest.raises((InvalidInput, NotFittedError), match=message):
        write(given["model"], tmp_path / given["path"], Z, given["y"])
    assert (tmp_path / "other.html").read_text() == "<html>mine</html>"


def test_the_command_line_writes_one_whose_line_makes_the_model_again(tmp_path):
    pd = pytest.importorskip("pandas")
    testing = pytest.importorskip("typer.testing")
    from mercer.cli import app as commands

    frame = load_diabetes(as_frame=True).frame[:200]
    frame.assign(city=np.where(frame["bmi"] > 0, "a", "b")).to_csv(tmp_path / "t.csv", index=False)
    assert isinstance(frame, pd.DataFrame)

    def run(*words):
        done = testing.CliRunner().invoke(commands.app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    given = ["fit", str(tmp_path / "t.csv"), "--target", "target", "--report", str(tmp_path / "r.html"), "--seed", "3"]
    first = run(*given)
    page = Page(tmp_path / "r.html")
    line = next(word for word in page.words if word.startswith("mercer fit"))
    again = run(*shlex.split(line)[1:])
    assert again["score"] == first["score"]
    assert "-fold cross-validation on" in page.after("choice")
    assert float(page.after("R²")) == pytest.approx(first["score"]["R²"], abs=1e-4)
    refused = testing.CliRunner().invoke(commands.app, [*given, "--no-holdout"])
    assert refused.exit_code == 2
    assert "leave --no-holdout out" in refused.output


def test_the_worst_residual_is_drawn_among_many(monkeypatch):
    monkeypatch.setattr(figures, "_picture", lambda figure, *_: figure)
    y = np.random.default_rng(0).normal(size=9000)
    y[4321] = 50.0
    drawn = figures.residuals(y, np.zeros(9000)).axes[0].collections[0].get_offsets()
    assert len(drawn) == 2000
    assert drawn[:, 1].max() == 50.0


SEEN = "all rows are rows of the fit, whose errors say little: give rows that were held out"


@pytest.mark.parametrize("train", [False, True])
def test_rows_of_the_fit_are_called_so(train, tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted, words = slice(0, None, 2), np.array(["setosa", "versicolor", "virginica"])[y]
    for model, rows in (
        (mercer.SVC(), X),
        (make_pipeline(StandardScaler(), mercer.KernelRidgeClassifier()), X),
        (mercer.SVC(kernel="spectrum(k=2)"), ["".join("ACGT"[int(10 * one) % 4] for one in row) for row in X]),
    ):
        some = [row for place, row in enumerate(rows) if place % 2 == 0]
        write(
            model.fit(some, words[fitted]),
            tmp_path / "seen.html",
            some,
            words[fitted],
            **({"train": (some, words[fitted])} if train else {}),
        )
        page = Page(tmp_path / "seen.html")
        assert SEEN in page.words
        assert page.after("rows of this report") == "75"
