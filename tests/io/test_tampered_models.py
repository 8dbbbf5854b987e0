"""Files of models with mixed rows (numbers beside sequences and text), changed by someone who makes the digest anew."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("safetensors")

from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save as as_bytes  # noqa: E402

from mercer import SVC, KernelDiscriminantAnalysis, KernelPCA, KernelRidge, KernelRidgeClassifier, load, save  # noqa: E402
from mercer.errors import MercerError, ModelFileError  # noqa: E402
from mercer.io import TableEncoder, TableModel  # noqa: E402
from mercer.io.models import _digest  # noqa: E402
from mercer.kernels import Gaussian, Spectrum, table_kernel  # noqa: E402

rng = np.random.default_rng(0)
N, NEW = 24, 7
FRAME = pd.DataFrame(
    {
        "gc": np.where(np.arange(N) == 3, np.nan, rng.normal(size=N)),
        "kind": rng.choice(list("uvw"), N),
        "seq": ["".join(rng.choice(list("ACGT"), 12)) for _ in range(N)],
        "note": [f"word{i} and {'ab'[i % 2]}" for i in range(N)],
    }
)
LABELS, TARGET = np.where(np.arange(N) % 3, "yes", "no"), rng.normal(size=N)


def of_table(estimator, y, **params):
    """A `TableModel` as the command line fits one: a kernel for the numbers, and one for each column of text."""
    encoder = TableEncoder(keep_text=True, text=("seq", "note")).fit(FRAME)
    numbers = len(encoder.feature_names_out_) - 2
    kernel = 0.5 * Gaussian(0.3).on(range(numbers)) + 0.25 * Spectrum(2).normalized().on([numbers])
    kernel = kernel + 0.25 * Spectrum(3).on([numbers + 1])
    return TableModel.of(encoder, estimator(kernel, **params).fit(encoder.transform(FRAME), y), "bound", N)


def of_kernel(estimator, *y, **params):
    kernel = table_kernel(FRAME, text=["note"]).with_part("note", Spectrum(2))
    return estimator(kernel=kernel, **params).fit(FRAME, *y)


MODELS = {
    "classes of a table": lambda: of_table(KernelRidgeClassifier, LABELS).with_temperature(0.7),
    "numbers of a table": lambda: of_table(KernelRidge, TARGET, alpha=0.1, fit_intercept=True),
    "ridge": lambda: of_kernel(KernelRidge, TARGET),
    "margins": lambda: of_kernel(SVC, LABELS),
    "discriminant": lambda: of_kernel(KernelDiscriminantAnalysis, LABELS),
    "components": lambda: of_kernel(KernelPCA, n_components=2),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Each model, with the header and the arrays of its file."""
    found, path = {}, tmp_path_factory.mktemp("models") / "m"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in MODELS.items():
            model = make()
            save(model, path)
            with safe_open(path, framework="numpy") as opened:
                arrays = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
                found[name] = model, opened.metadata(), arrays
    return found


def write(path, header, document, arrays):
    text = json.dumps(document)
    path.write_bytes(as_bytes(arrays, metadata={**header, "model": text, "sha256": _digest(text, arrays)}))


def at(document, *place):
    for key in place:
        document = document[key]
    return document


