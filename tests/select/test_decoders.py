"""The decoder that `KernelPCA` chooses: for noisy digits as for clean ones, and for circles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_circles

from mercer import KernelPCA
from mercer.kernels import Gaussian, Linear
from mercer.select.decoders import choose_decoder, noise_variance

RNG = np.random.default_rng(0)
DIGITS = load_digits().data[RNG.permutation(1797)[:800]] / 16


def error(model: KernelPCA, given: Any, wanted: Any) -> float:
    return float(np.mean((model.inverse_transform(model.transform(given)) - wanted) ** 2))


def fitted(rows: Any, k: int | None, gamma: float, alpha: float, decoder: Any = "auto") -> KernelPCA:
    model = KernelPCA(k, Gaussian(gamma), fit_inverse_transform=True, alpha=alpha, decoder_kernel=decoder)
    return model.fit(rows)


def test_noisy_digits_are_decoded_by_the_models_own_kernel() -> None:
    clean = load_digits().data[np.random.default_rng(1).permutation(1797)[:1300]] / 16
    noisy = clean + np.random.default_rng(2).normal(scale=0.25, size=clean.shape)
    model = fitted(noisy[:1000], 60, 1e-3, 5e-3)
    assert model.decoder_.kernel_ == Gaussian(1e-3)
    assert any("estimated squared errors of decoders" in note for note in model.report_.notes)
    found = error(model, noisy[1000:], clean[1000:])
    narrow = fitted(noisy[:1000], 60, 1e-3, 5e-3, "gaussian(gamma='median')")
    assert found < 0.85 * error(narrow, noisy[1000:], clean[1000:])
    assert found < 0.8 * np.mean((noisy[1000:] - clean[1000:]) ** 2)


def test_clean_digits_are_followed() -> None:
    model = fitted(DIGITS[:400], 60, 1e-3, 5e-3)
    own = fitted(DIGITS[:400], 60, 1e-3, 5e-3, Gaussian(1e-3))
    assert error(model, DIGITS[400:], DIGITS[400:]) < 0.5 * error(own, DIGITS[400:], DIGITS[400:])


def test_circles() -> None:
    X, _ = make_circles(500, factor=0.3, noise=0.05, random_state=0)
    model, own = fitted(X[:300], None, 10.0, 0.1), fitted(X[:300], None, 10.0, 0.1, Gaussian(10.0))
    assert error(model, X[300:], X[300:]) < 0.2 * error(own, X[300:], X[300:])


@pytest.mark.parametrize("sigma", [0.1, 0.25])
def test_noise(sigma: float, rng: np.random.Generator) -> None:
    noisy = DIGITS + rng.normal(scale=sigma, size=DIGITS.shape)
    assert 0.8 * sigma**2 < noise_variance(noisy) < 1.2 * sigma**2 + 0.006  # from above, by what the digits vary
    assert noise_variance(DIGITS) < 0.006


def test_the_estimate_is_of_the_error_without_noise(rng: np.random.Generator) -> None:
    noisy = DIGITS + rng.normal(scale=0.25, size=DIGITS.shape)
    candidates = [Gaussian("median"), Gaussian(0.01), Linear()]
    found = choose_decoder(Gaussian(0.01), noisy, 100, candidates, 5e-3, seed=0)
    true = []
    for candidate in candidates:
        model = fitted(noisy[:530], 100, 0.01, 5e-3 * 530 / 800, candidate)
        true.append(64 * error(model, noisy[530:], DIGITS[530:]))
    assert np.allclose(found.errors, true, rtol=0.25)
    assert found.kernel == candidates[int(np.argmin(true))]


def test_few_rows_and_singular_decoders() -> None:
    assert fitted(DIGITS[:8], 2, 0.1, 0.1).decoder_.kernel_.gamma > 0
    assert np.isfinite(fitted(DIGITS[:60], 4, 0.1, 0.0).inverse_transform(np.zeros((1, 4)))).all()
