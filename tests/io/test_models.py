"""Model files: what was saved is what is loaded, and what is no model file is refused."""

from __future__ import annotations

import json
import pickle
import struct
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from mercer import (
    SVC,
    SVR,
    EmpiricalKernelMap,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    RandomFourierFeatures,
    load,
    save,
)
from mercer.errors import InvalidInput, MercerError, ModelFileError
from mercer.io.models import _digest, as_bytes
from mercer.kernels import Function, Gaussian, Linear, Matern, Precomputed

safetensors = pytest.importorskip("safetensors")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
LABELS = np.where(X[:, 0] > 0, "warm", np.where(X[:, 1] > 0, "mild", "cold"))
NEW = rng.normal(size=(17, 4))

MODELS = {
    "ridge": lambda: KernelRidge(Gaussian(gamma="median"), 0.1).fit(X, Y[:, 0]),
    "ridge, two targets": lambda: KernelRidge("matern", 0.1, fit_intercept=True).fit(X, Y),
    "ridge, float32": lambda: KernelRidge("laplace", 0.1).fit(X.astype(np.float32), Y[:, 0]),
    "ridge, composed": lambda: KernelRidge(0.5 * Gaussian(0.1).on([0, 2]) + Linear() * Matern(nu=2.5)).fit(X, Y[:, 0]),
    "ridge, by columns": lambda: KernelRidge("gaussian", 0.1).fit(np.asfortranarray(X), np.asfortranarray(Y)),
    "ridge, sparse": lambda: KernelRidge("gaussian", 0.1).fit(sp.csr_matrix(X), Y[:, 0]),
    "ridge, λ each, weights": lambda: KernelRidge("gaussian", [0.1, 1.0]).fit(X, Y, 1 + np.arange(len(X)) % 3),
    "ridge, chosen": lambda: KernelRidgeCV(["linear", Gaussian(0.2)], store_cv_results=True).fit(X, Y),
    "classifier, chosen": lambda: KernelRidgeClassifierCV(cv=3).fit(X, LABELS),
    "classifier": lambda: KernelRidgeClassifier("gaussian", 0.1).fit(X, LABELS),
    "classifier, weights": lambda: KernelRidgeClassifier(class_weight={"warm": 2.0, "mild": 1.0, "cold": 1.0}).fit(
        X, LABELS
    ),
    "classifier, two": lambda: KernelRidgeClassifier(memory="1GB").fit(X, LABELS == "warm"),
    "classifier, integers": lambda: KernelRidgeClassifier().fit(X, (3 * X[:, 0]).astype(int)),
    "pca": lambda: KernelPCA(3, Gaussian(gamma=0.2)).fit(X),
    "pca, landmarks": lambda: KernelPCA(3, Gaussian(gamma=0.2), solver="nystroem", n_landmarks=20).fit(X),
    "pca, chunks": lambda: KernelPCA(3, Gaussian(gamma=0.2)).partial_fit(X[:40]).partial_fit(X[40:]),
    "pca, decoder": lambda: KernelPCA(
        3, Gaussian(gamma=0.2), fit_inverse_transform=True, preimage="fixed_point", landmarks=X[:9]
    ).fit(X),
    "discriminant": lambda: KernelDiscriminantAnalysis("gaussian").fit(X, LABELS),
    "logistic": lambda: KernelLogisticRegression("gaussian", 0.1).fit(X, LABELS),
    "logistic, two": lambda: KernelLogisticRegression(class_weight="balanced").fit(X, LABELS == "warm"),
    "lms": lambda: KernelLMS(Gaussian(gamma=0.2)).fit(X, Y),
    "perceptron": lambda: KernelPerceptron(Gaussian(0.2), keep_history=50, max_iter=100, tol=None).fit(X, LABELS),
    "perceptron, voted": lambda: KernelPerceptron("linear", method="voted", max_iter=5, tol=None).fit(X, LABELS),
    "margins": lambda: SVC(kernel=Gaussian(0.2)).fit(X, LABELS),
    "margins, one against the rest": lambda: SVC(multi_class="ovr").fit(X, LABELS),
    "margins, two": lambda: SVC(2.0, "linear").fit(sp.csr_array(X), LABELS == "warm"),
    "margins, ν": lambda: NuSVC(0.2, class_weight="balanced").fit(X.astype(np.float32), LABELS),
    "tube": lambda: SVR(kernel=Gaussian(0.2)).fit(X, Y[:, 0], sample_weight=np.arange(len(X)) % 3),
    "tube, ν": lambda: NuSVR(kernel="laplace").fit(X, Y[:, 0]),
    "one class": lambda: OneClassSVM(nu=0.3).fit(X),
    "online, merge": lambda: OnlineKernelClassifier(Gaussian(0.2), budget=10).fit(X, LABELS == "warm"),
    "online, project": lambda: OnlineKernelClassifier("linear", strategy="project").fit(X, LABELS),
    "online, krls": lambda: OnlineKernelRegressor(Gaussian(0.2), budget=20).fit(X, Y),
    "online, qklms": lambda: OnlineKernelRegressor(Gaussian(0.2), method="qklms").fit(X, Y[:, 0]),
    "clusters": lambda: KernelKMeans(3, Gaussian(0.2)).fit(X),
    "clusters, weights": lambda: KernelKMeans(3).fit(X, sample_weight=np.arange(len(X)) % 3),
    "clusters, landmarks": lambda: KernelKMeans(3, solver="nystroem", n_landmarks=20).fit(
        X, sample_weight=np.arange(len(X)) % 3
    ),
    "clusters, batches": lambda: KernelKMeans(3, solver="nystroem", n_landmarks=20, batch_size=30).fit(X),
    "spectral clusters": lambda: KernelSpectralClustering(3, n_components=4).fit(
        X, sample_weight=np.arange(len(X)) % 3
    ),
    "nystroem": lambda: Nystroem("gaussian", 10).fit(X),
    "nystroem, sparse": lambda: Nystroem("gaussian", 10).fit(sp.csr_matrix(X)),
    "empirical map": lambda: EmpiricalKernelMap("gaussian").fit(X),
    "empirical map, landmarks": lambda: EmpiricalKernelMap("gaussian", 10, landmarks="kmeans").fit(X),
    "fourier": lambda: RandomFourierFeatures("gaussian", 11).fit(X),
}


