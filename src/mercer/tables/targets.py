"""The target column: its task, and its values as an array."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.numerals import counted
from mercer.tables.columns import MOSTLY_NUMBERS, as_numbers, as_text, as_the_fit
from mercer.tables.numbers import LARGEST
from mercer.tables.texts import ISO, date_form

__all__ = [
    "Task", "as_labels", "as_target", "form_of_dates", "holdout_rows", "infer_task", "random_folds", "stratified_order",
    "target_numbers",
]  # fmt: skip

Task = Literal["regression", "classification"]
FEW = 20
"""Integers with at most this many distinct values are classes."""
MOST_CLASSES = 200
_PLAIN = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")
"""A label that is a number and no identifier, such as 01, and of so few digits that float64 tells it from others."""
AS_CLASSES = ", taken as classes; --task regression takes them as numbers"
AS_NUMBERS = ", taken as numbers; --task classification takes them as classes"


def infer_task(target: Any, given: str = "auto", labels: Any = None) -> tuple[Task, str]:
    """The task and the reason for it. `labels` are the target as it is written, if that makes other classes: 01 and 1.

    >>> import pandas as pd
    >>> infer_task(pd.Series([0, 1, 1, 0]))
    ('classification', 'the target has 2 values, taken as classes; --task regression takes them as numbers')
    """
    if given == "regression":
        return "regression", "as requested" + (", of dates as days since 1970" if form_of_dates(target) else "")
    if given == "classification":
        return "classification", "as requested"
    if given != "auto":
        raise InvalidInput(message("--task", f"{given!r}", "give auto, regression or classification"))
    if not _is_number(target):
        if form_of_dates(target) and target.nunique() > min(FEW, len(target) // 5):
            return "regression", f"the target is dates of {counted(target.nunique(), 'value')}, as days since 1970"
        if _is_nearly_numbers(target):
            return "regression", "the target is numbers, nearly all of it"
        return "classification", "the target is text or true and false"
    whole, distinct = _is_whole(target), (target if labels is None else labels).nunique()
    if distinct <= 2:
        return "classification", f"the target has {counted(distinct, 'value')}{AS_CLASSES}"
    if distinct <= min(FEW, len(target) // 5) and whole:
        return "classification", f"the target is whole numbers of {counted(distinct, 'value')}{AS_CLASSES}"
    if distinct <= min(MOST_CLASSES, len(target) / 2) and whole:
        return "regression", f"the target is whole numbers of {counted(distinct, 'value')}{AS_NUMBERS}"
    return "regression", "the target is numbers of many values"


def as_target(name: str, target: Any, task: Task) -> NDArray[Any]:
    """The values: float64 for a regression, integers or text for classes."""
    if task == "regression":
        return _numbers(name, target)
    if _is_number(target) and _is_whole(target) and target.min() >= -(2**63) and target.max() < 2**63:
        classes = target.to_numpy().astype(np.int64)  # not by way of float64, which merges integers beyond 2^53
    else:
        classes = as_text(target)[0].astype(str)
    count = len(np.unique(classes))
    if count < 2:
        raise InvalidInput(
            message(name, f"the target has one value, {classes[0]!s}", "give rows of two classes or more")
        )
    if count > MOST_CLASSES or count > len(classes) / 2:
        given = f"the target has {count} distinct values in {len(classes)} rows, too many for classes"
        raise InvalidInput(message(name, given, "choose another target, or --task regression if they are numbers"))
    return classes


def as_labels(labels: Any, classes: Any) -> NDArray[Any]:
    """The labels as texts, to be compared with classes: one that is the number of a class is written as the class is.

    How a column of numbers is written depends on the other numbers in it: 1 and 2, but 1.0 beside 1.5.

    >>> as_labels([1, 2, 3], ["1.0", "1.5", "2.0"]).tolist()
    ['1.0', '2.0', '3']
    """
    names, texts = [str(one) for one in classes], as_text(labels)[0]
    numbers = {float(one): one for one in names if _PLAIN.fullmatch(one)}
    others = {one for one in texts if _PLAIN.fullmatch(one)} - set(names)
    same = {one: numbers.get(float(one), one) for one in others}
    return np.array([same.get(one, one) for one in texts]).astype(str)


def target_numbers(target: Any, form: str | None = None) -> NDArray[np.float64]:
    """The target as numbers, with NaN for other values. Dates are days since 1970, as those to predict from are.

    Given the `form_of_dates` of the fit's target, numbers in the place of dates, or dates in that of numbers, are
    refused.

    >>> import pandas as pd
    >>> target_numbers(pd.Series(["1970-01-02", "1970-02-01"])), target_numbers(pd.Series(["1.5", "x"]))
    (array([ 1., 31.]), array([1.5, nan]))
    """
    import pandas as pd

    if form is not None:
        target = as_the_fit(f"the target {target.name!r}", target, form)
        if not form and form_of_dates(target):
            given = f"the date {target.dropna().iloc[0]}, where the fit saw numbers"
            raise InvalidInput(message(f"the target {target.name!r}", given, "give numbers, as the fit saw them"))
    form = form_of_dates(target)
    if form or target.dtype.kind == "m":
        return as_numbers(target, form)
    return np.asarray(pd.to_numeric(target, errors="coerce").to_numpy(np.float64, na_value=np.nan))


def form_of_dates(target: Any) -> str:
    """The form of dates, also of those that are texts; "" if the target is something else."""
    import pandas as pd

    if target.dtype.kind in "biufcmM":
        return ISO if target.dtype.kind == "M" else ""
    # Digits such as 20240331 are numbers first, as in the columns to predict from.
    are_numbers = pd.to_numeric(target, errors="coerce").notna().mean() >= MOSTLY_NUMBERS
    return "" if are_numbers else date_form(as_text(target)[0])[0]


def _numbers(name: str, target: Any) -> NDArray[np.float64]:
    values = target_numbers(target)
    good = np.abs(values) < LARGEST
    if not good.all():
        odd, first, more = target[~good], values[~good][0], int((~good).sum()) - 1
        large = bool(np.isfinite(first))
        shown, what = (f"{first:g}", f"{LARGEST:g} or more in size") if large else (repr(odd.iloc[0]), "not a number")
        given = f"the target has {shown} in row {odd.index[0] + 1} (counted from 1)"
        given += (f", and {more} more," if more else ",") + f" which is {what}"
        do = "correct it, or leave it empty, as rows without a target are left out; classes take --task classification"
        do = "give it in a larger unit, or its logarithm" if large else do
        doubt = date_form(as_text(target)[0])[1]
        do = f"write dates as 2024-03-31, for {doubt}" if doubt else do
        raise InvalidInput(message(name, f"{given}, for a regression", do))
    if values.min() == values.max():
        raise InvalidInput(message(name, f"the target is {values[0]:g} in every row", "choose another target"))
    return np.asarray(values)


def _is_nearly_numbers(target: Any) -> bool:
    """Whether a text is numbers with a few odd words, too many different ones to be classes."""
    import pandas as pd

    if not (pd.api.types.is_object_dtype(target.dtype) or pd.api.types.is_string_dtype(target.dtype)):
        return False  # numbers that pandas makes of dates are counts of units
    good = pd.to_numeric(target, errors="coerce").notna()
    return bool(good.mean() >= MOSTLY_NUMBERS and target[good].nunique() > FEW)


def _is_whole(target: Any) -> bool:
    """Whether all numbers of a target are integers."""
    return bool((target.to_numpy(np.float64) % 1 == 0).all())


def _is_number(target: Any) -> bool:
    import pandas as pd

    numeric = bool(pd.api.types.is_numeric_dtype(target.dtype)) and not pd.api.types.is_bool_dtype(target.dtype)
    return numeric or (target.dtype == object and all(isinstance(one, Decimal) for one in target))


def stratified_order(y: NDArray[Any], task: Task, seed: int) -> NDArray[np.intp]:
    """Row indices in random order, sorted by class, so that every k-th index gives a share of each class.

    >>> y = np.array(["a"] * 4 + ["b"] * 2)
    >>> y[stratified_order(y, "classification", 0)[::2]].tolist()
    ['a', 'a', 'b']
    """
    order = np.random.default_rng(seed).permutation(len(y))
    if task == "classification":
        codes = np.unique(y, return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    return order


def holdout_rows(y: NDArray[Any], task: Task, seed: int) -> NDArray[np.bool_]:
    """A mask of the held-out rows: a random quarter, stratified by class.

    >>> holdout_rows(np.array(["a"] * 8 + ["b"] * 4), "classification", 0).tolist().count(True)
    3
    """
    held = np.zeros(len(y), bool)
    held[stratified_order(y, task, seed)[3::4]] = True
    return held


def random_folds(y: NDArray[Any], task: Task, seed: int, folds: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """(training rows, test rows), drawn at random: tables are often sorted, and blocks of rows are then unlike.

    >>> [test.tolist() for _, test in random_folds(np.array(["a", "a", "b", "b"]), "classification", 0, 2)]
    [[0, 2], [1, 3]]
    """
    order = stratified_order(y, task, seed)
    tests = [np.sort(order[start::folds]) for start in range(folds)]
    splits = [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]
    if task == "classification":
        _require_two_classes(y, splits)
    return splits


def _require_two_classes(y: NDArray[Any], splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]]) -> None:
    """Refuse folds whose training rows are of one class, though all rows are of two."""
    for train, test in splits:
        rare = y[test] != y[train][0]
        if np.any(rare) and np.all(y[train] == y[train][0]):
            name, count = y[test][rare].tolist()[0], counted(int(rare.sum()), "row")
            given = f"the class {name!r} has {count}, all in one fold, and one class is left in the others"
            raise InvalidInput(message("cross-validation", given, "give more rows of it"))
