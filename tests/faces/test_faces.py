"""The faces give scikit-learn's answers, in its attributes, without its solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition, kernel_approximation, kernel_ridge, svm
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise as their_pairwise
from sklearn.svm import _base

from mercer import accelerate
from mercer import sklearn as faces
from mercer.accelerate import work
from mercer.errors import DelegatedWarning, InvalidInput
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


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_weights_in_a_column_are_a_value_error_as_there(name, kind):
    for module in (svm, faces):
        with pytest.raises(ValueError, match=r"dimensions|sample_weight of shape \(90, 1\); give one weight"):
            getattr(module, name)().fit(kind(X), TWO, sample_weight=np.ones((90, 1)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("nu", [0.1, 0.3, 0.7])
def test_rows_on_the_border_are_inside(kernel, nu):
    """At most a share of nu is outside; decisions of exactly 0 once counted as such."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = faces.OneClassSVM(kernel=kernel, nu=nu).fit(rows)
    assert np.mean(model.predict(rows) < 0) <= nu
    assert np.any(model.decision_function(rows) == 0)


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


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4"), ("f4", "f4"), ("f4", "i4")])
def test_types_of_other_rows_are_theirs(dtypes):
    rows, new = (one.astype(dtype) for one, dtype in zip((X, NEW), dtypes, strict=True))
    found = []
    for modules in ((decomposition, kernel_approximation), (faces, faces)):
        pca = modules[0].KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(rows)
        features = modules[1].Nystroem(n_components=9, random_state=0).fit(rows)
        found.append([one.dtype for one in (pca.transform(new), pca.inverse_transform(new), features.transform(new))])
    assert found[0] == found[1]


def test_scores_may_be_lists():
    ours, theirs = (module.KernelPCA(1, fit_inverse_transform=True).fit(X) for module in (faces, decomposition))
    np.testing.assert_allclose(ours.inverse_transform([[1.0]]), theirs.inverse_transform([[1.0]]), rtol=1e-6)
    with pytest.raises(ValueError, match="2D array"):
        ours.inverse_transform([1.0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("parameters", [{}, {"n_components": 2}, {"n_components": 2, "remove_zero_eig": True}])
def test_components_of_one_row_are_theirs(parameters, dtype):
    theirs = decomposition.KernelPCA(kernel="rbf", **parameters).fit(X[:1].astype(dtype))
    with pytest.warns(DelegatedWarning, match="one row, whose components are all 0"):
        ours = faces.KernelPCA(kernel="rbf", **parameters).fit(X[:1].astype(dtype))
    found = [(one.eigenvalues_, one.eigenvectors_, one.transform(NEW)) for one in (ours, theirs)]
    for mine, own in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, own)
        assert mine.dtype == own.dtype


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


# ---- parameters that no Mercer kernel has ----------------------------------------------------------------------------

INDEFINITE = [
    {"kernel": "additive_chi2"},
    {"kernel": "sigmoid", "gamma": 0.3, "coef0": -1.0},
    {"kernel": "poly", "degree": 2, "coef0": -1.0},
    {"kernel": "poly", "degree": 3, "coef0": -2.0},
]


@pytest.mark.parametrize("parameters", INDEFINITE, ids=str)
@pytest.mark.parametrize("n_components", [12, 25])
def test_features_of_indefinite_kernels_are_theirs(parameters, n_components):
    """The features Φ of the drawn rows have ΦΦᵀ = |K|, by the eigenvalues."""
    rows = np.abs(np.random.default_rng(0).normal(size=(30, 3)))
    theirs, ours = (
        module.Nystroem(n_components=n_components, random_state=0, **parameters).fit(rows[:25])
        for module in (kernel_approximation, faces)
    )
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-7)
    names = {"gamma", "degree", "coef0"} & parameters.keys()
    K = their_pairwise.pairwise_kernels(
        ours.components_, metric=parameters["kernel"], **{name: parameters[name] for name in names}
    )
    values, V = np.linalg.eigh(K)
    assert values[0] < -1e-3
    Phi = ours.transform(ours.components_)
    np.testing.assert_allclose(Phi @ Phi.T, (V * np.abs(values)) @ V.T, atol=1e-8)


