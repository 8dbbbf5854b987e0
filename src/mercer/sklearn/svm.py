"""Support vector machines with scikit-learn's words."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn import get_config, svm
from sklearn.svm._base import BaseLibSVM

from mercer import estimators
from mercer.errors import InvalidInput, message
from mercer.estimators.base.calibration import coupled, probabilities
from mercer.estimators.base.pairwise import votes
from mercer.estimators.svm.support_vectors import SupportVectorMachine
from mercer.estimators.svm.svc import NO_MARGIN
from mercer.sklearn.faces import REFUSALS, Face, kernel_of, quietly

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]

NO_WEIGHT = "Invalid input - all samples have zero or negative weights."
NO_CLASS = "a class has no samples with positive weights: leave out its rows"
ONE_CLASS = "Invalid input - all samples with positive weights belong to the same class."
INFEASIBLE = "specified nu is infeasible"
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. "
    "The input data may contain large values and need to be preprocessed."
)
LARGE = 1e10
"""C = ∞ is this C, as scikit-learn's tests have it."""


class Machine(Face, BaseLibSVM):
    """LIBSVM's places in scikit-learn's machines, taken by ours: its checks before, its attributes after."""

    _ours: ClassVar[type[SupportVectorMachine]]
    _own: ClassVar[tuple[str, ...]]
    """The parameters that have the same name and meaning in ours."""

    classes_: np.ndarray
    support_: np.ndarray
    support_vectors_: Any
    shape_fit_: tuple[int, ...]
    _dual_coef_: Any
    _intercept_: np.ndarray
    _n_support: np.ndarray

    @property
    def _by_class(self) -> bool:
        return issubclass(self._ours, estimators.SVC | estimators.NuSVC)

    def _kernel(self) -> Any:
        name = "precomputed" if callable(self.kernel) else self.kernel
        if isinstance(self.gamma, str) and name in ("rbf", "poly", "sigmoid") and not 0 < self._gamma < np.inf:
            raise ValueError(NOT_FINITE)
        found = kernel_of(name, self._gamma, self.degree, self.coef0)
        if found is None:
            given = f"no kernel {name!r} with gamma={self._gamma:g}, degree={self.degree}, coef0={self.coef0:g}"
            raise InvalidInput(message(type(self).__name__, given, "give gamma > 0"))
        return found

    def _dense_fit(self, X: Any, y: Any, sample_weight: Any, *options: Any, **seed: Any) -> None:
        given = X
        if np.ndim(sample_weight) > 1:  # of the right length, which has been checked
            said = f"sample_weight of shape {np.shape(sample_weight)}"
            raise ValueError(message(type(self).__name__, said, "give one weight for each row, sample_weight.ravel()"))
        if callable(self.kernel):
            self._BaseLibSVM__Xfit = X
            X = self._compute_kernel(X)
            if X.shape[0] != X.shape[1]:
                raise ValueError("X.shape[0] should be equal to X.shape[1]")
        weights = np.maximum(sample_weight, 0.0) if len(sample_weight) else np.ones(len(y))
        self._check_weights(y, weights)
        try:
            machine = self._made()
            # Numbers of classes as integers, and no weights of 1, need fewer checks.
            target = y.astype(np.intp) if self._by_class else y
            quietly(machine.fit, X, target, weights if len(sample_weight) else None)
            self._require_margin(machine)
        except REFUSALS as error:
            self._refuse_as_libsvm(error)
            self._delegated(str(error))
            theirs = super()._sparse_fit if self._sparse else super()._dense_fit
            return theirs(given, y, sample_weight, *options, **seed)
        self._take(machine, X)
        self._warn_from_fit_status()

    _sparse_fit = _dense_fit

    def _check_weights(self, y: np.ndarray, weights: np.ndarray) -> None:
        """Raise LIBSVM's errors of weights."""
        if not np.any(weights > 0):
            raise ValueError(INFEASIBLE if self._impl == "nu_svc" else NO_WEIGHT)
        present = len(np.unique(y[weights > 0]))
        if self._by_class and present < len(self.classes_):
            one = INFEASIBLE if self._impl == "nu_svc" else ONE_CLASS
            raise ValueError(one if present == 1 else NO_CLASS)

    def _refuse_as_libsvm(self, error: Exception) -> None:
        """Raise what LIBSVM refuses too, in its words."""
        if "infeasible" in str(error):
            raise ValueError(f"{INFEASIBLE}: {error}") from error
        if "finite" in str(error):
            raise ValueError(NOT_FINITE) from error

    def _require_margin(self, machine: SupportVectorMachine) -> None:
        """Raise InvalidInput where ours divides by a margin that is only rounding, and LIBSVM by another."""
        if why := next((one for one in machine.report_.warnings if NO_MARGIN in one), None):
            raise InvalidInput(why)

    def _made(self) -> SupportVectorMachine:
        """Our machine with the same parameters."""
        options = {name: getattr(self, name) for name in self._own}
        if options.get("C") == np.inf:
            options["C"] = LARGE
        if self._impl == "c_svc":  # LIBSVM's ν-machine has no weights of classes
            options["class_weight"] = dict(enumerate(self.class_weight_.tolist()))
        if self._impl in ("c_svc", "epsilon_svr"):
            options["solver"] = "exact"
        if self._by_class:
            options["probability"] = self._effective_probability
        machine = self._ours(kernel=self._kernel(), tol=self.tol, max_iter=self.max_iter, **options)
        if self._by_class:
            machine.weighs_probabilities = False
        return machine

    def _take(self, machine: Any, X: Any) -> None:
        """scikit-learn's attributes: the first of two classes is LIBSVM's positive one."""
        sign = -1.0 if self._by_class and len(self.classes_) == 2 else 1.0
        self.report_ = machine.report_
        self.support_, self.intercept_ = machine.support_, sign * machine.intercept_
        self.support_vectors_ = machine.support_vectors_
        self.dual_coef_ = sign * machine.dual_coef_
        if self._sparse:
            rows, s = self.dual_coef_.shape  # zeros are stored, too: LIBSVM reads the data alone
            at = np.tile(np.arange(s), rows), np.arange(rows + 1) * s
            matrix = sp.csr_array if get_config().get("sparse_interface") == "sparray" else sp.csr_matrix
            self.dual_coef_ = matrix((self.dual_coef_.ravel(), *at), shape=(rows, s))
            self.support_vectors_ = matrix(self.support_vectors_)
        self._n_support = machine.n_support_ if self._by_class else np.repeat(machine.n_support_, 2)
        self.fit_status_, self._num_iter = machine.fit_status_, np.atleast_1d(machine.n_iter_)
        slope, offset = getattr(machine, "calibration_", np.empty((0, 2))).T
        self._probA, self._probB = -slope, -sign * offset

    def _machine(self) -> Any:
        """Our machine of the attributes as they are now."""
        made = self._made()
        made.kernel_, made.restricted_ = self._kernel(), False
        made.X_fit_ = self.support_.astype(np.intp) if made.kernel_.space.numbered else self.support_vectors_
        made.dual_coef_ = self._dual_coef_.toarray() if self._sparse else self._dual_coef_
        made.support_, made.n_support_, made.intercept_ = self.support_, self._n_support, self._intercept_
        if hasattr(self, "report_"):  # not of LIBSVM's fits
            made.report_ = self.report_
        if self._by_class:
            made.classes_ = np.arange(len(self.classes_))
        return made

    def _dense_decision_function(self, X: Any) -> np.ndarray:
        """LIBSVM's decisions, (m, pairs), which are positive for the first class of a pair."""
        return self._decided(X)[0]

    def _decided(self, X: Any) -> tuple[np.ndarray, bool]:
        """The decisions, and whether they are ours."""
        if not X.shape[0]:  # of a kernel that is a function; others refuse no rows
            return np.empty((0, len(self._intercept_))), True
        try:
            machine = self._machine()
            return np.asarray(machine._products(X) + machine.intercept_), True
        except REFUSALS as error:
            self._delegated(str(error))
            theirs = super()._sparse_decision_function if self._sparse else super()._dense_decision_function
            return np.asarray(theirs(X)), False

    _sparse_decision_function = _dense_decision_function

    def _dense_predict(self, X: Any) -> np.ndarray:
        decisions, ours = self._decided(self._compute_kernel(X))
        if self._by_class:
            return votes(decisions, len(self.classes_)).argmax(axis=1)
        found = decisions[:, 0]
        # Ours are exactly 0 on the border, where LIBSVM's are what its tolerance leaves, on either side.
        return np.where((found > 0) | (ours & (found == 0)), 1, -1) if self._impl == "one_class" else found

    _sparse_predict = _dense_predict

    def _dense_predict_proba(self, X: Any) -> np.ndarray:
        odds = -(self._dense_decision_function(self._compute_kernel(X)) * self._probA + self._probB)
        k = len(self.classes_)
        return probabilities(-odds[:, 0]) if k == 2 else coupled(odds, k)

    _sparse_predict_proba = _dense_predict_proba


