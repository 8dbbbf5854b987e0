r"""
Digits by polynomial and Gaussian machines
==========================================

"Kernel methods" names the recognition of handwritten digits as the case where support vector machines with

.. math:: K(x, z) = (x^T z)^d \quad \text{or} \quad K(x, z) = \exp\left(-\frac{\|x - z\|^2}{2 \sigma^2}\right)

came as near to the best methods as those that were made for it, though no knowledge of pixels was put in.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from mercer import SVC

images, labels = load_digits(return_X_y=True)
X, Z, y, t = train_test_split(images / 16, labels, test_size=0.5, random_state=0)

machines = {
    "linear": SVC(C=10, kernel="linear"),
    "polynomial, d = 3": SVC(C=10, kernel="polynomial(degree=3, coef0=0.0, gamma=0.1)"),
    "Gaussian, σ = 2": SVC(C=10, kernel="gaussian(gamma=0.125)"),
}
for name, machine in machines.items():
    machine.fit(X, y)
    print(f"{name}: {machine.score(Z, t):.4f} of {len(t)} unseen digits, {len(machine.support_)} support vectors")

# %%
# Which digits are taken for which
# --------------------------------

_, ax = plt.subplots(layout="constrained")
display = ConfusionMatrixDisplay.from_estimator(machines["Gaussian, σ = 2"], Z, t, ax=ax, cmap="Blues", colorbar=False)
