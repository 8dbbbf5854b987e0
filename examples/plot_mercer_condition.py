r"""
Mercer's condition: a proof and a witness
=========================================

A symmetric function k is a kernel if and only if all its matrices are positive semi-definite ("Kernels and
nonlinearity", theorem 5.1):

.. math:: \sum_{i,j} c_i c_j k(x_i, x_j) \ge 0 \quad \text{for all points } x_i \text{ and numbers } c_i.

`check_kernel` looks for both: a proof from the formula, and points with numbers that refute it.
"""

import numpy as np

from mercer import check_kernel
from mercer.plots import SpectrumDisplay, WitnessDisplay

# %%
# A proof
# -------

print(check_kernel("exp(-0.5 * sqdist) * (1 + dot)**2"))

# %%
# A witness
# ---------
# The sigmoid of the lecture, tanh(xᵀz), is not a kernel: two points are enough to see it.

report = check_kernel("tanh(dot)")
print(report)
display = WitnessDisplay.from_report(report)

# %%
# The spectrum
# ------------
# Its matrices have negative eigenvalues far beyond rounding.

X = np.random.default_rng(0).standard_normal((100, 2))
display = SpectrumDisplay.from_kernel("tanh(dot)", X)
