"""Which method a regularised solve takes, that both lead to the same place, and that the report says so."""

import itertools
import pickle
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import KernelOperator, KernelRidge, KernelRidgeClassifier
from mercer.approx import pivoted_cholesky
from mercer.engine.backend import is_native
from mercer.errors import InvalidInput
from mercer.factorizations.cholesky import CholeskyFactor
from mercer.factorizations.pivoted_cholesky import PivotedCholesky
from mercer.kernels import Gaussian, Laplace, Precomputed
from mercer.operators import Packed
from mercer.planning.costs import conjugate_gradients, refined_cholesky
from mercer.planning.machine import Machine
from mercer.solvers import ConjugateGradients
from mercer.ways import regularised

MACHINE = Machine.documented()


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(600)


def both(data, weights=None, **options):
    X, y = data
    direct = KernelRidge(Gaussian(0.2), solver="cholesky", **options).fit(X, y, weights)
    iterated = KernelRidge(Gaussian(0.2), solver="cg", **options).fit(X, y, weights)
    assert "pivots" in iterated.report_.method
    assert iterated.report_.residual <= 1e-10
    return direct.predict(X), iterated.predict(X), iterated.report_


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("intercept", [False, True])
def test_conjugate_gradients_and_cholesky_agree(data, alpha, intercept):
    direct, iterated, _ = both(data, alpha=alpha, fit_intercept=intercept)
    np.testing.assert_allclose(iterated, direct, atol=1e-8)


def test_with_weights_and_many_targets(data):
    X, y = data
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 600)
    direct, iterated, _ = both((X, np.column_stack([y, X[:, 3]])), weights, alpha=0.1)
    np.testing.assert_allclose(iterated, direct, atol=1e-8)


# With t/2r for the largest eigenvalue that is left and 0 for the smallest, the third prediction is 20 times too large.
@pytest.mark.parametrize(("kernel", "alpha"), [(Gaussian(0.1), 0.1), (Gaussian(0.05), 1e-2), (Laplace(0.5), 1e-4)])
def test_steps_are_as_predicted_within_a_factor_of_two(kernel, alpha):
    X = np.random.default_rng(2).standard_normal((3000, 8))
    model = KernelRidge(kernel, alpha=alpha, solver="cg").fit(X, X[:, 0])
    probe = pivoted_cholesky(KernelOperator(kernel, X), regularised.PROBE)
    predicted = regularised.plan(MACHINE, 3000, 8, probe, alpha, 1e-10, 300)
    assert predicted.steps / 2 < model.report_.steps < 2 * predicted.steps


def found_of(n, trace):
    """An approximation by 240 pivots that leaves this trace, and whose traces fall like 1/√r."""
    return PivotedCholesky(np.empty((n, 0)), np.arange(240), np.full(n, trace / n), float(n), 300)


FOUND = found_of(10_000, 4000.0)


def test_harder_systems_and_higher_dimensions_are_told_apart():
    easy, hard = (regularised.plan(MACHINE, 10_000, 20, FOUND, shift, 1e-10, 1000) for shift in (30.0, 1e-3))
    assert easy.seconds < refined_cholesky(MACHINE, 10_000, 20) < hard.seconds
    assert hard.rank >= 2 * easy.rank


def test_many_targets_cost_more_and_few_do_not():
    found = found_of(20_000, 8000.0)
    plans = [regularised.plan(MACHINE, 20_000, 16, found, 2e-2, 1e-10, 2000, columns=columns) for columns in (1, 2, 26)]
    assert plans[1].seconds < 1.2 * plans[0].seconds
    assert 1.2 * plans[0].seconds < plans[2].seconds < 4 * plans[0].seconds
    assert plans[2].rank >= plans[0].rank


def test_steps_that_need_float64_are_planned_so():
    low, high = (
        regularised.plan(MACHINE, 10_000, 20, FOUND, 1e-2, 1e-10, 1000, rounding=rounding) for rounding in (0.0, 1.0)
    )
    assert 1.3 * low.seconds < high.seconds


