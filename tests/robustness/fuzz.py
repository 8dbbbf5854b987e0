"""Kernels × rows of all sizes × what is computed, against an oracle in extended precision that shares no code.

``python tests/robustness/fuzz.py --cases 200000 --seed 0`` prints what is wrong without a warning or an error, and how
many cases there were of each outcome. The oracle has long doubles where the library has float32 or float64: entries by
the textbook's formula on all pairs, sums, and ridge regression by Cholesky's method. Of the other estimators the
outputs are compared with the expansion that their own coefficients state.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from oracles import Oracle, Wide, dot, oracles, rows

import mercer
from mercer import KernelOperator
from mercer.errors import MercerError

PHASE = 1e-5
"""Up to which phases of random features are rounded in float32."""


# ---- the cases ------------------------------------------------------------------------------------------------------


class Wrong(Exception):
    """A number that is wrong, and nothing said so."""


def agree(what: str, given: Any, wanted: Any, bound: Any) -> None:
    given = np.asarray(given)
    wanted = np.asarray(wanted)
    if not np.all(np.isfinite(given) | (np.abs(wanted) > 1e300)):  # infinity is what float64 has for more
        raise Wrong(f"{what}: not finite")
    off, bound = np.abs(given.astype(Wide) - wanted), bound + Wide(1e-300)
    off = np.where(np.isfinite(off), off, 0)
    if np.any(off > bound):
        at = np.unravel_index(int(np.argmax(off / np.maximum(bound, np.finfo(Wide).tiny))), off.shape)
        raise Wrong(f"{what}: {given[at]!r} for {wanted[at]!r}, off by {off[at]:.1e}, bound {bound[at]:.1e}")


def rounding(dtype: Any, d: int) -> Wide:
    return Wide(np.finfo(dtype).eps) * (16 + d)


BY_NORMS = ("gaussian", "laplace 2", "cauchy", "rational quadratic", "matern", "sum", "product")
"""Kernels of distances: of more than 16 columns by norms, where entries in float64 are promised to 1e-13."""


def entry_bound(case: Case, unit: Any, dtype: Any, *rows: Any) -> Any:
    """Rounding of each entry; of the largest one where a row is so small that its products are below the range."""
    eps, d = rounding(dtype, case.d), case.d
    if case.oracle.name in BY_NORMS and d > 16 and np.dtype(dtype) == np.float64:
        eps = max(eps, Wide(1e-13))
    norms = np.sqrt(np.concatenate([dot(part, part).diagonal() for part in rows]))
    lost = np.any((norms > 0) & (norms**2 < 16 * d * Wide(np.finfo(dtype).tiny)))
    least = Wide(np.finfo(dtype).tiny) * (d + 1)
    return eps * unit + (eps * unit.max() if lost else min(least, eps * unit.max()))


@dataclass
class Case:
    """Rows X and Z, a kernel, and what its matrices are."""

    rng: np.random.Generator
    oracle: Oracle
    X: Any
    Z: Any

    def __post_init__(self) -> None:
        self.A, self.B = wide(self.X), wide(self.Z)
        self.d, self.kernel = self.A.shape[1], self.oracle.kernel
        self.square, self.unit = self.oracle.entries(self.A, self.A)
        self.cross, self.side = self.oracle.entries(self.B, self.A)


def check_entries(case: Case) -> None:
    K = case.kernel(case.X)
    agree("entries", K, case.square, entry_bound(case, case.unit, K.dtype, case.A))


def check_cross_entries(case: Case) -> None:
    K = case.kernel(case.Z, case.X)
    agree("entries", K, case.cross, entry_bound(case, case.side, K.dtype, case.A, case.B))


def check_product(case: Case) -> None:
    compare_product(case, KernelOperator(case.kernel, case.X), case.square, case.unit)


def check_cross_product(case: Case) -> None:
    compare_product(case, KernelOperator(case.kernel, case.Z, case.X), case.cross, case.side)


def compare_product(case: Case, K: KernelOperator, wanted: Any, unit: Any) -> None:
    v = case.rng.standard_normal((K.shape[1], 2)) * 10.0 ** case.rng.uniform(-3, 3)
    bound = entry_bound(case, unit, K.dtype, case.A, case.B) + 64 * Wide(np.finfo(K.dtype).eps) * np.abs(wanted)
    agree("product", K @ v, wanted @ v, bound @ np.abs(v))


def check_consumers(case: Case) -> None:
    """The other ways to the same numbers: parts, sums and products of the transpose."""
    K, rng, (m, n) = KernelOperator(case.kernel, case.Z, case.X), case.rng, case.cross.shape
    bound = entry_bound(case, case.side, K.dtype, case.A, case.B)
    more = bound + 64 * Wide(np.finfo(K.dtype).eps) * np.abs(case.cross)
    some, few = rng.integers(0, m, 3), rng.permutation(n)[: n // 2]
    agree("rows", K.rows(some), case.cross[some], bound[some])
    agree("block", K.block(some, few), case.cross[np.ix_(some, few)], bound[np.ix_(some, few)])
    u = rng.standard_normal((m, 1))
    agree("transpose", K.T @ u, case.cross.T @ u, more.T @ np.abs(u))
    labels = rng.integers(0, 2, n)
    wanted = np.stack([case.cross[:, labels == g].sum(axis=1) for g in (0, 1)], axis=1)
    agree("sums", K.group_sums(labels, 2), wanted, np.stack([more[:, labels == g].sum(axis=1) for g in (0, 1)], axis=1))


def check_normal_product(case: Case) -> None:
    K = KernelOperator(case.kernel, case.Z, case.X)
    v, size = case.rng.standard_normal((K.shape[1], 2)), np.abs(case.cross)
    bound = entry_bound(case, case.side, K.dtype, case.A, case.B) + 64 * Wide(np.finfo(K.dtype).eps) * size
    wanted = case.cross.T @ (case.cross @ v)
    agree(
        "normal product",
        K.normal_product(v),
        wanted,
        ((bound.T @ size) + (size.T @ bound) + bound.T @ bound) @ np.abs(v),
    )


def check_diagonal(case: Case) -> None:
    K = KernelOperator(case.kernel, case.X)
    wanted, bound = np.diagonal(case.square), np.diagonal(entry_bound(case, case.unit, K.dtype, case.A))
    agree("diagonal", K.diagonal(), wanted, bound)
    agree("diagonal of the kernel", case.kernel(case.X).diagonal(), wanted, bound)


def check_float32(case: Case) -> None:
    """Entries in float32 where their range holds them; of float32 rows, which are not rounded for them."""
    if case.X.dtype == np.float32:
        K = KernelOperator(case.kernel, case.X, dtype=np.float64).in_float32()
        agree("in float32", K.toarray(), case.square, entry_bound(case, case.unit, K.dtype, case.A))


def cholesky_solve(A: Any, B: Any) -> Any:
    """A⁻¹ B in extended precision; None where A is not positive definite."""
    n, L = len(A), A.copy()
    for j in range(n):
        L[j, j] -= L[j, :j] @ L[j, :j]
        if not L[j, j] > 0:
            return None
        L[j, j] = np.sqrt(L[j, j])
        L[j + 1 :, j] = (L[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    X = B.copy()
    for j in range(n):
        X[j] = (X[j] - L[j, :j] @ X[:j]) / L[j, j]
    for j in reversed(range(n)):
        X[j] = (X[j] - L[j + 1 :, j] @ X[j + 1 :]) / L[j, j]
    return X


def check_ridge(case: Case) -> None:
    K, n, trace = case.square, len(case.A), float(np.trace(case.square))
    alpha = float(10.0 ** case.rng.uniform(-9, 1)) * trace / n if 1e-280 < trace < 1e280 else 1.0
    y = case.rng.standard_normal(n)
    given = mercer.KernelRidge(case.kernel, alpha=alpha).fit(case.X, y).predict(case.Z)
    dual = cholesky_solve(K + Wide(alpha) * np.eye(n, dtype=Wide), y.astype(Wide)[:, None])
    if dual is None:
        return
    # What entries and sums are off by adds to the residual; ‖kₓ‖ in (K + λI)⁻¹ is at most √(k(x, x)/λ).
    eps = rounding(np.float64, case.d) * n
    residual = 2e-10 * np.linalg.norm(y) + eps * (case.unit.max() + alpha) * np.abs(dual).sum()
    lengths = np.sqrt((case.cross**2).sum(axis=1))
    reach = np.minimum(np.sqrt(case.oracle.own(case.B) / Wide(alpha)), lengths / Wide(alpha))
    bound = 4 * (reach[:, None] * residual + eps * (case.side @ np.abs(dual)))
    agree("ridge", given[:, None], case.cross @ dual, bound)


def expansions(rng: np.random.Generator, y: Any, labels: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """An estimator, its targets, and its output."""
    some: list[tuple[Any, Any, str]] = [
        (lambda k: mercer.SVC(10.0, kernel=k), labels, "decision_function"),
        (lambda k: mercer.SVR(10.0, kernel=k), y, "predict"),
        (lambda k: mercer.OneClassSVM(k), None, "decision_function"),
        (lambda k: mercer.KernelRidgeClassifier(k, 1e-3), labels, "decision_function"),
        (lambda k: mercer.KernelLogisticRegression(k, 1e-3), labels, "decision_function"),
        (lambda k: mercer.KernelPerceptron(k, method="averaged", max_iter=10), labels, "decision_function"),
        (lambda k: mercer.KernelLMS(k, max_iter=20), y, "predict"),
        (lambda k: mercer.KernelPLS(2, k), y, "predict"),
        (lambda k: mercer.KernelPCA(2, kernel=k), None, "transform"),
        (lambda k: mercer.KernelCCA(1, kernel=k), np.stack([y, y**2], axis=1), "transform"),
        (lambda k: mercer.KernelDiscriminantAnalysis(kernel=k), labels, "transform"),
        (lambda k: mercer.OnlineKernelRegressor(k, budget=20), y, "predict"),
        (lambda k: mercer.OnlineKernelClassifier(k, budget=20), labels, "decision_function"),
    ]
    make, target, output = some[int(rng.integers(len(some)))]
    return make, target, lambda model: getattr(model, output)


def check_expansion(case: Case) -> None:
    n, rng = len(case.A), case.rng
    y, labels = rng.standard_normal(n), (np.arange(n) % 2)[rng.permutation(n)]
    make, target, output = expansions(rng, y, labels)
    model = make(case.kernel)
    model.fit(case.X) if target is None else model.fit(case.X, target)
    given = output(model)(case.Z)
    given = np.asarray(given).reshape(len(given), -1)
    found, points = model._expansion(), wide(model.X_fit_)
    if not given.shape[1] or not len(points):
        return
    cross, unit = case.oracle.entries(case.B, points)
    alpha, b = found.coefficients.astype(Wide), np.asarray(found.intercept, Wide)
    if not (np.all(np.isfinite(alpha)) and np.all(np.isfinite(b))):
        raise Wrong(f"{type(model).__name__}: coefficients that are not finite")
    eps = 4 * rounding(np.float64, case.d)
    bound = eps * (unit @ np.abs(alpha) + np.abs(b))
    if isinstance(model, mercer.OneClassSVM):  # decisions that are 0 but for rounding are 0
        bound = bound + 1e-9 * np.abs(alpha).sum()
    agree(type(model).__name__, given, cross @ alpha + b, bound)


def check_features(case: Case) -> None:
    """⟨φ(x), φ(z)⟩ of Nyström's features with all rows for landmarks is k(x, z), up to what is cut."""
    n = len(case.A)
    Phi = np.asarray(mercer.Nystroem(case.kernel, n, landmarks="uniform").fit(case.X).transform(case.X))
    # K^(−½) is cut at eps·n·λ₁, so rounding is multiplied by up to eps^(−½) beside the largest features.
    eps = max(8 * rounding(case.X.dtype, case.d) * n * n, 64 * np.sqrt(np.finfo(np.float64).eps))
    if not np.all(np.isfinite(Phi)):
        raise Wrong("Nystroem: not finite")
    agree("Nystroem", Phi.astype(Wide) @ Phi.astype(Wide).T, case.square, np.full((n, n), eps * case.unit.max()))


