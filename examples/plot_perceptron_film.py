r"""
The film of the kernel perceptron
=================================

"Kernel methods" (lecture 9) shows the perceptron as it learns: gradient descent in the coefficients of

.. math:: f(x) = \sum_k \alpha_k \kappa(x_k, x), \quad
          \alpha_{k,t+1} = \alpha_{k,t} - \eta \frac{\partial \varepsilon}{\partial \alpha_k}

on the squared error. The colour is f(x), the line its zero, and discs are the training points: their colour is the
sign of α, their area its size.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from mercer import KernelPerceptron
from mercer.plots import DecisionSurfaceDisplay, film

X, y = make_moons(200, noise=0.15, random_state=0)
model = KernelPerceptron("gaussian(gamma=2.0)", max_iter=200, tol=None, keep_history=True).fit(X, y)
moons = film(model, X, y)
print(f"{len(moons)} frames; {len(moons.html()) / 1e3:.0f} kB as a page, which moons.save('moons.html') writes")
moons  # a notebook, and this page, shows the film itself

# %%
# The last frame
# --------------
# α is mostly positive in the one class and negative in the other, as the lecture expects.

display = DecisionSurfaceDisplay.from_estimator(model, X, y)

# %%
# The error falls
# ---------------

errors = [float(((f > 0) != y).mean()) for f in model.staged_decision_function(X)]
_, ax = plt.subplots(layout="constrained")
ax.plot(errors)
ax.set(xlabel="step", ylabel="share of rows on the wrong side")
