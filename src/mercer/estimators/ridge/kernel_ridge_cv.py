"""Kernel ridge regression and classification that choose λ and the kernel: one decomposition for each kernel."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators.base.classifier import CLASSES
from mercer.estimators.base.labels import labelled
from mercer.estimators.ridge.least_squares import LeastSquaresClassifier
from mercer.estimators.ridge.posterior import LeastSquaresRegressor
from mercer.estimators.ridge.validated import GivenLabels, GivenValues, ValidatedLeastSquares, Validation, by_scorer
from mercer.points.validate import squarable
from mercer.schemas import Array, Schema, Size
from mercer.select import Scorer, accuracy, negative_squares, r2

__all__ = ["KernelRidgeCV", "KernelRidgeClassifierCV"]


class KernelRidgeCV(LeastSquaresRegressor, ValidatedLeastSquares):
    r"""`KernelRidge` with the λ and the kernel of the least error of yᵢ − f₋ᵢ(xᵢ), f₋ᵢ being fitted without row i.

    That error is (yᵢ − f(xᵢ))/(1 − hᵢᵢ) with f = Hy, with weights and intercept too, exactly: βᵢ/(√wᵢ Pᵢᵢ), where P is
    (K + λI)⁻¹ on the complement of the intercept and β = P y (see `mercer.select.RidgeInverse`). All λ share one
    decomposition of K: a factor of small rank if K has one, a band matrix QBQᵀ for some λ and many rows, else
    eigenvectors. No model is fitted but the last: that too from the decomposition if there are 1000 rows or more and
    the residual is within 10⁻¹⁰, and else as by `KernelRidge`.

    Parameters
    ----------
    kernel : Kernel, str or callable, or a list of them, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. Of several the best one is taken, and of
        equals the first.
    alphas : array-like of numbers ≥ 0, optional
        The λ to choose from; 10⁻⁴, …, 10², two a decade, unless given: for kernels with k(x, x) near 1.
    fit_intercept : bool, default False
        As for `KernelRidge`.
    cv : None, "gcv", int, splitter or iterable of (train, test), default None
        None leaves out one row at a time; "gcv" is generalised cross-validation, n‖(I − H)y‖²/tr(I − H)². Folds are
        left out exactly too, without a fit for any of them; train must be all rows that are not in test. Above 1500
        rows the systems of few folds and λ are solved together, which takes less and is exact to 10⁻⁶.
    scoring : str or callable, optional
        As scikit-learn names it; by default minus the mean squared error (weighted by w), and R² for folds. The
        predictions of all rows are scored at once when one is left out, and otherwise fold by fold.
    alpha_per_target : bool, default False
        Choose λ for each target by itself, with one kernel for all.
    store_cv_results : bool, default False
        Keep all leave-one-out predictions in `cv_results_` (with cv=None only).
    solver : {"auto", "nystroem"}, default "auto"
        "auto" is exact. "nystroem" is for many rows: f in the span of m landmarks, as of `KernelRidge`, which is
        regression with K̃ = K_nm K_mm⁻¹ K_mn. One pass over the features of all rows, which are in a file if the rows
        are, gives the singular values that serve all λ, and another the errors; the landmarks are the same in all.
    n_landmarks, landmarks, random_state
        As for `KernelRidge`: numbers of landmarks count all rows, so that "nystroem" refuses weights of 0 beside them.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free. About 24n² bytes are needed at most, 12n²
        if K is reduced to a band.

    Attributes
    ----------
    alpha_ : float or array of shape (targets,)
    best_score_ : float or array of shape (targets,)
    cv_results_ : dict
        "kernel", "alpha" and "score" of each candidate, NaN if K + λI is singular; with `store_cv_results`
        "predictions", of shape (candidates, n) or (candidates, n, targets).
    loo_predictions_ : array of the shape of y
        f₋ᵢ(xᵢ) for all rows that were given; with cv=None only. A row of weight 0 has f(xᵢ).
    dual_coef_, intercept_, kernel_, X_fit_, sample_weight_, restricted_, report_, compression_loss_
        As of `KernelRidge` with λ = alpha_. The report warns if the best λ is the first or last that was tried.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, folds whose training rows are not all others, one row only, and if K + λI is
        singular for every λ.
    MemoryExceeded
        If the decomposition doesn't fit the budget: then `mercer.select.cross_validate_ridge` takes a sample.

    Notes
    -----
    A row of weight 2 is two rows, which are left out together.

    References
    ----------
    G. Wahba (1990). Spline models for observational data. SIAM. Chapter 4 (Estimating the smoothing
    parameter).
    R. M. Rifkin, R. A. Lippert (2007). Notes on regularized least squares. MIT-CSAIL-TR-2007-025.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeCV
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.cos(50 * x[:, 0])
    >>> model = KernelRidgeCV(["linear", "gaussian(gamma=0.5)"], np.logspace(-6, 2, 30)).fit(x, y)
    >>> model.kernel_, bool(1e-3 < model.alpha_ < 1), bool(-model.best_score_ < 0.01)
    (Gaussian(gamma=0.5), True, True)
    >>> bool(np.isclose(-np.mean((y - model.loo_predictions_) ** 2), model.best_score_))
    True
    """

    fitted: ClassVar[Schema] = ValidatedLeastSquares.fitted + Schema(
        Array("loo_predictions_", "samples *targets", optional=True, finite=False)
    )

    tuned: ClassVar[str] = "kernel"
    of_classes: ClassVar[str] = "KernelRidgeClassifierCV"

    def __init__(
        self,
        kernel: Any = "gaussian",
        alphas: Any = None,
        *,
        fit_intercept: bool = False,
        cv: Any = None,
        scoring: Any = None,
        alpha_per_target: bool = False,
        store_cv_results: bool = False,
        solver: Literal["auto", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.alpha_per_target = alpha_per_target
        self.store_cv_results = store_cv_results
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose λ and the kernel, and solve for α.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,) or (n, targets)
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        X, y = self._validate_both(X, y, multi_output=True, y_numeric=True)
        y = squarable(type(self).__name__, y, whole=True)
        folds, weights = self._folds(X, y), self._weights(sample_weight, X)
        present, absent = self._absent(X, np.ones(len(y), bool) if weights is None else weights > 0)
        X, Y, weights, folds = self._present(X, y.reshape(len(y), -1), weights, folds)
        scorer: Scorer = negative_squares if folds is None else r2
        if folds is not None and self.scoring is None and min(map(len, folds)) == 1:
            given = f"cv={self.cv!r} with a fold of one row, which has no R²"
            do = 'set cv=None, which leaves out one row after the other, or scoring="neg_mean_squared_error"'
            raise InvalidInput(message(type(self).__name__, given, do))
        if self.scoring is not None:
            scorer = by_scorer(self.scoring, GivenValues(), each=self.alpha_per_target)
        left_out = self._fit_best(Validation(X, Y, weights, folds, scorer, present, absent))
        if left_out is not None:
            self.loo_predictions_ = left_out[:, 0] if y.ndim == 1 else left_out
        if y.ndim == 1:
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], self.intercept_[0]
        return self


class KernelRidgeClassifierCV(LeastSquaresClassifier, ValidatedLeastSquares):
    r"""`KernelRidgeClassifier` with the λ and the kernel of the best accuracy on rows that were left out of the fit.

    As `KernelRidgeCV`, on yᵢ ∈ {−1, +1} for each class: all λ share one decomposition of K, and the decision
    values of the model fitted without a row are exact, with weights and intercept too.

    Parameters
    ----------
    kernel, alphas, cv, store_cv_results, solver, n_landmarks, landmarks, memory, random_state
        As for `KernelRidgeCV`; folds of an int are stratified, and "gcv" is that of the ±1.
    fit_intercept : bool, default True
        Classes are seldom balanced.
    class_weight : dict, "balanced" or None
        Multiplies the sample weights, in the fit and in the score.
    scoring : str or callable, optional
        The accuracy (weighted by w) unless given. A scorer may ask for predictions or decision values.

    Attributes
    ----------
    classes_ : array of shape (c,)
    loo_decision_function_ : array of shape (n,) for two classes, (n, c) otherwise
        f₋ᵢ(xᵢ) + b₋ᵢ for all rows that were given; with cv=None only. A row of weight 0 has f(xᵢ) + b.
    alpha_, best_score_, cv_results_
        As of `KernelRidgeCV`.
    dual_coef_, intercept_, kernel_, X_fit_, sample_weight_, restricted_, report_, compression_loss_
        As of `KernelRidgeClassifier` with λ = alpha_.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelRidgeClassifierCV
    >>> model = KernelRidgeClassifierCV().fit(*load_iris(return_X_y=True))
    >>> model.best_score_ > 0.95, model.loo_decision_function_.shape
    (True, (150, 3))
    """

    fitted: ClassVar[Schema] = (
        ValidatedLeastSquares.fitted
        + CLASSES
        + Schema(
            Size("*decisions", lambda _, sizes: () if sizes["classes"] == 2 else (sizes["classes"],)),
            Array("loo_decision_function_", "samples *decisions", optional=True, finite=False),
        )
    )

    tuned: ClassVar[str] = "kernel"

    def __init__(
        self,
        kernel: Any = "gaussian",
        alphas: Any = None,
        *,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = None,
        scoring: Any = None,
        store_cv_results: bool = False,
        solver: Literal["auto", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.store_cv_results = store_cv_results
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.memory = memory
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose λ and the kernel, and solve for α on the indicators of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        sample_weight : array-like of shape (n,), optional
            wᵢ ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 as none.
        """
        X, y = labelled(self, X, y)
        folds, weights = self._folds(X, y), self._weights(sample_weight, X)
        given, there = X, np.ones(len(y), bool) if weights is None else weights > 0
        X, y, weights, folds = self._present(X, y, weights, folds)
        X, Y, weights = self._indicators(X, y, weights)
        if weights is not None:
            there[there] = weights > 0  # a class may have weight 0 too
        X, Y, weights, folds = self._present(X, Y, weights, folds)
        present, absent = self._absent(given, there)
        scorer: Scorer = accuracy if self.scoring is None else by_scorer(self.scoring, GivenLabels(self.classes_))
        left_out = self._fit_best(Validation(X, Y, weights, folds, scorer, present, absent))
        if left_out is not None:
            self.loo_decision_function_ = left_out[:, 0] if len(self.classes_) == 2 else left_out
        return self
