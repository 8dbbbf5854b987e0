"""The faces give scikit-learn's answers, in its attributes, without its solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition, kernel_approximation, kernel_ridge, svm
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise as their_pairwise
from sklearn.svm import _base

from mercer import sklearn as faces
from mercer.errors import DelegatedWarning
from mercer.sklearn.metrics import pairwise

X, LABELS = make_blobs(90, centers=3, cluster_std=4.0, random_state=0)
NEW = make_blobs(20, centers=3, cluster_std=4.0, random_state=0)[0]
NUMBERS = np.sin(X[:, 0]) + X[:, 1] / 5
TWO = (LABELS > 0).astype(int)
ROW = np.arange(2.0)

FLOAT32 = 1e-3
"""LIBSVM has the entries of its matrix in float32."""
MACHINES = [
    ("SVC", {"C": 3.0}, LABELS),
    ("SVC", {"kernel": "linear", "class_weight": "balanced"}, TWO),
    ("SVC", {"kernel": "poly", "coef0": 1.0, "decision_function_shape": "ovo"}, LABELS),
    ("SVC", {"kernel": "poly", "coef0": -0.2, "degree": 2, "gamma": 0.01}, TWO),
    ("NuSVC", {"nu": 0.4}, LABELS),
    ("NuSVC", {"nu": 0.5, "gamma": 0.02, "class_weight": {0: 5.0}}, TWO),
    ("SVR", {"C": 2.0, "gamma": 0.1}, NUMBERS),
    ("NuSVR", {"kernel": "rbf", "gamma": "auto"}, NUMBERS),
    ("OneClassSVM", {"nu": 0.2}, None),
]


@pytest.fixture
def no_libsvm(monkeypatch):
    monkeypatch.setattr(_base, "libsvm", None)
    monkeypatch.setattr(_base, "libsvm_sparse", None)


def both(name, parameters, y, rows=X):
    found = [getattr(module, name)(tol=1e-10, **parameters).fit(rows, y) for module in (svm, faces)]
    return found


@pytest.mark.parametrize(("name", "parameters", "y"), MACHINES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_machines_are_theirs(name, parameters, y, kind):
    theirs, ours = both(name, parameters, y, kind(X))
    np.testing.assert_allclose(ours.predict(kind(NEW)), theirs.predict(kind(NEW)), rtol=FLOAT32, atol=FLOAT32)
    scores = [getattr(one, "decision_function", one.predict)(kind(NEW)) for one in (ours, theirs)]
    np.testing.assert_allclose(*scores, rtol=FLOAT32, atol=FLOAT32)
    for attribute in ("support_", "n_support_", "intercept_", "dual_coef_", "support_vectors_", "shape_fit_"):
        mine, own = getattr(ours, attribute), getattr(theirs, attribute)
        assert type(mine) is type(own)
        mine, own = (one.toarray() if sp.issparse(one) else np.asarray(one) for one in (mine, own))
        assert mine.shape == own.shape
        if mine.dtype.kind == "f" and attribute != "support_vectors_":
            np.testing.assert_allclose(mine, own, rtol=0.01, atol=0.01)
    assert type(ours.n_iter_) is type(theirs.n_iter_)


@pytest.mark.parametrize(("name", "parameters", "y"), MACHINES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_their_code_reads_our_attributes(name, parameters, y, kind):
    """A model's attributes are all that scikit-learn needs to predict."""
    ours = getattr(faces, name)(**parameters).fit(kind(X), y)
    twin = getattr(svm, name)(**parameters)
    twin.__dict__.update({key: value for key, value in vars(ours).items() if key != "report_"})
    np.testing.assert_allclose(twin.predict(kind(NEW)), ours.predict(kind(NEW)), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("y", [TWO, LABELS])
def test_probabilities_are_those_of_the_stored_sigmoids(kind, y):
    ours = faces.SVC(probability=True).fit(kind(X), y)
    twin = svm.SVC(probability=True)
    twin.__dict__.update({key: value for key, value in vars(ours).items() if key != "report_"})
    np.testing.assert_allclose(
        ours.predict_proba(kind(NEW)), twin.predict_proba(kind(NEW)), atol=5e-3
    )  # LIBSVM's coupling


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("parameters", "weight"),
    [({"class_weight": "balanced"}, None), ({"class_weight": {0: 0.1, 1: 10.0}}, None), ({"C": 400.0}, 1 / 400)],
)
def test_sigmoids_are_fitted_to_rows_of_weight_1_as_theirs_are(parameters, weight):
    """By weighted rows a balanced machine had a mean probability of 0.31 for a class of 18 %."""
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(400, 2)), rng.normal(size=(500, 2))
    y = (rows[:, 0] + 0.5 * rng.normal(size=400) > 1).astype(int)
    weights = None if weight is None else np.full(400, weight)
    found = [
        module.SVC(gamma=0.5, probability=True, random_state=0, **parameters).fit(rows, y, weights).predict_proba(new)
        for module in (faces, svm)
    ]
    assert abs(found[0][:, 1].mean() - found[1][:, 1].mean()) < 0.02
    assert np.abs(found[0] - found[1]).max() < 0.15  # their folds are drawn


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_libsvm_is_not_called(kind, no_libsvm):
    for name, parameters, y in MACHINES:
        model = getattr(faces, name)(**parameters).fit(kind(X), y)
        model.predict(kind(NEW))
        getattr(model, "decision_function", model.predict)(kind(NEW))
    faces.SVC(probability=True).fit(kind(X), LABELS).predict_proba(kind(NEW))
    with pytest.raises(AttributeError):
        svm.SVC().fit(X, LABELS)


