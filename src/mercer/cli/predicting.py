"""The work of ``mercer predict``, ``transform`` and ``evaluate``. It prints nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.columns import listed, split_names
from mercer.cli.scores import Confusion, Score, deviations, guess, score
from mercer.errors import InvalidInput, ModelFileError, message
from mercer.estimators import KernelKMeans
from mercer.estimators.base.seen import said_of_seen
from mercer.io import SequenceEncoder, Table, TableModel, load, read_table
from mercer.io.streams import written
from mercer.numerals import counted
from mercer.points import ahead, parse_memory
from mercer.tables.columns import as_text
from mercer.tables.decimals import unlike_signs
from mercer.tables.reader import COLUMNAR
from mercer.tables.targets import Task, as_labels, target_numbers
from mercer.tables.texts import near_names

__all__ = [
    "Evaluation",
    "any_model",
    "comparable",
    "evaluated",
    "kept_names",
    "loaded",
    "made",
    "notes",
    "outputs",
    "require_target",
    "rows_for",
    "streamed",
    "streams",
]

STREAMED = (".csv", ".parquet")
CHUNK = 1 << 15
"""Rows of a chunk: its table and its kernel values take some tens of megabytes."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model on some rows, beside guessing, and the classes that it does not know."""

    rows: int
    score: Score
    guessing: Score
    unknown: list[str]
    confusion: Confusion | None


def any_model(path: Path) -> Any:
    """The model in a file, of any class. A file of another format is refused without the words of safetensors."""
    try:
        return load(path)
    except ModelFileError as error:
        if type(error.__cause__).__name__ != "SafetensorError":
            raise
        given = "is not a model file of mercer, or is damaged or cut short"
        do = "give a file that mercer fit --out or mercer.save wrote"
        raise ModelFileError(message(path.name, given, do)) from error


def loaded(path: Path, memory: str | None = None) -> TableModel:
    """The model in a file, with another memory budget if one is given."""
    parse_memory(memory)
    model = any_model(path)
    if not isinstance(model, TableModel):
        given = f"holds a {type(model).__name__}, which was not fitted on a table by name"
        raise InvalidInput(message(path.name, given, "use it in Python (mercer.load), or give a model of mercer fit"))
    if memory is not None and model.estimator is not None:
        model.estimator.set_params(memory=memory)
    return model


def rows_for(
    model: TableModel,
    path: Path,
    memory: str | None = None,
    kept: Sequence[str] = (),
    target: str | None = None,
) -> Table:
    """The table in a file; for a model of one column of texts, plain text with a text in each line is one too.

    `target` is the column that is read as the target, if any is. That of the model is read so if it is kept.
    """
    encoder: Any = model.encoder
    of_sequences = isinstance(encoder, SequenceEncoder)
    named = ["sequence"] if of_sequences else encoder.text_columns_
    texts = named[0] if list(encoder.columns_) == named else None
    read, own = target or model.target, dict[str, str]()
    if model.task == "classification" and any(one.isdigit() for one in model.classes_ if isinstance(one, str)):
        own = {read: "text"}
    elif target or read in kept:  # marks may refuse a number, so a target that is not read is not held to them
        own = {read: getattr(encoder, "target_mark_", "")}  # older models have none
    like = own if of_sequences else own | encoder.written
    rows = read_table(path, memory=memory, texts=texts, kept=kept, like=like)
    seen = getattr(model.estimator, "X_fit_", ()) if of_sequences and rows.format == "lines" else ()
    if not len(seen) or any(one != one.upper() for one in seen):
        return rows
    upper = rows.frame.assign(sequence=rows.frame["sequence"].str.upper())
    return replace(rows, frame=upper, notes=(*rows.notes, "made upper case, as the texts of the fit are"))


def outputs(model: TableModel, name: str, does: str = "predict", proba: bool = False, std: bool = False) -> list[str]:
    """The columns that a command writes; raises InvalidInput if the model does not have them."""
    if does == "transform":
        return _components(model, name)
    if model.task == "components":
        given = f"{name} has components and predicts nothing"
        raise InvalidInput(message("predict", given, f"mercer transform {name} writes the scores"))
    if std and not model.has_deviations:
        given = f"{name} holds a {type(model.estimator).__name__}, which has no standard deviations"
        raise InvalidInput(message("--std", given, "leave --std out, or fit with --method gp"))
    if not proba:
        if std:
            return [model.target, f"{model.target}_std"]
        return [model.target, "score"] if model.task == "outliers" else [model.target]
    if model.task == "classification" and model.has_probabilities:
        return [model.target, *(f"P({one})" for one in model.classes_)]
    if model.task == "regression":
        given = f"{name} predicts the number {model.target}, and numbers have no class probabilities"
        raise InvalidInput(message("--proba", given, "leave --proba out, or fit with --task classification"))
    if model.task != "classification":
        raise InvalidInput(message("--proba", f"{name} predicts {model.task}, not classes", "leave --proba out"))
    given = f"{name} has no probabilities, because no rows were held out to calibrate them"
    raise InvalidInput(message("--proba", given, "fit the model again without --no-holdout"))


