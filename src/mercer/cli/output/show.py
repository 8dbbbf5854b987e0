"""Summaries as text: headings in bold on terminals, plain lines everywhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import typer

from mercer.cli.fitting import KernelChoice, Outcome, TrainingTable
from mercer.cli.guard import discard_output
from mercer.cli.scores import Confusion
from mercer.cli.tuning import Tuned
from mercer.errors import MercerError
from mercer.estimators import KernelSearchCV
from mercer.io import TableEncoder, TableModel
from mercer.kernels import Formula, Kernel, as_kernel
from mercer.numerals import counted, digits, ratio
from mercer.select import RidgeSearch

__all__ = [
    "as_option",
    "as_text",
    "choice_lines",
    "printed",
    "section",
    "sections",
    "show_choice",
    "show_confusion",
    "show_data",
    "show_model",
    "show_next",
    "show_saved",
    "show_score",
    "show_tuned",
]

RUNNERS_UP = 4
_KERNEL = re.compile(r"\b[A-Z]\w{1,40}\(")
_NUMBERS = re.compile(r"""("[^"]*"|'[^']*')|(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])""")
"""What is in quotes, such as the name of a column, or a number with a point."""


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_saves: ContextVar[bool] = ContextVar("saves", default=False)


@contextmanager
def sections(*, silent: bool, saves: bool) -> Iterator[None]:
    """How a command prints: nothing if it is `silent`; one that `saves` a file goes on if nobody reads its output."""
    tokens = _quiet.set(silent), _saves.set(saves)
    try:
        yield
    finally:
        _quiet.reset(tokens[0])
        _saves.reset(tokens[1])


def section(title: str, lines: Iterable[str], *, exact: bool = False) -> None:
    """A heading and its lines, indented; the numbers of kernels have six digits, unless they are to be copied."""
    if not _quiet.get():
        title, *lines = [title, *lines] if exact else map(shortened, [title, *lines])
        printed("\n".join([typer.style(title, bold=True), *(f"  {line}" for line in lines)]))


def shortened(line: str) -> str:
    """The line, with at most six digits of each number if it names a kernel.

    >>> shortened("Gaussian(gamma=0.3333333333333333), α = 0.1"), shortened("mean 0.3333333333333333")
    ('Gaussian(gamma=0.333333), α = 0.1', 'mean 0.3333333333333333')
    """
    if not _KERNEL.search(line):
        return line
    return _NUMBERS.sub(lambda found: found[0] if found[1] else _six(found[0]), line)


def _six(number: str) -> str:
    short = f"{float(number):.6g}"
    return short if len(short) < len(number) else number


