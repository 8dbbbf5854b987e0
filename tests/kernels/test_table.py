"""Kernels of data frames: what becomes of each kind of column, and that every estimator takes them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer
from mercer import (
    SVC,
    EmpiricalKernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    KernelSearchCV,
    Nystroem,
    check_kernel,
    table_kernel,
)
from mercer.errors import InvalidInput
from mercer.kernels import Cosine, GappedKmer, Gaussian, Linear, Mismatch, Spectrum, TableKernel
from mercer.kernels.table import SeasonPlan

WORDS = ["kernel", "matrix", "vector", "garden", "winter", "summer"]


@pytest.fixture(scope="module")
def frame():
    rng, n = np.random.default_rng(0), 160
    size = rng.lognormal(size=n)
    kind = rng.choice(["a", "b", "c"], n)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1200, n), unit="D")
    notes = [f"{rng.choice(WORDS)} {rng.choice(WORDS)} {i}" for i in range(n)]
    out = pd.DataFrame(
        {"size": size, "kind": kind, "when": when, "notes": notes, "good": rng.random(n) < 0.5, "same": 1}
    )
    out.loc[:9, "size"] = np.nan
    out.loc[5:12, "kind"] = None
    return out


@pytest.fixture(scope="module")
def target(frame):
    season = np.sin(2 * np.pi * frame["when"].dt.day_of_year / 365)
    word = frame["notes"].str.contains("kernel").astype(float)
    return (np.log(frame["size"]).fillna(0) + (frame["kind"] == "a") + season + 2 * word).to_numpy()


def test_each_kind_of_column_has_its_part(frame):
    kernel = table_kernel(frame)
    assert [part.name for part in kernel.parts] == ["numbers", "kind", "when, season", "notes"]
    assert kernel.parts[0].columns == ["size", "when", "good"]
    assert "size is missing" in kernel.features
    assert "kind is missing" in kernel.features
    assert "notes: 0.5 * Cosine() + Constant(value=0.5)" in str(kernel)
    assert kernel.properties.definiteness.is_mercer
    K = kernel(frame)
    assert np.linalg.eigvalsh(K)[0] > -1e-10
    np.testing.assert_allclose(np.diagonal(K), kernel.diagonal(frame), rtol=1e-12)


def test_it_is_the_product_or_the_sum_of_its_parts(frame):
    kernel = table_kernel(frame)
    rows, start, parts = kernel.rows(frame), 0, []
    for part in kernel.parts:
        parts.append(part.kernel(rows[:, start : start + len(part.features)]))
        start += len(part.features)
    np.testing.assert_allclose(kernel(frame), np.prod(parts, axis=0), rtol=1e-10)
    np.testing.assert_allclose(kernel.combined_by("sum")(frame), np.sum(parts, axis=0), rtol=1e-10)
    np.testing.assert_allclose(kernel.block(frame, frame[:7]), kernel(frame, frame[:7]), rtol=1e-9)


def test_parts_are_changed_and_left_out(frame):
    kernel = table_kernel(frame, text=["kind"], ignore=["when"])
    assert [part.name for part in kernel.parts] == ["numbers", "kind", "notes"]
    changed = kernel.with_part("notes", Cosine() ** 2).without("kind")
    assert [part.kernel for part in changed.parts][1] == Cosine() ** 2
    assert isinstance(clone(KernelRidge(changed)).kernel, TableKernel)
    with pytest.raises(InvalidInput, match="no part 'colour'"):
        kernel.without("colour")
    with pytest.raises(InvalidInput, match="numbers for its parameters"):
        kernel.with_part("notes", Gaussian("median"))
    with pytest.raises(InvalidInput, match="at least one part"):
        kernel.without("numbers", "kind", "notes")


def test_estimators_take_the_data_frame_itself(frame, target):
    kernel = table_kernel(frame)
    train, test = frame[:120], frame[120:]
    model = KernelRidge(kernel, alpha=0.1, fit_intercept=True).fit(train, target[:120])
    assert model.score(test, target[120:]) > 0.5
    numbers = kernel.without("kind", "when, season", "notes")
    assert model.score(test, target[120:]) > KernelRidge(numbers, 0.1, fit_intercept=True).fit(
        train, target[:120]
    ).score(test, target[120:])
    rows = KernelRidge(kernel.vector_kernel, 0.1, fit_intercept=True).fit(kernel.rows(train), target[:120])
    np.testing.assert_allclose(model.predict(test), rows.predict(kernel.rows(test)), rtol=1e-9)
    assert KernelPCA(2, kernel=kernel).fit_transform(frame).shape == (160, 2)
    assert KernelRidgeCV(kernel).fit(frame, target).best_score_ < 0
    labels = np.where(target > np.median(target), "high", "low")
    assert KernelRidgeClassifier(kernel, 0.1).fit(frame, labels).score(frame, labels) > 0.9


def test_searches_and_weights(frame, target):
    kernel = table_kernel(frame)
    grid = {"alpha": [0.01, 1.0], "kernel": [kernel, kernel.without("notes")]}
    ours = KernelSearchCV(KernelRidge(), grid, cv=3).fit(frame, target)
    peer = GridSearchCV(KernelRidge(), grid, cv=3).fit(frame, target)
    assert ours.method_.startswith("shared")
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=1e-8)
    assert ours.best_params_["kernel"] == kernel
    assert len(cross_val_score(KernelRidge(kernel), frame, target, cv=3)) == 3
    w = np.repeat([1.0, 0.0], 80)
    weighted = KernelRidge(kernel).fit(frame, target, sample_weight=w)
    np.testing.assert_allclose(
        weighted.predict(frame), KernelRidge(kernel).fit(frame[:80], target[:80]).predict(frame), rtol=1e-9
    )


def test_polars_and_the_order_of_columns(frame, target):
    kernel = table_kernel(frame)
    model = KernelRidge(kernel, 0.1).fit(frame, target)
    plain = frame.astype(object).where(frame.notna(), None)
    other = pl.DataFrame({name: plain[name].to_list() for name in frame.columns[::-1]})
    np.testing.assert_allclose(model.predict(other), model.predict(frame), rtol=1e-9)


def test_what_was_not_seen_and_what_is_missing(frame, target):
    model = KernelRidge(table_kernel(frame), 0.1).fit(frame, target)
    new = pd.DataFrame({"size": [np.nan], "kind": ["new"], "when": [pd.NaT], "notes": [None], "good": [None]})
    assert np.isfinite(model.predict(new)).all()
    for name, text, kind in (("size", "large", "number"), ("when", "some day", "date"), ("good", "maybe", "number")):
        with pytest.raises(
            InvalidInput, match=rf"the column '{name}': '{text}' in row 3 \(counted from 1\) is not a {kind}"
        ):
            model.predict(frame[:4].astype({name: object}).assign(**{name: [None, "", text, np.nan]}))
    with pytest.raises(InvalidInput, match="no column 'size'"):
        model.predict(frame.drop(columns="size"))
    with pytest.raises(InvalidInput, match="data frame"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="data frame"):
        model.predict([[1, 2]])


def test_models_are_saved_and_loaded(frame, target, tmp_path):
    pytest.importorskip("safetensors")
    model = KernelRidge(table_kernel(frame), 0.1).fit(frame, target)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_degenerate_tables():
    with pytest.raises(InvalidInput, match="no column is left"):
        table_kernel(pd.DataFrame({"same": [1, 1]}))
    with pytest.raises(InvalidInput, match="data frame"):
        table_kernel(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="no column 'b'"):
        table_kernel(pd.DataFrame({"a": [1, 2]}), ignore=["b"])
    assert table_kernel(pd.DataFrame({"a": [1.0, 2.0]})).vector_kernel.on is not None
    assert len(table_kernel(pd.DataFrame({"kind": ["a", "b"]})).parts) == 1


def test_a_landmark_map(frame):
    kernel = table_kernel(frame)
    features = Nystroem(kernel, n_components=160).fit_transform(frame)
    np.testing.assert_allclose(features @ features.T, kernel(frame), atol=1e-6)
    exact = EmpiricalKernelMap(kernel).fit(frame)
    np.testing.assert_allclose(exact.transform(frame[:5]), kernel(frame)[:5], rtol=1e-12)


def test_within_other_kernels(frame, target):
    kernel = 2.0 * table_kernel(frame) + 0.5
    np.testing.assert_allclose(kernel(frame), 2 * table_kernel(frame)(frame) + 0.5, rtol=1e-12)
    assert KernelRidge(kernel, 0.1).fit(frame, target).predict(frame[:3]).shape == (3,)
    assert Linear() != kernel


@pytest.fixture(scope="module")
def reads():
    """Sequences that tell the class, and numbers that do not."""
    rng = np.random.default_rng(1)
    n = 80
    seq = ["".join(rng.choice(list("acgt" if i % 2 else "aact"), 30)) for i in range(n)]
    notes = [f"read {i} of the {'first' if i % 3 else 'second'} run" for i in range(n)]
    table = pd.DataFrame({"size": rng.normal(size=n), "seq": seq, "notes": notes})
    return table, np.arange(n) % 2


def test_sequences_reach_a_kernel_of_sequences(reads, tmp_path):
    table, y = reads
    kernel = table_kernel(table)
    assert [part.name for part in kernel.parts] == ["numbers", "seq", "notes"]
    assert "GappedKmer" in str(kernel)
    kernel = kernel.with_part("seq", GappedKmer(6, 4).normalized()).without("notes")
    K = kernel(table)
    own = kernel.parts[0].kernel(kernel.rows(table)[:, :1].astype(float))
    upper = [one.upper() for one in table["seq"]]
    np.testing.assert_allclose(K, own * GappedKmer(6, 4).normalized()(upper), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(table), np.diagonal(K), rtol=1e-12)
    assert check_kernel(kernel).verdict == "proved"
    for model in (
        KernelRidgeClassifier(kernel, 0.1),
        SVC(kernel=kernel),
        KernelRidgeClassifier(kernel * 2.0 + 0.5, 0.1),
    ):
        model.fit(table[:60], y[:60])
        assert model.score(table[60:], y[60:]) > 0.8
        mercer.save(model, tmp_path / "m")
        again = mercer.load(tmp_path / "m")
        assert again.decision_function(table).tobytes() == model.decision_function(table).tobytes()
    assert Nystroem(kernel, 10).fit_transform(table).shape == (80, 10)
    assert KernelPCA(2, kernel).fit_transform(table).shape == (80, 2)
    assert len(cross_val_score(KernelRidgeClassifier(kernel, 0.1), table, y, cv=3)) == 3


def test_a_part_is_read_as_its_kernel_reads_it(reads):
    table, _ = reads
    kernel = table_kernel(table).with_part("notes", Spectrum(3).normalized())
    assert kernel.rows(table).dtype == object
    back = kernel.with_part("notes", Cosine()).without("seq")
    np.testing.assert_allclose(back(table), table_kernel(table).with_part("notes", Cosine()).without("seq")(table))
    missing = table.assign(notes=[None, *table["notes"][1:]])
    assert np.isfinite(kernel(missing)).all()
    with pytest.raises(InvalidInput, match="reads one column of texts"):
        table_kernel(table.assign(more=table["size"] ** 2)).with_part("numbers", Spectrum(3))
    with pytest.raises(InvalidInput, match=r"no column 'seq'"):
        kernel(table.drop(columns="seq"))


def test_a_part_says_what_its_kernel_lacks(reads):
    table, _ = reads
    kernel = table_kernel(table)
    with pytest.raises(InvalidInput, match=r"give the symbols, such as alphabet=.*resolve\(frame\['seq'\]\)"):
        kernel.with_part("seq", Mismatch(5, 1))
    resolved = kernel.with_part("seq", Mismatch(5, 1).resolve(table["seq"]))
    assert np.isfinite(resolved(table)).all()


def test_dates_and_percentages_in_words(tmp_path):
    n = 60
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(np.arange(n) * 25, unit="D")
    frame = pd.DataFrame({"when": days.strftime("%d.%m.%Y"), "share": [f"{i / 2} %" for i in range(n)]})
    kernel = table_kernel(frame)
    assert [part.name for part in kernel.parts] == ["numbers", "when, season"]
    same = table_kernel(pd.DataFrame({"when": days, "share": np.arange(n) / 2}))
    np.testing.assert_allclose(kernel(frame), same(frame.assign(when=days, share=np.arange(n) / 2)), rtol=1e-12)
    with pytest.raises(InvalidInput, match=r"'some day' in row 2 .* is not a date"):
        kernel(frame.assign(when=["1.2.2020", "some day", *frame["when"][2:]]))


def test_an_odd_word_among_dates_is_missing_in_all_parts():
    days = pd.Series((pd.Timestamp("2019-01-01") + pd.to_timedelta(np.arange(60) * 25, unit="D")).strftime("%d.%m.%Y"))
    frame = pd.DataFrame({"when": days.where(days.index != 7, "tbd")})
    kernel = table_kernel(frame)
    assert [part.name for part in kernel.parts] == ["numbers", "when, season"]
    np.testing.assert_array_equal(kernel(frame), kernel(pd.DataFrame({"when": days.where(days.index != 7)})))
    with pytest.raises(InvalidInput, match=r"'lost' in row 8 .* is not a date"):
        kernel(frame.replace("tbd", "lost"))
    with pytest.raises(InvalidInput, match="give texts"):
        SeasonPlan("when", 0.0, "", ["tbd"])


def test_kernels_on_columns_of_mixed_rows():
    rows = [[2.0, "abab", ("a", "b")], [1.0, "ab", ("b", "b")]]
    kernel = Linear().on([0]) + Spectrum(2).on([1]) * Spectrum(1).on([2])
    np.testing.assert_array_equal(kernel(rows), [[4 + 5 * 2, 2 + 2 * 2], [2 + 2 * 2, 1 + 1 * 4]])
    assert (Spectrum(2).on([1]) + Spectrum(1).on([2])).has_fast_matmul
    for wrong, words in (
        (lambda: (Linear() + Spectrum(2).on([1]))(rows), r"Linear\(\) reads all columns"),
        (lambda: (Linear().on([1]) + Spectrum(2).on([1]))(rows), "not of numbers"),
        (lambda: Spectrum(2).on([0])(rows), "among the sequences"),
        (lambda: Spectrum(2).on([0, 1]), "reads one column"),
        (lambda: Spectrum(2).on([7])(rows), "8 columns or more"),
    ):
        with pytest.raises(InvalidInput, match=words):
            wrong()
