"""Tables with texts or sequences: a kernel for each such column, one for the numbers, and their sum or product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput, message
from mercer.io import TableEncoder
from mercer.kernels import Kernel, OnColumns
from mercer.numerals import ratio
from mercer.select import cross_validate_ridge, default_alphas, default_kernels, default_sequence_kernels
from mercer.tables.targets import Task

__all__ = ["NUMBERS", "Joined", "Part", "best_parts", "joined", "number_rows", "placed"]

NUMBERS = "numbers"
WEIGHTS = (0.25, 0.5, 0.75)
"""The weights to try for the kernel of the numbers, in a sum with kernels of texts."""


@dataclass(frozen=True)
class Part:
    """A kernel on some columns of an encoder, by name, and a sentence with its score alone."""

    name: str
    features: tuple[str, ...]
    kernel: Kernel
    said: str = ""

    def on(self, encoder: TableEncoder) -> Kernel:
        """The kernel on the rows that an encoder makes."""
        place = {name: j for j, name in enumerate(encoder.feature_names_out_)}
        return self.kernel.on([place[one] for one in self.features])


@dataclass(frozen=True)
class Joined:
    """Σ wₚkₚ, or Πkₚ, of some parts."""

    parts: tuple[Part, ...]
    weights: tuple[float, ...] = ()
    """Empty for a product."""

    def own(self, encoder: TableEncoder) -> TableEncoder:
        """The encoder of those columns only that the kernel reads."""
        return encoder.with_features(*self.features)

    @property
    def features(self) -> list[str]:
        """The names of the columns of all parts."""
        return [feature for part in self.parts for feature in part.features]

    def kernel(self, encoder: TableEncoder) -> Kernel:
        """The kernel on the rows of an encoder that has the columns of all parts."""
        if not encoder.text_columns_:
            return self.parts[0].kernel
        return self._joined([part.on(encoder) for part in self.parts])

    @property
    def named(self) -> Kernel:
        """The kernel with names of columns, in a form that can be given again."""
        if [part.name for part in self.parts] == [NUMBERS]:
            return self.parts[0].kernel
        return self._joined([part.kernel.on(part.features) for part in self.parts])

    def varied(self, around: Callable[[Kernel], list[Kernel]]) -> list[Joined]:
        """The same parts with other bandwidths of the numbers, and in a sum with other weights."""
        first, *others = self.parts
        kernels = around(first.kernel) if first.name == NUMBERS else [first.kernel]
        summed = first.name == NUMBERS and others and self.weights
        weights = _shares(len(self.parts)) if summed else [self.weights]
        return [Joined((replace(first, kernel=one), *others), share) for one in kernels for share in weights]

    def _joined(self, kernels: list[Kernel]) -> Kernel:
        if self.weights:
            kernels = (
                [kernels[0]]
                if len(kernels) == 1
                else [weight * one for weight, one in zip(self.weights, kernels, strict=True)]
            )
        total = kernels[0]
        for one in kernels[1:]:
            total = total + one if self.weights else total * one
        return total


def number_rows(encoder: TableEncoder, X: NDArray[Any]) -> NDArray[np.float64]:
    """The columns of numbers in the rows of an encoder that also has texts."""
    return np.ascontiguousarray(X[:, : X.shape[1] - len(encoder.text_columns_)].astype(np.float64))


def best_parts(
    encoder: TableEncoder, X: NDArray[Any], y: NDArray[Any], task: Task, sample: int, folds: int, seed: int
) -> list[Part]:
    """The kernel that predicts best from the numbers alone, and from each column of texts alone."""
    texts = encoder.text_columns_
    features = tuple(encoder.feature_names_out_[: X.shape[1] - len(texts)])
    found = []
    options: dict[str, Any] = {"folds": folds, "task": task, "sample": sample, "random_state": seed}

    def best(name: str, columns: tuple[str, ...], rows: Any, kernels: list[Kernel]) -> Part:
        search = cross_validate_ridge(rows, y, kernels, default_alphas(), **options)
        said = f"{name} alone: {search.metric} {ratio(search.best_score)} on {search.sample_size} rows"
        return Part(name, columns, search.best_kernel, f"{said}, {search.best_kernel!r}")

    if features:
        rows = number_rows(encoder, X)
        found.append(best(NUMBERS, features, rows, default_kernels(rows, random_state=seed)))
    for j, name in enumerate(texts, start=len(features)):
        column = X[:, j]
        found.append(best(name, (name,), column, default_sequence_kernels(column)))
    return found


def joined(parts: list[Part]) -> list[Joined]:
    """Each part alone, sums of all with other weights of the numbers, and the product of all."""
    alone = [Joined((part,), (1.0,)) for part in parts]
    if len(parts) < 2:
        return alone
    shares = _shares(len(parts)) if parts[0].name == NUMBERS else [(1.0,) * len(parts)]
    return [*alone, *(Joined(tuple(parts), share) for share in shares), Joined(tuple(parts))]


def _shares(parts: int) -> list[tuple[float, ...]]:
    """Weights that sum to 1: the first for the numbers, the rest in equal shares for the other parts."""
    return [(weight, *[round((1 - weight) / (parts - 1), 6)] * (parts - 1)) for weight in WEIGHTS]


def placed(kernel: Kernel, encoder: TableEncoder, who: str) -> tuple[Kernel, TableEncoder]:
    """A given kernel, on the columns that it can read, and the encoder of these columns.

    A kernel of vectors reads the numbers, one of sequences the only column of texts.
    """
    texts = encoder.text_columns_
    if kernel.space.vectors:
        return kernel, encoder.without(*texts) if texts else encoder
    names = _chosen(kernel)
    if kernel.space.objects and texts and names and all(isinstance(one, str) for one in names):
        return kernel, encoder.with_features(*names)
    if kernel.space.objects and len(texts) == 1 and not names:
        return kernel.on(texts), encoder.with_features(*texts)
    if kernel.space.objects and names:
        return kernel, encoder
    given = f"{kernel!r:.200} is not a kernel of the rows of a table"
    if texts:
        do = f"choose a kernel of numbers, or one of texts on one of {', '.join(texts)}, as in spectrum(k=3).on([name])"
    else:
        do = "choose a kernel of those, such as gaussian(); others are for mercer in Python"
    raise InvalidInput(message(who, given, do))


def _chosen(kernel: Kernel) -> list[Any]:
    """The columns that the parts of a kernel name."""
    if isinstance(kernel, OnColumns):
        return list(kernel.columns)
    return [one for child in kernel._children().values() for one in _chosen(child)]