def _components(model: TableModel, name: str) -> list[str]:
    estimator: Any = model.estimator
    if not hasattr(estimator, "transform"):
        given = f"{name} holds a {type(estimator).__name__}, which has no components"
        raise InvalidInput(message("transform", given, f"mercer predict {name} predicts {model.target}"))
    width = estimator._n_features_out
    if isinstance(estimator, KernelKMeans):
        return [f"distance{place}" for place in range(width)]  # numbered as the clusters are
    return [f"component{place}" for place in range(1, width + 1)]


def kept_names(keep: str | None, columns: list[str]) -> tuple[list[str], list[str]]:
    """The names that --keep lists, and those of the outputs: beside a column of its name one is "…_predicted"."""
    names = [] if keep is None else list(dict.fromkeys(split_names("--keep", keep)))
    beside = [f"{name}_predicted" if name in names else name for name in columns]
    if twice := [name for name in beside if name in names]:
        given = f"{twice[0]!r} is the name of an output"
        raise InvalidInput(message("--keep", given, "leave it out, or rename the column of the table"))
    return names, beside


def made(model: TableModel, rows: Table, does: str, columns: list[str], kept: Sequence[str] = ()) -> Any:
    """The outputs of a model as a data frame with these columns, after some of the table."""
    there = {str(name): name for name in rows.frame.columns}
    for name in kept:
        if name not in there:
            near = near_names(name, there)
            do = f"did you mean {near[0]!r}?" if near else f"its columns are {listed([*there])}"
            raise InvalidInput(message("--keep", f"{rows.path} has no column {name!r}", do))
    frame = _outputs(model, rows, does, columns)
    for place, name in enumerate(kept):
        frame.insert(place, name, _kept(rows.written.get(name, rows.frame[there[name]])))
    return frame


def _kept(column: Any) -> NDArray[Any]:
    """The values of a column: numbers, of which missing integers are None, or texts, of which missing ones are empty.

    >>> import pandas as pd
    >>> _kept(pd.Series([2**53 + 1, None], dtype="Int64")), _kept(pd.Series(["u", None], dtype="category"))
    (array([9007199254740993, None], dtype=object), array(['u', ''], dtype=object))
    """
    if column.dtype.kind in "iuf":
        return np.asarray(column if isinstance(column.dtype, np.dtype) else column.to_numpy(object, na_value=None))
    text, absent = as_text(column)
    text[absent] = ""
    return text


def _outputs(model: TableModel, rows: Table, does: str, columns: list[str]) -> Any:
    import pandas as pd

    if does == "transform":
        return pd.DataFrame(model.transform(rows), columns=columns)
    if model.task == "outliers":
        values = model.decision_function(rows)
        return pd.DataFrame(dict(zip(columns, ((values < 0).astype(np.int64), values), strict=True)))
    if model.task == "regression" and columns[1:]:
        found = model.predict(rows, return_std=True, include_noise=True)
        return pd.DataFrame(dict(zip(columns, found, strict=True)))
    found = [model.predict(rows), *(model.predict_proba(rows).T if columns[1:] else [])]
    return pd.DataFrame(dict(zip(columns, found, strict=True)))


def streams(table: Path, out: Path | None, as_json: bool) -> bool:
    """Whether the outputs for a table go to their file a chunk of rows at a time."""
    return table.suffix.lower() in COLUMNAR and out is not None and out.suffix.lower() in STREAMED and not as_json


def streamed(
    model: TableModel,
    table: Path,
    out: Path,
    does: str,
    columns: list[str],
    kept: Sequence[str] = (),
    memory: str | None = None,
) -> tuple[int, list[str]]:
    """Write the outputs for a table of Parquet or Arrow, chunk by chunk; the number of rows, and notes on them."""
    count, parts, source = 0, list[tuple[int, list[str]]](), COLUMNAR[table.suffix.lower()]
    typed = source.typed(table, kept if out.suffix.lower() == ".parquet" else ())
    with written(out, model.target) as write:
        for frame in ahead(source.frames(table, CHUNK, memory)):
            rows = Table(frame, table.name, "columnar")
            found = made(model, rows, does, columns, kept)
            write({name: found[name].to_numpy() for name in found} | typed(frame))
            parts.append((len(frame), notes(rows, model)))
            count += len(frame)
    encoder: Any = model.encoder
    return count, _joined(parts, encoder.columns_)


