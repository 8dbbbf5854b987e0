"""The base of all estimators: a kernel, a memory budget, validated rows, and a report."""

from __future__ import annotations

from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from mercer.approx.landmarks import are_numbers
from mercer.atomic import Atomic
from mercer.engine.backend import stand_in
from mercer.errors import ConvergenceWarning, InvalidInput, MercerError, message, warn
from mercer.estimators.base.advice import advice, left_to_default, outweighing_column
from mercer.estimators.base.elsewhere import Elsewhere
from mercer.estimators.base.expansion import Expansion
from mercer.estimators.base.indefinite import known_values, not_finite, warn_if_indefinite
from mercer.estimators.base.labels import plain_labels
from mercer.estimators.base.parameters import NamedParameters
from mercer.events.callbacks import CalledBack
from mercer.gram import KernelOperator, lost_when_centred
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.conventions import PAIRWISE, Names
from mercer.numerals import shown
from mercer.operators import Dense, Operator
from mercer.points import (
    Points,
    Space,
    apart,
    as_seed,
    count,
    on_host,
    parse_memory,
    require_collection,
    require_table,
    rows_of,
)
from mercer.points.precomputed import asymmetry
from mercer.points.validate import columns_without_numbers
from mercer.schemas import COLUMNS, Check, Schema, Value
from mercer.shards import is_dask, local, sharded, together
from mercer.solvers import Solution, Status
from mercer.solvers.choose import STORED_SHARE
from mercer.ways.report import Report

__all__ = ["KernelEstimator", "KernelSize"]

FLOATS = (np.float64, np.float32)
SMALL_ROUNDING = 1e-6
"""The largest relative residual that is a note, and no warning, where float64 carries no less: of (K + αI) a = y it is
the share of y by which predictions of the training rows are off."""
AGAINST_ROUNDING = "raise {}, or centre and scale columns and rows that are far larger than others"
"""What to do where K is so large beside α that float64 loses the solution."""


@cache
def _flags(estimator: type) -> tuple[str, ...]:
    """The names of the parameters that are true or false by default."""
    parameters = signature(estimator).parameters.values()
    return tuple(one.name for one in parameters if isinstance(one.default, bool))


