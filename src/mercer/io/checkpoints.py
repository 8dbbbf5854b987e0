"""Checkpoints: a fit that is killed goes on from its last state when the same lines are run again."""

from __future__ import annotations

import logging
import math
import numbers
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import CheckpointWarning, InvalidInput, message, warn
from mercer.io import checkpoint_file
from mercer.io.checkpoint_file import Contents
from mercer.io.identity import differences, environment, identity
from mercer.io.outputs import check_output
from mercer.keeping import Kept, Run, Trail, kept_by
from mercer.points import fingerprint

__all__ = ["checkpoint"]

WHO = "checkpoint"
SHARE = 0.02
"""The largest share of the time that writing may take: the next checkpoint waits until then."""
WORTH = 1.0
"""Seconds from which on a finished run is kept; shorter ones are computed again."""
MOST = 512 << 20
"""Bytes of the finished runs that are kept. Beyond, those are computed again that take the least time for a byte."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(["", "s", "sec", "second", "seconds"], 1.0),
    **dict.fromkeys(["min", "minute", "minutes"], 60.0),
    **dict.fromkeys(["h", "hour", "hours"], 3600.0),
}


@contextmanager
def checkpoint(path: str | os.PathLike[str], *, every: float | str = "5min") -> Iterator[None]:
    """Save the states of the fits within the block: after a kill, the same lines go on from the last, to the same bits.

    Each solver writes its state after a step, at most once in `every`: conjugate gradients, eigenvectors, support
    vector machines, logistic regression, k-means, gradient descent, perceptrons, partial least squares. Of a search for
    the largest likelihood each evaluation is kept. What a fit does before and between its solvers, such as the kernel
    matrix and direct decompositions, is computed again. So are finished solvers that took less than a second; the last
    states of others are kept. When the block ends without an error, the file is deleted.

    If the block ends by Ctrl-C or another error, the last state is written, and the error says so. A kill at any
    moment, also while a checkpoint is written, leaves a whole one: it is written beside the file, flushed to the disk
    and renamed, and the one before is kept as ``path.before``. A full disk is a warning, and the run goes on.

    The results have the bits of a run that was not interrupted if the same data, parameters, versions, engine and
    number of threads are given; a checkpoint of others is refused, and so is a second run beside the first. Give
    ``random_state`` a number, and set ``OMP_NUM_THREADS``, because idle processors are counted otherwise.

    Not kept: `partial_fit`, after which the model itself is the state to save; predictions that are written to a file,
    which take one pass; fits in other threads and processes, such as those of scikit-learn's ``n_jobs``, which do not
    know of the block: leave it out, or keep the scores (``KernelSearchCV(resume=)``); functions that are no fits; and
    `mercer.solvers.solve` outside a fit, whose ``state=`` serves for that.

    Parameters
    ----------
    path : path-like
        The file. It is deleted when the block ends without an error.
    every : float or str
        Seconds, or a text: a number with "s", "min" or "h". 0 writes after every step. Whatever is given, except 0,
        writing takes at most 2 % of the time.

    Raises
    ------
    InvalidInput
        If the file is of other data, parameters or versions, or is not a checkpoint; if it and the one before are
        damaged; if another run keeps its states there; if a file of another kind is named as it is, with ".part",
        ".before" or ".lock" after it; if there is no such folder; if `every` is not a duration.

    Warns
    -----
    CheckpointWarning
        If a checkpoint cannot be written, or the last one is damaged and the one before is used.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import mercer
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ridge.checkpoint"
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> with mercer.checkpoint(path, every="1min"):
    ...     model = mercer.KernelRidge("gaussian", solver="cg").fit(X, X[:, 0])
    >>> path.exists()
    False
    """
    own = _Checkpoint(Path(os.path.realpath(path)), seconds_of(every))
    check_output(WHO, own.path, (), "a checkpoint", lambda _: True)
    checkpoint_file.require_own(own.path)
    with checkpoint_file.alone(own.path):
        own.read()
        try:
            with kept_by(own):
                yield
        except BaseException as error:
            own.interrupted(error)
            raise
        own.completed()


def seconds_of(every: float | str) -> float:
    """A duration in seconds.

    >>> seconds_of("5min"), seconds_of("1.5 h"), seconds_of(20)
    (300.0, 5400.0, 20.0)
    """
    found = math.nan
    if isinstance(every, str):
        amount = _DURATION.fullmatch(every)
        if amount is not None and amount[2].lower() in _UNITS:
            found = float(amount[1]) * _UNITS[amount[2].lower()]
    elif isinstance(every, numbers.Real) and not isinstance(every, bool):
        with suppress(OverflowError):
            found = float(every)
    if not 0 <= found < math.inf:
        raise InvalidInput(message(WHO, f"every={every!r} is not a duration", 'give seconds, or a text such as "5min"'))
    return found


@dataclass
class _Saved:
    """A run of a solver that a checkpoint holds: which it is, and its state with what was recorded until then."""

    place: str
    """The number of the fit, and that of the run within it."""
    solver: str
    mark: str
    """The fingerprint of the solver and of the state that it started from."""
    steps: int
    seconds: float
    arrays: Mapping[str, NDArray[Any]]
    trail: list[NDArray[Any]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in (*self.arrays.values(), *self.trail))


class _Running(Run):
    """A run that is kept: the last state offered, which nobody changes, and how much of the trail belongs to it."""

    def __init__(self, owner: _Checkpoint, base: _Saved, trail: Trail | None) -> None:
        self.owner, self.base, self.trail = owner, base, trail
        self.since = time.monotonic()
        self.state: Kept | None = None
        self.recorded = 0

    def offer(self, state: Kept) -> None:
        self.state, self.recorded = state, len(self.trail.arrays) if self.trail is not None else 0
        self.owner.stepped()

    def saved(self) -> _Saved | None:
        """The run as far as it has come; None before the first step."""
        if self.state is None:
            return self.base if self.arrays is not None else None
        base, state = self.base, self.state
        seconds = base.seconds + time.monotonic() - self.since
        steps = int(getattr(state, "steps", 0))
        trail = self.trail.arrays[: self.recorded] if self.trail is not None else []
        return _Saved(base.place, base.solver, base.mark, steps, seconds, state.to_arrays(), trail)


class _Checkpoint:
    """The keeper of a block: the fits that began, the finished runs worth keeping, and the run that is under way."""

    def __init__(self, path: Path, every: float) -> None:
        self.path, self.every = path, every
        self.source = path
        """The file that was read: the one before, if the last one is gone or damaged."""
        self.fits: list[dict[str, Any]] = []
        self.known: list[dict[str, Any]] = []
        """The fits that the file knows."""
        self.runs: dict[str, _Saved] = {}
        self.running: _Running | None = None
        self.count = 0
        """Runs of the present fit so far."""
        self.whole, self.failed, self.unwritten = True, False, False
        self.written: str | None = None
        self.due = time.monotonic() + every
        self.environment: dict[str, str] | None = None
        self.refusal: InvalidInput | None = None

    # ---- what fits and solvers tell ----------------------------------------------------------------------------------

    def begin(self, model: Any, method: str, given: Mapping[str, Any]) -> None:
        if self.running is not None:  # somebody caught Ctrl-C, and fits again
            self._finished(self.running)
        if self.environment is None:
            self.environment = environment()
            self._check_environment()
        own = identity(model, method, given)
        place = len(self.fits)
        if place < len(self.known) and (told := differences(self.known[place], own)):
            self._refuse(f"holds another {self._fit(self.known[place])}: {told}")
        self.fits.append(own)
        self.count = 0

    @contextmanager
    def opened(self, solver: object, start: Kept, trail: Trail | None) -> Iterator[Run]:
        run = self._run(solver, start, trail) if self.fits and self.running is None else None
        del start  # it may be large
        if run is None:
            yield Run()
            return
        self.running = run
        try:
            yield run
        except Exception:  # the fit may go on in another way
            self._finished(run)
            raise
        self._finished(run)

    def _run(self, solver: object, start: Kept, trail: Trail | None) -> _Running:
        place = f"{len(self.fits) - 1}.{self.count}"
        self.count += 1
        mark = fingerprint(solver, sorted(start.to_arrays().items()))
        before = self.runs.pop(place, None)
        if before is not None and before.mark != mark:
            fit = self._fit(self.fits[-1])
            given = f"holds a run of {before.solver} where this {fit} has {solver!r}, or the same from another start"
            self._refuse(given + ": random_state, memory or the rates of the machine are others")
        if before is None:
            return _Running(self, _Saved(place, repr(solver), mark, 0, 0.0, {}), trail)
        run = _Running(self, before, trail)
        run.arrays = before.arrays
        if trail is not None:
            trail.arrays[:] = before.trail
            run.recorded = len(before.trail)
        logging.getLogger("mercer").info("%s: %s goes on from step %d.", WHO, before.solver, before.steps)
        return run

    def stepped(self) -> None:
        """After a step: write if it is time. The clock is monotonic, so that a clock that jumps does no harm."""
        self.unwritten = True
        if time.monotonic() >= self.due and self.refusal is None:
            self._write()

    def _finished(self, run: _Running) -> None:
        self.running = None
        found = run.saved()
        if found is not None and found.seconds >= min(WORTH, self.every):
            found.arrays = {name: np.asarray(array) for name, array in found.arrays.items()}
            self.runs[found.place] = found
            while sum(one.nbytes for one in self.runs.values()) > MOST:
                cheapest = min(self.runs.values(), key=lambda one: one.seconds / max(one.nbytes, 1))
                del self.runs[cheapest.place]

    # ---- the file ----------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the last whole checkpoint, if there is one."""
        contents, reason = checkpoint_file.latest(self.path)
        if contents is None:
            return
        self.source = contents.path or self.path
        if reason is not None:
            self.whole = False
            given, do = f"{self.path.name} {reason}", f"nothing: {self.source.name} is used"
            warn(message(WHO, given, do), CheckpointWarning)
        try:
            self._take(contents)
            self.written = "an earlier state"
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            self._refuse(f"is damaged ({type(error).__name__})")

    def _take(self, contents: Contents) -> None:
        document, arrays = contents.document, contents.arrays
        self.known = [{str(key): str(value) for key, value in one.items()} for one in document["fits"]]
        self.read_environment = {str(key): str(value) for key, value in document["environment"].items()}
        for one in document["runs"]:
            own = {name: arrays[key] for name, key in one["arrays"].items()}
            trail = [arrays[key] for key in one["trail"]]
            told = str(one["solver"]), str(one["mark"])
            place = str(one["place"])
            self.runs[place] = _Saved(place, *told, int(one["steps"]), float(one["seconds"]), own, trail)

    def _check_environment(self) -> None:
        if not self.known:
            return
        before, now = self.read_environment, self.environment or {}
        if told := differences(before, now):
            same = before | {"threads": ""} == now | {"threads": ""}
            threads = before.get("threads")
            do = f"set OMP_NUM_THREADS={threads} without --threads to go on, " if same else ""
            self._refuse(f"is of other versions or settings: {told}", do)

    def _contents(self) -> Contents:
        running = self.running.saved() if self.running is not None else None
        arrays: dict[str, NDArray[Any]] = {}
        runs = []
        for one in (*self.runs.values(), *([running] if running is not None else [])):
            names = {name: f"{one.place} {name}" for name in one.arrays}
            trail = {f"{one.place} #{i}": array for i, array in enumerate(one.trail)}
            arrays |= {names[name]: array for name, array in one.arrays.items()} | trail
            about = {"place": one.place, "solver": one.solver, "mark": one.mark}
            runs.append({**about, "steps": one.steps, "seconds": one.seconds, "arrays": names, "trail": list(trail)})
        fits = self.fits + self.known[len(self.fits) :]
        return Contents({"environment": self.environment, "fits": fits, "runs": runs}, arrays)

    def _write(self) -> str | None:
        """Write the file, or warn and try again later. Why it was not possible, or None."""
        start = time.monotonic()
        reason: str | None = None
        try:
            checkpoint_file.write(self.path, self._contents(), keeps=self.whole)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", "not enough memory") or type(error).__name__
            if not self.failed:
                text = message(WHO, f"{self.path.name} cannot be written ({reason}), and the run goes on", "make room")
                warn(text, CheckpointWarning)
            self.failed = True
        else:
            self.whole, self.failed, self.unwritten, self.source = True, False, False, self.path
            running = self.running.saved() if self.running is not None else None
            self.written = f"step {running.steps} of {running.solver}" if running is not None else "finished steps"
        now = time.monotonic()
        self.due = now + (max(self.every, (now - start) / SHARE) if self.every else 0.0)
        return reason

    def interrupted(self, error: BaseException) -> None:
        """Write the last state, and say in the error how to go on."""
        if self.refusal is not None:
            return
        try:
            reason = self._write() if self.unwritten else None
        except KeyboardInterrupt:
            reason = "stopped again"
        if reason is not None and self.written is None:
            error.add_note(f"{WHO}: {self.path} could not be written ({reason}); the run starts anew.")
        elif self.written is not None:
            error.add_note(f"{WHO}: {self.path} has {self.written}; run the same again to go on from there.")

    def completed(self) -> None:
        """Delete the file, unless it was refused and a search took that for a candidate that failed."""
        if self.refusal is not None:
            raise self.refusal
        try:
            checkpoint_file.remove(self.path)
        except OSError as error:
            given = f"{self.path.name} cannot be deleted ({error.strerror})"
            do = f"delete {checkpoint_file.to_delete(self.path)}, because the fit is complete"
            warn(message(WHO, given, do), CheckpointWarning)

    def _fit(self, one: dict[str, Any]) -> str:
        return str(one.get("fit", "fit"))

    def _refuse(self, given: str, do: str = "") -> None:
        do += f"name another file, or delete {checkpoint_file.to_delete(self.path)} to begin anew"
        self.refusal = InvalidInput(message(WHO, f"{self.source.name} {given}", do))
        raise self.refusal
