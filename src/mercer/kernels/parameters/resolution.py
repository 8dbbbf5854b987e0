"""The conversion of parameters that depend on data to numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mercer.errors import InvalidInput, message
from mercer.kernels.parameters import bandwidth

__all__ = ["Resolver", "blank", "from_rows"]


@dataclass(frozen=True)
class Resolver:
    """Functions that replace rules for bandwidths, and names of columns, by numbers."""

    bandwidth: Callable[[str, str, Any], float]
    """(rule, measure, rows) ↦ γ."""
    column: Callable[[str], int]
    """A column's name ↦ its index."""


def _lookup(names: Sequence[str] | None) -> Callable[[str], int]:
    def column(name: str) -> int:
        if names is None:
            advice = "give a data frame, or resolve(X, feature_names=...), or column indices"
            raise InvalidInput(message("on", f"column name {name!r} for data without names", advice))
        if names.count(name) != 1:
            given = f"column name {name!r} found {names.count(name)} times"
            raise InvalidInput(message("on", given, f"the columns are {list(names)[:20]}"))
        return names.index(name)

    return column


def from_rows(weights: Any, seed: int, names: Sequence[str] | None) -> Resolver:
    """A resolver for rows with these weights, whose columns have these names."""

    def gamma(rule: str, measure: str, rows: Any) -> float:
        return bandwidth.from_data(rule, measure, rows, weights, seed=seed)

    return Resolver(gamma, _lookup(names))


def blank() -> Resolver:
    """A resolver with arbitrary numbers, for a kernel that is only traced to see whether that works."""
    seen: dict[str, int] = {}
    return Resolver(lambda rule, measure, rows: 1.0, lambda name: seen.setdefault(name, 10**6 + len(seen)))
