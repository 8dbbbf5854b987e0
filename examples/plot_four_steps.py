r"""
Kernel PCA in four steps
========================

"Kernel PCA, making PCA non-linear" ends with a summary of four steps. Here they are, one by one in NumPy, beside
:class:`mercer.KernelPCA <mercer.estimators.KernelPCA>`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from mercer import KernelPCA
from mercer.kernels import Gaussian
from mercer.plots import GramDisplay, ScoresDisplay

X, y = load_iris(return_X_y=True)
N, p = len(X), 2

# %%
# 1. Pick a kernel
# ----------------

kernel = Gaussian(gamma=0.2)

# %%
# 2. The kernel matrix, and the centred one
# -----------------------------------------
# The rows may be centred, their features are not. With the matrix **1** of ones,
#
# .. math:: \tilde K = K - \tfrac1N \mathbf 1 K - \tfrac1N K \mathbf 1 + \tfrac1{N^2} \mathbf 1 K \mathbf 1.

K = kernel(X)
ones = np.ones((N, N))
centred = K - ones @ K / N - K @ ones / N + ones @ K @ ones / N**2
before, after = np.abs(K.sum(axis=1)).min(), np.abs(centred.sum(axis=1)).max()
print(f"sums of the rows: {before:.0f} or more before, {after:.0e} or less after")
_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, matrix, title in zip(axes, (K, centred), ("K", "K centred"), strict=True):
    GramDisplay(matrix, y=y).plot(ax)
    ax.set_title(title)

# %%
# 3. The first p eigenvectors
# ---------------------------
#
# .. math:: \tilde K a_j = N \lambda_j a_j, \quad N \lambda_j a_j^T a_j = 1.

values, vectors = np.linalg.eigh(centred)
values, vectors = values[::-1][:p] / N, vectors[:, ::-1][:, :p]
a = vectors / np.sqrt(N * values)

# %%
# 4. The scores
# -------------
#
# .. math:: y_j = \sum_i a_{ji} \tilde k(x, x_i)
#
# The sign of an eigenvector is free.

scores = centred @ a
model = KernelPCA(p, kernel).fit(X)
theirs = model.transform(X)
theirs *= np.sign((scores * theirs).sum(axis=0))
print(f"variances {values.round(4)} and {model.explained_variance_.round(4)}")
print(f"largest difference of the scores: {np.abs(scores - theirs).max():.0e}")
display = ScoresDisplay.from_predictions(scores, y)
