"""``mercer fit`` by the methods that need no target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli import places
from mercer.cli.columns import chosen_columns, left_out_target
from mercer.cli.fitting import fitted_encoder
from mercer.cli.methods.unsupervised import UNSUPERVISED, Unsupervised, chosen_number
from mercer.cli.mixed import NUMBERS, Joined, Part, number_rows, placed
from mercer.cli.output.results import dropped
from mercer.cli.output.show import as_option, as_text, section
from mercer.errors import InvalidInput, message
from mercer.io import SequenceEncoder, Table, TableEncoder, TableModel, read_table, save
from mercer.kernels import Gaussian, Kernel, as_kernel
from mercer.numerals import counted, digits
from mercer.points import parse_memory
from mercer.select import default_sequence_kernels

__all__ = ["Plan", "fit_unsupervised", "is_unsupervised", "refuse_numbers"]

FEWEST = 3


def is_unsupervised(method: str) -> bool:
    """Whether a method needs no target."""
    return method in UNSUPERVISED


def refuse_numbers(numbers: dict[str, Any], method: str) -> None:
    """Refuse the numbers of these methods for another.

    >>> refuse_numbers({"--clusters": None}, "ridge")
    """
    _refuse(method, [name for name, value in numbers.items() if value is not None])


def _refuse(method: str, idle: list[str]) -> None:
    if idle:
        named = " and ".join(idle)
        raise InvalidInput(message("--method", f"{method} with {named}", f"leave {named} out: {method} has no such"))


@dataclass(frozen=True)
class Plan:
    """The method with its numbers, which columns are left out, and the place of the model."""

    method: str
    kernel: str | None
    numbers: dict[str, Any]
    target: str | None
    columns: str | None
    drop: str | None
    text: str | None
    out: Path | None
    seed: int
    memory: str | None

    def refuse(self, alpha: Any, task: str, report: Any, holdout: bool, dask: Any, workers: Any) -> None:
        """Refuse a place of the model that would replace something else, and options that say nothing here."""
        given = {"--alpha": alpha, "--task": task != "auto" or None, "--report": report}
        given |= {"--no-holdout": None if holdout else True, "--dask": dask, "--workers": workers}
        own = UNSUPERVISED[self.method].option
        given |= {name: value for name, value in self.numbers.items() if name != own}
        _refuse(self.method, [name for name, value in given.items() if value is not None])
        parse_memory(self.memory)

    @property
    def number(self) -> Any:
        """The number that the option of the method sets."""
        return self.numbers[UNSUPERVISED[self.method].option]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table without its target, and their encoder."""

    table: Table
    encoder: TableEncoder | SequenceEncoder
    left_out: tuple[str, ...]

    @property
    def has_texts(self) -> bool:
        """Whether some columns are texts or sequences."""
        return bool(getattr(self.encoder, "text_columns_", ()))

    @property
    def X(self) -> Any:
        """The rows, encoded."""
        return self.encoder.transform(self.table.frame)