def outputs(model):
    names = [name for name in ("predict", "predict_proba", "decision_function", "transform") if hasattr(model, name)]
    found = [getattr(model, name)(NEW) for name in names]
    if isinstance(model, KernelPCA):
        found += [model.spe(NEW), model.hotelling_t2(NEW)]
        found += [model.inverse_transform(found[0])] if model.fit_inverse_transform else []
    return found


def test_a_model_of_chunks_goes_on_after_it_was_loaded(tmp_path):
    model = MODELS["pca, chunks"]()
    save(model, tmp_path / "m")
    again = load(tmp_path / "m").partial_fit(NEW)
    np.testing.assert_array_equal(again.transform(X), model.partial_fit(NEW).transform(X))
    assert again.n_samples_seen_ == 77


CORRUPT_PCA = {
    "no moments": lambda _, model: model["state"].update(_feature_moments=3),
    "a mean of another length": lambda _, model: model["state"].update(mean_coef_=model["state"]["eigenvalues_"]),
    "another decoder": lambda _, model: model["state"]["decoder_"]["state"].update(n_features_in_=5),
    "no decoder": lambda _, model: model["state"].update(decoder_="text"),
}


@pytest.mark.parametrize("name", CORRUPT_PCA)
def test_a_changed_kernel_pca_is_refused(tmp_path, name):
    model = KernelPCA(3, Gaussian(0.2), solver="nystroem", landmarks=X[:9], fit_inverse_transform=True).fit(X)
    save(model, tmp_path / "m")
    edited(tmp_path / "m", CORRUPT_PCA[name])
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


CORRUPT_CLUSTERS = {
    "clusters": ("labels_", "cluster_weights_"),
    "clusters, weights": ("center_norms_", "labels_"),
    "clusters, landmarks": ("dual_coef_", "labels_"),
    "spectral clusters": ("cluster_centers_", "cluster_weights_"),
}


@pytest.mark.parametrize("name", CORRUPT_CLUSTERS)
def test_changed_clusters_are_refused(tmp_path, name):
    for attribute in CORRUPT_CLUSTERS[name]:
        model = MODELS[name]()
        setattr(model, attribute, np.full_like(getattr(model, attribute)[..., :2], 5))
        with pytest.raises(InvalidInput, match="does not hold together"):
            save(model, tmp_path / "m")
        (tmp_path / "m").write_bytes(as_bytes(model))
        with pytest.raises(ModelFileError):
            load(tmp_path / "m")


ONLINE = [name for name in MODELS if name.startswith("online")]


