"""The commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli import options
from mercer.cli.guard import BAD_INPUT, FAILED, INTERRUPTED, guarded, tell
from mercer.numerals import counted

if TYPE_CHECKING:
    from mercer.cli import fitting

__all__ = ["app", "run"]

# Commands import what they need when they run, so that help is quick: scikit-learn and pandas are slow to import.

app = typer.Typer(
    name="mercer",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(args: list[str]) -> int:
    """Run a command and return the exit status.

    >>> run(["--version"])
    mercer 0.1.0
    0
    """
    try:
        return int(app(args, prog_name="mercer", standalone_mode=False) or 0)
    except typer.Abort:
        tell("mercer: stopped.")
        return INTERRUPTED
    except Exception as error:
        # A mistake in the options. What commands raise is caught by `guarded`, unless --debug is set.
        from mercer.errors import InvalidInput, message

        if isinstance(error, InvalidInput) and "--debug" not in args:  # in a file of --config
            tell(f"mercer: {error}")
            return BAD_INPUT
        if not hasattr(error, "format_message"):
            raise
        named = {one.callback.__name__ for one in app.registered_commands if one.callback is not None}
        known = args[0] if args and args[0] in named else ""
        advice = f"mercer {known} --help shows its options" if known else "mercer --help shows the commands"
        given, meant = options.mistaken(error, args, known)
        tell(f"mercer: {message('options', given, meant + advice)}")
        return BAD_INPUT


def _version(wanted: bool) -> None:
    if wanted:
        import mercer

        typer.echo(f"mercer {mercer.__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Kernel methods on tables: fit a model, predict, evaluate.

    mercer COMMAND --help shows the options of a command.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
@guarded
def fit(
    context: typer.Context,
    table: options.TableFile,
    target: options.Target = None,
    method: options.MethodName = "ridge",
    kernel: options.FitKernel = None,
    alpha: options.Alpha = None,
    components: options.Components = None,
    clusters: options.Clusters = None,
    outliers: options.Outliers = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    text: options.ReadText = None,
    task: options.Task = "auto",
    out: options.ModelOut = None,
    report: options.ReportOut = None,
    seed: options.Seed = 0,
    memory: options.Memory = None,
    holdout: options.Holdout = True,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    dask: options.DaskScheduler = None,
    workers: options.Workers = None,
    checkpoint: options.Checkpoint = None,
    config: options.Config = None,
    save_config: options.SaveConfig = None,
    debug: options.Debug = False,
) -> None:
    """Fit a model that predicts one column of a table from the others.

    It chooses a kernel and the regularisation α, and scores the model on held-out rows. Models of components, clusters
    or outliers (--method pca, kmeans, spectral, oneclass) need no target.
    """
    given = SimpleNamespace(**locals())
    from mercer.cli import unsupervised

    given.numbers = {"--components": components, "--clusters": clusters, "--outliers": outliers}
    with _kept(checkpoint, [table, out, report]):
        if unsupervised.is_unsupervised(method):
            _fit_without_target(given)
        else:
            unsupervised.refuse_numbers(given.numbers, method)
            _fit_for_a_target(given)


@app.command()
@guarded
def tune(
    context: typer.Context,
    table: options.TableFile,
    target: options.Target = None,
    kernel: options.TuneKernel = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    text: options.ReadText = None,
    task: options.Task = "auto",
    per_column: options.PerColumn = False,
    halving: options.Halving = None,
    resume: options.Resume = None,
    out: options.ModelOut = None,
    seed: options.Seed = 0,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    checkpoint: options.Checkpoint = None,
    config: options.Config = None,
    save_config: options.SaveConfig = None,
    debug: options.Debug = False,
) -> None:
    """Choose a kernel and its parameters for a table.

    It makes a shortlist of kernels, searches around the best one, and scores the model on held-out rows.
    """
    from mercer import io
    from mercer.cli import fitting, tuning
    from mercer.cli.output import results, show

    tuning.refuse_contradictions(per_column, halving, resume)
    keep = _checked_search(context, table, out, resume, memory, save_config)
    with _kept(checkpoint, [table, out, resume]), show.sections(silent=as_json, saves=bool(out or save_config)):
        with _working(threads):
            rows = io.read_table(table, memory=memory, kept=fitting.labels(target))
            data = fitting.prepare(rows, target, task, seed, columns=columns, drop=drop, text=text)
            show.show_data(data)
            found = tuning.tune(data, kernel, per_column, halving, resume, seed)
            show.show_tuned(found)
            outcome = fitting.fit(data, found.choice, memory, refit=out is not None)
        _told(data, found.choice, outcome, out, searched=True, details=False)
        keep({})
        if as_json:
            show.printed(results.as_json(results.of_tuning(data, found, outcome, out)))


@app.command()
@guarded
def compare(
    context: typer.Context,
    table: options.TableFile,
    target: options.Target = None,
    methods: options.Methods = None,
    kernel: options.ManyKernels = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    text: options.ReadText = None,
    task: options.Task = "auto",
    rows: options.SomeRows = 2000,
    folds: options.Folds = 5,
    repeats: options.Repeats = 2,
    resume: options.Resume = None,
    out: options.ModelOut = None,
    seed: options.Seed = 0,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    save_config: options.SaveConfig = None,
    debug: options.Debug = False,
) -> None:
    """Compare methods and kernels on a table by nested cross-validation.

    Each choice is made on the training rows of a fold alone. The leaderboard has confidence intervals and costs.
    """
    from mercer.cli.compare import command
    from mercer.cli.output import results, show

    prepared = {"target": target, "task": task, "columns": columns, "drop": drop, "text": text}
    plan = command.Plan(methods, kernel or [], rows, folds, repeats, resume, out, seed, memory)
    plan.check_places(table)
    keep = _keeper(context, save_config, [table, out, resume])
    with _working(threads), show.sections(silent=as_json, saves=out is not None or save_config is not None):
        found = command.compare(table, prepared, plan)
        keep({})
        if as_json:
            show.printed(results.as_json(found))


@app.command()
@guarded
def predict(
    model: options.ModelFile,
    table: options.TableFile,
    out: options.TableOut = None,
    memory: options.Memory = None,
    proba: options.Proba = False,
    std: options.Std = False,
    keep: options.Keep = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Predict the target of each row of a table.

    The predictions are one column, in the order of the rows, after the columns of --keep. Those of a Parquet or Arrow
    table are written while it is read, to a CSV or Parquet file.
    """
    with _working(threads):
        _written_outputs("predict", model, table, out, memory, as_json, keep, proba, std)