def means_of(case: Case, labels: Any) -> tuple[Any, Any, Any]:
    """‖φ(x) − m_c‖² of rows and of new rows from the means of clusters, and of what their errors are multiples."""
    E = np.eye(labels.max() + 1, dtype=Wide)[labels]
    W = E.sum(axis=0)
    norms, own, new = (E.T @ case.square @ E).diagonal() / W**2, case.square.diagonal(), case.oracle.own(case.B)
    size = rounding(np.float64, case.d) * 8 * (case.unit.max() + case.side.max() + new.max())
    return own[:, None] - 2 * case.square @ E / W + norms, new[:, None] - 2 * case.cross @ E / W + norms, size


def check_clusters(case: Case) -> None:
    model = mercer.KernelKMeans(int(case.rng.integers(2, 4)), case.kernel, n_init=1).fit(case.X)
    D, new, size = means_of(case, model.labels_)
    own = D[np.arange(len(D)), model.labels_]
    agree("inertia", [model.inertia_], own.sum()[None], (len(D) * size)[None])
    agree("nearest mean", own - D.min(axis=1), 0 * own, np.full(len(D), 4 * size))
    # Distances that are rounding are 0.
    agree("distances", model.transform(case.Z) ** 2, np.maximum(new, 0), np.full(new.shape, 4 * size))


