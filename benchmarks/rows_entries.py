"""The entries themselves: stored Gram matrices and their error."""

from __future__ import annotations

from benchmarks import data, peers
from benchmarks.harness import Row, Setting, at_least, at_most, benchmark
from mercer.kernels import Gaussian

GROUP = "Entries of the kernel matrix"


@benchmark(GROUP)
def gram_sklearn(setting: Setting) -> Row:
    rbf_kernel = peers.need("sklearn.metrics.pairwise").rbf_kernel
    X, kernel = data.normal(setting.size(8192, 300), 20), Gaussian(0.05)
    return Row(
        f"Gaussian k(X), float32, n = {len(X)}, d = 20",
        ours=lambda: kernel(X),
        peer=lambda: rbf_kernel(X, gamma=0.05),
        peer_name="scikit-learn `rbf_kernel(X)`",
        target=at_least(8),
        error=data.entry_error(X, 0.05),
        memory=True,
    )


@benchmark(GROUP, d=(3, 20, 100))
def error_far_from_the_origin(setting: Setting, d: int) -> Row:
    rbf_kernel = peers.need("sklearn.metrics.pairwise").rbf_kernel
    X, kernel = data.normal(setting.size(4096, 300), d, mean=1000.0), Gaussian(1 / d)
    return Row(
        f"Gaussian k(X), float32, data of mean 1000 and unit spread, d = {d}: max |error|",
        ours=lambda: kernel(X),
        peer=lambda: rbf_kernel(X, gamma=1 / d),
        peer_name="scikit-learn `rbf_kernel(X)`",
        figure="error",
        target=at_most(1e-5),
        error=data.entry_error(X, 1 / d),
    )
