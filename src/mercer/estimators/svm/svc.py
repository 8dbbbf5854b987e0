"""Support vector classification (slides on kernel methods, "Kernelizing the linear SVM"), and the ν-machine."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.svm.landmark_machines import LandmarkMachine
from mercer.estimators.svm.support_vector_classes import SupportVectorClassifier
from mercer.estimators.svm.support_vectors import Training, filled, kernel_unit
from mercer.schemas import Array, Schema
from mercer.solvers import DualBatch, DualPoint

__all__ = ["SVC", "NuSVC"]

ROUNDING = 1e-12
"""By how much a sum of weights may be beyond what it must be, relatively."""
OF_MARGIN = 0.01
"""The share of a margin that m − M may be: margins are small where ν is, and `tol` knows nothing of them."""
NO_MARGIN = "finds no margin"
"""What the warnings of a machine without a margin say."""


class SVC(LandmarkMachine, SupportVectorClassifier):
    r"""min ½‖f‖² + C Σᵢ wᵢ ξᵢ over f in H, b and ξ ≥ 0 with yᵢ (f(xᵢ) + b) ≥ 1 − ξᵢ, for each pair of classes.

    f = Σⱼ βⱼ k(·, xⱼ), and β = y∘α solves the dual, min ½βᵀKβ − yᵀβ with Σβ = 0 and 0 ≤ yᵢβᵢ ≤ C wᵢ: LIBSVM's
    optimum, by its criterion m − M ≤ tol, with the gradient made anew in float64 at the end.

    Parameters
    ----------
    C : float, default 1.0
        The cost of an error; larger is less regularised. The default is scikit-learn's; many tables want 10 or more
        (docs/defaults.md).
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its `SVC`. Expressions, precomputed matrices and functions work
        too.
    tol : float, default 1e-3
        On m − M, the largest violation of the conditions of optimality.
    class_weight : dict, "balanced" or None
        Multiplies C for the rows of a class. "balanced" is the sum of all weights over k times that of the class, of k
        classes; scikit-learn counts rows there, whatever `sample_weight` says.
    max_iter : int, default -1
        Steps of each pair of classes; -1 is LIBSVM's max(10⁷, 100 n). On landmarks passes over the rows; -1 is 1000.
    decision_function_shape : {"ovr", "ovo"}, default "ovr"
        `decision_function` of more than two classes: a score for each class, or the decisions of all pairs. The
        machines are those of the pairs in both.
    break_ties : bool, default False
        Whether `predict` takes the best score of the classes that win most pairs, not the first of them.
    probability : bool, default False
        Whether to fit `predict_proba`, by cross-fitting: five more fits on four fifths of the rows. Labels are then
        those of the most probable classes, and `decision_function` gives log odds, so that none contradicts another.
        They are probabilities for rows as weighted: with class_weight="balanced" among as many of each class. Here a
        row of weight 2 is not exactly two rows, which may be in different folds.
    solver : {"auto", "exact", "nystroem"}, default "auto"
        "exact" is LIBSVM's optimum; "nystroem" an approximation for many rows, f in the span of m landmarks, by dual
        coordinate descent on their explicit features: O(n m) memory and O(n m) time a pass. There ten times `tol` is
        what primal and dual objective may differ by, relative to the primal, and b has a small penalty: b²/2s², s² the
        mean of k(x, x) in the landmarks' span, but at least 100/nC.
        "auto" takes landmarks, with a warning, if K in float32 would take more than five times the `memory`.
    n_landmarks : int or None, default None
        m of "nystroem"; None is 1000, or what the memory allows.
    landmarks : {"pivoted", "uniform", "kmeans"} or array, default "pivoted"
        How they are chosen, as for `Nystroem`; integers name training rows, and an array of two dimensions is the
        landmarks themselves. Numbers count all rows, and name none of weight 0.
    multi_class : {"ovo", "ovr"}, default "ovo"
        A machine for each pair of classes, as in LIBSVM, or for each class against the rest: k of them on all rows.
    warm_start : bool, default False
        Whether a fit starts from the former one's β, times the ratio of the two C. See `path` too.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.
    random_state : int, default 0
        Seed for the landmarks, and for the order of coordinate descent.

    Attributes
    ----------
    classes_ : array of shape (k,)
    support_ : array of shape (s,)
        The places of the support vectors among the training rows, class by class.
    support_vectors_ : array or CSR matrix of shape (s, d)
        These rows; none of a precomputed kernel.
    n_support_ : array of shape (k,)
        How many each class has.
    dual_coef_ : array of shape (k − 1, s)
        β of a vector of class a in row b − 1 for the pair (a, b), a < b, in row b for (b, a); with two classes its
        sign is that of scores that are positive for the second. Of shape (k, s) for classes against the rest.
    intercept_ : array of shape (k(k − 1)/2,)
        b of each pair, or of each class against the rest.
    coef_ : array of shape (k(k − 1)/2, d)
        Σⱼ βⱼ xⱼ; only of a linear kernel.
    class_weight_ : array of shape (k,)
    calibration_ : array of shape (k(k − 1)/2, 2)
        With ``probability=True`` the slope and the offset of the log odds of each pair, of decisions that are positive
        for the first class; with two classes for the second.
    restricted_ : bool
        Whether f is in the span of landmarks. Then `X_fit_` are these, `dual_coef_`, of shape (k(k − 1)/2, m), their
        coefficients in each pair, and `support_` is empty.
    fit_status_ : int
        0 at the optimum, 1 if `max_iter` or the precision came before it.
    n_iter_ : array of shape (k(k − 1)/2,)
        Steps of each pair.
    shape_fit_ : tuple
        The shape of the training rows.
    X_fit_ : array, CSR matrix or list of s rows
        The rows of the expansion of f, in the order of `support_`.
    kernel_ : Kernel
        As resolved from the data.
    report_ : Report
        The method, its accuracy (m − M in float64, the duality gap) and its cost.
    compression_loss_ : float
        After `compress`: the share of ‖f‖ that was lost.

    Raises
    ------
    InvalidInput
        For invalid parameters or data, a matrix that is not symmetric, and one class only.
    MemoryExceeded
        If the plan does not fit the budget.

    Warns
    -----
    ConvergenceWarning
        If m − M stays above `tol`; it says what was reached.
    UserWarning
        With ``probability=True``, if probabilities do not rise with the decisions.

    Notes
    -----
    A kernel that is not positive semi-definite gives a problem that is not convex: the answer meets the conditions of
    first order, as LIBSVM's does.

    References
    ----------
    C.-C. Chang, C.-J. Lin (2011). LIBSVM: a library for support vector machines. ACM TIST 2.
    The textbook's slides on kernel methods, "Kernelizing the linear SVM".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> model.score(X, y) > 0.97, model.decision_function(X).shape
    (True, (150, 3))
    >>> model.report_.residual <= 1e-3
    True
    """

    fitted: ClassVar[Schema] = SupportVectorClassifier.fitted + Schema(Array("_fitted_C"))

    tuned: ClassVar[str] = "C"

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "gaussian",
        *,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        probability: bool = False,
        solver: Literal["auto", "exact", "nystroem"] = "auto",
        n_landmarks: int | None = None,
        landmarks: Literal["pivoted", "uniform", "kmeans"] | Any = "pivoted",
        multi_class: Literal["ovo", "ovr"] = "ovo",
        warm_start: bool = False,
        memory: float | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.probability = probability
        self.multi_class = multi_class
        self.warm_start = warm_start
        self.memory = memory
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._checked_number("C")
        data = self._training(X, y, sample_weight)
        return self._solve(data, self._from(self, data) if self.warm_start else None)._calibrate(data)

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """A machine for each C, on one kernel matrix, each from the β of the former.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        Cs : sequence of float
            Best in rising order.

        Returns
        -------
        list of fitted machines; this one is left unfitted

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> [model.C for model in SVC().path(X, y, [0.1, 1.0, 10.0])]
        [0.1, 1.0, 10.0]
        """
        return self._path(Cs, lambda model: model._training(X, y, sample_weight))

    def _family(self, data: Training) -> DualBatch:
        rest = self._against_rest
        rows, y, offset = self._rest(data) if rest else self._pairs(data)[:3]
        bound = y * (self._checked_number("C") * self.class_weight_[data.target] * data.weights)[rows]
        return DualBatch(
            data.A,
            linear=y,
            lower=np.minimum(bound, 0.0),
            upper=np.maximum(bound, 0.0),
            start=np.zeros(len(rows)),
            rows=rows,
            offset=offset,
            blocks=data.target if len(self.classes_) > 2 and not rest else None,
            exact=data.exact,
        )

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        self._fitted_C = float(self.C)
        self._read_pairs(data, family, x.beta, family.multipliers(x)[::2])


class NuSVC(SupportVectorClassifier):
    r"""min ½‖f‖² − νρ Σw + Σᵢ wᵢ max(0, ρ − yᵢ(f(xᵢ) + b)) over f in H, b and ρ ≥ 0, for each pair of classes.

    ν bounds the share of errors of margin from above, and that of support vectors from below; the margin ρ follows, and
    f and b are divided by it. The dual is min ½βᵀKβ with 0 ≤ yᵢβᵢ ≤ wᵢ and Σβ = ν Σw/2 over the first class, its
    negative over the second: two groups of variables, each with a sum of its own.

    Parameters
    ----------
    nu : float, default 0.5
        ν in (0, 1]. Two classes allow at most twice the share of the smaller one, by weight. The default is
        scikit-learn's; if classes are apart 0.05 to 0.15 errs less (docs/defaults.md).
    class_weight : dict, "balanced" or None
        Multiplies the weights of the rows of a class. If it leaves less room than ν asks for, ν is lowered to what
        it allows, with a warning.
    kernel, tol, max_iter, decision_function_shape, break_ties, probability, memory
        As for `SVC`; `tol` is relative to the mean k(x, x) if that is less than 1. With ``probability=True`` a row of
        weight 2 is not exactly two rows, which may be in different folds.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, class_weight_, n_iter_
        As for `SVC`.
    calibration_, restricted_, fit_status_, shape_fit_, X_fit_, kernel_, report_, compression_loss_
        As for `SVC`.

    Raises
    ------
    InvalidInput
        For a ν that two classes do not allow, as in scikit-learn; the message has the largest that they do.

    Warns
    -----
    ConvergenceWarning
        Also if two classes have no margin, as with the same rows in both: β and b are not divided by it then.
    UserWarning
        As for `SVC`, and if ν is lowered for the weights of classes.

    References
    ----------
    B. Schölkopf, A. J. Smola, R. C. Williamson, P. L. Bartlett (2000). New support vector algorithms. Neural
    Computation 12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> NuSVC(nu=0.1).fit(X, y).score(X, y) > 0.97
    True
    """

    tuned: ClassVar[str] = "nu"

    def __init__(
        self,
        nu: float = 0.5,
        kernel: Any = "gaussian",
        *,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        probability: bool = False,
        memory: float | str | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.probability = probability
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._checked_number("nu", 0.0, 1.0)
        data = self._training(X, y, sample_weight)
        return self._solve(data)._calibrate(data)

    def _family(self, data: Training) -> DualBatch:
        rows, y, offset, split = self._pairs(data)
        bound = (self.class_weight_[data.target] * data.weights)[rows]
        start, ends = np.empty(len(rows)), np.stack([offset[:-1], split], axis=1).ravel()
        totals = self._sum_of_each(np.add.reduceat(bound, ends).reshape(-1, 2)).tolist()
        for first, middle, last, total in zip(offset[:-1], split, offset[1:], totals, strict=True):
            start[first:middle] = filled(bound[first:middle], total)
            start[middle:last] = -filled(bound[middle:last], total)
        return DualBatch(
            data.A,
            linear=np.zeros(len(rows)),
            lower=np.where(y > 0, 0.0, -bound),
            upper=np.where(y > 0, bound, 0.0),
            start=start,
            rows=rows,
            offset=offset,
            split=split,
            blocks=data.target if len(self.classes_) > 2 else None,
            exact=data.exact,
        )

    def _unit(self, data: Training) -> float:
        each = np.bincount(data.target, data.weights) * self.class_weight_ / np.bincount(data.target)
        return kernel_unit(data, each[each > 0].min(initial=1.0))

    def _sum_of_each(self, sums: np.ndarray) -> np.ndarray:
        """ν Σw/2 of each pair, what the α of both classes sum up to; no more than these, (pairs, 2), can hold."""
        total, most = float(self.nu) * sums.sum(axis=1) / 2, sums.min(axis=1)
        if not np.all(total <= most * (1 + ROUNDING)):
            largest = float(np.min(2 * most / sums.sum(axis=1)))
            digits = 2 - int(np.floor(np.log10(largest)))
            shown = np.floor(largest * 10.0**digits) / 10.0**digits  # of three digits, and feasible
            given = f"nu={self.nu:g} is infeasible: two classes allow up to {shown:.3g}"
            if self.class_weight is None:
                raise InvalidInput(
                    message("NuSVC", given, "lower nu, or give the rows of the smaller class more weight")
                )
            warn(message("NuSVC", f"{given} with their class_weight", "it is lowered for them"))
        return np.asarray(np.minimum(total, most))

    def _wants_sharper(self, family: DualBatch, x: DualPoint) -> bool:
        """Whether m − M is much beside a margin, by which all will be divided."""
        first, second = self._levels(family, x)
        return not bool(np.all(x.gaps <= OF_MARGIN * (second - first) / 2))

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        """f + b is ρ where the first class's slope is level, −ρ where the second's is; all are divided by ρ."""
        first, second = self._levels(family, x)
        margin = (second - first) / 2
        found = margin > self._uncertainty(data, family, x)
        if not np.all(found) and not self.fit_status_:  # of a fit that did not end nothing is known
            given = f"nu={self.nu:g} {NO_MARGIN} between two classes"
            do = "raise nu, or take a kernel that tells their rows apart"
            self.report_.warnings.append(message("NuSVC", given, do))
            warn(self.report_.warnings[-1], ConvergenceWarning)
        margin = np.where(found, margin, 1.0)
        self._read_pairs(data, family, x.beta / margin[family.owner], (first + second) / 2 / margin)

    def _levels(self, family: DualBatch, x: DualPoint) -> tuple[np.ndarray, np.ndarray]:
        """The levels of the slopes of each pair's first class and of its second, which are 2ρ apart."""
        first, second = family.multipliers(x).reshape(-1, 2).T
        return (first, second) if self.class_weight is None else self._spent(family, x, first, second)

    def _uncertainty(self, data: Training, family: DualBatch, x: DualPoint) -> np.ndarray:
        """The largest |ρ| of each pair that counts as 0: m − M plus the rounding error of Kβ."""
        weight = np.bincount(family.owner, np.abs(x.beta), family.problems)
        rounding = float(np.finfo(np.float64).eps) * float(np.abs(data.exact.diagonal()).max())
        return np.asarray(np.maximum(x.gaps, 0.0) + rounding * weight)

    def _spent(
        self, family: DualBatch, x: DualPoint, first: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The levels where the weight of one class is spent: ρ has no upper bound then.

        Then all rows of that class are errors, as in SVC with a C so small that all its variables are at their bounds.
        """
        beta = family.settled(x.beta)
        inside = np.bincount(family.group, (beta > family.lower) & (beta < family.upper), 2 * family.problems)
        off = np.bincount(family.group, beta == 0, 2 * family.problems)
        spent = ((inside == 0) & (off == 0)).reshape(-1, 2)
        most, least = np.full(2 * family.problems, -np.inf), np.full(2 * family.problems, np.inf)
        np.maximum.at(most, family.group, x.gradient)
        np.minimum.at(least, family.group, x.gradient)
        new_second = np.where(spent[:, 1] & ~spent[:, 0], np.maximum(second, 2 * most[1::2] - first), second)
        new_first = np.where(spent[:, 0] & ~spent[:, 1], np.minimum(first, 2 * least[::2] - second), first)
        return new_first, new_second
