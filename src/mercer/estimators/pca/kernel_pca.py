"""Kernel principal component analysis ("Kernel methods", 21.1, and "Kernels and nonlinearity")."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.approx.nystroem import FeatureMoments, feature_moments
from mercer.approx.preimages import fixed_point_weight
from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.continued import GIVEN, require_same_kernel
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.base.landmarks import LandmarkSpan, fewest_landmarks, landmark_bytes
from mercer.estimators.pca.exact import (
    ALTERNATIVES,
    WITNESSES,
    CentredEigenproblem,
    exact_components,
    krylov_method,
)
from mercer.estimators.pca.landmarks import (
    LEFT_OUT,
    landmark_components,
    largest_residual,
    left_out,
    plan_landmarks,
    report_span,
)
from mercer.estimators.pca.monitoring import ControlLimits, spe_limit, t2_limit
from mercer.estimators.pca.preimages import DECODER, METHODS, Decoder, PreImages, dense, fit_decoder, is_closed_form
from mercer.estimators.pca.subspace import Components, FeatureSubspace
from mercer.gram import KernelOperator
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.numerals import counted
from mercer.points import apart, require_table
from mercer.schemas import POSITIVE, Array, Count, Part, Record, Rows, Schema
from mercer.solvers import BlockKrylov
from mercer.solvers.choose import DENSE_BELOW, STORED_SHARE, choose_eigen
from mercer.ways.report import Report
from mercer.ways.spectral import eigen_seconds

__all__ = ["KernelPCA"]

DEAREST_PRODUCT = 2e13
"""Multiply-adds in one matrix-free product beyond which "auto" takes landmarks. They are an approximation, so the rates
have no say."""

FEWER = "fewer components:"
ROUNDED = 1e-10
"""The share of the mean square of centred rows up to which what the components leave is rounding."""
"""The beginning of a note that is replaced after each chunk of rows."""


def _can_invert(model: Any) -> bool:
    closed_form = is_closed_form(model.preimage, model._as_kernel(model.kernel))
    return bool(model.fit_inverse_transform or model.preimage == "kwok_tsang" or closed_form)


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""K̃ aⱼ = N λⱼ aⱼ with N λⱼ ‖aⱼ‖² = 1; the score of x on component j is yⱼ = Σᵢ aᵢⱼ k̃(x, xᵢ).

    k̃ is the kernel of the centred features, K̃ = K − 1ₙK − K1ₙ + 1ₙK1ₙ on the training rows. No centred matrix is
    formed: since the eigenvectors of K̃ sum to zero, the scores are K a less a constant per component. Scores have
    variance λⱼ on the training rows.

    Parameters
    ----------
    n_components : int or None, default None
        How many components; None keeps all whose eigenvalue is above rounding, by a full decomposition.
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    solver : {"auto", "dense", "krylov", "nystroem"}, default "auto"
        "dense" is LAPACK on the n × n matrix in float64; "krylov" a randomized block Krylov method with K stored in
        float32, or not stored if it doesn't fit the memory budget or its entries are computed as fast as read (up
        to 100 columns); "nystroem" the PCA of features that landmarks span, an approximation. "auto" chooses by size
        between the exact ones, and takes the last only if one matrix-free product costs more than 2e13
        multiply-adds (n²(d + b) with the block of b ≈ 3k + 16 columns of `BlockKrylov`, so n of some 620 000 at d = 20
        and k = 10) or its vectors don't fit the budget; it warns if the residual is then above `tol`.
    n_landmarks : int or None, default None
        Number of landmarks of "nystroem"; None is max(5k, √n log n), or what fits the budget.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How they are chosen, as for `Nystroem`; integers name training rows, and an array of two dimensions is the
        landmarks themselves. Pivots are chosen among ten random rows for each landmark.
    fit_inverse_transform : bool, default False
        Learn to go back from scores to rows, for `inverse_transform`, `reconstruction_error` and `score`: from the
        training rows, or from the landmarks if only these are kept.
    preimage : {"auto", "ridge", "fixed_point", "kwok_tsang"}, default "auto"
        How `inverse_transform` finds rows. "ridge": kernel ridge regression from scores to rows; any kernel on vectors.
        "fixed_point": Mika's iteration from there; Gaussian and Cauchy kernels and their multiples. "kwok_tsang": from
        the distances to ten neighbours among the rows in X_fit_; kernels of ‖x − z‖ alone or (invertible) of ⟨x, z⟩
        alone, and needs no `fit_inverse_transform`. "auto": exact for the linear kernel, which needs none either,
        "ridge" for all others.
    decoder_kernel : Kernel or str, default "auto"
        The ridge decoder's kernel on the scores. "auto" is the best of "gaussian(gamma='median')", "linear" and the
        model's own kernel (as in scikit-learn) by an estimate of the error against rows without noise, on at most 600
        rows in three folds (`mercer.select.decoders`); the report has the estimates.
    alpha : float, default 0.1
        The decoder's λ: larger for noisy rows, smaller for clean ones (`mercer.select.cross_validate_kernel_pca`).
    tol : float, default 3e-5
        max ‖K̃v − Nλv‖/(Nλ₁) over the components, recomputed for the answer. Eigenvalues are better than that: their
        error is of second order in it (3e-5 left 64 eigenvalues of handwritten digits right to 4e-6, 1e-3 to 5e-2).
        If an eigenvalue is so small that its own residual is a quarter of it, all are found again to 1e-12, in float64.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
        Seed for the random start of the Krylov method, and for the landmarks.

    Attributes
    ----------
    eigenvalues_ : array of shape (k,)
        N λⱼ, the eigenvalues of the centred kernel matrix, descending.
    explained_variance_ : array of shape (k,)
        λⱼ = eigenvalues_/N, the variance of the scores.
    explained_variance_ratio_ : array of shape (k,)
        λⱼ over the whole variance, tr K̃/N, of which the components that were not kept have their share. On landmarks
        that is about the mean within their span: larger by the square of the mean's part outside it.
    eigenvectors_ : array of shape (n, k)
        Eigenvectors of K̃, orthonormal; the entry of largest magnitude of each is positive.
    dual_coef_ : array of shape (n, k)
        aⱼ = eigenvector/√(Nλⱼ).
    column_means_ : array of shape (n,)
        ⟨φ(xⱼ), m⟩ = (1/N) Σᵢ k(xᵢ, xⱼ).
    mean_coef_ : array of shape (n,)
        c with m = Σ cᵢ φ(xᵢ), the mean of the features: 1/N.
    n_samples_seen_ : int
        N.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, and the report on method and accuracy.
    decoder_, decoder_mean_
        The fitted `KernelRidge` from scores to centred rows, and their mean, if there is a decoder.

    Notes
    -----
    After "nystroem" and `partial_fit` X_fit_ are the m landmarks, dual_coef_ is of shape (m, k), column_means_ and
    mean_coef_ are of shape (m,) and describe the mean within the landmarks' span, and there is no eigenvectors_, since
    no training rows are kept. All methods work alike.

    Components with Nλ ≤ eps·n·Nλ₁, eps = 2.2e-16, are rounding noise and are dropped, and for float32 rows those with
    Nλ ≤ 32·1.2e-7·Nλ₁: three-dimensional data have three linear components, in float32 too. The chapter
    "Kernels and nonlinearity" divides the scores by another √N; its scores have variance λ/N, these have λ.

    With `tol` of at least 1e-6 the Krylov method uses float32 entries, unless their rounding would show in the result
    (a kernel with a large constant part). The answer is checked by one more product: in float32 too, if what that
    changes, seen on 128 rows multiplied in float64, is a tenth of the tolerance at most, and else in float64.

    References
    ----------
    B. Schölkopf, A. Smola, K.-R. Müller (1998). Nonlinear component analysis as a kernel eigenvalue problem.
    Neural Computation 10.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> from mercer.kernels import Gaussian
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> scores = KernelPCA(2, Gaussian(gamma=2.0)).fit_transform(X)
    >>> bool(abs(scores[:, 0].var() - KernelPCA(2, Gaussian(gamma=2.0)).fit(X).explained_variance_[0]) < 1e-12)
    True
    """

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        GIVEN,
        Rows("X_fit_"),
        Count("n_samples_seen_"),
        Array("eigenvalues_", "components", rules=(POSITIVE,)),
        Array("explained_variance_", "components", rules=(POSITIVE,)),
        Array("explained_variance_ratio_", "components"),
        Array("dual_coef_", "n components"),
        Array("column_means_", "n"),
        Array("mean_coef_", "n"),
        Array("eigenvectors_", "n components", optional=True),
        Array("decoder_mean_", "d", optional=True),
        Part("decoder_", "components", optional=True, nullable=True),
        Array("_feature_root", "n n", optional=True),
        Array("_landmark_matrix", "n n", optional=True),  # in models of earlier versions
        Record(
            "_feature_moments",
            (Count("rows"), Array("mean", "n"), Array("scatter", "n n"), Array("trace")),
            optional=True,
        ),
    )

    penalty: ClassVar[str] = ""  # alpha is of the decoder, not of the components
    centres: ClassVar[bool] = True
    indefinite_meaning: ClassVar[str] = (
        "only components of positive eigenvalues are kept, as in classical scaling: a picture in a Euclidean space"
    )

    def __init__(
        self,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        *,
        solver: Literal["auto", "dense", "krylov", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        fit_inverse_transform: bool = False,
        preimage: Literal["auto", "ridge", "fixed_point", "kwok_tsang"] = "auto",
        decoder_kernel: Any = "auto",
        alpha: float = 0.1,
        tol: float = 3e-5,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.fit_inverse_transform = fit_inverse_transform
        self.preimage = preimage
        self.decoder_kernel = decoder_kernel
        self.alpha = alpha
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the rows of X (array-like or CSR matrix of shape (n, d)); y is ignored."""
        self._check_preimage()
        X = self._validate(X, ensure_min_samples=2)
        K, report = self._begin(X)
        self.report_, self._given_kernel = report, self._as_kernel(self.kernel)
        n, size = K.shape[0], self._kernel_size(K)
        low_precision = self.tol >= 1e-6 and size.fits_float32
        k = n if self.n_components is None else self._checked_components(n)
        if n > DENSE_BELOW and self.solver in ("auto", "krylov"):
            K.keep_factors(report.room)
        narrow = K.astype(np.float32)
        compared = K.copies if K.cheap else narrow.copies_of_few(WITNESSES, n)  # for the check of float32 products
        rows = narrow.copies + compared if low_precision else K.copies
        work, itemsize = K.product_work(BlockKrylov().columns(n, k)), 4 if low_precision else 8
        name = self._choose(n, k, report, eigen_seconds(K, k), rows, itemsize, work)
        if name != "krylov":  # their plans are without factors
            K.drop_factors()
        if name == "nystroem":
            self._fit_landmarks(K, X, report)
            self._measure_residual(X, report)
        else:
            problem = CentredEigenproblem(K, k, self.tol, size.trace, self._seed(), report, self._account)
            found = problem.by_krylov(size, low_precision) if name == "krylov" else problem.by_lapack()
            self._keep(exact_components(found, size.trace, report.dtype), report)
        self._fit_decoder(report)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """The scores of the training rows, V √(Nλ): equal to ``transform`` of them, with no further product."""
        self.fit(X)
        scores = self._subspace().known_scores
        return self.transform(X) if scores is None else scores

    def _keep(self, found: Components, report: Report) -> None:
        """Name the results as the chapter does."""
        self.eigenvalues_, self.n_samples_seen_ = found.eigenvalues, found.n
        self.dual_coef_, self.mean_coef_, self.column_means_ = found.dual_coef, found.mean_coef, found.column_means
        self.explained_variance_ = found.eigenvalues / found.n
        of_all = found.variance if found.variance > 0 else np.inf
        self.explained_variance_ratio_ = found.eigenvalues / of_all
        if found.eigenvectors is not None:
            self.eigenvectors_ = found.eigenvectors
        report.rank, asked = len(found.eigenvalues), self.n_components
        if asked is not None and report.rank < asked:
            report.notes.append(f"{FEWER} {asked} were requested, {report.rank} are above rounding noise")
        if not report.rank:  # the residual of what was left out is noise over noise
            report.residual = 0.0

    def _checked_components(self, n: int) -> int:
        return min(self._checked_count("n_components", ", or None for all"), n)

    def _choose(
        self, n: int, k: int, report: Report, seconds: dict[str, float], rows: int, itemsize: int, work: float
    ) -> str:
        """The method, and its memory; `rows` are the bytes of block Krylov's copies of rows, `itemsize` of entries.

        `work` are the multiply-adds of a product with its block.
        """
        self._checked_choice("solver", "auto", "dense", "krylov", "nystroem")
        choice = choose_eigen(n, k, report.room, self.tol, itemsize, seconds=seconds)
        name = choice.name if self.solver == "auto" else self.solver
        report.reason = choice.reason if self.solver == "auto" else "as requested"
        vectors, whole = BlockKrylov().memory(n, k, itemsize), itemsize * n * n
        made = seconds.get("matrix-free", np.inf) < seconds.get("stored", np.inf)
        too_dear = self._too_dear(n, k, vectors, work, report) if self.solver == "auto" and not choice.stored else ""
        if name == "nystroem" or too_dear:
            report.reason = too_dear or report.reason
            return "nystroem"
        if name == "dense":
            report.method, need = "LAPACK, float64", 8 * n * (n * (1 + (n <= DENSE_BELOW)) + k)
        else:
            most = report.room if choice.stored else STORED_SHARE * report.room
            stored = (choice.stored or not made) and whole + vectors <= most
            report.method, need = krylov_method(n, itemsize, stored), vectors + stored * whole
        way = "dense" if name == "dense" else "stored" if "stored" in report.method else "matrix-free"
        if np.isfinite(seconds.get("matrix-free", np.inf)):
            report.predict(seconds[way], "kernel matrix", "eigenvalues", "check")
        report.memory_rows = report.memory_rows if name == "dense" else rows
        report.plan(need, f"KernelPCA of {n} rows and {k} components", ALTERNATIVES)
        return name

    def _too_dear(self, n: int, k: int, vectors: int, work: float, report: Report) -> str:
        """Why "auto" avoids the exact matrix-free method, or ""; it never does if all components are requested."""
        if self.n_components is None:
            return ""
        if work > DEAREST_PRODUCT:
            return f"a matrix-free product would take {work:.0e} multiply-adds, above {DEAREST_PRODUCT:.0e}"
        if vectors > report.room >= landmark_bytes(n, fewest_landmarks(n, k)):
            return "its vectors would take {} of {}".format(*apart(vectors, report.room))
        return ""

    # ---- on landmarks ------------------------------------------------------------------------------------------------

    def _fit_landmarks(self, K: KernelOperator, X: Any, report: Report) -> None:
        """Choose the landmarks among the rows X, and gather the moments of all rows' features."""
        k = None if self.n_components is None else self._checked_components(K.shape[0])
        m = plan_landmarks(self.landmarks, self._count_or_none("n_landmarks"), K, k, report)
        with report.stage("landmarks"):
            span = LandmarkSpan.chosen("KernelPCA", self.landmarks, K, X, m, self._seed())
        report_span(span, self.landmarks, m, report)
        self.X_fit_, self._feature_root = span.landmarks, span.root
        self._gather(FeatureMoments.none(len(span.root)), K, X, span.matrix, report)

    def _gather(self, start: FeatureMoments, K: KernelOperator, X: Any, matrix: np.ndarray, report: Report) -> None:
        """Add the rows X to those with the moments `start`, and compute the components of all; `matrix` is K_mm."""
        diagonal = np.asarray(K.diagonal(), np.float64)
        with report.stage("features"):
            moments = feature_moments(start, self.kernel_, X, self.X_fit_, self._feature_root, diagonal)
        self._feature_moments, report.n = moments, moments.rows
        with report.stage("eigenvalues"):
            found = landmark_components(matrix, self._feature_root, moments, self.n_components, report.dtype)
        self._keep(found, report)
        if self.kernel_.properties.definiteness.is_mercer:  # else K less its approximation has negative eigenvalues
            report.notes.append(left_out(moments))

    def _measure_residual(self, X: Any, report: Report) -> None:
        """Measure the error of the approximation, and warn of it if no approximation was requested."""
        report.tolerance, report.status = float("nan"), "measured on all rows"
        if not len(self.eigenvalues_):
            return
        with report.stage("check"):
            report.residual, report.status = largest_residual(self._subspace(), self.eigenvalues_, X, self._seed())
        if self.solver == "auto" and report.residual > self.tol:
            given = f"Nyström's approximation has a residual of {report.residual:.1e}, not {self.tol:.0e}"
            do = 'raise n_landmarks, or set solver="krylov" for the exact answer'
            report.warnings.append(message("KernelPCA", given, do))
            warn(report.warnings[-1], ConvergenceWarning)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take more rows into account, on the landmarks chosen from the rows of the first call; y is ignored.

        The features' mean and covariance are gathered exactly, so that the result is that of
        ``fit(solver="nystroem", landmarks=...)`` on all rows at once with these landmarks, however the rows were cut.
        The kernel's parameters too are resolved on the first rows, which should therefore be typical ones, and
        `n_landmarks` follows from their number unless given. After an exact `fit` its rows are the first ones.

        Each call solves one m × m eigenproblem: give as many rows as there are landmarks, or more.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((600, 3))
        >>> model = KernelPCA(2, "gaussian(gamma=0.1)", n_landmarks=50)
        >>> for rows in np.split(X, 3):
        ...     model = model.partial_fit(rows)
        >>> whole = KernelPCA(2, "gaussian(gamma=0.1)", solver="nystroem", landmarks=model.X_fit_).fit(X)
        >>> bool(np.allclose(model.transform(X), whole.transform(X))), model.n_samples_seen_
        (True, 600)
        """
        self._check_preimage()
        if self._space().numbered:
            given = "partial_fit with a precomputed kernel"
            raise InvalidInput(message("KernelPCA", given, "give the kernel itself, or use fit"))
        first = not hasattr(self, "n_samples_seen_")
        X = self._validate(X, reset=first)
        if first or not hasattr(self, "_feature_moments"):
            self._start_landmarks(X if first else self.X_fit_)
        require_same_kernel(self)
        report = self.report_ = self.report_.continued()
        report.method, report.reason = f"Nyström, {len(self.dual_coef_)} landmarks, by chunks", "partial_fit"
        if not first:
            self._add_rows(X, report)
        report.residual, report.tolerance, report.status = float("nan"), float("nan"), "not measured: rows are gone"
        self._fit_decoder(report)
        return self

    def _start_landmarks(self, X: Any) -> None:
        """Choose landmarks among the rows of the first call, and gather the moments of their features."""
        K, report = self._begin(X)
        for name in ("n_samples_seen_", "eigenvectors_"):  # of an exact fit
            self.__dict__.pop(name, None)
        self.report_, self._given_kernel = report, self._as_kernel(self.kernel)
        self._kernel_size(K)
        self._fit_landmarks(K, X, report)
        if (wanted := self.n_components or 0) > len(self.dual_coef_):
            given = f"n_components={wanted} of the landmarks of the first call, {len(self.dual_coef_)}"
            warn(message("KernelPCA", given, f"give at least {wanted} rows to the first call of partial_fit"))

    def _add_rows(self, X: Any, report: Report) -> None:
        """The components of all rows so far and these."""
        K = KernelOperator(self.kernel_, X, dtype=np.float64)
        self._kernel_size(K)  # refuses values that are not finite
        report.notes = [note for note in report.notes if not note.startswith((LEFT_OUT, FEWER, DECODER))]
        matrix = LandmarkSpan.between(self.X_fit_, K)
        self._gather(FeatureMoments(*self._feature_moments), K, X, matrix, report)

    # ---- new rows ----------------------------------------------------------------------------------------------------

    def _subspace(self) -> FeatureSubspace:
        known = self.eigenvectors_ * np.sqrt(self.eigenvalues_) if hasattr(self, "eigenvectors_") else None
        return FeatureSubspace(
            self.kernel_, self.X_fit_, self.dual_coef_, self.mean_coef_, self.column_means_, known_scores=known
        )

    def _expansion(self) -> Expansion | None:
        check_is_fitted(self)
        return expansion_of(self, -self._subspace().offset, prefix="component ")

    def transform(self, X: Any) -> np.ndarray:
        """The scores of new rows: of shape (m, k), float64."""
        return np.asarray(self._expanded(X) - self._subspace().offset)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    # ---- monitoring --------------------------------------------------------------------------------------------------

    def hotelling_t2(self, X: Any) -> np.ndarray:
        """T² = Σⱼ yⱼ²/λⱼ of each row: its squared distance from the mean within the components, in their variances.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,)

        Notes
        -----
        λⱼ is `explained_variance_`, whose divisor is N; with the divisor N − 1 T² is this times (N − 1)/N.

        References
        ----------
        J.-M. Lee, C. Yoo, S. W. Choi, P. A. Vanrolleghem, I.-B. Lee (2004). Nonlinear process monitoring using kernel
        principal component analysis. Chemical Engineering Science 59.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((200, 5))
        >>> model = KernelPCA(3, "linear").fit(X)
        >>> bool(np.isclose(model.hotelling_t2(X).mean(), 3))
        True
        """
        return np.asarray(np.sum(self.transform(X) ** 2 / self.explained_variance_, axis=1))

    def spe(self, X: Any) -> np.ndarray:
        """SPE = k̃(x, x) − Σⱼ yⱼ² of each row: its squared distance in feature space from the components (also Q).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,), at least 0

        Raises
        ------
        InvalidInput
            For a precomputed kernel: k(x, x) of new rows is not among the values it is given.

        Notes
        -----
        The size of SPE depends on the kernel: SPE of two kernels cannot be compared, `reconstruction_error` can. On the
        Nyström method the mean is the one within the landmarks' span.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> bool(KernelPCA(kernel="linear").fit(X).spe(X).max() < 1e-12)  # all components: nothing is left
        True
        """
        rows = self._validate_new(X)
        self._refuse_precomputed("spe")
        return self._subspace().position(rows)[1]

    def control_limits(self, level: float = 0.99, X: Any = None) -> ControlLimits:
        """Limits of T² and SPE: k(N + 1)/(N − k) F for T² and g χ²_h for SPE, moments matched to rows in control.

        Parameters
        ----------
        level : float in (0, 1), default 0.99
        X : array-like of shape (m, d), optional
            Rows in control for SPE's mean and variance, best ones that the model has not seen: SPE of its training rows
            is too small if there are few of them. Unless given the training rows, which exact fits keep.

        Returns
        -------
        ControlLimits

        Raises
        ------
        InvalidInput
            For a level outside (0, 1), no fewer components than rows, and a Nyström model without `X`.

        Warns
        -----
        UserWarning
            If the components leave nothing but rounding of these rows: any other row would exceed SPE's limit.

        Notes
        -----
        The F limit holds for Gaussian scores along fixed directions, as those of a linear kernel on many Gaussian rows
        nearly are. Directions of few rows are chosen for their variance in these rows, so that new rows have a smaller
        T²: of 80 rows of 5 columns 2 % of new ones exceed a limit of 5 %, of 30 rows of 20 columns none. Scores of
        other kernels are only near it. Compare with the share of held-out rows in control that exceed it.

        References
        ----------
        P. Nomikos, J. F. MacGregor (1995). Multivariate SPC charts for monitoring batch processes. Technometrics 37.
        N. D. Tracy, J. C. Young, R. L. Mason (1992). Multivariate control charts for individual observations.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> rng = np.random.default_rng(0)
        >>> model = KernelPCA(2, "linear").fit(rng.standard_normal((500, 4)))
        >>> limits = model.control_limits(level=0.95)
        >>> bool(0.02 < (model.spe(rng.standard_normal((2000, 4))) > limits.spe).mean() < 0.08)
        True
        """
        if not (isinstance(level, (float, np.floating)) and 0 < level < 1):
            raise InvalidInput(message("control_limits", f"level={level!r}", "give a number between 0 and 1"))
        spe = self._subspace_of_training_rows().basis_spe() if X is None else self.spe(X)
        k = len(self.eigenvalues_)
        if k and np.mean(spe) <= ROUNDED * np.sum(self.eigenvalues_) / self.n_samples_seen_:
            do = "give X=, rows in control that the model has not seen, or take fewer components"
            warn(message("control_limits", f"{k} components leave nothing but rounding for SPE's limit", do))
        return ControlLimits(t2_limit(k, self.n_samples_seen_, level), spe_limit(spe, level), float(level))

    def _subspace_of_training_rows(self) -> FeatureSubspace:
        check_is_fitted(self)
        self._refuse_precomputed("control_limits")
        if not hasattr(self, "eigenvectors_"):
            given = "control_limits of a Nyström model, which keeps landmarks and not its training rows"
            raise InvalidInput(message(type(self).__name__, given, "give X, rows in control"))
        return self._subspace()

    def _refuse_precomputed(self, what: str) -> None:
        if self._space().numbered:
            given = f"{what} with a precomputed kernel, which has no k(x, x) of a new row"
            raise InvalidInput(message(type(self).__name__, given, "give the kernel itself and the rows"))

    # ---- pre-images --------------------------------------------------------------------------------------------------

    def _preimages(self) -> PreImages:
        decoder = Decoder(self.decoder_mean_, self.decoder_) if hasattr(self, "decoder_mean_") else None
        return PreImages(self._subspace(), self.preimage, decoder, self.memory)

    def inverse_transform(self, X: Any, *, return_residual: bool = False) -> Any:
        r"""Rows x̂ whose features are near P = m + Σⱼ yⱼ uⱼ, from scores y, by the method that `preimage` names.

        Parameters
        ----------
        X : array-like of shape (m, k)
            Scores, as `transform` gives them.
        return_residual : bool, default False
            Whether to return ‖φ(x̂) − P‖² too.

        Returns
        -------
        array of shape (m, d), or that and an array of shape (m,)

        Raises
        ------
        InvalidInput
            If the model was fitted without `fit_inverse_transform` and the method needs it, for a kernel that the
            method has no formula for, and for rows that are not vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelPCA
        >>> X = np.random.default_rng(0).standard_normal((50, 3))
        >>> model = KernelPCA(3, "linear").fit(X)
        >>> bool(np.allclose(model.inverse_transform(model.transform(X)), X))
        True
        """
        check_is_fitted(self)
        self._check_rows()
        require_table(X, type(self).__name__)
        Y, k = check_array(X, dtype=np.float64, ensure_min_features=0), self.dual_coef_.shape[1]
        if Y.shape[1] != k:
            given = f"scores of {counted(Y.shape[1], 'column')} for {counted(k, 'component')}"
            raise InvalidInput(message(type(self).__name__, given, "give what transform returns"))
        preimages = self._preimages()
        rows = preimages.rows(Y)
        return (rows, preimages.residuals(rows, Y)) if return_residual else rows

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """‖x − x̂‖² of each row, x̂ the pre-image of its projection: in the units of the rows, whatever the kernel.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Returns
        -------
        array of shape (m,)
        """
        rows = self._validate_new(X)
        self._check_rows()
        apart = self.inverse_transform(self.transform(X)) - dense(rows)
        return np.asarray(np.einsum("ij,ij->i", apart, apart))

    @available_if(_can_invert)
    def score(self, X: Any, y: Any = None) -> float:
        """−(1/m) Σ ‖x − x̂‖², for searches over kernels and numbers of components; y is ignored.

        It is in the units of the rows, so that kernels can be compared by it, as they cannot by errors in feature
        space (Alam & Fukumizu 2014, Journal of Computer Science 10).
        """
        return -float(np.mean(self.reconstruction_error(X)))

    def _check_preimage(self) -> None:
        self._checked_choice("preimage", *METHODS)
        if self.fit_inverse_transform and not self._space().vectors:
            self._check_rows()

    def _check_rows(self) -> None:
        if not self._space().vectors:
            given = "pre-images for rows that are not vectors of numbers"
            raise InvalidInput(message(type(self).__name__, given, "give rows, and a kernel on them"))

    def _fit_decoder(self, report: Report) -> None:
        """Learn to go from scores to the rows in X_fit_, if the method needs it."""
        for name in ("decoder_", "decoder_mean_"):
            self.__dict__.pop(name, None)
        if not self.fit_inverse_transform or self.preimage == "kwok_tsang":
            return
        if is_closed_form(self.preimage, self.kernel_):
            return
        if self.preimage == "fixed_point":
            fixed_point_weight(self.kernel_)  # refuses kernels that it has no formula for
        penalty = self._checked_number("alpha", or_equal=True)
        decoder = fit_decoder(self._subspace(), self.decoder_kernel, penalty, self.memory, self._seed(), report)
        self.decoder_mean_, self.decoder_ = decoder.mean, decoder.ridge
