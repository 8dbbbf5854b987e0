"""What is proved, and what the closure theorems make of it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels import (
    Constant,
    Cosine,
    Definiteness,
    Function,
    Gaussian,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Properties,
    Sigmoid,
)

PD, PSD = Definiteness.POSITIVE_DEFINITE, Definiteness.POSITIVE_SEMIDEFINITE
CPD, IND, UNKNOWN = Definiteness.CONDITIONALLY_POSITIVE, Definiteness.INDEFINITE, Definiteness.UNKNOWN


class Conditional(Kernel):
    """−‖x − z‖²."""

    def formula(self, pair):
        return -pair.sqdist

    @property
    def properties(self):
        return Properties(CPD, stationary=True)


G, L, S, C, F = Gaussian(gamma=1.0), Linear(), Sigmoid(), Conditional(), Function(min)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (G, PD), (L, PSD), (S, IND), (F, UNKNOWN),
        (G + L, PD), (L + L, PSD), (L + 1, PSD), (G + C, CPD), (C + C, CPD), (L + S, UNKNOWN), (S + S, UNKNOWN),
        (G + F, UNKNOWN), (C + F, UNKNOWN),
        (G * G, PD), (G * L, PSD), (L * L, PSD), (G * C, UNKNOWN), (G * S, UNKNOWN),
        (2 * G, PD), (2 * S, IND), (2 * C, CPD), (0 * S, PSD), (0 * G, PSD),
        (G**2, PD), (L**3, PSD), (S**2, UNKNOWN), (S**1, IND), (C**2, UNKNOWN), (Periodic() ** 0.5, PSD),
        (G.normalized(), PD), (L.normalized(), PSD), (S.normalized(), IND), (C.normalized(), UNKNOWN),
        (G.on([0]), PSD), (L.on([0]), PSD), (S.on([0]), IND),
        (G.with_length_scales([2.0]), PD),
    ],
    ids=repr,
)  # fmt: skip
def test_definiteness(k, expected):
    assert k.properties.definiteness is expected


@pytest.mark.parametrize(
    ("k", "stationary", "bounded"),
    [
        (G, True, True), (L, False, False), (Cosine(), False, True), (Constant(2.0), True, True), (S, False, True),
        (G + 1, True, True), (G + L, False, False), (G * G, True, True), (G * L, False, False), (3 * G, True, True),
        (G**2, True, True), (L.normalized(), False, True), (G.on([0]), True, True),
        (G.with_length_scales([1.0]), True, True), (C, True, False),
    ],
    ids=repr,
)  # fmt: skip
def test_stationary_and_bounded(k, stationary, bounded):
    assert (k.properties.stationary, k.properties.bounded) == (stationary, bounded)


def test_declared_stationary_kernels_are(kernel, no_engine):
    X = np.random.default_rng(0).random((6, 3))
    moved = np.abs(kernel(X + 0.7) - kernel(X)).max()
    if kernel.properties.stationary:
        assert moved < 1e-9


def test_declared_bounded_kernels_are(kernel, no_engine):
    X = 1e3 * np.random.default_rng(0).random((6, 3))
    if kernel.properties.bounded:
        assert np.abs(kernel(X)).max() < 20


def test_the_stationary_check_can_fail():
    X = np.random.default_rng(0).random((6, 3))
    k = Polynomial(degree=2)
    assert np.abs(k(X + 0.7) - k(X)).max() > 0.1


def test_strictly_positive_kernels_are_not_singular(plain):
    if plain.properties.definiteness is PD:
        X = np.arange(6.0)[:, None] * 3
        assert np.linalg.eigvalsh(plain(X)).min() > 1e-3 * 6


def test_sigmoid_is_indefinite():
    X = np.array([[1.0], [2.0], [0.5]])
    assert np.linalg.eigvalsh(Sigmoid(gamma=1.0, coef0=-1.0)(X)).min() < -0.01
