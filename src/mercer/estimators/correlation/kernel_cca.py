"""Kernel canonical correlation analysis: what two views of the same rows have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import Tags, check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import FLOATS, KernelEstimator
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.base.indefinite import known_values, warn_if_indefinite
from mercer.estimators.correlation.canonical import CanonicalView, canonical_pairs, landmark_view, spectral_view
from mercer.gram import KernelOperator
from mercer.kernels import Kernel
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.numerals import counted
from mercer.points import points_of, require_table, same_names
from mercer.schemas import NON_NEGATIVE, Array, Count, Rows, Schema, Texts, Value
from mercer.shards import together
from mercer.solvers import Solution, Status
from mercer.ways.report import Report

__all__ = ["KernelCCA"]

DENSE_BELOW = 2000
"""Rows up to which two full eigendecompositions take seconds."""

WELL_SOLVED = 1e-8
"""The residual of the equations of the pairs, beyond which the fit warns."""

MOST_LANDMARKS = 1000
"""Landmarks unless told otherwise."""


class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""max αᵀK̃ₓK̃ᵧβ/n over αᵀ(K̃ₓ²/n + κₓK̃ₓ)α = 1 = βᵀ(K̃ᵧ²/n + κᵧK̃ᵧ)β; the scores are Σᵢ αᵢ k̃ₓ(x, xᵢ), Σᵢ βᵢ k̃ᵧ(y, yᵢ).

    The functions f and g of the two views with the greatest covariance, where the variance of each plus κ times its
    squared norm is 1; further pairs are uncorrelated with the earlier ones in that metric. K̃ = HKH is centred.

    Parameters
    ----------
    n_components : int, default 2
        Pairs of directions.
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. Of the first view.
    kernel_y : Kernel, str, callable or None, default None
        Kernel of the second view; None takes `kernel`, with parameters resolved on the second view.
    regularization : float ≥ 0, default 0.03
        κ of each view in units of its own variance in feature space: κₓ = regularization · tr K̃ₓ/n. At 0 this is plain
        CCA in feature space, which is refused if the two ranks add up to more than n − 1: there correlations of 1
        exist whatever the data.
    solver : {"auto", "dense", "nystroem"}, default "auto"
        "dense" is exact, by two eigendecompositions of n × n matrices; "nystroem" works in the feature spaces that the
        landmarks of both views span, in O(n m²). "auto" takes the first up to 2000 rows if it fits the memory.
    n_landmarks : int or None, default None
        m of "nystroem"; None is 1000, or what the memory allows.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
        Seed for the choice of landmarks.

    Attributes
    ----------
    correlations_ : array of shape (k,)
        ρ = αᵀK̃ₓK̃ᵧβ/n, descending: the regularised correlations of the training rows, below 1 for κ > 0. For what is
        to be expected of new rows see ``score``.
    dual_coef_, dual_coef_y_ : arrays of shape (n, k), or (m, k) on landmarks
        α and β.
    offset_, offset_y_ : arrays of shape (k,)
        The means of Σᵢ αᵢ k(x, xᵢ) over the training rows, which are subtracted from scores.
    regularization_x_, regularization_y_ : float
        κₓ and κᵧ.
    n_features_y_ : int
        Columns of the second view.
    feature_names_y_ : list of str
        Their names, if it was a data frame.
    kernel_, kernel_y_, X_fit_, Y_fit_, report_
        The kernels as resolved, the training rows or landmarks of both views, and the report on method and accuracy.

    Raises
    ------
    InvalidInput
        For a view that is constant in feature space, for views of which nothing correlates by more than rounding, for
        invalid parameters, and for κ = 0 without meaning.
    MemoryExceeded
        If the plan does not fit the budget.

    Notes
    -----
    **The constraint.** αᵀ(K̃²/n + κK̃)α is Var f + κ‖f‖², so that this is ridge-regularised CCA of the features: with
    linear kernels it is Vinod's canonical ridge, a repeated data set has the same answer, and for κ → 0 slower than
    n^(−1/3) it converges (Fukumizu, Bach & Gretton). The constraint αᵀ(K̃ + nκI/2)²α = 1 of Bach & Jordan adds a term of
    second order in κ, penalises the coefficients and not the function, and is not finite as n grows.

    **Solution.** With K̃ₓ = UₓSₓUₓᵀ and D = (S(S + nκI)⁻¹)^½ the problem is the singular value decomposition of
    DₓUₓᵀUᵧDᵧ, whose entries are at most 1, and αₚ = √n Uₓ(Sₓ(Sₓ + nκ))^(−½)p: nothing is divided by an eigenvalue that
    was not kept, and no matrix product is inverted.

    References
    ----------
    F. R. Bach, M. I. Jordan (2002). Kernel independent component analysis. JMLR 3.
    D. R. Hardoon, S. Szedmak, J. Shawe-Taylor (2004). Canonical correlation analysis: an overview with application to
    learning methods. Neural Computation 16.
    K. Fukumizu, F. R. Bach, A. Gretton (2007). Statistical consistency of kernel canonical correlation analysis.
    JMLR 8.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(-np.pi, np.pi, 400)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(400, 2))
    >>> Y = angle[:, None] + 0.05 * rng.normal(size=(400, 1))
    >>> model = KernelCCA(1).fit(X[:300], Y[:300])
    >>> model.score(X[300:], Y[300:]) > 0.95
    True
    """

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        Rows("X_fit_"),
        Value("kernel_y_", Kernel),
        Count("n_features_y_", "e"),
        Texts("feature_names_y_", "e", optional=True),
        Rows("Y_fit_", "m", "e", "kernel_y_"),
        Array("correlations_", "pairs"),
        Array("dual_coef_", "n pairs"),
        Array("dual_coef_y_", "m pairs"),
        Array("offset_", "pairs"),
        Array("offset_y_", "pairs"),
        Array("regularization_x_", rules=(NON_NEGATIVE,)),
        Array("regularization_y_", rules=(NON_NEGATIVE,)),
    )

    kernel_parameters = ("kernel", "kernel_y")

    penalty: ClassVar[str] = "regularization"

    centres: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 2,
        kernel: Any = "gaussian",
        kernel_y: Any = None,
        *,
        regularization: float = 0.03,
        solver: Literal["auto", "dense", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.regularization = regularization
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.memory = memory
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Find the pairs of directions.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            The first view.
        y : array-like or CSR matrix of shape (n,) or (n, e)
            The second view of the same rows.
        """
        if y is None:
            given = "requires y to be passed, but the target y is None"
            raise InvalidInput(message(type(self).__name__, given, "give the second view"))
        self._check()
        X, y = together(X, y)
        names = points_of(y).names
        X = self._validate(X, ensure_min_samples=2)
        Y = self._validated_view(y)
        check_consistent_length(X, Y)
        K, report = self._begin(X)
        self.report_ = report
        self.kernel_y_ = self._second().resolve(Y, names)
        L = KernelOperator(self.kernel_y_, Y, dtype=np.float64)
        warn_if_indefinite(L, type(self).__name__, self.indefinite_meaning, report)
        self._warn_if_lost(L, report)
        self._kernel_size(K)
        self.n_features_y_ = points_of(Y).columns
        if names and self.n_features_y_:
            self.feature_names_y_ = list(names)
        method, m = self._plan(K, L, report)
        with report.stage("views"), one_blas_thread(2.0 * K.shape[0] * m**2):
            x = self._view(K, method, m, "X")
            K.release()
            second = self._view(L, method, m, "y")
        self._keep(x, second, report)
        return self

    def fit_transform(self, X: Any, y: Any) -> np.ndarray:  # type: ignore[override]
        """The scores of the training rows in the first view, as pipelines want; ``transform(X, y)`` gives both."""
        return self.fit(X, y).transform(X)

    def _view(self, K: KernelOperator, method: str, m: int, name: str) -> CanonicalView:
        eps = float(np.finfo(K.x.dtype).eps)
        view = (
            spectral_view(K, K.x.anchors().rows, eps) if method == "dense" else landmark_view(K, m, self._seed(), eps)
        )
        if len(view.s) == 0:
            given = f"the view {name} is constant in feature space, so that nothing correlates with it"
            raise InvalidInput(message(type(self).__name__, given, "choose another kernel, or check the rows"))
        return view

    def _keep(self, x: CanonicalView, y: CanonicalView, report: Report) -> None:
        """The pairs, with the largest score of each in the first view positive, and how exact they are."""
        n = len(x.U)
        if self.regularization == 0 and len(x.s) + len(y.s) > n - 1:
            given = f"regularization=0 with ranks {len(x.s)} and {len(y.s)} of {n} rows"
            do = "correlations of 1 exist for all data: give a positive regularization"
            raise InvalidInput(message(type(self).__name__, given, do))
        shifts = float(self.regularization) * float(x.s.sum()), float(self.regularization) * float(y.s.sum())
        self.regularization_x_, self.regularization_y_ = (shift / n for shift in shifts)
        with report.stage("pairs"), one_blas_thread(2.0 * n * len(x.s) * len(y.s)):
            rho, p, q = canonical_pairs(x, y, shifts, int(self.n_components))
            if not len(rho):
                given = "two views of which nothing correlates by more than rounding"
                raise InvalidInput(message(type(self).__name__, given, "choose other kernels, or check the rows"))
            Z, W = (view.U * np.sqrt(view.s) @ c for view, c in ((x, p), (y, q)))
            signs = np.where(Z[np.abs(Z).argmax(axis=0), np.arange(len(rho))] < 0, -1.0, 1.0)
            p, q, Z, W = p * signs, q * signs, Z * signs, W * signs
        self.correlations_ = rho
        self.dual_coef_, self.dual_coef_y_ = x.lift @ p, y.lift @ q
        self.offset_, self.offset_y_ = x.origin @ p, y.origin @ q
        self.X_fit_, self.Y_fit_ = x.anchors, y.anchors
        with report.stage("check"), one_blas_thread(2.0 * n * len(x.s) * len(y.s)):
            off = [
                view.stationarity(own, other, rho, shift * (view.U @ (c / np.sqrt(view.s)[:, None])))
                for view, own, other, shift, c in ((x, Z, W, shifts[0], p), (y, W, Z, shifts[1], q))
            ]
        tol = max(WELL_SOLVED, float(np.finfo(report.dtype).eps) * n)  # eigenvalues below this share are left out
        status = Status.CONVERGED if max(off) <= tol else Status.STALLED
        self._account(report, Solution(rho, status, 1, max(off), None), tol)
        report.precision, report.rank = "float64", len(rho)
        self._tell(x, y, shifts, report)

    def _tell(self, x: CanonicalView, y: CanonicalView, shifts: tuple[float, ...], report: Report) -> None:
        """Report what the landmarks leave out, and the effective dimensions of both views."""
        if max(x.lost, y.lost) > 0:
            report.notes.append(f"the landmarks leave out {x.lost:.1e} and {y.lost:.1e} of the traces of both matrices")
        counts = [float(np.sum(view.kept(shift) ** 2)) for view, shift in zip((x, y), shifts, strict=True)]
        report.notes.append(
            f"{counts[0]:.1f} and {counts[1]:.1f} effective dimensions of {len(x.U)} rows: "
            "what the correlations of the training rows are worth, score(X, y) of new rows tells"
        )
        if len(self.correlations_) < self.n_components:
            given = f"{self.n_components} pairs were requested, {len(self.correlations_)} correlate"
            report.notes.append(f"{given} by more than rounding")

    # ---- parameters -------------------------------------------------------------------------------------------------

    def _second(self) -> Kernel:
        return self._as_kernel(self.kernel if self.kernel_y is None else self.kernel_y)

    def _validated_view(self, Y: Any, fitted: bool = False) -> Any:
        """The rows of the second view; a vector is one column."""
        kernel = self.kernel_y_ if fitted else self._second()
        names = points_of(Y).names
        if fitted:
            same_names(getattr(self, "feature_names_y_", None), names, type(self).__name__)
        if kernel.space.objects:
            return kernel.as_objects(Y)
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "input_name": "y", "estimator": self}
        require_table(Y, type(self).__name__)
        Y = check_array(Y, ensure_2d=False, **options)
        Y = check_array(Y.reshape(-1, 1) if Y.ndim == 1 else Y, **options)
        if fitted and Y.shape[1] != self.n_features_y_:
            given = f"a second view of {Y.shape[1]} features; fit saw {self.n_features_y_}"
            raise InvalidInput(message(type(self).__name__, given, "give the same columns"))
        if not fitted and kernel.space.numbered:
            self._check_precomputed(Y)
        return Y

    def _check(self) -> None:
        self._checked_count("n_components")
        self._count_or_none("n_landmarks")
        self._checked_number("regularization", or_equal=True)
        self._checked_choice("solver", "auto", "dense", "nystroem")

    def _plan(self, K: KernelOperator, L: KernelOperator, report: Report) -> tuple[str, int]:
        """The method and its landmarks, and the memory it takes, before anything is allocated."""
        n, dense = K.shape[0], 6 * 8 * K.shape[0] ** 2
        report.memory_rows = max(K.copies, L.copies)  # of one view at a time
        budget = report.room
        method = self.solver
        report.reason = "as requested"
        if method == "auto":
            method = "dense" if n <= DENSE_BELOW and dense <= budget else "nystroem"
            few = f"n = {n} is at most {DENSE_BELOW}"
            report.reason = (
                few if method == "dense" else f"n = {n}: two n × n decompositions take too long, or do not fit"
            )
        if method == "dense":
            report.method, need = "LAPACK, two eigendecompositions in float64", dense
            m = n
        else:
            asked = MOST_LANDMARKS if self.n_landmarks is None else int(self.n_landmarks)
            room = int((np.sqrt(n * n + budget / 10) - n) / 2) if self.n_landmarks is None else n
            m = max(min(asked, n, room), 1)
            report.memory_rows = max(A.copies_of(n, m) for A in (K, L)) + (K.x.nbytes + L.x.nbytes) * m // n
            report.method, need = f"Nyström, {counted(m, 'landmark')} in each view", 5 * 8 * m * (n + m)
        alternatives = ['solver="nystroem"', "fewer landmarks", "fewer rows"]
        report.plan(need, f"{type(self).__name__} of {n} rows", alternatives)
        return method, m

    # ---- new rows ---------------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion | None:
        check_is_fitted(self)
        return expansion_of(self, -np.asarray(self.offset_), prefix="component ")

    def transform(self, X: Any, y: Any = None) -> Any:
        """The scores of new rows: of shape (m, k), float64; with y a pair, those of the second view too."""
        Z = self._expanded(X) - self.offset_
        if y is None:
            return Z
        K = KernelOperator(self.kernel_y_, self._validated_view(y, fitted=True), self.Y_fit_)
        return Z, known_values(np.asarray(K @ self.dual_coef_y_), K, "KernelCCA") - self.offset_y_

    def score(self, X: Any, y: Any) -> float:
        """The mean over the pairs of the plain correlation of their scores: on new rows what a search may maximise."""
        check_is_fitted(self)
        Z, W = (S - S.mean(axis=0) for S in self.transform(X, y))
        norms = np.linalg.norm(Z, axis=0) * np.linalg.norm(W, axis=0)
        return float(np.mean(np.sum(Z * W, axis=0) / np.where(norms > 0, norms, 1.0))) if Z.shape[1] else 0.0

    @property
    def _n_features_out(self) -> int:
        return len(self.correlations_)