def _is_float(text: str | bytes) -> bool:
    """Whether Python reads the text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class KernelSize(NamedTuple):
    """tr K, the largest entry of K, and whether float32 can hold the entries and their sums."""

    trace: float
    largest_entry: float
    fits_float32: bool


class KernelEstimator(CalledBack, Atomic, Elsewhere, NamedParameters):
    """scikit-learn's contract for an estimator with a `kernel` and a `memory` budget.

    `kernel` may be a Kernel, a name, an expression as text, or a callable; `kernel__gamma` and the like reach into it
    in grid searches and never change a kernel that somebody else holds.
    """

    fitted: ClassVar[Schema] = COLUMNS + Schema(
        Value("kernel_", Kernel),
        Value("report_", Report, varies=True),
        Check("report_ has entries that no report has", lambda model: model.report_.is_sound()),
    )
    """The fitted attributes, by which models are saved, loaded and checked (see `mercer.schemas`)."""

    kernel: Any
    memory: Any
    kernel_parameters: tuple[str, ...] = ("kernel",)
    """The parameters that are kernels."""
    named_kernels: ClassVar[Names] = PAIRWISE
    """The kernels that scikit-learn's names stand for, with the defaults of the corresponding estimator there."""
    indefinite_meaning: ClassVar[str] = (
        "the method takes its values for inner products of features, which they are not: squared lengths may be "
        "negative"
    )
    """The meaning of a fit with an indefinite kernel; empty if the method needs no definite kernel."""
    centres: ClassVar[bool] = False
    """Whether the output depends on differences of kernel values only; rounding destroys these far from the origin."""

    step_limit: ClassVar[str] = "max_iter"
    penalty: ClassVar[str] = "alpha"
    """The parameters that bound the solver's steps, and that add to the diagonal; an estimator may lack either."""
    early: ClassVar[str] = ""
    """Further advice if the step limit came before the tolerance."""
    tuned: ClassVar[str] = ""
    """The parameter that a search should choose first, or ""."""
    of_classes: ClassVar[str] = ""
    """The estimator to fit to classes instead, of one that is fitted to numbers."""

    # ---- parameters --------------------------------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__name`` replaces the kernel by a copy with that parameter."""
        own = self.kernel_parameters
        inner = {name: params.pop(name) for name in list(params) if name.partition("__")[0] in own and "__" in name}
        super().set_params(**params)
        for which in own:
            change = {name.removeprefix(f"{which}__"): inner[name] for name in inner if name.startswith(f"{which}__")}
            if change:
                setattr(self, which, self._as_kernel(getattr(self, which)).replace(**change))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        space = self._space()
        tags.input_tags.sparse, tags.input_tags.pairwise = space.vectors, space.numbered
        return tags

    @classmethod
    def _as_kernel(cls, given: Any) -> Kernel:
        return as_kernel(given, cls.named_kernels)

    def _space(self) -> Space:
        """The points that the estimator takes: those of its kernel."""
        return self._as_kernel(self.kernel).space

    def _reads_devices(self) -> bool:
        return self._space().vectors

    def _refuse(self, name: str, do: str) -> NoReturn:
        raise InvalidInput(message(type(self).__name__, f"{name}={shown(getattr(self, name))}", do))

    def _checked_number(
        self, name: str, low: float = 0.0, high: float = np.inf, *, or_equal: bool = False, otherwise: str = ""
    ) -> float:
        """The parameter as a float: low < value ≤ high, or low ≤ value; never infinite."""
        value = getattr(self, name)
        number = isinstance(value, Real) and not isinstance(value, bool)
        if number and (low < value or (or_equal and low == value)) and value <= high and value < np.inf:
            return float(value)
        do = f"give a number {'≥' if or_equal else '>'} {low:g}" + (f" and ≤ {high:g}" if high < np.inf else "")
        self._refuse(name, self._kernel_instead(name) or do + otherwise)

    def _checked_count(self, name: str, otherwise: str = "") -> int:
        """The parameter as a whole number ≥ 1."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
            self._refuse(name, self._kernel_instead(name) or f"give a positive integer{otherwise}")
        return int(value)

    def _kernel_instead(self, name: str) -> str:
        """Advice for a kernel that was given first, where the first parameter is a number."""
        value = getattr(self, name)
        if not hasattr(self, "kernel") or not isinstance(value, str | Kernel) or _is_float(str(value)):
            return ""
        try:
            as_kernel(value)
        except MercerError:
            return ""
        return f"write kernel={value!r}; {name} is a number"

    def _count_or_none(self, name: str) -> int | None:
        """The parameter as a whole number ≥ 1, or None."""
        return None if getattr(self, name) is None else self._checked_count(name, ", or None")

    def _checked_choice(self, name: str, *options: str) -> str:
        """The parameter, if it is one of these options."""
        value = getattr(self, name)
        if not isinstance(value, str) or value not in options:
            *others, last = (f'"{option}"' for option in options)
            self._refuse(name, f"choose {', '.join(others)} or {last}")
        return value

    def _check_flags(self) -> None:
        """Refuse a text for a parameter that is true or false: "False" would be true."""
        own: Any = type(self)
        for name in _flags(own):
            if isinstance(getattr(self, name), str):
                self._refuse(name, "give True or False")

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, **options: Any) -> Any:
        """The rows of a fit; the kernel validates input that is not a table."""
        if self._space().objects:
            return self._objects(X, options.get("reset", True))
        X = self._numbers(X, **options)
        if self._space().numbered:
            self._check_precomputed(X)
        return X

    def _validate_both(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """The rows and the targets of a fit."""
        if y is not None:
            require_collection(y, f"{type(self).__name__}, y")
        if y is not None and options.get("y_numeric"):
            self._refuse_texts(y)
        elif y is not None:
            y = plain_labels(y, type(self).__name__)
        if self._space().objects:
            return self._with_targets(self._objects(X, options.get("reset", True)), y, options)
        X, y = self._numbers(X, y, **options)
        if self._space().numbered:
            self._check_precomputed(X)
        return X, y

    def _refuse_texts(self, y: Any) -> None:
        """Refuse targets that are texts or None; what else may be wrong with them is scikit-learn's to say.

        It takes None for a number, and makes it NaN.
        """
        if (kind := getattr(getattr(y, "dtype", None), "kind", "")) == "" and not is_dask(y):
            kind = "O" if isinstance(y, list | tuple) else np.asarray(y).dtype.kind  # of a data frame
        if kind in ("m", "M"):
            do = "give numbers, such as days: (y - y.min()) / np.timedelta64(1, 'D')"
            raise InvalidInput(message(type(self).__name__, f"y has {'dates' if kind == 'M' else 'times'}", do))
        if kind not in "OUST" or is_dask(y):
            return
        try:
            missing = np.isnan(np.asarray(y).astype(np.float64)).any()
        except (ValueError, TypeError) as error:
            if "could not convert string" not in str(error):
                return
            texts = (one for one in np.asarray(y).ravel().tolist() if isinstance(one, str | bytes))
            text = next((one for one in texts if not _is_float(one)), "")
            do = f"give numbers, or fit {self.of_classes} to classes" if self.of_classes else "give numbers"
            given = f"y has the text {text[:40]!r}, which is no number"
            raise InvalidInput(message(type(self).__name__, given, do)) from error
        if missing and any(one is None for one in np.asarray(y).ravel().tolist()):
            do = "leave such rows out, or give their values"
            raise InvalidInput(message(type(self).__name__, "Input y contains NaN: it has None", do))

    def _numbers(self, *data: Any, **options: Any) -> Any:
        """A table of numbers, and targets, as scikit-learn checks them."""
        if is_dask(data[0]):
            return self._of_dask(*data, **options)
        if isinstance(data[0], Points):
            return self._of_points(*data, **options)
        data = tuple(on_host(one, type(self).__name__) for one in data)
        require_table(data[0], type(self).__name__)
        try:
            return validate_data(self, *data, accept_sparse="csr", dtype=FLOATS, order="C", **options)
        except (ValueError, TypeError) as error:
            if "array element with a sequence" in str(error):
                do = "give rows of equal length, all of numbers, or a kernel of such objects"
                raise InvalidInput(message(type(self).__name__, "objects that are not numbers", do)) from error
            odd, table = columns_without_numbers(data[0]), "mercer.table_kernel(df) for a data frame"
            if (not odd or "Input y" in str(error)) and "could not convert string" not in str(error):
                raise
            given = odd or f"text, which {self.kernel!r} has no value for"
            do = f"choose a kernel of sequences, such as 'spectrum(k=3)', or {table}"
            do = f"choose {table}, or encode them (scikit-learn's OneHotEncoder)" if odd else do
            raise InvalidInput(message(type(self).__name__, given, do)) from error

    def _of_points(self, points: Points, *targets: Any, reset: bool = True, **options: Any) -> Any:
        """The rows of points, which check themselves, and targets."""
        from mercer.points.disk import header

        points = points.within(self.memory if hasattr(self, "memory") else None).readable(type(self).__name__)
        rows = self._space().points(points, type(self).__name__, self._as_objects).rows
        named = header(points.names) if points.names else rows  # scikit-learn reads names from data frames
        validate_data(self, named, reset=reset, skip_check_array=True)
        return self._with_targets(rows, targets[0], options) if targets else rows

    def _of_dask(self, X: Any, *targets: Any, reset: bool = True, **options: Any) -> Any:
        """The rows of Dask's data, held by workers if there is a client and the kernel takes vectors, and targets."""
        X, *given = together(X, *targets)
        data = sharded(X, type(self).__name__) if self._space().vectors else local(X)
        given = [*map(local, given)]
        if not options.get("y_numeric"):
            given = [plain_labels(one, type(self).__name__) for one in given]
        found = self._numbers(data, *given, reset=reset, **options)
        if isinstance(data, Points) and hasattr(X, "to_dask_array"):  # a data frame, whose columns have names
            validate_data(self, X._meta, reset=reset, skip_check_array=True)
        return found

    def _with_targets(self, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """The rows, and the checked targets."""
        wanted = {name: options[name] for name in ("multi_output", "y_numeric") if name in options}
        y = _check_y(y, **wanted, estimator=self)
        check_consistent_length(X, y)
        return X, y

    def _objects(self, X: Any, reset: bool) -> Any:
        """Objects as the kernel reads them. Rows of which it reads columns have those of the fit, in their order."""
        found = self._as_objects(X)
        if self._reads_columns():
            validate_data(self, rows_of(local(X)), reset=reset, skip_check_array=True)
        return found

    def _reads_columns(self) -> bool:
        """Whether the kernel reads objects in some columns of the rows."""
        return self._as_kernel(self.kernel).of_mixed_rows

    def _as_objects(self, X: Any) -> Any:
        """Input that is not a table of numbers, in the form that the kernel reads."""
        return self._as_kernel(self.kernel).as_objects(rows_of(local(X)))

    def _check_precomputed(self, K: Any) -> None:
        """A precomputed matrix must be a kernel's: square and symmetric. Its definiteness is the solver's to find."""
        if K.shape[0] != K.shape[1]:
            given = f"a precomputed kernel matrix of shape {K.shape}"
            raise InvalidInput(message(type(self).__name__, given, "give k(X, X): it must be a square matrix"))
        if (found := asymmetry(K)) > 1e-5 * max(float(K.max()), -float(K.min())):
            given = f"a precomputed kernel matrix with |K − Kᵀ| up to {found:.1e}"
            raise InvalidInput(message(type(self).__name__, given, "symmetrise it: (K + K.T) / 2"))

    def _validate_new(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._space().objects:
            return self._objects(X, reset=False)
        return self._numbers(X, reset=False)

    def _weights(self, sample_weight: Any, X: Any) -> np.ndarray | None:
        """Positive weights in float64, or None if all are 1."""
        if sample_weight is None:
            return None
        rows = np.empty((count(X), 1))
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        if not np.any(weights > 0):
            raise InvalidInput(message(type(self).__name__, "sample weights that are all zero", "give a positive one"))
        return weights

    def _with_weight(
        self, X: Any, Y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows of positive weight, their targets and their weights."""
        if weights is None or np.all(weights > 0):
            return X, Y, weights
        keep = np.flatnonzero(weights > 0)
        if self._space().numbered:
            given = "zero sample weights with a precomputed kernel"
            raise InvalidInput(message(type(self).__name__, given, "leave these rows and columns out of the matrix"))
        if are_numbers(getattr(self, "landmarks", "")) and self._may_be_restricted(len(keep)):
            given = "zero sample weights with landmarks given by their numbers"
            raise InvalidInput(message(type(self).__name__, given, "leave these rows out, and count the others"))
        return self._space().of(X).among(keep).rows, Y[keep], weights[keep]

    def _may_be_restricted(self, n: int) -> bool:
        """Whether a fit of n rows is one on landmarks."""
        from mercer.ways.nystroem_ridge import EVALUATION, too_dear  # with what it imports: few fits need it

        solver, work = getattr(self, "solver", ""), float(n) * n * (getattr(self, "n_features_in_", 0) + EVALUATION)
        return solver == "nystroem" or (solver == "auto" and bool(too_dear(work, self._as_kernel(self.kernel))))

    # ---- kernel ------------------------------------------------------------------------------------------------------

    def _begin(self, X: Any, weights: np.ndarray | None = None, kernel: Any = None) -> tuple[KernelOperator, Report]:
        """The kernel (the estimator's own, unless given) resolved on the rows, its operator, and an empty report."""
        self._check_flags()
        names = getattr(self, "feature_names_in_", None)
        given = self.kernel if kernel is None else kernel
        chosen = self._as_kernel(given)
        self.kernel_: Kernel = chosen.resolve(X, names, weights)
        K = KernelOperator(self.kernel_, X, dtype=np.float64)
        self.X_fit_ = K.x.anchors().rows
        report = Report(
            estimator=type(self).__name__,
            kernel=repr(self.kernel_),
            n=K.shape[0],
            d=int(getattr(self, "n_features_in_", 0)),
            dtype=str(K.x.dtype),
            definiteness=self.kernel_.properties.definiteness.name.lower().replace("_", " "),
            memory_budget=parse_memory(self.memory),
            memory_rows=K.copies,
            reading=K.x.reading,
        )
        report.notes += [stand_in()] if stand_in() else []
        if self.tuned:
            report.notes += left_to_default(self, self.tuned)
        report.notes += outweighing_column(chosen, K.x, names)
        if self.indefinite_meaning:
            warn_if_indefinite(K, type(self).__name__, self.indefinite_meaning, report)
        self._warn_if_lost(K, report)
        return K, report

    def _warn_if_lost(self, K: KernelOperator, report: Report) -> None:
        """Warn if centred kernel values are rounding, and the output depends on these."""
        lost = lost_when_centred(K, type(self).__name__) if self.centres else None
        if lost:
            report.warnings.append(lost)
            warn(lost)

    def _kernel_size(self, K: KernelOperator, numbers: np.ndarray | None = None) -> KernelSize:
        """The size of the entries, from the diagonal, which bounds the rest of a Mercer kernel's matrix.

        `numbers` are those of K's rows in the data as given, for the error if an entry is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = np.asarray(K.diagonal(), np.float64)
        if not np.all(np.isfinite(diagonal)):
            raise not_finite(K, type(self).__name__, "standardise the columns, or lower the degree", numbers)
        top = float(np.abs(diagonal).max())
        return KernelSize(float(diagonal.sum()), top, top < 1e30 and K.fits_float32)

    def _in_memory(
        self, K: KernelOperator, held: int, report: Report, fewer: str | list[str], *, products: bool = True
    ) -> Operator:
        """K stored in float64 if it fits beside `held` bytes, because every step reads it; else K as it is.

        So it is if each step takes a product, not rows of K, and that takes fewer operations than reading K. The plan
        comes before the allocation. `report.method` gets which of the two it is.
        """
        n = K.shape[0]
        stored, most = 8 * n * n, int(STORED_SHARE * report.room)
        narrow = products and K.is_narrow
        kept = stored <= most and stored + held <= report.room and not narrow
        report.plan(held + stored * kept, f"{type(self).__name__} of {n} rows", fewer)
        report.precision = "float64"
        takes, room = apart(stored, most)
        report.method += f", stored ({takes})" if kept else ", matrix-free"
        report.reason = f"the matrix takes {takes}, {room} may be taken"
        if narrow:
            report.reason = "K is a product of matrices with fewer numbers"
        if not kept:
            return K
        with report.stage("kernel matrix"):
            return Dense(K.fill(np.empty(K.shape, np.float64)), symmetric=True)

    def _require_history(self, what: str) -> None:
        """Refuse `what`, a method that goes through `history_`, of a model that kept none."""
        check_is_fitted(self)
        if not hasattr(self, "history_"):
            given, do = f"{what} without a history", "set keep_history=True before fit"
            raise InvalidInput(message(type(self).__name__, given, do))

    def _seed(self) -> int:
        """`random_state` if it is a whole number, else a number drawn from the generator that it names."""
        return as_seed(getattr(self, "random_state", None), type(self).__name__)

    def _expansion(self) -> Expansion | None:
        """The outputs as kernel expansions over `X_fit_`, for `explain`; None if they are not such sums."""
        return None

    def _cross(self, X: Any) -> KernelOperator:
        """k(new row, training row) as an operator.

        Its entries are in float64, as those of the fit: coefficients may be much larger than their sum, by
        residual/λ for instance, and multiply the rounding of the entries.
        """
        rows = self._validate_new(X)
        return KernelOperator(self.kernel_, rows, self.X_fit_, dtype=np.float64)

    def _expanded(self, X: Any, coefficients: str = "dual_coef_") -> np.ndarray:
        """Σⱼ αⱼ k(x, xⱼ) of new rows, α the attribute of that name; what overflows is refused."""
        K = self._cross(X)
        return known_values(np.asarray(K @ getattr(self, coefficients)), K, type(self).__name__)

    def _advice(self, status: Status) -> str:
        """The meaning of the status, and the parameters to change."""
        more = self.early if status is Status.MAX_STEPS else ""
        return advice(status, self.get_params(deep=False), self.step_limit, self.penalty) + more

    def _account(self, report: Report, solution: Solution[Any], tolerance: float, rounding: float = 0.0) -> None:
        """Write the solver's outcome into the report; warn if the residual is above both the tolerance and rounding."""
        report.steps, report.residual = solution.steps, float(solution.residual)
        report.tolerance, report.status = tolerance, solution.status.name.lower().replace("_", " ")
        if not solution.converged and report.residual <= min(rounding, SMALL_ROUNDING):
            report.status = "converged to rounding"
            report.notes.append(
                f"float64 carries a residual of {report.residual:.1e}, no less: the system is large or nearly singular"
            )
        elif not solution.converged:
            why, do = f"not {tolerance:.0e}", self._advice(solution.status)
            if report.residual <= rounding:
                why = f"and float64 carries no less: K is too large beside {self.penalty}"
                do = AGAINST_ROUNDING.format(self.penalty)
            given = f"{report.method} ended with a relative residual of {report.residual:.1e}, {why}"
            report.warnings.append(message(type(self).__name__, given, do))
            warn(report.warnings[-1], ConvergenceWarning)
