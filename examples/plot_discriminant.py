r"""
Kernel discriminant analysis
============================

The direction in feature space that separates the means of two classes most, relative to the spread within them
("Kernel methods", section 21.2): :math:`w = \sum_i a_i \varphi(x_i)` with

.. math:: a = (N + \delta I)^{-1} (m_1 - m_2),

where N is the scatter within the classes and m₁, m₂ are the means of the columns of K over each class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons

from mercer import KernelDiscriminantAnalysis
from mercer.plots import DecisionSurfaceDisplay, ScoresDisplay

# %%
# Two moons
# ---------
# The curve is where both classes are equally probable.

X, y = make_moons(300, noise=0.2, random_state=0)
model = KernelDiscriminantAnalysis("gaussian(gamma=1.0)").fit(X, y)
display = DecisionSurfaceDisplay.from_estimator(model, X, y)
print(f"training accuracy {model.score(X, y):.3f}")

# %%
# The scores of the two classes on the discriminant
# -------------------------------------------------

scores = model.transform(X)[:, 0]
_, ax = plt.subplots(layout="constrained")
bins = np.linspace(scores.min(), scores.max(), 40)
for label in (0, 1):
    ax.hist(scores[y == label], bins, alpha=0.6, label=f"class {label}")
ax.set(xlabel="score on the discriminant", ylabel="rows")
ax.legend()

# %%
# Three classes
# -------------
# c classes have c − 1 discriminants: two for the irises, under the homogeneous quadratic kernel of the chapter.

X, y = load_iris(return_X_y=True)
model = KernelDiscriminantAnalysis("polynomial(degree=2, coef0=0.0, gamma=1.0)").fit(X, y)
display = ScoresDisplay.from_estimator(model, X, y)
