"""Rows that float32 cannot carry through a kernel: computed in float64, or refused; never NaN or a wrong number."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import EXTENDED

import mercer
from mercer import KernelOperator
from mercer.errors import InvalidInput
from mercer.estimators.discriminant import gaussian_classes
from mercer.gram.reach import holds
from mercer.kernels import Cosine, Formula, Gaussian, Laplace, Linear, Matern, Polynomial, trace
from mercer.select import held_out
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
LARGE = (RNG.uniform(-1, 1, (60, 5)) * 5e6).astype(np.float32)
TENTH = Polynomial(degree=10, gamma=1.0)
Y = LARGE[:, 0].astype(float) / 5e6
LABELS = (np.arange(60) % 3 == 0).astype(int)


@pytest.fixture(autouse=True, params=["extended", "alone"])
def extended(request):
    """Whether there are numbers beyond float64; if not, float64 has to judge itself."""
    if request.param == "alone":
        request.getfixturevalue("alone")
    return request.param == "extended" and EXTENDED


@pytest.mark.parametrize("kernel", [Polynomial(degree=9, gamma=1.0), TENTH.normalized(), Linear() ** 7], ids=repr)
def test_entries_beyond_float32_are_in_float64(kernel, rng):
    X = LARGE / np.float32(500)
    K, exact = kernel(X), kernel(X.astype(np.float64))
    assert K.dtype == np.float64
    assert_close(K, exact, rtol=1e-13)  # the reference's BLAS may add up in another order
    assert np.isfinite(K).all()
    operator, v = KernelOperator(kernel, X), rng.standard_normal(60)
    assert operator.dtype == np.float64
    assert np.allclose(operator @ v, exact @ v, rtol=1e-12, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("kernel", [Linear().normalized(), Cosine(), Linear(), Polynomial(2, 1.0, 0.0)], ids=repr)
@pytest.mark.parametrize("size", [1e-40, 1e-25])
def test_rows_whose_squares_are_lost(kernel, size):
    X = (np.array([[1.0, 2.0], [3.0, 0.0], [-1.0, 1.0]]) * size).astype(np.float32)
    wanted = kernel(np.array(X, np.float64))
    assert kernel(X).dtype == np.float64
    assert np.allclose(kernel(X), wanted, rtol=1e-12, atol=0)
    if kernel in (Linear().normalized(), Cosine()):
        assert np.allclose(np.diag(kernel(X)), 1, atol=1e-12)


def test_own_values_with_few_digits_left():
    """Rows of one length: k(x, x), below the smallest normal number, is rounded alike in all pairs of the trial."""
    angles = np.linspace(0, 3, 5)
    circle, kernel = np.stack([np.cos(angles), np.sin(angles)], axis=1), Polynomial(6, 1.0, 0.0).normalized()
    small = (circle * 10**-3.6).astype(np.float32)
    assert kernel(small).dtype == np.float64
    assert np.allclose(kernel(small), np.cos(angles - angles[:, None]) ** 6, atol=1e-6)
    with pytest.raises(InvalidInput, match="lost, in float64"):
        kernel(circle * 10**-26.5)


def test_ordinary_rows_stay_in_float32(rng):
    X = rng.standard_normal((20, 4)).astype(np.float32)
    for kernel in (Gaussian(0.1), Linear(), Polynomial(3), Matern(1.5), TENTH.normalized(), Cosine()):
        assert kernel(X).dtype == np.float32
    assert Gaussian(1.0)(np.zeros((3, 2), np.float32)).dtype == np.float32


def test_what_float64_cannot_hold_is_refused():
    for kernel, X in (
        (Polynomial(degree=100, gamma=1.0), LARGE),
        (Polynomial(degree=100, gamma=1.0).normalized(), LARGE.astype(np.float64)),
        (Linear(), np.full((3, 2), 1e-170)),
    ):
        with pytest.raises(
            InvalidInput, match=r"(Polynomial|Linear).*not finite, or lost, in float64 on rows of up to .*e"
        ):
            kernel(X)


@pytest.mark.parametrize(
    ("kernel", "size"),
    [(Polynomial(8, 1.0, 0.0), 1e-25), (Linear() ** 3, 1e-60), (Formula("dot * dot * exp(-sqdist)"), 1e-90)],
    ids=str,
)
def test_products_below_float64_are_refused(kernel, size):
    """Their factors are numbers of float64, and they are 0."""
    X = size * np.array([[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(InvalidInput, match="lost, in float64"):
        kernel(X)
    np.testing.assert_array_equal((kernel + 1.0)(X), 1.0)


JUMPS = ["exp(-sqdist) + where(sqdist <= 0, 0.1, 0)", "where(l1 <= 0, 0.1, 0)", "exp(-l1) + where(sqdist > 0, 0, 0.1)"]


@pytest.mark.parametrize("text", JUMPS)
def test_a_jump_at_distance_0_is_no_loss(text, rng):
    """White noise: its value for equal rows is that for no others, however close."""
    X, kernel = rng.standard_normal((20, 3)), Formula(text)
    for rows in (X, X.astype(np.float32), 1e3 * X):
        assert_close(kernel(rows), kernel.block(rows, rows), rtol=1e-5 if rows.dtype == np.float32 else 1e-13)
    with pytest.raises(InvalidInput, match="or lost"):  # of different rows whose distance is 0 in float64
        kernel.on([0])(1e-320 * X)
    with pytest.raises(InvalidInput, match="or lost"):
        Formula("where(dot > 0, 1, -1)")(1e-170 * X)


def test_what_is_undefined_is_not_refused():
    """0/0 and 1/0 are the formula's own affair, as is a value of zero on the diagonal."""
    X = np.array([[0.0], [1.0]])
    values = {
        "dot / (xx * zz)": (np.nan, np.nan),
        "1 / sqdist": (np.inf, 1),
        "-sqdist": (0, -1),
        "log(sqdist)": (-np.inf, 0),
    }
    for text, first_row in values.items():
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(KernelOperator(text, X).toarray()[0], first_row)


