"""Whatever a text or a parameter says, work is bounded: an error, or no more of it than for a small number."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mercer import KernelRidge, check_kernel
from mercer import kernels as mk
from mercer.errors import MercerError

X = np.random.default_rng(0).normal(size=(20, 3)) / 4


def calls(work):
    """Calls of functions, which follow the operations in Python."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "work",
    [
        lambda p: check_kernel(f"dot**{p}"),
        lambda p: check_kernel(f"(dot + 1)**{p}"),
        lambda p: check_kernel(f"((dot + 1)**{p})**{p}"),
        lambda p: check_kernel((mk.Linear() + mk.Gaussian(gamma=1.0)) ** p),
        lambda p: check_kernel(mk.Polynomial(p)),
        lambda p: KernelRidge(mk.Gaussian(gamma=1.0) ** p).fit(X, X[:, 0]),
        lambda p: KernelRidge(mk.Polynomial(p, gamma=1e-13)).fit(X, X[:, 0]),
    ],
    ids=["power", "power of a sum", "tower", "kernel", "polynomial", "fit of a power", "fit of a polynomial"],
)
def test_an_exponent_costs_what_its_digits_do(work):
    work(3)  # what is cached by a first call
    small, large = calls(lambda: work(5)), calls(lambda: work(10**12 + 1))
    assert large <= 3 * small


@pytest.mark.parametrize(
    "text",
    [
        "+".join(["dot"] * 1000),
        "+".join(["dot"] * 10**6), "*".join(["(dot+1)"] * 1000), "(" * 500 + "dot" + ")" * 500,
        "-" * 500 + "dot", "exp(" * 500 + "dot" + ")" * 500, "where(xx>1," * 300 + "dot" + ",0)" * 300,
        "dot*9**9**9", "dot*" + "9" * 10**6, "[" * 9000, "dot" + "**2" * 3000,
    ],
    ids=range(11),
)  # fmt: skip
@pytest.mark.parametrize("read", [mk.Formula, check_kernel], ids=["Formula", "check_kernel"])
def test_long_and_deep_texts_are_refused(text, read):
    with pytest.raises(MercerError):
        read(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mk.Spectrum(10**7), lambda: mk.Spectrum(10**18), lambda: mk.Mismatch(10**6, 3),

        lambda: mk.Mismatch(4095, 2000).block(["ACGT" * 2000], ["TGCA" * 2000]),
        lambda: mk.GappedKmer(4_000_000, 2_000_000),
        lambda: mk.Subsequence(10**8), lambda: mk.Subsequence(10**8, exact=True), lambda: mk.MonomialSum(10**6),
    ],
    ids=range(8),
)  # fmt: skip
def test_huge_windows_and_degrees_are_refused(make):
    with pytest.raises(MercerError):
        make()


def test_products_of_sums_are_not_multiplied_out():
    """3¹² terms; a search for a proof that gives up has looked at few of them."""

    def product(factors):
        return "*".join(f"(dot+{i}+exp(-sqdist)+min_sum)" for i in range(factors))

    assert calls(lambda: check_kernel(product(12))) <= 50 * calls(lambda: check_kernel(product(3)))
