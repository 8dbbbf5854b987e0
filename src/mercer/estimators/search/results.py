"""The table of a search, in scikit-learn's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

__all__ = ["as_table", "chosen_row"]


def as_table(
    candidates: list[dict[str, Any]], found: list[dict[str, list[float]]], rounds: list[tuple[int, int]] | None = None
) -> dict[str, Any]:
    """`cv_results_` from the scores of each candidate and, after a race, its last (round, rows).

    >>> table = as_table([{"alpha": 1.0}, {"alpha": 2.0}], [{"test_score": [0.5, 0.7]}, {"test_score": [0.9, 0.7]}])
    >>> table["mean_test_score"].round(2).tolist(), table["rank_test_score"].tolist(), table["param_alpha"].tolist()
    ([0.6, 0.8], [2, 1], [1.0, 2.0])
    """
    table: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = np.array([one.get(name, [0.0]) for one in found])
        table[f"mean_{name}"], table[f"std_{name}"] = times.mean(axis=1), times.std(axis=1)
    for name in sorted({name for one in candidates for name in one}):
        table[f"param_{name}"] = _column(
            [one.get(name, None) for one in candidates], [name in one for one in candidates]
        )
    table["params"] = candidates
    turns = np.zeros(len(found), int) if rounds is None else np.array([turn for turn, _ in rounds])
    for name in [key for key in found[0] if key.startswith("test_")]:
        scores = np.array([one[name] for one in found], np.float64)
        for split in range(scores.shape[1]):
            table[f"split{split}_{name}"] = scores[:, split]
        table[f"mean_{name}"], table[f"std_{name}"] = scores.mean(axis=1), scores.std(axis=1)
        table[f"rank_{name}"] = _ranks(table[f"mean_{name}"], turns)
    if rounds is not None:
        table["iter"], table["n_resources"] = turns, np.array([rows for _, rows in rounds])
    return table


def _column(values: list[Any], present: list[bool]) -> Any:
    kinds = {type(value) for value, known in zip(values, present, strict=True) if known}
    plain = len(kinds) == 1 and issubclass(next(iter(kinds)), bool | int | float | np.number)
    column = np.ma.masked_all(len(values), dtype=np.result_type(*kinds) if plain and all(present) else object)
    for i, (value, known) in enumerate(zip(values, present, strict=True)):
        if known:
            column[i] = value
    return column


def _ranks(means: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """1 for the best; those of later rounds first, NaN last."""
    known = np.nan_to_num(-means, nan=np.inf)
    order = np.lexsort((known, -turns))
    keys = np.empty(len(means))
    before, after = order[:-1], order[1:]
    keys[order] = np.cumsum(np.append(0, (known[before] != known[after]) | (turns[before] != turns[after])))
    return rankdata(keys, method="min").astype(np.int32)


def chosen_row(table: dict[str, Any], refit: Any, main: str) -> int:
    """The place of the best candidate; if `refit` is a function of the table, its choice."""
    if callable(refit):
        return int(refit(table))
    return int(np.argmin(table[f"rank_test_{main}"]))