def test_features_of_values_that_are_no_numbers_are_refused():
    for parameters in ({"kernel": "poly", "degree": 2.5, "coef0": -1.0}, {"kernel": lambda x, z: np.nan}):
        with pytest.raises(InvalidInput, match="not finite"):
            faces.Nystroem(n_components=9, random_state=0, **parameters).fit(X / 10)


CONSTANT = [
    {"kernel": "sigmoid", "gamma": 0.0},
    {"kernel": "sigmoid", "gamma": 0.0, "coef0": -1.0},
    {"kernel": "poly", "gamma": 0.0, "coef0": -1.0},
]


@pytest.mark.parametrize("parameters", CONSTANT, ids=str)
@pytest.mark.parametrize(("name", "y"), [("SVC", TWO), ("SVC", LABELS), ("SVR", NUMBERS), ("OneClassSVM", None)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_machines_with_constant_kernels_are_theirs(parameters, name, y, kind):
    with pytest.warns(DelegatedWarning, match=f"{name}: scikit-learn's own code runs"):
        ours = getattr(faces, name)(**parameters).fit(kind(X), y)
    with pytest.warns(DelegatedWarning, match="give gamma > 0"):
        predicted = ours.predict(kind(NEW))
    np.testing.assert_array_equal(predicted, getattr(svm, name)(**parameters).fit(kind(X), y).predict(kind(NEW)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parameters", [*CONSTANT, {"kernel": "rbf", "gamma": 1e308}], ids=str)
def test_extreme_parameters_are_theirs(parameters):
    rows, new = X[:30] / 10, NEW / 10
    ridges = [module.KernelRidge(**parameters).fit(rows, NUMBERS[:30]) for module in (faces, kernel_ridge)]
    np.testing.assert_allclose(*(one.predict(new) for one in ridges), rtol=1e-9, atol=1e-12)
    if parameters["gamma"] < 1e308:  # else any components do, or scikit-learn's LAPACK finds none of the unit matrix
        components = [module.KernelPCA(2, **parameters).fit(rows) for module in (faces, decomposition)]
        np.testing.assert_allclose(*(np.abs(one.transform(new)) for one in components), atol=1e-6)
    features = [
        module.Nystroem(n_components=9, random_state=0, **parameters).fit(rows)
        for module in (faces, kernel_approximation)
    ]
    np.testing.assert_allclose(*((one.transform(new) @ one.transform(rows).T) for one in features), atol=1e-9)


def test_values_beyond_float64_are_said_to_be_theirs():
    options = {"kernel": "rbf", "gamma": 1e308}
    ridge, components = faces.KernelRidge(**options), faces.KernelPCA(2, fit_inverse_transform=True, **options)
    with np.errstate(all="ignore"):
        for model, outputs in ((ridge, ridge.predict), (components, components.transform)):
            with pytest.warns(DelegatedWarning, match="not finite"):
                model.fit(X, NUMBERS)
            with pytest.warns(DelegatedWarning, match="not finite"):
                outputs(X)
        K = their_pairwise.rbf_kernel(components.X_transformed_fit_, gamma=1e308)
    np.testing.assert_allclose((K + np.eye(len(X))) @ components.dual_coef_, X, atol=1e-9)
    for degree, coef0 in ((2.5, -1.0), (3, 1e200)):  # a power that is complex, and one that overflows
        for model in (faces.KernelRidge(), faces.KernelPCA(2)):
            model.set_params(kernel="poly", gamma=0.0, degree=degree, coef0=coef0)
            with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"NaN|infinity"):
                model.fit(X, NUMBERS)


def test_negative_rows_have_no_chi2_for_any_gamma():
    every = faces.Nystroem("chi2", gamma=0.0, n_components=len(X), random_state=0)  # five rows may have none below 0
    for model in (faces.KernelRidge(kernel="chi2", gamma=0.0), every):
        with pytest.raises(ValueError, match="negative values"):
            model.fit(X, NUMBERS)
        model.fit(np.abs(X), NUMBERS)


@pytest.mark.parametrize(
    ("metric", "parameters"),
    [
        ("laplacian", {"gamma": 0}),
        ("chi2", {"gamma": 0}),
        ("rbf", {"gamma": -0.1}),
        ("laplacian", {"gamma": -0.1}),
        ("poly", {"gamma": -1.0, "coef0": 2.0}),
        ("poly", {"degree": -1}),
        ("poly", {"degree": 0.5}),
        ("rbf", {"gamma": np.linspace(0.1, 1.0, len(NEW))}),
        ("rbf", {"gamma": 1.0, "degree": 9, "filter_params": True, "n_jobs": 2}),
    ],
    ids=str,
)
def test_kernels_by_name_have_unchecked_parameters_as_there(metric, parameters):
    rows = np.abs(NEW) / 10
    ours, theirs = (one.pairwise_kernels(rows, metric=metric, **parameters) for one in (pairwise, their_pairwise))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "error"), [({"metric": "gaussian"}, "metric"), ({"metric": "rbf", "n_jobs": "all"}, "n_jobs")], ids=str
)
def test_the_other_parameters_of_kernels_by_name_are_checked_as_there(given, error):
    for module in (pairwise, their_pairwise):
        with pytest.raises(ValueError, match=f"'{error}' parameter of pairwise_kernels"):
            module.pairwise_kernels(X, **given)
        with pytest.raises(ValueError, match="'gamma' parameter of laplacian_kernel"):
            module.laplacian_kernel(X, gamma=0)


def test_unknown_parameters_are_refused_in_the_name_of_the_function(rng):
    rows = rng.standard_normal((5, 2))
    for module in (pairwise, their_pairwise):
        with pytest.raises(TypeError, match=r"rbf_kernel\(\) got an unexpected keyword argument 'foo'"):
            module.pairwise_kernels(rows, metric="rbf", foo=1)


def test_matrices_beyond_float64_are_theirs(monkeypatch):
    with pytest.warns(DelegatedWarning, match="rbf_kernel: scikit-learn's own code runs"), np.errstate(all="ignore"):
        ours = pairwise.rbf_kernel(X, gamma=1e308)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ours, their_pairwise.rbf_kernel(X, gamma=1e308))
    monkeypatch.setattr(work, "WORTH", 0.0)
    monkeypatch.setattr(work, "IMPORT", 0.0)
    for strict in (False, True):
        accelerate.install(strict=strict)
        try:
            with np.errstate(all="ignore"):
                if not strict:
                    np.testing.assert_array_equal(their_pairwise.rbf_kernel(X, gamma=1e308), ours)
                    assert "1 × in scikit-learn" in accelerate.summary()
                    assert "1 ×: KernelOperator: " in accelerate.summary()
                else:
                    with pytest.raises(InvalidInput, match="not finite"):
                        their_pairwise.rbf_kernel(X, gamma=1e308)
        finally:
            accelerate.uninstall()


