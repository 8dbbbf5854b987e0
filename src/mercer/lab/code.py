"""The Python, and the command line, that give the numbers of the lab again."""

from __future__ import annotations

import shlex
from typing import Any

from mercer.lab.data import Dataset
from mercer.lab.settings import METHODS, Settings

__all__ = ["command", "python"]


def python(data: Dataset, settings: Settings, components: int) -> str:
    """A program that prints the score, the variances and the verdict on the kernel.

    >>> from mercer.lab.data import bundled
    >>> print(python(bundled("moons"), Settings("pca"), 10).splitlines()[0])
    import mercer
    """
    method = METHODS[settings.method]
    given = settings.arguments(data.task, data.unit)
    name = method.estimators[data.task].__name__
    made = ", ".join(f"{key}={'kernel' if key == 'kernel' else repr(value)}" for key, value in given.items())
    lines = ["import mercer", *data.code, "", f"kernel = {settings.text!r}"]
    lines += ["print(mercer.check_kernel(kernel, n_features=X.shape[1]))"]
    lines += [f"pca = mercer.KernelPCA({components}, kernel).fit(X)"]
    lines += ['print("variances", *pca.explained_variance_ratio_)']
    if method.supervised:  # at the end: if the function is not a kernel, it may have no solution
        lines += [f"model = mercer.{name}({made}).fit(X[~held], y[~held])"]
        lines += ['print("score", model.score(X[held], y[held]))']
    elif settings.method == "kmeans":
        lines += [f"model = mercer.{name}({made}).fit(X)", 'print("score", -model.inertia_)']
    else:
        lines += ['print("score", pca.explained_variance_ratio_[:2].sum())']
    return "\n".join([*lines, ""])


def command(data: Dataset, settings: Settings) -> str:
    """`mercer fit` with the same score, if the method and the rows are its own; otherwise `mercer check` of the kernel.

    >>> from mercer.lab.data import bundled
    >>> command(bundled("moons"), Settings())
    "mercer check 'gaussian(gamma=0.1)' --columns 2"
    """
    if data.command and settings.method == "ridge":
        chosen: list[Any] = [*data.command, "--kernel", settings.text, "--alpha", settings.penalty]
        return shlex.join(map(str, chosen))
    return shlex.join(["mercer", "check", settings.text, "--columns", str(data.X.shape[1])])