ENCODER = ("params", "encoder", "state")
ESTIMATOR = ("params", "estimator", "state")
CHANGES = {
    "a text among the numbers": lambda d: at(d, *ESTIMATOR, "X_fit_", "texts").__setitem__(0, "ACGT"),
    "NaN among the numbers": lambda d: at(d, *ESTIMATOR, "X_fit_", "texts").__setitem__(0, {"float": "nan"}),
    "a number for a sequence": lambda d: at(d, *ESTIMATOR, "X_fit_", "texts").__setitem__(-2, 1.0),
    "a row less": lambda d: at(d, *ESTIMATOR, "X_fit_", "shape").__setitem__(0, N - 1),
    "a table of numbers": lambda d: at(d, *ESTIMATOR).update(X_fit_=at(d, *ESTIMATOR, "dual_coef_")),
    "a column that is not there": lambda d: at(d, *ESTIMATOR).update(kernel_={"kernel": "spectrum(k=2).on([99])"}),
    "no classes": lambda d: at(d, *ESTIMATOR).pop("classes_"),
    "no rows": lambda d: d["state"].pop("n_rows_"),
    "no columns": lambda d: at(d, *ENCODER).pop("columns_"),
    "a column less": lambda d: at(d, *ENCODER, "columns_", "list").pop(),
    "a form less": lambda d: at(d, *ENCODER, "forms_", "list").pop(),
    "texts before numbers": lambda d: at(d, *ENCODER, "kinds_", "list").reverse(),
    "a kind that is none": lambda d: at(d, *ENCODER, "kinds_", "list").__setitem__(0, "pickle"),
    "a flag that is none": lambda d: at(d, *ENCODER, "flags_", "list").__setitem__(0, "maybe"),
    "a category less": lambda d: at(d, *ENCODER, "categories_", "list", 1, "list").pop(),
    "the report's time": lambda d: at(d, *ESTIMATOR, "report_", "fields").update(seconds=1.0),
    "the report's notes": lambda d: at(d, *ESTIMATOR, "report_", "fields").update(notes=None),
    "the report's budget": lambda d: at(d, *ESTIMATOR, "report_", "fields").update(memory_budget="much"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_of_mixed_rows_is_refused(tmp_path, written, change):
    _, header, arrays = written["classes of a table"]
    document = json.loads(header["model"])
    CHANGES[change](document)
    write(tmp_path / "m", header, document, arrays)
    with pytest.raises(ModelFileError) as raised:
        load(tmp_path / "m")
    assert "\n" not in str(raised.value)


VALUES = (
    None, True, 0, 1, -1, 1e308, 10**9, 2**70, "", "x", "gaussian", "category", "sequence", "missing", "upper", "%",
    [], {}, {"list": []}, {"tuple": [1]}, {"dict": []}, {"float": "nan"}, {"float": "inf"}, {"array": "0"},
    {"array": "0", "scalar": True}, {"array": "0", "order": "F"}, {"texts": ["a"], "shape": [1], "dtype": "str"},
    {"kernel": "linear()"}, {"kernel": "spectrum(k=2)"}, {"kernel": "spectrum(k=2).on([0])"},
    {"kernel": "precomputed()"}, {"type": "float"}, {"slice": [None, None, None]},
)  # fmt: skip


def places(value, here=()):
    """Where something is in the document; of long lists, such as the rows' texts, the ends only.

    Plain parameters are not among them: users may set what they like, and what uses them checks them.
    """
    if here:
        yield here
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else [*range(len(value))]
        if here[-1:] == ("params",):
            keys = [key for key in keys if key in ("encoder", "estimator", "kernel", "target")]
        for key in keys if len(keys) < 40 else [*keys[:8], *keys[-8:]]:
            yield from places(value[key], (*here, key))


def changed_document(random, document):
    """One value replaced, moved, doubled or taken away."""
    document = copy.deepcopy(document)
    found = list(places(document))
    place = found[random.integers(len(found))]
    inside, key = at(document, *place[:-1]), place[-1]
    way = random.integers(5)
    if way < 2:
        inside[key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    elif way == 2:
        inside[key] = copy.deepcopy(at(document, *found[random.integers(len(found))]))
    elif way == 3:
        del inside[key]
    elif isinstance(inside, list):
        inside.insert(key, inside[key])
    elif isinstance(inside[key], list):
        inside[key].reverse()
    return document


def changed_arrays(random, arrays):
    """One array of another shape or dtype, or with another entry."""
    key = list(arrays)[random.integers(len(arrays))]
    array = arrays[key]
    flat = array.reshape(-1).copy()
    flat[random.integers(flat.size)] = random.choice(
        [-1, 7, 100] if array.dtype.kind in "iub" else [np.nan, np.inf, 7.0]
    )
    ways = [flat, flat.reshape(array.shape), array[None], array.T, array[..., :0] if array.ndim else flat]
    ways += [array[:-1], np.concatenate([array, array[:1]])] if array.ndim else []
    ways += [array.astype(dtype) for dtype in (np.int8, np.bool_, np.float16, np.float32)]
    return {**arrays, key: np.ascontiguousarray(ways[random.integers(len(ways))])}


def check_loaded(model, other):
    """A file that is not refused has a model that predicts as many finite numbers or classes, or says why not."""
    rows = FRAME.iloc[:NEW]
    for name in ("predict", "transform", "decision_function", "predict_proba"):
        if not hasattr(model, name) or (name != "predict" and not hasattr(type(other), name)):
            continue
        if isinstance(model, TableModel) and name != "predict" and model.task == "regression":
            continue
        if name == "predict_proba" and not getattr(model, "probability", getattr(other, "has_probabilities", True)):
            continue
        wanted = getattr(model, name)(rows)
        try:
            found = getattr(other, name)(rows)
        except MercerError:
            continue
        assert found.shape[0] == NEW, name
        assert found.ndim == wanted.ndim, name
        assert found.dtype.kind != "f" or np.all(np.isfinite(found)), name
        if name == "predict_proba" or (name == "decision_function" and found.ndim == 2):
            assert found.shape[1] == len(other.classes_), name
    str(getattr(getattr(other, "estimator", other), "report_", ""))


@pytest.mark.parametrize("count", [80, pytest.param(3000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_any_change_is_refused_or_harmless(tmp_path, written, name, count):
    model, header, arrays = written[name]
    document, refused = json.loads(header["model"]), 0
    for number in range(count):
        random = np.random.default_rng([number, count])
        changed, others = document, arrays
        if random.random() < 0.7:
            changed = changed_document(random, changed)
        if random.random() < 0.4 or changed is document:
            others = changed_arrays(random, others)
        write(tmp_path / "m", header, changed, others)
        try:
            other = load(tmp_path / "m")
        except ModelFileError:
            refused += 1
            continue
        if type(other) is not type(model):
            continue
        try:
            check_loaded(model, other)
        except Exception as error:
            raise AssertionError(f"change {number}: {error!r}") from error
    assert refused > count // 3
