"""The base of online estimators: rows come a chunk at a time, and the dictionary stays within its budget."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput, message
from mercer.estimators.base.continued import GIVEN
from mercer.estimators.base.estimator import KernelEstimator
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.base.indefinite import not_finite
from mercer.events import TilesDone, emit
from mercer.gram import KernelOperator
from mercer.points import count, joined, points_of, take
from mercer.schemas import Array, Check, Count, Rows, Schema, Value
from mercer.solvers import ChunkKernel, Learner
from mercer.solvers.base import State
from mercer.ways.report import Report

__all__ = ["CHUNK", "OnlineEstimator"]

CHUNK = 256
"""Rows whose kernel values are computed at once: many enough for the engine, few enough for k among themselves."""


class OnlineEstimator(KernelEstimator):
    """Rows, kernel values and the state of a learner, which the subclass provides."""

    fitted: ClassVar[Schema] = KernelEstimator.fitted + Schema(
        GIVEN,
        Rows("X_fit_"),
        Array("dual_coef_", "n *targets"),
        Count("n_seen_"),
        Value("_state", dict),
        Check("_state is not one of the learner for these rows", lambda model: model._state_fits()),
        Rows("history_rows_", "kept", optional=True),
        Array("history_", "kept *targets", optional=True),
        Array("history_ends_", "frames", np.integer, optional=True),
        Check("history_ends_ are not the ends of parts of history_", lambda model: _ends_fit(model)),
    )

    budget: int
    averaged: bool
    n_passes: Any
    shuffle: bool
    random_state: Any
    keep_history: int | bool
    dual_coef_: np.ndarray
    X_fit_: Any
    classes_: np.ndarray
    history_rows_: Any
    history_: np.ndarray
    history_ends_: np.ndarray
    report_: Report
    _rows_at_once = CHUNK

    # ---- the learner ------------------------------------------------------------------------------------------------

    def _learner(self, room: int) -> Learner[Any]:
        """The learner, with a dictionary of at most this many rows."""
        raise NotImplementedError

    def _meet(self, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        """Learn from the rows in this order."""
        raise NotImplementedError

    def _settled(self, shape: tuple[int, ...]) -> Self:
        """Set the coefficients, for targets of this shape, and the report from the current state."""
        raise NotImplementedError

    def _known(self) -> bool:
        """Whether an earlier call was completed."""
        return hasattr(self, "dual_coef_")

    def __sklearn_is_fitted__(self) -> bool:
        return self._known()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"keep_history": False} | state)  # a parameter that earlier versions do not have

    def _begin_stream(self, X: Any, outputs: int) -> None:
        """The kernel resolved on the first rows, an empty dictionary, and the learner's first state."""
        if self._space().numbered:
            given = "a precomputed kernel"
            do = "give the kernel itself: rows are met one by one, and few of them are kept"
            raise InvalidInput(message(type(self).__name__, given, do))
        _, self.report_ = self._begin(X)
        self._given_kernel = self._as_kernel(self.kernel)
        self.report_.memory_rows = 0  # rows are taken a chunk at a time
        self.X_fit_ = take(self.X_fit_, np.arange(0))
        self._keep(self._learner(int(self.budget)).start(outputs))

    def _keep(self, state: State) -> None:
        self._state: dict[str, np.ndarray] = state.to_arrays()
        self.n_seen_ = state.steps

    def _state_fits(self) -> bool:
        """Whether the state is one of this learner, for a dictionary of this size: asked of models from a file."""
        given, m = getattr(self, "_state", None), count(self.X_fit_)
        asked = self._learner(1).start(1).to_arrays()
        if not isinstance(given, dict) or given.keys() != asked.keys():
            return False
        arrays = {name: np.asarray(one) for name, one in given.items()}
        if any(one.ndim != asked[name].ndim or one.dtype.kind not in "iuf" for name, one in arrays.items()):
            return False
        by_row = (one for name, one in arrays.items() if len(asked[name].shape) and not len(asked[name]))
        square = (one for name, one in arrays.items() if asked[name].shape == (0, 0))
        return all(len(one) == m for one in by_row) and all(one.shape == (m, m) for one in square)

    def _go_on(self) -> None:
        """Start the report of a further call; refuse parameters that do not fit the state."""
        if not self._state_fits() or count(self.X_fit_) > int(self.budget):
            given = f"parameters that changed since the first call ({_plain(self)!r})"
            raise InvalidInput(message(type(self).__name__, given, "set them back, or start again with fit"))
        self.report_ = self.report_.continued()

    def _plan(self, need: int) -> None:
        """Refuse a plan beyond the memory budget before anything is allocated."""
        report = self.report_
        report.precision = "float64"
        do = ["a smaller budget=", "fewer rows at a time"]
        report.plan(need, f"{type(self).__name__} with a budget of {self.budget}", do)

    def _room(self, n: int) -> int:
        """Rows that the dictionary may have after n more."""
        return min(int(self.budget), count(self.X_fit_) + n)

    # ---- history ----------------------------------------------------------------------------------------------------

    def _learn(self, X: Any, targets: np.ndarray, order: np.ndarray, shape: tuple[int, ...] = ()) -> Self:
        """Meet the rows in this order, and keep f after each so many of them, if `keep_history` asks for it."""
        every, frames = int(self.keep_history), list[tuple[Any, np.ndarray]]()
        cuts = np.arange(every - self.n_seen_ % every, len(order), every) if every else np.arange(0)
        if every:
            most = (len(cuts) + 1) * self._room(len(order)) + len(getattr(self, "history_", ()))
            outputs = targets[0].size if targets.ndim > 1 else len(self.classes_)
            self.report_.memory_rows = 2 * most * (8 * outputs + points_of(X).nbytes // max(len(order), 1))
        for part in np.split(order, cuts):
            self._meet(X, targets, part)
            self._settled(shape)
            if every and self.n_seen_ % every == 0:
                frames.append((self.X_fit_, self.dual_coef_))
        if frames:
            self._remember(frames)
        return self

    def _remember(self, frames: list[tuple[Any, np.ndarray]]) -> None:
        """Append f at each of these frames to the history."""
        ends = np.cumsum([count(one) for one, _ in frames])
        if hasattr(self, "history_"):
            ends = np.concatenate([self.history_ends_, self.history_ends_[-1] + ends])
            frames = [(self.history_rows_, self.history_), *frames]
        self.history_rows_ = reduce(joined, (rows for rows, _ in frames))
        self.history_, self.history_ends_ = np.concatenate([b for _, b in frames]), ends

    def _stages(self, X: Any, what: str) -> Iterator[np.ndarray]:
        """f(x) of new rows at each frame of the history."""
        self._require_history(what)
        x, first = self._validate_new(X), 0
        for last in self.history_ends_:
            rows, b = take(self.history_rows_, np.arange(first, last)), self.history_[first:last]
            first, f = last, np.zeros((count(x), *b.shape[1:]))
            yield np.asarray(KernelOperator(self.kernel_, x, rows, dtype=np.float64) @ b) if len(b) else f

    # ---- chunks -----------------------------------------------------------------------------------------------------

    def _passes(self, n: int) -> int:
        """How many passes `fit` makes over n rows."""
        return int(self.n_passes)

    def _orders(self, n: int) -> Iterator[np.ndarray]:
        """The order of the rows in each pass of a fit."""
        seed = self._seed()
        for t in range(self._passes(n)):
            yield np.random.default_rng([seed, t]).permutation(n) if self.shuffle else np.arange(n)

    @staticmethod
    def _chunks(order: np.ndarray, size: int) -> Iterator[np.ndarray]:
        """The order in chunks; emits how many rows were met."""
        for i in range(0, len(order), size):
            yield order[i : i + size]
            emit(TilesDone("rows", min(i + size, len(order)), len(order)))

    def _follow(self, X: Any, targets: np.ndarray, order: np.ndarray) -> None:
        """Visit the rows in this order, one after the other, their kernel values made a chunk at a time."""
        room, size, kept = self._room(len(order)), min(self._rows_at_once, len(order)), self.X_fit_
        learner = self._learner(room)
        squares = [one.shape for one in learner.start(1).to_arrays().values()].count((0, 0))
        known = min(room, count(kept) + len(order) - size)  # of the dictionary, when a whole chunk comes
        wide = 8 * size * (room + size) + 2 * (known + size) * max(self.report_.d, 1)
        taken = points_of(X).nbytes * (2 * known + size * (1 + (known > 0))) // max(len(order), 1)
        self._plan(8 * (2 * squares * (room + size) ** 2 + wide) + taken)
        state = type(learner.start(1)).from_arrays(self._state)
        # A learner that diverges says so by its state, which `_sound` judges.
        with self.report_.stage("rows"), np.errstate(over="ignore", invalid="ignore"):
            for chunk in self._chunks(order, size):
                rows = take(X, chunk)
                state, members = learner.visit(state, self._chunk_kernel(kept, rows), targets[chunk])
                if not np.array_equal(members, np.arange(count(kept))):
                    kept = take(joined(kept, rows), members)
            sound = self._sound(state)
        if sound:
            self.X_fit_ = kept
            self._keep(state)

    def _sound(self, state: Any) -> bool:
        """Whether to keep the state; if not, a warning has said why."""
        return True

    def _chunk_kernel(self, kept: Any, rows: Any) -> ChunkKernel:
        m, both = count(kept), joined(kept, rows) if count(kept) else rows

        def values(p: int) -> np.ndarray:
            columns = both if p == m else joined(take(kept, np.arange(p)), rows) if p else rows
            K = KernelOperator(self.kernel_, both, columns, dtype=np.float64).toarray()
            self._require_finite(K, rows=rows)
            return np.asarray(K)

        return ChunkKernel(m, count(rows), values)

    def _require_finite(self, *values: np.ndarray, rows: Any = None) -> None:
        # If there is a NaN, the maximum and the minimum are NaN.
        if not all(np.isfinite(part.max()) and np.isfinite(part.min()) for part in values if part.size):
            if rows is not None:
                raise not_finite(KernelOperator(self.kernel_, rows), type(self).__name__, "standardise the columns")
            given = f"{self.kernel_!r} has values that are not finite on these rows (overflow)"
            raise InvalidInput(message(type(self).__name__, given, "standardise the columns"))

    # ---- parameters and new rows ------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion:
        check_is_fitted(self)
        return expansion_of(self)._replace(points="kept row")

    def _decide(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not count(self.X_fit_):  # k(x, x) = 0 for all that was seen
            return np.zeros((count(self._validate_new(X)), *self.dual_coef_.shape[1:]))
        return self._expanded(X)

    def _check_counts(self, *names: str) -> None:
        for name in names:
            self._checked_count(name)
        if not isinstance(self.keep_history, Integral) or int(self.keep_history) < 0:
            self._refuse("keep_history", "give False, True for every row, or a number of rows")


def _plain(model: Any) -> Any:
    """A copy whose parameters are Python's numbers, for a text."""
    parameters = model.get_params(deep=False).items()
    return type(model)(**{name: one.item() if isinstance(one, np.generic) else one for name, one in parameters})


def _ends_fit(model: Any) -> bool:
    """Whether the ends of the frames are in order, and the last one is that of the history."""
    ends, kept = getattr(model, "history_ends_", np.zeros(1, np.int64)), len(getattr(model, "history_", ()))
    return len(ends) > 0 and ends[0] >= 0 and bool(np.all(np.diff(ends) >= 0)) and int(ends[-1]) == kept
