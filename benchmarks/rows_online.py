"""Online learning: one pass over rows, a dictionary within its budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.harness import Row, Setting, at_most, benchmark
from mercer.kernels import Gaussian

GROUP = "Clusters and online learning"

D, CHUNK = 20, 256
TEST = 5000


def stream(n: int) -> tuple[Any, Any, Any, Any]:
    """Two classes, half of the columns informative, 5 % of the labels flipped; rows to learn and rows to test."""
    make = peers.need("sklearn.datasets").make_classification
    X, y = make(n + TEST, D, n_informative=D // 2, flip_y=0.05, random_state=0)
    X = X.astype(np.float32)
    return X[:n], y[:n], X[n:], y[n:]


def learner(gamma: float, budget: int) -> Any:
    return peers.ours("OnlineKernelClassifier")(Gaussian(gamma), budget=budget)


@benchmark(GROUP)
def online_million(setting: Setting) -> Row:
    """The target is 100 000 rows a second."""
    X, y, new, labels = stream(setting.size(1_000_000, 3000))
    budget = setting.size(1000, 50)
    gamma = float(1 / (D * X.var()))

    def one_pass() -> Any:
        model = learner(gamma, budget)
        for rows in np.array_split(np.arange(len(X)), max(len(X) // 100_000, 1)):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        return model

    return Row(
        f"OnlineKernelClassifier(budget={budget}), mergers, Gaussian, float32, one pass over {len(X)} × {D}",
        ours=one_pass,
        figure="seconds",
        target=at_most(10),
        error=lambda model: float(1 - model.score(new, labels)),
        tolerance=0.5 if setting.quick else 0.1,
        once=True,
        note="Errors of online rows: on 5000 rows that were not learned; 5 % of the labels are flipped.",
    )


@benchmark(GROUP)
def online_features(setting: Setting) -> Row:
    """The peer is stochastic descent on as many random features as our budget has rows, the usual alternative."""
    X, y, new, labels = stream(setting.size(200_000, 3000))
    budget = setting.size(1000, 50)
    gamma = float(1 / (D * X.var()))
    sampler = peers.need("sklearn.kernel_approximation").RBFSampler
    descent = peers.need("sklearn.linear_model").SGDClassifier

    def theirs() -> Any:
        features, model = sampler(gamma=gamma, n_components=budget, random_state=0).fit(X[:1]), descent(random_state=0)
        for i in range(0, len(X), CHUNK):
            model.partial_fit(features.transform(X[i : i + CHUNK]), y[i : i + CHUNK], classes=[0, 1])
        return peers.need("sklearn.pipeline").make_pipeline(features, model)

    return Row(
        f"OnlineKernelClassifier(budget={budget}), mergers, Gaussian, float32, one pass over {len(X)} × {D}",
        ours=lambda: learner(gamma, budget).partial_fit(X, y),
        peer=theirs,
        peer_name=f"scikit-learn RBFSampler({budget}) and SGDClassifier",
        error=lambda model: float(1 - model.score(new, labels)),
        tolerance=0.5 if setting.quick else 0.1,
        rounds=3,
    )
