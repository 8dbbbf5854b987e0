"""The values of a kernel at the training rows, as features for any method on vectors."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.approx.landmarks import WAYS, choose_landmarks, refused_landmarks
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.features.feature_maps import _FeatureMap
from mercer.gram import KernelOperator
from mercer.operators.arrays import require_finite
from mercer.points import count, points_of
from mercer.schemas import NON_NEGATIVE, Array, Rows, Schema

__all__ = ["EmpiricalKernelMap"]


class EmpiricalKernelMap(_FeatureMap):
    r"""φ(x) = (k(x, x₁), …, k(x, xₙ)): the rows of the kernel matrix as features, of training rows or of landmarks.

    A linear method on these features finds f(x) = Σⱼ wⱼ k(x, xⱼ) + b, as a kernel machine does, but with ‖w‖²
    for a penalty instead of wᵀKw. Inner products are ⟨φ(x), φ(z)⟩ = Σⱼ k(x, xⱼ) k(xⱼ, z), those of K² and not of K
    (`Nystroem` has those of K), so that the function k need not be positive semi-definite.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. Of rows of any kind. If k(x, x) differs
        much from row to row, as for sequences, `normalized()` keeps long ones from having all the weight.
    n_components : int, optional
        How many landmarks; None is every training row, in its order (or every landmark, if they are given).
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How `n_components` of them are chosen, as for `Nystroem`; integers name training rows, and an array of two
        dimensions is the landmarks themselves.
    random_state : int, RandomState or None, default 0
        Seed for the choice of landmarks.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    components_ : array of m rows
        x₁, …, the columns' rows (column indices for a precomputed kernel).
    component_indices_ : array of shape (m,) or None
        Their places among the training rows; None if they are not among them.
    kernel_, report_
        As resolved; the features are exact, so that the report has no residual.

    Raises
    ------
    InvalidInput
        For parameters that are none of these, and for kernel values that are not finite.
    MemoryExceeded
        If the features do not fit the budget.

    References
    ----------
    B. Schölkopf, S. Mika, C. J. C. Burges, P. Knirsch, K.-R. Müller, G. Rätsch, A. J. Smola (1999). Input space versus
    feature space in kernel-based methods. IEEE Transactions on Neural Networks 10.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import EmpiricalKernelMap
    >>> from mercer.kernels import Spectrum
    >>> words, kind = ["banana", "bandana", "cabana", "fizz", "buzz", "fuzz"], [0, 0, 0, 1, 1, 1]
    >>> machine = make_pipeline(EmpiricalKernelMap(Spectrum(2).normalized()), RidgeClassifier()).fit(words, kind)
    >>> machine.predict(["havana", "fuzzy"])
    array([0, 1])
    """

    fitted: ClassVar[Schema] = _FeatureMap.fitted + Schema(
        Rows("components_", "m"),
        Array("component_indices_", "m", np.integer, nullable=True, rules=(NON_NEGATIVE,)),
    )

    indefinite_meaning: ClassVar[str] = ""

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = None,
        *,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        random_state: Any = 0,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Resolve the kernel on the rows of X and keep them, or landmarks among them; y is ignored."""
        self._fit(self._validate(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """φ of the training rows: of shape (n, features). Of all rows it is K, whose pairs are computed once."""
        X = self._validate(X)
        K = self._fit(X)
        if self.component_indices_ is None or not np.array_equal(self.component_indices_, np.arange(K.shape[0])):
            return self._features(X)
        self._afford(X)
        low_precision = getattr(X, "dtype", None) == np.float32
        features = np.array((K.in_float32() if low_precision else K).toarray())
        require_finite(features, "EmpiricalKernelMap")
        return features

    def _fit(self, X: Any) -> KernelOperator:
        m, seed = None if self.n_components is None else self._checked_count("n_components"), self._seed()
        K, report = self._begin(X)
        del self.X_fit_  # `components_` has the ones that are kept
        self._kernel_size(K)
        n = count(X)
        every = m is None and isinstance(self.landmarks, str)
        if every and self.landmarks not in WAYS:
            raise refused_landmarks(type(self).__name__, self.landmarks, n)
        report.memory_rows = 0 if every else K.copies
        kept = points_of(X).nbytes * min(m or n, n) // max(n, 1)
        report.plan(kept, f"EmpiricalKernelMap of {n} rows", "fewer components")
        with report.stage("landmarks"):
            how = np.arange(n) if every else self.landmarks
            found = choose_landmarks(type(self).__name__, how, K, X, min(m or n, n), seed)
        self.component_indices_, self.components_ = found
        size = self._n_features_out
        report.method, report.rank = f"kernel values at {size} {'training rows' if every else 'landmarks'}", size
        given = not isinstance(self.landmarks, str)
        report.reason = "all rows" if every else f"landmarks {'given' if given else self.landmarks}"
        report.precision, report.status = f"{report.dtype} features", "exact"
        report.residual = report.tolerance = float("nan")
        self.report_ = report
        return K

    def _map(self, X: Any) -> np.ndarray:
        K = KernelOperator(self.kernel_, X, self.components_)
        return known_values(np.array(K.toarray()), K, "EmpiricalKernelMap")

    @property
    def _n_features_out(self) -> int:
        return count(self.components_)