def _joined(parts: list[tuple[int, list[str]]], columns: Sequence[str]) -> list[str]:
    """Notes on parts of a table, by their numbers of rows: each once, with the rows that it counts.

    >>> notes = [(2, ["a: missing in 1 of 2 rows, filled by 3"]), (1, ["a: missing in 1 of 1 row, filled by 3"])]
    >>> _joined(notes, ["a"])
    ['a: missing in 1 of 2 rows, filled by 3 (in rows 1 to 2, and the like in 1 later part)']
    """
    found, first = dict[tuple[str, str], tuple[str, str]](), 1
    later = Counter[tuple[str, str]]()
    for rows, lines in parts:
        last = first + rows - 1
        for line in lines:
            where = f"rows {first} to {last}" if len(parts) > 1 and f" of {counted(rows, 'row')}," in line else ""
            # Of a column and what becomes of its values there is one note, whatever values and numbers are in it.
            column = max((one for one in columns if line.startswith(f"{one}: ")), key=len, default=line)
            key = column, line.rpartition(",")[2]
            later[key] += key in found
            found.setdefault(key, (line, where))
        first = last + 1
    like = {key: f", and the like in {counted(count, 'later part')}" if count else "" for key, count in later.items()}
    return [line + (f" (in {where}{like[key]})" if where else "") for key, (line, where) in found.items()]


def notes(rows: Table, model: TableModel) -> list[str]:
    """Notes on the table, for a reader of the outputs."""
    encoder: Any = model.encoder
    numbers = rows.frame.select_dtypes("number") if rows.format == "columnar" else None  # of a text, its reader tells
    signs = [] if numbers is None else unlike_signs(numbers, {}, getattr(encoder, "written", {}))
    ignored = model.ignored(rows)
    unused = [f"columns that the model does not use: {listed(ignored)}"] if ignored else []
    return [*rows.notes, *signs, *unused, *model.unlike_the_fit(rows)]


def seen(model: TableModel, rows: Table) -> list[str]:
    """A note if half of the rows, or more, are those of the fit."""
    return said_of_seen(model.share_of_the_fit(rows))


def require_target(model: TableModel, name: str) -> None:
    """Raise InvalidInput if the model predicts no column that predictions could be compared with."""
    if model.task not in ("regression", "classification"):
        given = f"{name} was fitted without a target ({model.task})"
        raise InvalidInput(message("evaluate", given, f"mercer inspect {name} shows what it found"))


def evaluated(model: TableModel, rows: Table, column: Any) -> Evaluation:
    """Score a model on the rows of a table with the target in `column`."""
    task: Task = "classification" if model.task == "classification" else "regression"
    classes = [str(one) for one in model.classes_] if task == "classification" else []
    encoder: Any = model.encoder
    if column.name in encoder.columns_:
        given = f"{column.name!r} is a column that the model predicts from"
        raise InvalidInput(message("--target", given, f"name another column; the model predicts {model.target}"))
    form = getattr(encoder, "target_form_", None) if column.name == model.target else None
    y, found = comparable(rows.path, column, model.predict(rows), task, classes, form)
    if task == "regression":
        return Evaluation(len(y), score(y, found, task, std=deviations(model, rows)), guess(y, y, task), [], None)
    known = set(np.unique(y)) <= set(classes)
    decision = model.decision_function(rows) if len(classes) == 2 and known else None
    if decision is not None and classes[0] > classes[1]:
        decision = -decision  # as texts, the classes are in another order
    unknown = sorted(set(np.unique(y).tolist()) - set(classes))
    return Evaluation(len(y), score(y, found, task, decision), guess(y, y, task), unknown, Confusion.of(y, found))


def comparable(
    name: str, column: Any, predicted: NDArray[Any], task: Task, classes: Any = None, form: str | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The target and the predictions in one type: numbers, or as texts the classes, by default those predicted.

    `form` is that of the dates that the fit's target was, "" of numbers, if it is known.
    """
    if task == "classification":
        labels = as_labels(column, np.unique(predicted) if classes is None else classes)
        return labels, np.array([str(one) for one in predicted])
    values = target_numbers(column, form)
    if np.isnan(values).any():
        given = "the target has values that are not numbers, and the model is a regression"
        raise InvalidInput(message(name, given, "mend these rows; write dates as 2024-03-31"))
    return values, predicted
