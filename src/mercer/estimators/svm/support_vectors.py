"""The base of support vector machines: a dual problem on one kernel matrix, and the rows with coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.engine import backend
from mercer.errors import ConvergenceWarning, InvalidInput, message, warn
from mercer.estimators.base.compression import Compressible
from mercer.estimators.base.expansion import Expansion, expansion_of
from mercer.estimators.base.indefinite import known_values, not_finite
from mercer.gram import KernelOperator
from mercer.kernels import Linear
from mercer.kernels.conventions import MACHINES, Names
from mercer.operators import CachedRows, Dense, Operator
from mercer.points import count, human, parse_memory, require, take
from mercer.schemas import NON_NEGATIVE, Array, Check, Count, Indices, Schema, Size, Value
from mercer.solvers import SMO, DualBatch, DualPoint, Solution, Status, WorkingSet, solve
from mercer.solvers.choose import COUNTED_SHARE
from mercer.ways.report import Report

__all__ = ["ONE_OUTPUT", "SMALL", "SupportVectorMachine", "Training", "filled", "kernel_unit"]

LEAST_SET = 64
"""Four working sets of this many rows must fit in memory if K does not."""
BLOCK = 64 << 20
"""Bytes of K up to which it is always stored; four times as many may be stored of a larger one's parts."""
EASY = 20
"""Steps for each row on working sets; a problem that takes more is solved on the stored K, if K fits."""
SMALL = 500
"""Rows up to which K is stored in float64 and the problem solved on to rounding, which takes next to nothing."""
SHARPER = 1e-10
"""The tolerance for a small problem that is solved on, relative to `tol`."""
SHARPENED = 2
"""How often a machine whose answer wants it is solved on, to a hundredth of the tolerance."""
PATIENT = 300
VISITED = 500_000_000
"""Pairs for each variable, and entries that they visit, after which solving on is given up."""
MOST_VISITS = 2_000_000
"""Entries that it may visit then: many turns of `SMO`, after each of which it may go to a face."""
SOON = 3
"""Pairs for each variable after which a small problem goes to its face, which costs as much as some pairs for each."""


@dataclass(frozen=True, eq=False)
class Training:
    """The data of a fit: the kernel matrix of the rows in use, exact (K) and in the form that the solver reads (A).

    `order` are the places of these rows in the data as given, `target` what is wanted of each (its class as an integer,
    a number, or nothing), `weights` their weights.
    """

    K: KernelOperator
    A: Operator
    order: np.ndarray
    target: np.ndarray
    weights: np.ndarray

    @property
    def exact(self) -> Operator:
        """The operator by which answers are judged: the stored matrix itself if that is in float64."""
        return self.A if isinstance(self.A, Dense) and self.A.dtype == np.float64 else self.K


ONE_OUTPUT = Schema(Size("outputs", lambda *_: 1), Size("decisions", lambda *_: 1), Size("groups", lambda *_: 1))
"""One function, whose support vectors are of no classes."""


