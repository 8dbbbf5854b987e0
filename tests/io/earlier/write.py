"""Write what `test_earlier_files.py` reads: pickles, model files and a ledger of this version, with what they predict.

Run once for a version, ``python tests/io/earlier/write.py 0.1.0``, before its modules move; a file that exists stays.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import KFold

import mercer
from mercer import hypotheses, kernels, operators, select, solvers, validity
from mercer.kernels import Gaussian, Spectrum

HERE = Path(__file__).resolve().parent
VERSIONS = {"mercer": mercer.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
VERSIONS["scikit-learn"] = sklearn.__version__

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(20, 3)), 3)
Y = np.round(np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]), 3)
LABELS = np.where(X[:, 0] > 0.3, "warm", np.where(X[:, 1] > 0, "mild", "cold"))
TWO = LABELS == "warm"
NEW = np.round(rng.normal(size=(6, 3)), 3)
WORDS = ["".join(rng.choice(list("acgt"), 8)) for _ in range(26)]
SERIES = [np.round(rng.normal(size=(4, 1)), 3) for _ in range(26)]
TABLE = {"size": [*X[:, 0], *NEW[:, 0]], "kind": [word[0] for word in WORDS], "text": WORDS}
KERNEL = Gaussian(0.3)


def models() -> dict[str, dict[str, object]]:
    """Fitted models by family."""
    m = mercer
    return {
        "ridge": {
            "ridge": m.KernelRidge(KERNEL, 0.1).fit(X, Y),
            "landmarks": m.KernelRidge(KERNEL, 0.1, solver="nystroem", n_landmarks=8).fit(X, Y[:, 0]),
            "sparse": m.KernelRidge("gaussian", 0.1).fit(sp.csr_matrix(X), Y[:, 0]),
            "compressed": m.KernelRidge(KERNEL, 0.1).fit(X, Y[:, 0]).compress(5),
            "classifier": m.KernelRidgeClassifier("laplace", 0.1).fit(X, LABELS),
            "chosen": m.KernelRidgeCV(["linear", KERNEL], store_cv_results=True).fit(X, Y),
            "chosen classifier": m.KernelRidgeClassifierCV(cv=3).fit(X, LABELS),
        },
        "svm": {
            "svc": m.SVC(kernel=KERNEL).fit(X, LABELS),
            "svc, ovr": m.SVC(multi_class="ovr", probability=True).fit(X, TWO),
            "svc, landmarks": m.SVC(kernel=KERNEL, solver="nystroem", n_landmarks=8).fit(X, LABELS),
            "svc, compressed": m.SVC(kernel=KERNEL).fit(X, TWO).compress(4),
            "nu svc": m.NuSVC(0.1, KERNEL).fit(X, TWO),
            "svr": m.SVR(kernel=KERNEL).fit(X, Y[:, 0]),
            "nu svr": m.NuSVR(kernel="laplace").fit(X, Y[:, 0]),
            "one class": m.OneClassSVM(nu=0.3).fit(X),
        },
        "components": {
            "pca": m.KernelPCA(2, KERNEL).fit(X),
            "landmarks": m.KernelPCA(2, KERNEL, solver="nystroem", n_landmarks=8).fit(X),
            "chunks": m.KernelPCA(2, KERNEL).partial_fit(X[:12]).partial_fit(X[12:]),
            "decoder": m.KernelPCA(2, KERNEL, fit_inverse_transform=True).fit(X),
            "cca": m.KernelCCA(2, KERNEL).fit(X, Y),
            "pls": m.KernelPLS(2, KERNEL).fit(X, Y),
        },
        "classes": {
            "discriminant": m.KernelDiscriminantAnalysis(KERNEL).fit(X, LABELS),
            "discriminant, landmarks": m.KernelDiscriminantAnalysis(KERNEL, solver="nystroem", n_landmarks=8).fit(
                X, LABELS
            ),
            "logistic": m.KernelLogisticRegression(KERNEL, 0.1).fit(X, LABELS),
            "logistic, two": m.KernelLogisticRegression(KERNEL, class_weight="balanced").fit(X, TWO),
            "lms": m.KernelLMS(KERNEL).fit(X, Y),
            "perceptron": m.KernelPerceptron(KERNEL, max_iter=20, tol=None).fit(X, LABELS),
            "perceptron, voted": m.KernelPerceptron(KERNEL, method="voted", max_iter=3, tol=None).fit(X, LABELS),
        },
        "clusters": {
            "kmeans": m.KernelKMeans(3, KERNEL, random_state=0).fit(X),
            "landmarks": m.KernelKMeans(3, KERNEL, solver="nystroem", n_landmarks=8, random_state=0).fit(X),
            "spectral": m.KernelSpectralClustering(3, KERNEL, random_state=0).fit(X),
        },
        "online": {
            "merge": m.OnlineKernelClassifier(KERNEL, budget=6).fit(X, TWO),
            "project": m.OnlineKernelClassifier("linear", strategy="project").fit(X, LABELS),
            "krls": m.OnlineKernelRegressor(KERNEL, budget=8).fit(X, Y),
            "qklms": m.OnlineKernelRegressor(KERNEL, method="qklms").fit(X, Y[:, 0]),
        },
        "features": {
            "nystroem": m.Nystroem(KERNEL, 6, random_state=0).fit(X),
            "empirical map": m.EmpiricalKernelMap(KERNEL).fit(X),
            "fourier": m.RandomFourierFeatures("gaussian", 7, random_state=0).fit(X),
            "sketch": m.PolynomialSketch("polynomial", 8, random_state=0).fit(X),
            "monomials": m.MonomialFeatures().fit(X),
        },
        "search": {
            "search": m.KernelSearchCV(m.KernelRidge(), {"alpha": [0.1, 1.0], "kernel": [KERNEL]}, cv=3).fit(X, Y),
            "search of machines": m.KernelSearchCV(m.SVC(), {"C": [0.1, 1.0]}, cv=2).fit(X, TWO),
        },
    }


def models_of_objects() -> dict[str, tuple[object, object]]:
    """Models of words, series, sets, tables and matrices, each with rows to predict."""
    import pandas as pd

    frame = pd.DataFrame(TABLE)
    table = mercer.table_kernel(frame, text=["text"]).with_part("text", Spectrum(2).normalized())
    K = KERNEL(X)
    repaired = mercer.RepairedKernel(kernels.Sigmoid(1.0, -1.0), "clip")
    ridge = mercer.KernelRidge
    return {
        "words": (ridge(Spectrum(2), 0.1).fit(WORDS[:20], Y[:, 0]), WORDS[20:]),
        "series": (ridge(kernels.GlobalAlignment(1.0), 0.1).fit(SERIES[:20], Y[:, 0]), SERIES[20:]),
        "sets": (mercer.SVC(1.0, kernels.SetKernel()).fit(SERIES[:20], TWO), SERIES[20:]),
        "table": (ridge(table, 0.1).fit(frame[:20], Y[:, 0]), frame[20:]),
        "matrix": (ridge("precomputed", 0.1).fit(K, Y[:, 0]), K[:6]),
        "repaired": (ridge(repaired, 1.0).fit(X, Y[:, 0]), NEW),
    }


def all_kernels() -> list[object]:
    """One of every public class of kernel, and compositions."""
    k = kernels
    return [
        *(kind() for kind in (k.Gaussian, k.Laplace, k.Cauchy, k.RationalQuadratic, k.Periodic, k.Linear, k.Cosine)),
        *(kind() for kind in (k.Polynomial, k.Sigmoid, k.AdditiveChi2, k.Chi2, k.Dice, k.Hamming, k.Intersection)),
        *(kind() for kind in (k.Tanimoto, k.Precomputed, k.SetKernel, k.GlobalAlignment, k.Subsequence)),
        *(k.Matern(nu=1.5), k.MonomialSum(3), k.Constant(2.0), k.Function(linear_kernel), k.Spectrum(3)),
        *(k.Mismatch(4, 1), k.GappedKmer(4, 2), k.AllSubstrings(), k.Formula("1 / (1 + sqdist)")),
        *(2.0 * KERNEL + k.Linear() ** 2, (KERNEL * k.Laplace(0.1)).normalized(), KERNEL.on([0, 2]) + 0.5),
        *(KERNEL.with_length_scales([1.0, 2.0, 3.0]), Spectrum(2).on([1]) + KERNEL.on([0])),
    ]


def results() -> dict[str, object]:
    """What the functions of the package return, and what a user may keep of them."""
    system = solvers.LinearSystem(operators.Dense(KERNEL(X) + np.eye(20)), Y)
    a, b = KERNEL(X), kernels.Linear()(X)
    return {
        "expression": kernels.trace(2.0 * KERNEL.on([0]) + kernels.Periodic()),
        "unfinished solution": solvers.solve(solvers.ConjugateGradients(), system, max_steps=3),
        "eigenpairs": solvers.solve(solvers.DenseEigen(), solvers.Eigenproblem(operators.Dense(a), 3)),
        "clusters": solvers.solve(
            solvers.Lloyd(), solvers.Clustering(operators.Dense(b, symmetric=True), np.arange(20) % 3, 3), max_steps=2
        ),
        "ridge search": select.cross_validate_ridge(X, Y[:, 0], [KERNEL, kernels.Linear()], [0.1, 1.0], folds=3),
        "suggestions": select.suggest(X, Y[:, 0]),
        "likelihood": select.maximise_marginal_likelihood(KERNEL, X, Y[:, 0]),
        "mixture": select.combine_kernels([KERNEL, kernels.Linear()], X, Y[:, 0], bootstrap=0),
        "report of a kernel": mercer.check_kernel(kernels.Sigmoid(1.0, -1.0), X),
        "proof": validity.prove(2.0 * KERNEL + 1.0),
        "mmd": mercer.mmd_test(X[:10], X[10:], KERNEL, random_state=0),
        "herd": hypotheses.herd(X, 4, KERNEL),
    }


def all_operators() -> list[operators.Operator]:
    """One of each kind that users compose."""
    a = operators.Dense(KERNEL(X))
    return [
        *(2.0 * a + operators.Identity(20), operators.Centered(a), a @ operators.Diagonal(np.arange(20.0))),
        *(operators.LowRank(X), operators.Dense(X).T, a.principal([0, 2]), operators.Bordered(a, np.ones((20, 1)))),
        *(operators.CachedRows(a, 1000), a.astype(np.float32), mercer.KernelOperator(KERNEL, X)),
    ]


def outputs(model: object, rows: object) -> dict[str, np.ndarray]:
    """What a model says of rows, by method."""
    names = ("predict", "predict_proba", "decision_function", "transform")
    return {name: np.asarray(getattr(model, name)(rows)) for name in names if hasattr(model, name)}


def search(path: Path | None = None) -> mercer.KernelSearchCV:
    """A search with four candidates."""
    grid = {"C": [0.1, 1.0], "kernel": [KERNEL, Spectrum(2)], "epsilon": [0.1]}
    grid["kernel"][1] = 0.5 * KERNEL.on([0]) + kernels.Linear()
    return mercer.KernelSearchCV(mercer.SVR(), grid, cv=KFold(3), resume=path)


def ledger(path: Path) -> None:
    """The file of a search that was stopped after some of its candidates, and all of its scores."""

    def stop(event: object) -> None:
        if path.exists() and len(json.loads(path.read_text())["found"]) == 2:
            raise mercer.errors.Cancelled("enough")

    observer = type("Stop", (), {"on_event": lambda self, event: stop(event)})()
    with contextlib.suppress(mercer.errors.Cancelled), mercer.observe(observer):
        search(path).fit(X, Y[:, 0])


def keep(path: Path, **content: object) -> None:
    """A pickle with these things and the versions that wrote it, unless there is one."""
    if not path.exists():
        path.write_bytes(pickle.dumps({"versions": VERSIONS, **content}, protocol=4))


def classes() -> dict[str, list[str]]:
    """The public classes by the modules that they are in."""
    packages = [mercer, kernels, kernels.sequences, operators, solvers, select, validity, hypotheses]
    packages += [mercer.estimators, mercer.approx, mercer.io, mercer.events, mercer.gram]
    found = [getattr(package, name) for package in packages for name in package.__all__]
    own = {one for one in found if isinstance(one, type) and one.__module__.startswith("mercer")}
    modules = sorted({one.__module__ for one in own})
    return {module: sorted(one.__qualname__ for one in own if one.__module__ == module) for module in modules}


def keep_models(folder: Path) -> None:
    """Pickles of models by family, each with rows and outputs."""
    for family, found in models().items():
        told = {name: outputs(model, NEW) for name, model in found.items()}
        keep(folder / f"{family}.pickle", models=found, rows=NEW, outputs=told)
    for name, (model, rows) in models_of_objects().items():
        keep(folder / f"{name}.pickle", models={name: model}, rows=rows, outputs={name: outputs(model, rows)})


def keep_files(folder: Path) -> None:
    """Model files, and what their models say of rows."""
    of_vectors = models()
    chosen = {
        "ridge": of_vectors["ridge"]["ridge"], "svc": of_vectors["svm"]["svc"],
        "pca": of_vectors["components"]["landmarks"], "kmeans": of_vectors["clusters"]["kmeans"],
        "krls": of_vectors["online"]["krls"], "nystroem": of_vectors["features"]["nystroem"],
    }  # fmt: skip
    asked = {name: (model, NEW) for name, model in chosen.items()}
    asked |= {name: one for name, one in models_of_objects().items() if name in ("words", "table", "repaired")}
    for name, (model, _) in asked.items():
        if not (folder / f"{name}.mercer").exists():
            mercer.save(model, folder / f"{name}.mercer")
    rows = {name: rows for name, (_, rows) in asked.items()}
    keep(folder / "files.pickle", rows=rows, outputs={name: outputs(*one) for name, one in asked.items()})


def main(folder: Path) -> None:
    """All of them."""
    folder.mkdir(exist_ok=True)
    if not (folder / "classes.json").exists():
        (folder / "classes.json").write_text(json.dumps(classes(), indent=1) + "\n")
    keep_models(folder)
    keep_files(folder)
    made = all_kernels()
    keep(folder / "kernels.pickle", kept=made, written=[repr(one) for one in made])
    made = results()
    keep(folder / "results.pickle", kept=made, written={name: repr(one) for name, one in made.items()})
    arrays = [one.toarray() for one in all_operators()]
    keep(folder / "operators.pickle", kept=all_operators(), arrays=arrays)
    ledger(folder / "ledger.json")
    keep(folder / "ledger.pickle", scores=search().fit(X, Y[:, 0]).cv_results_["mean_test_score"])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(HERE / sys.argv[1])
