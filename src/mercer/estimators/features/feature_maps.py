"""Explicit features whose inner products approximate a kernel: Nyström's and random Fourier features."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.approx.fourier import draw_frequencies, fourier_features
from mercer.approx.landmarks import choose_landmarks
from mercer.approx.nystroem import SAMPLE, inverse_root
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.indefinite import known_values
from mercer.factorizations.pivoted_cholesky import BLOCK
from mercer.gram import KernelOperator
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.numerals import counted
from mercer.points import count, parse_memory, points_of, require, sample_rows, take
from mercer.schemas import NON_NEGATIVE, Array, Rows, Schema
from mercer.ways.report import Report

__all__ = ["Nystroem", "RandomFourierFeatures"]

MEASURED = 256
"""Rows of the random block on which an approximation is compared with the kernel."""


class _FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """The base of feature maps: memory, dtype, and the measured error of the approximation."""

    n_components: Any
    random_state: Any

    def _measure(self, K: KernelOperator, X: Any, seed: int, report: Report) -> None:
        """‖K − ΦΦᵀ‖/‖K‖ on a random block of training rows, in the report."""
        n = K.shape[0]
        some = sample_rows(n, MEASURED, [seed, 1])
        with report.stage("measure"):
            Phi = np.asarray(self._map(self._held(take(X, some))), np.float64)
            exact = np.asarray(K.block(some, some), np.float64)
            off = np.abs(exact - Phi @ Phi.T)
        scale = float(np.linalg.norm(exact))
        report.residual = float(np.linalg.norm(off)) / scale if scale > 0 else float(np.linalg.norm(off))
        report.status, report.tolerance = "measured", float("nan")
        report.rank = self._n_features_out
        report.notes.append(
            f"on {len(some)} random training rows ‖K − ΦΦᵀ‖/‖K‖ = {report.residual:.1e} "
            f"and the largest error of a kernel value is {float(off.max()):.1e}"
        )

    @staticmethod
    def _measured_bytes(K: KernelOperator) -> int:
        """Bytes for the rows that `_measure` takes (two copies if scattered), and for the engine's copies of them."""
        n = K.shape[0]
        some = min(n, MEASURED)
        return (1 + (some < n)) * K.x.nbytes * some // max(n, 1) + K.copies_of(some, some)

    def _map(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def transform(self, X: Any) -> np.ndarray:
        """φ of each row: of shape (m, features), in the dtype of X unless the kernel's values overflow there."""
        return self._features(self._validate_new(X))

    def _features(self, X: Any) -> np.ndarray:
        """φ of validated rows; refused if the features do not fit in memory."""
        self._afford(X)
        return self._map(self._held(X))

    def _held(self, X: Any) -> Any:
        """The rows in a dtype that holds their kernel values."""
        vectors = self.kernel_.space.vectors
        return X.astype(KernelOperator(self.kernel_, X).dtype, copy=False) if vectors else X

    def _afford(self, X: Any) -> None:
        n, itemsize = count(X), getattr(getattr(X, "dtype", None), "itemsize", 8)
        what = f"{type(self).__name__}'s features of {n} rows"
        require(
            2 * itemsize * n * self._n_features_out, parse_memory(self.memory), what, "transform fewer rows at a time"
        )


class Nystroem(_FeatureMap):
    r"""φ(x) = K_mm^(−½) k_m(x), so that ⟨φ(x), φ(z)⟩ = k_m(x)ᵀ K_mm⁻¹ k_m(z) ≈ k(x, z), from m landmarks.

    Exact if x or z is a landmark. K_mm^(−½) is V λ^(−½) Vᵀ in float64 over the eigenvalues λ ≥ eps·m·λ₁, eps that of
    the data's dtype: what is below is rounding, and dividing by it would make errors of any size.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    n_components : int, default 100
        m; fewer if there are fewer rows, or fewer independent ones.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        "pivoted" chooses training rows by randomly pivoted Cholesky, in proportion to what is still unexplained;
        "uniform" at random; "kmeans" takes cluster centres of the rows. Integers name training rows, and an array of
        two dimensions is the landmarks themselves.
    random_state : int, RandomState or None, default 0
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    components_ : array of shape (m, d)
        The landmarks (column indices for a precomputed kernel).
    component_indices_ : array of shape (m,) or None
        Their places among the training rows; None if they are not among them.
    normalization_ : array of shape (m, m)
        K_mm^(−½).
    kernel_, report_
        As resolved; the report's residual is ‖K − ΦΦᵀ‖/‖K‖ on a random block.

    References
    ----------
    C. K. I. Williams, M. Seeger (2001). Using the Nyström method to speed up kernel machines. NeurIPS 13.
    Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber (2025). Randomly pivoted Cholesky.
    K. Zhang, I. W. Tsang, J. T. Kwok (2008). Improved Nyström low-rank approximation and error analysis. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Nystroem
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> features = Nystroem(Gaussian(0.5), 100).fit(X)
    >>> Phi = features.transform(X)
    >>> Phi.shape, bool(np.abs(Phi @ Phi.T - Gaussian(0.5)(X)).max() < 1e-3), features.report_.residual < 1e-3
    ((500, 100), True, True)
    """

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("components_", "m"),
        Array("component_indices_", "m", np.integer, nullable=True, rules=(NON_NEGATIVE,)),
        Array("normalization_", "m m"),
    )

    indefinite_meaning: ClassVar[str] = "only the part of positive eigenvalues of the landmarks' matrix is mapped"

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int = 100,
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
        """Choose the landmarks among the rows of X, and take the root of their kernel matrix; y is ignored."""
        X = self._validate(X)
        K, report = self._begin(X)
        del self.X_fit_  # a feature map keeps no training rows
        self._kernel_size(K)
        m, seed = min(self._checked_count("n_components"), K.shape[0]), self._seed()
        self._plan(K, m, report)
        with report.stage("landmarks"):
            self.component_indices_, self.components_ = choose_landmarks("Nystroem", self.landmarks, K, X, m, seed)
        with report.stage("root"):
            small = self._between_landmarks(K)
            self.normalization_, rank = inverse_root(small, float(np.finfo(report.dtype).eps))
        if rank < len(small):
            report.notes.append(f"the kernel matrix of {len(small)} landmarks has rank {rank}; the rest is rounding")
        report.method = f"Nyström, {counted(len(small), 'landmark')}"
        report.precision = f"{report.dtype}, root in float64"
        report.reason = f"landmarks {self.landmarks if isinstance(self.landmarks, str) else 'given'}"
        self.report_ = report
        self._measure(K, X, seed, report)
        return self

    def _plan(self, K: KernelOperator, m: int, report: Report) -> None:
        """Plan the choice of the landmarks, and then the root and the measurement."""
        n, one = K.shape[0], K.x.nbytes / K.shape[0]
        what, alternatives = f"Nystroem with {m} landmarks of {n} rows", ["fewer components", 'landmarks="uniform"']
        if isinstance(self.landmarks, str) and self.landmarks == "pivoted":
            size = K.x.dtype.itemsize if K.kernel.space.vectors else 8
            report.memory_rows = K.copies_of_few(BLOCK, n)
            report.plan(size * n * (m + BLOCK), what, alternatives)
        elif isinstance(self.landmarks, str) and self.landmarks == "kmeans":
            report.memory_rows = int(2 * one * min(n, SAMPLE * m))  # the sample, and the copy of it that is centred
            report.plan(8 * n, what, alternatives)
        report.memory_rows = int(max(K.copies_of(m, m), self._measured_bytes(K)) + one * m)
        report.plan(4 * 8 * m * m, what, alternatives)

    def _between_landmarks(self, K: KernelOperator) -> np.ndarray:
        """K_mm in float64."""
        if self.component_indices_ is not None:
            return K.block(self.component_indices_, self.component_indices_)
        return KernelOperator(self.kernel_, self.components_, dtype=np.float64).toarray()

    def _map(self, X: Any) -> np.ndarray:
        K = KernelOperator(self.kernel_, X, self.components_, dtype=np.float64)
        low_precision = K.x.dtype == np.float32 and K.fits_float32
        features = K.features(self.normalization_, np.float32 if low_precision else np.float64)
        return known_values(features, K, type(self).__name__)

    @property
    def _n_features_out(self) -> int:
        return len(self.normalization_)