def check_spectral(case: Case) -> None:
    model = mercer.KernelSpectralClustering(2, kernel=case.kernel).fit(case.X)
    alpha, degrees = model.dual_coef_.astype(Wide), case.cross.sum(axis=1)
    wanted = case.cross @ alpha
    length = np.linalg.norm(wanted, axis=1, keepdims=True)
    error = 4 * rounding(np.float64, case.d) * (case.side @ np.abs(alpha)).sum(axis=1, keepdims=True)
    sound = (length > 0) & (degrees > rounding(np.float64, case.d) * case.side.sum(axis=1))[:, None]
    bound = np.where(sound, error / np.where(length > 0, length, 1), 2)
    agree("embedding", model.transform(case.Z), wanted / np.where(length > 0, length, 1), bound * np.ones(wanted.shape))


def check_posterior(case: Case) -> None:
    """The variance k(x, x) − k_xᵀ (K + λI)⁻¹ k_x of new rows."""
    n, trace = len(case.A), float(np.trace(case.square))
    alpha = float(10.0 ** case.rng.uniform(-9, 1)) * trace / n if 1e-280 < trace < 1e280 else 1.0
    model = mercer.KernelRidge(case.kernel, alpha=alpha).fit(case.X, case.rng.standard_normal(n))
    std = model.predict(case.Z, return_std=True)[1]
    S = cholesky_solve(case.square + Wide(alpha) * np.eye(n, dtype=Wide), case.cross.T)
    if S is None:
        return
    wanted, eps = case.oracle.own(case.B) - np.einsum("ij,ji->i", case.cross, S), rounding(np.float64, case.d)
    size = np.abs(S).sum(axis=0)
    bound = 4 * n * eps * (case.unit.max() + alpha) * size**2
    bound += 8 * n * eps * (case.oracle.own(case.B) + case.side.max(axis=1) * size)
    agree("variance", std.astype(Wide) ** 2, np.maximum(wanted, 0), bound)


