"""Support vector machines in the span of landmarks: Nyström features and dual coordinate descent."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from mercer.approx.landmarks import are_numbers, choose_landmarks
from mercer.approx.nystroem import inverse_root
from mercer.errors import ConvergenceWarning, InvalidInput, MemoryExceeded, message, warn
from mercer.estimators.base.landmarks import pool_rows
from mercer.estimators.svm.support_vectors import LEAST_SET, SupportVectorMachine, Training
from mercer.gram import KernelOperator
from mercer.numerals import counted
from mercer.operators import Operator
from mercer.points import apart
from mercer.solvers import DualBatch, DualCoordinateDescent, LinearDualBatch, Solution, Status, solve
from mercer.ways.report import Report

__all__ = ["LandmarkMachine"]

MUCH_MORE = 5
"""Times the budget that K may take before "auto" takes landmarks: the rows that half the budget keeps are then less
than a tenth of all, fewer than most machines have support vectors."""
MOST_LANDMARKS = 1000
"""Landmarks unless told otherwise."""
POOL = 4
"""Random rows for each landmark among which pivots are chosen."""
PASSES = 1000
CHUNK = 1 << 22
"""Entries of the features that are made at a time."""
GAP = 10.0
"""Tolerance of the relative duality gap, over `tol`. With 300 landmarks on letter and 500 on USPS the test errors for
gaps of 0.1, 0.01 and 0.003 were within 0.2 points of one another: the error of the landmarks is much larger."""
FREE = 100.0
"""C s² Σ wᵢ at least: the penalty of an intercept near 1 is small beside the losses, too, where K or C is small."""
MOST_SQUARE = 1e60
"""The largest square of the constant feature in float32."""
TOO_MUCH = 0.5
"""A share of the trace of K that the landmarks leave out, beyond which the answer may be worthless."""


class LandmarkMachine(SupportVectorMachine):
    """min ½‖f‖² + b²/2s² + C Σ wᵢ ℓᵢ(f(xᵢ) + b) over f in the span of m landmarks, s² = max(mean ‖φ‖², 100/C Σ wᵢ).

    Means are weighted. So b = 1 costs ½ of the mean of ‖φ‖² and at most C Σ wᵢ/200, a small share of the losses. A
    larger s² would be nearer to no penalty, and take more passes (three times as many for ten times s²).

    f(x) = ⟨w, φ(x)⟩ with φ(x) = K_mm^(−½) k_m(x): a linear machine on explicit features, of which b is a constant one.
    """

    C: float
    solver: str
    n_landmarks: int | None
    landmarks: Any
    random_state: Any

    def _matrix(self, K: KernelOperator, report: Report, target: np.ndarray, order: np.ndarray) -> Operator:
        """The matrix of the solver. On landmarks it is K itself, and at most m of its columns are used."""
        self._check_method()
        n, budget = K.shape[0], report.room
        self.restricted_ = self.solver == "nystroem"
        report.reason = "as requested"
        whole, least = 4 * n * n, 16 * n * min(n, LEAST_SET)
        if self.solver == "auto" and (whole > MUCH_MORE * budget or least > budget):
            self.restricted_ = True
            would, most = apart(whole, budget)
            report.reason = f"K would take {would}, and the budget is {most}"
        return K if self.restricted_ else super()._matrix(K, report, target, order)

    def _check_method(self) -> None:
        self._checked_choice("solver", "auto", "exact", "nystroem")
        self._count_or_none("n_landmarks")
        self._seed()  # refuses a bad random_state, though the exact method draws nothing

    def _solve(self, data: Training, start: np.ndarray | None = None) -> Self:
        if not self.restricted_:
            return super()._solve(data, start)
        report = self.report_
        wide = not self._kernel_size(data.K, data.order).fits_float32 or self._least_square(data) > MOST_SQUARE
        family, planned = self._family(data), (report.memory_rows, report.memory_planned)
        try:
            m = self._planned(data, family, wide, report)
        except MemoryExceeded:
            if self.solver != "auto":
                raise
            self.restricted_ = False  # working sets of all rows may take less room
            report.memory_rows, report.memory_planned = planned
            exact = super()._matrix(data.K, report, data.target, data.order)
            return super()._solve(replace(data, A=exact), start)
        # Slopes are of c − f(x): what all targets share goes into b before, or a small weight of it would cost much.
        centre = 0.0 if hasattr(self, "classes_") else float(np.average(data.target, weights=data.weights))
        linear = family.linear - centre if centre else family.linear
        kept, offset, epsilon = data.K.x.kept, family.offset, family.epsilon
        linear, lower, upper, rows = kept(linear), kept(family.lower), kept(family.upper), kept(family.rows)
        del family  # copies in a file may stand for its arrays, and its start, which is not used, is as large as β
        landmarks, root, features = self._features(data, m, wide, report)
        problem = LinearDualBatch(features, linear, lower, upper, rows, offset, epsilon)
        passes = PASSES if self.max_iter == -1 else int(self.max_iter)
        with report.stage("optimisation"):
            solution = solve(DualCoordinateDescent(GAP * self._checked_number("tol"), passes, self._seed()), problem)
        w, scale = solution.x.w, float(features[0, -1])
        self._read_landmarks(landmarks, w[:, :-1] @ root, w[:, -1] * scale + centre)
        self._account_for_landmarks(solution, problem)
        return self

    def _read_landmarks(self, landmarks: Any, coefficients: np.ndarray, intercept: np.ndarray) -> None:
        """Set the landmarks, their coefficients (outputs, m), and b."""
        sign = -1.0 if len(getattr(self, "classes_", ())) == 2 else 1.0  # two classes score for the second
        self._restate(landmarks, sign * coefficients.T)
        self.intercept_ = sign * intercept
        self._fitted_C = self._checked_number("C")

    def _features(self, data: Training, m: int, wide: bool, report: Report) -> tuple[Any, np.ndarray, np.ndarray]:
        """The landmarks, K_mm^(−½), and the features of all rows with a constant one."""
        K, dtype = data.K, np.float64 if wide else np.float32
        with report.stage("landmarks"):
            how = self._landmarks_among(data.order)
            _, landmarks = choose_landmarks(type(self).__name__, how, K, K.X, m, self._seed(), POOL * m)
            if self.kernel_.space.numbered:
                among, entries = np.asarray(K.block(landmarks, landmarks)), K.X.dtype
            else:
                among = KernelOperator(self.kernel_, landmarks, dtype=np.float64).toarray()
                objects = self.kernel_.space.objects
                entries = np.float64 if objects else getattr(landmarks, "dtype", np.float64)
            eps = max(float(np.finfo(kind).eps) for kind in (entries, dtype))  # of what the root will multiply
            root, rank = inverse_root(among, eps)
        with report.stage("features"):
            between = KernelOperator(self.kernel_, K.X, landmarks, dtype=dtype)
            features = K.x.scratch((K.shape[0], len(root) + 1), dtype)
            between.features(root, out=features[:, :-1])
            squares = np.einsum("ij,ij->i", features[:, :-1], features[:, :-1], dtype=np.float64)
            mean = float(np.average(squares, weights=data.weights))
            features[:, -1] = np.sqrt(max(mean, self._least_square(data)))
        own = np.asarray(K.diagonal(), np.float64)
        lost = max(1 - float(squares.sum() / own.sum()), 0.0) if own.sum() > 0 else 0.0
        report.method = f"{counted(len(root), 'landmark')}, dual coordinate descent on their Nyström features"
        report.rank, report.precision = rank, f"features in {np.dtype(dtype).name}, gap in float64"
        report.notes.append(f"the landmarks leave out {lost:.1e} of the trace of K")
        if lost > TOO_MUCH:
            given = f"{len(root)} landmarks leave out {lost:.0%} of the trace of K: rows may be far from all of them"
            report.warnings.append(message(type(self).__name__, given, "raise n_landmarks, or widen the kernel"))
            warn(report.warnings[-1], ConvergenceWarning)
        return data.order[landmarks] if self.kernel_.space.numbered else landmarks, root, features

    def _least_square(self, data: Training) -> float:
        """The least square of the constant feature."""
        with np.errstate(over="ignore"):
            return float(np.float64(FREE) / data.weights.sum() / self._checked_number("C"))

    def _landmarks_among(self, order: np.ndarray) -> Any:
        """`landmarks`, as places among the fit's rows `order` if they are numbers of rows."""
        if not are_numbers(self.landmarks):
            return self.landmarks
        given = np.asarray(self.landmarks)
        by_number = np.argsort(order)
        places = by_number[np.minimum(np.searchsorted(order, given, sorter=by_number), len(order) - 1)]
        if absent := given[order[places] != given].tolist():
            what = f"landmarks= with the number {absent[0]}, whose row has no positive weight"
            raise InvalidInput(message(type(self).__name__, what, f"give some of the {len(order)} that have it"))
        return places

    def _planned(self, data: Training, family: DualBatch, wide: bool, report: Report) -> int:
        """How many landmarks, and the memory that they take."""
        n, size = data.K.shape[0], 8 if wide else 4
        rest = 8 * ((8 if data.K.x.window else 12) * len(family.rows) + 3 * n)

        def need(m: int) -> int:
            stored = 0 if data.K.x.window else size * n * (m + 1)
            return (
                rest + stored + 3 * size * min(n * m, CHUNK) + 8 * m * (4 * m + 3 * family.problems) + 8 * POOL * m * m
            )

        given = isinstance(self.n_landmarks, Integral)
        m = min(int(self.n_landmarks or MOST_LANDMARKS), n)
        if not isinstance(self.landmarks, str):
            m, given = (np.shape(self.landmarks) or (1,))[0], True
        while not given and m > 100 and need(m) > report.room:
            m = int(0.8 * m)
        do = "lower n_landmarks=" if given else "fewer rows"
        chosen = pool_rows(data.K.astype(data.K.x.dtype), POOL * m)
        features = data.K.astype(np.float64 if wide else np.float32).copies_of(n, m)
        report.memory_rows += max(chosen, features) + data.K.x.nbytes * m // n - data.K.copies
        report.plan(need(m), f"{type(self).__name__} on {n} rows with {m} landmarks", do)
        return m

    def _account_for_landmarks(self, solution: Solution[Any], problem: LinearDualBatch) -> None:
        """Write the solver's outcome into the report; warn of the approximation unless it was requested."""
        report = self.report_
        if solution.status is Status.NOT_FINITE:
            given = f"C={self.C!r} times the weights, which lets numbers overflow"
            raise InvalidInput(message(type(self).__name__, given, "bring C times the mean weight nearer to 1"))
        self.n_iter_ = solution.state.place[:, 2].astype(np.int32)
        if not hasattr(self, "classes_"):
            self.n_iter_ = int(self.n_iter_[0])
        self.fit_status_ = 0 if solution.converged else 1
        self._account(report, solution, GAP * self._checked_number("tol"))
        report.notes.append("the residual is the largest gap of primal and dual objective, relative to the primal")
        if self.solver == "auto":
            given = f"{report.reason}, so f is restricted to {counted(len(self.X_fit_), 'landmark')}, an approximation"
            do = 'compare other n_landmarks=, or set solver="exact"'
            report.warnings.append(message(type(self).__name__, given, do))
            warn(report.warnings[-1], ConvergenceWarning)
