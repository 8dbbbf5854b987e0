r"""
The features of the Gaussian kernel
===================================

"Kernels and nonlinearity" writes down the infinitely many features of the radial basis function: every monomial
appears, and those of degree j are shrunk by factorials,

.. math:: a^{(j)} = e^{-\sigma \|x\|^2} \frac{(2\sigma)^{j/2} x_1^{\eta_1} \cdots x_d^{\eta_d}}
          {\sqrt{\eta_1! \cdots \eta_d!}}, \quad \eta_1 + \dots + \eta_d = j.

So a few degrees give the kernel nearly, the fewer the smaller :math:`\sigma` is.
"""

from itertools import combinations_with_replacement
from math import factorial, prod

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Gaussian


def features(X, sigma, degree):
    """All features up to a degree, of shape (rows, number of monomials)."""
    columns = []
    for j in range(degree + 1):
        for chosen in combinations_with_replacement(range(X.shape[1]), j):
            shrunk = prod(factorial(chosen.count(column)) for column in range(X.shape[1]))
            columns.append((2 * sigma) ** (j / 2) * X[:, list(chosen)].prod(axis=1) / np.sqrt(shrunk))
    return np.exp(-sigma * (X**2).sum(axis=1))[:, None] * np.column_stack(columns)


# %%
# How many degrees are enough
# ---------------------------

X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
degrees = np.arange(16)
_, ax = plt.subplots(layout="constrained")
for sigma, style in ((0.25, "-"), (1.0, "--"), (4.0, ":")):
    K = Gaussian(gamma=sigma)(X)
    found = [features(X, sigma, degree) for degree in degrees]
    errors = [np.abs(K - phi @ phi.T).max() for phi in found]
    ax.semilogy(degrees, errors, style, label=f"σ = {sigma}")
    print(f"σ = {sigma}: {found[-1].shape[1]} features of degree ≤ 15 give the kernel to {errors[-1]:.0e}")
ax.set(xlabel="degree", ylabel="largest error of φ(x)ᵀφ(z)")
ax.legend()
