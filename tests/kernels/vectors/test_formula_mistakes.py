"""A formula that is written for one pair, or for rows, says what to write instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mercer import KernelOperator, KernelRidge
from mercer.errors import CannotTrace, InvalidInput
from mercer.kernels import Function, Kernel, as_kernel, trace

X = np.random.default_rng(0).normal(size=(6, 2))


def kernel_of(formula: Callable[[Any], Any]) -> Kernel:
    @dataclass(frozen=True, repr=False)
    class Mine(Kernel):
        def formula(self, pair: Any) -> Any:
            return formula(pair)

    return Mine()


CONDITIONS = {
    "if": lambda pair: 1.0 if pair.sqdist > 1 else 0.0,
    "and": lambda pair: pair.dot > 0 and pair.dot,
    "max": lambda pair: max(pair.dot, 0.0),
}
ROWS = {
    "product": lambda pair: pair.x * pair.z,
    "matrix product": lambda pair: pair.x @ pair.z,
    "difference": lambda pair: np.exp(-((pair.x - pair.z) ** 2)),
    "equality": lambda pair: pair.x == pair.z,
    "index": lambda pair: pair.x[0] * pair.z[0],
    "unpacked": lambda pair: sum(pair.x),
    "length": lambda pair: pair.dot / len(pair.x),
    "numpy": lambda pair: np.exp(pair.x),
    "numpy's reductions": lambda pair: np.sum(pair.x),
    "numpy's products": lambda pair: np.dot(pair.x, pair.z),
    "numpy's norms": lambda pair: np.linalg.norm(pair.x),
    "a number with a row": lambda pair: 2 * pair.x,
    "an array with a row": lambda pair: np.ones(2) * pair.x,
    "the pair": lambda pair: pair * 2,
    "the pair itself": lambda pair: pair,
    "a row itself": lambda pair: pair.x,
}
ENTRANCES: dict[str, Callable[[Kernel], Any]] = {
    "call": lambda kernel: kernel(X),
    "diagonal": lambda kernel: kernel.diagonal(X),
    "operator": lambda kernel: KernelOperator(kernel, X) @ np.ones(len(X)),
    "fit": lambda kernel: KernelRidge(kernel).fit(X, X[:, 0]),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_names_where(name: str, entrance: str) -> None:
    with pytest.raises((InvalidInput, CannotTrace), match=r"write where\(pair.sqdist > 1, a, b\), maximum"):
        ENTRANCES[entrance](kernel_of(CONDITIONS[name]))
    with pytest.raises(CannotTrace, match="write where"):
        trace(kernel_of(CONDITIONS[name]))


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("name", ROWS)
def test_arithmetic_with_rows_names_the_pairings(name: str, entrance: str) -> None:
    with pytest.raises(CannotTrace, match=r"write pair\.dot for ⟨x, z⟩, pair.sqdist"):
        ENTRANCES[entrance](kernel_of(ROWS[name]))
    with pytest.raises(CannotTrace):
        trace(kernel_of(ROWS[name]))


def test_functions_of_one_number() -> None:
    with pytest.raises(InvalidInput, match=r"mercer\.kernels.functions, not math's"):
        kernel_of(lambda pair: math.exp(-pair.sqdist))(X)


@pytest.mark.parametrize("value", [None, "text"])
def test_a_formula_without_a_number(value: Any) -> None:
    with pytest.raises(InvalidInput, match="the formula returned"):
        kernel_of(lambda pair: value)(X)


def test_plain_functions() -> None:
    with pytest.raises(InvalidInput, match=r"does not take two arguments; give f\(X, Z\) .* formula\(self, pair\)"):
        as_kernel(lambda pair: np.exp(-pair.sqdist))
    with pytest.raises(InvalidInput, match="mode='pair'"):
        as_kernel(lambda x, z: float(x @ z))(X)
    rows = Function(lambda x, z: float(x @ z), mode="pair")
    assert np.allclose(rows(X), X @ X.T)
    assert Function(min).func is min  # a builtin that says nothing of its arguments


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("1 if sqdist < 1 else 0", r"write where\(condition"),
        ("exp(-sqdist) and dot", r"write minimum\(a, b\)"),
        ("exp(-pair.sqdist)", "write sqdist alone"),
        ("np.exp(-sqdist)", "write exp alone"),
        ("x*z", "write dot for ⟨x, z⟩"),
    ],
)
def test_text(text: str, advice: str) -> None:
    with pytest.raises(InvalidInput, match=advice):
        as_kernel(text)
