"""The encoder of data frames as rows of numbers, with a summary of the encoding of each column."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.atomic import Atomic
from mercer.errors import InvalidInput, message
from mercer.mixins import BaseEstimator, TransformerMixin
from mercer.numerals import counted
from mercer.schemas import Array, Check, Count, Schema, Texts, Value
from mercer.tables.columns import (
    OBJECTS,
    ColumnPlan,
    as_frame,
    as_numbers,
    as_text,
    dropped,
    odd_texts,
    plan_column,
    plan_of,
    plan_text,
)
from mercer.tables.numbers import (
    LARGEST,
    MISSING,
    NumberPlan,
    encode_numbers,
    number_columns,
    number_runs,
    plan_numbers,
)
from mercer.tables.texts import PERCENT, near_names

__all__ = ["TableEncoder"]

AS_TEXT = ("category", *OBJECTS)
"""The kinds of columns whose values are not read as numbers, though all of a table may look like such."""


class TableEncoder(Atomic, TransformerMixin, BaseEstimator):
    """Columns by name ↦ a float64 matrix: numbers standardised, categories one-hot, missing values filled in.

    * Numbers: z = (x − mean)/std, with missing and infinite values replaced by the median. A column skewed to the right
      is first replaced by log(1 + (x − min)/(median − min)) if that is less skewed. Constant columns are dropped.
    * True and false, and columns of 0 and 1 only: 0 and 1, with missing values replaced by the more frequent one.
    * Text and categories: one 0/1 column for each of up to `max_categories` categories. Rarer ones are pooled as
      "other", together with those that `fit` has not seen (all zeros if nothing was pooled). Missing values are a
      category of their own. Text that is nearly all numbers, percentages or dates (ISO, or in an unambiguous form) is
      read as numbers; dates are days.
    * Sequences (of nucleotides or amino acids), and text with nearly all values distinct, are dropped. With `keep_text`
      they are kept as objects, in columns after those of numbers, for kernels on objects (`Kernel.on`).
    * In a column of numbers, empty texts, NA, N/A, NaN, null, None and ? are missing, and so are texts that occurred
      among the numbers at the fit. `transform` refuses any other text, and names its column and row.
    * A 0/1 column indicates missing numbers, if at least the share `missing_indicator` of the rows miss them.

    Parameters
    ----------
    max_categories : int
        Most categories of a column, including "other".
    missing_indicator : float
        The least share of missing values for an indicator column.
    log_skewed : bool
        Whether skewed columns are replaced by their logarithm.
    keep_text : bool
        Whether columns of text and of sequences are kept. `transform` then returns an array of objects if there are
        any.
    text : tuple of str
        Columns that `keep_text` keeps as text, whatever their values.

    Attributes
    ----------
    columns_ : list of str
        The columns that `transform` needs, by name, in any order.
    kinds_, flags_, forms_, marks_ : lists of str
        For each of these columns the kind, the flag and the form of its `ColumnPlan`, and how its numbers were written
        (`Table.marks`).
    target_mark_ : str
        How the numbers of the target were written, if `knowing` was told; otherwise empty.
    target_form_ : str
        The form of the target's dates, "" for numbers; only if `knowing` was told.
    numbers_ : array of shape (columns, 5)
    categories_ : list of lists of str
    feature_names_out_ : list of str
        The names of the columns of the matrix.
    summary_ : list of str
        The encoding of each column in words.

    Raises
    ------
    InvalidInput
        If `max_categories` is below 2, or no column varies.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, None, 3.0], "kind": ["a", "b", "a", None], "same": 5})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.feature_names_out_
    ['size', 'size is missing', 'kind=a', 'kind=b', 'kind is missing']
    >>> encoder.transform(pd.DataFrame({"kind": ["b"], "size": [2.0]}))
    array([[0., 0., 0., 1., 0.]])
    """

    fitted: ClassVar[Schema] = Schema(
        Count("n_features_in_", "columns"),
        Texts("columns_", "columns"),
        Texts("kinds_", "columns"),
        Array("numbers_", "columns 5"),
        Texts("categories_", "columns", of_lists=True),
        Texts("flags_", "columns"),
        Texts("forms_", "columns", optional=True),
        Texts("marks_", "columns", optional=True),
        Value("target_mark_", str, optional=True),  # not in older files
        Value("target_form_", str, optional=True),
        Texts("feature_names_out_", "features"),
        Texts("summary_", "sentences"),
        Check("its columns are not those of a fit", lambda encoder: encoder._is_sound()),
    )

    def __init__(
        self,
        max_categories: int = 20,
        missing_indicator: float = 0.01,
        log_skewed: bool = True,
        keep_text: bool = False,
        text: tuple[str, ...] = (),
    ) -> None:
        self.max_categories = max_categories
        self.missing_indicator = missing_indicator
        self.log_skewed = log_skewed
        self.keep_text = keep_text
        self.text = text

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Choose an encoding for each column of a data frame; y is ignored."""
        if self.max_categories < 2:
            raise InvalidInput(message("TableEncoder", f"max_categories={self.max_categories}", "give 2 or more"))
        frame = as_frame(frame, "TableEncoder")
        plans = [dropped(plan) if plan.of_objects and not self.keep_text else plan for plan in self._planned(frame)]
        kept = sorted((plan for plan in plans if plan.kind != "dropped"), key=lambda plan: plan.of_objects)
        if not kept:
            reasons = "; ".join(_grouped(plans))
            raise InvalidInput(message("TableEncoder", f"no column is left ({reasons})", "give columns that vary"))
        self._keep(kept)
        self.summary_ = _grouped(plans)
        return self

    def without(self, *names: str, why: str = "not used by the kernel") -> Self:
        """A fitted copy without these columns; its summary gives the reason."""
        kept = [plan for plan in self._plans() if plan.name not in names]
        if not kept:
            raise InvalidInput(message("TableEncoder", "no column is left", "leave fewer out"))
        copy = type(self)(**self.get_params())
        copy._keep(kept, self._marks, self._target_mark)
        if hasattr(self, "target_form_"):
            copy.target_form_ = self.target_form_
        copy.summary_ = [*self.summary_, f"{_some(list(names))}: {why}"]
        return copy

    def with_features(self, *features: str) -> Self:
        """A fitted copy with only the columns that these features (of `feature_names_out_`) come from."""
        unused = [plan.name for plan in self._plans() if not set(plan.features) & set(features)]
        return self.without(*unused) if unused else self

    def knowing(
        self, frame: Any, marks: Mapping[str, str] = MappingProxyType({}), target: str = "", form: str | None = None
    ) -> Self:
        """A fitted copy for which a data frame's texts among numbers and dates mean missing values, as the fit's do.

        `marks` are those of the table (`Table.marks`), to read later tables by, and `target` names the column in it
        that is predicted, whose mark is kept too, and with it the `form` of its dates, "" if it is numbers.

        >>> import pandas as pd
        >>> encoder = TableEncoder().fit(pd.DataFrame({"size": ["1", "2", "4"]}))
        >>> encoder.knowing(pd.DataFrame({"size": ["3", "many"]})).summary_[-1]
        "size: 'many' as missing, too"
        """
        frame, where, plain = self._found(frame)
        copy = type(self)(**self.get_params())
        copy._keep(self._plans(), self._marks | dict(marks), marks.get(target, self._target_mark))
        if form is not None:
            copy.target_form_ = form
        copy.summary_ = [*self.summary_]
        read = np.isin(self.kinds_, ["number", "flag"]) & ~plain
        for place in np.flatnonzero(read).tolist():
            odd = odd_texts(frame.iloc[:, where[place]], self._plans()[place].form)
            new = [text for text in odd if text not in self.categories_[place]]
            copy.categories_[place] += new
            if new:
                copy.summary_.append(f"{self.columns_[place]}: {', '.join(map(repr, new[:3]))} as missing, too")
        return copy

    def _planned(self, frame: Any) -> list[ColumnPlan]:
        """The plan of each column, those of numbers many at a time."""
        names, rules = frame.columns.tolist(), (self.missing_indicator, self.log_skewed)
        numbers = number_columns(frame.dtypes) & ~np.isin(names, self.text)
        found: dict[int, ColumnPlan] = {}
        for places, X in number_runs(frame, numbers):
            plans = zip(places.tolist(), plan_numbers(X, *rules), strict=True)
            found |= {place: plan_of(names[place], _exactly(plan, frame, place)) for place, plan in plans}
        others = np.flatnonzero(~numbers)
        for place, (name, values) in zip(others.tolist(), frame.iloc[:, others].items(), strict=True):
            read = name in self.text
            found[place] = plan_text(name, values) if read else plan_column(name, values, self.max_categories, *rules)
        return [found[place] for place in range(len(names))]

    def _keep(
        self, kept: list[ColumnPlan], marks: Mapping[str, str] = MappingProxyType({}), target_mark: str = ""
    ) -> None:
        self.marks_ = [marks.get(plan.name, "") for plan in kept]
        self.target_mark_ = target_mark
        self.columns_ = [plan.name for plan in kept]
        self.kinds_ = [plan.kind for plan in kept]
        self.numbers_: NDArray[np.float64] = np.array([plan.numbers for plan in kept])
        self.categories_ = [list(plan.categories) for plan in kept]
        self.flags_ = [plan.flag for plan in kept]
        self.feature_names_out_ = [feature for plan in kept for feature in plan.features]
        self.forms_ = [plan.form for plan in kept]
        self.n_features_in_ = len(kept)

    @property
    def _marks(self) -> dict[str, str]:
        return dict(zip(self.columns_, getattr(self, "marks_", ()), strict=False))  # older models have none

    @property
    def _target_mark(self) -> str:
        return getattr(self, "target_mark_", "")  # older models have none

    @property
    def written(self) -> dict[str, str]:
        """How the columns are written, for `read_table(like=)`: "text" for categories, sequences and texts, or marks.

        >>> import pandas as pd
        >>> TableEncoder().fit(pd.DataFrame({"kind": ["01", "02", "x"], "size": [1.0, 2.0, 3.0]})).written
        {'kind': 'text', 'size': ''}
        """
        texts = {name: "text" for name, kind in zip(self.columns_, self.kinds_, strict=True) if kind in AS_TEXT}
        forms = zip(self.columns_, getattr(self, "forms_", ()), strict=False)
        percent = {name: "%" for name, form in forms if form == PERCENT}
        return dict.fromkeys(self.columns_, "") | percent | {n: m for n, m in self._marks.items() if m} | texts

    @property
    def text_columns_(self) -> list[str]:
        """The columns that are kept as objects; they are the last ones of the matrix."""
        return [name for name, kind in zip(self.columns_, self.kinds_, strict=True) if kind in OBJECTS]

    def transform(self, frame: Any) -> NDArray[Any]:
        """The matrix of a data frame that has the columns of `fit` in any order; other columns are ignored."""
        frame, where, plain = self._found(frame)
        places = np.flatnonzero(plain)
        X = frame.iloc[:, where[places]].to_numpy(np.float64)
        Z = encode_numbers(X, self.numbers_[places])
        if Z.shape[1] == len(self.feature_names_out_):
            return Z
        plans = self._plans(~plain)
        widths = 1 + np.array([MISSING in flag for flag in self.flags_], np.intp)
        widths[~plain] = [len(plan.features) for plan in plans]
        first = np.cumsum(widths) - widths
        out = np.empty((len(frame), widths.sum()), object if self.text_columns_ else np.float64)
        out[:, first[places]] = Z
        flagged = widths[places] == 2
        out[:, first[places[flagged]] + 1] = 1.0 - (np.abs(X[:, flagged]) < LARGEST)
        for plan, start, (_, values) in zip(plans, first[~plain], frame.iloc[:, where[~plain]].items(), strict=True):
            out[:, start : start + len(plan.features)] = plan.encode(values)
        return out

    def unlike_the_fit(self, frame: Any) -> list[str]:
        """The values that `transform` replaces, in words: unseen categories and missing values.

        >>> import pandas as pd
        >>> encoder = TableEncoder().fit(pd.DataFrame({"kind": ["a", "b"], "size": [1.0, 2.0]}))
        >>> encoder.unlike_the_fit(pd.DataFrame({"kind": ["a", "c"], "size": [None, 1.5]}))
        ["kind: 'c' in 1 of 2 rows, which the model does not know", 'size: missing in 1 of 2 rows, filled by 1.5']
        """
        frame, where, plain = self._found(frame)
        looked, places = ~plain, np.flatnonzero(plain)
        X = frame.iloc[:, where[places]].to_numpy(np.float64)
        looked[places] = ~(np.abs(X) < LARGEST).all(axis=0)
        columns = zip(self._plans(looked), frame.iloc[:, where[looked]].items(), strict=True)
        return [line for plan, (_, values) in columns for line in _unlike(plan, values)]

    @property
    def heading(self) -> str:
        """The heading of `summary_`."""
        texts = len(self.text_columns_)
        numbers = len(self.feature_names_out_) - texts
        more = f" and {texts} of text" if texts else ""
        return f"Columns (as {counted(numbers, 'column')} of numbers{more})"

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of the matrix."""
        check_is_fitted(self)
        return np.array(self.feature_names_out_, dtype=object)

    def ignored(self, frame: Any) -> list[str]:
        """The columns of a data frame that `transform` ignores."""
        known = set(self.columns_)
        return [name for name in map(str, frame.columns) if name not in known]

    def _found(self, frame: Any) -> tuple[Any, NDArray[np.intp], NDArray[np.bool_]]:
        """The data frame, the places of our columns in it, and which of them are numbers, there too."""
        check_is_fitted(self)
        frame = as_frame(frame, "TableEncoder")
        where = frame.columns.get_indexer(self.columns_)
        if (where < 0).any():
            self._refuse_without([self.columns_[place] for place in np.flatnonzero(where < 0)], frame)
        numbers = number_columns(frame.dtypes.to_numpy()[where])
        forms = getattr(self, "forms_", [""] * len(self.columns_))
        plain = np.isin(self.kinds_, ["number", "flag"]) & np.isin(forms, ["", PERCENT])
        return frame, where, plain & numbers

    def _plans(self, wanted: Any = True) -> list[ColumnPlan]:
        """The plans of the columns, or of those that are wanted."""
        forms = getattr(self, "forms_", [""] * len(self.columns_))  # files of earlier versions have none
        fields = [self.columns_, self.kinds_, self.numbers_.tolist(), self.categories_, self.flags_, forms]
        some = np.flatnonzero(np.broadcast_to(wanted, len(self.columns_)))
        return [
            ColumnPlan(name, kind, tuple(map(float, numbers)), tuple(categories), flag, form=form)
            for name, kind, numbers, categories, flag, form in ([field[place] for field in fields] for place in some)
        ]

    def _is_sound(self) -> bool:
        """Whether columns of numbers come before those of texts, and the features are those of the columns."""
        plans = self._plans()  # raises for invalid plans
        ordered = sorted(plans, key=lambda plan: plan.of_objects) == plans
        kept = all(plan.kind != "dropped" for plan in plans)
        return ordered and kept and self.feature_names_out_ == [feature for plan in plans for feature in plan.features]

    def _refuse_without(self, absent: list[str], frame: Any) -> NoReturn:
        named = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
        others = sorted(set(frame.columns) - set(self.columns_))
        near = [one for one in others if one.lower() == absent[0].lower()] or near_names(absent[0], others)
        advice = f"is {near[0]!r} meant to be {absent[0]!r}? " if near else ""
        advice += "give a table with the columns that the model was fitted on, in any order"
        given = f"{counted(len(absent), 'column')} of the fit {'are' if absent[1:] else 'is'} not there: {named}"
        raise InvalidInput(message("TableEncoder", given, advice))


def _exactly(plan: NumberPlan, frame: Any, place: int) -> NumberPlan:
    """The plan, which says so of whole numbers that differ, but not in float64."""
    if plan.said != "constant" or frame.dtypes.iloc[place].kind not in "iu" or frame.iloc[:, place].nunique() == 1:
        return plan
    return plan._replace(said="float64 does not tell its values apart: subtract the least of them")


def _unlike(plan: ColumnPlan, values: Any) -> list[str]:
    """A column's categories that the encoder does not know, and its missing values if no feature indicates them."""
    lines, rows = [], f"of {counted(len(values), 'row')}"
    if plan.of_objects:
        absent = as_text(values)[1]
        if not absent.all() and not np.isnan(as_numbers(values)[~absent]).any():
            lines.append(f"{plan.name}: numbers, read as text, as the fit saw {plan.kind}s")
        return lines + [f"{plan.name}: missing in {absent.sum()} {rows}, treated as empty"] * bool(absent.any())
    if plan.kind == "category":
        text, absent = as_text(values)
        known = set(plan.categories)
        new = ~absent & [one not in known for one in text]
        if new.any() and "other" not in plan.flag:  # if rare categories were pooled, their names are not known
            named = sorted(set(text[new].tolist()))
            more = f" and {len(named) - 3} more" if named[3:] else ""
            shown = ", ".join(map(repr, named[:3]))
            lines.append(f"{plan.name}: {shown}{more} in {new.sum()} {rows}, which the model does not know")
        filled = "treated as none of its categories"
    else:
        absent, filled = np.isnan(as_numbers(values, plan.form)), f"filled by {plan.numbers[0]:g}"
    if absent.any() and "missing" not in plan.flag:
        lines.append(f"{plan.name}: missing in {absent.sum()} {rows}, {filled}")
    return lines


def _grouped(plans: list[ColumnPlan]) -> list[str]:
    """One line for each description, with the names of the columns that share it (at most six)."""
    said: dict[str, list[str]] = {}
    for plan in plans:
        for text in plan.said.split("; "):
            said.setdefault(text, []).append(plan.name)
    lines = []
    for text, names in said.items():
        lines.append(f"{_some(names)}: {text}")
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
