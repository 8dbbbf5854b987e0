"""The subspace of kernel PCA and its pre-images, made of plain arrays and compared with linear algebra."""

import numpy as np

from mercer.estimators.pca.preimages import PreImages
from mercer.estimators.pca.subspace import FeatureSubspace
from mercer.kernels import Linear
from mercer.testing import assert_close

RNG = np.random.default_rng(0)
BASIS, NEW = RNG.standard_normal((6, 4)), RNG.standard_normal((5, 4))
ROOT = np.linalg.qr(RNG.standard_normal((4, 2)))[0]  # u₁, u₂ in the space of the rows
DUAL = np.linalg.pinv(BASIS.T) @ ROOT
MEAN = RNG.random(6)
SUBSPACE = FeatureSubspace(Linear(), BASIS, DUAL, MEAN, BASIS @ (BASIS.T @ MEAN))


def test_scores_and_spe_are_those_of_the_rows_themselves():
    m = MEAN @ BASIS
    scores, spe = SUBSPACE.position(NEW)
    assert_close(scores, (NEW - m) @ ROOT)
    outside = (NEW - m) - (NEW - m) @ ROOT @ ROOT.T
    assert_close(spe, (outside**2).sum(axis=1))
    assert_close(SUBSPACE.basis_scores(), SUBSPACE.position(BASIS)[0])
    assert_close(SUBSPACE.basis_spe(), SUBSPACE.position(BASIS)[1])


def test_linear_pre_images_are_the_projections():
    Y = SUBSPACE.position(NEW)[0]
    found = PreImages(SUBSPACE, "auto", None)
    assert_close(found.rows(Y), MEAN @ BASIS + Y @ ROOT.T)
    np.testing.assert_allclose(found.residuals(found.rows(Y), Y), 0.0, atol=1e-12)
    assert_close(found.residuals(found.rows(Y) + 1.0, Y), 4.0)
