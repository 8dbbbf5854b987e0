"""The work of ``mercer compare``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.cli import fitting, places
from mercer.cli.compare.leaderboard import LEVEL, Leaderboard, Row, as_result, leaderboard
from mercer.cli.compare.trials import candidates, final_model, sampled, trials
from mercer.cli.output import results, show
from mercer.errors import InvalidInput, message
from mercer.io import TableModel, read_table, save
from mercer.numerals import counted
from mercer.points import parse_memory

__all__ = ["Plan", "compare"]


@dataclass(frozen=True)
class Plan:
    """The methods and folds of a comparison, the file of its scores, and the file of the winner."""

    methods: str | None
    kernels: list[str]
    most: int
    folds: int
    repeats: int
    resume: Path | None
    out: Path | None
    seed: int
    memory: str | None

    def check_places(self, table: Path) -> None:
        """Refuse outputs that would replace something else, and a budget that is none."""
        places.check_model_place(self.out, [table])
        places.check_scores_place(self.resume, [table, self.out])
        parse_memory(self.memory)


def compare(table: Path, prepared: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Compare, show the leaderboard, save the winner; the result as a JSON object."""
    rows = read_table(table, memory=plan.memory, kept=fitting.labels(prepared.get("target")))
    data = fitting.prepare(rows, seed=plan.seed, holdout=False, **prepared)
    tried = candidates(data, plan.methods, plan.kernels)
    part = sampled(data, plan.most, plan.seed)
    if len(part.y) < 4 * plan.folds:
        given = f"{counted(len(part.y), 'row')} for {counted(plan.folds, 'fold')}"
        raise InvalidInput(message("compare", given, "give more rows, or lower --folds"))
    show.show_data(data)
    found = trials(part, tried, plan.folds, plan.repeats, plan.resume, plan.seed, plan.memory)
    board = leaderboard(found, len(part.y), plan.folds, plan.repeats, data.task)
    _show(board, len(part.y), len(data.y))
    if plan.out is not None:
        choice, model = final_model(data, board.winner.candidate, plan.memory, plan.seed)
        _save(model, board, plan.out)
        saved = f"saved as {plan.out}, fitted on all {counted(len(data.y), 'row')}"
        show.section("Model", [f"{choice.said}, by {choice.method.name}", saved])
    told = {"command": "compare", **results.of_data(data), "rows_compared": len(part.y), **as_result(board)}
    return {**told, "model": None if plan.out is None else str(plan.out)}


def _save(model: TableModel, board: Leaderboard, out: Path) -> None:
    winner = board.winner
    told = f"the best of {len(board.rows) - 1} by nested cross-validation: {board.metric} {winner.score}"
    save(model.set_params(notes=(*model.notes, told)), out)


def _show(board: Leaderboard, compared: int, there: int) -> None:
    with_calibration = any(row.calibration_error is not None for row in board.rows)
    header = ["", f"{board.metric} ({LEVEL:.0%} interval)", "behind", "fit s", "predict s"]
    header += ["calibration error"] if with_calibration else []
    lines = show.table_lines(header, [_cells(row, with_calibration) for row in board.rows])
    often = {1: "once", 2: "twice"}.get(board.repeats, f"{board.repeats} times")
    how = f"nested cross-validation: {board.folds} folds, drawn {often}, on {compared} "
    how += "rows" if compared == there else f"of {there} rows"
    show.section("Leaderboard", [how, *lines, *_kernels(board)])
    show.section("Recommendation", [board.advice])


def _cells(row: Row, calibrated: bool) -> list[str]:
    guessing = not row.kernels
    seconds = ["", ""] if guessing else [f"{row.fit_seconds:.2g}", f"{row.predict_seconds:.2g}"]
    behind = "" if row.behind is None else f"{row.behind.mean:.2g} ({row.behind.low:.2g} to {row.behind.high:.2g})"
    error = "" if row.calibration_error is None else f"{row.calibration_error:.3f}"
    return [row.candidate.name, str(row.score), behind, *seconds, *([error] if calibrated else [])]


def _kernels(board: Leaderboard) -> list[str]:
    """The kernels that the folds chose, for the best of the methods that choose."""
    shared = next((row for row in board.rows if row.kernels and row.candidate.kernel is None), None)
    if shared is None:
        return []
    named = [f"{kernel} {count}" for kernel, count in list(shared.kernels.items())[:4]]
    more = f" and {len(shared.kernels) - 4} more" if len(shared.kernels) > 4 else ""
    return [f"the kernels that the folds chose for {shared.candidate.name}, and how often: {'; '.join(named)}{more}"]
