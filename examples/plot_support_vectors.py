r"""
Support vectors and C
=====================

The machine of the lecture minimises :math:`w^T w + C \sum_i \xi_i`: C says how much an error on a training row costs
against a wide margin. Most :math:`\alpha_i` are 0; the rows of the others are the support vectors. (Our C is half of
the lecture's, as in LIBSVM.)
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC
from mercer.plots import DecisionSurfaceDisplay

X, y = make_moons(200, noise=0.25, random_state=0)
_, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=True)
for ax, C in zip(axes, (0.1, 1.0, 100.0), strict=True):
    model = SVC(C=C, kernel="gaussian(gamma=2.0)").fit(X, y)
    DecisionSurfaceDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"C = {C:g}: {len(model.support_)} support vectors")
    print(f"C = {C:g}: {len(model.support_)} support vectors, training accuracy {model.score(X, y):.3f}")
