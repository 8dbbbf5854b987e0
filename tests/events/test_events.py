"""The door: who hears what, what a broken observer may do, and what it costs when nobody listens."""

from __future__ import annotations

import builtins
import dataclasses
import io
import logging
import re
import sys
import threading
import timeit
import types

import numpy as np
import pytest

from mercer.errors import Cancelled, InvalidInput
from mercer.estimators import KernelPCA, KernelRidge
from mercer.events import (
    Cancel,
    Log,
    Observer,
    Progress,
    SolverStep,
    StageDone,
    StageStarted,
    TilesDone,
    emit,
    observe,
    observed,
)
from mercer.events.progress import share_done

STEP = SolverStep("cg", step=1, residual=1e-2, tolerance=1e-8)
TILES = TilesDone("K @ V", done=1, total=4)
STAGE = StageDone("solve", seconds=0.25)
BEGIN = StageStarted("solve", "KernelRidge", (("kernel matrix + solve", 2.0),))


class Heard:
    """An observer that remembers."""

    def __init__(self):
        self.events = []

    def on_event(self, event):
        self.events.append(event)


class Broken:
    """An observer that fails, each time in the way it was told."""

    def __init__(self, error):
        self.error = error
        self.calls = 0

    def on_event(self, event):
        self.calls += 1
        raise self.error


class Managed(Heard):
    """An observer that is a context manager too."""

    def __init__(self, fail_at=None):
        super().__init__()
        self.story = []
        self.fail_at = fail_at

    def __enter__(self):
        self.story.append("enter")
        if self.fail_at == "enter":
            raise OSError("no display")
        return self

    def __exit__(self, *error):
        self.story.append("exit")
        if self.fail_at == "exit":
            raise OSError("no display")


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("event", [STEP, TILES, STAGE, BEGIN])
def test_events_are_frozen_values(event):
    assert event == dataclasses.replace(event)
    assert hash(event) == hash(dataclasses.replace(event))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, dataclasses.fields(event)[0].name, "other")


def test_an_observer_hears_within_its_block_only():
    heard = Heard()
    emit(STEP)
    with observe(heard):
        assert observed()
        emit(TILES)
    emit(STAGE)
    assert not observed()
    assert heard.events == [TILES]


def test_nested_observers_add_up():
    outer, inner = Heard(), Heard()
    with observe(outer):
        with observe(inner):
            emit(STEP)
        emit(STAGE)
    assert outer.events == [STEP, STAGE]
    assert inner.events == [STEP]


def test_an_exception_restores_the_observers():
    heard = Heard()
    with pytest.raises(ZeroDivisionError), observe(heard):
        raise ZeroDivisionError
    emit(STEP)
    assert heard.events == []


def test_another_thread_has_its_own_observers():
    heard = Heard()
    with observe(heard):
        thread = threading.Thread(target=emit, args=(STEP,))
        thread.start()
        thread.join()
    assert heard.events == []


def test_a_broken_observer_is_logged_once_and_dropped(caplog):
    broken, heard = Broken(ValueError("bar fell over")), Heard()
    with observe(broken, heard):
        emit(STEP)
        emit(TILES)
    assert broken.calls == 1
    assert heard.events == [STEP, TILES]
    (record,) = caplog.records
    assert "Broken failed" in record.getMessage()
    assert "bar fell over" in str(record.exc_info[1])


@pytest.mark.parametrize("error", [Cancelled("stop"), KeyboardInterrupt()])
def test_cancel_and_ctrl_c_do_propagate(error):
    with pytest.raises(type(error)), observe(Broken(error)):
        emit(STEP)
    assert not observed()


def test_a_context_manager_is_entered_and_left_even_after_an_error():
    managed = Managed()
    with pytest.raises(ZeroDivisionError), observe(managed):
        assert managed.story == ["enter"]
        raise ZeroDivisionError
    assert managed.story == ["enter", "exit"]


@pytest.mark.parametrize("fail_at", ["enter", "exit"])
def test_a_context_manager_that_fails_loses_nothing(fail_at, caplog):
    heard = Heard()
    with observe(Managed(fail_at), heard):
        emit(STEP)
    assert heard.events == [STEP]
    assert len(caplog.records) == 1


def test_an_observer_dropped_in_the_middle_is_still_left():
    class Falls(Managed):
        def on_event(self, event):
            raise ValueError

    falls = Falls()
    with observe(falls):
        emit(STEP)
    assert falls.story == ["enter", "exit"]


@pytest.mark.parametrize(("stranger", "advice"), [(Progress, r"Progress\(\)"), (print, "on_event"), (None, "on_event")])
def test_observe_refuses_what_cannot_hear(stranger, advice):
    with pytest.raises(InvalidInput, match=advice), observe(stranger):
        pass
    assert not observed()