class SVC(Machine, svm.SVC):
    """`sklearn.svm.SVC` by `mercer.SVC`: LIBSVM's optimum.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, probability, tol, class_weight, verbose, max_iter
    decision_function_shape, break_ties, shrinking, cache_size, random_state
        As in scikit-learn. The last three have no effect: memory is what is free, and nothing is drawn.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.svm import SVC
    >>> SVC(gamma=2).fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]).predict([[0.1, 0.1]])
    array([0])
    """

    _ours = estimators.SVC
    _own = ("C",)


class NuSVC(Machine, svm.NuSVC):
    """`sklearn.svm.NuSVC` by `mercer.NuSVC`.

    Parameters
    ----------
    nu, kernel, degree, gamma, coef0, probability, tol, class_weight, verbose, max_iter
    decision_function_shape, break_ties, shrinking, cache_size, random_state
        As in scikit-learn; see `SVC`. `class_weight` has no effect there, and has none here.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.svm import NuSVC
    >>> NuSVC().fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]).predict([[-1.5], [3.0]])
    array([0, 1])
    """

    _ours = estimators.NuSVC
    _own = ("nu",)


class SVR(Machine, svm.SVR):
    """`sklearn.svm.SVR` by `mercer.SVR`.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C, epsilon, verbose, max_iter, shrinking, cache_size
        As in scikit-learn. The last two have no effect.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.svm import SVR
    >>> SVR(kernel="linear", C=100, epsilon=0.01).fit([[0.0], [1.0], [2.0]], [0, 1, 2]).predict([[4.0]]).round(1)
    array([4.])
    """

    _ours = estimators.SVR
    _own = ("C", "epsilon")


