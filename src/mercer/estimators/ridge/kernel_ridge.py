"""Kernel ridge regression and classification: the linear model in feature space, with squared loss."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.estimators.base.labels import labelled
from mercer.estimators.ridge.least_squares import LeastSquaresClassifier
from mercer.estimators.ridge.posterior import LeastSquaresRegressor
from mercer.points.validate import squarable

__all__ = ["KernelRidge", "KernelRidgeClassifier"]


class KernelRidge(LeastSquaresRegressor):
    r"""min over f in H of Σᵢ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖²: f = Σᵢ αᵢ k(·, xᵢ) with (K + λ diag(1/w)) α = y − b.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. ``Gaussian(gamma="median")`` and
        expressions such as ``"gaussian() + 0.1*linear()"`` work too.
    alpha : float or array-like of shape (targets,), default 1.0
        λ ≥ 0, of all targets or of each. The default is scikit-learn's; `KernelRidgeCV` chooses λ. At 0
        the fit interpolates, if K is positive definite in float64, and is refused otherwise.
    fit_intercept : bool, default False
        Add b, which is not penalised. Without it f shrinks towards 0, so centre the targets or set this.
    solver : {"auto", "cholesky", "cg", "nystroem"}, default "auto"
        "cholesky" stores K in float32 (4n² bytes), factors it and refines with float64 products; "cg" stores at most
        3500 columns: conjugate gradients preconditioned by randomly pivoted Cholesky, refined alike. "nystroem" is an
        approximation: f in the span of m landmarks bⱼ, f = Σⱼ βⱼ k(·, bⱼ) with (K_nmᵀ W K_nm + λ K_mm) β =
        K_nmᵀ W (y − b), in O(n m) time a step and O(m²) memory. "auto" takes "cg" if K does not fit in 40 % of the
        memory budget or if "cg" is predicted to be faster, no factor if a few steps with stored entries do without,
        and landmarks, with a warning, if a hundred exact products would take hours (n²(d + 20) > 4e12, so n of some
        300 000 at d = 20); the report says why.
    n_landmarks : int or None, default None
        Number of landmarks of "nystroem"; None is 5√n, or what fits the budget.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How they are chosen, as for `Nystroem`; integers name training rows, and an array of two dimensions is the
        landmarks themselves. Numbers count all rows, so that "nystroem" refuses weights of 0 beside them. Pivots are
        chosen among four random rows for each landmark.
    tol : float, default 1e-10
        Relative residual ‖y − (K + λI)α‖/‖y‖ in float64, per target, whichever the solver. The steps of "cg" grow with
        log(1/tol): if only predictions matter and n is large, 1e-6 or 1e-4 is enough. Of "nystroem": the residual
        in coordinates in which it is near the relative error of f in the norm ‖f‖²_W + λ‖f‖²_H.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, RandomState or None, default 0
        Seed for the landmarks, and for the rows that precondition "nystroem".

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, targets)
        α.
    alpha_ : float or array of shape (targets,)
        λ.
    sample_weight_ : array of shape (n,) or None
        w; None if all are 1.
    intercept_ : float or array of shape (targets,)
        b; 0 without intercept.
    kernel_ : Kernel
        As resolved from the data.
    X_fit_ : array of shape (n, d)
        Training rows (column indices for a precomputed kernel).
    restricted_ : bool
        Whether f is restricted to landmarks. Then these are X_fit_, dual_coef_ are the β of them, and there is no
        `posterior`.
    report_ : Report
        The method, its accuracy and its cost.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, and if K + λI is not positive definite.
    MemoryExceeded
        If the plan does not fit the budget.

    Warns
    -----
    ConvergenceWarning
        If the residual stays above `tol`; the report says by how much and what to try.

    Notes
    -----
    For predictions of each row by a fit without it, see ``KernelRidgeCV(kernel, [alpha])`` and its
    `loo_predictions_`.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk (1998). Ridge regression learning algorithm in dual variables. ICML.
    A. Rudi, L. Carratino, L. Rosasco (2017). FALKON: an optimal large scale kernel method. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = KernelRidge(Gaussian(gamma=1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(3)
    array([1.])
    >>> model.report_.residual < 1e-10
    True
    """

    tuned: ClassVar[str] = "alpha"
    of_classes: ClassVar[str] = "KernelRidgeClassifier"

    def __init__(
        self,
        kernel: Any = "gaussian",
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = False,
        solver: Literal["auto", "cholesky", "cg", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        tol: float = 1e-10,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        y = squarable(type(self).__name__, y, whole=True)
        self._fit_targets(X, y.reshape(len(y), -1), self._weights(sample_weight, X))
        if y.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        return self

    def _penalties(self, targets: int) -> np.ndarray:
        if isinstance(self.alpha, Real | str) or self.alpha is None:
            return super()._penalties(targets)
        alphas = np.asarray(self.alpha, np.float64)
        if alphas.shape not in ((1,), (targets,)) or not np.all((alphas >= 0) & (alphas < np.inf)):
            do = f"give a number ≥ 0, the weight α of ‖f‖², or one for each of the {targets} targets"
            self._refuse("alpha", do)
        return np.array(np.broadcast_to(alphas, targets))


class KernelRidgeClassifier(LeastSquaresClassifier):
    r"""min over f of Σᵢ wᵢ (yᵢ − f(xᵢ) − b)² + λ‖f‖² with yᵢ ∈ {−1, +1} for each class; the largest f(x) + b wins.

    With two classes this is the least-squares support vector machine, and its direction is that of regularised kernel
    Fisher discriminant analysis. With c classes one factorisation serves the c indicators. The scores are not
    probabilities.

    Parameters
    ----------
    kernel, alpha, solver, n_landmarks, landmarks, tol, memory, random_state
        As for `KernelRidge`.
    fit_intercept : bool, default True
        Classes are seldom balanced.
    class_weight : dict, "balanced" or None
        Multiplies the sample weights.

    Attributes
    ----------
    classes_ : array of shape (c,)
    dual_coef_ : array of shape (n, 1) for two classes, (n, c) otherwise
    intercept_ : array of shape (1,) or (c,)
    alpha_, sample_weight_, kernel_, X_fit_, restricted_, report_, compression_loss_
        As for `KernelRidge`.

    References
    ----------
    J. A. K. Suykens, J. Vandewalle (1999). Least squares support vector machine classifiers. Neural Processing
    Letters 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelRidgeClassifier(alpha=0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    tuned: ClassVar[str] = "alpha"

    def __init__(
        self,
        kernel: Any = "gaussian",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        solver: Literal["auto", "cholesky", "cg", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        tol: float = 1e-10,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.tol = tol
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for α on the indicators of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        X, y = labelled(self, X, y)
        self._fit_targets(*self._indicators(X, y, self._weights(sample_weight, X)))
        return self