@pytest.mark.parametrize(
    ("dtype", "wanted"), [(np.float32, (False, True, False)), (np.float64, (True, True, True))], ids=["32", "64"]
)
def test_new_rows_count_too(dtype, wanted):
    X, Z = np.ones((2, 1)), np.full((1, 1), 1e9)
    formula = trace(Polynomial(degree=6, gamma=1.0))
    assert (holds(formula, (X, Z), dtype), holds(formula, (X,), dtype), holds(formula, (Z, X), dtype)) == wanted


ESTIMATORS = {
    "ridge": (lambda k: mercer.KernelRidge(k, alpha=1e-3), Y, "predict"),
    "ridge classifier": (lambda k: mercer.KernelRidgeClassifier(k), LABELS, "decision_function"),
    "svc": (lambda k: mercer.SVC(kernel=k), LABELS, "decision_function"),
    "svr": (lambda k: mercer.SVR(kernel=k), Y, "predict"),
    "one class": (lambda k: mercer.OneClassSVM(k), None, "decision_function"),
    "pca": (lambda k: mercer.KernelPCA(2, kernel=k), None, "transform"),
    "pls": (lambda k: mercer.KernelPLS(2, k), Y, "predict"),
    "lms": (lambda k: mercer.KernelLMS(k), Y, "predict"),
    "perceptron": (lambda k: mercer.KernelPerceptron(k), LABELS, "decision_function"),
    "logistic": (lambda k: mercer.KernelLogisticRegression(k), LABELS, "decision_function"),
    "discriminant": (lambda k: mercer.KernelDiscriminantAnalysis(kernel=k), LABELS, "transform"),
    "k-means": (lambda k: mercer.KernelKMeans(2, k), None, "transform"),
    "online regressor": (lambda k: mercer.OnlineKernelRegressor(k), Y, "predict"),
    "online classifier": (lambda k: mercer.OnlineKernelClassifier(k), LABELS, "decision_function"),
    "nystroem": (lambda k: mercer.Nystroem(k, 20), None, "transform"),
    "sketch": (lambda k: mercer.PolynomialSketch(k, 100), None, "transform"),
    "empirical": (lambda k: mercer.EmpiricalKernelMap(k), None, "transform"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_of_rows_beyond_float32(name):
    """New rows that are much larger than those of the fit, too."""
    make, target, output = ESTIMATORS[name]
    X = LARGE / np.float32(5e6)
    model = make(Polynomial(degree=6, gamma=1.0, coef0=0.0))
    model = model.fit(X) if target is None else model.fit(X, target)
    given = getattr(model, output)(LARGE)
    assert np.isfinite(given).all()
    wide = getattr(model, output)(LARGE.astype(np.float64))
    assert np.allclose(given, wide, rtol=1e-9, atol=1e-9 * np.abs(wide).max())
    with pytest.raises(InvalidInput, match="not finite"):
        make(Polynomial(degree=100, gamma=1.0)).fit(*((LARGE,) if target is None else (LARGE, target)))


@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_outputs_that_are_not_finite_are_refused():
    """Where the formula is 0/0 at a new row, or too large; `test_undefined_rows` asks all models."""
    model = mercer.KernelRidge("dot / (xx * zz)").fit([[1.0], [2.0]], [0.0, 1.0])
    with pytest.raises(InvalidInput, match=r"no value \(division by 0\) at row 1; define k there by where"):
        model.predict([[1.0], [0.0]])
    model = mercer.KernelRidge("exp(dot)").fit([[1.0], [2.0]], [0.0, 1.0])
    with pytest.raises(InvalidInput, match=r"not finite, or lost, in float64 on rows of up to 8\.0e"):
        model.predict([[1.0], [800.0]])


def test_normal_products_beyond_float32(rng):
    X = (300 * rng.standard_normal((30, 3))).astype(np.float32)
    K = KernelOperator(Polynomial(degree=6, gamma=1.0), X, X[:9].copy())
    assert K.dtype == np.float32
    A, V = K.toarray().astype(np.float64), 1e10 * rng.standard_normal((9, 2))
    assert np.allclose(K.normal_product(V), A.T @ (A @ V), rtol=1e-4, atol=1e-6 * np.abs(A.T @ (A @ V)).max())


@pytest.mark.parametrize("scales", [[0.3, 7.0, 1.1]])
def test_float64_entries_of_float32_rows_through_a_view(scales, rng):
    """The view is computed in the precision of the entries, not in that of the rows."""
    X = rng.standard_normal((20, 3)).astype(np.float32)
    kernel = Linear().with_length_scales(scales)
    K = KernelOperator(kernel, X, dtype=np.float64).toarray()
    assert np.allclose(K, kernel(X.astype(np.float64)), rtol=1e-13, atol=1e-13 * np.abs(K).max())


# ---- coefficients that are large against the outputs ----------------------------------------------------------------


@pytest.mark.parametrize("classes", [False, True])
def test_predictions_of_float32_rows_with_a_small_penalty(classes, rng):
    n = 1500
    X = rng.standard_normal((n, 8)).astype(np.float32)
    y = X @ rng.standard_normal(8) + 0.1 * rng.standard_normal(n)
    make = mercer.KernelRidgeClassifier if classes else mercer.KernelRidge
    target = (y > 0).astype(int) if classes else y
    model, wide = (make("linear()", alpha=1e-6).fit(rows, target) for rows in (X, X.astype(np.float64)))
    output = "decision_function" if classes else "predict"
    given, wanted = getattr(model, output)(X), getattr(wide, output)(X.astype(np.float64))
    assert np.abs(given - wanted).max() <= 1e-5 * np.std(wanted)


def test_nystroem_features_are_as_exact_as_their_cut(rng):
    """The root of small eigenvalues does not multiply the rounding of float32 entries."""
    X = rng.standard_normal((300, 2)).astype(np.float32)
    model = mercer.Nystroem(Gaussian(0.1), 100).fit(X)
    Phi, wide = model.transform(X), model.transform(X.astype(np.float64))
    assert Phi.dtype == np.float32
    assert np.abs(Phi - wide).max() <= 1e-6


def test_machines_on_landmarks_decide_as_they_were_trained(rng):
    """Features in float32 need a root that is cut where float32 is, of float64 rows too."""
    X = rng.standard_normal((1200, 2))
    labels = (np.sin(3 * X[:, 0]) + X[:, 1] > 0).astype(int)
    model = mercer.SVC(1.0, kernel=Gaussian(0.1), solver="nystroem", n_landmarks=150).fit(X, labels)
    assert np.abs(model.dual_coef_).max() <= 1e5


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_phases_of_large_rows(offset, rng):
    X = (offset + rng.standard_normal((50, 3))).astype(np.float32)
    model = mercer.RandomFourierFeatures(Gaussian(0.1), 500).fit(X)
    narrow, wide = model.transform(X), model.transform(X.astype(np.float64))
    assert np.abs(narrow - wide).max() <= 1e-5
    with pytest.raises(InvalidInput, match="rounding noise"):
        model.transform(np.full((1, 3), 1e16))


def test_no_row_against_rows_whose_norms_have_no_float32_inverse():
    """0 · 1/√k(z, z) is 0, though 1/√k(z, z) is beyond float32."""
    Z = np.array([[1e-13, -2e-13], [0.0, 0.0]], np.float32)
    kernel = Polynomial(10, 1.0, 0.0).normalized()
    np.testing.assert_array_equal(kernel(np.zeros((3, 2), np.float32), Z), np.zeros((3, 2)))


def test_phases_of_sparse_rows_whose_squares_are_lost(rng):
    """The size of phases is known in float64: it decides their precision, and whether they are noise."""
    X = sp.csr_array(rng.standard_normal((50, 3)).astype(np.float32) * np.float32(1e-25))
    model = mercer.RandomFourierFeatures(Laplace(1e28, norm=1), 50).fit(X)
    assert np.abs(model.transform(X) - model.transform(X.astype(np.float64))).max() <= 1e-5
    with pytest.raises(InvalidInput, match="rounding noise"):
        mercer.RandomFourierFeatures(Laplace(1e38, norm=1), 50).fit(X).transform(X)


def test_small_rows_of_which_large_ones_leave_nothing():
    """exp(−γ‖x − z‖²) is 0 for the largest rows, and 1 for those whose inner products float32 has no number for."""
    kernel = Gaussian(3e38) * Linear()
    X, Z = np.array([[1e-16, 0.0], [2e-20, 1e-20]], np.float32), np.array([[1e-26, 0.0]], np.float32)
    K = kernel(Z, X)
    assert K.dtype == np.float64
    assert K[0, 1] == pytest.approx(float(X[1, 0]) * float(Z[0, 0]) * np.exp(-3e38 * 5e-40), rel=1e-6)


def test_large_rows_whose_own_value_is_infinite(extended):
    """k(x, x) = exp(1e10) is no measure of the error of k(x, z) = exp(150)."""
    X, Z = np.array([[1e5, 0.0], [1.0, 1.0]], np.float32), np.array([[1.5e-3, 0.0]], np.float32)
    if not extended:  # which values overflow is not known
        with pytest.raises(InvalidInput, match="not finite, or lost"):
            Formula("exp(dot)")(Z, X)
        return
    K = Formula("exp(dot)")(Z, X)
    assert K.dtype == np.float64
    assert K[0, 0] == pytest.approx(np.exp(float(X[0, 0]) * float(Z[0, 0])), rel=1e-12)


@pytest.mark.parametrize("factor", [1e-44, 1e-38, 1e36])
@pytest.mark.parametrize(
    ("fit", "output"),
    [
        (lambda c: mercer.KernelRidge("precomputed", 0.01 * c), "predict"),
        (lambda c: mercer.KernelRidge("precomputed", 0.01 * c, solver="nystroem"), "predict"),
        (lambda c: mercer.KernelDiscriminantAnalysis("precomputed"), "predict_proba"),
        (lambda c: mercer.KernelSpectralClustering(3, kernel="precomputed"), "transform"),
    ],
)
def test_the_unit_of_a_precomputed_kernel_does_not_matter(factor, fit, output, monkeypatch):
    """Values that float32 does not hold are kept in float64, also where there is no formula to ask."""
    monkeypatch.setattr(mercer.solvers.choose, "DENSE_BELOW", 50)
    monkeypatch.setattr(gaussian_classes, "LEVERAGE_RANK", 100)
    X = np.random.default_rng(0).normal(size=(600, 5))
    K, y = Gaussian(0.1)(X), (X[:, 0] > 0).astype(int)
    given, wanted = (getattr(fit(c).fit(c * K, y), output)(c * K[:50]) for c in (factor, 1.0))
    assert np.abs(np.abs(given) - np.abs(wanted)).max() <= 1e-3


@pytest.mark.parametrize("size", [1e-5, 1e-15])
def test_the_unit_of_the_rows_does_not_matter_to_a_one_class_machine(size):
    X = np.random.default_rng(0).normal(size=(100, 3)) + 2
    given, wanted = (mercer.OneClassSVM("linear", nu=0.2).fit(c * X).decision_function(c * X) / c**2 for c in (size, 1))
    assert np.abs(given - wanted).max() <= 1e-9 * np.abs(wanted).max()


@pytest.mark.parametrize("factor", [1e-60, 1e-38, 1e38, 1e150])
@pytest.mark.parametrize("method", ["by_approximation", "by_inverses", None])
def test_searches_where_float32_has_no_numbers_for_the_matrix(monkeypatch, factor, method):
    """Predictions of cK and cλ are those of K and λ."""
    monkeypatch.setattr(held_out, "LARGE", 100)
    monkeypatch.setattr(held_out, "MANY", np.inf)
    for other in {"by_approximation", "by_inverses"} - {method}:
        monkeypatch.setattr(held_out._Together, other, lambda self, out: None)
    X = np.random.default_rng(0).normal(size=(160, 3))
    K, Y, alphas = Gaussian(0.1)(X), np.sin(X[:, :1]), np.array([1e-2, 1.0])
    places = np.arange(160) % 4
    splits = [held_out.Split(np.flatnonzero(places != f), np.flatnonzero(places == f)) for f in range(4)]
    given, wanted = (held_out.held_out_predictions(c * K, Y, splits, c * alphas) for c in (factor, 1.0))
    assert np.abs(np.subtract(given, wanted)).max() <= 1e-5


def test_rows_of_equal_norms_may_be_closer_than_float32_holds():
    """‖x − z‖² is 2e-45, of the least subnormal numbers, and the norms do not tell."""
    X = np.full((3, 16), 2e-19, np.float32)
    X[1, 0], X[2, 1] = np.nextafter(X[1, 0], np.float32(1)), np.nextafter(X[2, 1], np.float32(1))
    apart = np.linalg.norm(X[:, None].astype(np.float64) - X[None], axis=2)
    for gamma in (3.5e17, 1e21):
        K = KernelOperator(Laplace(gamma), X).toarray()
        np.testing.assert_allclose(K, np.exp(-gamma * apart), rtol=1e-6)
