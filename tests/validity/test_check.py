"""What a report says of data, dimensions, parameters and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer
from mercer import KernelRidge, check_kernel
from mercer.errors import IndefiniteKernelWarning, InvalidInput, NotAKernel
from mercer.gram import KernelOperator
from mercer.kernels import Function, Gaussian, Kernel, Linear, Mismatch, Precomputed, Sigmoid, Spectrum, as_kernel
from mercer.operators import Dense
from mercer.validity import Domain, check, spectrum_of
from mercer.validity.brief import brief_check
from mercer.validity.check import _search as search
from mercer.validity.check import check_vectors
from mercer.validity.witnesses.points import adversarial, large


def test_dimension_decides():
    wave = "exp(-2 * sin(3 * sqrt(sqdist))**2)"
    assert check_kernel(wave, n_features=1).verdict == "proved"
    assert check_kernel(wave, n_features=2).verdict == "refuted"
    assert check_kernel(wave, [[0.0], [1.0], [2.0]]).verdict == "proved"
    assert check_kernel(wave).verdict == "refuted"
    assert check_kernel("maximum(0, 1 - sqrt(sqdist))**2", n_features=3).verdict == "proved"


def test_domain_decides():
    assert check_kernel("intersection").verdict == "proved"
    assert check_kernel("min_sum").verdict == "refuted"
    counts = np.random.default_rng(0).integers(0, 5, size=(20, 4)).astype(float)
    report = check_kernel("min_sum * exp(-chi2)", counts)
    assert report.verdict == "proved"
    assert "non-negative" in report.domain


@pytest.mark.parametrize("kernel", ["exp(-chi2)", "min_sum", as_kernel("exp(-chi2)") + Gaussian(gamma=1.0)])
def test_estimators_ask_about_rows_like_theirs(kernel):
    P = np.random.default_rng(0).dirichlet(np.ones(5), 1200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        KernelRidge(kernel).fit(P, P[:, 0])
        KernelRidge(kernel).fit(sp.csr_array(P), P[:, 0])
    assert check_kernel(kernel, P).verdict == check_kernel(kernel, non_negative=True).verdict == "proved"


def test_one_negative_entry_decides():
    P = np.random.default_rng(0).dirichlet(np.ones(5), 1200)
    assert check_kernel("min_sum", P, non_negative=False).verdict == "refuted"
    P[1100, 2] = -0.5
    assert check_kernel("min_sum", P).verdict == "refuted"
    assert brief_check(KernelOperator(as_kernel("min_sum"), P)).verdict == "refuted"
    with pytest.raises(InvalidInput, match="negative entries"):
        check_kernel("exp(-chi2)", P)
    assert check_kernel("exp(-chi2)").verdict == "proved"  # of the rows that it takes, as of Chi2


def test_a_witness_is_short_and_minimal():
    assert check_kernel("-sqdist").witness.m == 2
    assert check_kernel("sigmoid(coef0=-1)").witness.m == 1
    box = check_kernel("where(sqdist < 1, 1, 0)").witness
    assert box.m == 3
    assert sorted(map(abs, map(int, box.z))) == [1, 1, 1]
    assert max(len(str(one)) for point in box.points for one in point) <= 4


def test_conditional_definiteness_is_told_and_a_power_kernel_knows_its_range():
    report = check_kernel("-sqdist**0.75")
    assert report.verdict == "refuted"
    assert report.conditional is not None
    assert any("0 < p ≤ 2" in text and "p = 1.5" in text for text in report.ranges)
    beyond = check_kernel("-sqdist**1.25")
    assert beyond.conditional is None
    assert beyond.conditional_worst < -1e-6
    assert "not conditionally" in str(beyond)
    assert any("no γ and c" in text for text in check_kernel(Sigmoid()).ranges)


def test_parameters_are_gone_through():
    report = check_kernel("sigmoid", vary={"gamma": [0.1, 1.0], "coef0": [-1.0, 0.0]})
    assert [verdict for _, verdict in report.by_parameters] == ["refuted"] * 4
    with pytest.raises(InvalidInput, match="no values"):
        check_kernel("sigmoid", vary={"gamma": []})


def test_a_value_that_is_refused_does_not_end_the_sweep():
    report = check_kernel("gaussian", vary={"gamma": [1.0, -1.0, 0.1, "wide"]})
    verdicts = [verdict for _, verdict in report.by_parameters]
    assert verdicts[::2] == ["proved", "proved"]
    assert all(verdict.startswith("refused: Gaussian: gamma=") for verdict in verdicts[1::2])
    assert "gamma=-1.0: refused: Gaussian" in str(report)
    with pytest.raises((InvalidInput, NotAKernel), match="gamma=-1"):
        check_kernel("gaussian", vary={"gamma": [-1.0, -2.0]})
    with pytest.raises(InvalidInput, match="no parameter 'width'"):
        check_kernel("gaussian", vary={"width": [1.0, 2.0]})


def test_the_first_choice_is_reported_where_none_is_refuted():
    """Its λmin, or that of another choice, is rounding."""
    for choices in ([0.1, 1.0, 10.0], [10.0, 1.0, 0.1]):
        assert check_kernel("gaussian", vary={"gamma": choices}).kernel.gamma == choices[0]
    refuted = check_kernel("sigmoid", vary={"gamma": [1e-9, 1.0], "coef0": [0.0, -1.0]})
    assert refuted.witness is not None


def test_kernels_of_tables_with_and_without_rows():
    frame = pd.DataFrame({"size": [1.0, 2.0, None, 4.0], "kind": ["a", "b", "a", None]})
    kernel = mercer.table_kernel(frame)
    for one in (kernel, 2.0 * kernel + 0.5):
        for report in (check_kernel(one), check_kernel(one, frame)):
            assert report.verdict == "proved"
            assert "pull-back" in str(report.derivation)
    assert "5 columns" in check_kernel(kernel).domain
    assert check_kernel(kernel.with_part("kind", "sigmoid(gamma=1.0)")).verdict == "refuted"


def test_objects_that_cannot_be_drawn():
    assert check_kernel(Spectrum(3) + Spectrum(2).normalized()).verdict == "proved"
    with pytest.raises(InvalidInput, match="give X"):
        check_kernel(lambda x, z: 1.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_the_spectrum_of_rows(form):
    X = np.random.default_rng(1).standard_normal((80, 3))
    report = check_kernel(Gaussian(gamma=0.5), form(X))
    values = np.linalg.eigvalsh(Gaussian(gamma=0.5)(X))
    s = report.spectrum
    assert s.smallest == pytest.approx(values[0], abs=1e-12)
    assert s.largest == pytest.approx(values[-1])
    assert s.effective_rank == pytest.approx(values.sum() ** 2 / (values**2).sum())
    assert s.condition == pytest.approx(values[-1] / values[0], rel=1e-3)
    assert s.rank == 80
    assert s.conditional is not None
    assert s.conditional > -1e-12


def test_lanczos_finds_both_ends():
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.standard_normal((1200, 1200)))
    values = np.concatenate([[-3.0], rng.uniform(0, 1, 1198), [10.0]])
    found = spectrum_of(Dense((Q * values) @ Q.T, symmetric=True))
    assert found.rank is None
    assert found.smallest == pytest.approx(-3.0, abs=1e-3)
    assert found.largest == pytest.approx(10.0, abs=1e-3)
    assert found.is_indefinite
    assert found.effective_rank == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=0.05)


def test_float32_rounding_is_told_from_indefiniteness():
    X = (np.random.default_rng(3).standard_normal((60, 2)) + 3000).astype(np.float32)

    class Expanded(Kernel):
        """A Gaussian that loses all digits of the distance in float32."""

        def block(self, X, Z):
            d = (X**2).sum(1)[:, None] + (Z**2).sum(1)[None, :] - 2 * X @ Z.T
            return np.exp(-np.float32(0.5) * d)

        def diagonal(self, X):
            return np.ones(len(X), X.dtype)

    assert np.linalg.eigvalsh(Expanded().block(X, X).astype(float))[0] < -0.1
    report = check_kernel(Expanded(), X)
    assert report.spectrum.is_indefinite
    assert report.witness is None
    assert any("rounding" in note for note in report.notes)


def test_a_class_that_promises_too_much_is_refuted():
    class Promised(Kernel):
        def formula(self, pair):
            return -pair.sqdist

        @property
        def properties(self):
            return Gaussian(gamma=1.0).properties

    assert check_kernel(Promised()).verdict == "refuted"


FACTOR = [1.0]


class Reader(Kernel):
    def formula(self, pair):
        return FACTOR[0] * pair.dot


def test_nothing_is_remembered_of_a_kernel_whose_formula_reads_what_changes():
    for FACTOR[0], verdict in [(2.0, "proved"), (-2.0, "refuted"), (2.0, "proved")]:
        assert check_kernel(Reader(), n_features=2).verdict == verdict
        assert brief_check(KernelOperator(Reader(), [[1.0, 0.0], [0.0, 2.0]])).verdict == verdict


def test_a_fit_and_a_check_search_once_for_a_formula_and_a_width(monkeypatch):
    searched = []
    monkeypatch.setattr(check, "_search", lambda found, *rest: searched.append(rest[0].d) or search(found, *rest))
    kernel, X = Sigmoid(gamma=0.5, coef0=-1.0), np.eye(3)
    reports = [brief_check(KernelOperator(kernel, X[:, :d])) for d in (2, 3, 2)]
    assert str(reports[0]) == str(reports[2]) == str(check_kernel(kernel, n_features=2))
    assert searched == [2, 3]
    check_kernel(kernel, n_features=2, random_state=1)  # other points
    check_kernel(kernel, X)  # rows are searched too
    assert searched == [2, 3, 2, 3]
    assert "-2" in repr(brief_check(KernelOperator(kernel.set_params(coef0=-2.0), X)))  # whose hash is that of -1.0
    assert len(searched) == 5


def test_a_search_that_ended_at_its_limit_is_made_anew_with_a_higher_one(monkeypatch):
    kernel = as_kernel("exp(-0.77 * sqdist**1.5)")
    few, many, again = (check_vectors(kernel, Domain(d=2), None, work=work) for work in (1e4, 1e9, 1e4))
    assert (few.verdict, many.verdict, again.verdict) == ("supported", "refuted", "supported")


def test_matrices():
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert check_kernel(Precomputed(), K).verdict == "measured"
    bad = check_kernel(Precomputed(), np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert bad.witness.points == (0, 1)
    assert bad.witness.value == -2.0
    assert check_kernel(Precomputed(), np.array([[1.0, 2.0], [0.0, 1.0]])).verdict == "refuted"
    with pytest.raises(InvalidInput, match="square"):
        check_kernel(Precomputed(), np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="matrix"):
        check_kernel(Precomputed())


def test_functions_of_rows_and_of_objects():
    assert check_kernel(lambda A, B: A @ B.T, np.random.default_rng(0).standard_normal((9, 2))).verdict == "supported"
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 5.0]})
    assert check_kernel(lambda A, B: A @ B.T, frame).spectrum.n == 3
    refuted = check_kernel(lambda A, B: -(A @ B.T), np.random.default_rng(0).standard_normal((9, 2)))
    assert refuted.verdict == "refuted"
    lopsided = check_kernel(Function(lambda s, t: float(len(s) - len(t)), mode="pair"), ["a", "bb", "ccc"])
    assert lopsided.verdict == "refuted"
    assert "≠" in str(lopsided.witness)
    with pytest.raises(InvalidInput, match="give X"):
        check_kernel(lambda A, B: A @ B.T)


def test_a_function_without_values_somewhere():
    for text, why in (("1 / sqdist", "division by 0"), ("log(dot - 2000) + 1e9 * exp(dot)", "logarithm")):
        report = check_kernel(text)
        assert report.verdict == "undefined"
        assert report.is_mercer is None
        assert report.witness is None
        assert why in report.gap.why
        assert "where(condition, value, other)" in str(report)
        assert report.require() is report
    assert check_kernel("sqrt(dot)").verdict in ("refuted", "undefined")
    cosine = check_kernel("dot / sqrt(xx * zz)")
    assert cosine.verdict == "proved"
    assert any("has no value" in note for note in cosine.notes)
    assert check_kernel("exp(exp(dot))").verdict == "proved"  # what overflows has a value


def test_require_and_html():
    with pytest.raises(NotAKernel, match=r"zᵀKz"):
        check_kernel("-dot").require()
    assert check_kernel(Linear()).require().is_mercer
    assert "<table>" in check_kernel("-dot")._repr_html_()


def test_columns_and_length_scales_fix_the_width():
    assert check_kernel((Gaussian(gamma=1.0) + Sigmoid()).on([4, 1])).witness.points[0][4:]
    assert len(check_kernel(Sigmoid().with_length_scales([1.0, 2.0, 3.0])).witness.points[0]) == 3
    with pytest.raises(InvalidInput, match="give X"):
        check_kernel(Gaussian(gamma=1.0).on(["a"]))
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 5.0]})
    assert check_kernel(Gaussian().on(["a"]), frame).verdict == "proved"


def test_one_row_and_equal_rows():
    for X in (np.ones((1, 2)), np.ones((5, 2)), np.zeros((3, 2))):
        report = check_kernel(Linear(), X)
        assert report.verdict == "proved"
        assert not report.spectrum.is_indefinite


def test_points_are_what_they_say():
    for points in [*adversarial(3), *large(2)]:
        assert np.all(np.isfinite(points))
    for domain in (Domain(True), Domain(frozenset({0}))):
        for d in (1, 4):
            drawn = [*adversarial(d, 0, domain), *large(d, 0, domain)]
            assert all(points[:, 0].min() >= 0 for points in drawn)


def test_the_same_answer_every_time():
    assert str(check_kernel("exp(-sqdist**1.5)")) == str(check_kernel("exp(-sqdist**1.5)"))
    assert mercer.check_kernel("exp(-sqdist**1.5)", random_state=1).verdict == "refuted"


def test_kernels_of_tables_and_of_sequences_whose_alphabet_is_in_the_data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=12), "colour": rng.choice(["red", "blue"], 12)})
    assert check_kernel(mercer.table_kernel(frame), frame).verdict == "proved"
    words = ["".join(rng.choice(list("acgt"), 12)) for _ in range(12)]
    report = check_kernel(Mismatch(k=3) + Spectrum(k=2), words)
    assert report.verdict == "proved"
    assert report.spectrum.n == 12
    assert report.kernel.is_resolved
    with pytest.raises(InvalidInput, match="give X"):
        check_kernel(Mismatch(k=3))
