"""Models with kernels that have no text: repaired ones, and those of classes that the user wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest

safetensors = pytest.importorskip("safetensors")

from mercer import SVC, KernelPCA, KernelRidge, Nystroem, RepairedKernel, load, save, table_kernel  # noqa: E402
from mercer.engine.backend import is_native  # noqa: E402
from mercer.errors import InvalidInput, ModelFileError  # noqa: E402
from mercer.io.models import _digest  # noqa: E402
from mercer.kernels import Gaussian, Kernel, Linear, Precomputed, SetKernel, Sigmoid, Spectrum  # noqa: E402
from mercer.testing import assert_close  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
FIRST = np.sin(X[:, 0])
NEW = rng.normal(size=(17, 4))


@dataclass(frozen=True, repr=False)
class Quartic(Kernel):
    """1/(1 + ‖x − z‖²/c)²."""

    c: float = 1.0

    def formula(self, pair):
        return (1 + pair.sqdist / self.c) ** -2.0


@dataclass(frozen=True, repr=False)
class Shared(Kernel):
    """|x ∩ z| of sets."""

    domain = "any"

    def block(self, X, Z):
        return np.array([[len(x & z) for z in Z] for x in X], float)


@dataclass(frozen=True, repr=False)
class Alike(Kernel):
    """The number of equal letters at equal places, and a table of weights."""

    weights: np.ndarray

    @property
    def domain(self):
        return "any"

    def block(self, X, Z):
        return np.array(
            [[sum(w * (a == b) for w, a, b in zip(self.weights, x, z, strict=False)) for z in Z] for x in X]
        )

    def diagonal(self, X):
        return np.array([self.block([x], [x])[0, 0] for x in X])


class Undeclared(Kernel):
    def formula(self, pair):
        return self.scale * pair.dot


OWN = [
    Quartic(2.0),
    0.5 * Quartic(3.0) + Linear(),
    (Quartic() * Gaussian(0.1)).normalized() ** 2,
    Quartic(2.0).on([0, 2]) + Quartic().with_length_scales([1.0, 2.0, 3.0, 4.0]),
]


@pytest.mark.parametrize("kernel", OWN, ids=repr)
def test_a_kernel_class_of_the_users(tmp_path, kernel):
    model = KernelRidge(kernel, 0.1).fit(X, FIRST)
    save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"the class Quartic \(of the module .*kernels=\[Quartic\]"):
        load(tmp_path / "m")
    again = load(tmp_path / "m", kernels=[Quartic])
    assert again.kernel == kernel
    assert again.predict(NEW).tobytes() == model.predict(NEW).tobytes()


def test_parameters_may_be_arrays_and_rows_objects(tmp_path):
    words = ["abc", "abd", "xbd", "xyz"]
    model = KernelRidge(Alike(np.array([1.0, 2.0, 3.0])), 0.1).fit(words, [0.0, 1.0, 2.0, 3.0])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m", kernels=(Alike, Quartic))
    np.testing.assert_array_equal(again.predict(["abz", "xyd"]), model.predict(["abz", "xyd"]))


def test_compositions_of_kernels_without_a_text(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KernelRidge(2.0 * table_kernel(frame) + 0.5, 0.1).fit(frame, FIRST)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").predict(frame).tobytes() == model.predict(frame).tobytes()
    bags = [X[i : i + 3] for i in range(0, 60, 3)]
    model = KernelRidge(SetKernel(Quartic()), 0.1).fit(bags, np.arange(20.0))
    save(model, tmp_path / "m")
    assert load(tmp_path / "m", kernels=[Quartic]).predict(bags).tobytes() == model.predict(bags).tobytes()


@pytest.mark.parametrize("policy", ["clip", "flip", "shift"])
@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_a_repaired_kernel(tmp_path, policy):
    kernel = RepairedKernel(Sigmoid(1.0, -1.0), policy)
    for model in (KernelRidge(kernel, 1.0).fit(X, FIRST), KernelPCA(2, kernel + Linear()).fit(X), KernelRidge(kernel)):
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        assert repr(again.kernel) == repr(model.kernel)
        if not hasattr(model, "kernel_"):
            continue
        for ours, theirs in zip(outputs(model), outputs(again), strict=True):
            assert_close(ours, theirs, rtol=1e-12)
            assert ours.tobytes() == theirs.tobytes() or not is_native()  # BLAS, by the place of arrays in memory
    fitted = KernelRidge(kernel, 1.0).fit(X, FIRST)
    save(fitted, tmp_path / "m")
    assert str(load(tmp_path / "m").kernel_.repair) == str(fitted.kernel_.repair)


def edited(path, change):
    """The file with its model changed, by someone who makes the digest anew."""
    with safetensors.safe_open(path, "numpy") as file:
        header, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    model = json.loads(header["model"])
    change(model)
    text = json.dumps(model)
    path.write_bytes(safetensors.numpy.save(arrays, {**header, "model": text, "sha256": _digest(text, arrays)}))


def outputs(model):
    return [model.transform(NEW) if hasattr(model, "transform") else model.predict(NEW)]


@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
def test_a_repaired_matrix_and_repaired_strings(tmp_path):
    K = np.tanh(X @ X.T - 1.0)
    labels = FIRST > 0
    model = SVC(1.0, RepairedKernel(Precomputed(), "flip")).fit(K, labels)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").decision_function(K).tobytes() == model.decision_function(K).tobytes()
    words = ["banana", "bandana", "cabana", "fizz", "buzz", "fuzz"]
    features = Nystroem(RepairedKernel(Spectrum(2)), 4).fit(words)
    save(features, tmp_path / "m")
    assert load(tmp_path / "m").transform(["band"]).tobytes() == features.transform(["band"]).tobytes()


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(InvalidInput, match=r"'scale', which is not a field.*frozen dataclass"):
        kernel = Undeclared()
        object.__setattr__(kernel, "scale", 2.0)
        save(KernelRidge(kernel), tmp_path / "m")
    with pytest.raises(InvalidInput, match="nested too deeply"):
        save(KernelRidge(reduce(lambda k, _: (k + 1.0).normalized(), range(30), Quartic(2.0))), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_loaded_is_said(tmp_path):
    save(KernelRidge(Quartic(2.0)).fit(X, FIRST), tmp_path / "m")
    with pytest.raises(InvalidInput, match=r"kernels has 'Quartic'"):
        load(tmp_path / "m", kernels=["Quartic"])
    with pytest.raises(InvalidInput, match="give kernel classes"):
        load(tmp_path / "m", kernels=dict)
    again = load(tmp_path / "m", kernels=Quartic)
    assert again.kernel_ == Quartic(2.0)
    edited(tmp_path / "m", lambda model: model["state"]["kernel_"]["fields"].update(surprise=1))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m", kernels=[Quartic])
    edited(tmp_path / "m", lambda model: model["state"].update(kernel_={"class": "os.system", "fields": {}}))
    with pytest.raises(ModelFileError, match="a class without a name"):
        load(tmp_path / "m", kernels=[Quartic])


@pytest.mark.filterwarnings("ignore::mercer.errors.IndefiniteKernelWarning")
@pytest.mark.parametrize("change", [{"policy": "flip"}, {"points": None}, {"repair": None}, {"repair": 3}])
def test_a_changed_repair_is_refused(tmp_path, change):
    save(KernelRidge(RepairedKernel(Sigmoid(1.0, -1.0)), 1.0).fit(X, FIRST), tmp_path / "m")
    edited(tmp_path / "m", lambda model: model["state"]["kernel_"]["fields"].update(change))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_rows_that_are_no_data_are_named(tmp_path):
    rows = [frozenset({1, 2}), frozenset({2, 3}), frozenset({3}), frozenset({1, 3})]
    model = SVC(kernel=Shared()).fit(rows, [0, 1, 1, 0])
    with pytest.raises(InvalidInput, match=r"X_fit_: .* rows of this type are no data: give texts or lists of numbers"):
        save(model, tmp_path / "m")
