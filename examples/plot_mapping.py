r"""
A nonlinear mapping, explicit and implicit
==========================================

"Kernel methods" (lecture 9) maps two attributes to three features,

.. math:: \Phi(x) = (x_1^2, \sqrt 2\, x_1 x_2, x_2^2),

in which a plane separates what no line separated before. Nobody has to compute the features: their scalar product is

.. math:: \kappa(x, z) = \Phi(x)^T \Phi(z) = (x^T z)^2.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.svm import LinearSVC

from mercer import SVC
from mercer.kernels import Polynomial

X, y = make_circles(200, factor=0.4, noise=0.07, random_state=0)
features = np.column_stack([X[:, 0] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 1] ** 2])

# %%
# The same classes in the plane and in the feature space
# ------------------------------------------------------

machine = LinearSVC().fit(features, y)
(a, b, c), d = machine.coef_[0], machine.intercept_[0]
across, up = np.meshgrid([0, 1.3], [-0.9, 0.9])
fig = plt.figure(figsize=(10, 4.5), layout="constrained")
plane, space = fig.add_subplot(1, 2, 1), fig.add_subplot(1, 2, 2, projection="3d")
for label, marker in enumerate("os"):
    plane.scatter(*X[y == label].T, s=14, marker=marker)
    space.scatter(*features[y == label].T, s=14, marker=marker)
space.plot_surface(across, up, -(a * across + b * up + d) / c, alpha=0.2, color="0.4")
plane.set(xlabel="x₁", ylabel="x₂", aspect="equal", title="the two attributes")
space.set(xlabel="x₁²", ylabel="√2 x₁x₂", zlabel="x₂²", title="the three features, and a plane", zlim=(0, 1.3))
space.locator_params(nbins=4)
space.view_init(elev=12, azim=-60)

# %%
# Explicit and implicit mappings are equivalent
# ---------------------------------------------
# The kernel matrix is that of the features, so a machine with the kernel decides as a linear one on the features.

kernel = Polynomial(2, coef0=0.0, gamma=1.0)
print(f"largest difference of κ(x, z) and Φ(x)ᵀΦ(z): {np.abs(kernel(X) - features @ features.T).max():.0e}")
print(f"a line in the plane: {LinearSVC().fit(X, y).score(X, y):.2f} of the rows are right")
print(f"a plane in the feature space: {machine.score(features, y):.2f}")
print(f"the machine with the kernel: {SVC(kernel=kernel).fit(X, y).score(X, y):.2f}")
