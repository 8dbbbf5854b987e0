r"""
Cover's theorem
===============

"Kernel methods" (lecture 9) begins with it: classes are more likely to be linearly separable when features are mapped
nonlinearly to a space of more dimensions. Of the :math:`2^N` ways to divide N points in general position in d
dimensions into two classes, a hyperplane (with a threshold) separates

.. math:: 2 \sum_{k=0}^{d} \binom{N - 1}{k}.

The extreme example of the lecture, each sample in a dimension of its own, separates all.
"""

from math import comb

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog

from mercer import MonomialFeatures

rng = np.random.default_rng(0)
N, draws = 12, 50
X = rng.standard_normal((N, 2))


def separable(degree):
    """The share of random classes for which w has yᵢ wᵀφ(xᵢ) ≥ 1 for all i, with φ all monomials up to a degree."""
    features = MonomialFeatures(degree, distinct=True, kind="all").fit_transform(X)
    right = 0
    for _ in range(draws):
        y = rng.choice([-1, 1], N)
        nothing = np.zeros(features.shape[1])
        right += linprog(nothing, -y[:, None] * features, -np.ones(N), bounds=(None, None)).success
    return right / draws


# %%
# Random classes for 12 points in the plane. The monomials up to degree k are :math:`\binom{2 + k}{k} - 1` dimensions
# and the constant.

degrees = (1, 2, 3)
dimensions = [comb(2 + k, k) - 1 for k in degrees]
shares = [separable(k) for k in degrees]
theory = [sum(comb(N - 1, k) for k in range(d + 1)) / 2 ** (N - 1) for d in range(1, 15)]
_, ax = plt.subplots(layout="constrained")
ax.plot(range(1, 15), theory, label="Cover's formula, all classes")
ax.plot(dimensions, shares, "o", label=f"{draws} random classes")
ax.set(xlabel="dimensions of the feature space", ylabel="share that is linearly separable")
ax.legend()
for k, d, share in zip(degrees, dimensions, shares, strict=True):
    print(f"degree {k}, {d} dimensions: {share:.2f} separable")
