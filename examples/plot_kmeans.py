r"""
Kernel k-means against k-means
==============================

k-means puts each row to the nearest mean, and so divides the plane by straight lines. Kernel k-means measures the
distances in feature space,

.. math:: \|\varphi(x) - m_c\|^2
          = k(x, x) - \frac{2}{n_c} \sum_{i \in c} k(x, x_i) + \frac{1}{n_c^2} \sum_{i, j \in c} k(x_i, x_j).
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from mercer import KernelKMeans

X, y = make_circles(400, factor=0.25, noise=0.05, random_state=0)
labels = {
    "k-means": KMeans(2, n_init=10, random_state=0).fit_predict(X),
    "kernel k-means, Gaussian": KernelKMeans(2, "gaussian(gamma=3.0)", n_init=10).fit(X).labels_,
}
_, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharey=True)
for ax, (name, found) in zip(axes, labels.items(), strict=True):
    for cluster in (0, 1):
        rows = X[found == cluster]
        ax.scatter(*rows.T, s=12, marker="os"[cluster])
    agreement = adjusted_rand_score(y, found)
    ax.set(title=f"{name}\nadjusted Rand index {agreement:z.2f}", aspect="equal")
    print(f"{name}: adjusted Rand index {agreement:z.3f}")
