"""Support vector machines beside scikit-learn's LIBSVM and Intel's extension of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Missing, Row, Setting, at_least, at_most, benchmark
from benchmarks.rows_usps import both_halves
from mercer.kernels import Gaussian, Linear, Polynomial

GROUP = "Support vector and logistic machines"

Halves = tuple[tuple[Any, Any], tuple[Any, Any]]


def letters(setting: Setting) -> Halves:
    """15 000 standardised letters to train on, 5 000 to test; toy rows in a quick run."""
    if setting.quick:
        X = data.normal(400, 16, np.float64)
        y = X[:, :5].argmax(axis=1)
        return (X[:300], y[:300]), (X[300:], y[300:])
    file = setting.data / "letter.csv.gz" if setting.data is not None else None
    if file is None or not file.exists():
        raise Missing("needs --data DIR with letter.csv.gz (UCI Letter Recognition)")
    table = np.loadtxt(file, dtype=str, delimiter=",", skiprows=1)
    X, y = table[:, 1:].astype(float), np.char.strip(table[:, 0], '"')
    X = (X - X[:15000].mean(axis=0)) / X[:15000].std(axis=0)
    return (X[:15000], y[:15000]), (X[15000:], y[15000:])


def halves(setting: Setting) -> Halves:
    """Two classes in 50 columns, half of them informative, 5 % of the labels flipped."""
    n = setting.size(20_000, 200)
    make = peers.need("sklearn.datasets").make_classification
    X, y = make(2 * n, 50, n_informative=25, flip_y=0.05, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (X[:n], y[:n]), (X[n:], y[n:])


def beside(
    setting: Setting,
    parts: Halves,
    C: float,
    gamma: float,
    what: str,
    library: str,
    name: str,
    least: float,
    most: float,
) -> Row:
    """Fit or predict with both; errors are of the labels of the test rows."""
    (X, y), (new, truth) = parts
    ours, theirs = peers.ours("SVC")(C, Gaussian(gamma)), peers.need(f"{library}.svm").SVC(C=C, gamma=gamma)
    if what == "predict":
        ours.fit(X, y), theirs.fit(X, y)

    def error(result: Any) -> float:
        labels = result if what == "predict" else result.predict(new)
        return float(np.mean(np.asarray(labels) != truth))

    return Row(
        f"SVC, {what}, {name}, n = {len(X)}" + (f", {len(new)} new rows" if what == "predict" else ""),
        ours=(lambda: ours.fit(X, y)) if what == "fit" else (lambda: ours.predict(new)),
        peer=(lambda: theirs.fit(X, y)) if what == "fit" else (lambda: theirs.predict(new)),
        peer_name="scikit-learn" if library == "sklearn" else "scikit-learn-intelex",
        target=at_least(least),
        error=error,
        tolerance=1.0 if setting.quick else most,
        rounds=3,
        note="SVC's errors: the share of wrong labels of the test rows (Adult: of the first 5000).",
    )


@benchmark(GROUP, what=("fit", "predict"))
def svc_letter(setting: Setting, what: str) -> Row:
    name = "letters, 26 classes, C = 10, γ = 0.25"
    return beside(setting, letters(setting), 10.0, 0.25, what, "sklearn", name, 4 if what == "fit" else 12, 0.0278)


@benchmark(GROUP, what=("fit", "predict"), library=("sklearn", "sklearnex"))
def svc_binary(setting: Setting, what: str, library: str) -> Row:
    target = {"fit": {"sklearn": 5, "sklearnex": 4}, "predict": {"sklearn": 15, "sklearnex": 1}}[what][library]
    return beside(setting, halves(setting), 1.0, 1 / 50, what, library, "two classes, C = 1, γ = 1/50", target, 0.05)


@benchmark(GROUP)
def svc_usps(setting: Setting) -> Row:
    name = "USPS digits, C = 10, γ = 1/128"
    return beside(setting, both_halves(setting), 10.0, 1 / 128, "fit", "sklearn", name, 3, 0.048)


@benchmark(GROUP, C=(1.0, 100.0))
def svc_adult(setting: Setting, C: float) -> Row:
    """The error is that of the training rows, because the data have no test rows."""
    if setting.quick:
        X = peers.need("scipy.sparse").random(300, 123, 0.11, "csr", random_state=0)
        y = (X[:, :20].sum(axis=1) > 1.2).astype(int)
    else:
        file = setting.data / "adult.svmlight.gz" if setting.data is not None else None
        if file is None or not file.exists():
            raise Missing("needs --data DIR with adult.svmlight.gz (UCI Adult)")
        X, y = peers.need("sklearn.datasets").load_svmlight_file(str(file))
    X.indices, X.indptr = (
        X.indices.astype(np.int32),
        X.indptr.astype(np.int32),
    )  # scikit-learn's machine takes no others
    y = np.asarray(y).ravel()
    ours, theirs = peers.ours("SVC")(C, Gaussian(1 / 123)), peers.need("sklearn.svm").SVC(C=C, gamma=1 / 123)
    return Row(
        f"SVC, fit, Adult, sparse, C = {C:g}, γ = 1/123, n = {X.shape[0]}",
        ours=lambda: ours.fit(X, y),
        peer=lambda: theirs.fit(X, y),
        peer_name="scikit-learn",
        target=at_least(1),
        error=lambda model: float(np.mean(model.predict(X[:5000]) != y[:5000])),
        tolerance=1.0 if setting.quick else 0.165,
        rounds=1,
        note="SVC's errors: the share of wrong labels of the test rows (Adult: of the first 5000).",
    )


# ---- the optimum ---------------------------------------------------------------------------------------------------

SETS = (
    "iris", "wine", "breast cancer", "digits", "moons", "circles", "blobs", "gaussian quantiles", "hastie", "flipped",
    "many columns", "unbalanced",
)  # fmt: skip


def two_classes(name: str, most: int) -> tuple[Any, Any]:
    """Standardised rows and labels of ±1, the same every time."""
    sets: Any = peers.need("sklearn.datasets")
    n = most
    X, y = {
        "iris": lambda: sets.load_iris(return_X_y=True),
        "wine": lambda: sets.load_wine(return_X_y=True),
        "breast cancer": lambda: sets.load_breast_cancer(return_X_y=True),
        "digits": lambda: sets.load_digits(return_X_y=True),
        "moons": lambda: sets.make_moons(n, noise=0.3, random_state=0),
        "circles": lambda: sets.make_circles(n, noise=0.2, factor=0.5, random_state=0),
        "blobs": lambda: sets.make_blobs(n, centers=4, cluster_std=3.0, random_state=0),
        "gaussian quantiles": lambda: sets.make_gaussian_quantiles(n_samples=n, n_features=5, random_state=0),
        "hastie": lambda: sets.make_hastie_10_2(n, random_state=0),
        "flipped": lambda: sets.make_classification(n, 20, n_informative=10, flip_y=0.1, random_state=0),
        "many columns": lambda: sets.make_classification(n, 300, n_informative=30, random_state=0),
        "unbalanced": lambda: sets.make_classification(n, 10, n_informative=5, weights=[0.95], random_state=0),
    }[name]()
    order = np.random.default_rng(0).permutation(len(X))[:most]
    X, y = X[order], y[order]
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), np.where(y == np.unique(y)[-1], 1.0, -1.0)


def excess(X: Any, y: Any, C: float, kernel: Any, peer: dict[str, Any], steps: int) -> float:
    """By how much our dual objective exceeds LIBSVM's, relatively; 0 if LIBSVM does not finish."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peers.need("sklearn.svm").SVC(C=C, max_iter=steps, **peer).fit(X, y)
        ours = peers.ours("SVC")(C, kernel, max_iter=steps).fit(X, y)
    if theirs.fit_status_:
        return 0.0
    K, values = kernel(X), []
    for model in (ours, theirs):
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        values.append(0.5 * beta @ K @ beta - y @ beta)
    return float((values[0] - values[1]) / abs(values[1]))


@benchmark(GROUP, name=SETS)
def svc_objective(setting: Setting, name: str) -> Row:
    X, y = two_classes(name, setting.size(1500, 60))
    d = X.shape[1]
    kernels = (
        (Gaussian(1 / d), {"kernel": "rbf", "gamma": 1 / d}),
        (Linear(), {"kernel": "linear"}),
        (Polynomial(3, gamma=1 / d, coef0=1.0), {"kernel": "poly", "degree": 3, "gamma": 1 / d, "coef0": 1.0}),
    )
    steps = setting.size(1_000_000, 100_000)  # of 60 rows ours takes up to 40 000, at C = 10⁴

    def worst() -> float:
        return max(excess(X, y, C, kernel, peer, steps) for kernel, peer in kernels for C in (0.01, 1.0, 100.0, 1e4))

    return Row(
        f"SVC, {name}: dual objective above LIBSVM's, 3 kernels, C from 0.01 to 10⁴, n = {len(X)}",
        ours=worst,
        figure="error",
        target=at_most(1e-4),
        error=lambda found: max(found, 0.0),
        tolerance=1e-4,
        rounds=1,
    )