@app.command()
@guarded
def transform(
    model: options.ModelFile,
    table: options.TableFile,
    out: options.TableOut = None,
    memory: options.Memory = None,
    keep: options.Keep = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Write the scores of each row of a table on the components of a model.

    Models of pca, spectral and discriminant have components; of kmeans, the distances from the clusters are written.
    """
    with _working(threads):
        _written_outputs("transform", model, table, out, memory, as_json, keep)


@app.command()
@guarded
def evaluate(
    model: options.ModelFile,
    table: options.TableFile,
    target: options.OtherTarget = None,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Score a model on a table that has the target column."""
    from mercer.cli import predicting
    from mercer.cli.columns import listed
    from mercer.cli.output import results, show

    fitted = predicting.loaded(model, memory)
    predicting.require_target(fitted, model.name)
    name = target or fitted.target
    rows, column = predicting.rows_for(fitted, table, memory, target=name).split(name)
    with _working(threads):
        found = predicting.evaluated(fitted, rows, column)
    notes = predicting.notes(rows, fitted) + predicting.seen(fitted, rows)
    for note in notes:
        tell(f"note: {note}")
    if as_json:
        typer.echo(results.as_json(results.of_evaluation(fitted, rows.path, name, found, notes)))
        return
    dummy = "most frequent class" if fitted.task == "classification" else "mean"
    lines = [f"mercer    {found.score}", f"guessing  {found.guessing}  (the {dummy} of these very rows)"]
    if found.unknown:
        unknown, known = ", ".join(found.unknown), listed([str(one) for one in fitted.classes_])
        of = f"class{'es' * (len(found.unknown) > 1)}"
        lines.append(f"the model does not know the {of} {unknown}: its classes are {known}")
    show.section(f"{counted(len(column), 'row')} of {rows.path}", lines)
    show.show_confusion(found.confusion)


@app.command()
@guarded
def inspect(model: options.ModelFile, as_json: options.AsJson = False, debug: options.Debug = False) -> None:
    """Show what is in a model file."""
    from mercer.cli.columns import listed
    from mercer.cli.methods.supervised import regularisation
    from mercer.cli.output import results, show
    from mercer.cli.predicting import any_model
    from mercer.io import TableModel

    fitted = any_model(model)
    if as_json:
        typer.echo(results.as_json(results.of_inspection(model, fitted)))
        return
    if not isinstance(fitted, TableModel):
        report = getattr(fitted, "report_", "not fitted")
        show.section(model.name, [repr(fitted), *str(report).splitlines()])
        return
    aim = f"{fitted.task} of {fitted.target}" if fitted.task in ("regression", "classification") else fitted.task
    lines = [f"{aim}, fitted on {counted(fitted.n_rows_, 'row')}", *fitted.notes]
    assert fitted.estimator is not None
    if fitted.task == "classification":
        lines.append(f"classes: {listed([str(one) for one in fitted.estimator.classes_], 30)}")
    assert fitted.encoder is not None
    lines.append(f"needs the columns {listed(fitted.encoder.columns_, 50)}")
    lines.append(regularisation(fitted.estimator))
    show.section(model.name, filter(None, lines))
    show.show_model(fitted)


@app.command()
@guarded
def plot(
    model: options.ModelFile,
    table: options.TableFile,
    out: options.PictureOut,
    kind: options.PictureKind = "auto",
    target: options.OtherTarget = None,
    memory: options.Memory = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Draw a model and the rows of a table.

    The picture suits the model: the surface over two columns, the posterior along one, scores on components, residuals
    of numbers, or the confusion of classes.
    """
    from mercer.cli import predicting
    from mercer.cli.output import plotting, results, show

    plotting.check_picture_place(out, [model, table])
    fitted = predicting.loaded(model, memory)
    with _working(threads):
        rows = predicting.rows_for(fitted, table, memory, target=target or fitted.target)
        found = plotting.plot(fitted, rows, kind, target, out)
    with show.sections(silent=as_json, saves=True):
        show.section("Picture", [f"{found.kind} of {counted(found.rows, 'row')}, written to {out}", *found.notes])
        if as_json:
            show.printed(results.as_json(results.of_picture(model, rows.path, found, out)))


@app.command()
@guarded
def check(
    kernel: options.AnyKernel,
    table: options.SomeTable = None,
    target: options.LeftOut = None,
    columns: options.ColumnsOrWidth = None,
    drop: options.Drop = None,
    text: options.ReadText = None,
    vary: options.Vary = None,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Check whether a function is a Mercer kernel.

    It finds a proof, or points that refute it. The exit status is 1 if it is refuted.
    """
    from mercer.cli.checking import examined
    from mercer.cli.output import results, show

    with _working(threads):
        report = examined(kernel, table, target, columns, vary, drop, text)
    if as_json:
        typer.echo(results.as_json(results.of_check(report)))
    else:
        first, *lines = str(report).splitlines()
        show.section(first, [line.removeprefix("  ") for line in lines])
    if report.is_mercer is False:
        raise typer.Exit(FAILED)


@app.command()
@guarded
def demo(as_json: options.AsJson = False, threads: options.Threads = None, debug: options.Debug = False) -> None:
    """Fit a model of handwritten digits, then compare speed and results with scikit-learn."""
    from mercer.cli.demo import run_demo
    from mercer.cli.output import results, show

    with _working(threads), show.sections(silent=as_json, saves=False):
        found = run_demo()
    if as_json:
        typer.echo(results.as_json(found))


@app.command()
@guarded
def schema(command: options.AnyCommand, debug: options.Debug = False) -> None:
    """Print the JSON Schema of what a command prints with --json."""
    from mercer.cli.output import results
    from mercer.cli.output.schema import described

    typer.echo(results.as_json(described(command)))


@app.command()
@guarded
def lab(
    table: options.LabTable = None,
    target: options.Target = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    task: options.Task = "auto",
    rows: options.LabRows = 2000,
    port: options.LabPort = 0,
    as_json: options.AsJson = False,
    threads: options.Threads = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Try kernels and methods on a page in the browser, on this machine only.

    It prints the address of the page, and serves it until Ctrl-C.
    """
    from mercer.cli.lab import run_lab
    from mercer.engine.backend import fixed_threads

    with nullcontext() if threads is None else fixed_threads(threads):
        run_lab(table, target, columns, drop, task, rows, port, as_json)


# ---- help for the commands -------------------------------------------------------------------------------------------


def _fit_without_target(given: SimpleNamespace) -> None:
    from mercer.cli import unsupervised
    from mercer.cli.output import results, show

    plan = unsupervised.Plan(**{name: getattr(given, name) for name in unsupervised.Plan.__dataclass_fields__})
    plan.refuse(given.alpha, given.task, given.report, given.holdout, given.dask, given.workers)
    keep = _keeper(given.context, given.save_config, [given.table, plan.out])
    saves = plan.out is not None or given.save_config is not None
    with _working(given.threads), show.sections(silent=given.as_json, saves=saves):
        found = unsupervised.fit_unsupervised(given.table, plan, keep)
        if given.as_json:
            show.printed(results.as_json(found))


def _fit_for_a_target(given: SimpleNamespace) -> None:
    from mercer import points
    from mercer.cli import fitting, places
    from mercer.cli.output import reporting, results, show
    from mercer.shards import workers as clients

    table, seed, out, report = given.table, given.seed, given.out, given.report
    named = {"columns": given.columns, "drop": given.drop, "text": given.text}
    places.check_model_place(out, [table])
    places.check_report_place(report, [table, out], holdout=given.holdout)
    points.parse_memory(given.memory)
    keep = _keeper(given.context, given.save_config, [table, out, report])
    saves = any(one is not None for one in (out, report, given.save_config))
    quiet = {"silent": given.as_json, "saves": saves}
    with _working(given.threads), clients.workers(given.dask, given.workers), show.sections(**quiet):
        rows, whole = fitting.table_or_sample(table, given.memory, seed, fitting.labels(given.target))
        data = fitting.prepare(rows, given.target, given.task, seed, given.holdout, whole=whole, **named)
        show.show_data(data)
        choice = fitting.chosen(data, given.kernel, given.alpha, given.method, seed)
        show.show_choice(choice)
        scored = reporting.writer(report, table, data, choice, seed, **named)
        outcome = fitting.fit(data, choice, given.memory, refit=out is not None, scored=scored)
    with show.sections(**quiet):
        _told(data, choice, outcome, out, report, searched=choice.search is not None)
        keep({"target": data.target, "task": data.task, "kernel": show.as_text(choice.named), "alpha": choice.alpha})
        if given.as_json:
            show.printed(results.as_json(results.of_fit(data, choice, outcome, out, report)))


def _written_outputs(
    does: str,
    model: Path,
    table: Path,
    out: Path | None,
    memory: str | None,
    as_json: bool,
    keep: str | None,
    proba: bool = False,
    std: bool = False,
) -> None:
    """Write the predictions or the scores of a table to a file or to standard output."""
    from mercer.cli import predicting
    from mercer.cli.output import results, show, tables

    fitted = predicting.loaded(model, memory)
    columns = predicting.outputs(fitted, model.name, does, proba, std)
    kept, columns = predicting.kept_names(keep, columns)
    tables.check_table_place(out, [model, table], [*kept, *columns])
    what = f"predictions of {fitted.target}" if does == "predict" else "rows of scores"
    if predicting.streams(table, out, as_json):
        assert out is not None
        count, notes = predicting.streamed(fitted, table, out, does, columns, kept, memory)
        for note in notes:
            tell(f"note: {note}")
        tell(f"{count} {what} in {out}")
        return
    rows = predicting.rows_for(fitted, table, memory, kept)
    frame = predicting.made(fitted, rows, does, columns, kept)
    notes = predicting.notes(rows, fitted)
    for note in notes:
        tell(f"note: {note}")
    if out is not None:
        tables.write_table(frame, out)
        tell(f"{len(frame)} {what} in {out}")
    if as_json:
        with show.sections(silent=False, saves=out is not None):
            show.printed(results.as_json(results.of_outputs(does, fitted, rows.path, frame, notes, out)))
    elif out is None:
        typer.echo(frame.to_csv(index=False), nl=False)


def _checked_search(
    context: typer.Context,
    table: Path,
    out: Path | None,
    resume: Path | None,
    memory: str | None,
    kept: Path | None,
) -> Callable[[dict[str, Any]], None]:
    """`_keeper` of a search, after its other places and its memory are checked."""
    from mercer import points
    from mercer.cli import places

    places.check_model_place(out, [table])
    places.check_scores_place(resume, [table, out])
    points.parse_memory(memory)
    return _keeper(context, kept, [table, out, resume])


def _keeper(context: typer.Context, path: Path | None, others: list[Path | None]) -> Callable[[dict[str, Any]], None]:
    """A function that saves the settings of a run; a file that cannot be written is refused at once."""
    if path is None:
        return lambda chosen: None
    from mercer.cli import places, settings
    from mercer.cli.output import show

    settings.check_settings_place(path, places.given_paths(others))

    def keep(chosen: dict[str, Any]) -> None:
        found = settings.given_settings(context) | {name: one for name, one in chosen.items() if one is not None}
        settings.save_settings(path, found)
        show.section("Settings", [f"saved as {path}; the same again: mercer {context.info_name} --config {path}"])

    return keep


@contextmanager
def _kept(checkpoint: Path | None, others: list[Path | None]) -> Iterator[None]:
    """Keep the states of the fits within in a file, if one is named, until all is done."""
    if checkpoint is None:
        yield
        return
    from mercer import io
    from mercer.cli import places

    places.check_checkpoint_place(checkpoint, others)
    with io.checkpoint(checkpoint):
        yield


@contextmanager
def _working(threads: int | None) -> Iterator[None]:
    """Show progress on terminals, and use the given number of threads, or as many as other programs leave free."""
    from mercer.engine.backend import fixed_threads, spare_threads
    from mercer.events import Progress, observe

    with ExitStack() as stack:
        stack.enter_context(spare_threads() if threads is None else fixed_threads(threads))
        stack.enter_context(observe(Progress()))
        yield


def _told(
    data: fitting.TrainingTable,
    choice: fitting.KernelChoice,
    outcome: fitting.Outcome,
    out: Path | None,
    report: Path | None = None,
    *,
    searched: bool,
    details: bool = True,
) -> None:
    """Show the model and its score, save it, and show what can be done next."""
    from mercer.cli.output import show
    from mercer.io import save

    show.show_model(outcome.model, report=details)
    show.show_score(outcome, data)
    if out is not None:
        save(outcome.model, out)
        show.show_saved(data, outcome.model, out)
    if report is not None:
        show.show_report(report)
    show.show_next(data, choice, outcome, out, searched=searched)
