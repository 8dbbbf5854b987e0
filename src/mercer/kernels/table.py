"""A kernel on the rows of a data frame: one kernel for each kind of column, multiplied or added."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.kernels.base import Array, Kernel
from mercer.kernels.names import as_kernel
from mercer.kernels.properties import Properties
from mercer.kernels.sequences import GappedKmer
from mercer.kernels.table_plans import YEAR, SeasonPlan, TextPlan
from mercer.kernels.vectors.products import Cosine
from mercer.kernels.vectors.stationary import Gaussian, Periodic
from mercer.numerals import counted
from mercer.points import OBJECTS, Space, as_seed, rows_of
from mercer.tables.columns import ColumnPlan, as_frame, as_numbers, plan_column
from mercer.tables.texts import PERCENT

__all__ = ["SeasonPlan", "TableKernel", "TablePart", "TextPlan", "table_kernel"]

Floats = NDArray[np.float64]


PLANS = (ColumnPlan, TextPlan, SeasonPlan)


@dataclass(frozen=True)
class TablePart:
    """Some columns of a table, the plans that encode them as numbers, and the kernel on these numbers.

    Parameters
    ----------
    name : str
    plans : tuple of ColumnPlan, TextPlan or SeasonPlan
    kernel : Kernel

    Raises
    ------
    InvalidInput
        If a field has another type.

    Examples
    --------
    >>> TablePart("kind", (ColumnPlan("kind", "category", categories=("a", "b")),), Gaussian(0.25))
    kind: Gaussian(gamma=0.25)
    """

    name: str
    plans: tuple[Any, ...]
    kernel: Kernel

    def __post_init__(self) -> None:
        planned = isinstance(self.plans, tuple | list) and all(isinstance(one, PLANS) for one in self.plans)
        if not (isinstance(self.name, str) and planned and self.plans and isinstance(self.kernel, Kernel)):
            given = f"name={self.name!r:.40}, plans={self.plans!r:.60}, kernel={self.kernel!r:.60}"
            raise InvalidInput(message("TablePart", given, "give a name, a tuple of plans of columns, and a kernel"))

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the data frame."""
        return [plan.name for plan in self.plans]

    @property
    def features(self) -> list[str]:
        """The names of the columns of numbers."""
        return [feature for plan in self.plans for feature in plan.features]

    def with_kernel(self, kernel: Kernel) -> TablePart:
        """The part with another kernel; a kernel of sequences reads the column as texts, any other as numbers."""
        if kernel._of_objects() == any(getattr(plan, "of_objects", False) for plan in self.plans):
            return replace(self, kernel=kernel)
        if len(self.columns) > 1:
            given = f"{kernel!r} for the part {self.name!r} of {counted(len(self.columns), 'column')}"
            raise InvalidInput(message("TableKernel", given, "a kernel of sequences reads one column of texts"))
        name = self.columns[0]
        plan = ColumnPlan(name, "text") if kernel._of_objects() else TextPlan(name)
        return TablePart(self.name, (plan,), kernel)

    def __repr__(self) -> str:
        own = "" if self.columns == [self.name] else f" ({', '.join(self.columns)})"
        return f"{self.name}{own}: {self.kernel!r}"


