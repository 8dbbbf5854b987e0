"""What ``--json`` prints, command by command: the fields of each result, as types, as JSON Schema and as a page."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from mercer.errors import InvalidInput, message

__all__ = ["RESULTS", "described", "json_schema", "rows"]

Scores = Annotated[dict[str, float | None], "by the names of the measures: R², MAE, RMSE; or accuracy and others"]
Lines = Annotated[list[str], "sentences for people"]
Column = Annotated[list[Any], "a value for each row"]


class Confusion(TypedDict):
    """How many rows of each class were predicted to be of each class."""

    classes: list[str]
    counts: Annotated[list[list[int]], "a row for each true class, a column for each predicted one"]


class Data(TypedDict):
    """The table of a fit, its target and its task."""

    table: Annotated[str, "the file"]
    rows: Annotated[int, "rows with a target"]
    held_out: Annotated[int, "rows held out to score the model"]
    target: Annotated[str | None, "the column that is predicted; null for methods without a target"]
    task: Literal["regression", "classification", "components", "clusters", "outliers"]
    why_task: Annotated[str | None, "why the target is taken as numbers or as classes"]
    left_out: Annotated[list[str], "which columns are left out, and why"]
    encoding: Annotated[list[str], "how the columns are encoded"]
    notes: Annotated[list[str], "how the table was read"]


class Choice(TypedDict):
    """The kernel and the regularisation."""

    kernel: Annotated[str, "with its parameters, as Python prints it"]
    option: Annotated[str | None, "`--kernel ...` that gives it again; null if no text does"]
    alpha: Annotated[float | None, "null if the fit itself chooses the regularisation, or has none"]
    method: Annotated[str, "as `--method` has it"]
    columns: Annotated[list[str], "the columns that the model needs"]


class Worth(TypedDict):
    """The scores of the model on the rows held out, and its file."""

    score: Annotated[Scores | None, "on the rows held out, by the names of the measures; null if there are none"]
    guessing: Annotated[Scores | None, "the same for the mean, or for the most frequent class"]
    confusion: Annotated[Confusion | None, "of classes, on the rows held out"]
    model: Annotated[str | None, "the file of `--out`"]


class Candidate(TypedDict):
    """A kernel and α that were tried."""

    kernel: str
    alpha: float
    mean: Annotated[float | None, "the mean score over the folds"]
    std: Annotated[float | None, "its spread over the folds"]


class FitCandidate(Candidate):
    """A kernel and α that `fit` tried."""

    rows: Annotated[int, "on so many rows"]


class FitSearch(TypedDict):
    """The search for the kernel and α."""

    metric: str
    folds: int
    candidates: Annotated[list[FitCandidate], "the best first"]
    notes: Lines


class Unsupervised(TypedDict, total=False):
    """The results of a method without a target."""

    number: Annotated[int | float | None, "of components or clusters, or the share of outliers"]
    explained_variance_ratio: Annotated[list[float], "of pca, for each component"]
    sizes: Annotated[list[int], "of kmeans and spectral, rows in each cluster"]
    inertia: Annotated[float | None, "of kmeans and spectral"]
    outliers: Annotated[int, "of oneclass, rows outside"]


class FitResult(Data, Choice, Worth):
    """The result of ``mercer fit``."""

    command: Literal["fit"]
    sample: Annotated[int | None, "rows drawn at random of a table beyond memory, to choose and to score by; else null"]
    search: Annotated[FitSearch | None, "null if kernel and α were given, and without a target"]
    report: Annotated[str | None, "the file of `--report`"]
    unsupervised: Annotated[Unsupervised | None, "null for methods with a target"]


class Shortlisted(TypedDict):
    """A kernel of the shortlist."""

    kernel: str
    option: Annotated[str | None, "`--kernel ...` that gives it again"]
    alpha: float | None
    score: Annotated[float | None, "by leave-one-out"]
    behind: Annotated[float | None, "how far behind the best, in standard errors"]
    why: Annotated[str, "what the kernel stands for"]


class TuneSearch(TypedDict):
    """The searches of ``mercer tune``."""

    shortlist: Annotated[list[Shortlisted], "the best first"]
    candidates: Annotated[list[Candidate], "around the best one, the best first"]
    notes: Lines
    log_marginal_likelihood: Annotated[float | None, "with `--per-column`"]


class TuneResult(Data, Choice, Worth):
    """The result of ``mercer tune``."""

    command: Literal["tune"]
    search: TuneSearch


class Interval(TypedDict):
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


class LeaderboardRow(Interval):
    """A method with a kernel; mean, low and high are of its score."""

    name: str
    method: str
    kernel: Annotated[str | None, "null if each fold chose it"]
    behind: Annotated[Interval | None, "the best one's score minus this one's; null for the best"]
    scores: Annotated[list[float], "of each fold of each repeat"]
    fit_seconds: Annotated[float, "mean over the folds, the choices included"]
    predict_seconds: float
    brier: Annotated[float | None, "the Brier score, of classes"]
    calibration_error: Annotated[float | None, "of classes"]
    kernels: Annotated[dict[str, int], "in how many folds each kernel was chosen"]


class CompareResult(Data):
    """The result of ``mercer compare``."""

    command: Literal["compare"]
    rows_compared: Annotated[int, "rows that the folds divide"]
    metric: str
    folds: int
    repeats: int
    level: Annotated[float, "of the intervals"]
    leaderboard: Annotated[list[LeaderboardRow], "the best first, guessing among them"]
    recommendation: Annotated[str, "a sentence"]
    winner: Annotated[str, "the name of the best row that is not guessing"]
    model: Annotated[str | None, "the file of `--out`"]


class Outputs(TypedDict):
    """The predictions of a model for a table."""

    table: str
    target: str
    task: str
    rows: int
    notes: Annotated[list[str], "what the model does not use, or does not know"]
    out: Annotated[str | None, "the file of `--out`"]


class PredictResult(Outputs):
    """The result of ``mercer predict``."""

    command: Literal["predict"]
    predictions: Annotated[dict[str, Column], "the columns by their names; empty with `--out`"]


class TransformResult(Outputs):
    """The result of ``mercer transform``."""

    command: Literal["transform"]
    scores: Annotated[dict[str, Column], "the columns by their names; empty with `--out`"]


class EvaluateResult(TypedDict):
    """The result of ``mercer evaluate``."""

    command: Literal["evaluate"]
    table: str
    target: str
    task: Literal["regression", "classification"]
    rows: int
    notes: Annotated[list[str], "what the model does not use, or does not know"]
    score: Scores
    guessing: Annotated[Scores, "the mean, or the most frequent class, of these very rows"]
    unknown_classes: Annotated[list[str], "of the table, which the model does not know"]
    confusion: Confusion | None


class InspectResult(TypedDict):
    """The result of ``mercer inspect``."""

    command: Literal["inspect"]
    model: Annotated[str, "the file"]
    estimator: Annotated[str, "the name of its class"]
    kernel: Annotated[str | None, "with its parameters"]
    parameters: Annotated[dict[str, Any], "of the estimator, by their names; what is not plain data as text"]
    task: Annotated[str | None, "null for a model that was not fitted on a table, and so below"]
    target: str | None
    rows: Annotated[int | None, "of the fit"]
    columns: Annotated[list[str] | None, "which the model needs"]
    classes: Annotated[list[Any] | None, "null without classes"]
    encoding: Annotated[Lines, "how the columns are encoded"]
    notes: Annotated[Lines, "from the fit, such as its score on rows held out"]
    report: Annotated[Lines, "of the fit"]


class PlotResult(TypedDict):
    """The result of ``mercer plot``."""

    command: Literal["plot"]
    model: Annotated[str, "the file"]
    table: str
    kind: Literal["surface", "posterior", "scores", "residuals", "confusion"]
    rows: Annotated[int, "of the table"]
    notes: Annotated[list[str], "what the picture leaves out"]
    out: Annotated[str, "the file of the picture"]


class CheckedValue(TypedDict):
    """A value of `--vary`."""

    parameters: dict[str, Any]
    verdict: str


class CheckResult(TypedDict):
    """The result of ``mercer check``."""

    command: Literal["check"]
    kernel: str
    is_mercer: Annotated[bool | None, "null if it is open"]
    verdict: Annotated[str, "proved, refuted and others, as the Python class KernelReport has them"]
    domain: str | None
    by_parameters: Annotated[list[CheckedValue], "with `--vary`"]
    notes: Lines
    report: Annotated[Lines, "with the proof, or the points that refute it"]


class Race(TypedDict):
    """The same work by two libraries."""

    name: str
    mercer_seconds: Annotated[float, "the median"]
    sklearn_seconds: Annotated[float, "the median"]
    difference: Annotated[float, "of the results, relative"]


class DemoResult(TypedDict):
    """The result of ``mercer demo``."""

    command: Literal["demo"]
    score: Annotated[Scores, "of handwritten digits, on images held out"]
    races: Annotated[list[Race], "beside scikit-learn"]


class LabResult(TypedDict):
    """The result of ``mercer lab``, printed when the page is served."""

    command: Literal["lab"]
    address: Annotated[str, "of the page; it is served until Ctrl-C"]


RESULTS: dict[str, type] = {
    "fit": FitResult,
    "tune": TuneResult,
    "compare": CompareResult,
    "predict": PredictResult,
    "transform": TransformResult,
    "evaluate": EvaluateResult,
    "inspect": InspectResult,
    "plot": PlotResult,
    "check": CheckResult,
    "demo": DemoResult,
    "lab": LabResult,
}
"""The type of each command's result."""

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def json_schema(command: str) -> dict[str, Any]:
    """The result of a command as JSON Schema (2020-12).

    >>> json_schema("lab")["properties"]["address"]
    {'type': 'string', 'description': 'of the page; it is served until Ctrl-C'}
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"mercer {command} --json"}
    return {**head, **_schema(RESULTS[command])}


def described(command: str) -> dict[str, Any]:
    """The schema for ``mercer schema``; raises InvalidInput for a command that has none."""
    if command not in RESULTS:
        given, do = f"no command {command!r} has a result", f"choose one of {', '.join(RESULTS)}"
        raise InvalidInput(message("schema", given, do))
    return json_schema(command)


def _schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type."""
    origin, given = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if is_typeddict(kind):
        fields = get_type_hints(kind, include_extras=True)
        properties = {name: _schema(one) for name, one in _ordered(fields)}
        return {"type": "object", "properties": properties, "required": sorted(kind.__required_keys__)}
    if origin is Annotated:
        return {**_schema(given[0]), "description": given[-1]}
    if origin is Literal:
        return {"enum": list(given)}
    if origin is list:
        return {"type": "array", "items": _schema(given[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(given[1])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(one) for one in given]}
    raise TypeError(kind)


def _ordered(fields: dict[str, Any]) -> list[tuple[str, Any]]:
    """The fields, the name of the command first."""
    return sorted(fields.items(), key=lambda one: one[0] != "command")


def rows(command: str) -> list[tuple[str, str, str]]:
    """(field, type, meaning) of each field of a command's result, those of objects in it by a path.

    >>> rows("lab")
    [('command', '"lab"', ''), ('address', 'string', 'of the page; it is served until Ctrl-C')]
    """
    return list(_rows(RESULTS[command], ""))


def _rows(kind: Any, path: str) -> Iterator[tuple[str, str, str]]:
    for name, one in _ordered(get_type_hints(kind, include_extras=True)):
        said = get_args(one)[-1] if get_origin(one) is Annotated else ""
        yield f"{path}{name}", _named(one), said
        inner, steps = _inside(one)
        if inner is not None:
            yield from _rows(inner, f"{path}{name}{steps}.")


def _inside(kind: Any) -> tuple[Any, str]:
    """The object that a field holds, alone or in a list, and "[]" for a list."""
    if is_typeddict(kind):
        return kind, ""
    for one in get_args(kind) if get_origin(kind) in (Annotated, Union, types.UnionType, list) else ():
        found, steps = _inside(one)
        if found is not None:
            return found, ("[]" if get_origin(kind) is list else "") + steps
    return None, ""


def _named(kind: Any) -> str:
    """A type in words."""
    origin, given = get_origin(kind), get_args(kind)
    if kind is Any:
        return "any"
    if is_typeddict(kind):
        return "object"
    if origin is Annotated:
        return _named(given[0])
    if origin is Literal:
        return ", ".join(f'"{one}"' for one in given)
    if origin is list:
        return f"list of {_named(given[0])}"
    if origin is dict:
        held = _named(given[1])
        return f"object of ({held})" if " or " in held else f"object of {held}"
    if origin in (Union, types.UnionType):
        return " or ".join(_named(one) for one in given)
    return PLAIN[kind]