@pytest.mark.parametrize("name", ONLINE)
def test_an_online_model_goes_on_after_it_was_loaded(tmp_path, name):
    model = MODELS[name]()
    save(model, tmp_path / "m")
    again, targets = (
        load(tmp_path / "m"),
        {"merge": LABELS == "warm", "krls": Y, "qklms": Y[:, 0]}.get(name[8:], LABELS),
    )
    again.partial_fit(X[::-1].copy(), targets[::-1].copy())
    model.partial_fit(X[::-1].copy(), targets[::-1].copy())
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("name", ONLINE)
def test_a_changed_state_of_an_online_model_is_refused(tmp_path, name):
    for change in ("shorter", "missing", "text"):
        model = MODELS[name]()
        key = next(key for key, one in model._state.items() if np.ndim(one) and len(one) == len(model.X_fit_))
        model._state[key] = model._state[key][:-1]
        if change == "missing":
            del model._state[key]
        elif change == "text":
            model._state = "none"
        with pytest.raises(InvalidInput, match="does not hold together"):
            save(model, tmp_path / "m")
        (tmp_path / "m").write_bytes(as_bytes(model))
        with pytest.raises(ModelFileError):
            load(tmp_path / "m")


@pytest.mark.parametrize("part", ["rows", "classes", "visits", None])
def test_changed_votes_are_refused(tmp_path, part):
    model = MODELS["perceptron, voted"]()
    if part is None:
        model.votes_.pop("rows")
    else:
        model.votes_[part] = model.votes_[part][:-1] if part == "visits" else model.votes_[part] + 100
    with pytest.raises(InvalidInput, match="does not hold together"):
        save(model, tmp_path / "m")
    (tmp_path / "m").write_bytes(as_bytes(model))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_bit_identical(tmp_path, name):
    model = MODELS[name]()
    path = tmp_path / "model"
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    for ours, theirs in zip(outputs(model), outputs(again), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes() if ours.dtype.kind != "O" else ours.tolist() == theirs.tolist()
    assert vars(again).keys() == vars(model).keys()
    assert str(again.report_) == str(model.report_)


def test_data_frames_keep_their_names(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = KernelRidge().fit(frame, Y[:, 0])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_an_unfitted_model_and_precomputed_kernels(tmp_path):
    save(KernelRidge("gaussian(gamma=0.5)", 3.0), tmp_path / "m")
    assert load(tmp_path / "m").get_params() == KernelRidge("gaussian(gamma=0.5)", 3.0).get_params()
    K = Linear()(X)
    model = KernelRidge(Precomputed(), 0.1).fit(K, Y[:, 0])
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(K), model.predict(K))


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    for alpha in (1.0, 2.0):
        save(KernelRidge(alpha=alpha), tmp_path / "m")
    assert load(tmp_path / "m").alpha == 2.0
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    save(KernelRidge(alpha=1.0), tmp_path / "m")
    with pytest.raises(InvalidInput):
        save(KernelRidge(Function(lambda a, b: a @ b.T)), tmp_path / "m")
    assert load(tmp_path / "m").alpha == 1.0


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(InvalidInput, match=r"is a Python function.*kernel class"):
        save(KernelRidge(Function(lambda a, b: a @ b.T)).fit(X, Y[:, 0]), tmp_path / "m")
    with pytest.raises(InvalidInput, match="one of mercer's own models"):
        save(Ridge(), tmp_path / "m")
    search = KernelSearchCV(KernelRidge(), {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y[:, 0])
    with pytest.raises(InvalidInput, match="save its best_estimator_"):
        save(search, tmp_path / "m")
    with pytest.raises(InvalidInput, match="only data can be saved"):
        save(KernelPCA(random_state=np.random.RandomState(0)), tmp_path / "m")
    with pytest.raises(InvalidInput, match="cannot be written"):
        save(KernelRidge(), tmp_path / "nowhere" / "m")
    assert not list(tmp_path.iterdir())


def test_files_that_are_none(tmp_path):
    path = tmp_path / "m"
    with pytest.raises(ModelFileError, match="no such file"):
        load(path)
    with pytest.raises(ModelFileError, match="folder"):
        load(tmp_path)
    for content in (b"", b"x", b"hello, world\n" * 100, pickle.dumps({"a": 1}), b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a model file"):
            load(path)


def test_other_safetensors_files(tmp_path):
    from safetensors.numpy import save_file

    save_file({"x": np.ones(3)}, tmp_path / "m")
    with pytest.raises(ModelFileError, match="something else"):
        load(tmp_path / "m")


def test_a_file_cut_anywhere_is_refused(tmp_path):
    save(MODELS["ridge"](), tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    for length in [*range(0, 200, 20), len(data) // 2, len(data) - 8, len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            load(tmp_path / "cut")


@pytest.mark.parametrize("name", ["ridge", "pca, chunks", "unfitted"])
def test_a_changed_byte_is_found(tmp_path, name):
    """Wherever it is: in the arrays it would be other predictions, without a word."""
    model = KernelRidge(alpha=0.5) if name == "unfitted" else MODELS[name]()
    save(model, tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    places = [
        8 + data[8 : 8 + length].index(b"alpha"),
        *range(8 + length, len(data), max((len(data) - length) // 40, 1)),
    ]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 0x10
        (tmp_path / "changed").write_bytes(changed)
        with pytest.raises(ModelFileError, match="bytes have changed"):
            load(tmp_path / "changed")


def test_a_file_without_its_digest_is_refused(tmp_path):
    save(KernelRidge(), tmp_path / "m")
    edited(tmp_path / "m", lambda header, _: header.pop("sha256"))
    with pytest.raises(ModelFileError, match="bytes have changed"):
        load(tmp_path / "m")


def edited(path, change):
    """The file with its header, or the model in it, changed by someone who makes the digest anew."""
    from safetensors.numpy import load as load_arrays

    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    model = json.loads(header["__metadata__"]["model"])
    change(header["__metadata__"], model)
    header["__metadata__"].setdefault("model", "")
    if header["__metadata__"]["model"] != "broken":
        header["__metadata__"]["model"] = json.dumps(model)
    if "sha256" in header["__metadata__"]:
        header["__metadata__"]["sha256"] = _digest(header["__metadata__"]["model"], load_arrays(data))
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def test_a_newer_format_says_update(tmp_path):
    save(KernelRidge(), tmp_path / "m")
    edited(tmp_path / "m", lambda header, _: header.update(version="2", mercer="9.0"))
    with pytest.raises(ModelFileError, match=r"format 2 \(mercer 9.0\).*update mercer"):
        load(tmp_path / "m")


def put(part, key, value):
    return lambda _, model: model[part].update({key: value})


CORRUPT = {
    "a class of Python": lambda _, model: model.update(model="os.system"),
    "a class we do not list": lambda _, model: model.update(model="Ridge"),
    "a kernel that runs code": put("state", "kernel_", {"kernel": "__import__('os').getcwd()"}),
    "a kernel of a number": put("state", "kernel_", {"kernel": 5}),
    "no kernel": put("state", "kernel_", "gaussian"),
    "an unknown parameter": put("params", "power", 2),
    "a text for an array": put("state", "dual_coef_", "text"),
    "an array that is not there": put("state", "dual_coef_", {"array": "77"}),
    "an array of another length": put("state", "dual_coef_", {"texts": [], "shape": [0], "dtype": "object"}),
    "a scalar for an array": put("state", "dual_coef_", 1.0),
    "no array": lambda _, model: model["state"].pop("dual_coef_"),
    "a method": put("state", "_validate_new", "text"),
    "a magic name": put("state", "__class__", "text"),
    "a name that is none": put("state", "a b_", 1),
    "a strange kind": put("state", "report_", {"pickle": "gASVAAAA"}),
    "a report of nothing": put("state", "report_", {"record": "Report", "fields": 1}),
    "a dtype of two": put("params", "kernel", {"dtype": "(2,f8"}),
    "a report that is a number": put("state", "report_", 3),
    "columns that do not fit": put("state", "n_features_in_", 9),
    "a list": lambda header, _: header.update(model="broken"),
    "no version": lambda header, _: header.update(version="one"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_changed_file_is_refused(tmp_path, name):
    save(MODELS["ridge"](), tmp_path / "m")
    edited(tmp_path / "m", CORRUPT[name])
    with pytest.raises(ModelFileError) as raised:
        load(tmp_path / "m")
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, MercerError)


def test_the_change_itself_does_no_harm(tmp_path):
    save(MODELS["ridge"](), tmp_path / "m")
    edited(tmp_path / "m", lambda header, model: None)
    assert load(tmp_path / "m").alpha == 0.1


def test_what_a_later_version_reports_is_left_out(tmp_path):
    save(MODELS["ridge"](), tmp_path / "m")
    fields = {"n": 3, "weather": {"a later kind": 1}}
    edited(tmp_path / "m", put("state", "report_", {"record": "Report", "fields": fields}))
    report = load(tmp_path / "m").report_
    assert report.n == 3
    assert not hasattr(report, "weather")


def test_deep_nesting_is_refused(tmp_path):
    deep = 1
    for _ in range(100):
        deep = {"list": [deep]}
    save(MODELS["ridge"](), tmp_path / "m")
    edited(tmp_path / "m", put("params", "memory", deep))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_without_safetensors_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    for work in (lambda: save(KernelRidge(), tmp_path / "m"), lambda: load(tmp_path / "m")):
        with pytest.raises(InvalidInput, match=r'pip install "mercer\[io\]"'):
            work()
