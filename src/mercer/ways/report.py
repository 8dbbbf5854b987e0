"""The report of a fit: the method and its reason, the accuracy, the cost, and what to try next."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.engine.backend import device_in_use, spare_threads
from mercer.events import StageDone, StageStarted, emit
from mercer.numerals import counted
from mercer.points import apart, human, require

__all__ = ["Report"]


@dataclass
class Report:
    """The report of a fit. ``print`` it to read it; programs use its fields, and notebooks show it as a table.

    Attributes
    ----------
    estimator, kernel : str
        The estimator, and the kernel with its parameters as resolved from the data.
    n, d : int
        Number of rows and columns; d = 0 for objects such as sequences.
    dtype : str
        The dtype of the kernel's entries.
    definiteness : str
        Whether the kernel is proved to be positive semi-definite.
    method, reason : str
        The method, and the reason for it.
    memory_budget, memory_planned : int
        Bytes. The plan is made before anything is allocated.
    memory_rows : int
        Bytes of the plan for copies of the rows. The plan does not count the rows that the caller holds.
    steps : int
        Number of steps of the solver.
    residual, tolerance : float
        The true residual, recomputed in float64 unless `precision` says otherwise, and the requested one.
    status : str
        How the solver ended.
    precision : str
        The precision of the factor or of the products.
    jitter : float
        Added to the diagonal beyond the requested shift: always 0, because a jitter would change the estimator.
    rank : int or None
        Number of components.
    seconds : dict
        Seconds of each stage.
    predicted : dict
        Predicted seconds of the chosen method, by the names of its stages joined with " + "; empty without a
        prediction.
    reading : dict
        What was read from a file of rows: their number, bytes, and seconds in which the method waited for them; empty
        for rows in memory.
    notes, warnings : list of str
        Notes need no action; warnings do.
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
    reading: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; a residual that is NaN equals another one."""
        if type(other) is not Report:
            return NotImplemented
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(a == b or (isinstance(a, float) and np.isnan([a, b]).all()) for a, b in pairs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Fields that did not exist in the version that pickled the report get their defaults.
        vars(self).update(vars(Report()) | state)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, which may use the free processors, and emit events at its beginning and its end."""
        emit(StageStarted(name, self.estimator or "fit", tuple(self.predicted.items()), tuple(self.seconds.items())))
        start = time.perf_counter()
        with spare_threads():
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        emit(StageDone(name, self.seconds[name]))

    @property
    def room(self) -> int:
        """Bytes of the memory budget without the copies of the rows."""
        return max(self.memory_budget - self.memory_rows, 0)

    def plan(self, needed: int, what: str, alternatives: str | Sequence[str]) -> None:
        """Plan these bytes in addition to the copies of the rows; raise if the budget does not allow them."""
        self.memory_planned = max(self.memory_planned, self.memory_rows + needed)
        require(self.memory_rows + needed, self.memory_budget, what, alternatives)

    def continued(self) -> Report:
        """A copy for a fit that continues an earlier one, so that its entries do not change the earlier report.

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
        """Whether every field has the type of its default. The fields of a report from a file may not.

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
        size = f"{counted(self.n, 'row')} × {counted(self.d, 'column')}" if self.d else counted(self.n, "object")
        rows = [
            ("kernel", f"{self.kernel}  ({self.definiteness})"),
            ("data", f"{size}, {self.dtype} entries"),
            ("method", f"{self.method}: {self.reason}"),
            ("memory", "{} planned of {}".format(*apart(self.memory_planned, self.memory_budget))),
            ("residual", self._residual_line()),
            ("precision", self.precision),
        ]
        if self.rank is not None:
            rows.append(("components", str(self.rank)))
        rows.append(("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())))
        if self.predicted:
            rows.append(("predicted", ", ".join(self._predicted_line(*one) for one in self.predicted.items())))
        if self.reading:
            rows.append(("reading", self._reading_line()))
        return rows + [("note", note) for note in self.notes] + [("warning", warning) for warning in self.warnings]

    def predict(self, seconds: float, *stages: str) -> None:
        """Record the seconds predicted for these stages; `lines` shows them with the measured ones.

        If two predictions share a stage, the longer one is kept. Nothing is recorded where a device computes, because
        the rates are the processor's.

        >>> report = Report()
        >>> report.predict(2.0, "kernel matrix", "eigenvalues")
        >>> report.predict(0.1, "kernel matrix", "solve")
        >>> report.predicted
        {'kernel matrix + eigenvalues': 2.0}
        """
        if device_in_use():
            return
        shared = {names: s for names, s in self.predicted.items() if set(names.split(" + ")) & set(stages)}
        if seconds > max(shared.values(), default=0.0):
            others = {names: s for names, s in self.predicted.items() if names not in shared}
            self.predicted = {**others, " + ".join(stages): seconds}

    def taken(self, stages: str) -> float:
        """Measured seconds of the stages whose names are joined with " + "; 0 for a stage that did not run."""
        return sum(self.seconds.get(stage, 0.0) for stage in stages.split(" + "))

    def _predicted_line(self, stages: str, seconds: float) -> str:
        return f"{stages} {seconds:.2g} s, took {self.taken(stages):.2g} s"

    def _reading_line(self) -> str:
        read, waited = self.reading, self.reading.get("seconds waited", 0.0)
        packed, taken = read.get("bytes packed", 0.0), sum(self.seconds.values())
        told = f"{read.get('rows', 0.0) / max(self.n, 1):.1f} passes, {human(read.get('bytes', 0.0))}"
        told += f" after {human(packed)} were packed" if packed else ""
        limit = "reading" if waited > taken / 2 else "computing"
        return f"{told}, waited {waited:.1f} s of {taken:.1f} s: limited by {limit}"

    def _residual_line(self) -> str:
        if self.status == "measured":
            return f"{self.residual:.1e}, measured on a random block"
        if math.isnan(self.tolerance):
            return self.status if math.isnan(self.residual) else f"{self.residual:.1e}, {self.status}"
        steps = counted(self.steps, "step")
        return f"{self.residual:.1e} after {steps} (tolerance {self.tolerance:.0e}): {self.status}"

    def __str__(self) -> str:
        return "\n".join([self.estimator, *(f"  {label:<11}{text}" for label, text in self.lines())])

    def _repr_html_(self) -> str:
        """A table in the notebook's own colours, light or dark, with a bar beside warnings."""
        rows = "".join(_row(label, text) for label, text in self.lines())
        caption = f'<caption style="text-align:left"><b>{html.escape(self.estimator)}</b></caption>'
        return f'<table style="color:inherit;background:none">{caption}<tbody>{rows}</tbody></table>'

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for a file."""
        return dict(vars(self))


def _row(label: str, text: str) -> str:
    cell, bar = "text-align:left;vertical-align:top", ";border-left:4px solid #d55e00" if label == "warning" else ""
    head = f'<th scope="row" style="{cell}{bar}">{html.escape(label)}</th>'
    return f'<tr style="background:none">{head}<td style="{cell}">{html.escape(text)}</td></tr>'
