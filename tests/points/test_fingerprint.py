"""A fingerprint sees every bit that a result may depend on, and is the same in another process."""

import importlib.util
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer, mean_squared_error
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelRidge
from mercer.errors import InvalidInput
from mercer.kernels import Function, Gaussian
from mercer.points import fingerprint


def elided(place):
    """An array that prints the same whatever it has at this place."""
    out = np.zeros(5000)
    out[place] = 1.0
    return out


def made(number):
    return lambda x: x + number


class Plain:
    def __init__(self, value):
        self.value = value


class Node:
    """An object that holds itself."""

    def __init__(self, name):
        self.name, self.own = name, self


def csr(data, indices, indptr):
    return sp.csr_array((data, indices, indptr), shape=(2, 3))


def categories(*names):
    return pd.Series(pd.Categorical(["a", "b"], categories=names))


DIFFERENT = {
    "dtype": (np.zeros(3), np.zeros(3, np.float32)),
    "integers of the same bytes": (np.zeros(2), np.zeros(2, np.int64)),
    "shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "the middle of a long array": (elided(2500), elided(2501)),
    "the middle of a long list": (elided(2500).tolist(), elided(2501).tolist()),
    "where the rows of a sparse matrix end": (
        csr([1.0, 2.0], [0, 1], [0, 1, 2]),
        csr([1.0, 2.0], [0, 1], [0, 2, 2]),
    ),
    "columns of a sparse matrix": (csr([1.0, 2.0], [0, 1], [0, 1, 2]), csr([1.0, 2.0], [0, 2], [0, 1, 2])),
    "dtype of a sparse matrix": (sp.eye_array(3).tocsr(), sp.eye_array(3, dtype=np.float32).tocsr()),
    "where one array ends": (([1, 2], [3]), ([1], [2, 3])),
    "a number and its text": (1, "1"),
    "a list and a tuple": ([1], (1,)),
    "objects": (np.array([1, "a"], object), np.array([1, "b"], object)),
    "nested arrays of objects": (np.array([elided(9), "x"], object), np.array([elided(2501), "x"], object)),
    "masks": (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
    "dates": (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
    "the names of columns": (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    "the dtypes of columns": (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]})),
    "categories": (categories("a", "b"), categories("b", "a")),
    "columns of the same values": (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1.0, 2.0]})),
    "a parameter": (KernelRidge(alpha=1.0), KernelRidge(alpha=2.0)),
    "a class": (KernelRidge(), KFold()),
    "a parameter of a kernel": (KernelRidge(Gaussian(1.0)), KernelRidge(Gaussian(2.0))),
    "a step of a pipeline": (
        make_pipeline(StandardScaler(), KernelRidge()),
        make_pipeline(StandardScaler(with_mean=False), KernelRidge()),
    ),
    "functions that are named alike": (lambda x: x + 1, lambda x: x + 2),
    "what a function remembers": (made(1), made(2)),
    "kernels that are written alike": (Function(lambda X, Z: X @ Z.T), Function(lambda X, Z: 2 * X @ Z.T)),
    "the argument of a partial function": (partial(max, 1), partial(max, 2)),
    "scorers": (make_scorer(mean_squared_error), make_scorer(mean_squared_error, greater_is_better=False)),
    "generators": (np.random.RandomState(0), np.random.RandomState(1)),
    "newer generators": (np.random.default_rng(0), np.random.default_rng(1)),
    "objects of a user": (Plain(elided(2500)), Plain(elided(2501))),
    "objects that hold themselves": (Node("a"), Node("b")),
    "dictionaries": ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    "sets": ({1, 2}, {1, 3}),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_has_another_fingerprint(name):
    first, second = DIFFERENT[name]
    assert fingerprint(first) == fingerprint(first)
    assert fingerprint(first) != fingerprint(second)


def test_tensors():
    torch = pytest.importorskip("torch")
    first, second = (torch.from_numpy(elided(place)) for place in (2500, 2501))
    assert repr(first) == repr(second)
    assert fingerprint(first) == fingerprint(first.clone()) != fingerprint(second)
    assert fingerprint(first) != fingerprint(first.reshape(50, 100))
    assert fingerprint(first) != fingerprint(first.float())
    assert fingerprint(first.bfloat16()) != fingerprint(second.bfloat16())
    assert fingerprint(first.reshape(50, 100).to_sparse()) != fingerprint(second.reshape(50, 100).to_sparse())


def test_how_an_array_lies_in_memory_does_not_matter():
    X = np.arange(12.0).reshape(3, 4)
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(np.repeat(X, 2, axis=0)[::2])
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    rows = sp.random_array((5, 6), density=0.5, random_state=0, format="csr")
    assert fingerprint(rows) == fingerprint(rows.copy())


