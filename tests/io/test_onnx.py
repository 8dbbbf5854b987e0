"""Exported graphs, computed by onnxruntime, against predictions of the models themselves."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from sklearn.base import clone, is_regressor  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import mercer  # noqa: E402
from mercer import kernels  # noqa: E402
from mercer.errors import InvalidInput  # noqa: E402
from mercer.io import to_onnx  # noqa: E402
from mercer.io.onnx import graph as graphs  # noqa: E402
from mercer.kernels.functions import maximum, where  # noqa: E402
from mercer.testing import assert_close  # noqa: E402

X, SPECIES = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
X, SPECIES = X[order], SPECIES[order]
X[0, 3] = 0.0  # and in a new row: 0/0 of the χ² distance
TRAIN, NEW = X[:80], np.vstack([X[60:], 3 * X[:5], np.zeros((1, 4))])
TARGET = np.sin(TRAIN[:, 0]) + TRAIN[:, 3]
TWO = np.column_stack([TARGET, TRAIN[:, 1]])
NAMES = np.array(["setosa", "virginica", "é β"])[SPECIES[:80]]
HALVES = (NAMES == "setosa").astype(int) * 3 - 1


@dataclass(frozen=True, repr=False)
class Cauchy(kernels.Kernel):
    """1/(1 + ‖x − z‖²/c)."""

    c: float = 2.0

    def formula(self, pair):
        return 1 / (1 + pair.sqdist / self.c)


class Everything(kernels.Kernel):
    """No kernel, but each operation and each pairing of a formula."""

    def formula(self, pair):
        s, t = np.sqrt(1 + pair.xx * pair.zz), np.log(2 + pair.l1)
        bounded = np.tanh(pair.dot / s) + np.sin(pair.min_sum) * np.cos(t) - abs(pair.chi2 - 1) / 7
        steps = where(pair.sqdist < 1.5, 0.5, where(pair.mismatches, -bounded, 1.0)) + (pair.l1 <= 2) * 0.25
        return maximum(steps, np.minimum(bounded, 0.3)) + t**1.5 + np.exp(-pair.x.min_sum) + pair.z.min_sum**-2


class OneSide(kernels.Kernel):
    def formula(self, pair):
        return pair.z.dot * 0.5


class NoSide(kernels.Kernel):
    def formula(self, pair):
        return 2.0


OF_ROWS = {
    "own": Cauchy(3.0),
    "sum": Cauchy() + 0.5 * kernels.Linear() + 1.0,
    "product": kernels.Gaussian(0.3).on([0, 2]) * kernels.Laplace(0.2).on([3, 1]) + kernels.Polynomial(3).on([1]),
    "normalized": kernels.Polynomial(2, coef0=1.0).normalized(),
    "scales": kernels.RationalQuadratic(gamma=0.4, alpha=0.7).with_length_scales([1.0, 0.5, 3.0, 0.2]),
    "periodic": kernels.Periodic(period=1.7, length_scale=0.8).on([1, 0]) + kernels.Matern(2.5),
    "histograms": kernels.Chi2(0.3) + kernels.AdditiveChi2() + kernels.Intersection(),
    "categories": kernels.Hamming() + kernels.Tanimoto(),
    "text": kernels.Formula("exp(-0.5 * sqdist) * (1 + dot)**2 + cos(l1) / 9"),
    "everything": Everything(),
    "one side": OneSide(),
    "constant": NoSide(),
}


def outputs(model, rows):
    """By name, what onnxruntime computes."""
    made = to_onnx(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == ["X"]
    found = session.run(None, {"X": rows})
    declared = [tuple(one.shape) for one in session.get_outputs()]
    assert [(len(rows), *shape[1:]) for shape in declared] == [one.shape for one in found]
    return dict(zip((one.name for one in session.get_outputs()), found, strict=True))


def check(model, rows, share=1e-10):
    """All outputs are those of the model's methods."""
    found = outputs(model, rows)
    transforms = hasattr(model, "transform") and not is_regressor(model)
    if "variable" in found:
        wanted = model.transform(rows) if transforms else model.predict(rows)
        assert_close(found["variable"], wanted.reshape(len(rows), -1), rtol=share)
    if "label" in found:
        assert_close(found["scores"], model.decision_function(rows), rtol=share)
        labels = model.predict(rows)
        assert (found["label"] == labels).all()
        assert found["label"].dtype.kind == ("O" if labels.dtype.kind == "U" else labels.dtype.kind)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        assert_close(found["probabilities"], model.predict_proba(rows), rtol=share)
    assert ("label" in found) == ("scores" in found) == hasattr(model, "decision_function")
    assert ("variable" in found) == (transforms or "label" not in found)
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", OF_ROWS)
def test_every_formula(name, dtype):
    model = mercer.KernelRidge().fit(TRAIN.astype(dtype), TARGET)
    model.kernel_, model.dual_coef_ = OF_ROWS[name], np.random.default_rng(1).uniform(0.5, 1.0, len(TRAIN))
    found = check(model, NEW.astype(dtype), 1e-10 if dtype == np.float64 else 1e-6)
    assert found["variable"].dtype == dtype


