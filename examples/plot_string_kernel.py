r"""
The string kernel as its table
==============================

The subsequence kernel counts the subsequences of p symbols that two words share, each weighted by :math:`\lambda` to
the power of the lengths that it spans in both. Dynamic programming fills a table over the prefixes: with :math:`S_0 =
1`,

.. math:: D_q(i, j) = [s_i = t_j] \lambda^2 S_{q-1}(i-1, j-1), \quad
          S_q(i, j) = D_q(i, j) + \lambda S_q(i-1, j) + \lambda S_q(i, j-1) - \lambda^2 S_q(i-1, j-1),

and the kernel is the sum of all :math:`D_p(i, j)`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.kernels import Subsequence


def tables(s, t, p, decay):
    """D_q for q = 1, …, p, of shape (p, len(s), len(t))."""
    found = np.zeros((p, len(s), len(t)))
    before = np.ones((len(s) + 1, len(t) + 1))  # S of the level below
    for q in range(p):
        sums = np.zeros((len(s) + 1, len(t) + 1))
        for i in range(len(s)):
            for j in range(len(t)):
                if s[i] == t[j]:
                    found[q, i, j] = decay**2 * before[i, j]
                sums[i + 1, j + 1] = (
                    found[q, i, j] + decay * sums[i, j + 1] + decay * sums[i + 1, j] - decay**2 * sums[i, j]
                )
        before = sums
    return found


# %%
# cat and car share "ca" only, which spans two symbols in both words: λ⁴ for p = 2.

decay = 0.5
found = tables("cat", "car", 2, decay)[-1].sum()
ours = float(Subsequence(2, decay=decay, exact=True)(["cat"], ["car"])[0, 0])
print(f"by the table {found}, by the kernel {ours}, λ⁴ = {decay**4}")

# %%
# The table of two words
# ----------------------

s, t = "gattaca", "attack"
levels = tables(s, t, 3, decay)
fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for q, (ax, table) in enumerate(zip(axes, levels, strict=True), start=1):
    ax.imshow(table, cmap="cividis")
    ax.set_xticks(range(len(t)), t)
    ax.set_yticks(range(len(s)), s)
    ax.set_title(f"D with q = {q}: its sum is {table.sum():.4f}")
    for i, j in zip(*np.nonzero(table), strict=True):
        light = table[i, j] > table.max() / 2
        ax.text(j, i, f"{table[i, j]:.2g}", ha="center", va="center", fontsize=7, color="black" if light else "white")
ours = float(Subsequence(3, decay=decay, exact=True)([s], [t])[0, 0])
print(f"the sum for q = 3 is {levels[-1].sum():.6f}, the kernel {ours:.6f}")
