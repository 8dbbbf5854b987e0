"""Repairs indefinite functions: changes their spectrum on the training points, and new points in the same way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.engine.backend import one_blas_thread
from mercer.errors import InvalidInput, message
from mercer.gram import KernelOperator
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.parameters.checks import one_of
from mercer.kernels.parameters.resolution import Resolver
from mercer.kernels.properties import Definiteness, Properties
from mercer.planning import costs
from mercer.points import Space, VectorPoints, count, points_of
from mercer.validity.check import check_kernel

__all__ = ["POLICIES", "RepairedKernel", "SpectralRepair", "repair_kernel"]

POLICIES = ("raise", "clip", "flip", "shift")


@dataclass(frozen=True, eq=False)
class SpectralRepair:
    """The spectrum of K = U diag(λ) Uᵀ on the training points before the repair, and the effect of the repair.

    Attributes
    ----------
    policy : str
    n : int
        Number of training points.
    negative : int
        Number of eigenvalues that are negative beyond rounding.
    smallest, largest : float
        The smallest and the largest λ before the repair.
    negative_mass : float
        Σ|λ < 0|/Σ|λ|, the share of negative eigenvalues in the spectrum.
    shift : float
        Added to k(x, x) by the policy "shift"; otherwise 0.
    change : float
        ‖K̃ − K‖/‖K‖ (Frobenius).
    basis : array of shape (n, r)
        U|Λ|^(−½) of the eigenvalues that are kept; of shape (n, 0) for "shift".
    """

    policy: str
    n: int
    negative: int
    smallest: float
    largest: float
    negative_mass: float
    shift: float
    change: float
    basis: NDArray[np.float64] = field(repr=False)
    """W with φ(x) = Wᵀk_x and k̃(x, z) = ⟨φ(x), φ(z)⟩; empty for "shift"."""

    def __str__(self) -> str:
        if not self.negative:
            return (
                f"{self.policy}: nothing to repair, λ from {self.smallest:.3g} to {self.largest:.3g} of {self.n} points"
            )
        done = {
            "clip": "set to 0",
            "flip": "replaced by their absolute values",
            "shift": f"and all others raised by {self.shift:.3g}",
        }[self.policy]
        return (
            f"{self.policy}: {self.negative} of {self.n} eigenvalues, {self.negative_mass:.1%} of Σ|λ|, were negative "
            f"(to {self.smallest:.3g}; λmax = {self.largest:.3g}) and {done}; ‖K̃ − K‖/‖K‖ = {self.change:.2g}"
        )


def _repaired(K: NDArray[np.float64], policy: str, eps: float) -> SpectralRepair:
    """Apply the policy to the eigenvalues of K; those within rounding of 0 count as 0."""
    with one_blas_thread(costs.eigen_operations(len(K))):
        values, U = np.linalg.eigh((K + K.T) / 2)
    size = float(np.max(np.abs(values), initial=0.0))
    cut = eps * len(values) * size
    negative = values < -cut
    total, frobenius = float(np.sum(np.abs(values))), float(np.sqrt(np.sum(values**2)))
    shift = -float(values[0]) if policy == "shift" and negative.any() else 0.0
    kept = values > cut if policy == "clip" else np.abs(values) > cut
    # φ(x) = |Λ|^(−½) Uᵀ k_x, which equals ±|Λ|^½ Uᵀ eᵢ on training point i.
    basis = U[:, kept] / np.sqrt(np.abs(values[kept])) if policy != "shift" else np.empty((len(values), 0))
    wrong = float(np.sqrt(np.sum(values[negative] ** 2)))
    change = {"clip": wrong, "flip": 2 * wrong, "shift": shift * np.sqrt(len(values))}.get(policy, 0.0)
    return SpectralRepair(
        policy=policy,
        n=len(values),
        negative=int(np.count_nonzero(negative)),
        smallest=float(values[0]),
        largest=float(values[-1]),
        negative_mass=float(np.sum(np.abs(values[negative]))) / total if total > 0 else 0.0,
        shift=shift,
        change=float(change) / frobenius if frobenius > 0 else 0.0,
        basis=basis,
    )


@dataclass(frozen=True, repr=False, eq=False)
class RepairedKernel(Kernel):
    """k̃(x, z) = k_xᵀ T k_z with k_x = (k(x, xᵢ))ᵢ over the training points xᵢ: replaces Λ by Λ̃ ≥ 0 in K = UΛUᵀ.

    clip: Λ̃ = max(Λ, 0), T = UΛ₊⁻¹Uᵀ; flip: Λ̃ = |Λ|, T = U|Λ|⁻¹Uᵀ; shift: k̃(x, z) = k(x, z) − min(λmin, 0)·[x = z].

    Clip and flip give a Mercer kernel on all points, with features φ(x) = |Λ|^(−½)Uᵀk_x: new rows are treated like
    training rows. Shift is positive semi-definite on the training points, and does not change values between different
    points. "raise" refuses an indefinite matrix, with a witness. An estimator binds the kernel to the training points
    of its fit, as it resolves a bandwidth, unless `points` are given.

    Parameters
    ----------
    kernel : Kernel
    policy : {"clip", "flip", "shift", "raise"}, default "clip"
    points : rows or objects, optional
        The training points, or their matrix for a precomputed kernel; by default those of the first fit.

    Attributes
    ----------
    repair : SpectralRepair or None
        The effect of the repair, if the points are known.

    References
    ----------
    Y. Chen, E. Garcia, M. Gupta, A. Rahimi, L. Cazzanti (2009). Similarity-based classification: concepts and
    algorithms. JMLR 10, 747. G. Wu, E. Chang, Z. Zhang (2005). An analysis of transformation on non-positive
    semidefinite similarity matrix for kernel machines. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Sigmoid
    >>> X = np.linspace(-2, 2, 9).reshape(-1, 1)
    >>> model = KernelRidge(RepairedKernel(Sigmoid(gamma=1.0, coef0=-1.0), "clip"), alpha=0.1).fit(X, X.ravel())
    >>> bool(np.linalg.eigvalsh(model.kernel_(X))[0] > -1e-12), model.kernel_.repair.negative > 0
    (True, True)
    """

    kernel: Any
    policy: str = "clip"
    points: Any = None
    repair: SpectralRepair | None = field(default=None, init=False)
    keeps_rows: ClassVar[bool] = True
    """Its values depend on all rows of the fit, so that some of these cannot be left out afterwards."""

    def __post_init__(self) -> None:
        self._set("kernel", as_kernel(self.kernel))
        self._set("policy", one_of("RepairedKernel", "policy", self.policy, POLICIES))
        if self.points is not None:
            K = KernelOperator(self.kernel, self.points)
            self._set("kernel", K.kernel)
            self._set("points", K.X)
            self._set("repair", self._examined(K))

    def __eq__(self, other: object) -> bool:
        """Whether kernel and policy are equal and the points are the same object (comparing them would be slow)."""
        return isinstance(other, RepairedKernel) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.kernel, self.policy, None if self.points is None else id(self.points)

    def _examined(self, K: KernelOperator) -> SpectralRepair:
        if K.shape[0] != K.shape[1]:
            given = f"a kernel matrix of shape {K.shape}"
            raise InvalidInput(message("RepairedKernel", given, "give the square matrix of the training points"))
        found = _repaired(np.asarray(K.toarray(), np.float64), self.policy, float(np.finfo(K.dtype).eps))
        if self.policy == "raise" and found.negative:
            check_kernel(self.kernel, self.points).require()
        return found

    @classmethod
    def restored(cls, kernel: Kernel, policy: str, points: Any, repair: SpectralRepair | None) -> RepairedKernel:
        """The kernel from its saved parts, without another decomposition."""
        made = cls(kernel, policy)
        if (points is None) != (repair is None):
            raise InvalidInput(message("RepairedKernel", "points without a repair", "give both, or neither"))
        if repair is not None:
            wide = np.ndim(repair.basis) == 2 and len(repair.basis) == repair.n == count(points)
            if not wide or repair.policy != made.policy or not made.kernel.is_resolved:
                given = f"a repair of {repair.n} points by {repair.policy!r} for {count(points)} by {policy!r}"
                raise InvalidInput(message("RepairedKernel", given, "give the repair of these points"))
        made._set("points", points)
        made._set("repair", repair)
        return made

    @property
    def space(self) -> Space:
        return self.kernel.space

    @property
    def properties(self) -> Properties:
        whole = self.repair is not None and self.policy in ("clip", "flip")
        return Properties(Definiteness.POSITIVE_SEMIDEFINITE if whole else Definiteness.UNKNOWN)

    @property
    def is_resolved(self) -> bool:
        return self.points is not None

    def _unresolved(self) -> tuple[str, str]:
        return "points=None", "the training rows as points"

    def _resolved(self, X: Any, resolver: Resolver) -> Kernel:
        inner = self.kernel if self.kernel.is_resolved else self.kernel._resolved(X, resolver)
        return self.replace(kernel=inner) if X is None else RepairedKernel(inner, self.policy, X)

    # ---- values ------------------------------------------------------------------------------------------------------

    def block(self, X: Any, Z: Any) -> Any:
        self._require_resolved()
        assert self.repair is not None
        if self.policy in ("clip", "flip"):
            left = self.features(X)
            right = left if Z is X else self._training_features(Z)
            return np.asarray(left @ right.T, _dtype(X))
        values = np.array(self._values(X, Z), copy=True)
        if self.repair.shift:
            values[self._same(X, Z)] += self.repair.shift
        return values

    def diagonal(self, X: Any) -> Any:
        self._require_resolved()
        assert self.repair is not None
        if self.policy in ("clip", "flip"):
            return np.asarray(np.sum(self.features(X) ** 2, axis=1), _dtype(X))
        return self.kernel.diagonal(X) + self.repair.shift

    def features(self, X: Any) -> NDArray[np.float64]:
        """φ(x) = |Λ|^(−½)Uᵀk_x of each row, for the policies clip and flip."""
        assert self.repair is not None
        if self.space.numbered:
            return np.asarray(X, np.float64) @ self.repair.basis
        return np.asarray(self._values(X, self.points), np.float64) @ self.repair.basis

    def _training_features(self, Z: Any) -> NDArray[np.float64]:
        """The features of columns, which for a precomputed kernel are indices of training points, or None for all."""
        if not self.space.numbered:
            return self.features(Z)
        return self.features(self.points if Z is None else self.points[np.asarray(Z)])

    def _values(self, X: Any, Z: Any) -> Any:
        if self.space.vectors:
            return KernelOperator(self.kernel, X, None if Z is X else Z).toarray()
        return self.kernel.block(X, Z)

    def _same(self, X: Any, Z: Any) -> NDArray[np.bool_]:
        """[x = z]. Rows of kernel values are training points if they are rows of the training matrix."""
        if self.space.numbered:
            index = np.arange(self.points.shape[0]) if Z is None or Z is X else np.asarray(Z)
            return np.asarray(_codes(X)[:, None] == _codes(self.points)[index][None, :])
        return np.asarray(_codes(X)[:, None] == _codes(Z)[None, :])

    def __repr__(self) -> str:
        bound = "" if self.repair is None else f", {self.repair.n} points"
        return f"RepairedKernel({self.kernel!r}, {self.policy!r}{bound})"


def _codes(X: Any) -> NDArray[Any]:
    """A code for each row, the same for equal rows."""
    points = points_of(X)
    if isinstance(points, VectorPoints):
        rows = np.ascontiguousarray(points.dense(), np.float64) + 0.0  # −0 is 0
        return np.array([row.tobytes() for row in rows], dtype=object)
    codes = np.empty(len(X), dtype=object)
    codes[:] = list(X)
    return codes


def _dtype(X: Any) -> Any:
    return points_of(X).dtype


def repair_kernel(k: Kernel | str | Any, X: Any = None, policy: str = "clip") -> RepairedKernel:
    """k̃ with a positive semi-definite matrix on X: negative eigenvalues are clipped, flipped or shifted.

    Parameters
    ----------
    k : Kernel, str or callable
        For a matrix of similarities use ``Precomputed()``, with the matrix as X.
    X : rows, objects or a matrix, optional
        The training points. Without them the kernel is bound to the rows of the first fit.
    policy : {"clip", "flip", "shift", "raise"}, default "clip"
        Clip treats negative directions as noise, flip as information. Shift keeps the similarities of different points,
        and suits a K that is almost positive semi-definite. "raise" refuses an indefinite matrix, with a witness.

    Returns
    -------
    RepairedKernel
        A kernel for any estimator. Its `repair` describes the effect.

    Raises
    ------
    NotAKernel
        With policy "raise", if the matrix is indefinite.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> from mercer.kernels import Precomputed
    >>> S = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.9], [0.1, 0.9, 1.0]])
    >>> repaired = mercer.repair_kernel(Precomputed(), S, policy="clip")
    >>> print(repaired.repair)
    clip: 1 of 3 eigenvalues, 6.5% of Σ|λ|, were negative (to -0.224; λmax = 2.32) and set to 0; ‖K̃ − K‖/‖K‖ = 0.089
    >>> repaired.block(S, None).round(2)
    array([[1.05, 0.82, 0.15],
           [0.82, 1.12, 0.82],
           [0.15, 0.82, 1.05]])
    """
    return RepairedKernel(as_kernel(k), policy, X)
