r"""
The classifier in scalar products, and where a line fails
=========================================================

"Kernel methods" (lecture 9) writes a linear classifier in two ways:

.. math:: f(x; w) = w^T x + w_0, \quad w = \sum_n \alpha_n x_n, \quad
          f(x; \alpha) = \sum_n \alpha_n x_n^T x + \alpha_0.

The second form needs scalar products only, of the training data and the new sample. So they can be replaced by a
kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import SVC, KernelPerceptron
from mercer.plots import DecisionSurfaceDisplay

# %%
# Two samples
# -----------
# The best direction between two samples is :math:`w^* = x_1 - x_2`, up to its length: :math:`\alpha_1 = -\alpha_2`. The
# support vector machine, which asks for the widest margin, finds it.

pair = np.array([[1.0, 2.0], [3.0, 1.0]])
model = SVC(C=1e6, kernel="linear").fit(pair, [1, -1])
w = model.dual_coef_.ravel() @ model.support_vectors_
print(f"α = {model.dual_coef_.ravel().round(3)}, w = {w.round(3)}, x₁ − x₂ = {pair[0] - pair[1]}")

# %%
# The example of the lecture
# --------------------------
# The linear perceptron will not work, because the classes are not linearly separable. With a Gaussian kernel the same
# algorithm separates them.

X, y = make_moons(200, noise=0.15, random_state=0)
_, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, kernel in zip(axes, ("linear", "gaussian(gamma=2.0)"), strict=True):
    model = KernelPerceptron(kernel, max_iter=300, tol=None).fit(X, y)
    DecisionSurfaceDisplay.from_estimator(model, X, y, ax=ax)
    name = kernel.partition("(")[0]
    ax.set_title(f"{name} kernel: {(model.predict(X) != y).sum()} of 200 rows are wrong")
    print(f"{name}: {(model.predict(X) != y).sum()} of 200 rows are wrong")