MODELS = [
    (mercer.KernelRidge(alpha=0.1), TARGET),
    (mercer.KernelRidge(alpha=0.1), TWO),
    (mercer.KernelRidge(alpha=0.1, solver="nystroem", n_landmarks=20), TARGET),
    (mercer.KernelRidgeCV(alphas=[0.1, 1.0]), TARGET),
    (mercer.SVR(C=3.0), TARGET),
    (mercer.NuSVR(), TARGET),
    (mercer.KernelLMS(tol=None), TARGET),
    (mercer.OnlineKernelRegressor(), TARGET),
    (mercer.KernelPLS(n_components=2), TWO),
    (mercer.GaussianProcessRegressor(noise=0.1, optimize=False), TARGET),
    (mercer.KernelPCA(n_components=3), None),
    (mercer.Nystroem(n_components=15), None),
    (mercer.KernelRidgeClassifier(), NAMES),
    (mercer.KernelRidgeClassifier(), HALVES),
    (mercer.KernelRidgeClassifierCV(alphas=[0.1, 1.0]), NAMES),
    (mercer.KernelPerceptron(method="averaged"), NAMES),
    (mercer.OnlineKernelClassifier(), HALVES > 0),
    (mercer.KernelLogisticRegression(alpha=0.1), NAMES),
    (mercer.KernelLogisticRegression(alpha=0.1), HALVES * 2.0),
    (mercer.KernelDiscriminantAnalysis(), NAMES),
    (mercer.KernelDiscriminantAnalysis(), HALVES),
    (mercer.SVC(), HALVES),
    (mercer.SVC(break_ties=True), NAMES),
    (mercer.SVC(decision_function_shape="ovo"), NAMES.astype(object)),
    (mercer.SVC(multi_class="ovr"), NAMES),
    (mercer.SVC(multi_class="ovr", probability=True), NAMES),
    (mercer.SVC(probability=True), HALVES),
    (mercer.NuSVC(nu=0.2), SPECIES[:80]),
    (mercer.OneClassSVM(nu=0.2), None),
]


@pytest.mark.parametrize("kernel", [OF_ROWS["sum"], kernels.Laplace(0.3).on([0, 1, 3])], ids=["sum", "laplace"])
@pytest.mark.parametrize(
    ("model", "target"), MODELS, ids=[f"{type(one).__name__}{i}" for i, (one, _) in enumerate(MODELS)]
)
def test_every_model(model, target, kernel):
    check(clone(model).set_params(kernel=kernel).fit(TRAIN, target), NEW)


def test_another_runtime():
    """ONNX's own, which is written for reading."""
    from onnx.reference import ReferenceEvaluator

    model = mercer.SVC(kernel=OF_ROWS["histograms"] + kernels.Laplace(0.3) + OF_ROWS["sum"]).fit(TRAIN, NAMES)
    label, scores = ReferenceEvaluator(to_onnx(model)).run(None, {"X": NEW[:9]})
    assert (label == model.predict(NEW[:9])).all()
    assert_close(scores, model.decision_function(NEW[:9]), rtol=1e-10)


# ---- more columns, scalers, few rows ---------------------------------------------------------------------------------

WIDE = rng.normal(size=(30, 40)) + 5.0


