"""Gaussian processes: parameters by the likelihood, and likelihoods of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from mercer.kernels import Gaussian

GROUP = "Gaussian processes"

GAMMA, NOISE = 0.025, 0.1
"""Of the rows whose parameters are given: a length-scale of √20 for 20 columns."""


def problem(n: int, d: int, noise: float) -> tuple[Any, Any]:
    X = data.normal(n, d, np.float64)
    return X, np.sin(X[:, 0]) + np.cos(1.5 * X[:, 1]) + noise * data.vector(n, np.float64)


def likelihood(model: Any) -> float:
    return float(model.log_marginal_likelihood_value_)


@benchmark(GROUP)
def process_parameters(setting: Setting) -> Row:
    X, y = problem(setting.size(2000, 150), 5, 0.1)
    theirs, kernels = peers.need("sklearn.gaussian_process"), peers.need("sklearn.gaussian_process.kernels")
    kernel = kernels.ConstantKernel() * kernels.RBF(1.0) + kernels.WhiteKernel(0.1)
    ours = peers.ours("GaussianProcessRegressor")("gaussian(gamma=0.5)", noise=0.1)
    best: list[float] = []

    def error(model: Any) -> float:
        """How far the likelihood is below the best of both, relative to it."""
        best.append(likelihood(model))
        return (max(best) - best[-1]) / abs(max(best))

    return Row(
        f"Gaussian process, n = {len(X)}, d = 5, amplitude, length-scale and noise optimised",
        ours=lambda: ours.fit(X, y),
        peer=lambda: theirs.GaussianProcessRegressor(kernel).fit(X, y),
        peer_name="scikit-learn GaussianProcessRegressor",
        target=at_least(10),
        error=error,
        tolerance=1e-6,
        once=True,
        note="Gaussian processes: errors are those of the log-likelihood, relative to it.",
    )


@benchmark(GROUP)
def process_likelihood(setting: Setting) -> Row:
    return _likelihood_row(setting.size(10_000, 300), "float64", setting.threads)


@benchmark(GROUP)
def process_likelihood_in_single(setting: Setting) -> Row:
    note = "GPyTorch on 20 000 rows in float32: value and gradient take 13 GB, in float64 they would take 27."
    return _likelihood_row(setting.size(20_000, 400), "float32", setting.threads, note)


def _likelihood_row(n: int, precision: str, threads: int, note: str = "") -> Row:
    from mercer.select.covariance import Covariance
    from mercer.select.stochastic import StochasticLikelihood

    X, y = problem(n, 20, 0.3)
    torch, gpytorch = peers.need("torch"), peers.need("gpytorch")
    torch.set_num_threads(threads)
    dtype = getattr(torch, precision)
    covariance = Covariance.of("benchmark", 1.0 * Gaussian(GAMMA), X)
    theta, ours = np.append(covariance.values, NOISE), StochasticLikelihood(covariance, y[:, None])
    seen: dict[str, float] = {}

    def exact() -> float:
        """By a Cholesky factor, value and gradient, as its ExactMarginalLogLikelihood."""
        rows, targets = torch.from_numpy(X).to(dtype), torch.from_numpy(y).to(dtype)
        noise = gpytorch.likelihoods.GaussianLikelihood().to(dtype)
        model = _exact_model(gpytorch, rows, targets, noise).to(dtype)
        model.covar_module.outputscale, noise.noise = 1.0, NOISE
        model.covar_module.base_kernel.lengthscale = (2 * GAMMA) ** -0.5
        with gpytorch.settings.fast_computations(False, False, False):
            found = gpytorch.mlls.ExactMarginalLogLikelihood(noise, model)(model(rows), targets)
            found.backward()
        return float(found.detach()) * len(y)

    def error(value: Any) -> float:
        known = seen.setdefault("value", float(value))
        return abs(float(value) - known) / abs(known)

    return Row(
        f"log-likelihood and its gradient, n = {len(X)}, d = 20, estimated",
        ours=lambda: ours(theta)[0],
        peer=exact,
        peer_name=f"GPyTorch ExactGP by Cholesky, {precision}",
        target=at_least(3),
        error=error,
        tolerance=1e-3,
        once=True,
        note=note,
    )


def _exact_model(gpytorch: Any, rows: Any, targets: Any, noise: Any) -> Any:
    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(rows, targets, noise)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return Model()


@benchmark(GROUP)
def process_likelihood_of_many_rows(setting: Setting) -> Row:
    from mercer.select.covariance import Covariance
    from mercer.select.stochastic import StochasticLikelihood

    X, y = problem(setting.size(100_000, 1500), 20, 0.3)
    covariance = Covariance.of("benchmark", 1.0 * Gaussian(GAMMA), X)
    ours = StochasticLikelihood(covariance, y[:, None], rank=setting.size(2000, 600))
    return Row(
        f"log-likelihood, n = {len(X)}, d = 20, estimated",
        ours=lambda: ours.estimate(np.append(covariance.values, NOISE)),
        figure="seconds",
        target=at_most(300),
        error=lambda found: found.standard_error / abs(found.value),
        tolerance=1e-3,
        once=True,
        most_megabytes=2000,
        note="Log-likelihood of many rows: the error is the standard error, relative to the value.",
    )
