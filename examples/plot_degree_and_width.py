r"""
Support vector machines: degree and width
=========================================

The examples of the nonlinear machine in "Kernel methods" (lecture 9): how flexible the boundary is depends on the
parameter of the kernel, the degree of a polynomial or the width :math:`\sigma` of a Gaussian,
:math:`\gamma = 1/2\sigma^2`. A large degree and a
small width follow each row; :doc:`plot_support_vectors` shows what C does.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.kernels import Gaussian, Polynomial
from mercer.plots import DecisionSurfaceDisplay

X, y = make_moons(150, noise=0.25, random_state=0)
Z, t = make_moons(2000, noise=0.25, random_state=1)
kernels = {
    "linear": "linear",
    "degree 2": Polynomial(2, coef0=1.0, gamma=1.0),
    "degree 5": Polynomial(5, coef0=1.0, gamma=1.0),
    "σ = 2": Gaussian(gamma=0.125),
    "σ = 0.5": Gaussian(gamma=2),
    "σ = 0.05": Gaussian(gamma=200),
}
_, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained", sharex=True, sharey=True)
for ax, (name, kernel) in zip(axes.flat, kernels.items(), strict=True):
    model = SVC(C=10.0, kernel=kernel).fit(X, y)
    DecisionSurfaceDisplay.from_estimator(model, X, y, ax=ax, side=80)
    ax.get_legend().remove()
    ax.set_title(f"{name}: {model.score(Z, t):.2f} of new rows right")
    print(f"{name}: training accuracy {model.score(X, y):.3f}, of new rows {model.score(Z, t):.3f}")
