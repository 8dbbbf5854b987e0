"""Kernel PCA on landmarks: Nyström's features, their moments gathered chunk by chunk, and what that leaves out."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from mercer.approx.landmarks import choose_landmarks
from mercer.approx.nystroem import FeatureMoments, feature_moments, inverse_root, row_chunks
from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.pca.preimages import DECODER, PreImages
from mercer.gram import KernelOperator
from mercer.points import count, human, take
from mercer.schemas import Array, Count, Record, Schema
from mercer.solvers import leading_pairs
from mercer.ways.report import Report

__all__ = ["LandmarkComponents", "count_landmarks", "fewest_landmarks", "landmark_bytes"]

POOL = 10
"""Rows for each landmark among which pivoted Cholesky chooses; more of them, drawn at random, add little but cost."""

CHECKED_WHOLE, CHECKED_ROWS = 20_000, 512
"""Rows up to which the residual is that of all of them, and how many it is estimated from beyond that."""

LEFT_OUT, FEWER = "outside the landmarks' span:", "fewer components:"
"""How the notes begin that each chunk of rows renews."""

PRIVATE = ("_feature_moments", "_feature_root", "_landmark_matrix")

CHUNK = 1 << 22
"""Entries of k(rows, landmarks) at a time."""


def count_landmarks(n: int, k: int | None) -> int:
    """max(5k, √n log n), n at most.

    >>> count_landmarks(10_000, 10), count_landmarks(10_000, 500), count_landmarks(20, None)
    (921, 2500, 13)
    """
    return max(1, min(n, max(5 * (k or 0), int(np.sqrt(n) * np.log(n)))))


def fewest_landmarks(n: int, k: int | None) -> int:
    """2k, at least 20, n at most: what the budget may lower the default to."""
    return min(n, max(2 * (k or 0), 20))


def landmark_bytes(n: int, m: int) -> int:
    """Memory for m landmarks of n rows: four m × m matrices, the rows of the pool, and one chunk of features.

    >>> landmark_bytes(10**6, 1000)
    188708864
    """
    return 8 * (4 * m * m + min(n, POOL * m) * (m + 120) + 2 * min(n * m, CHUNK))


def landmark_rows(K: KernelOperator, m: int) -> int:
    """Copies of the rows for m landmarks: the pool's, or of a chunk of features or residuals; and the landmarks."""
    n = K.shape[0]
    pool, some, chunk = min(n, POOL * m), n if n <= CHECKED_WHOLE else CHECKED_ROWS, min(n, -(-CHUNK // m))
    one = K.x.nbytes / max(n, 1)
    chosen = one * (pool if pool < n else 0) + K.copies_of(pool, pool)
    checked = one * (some if some < n else 0) + K.copies_of(some, min(n, max(1, CHUNK // max(m, some))))
    return int(max(chosen, checked, K.copies_of(chunk, m)) + one * m)


class LandmarkComponents(PreImages):
    r"""PCA of the features φ(x) = K_mm^(−½) k_m(x), centred: axes Σᵢ Aᵢⱼ φ(bᵢ) with A = K_mm^(−½) W, Σ_φ W = W Λ.

    The rows are read once, a few at a time; what is kept of them are the mean and the covariance of their features.
    """

    fitted: ClassVar[Schema] = PreImages.fitted + Schema(
        Array("_feature_root", "n n", optional=True),
        Array("_landmark_matrix", "n n", optional=True),
        Record(
            "_feature_moments",
            (Count("rows"), Array("mean", "n"), Array("scatter", "n n"), Array("trace")),
            optional=True,
        ),
    )

    n_components: int | None
    solver: str
    landmarks: Any
    n_landmarks: int | None
    tol: float
    report_: Report

    def _checked_components(self, n: int) -> int:
        raise NotImplementedError

    def _name_components(self, values: np.ndarray, n: int, variance: float) -> None:
        raise NotImplementedError

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def _planned_landmarks(self, K: KernelOperator, k: int | None, report: Report) -> int:
        """How many landmarks, and the memory they will take; the default is lowered to what the budget holds."""
        n = K.shape[0]
        m, given = self.n_landmarks, self.n_landmarks is not None
        if not isinstance(self.landmarks, str):
            m, given = (np.shape(self.landmarks) or (1,))[0], True
        if not given:
            m = count_landmarks(n, k)
            while m > fewest_landmarks(n, k) and landmark_bytes(n, m) + landmark_rows(K, m) > report.memory_budget:
                m = max(int(0.8 * m), fewest_landmarks(n, k))
        elif isinstance(m, bool) or not isinstance(m, (int, np.integer)) or m < 1:
            raise InvalidInput(message("KernelPCA", f"n_landmarks={m!r}", "give a positive integer, or None"))
        m = int(m) if not isinstance(self.landmarks, str) else min(int(m), n)
        report.memory_rows = landmark_rows(K, m)
        report.plan(landmark_bytes(n, m), f"KernelPCA with {m} landmarks", "lower n_landmarks=")
        if not given and m < count_landmarks(n, k):
            report.notes.append(f"{m} landmarks are what {human(report.memory_budget)} hold")
        return m

    def _by_landmarks(self, K: KernelOperator, X: Any, report: Report) -> None:
        """The approximate method of a fit, and how far it is from the exact one."""
        self._fit_landmarks(K, X, report)
        self._certify(X, report, chosen=self.solver == "auto")

    def _fit_landmarks(self, K: KernelOperator, X: Any, report: Report) -> None:
        """Choose the landmarks among the rows X, and gather the moments of all rows' features."""
        n, seed = K.shape[0], self._seed()
        k = None if self.n_components is None else self._checked_components(n)
        m = self._planned_landmarks(K, k, report)
        with report.stage("landmarks"):
            _, landmarks = choose_landmarks("KernelPCA", self.landmarks, K, X, m, seed, POOL * m)
            self.X_fit_ = landmarks
            small = self._between_landmarks(K)
            # All entries are in float64, those of float32 rows too: their root may be cut where float64 is.
            self._feature_root, rank = inverse_root(small, float(np.finfo(np.float64).eps))
        found = len(small)
        how = self.landmarks if isinstance(self.landmarks, str) else "given"
        report.method, report.precision = f"Nyström, {found} landmarks ({how})", "float64"
        if found < m and how == "pivoted":
            report.notes.append(f"{m} landmarks were asked for; {found} leave nothing of the diagonal to choose from")
        if rank < found:
            report.notes.append(f"the kernel matrix of {found} landmarks has rank {rank}; the rest is rounding")
        moments = FeatureMoments.none(found)
        with report.stage("features"):
            moments = feature_moments(
                moments, self.kernel_, X, self.X_fit_, self._feature_root, np.asarray(K.diagonal(), np.float64)
            )
        self._feature_moments = moments
        report.n = n
        self._find_components(report)

    def _between_landmarks(self, K: KernelOperator | None = None) -> np.ndarray:
        """K_mm in float64; a precomputed kernel's is in the matrix of the fit."""
        if K is not None and self.kernel_.space.numbered:
            self._landmark_matrix = np.asarray(K.block(self.X_fit_, self.X_fit_), np.float64)
        if self.kernel_.space.numbered:
            return self._landmark_matrix
        return np.asarray(KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64).toarray())

    def _find_components(self, report: Report) -> None:
        """Σ_φ W = W Λ, A = K_mm^(−½) W, and the mean of the features as Σ cᵢ φ(bᵢ)."""
        moments, root = FeatureMoments(*self._feature_moments), self._feature_root
        m = len(root)
        k = m if self.n_components is None else min(int(self.n_components), m)
        with report.stage("eigenvalues"):
            values, W = leading_pairs(moments.scatter, k)
        cut = float(np.finfo(report.dtype).eps) * m * max(float(values[0]), 0.0)
        kept = values > max(cut, 4 * np.finfo(np.float64).eps * moments.trace)
        K_mm = self._between_landmarks()
        A = root @ W[:, kept]
        self.mean_coef_ = root @ moments.mean
        self.column_means_ = K_mm @ self.mean_coef_
        scores = K_mm @ A - self.column_means_ @ A
        top = scores[np.abs(scores).argmax(axis=0), np.arange(A.shape[1])]
        self.dual_coef_ = A * np.where(top < 0, -1.0, 1.0)
        self.n_samples_seen_ = moments.rows
        variance = moments.trace - moments.rows * float(self.mean_coef_ @ self.column_means_)
        self._name_components(np.ascontiguousarray(values[kept]), moments.rows, variance)
        if self.kernel_.properties.definiteness.is_mercer:  # else K less its approximation has negative eigenvalues
            left = max(moments.trace - moments.explained, 0.0)
            share = left / moments.trace if moments.trace > 0 else 0.0
            bound = f"so no eigenvalue is too small by more than {left:.2g}"
            report.notes.append(f"{LEFT_OUT} {share:.2g} of tr K, {bound}")

    # ---- how exact it is ---------------------------------------------------------------------------------------------

    def _certify(self, X: Any, report: Report, chosen: bool) -> None:
        """max ‖K̃v − Nλv‖/(Nλ₁), v the scores over √(Nλ): of all rows, or estimated from some of them."""
        n, k = report.n, len(self.eigenvalues_)
        report.tolerance, report.status = float("nan"), "measured on all rows"
        if k == 0:
            return
        some = np.arange(n)
        if n > CHECKED_WHOLE:
            some = np.sort(np.random.default_rng([self._seed(), 3]).choice(n, CHECKED_ROWS, replace=False))
            report.status = f"estimated from {CHECKED_ROWS} rows"
        with report.stage("check"):
            off = self._residuals_on(X, some) * np.sqrt(n / len(some))
        report.residual = float(off.max() / self.eigenvalues_[0])
        if chosen and report.residual > self.tol:
            given = f"Nyström's approximation has a residual of {report.residual:.1e}, not {self.tol:.0e}"
            do = 'raise n_landmarks, or set solver="krylov" for the exact answer'
            report.warnings.append(message("KernelPCA", given, do))
            warn(report.warnings[-1], ConvergenceWarning)

    def _residuals_on(self, X: Any, some: np.ndarray) -> np.ndarray:
        """‖(K̃V − VΛ)[some]‖ of each component, from all columns, a few at a time."""
        anchors = self.kernel_.space.of(X).anchors()
        rows, scale = X if len(some) == count(X) else take(X, some), np.sqrt(self.eigenvalues_)
        offset = self.column_means_ @ self.dual_coef_
        images, own = np.zeros((len(some), len(scale))), np.empty((len(some), len(scale)))
        for place, part in row_chunks(X, max(len(self.dual_coef_), len(some)), CHUNK):
            V = KernelOperator(self.kernel_, part, self.X_fit_, dtype=np.float64) @ self.dual_coef_
            V = (V - offset) / scale
            columns = anchors.run(place.start, place.stop).rows
            images += KernelOperator(self.kernel_, rows, columns, dtype=np.float64) @ V
            inside = (some >= place.start) & (some < place.stop)
            own[inside] = V[some[inside] - place.start]
        # The mean of KV over all rows is that of KV − VΛ, which varies less among some of them.
        off = images - own * self.eigenvalues_
        return np.asarray(np.linalg.norm(off - off.mean(axis=0), axis=0))

    # ---- chunk by chunk ----------------------------------------------------------------------------------------------

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
        X = self._validate(X, **({} if self._space().objects else {"reset": first}))
        if first or not hasattr(self, "_feature_moments"):
            self._start_landmarks(X if first else self.X_fit_)
        report = self.report_ = self.report_.continued()
        report.method, report.reason = f"Nyström, {len(self.dual_coef_)} landmarks, by chunks", "partial_fit"
        if not first:
            self._gather(X, report)
        report.residual, report.tolerance, report.status = float("nan"), float("nan"), "not measured: rows are gone"
        self._fit_decoder(report)
        return self

    def _start_landmarks(self, X: Any) -> None:
        """Landmarks from these rows, the first ones, and the moments of their features."""
        K, report = self._begin(X)
        self._forget()
        self.report_ = report
        self._kernel_size(K)
        self._fit_landmarks(K, X, report)

    def _forget(self) -> None:
        """What only one of the methods sets, and another would leave behind."""
        for name in ("n_samples_seen_", "eigenvectors_", "decoder_", "decoder_mean_", *PRIVATE):
            self.__dict__.pop(name, None)

    def _gather(self, X: Any, report: Report) -> None:
        """The components of all rows so far and these."""
        K = KernelOperator(self.kernel_, X, dtype=np.float64)
        self._kernel_size(K)  # refuses what is not finite
        diagonal = np.asarray(K.diagonal())
        with report.stage("features"):
            self._feature_moments = feature_moments(
                FeatureMoments(*self._feature_moments), self.kernel_, X, self.X_fit_, self._feature_root, diagonal
            )
        report.n = self._feature_moments.rows
        report.notes = [note for note in report.notes if not note.startswith((LEFT_OUT, FEWER, DECODER))]
        self._find_components(report)
