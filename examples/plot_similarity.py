r"""
Kernels as similarities
=======================

"Kernel methods" (feature maps) reads :math:`k(x, z)` as how similar x and z are. "Kernels and nonlinearity" lists
three kernels with their tuning parameters:

.. math:: \exp(-\sigma \|x - y\|^2), \quad \exp(-\sigma \|x - y\|), \quad (c + x^T y)^d.

The first two depend on the distance alone, near 1 for near points and near 0 for far ones. :math:`\sigma` says what
near means. The polynomial kernel depends on the angle and on the lengths.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Gaussian, Laplace, Polynomial

x = np.linspace(-3, 3, 301)[:, None]
one = np.array([[1.0]])
families = {
    "radial basis function": {f"σ = {s}": Gaussian(gamma=s) for s in (0.3, 1.0, 10.0)},
    "Laplace": {f"σ = {s}": Laplace(gamma=s) for s in (0.3, 1.0, 10.0)},
    "polynomial, c = 1": {f"d = {d}": Polynomial(d, coef0=1.0, gamma=1.0) for d in (1, 2, 3)},
}
_, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, (name, kernels) in zip(axes, families.items(), strict=True):
    for (label, kernel), style in zip(kernels.items(), ("-", "--", ":"), strict=True):
        ax.plot(x, kernel(x, one), style, label=label)
    ax.set(xlabel="x", ylabel="k(x, 1)", title=name)
    ax.legend()

# %%
# The lecture writes the Gaussian with a width: :math:`\exp(-\|x - z\|^2 / 2\sigma^2)`, so that our γ is
# :math:`1/2\sigma^2`.

sigma = 2.0
value = Gaussian(gamma=1 / (2 * sigma**2))([[0.0]], [[sigma]])[0, 0]
print(f"at the distance of one width: {value:.4f}, e^(−½) = {np.exp(-0.5):.4f}")

# %%
# Not each measure of similarity is a kernel: :doc:`plot_mercer_condition` has one that is not.