@dataclass(frozen=True, repr=False)
class TableKernel(Kernel):
    """k(x, z) = Πₚ kₚ(x, z), or Σₚ kₚ(x, z): the product or the sum of a kernel for each part of a table's columns.

    It takes data frames (pandas or polars) and finds their columns by name. Rows are encoded once as numbers, and
    texts for kernels of sequences; then `vector_kernel` computes all values. `table_kernel` makes a kernel that suits a
    data frame.

    Parameters
    ----------
    parts : tuple of TablePart
    combine : "product" or "sum"
        A product is large for rows that are similar in all parts, a sum for rows that are similar in some.

    Raises
    ------
    InvalidInput
        If there is no part, or `combine` is something else.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "kind": ["a", "b", "a"]})
    >>> kernel = table_kernel(frame)
    >>> print(kernel)
    the product of
      numbers (size): Gaussian(gamma=0.194444)
      kind: Gaussian(gamma=0.25)
    >>> kernel.with_part("kind", "0.5*gaussian(gamma=1.0) + 0.5").without("numbers")(frame).round(3)
    array([[1.   , 0.568, 1.   ],
           [0.568, 1.   , 0.568],
           [1.   , 0.568, 1.   ]])
    """

    parts: tuple[TablePart, ...]
    combine: str = "product"

    def __post_init__(self) -> None:
        self._set("parts", tuple(self.parts))
        if not self.parts or self.combine not in ("product", "sum"):
            given = f"{len(self.parts)} parts and combine={self.combine!r}"
            raise InvalidInput(message("TableKernel", given, 'keep at least one part, and choose "product" or "sum"'))
        if strange := [part for part in self.parts if not isinstance(part, TablePart)]:
            raise InvalidInput(message("TableKernel", f"the part {strange[0]!r:.60}", "give parts of type TablePart"))

    # ---- variants ----------------------------------------------------------------------------------------------------

    def with_part(self, name: str, kernel: Kernel | str) -> Self:
        """A copy with another kernel for a part, on the same columns; a kernel of sequences reads texts."""
        at, own = self._index(name), as_kernel(kernel)
        if not own.is_resolved:
            self._refuse_unresolved_part(at, own)
        if own.space.numbered:
            given = f"{own!r} for the part {name!r}"
            do = "give a kernel of vectors or of sequences with numbers for its parameters"
            raise InvalidInput(message("TableKernel", given, do))
        parts = [part.with_kernel(own) if i == at else part for i, part in enumerate(self.parts)]
        return replace(self, parts=tuple(parts))

    def _refuse_unresolved_part(self, at: int, kernel: Kernel) -> NoReturn:
        part = self.parts[at]
        parameter, instead = kernel._unresolved()
        given = f"{kernel!r} for the part {part.name!r} has parameters that depend on data, {parameter}"
        do = f"give {instead}"
        if kernel._of_objects():
            do += f", or the kernel's .resolve(frame[{part.columns[0]!r}])"
        else:
            do += ", because a part takes a kernel with numbers for its parameters"
        raise InvalidInput(message("TableKernel", given, do))

    def without(self, *names: str) -> Self:
        """A copy without these parts."""
        gone = {self._index(name) for name in names}
        return replace(self, parts=tuple(part for i, part in enumerate(self.parts) if i not in gone))

    def combined_by(self, combine: Literal["product", "sum"]) -> Self:
        """A copy that is the product or the sum of the same parts."""
        return replace(self, combine=combine)

    def _index(self, name: str) -> int:
        names = [part.name for part in self.parts]
        if name not in names:
            raise InvalidInput(message("TableKernel", f"no part {name!r}", f"the parts are {', '.join(names)}"))
        return names.index(name)

    # ---- values ------------------------------------------------------------------------------------------------------

    def rows(self, frame: Any) -> Any:
        """The encoded rows of a data frame: numbers, and texts for kernels of sequences. Encoded rows are returned."""
        frame = rows_of(frame)
        if isinstance(frame, np.ndarray) and frame.dtype.kind in "fO":
            if frame.ndim == 2 and frame.shape[1] == len(self.features):
                return frame
            given = f"an array of shape {frame.shape}"
            raise InvalidInput(message("TableKernel", given, "give a data frame with the columns of the kernel"))
        frame = as_frame(frame, "TableKernel")
        plans = [plan for part in self.parts for plan in part.plans]
        absent = sorted({plan.name for plan in plans} - set(frame.columns))
        if absent:
            advice = "give a table with the columns of the kernel, in any order"
            raise InvalidInput(message("TableKernel", f"no column {', '.join(map(repr, absent[:5]))}", advice))
        return np.ascontiguousarray(np.hstack([plan.encode(frame[plan.name]) for plan in plans]))

    @property
    def features(self) -> list[str]:
        """The names of the columns of the encoded rows."""
        return [feature for part in self.parts for feature in part.features]

    @cached_property
    def vector_kernel(self) -> Kernel:
        """The kernel of the encoded rows."""
        total: Kernel | None = None
        start = 0
        for part in self.parts:
            width = len(part.features)
            own = part.kernel.on(range(start, start + width))
            start += width
            total = own if total is None else total * own if self.combine == "product" else total + own
        assert total is not None
        return total

    def prepared(self, X: Array, Z: Array | None) -> tuple[Kernel, Array, Array | None]:
        return self.vector_kernel, self.rows(X), None if Z is None else self.rows(Z)

    def as_objects(self, X: Array) -> Array:
        kernel = self.vector_kernel
        return kernel.space.points(self.rows(X), "TableKernel", kernel.as_objects).rows

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        kernel, rows, others = self.prepared(X, None if Z is X else Z)
        return kernel(rows, others)

    def block(self, X: Array, Z: Array) -> Array:
        rows = self.rows(X)
        return self.vector_kernel.block(rows, rows if Z is X else self.rows(Z))

    def diagonal(self, X: Array) -> Array:
        return self.vector_kernel.diagonal(self.rows(X))

    @property
    def space(self) -> Space:
        return OBJECTS

    @property
    def properties(self) -> Properties:
        return self.vector_kernel.properties

    def __str__(self) -> str:
        return "\n".join([f"the {self.combine} of", *(f"  {part!r}" for part in self.parts)])

    def __repr__(self) -> str:
        mark = " × " if self.combine == "product" else " + "
        return f"TableKernel({mark.join(map(repr, self.parts))})"


