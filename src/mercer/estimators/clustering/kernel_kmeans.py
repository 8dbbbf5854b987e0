"""Kernel k-means: clusters around means in feature space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from mercer.approx.landmarks import choose_landmarks
from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.base.landmarks import POOL, LandmarkSpan, count_landmarks, given_count
from mercer.estimators.clustering.clusterer import Clusterer
from mercer.estimators.clustering.landmark_clusters import (
    LandmarkFeatureMap,
    LandmarkMeans,
    by_batches,
    plan_batches,
)
from mercer.gram import KernelOperator, rates
from mercer.kernels import Linear
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.numerals import counted
from mercer.operators import Dense, LowRank, Operator, StoredLater
from mercer.planning.costs import entries_of_storing, lloyd
from mercer.points import apart, vectors_of
from mercer.schemas import NON_NEGATIVE, Array, Schema, Size
from mercer.solvers import Clustering, Partition
from mercer.ways.report import Report

__all__ = ["KernelKMeans"]

SMALL = 2000
"""Rows up to which K is stored in float64 and nothing is done in float32."""

AT_ONCE, PATIENCE = 0.67, 1.25
"""K is stored at once if the fit is then predicted to take this share of the time without. Else it is stored after this
many times the entries that are computed in the time that storing takes: how many passes there are shows only then.
"""

DEAREST_PASS = 2e13
"""Multiply-adds in one pass beyond which "auto" takes landmarks. It is an approximation, so the rates have no say."""


class _Method(NamedTuple):
    """Lloyd's operator, the dtype of its entries, the bytes that it stores, the reason, and seconds if predicted.

    K is stored once `after` entries were computed.
    """

    name: str
    dtype: np.dtype[Any]
    matrix: int
    reason: str
    seconds: float = 0.0
    after: float = 0.0


_METHODS = {
    "given": "the matrix that was given",
    "rows": "on the rows themselves",
    "stored": "K stored",
    "later": "matrix-free, then K stored",
    "matrix_free": "matrix-free",
}


def _sums_of_starts(dtype: np.dtype[Any], n: int) -> int:
    """Bytes of the first sums of several starts, made in one pass over a stored matrix: at most an eighth of it."""
    return int(dtype.itemsize) * n * n // 8


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    r"""min Σᵢ wᵢ ‖φ(xᵢ) − m_c(i)‖² over labels c, with ‖φ(x) − m_c‖² = k(x, x) − 2 meanⱼ k(x, xⱼ) + meanⱼⱼ' k(xⱼ, xⱼ').

    The means are over the rows of cluster c, weighted by w. Lloyd's iteration is exact: each pass is one sum of kernel
    values over groups of columns, of those rows only that changed their cluster, and no n × k product. With the linear
    kernel it is k-means.

    Parameters
    ----------
    n_clusters : int, default 8
        k. The fit finds fewer if fewer rows are distinct in feature space.
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions.
    init : "k-means++" or array, default "k-means++"
        Or where to start: k places of training rows, the labels of all n rows, or k rows, whose images are the first
        means. Clusters keep the numbers that an array gives them; else they are numbered by falling weight.
    n_init : int, default 3
        Starts by k-means++, of which the one of least inertia is kept. An array is one start.
    max_iter : int, default 300
        Passes.
    tol : float, default 0.0
        On the share of the inertia that one more assignment would take away; 0 goes on until no row moves.
    solver : {"auto", "stored", "matrix_free", "nystroem"}, default "auto"
        "stored" keeps K in float32, "matrix_free" makes its entries anew in each pass; both sum in float64, make all
        sums anew every 30 passes, and confirm the best start with entries in float64. "nystroem" clusters features that
        landmarks span, an approximation. "auto" chooses between the first two by what is quicker and fits; where that
        depends on how many passes there are, it begins with the second and stores K after some. It takes the last only
        if one pass costs more than 2e13 multiply-adds.
    n_landmarks : int or None, default None
        Number of landmarks of "nystroem"; None is max(5k, √n log n).
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        As for `Nystroem`.
    batch_size : int or None, default None
        For "nystroem": rows at a time for scikit-learn's MiniBatchKMeans on the features, which are then never stored;
        None is Lloyd's iteration on all of them if they fit the budget, else mini-batches of 10 000.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
    keep_history : bool, default False
        Keep the labels at the start and whenever they changed: `history_`. Not by "nystroem".

    Attributes
    ----------
    labels_ : array of shape (n,)
        c(i); a row of weight 0 has the label of its nearest mean.
    inertia_ : float
        Σᵢ wᵢ ‖φ(xᵢ) − m_c(i)‖², from entries in float64.
    cluster_weights_ : array of shape (k,)
        W_c = Σ wᵢ over the cluster.
    center_norms_ : array of shape (k,)
        ‖m_c‖².
    n_clusters_, n_iter_ : int
        Clusters found, and passes of the best start.
    history_ : array of shape (passes, n)
        The labels of the best start, if `keep_history` is given; `staged_decision_function` makes the film of it.
    dual_coef_ : array of shape (m, k)
        After "nystroem": m_c = Σⱼ dual_coef_ⱼ₍c₎ φ(bⱼ) over the landmarks, which are X_fit_.
    kernel_, X_fit_, sample_weight_, report_
        The kernel as resolved, the training rows and their weights (None for 1, and after "nystroem"), and the
        report on method and accuracy.

    Notes
    -----
    The inertia never rises from pass to pass, up to rounding: 1e-13 Σ wᵢ k(xᵢ, xᵢ) with entries in float64. A cluster
    that loses its rows takes the one farthest from its own mean. k-means++ draws from the rows in an order that follows
    from the data: the result does not depend on the order of the rows, a weight of 2 is a row that stands twice, and
    a weight of 0 one that is absent.

    References
    ----------
    B. Schölkopf, A. Smola, K.-R. Müller (1998). Nonlinear component analysis as a kernel eigenvalue problem.
    I. S. Dhillon, Y. Guan, B. Kulis (2004). Kernel k-means, spectral clustering and normalized cuts. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelKMeans
    >>> from mercer.kernels import Gaussian
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2]])
    >>> model = KernelKMeans(2, Gaussian(gamma=1.0)).fit(X)
    >>> model.labels_, model.predict([[4.0], [-1.0]])
    (array([0, 0, 0, 1, 1]), array([1, 0]))
    >>> model.transform([[0.1]]).round(3)
    array([[0.011, 1.407]])
    """

    fitted: ClassVar[Schema] = Clusterer.fitted + Schema(
        Array("center_norms_", "clusters"),
        Array("dual_coef_", "n clusters", optional=True),
        Array("history_", "passes labelled", np.integer, optional=True, rules=(NON_NEGATIVE,)),
        Size("labelled", lambda model, sizes: None if hasattr(model, "dual_coef_") else sizes["n"]),
    )

    centres: ClassVar[bool] = True
    indefinite_meaning: ClassVar[str] = (
        "squared distances from means may be negative, and a pass may raise the inertia instead of lowering it"
    )

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Any = "gaussian",
        *,
        init: Any = "k-means++",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 0.0,
        solver: Literal["auto", "stored", "matrix_free", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        batch_size: int | None = None,
        memory: float | str | None = None,
        random_state: Any = 0,
        keep_history: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.batch_size = batch_size
        self.memory = memory
        self.random_state = random_state
        self.keep_history = keep_history

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of the rows of X (array-like or CSR matrix of shape (n, d)); y is ignored."""
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """The distances of the training rows from all means, of shape (n, k)."""
        distances = self._fit(X, sample_weight)
        return self.transform(X) if distances is None else self._roots(distances)

    def _fit(self, X: Any, sample_weight: Any) -> np.ndarray | None:
        """The fit; on the exact methods the squared distances of the rows from the means, which come with it."""
        X = self._validate(X)
        weights = self._weights(sample_weight, X)
        K, report = self._begin(X, weights)
        for earlier in ("dual_coef_", "history_"):
            self.__dict__.pop(earlier, None)
        self.report_, self.sample_weight_ = report, weights
        k, size = self._count(K.shape[0], weights), self._kernel_size(K)
        method = self._choose(K, k, size.fits_float32, report)
        if method.name == "nystroem":
            self._by_landmarks(K, X, weights, k, report)
            return None
        with report.stage("kernel matrix"):
            A = self._operator(K, method)
        exact = K if A.dtype == np.float32 and method.name != "given" else None
        problem = Clustering(A, np.zeros(K.shape[0], np.intp), k, weights, exact)
        report.precision = f"{A.dtype} entries, sums in float64" + (", confirmed by entries in float64" * bool(exact))
        with report.stage("clusters"), one_blas_thread():
            given = not (isinstance(self.init, str) and self.init == "k-means++")
            path = list[np.ndarray]() if self.keep_history else None
            best = self._best(problem, [self._given_start(K, k)] if given else None, self.tol, path)
        if isinstance(A, StoredLater):
            report.method = f"Lloyd, {_METHODS['later' if A.stored else 'matrix_free']}"
            report.reason += "" if A.stored else ", and there were few passes"
        self._account(report, best, self.tol)
        found: Partition = best.x
        kept = self._number(found, problem, report, by_weight=not given)
        self.center_norms_, self.inertia_ = found.norms[kept], found.inertia
        if path is not None:
            others = np.setdiff1d(np.arange(k), kept)  # which lost their rows on the way
            self.history_ = np.argsort([*kept, *others])[np.array(path)]
        return found.distances[:, kept]

    def _choose(self, K: KernelOperator, k: int, low_precision: bool, report: Report) -> _Method:
        """The method, and the memory it will take, before anything is allocated."""
        self._checked_choice("solver", "auto", "stored", "matrix_free", "nystroem")
        n, vectors = K.shape[0], 64 * K.shape[0] * k
        precomputed = self.kernel_.space.numbered
        dtype = np.dtype(np.float32 if low_precision and n > SMALL else np.float64)
        dtype = K.X.dtype if precomputed else dtype
        if self.solver == "nystroem":
            method = _Method("nystroem", dtype, 0, "as requested")
        elif precomputed and not vectors_of(K.X).sparse:
            method = _Method("given", dtype, _sums_of_starts(dtype, n), "it is there")
        elif self.solver != "auto":
            matrix = dtype.itemsize * n * n + _sums_of_starts(dtype, n)
            method = _Method(self.solver, dtype, matrix * (self.solver == "stored"), "as requested")
        elif isinstance(self.kernel_, Linear) and not K.x.sparse:
            method = _Method("rows", np.dtype(np.float64), 8 * K.X.size, "the kernel is linear")
        else:
            method = self._quickest(K, dtype, vectors, 1 if precomputed else max(K.pair_columns, 1), report.room)
        report.reason = method.reason
        report.predict(method.seconds, "kernel matrix", "clusters")
        if method.name in ("rows", "given"):
            report.memory_rows = 0
        elif method.name in ("matrix_free", "later") and method.dtype == np.float32:
            report.memory_rows += K.astype(np.float32).copies  # both when the answer is checked
        if method.name != "nystroem":
            report.method, report.dtype = f"Lloyd, {_METHODS[method.name]}", str(method.dtype)
            instead = ["fewer clusters", 'solver="matrix_free" or "nystroem"', "fewer rows"]
            what = f"KernelKMeans of {n} rows and {k} clusters"
            report.plan(vectors + method.matrix, what, instead)
        return method

    def _quickest(self, K: KernelOperator, dtype: np.dtype[Any], vectors: int, d: int, budget: int) -> _Method:
        """K stored if it fits and is predicted to be quicker, else not; landmarks if a pass takes too much work."""
        n = K.shape[0]
        matrix, work = dtype.itemsize * n * n, float(n) * n * d
        stored = matrix + _sums_of_starts(dtype, n)
        fits, (takes, most) = stored + vectors <= budget, apart(matrix, budget)
        again, once, after = self._predicted(K, n, d) if n > SMALL and K.native else (0.0, 0.0, 0.0)
        if fits and once <= again:
            name = "stored" if once <= AT_ONCE * again else "later"
            return _Method(name, dtype, stored, f"K takes {takes} of {most}", once, after)
        if work > DEAREST_PASS:
            why = f"a pass would take {work:.0e} multiply-adds, above {DEAREST_PASS:.0e}"
            return _Method("nystroem", dtype, 0, why)
        anew = f"entries are made anew in {again:.2g} s, and stored and read in {once:.2g} s"
        why = anew if fits else f"{takes} of K do not fit {most}"
        return _Method("matrix_free", dtype, 0, why, again)

    def _predicted(self, K: KernelOperator, n: int, d: int) -> tuple[float, float, float]:
        """Seconds of all starts with entries made anew, and with K stored; after how many entries it is stored."""
        starts = self.n_init if isinstance(self.init, str) else 1
        machine = rates.machine(lambda machine: lloyd(machine, n, d, starts))
        stored = lloyd(machine, n, d, starts, stored=True)
        return lloyd(machine, n, d, starts), stored, PATIENCE * entries_of_storing(machine, n, d)

    def _operator(self, K: KernelOperator, method: _Method) -> Operator:
        """K in the form that the method uses."""
        if method.name == "given":
            return Dense(K.X, symmetric=True)
        if method.name == "rows":
            return LowRank(np.asarray(K.X, np.float64))
        A = K.astype(method.dtype)
        if method.name == "later":
            return StoredLater(A, method.after)
        return Dense(A.toarray(), symmetric=True) if method.name == "stored" else A

    def _given_start(self, K: KernelOperator, k: int) -> np.ndarray:
        """The first labels, from an array for `init`."""
        init, n = np.asarray(self.init), K.shape[0]
        whole = init.ndim == 1 and init.dtype.kind in "iu" and len(init) > 0
        if whole and len(init) == k and 0 <= init.min() <= init.max() < n:
            products, own = np.asarray(K.rows(init), np.float64), np.asarray(K.diagonal(), np.float64)[init]
        elif whole and len(init) == n and 0 <= init.min() <= init.max() < k:
            return init.astype(np.intp)
        elif init.ndim == 2 and self.kernel_.space.vectors and init.shape == (k, self.n_features_in_):
            rows = init.astype(np.float64)
            products = np.asarray(KernelOperator(self.kernel_, rows, K.X, dtype=np.float64).toarray())
            own = np.asarray(self.kernel_.diagonal(rows), np.float64)
        else:
            given = f"init of shape {init.shape}, {init.dtype}, for {counted(n, 'row')} and {counted(k, 'cluster')}"
            do = f'give "k-means++", {counted(k, "place")} of rows, {counted(n, "label")}, or {counted(k, "row")}'
            raise InvalidInput(message("KernelKMeans", given, do))
        return np.asarray((own[:, None] - 2 * products).argmin(axis=0))

    # ---- on landmarks ------------------------------------------------------------------------------------------------

    def _by_landmarks(self, K: KernelOperator, X: Any, weights: np.ndarray | None, k: int, report: Report) -> None:
        """The approximate method of a fit, and how far it is from the exact one."""
        if not isinstance(self.init, str):
            given = 'init as an array with solver="nystroem"'
            raise InvalidInput(message(type(self).__name__, given, 'set init="k-means++", or another solver'))
        n, seed = K.shape[0], self._seed()
        m = self._landmark_count(n if weights is None else int(np.count_nonzero(weights)), k)
        batch = plan_batches(K, k, m, self._count_or_none("batch_size"), report)
        with report.stage("landmarks"):
            span = LandmarkSpan.chosen("KernelKMeans", self._places(X, weights, m, seed), K, X, m, seed)
        how = f"mini-batches of {batch} rows" if batch else "Lloyd on the features"
        report.method = f"Nyström, {counted(len(span.matrix), 'landmark')} of rank {span.rank}; {how}"
        report.precision = "float64 features" + ", a few at a time" * bool(batch)
        features, w = LandmarkFeatureMap(self.kernel_, span), np.ones(n) if weights is None else weights
        if batch:
            centers, self.labels_, self.cluster_weights_, steps = by_batches(
                features, X, w, k, (batch, self.n_init, self.max_iter), seed, report
            )
            self.n_iter_, self.n_clusters_, report.steps = steps, len(centers), steps
        else:
            centers = self._by_lloyd(features, X, weights, k, report)
        self.X_fit_, self.dual_coef_ = span.landmarks, span.root @ centers.T
        self.sample_weight_ = None  # no training rows are kept, nor their weights
        self.center_norms_ = np.einsum("jc,jc->c", self.dual_coef_, span.matrix @ self.dual_coef_)
        self._measure_means(K, X, w, seed, report)

    def _places(self, X: Any, weights: np.ndarray | None, m: int, seed: int) -> Any:
        """`landmarks`; if they are to be chosen and some rows have weight 0, those chosen among the others."""
        if weights is None or np.all(weights > 0) or not isinstance(self.landmarks, str):
            return self.landmarks
        present = np.flatnonzero(weights)
        some = self.kernel_.space.of(X).among(present).rows
        index, rows = choose_landmarks(
            "KernelKMeans", self.landmarks, KernelOperator(self.kernel_, some), some, m, seed, POOL * m
        )
        return rows if index is None else present[index]

    def _measure_means(self, K: KernelOperator, X: Any, w: np.ndarray, seed: int, report: Report) -> None:
        """The inertia of the landmarks' means, exactly, and how far they are from those of the rows."""
        means = LandmarkMeans(self.kernel_, self.X_fit_, self.dual_coef_, self.center_norms_)
        with report.stage("measure"):
            diagonal = np.asarray(K.diagonal(), np.float64)
            self.inertia_ = means.inertia(X, self.labels_, w, diagonal)
            off, rows = means.largest_error(X, self.labels_, w, seed)
        report.residual, report.tolerance = off / max(float(np.abs(diagonal).max()), np.finfo(float).tiny), float("nan")
        report.status = f"the largest error of ⟨φ(x), m_c⟩ over max k(x, x), on {rows} rows"
        report.notes.append("inertia_ is that of the landmarks' means, in the whole feature space")

    def _landmark_count(self, n: int, k: int) -> int:
        m = given_count("KernelKMeans", self.landmarks, self._count_or_none("n_landmarks"))
        m = count_landmarks(n, k) if m is None else m
        return min(m, n) if isinstance(self.landmarks, str) else m

    def _by_lloyd(
        self, features: LandmarkFeatureMap, X: Any, weights: np.ndarray | None, k: int, report: Report
    ) -> np.ndarray:
        """The means of the features, (k, m), by the iteration that the exact method takes, on Φ Φᵀ."""
        with report.stage("features"):
            Phi = features.of_all(X)
        problem = Clustering(LowRank(Phi), np.zeros(len(Phi), np.intp), k, weights)
        with report.stage("clusters"):
            best = self._best(problem, None, self.tol)
        self._account(report, best, self.tol)
        self._number(best.x, problem, report)
        W = np.eye(self.n_clusters_)[self.labels_] * problem.w[:, None]
        return np.asarray((W.T @ Phi) / self.cluster_weights_[:, None])

    # ---- new rows ----------------------------------------------------------------------------------------------------

    def _products(self, X: Any) -> np.ndarray:
        """⟨φ(x), m_c⟩ for each row and mean."""
        K = self._cross(X)
        if hasattr(self, "dual_coef_"):
            products = np.asarray(K @ self.dual_coef_)
        else:
            products = K.group_sums(self.labels_, self.n_clusters_, self.sample_weight_) / self.cluster_weights_
        return known_values(products, K, "KernelKMeans")

    def predict(self, X: Any) -> np.ndarray:
        """The nearest mean of each row."""
        products = self._products(X)
        return np.asarray((self.center_norms_ - 2 * products).argmin(axis=1))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """2⟨φ(x), m_c⟩ − ‖m_c‖² for each labels of `history_`, one after the other: greatest for the nearest mean.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Yields
        ------
        array of shape (m, clusters)
            −inf for a cluster that has no rows at that time.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelKMeans
        >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
        >>> model = KernelKMeans(2, "linear", init=np.array([0, 1, 1, 1]), keep_history=True).fit(X)
        >>> [scores.argmax(axis=1).tolist() for scores in model.staged_decision_function([[4.0]])]
        [[1], [0]]
        """
        self._require_history("staged_decision_function")
        new, own = self._cross(X), KernelOperator(self.kernel_, self.X_fit_, dtype=np.float64)
        w, k = self.sample_weight_, int(self.history_.max()) + 1
        for labels in self.history_:
            W = np.bincount(labels, w, k)
            filled, each = W > 0, np.where(W > 0, W, 1.0)
            products = own.group_sums(labels, k, w)[np.arange(len(labels)), labels]
            norms = np.bincount(labels, products if w is None else w * products, k) / each**2
            sums = known_values(new.group_sums(labels, k, w), new, "KernelKMeans")
            yield np.where(filled, 2 * sums / each - norms, -np.inf)

    def transform(self, X: Any) -> np.ndarray:
        """‖φ(x) − m_c‖ from all means, of shape (m, k).

        Raises
        ------
        InvalidInput
            For a precomputed kernel: k(x, x) of new rows is unknown. For training rows use `fit_transform`.
        """
        products = self._products(X)
        if self._space().numbered:
            given = "distances with a precomputed kernel, which has no k(x, x) of a new row"
            raise InvalidInput(message("KernelKMeans", given, "give the kernel itself, or use predict"))
        K = KernelOperator(self.kernel_, self._validate_new(X), dtype=np.float64)
        own = known_values(np.asarray(K.diagonal()), K, "KernelKMeans")
        return self._roots(own[:, None] - 2 * products + self.center_norms_)

    def _roots(self, D: np.ndarray) -> np.ndarray:
        """√D, and 0 if D is below the rounding of its terms: the root of rounding would be a large error."""
        rounding = 4 * np.finfo(np.float64).eps * np.sqrt(len(self.labels_)) * (D + self.center_norms_)
        return np.sqrt(np.where(rounding < D, D, 0.0))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−Σ wᵢ min_c ‖φ(xᵢ) − m_c‖²: greater is better; y is ignored."""
        nearest = self.transform(X).min(axis=1) ** 2
        weights = self._weights(sample_weight, X)
        return -float(nearest.sum() if weights is None else weights @ nearest)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_