def test_what_the_schema_of_a_fitted_model_declares_counts():
    """But not its report, which says how long the fit took."""
    first, again, other = (KernelRidge().fit([[0.0], [1.0]], [0.0, y]) for y in (1.0, 1.0, 2.0))
    assert first.report_.seconds != again.report_.seconds
    assert len({fingerprint(one) for one in (first, again)}) == 1
    assert len({fingerprint(one) for one in (KernelRidge(), first, other)}) == 3
    assert fingerprint(make_pipeline(first)) != fingerprint(make_pipeline(other))


def test_every_scorer_has_a_fingerprint_of_its_own():
    names = get_scorer_names()
    assert len({fingerprint(get_scorer(name)) for name in names}) == len(names)


OWN = """
from dataclasses import dataclass
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from mercer.kernels import Kernel

def helper(x):
    return deeper(x) + 1

def deeper(x):
    return [one * 2 for one in x]

def score(x):
    return [helper(one) for one in x]

class Tool:
    def run(self, x):
        return 13 * x

def use(x):
    return Tool().run(x)

class Base(TransformerMixin, BaseEstimator):
    factor = 3
    def __init__(self, a=1):
        self.a = a
    def transform(self, X):
        return super().transform(X) if 0 else helper(X)

class Prep(Base):
    @property
    def width(self):
        return 5
    @staticmethod
    def parted(X):
        return X[::6]

@dataclass(frozen=True, repr=False)
class Own(Kernel):
    gamma: float = 1.0
    def formula(self, pair):
        return 1 / (7 + self.gamma * pair.sqdist)

@dataclass
class Rule:
    share: float = 0.5
    def holds(self, x):
        return x > 9 * self.share
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("# ", "# ", ""),
        ("\n\nclass Prep", "\n\nunused = 1\n\n\nclass Prep", ""),
        ("one * 2", "one * 4", "Prep Base score"),
        ("factor = 3", "factor = 4", "Prep Base"),
        ("return 5", "return 6", "Prep"),
        ("[::6]", "[::8]", "Prep"),
        ("7 + self", "8 + self", "Own"),
        ("x > 9", "x > 8", "Rule"),
        ("13 * x", "14 * x", "use"),
    ],
)
def test_code_of_ones_own_counts_with_what_it_calls(tmp_path, old, new, changes):
    """A search that was resumed gave the scores of a kernel or a transformer as it was before it was edited."""

    def digests(text, name):
        place = tmp_path / f"{name}.py"
        place.write_text(text)
        spec = importlib.util.spec_from_file_location("own_code", place)
        module = sys.modules["own_code"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        things = {name: getattr(module, name) for name in ("score", "use")}
        things |= {name: getattr(module, name)() for name in ("Prep", "Base", "Own", "Rule")}
        return {one: fingerprint(thing) for one, thing in things.items()}

    try:
        before, after = digests(OWN, "before"), digests(OWN.replace(old, new), "after")
    finally:
        sys.modules.pop("own_code", None)
    assert {one for one in before if before[one] != after[one]} == set(changes.split())


def test_functions_that_call_one_another_are_digested_once():
    """Forty layers of two functions, each of which calls both of the next: there are 2⁴⁰ ways down."""
    lines = [f"def f{k}{a}(x): return f{k + 1}a(x) + f{k + 1}b(x)" for k in range(40) for a in "ab"]
    lines += ["def f40a(x): return f0a", "def f40b(x): return 1"]
    module = {"__name__": "__main__"}
    exec("\n".join(lines), module)
    before = fingerprint(module["f0a"])
    exec("def f40b(x): return 2", module)
    assert fingerprint(module["f0a"]) != before


def test_it_is_the_same_in_another_process():
    code = (
        "import numpy as np; from sklearn.metrics import get_scorer; from mercer import KernelRidge;"
        "from mercer.points import fingerprint; from mercer.kernels import Gaussian;"
        "things = np.arange(3), {'a', 'b', 'c'}, get_scorer('r2'), KernelRidge(Gaussian(2.0)), lambda x: x in {1, 2};"
        "result = fingerprint(*things)"
    )
    here = {"__name__": "__main__"}
    exec(code, here)
    options = {"capture_output": True, "text": True, "check": True, "env": {**os.environ, "PYTHONHASHSEED": "7"}}
    there = subprocess.run([sys.executable, "-c", f"{code}; print(result)"], **options)
    assert there.stdout.strip() == here["result"]


def test_what_cannot_be_written_down_is_refused():
    with pytest.raises(InvalidInput, match="a generator, which has no value to compare"):
        fingerprint(x for x in range(3))