def test_a_machine_without_a_margin_is_left_to_scikit_learn():
    """ρ is 0 there: decisions would be rounding over rounding."""
    rows, target = X[:, :1], LABELS % 2
    with pytest.warns(DelegatedWarning, match="finds no margin"):
        ours = faces.NuSVC(nu=0.05, kernel="linear").fit(rows, target)
    theirs = svm.NuSVC(nu=0.05, kernel="linear").fit(rows, target)
    # Its coefficients are 10⁷, so that the decisions have nine digits.
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


@pytest.mark.parametrize(
    ("n", "k", "solver"), [(210, 3, "auto"), (210, 12, "auto"), (60, 2, "arpack"), (60, 2, "randomized")]
)
def test_generators_go_on_as_after_scikit_learn(n, k, solver):
    rows, after = np.random.default_rng(0).normal(size=(n, 3)), []
    for module in (decomposition, faces):
        generator = np.random.RandomState(5)
        module.KernelPCA(k, kernel="rbf", eigen_solver=solver, random_state=generator).fit(rows)
        after.append(generator.uniform())
    assert after[0] == after[1]


def test_what_their_components_refuse_is_refused():
    with pytest.raises(TypeError, match="dense data is required"):
        faces.KernelPCA(2, kernel="precomputed").fit(sp.csr_array(X @ X.T))
    model = faces.KernelPCA(2, kernel="poly").fit(X)
    with pytest.raises(ValueError, match="infinity"), np.errstate(all="ignore"), pytest.warns(DelegatedWarning):
        model.transform(np.full((1, 2), 1e160))


def test_no_rows_have_no_labels_of_a_kernel_that_is_a_function():
    for module in (svm, faces):
        model = module.SVC(kernel=lambda a, b: a @ b.T).fit(X, LABELS)
        assert model.predict(np.empty((0, 2))).shape == (0,)