# ---- the choice of parts ---------------------------------------------------------------------------------------------


def table_kernel(
    frame: Any,
    *,
    combine: Literal["product", "sum"] = "product",
    text: Iterable[str] = (),
    ignore: Iterable[str] = (),
    max_categories: int = 20,
    random_state: Any = 0,
) -> TableKernel:
    """A kernel for the rows of a data frame, with a part for each kind of column.

    * All numbers, with true and false: a Gaussian on standardised columns, whose bandwidth is the median heuristic's.
      Skewed columns become their logarithms. Missing values become the median, with an indicator column for them. A
      column of texts of which at least 95 % are numbers is a column of numbers, and its other texts count as missing;
      a new text among rows to predict is refused with its column and row.
    * Each column of categories: a Gaussian on indicators, so that two different categories have the value e^(−2γ). A
      missing value is a category, all rare categories are one, and so are categories that the training rows do not
      have. γ gives the median number of mismatches the same weight as the median distance of the numbers.
    * Dates are numbers; if they span a year, a further part is ½ + ½ of a periodic kernel of the time of the year.
    * Texts that are nearly all different: ½ + ½ of the cosine of their counts of three consecutive letters.
    * Sequences of nucleotides or of amino acids: ½ + ½ of a normalised kernel of k-mers with gaps. For another kernel
      of sequences on a column of texts write ``table_kernel(df).with_part("seq", Spectrum(5))``.
    * Constant columns, and columns without values, are ignored.

    Parameters
    ----------
    frame : pandas or polars data frame
        Training rows, without the target.
    combine : "product" or "sum", default "product"
    text, ignore : names of columns
        Columns to read as text, and columns to ignore.
    max_categories : int, default 20
        The most categories of a column; rarer ones become one category.
    random_state : int, RandomState or None, default 0
        Draws the sample of rows that the median heuristic uses.

    Raises
    ------
    InvalidInput
        If `frame` is not a data frame, or all its columns are ignored. The kernel itself raises it for a data frame
        that lacks one of its columns, or has a text in a column of numbers.

    References
    ----------
    J. Shawe-Taylor, N. Cristianini (2004). Kernel Methods for Pattern Analysis. Cambridge. Chapters 3 (Properties of
    kernels), 9 (Basic kernels and kernel types) and 11 (Kernels for structured data: strings, trees, etc.).

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import KernelRidge
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 4.0], "kind": ["a", "b", "a", None], "same": 1})
    >>> model = KernelRidge(table_kernel(frame), alpha=1e-6).fit(frame, [1.0, 2.0, 3.0, 4.0])
    >>> model.predict(frame).round(2)
    array([1., 2., 3., 4.])
    """
    seed = as_seed(random_state, "table_kernel")
    frame = as_frame(frame, "table_kernel")
    named, ignored = set(text), set(ignore)
    unknown = sorted((named | ignored) - set(frame.columns))
    if unknown:
        given = f"no column {unknown[0]!r}"
        raise InvalidInput(message("table_kernel", given, f"the columns are {', '.join(frame.columns[:20])}"))
    numbers, categories, others = [], [], []
    for name in (column for column in frame.columns if column not in ignored):
        plan = plan_column(name, frame[name], max_categories, 0.01, True)
        if name in named or plan.kind == "text":
            others.append(TablePart(name, (TextPlan(name),), 0.5 * Cosine() + 0.5))
        elif plan.kind == "sequence":
            others.append(TablePart(name, (plan,), 0.5 * _of_letters(plan).normalized() + 0.5))
        elif plan.kind == "category":
            categories.append(plan)
        elif plan.kind != "dropped":
            numbers.append(plan)
            others += _season(plan, frame[name])
    parts = _numbers(numbers, frame, seed) + _categories(categories, frame, seed) + others
    if not parts:
        raise InvalidInput(message("table_kernel", "no column is left", "give columns that vary"))
    return TableKernel(tuple(parts), combine)


