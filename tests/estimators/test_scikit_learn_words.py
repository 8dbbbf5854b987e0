"""What a user of scikit-learn types first: its names of kernels, its parameters, and rows that are none."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import cluster, decomposition, kernel_approximation, kernel_ridge, svm
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import mercer
from mercer import errors
from mercer.estimators.base.estimator import KernelEstimator
from mercer.kernels import Function, Gaussian, Polynomial, Sigmoid, as_kernel, conventions, parse

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 2.0, (60, 4))
NEW = RNG.uniform(0.1, 2.0, (20, 4))
y = np.sin(2 * X[:, 0]) + X[:, 1]
labels = (y > np.median(y)).astype(int)

# ---- names of kernels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "chi2"])
def test_a_name_is_the_pairwise_function_with_its_defaults(name: str) -> None:
    ours = as_kernel(name).resolve(X)
    assert np.allclose(ours(X, NEW), pairwise_kernels(X, NEW, metric=name), rtol=1e-12, atol=0)


def test_names_in_both_libraries() -> None:
    assert as_kernel("polynomial") == Polynomial()  # ours; scikit-learn's is "poly"
    ours, theirs = as_kernel("additive_chi2")(X, NEW), pairwise_kernels(X, NEW, metric="additive_chi2")
    # Theirs is only conditionally definite: 2 k less the sums of the rows, which centring takes away.
    assert np.allclose(2 * ours - X.sum(axis=1)[:, None] - NEW.sum(axis=1), theirs, rtol=1e-12)


NAMES = ["linear", "rbf", "poly", "sigmoid"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("task", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_machines_have_the_defaults_of_libsvm(task: str, name: str) -> None:
    # Small data: the sigmoid kernel stays in its positive range, where both find one optimum.
    # 59 rows: with 60, νn/2 is a whole number, and a class of NuSVC may have no coefficient between its bounds. Then
    # any ρ of an interval is right, and which one libsvm takes depends on its rounding.
    small, new = X[:59] / 10, NEW / 10
    targets = {"SVC": labels[:59], "NuSVC": labels[:59], "SVR": y[:59], "NuSVR": y[:59], "OneClassSVM": None}[task]
    options = {"kernel": name, "tol": 1e-6}
    ours, theirs = getattr(mercer, task)(**options), getattr(svm, task)(**options)
    if targets is None:
        ours.fit(small), theirs.fit(small)
    else:
        ours.fit(small, targets), theirs.fit(small, targets)
    found = ours.predict(new) if task.endswith("R") else ours.decision_function(new)
    wanted = theirs.predict(new) if task.endswith("R") else theirs.decision_function(new)
    if name == "sigmoid":  # indefinite: the two may stop at different stationary points, so the kernel is compared
        gamma = 1 / (small.shape[1] * small.var())
        assert ours.kernel_ == Sigmoid(gamma=ours.kernel_.gamma, coef0=0.0)
        assert ours.kernel_.gamma == pytest.approx(gamma, rel=1e-12) == pytest.approx(theirs._gamma, rel=1e-12)
    else:
        assert np.allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", [*NAMES, "cosine", "laplacian", "chi2"])
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_kernel_ridge_has_scikit_learns_defaults(name: str) -> None:
    alpha = 10.0 if name == "sigmoid" else 1.0  # indefinite: above its negative eigenvalues
    # scikit-learn's estimator hands its own gamma=None to chi2_kernel, which fails, other than the function's default.
    own = {"gamma": 1.0} if name == "chi2" else {}
    model, peer = mercer.KernelRidge(name, alpha), kernel_ridge.KernelRidge(kernel=name, alpha=alpha, **own)
    wanted = peer.fit(X, y).predict(NEW)
    assert np.allclose(model.fit(X, y).predict(NEW), wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("name", [*NAMES, "cosine"])
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_kernel_pca_has_scikit_learns_defaults(name: str) -> None:
    ours = mercer.KernelPCA(2, name, solver="dense").fit(X)
    theirs = decomposition.KernelPCA(2, kernel=name).fit(X)
    assert np.allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("name", [*NAMES, "cosine", "laplacian", "chi2"])
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_nystroem_has_scikit_learns_defaults(name: str) -> None:
    ours = mercer.Nystroem(name, 60).fit(X).transform(X)
    theirs = kernel_approximation.Nystroem(kernel=name, n_components=60, random_state=0).fit(X).transform(X)
    if name != "sigmoid":  # scikit-learn takes |λ| of an indefinite matrix
        assert np.allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=1e-6 * np.abs(theirs @ theirs.T).max())


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "laplacian"])
def test_spectral_clustering_has_scikit_learns_defaults(name: str) -> None:
    theirs = cluster.SpectralClustering(2, affinity=name, random_state=0).fit(X)
    ours = mercer.KernelSpectralClustering._as_kernel(name)
    assert np.allclose(ours(X, X), theirs.affinity_matrix_, rtol=1e-12)


def test_a_name_with_parameters_keeps_the_other_defaults_of_scikit_learn() -> None:
    assert mercer.SVC._as_kernel("poly(degree=2)") == Polynomial(2, "scale", 0.0)
    assert mercer.KernelPCA._as_kernel("2*poly(2)") == 2.0 * Polynomial(2, "auto", 1.0)
    assert mercer.SVC(kernel="poly").set_params(kernel__degree=2).kernel == Polynomial(2, "scale", 0.0)
    assert mercer.SVC(kernel="rbf").set_params(kernel__gamma=0.5).kernel == Gaussian(0.5)


@pytest.mark.parametrize("kernel", [Sigmoid(), Sigmoid(0.5, 1.0), Sigmoid("scale"), 2.0 * Sigmoid()])
def test_what_a_kernel_is_called_reads_back(kernel: Any) -> None:
    assert parse(repr(kernel)) == kernel


def estimators() -> list[type[Any]]:
    found = [getattr(mercer, name) for name in mercer.__all__]
    return [each for each in found if inspect.isclass(each) and issubclass(each, KernelEstimator)]


@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_each_docstring_says_what_a_name_means(cls: type[Any]) -> None:
    text = " ".join((cls.__doc__ or "").split())
    if "kernel : Kernel, str or callable" not in text:
        assert "kernel, " in text or "kernel : Kernel or str" in text  # as another estimator's, or a list of classes
        return
    whose = {"MACHINES": "`SVC`", "AFFINITIES": "`SpectralClustering`", "PAIRWISE": "pairwise functions"}
    names = {id(getattr(conventions, name)): text for name, text in whose.items()}[id(cls.named_kernels)]
    assert f'scikit-learn\'s names "rbf", "poly", "sigmoid" and "laplacian" have the defaults of its {names}.' in text


# ---- parameters ------------------------------------------------------------------------------------------------------


def refused(make: Callable[[], Any]) -> str:
    with pytest.raises(errors.UnknownParameter) as caught:
        make()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_gamma_is_the_kernels(cls: type[Any]) -> None:
    default = inspect.signature(cls).parameters["kernel"].default
    named = "gaussian" if default == "linear" else default
    text = refused(lambda: cls(kernel=named, gamma=0.1))
    assert f"write kernel='{named}(gamma=0.1)', and kernel__gamma in set_params and searches" in text
    assert "set kernel__gamma=0.1" in refused(lambda: cls(kernel=named).set_params(gamma=0.1))
    assert cls(kernel=f"{named}(gamma=0.1)").kernel == f"{named}(gamma=0.1)"  # what it says can be done


def test_the_words_of_scikit_learn_are_answered() -> None:
    assert "write kernel='poly(degree=2, coef0=0.5)'" in refused(lambda: mercer.SVC(kernel="poly", degree=2, coef0=0.5))
    assert "leave gamma out, which Linear does not have" in refused(lambda: mercer.SVC(kernel="linear", gamma=1))
    assert "gamma=0.5)" in refused(lambda: mercer.SVC(gamma=np.float64(0.5)))
    assert '"krylov" for "arpack"' in refused(lambda: mercer.KernelPCA(kernel="rbf", eigen_solver="arpack"))
    assert "rbf(gamma=10)" in refused(lambda: mercer.KernelPCA(kernel="rbf", gamma=10, eigen_solver="arpack"))
    assert "kernel='gaussian(gamma=2)'" in refused(lambda: mercer.KernelRidge(kernel_params={"gamma": 2}))
    assert "write kernel=..." in refused(lambda: mercer.KernelSpectralClustering(affinity="rbf"))
    assert "alpha=" in refused(lambda: mercer.KernelLogisticRegression(C=1.0))
    assert "mercer.observe" in refused(lambda: mercer.SVC(verbose=True))
    assert 'memory="200MB"' in refused(lambda: mercer.SVC(cache_size=200))
    assert "did you mean 'kernel'" in refused(lambda: mercer.SVC(kernle="rbf"))
    assert "OMP_NUM_THREADS" in refused(lambda: mercer.KernelSearchCV(mercer.SVC(), {}, n_jobs=2))
    assert "write gamma in the parts of Scaled" in refused(lambda: mercer.SVC(kernel="2*rbf()", gamma=1))
    with pytest.raises(errors.InvalidInput, match="it has none"):
        mercer.SVC(kernel="linear").set_params(kernel__gamma=1.0)


@pytest.mark.parametrize("cls", estimators(), ids=lambda cls: cls.__name__)
def test_the_advice_for_eigen_solver_can_be_followed(cls: type[Any]) -> None:
    said = {
        refused(make) for make in (lambda: cls(eigen_solver="dense"), lambda: cls().set_params(eigen_solver="dense"))
    }
    assert len(said) == 1
    written = said.pop().partition('solver="')[2]
    values = {*re.findall(r"\w+", " ".join((f'"{written}').split('"')[1::2]))} - {"arpack", "randomized"}
    assert bool(values) == ("solver" in inspect.signature(cls).parameters)
    second = {"KernelCCA": np.column_stack((y, X[:, 0]))}.get(cls.__name__, y if cls.__name__[-1] == "R" else labels)
    for value in values:
        cls(solver=value).fit(X, second)


@pytest.mark.parametrize("search", [GridSearchCV, mercer.KernelSearchCV])
def test_names_in_a_grid(search: Any) -> None:
    assert "set kernel__gamma=1" in refused(lambda: search(mercer.KernelRidge(), {"gamma": [1]}).fit(X, y))
    pipeline = make_pipeline(mercer.SVC())
    assert "set kernel__gamma=1" in refused(lambda: search(pipeline, {"svc__gamma": [1]}).fit(X, labels))


def test_the_constructor_stays_scikit_learns() -> None:
    model = mercer.SVC(C=2.0, kernel=Gaussian(0.5))
    assert list(inspect.signature(mercer.SVC).parameters)[:2] == ["C", "kernel"]
    assert clone(model).get_params() == model.get_params() == pickle.loads(pickle.dumps(model)).get_params()

    class Own(mercer.SVC):
        def __init__(self, C: float = 1.0, extra: int = 0, **rest: Any) -> None:
            super().__init__(C, **rest)
            self.extra = extra

    assert Own(extra=3, tol=1e-2).tol == 1e-2


# ---- strangers -------------------------------------------------------------------------------------------------------


class Graph:
    """As in NetworkX: it has a length, iterates over its nodes, and gives the neighbours of each."""

    def __init__(self, n: int) -> None:
        self.neighbours = {i: {(i + 1) % n: {}} for i in range(n)}

    def __len__(self) -> int:
        return len(self.neighbours)

    def __iter__(self) -> Any:
        return iter(self.neighbours)

    def __getitem__(self, node: int) -> Any:
        return self.neighbours[node]


def strangers() -> dict[str, Any]:
    rows = X.tolist()
    return {
        "graphs": [Graph(4) for _ in rows],
        "array of graphs": np.array([*[Graph(4) for _ in rows], None], dtype=object)[:-1],
        "a graph": Graph(len(rows)),
        "a dict": dict(enumerate(rows)),
        "values of a dict": dict(enumerate(rows)).values(),
        "dicts": [dict(enumerate(row)) for row in rows],
        "a set": set(map(tuple, rows)),
        "sets": [set(row) for row in rows],
        "a generator": (row for row in rows),
        "text": "a" * len(rows),
        "objects": [object() for _ in rows],
    }


ENTRANCES: dict[str, Callable[[Any], Any]] = {
    "fit": lambda rows: mercer.SVC().fit(rows, labels),
    "fit without targets": lambda rows: mercer.KernelPCA(2).fit(rows),
    "predict": lambda rows: mercer.KernelRidge().fit(X, y).predict(rows),
    "partial_fit": lambda rows: mercer.OnlineKernelRegressor().partial_fit(rows, y),
    "inverse_transform": lambda rows: mercer.KernelPCA(4, "linear").fit(X).inverse_transform(rows),
    "second view": lambda rows: mercer.KernelCCA().fit(X, rows),
    "operator": lambda rows: mercer.KernelOperator(Gaussian(1.0), rows),
    "kernel": Gaussian(1.0),
    "sequences": mercer.kernels.Spectrum(k=2),
    "points": mercer.kernels.SetKernel(Gaussian(1.0)),
    "test": lambda rows: mercer.mmd_test(rows, X),
    "monomials": lambda rows: mercer.MonomialFeatures().fit(rows),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", strangers())
def test_strangers_are_refused_where_rows_enter(entrance: str, name: str) -> None:
    if name == "array of graphs":
        wanted, said = ValueError, "give|element with a sequence"  # NumPy's own words where scikit-learn converts
    else:
        wanted, said = errors.InvalidInput, "give"
    with pytest.raises(wanted, match=said):
        ENTRANCES[entrance](strangers()[name])


@pytest.mark.parametrize("name", ["a graph", "a dict", "a set", "a generator", "text"])
def test_a_function_of_objects_takes_them_in_an_order(name: str) -> None:
    kernel = Function(lambda x, z: float(len(x) == len(z)), mode="pair")
    with pytest.raises(errors.InvalidInput, match="give"):
        mercer.SVC(kernel=kernel).fit(strangers()[name], labels)
    mercer.SVC(kernel=kernel).fit(strangers()["graphs"], labels)  # in a list they are what the function is for


def test_targets_are_refused_that_only_iterate() -> None:
    with pytest.raises(errors.InvalidInput, match=r"SVR, y: .* Graph"):
        mercer.SVR().fit(X, Graph(len(X)))


def test_other_sequences_are_rows() -> None:
    from array import array
    from collections import deque

    wanted = mercer.KernelRidge().fit(X, y).predict(X)
    for rows in (X.tolist(), tuple(map(tuple, X)), list(X), deque(X.tolist()), [array("d", row) for row in X]):
        assert np.array_equal(mercer.KernelRidge().fit(rows, list(y)).predict(X), wanted)