@pytest.mark.parametrize(("alpha", "stored"), [(1.0, True), (1e-3, False)])
def test_the_plan_knows_the_rounding_and_the_noise_of_16_bits(alpha, stored, data, monkeypatch):
    cholesky_takes(9.0, monkeypatch)
    seen = []
    monkeypatch.setattr(regularised, "PROBE_SHARE", np.inf)
    monkeypatch.setattr(regularised, "plan", lambda *given: seen.append(given) or regularised.Plan(40, 9.0, 99.0))
    X = np.tile(data[0], (2, 1)) + np.linspace(0, 1e-3, 1200)[:, None]
    KernelRidge(Gaussian(0.2), alpha=alpha, memory="1GB").fit(X, X[:, 0])
    expected = np.finfo(np.float32).eps * np.linalg.norm(Gaussian(0.2)(X), 2) / alpha
    assert expected / 2 < seen[0][-1] < 2 * expected
    assert seen[0][7] == stored


def cholesky_takes(seconds, monkeypatch):
    """Whatever the machine's rates say."""
    monkeypatch.setattr(regularised, "refined_cholesky", lambda *given, **how: seconds)


def test_auto_takes_the_quicker_method_and_says_why(data, monkeypatch):
    X, y = data
    cholesky_takes(1e9, monkeypatch)
    report = KernelRidge(Gaussian(0.2)).fit(X, y).report_
    assert "conjugate gradients" in report.method
    assert ", Cholesky " in report.reason
    cholesky_takes(0.1, monkeypatch)
    report = KernelRidge(Gaussian(0.2), alpha=1e-6).fit(X, y).report_
    assert "Cholesky" in report.method
    assert "conjugate gradients would take" in report.reason
    assert "probe" in report.seconds


@pytest.mark.skipif(not is_native(), reason="the rates are those of the compiled engine")
@pytest.mark.parametrize(
    ("rates", "factor", "method"),
    [
        ((), 1.0, "conjugate gradients"),
        (("product32", "product64"), 10.0, "Cholesky"),
        (("narrow32", "wide32", "narrow64", "wide64"), 0.03, "Cholesky"),
        (("calls",), 0.01, "Cholesky"),
    ],
)
def test_a_machine_with_a_wrong_rate_takes_the_other_method(rates, factor, method, monkeypatch):
    """Where the two are close, each rate decides, and in the direction in which it is wrong."""
    wrong = replace(MACHINE, **{name: factor * getattr(MACHINE, name) for name in rates})
    monkeypatch.setattr(regularised.rates, "machine", lambda cost: wrong)
    X = np.random.default_rng(0).standard_normal((3500, 8))
    report = KernelRidge(Gaussian(0.1), alpha=1.0, tol=1e-6).fit(X, X[:, 0]).report_
    assert report.method.startswith(method)
    assert report.residual <= 1e-6


def test_no_probe_where_not_even_one_step_would_be_quicker(data):
    """The factor of 600 rows costs less than the checks of conjugate gradients alone."""
    report = KernelRidge(Gaussian(0.2)).fit(*data).report_
    assert "Cholesky" in report.method
    assert "conjugate gradients would take at least" in report.reason
    assert "probe" not in report.seconds


def test_the_report_shows_predicted_seconds_beside_those_that_were_taken(data, monkeypatch):
    """By a clock that goes on by a second at each look."""
    clock = itertools.count()
    monkeypatch.setattr("mercer.ways.report.time.perf_counter", lambda: float(next(clock)))
    report = KernelRidge(Gaussian(0.2)).fit(*data).report_
    if is_native():
        ((stages, seconds),) = report.predicted.items()
        assert stages == "kernel matrix + solve"
        assert seconds == pytest.approx(refined_cholesky(MACHINE, 600, 4, kept=True), rel=0.5)
        assert report.taken(stages) == report.seconds["kernel matrix"] + report.seconds["solve"] == 2.0
        assert "took 2 s" in str(report)


def test_a_report_that_was_pickled_without_predictions_has_none(data):
    report = KernelRidge(Gaussian(0.2)).fit(*data).report_
    del report.predicted
    assert pickle.loads(pickle.dumps(report)).predicted == {}
    assert "predicted" not in str(pickle.loads(pickle.dumps(report)))


