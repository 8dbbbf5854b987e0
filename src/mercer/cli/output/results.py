"""Results of commands as JSON objects, in full precision, with null for NaN and infinity."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from mercer.cli.fitting import KernelChoice, Outcome, TrainingTable
from mercer.cli.output.show import as_option
from mercer.cli.predicting import Evaluation
from mercer.cli.scores import Confusion
from mercer.cli.tuning import Tuned
from mercer.io import TableModel
from mercer.kernels import Kernel
from mercer.validity import KernelReport

__all__ = [
    "as_json",
    "of_check",
    "of_data",
    "of_evaluation",
    "of_fit",
    "of_inspection",
    "of_outputs",
    "of_picture",
    "of_tuning",
]


def as_json(found: Any) -> str:
    """One line of JSON.

    >>> as_json({"R²": np.float64(0.5), "MAE": float("nan"), "classes": np.array([1, 2])})
    '{"R²": 0.5, "MAE": null, "classes": [1, 2]}'
    """
    return json.dumps(_plain(found), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def of_fit(data: TrainingTable, choice: KernelChoice, outcome: Outcome, out: Any, report: Any) -> dict[str, Any]:
    """The result of ``mercer fit``."""
    return {
        "command": "fit",
        **of_data(data),
        "sample": data.sample,
        **_of_choice(choice),
        "search": _of_search(choice),
        **_of(outcome, out),
        "report": None if report is None else str(report),
        "unsupervised": None,
    }


def of_tuning(data: TrainingTable, found: Tuned, outcome: Outcome, out: Any) -> dict[str, Any]:
    """The result of ``mercer tune``."""
    shortlist = [
        {**_of_kernel(one.kernel), "alpha": one.alpha, "score": one.score, "behind": one.behind, "why": one.why}
        for one in (found.shortlist.ranked if found.shortlist is not None else ())
    ]
    searched: dict[str, Any] = {"shortlist": shortlist, "candidates": _of_candidates(found), "notes": found.notes}
    searched["log_marginal_likelihood"] = None if found.likelihood is None else found.likelihood.value
    return {"command": "tune", **of_data(data), **_of_choice(found.choice), "search": searched, **_of(outcome, out)}


def of_outputs(command: str, model: TableModel, table: str, frame: Any, notes: list[str], out: Any) -> dict[str, Any]:
    """The result of ``mercer predict`` or ``transform``, with the outputs only if they are not in a file."""
    found = {"command": command, "table": table, "target": model.target, "task": model.task, "rows": len(frame)}
    columns = {} if out is not None else {str(name): frame[name].tolist() for name in frame.columns}
    kind = "predictions" if command == "predict" else "scores"
    return {**found, "notes": notes, "out": None if out is None else str(out), kind: columns}


def of_evaluation(model: TableModel, table: str, target: str, found: Evaluation, notes: list[str]) -> dict[str, Any]:
    """The result of ``mercer evaluate``."""
    told = {"command": "evaluate", "table": table, "target": target, "task": model.task, "rows": found.rows}
    scores = {"notes": notes, "score": found.score.values, "guessing": found.guessing.values}
    return {**told, **scores, "unknown_classes": found.unknown, "confusion": _of_confusion(found.confusion)}


def of_inspection(path: Any, model: Any) -> dict[str, Any]:
    """The result of ``mercer inspect``, for a model of a table or another estimator."""
    table = model if isinstance(model, TableModel) else None
    estimator = model if table is None else table.estimator
    kernel = getattr(estimator, "kernel_", None)
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name != "kernel"}
    encoder: Any = None if table is None else table.encoder
    classes = getattr(estimator, "classes_", None)
    return {
        "command": "inspect",
        "model": str(path),
        "estimator": type(estimator).__name__,
        "kernel": None if kernel is None else repr(kernel),
        "parameters": parameters,
        "task": table and table.task,
        "target": table and table.target,
        "rows": table and table.n_rows_,
        "columns": encoder and encoder.columns_,
        "classes": classes,
        "encoding": encoder.summary_ if encoder else [],
        "notes": table.notes if table else [],
        "report": str(getattr(estimator, "report_", "not fitted")).splitlines(),
    }


def of_picture(model: Any, table: str, found: Any, out: Any) -> dict[str, Any]:
    """The result of ``mercer plot``."""
    told = {"command": "plot", "model": str(model), "table": table, "kind": found.kind, "rows": found.rows}
    return {**told, "notes": found.notes, "out": str(out)}


def of_check(report: KernelReport) -> dict[str, Any]:
    """The result of ``mercer check``."""
    return {
        "command": "check",
        "kernel": repr(report.kernel),
        "is_mercer": report.is_mercer,
        "verdict": report.verdict,
        "domain": report.domain,
        "by_parameters": [{"parameters": given, "verdict": verdict} for given, verdict in report.by_parameters],
        "notes": report.notes,
        "report": str(report).splitlines(),
    }


def dropped(encoder: Any) -> list[str]:
    """The columns of which an encoder makes nothing, and why."""
    return [line for line in encoder.summary_ if ": dropped: " in line]


def of_data(data: TrainingTable) -> dict[str, Any]:
    """The table, its target and its task."""
    return {
        "table": data.table.path,
        "rows": data.rows,
        "held_out": int(data.held.sum()),
        "target": data.target,
        "task": data.task,
        "why_task": data.why_task,
        "left_out": [*data.left_out, *dropped(data.encoder)],
        "encoding": data.encoder.summary_,
        "notes": data.table.notes,
    }


def _of_kernel(kernel: Kernel) -> dict[str, Any]:
    return {"kernel": repr(kernel), "option": as_option(kernel).strip() or None}


def _of_choice(choice: KernelChoice) -> dict[str, Any]:
    return {
        "kernel": repr(choice.kernel),
        "option": as_option(choice.named).strip() or None,
        "alpha": choice.alpha,
        "method": choice.method.name,
        "columns": choice.encoder.columns_,
    }


def _of_search(choice: KernelChoice) -> dict[str, Any] | None:
    search = choice.search
    if search is None:
        return None
    names = ("kernel", "alpha", "mean", "std", "rows")
    candidates = [{name: getattr(row, name) for name in names} for row in search.table]
    return {"metric": search.metric, "folds": search.folds, "candidates": candidates, "notes": search.notes}


def _of_candidates(found: Tuned) -> list[dict[str, Any]]:
    if found.search is None:
        return []
    table = found.search.cv_results_
    order = np.argsort(table["rank_test_score"], kind="stable")
    return [
        {
            "kernel": repr(table["params"][i]["kernel"]),
            "alpha": table["params"][i]["alpha"],
            "mean": table["mean_test_score"][i],
            "std": table["std_test_score"][i],
        }
        for i in order
    ]


def _of(outcome: Outcome, out: Any) -> dict[str, Any]:
    return {
        "score": None if outcome.held_out is None else outcome.held_out.values,
        "guessing": None if outcome.guessing is None else outcome.guessing.values,
        "confusion": _of_confusion(outcome.confusion),
        "model": None if out is None else str(out),
    }


def _of_confusion(confusion: Confusion | None) -> dict[str, Any] | None:
    return None if confusion is None else {"classes": confusion.classes, "counts": confusion.counts}