def printed(text: str) -> None:
    """Print on standard output; in a command that saves something, go on if nobody reads it."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        if not _saves.get():
            raise
        discard_output()


def show_data(data: TrainingTable) -> None:
    """Show the table, its task, and the target."""
    lines = [f"{_what(data)} and the target {data.target}", *data.table.notes, *data.left_out]
    lines.append(
        f"{data.task}, for {data.why_task}" if data.why_task != "as requested" else f"{data.task}, as requested"
    )
    if data.task == "classification":
        names, counts = np.unique(data.y, return_counts=True)
        shown = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
        told = f"{len(names)} classes: {', '.join(shown[:12])}" + (", ..." if len(shown) > 12 else "")
    else:
        told = f"the target is {digits(data.y.min())} to {digits(data.y.max())}, mean {digits(data.y.mean())}"
    lines.append(told if data.sample is None else f"in the sample {told}")
    if data.held.any():
        share = "a quarter" if data.sample is None else "a quarter of the sample"
        lines.append(f"{int(data.held.sum())} rows, {share}, are held out and used for nothing but the score")
    section(data.table.path, lines)


def _what(data: TrainingTable) -> str:
    """The numbers of rows and columns, or the number and the lengths of sequences."""
    if not data.of_sequences:
        return f"{counted(data.rows, 'row')}, {counted(data.frame.shape[1], 'column')}"
    lengths = data.frame["sequence"].str.len()
    low, high = int(lengths.min()), int(lengths.max())
    letters = f"{low} to {high} (median {lengths.median():g}) letters" if low < high else counted(low, "letter")
    return f"{counted(data.rows, 'sequence')} of {letters}"


def show_choice(choice: KernelChoice) -> None:
    """Show the kernel, α and the runners-up."""
    section("Kernel" if choice.search is None else "Kernel and α", choice_lines(choice))


def choice_lines(choice: KernelChoice) -> list[str]:
    """The kernel and α, how they were chosen, and the runners-up."""
    search = choice.search
    if search is None:
        return [f"{choice.said if not choice.notes else repr(choice.kernel)}: as given", *choice.notes]
    best = search.table[0]
    shared = choice.method.shares_alpha
    how = search.metric if shared else f"by ridge regression {search.metric}"
    named = best.kernel if choice.way is None else repr(choice.kernel)  # the search numbered more columns
    lines = [
        f"{named}, α = {best.alpha:.4g}: {how} {_spread(best.mean, best.std)}",
        f"by {search.folds}-fold cross-validation on {search.sample_size} of the training rows",
    ]
    others = [row for row in search.best_of_each_kernel()[1:] if row.rows == search.sample_size]
    lines += [_runner_up(row.kernel, row.alpha, row.mean, row.std) for row in others[:RUNNERS_UP]]
    return [*lines, *_left_behind(search), *choice.notes, *(search.notes if shared else ())]


def _spread(mean: float, std: float) -> str:
    """A mean score and its spread in two digits."""
    return f"{ratio(mean)} ± {std:.2g}"


def _runner_up(kernel: str, alpha: float, mean: float, std: float) -> str:
    return f"then {kernel}, α = {alpha:.4g}: {_spread(mean, std)}"


def _left_behind(search: RidgeSearch) -> list[str]:
    rows = [row for row in search.best_of_each_kernel() if row.rows < search.sample_size]
    if not rows:
        return []
    named = "; ".join(f"{row.kernel} {ratio(row.mean)}" for row in rows)
    own = [ratio(row.mean) for row in search.screened if row.kernel == repr(search.best_kernel)]
    began = f"this kernel had {own[0]}, and left behind were" if own else "left behind were"
    return [f"on {rows[0].rows} rows {began} {named}"]


def show_tuned(tuned: Tuned) -> None:
    """Show the shortlist, and the best candidates of the search or the length-scales."""
    if tuned.shortlist is not None:
        title, *lines = str(tuned.shortlist).splitlines()
        section(f"Shortlist: {title}", lines)
    if tuned.families is not None:
        section("Before the search, by cross-validation", _best_of_each(tuned.families))
    lines = [tuned.choice.said]
    if tuned.search is not None:
        table = tuned.search.cv_results_
        order = np.argsort(table["rank_test_score"], kind="stable")[:RUNNERS_UP]
        lines.append(f"{tuned.search.method_}; the best by {tuned.search.n_splits_} folds:")
        for i in order:
            one = table["params"][i]
            mean, std = table["mean_test_score"][i], table["std_test_score"][i]
            lines.append(f"{_spread(mean, std)}  {one['kernel']!r}, α = {one['alpha']:.4g}")
    if tuned.likelihood is not None:
        found = tuned.likelihood
        lines.append(
            f"log marginal likelihood {digits(found.value)} of {found.sample_size} rows, noise {digits(found.noise)}"
        )
        scales = next(value for name, value in found.kernel.get_params().items() if name.split("__")[-1] == "scales")
        ordered = sorted(zip(scales, tuned.features, strict=True))
        lines.append(
            "length-scales, the shortest first: " + ", ".join(f"{name} {digits(scale)}" for scale, name in ordered)
        )
        lines += list(found.notes)
    section("Kernel and α", [*lines, *tuned.notes])


def _best_of_each(search: KernelSearchCV) -> list[str]:
    """Each kernel of a search with its best α, the best first."""
    table, seen = search.cv_results_, dict[str, str]()
    for i in np.argsort(table["rank_test_score"], kind="stable"):
        one, mean, std = table["params"][i], table["mean_test_score"][i], table["std_test_score"][i]
        name = repr(one["kernel"])
        seen.setdefault(name, f"{_spread(mean, std)}  {name}, α = {one['alpha']:.4g}")
    return list(seen.values())


def show_score(outcome: Outcome, data: TrainingTable) -> None:
    """Show the score on the rows held out, beside guessing."""
    if outcome.held_out is None:
        section("Score", ["no rows were held out (--no-holdout)"])
        return
    dummy = "the most frequent class" if data.task == "classification" else "the mean"
    lines = [f"mercer    {outcome.held_out}", f"guessing  {outcome.guessing}  ({dummy} of the training rows)"]
    whose = "" if data.sample is None else ", of a model of the rest of the sample"
    section(f"Score on the rows held out{whose}", lines)
    show_confusion(outcome.confusion)


def show_confusion(confusion: Confusion | None) -> None:
    """Show how many rows of each class were predicted to be of each class."""
    if confusion is not None:
        section(confusion.title, confusion.lines)


def show_report(path: Any) -> None:
    """Show where the report is."""
    section("Report", [f"written to {path}; it opens in a browser, without a network"])


def show_saved(data: TrainingTable, model: TableModel, out: Any) -> None:
    """Show where the model is, and which rows it was fitted on."""
    lines = [f"saved as {out}, fitted on all {counted(model.n_rows_, 'row')}"]
    if data.held.any():
        lines[0] += ", those held out too"
        if isinstance(model.encoder, TableEncoder):
            lines.append("categories, and what stands for missing values, are those of the rows that were not held out")
    section("Model", lines)


def show_model(model: TableModel, *, report: bool = True) -> None:
    """Show the columns of a model, and the report of its fit."""
    assert model.encoder is not None
    assert model.estimator is not None
    section(model.encoder.heading, model.encoder.summary_)
    if report:
        title, *lines = str(model.estimator.report_).splitlines()
        section(title, [line.strip() for line in lines])


def as_option(kernel: Kernel) -> str:
    """`--kernel TEXT `, quoted for a shell, with a text that is read as this kernel; empty if there is no such text.

    >>> from mercer.kernels import Formula, Function, Gaussian
    >>> print(as_option(Gaussian("median").on(["size"])) + "--alpha 1")
    --kernel 'Gaussian(gamma="median").on(["size"])' --alpha 1
    >>> as_option(Formula("exp(-0.01*sqdist)")), as_option(Function(min))
    ("--kernel 'exp(-0.01*sqdist)' ", '')
    """
    text = as_text(kernel)
    return "" if text is None else f"--kernel {shlex.quote(text)} "


def as_text(kernel: Kernel) -> str | None:
    """A text that is read as this kernel; None if there is none."""
    texts = [repr(kernel).replace("'", '"'), repr(kernel)]  # in a shell the first needs fewer quotes
    if isinstance(kernel, Formula):
        texts.insert(0, kernel.text)
    for text in texts:
        try:
            if as_kernel(text) == kernel:
                return text
        except MercerError:
            continue
    return None


def show_next(data: TrainingTable, choice: KernelChoice, outcome: Outcome, out: Any, *, searched: bool) -> None:
    """Show what to try next."""
    lines = []
    if (
        outcome.held_out is not None
        and outcome.guessing is not None
        and outcome.held_out.main < outcome.guessing.main + 0.02
    ):
        lines.append("this is hardly better than guessing: check whether the columns say anything about the target")
    search, typed, alpha = choice.search, as_option(choice.named), choice.alpha
    own = "" if choice.method.name == "ridge" else f"--method {choice.method.name} "
    notes = search.notes if search is not None and not own else ()
    if alpha is not None and any("smallest" in note or "largest" in note for note in notes):
        way, factor = ("smaller", 0.1) if any("smallest" in note for note in notes) else ("larger", 10)
        lines.append(f"a {way} α: {typed}--alpha {alpha * factor:g}")
    if searched and typed:
        again = own + typed + ("" if alpha is None else f"--alpha {alpha:g}")
        lines.append(f"the same again without the search, by mercer fit: {again.rstrip()}")
    if out is None:
        lines.append("keep the model: --out model.mercer; then: mercer predict model.mercer TABLE")
    else:
        std = " --std" if choice.method.name == "gp" else ""
        lines.append(f"mercer predict {out} TABLE{std}; mercer evaluate {out} TABLE; mercer inspect {out}")
    section("Next", lines, exact=True)


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns set flush left, two spaces apart.

    >>> table_lines(["a", "b"], [["long", "1"]])
    ['a     b', 'long  1']
    """
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]