def test_a_prediction_that_was_wrong_ends_with_cholesky(data, monkeypatch):
    X, y = data
    cholesky_takes(10.0, monkeypatch)
    monkeypatch.setattr(regularised, "plan", lambda *_: regularised.Plan(5, 1.0, 5.0))
    model = KernelRidge(Gaussian(0.2), alpha=1e-4).fit(X, y)
    assert "Cholesky" in model.report_.method
    assert model.report_.residual <= 1e-10
    assert any("max_steps" in note for note in model.report_.notes)


@pytest.mark.parametrize(("direct", "most"), [(15.0, 40), (40.0, 80)])
def test_a_wrong_prediction_costs_twice_what_it_said_or_as_much_as_cholesky(data, monkeypatch, direct, most):
    asked, solver = [], regularised.RefinedConjugateGradients
    cholesky_takes(direct, monkeypatch)
    monkeypatch.setattr(regularised, "plan", lambda *_: regularised.Plan(5, 20.0, 10.0))
    monkeypatch.setattr(regularised, "RefinedConjugateGradients", lambda **how: asked.append(how) or solver(**how))
    KernelRidge(Gaussian(0.2)).fit(*data)
    assert [how["max_steps"] for how in asked] == [most]


def test_matrix_free_where_the_matrix_does_not_fit_with_what_memory_leaves(data):
    X, y = data
    model = KernelRidge(Gaussian(0.2), alpha=0.01, memory=500_000).fit(X, y)
    assert "matrix-free, preconditioned by 60 pivots" in model.report_.method
    assert "would need" in model.report_.reason
    tight = KernelRidge(Gaussian(0.2), alpha=0.01, memory=268_800).fit(X, y)
    assert "by 31 pivots" in tight.report_.method
    assert tight.report_.memory_planned <= 268_800
    np.testing.assert_allclose(model.predict(X), tight.predict(X), atol=1e-7)


@pytest.mark.parametrize("alpha", [1.0, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
def test_entries_in_16_bits_where_they_pay(data, monkeypatch, alpha, weighted):
    X, y = data
    monkeypatch.setattr(regularised, "conjugate_gradients", lambda *_, stored=False, **__: 1.0 if stored else 2.0)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 600) if weighted else None
    direct, iterated, report = both((X, np.column_stack([y, X[:, 3]])), weights, alpha=alpha)
    assert "entries in 16 bits" in report.method
    assert report.precision == "16-bit entries, residual in float64"
    assert report.memory_planned > 600**2
    np.testing.assert_allclose(iterated, direct, atol=1e-8)
    monkeypatch.setattr(regularised, "device_in_use", lambda: True)
    assert "matrix-free" in both((X, np.column_stack([y, X[:, 3]])), weights, alpha=alpha)[2].method


def test_entries_in_16_bits_only_where_they_are_exact_enough_and_fit(data, monkeypatch):
    monkeypatch.setattr(regularised, "conjugate_gradients", lambda *_, stored=False, **__: 1.0 if stored else 2.0)
    direct, iterated, report = both(data, alpha=1e-4)
    assert "matrix-free" in report.method
    np.testing.assert_allclose(iterated, direct, atol=1e-7)
    small = KernelRidge(Gaussian(0.2), solver="cg", memory=800_000).fit(*data)
    assert "matrix-free" in small.report_.method


def test_stored_entries_pay_with_more_steps_and_more_columns():
    def pays(d, steps):
        stored, made = (conjugate_gradients(MACHINE, 20_000, d, 480, steps, stored=kept) for kept in (True, False))
        return stored < made

    assert pays(20, 100)
    assert pays(100, 100)
    assert pays(100, 20)
    assert not pays(3, 2)


def test_pivots_that_float32_has_not_are_chosen_in_float64(rng, monkeypatch):
    """Of a smooth kernel float32 has some 200 pivots above its rounding, which is far above a small α."""
    X = rng.standard_normal((4000, 6))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * rng.standard_normal(4000)
    kernel, alpha = Gaussian(0.0113), 1e-4
    model = KernelRidge(kernel, alpha, solver="cg").fit(X, y)
    report = model.report_
    assert "chosen in float64" in str(report.notes)
    assert report.steps < 30
    left = y - kernel(X) @ model.dual_coef_ - alpha * model.dual_coef_
    assert np.linalg.norm(left) / np.linalg.norm(y) < 1e-9
    assert report.memory_planned >= 8 * report.n * int(re.search(r"by (\d+) pivots", report.method)[1])
    monkeypatch.setattr(regularised, "PIVOTS_ROUNDING", np.inf)
    before = KernelRidge(kernel, alpha, solver="cg").fit(X, y).report_
    assert before.steps > 3 * report.steps


def test_no_preconditioner_without_a_shift_or_a_mercer_kernel(data):
    X, y = data
    plain = KernelRidge(Gaussian(2.0), alpha=0.0, solver="cg").fit(X[:80] * 3, y[:80])
    assert "pivots" not in plain.report_.method
    np.testing.assert_allclose(plain.predict(X[:80] * 3), y[:80], atol=1e-8)
    K = Gaussian(0.2)(X)
    given = KernelRidge(Precomputed(), alpha=0.1, solver="cg").fit(K, y)
    assert "pivots" not in given.report_.method
    np.testing.assert_allclose(given.predict(K), KernelRidge(Gaussian(0.2), alpha=0.1).fit(X, y).predict(X), atol=1e-8)


def test_an_indefinite_matrix_is_refused_by_conjugate_gradients_too():
    with pytest.raises(InvalidInput, match="definite"):
        KernelRidge(Precomputed(), alpha=0.1, solver="cg").fit(np.diag([1.0, 1.0, -5.0]), [1.0, 2.0, 3.0])


def test_a_removed_solver_names_its_successor_and_its_models_still_predict(data, tmp_path):
    X, y = data
    model = KernelRidge(Gaussian(0.2), alpha=0.1).fit(X, y)
    saved = model.set_params(solver="askotch")  # as a former version fitted it
    mercer.save(saved, tmp_path / "model.mercer")
    for loaded in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(saved))):
        assert loaded.solver == "askotch"
        np.testing.assert_array_equal(loaded.predict(X + 0.1), model.predict(X + 0.1))
    with pytest.raises(InvalidInput, match='removed: use "cg"'):
        saved.fit(X, y)