@pytest.mark.parametrize("kernel", [kernels.Gaussian(0.02), kernels.Matern(0.5, length_scale=4.0)], ids=str)
def test_distances_of_many_columns(kernel):
    """The training rows themselves have a distance of 0, whose root loses half of the digits of an expansion."""
    model = mercer.KernelRidge(kernel, alpha=0.1).fit(WIDE, WIDE[:, 0])
    check(model, np.vstack([WIDE, WIDE[:3] + 1e-6]))
    operators = [node.op_type for node in to_onnx(model).graph.node]
    assert ("Scan" in operators) == ("Sqrt" in operators) == isinstance(kernel, kernels.Matern)


SCALERS = [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), RobustScaler()]
SCALERS += [MaxAbsScaler(), MinMaxScaler((-2.0, 1.0)), MinMaxScaler(clip=True), MaxAbsScaler(clip=True), "passthrough"]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_pipelines_with_scalers(scaler):
    check(make_pipeline(scaler, MaxAbsScaler(), mercer.SVC()).fit(TRAIN, NAMES), NEW)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_pipelines_of_single_precision(scaler):
    """scikit-learn scales in float32, the graph in float64: they differ by float32's rounding."""
    rows, new = TRAIN.astype(np.float32), NEW.astype(np.float32)
    model = make_pipeline(scaler, mercer.KernelRidge("gaussian(gamma=0.5)", alpha=0.1)).fit(rows, TARGET)
    assert_close(outputs(model, new)["variable"][:, 0], model.predict(new), rtol=1e-5)


def test_sparse_rows_and_compressed_models():
    from scipy.sparse import csr_array

    check(mercer.SVC().fit(csr_array(TRAIN), NAMES), NEW)
    check(mercer.KernelRidge().fit(TRAIN, TARGET).compress(10), NEW)
    model = mercer.KernelRidge().fit(TRAIN, TARGET)
    assert len(outputs(model, NEW[:1])["variable"]) == 1
    assert outputs(model, NEW[:0])["variable"].shape == (0, 1)


def test_cca_has_the_scores_of_the_first_view():
    model = mercer.KernelCCA(n_components=2).fit(TRAIN[:, :2], TRAIN[:, 2:])
    assert_close(outputs(model, NEW[:, :2])["variable"], model.transform(NEW[:, :2]), rtol=1e-10)


@pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")
@pytest.mark.parametrize("n", [40, 700])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_outliers_on_the_border(kernel, n):
    """f(x) is ρ at such support vectors, up to rounding and to what the fit left; of a ρ of 0 everywhere."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    model = mercer.OneClassSVM(kernel, nu=0.3).fit(X - X.mean(axis=0))
    for rows in (model.support_vectors_, 2 * X):
        found = outputs(model, rows)
        np.testing.assert_array_equal(found["label"], model.predict(rows))
        np.testing.assert_array_equal(found["scores"] == 0, model.decision_function(rows) == 0)
        assert (found["scores"] == 0).any() or rows is not model.support_vectors_


# ---- files -----------------------------------------------------------------------------------------------------------


def test_files(tmp_path):
    model, path = mercer.KernelRidge().fit(TRAIN, TARGET), tmp_path / "ridge.onnx"
    made = to_onnx(model, path)
    assert path.read_bytes() == made.SerializeToString()
    to_onnx(mercer.SVC().fit(TRAIN, NAMES), path)  # an ONNX file is replaced
    session = onnxruntime.InferenceSession(str(path))
    assert [one.name for one in session.get_outputs()] == ["label", "scores"]
    link = tmp_path / "link.onnx"
    link.symlink_to(path)
    to_onnx(model, link)
    assert link.is_symlink()
    assert path.read_bytes() == made.SerializeToString()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.onnx", "ridge.onnx"]


@pytest.mark.parametrize("contents", [b"a,b\n1,2\n", b"\x08", b"\x08\x08ab"])
def test_files_of_another_kind_are_kept(contents, tmp_path):
    model, path = mercer.KernelRidge().fit(TRAIN, TARGET), tmp_path / "rows.csv"
    path.write_bytes(contents)
    with pytest.raises(InvalidInput, match=r"rows.csv exists and is not an ONNX file"):
        to_onnx(model, path)
    assert path.read_bytes() == contents


def test_saved_models_are_no_onnx_files(tmp_path):
    path = tmp_path / "ridge.mercer"
    mercer.save(mercer.KernelRidge().fit(TRAIN, TARGET), path)
    with pytest.raises(InvalidInput, match="is not an ONNX file"):
        to_onnx(mercer.load(path), path)


@pytest.mark.parametrize("name", ["absent/ridge.onnx", "."])
def test_places_that_hold_no_file(name, tmp_path):
    with pytest.raises(InvalidInput, match="to_onnx: "):
        to_onnx(mercer.KernelRidge().fit(TRAIN, TARGET), tmp_path / name)
    assert not list(tmp_path.iterdir())


# ---- what is refused -------------------------------------------------------------------------------------------------


REFUSED = [
    (lambda: mercer.GaussianProcessClassifier(optimize=False).fit(TRAIN, HALVES), "a GaussianProcessClassifier"),
    (lambda: mercer.KernelKMeans(2).fit(TRAIN), "a KernelKMeans"),
    (lambda: StandardScaler().fit(TRAIN), "a StandardScaler"),
    (lambda: make_pipeline(QuantileTransformer(n_quantiles=9), mercer.SVC()).fit(TRAIN, NAMES), "QuantileTransformer"),
    (lambda: mercer.SVC(probability=True).fit(TRAIN, NAMES), 'set multi_class="ovr" or probability=False'),
    (lambda: mercer.KernelPerceptron(method="voted").fit(TRAIN, NAMES), "votes of many functions"),
    (lambda: mercer.KernelRidge("spectrum(k=2)").fit(["abba", "baba", "bbbb"], [0.0, 1.0, 2.0]), "no formula"),
    (lambda: mercer.KernelRidge("precomputed").fit(TRAIN @ TRAIN.T, TARGET), "no formula"),
    (lambda: mercer.KernelRidge(kernels.Function(lambda x, z: x @ z.T)).fit(TRAIN, TARGET), "no formula"),
    (lambda: type("KernelRidge", (mercer.KernelRidge,), {})().fit(TRAIN, TARGET), "a KernelRidge"),
    (lambda: mercer.KernelSearchCV(mercer.SVC(), {"C": [1, 9]}).fit(TRAIN, NAMES), "give its best_estimator_"),
    (lambda: None, "a NoneType"),
]


@pytest.mark.parametrize(("make", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_refusals(make, why, tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(InvalidInput) as refused:
        to_onnx(make(), path)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not path.exists()


def test_without_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InvalidInput, match=r'onnx is not installed; pip install "mercer\[onnx\]"'):
        to_onnx(mercer.KernelRidge().fit(TRAIN, TARGET))


def test_models_that_were_not_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_onnx(mercer.SVC())


DAYS = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")


@pytest.mark.parametrize(
    "classes", [DAYS, np.array(["a", "\ud800"]), np.array([(1,), (2, 3)], object)], ids=["days", "half", "tuples"]
)
def test_classes_that_no_file_holds(classes):
    model = mercer.KernelRidgeClassifier().fit(TRAIN, HALVES)
    model.classes_ = classes
    with pytest.raises(InvalidInput, match="to_onnx: classes of which one is"):
        to_onnx(model)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", bool])
def test_labels_have_the_type_of_the_classes(dtype):
    y = (HALVES > 0).astype(dtype)
    model = mercer.KernelRidgeClassifier().fit(TRAIN, y)
    found = outputs(model, NEW)["label"]
    assert (found == model.predict(NEW).astype(found.dtype)).all()
    assert found.dtype == {"u": np.uint64, "i": np.int64, "f": np.float64, "b": bool}[y.dtype.kind]


@pytest.mark.parametrize("largest", [1000, 2700])  # the rows take 2560 bytes, the coefficients 640
def test_arrays_that_no_file_holds(largest, monkeypatch):
    monkeypatch.setattr(graphs, "LARGEST", largest)
    with pytest.raises(InvalidInput, match=r"call compress\(\) first"):
        to_onnx(mercer.KernelRidge().fit(TRAIN, TARGET))