def check_random_features(case: Case) -> None:
    """Cosines and sines of the phases that the frequencies make."""
    model = mercer.RandomFourierFeatures(case.kernel, 16).fit(case.X)
    W, Phi = model.frequencies_.astype(Wide), model.transform(case.Z)
    phase, height = case.B @ W.T, np.sqrt(Wide(model.scale_) / 8)
    lengths = np.sqrt(dot(case.B, case.B).diagonal()[:, None] * dot(W, W).diagonal()[None, :])
    # Phases are whole turns less where float32 would not hold them; those of a few frequencies may be larger.
    kind = np.finfo(Phi.dtype)
    reach = np.sqrt(dot(case.B, case.B).max() * np.median(dot(W, W).diagonal()))
    unit = kind.eps if kind.eps * reach <= PHASE else np.finfo(np.float64).eps
    bound = height * np.minimum(2, (case.d + 8) * unit * lengths + 16 * kind.eps * np.pi)
    agree("random features", Phi, height * np.hstack([np.cos(phase), np.sin(phase)]), np.hstack([bound, bound]))


def check_sketch(case: Case) -> None:
    """All monomials have the kernel's inner products; where degrees are sketched, the features are finite."""
    model = mercer.PolynomialSketch(case.kernel, 300).fit(case.X)
    Phi, Psi = model.transform(case.Z), model.transform(case.X)
    if not (np.all(np.isfinite(Phi)) and np.all(np.isfinite(Psi))):
        raise Wrong("PolynomialSketch: not finite")
    if model.exact_ == len(model.places_):
        # A feature below the range is lost, or keeps few digits.
        # Features of huge rows are float64 where those of others are float32.
        eps = max(rounding(part.dtype, case.d) for part in (Phi, Psi)) * 8 * len(model.places_)
        top = np.sqrt(case.unit.max() * case.side.max())
        lost = (
            np.finfo(Phi.dtype).tiny ** 0.5 * Phi.shape[1] * np.sqrt(max(case.unit.max(), case.side.max(), Wide(1e-30)))
        )
        agree("sketch", Phi.astype(Wide) @ Psi.astype(Wide).T, case.cross, eps * np.maximum(case.side, top) + lost)


