r"""
The cubic: least mean squares with features, and with a kernel
==============================================================

"Kernel methods" (feature maps) fits :math:`\theta^T \phi(x)` with :math:`\phi(x) = (1, x, x^2, x^3)` by gradient
descent (5.3),

.. math:: \theta := \theta + \alpha \sum_i (y_i - \theta^T \phi(x_i)) \phi(x_i).

As :math:`\theta = \sum_i \beta_i \phi(x_i)`, the same descent can be written in the coefficients (5.11), with the
matrix :math:`K_{ij} = \phi(x_i)^T \phi(x_j)` only:

.. math:: \beta := \beta + \alpha (y - K \beta).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelLMS
from mercer.kernels import Formula

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-1, 1, 40))
y = 1 - 2 * x + 3 * x**3 + 0.1 * rng.standard_normal(40)

# %%
# With features
# -------------

features = np.column_stack([np.ones(40), x, x**2, x**3])
step = 0.9 / np.linalg.norm(features, 2) ** 2
theta, path = np.zeros(4), [np.zeros(4)]
for _ in range(300):
    theta = theta + step * features.T @ (y - features @ theta)
    path.append(theta)

# %%
# With the kernel
# ---------------
# For one attribute :math:`\phi(x)^T \phi(z) = 1 + xz + (xz)^2 + (xz)^3`. No feature is computed.

kernel = Formula("1 + dot + dot**2 + dot**3")
model = KernelLMS(kernel, step_size=step, max_iter=300, tol=None, keep_history=True).fit(x[:, None], y)
stages = np.array(list(model.staged_predict(x[:, None])))
largest = np.abs(stages - np.array(path) @ features.T).max()
print(f"largest difference of the two descents over 300 steps: {largest:.1e}")

# %%
grid = np.linspace(-1, 1, 200)
_, ax = plt.subplots(layout="constrained")
ax.plot(x, y, ".", color="0.3", label="data")
for steps, line in {1: ":", 10: "-.", 50: "--", 300: "-"}.items():
    cubic = np.polynomial.Polynomial(path[steps])
    ax.plot(grid, cubic(grid), line, label=f"after {steps} step{'s' * (steps > 1)}")
ax.set(xlabel="x", ylabel="y")
ax.legend()

# %%
# One row at a time
# -----------------
# The stochastic rule (5.4) corrects one row, and with the kernel one coefficient:
# :math:`\beta_i := \beta_i + \alpha (y_i - \sum_j \beta_j K(x_j, x_i))`. The error
# falls sooner, and then wavers: the step does not shrink.

errors = {"batch (5.11)": ((stages - y) ** 2).mean(axis=1)}
one = KernelLMS(kernel, mode="stochastic", max_iter=300, tol=None, keep_history=True).fit(x[:, None], y)
errors["stochastic (5.4)"] = [((f - y) ** 2).mean() for f in one.staged_predict(x[:, None])]
_, ax = plt.subplots(layout="constrained")
for (name, values), style in zip(errors.items(), ("-", "--"), strict=True):
    ax.loglog(np.arange(1, len(values) + 1), values, style, label=name)
    print(f"{name}: mean squared error {values[-1]:.4f} after {len(values) - 1} passes over the rows")
ax.set(xlabel="passes over the rows", ylabel="mean squared error")
ax.legend()
