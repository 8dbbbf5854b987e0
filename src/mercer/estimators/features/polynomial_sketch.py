"""Explicit features of polynomial kernels; their number does not grow with the degree."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from mercer.approx.sketch import Hashes, allot, draw_hashes, in_unit, pair_variances, power_series, sketch_features
from mercer.errors import InvalidInput, message
from mercer.estimators.features.feature_maps import MEASURED, _FeatureMap
from mercer.points import points_of, sample_rows, take, vectors_of
from mercer.schemas import NON_NEGATIVE, Array, Count, Schema

__all__ = ["PolynomialSketch"]


class PolynomialSketch(_FeatureMap):
    r"""φ(x) = ⊕ⱼ √aⱼ φⱼ(x) for k(x, z) = Σⱼ aⱼ ⟨x, z⟩ʲ: E⟨φ(x), φ(z)⟩ = k(x, z), with φⱼ exact or a tensor sketch.

    The error of a kernel value falls as 1/√D. A tensor sketch of degree j is the count sketch of x ⊗ … ⊗ x, computed as
    a convolution: O(j(d + D log D)) a row, whatever d^j is.

    Parameters
    ----------
    kernel : Kernel or str, default "polynomial"
        Linear, Polynomial, MonomialSum, Constant; sums, products, powers and multiples of these.
    n_components : int, default 100
        D; fewer are used if all monomials are fewer. With fewer than degrees, these share the same features.
    random_state : int, RandomState or None, default 0
        Seed for the hashes.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    coefficients_ : array of shape (p + 1,)
        aⱼ.
    places_ : array of shape (p + 1,)
        How many features each degree has (all, if they are shared).
    exact_ : int
        Degrees below this have all of their monomials, and no error; 0 if the degrees share the features.
    hash_buckets_, hash_signs_ : arrays of shape (factors, d)
        Hashes of the count sketches, degree by degree.
    kernel_, report_
        As resolved; the report's residual is ‖K − ΦΦᵀ‖/‖K‖ on a random block.

    Raises
    ------
    InvalidInput
        If the kernel is 0, or is not a polynomial in ⟨x, z⟩.

    Notes
    -----
    The variance of one value of ⟨x, z⟩ʲ from Dⱼ features is ((N + s² − q)ʲ + (2s² − q)ʲ − 2s²ʲ)/Dⱼ up to 1/Dⱼ², with
    N = ‖x‖²‖z‖², s = ⟨x, z⟩, q = Σxᵢ²zᵢ². From its mean vⱼ over pairs of training rows the features are shared out with
    Dⱼ ∝ aⱼ√vⱼ, which makes Σ aⱼ²vⱼ/Dⱼ least, and low degrees are exact if that makes it less. One sketch of
    (√γ x, √c) for all degrees together, as in scikit-learn's PolynomialCountSketch, has a variance at least that large.
    The hashes do not depend on the data, so that the mean over them is the kernel all the same.

    References
    ----------
    N. Pham, R. Pagh (2013). Fast and scalable polynomial kernels via explicit feature maps. KDD.
    J. Wacker, M. Kanagawa, M. Filippone (2024). Improved random features for dot product kernels. JMLR 25.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PolynomialSketch
    >>> from mercer.kernels import Polynomial
    >>> X = np.random.default_rng(0).standard_normal((200, 30))
    >>> features = PolynomialSketch(Polynomial(3, gamma=1 / 30), 2000).fit(X)
    >>> features.transform(X).shape, features.exact_, features.report_.residual < 0.2
    ((200, 2000), 3, True)
    """

    fitted: ClassVar[Schema] = _FeatureMap.fitted + Schema(
        Array("coefficients_", "degrees", rules=(NON_NEGATIVE,)),
        Array("places_", "degrees", np.integer, rules=(NON_NEGATIVE,)),
        Count("exact_"),
        Array("hash_buckets_", "factors d", np.integer, rules=(NON_NEGATIVE,)),
        Array("hash_signs_", "factors d", np.integer),
    )

    def __init__(
        self,
        kernel: Any = "polynomial",
        n_components: int = 100,
        *,
        random_state: Any = 0,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Resolve the kernel on the rows of X, share out the features and draw the hashes; y is ignored."""
        X = self._validate(X)
        D, seed = self._checked_count("n_components"), self._seed()
        K, report = self._begin(X)
        del self.X_fit_  # a feature map keeps no training rows
        self._kernel_size(K)
        self.coefficients_ = a = power_series(self.kernel_)
        d = points_of(X).columns
        report.memory_rows = self._measured_bytes(K)
        need = 9 * len(a) ** 2 // 2 * d + 8 * 6 * MEASURED**2 + 8 * MEASURED * d
        report.plan(need, f"PolynomialSketch of {D} columns", "fewer columns")
        if not np.any(a > 0):
            raise InvalidInput(message("PolynomialSketch", f"{self.kernel_!r} is 0", "give another kernel"))
        with report.stage("hashes"):
            rows, sizes = in_unit(self._some(X, seed), a)
            self.exact_, places = allot(sizes, pair_variances(rows, len(a) - 1), d, D)
            hashes = draw_hashes(places, self.exact_, d, np.random.default_rng([seed, 0]))
        self.places_ = np.array(places)
        self.hash_buckets_, self.hash_signs_ = hashes
        shares = ", ".join(f"{D} of degree {j}" for j, D in enumerate(places) if D)
        report.method = f"tensor sketches, {shares}"
        reason = f"degrees below {self.exact_} have all monomials" if self.exact_ else "fewer features than degrees"
        report.reason = reason
        report.precision = f"{report.dtype} features"
        self.report_ = report
        self._measure(K, X, seed, report)
        return self

    @staticmethod
    def _some(X: Any, seed: int) -> np.ndarray:
        """Rows in float64, from whose pairs the variances are estimated."""
        n = X.shape[0]
        index = sample_rows(n, MEASURED, [seed, 2])
        return np.asarray(vectors_of(take(X, index)).dense(), np.float64)

    def _map(self, X: Any) -> np.ndarray:
        hashes = Hashes(self.hash_buckets_, self.hash_signs_)
        return sketch_features(X, self.coefficients_, self.places_.tolist(), self.exact_, hashes)

    @property
    def _n_features_out(self) -> int:
        return int(self.places_.sum() if self.exact_ else self.places_.max())
