"""Kernel principal component analysis: chapters 000 (21.1), 001 and 004."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.base.estimator import KernelSize
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.pca.centred_pairs import CentredPairs, checked, precision
from mercer.estimators.pca.landmarks import FEWER, LandmarkComponents, fewest_landmarks, landmark_bytes
from mercer.gram import KernelOperator, rates
from mercer.operators import Centered, Dense, Operator
from mercer.planning.costs import eigen_ways as predicted_ways
from mercer.points import human
from mercer.solvers import (
    BlockKrylov,
    DenseEigen,
    Eigenpairs,
    Eigenproblem,
    Solution,
    Status,
    solve,
)
from mercer.solvers.choose import DENSE_BELOW, STORED_SHARE, choose_eigen
from mercer.ways.report import Report

__all__ = ["KernelPCA"]

_AHEAD = 8.0
"""By how much a step of subspace iteration is taken to lower the residual that the Krylov method saw: it left a quarter
to a tenth of it (handwritten digits, 64 components, blocks of 112 to 256). The check finds out, and goes on if it must.
"""

ALTERNATIVES = ["fewer components", 'solver="krylov" (matrix-free) or "nystroem" (landmarks)', "fewer rows"]
DEAREST_PRODUCT = 2e13
"""Multiply-adds in one matrix-free product beyond which "auto" takes landmarks. They are an approximation, so the rates
have no say."""

_HARMLESS = 0.1
"""The share of the tolerance that rounding may take."""


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkComponents):
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
        float32, or not stored where it doesn't fit the memory budget or its entries are computed as fast as read (up
        to 100 columns); "nystroem" the PCA of features that landmarks span, an approximation. "auto" chooses by size
        between the exact ones, and takes the last only where one matrix-free product costs more than 2e13
        multiply-adds (n²(d + b) with the block of b ≈ 3k + 16 columns of `BlockKrylov`, so n of some 620 000 at d = 20
        and k = 10) or its vectors don't fit the budget; it warns where the residual is then above `tol`.
    n_landmarks : int or None, default None
        Of "nystroem"; None is max(5k, √n log n), or what fits the budget.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How they are chosen, as for `Nystroem`; integers name training rows, and an array of two dimensions is the
        landmarks themselves. Pivots are chosen among ten random rows for each landmark.
    fit_inverse_transform : bool, default False
        Learn to go back from scores to rows, for `inverse_transform`, `reconstruction_error` and `score`: from the
        training rows, or from the landmarks where only these are kept.
    preimage : {"auto", "ridge", "fixed_point", "kwok_tsang"}, default "auto"
        How `inverse_transform` finds rows. "ridge": kernel ridge regression from scores to rows; any kernel on vectors.
        "fixed_point": Mika's iteration from there; Gaussian and Cauchy kernels and their multiples. "kwok_tsang": from
        the distances to ten neighbours among the rows in X_fit_; kernels of ‖x − z‖ alone or (invertible) of ⟨x, z⟩
        alone, and needs no `fit_inverse_transform`. "auto": exact for the linear kernel, which needs none either,
        "ridge" for all others.
    decoder_kernel : Kernel or str, default "auto"
        Of the ridge decoder, on the scores. "auto" is the best of "gaussian(gamma='median')", "linear" and the model's
        own kernel (as in scikit-learn) by an estimate of the error against rows without noise, on at most 600 rows in
        three folds (`mercer.select.decoders`); the report has the estimates.
    alpha : float, default 0.1
        Its penalty λ: larger for noisy rows, smaller for clean ones (`mercer.select.cross_validate_kernel_pca`).
    tol : float, default 3e-5
        max ‖K̃v − Nλv‖/(Nλ₁) over the components, recomputed for the answer. Eigenvalues are better than that: their
        error is of second order in it (3e-5 left 64 eigenvalues of handwritten digits right to 4e-6, 1e-3 to 5e-2).
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
        Of the Krylov method's random start.

    Attributes
    ----------
    eigenvalues_ : array of shape (k,)
        N λⱼ, the eigenvalues of the centred kernel matrix, descending.
    explained_variance_ : array of shape (k,)
        λⱼ = eigenvalues_/N, the variance of the scores.
    explained_variance_ratio_ : array of shape (k,)
        λⱼ over the whole variance, tr K̃/N, of which the components that were not kept have their share.
    eigenvectors_ : array of shape (n, k)
        Of K̃, orthonormal; the entry of largest magnitude of each is positive.
    dual_coef_ : array of shape (n, k)
        aⱼ = eigenvector/√(Nλⱼ).
    column_means_ : array of shape (n,)
        ⟨φ(xⱼ), m⟩ = (1/N) Σᵢ k(xᵢ, xⱼ).
    mean_coef_ : array of shape (n,)
        c with m = Σ cᵢ φ(xᵢ), the mean of the features: 1/N.
    n_samples_seen_ : int
        N.
    kernel_, X_fit_, report_
        The kernel as resolved, the training rows, what was chosen and how exact it is.
    decoder_, decoder_mean_
        The fitted `KernelRidge` from scores to centred rows, and their mean, where there is a decoder.

    After "nystroem" and `partial_fit` X_fit_ are the m landmarks, dual_coef_ is of shape (m, k), column_means_ and
    mean_coef_ are of shape (m,) and describe the mean within the landmarks' span, and there is no eigenvectors_, since
    no training rows are kept. All methods work alike.

    Notes
    -----
    Components with Nλ ≤ eps·n·Nλ₁, eps that of the data's dtype, are rounding noise and are dropped: three-dimensional
    data have three linear components, in float32 too. Chapter 004 divides the scores by another √N; its scores have
    variance λ/N, these have λ.

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
        self.report_ = report
        n, size = K.shape[0], self._kernel_size(K)
        low_precision = self.tol >= 1e-6 and size.fits_float32
        k = n if self.n_components is None else self._checked_components(n)
        rows = K.astype(np.float32).copies + (K.copies if K.cheap else 0) if low_precision else K.copies
        name = self._choose(n, k, report, self._predicted(K, k, report), rows)
        if name == "nystroem":
            self._by_landmarks(K, X, report)
        else:
            found = (
                self._by_krylov(K, k, size, low_precision, report)
                if name == "krylov"
                else self._by_lapack(K, k, report)
            )
            self.column_means_ = found.column_means
            self.mean_coef_, self.n_samples_seen_ = np.full(n, 1 / n), n
            variance = size.trace - n * float(found.column_means.mean())
            self._keep(found.pairs, size.trace, variance, report)
        self._fit_decoder(report)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """The scores of the training rows, V √(Nλ): equal to ``transform`` of them, with no further product."""
        self.fit(X)
        return self._basis_scores() if hasattr(self, "eigenvectors_") else self.transform(X)

    def _by_lapack(self, K: KernelOperator, k: int, report: Report) -> CentredPairs:
        n = K.shape[0]
        # Of few rows one stored matrix serves LAPACK, the means and the residuals: to make entries anew costs more.
        few = n <= DENSE_BELOW
        centered = Centered(Dense(K.fill(np.empty(K.shape)), symmetric=True) if few else K)
        with report.stage("eigenvalues"), one_blas_thread(9.0 * n**3):
            solution = solve(DenseEigen(), Eigenproblem(centered, k))
        report.precision = "float64"
        self._account(report, solution, self.tol)
        return CentredPairs(solution.x, centered.column_means)

    def _by_krylov(
        self, K: KernelOperator, k: int, size: KernelSize, low_precision: bool, report: Report
    ) -> CentredPairs:
        """With float32 entries where their rounding stays below the tolerance, else with float64 ones."""
        found, largest = self._krylov(K, k, np.float32 if low_precision else np.float64, report)
        # Rounding moves the eigenvalues by the norm of a random matrix of this size.
        rounding = float(np.finfo(np.float32).eps) * np.sqrt(len(found.column_means)) * size.largest_entry
        if low_precision and rounding > 0.1 * self.tol * largest:
            report.notes.append(f"float32 entries would shift eigenvalues by {rounding:.0e}, so float64 ones were used")
            report.memory_rows = K.copies
            report.plan(BlockKrylov().memory(report.n, k, 8), "KernelPCA", ALTERNATIVES)
            found, _ = self._krylov(K, k, np.float64, report)
        return found

    def _krylov(self, K: KernelOperator, k: int, dtype: Any, report: Report) -> tuple[CentredPairs, float]:
        """The pairs by entries of this precision, and the largest |eigenvalue|."""
        operator: Operator = K.astype(dtype)
        if "stored" in report.method and K.shape[0] ** 2 * np.dtype(dtype).itemsize <= 0.8 * report.room:
            with report.stage("kernel matrix"):
                operator = Dense(operator.fill(np.empty(K.shape, dtype)), symmetric=True)
        with one_blas_thread() if isinstance(operator, KernelOperator) else nullcontext():
            solution, found = self._iterated(Eigenproblem(Centered(operator), k, self._seed()), operator, K, report)
        self._account(report, solution, self.tol)
        report.precision = precision(np.dtype(dtype).name, K.cheap, found)
        return found, found.scale

    def _iterated(
        self, problem: Eigenproblem, operator: Operator, K: KernelOperator, report: Report
    ) -> tuple[Solution[Any], CentredPairs]:
        """Block Krylov, stopped when its images are expected to meet the tolerance, and on if the check finds more."""
        state = None
        for ahead in (_AHEAD, 1.0, 1 / _AHEAD):
            with report.stage("eigenvalues"):
                solution = solve(BlockKrylov(tol=ahead * self.tol), problem, state=state)
            if solution.x is None:
                raise InvalidInput(message("KernelPCA", "no eigenvalues were found", solution.status.advice))
            with report.stage("check"):
                found = self._check(operator, K, solution.x.powered())
            solution = replace(solution, residual=float(found.pairs.residuals.max()) / found.scale)
            if solution.residual <= self.tol or not solution.converged:
                return solution, found
            state = solution.state
        return replace(solution, status=Status.STALLED), found

    def _check(self, operator: Operator, K: KernelOperator, V: np.ndarray) -> CentredPairs:
        """In float32 where what that changes is harmless, else in float64, with such entries where these are cheap."""
        exact = K if K.cheap else operator
        if operator.dtype == np.float32:
            found = checked(operator, V, exact, self._seed())
            if found.rounding <= _HARMLESS * self.tol * found.scale:
                return found
        return checked(exact, V)

    def _checked_components(self, n: int) -> int:
        k = self.n_components
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise InvalidInput(message("KernelPCA", f"n_components={k!r}", "give a positive integer, or None for all"))
        return min(int(k), n)

    def _predicted(self, K: KernelOperator, k: int, report: Report) -> dict[str, float]:
        """Seconds of each exact method; a K that the engine does not make is stored if it fits."""
        n, d = K.shape[0], max(report.d, 1)
        machine = rates.machine(lambda machine: min(predicted_ways(machine, n, d, k).values()))
        found = predicted_ways(machine, n, d, k)
        return found if K.native else found | {"matrix-free": np.inf}

    def _choose(self, n: int, k: int, report: Report, seconds: dict[str, float], rows: int) -> str:
        """The method, and the memory it will take; `rows` is what block Krylov takes of it for copies of the rows."""
        if self.solver not in ("auto", "dense", "krylov", "nystroem"):
            given = f"solver={self.solver!r}"
            raise InvalidInput(message("KernelPCA", given, 'choose "auto", "dense", "krylov" or "nystroem"'))
        choice = choose_eigen(n, k, report.room, self.tol, seconds=seconds)
        name = choice.name if self.solver == "auto" else self.solver
        report.reason = choice.reason if self.solver == "auto" else "asked for"
        vectors = BlockKrylov().memory(n, k, 4 if self.tol >= 1e-6 else 8)
        made = seconds.get("matrix-free", np.inf) < seconds.get("stored", np.inf)
        too_dear = self._too_dear(n, k, vectors, report) if self.solver == "auto" and not choice.stored else ""
        if name == "nystroem" or too_dear:
            report.reason = too_dear or report.reason
            return "nystroem"
        if name == "dense":
            report.method, need = "LAPACK, float64", 8 * n * (n * (1 + (n <= DENSE_BELOW)) + k)
        elif choice.stored or (not made and 4 * n * n + vectors <= STORED_SHARE * report.room):
            report.method = f"block Krylov, stored in float32 ({human(4 * n * n)})"
            need = 4 * n * n + vectors
        else:
            report.method, need = "block Krylov, matrix-free", vectors
        way = "dense" if name == "dense" else "stored" if "stored" in report.method else "matrix-free"
        if np.isfinite(seconds.get("matrix-free", np.inf)):
            report.predict(seconds[way], "kernel matrix", "eigenvalues", "check")
        report.memory_rows = report.memory_rows if name == "dense" else rows
        report.plan(need, f"KernelPCA of {n} rows and {k} components", ALTERNATIVES)
        return name

    def _too_dear(self, n: int, k: int, vectors: int, report: Report) -> str:
        """Why the exact matrix-free method is not taken, if so; never where all components are asked for."""
        if self.n_components is None:
            return ""
        work = n * n * (max(report.d, 1) + BlockKrylov().columns(n, k))
        if work > DEAREST_PRODUCT:
            return f"a matrix-free product would take {work:.0e} multiply-adds, above {DEAREST_PRODUCT:.0e}"
        if vectors > report.room >= landmark_bytes(n, fewest_landmarks(n, k)):
            return f"its vectors would take {human(vectors)} of {human(report.room)}"
        return ""

    def _keep(self, pairs: Eigenpairs, trace: float, variance: float, report: Report) -> None:
        """Drop what is rounding noise, fix the signs, and name the results as the chapter does."""
        values, vectors = pairs.values, np.asarray(pairs.vectors, np.float64)
        n = len(vectors)
        dtype = np.dtype(report.dtype)
        largest = max(float(values[0]), 0.0)
        # Where all rows are the same, even λ₁ is rounding: that of K before it was centred.
        kept = values > max(float(np.finfo(dtype).eps) * n * largest, 4 * np.finfo(np.float64).eps * trace)
        values, vectors = values[kept], vectors[:, kept]
        vectors = vectors - vectors.mean(axis=0)
        top = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
        vectors = vectors * np.where(top < 0, -1.0, 1.0)
        self.eigenvectors_, self.dual_coef_ = vectors, vectors / np.sqrt(values)
        self._name_components(values, n, variance)

    def _name_components(self, values: np.ndarray, n: int, variance: float) -> None:
        self.eigenvalues_ = values
        self.explained_variance_ = values / n
        self.explained_variance_ratio_ = values / variance if variance > 0 else np.zeros_like(values)
        self.report_.rank = len(values)
        asked = self.n_components
        if asked is not None and len(values) < asked:
            self.report_.notes.append(f"{FEWER} {asked} were asked for, {len(values)} are above rounding noise")

    # ---- new rows ----------------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion | None:
        check_is_fitted(self)
        return expansion_of(self, -self.column_means_ @ self.dual_coef_, prefix="component ")

    def transform(self, X: Any) -> np.ndarray:
        """The scores of new rows: of shape (m, k), float64."""
        return self._scores(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