def check_two_samples(case: Case) -> None:
    m, n, rng = len(case.B), len(case.A), case.rng
    if m < 2:
        return
    own, unit = case.oracle.entries(case.B, case.B)
    given = mercer.mmd_test(case.X, case.Z, case.kernel, n_permutations=3, estimator="biased").statistic
    wanted = case.square.mean() + own.mean() - 2 * case.cross.mean()
    eps = rounding(np.float64, case.d) * 4 * (m + n) * max(case.unit.max(), unit.max(), case.side.max())
    agree("MMD²", [given], wanted[None], eps[None])
    y = rng.standard_normal((n, 2))
    L = dot(*[y.astype(Wide)] * 2)
    H = np.eye(n, dtype=Wide) - Wide(1) / n
    given = mercer.hsic_test(case.X, y, case.kernel, "linear", n_permutations=3, estimator="biased").statistic
    wanted = np.trace(H @ case.square @ H @ L) / n**2
    agree(
        "HSIC", [given], wanted[None], (rounding(np.float64, case.d) * 8 * n * case.unit.max() * np.abs(L).max())[None]
    )


def check_points(case: Case) -> None:
    """The distance of some rows' mean from that of all."""
    n = len(case.A)
    for found in (mercer.herd(case.X, 3, case.kernel), mercer.thin(case.X, 3, case.kernel)):
        I = found.indices
        wanted = case.square[np.ix_(I, I)].mean() - 2 * case.square[I].mean() + case.square.mean()
        bound = rounding(np.float64, case.d) * 8 * n * case.unit.max()
        agree("squared distance", [found.mmd[-1] ** 2], np.maximum(wanted, 0)[None], bound[None])


ALWAYS = (
    check_entries, check_cross_entries, check_product, check_cross_product,
    check_consumers, check_normal_product, check_diagonal, check_float32,
)  # fmt: skip
SOMETIMES = (
    check_ridge, check_ridge, check_expansion, check_expansion, check_expansion, check_features, check_clusters,
    check_spectral, check_posterior, check_random_features, check_sketch, check_two_samples, check_points,
)  # fmt: skip


def wide(X: Any) -> Any:
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(Wide)


def drawn(rng: np.random.Generator) -> Case:
    n, m, d = int(rng.integers(4, 11)), int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 7, 16, 20, 40]))
    dtype = np.float32 if rng.random() < 0.6 else np.float64
    both = rows(rng, n + m, d).astype(dtype)
    if rng.random() < 0.1:  # new rows much larger, or smaller
        both[n:] *= dtype(10.0 ** rng.uniform(-8, 8))
    both = np.nan_to_num(both, nan=0.0)
    X, Z = both[:n], both[n:]
    if rng.random() < 0.15:
        X, Z = sp.csr_array(X), sp.csr_array(Z)
    return Case(rng, oracles(rng, both.astype(Wide)), X, Z)


def one(seed: int) -> list[tuple[str, str]]:
    """The outcomes of the checks of one draw, and what is wrong with each."""
    with np.errstate(all="ignore"):
        case = drawn(np.random.default_rng(seed))
        checks = list(ALWAYS)
        if case.rng.random() < 0.5 and case.kernel.properties.definiteness.is_mercer:
            checks.append(SOMETIMES[int(case.rng.integers(len(SOMETIMES)))])
        return [outcome(case, check) for check in checks]


def outcome(case: Case, check: Callable[[Case], None]) -> tuple[str, str]:
    n, sparse = len(case.A), ", sparse" * sp.issparse(case.X)
    about = f"{check.__name__} of {case.kernel!r:.300}, {n} × {case.d}, {case.X.dtype}{sparse}"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            check(case)
        except Wrong as error:
            # A RuntimeWarning of NumPy's says nothing to a user.
            said = any(not issubclass(w.category, RuntimeWarning) for w in told)
            return ("warned", "") if said else ("WRONG", f"{about}: {error}")
        except (MercerError, ValueError) as error:
            return "refused", str(error)
        except Exception as error:
            return "CRASH", f"{about}: {type(error).__name__}: {error}"
    return "right", ""


def run(first: int, cases: int, show: int = 40, tell: Callable[[str], Any] = str) -> tuple[Counter[str], list[str]]:
    """How many cases had which outcome, and what was wrong with the first ones."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    seed = first
    while outcomes.total() < cases:
        for what, why in one(seed):
            outcomes[what] += 1
            if what in ("WRONG", "CRASH") and len(wrong) < show:
                wrong.append(f"draw {seed}: {what} {why}")
                tell(wrong[-1])
        seed += 1
    return outcomes, wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, help="instead of a number of cases")
    parser.add_argument("--seed", type=int, default=0, help="the first draw; runs of near seeds try the same cases")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds if given.seconds else 0.0
    outcomes, seed = Counter[str](), given.seed
    while time.monotonic() < until or (not until and not outcomes):
        some, _ = run(seed, 200 if until else given.cases, tell=lambda line: sys.stdout.write(line + "\n"))
        outcomes, seed = outcomes + some, seed + some.total()
    sys.stdout.write(f"{dict(outcomes)} from draw {given.seed} on\n")
