"""What `save` writes, `load` reads: every estimator, with every kind of kernel and rows, and every parameter."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import mercer
from mercer.errors import InvalidInput, MemoryExceeded, MercerError
from mercer.kernels import Gaussian, GlobalAlignment, Kernel, SetKernel, Spectrum, table_kernel

pytest.importorskip("safetensors")

RNG = np.random.default_rng(0)
N = 24
ROWS = RNG.normal(size=(N, 3))
TARGET = ROWS[:, 0] + 0.1 * ROWS[:, 1]
LABELS = np.where(TARGET > 0, "up", "down")
CLASSIFIERS = ("SVC", "NuSVC", "Perceptron", "Classifier", "Discriminant", "Logistic")


@dataclass(frozen=True, repr=False)
class Shared(Kernel):
    """Keys that two dicts share with equal values; or places of two lists."""

    weight: float = 1.0

    @property
    def domain(self):
        return "any"

    def block(self, X, Z):
        return self.weight * np.array([[1.0 + len(items(x) & items(z)) for z in Z] for x in X])

    def diagonal(self, X):
        return self.weight * np.array([1.0 + len(items(x)) for x in X])


def items(x):
    return set(x.items() if isinstance(x, dict) else enumerate(x))


def words(rng):
    return ["".join(rng.choice(list("abc"), 6)) for _ in range(N)]


WORDS = words(RNG)
MIXED = np.empty((N, 2), dtype=object)
MIXED[:, 0], MIXED[:, 1] = ROWS[:, 0], WORDS

OBJECTS = {
    "vectors": (lambda: Gaussian(0.3), ROWS),
    "float32": (lambda: "laplace", ROWS.astype(np.float32)),
    "strings": (lambda: Spectrum(2), WORDS),
    "tokens": (lambda: Spectrum(1), [list(RNG.integers(0, 4, 5).tolist()) for _ in range(N)]),
    "sets": (lambda: SetKernel(), [RNG.normal(size=(3, 2)) for _ in range(N)]),
    "series": (lambda: GlobalAlignment(1.0), [RNG.normal(size=(4, 1)) for _ in range(N)]),
    "dicts": (Shared, [{"a": int(i), "b": float(i) / 2} for i in RNG.integers(0, 4, N)]),
    "lists": (Shared, RNG.integers(0, 3, (N, 4)).tolist()),
    "mixed rows": (lambda: Gaussian(0.3).on([0]) + Spectrum(2).on([1]), MIXED),
}


def estimators():
    found = {}
    for name in mercer.__all__:
        one = getattr(mercer, name)
        own = inspect.isclass(one) and hasattr(one, "fit") and name != "KernelSearchCV"
        if own and "kernel" in one().get_params():
            found[name] = one
    return found


ESTIMATORS = estimators()


def fitted(name, rows, **params):
    """The model, or None where these parameters or rows are refused."""
    y = LABELS if any(part in name for part in CLASSIFIERS) else TARGET
    y = y.reshape(-1, 1) if name == "KernelCCA" else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ESTIMATORS[name](**params).fit(rows, y)
        except (MercerError, ValueError, TypeError, AttributeError, IndexError):
            return None


def check_round_trip(model, rows, path):
    """Either `save` refuses the model, or `load` has it as it was."""
    try:
        mercer.save(model, path)
    except InvalidInput:
        return False
    again = mercer.load(path, kernels=[Shared])
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    for method in ("predict", "transform", "decision_function"):
        if hasattr(model, method):
            try:
                ours = getattr(model, method)(rows)
            except MemoryExceeded:  # its budget is a parameter like others
                continue
            theirs = getattr(again, method)(rows)
            assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), method
    return True


@pytest.mark.parametrize("kind", OBJECTS)
def test_every_estimator_on_every_kind_of_rows(tmp_path, kind):
    kernel, rows = OBJECTS[kind][0](), OBJECTS[kind][1]
    models = {name: fitted(name, rows, kernel=kernel) for name in ESTIMATORS}
    models = {name: model for name, model in models.items() if model is not None}
    assert len(models) > 12, sorted(models)
    for name, model in models.items():
        assert check_round_trip(model, rows, tmp_path / name), name


def test_a_table_kernel_with_texts(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": ROWS[:, 0], "text": WORDS})
    kernel = table_kernel(frame, text=["text"]).with_part("text", Spectrum(2).normalized())
    for name in ("KernelRidge", "SVC", "KernelPCA"):
        assert check_round_trip(fitted(name, frame, kernel=kernel), frame, tmp_path / name)


VALUES = (None, True, 2, 0.5, 7.0, "auto", "nystroem", "1GB", np.float64(0.25), np.int64(3), [0.5], np.array([0.5]), {})


@pytest.mark.parametrize("count", [8, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter(tmp_path, name, count):
    """A draw of them in the suite, all of them in the long run."""
    kernel = "polynomial" if name == "PolynomialSketch" else Gaussian(0.3)
    names = [one for one in ESTIMATORS[name]().get_params(deep=False) if one not in ("kernel", "max_iter")]
    pairs = [(one, value) for one in names for value in VALUES]
    for place in np.random.default_rng(0).permutation(len(pairs))[:count]:
        parameter, value = pairs[place]
        model = fitted(name, ROWS, kernel=kernel, **{parameter: value})
        if model is not None:
            check_round_trip(model, ROWS, tmp_path / "m")
    assert check_round_trip(fitted(name, ROWS, kernel=kernel), ROWS, tmp_path / "m")