def test_the_classifier_takes_the_same_methods(data):
    X, y = data
    labels = np.digitize(y, [-0.5, 0.5])
    direct, iterated = (KernelRidgeClassifier(Gaussian(0.2), 0.1, solver=s).fit(X, labels) for s in ("cholesky", "cg"))
    np.testing.assert_allclose(iterated.decision_function(X), direct.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_either_precision_reach_the_tolerance(data, dtype):
    X, y = data
    report = KernelRidge(Gaussian(0.2), alpha=0.01, solver="cg").fit(X.astype(dtype), y).report_
    assert report.residual <= report.tolerance == 1e-10
    assert "residual in float64" in report.precision


def test_entries_beyond_float32_are_solved_in_float64(data):
    X, y = data
    model = KernelRidge("polynomial(degree=9, gamma=1, coef0=1)", alpha=1e80, solver="cg").fit(X * 1e4, y)
    assert "float64" in model.report_.precision
    assert model.report_.residual <= 1e-10


@pytest.mark.parametrize(("gamma", "precision"), [(1e-4, "float32"), (1e-5, "float64")])
def test_nothing_reads_below_the_diagonal_of_a_stored_matrix(
    gamma: float, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is there: also where the factor in float32 fails, and float64 takes its place."""
    X = np.random.default_rng(0).standard_normal((700, 150))
    y, fits, plain = np.sin(X[:, 0]), [], Packed.fill_upper

    def onto(below: float) -> Callable[[Packed, np.ndarray, int], np.ndarray]:
        def fill(self: Packed, out: np.ndarray, threads: int) -> np.ndarray:
            out[...] = below
            return plain(self, out, threads)

        return fill

    for below in (0.0, np.nan):
        monkeypatch.setattr(Packed, "fill_upper", onto(below))
        fits.append(KernelRidge(Gaussian(gamma), alpha=1e-9, solver="cholesky", tol=1e-8).fit(X, y))
        assert "refined by its entries" in fits[-1].report_.method
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert np.isfinite(fits[0].dual_coef_).all()
    assert all(fit.report_.precision.startswith(precision) for fit in fits)


@pytest.mark.parametrize(("gain", "kept"), [(1.05, False), (1.2, True)])
def test_entries_are_kept_beside_a_factor_where_they_save_a_tenth(
    gain: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regularised, "refined_cholesky", lambda *own, kept=False: 1.0 if kept else gain)
    X = np.random.default_rng(0).standard_normal((700, 3))
    model = KernelRidge(Gaussian(1.0), alpha=1e-2, solver="cholesky").fit(X, X[:, 0])
    if is_native():
        assert ("refined by its entries" in model.report_.method) == kept


@pytest.mark.parametrize(("n", "d", "kept"), [(300, 3, True), (700, 3, False), (700, 150, True)])
def test_dear_entries_and_few_rows_are_made_once(n: int, d: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Residuals by stored float64 entries: no product makes them anew, and the plan counts them."""
    X = np.random.default_rng(0).standard_normal((n, d))
    products: list[int] = []
    plain = KernelOperator._matmat
    monkeypatch.setattr(KernelOperator, "_matmat", lambda self, V: (products.append(1), plain(self, V))[1])
    model = KernelRidge(Gaussian(1 / d), alpha=1e-2, solver="cholesky").fit(X, X[:, 0])
    report = model.report_
    if is_native():
        assert bool(products) != kept
        if kept and n > 500:  # 4 n² and a little for the entries, each pair once, beside a float32 matrix
            assert 8 * n * n <= report.memory_planned - report.memory_rows <= 10 * n * n
        elif kept:
            assert report.memory_planned >= 12 * n * n
        else:
            assert report.memory_planned < 8 * n * n
    assert report.residual <= 1e-10
    K = Gaussian(1 / d)(X) + 1e-2 * np.eye(n)
    assert np.linalg.norm(K @ model.dual_coef_ - X[:, 0]) <= 2e-10 * np.linalg.norm(X[:, 0])


@pytest.mark.parametrize(("alpha", "share", "factors"), [(1.0, 40.0, 0), (1e-6, 4.0, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_stored_entries_of_a_well_conditioned_system_need_no_factor(
    alpha: float, share: float, factors: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where the first steps tell that they would take many, the answer is Cholesky's, bit by bit."""
    made, steps, factor, step = [], [], CholeskyFactor.of, ConjugateGradients.step
    monkeypatch.setattr(regularised, "WORTH_A_TRY", 0)
    monkeypatch.setattr(regularised, "TRIED_SHARE", share)
    monkeypatch.setattr(CholeskyFactor, "of", lambda *given: (made.append(1), factor(*given))[1])
    monkeypatch.setattr(
        ConjugateGradients, "step", lambda self, *given: (steps.append(self.on_course), step(self, *given))[1]
    )
    rng, (n, d) = np.random.default_rng(0), (700, 150)
    X = rng.standard_normal((n, d))
    y, weights = np.sin(X[:, 0]), rng.uniform(0.5, 2.0, n) if weighted else None
    model = KernelRidge(Gaussian(1 / d), alpha=alpha).fit(X, y, weights)
    assert len(made) == factors
    A = Gaussian(1 / d)(X) + alpha * np.diag(1 / (np.ones(n) if weights is None else weights))
    assert np.linalg.norm(A @ model.dual_coef_ - y) <= 2e-10 * np.linalg.norm(y)
    direct = KernelRidge(Gaussian(1 / d), alpha=alpha, solver="cholesky").fit(X, y, weights)
    if factors:
        assert 2 <= sum(steps) <= 3
        np.testing.assert_array_equal(model.dual_coef_, direct.dual_coef_)
        assert model.report_.method == direct.report_.method
    else:
        assert model.report_.method.startswith("conjugate gradients, entries in float64")
        assert model.report_.reason.startswith(f"{model.report_.steps} steps, where a factor")
        assert model.report_.memory_planned < direct.report_.memory_planned


def test_without_room_entries_are_made_anew() -> None:
    n, d = 700, 150
    X = np.random.default_rng(0).standard_normal((n, d))
    model = KernelRidge(Gaussian(1 / d), alpha=1e-2, solver="cholesky", memory=11 * n * n).fit(X, X[:, 0])
    assert model.report_.memory_planned <= 11 * n * n
    assert "float64 (" not in model.report_.method
    assert model.report_.residual <= 1e-10
