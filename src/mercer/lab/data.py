"""The rows of the lab: a table that was opened, or one of those that come along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.tables.targets import Task, holdout_rows

__all__ = ["BUNDLED", "Dataset", "bundled"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, what is predicted of them, and which of them are held out.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    task : "regression" or "classification"
    columns : tuple of str
        The names of the d columns.
    held : ndarray of bool, shape (n,)
    code : tuple of str
        Lines of Python that make ``X``, ``y`` and ``held``.
    command : tuple of str
        The beginning of a `mercer fit` on the same rows; empty if there is none.
    notes : tuple of str

    Examples
    --------
    >>> table = bundled("helix")
    >>> table.X.shape, table.columns, int(table.held.sum())
    ((200, 3), ('cos t', 'sin t', 't'), 50)
    """

    name: str
    X: Floats
    y: NDArray[Any]
    task: Task
    columns: tuple[str, ...]
    held: NDArray[np.bool_]
    code: tuple[str, ...]
    command: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> float:
        """The standard deviation of the target of the rows that are fitted; 1 for classes."""
        return (float(np.std(self.y[~self.held])) if self.task == "regression" else 0.0) or 1.0

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in order; none for a regression."""
        return np.unique(self.y) if self.task == "classification" else np.empty(0)

    @property
    def codes(self) -> Floats:
        """The values that colour the rows: the target, or the number of the class."""
        return self.y if self.task == "regression" else np.searchsorted(self.classes, self.y).astype(np.float64)

    def with_columns(self, chosen: tuple[int, ...]) -> Dataset:
        """The same rows with these columns only."""
        names = tuple(self.columns[i] for i in chosen)
        code = (*self.code, f"X = X[:, {list(chosen)}]")
        return replace(self, X=np.ascontiguousarray(self.X[:, chosen]), columns=names, code=code, command=())


def bundled(name: str) -> Dataset:
    """One of the tables that come along, a quarter of its rows held out.

    Raises
    ------
    InvalidInput
        For a name that is not in `BUNDLED`.

    Examples
    --------
    >>> bundled("moons").classes
    array([0, 1])
    """
    if name not in BUNDLED:
        raise InvalidInput(message("lab", f"no table {name!r}", f"the bundled ones are {', '.join(BUNDLED)}"))
    X, y, task, columns = BUNDLED[name]()
    code = ["from mercer.lab import bundled", "", f"table = bundled({name!r})"]
    code += ["X, y, held = table.X, table.y, table.held"]
    return Dataset(name, np.asarray(X, np.float64), y, task, tuple(columns), holdout_rows(y, task, seed=0), tuple(code))


Made = tuple[Any, Any, Task, "list[str]"]


def _moons() -> Made:
    from sklearn.datasets import make_moons

    return *make_moons(400, noise=0.2, random_state=0), "classification", ["x₁", "x₂"]


def _circles() -> Made:
    from sklearn.datasets import make_circles

    return *make_circles(400, noise=0.1, factor=0.4, random_state=0), "classification", ["x₁", "x₂"]


def _exclusive_or() -> Made:
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64), "classification", ["x₁", "x₂"]


def _helix() -> Made:
    t = np.linspace(0, 4 * np.pi, 200)
    return np.column_stack([np.cos(t), np.sin(t), t]), t, "regression", ["cos t", "sin t", "t"]


def _from_sklearn(name: str, task: Task, standard: bool = True) -> Callable[[], Made]:
    """A table of scikit-learn's: columns of mean 0 and deviation 1, or images divided by their largest grey."""

    def made() -> Made:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        X = np.asarray(found.data, np.float64)
        X = (X - X.mean(axis=0)) / X.std(axis=0) if standard else X / X.max()
        return X, found.target, task, list(found.feature_names)

    return made


BUNDLED: dict[str, Callable[[], Made]] = {
    "moons": _moons,
    "circles": _circles,
    "exclusive or": _exclusive_or,
    "helix": _helix,
    "iris": _from_sklearn("iris", "classification"),
    "wine": _from_sklearn("wine", "classification"),
    "breast cancer": _from_sklearn("breast_cancer", "classification"),
    "diabetes": _from_sklearn("diabetes", "regression"),
    "digits": _from_sklearn("digits", "classification", standard=False),
}
"""The tables that come along, by name."""
