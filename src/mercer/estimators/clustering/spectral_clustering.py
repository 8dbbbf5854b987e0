"""Spectral clustering: a graph with kernel values as weights, cut where the weights are small."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators.base.indefinite import known_values
from mercer.estimators.clustering.clusterer import Clusterer
from mercer.gram import KernelOperator
from mercer.kernels.conventions import AFFINITIES, Names
from mercer.mixins import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from mercer.operators import Dense, LowRank, Operator, Weighted
from mercer.schemas import Array, Schema, Size
from mercer.solvers import BlockKrylov, Clustering, Eigenpairs, Eigenproblem, Solution, rayleigh_ritz, solve
from mercer.solvers.choose import DENSE_BELOW, choose_eigen
from mercer.ways.report import Report
from mercer.ways.spectral import eigen_seconds

__all__ = ["KernelSpectralClustering"]


class KernelSpectralClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    r"""k-means of the rows of U, each made of length 1, with D^(−½) K D^(−½) U = U Λ for the k largest λ, D = diag(K1).

    The kernel values are the weights of a graph between the rows, and its cuts are normalised by degrees. D^(−½)KD^(−½)
    is an operator: it is multiplied by blocks of vectors and stored only if it fits. New rows are placed by
    Nyström's extension u(x) = Σⱼ k(x, xⱼ) uⱼ/(λ √(d(x) dⱼ)) with d(x) = Σⱼ k(x, xⱼ), which gives training rows their
    own. With weights, D = diag(Kw) and the matrix is diag(√w) D^(−½) K D^(−½) diag(√w).

    Parameters
    ----------
    n_clusters : int, default 8
        k.
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its `SpectralClustering`. One without negative values on the rows:
        the degrees must be positive. The width of "gaussian" is large for this purpose;
        "gaussian(gamma='median')" or larger finds finer clusters.
    n_components : int or None, default None
        Eigenvectors; None is n_clusters.
    n_init : int, default 3
        Starts of k-means by k-means++, of which the one of least inertia is kept.
    max_iter : int, default 300
        Passes of k-means.
    tol : float, default 1e-5
        max ‖Mu − λu‖/λ₁ over the eigenvectors, recomputed in float64.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters are numbered by falling weight.
    embedding_ : array of shape (n, n_components)
        The normalised rows; the entry of largest magnitude of each column is positive before they are.
    eigenvalues_ : array of shape (n_components,)
        λ, the largest 1. A gap after the kth speaks for k clusters.
    cluster_centers_ : array of shape (k, n_components)
        The means of the embedded rows.
    inertia_ : float
        The inertia of k-means on the embedded rows.
    cluster_weights_, n_clusters_, n_iter_
        The weight of each cluster, how many there are, passes of the best start.
    dual_coef_ : array of shape (n, n_components)
        √(wⱼ/dⱼ) uⱼ/λ.
    kernel_, X_fit_, sample_weight_, report_
        The kernel as resolved, the training rows and their weights, and the report on method and accuracy.

    Notes
    -----
    Eigenvectors of equal eigenvalues are any basis of their span: labels do not depend on which, `embedding_` does.
    Kernel k-means with weights w = d and the kernel D⁻¹KD⁻¹ has the same objective, without the relaxation.

    References
    ----------
    A. Y. Ng, M. I. Jordan, Y. Weiss (2001). On spectral clustering: analysis and an algorithm. NeurIPS 14.
    U. von Luxburg (2007). A tutorial on spectral clustering. Statistics and Computing 17.
    C. Fowlkes, S. Belongie, F. Chung, J. Malik (2004). Spectral grouping using the Nyström method. PAMI 26.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from mercer import KernelSpectralClustering
    >>> from mercer.kernels import Gaussian
    >>> X, ring = make_circles(200, factor=0.3, noise=0.04, random_state=0)
    >>> model = KernelSpectralClustering(2, Gaussian(gamma=30.0)).fit(X)
    >>> float(adjusted_rand_score(ring, model.labels_))
    1.0
    >>> model.predict([[1.0, 0.0], [0.0, -1.0], [0.3, 0.0]]).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    fitted: ClassVar[Schema] = Clusterer.fitted + Schema(
        Size("labelled", lambda _, sizes: sizes["n"]),
        Array("eigenvalues_", "components"),
        Array("dual_coef_", "n components"),
        Array("embedding_", "n components"),
        Array("cluster_centers_", "clusters components"),
    )

    named_kernels: ClassVar[Names] = AFFINITIES
    step_limit: ClassVar[str] = ""  # max_iter is of k-means, not of the eigenvectors
    indefinite_meaning: ClassVar[str] = (
        "its values are the weights of a graph, which need not be definite but may not be negative"
    )

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Any = "gaussian",
        *,
        n_components: int | None = None,
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-5,
        memory: float | str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Embed the rows of X (array-like or CSR matrix of shape (n, d)) and find their clusters; y is ignored."""
        X = self._validate(X)
        weights = self._weights(sample_weight, X)
        K, report = self._begin(X, weights)
        self.report_, self.sample_weight_ = report, weights
        n = K.shape[0]
        k, q = self._count(n, weights), self._checked_components(n)
        self._kernel_size(K)
        with report.stage("degrees"):
            degrees = self._degrees(K)
        w = np.ones(n) if weights is None else weights
        self._refuse_unconnected(degrees, w)
        self._embed(K, w, degrees, q, report)
        self.embedding_ = self._normalised(K, degrees)
        problem = Clustering(LowRank(self.embedding_), np.zeros(n, np.intp), k, weights)
        with report.stage("clusters"):
            best = self._best(problem, None)
        if not best.converged:
            report.notes.append(f"k-means ended after max_iter={self.max_iter} passes, before its rows came to rest")
        self._number(best.x, problem, report)
        self.inertia_ = best.x.inertia
        sums = np.eye(self.n_clusters_)[self.labels_].T @ (w[:, None] * self.embedding_)
        self.cluster_centers_ = sums / self.cluster_weights_[:, None]
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """The embedded training rows."""
        return self.fit(X, sample_weight=sample_weight).embedding_

    def _checked_components(self, n: int) -> int:
        self._checked_number("tol")
        return min(self._count_or_none("n_components") or self.n_clusters, n)

    def _degrees(self, K: KernelOperator) -> np.ndarray:
        """d(x) = Σⱼ wⱼ k(x, xⱼ) of training or new rows."""
        w = np.ones(K.shape[1]) if self.sample_weight_ is None else self.sample_weight_
        degrees = np.asarray(K @ w, np.float64)
        K.release()
        return degrees

    def _refuse_unconnected(self, degrees: np.ndarray, w: np.ndarray) -> None:
        bad = np.flatnonzero((w > 0) & ~(degrees > 0))
        if not bad.size:
            return
        given = f"degrees Σⱼ k(x, xⱼ) down to {degrees[bad].min():.2g}"
        do = 'take a kernel without negative values, such as "gaussian", "laplace" or "intersection"'
        if not np.any(degrees[bad]):
            given = f"row {bad[0]}, of which all kernel values are 0" + (f", and {len(bad) - 1} more" * (len(bad) > 1))
            do = "leave such rows out, or take a kernel that tells something of them"
        raise InvalidInput(message(type(self).__name__, given, do))

    def _embed(self, K: KernelOperator, w: np.ndarray, degrees: np.ndarray, q: int, report: Report) -> None:
        """The eigenvectors of diag(s) K diag(s), s = √(w/d), as coefficients of the extension to all rows."""
        s = np.sqrt(w / np.where(w > 0, degrees, 1.0))
        solution = self._solve(K, s, q, report)
        with report.stage("check in float64"):
            V = np.asarray(solution.x.vectors, np.float64)
            pairs: Eigenpairs = rayleigh_ritz(V, s[:, None] * (K @ (s[:, None] * V)))
        largest = max(float(np.abs(pairs.values).max()), np.finfo(float).tiny)
        found = Solution(pairs, solution.status, solution.steps, float(pairs.residuals.max()) / largest, solution.state)
        self._account(report, found, self.tol)
        kept = pairs.values > float(np.finfo(report.dtype).eps) * len(s) * largest
        if not np.all(kept):
            report.notes.append(f"{q} eigenvectors were requested, {int(kept.sum())} have eigenvalues above rounding")
        self.eigenvalues_, U = pairs.values[kept], pairs.vectors[:, kept]
        of_rows = U / np.where(w > 0, np.sqrt(w), np.inf)[:, None]
        top = of_rows[np.abs(of_rows).argmax(axis=0), np.arange(U.shape[1])]
        self.dual_coef_ = s[:, None] * U * np.where(top < 0, -1.0, 1.0) / self.eigenvalues_

    def _solve(self, K: KernelOperator, s: np.ndarray, q: int, report: Report) -> Solution[Any]:
        """The eigenproblem by size: LAPACK, or block Krylov on K stored in float32 or not stored."""
        n = K.shape[0]
        if n > DENSE_BELOW and K.keep_factors(report.room):
            report.memory_rows += K.copies
        choice = choose_eigen(n, q, report.room, self.tol, seconds=eigen_seconds(K, q))
        report.method, report.reason = f"{choice.name}, {'stored' if choice.stored else 'matrix-free'}", choice.reason
        small = choice.name == "dense"
        vectors = 8 * n * q if small else BlockKrylov().memory(n, q, 4 if self.tol >= 1e-6 else 8)
        need = vectors + (8 if small else 4) * n * n * choice.stored + 64 * n * self.n_clusters
        what = f"KernelSpectralClustering of {n} rows and {q} eigenvectors"
        report.plan(need, what, ["fewer components", "fewer rows"])
        operator: Operator = K.in_float32() if self.tol >= 1e-6 and not small else K
        report.precision = f"{operator.dtype} entries, float64 eigenvalues and residual"
        if choice.stored and not small:
            with report.stage("kernel matrix"):
                operator = Dense(operator.toarray(), symmetric=True)
        with report.stage("eigenvectors"):
            solution = solve(choice.solver, Eigenproblem(Weighted(operator, s), q, self._seed()))
        if solution.x is None:
            raise InvalidInput(
                message(type(self).__name__, "no eigenvectors were found", self._advice(solution.status))
            )
        return solution

    def _normalised(self, K: KernelOperator, degrees: np.ndarray) -> np.ndarray:
        """u(x) = Σⱼ k(x, xⱼ) √(wⱼ/dⱼ) uⱼ/(λ √d(x)), normalised; 0 for a row that no training row is similar to."""
        U = np.asarray(K @ self.dual_coef_, np.float64)
        U *= np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)[:, None]
        length = np.linalg.norm(U, axis=1)
        return np.asarray(U / np.where(length > 0, length, 1.0)[:, None])

    # ---- new rows ----------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """The embedded rows, of shape (m, n_components)."""
        K = self._cross(X)
        degrees = known_values(self._degrees(K), K, type(self).__name__)
        return known_values(self._normalised(K, degrees), K, type(self).__name__)

    def predict(self, X: Any) -> np.ndarray:
        """The cluster whose mean is nearest to the embedded row."""
        U = self.transform(X)
        C = self.cluster_centers_
        return np.asarray(((C**2).sum(axis=1) - 2 * U @ C.T).argmin(axis=1))

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