KERNELS = ["linear", "rbf", "poly", "polynomial", "laplacian", "cosine", lambda x, z: float(x @ z) + 1.0]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", [None, 2.0, np.linspace(0, 1, len(X))])
def test_ridge_is_theirs(kernel, weights):
    small, Y = X / 10, np.column_stack([NUMBERS, TWO])
    theirs, ours = (
        module.KernelRidge(kernel=kernel, alpha=[0.5, 2.0]).fit(small, Y, weights) for module in (kernel_ridge, faces)
    )
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.predict(NEW / 10), theirs.predict(NEW / 10), rtol=1e-6, atol=1e-8)


def test_what_is_left_to_scikit_learn_is_said():
    rows = np.ones((3, 1))
    with (
        pytest.warns(DelegatedWarning, match="KernelRidge: scikit-learn's own code runs"),
        pytest.warns(match="ingular"),
    ):
        faces.KernelRidge(alpha=0).fit(rows, ROW[[0, 1, 1]])
    with pytest.warns(DelegatedWarning, match="KernelPCA"), pytest.raises(ValueError, match="significant negative"):
        faces.KernelPCA(3, kernel="precomputed").fit(np.array([[4, -1, -3], [-1, -2, 3], [-3, 3, 0.0]]))
    with pytest.warns(DelegatedWarning, match="SVC"):
        faces.SVC(kernel="precomputed").fit(np.array([[1.0, 0.5], [0.0, 1.0]]), [0, 1])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", lambda x, z: float(np.exp(-abs(x - z).sum()))])
@pytest.mark.parametrize("n_components", [2, None])
def test_components_are_theirs(kernel, n_components):
    small, new = X / 10, NEW / 10
    made = [
        module.KernelPCA(n_components, kernel=kernel, fit_inverse_transform=not callable(kernel))
        for module in (decomposition, faces)
    ]
    their_scores, our_scores = (one.fit_transform(small)[:, :2] for one in made)
    np.testing.assert_allclose(our_scores, their_scores, atol=1e-6)
    theirs, ours = made
    np.testing.assert_allclose(ours.transform(new)[:, :2], theirs.transform(new)[:, :2], atol=1e-6)
    if n_components:
        np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
        twin = decomposition.KernelPCA(n_components, kernel=kernel)
        twin.__dict__.update({key: value for key, value in vars(ours).items() if key != "report_"})
        np.testing.assert_allclose(twin.transform(new), ours.transform(new), atol=1e-9)
        if not callable(kernel):
            scores = ours.transform(new)
            np.testing.assert_allclose(ours.inverse_transform(scores), theirs.inverse_transform(scores), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_types_of_components_are_theirs(kernel, dtype):
    rows = (X @ X.T if kernel == "precomputed" else X).astype(dtype)
    ours, theirs = (
        module.KernelPCA(2, kernel=kernel, fit_inverse_transform=kernel == "rbf") for module in (faces, decomposition)
    )
    made = [[one.fit_transform(rows), one.transform(rows), one.eigenvalues_] for one in (ours, theirs)]
    if kernel == "rbf":
        for scores, one in zip(made, (ours, theirs), strict=True):
            scores += [one.X_transformed_fit_, one.inverse_transform(scores[0])]
    assert [one.dtype for one in made[0]] == [one.dtype for one in made[1]]
    np.testing.assert_allclose(made[0][2], made[1][2], rtol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "poly", lambda x, z: float(np.exp(-abs(x - z).sum()))])
def test_features_are_theirs(kernel):
    theirs, ours = (
        module.Nystroem(kernel, n_components=20, random_state=3).fit(X / 10) for module in (kernel_approximation, faces)
    )
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    approximated = [one.transform(NEW / 10) @ one.transform(X / 10).T for one in (ours, theirs)]
    np.testing.assert_allclose(*approximated, atol=1e-5)


@pytest.mark.parametrize("name", pairwise.__all__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_kernel_matrices_are_theirs(name, dtype):
    rows, others = (np.abs(one * 3).astype(dtype) for one in (X, NEW))
    for pair in ((rows,), (rows, others)):
        ours, theirs = (getattr(module, name)(*pair) for module in (pairwise, their_pairwise))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if dtype is np.float32 else 1e-11, atol=1e-6)
    with pytest.raises(ValueError):
        getattr(pairwise, name)(rows, others[:, :1])