def test_ours_are_observers():
    assert all(isinstance(one, Observer) for one in (Progress(), Log(), Cancel(after_seconds=1)))


def test_emit_is_nearly_free_when_nobody_listens():
    best = min(timeit.repeat(lambda: emit(STEP), number=10_000, repeat=20)) / 10_000
    assert best < 1e-6, f"{best * 1e9:.0f} ns"  # some 60 ns where it was measured; the bound is for a busy machine


def test_log_keeps_its_pace_and_never_misses_the_end(caplog):
    caplog.set_level(logging.INFO, logger="mercer")
    with observe(Log(every=3600)):
        for step in range(5):
            emit(SolverStep("cg", step, residual=10.0**-step, tolerance=1e-4))
        for done in range(4):
            emit(TilesDone("K @ V", done, 4))
        emit(StageStarted("check", "KernelRidge"))
        emit(BEGIN)
        emit(STAGE)
    assert caplog.messages == [
        "cg: step 0, residual 1.00e+00 (stops at 1.0e-04)",
        "cg: step 4, residual 1.00e-04 (stops at 1.0e-04)",
        "K @ V: 0 of 4 tiles",
        "KernelRidge: solve begins; predicted: kernel matrix + solve 2 s",
        "solve: done in 0.25 s",
    ]


def test_log_uses_the_logger_it_was_given(caplog):
    caplog.set_level(logging.INFO, logger="mine")
    with observe(Log(logging.getLogger("mine"), every=0)):
        emit(TILES)
        emit(TILES)
    assert [record.name for record in caplog.records] == ["mine", "mine"]


def test_cancel_after_seconds_counts_from_the_block():
    cancel = Cancel(after_seconds=0)
    with pytest.raises(Cancelled, match="0 seconds had passed at 'cg'"), observe(cancel):
        emit(STEP)
    with observe(Cancel(after_seconds=3600)):
        emit(STEP)


def test_cancel_when():
    stop = threading.Event()
    with observe(Cancel(when=stop.is_set)):
        emit(STEP)
    stop.set()
    with pytest.raises(Cancelled, match="when"), observe(Cancel(when=stop.is_set)):
        emit(STEP)


@pytest.mark.parametrize("arguments", [{}, {"after_seconds": -1}, {"after_seconds": float("nan")}, {"when": 3}])
def test_cancel_refuses_what_it_cannot_wait_for(arguments):
    with pytest.raises(InvalidInput, match="Cancel"):
        Cancel(**arguments)


def test_log_refuses_a_negative_interval():
    with pytest.raises(InvalidInput, match="every"):
        Log(every=-1)


def show_everything():
    with observe(Progress()):
        for step in range(1, 4):
            emit(BEGIN)
            emit(SolverStep("cg[1]", step, residual=10.0**-step, tolerance=1e-8))
            emit(TilesDone("K @ V", step, 3))
        emit(STAGE)


class Output:
    """A cell's output in a notebook, drawn again and again."""

    def __init__(self, monkeypatch):
        self.drawn = []
        shown = types.SimpleNamespace(display=self.display)
        shell = types.SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell, display=shown))
        monkeypatch.setitem(sys.modules, "IPython.display", shown)

    def display(self, thing, display_id):
        assert display_id
        self.update(thing)
        return self

    def update(self, thing):
        self.drawn.append(thing._repr_html_())


def test_progress_draws_in_a_notebook(monkeypatch, capsys):
    output = Output(monkeypatch)
    show_everything()
    assert len(output.drawn) >= 2
    last = output.drawn[-1]
    assert last.count("<progress") == 3
    assert "<td>KernelRidge</td>" in last
    assert "<td>cg[1]</td>" in last
    assert "3 of 3" in last
    assert "solve: 0.25 s" in last
    assert capsys.readouterr() == ("", "")


def test_the_bars_of_a_notebook_show_the_time_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("mercer.events.progress.time.monotonic", lambda: now[0])
    output = Output(monkeypatch)

    def after(seconds, done):
        now[0] += seconds
        emit(TilesDone("<solve>", done, 4))
        return output.drawn[-1]

    with observe(Progress()):
        after(1.0, 0)
        assert "<td>&lt;solve&gt;</td>" in output.drawn[-1]
        assert "<td>1 of 4, 1:30 left</td>" in after(30.0, 1)
        after(1.0, 0)  # the same work once more
        assert "2 of 4, 0:10 left" in after(10.0, 2)