def _of_letters(plan: ColumnPlan) -> Kernel:
    """A kernel of k-mers with gaps; they are longer for nucleotides (4 letters) than for amino acids (20)."""
    return GappedKmer(g=8, k=5) if "nucleotides" in plan.said else GappedKmer(g=5, k=3)


def _numbers(plans: list[ColumnPlan], frame: Any, seed: int) -> list[TablePart]:
    if not plans:
        return []
    rows = np.hstack([plan.encode(frame[plan.name]) for plan in plans])
    gamma = Gaussian("median").resolve(rows, random_state=seed).get_params()["gamma"]
    return [TablePart("numbers", tuple(plans), Gaussian(_number(gamma)))]


def _categories(plans: list[ColumnPlan], frame: Any, seed: int) -> list[TablePart]:
    if not plans:
        return []
    rng, n = np.random.default_rng(seed), len(frame)
    i, j = rng.integers(0, n, (2, 2000))
    different = [np.any((codes := plan.encode(frame[plan.name]))[i] != codes[j], axis=1) for plan in plans]
    mismatches = max(1.0, float(np.median(np.sum(different, axis=0)[i != j])) if np.any(i != j) else 1.0)
    return [TablePart(plan.name, (plan,), Gaussian(_number(0.25 / mismatches))) for plan in plans]


def _season(plan: ColumnPlan, values: Any) -> list[TablePart]:
    """A periodic part for dates that span at least a year."""
    if values.dtype.kind != "M" and plan.form in ("", PERCENT):
        return []
    days = as_numbers(values, plan.form)
    known = days[~np.isnan(days)]
    if np.ptp(known) < YEAR:
        return []
    season = SeasonPlan(plan.name, float(np.median(known)), plan.form, plan.categories)
    return [TablePart(f"{plan.name}, season", (season,), 0.5 * Periodic(1.0, 1.0) + 0.5)]


def _number(value: float) -> float:
    """The value in six digits, so that the kernel's text is short."""
    return float(f"{value:.6g}") if math.isfinite(value) else value
