r"""
What the kernel trick saves
===========================

"Kernel methods" (feature maps) takes all monomials of degree at most 3 as features, :math:`1 + d + d^2 + d^3` of them
(5.5). Their inner product needs :math:`\langle x, z \rangle` only (5.9):

.. math:: \langle \phi(x), \phi(z) \rangle = 1 + \langle x, z \rangle + \langle x, z \rangle^2 + \langle x, z \rangle^3.

"Kernel methods" (lecture 9) counts the monomials of 20 attributes up to degree 5: more than 50 000.
"""

from math import comb

import matplotlib.pyplot as plt
import numpy as np

from mercer import MonomialFeatures
from mercer.kernels import MonomialSum

# %%
# The same numbers
# ----------------

rng = np.random.default_rng(0)
X = rng.standard_normal((50, 8)) / 3
features = MonomialFeatures(3, kind="sum").fit_transform(X)
K = MonomialSum(3)(X)
print(f"{features.shape[1]} features for 8 attributes: 1 + 8 + 64 + 512 = {1 + 8 + 64 + 512}")
print(f"largest difference of their inner products and the kernel: {np.abs(features @ features.T - K).max():.0e}")
print(f"20 attributes up to degree 5, each monomial once: {comb(20 + 5, 5)} features")

# %%
# Multiplications for one inner product
# -------------------------------------
# Through the features there are as many as features, and the kernel needs d, and two more for the powers.

d = np.unique(np.logspace(0, 3, 40).astype(int))
_, ax = plt.subplots(layout="constrained")
ax.loglog(d, 1 + d + d**2 + d**3.0, label="through the features: 1 + d + d² + d³")
ax.loglog(d, d + 2, "--", label="with the kernel: d + 2")
ax.set(xlabel="attributes d", ylabel="multiplications")
ax.legend()
