r"""
Circles and rings by kernel PCA
===============================

Principal components in the input space are straight lines, and no line separates a ring from the disc within it.
Kernel PCA ("Kernel methods", eq. 21.18; "Kernel PCA, making PCA non-linear") takes the components in the feature
space,

.. math:: K a_j = N \lambda_j a_j, \quad y_j(x) = \sum_i a_{ji} k(x_i, x),

which are curves in the input space.
"""

from sklearn.datasets import make_circles

from mercer import KernelPCA
from mercer.plots import ComponentsDisplay, ScoresDisplay

X, y = make_circles(400, factor=0.3, noise=0.05, random_state=0)

# %%
# Linear PCA
# ----------
# Each picture shows where one component is constant: on straight lines.

linear = KernelPCA(2, "linear").fit(X)
display = ComponentsDisplay.from_estimator(linear, X)

# %%
# The quadratic kernel
# --------------------
# "Kernel methods" (lecture 9) compares it with linear PCA. One component is a function of the radius.

quadratic = KernelPCA(3, "polynomial(degree=2, coef0=0.0, gamma=1.0)").fit(X)
display = ComponentsDisplay.from_estimator(quadratic, X)

# %%
# The Gaussian kernel has infinitely many features, and its first components separate the rings, too.

gaussian = KernelPCA(4, "gaussian(gamma=2.0)").fit(X)
display = ComponentsDisplay.from_estimator(gaussian, X)

# %%
# Scores
# ------
# In the plane of two components a straight line separates the rings.

display = ScoresDisplay.from_estimator(gaussian, X, y)