def fit_unsupervised(path: Path, plan: Plan, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Fit, show the model, save it, and `keep` what was chosen; the result as a JSON object."""
    places.check_model_place(plan.out, [path])
    method, rows = UNSUPERVISED[plan.method], _rows(path, plan)
    n = len(rows.table.frame)
    section(rows.table.path, [counted(n, "row"), *rows.table.notes, *rows.left_out])
    kernel, encoder = _kernel(rows, plan)
    rows = replace(rows, encoder=encoder)
    X = rows.X
    kernel = kernel.resolve(X, feature_names=encoder.feature_names_out_)
    kernel.check_data(X)
    number, said = chosen_number(method, kernel, X, plan.number, plan.memory, plan.seed)
    how = "as given" if plan.kernel else "with the median distance as its bandwidth" if _has_width(kernel) else "chosen"
    section("Kernel", [f"{kernel!r}, {how}" + ("" if plan.kernel else "; --kernel takes another"), said])
    estimator = method.make(kernel, number, plan.seed).set_params(memory=plan.memory).fit(X)
    model = TableModel.of(encoder, estimator, method.target, n).set_params(notes=rows.left_out)
    found, lines = _found(method, estimator, X)
    section(encoder.heading, encoder.summary_)
    title, *report = str(estimator.report_).splitlines()
    section(title, [line.strip() for line in report])
    section(found.pop("title"), lines)
    if plan.out is not None:
        save(model.set_params(notes=(*model.notes, *lines[:1])), plan.out)
        section("Model", [f"saved as {plan.out}, fitted on all {counted(n, 'row')}"])
    typed = None if rows.has_texts else as_text(kernel)  # that of texts has columns by their places, not by names
    keep({"kernel": typed, method.option.removeprefix("--"): number})
    section("Next", [_next(method, plan.out)], exact=True)
    return {**_as_result(rows, plan, kernel, n), "unsupervised": {"number": number, **found}}


def _rows(path: Path, plan: Plan) -> Rows:
    table = read_table(path, memory=plan.memory)
    if len(table.frame) < FEWEST:
        raise InvalidInput(message(table.path, counted(len(table.frame), "row"), f"give {FEWEST} or more"))
    without = left_out_target(table, plan.target)
    chosen = chosen_columns(table.path, table.frame, plan.columns, plan.drop, without, plan.text)
    table = replace(table, frame=table.frame[chosen.names])
    encoder = fitted_encoder(table, table.frame, plan.columns is not None, plan.text)
    gone = [] if without is None else [f"{without} is left out, as the target"]
    return Rows(table, encoder, (*gone, *chosen.said))


def _kernel(rows: Rows, plan: Plan) -> tuple[Kernel, Any]:
    """The kernel that is given, or one for the kinds of columns; and the encoder of the columns that it reads."""
    encoder = rows.encoder
    if plan.kernel is not None:
        kernel = as_kernel(plan.kernel)
        if isinstance(encoder, TableEncoder):
            return placed(kernel, encoder, "--kernel")
        if not kernel.space.objects:
            given = f"{plan.kernel} is not a kernel of sequences"
            raise InvalidInput(message("--kernel", given, "choose a kernel of those, such as spectrum(k=3)"))
        return kernel, encoder
    X = rows.X
    if isinstance(encoder, SequenceEncoder):
        return _of_sequences(X), encoder
    if not encoder.text_columns_:
        return _gaussian(X), encoder
    features = tuple(encoder.feature_names_out_[: X.shape[1] - len(encoder.text_columns_)])
    parts = [Part(NUMBERS, features, _gaussian(number_rows(encoder, X)))] if features else []
    texts = enumerate(encoder.text_columns_, start=len(features))
    parts += [Part(name, (name,), _of_sequences(X[:, place])) for place, name in texts]
    return Joined(tuple(parts), (1.0,) * len(parts)).kernel(encoder), encoder


def _gaussian(X: Any) -> Kernel:
    gamma = Gaussian(gamma="median").resolve(X).get_params()["gamma"]
    return Gaussian(gamma=float(f"{gamma:.6g}"))


def _has_width(kernel: Kernel) -> bool:
    return isinstance(kernel, Gaussian)


def _of_sequences(X: Any) -> Kernel:
    """Substrings of three characters; of words and characters if most texts have spaces."""
    kernels = default_sequence_kernels(X)
    return kernels[-1] if "word" in repr(kernels[-1]) else kernels[2]


def _found(method: Unsupervised, estimator: Any, X: Any) -> tuple[dict[str, Any], list[str]]:
    """The results of the fit, as fields for programs and as lines."""
    if method.option == "--components":
        ratio = np.asarray(estimator.explained_variance_ratio_)
        kept = f"{counted(len(ratio), 'component')} with {ratio.sum():.1%} of the variance in feature space"
        each = "each, in per cent: " + ", ".join(f"{100 * one:.1f}" for one in ratio[:20])
        return {"title": "Components", "explained_variance_ratio": ratio}, [kept, each]
    if method.option == "--clusters":
        sizes = np.bincount(estimator.labels_, minlength=estimator.n_clusters_)
        lines = [f"{counted(len(sizes), 'cluster')} of {', '.join(map(str, sizes[:20]))} rows"]
        return {"title": "Clusters", "sizes": sizes, "inertia": float(estimator.inertia_)}, lines
    outside = int((np.asarray(estimator.decision_function(X)) < 0).sum())
    lines = [f"{outside} of {len(X)} rows are outliers, by a ν of {digits(estimator.nu)}"]
    return {"title": "Outliers", "outliers": outside}, lines


def _next(method: Unsupervised, out: Path | None) -> str:
    does = "transform" if method.option == "--components" else "predict"
    if out is None:
        return f"keep the model: --out model.mercer; then: mercer {does} model.mercer TABLE"
    return f"mercer {does} {out} TABLE; mercer inspect {out}"


def _as_result(rows: Rows, plan: Plan, kernel: Kernel, n: int) -> dict[str, Any]:
    """The keys of every fit; those of a target are null."""
    nothing = dict.fromkeys(("target", "why_task", "alpha", "search", "score", "guessing", "confusion", "report"))
    return {
        "command": "fit",
        "table": rows.table.path,
        "rows": n,
        "sample": None,
        "held_out": 0,
        **nothing,
        "task": {"pca": "components", "oneclass": "outliers"}.get(plan.method, "clusters"),
        "left_out": [*rows.left_out, *dropped(rows.encoder)],
        "encoding": rows.encoder.summary_,
        "notes": rows.table.notes,
        "kernel": repr(kernel),
        "option": as_option(kernel).strip() or None,
        "method": plan.method,
        "columns": rows.encoder.columns_,
        "model": None if plan.out is None else str(plan.out),
    }
