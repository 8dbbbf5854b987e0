r"""
Kernel PCA, tuned by cross-validation
=====================================

"Kernels and nonlinearity" ends with the remark that kernel PCA is sensitive to the choice of the kernel and its
parameter, and that cross-validation helps. What is validated is how well rows that were left out are restored from
their first scores,

.. math:: \frac{1}{|S|} \sum_{x \in S} \|x - \hat x\|^2,

because errors in the feature spaces of two kernels cannot be compared.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.select import cross_validate_kernel_pca

t = np.linspace(0, 4 * np.pi, 200)
X = np.column_stack([np.cos(t), np.sin(t), t])
widths = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
kernels = ["linear", "polynomial(degree=4, coef0=1.0, gamma=1.0)", *(f"gaussian(gamma={width})" for width in widths)]
search = cross_validate_kernel_pca(X, kernels, [1, 2])
for one in sorted(search.table, key=lambda one: one.mean)[:4]:
    print(f"{one.kernel} with {one.n_components}: {one.mean:.3f}")

# %%
# The error by the width, for one and two components
# --------------------------------------------------
# For a small γ the first component is nearly t, from which the decoder, a ridge regression, restores the circle, too. A
# large γ breaks the helix into pieces, for which two components are not enough. Dotted: ordinary PCA, the linear kernel
# with its projection.

found = {(str(one.kernel), one.n_components): one.mean for one in search.table}
_, ax = plt.subplots(layout="constrained")
for k, marker in ((1, "o"), (2, "s")):
    errors = [found[f"Gaussian(gamma={width})", k] for width in widths]
    (line,) = ax.loglog(widths, errors, marker=marker, label=f"Gaussian, {k} component{'s' * (k > 1)}")
    ax.axhline(found["Linear()", k], color=line.get_color(), linestyle=":", label=f"linear, {k}")
ax.set(xlabel="γ", ylabel="squared error of a row that was left out")
ax.legend()
