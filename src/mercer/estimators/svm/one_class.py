"""The one-class support vector machine: where most of the rows are."""

from __future__ import annotations

from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np

from mercer.errors import ConvergenceWarning, message, warn
from mercer.estimators.svm.support_vectors import ONE_OUTPUT, SMALL, SupportVectorMachine, Training, filled, kernel_unit
from mercer.mixins import OutlierMixin
from mercer.points import count
from mercer.schemas import Array, Schema
from mercer.solvers import DualBatch, DualPoint

__all__ = ["OneClassSVM"]

ROUNDING = 1e-9
OF_RHO = 0.01
"""The share of ρ that m − M may be: ρ is small where ν is or rows are far apart, and `tol` knows nothing of it."""
_roundings: WeakKeyDictionary[Any, tuple[Any, float]] = WeakKeyDictionary()
"""The bound of each model, with the coefficients that it belongs to."""


class OneClassSVM(OutlierMixin, SupportVectorMachine):
    r"""min ½‖f‖² − ρ ν Σw + Σᵢ wᵢ max(0, ρ − f(xᵢ)) over f in H and ρ: f ≥ ρ but for a share of at most ν of the rows.

    f = Σⱼ βⱼ k(·, xⱼ), and β solves the dual, min ½βᵀKβ with Σβ = ν Σw and 0 ≤ βᵢ ≤ wᵢ.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its `SVC`.
    nu : float, default 0.5
        ν in (0, 1]: an upper bound of the share of rows outside, and a lower one of that of support vectors.
    tol : float, default 1e-3
        As for `SVC`, and relative to the mean k(x, x) if that is less than 1.
    max_iter, memory
        As for `SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, n_support_, n_iter_, restricted_, fit_status_, shape_fit_
        As for `SVR`.
    X_fit_, kernel_, report_, compression_loss_
        As for `SVR`.
    intercept_ : array of shape (1,)
        −ρ.
    offset_ : float
        ρ: ``decision_function`` is ``score_samples`` less this.

    Warns
    -----
    ConvergenceWarning
        Also if ρ is 0 to the accuracy of the fit, as with the linear kernel and rows on all sides of the origin: then
        all rows are on the border.

    References
    ----------
    B. Schölkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson (2001). Estimating the support of a
    high-dimensional distribution. Neural Computation 13.

    Examples
    --------
    >>> from mercer import OneClassSVM
    >>> OneClassSVM(nu=0.3).fit([[0.0], [0.44], [0.45], [0.46], [1.0]]).predict([[0.45], [9.0]])
    array([ 1, -1])
    """

    fitted: ClassVar[Schema] = SupportVectorMachine.fitted + ONE_OUTPUT + Schema(Array("offset_", "decisions"))

    def __init__(
        self,
        kernel: Any = "gaussian",
        nu: float = 0.5,
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve the dual.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        self._checked_number("nu", 0.0, 1.0)
        X = self._validate(X)
        given = self._weights(sample_weight, X)
        weights = np.ones(count(X)) if given is None else given
        order = np.flatnonzero(weights > 0)
        return self._solve(self._prepare(X, order, np.zeros(len(order)), weights[order]))

    def _unit(self, data: Training) -> float:
        return kernel_unit(data, data.weights)

    def _family(self, data: Training) -> DualBatch:
        n = len(data.order)
        return DualBatch(
            data.A,
            linear=data.target,
            lower=np.zeros(n),
            upper=data.weights,
            start=filled(data.weights, self._checked_number("nu") * float(data.weights.sum())),
            rows=np.arange(n),
            offset=np.array([0, n]),
            exact=data.exact,
        )

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        used = self._keep(data, x.beta[None, :])
        self.n_support_, self.n_iter_ = np.array([len(used)], np.int32), int(self.n_iter_[0])
        self.intercept_ = family.multipliers(x)[:1]
        self.offset_ = -self.intercept_
        if np.isinf(self._border()):
            given = f"nu={self.nu:g} leaves no ρ that differs from 0: the rows lie on all sides of the origin of H"
            do = "all rows are on the border; lower nu, or take a kernel of positive values, such as the Gaussian"
            self.report_.warnings.append(message("OneClassSVM", given, do))
            warn(self.report_.warnings[-1], ConvergenceWarning)

    def _wants_sharper(self, family: DualBatch, x: DualPoint) -> bool:
        """Whether m − M is much beside ρ; few rows are solved to rounding already."""
        return len(family.rows) > SMALL and not bool(np.all(x.gaps <= OF_RHO * np.abs(family.multipliers(x)[:1])))

    def _border(self) -> float:
        """How far from ρ the fit may have left f at a row on the border; infinite if ρ itself is no further from 0."""
        report, rho = getattr(self, "report_", None), abs(float(self.intercept_[0]))
        left = 0.0 if report is None or self.restricted_ else float(min(report.residual, report.tolerance))
        return np.inf if rho <= left else max(ROUNDING * rho, left)

    def _products(self, X: Any) -> np.ndarray:
        """f(x); exactly ρ where it is ρ up to rounding and to what the fit left: on the border, or if f is 0."""
        values, rho = super()._products(X), -float(self.intercept_[0])
        slack = np.full(len(values), self._border())
        if not self.kernel_.space.numbered and count(self.X_fit_):
            with np.errstate(over="ignore", invalid="ignore"):
                bound = self._rounding() * np.sqrt(np.abs(np.float64(self.kernel_.diagonal(X))))
            slack += np.where(np.isfinite(bound), bound, 0.0)
        return np.where(np.abs(values - rho) <= slack[:, None], rho, values)

    def _rounding(self) -> float:
        """A bound on the rounding of f(x), over √k(x, x), as |k(x, z)| ≤ √(k(x, x) k(z, z)); kept for later calls."""
        known = _roundings.get(self)
        if known is None or known[0] is not self.dual_coef_:
            own = np.sqrt(np.abs(np.float64(self.kernel_.diagonal(self.X_fit_))))
            sums = float(np.abs(self.dual_coef_[0]) @ own)
            known = _roundings[self] = self.dual_coef_, (8 + len(own)) * float(np.finfo(np.float64).eps) * sums
        return known[1]

    def score_samples(self, X: Any) -> np.ndarray:
        """f(x); exactly ρ if f(x) equals ρ up to what the fit left, as at the support vectors on the border."""
        return np.asarray(self._products(self._validate_new(X))[:, 0])

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) − ρ: negative outside."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 inside and on the border, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