class RandomFourierFeatures(_FeatureMap):
    r"""φ(x) = √(2/D) [cos Wx, sin Wx] with D/2 rows drawn from the spectral measure of k: E⟨φ(x), φ(z)⟩ = k(x, z).

    The error of a kernel value falls as 1/√D, whatever the data; `Nystroem`, which sees the data, does better if the
    spectrum of the kernel matrix decays. ``mercer.approx.fourier.draw_frequencies`` lists the measures.

    Parameters
    ----------
    kernel : Kernel or str, default "gaussian"
        Gaussian, Laplace, Matern, Cauchy or RationalQuadratic; multiples and products of these, on columns and with
        length-scales too.
    n_components : int, default 100
        D: a cosine and a sine for each frequency; of an odd number the last has one cosine at a random offset.
    orthogonal : bool, default False
        Frequencies with orthonormal directions, d at a time: the same mean and less variance.
    random_state : int, RandomState or None, default 0
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    frequencies_ : array of shape (⌈D/2⌉, d)
        W.
    offset_ : float or None
        Phase of the last cosine if D is odd, else None.
    scale_ : float
        k(x, x), by which the squares of the features are multiplied.
    kernel_, report_
        As resolved; the report's residual is ‖K − ΦΦᵀ‖/‖K‖ on a random block.

    References
    ----------
    A. Rahimi, B. Recht (2007). Random features for large-scale kernel machines. NeurIPS 20.
    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar (2016). Orthogonal random features. NeurIPS 29.
    D. J. Sutherland, J. Schneider (2015). On the error of random Fourier features. UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RandomFourierFeatures
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> Phi = RandomFourierFeatures(Gaussian(0.1), 4000, orthogonal=True).fit_transform(X)
    >>> bool(np.abs(Phi @ Phi.T - Gaussian(0.1)(X)).max() < 0.1)
    True
    """

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Array("frequencies_", "frequencies d"), Array("scale_"), Array("offset_", nullable=True)
    )

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int = 100,
        *,
        orthogonal: bool = False,
        random_state: Any = 0,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Resolve the kernel on the rows of X and draw the frequencies; y is ignored."""
        X = self._validate(X)
        D, seed = self._checked_count("n_components"), self._seed()
        K, report = self._begin(X)
        del self.X_fit_  # a feature map keeps no training rows
        d, count = points_of(X).columns, (D + 1) // 2
        W, draws = 8 * count * d, 5 if self.orthogonal else 2
        report.memory_rows = max(self._measured_bytes(K), (draws - 1) * W)  # the draws are gone when rows are taken
        report.plan(W, f"RandomFourierFeatures of {D} columns", "fewer components")
        with report.stage("frequencies"):
            rng = np.random.default_rng([seed, 0])
            drawn = draw_frequencies(self.kernel_, d, count, rng, orthogonal=bool(self.orthogonal))
            self.offset_ = float(rng.uniform(0, 2 * np.pi)) if D % 2 else None
        self.frequencies_, self.scale_ = drawn.W, float(drawn.scale)
        report.method = (
            f"{count} {'orthogonal ' if self.orthogonal else ''}random frequencies, a cosine and a sine each"
        )
        report.reason, report.precision = "draws from the spectral measure", f"{report.dtype} features"
        self.report_ = report
        self._measure(K, X, seed, report)
        return self

    def _map(self, X: Any) -> np.ndarray:
        return fourier_features(X, self.frequencies_, self.scale_, self.offset_)

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.frequencies_) - (self.offset_ is not None)
