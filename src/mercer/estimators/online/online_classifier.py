"""Online classification within a budget: rows are met one by one, and few are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mercer.errors import InvalidInput, message
from mercer.estimators.base.classifier import CLASSES, require_classes, top_class
from mercer.estimators.base.continued import require_same_kernel
from mercer.estimators.base.labels import labelled
from mercer.estimators.online.online_estimator import CHUNK, OnlineEstimator
from mercer.gram import KernelOperator
from mercer.kernels import Gaussian, Kernel
from mercer.mixins import ClassifierMixin
from mercer.points import count, points_of, take, vectors_of
from mercer.schemas import Count, Schema
from mercer.solvers import BudgetedDescent, BudgetedState, Learner, Projectron

__all__ = ["OnlineKernelClassifier"]

ENOUGH_VISITS = 10_000
"""1/α for the default α: with fewer visits, the last rows weigh too much. On 1000 letters the error after one pass
is 42 %, after ten 23 %; on Satellite 29 % and 14 %."""
MOST_PASSES = 10

PIECE = 2e8
"""Operations between two interrupt checks while updates are replayed."""
WIDEST = 4
"""Mergers take up to this many times `CHUNK` rows at once, if the budget is as large. With a budget of 1000 rows this
is 14 % faster than `CHUNK`.
"""


@dataclass(frozen=True, repr=False)
class ScaledDistance(Kernel):
    """γ‖x − z‖², the negative exponent of the Gaussian."""

    gamma: float = 1.0

    def formula(self, pair: Any) -> Any:
        return self.gamma * pair.sqdist


class OnlineKernelClassifier(ClassifierMixin, OnlineEstimator):
    r"""f = Σ b_s k(s, ·) over a dictionary of at most `budget` rows s, which each row that is met may change.

    ======== ======================================================== ============================================
    strategy a row updates f                                          beyond the budget
    ======== ======================================================== ============================================
    merge    with a margin below 1: steps of 1/(αt) down              the smallest b merges with the partner that
             α/2 ‖f‖² + mean hinge loss                               loses least (Gaussian kernel only)
    project  on a mistake, and on a small margin if that pays: f      it is projected on the span of the dictionary,
             gains Pk(x, ·), or k(x, ·) where P is farther than η     as are those that nearly lie in it before
    ======== ======================================================== ============================================

    These are budgeted stochastic gradient descent and Projectron++. With many classes the true one gains what its best
    rival loses. The kernel values of a chunk of rows are computed at once, and the updates are then those of one row
    after the other: how rows are cut into calls of `partial_fit` makes no difference, up to rounding.

    Parameters
    ----------
    kernel : Kernel, str or callable, default "gaussian"
        A name is the kernel class of that name with its defaults; scikit-learn's names "rbf", "poly", "sigmoid"
        and "laplacian" have the defaults of its pairwise functions. A bandwidth that depends on data is that of
        the rows of the first call.
    budget : int, default 1000
        Rows of the dictionary at most.
    strategy : {"auto", "merge", "project"}, default "auto"
        "auto" is "merge" for the plain Gaussian kernel, and "project" for every other. For B rows in d columns the
        kernel values of a row cost O(Bd), an update by "merge" as much again, and by "project" O(B²) a row.
    alpha : float, default 1e-4
        α > 0 of "merge".
    eta : float, default 0.1
        η > 0 of "project": ‖k(x, ·) − Pk(x, ·)‖ up to which a mistake is projected.
    averaged : bool, default False
        Predict with the mean of f over all rows met (for "merge" weighted by t). What is no longer in the dictionary is
        missing there, and what was merged is blurred: with a small budget the last f is often the better.
    n_passes : int or None, default None
        Passes of `fit` over its rows. None makes up to ten, until it has met 10 000 rows: one for large data. On 1000
        letters ten passes err 23 % and one 42 %.
    shuffle : bool, default True
        `fit` takes a new order in each pass; `partial_fit` takes rows as they come.
    random_state : int, RandomState or None, default 0
        Seed for these orders.
    keep_history : int or bool, default False
        Keep f after each so many rows met, or each row (1 or True), for `staged_decision_function`.
    memory : int, str or None
        Budget in bytes or as "2GB"; None is half of what is free.

    Attributes
    ----------
    classes_ : array of shape (c,)
    X_fit_ : array of shape (m, d)
        The dictionary; "merge" makes rows of its own.
    dual_coef_ : array of shape (m, 1) for two classes, (m, c) otherwise
        b.
    n_seen_ : int
        Rows met.
    mistakes_ : int
        Rows that were not on the right side of f before they were learned.
    history_, history_rows_ : arrays of shapes (k, 1) or (k, c), and (k, d)
        b and the dictionaries that `keep_history` asks for, one after the other.
    history_ends_ : array of int of shape (frames,)
        Where each of them ends.
    kernel_, report_

    Notes
    -----
    There is no intercept, and there are no weights: a row that counts twice is met twice. A kernel with a constant
    (``Gaussian() + 1``, by "project") has an intercept.

    References
    ----------
    Z. Wang, K. Crammer, S. Vucetic (2012). Breaking the curse of kernelization. JMLR 13.
    F. Orabona, J. Keshet, B. Caputo (2009). Bounded kernel-based online learning. JMLR 10.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import OnlineKernelClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = OnlineKernelClassifier("gaussian(gamma=2.0)", budget=50)
    >>> for rows in range(0, 2000, 100):
    ...     model = model.partial_fit(X[rows : rows + 100], y[rows : rows + 100], classes=[0, 1])
    >>> model.score(X, y) > 0.97, len(model.X_fit_) <= 50
    (True, True)
    """

    fitted: ClassVar[Schema] = CLASSES + OnlineEstimator.fitted + Schema(Count("mistakes_"))

    tuned: ClassVar[str] = "kernel"

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        budget: int = 1000,
        strategy: Literal["auto", "merge", "project"] = "auto",
        alpha: float = 1e-4,
        eta: float = 0.1,
        averaged: bool = False,
        n_passes: int | None = None,
        shuffle: bool = True,
        random_state: int = 0,
        keep_history: int | bool = False,
        memory: float | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.budget = budget
        self.strategy = strategy
        self.alpha = alpha
        self.eta = eta
        self.averaged = averaged
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.keep_history = keep_history
        self.memory = memory

    # ---- fit --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, and pass over these rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
            At least two classes, numbers or text.
        """
        self._check_parameters()
        X, y = labelled(self, X, y)
        self._open(X, np.unique(y))
        for order in self._orders(len(y)):
            self._learn(X, self._labels(y), order)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Meet these rows, in the order given, with what was learned before.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, optional
            All classes that there will be; the first call needs them unless its rows have them all.
        """
        self._check_parameters()
        first = not self._known()
        require_same_kernel(self)
        X, y = labelled(self, X, y, reset=not self._known())
        if first:
            self._open(X, np.unique(y if classes is None else classes))
        else:
            self._go_on()
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            given = f"classes={np.unique(classes).tolist()} after {self.classes_.tolist()}"
            raise InvalidInput(message("OnlineKernelClassifier", given, "give those of the first call, or none"))
        return self._learn(X, self._labels(y), np.arange(len(y)))

    def _open(self, X: Any, classes: np.ndarray) -> None:
        require_classes("OnlineKernelClassifier", classes)
        self.classes_ = classes
        outputs = len(classes)
        self._begin_stream(X, 1 if self._rule == "merge" and outputs == 2 else outputs)
        if self._rule == "merge" and type(self.kernel_) is not Gaussian:
            given = f'strategy="merge" with {self.kernel_!r}'
            do = 'choose "project": of two vectors only the plain Gaussian has a merger that is a vector'
            raise InvalidInput(message("OnlineKernelClassifier", given, do))

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """The places of the labels among the classes."""
        places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        if strange := y[self.classes_[places] != y].tolist():
            given = f"the class {strange[0]!r}, which is none of {self.classes_.tolist()}"
            raise InvalidInput(message("OnlineKernelClassifier", given, "name all in the first call (classes=)"))
        return places.astype(np.int64)

    @property
    def _rule(self) -> str:
        """The strategy; "auto" follows from the kernel."""
        if self.strategy != "auto":
            return self.strategy
        return "merge" if type(self._as_kernel(self.kernel)) is Gaussian else "project"

    def _learner(self, room: int) -> Learner[Any] | Any:
        if self._rule == "merge":
            return BudgetedDescent(room, float(self.alpha))
        return Projectron(room, float(self.eta))

    def _meet(self, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        if self._rule == "merge":
            self._merge(X, targets, order)
        else:
            self._follow(X, targets, order)

    def _merge(self, X: Any, labels: np.ndarray, order: np.ndarray) -> None:
        """Distances by tiles, then the chunk's updates at once: see `BudgetedDescent`."""
        one = vectors_of(take(X, np.arange(1)))
        if not one.may_be_dense:
            given = f'sparse rows of {X.shape[1]} columns with strategy="merge"'
            do = 'choose "project": mergers are dense'
            raise InvalidInput(message("OnlineKernelClassifier", given, do))
        room, gamma, d = self._room(len(order)), float(self.kernel_.get_params()["gamma"]), X.shape[1]
        dtype, distance = X.dtype, KernelOperator(ScaledDistance(gamma), one.dense())
        wanted = self._rows_at_once * max(1, min(room // CHUNK, WIDEST))
        size = int(max(min(wanted, PIECE / (room * (d + 20))), 1))
        known = min(room, count(self.X_fit_) + max(len(order) - size, 0))  # of the dictionary, at a whole chunk
        entries, numbers = (room + 2 * size) * size, (2 * known + 4 * size) * d
        self._plan(dtype.itemsize * (entries + numbers) + 64 * room * len(self.classes_))
        rule = BudgetedDescent(room, float(self.alpha))
        kept = vectors_of(self.X_fit_).dense().astype(dtype, copy=False)
        dictionary = rule.open(BudgetedState.from_arrays(self._state), kept, size)
        whole = np.zeros((size + room + 1, size), dtype)
        with self.report_.stage("rows"):
            for chunk in self._chunks(order, size):
                x, both = dictionary.after(vectors_of(points_of(X).take(chunk)).dense())
                distances = whole if len(x) == size else np.zeros((len(x) + room + 1, len(x)), dtype)
                K = distance.between(both, x)
                filled = K.fill(distances[: len(both)])
                if K.dtype != dtype:  # otherwise the range of the distances fits, or the operator had refused the rows
                    self._require_finite(filled)
                dictionary.visit(x, distances, labels[chunk], gamma)
        state, self.X_fit_ = dictionary.close()
        self._keep(state)

    def _settled(self, shape: tuple[int, ...] = ()) -> Self:
        """Set the coefficients and the report from the current state."""
        learner, report = self._learner(int(self.budget)), self.report_
        state: Any = type(learner.start(len(self.classes_))).from_arrays(self._state)
        b = learner.coefficients(state, bool(self.averaged))
        self.dual_coef_ = b[:, 1:] if len(self.classes_) == 2 and b.shape[1] == 2 else b
        self.mistakes_ = int(state.mistakes)
        if self._rule == "merge":
            report.method = f"stochastic gradient descent on the hinge loss, α = {self.alpha:g}; mergers"
            done = f"{state.updates} updates, {state.merges} mergers, {state.removals} removals"
        else:
            report.method = f"Projectron++, η = {self.eta:g}"
            done = f"{len(b)} rows joined, {state.projected} updates were projected"
        report.reason = f'strategy="{self._rule}", budget {self.budget}'
        report.n, report.rank, report.steps = self.n_seen_, len(b), self.n_seen_
        report.residual, report.tolerance = state.residual, float("nan")
        report.status = "the share of mistakes, each row judged before it was learned"
        report.notes = [note for note in report.notes if not note.startswith("in all: ")] + [f"in all: {done}"]
        return self

    def _state_fits(self) -> bool:
        # Models of a removed strategy still predict, by their coefficients; nothing reads their state.
        return self.strategy == "forget" or super()._state_fits()

    # ---- parameters and new rows ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if self.strategy == "forget":
            self._refuse("strategy", 'this strategy was removed: use "project"')
        self._checked_choice("strategy", "auto", "merge", "project")
        self._check_counts("budget")
        self._count_or_none("n_passes")
        for name in ("alpha", "eta"):
            self._checked_number(name)

    def _passes(self, n: int) -> int:
        return max(1, min(MOST_PASSES, ENOUGH_VISITS // max(n, 1))) if self.n_passes is None else int(self.n_passes)

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x): of shape (m,) for two classes (positive: the second), of shape (m, c) otherwise."""
        scores = self._decide(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """f(x) for each f that `keep_history` kept, one after the other: what was learned when.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (m, d)

        Yields
        ------
        array of shape (m,) for two classes, (m, c) otherwise
        """
        for scores in self._stages(X, "staged_decision_function"):
            yield scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest f(x)."""
        return top_class(self.decision_function(X), self.classes_)