def test_one_bar_goes_over_the_stages_of_a_fit(monkeypatch):
    """10 s are predicted, and 30 of a stage that takes 20; then a stage that nobody predicted, and another fit."""
    now, output = [0.0], Output(monkeypatch)
    monkeypatch.setattr("mercer.events.progress.time.monotonic", lambda: now[0])
    plan = (("preconditioner", 10.0), ("kernel matrix + solve", 30.0))

    def bar(seconds, event):
        now[0] += seconds
        emit(event)
        row = next(row for row in output.drawn[-1].split("<tr>") if row.startswith("<td>KernelRidge<"))
        value = re.search(r'value="([0-9.]+)"', row)
        return float(value[1]) if value else None, re.search(r"</progress></td><td>(.*)</td></tr>", row)[1]

    def step(residual):
        return SolverStep("cg", 2, residual, 1e-8)

    with observe(Progress()):
        assert bar(1, StageStarted("preconditioner", "KernelRidge", plan)) == _drawn(0.0, "preconditioner, 0:40 left")
        assert bar(5, TilesDone("pivots", 1, 2)) == _drawn(5 / 40, "preconditioner, 0:35 left")
        assert bar(10, TilesDone("pivots", 2, 2)) == _drawn(15 / 45, "preconditioner, longer than predicted")
        assert bar(1, StageDone("preconditioner", 16.0)) == _drawn(16 / 46, "0:30 left")
        measured = (("preconditioner", 16.0),)
        assert bar(1, StageStarted("solve", "KernelRidge", plan, measured)) == _drawn(16 / 46, "solve, 0:30 left")
        emit(SolverStep("cg", 1, 1.0, 1e-8))
        # half of the way to the tolerance after 10 of 30 s: 0.5 (0.5 · 30 + 10) s are left
        assert bar(10, step(1e-4)) == _drawn(26 / (26 + 12.5), "solve, 0:12 left")
        assert bar(10, StageDone("solve", 20.0)) == _drawn(1.0, "")
        measured += (("solve", 20.0),)
        assert bar(1, StageStarted("check", "KernelRidge", plan, measured)) == _drawn(
            0.99, "check, no prediction of its time"
        )
        assert bar(1, StageStarted("clusters", "KernelRidge")) == (None, "clusters, no prediction of its time")


def _drawn(share, note):
    return round(share, 4), note


def test_a_fit_announces_its_stages_before_they_run():
    """With predicted seconds from the first stage on; each stage that ends has begun, and what it took is told on."""
    X = np.random.default_rng(0).standard_normal((700, 3))
    for model in (KernelRidge("gaussian(gamma=1.0)", alpha=1.0, solver="cg"), KernelPCA(3)):
        heard = Heard()
        with observe(heard):
            model.fit(X, X[:, 0])
        begun = [event for event in heard.events if isinstance(event, StageStarted)]
        ended = [event for event in heard.events if isinstance(event, StageDone)]
        assert [event.name for event in begun] == [event.name for event in ended]
        assert {event.of for event in begun} == {type(model).__name__}
        assert [len(event.measured) for event in begun] == list(range(len(begun)))
        assert dict(begun[-1].measured) == dict(list(model.report_.seconds.items())[:-1])
        assert dict(begun[-1].predicted) == model.report_.predicted


def test_progress_says_nothing_where_there_is_no_terminal(monkeypatch, capsys, caplog):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    show_everything()
    assert capsys.readouterr().out == ""
    assert caplog.records == []


def test_progress_draws_on_a_terminal(monkeypatch, caplog):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    show_everything()
    drawn = terminal.getvalue()
    assert "cg[1]" in drawn
    assert "KernelRidge" in drawn
    assert "3 of 3" in drawn
    assert "solve: 0.25 s" in drawn
    assert caplog.records == []


def test_progress_without_rich_says_what_to_install(monkeypatch, caplog):
    real = builtins.__import__

    def without_rich(name, *rest, **more):
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    monkeypatch.setattr("sys.stderr", Terminal())
    show_everything()
    (record,) = caplog.records
    assert 'pip install "mercer[progress]"' in record.getMessage()


def test_progress_can_be_used_twice(monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    progress = Progress()
    for _ in range(2):
        with observe(progress):
            emit(TILES)
    assert "K @ V" in terminal.getvalue()


@pytest.mark.parametrize(
    ("first", "residual", "tolerance", "share"),
    [
        (1.0, 1e-4, 1e-8, 0.5),
        (1.0, 1e-9, 1e-8, 1.0),
        (1.0, 2.0, 1e-8, 0.0),
        (1.0, 0.5, 0.0, 0.0),
        (float("inf"), 1.0, 1e-8, 0.0),
        (1.0, float("nan"), 1e-8, 0.0),
        (0.0, 0.0, 0.0, 1.0),
    ],
)
def test_share_done(first, residual, tolerance, share):
    assert share_done(first, residual, tolerance) == pytest.approx(share)