class NuSVR(Machine, svm.NuSVR):
    """`sklearn.svm.NuSVR` by `mercer.NuSVR`.

    Parameters
    ----------
    nu, C, kernel, degree, gamma, coef0, tol, verbose, max_iter, shrinking, cache_size
        As in scikit-learn. The last two have no effect.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.svm import NuSVR
    >>> NuSVR(kernel="linear", C=100).fit([[0.0], [1.0], [2.0]], [0, 1, 2]).predict([[4.0]]).round(1)
    array([4.])
    """

    _ours = estimators.NuSVR
    _own = ("C", "nu")


class OneClassSVM(Machine, svm.OneClassSVM):
    """`sklearn.svm.OneClassSVM` by `mercer.OneClassSVM`.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, nu, verbose, max_iter, shrinking, cache_size
        As in scikit-learn. The last two have no effect.

    Attributes
    ----------
    report_ : Report
        What was chosen, how exact the answer is, and what it cost; the other attributes are scikit-learn's.

    Examples
    --------
    >>> from mercer.sklearn.svm import OneClassSVM
    >>> OneClassSVM(nu=0.3).fit([[0.0], [0.44], [0.45], [0.46], [1.0]]).predict([[0.45], [9.0]])
    array([ 1, -1])
    """

    _ours = estimators.OneClassSVM
    _own = ("nu",)
