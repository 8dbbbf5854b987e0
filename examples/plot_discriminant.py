r"""
Kernel discriminant analysis
============================

The direction in feature space that separates the means of two classes most, relative to the spread within them
("Kernel methods", section 21.2): :math:`w = \sum_i a_i \varphi(x_i)` with

.. math:: a = (N + \delta K)^{-1} (m_1 - m_2),

where N is the scatter within the classes and m₁, m₂ are the means of the columns of K over each class. The chapter
writes :math:`N^{-1}`, but N is singular; δ makes the problem well posed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons

from mercer import KernelDiscriminantAnalysis
from mercer.kernels import Gaussian
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
# The direction, by the chapter's matrices
# ----------------------------------------
# :math:`M = (m_1 - m_2)(m_1 - m_2)^T`, and :math:`N = \sum_c E_c (I - 1_{n_c}) E_c^T` with the columns :math:`E_c` of K
# for class c. The direction has :math:`a^T K a = 1` (21.59) and the largest
# :math:`J(a) = a^T M a / a^T (N + \delta K) a` (21.55).

K, a = Gaussian(gamma=1.0)(X), model.dual_coef_[:, 0]
parts = [K[:, y == label] for label in (0, 1)]
N = sum(E @ (np.eye(E.shape[1]) - 1 / E.shape[1]) @ E.T for E in parts)
means = [E.mean(axis=1) for E in parts]
between, within = (a @ (means[0] - means[1])) ** 2, a @ (N + model.delta_ * K) @ a
ours = model.eigenvalues_[0] * len(X) / (len(parts[0].T) * len(parts[1].T))
print(f"aᵀKa = {a @ K @ a:.6f}, J(a) = {between / within:.6f}, by the eigenproblem {ours:.6f}")

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