class SupportVectorMachine(Compressible):
    """f(x) = Σⱼ βⱼ k(x, xⱼ) + b, with β from a dual problem in which most of the βⱼ are 0."""

    fitted: ClassVar[Schema] = Compressible.fitted + Schema(
        Value("restricted_", bool),
        Value("shape_fit_", tuple),
        Size("rows", lambda model, _: int(model.shape_fit_[0])),
        Size("support", lambda model, sizes: 0 if model.restricted_ else sizes["n"]),
        Indices("support_", "support", of="rows"),
        Array("dual_coef_", "outputs n"),
        Array("intercept_", "decisions"),
        Array("n_support_", "groups", np.integer, rules=(NON_NEGATIVE,)),
        Check("n_support_ does not add up to n", lambda one: one.n_support_.sum() == one.dual_coef_.shape[1]),
        Count("fit_status_"),
        Array("n_iter_", "*machines", np.integer, rules=(NON_NEGATIVE,)),
    )

    tol: float
    max_iter: int
    report_: Report
    X_fit_: Any
    support_: np.ndarray
    n_support_: np.ndarray
    dual_coef_: np.ndarray
    intercept_: np.ndarray
    restricted_: bool
    named_kernels: ClassVar[Names] = MACHINES
    indefinite_meaning: ClassVar[str] = (
        "the solution is a stationary point of the dual, and separates convex hulls in a pseudo-Euclidean space, "
        "in which no margin is defined (Haasdonk 2005)"
    )

    # ---- parameters --------------------------------------------------------------------------------------------------

    def _solver(self) -> SMO:
        """The solver of stored matrices, its parameters checked."""
        if not isinstance(self.max_iter, Integral) or self.max_iter < -1:
            do = "give a number of steps, or -1 for as many as it takes"
            raise InvalidInput(message(type(self).__name__, f"max_iter={self.max_iter!r}", do))
        return SMO(tol=self._checked_number("tol"), max_iter=None if self.max_iter == -1 else int(self.max_iter))

    # ---- fit ---------------------------------------------------------------------------------------------------------

    def _unit(self, data: Training) -> float:
        """The size of m and M, which `tol` is relative to."""
        return 1.0

    def _family(self, data: Training) -> DualBatch:
        """The dual problem."""
        raise NotImplementedError

    def _read(self, data: Training, family: DualBatch, x: DualPoint) -> None:
        """Set the coefficients, the intercept and the support vectors."""
        raise NotImplementedError

    def _prepare(self, X: Any, order: np.ndarray, target: np.ndarray, weights: np.ndarray) -> Training:
        """The kernel matrix of the rows `order`; sets the kernel and an empty report."""
        self._solver()
        points = self._space().of(X)
        self.shape_fit_ = points.shape
        whole = np.array_equal(order, np.arange(len(points)))
        if not whole:
            share = (len(order) / max(len(points), 1)) ** (2 if self._space().numbered else 1)
            copy = 0 if points.window else int(share * points.nbytes)  # refused before it is made
            require(copy, parse_memory(self.memory), f"{type(self).__name__} on {len(order)} rows", "use fewer rows")
            X = points.among(order).rows
        K, report = self._begin(X, None if np.all(weights == 1) else weights)
        report.memory_rows += 0 if whole or K.x.window else K.x.nbytes
        self.report_ = report
        return Training(K, self._matrix(K, report, target, order), *map(K.x.kept, (order, target, weights)))

    def _problems(self, target: np.ndarray) -> tuple[int, int]:
        """How many problems there are, and how many rows the largest one has."""
        return 1, len(target)

    def _matrix(self, K: KernelOperator, report: Report, target: np.ndarray, order: np.ndarray) -> Operator:
        """K stored in float32, or in float64 if float32 overflows; or in blocks; or only the entries in use."""
        if not K.symmetric:
            given = f"{self.kernel_!r}, which says that k(x, z) is not k(z, x)"
            raise InvalidInput(message(type(self).__name__, given, "give a symmetric kernel"))
        n, who = K.shape[0], f"{type(self).__name__} on {K.shape[0]} rows"
        wide = not self._kernel_size(K, order).fits_float32 or n <= SMALL
        dtype = np.dtype(np.float64 if wide else np.float32)
        report.precision = f"entries in {dtype}, gradient checked in float64"
        need, room = n * n * dtype.itemsize, int(COUNTED_SHARE * report.room)
        problems, largest = self._problems(target)
        # Recomputing cheap entries is faster than touching new memory; but many problems share a stored K.
        again = K.cheap and need > BLOCK and not (problems > 1 and largest == n)
        report.method = "sequential minimal optimisation"
        if need <= room and not again:
            report.plan(need, who, "use fewer rows")
            report.reason = f"K takes {human(need)} and is stored"
            with report.stage("kernel matrix"):
                return _stored(K, dtype)
        because = "and is not stored: its entries are cheap" if need <= room else "and does not fit"
        if self._in_parts(K, target, dtype, room):
            report.plan(self._parts(target, dtype), who, "use fewer rows")
            report.reason = f"K takes {human(need)} {because}, so each pair of classes stores its own part in turn"
            return K.astype(dtype)
        least = 4 * min(n, LEAST_SET) * n * dtype.itemsize
        report.plan(least, who, "use fewer rows")
        sets = self._set_size(n, dtype.itemsize, dear=False) ** 2 * dtype.itemsize
        report.plan(sets if K.cheap else report.room, who, "use fewer rows")
        report.method += " on working sets"
        report.reason = f"K takes {human(need)} {because}, so only entries in use are there"
        entries = K.astype(dtype)
        beside = entries.copies * (entries.dtype != K.dtype)  # K has copies of its own when it checks the gradient
        return entries if K.cheap else CachedRows(entries, max(report.room - beside, least) // 2)

    def _in_parts(self, K: KernelOperator, target: np.ndarray, dtype: np.dtype[Any], room: int) -> bool:
        """Whether the engine makes K's entries for each problem that it works on, as its own part of K."""
        several = self._problems(target)[0] > 1
        return several and K.cheap and self._parts(target, dtype) <= min(room, 4 * BLOCK)

    def _parts(self, target: np.ndarray, dtype: np.dtype[Any]) -> int:
        """Bytes where each thread stores, twice over, the entries of the problem it works on, and all those they share.

        Pairs of classes share the squares between the rows of each class.
        """
        problems, largest = self._problems(target)
        shared = int(np.sum(np.bincount(target) ** 2)) if problems > 1 else 0
        return (2 * backend.engine().threads() * largest**2 + shared) * dtype.itemsize

    def _solve(self, data: Training, start: np.ndarray | None = None) -> Self:
        """Solve the dual and read the machine off it."""
        report, family, solver = self.report_, self._family(data), self._solver()
        solver = replace(solver, tol=solver.tol * self._unit(data))
        if start is not None:
            family = replace(family, start=start)
        with report.stage("optimisation"):
            room = int(COUNTED_SHARE * report.room)
            at_once = isinstance(data.A, Dense) or self._in_parts(data.K, data.target, data.A.dtype, room)
            way = self._at_once if at_once else self._by_parts
            solution = way(family, solver)
            for _ in range(SHARPENED):
                if not solution.converged or not self._wants_sharper(family, solution.x):
                    break
                left = np.inf if solver.max_iter is None else solver.max_iter - solution.state.iterations.max()
                n = len(data.order)
                sharper = replace(solver, tol=solver.tol / 100, max_iter=int(min(PATIENT * n, VISITED // n, left)))
                further = way(replace(family, start=solution.x.beta), sharper)
                if further.residual <= solver.tol:  # also what it left unfinished is nearer
                    met = replace(further, status=Status.CONVERGED)
                    solver, solution = replace(solver, tol=max(sharper.tol, met.residual)), _after(solution, met)
                if not further.converged:
                    report.notes.append(f"after {further.state.iterations.sum()} more steps it was not solved on")
                    break
            wide = data.K.shape[0] ** 2 * (4 + 8)
            low_precision = family.A.dtype == np.float32
            if solution.status is Status.STALLED and low_precision and wide <= report.room:
                report.plan(wide, type(self).__name__, "use fewer rows")
                report.notes.append("entries in float32 were not exact enough, so K was stored in float64")
                report.precision = "entries and gradient in float64"
                solution = solve(solver, replace(family, A=_stored(data.K, np.float64), start=solution.x.beta))
        self._account_for(data, family, solution, solver.tol)
        data.K.release()
        self._read(data, family, solution.x)
        return self

    def _wants_sharper(self, family: DualBatch, x: DualPoint) -> bool:
        """Whether `tol`, which the answer meets, is too coarse for it."""
        return False

    def _calibrate(self, data: Training) -> Self:
        """Called after a fit; classifiers fit their probabilities here."""
        return self

    def _by_parts(self, family: DualBatch, solver: SMO) -> Solution[Any]:
        """One problem after the other on its own rows, by working sets."""
        found = [self._on_sets(*family.part(q), solver) for q in range(family.problems)]
        point = DualPoint(*(np.concatenate(one) for one in zip(*(vars(s.x).values() for s in found), strict=True)))
        worst = max(found, key=lambda one: (not one.converged, one.residual))
        state = replace(found[-1].state, iterations=np.concatenate([one.state.iterations for one in found]))
        return replace(worst, x=point, state=state)

    def _on_sets(self, part: DualBatch, rows: np.ndarray, solver: SMO) -> Solution[Any]:
        """One problem by working sets; if it takes many steps, on its stored matrix, provided that this fits."""
        n, budget, item = len(rows), self.report_.room, part.A.dtype.itemsize
        dear = not (isinstance(part.A, KernelOperator) and part.A.cheap)
        stored = n * n * item <= COUNTED_SHARE * budget
        if dear and stored:
            return solve(solver, replace(part, A=Dense(part.A.toarray(), symmetric=True)))
        if dear and not isinstance(part.A, CachedRows):
            part = replace(part, A=CachedRows(part.A, budget // 2))
        size = self._set_size(n, item, dear)
        most, limit = solver.max_iter, EASY * n if stored else None
        first = min((steps for steps in (most, limit) if steps is not None), default=None)
        solution = solve(WorkingSet(solver.tol, first, size=size), part)
        if solution.status is not Status.MAX_STEPS or first == most:
            return solution
        self.report_.notes.append(f"after {first} steps on working sets K was stored")
        self.report_.plan(n * n * item, type(self).__name__, "use fewer rows")
        rest = replace(solver, max_iter=None if most is None else most - (first or 0))
        stored_part = replace(part, A=Dense(part.A.toarray(), symmetric=True), start=solution.x.beta)
        return _after(solution, solve(rest, stored_part))

    def _set_size(self, n: int, item: int, dear: bool) -> int:
        """Variables of a working set, whose matrix takes a quarter of the budget, or their rows an eighth."""
        budget = self.report_.room
        size = budget // (8 * n * item) if dear else math.isqrt(budget // (4 * item))
        return int(np.clip(size, min(n, LEAST_SET), min(n, WorkingSet.size)))

    def _at_once(self, family: DualBatch, solver: SMO) -> Solution[Any]:
        """All problems together; small ones to rounding, so the answer does not depend on the order of the steps."""
        if not isinstance(family.A, Dense) or len(family.rows) > SMALL * min(family.problems, 3):
            return solve(solver, family)
        largest = int(np.max(np.diff(family.offset)))
        most = max(100 * largest, MOST_VISITS // largest)
        steps = most if solver.max_iter is None else min(most, solver.max_iter)
        exact = solve(replace(solver, tol=SHARPER * solver.tol, max_iter=steps, patience=SOON), family)
        if exact.residual <= solver.tol:
            return replace(exact, status=Status.CONVERGED)
        if steps == solver.max_iter:
            return exact
        return _after(exact, solve(solver, replace(family, start=exact.x.beta)))

    def _account_for(self, data: Training, family: DualBatch, solution: Solution[Any], tol: float) -> None:
        """Write the solver's outcome into the report; warn if it did not converge."""
        report, x = self.report_, solution.x
        self.n_iter_: Any = solution.state.iterations.astype(np.int32)
        self.fit_status_ = 0 if solution.converged else 1
        report.steps, report.residual, report.tolerance = int(self.n_iter_.sum()), solution.residual, tol
        report.status = solution.status.name.lower().replace("_", " ")
        if solution.status is Status.NOT_FINITE:
            do = "standardise the columns, or lower the degree"
            raise not_finite(data.K, type(self).__name__, do, data.order)
        gap, value = family.duality_gaps(x), np.abs(family.objectives(x))
        with np.errstate(over="ignore"):  # of a dual that is 0
            relative = float(np.max(gap / np.maximum(value, np.finfo(float).tiny), initial=0.0))
        report.notes.append(f"primal and dual objective differ by {relative:.1e} of their size at most")
        if not solution.converged:
            given = f"m − M is {report.residual:.1e} after {report.steps} steps, not {tol:.0e}"
            given += f"; primal and dual objective differ by {relative:.1e} of their size"
            do = "raise max_iter" if solution.status is Status.MAX_STEPS else "standardise the columns, or lower C"
            report.warnings.append(message(type(self).__name__, given, do))
            warn(report.warnings[-1], ConvergenceWarning)

    # ---- what stays --------------------------------------------------------------------------------------------------

    def _keep(self, data: Training, coefficients: np.ndarray) -> np.ndarray:
        """Set the support vectors, the rows with a coefficient (outputs, n) that is not 0; returns which they are."""
        used, self.restricted_ = np.flatnonzero(np.any(coefficients != 0, axis=0)), False
        self.support_ = data.order[used].astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, used])
        precomputed = self.kernel_.space.numbered
        self.X_fit_ = self.support_.astype(np.intp) if precomputed else take(data.K.X, used)
        return used

    @property
    def support_vectors_(self) -> Any:
        """The support vectors; none of a precomputed kernel."""
        return np.empty((0, 0)) if self.kernel_.space.numbered else self.X_fit_

    @property
    def coef_(self) -> np.ndarray:
        """Σⱼ βⱼ xⱼ of a linear kernel, of shape (outputs, d)."""
        if type(self.kernel_) is not Linear:
            raise AttributeError("coef_ is only there with a linear kernel")
        product = self._by_output() @ self.X_fit_
        return np.asarray(product.toarray() if sp.issparse(product) else product)

    def _by_output(self) -> np.ndarray:
        """β of each support vector in each output, of shape (outputs, support vectors)."""
        return self.dual_coef_

    def _expansion(self) -> Expansion:
        check_is_fitted(self)
        rows = self.support_ if len(self.support_) else None
        return expansion_of(self, self.intercept_, self._by_output().T)._replace(points="support vector", rows=rows)

    def _restate(self, vectors: Any, B: np.ndarray) -> None:
        """Vectors that all outputs share: `dual_coef_` has a row for each of them, and no vector belongs to a class."""
        self.X_fit_, self.dual_coef_, self.restricted_ = vectors, np.ascontiguousarray(B.T), True
        self.support_, self.n_support_ = np.empty(0, np.int32), np.array([len(B)], np.int32)

    def _products(self, X: Any) -> np.ndarray:
        """Σⱼ βⱼ k(x, xⱼ) of each output, (m, outputs), at rows that `_validate_new` has seen."""
        if not count(self.X_fit_):
            return np.zeros((count(X), len(self.dual_coef_)))
        K = KernelOperator(self.kernel_, X, self.X_fit_, dtype=np.float64)
        return known_values(np.asarray(K @ self.dual_coef_.T), K, type(self).__name__)

    # ---- a grid of C -------------------------------------------------------------------------------------------------

    def _path(self, Cs: Iterable[float], prepare: Callable[[Any], Training]) -> list[Self]:
        """A machine for each C on the kernel matrix that `prepare` makes, each from the β of the former."""
        machines = [clone(self).set_params(C=C) for C in Cs]
        for one in machines:
            one._checked_number("C")
        if not machines:
            return []
        data = prepare(machines[0])
        state = {name: value for name, value in vars(machines[0]).items() if name not in self.get_params(deep=False)}
        for before, one in zip([None, *machines], machines, strict=False):
            for name, value in state.items():
                setattr(one, name, value)
            one.report_ = replace(state["report_"].continued(), warnings=[])
            one._solve(data, None if before is None else one._from(before, data))._calibrate(data)
        return machines

    def _from(self, before: Any, data: Training) -> np.ndarray | None:
        """The β of a former fit on the same rows times the ratio of the two C, which keeps its bounds and its sums.

        None if there was no such fit.
        """
        if getattr(before, "shape_fit_", None) != self.shape_fit_ or not hasattr(before, "dual_coef_"):
            return None
        rows = len(before.support_) == before.dual_coef_.shape[1]  # not of vectors that are no training rows
        if not rows or not np.all(np.isin(before.support_, data.order)):
            return None
        place = np.zeros(self.shape_fit_[0], np.intp)
        place[data.order] = np.arange(len(data.order))
        coefficients = np.zeros((len(before.dual_coef_), len(data.order)))
        coefficients[:, place[before.support_]] = before.dual_coef_ * (self._checked_number("C") / before._fitted_C)
        family = self._family(data)
        beta = self._variables(data, family, coefficients)
        if beta is None:
            return None
        near = 1e-12 * (family.upper - family.lower)
        beta = np.where(beta > family.upper - near, family.upper, beta)
        beta = np.where(beta < family.lower + near, family.lower, beta)
        sums = np.bincount(family.group, beta, 2 * family.problems)
        kept = np.all((family.lower <= beta) & (beta <= family.upper))  # false if the weights changed
        return beta if kept and np.all(np.abs(sums) <= 1e-9 * np.max(np.abs(beta), initial=0.0)) else None

    def _variables(self, data: Training, family: DualBatch, coefficients: np.ndarray) -> np.ndarray | None:
        """β of the family from the coefficients of all rows in use; None if they belong to another problem."""
        raise NotImplementedError


def kernel_unit(data: Training, weights: np.ndarray) -> float:
    """The scale of m and M if the dual has no linear term: the mean |k(x, x)| times the mean weight, each at most 1."""
    size = float(np.mean(np.abs(data.exact.diagonal()), dtype=np.float64))
    return max(min(size, 1.0) * min(float(np.mean(weights)), 1.0), np.finfo(np.float64).tiny)


def _after(before: Solution[Any], further: Solution[Any]) -> Solution[Any]:
    """The further solution, with the steps of the one that it began from."""
    iterations = before.state.iterations + further.state.iterations
    return replace(further, state=replace(further.state, iterations=iterations))


def filled(bounds: np.ndarray, total: float) -> np.ndarray:
    """The first variables at their bounds, up to a sum of `total`: LIBSVM's start where the sum is given.

    >>> filled(np.array([1.0, 1.0, 1.0]), 1.5)
    array([1. , 0.5, 0. ])
    """
    before = np.concatenate([[0.0], np.cumsum(bounds)[:-1]])
    return np.clip(total - before, 0.0, bounds)


def _stored(K: KernelOperator, dtype: Any) -> Dense:
    """K as an array."""
    return Dense(K.astype(dtype).fill(np.empty(K.shape, dtype)), symmetric=True)
