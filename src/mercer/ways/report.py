"""What a fit tells about itself: what was chosen, how exact it is, what it cost, and what to try next."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.engine.backend import spare_threads
from mercer.events import StageDone, emit
from mercer.points import human, require

__all__ = ["Report"]


@dataclass
class Report:
    """The account of a fit; `str` is for people, the fields are for programs, and notebooks show a table.

    Attributes
    ----------
    estimator, kernel : str
        What was fitted; the kernel as resolved from the data.
    n, d : int
        Rows and columns seen; no columns of objects such as sequences.
    dtype : str
        Of the kernel's entries.
    definiteness : str
        What is proved about the kernel.
    method, reason : str
        The method taken, and why.
    memory_budget, memory_planned : int
        Bytes; the plan is made before anything is allocated.
    memory_rows : int
        Of the plan, for copies of the rows. The rows as given, which the caller holds, are in no plan.
    steps : int
        Of the solver.
    residual, tolerance : float
        True residual, recomputed, in float64 unless `precision` says otherwise, and the one asked for.
    status : str
        How the solver ended.
    precision : str
        Of the factor, or of the products.
    jitter : float
        Added to the diagonal beyond what was asked for: always 0 here, because a jitter changes the estimator.
    rank : int or None
        Components kept.
    seconds : dict
        Time per stage.
    predicted : dict
        Seconds that the chosen way was predicted to take, by its stages joined with " + "; empty if nothing was.
    notes, warnings : list of str
        What is worth knowing; what to do something about.
    """

    estimator: str = ""
    kernel: str = ""
    n: int = 0
    d: int = 0
    dtype: str = ""
    definiteness: str = ""
    method: str = ""
    reason: str = ""
    memory_budget: int = 0
    memory_planned: int = 0
    memory_rows: int = 0
    steps: int = 0
    residual: float = 0.0
    tolerance: float = 0.0
    status: str = ""
    precision: str = ""
    jitter: float = 0.0
    rank: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # One that was pickled before a field was there has its default.
        vars(self).update(vars(Report()) | state)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, on the processors that are free, and say when it is over."""
        start = time.perf_counter()
        with spare_threads():
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        emit(StageDone(name, self.seconds[name]))

    @property
    def room(self) -> int:
        """What the copies of the rows leave of the budget."""
        return max(self.memory_budget - self.memory_rows, 0)

    def plan(self, needed: int, what: str, alternatives: str | Sequence[str]) -> None:
        """Plan for these bytes beside the copies of the rows; refuse what is beyond the budget."""
        self.memory_planned = max(self.memory_planned, self.memory_rows + needed)
        require(self.memory_rows + needed, self.memory_budget, what, alternatives)

    def continued(self) -> Report:
        """A copy for a fit that goes on: what it adds is not in the account of the former fit.

        >>> before = Report(notes=["a"])
        >>> before.continued().notes.append("b")
        >>> before.notes
        ['a']
        """
        copies: dict[str, Any] = {
            name: type(was)(was) for name, was in vars(self).items() if isinstance(was, (dict, list))
        }
        return replace(self, **copies)

    def is_sound(self) -> bool:
        """Whether every entry is of the kind of its default, as those of reports from files may not be.

        >>> Report(notes=["a"]).is_sound(), Report(notes="a").is_sound(), Report(residual="small").is_sound()
        (True, False, False)
        """
        for name, default in vars(Report()).items():
            value = getattr(self, name)
            kind = (int, float, np.number) if isinstance(default, int | float) else type(default)
            if not isinstance(value, kind) and not (name == "rank" and isinstance(value, int)):
                return False
        seconds = (*self.seconds.values(), *self.predicted.values())
        texts = (*self.seconds, *self.predicted, *self.notes, *self.warnings)
        numbers = all(isinstance(one, int | float | np.number) for one in seconds)
        return numbers and all(isinstance(one, str) for one in texts)

    def lines(self) -> list[tuple[str, str]]:
        """The report as (label, text) pairs, in reading order."""
        rows = [
            ("kernel", f"{self.kernel}  ({self.definiteness})"),
            ("data", f"{self.n} {f'rows × {self.d} columns' if self.d else 'objects'}, {self.dtype} entries"),
            ("method", f"{self.method}: {self.reason}"),
            ("memory", f"{human(self.memory_planned)} planned of {human(self.memory_budget)}"),
            ("residual", self._residual_line()),
            ("precision", self.precision),
        ]
        if self.rank is not None:
            rows.append(("components", str(self.rank)))
        rows.append(("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())))
        if self.predicted:
            rows.append(("predicted", ", ".join(self._predicted_line(*one) for one in self.predicted.items())))
        return rows + [("note", note) for note in self.notes] + [("warning", warning) for warning in self.warnings]

    def predict(self, seconds: float, *stages: str) -> None:
        """Say what the chosen way will take in these stages, beside which `lines` shows what they took.

        Of two ways that share a stage the longer one is shown.

        >>> report = Report()
        >>> report.predict(2.0, "kernel matrix", "eigenvalues")
        >>> report.predict(0.1, "kernel matrix", "solve")
        >>> report.predicted
        {'kernel matrix + eigenvalues': 2.0}
        """
        shared = {names: s for names, s in self.predicted.items() if set(names.split(" + ")) & set(stages)}
        if seconds > max(shared.values(), default=0.0):
            others = {names: s for names, s in self.predicted.items() if names not in shared}
            self.predicted = {**others, " + ".join(stages): seconds}

    def taken(self, stages: str) -> float:
        """Seconds of stages whose names are joined with " + "; those that were left out took none."""
        return sum(self.seconds.get(stage, 0.0) for stage in stages.split(" + "))

    def _predicted_line(self, stages: str, seconds: float) -> str:
        return f"{stages} {seconds:.2g} s, took {self.taken(stages):.2g} s"

    def _residual_line(self) -> str:
        if self.status == "measured":
            return f"{self.residual:.1e}, measured on a random block"
        if math.isnan(self.tolerance):
            return self.status if math.isnan(self.residual) else f"{self.residual:.1e}, {self.status}"
        return f"{self.residual:.1e} after {self.steps} steps (asked for {self.tolerance:.0e}): {self.status}"

    def __str__(self) -> str:
        return "\n".join([self.estimator, *(f"  {label:<11}{text}" for label, text in self.lines())])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self.lines())
        return f"<table><caption>{html.escape(self.estimator)}</caption>{rows}</table>"

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for a file."""
        return dict(vars(self))
