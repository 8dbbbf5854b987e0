"""The arguments and options that commands share, each with its help, and those that a mistake may mean."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from mercer.cli import completion

__all__ = [
    "Alpha",
    "AnyCommand",
    "AnyKernel",
    "AsJson",
    "Checkpoint",
    "Clusters",
    "Columns",
    "ColumnsOrWidth",
    "Components",
    "Config",
    "DaskScheduler",
    "Debug",
    "Drop",
    "FitKernel",
    "Folds",
    "Halving",
    "Holdout",
    "Keep",
    "LabPort",
    "LabRows",
    "LabTable",
    "LeftOut",
    "ManyKernels",
    "Memory",
    "MethodName",
    "Methods",
    "ModelFile",
    "ModelOut",
    "OtherTarget",
    "Outliers",
    "PerColumn",
    "PictureKind",
    "PictureOut",
    "Proba",
    "ReadText",
    "Repeats",
    "ReportOut",
    "Resume",
    "SaveConfig",
    "Seed",
    "SomeRows",
    "SomeTable",
    "TableFile",
    "TableOut",
    "Target",
    "Task",
    "Text",
    "Threads",
    "TuneKernel",
    "Vary",
    "Workers",
    "mistaken",
]

COMMANDS = ("fit", "tune", "compare", "predict", "transform", "evaluate", "inspect", "plot", "check", "demo", "lab")
"""Commands that have a result."""

Text = Optional[str]  # noqa: UP045  (typer reads the annotations)

TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="The file of the table: CSV, TSV, svmlight, FASTA or plain text, gzipped or not, .npy, .npz, Parquet, "
        "Arrow or a spreadsheet. - means standard input.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that mercer fit or mercer tune saved.")]
Target = Annotated[
    Text, typer.Option(autocompletion=completion.target, metavar="COLUMN", help="Predict this column from the others.")
]
Task = Annotated[
    str,
    typer.Option(
        autocompletion=completion.tasks,
        metavar="TASK",
        help="Take the target as numbers (regression) or as classes (classification). auto decides by its values.",
    ),
]
Alpha = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        metavar="NUMBER",
        help="Set the regularisation α (λ in the chapters): the fit minimises Σ(yᵢ − f(xᵢ))² + α‖f‖². "
        "By default cross-validation chooses it.",
    ),
]
ModelOut = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FILE", help="Save the model in this file. By default nothing is saved."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else, on standard output.")
]
Proba = Annotated[
    bool,
    typer.Option("--proba", help="Add a column with the probability of each class. It needs a classification."),
]
Std = Annotated[
    bool,
    typer.Option(
        "--std", help="Add a column with the standard deviation of each value. It needs a model of --method gp."
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed the choice of held-out rows, samples and folds.", min=0)]
Columns = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.columns,
        metavar="COLUMNS",
        help="Predict from these columns only; separate their names by commas. "
        "By default from all but counters of rows and identifiers.",
    ),
]
Drop = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.columns,
        metavar="COLUMNS",
        help="Leave these columns out; separate their names by commas.",
    ),
]
Keep = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.columns,
        metavar="COLUMNS",
        help="Copy these columns of the table, such as an identifier, or the target, before the outputs; "
        "separate their names by commas. Numbers are written as they were read, so that 0.10 becomes 0.1.",
    ),
]
ReadText = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.columns,
        metavar="COLUMNS",
        help="Read these columns as text, by kernels on their substrings; separate their names by commas.",
    ),
]
Memory = Annotated[
    Text,
    typer.Option(metavar="SIZE", help="Limit the memory, as in 2GB. By default half of the free memory is used."),
]
Holdout = Annotated[
    bool,
    typer.Option(
        "--holdout/--no-holdout",
        help="Hold out a quarter of the rows to score the model, or use all rows and show no score.",
    ),
]
ReportOut = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write what the model is worth on the held-out rows to a page that opens without a network.",
    ),
]
Threads = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Use N threads. By default as many as other programs leave free.", min=1),
]
DaskScheduler = Annotated[
    Text,
    typer.Option("--dask", metavar="ADDRESS", help="Let the workers of this Dask scheduler compute the final fits."),
]
Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        metavar="N", help="Let N Dask workers on this machine, of one thread each, compute the final fits.", min=1
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]
FitKernel = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.kernels,
        metavar="KERNEL",
        help="Use this kernel, such as 'gaussian(gamma=0.1)'. By default one is chosen.",
    ),
]
TuneKernel = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.kernels,
        metavar="KERNEL",
        help="Search around this kernel. By default around the best one of a shortlist.",
    ),
]
PerColumn = Annotated[
    bool, typer.Option("--per-column", help="Learn a length-scale for each column. It needs a regression.")
]
Halving = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Keep the best 1/N of the candidates in each round, on more rows.", min=2),
]
Checkpoint = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FILE", help="Keep the state of long fits in this file, to go on after a kill."),
]
Resume = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FILE", help="Keep the scores in this file, so that a search can go on from there."),
]


def _unless_standard_output(path: Path | None) -> Path | None:
    return None if path == Path("-") else path


def _applied(context: typer.Context, path: Path | None) -> Path | None:
    if path is None:
        return None
    from mercer.cli.settings import apply_settings

    return apply_settings(context, path)


Config = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        metavar="FILE.toml",
        is_eager=True,
        callback=_applied,
        help="Take the settings in this file; what is given here counts more.",
    ),
]
SaveConfig = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--save-config", metavar="FILE.toml", help="Write the settings of this run to a file, for --config."),
]
TableOut = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        metavar="FILE",
        callback=_unless_standard_output,
        help="Write to this CSV, TSV, Parquet or NumPy file. By default, and by -, to standard output as CSV.",
    ),
]
Components = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Keep N components, by pca. By default 10.", min=1),
]
Clusters = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Find N clusters, by kmeans or spectral. By default silhouettes choose N.", min=2),
]
Outliers = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        metavar="SHARE", help="Leave at most this share of the rows outside, by oneclass. By default 0.05.", max=1.0
    ),
]
OtherTarget = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.target,
        metavar="COLUMN",
        help="Compare with this column. By default with the one named as at the fit.",
    ),
]
AnyKernel = Annotated[
    str,
    typer.Argument(
        autocompletion=completion.kernels,
        metavar="KERNEL",
        help="A kernel, such as 'gaussian(gamma=0.1)', or a formula, such as 'exp(-sqdist**1.5)'.",
    ),
]
AnyCommand = Annotated[
    str,
    typer.Argument(
        metavar="COMMAND",
        autocompletion=lambda incomplete: [one for one in COMMANDS if one.startswith(incomplete)],
        help="A command that has --json, such as fit.",
    ),
]
PictureOut = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="Write the picture to this file, which ends in .png, .svg or .pdf."),
]
PictureKind = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        autocompletion=completion.pictures,
        help="Draw the surface over two columns, the posterior along one, scores on components, residuals or "
        "the confusion of classes. auto takes what suits the model.",
    ),
]
SomeTable = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Argument(metavar="TABLE", help="A table whose rows the kernel is tried on."),
]
LeftOut = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.target, metavar="COLUMN", help="Leave this column of the table out, as a fit does."
    ),
]
ColumnsOrWidth = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.columns,
        metavar="COLUMNS",
        help="Look at these columns of the table, named with commas between them; "
        "without a table, at rows of this many columns. By default at rows of any length.",
    ),
]
Vary = Annotated[
    Text, typer.Option(metavar="NAME=VALUES", help="Try several values of a parameter, as in gamma=0.1,1,10.")
]
LabTable = Annotated[
    Text,
    typer.Argument(
        metavar="TABLE",
        help="A file with a table, or the name of a bundled one: moons, circles, 'exclusive or', helix, iris, wine, "
        "'breast cancer', diabetes or digits. By default moons.",
    ),
]
LabRows = Annotated[
    int, typer.Option(metavar="N", help="Use at most N rows of the table, drawn at random.", min=20, max=10_000)
]
LabPort = Annotated[
    int, typer.Option(metavar="PORT", help="Listen on this port. By default on a free one.", min=0, max=65535)
]
MethodName = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        autocompletion=completion.methods,
        help="Fit by ridge or svm (numbers or classes), gp (numbers), logistic or discriminant (classes); "
        "without a target by pca, kmeans, spectral or oneclass.",
    ),
]
Methods = Annotated[
    Text,
    typer.Option(
        autocompletion=completion.several_methods,
        metavar="METHODS",
        help="Compare these methods; separate them by commas. By default all for the task but gp, which takes long.",
    ),
]
ManyKernels = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--kernel",
        autocompletion=completion.kernels,
        metavar="KERNEL",
        help="Compare each method with this kernel; give it again for more kernels. By default each fold chooses one.",
    ),
]
SomeRows = Annotated[
    int, typer.Option(metavar="N", help="Compare on at most N rows of the table, drawn at random.", min=40)
]
Folds = Annotated[int, typer.Option(metavar="N", help="Divide the rows into N folds.", min=2, max=20)]
Repeats = Annotated[int, typer.Option(metavar="N", help="Divide the rows anew so many times.", min=1, max=100)]

_MEANT = {
    **dict.fromkeys(
        ("--lambda", "--lam", "--lamda", "--ridge", "--reg"), "give --alpha NUMBER for λ: it is α on the command line"
    ),
    **dict.fromkeys(("--C", "--c", "--cost"), "give --alpha NUMBER, the weight of the penalty: C is 1/(2α)"),
    **dict.fromkeys(("-o", "--save", "--model", "--to"), "give --out FILE"),
    "--gamma": 'give --kernel "gaussian(gamma=NUMBER)"',
    "--sigma": 'give --kernel "gaussian(gamma=NUMBER)", where γ = 1/(2σ²)',
    "--degree": 'give --kernel "polynomial(degree=NUMBER)"',
}
"""What other programs and textbooks call options, and what to give instead."""


def mistaken(error: Any, args: list[str], command: str) -> tuple[str, str]:
    """What is wrong with the options, and what may be meant; only an option that is near is suggested."""
    option = getattr(error, "option_name", None)
    if option is None or not hasattr(error, "possibilities"):
        given, context = error.format_message().rstrip("."), getattr(error, "ctx", None)
        extra = re.search(r"extra argument(?:\(s\))? \((\S+)\)$", given)
        aims = context is not None and any("--target" in one.opts for one in context.command.params)
        return given, f"write --target {extra[1]} if it is the target; " if extra and aims else ""
    context = getattr(error, "ctx", None)
    takes = {one for known in context.command.params for one in known.opts} if context is not None else set[str]()
    if option in _MEANT and _MEANT[option].split()[1] in takes:
        return f"No such option: {option}", f"{_MEANT[option]}; "
    near = get_close_matches(option, error.possibilities or (), n=1, cutoff=0.7)
    value = next((one for one in args[1:] if one.startswith(option) and not one.startswith("--")), None)
    meant = f"did you mean {near[0]}? " if near else ""
    if value is not None and command:
        meant = f'write mercer {command} -- "{value}" if it is no option; '
    return f"No such option: {option}", meant
