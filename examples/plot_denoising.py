r"""
Denoising digits
================

Noise is in all components, a digit mostly in the first ones. So project an image on the first components of kernel
PCA and look for the image whose features are nearest to the projection, its pre-image:

.. math:: \hat x = \arg\min_z \|\varphi(z) - P\varphi(x)\|^2
"""

import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelPCA
from mercer.plots import PreImagesDisplay

clean = load_digits().data / 16
noise = np.random.default_rng(0).normal(scale=0.25, size=clean.shape)
noisy = clean + noise
fitted, held = noisy[:1000], noisy[1000:]

# %%
# The components, and the ridge regression that decodes them, are fitted on noisy images only. The decoder's kernel is
# chosen by cross-validated reconstruction.

model = KernelPCA(60, "gaussian", fit_inverse_transform=True, alpha=5e-3).fit(fitted)
denoised = model.inverse_transform(model.transform(held))


def error(images):
    """The mean squared error of a pixel."""
    return np.mean((images - clean[1000:]) ** 2)


print(f"mean squared error of a pixel: noisy {error(held):.4f}, denoised {error(denoised):.4f}")

# %%
display = PreImagesDisplay.from_estimator(model, held, clean=clean[1000:])
